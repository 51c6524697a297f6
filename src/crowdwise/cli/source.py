"""Options of reading, said once, and what they lead to: answers, or a result that is loaded or fitted."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from ..answers import Labels
    from ..result import LabelsResult

Model = Annotated[str, typer.Option(metavar="NAME", help="See `crowdwise models`")]
Seed = Annotated[int, typer.Option(help="The one seed of everything random")]
FitModel = Annotated[str | None, typer.Option("--model", metavar="NAME", help="To fit answers: see `crowdwise models`")]
FitSeed = Annotated[int | None, typer.Option("--seed", help="To fit answers: the one seed of everything random")]
Threads = Annotated[int, typer.Option(help="Threads; 0 is all cores. The result does not depend on it")]

_FILE = "Answers: CSV, TSV, JSON, JSONL or Parquet, also .gz; - is stdin"
_EITHER = f"{_FILE}. Or the folder of a saved result"


def _option(metavar: str, help: str) -> Any:
    return typer.Option(metavar=metavar, help=help)


@dataclass(frozen=True)
class Source:
    """A file of answers, and how to read it."""

    file: Annotated[str, typer.Argument(metavar="FILE", help=_FILE)]
    task: Annotated[str | None, _option("COL", "Column of the task")] = None
    worker: Annotated[str | None, _option("COL", "Column of the worker")] = None
    label: Annotated[str | None, _option("COL", "Column of the label")] = None
    gold: Annotated[str | None, _option("FILE", "Known labels: a table with task and label")] = None
    gold_column: Annotated[str | None, _option("COL", "Known labels: a column of FILE")] = None
    duplicates: Annotated[
        str | None, _option("RULE", "A worker's second answer to a task: last, first, error or each")
    ] = None
    anonymous: Annotated[str, _option("RULE", "Answers without a worker: refuse, or each (a person apiece)")] = "refuse"
    missing: Annotated[list[str] | None, _option("TEXT", "A label that means no answer, e.g. -1; may be repeated")] = (
        None
    )
    wide: Annotated[
        bool | None, typer.Option("--wide/--long", help="A column a worker, or a row an answer; else guessed")
    ] = None
    format: Annotated[
        str | None, _option("NAME", "csv, json, jsonl, parquet or cifar10h; else by the file's ending")
    ] = None
    delimiter: Annotated[str | None, _option("CHAR", "What separates fields; else found")] = None
    encoding: Annotated[str | None, _option("NAME", "For instance latin-1; else UTF-8, or UTF-16 by its mark")] = None

    def answers(self) -> Labels:
        """Read the file."""
        from ..errors import FileError, ParameterError
        from ..io import read

        if self.anonymous not in ("refuse", "each"):
            raise ParameterError(f"--anonymous is {self.anonymous!r}; it can be refuse or each")
        if self.gold is not None and not Path(self.gold).exists():
            raise FileError(
                f"no gold file {self.gold}. Give a table with task and label, or name a column with --gold-column"
            )
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("file", "gold", "gold_column")}
        given["missing"] = given["missing"] or ()
        given["delimiter"] = self.delimiter.replace("\\t", "\t") if self.delimiter else None
        return read(self.file, gold=Path(self.gold) if self.gold else self.gold_column, **given)

    @property
    def saved(self) -> bool:
        """Whether this is a saved result, or the folder of one."""
        path = Path(self.file)
        return path.is_dir() or path.suffix == ".crowdwise"

    @property
    def folder(self) -> Path | None:
        """The folder of the saved result; None for a file of answers."""
        path = Path(self.file)
        return (path if path.is_dir() else path.parent) if self.saved else None

    def loaded(self, **further: Any) -> LabelsResult:
        """The saved result of labels; options that would need the answers read or fitted again are refused."""
        from ..errors import ParameterError

        found = self.any_loaded(**further)
        if found.kind != "labels":
            raise ParameterError(
                f"{self.file} holds a result of {found.kind}, not of labels; its tables are in its folder, and "
                "`crowdwise report` makes its page"
            )
        return found  # type: ignore[no-any-return]

    def any_loaded(self, **further: Any) -> Any:
        """The saved result, of any kind."""
        from ..errors import ParameterError
        from ..io import load

        usual = Source(self.file)
        given = [f.name for f in fields(self) if getattr(self, f.name) != getattr(usual, f.name)]
        given += [name for name, value in further.items() if value is not None]
        if given:
            raise ParameterError(
                f"{self.file} is a saved result, so --{given[0].replace('_', '-')} has no meaning. "
                "Give the file of answers, or omit the option"
            )
        return load(self.file)

    def result(self, model: str | None, seed: int | None, threads: int) -> LabelsResult:
        """The saved result, or a fit of the answers."""
        from .run import Job, work

        if self.saved:
            return self.loaded(model=model, seed=seed)
        job = Job(name=model or "pooled", settings={}, out=None, seed=seed or 0, threads=threads)
        return work(job, self.answers())  # type: ignore[no-any-return]


def from_source(command: Callable[..., None], either: bool = False) -> Callable[..., None]:
    """A command whose first parameter is a Source gets FILE and all options of reading in its place."""
    own = list(inspect.signature(command).parameters.values())[1:]
    hints, common = get_type_hints(command, include_extras=True), get_type_hints(Source, include_extras=True)

    def run(**given: Any) -> None:
        command(Source(**{name: given.pop(name) for name in common}), **given)

    if either:
        common["file"] = Annotated[str, typer.Argument(metavar="FILE", help=_EITHER)]
    defaults = {f.name: f.default for f in fields(Source)}
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("file", kind, annotation=common["file"]),
        *(p.replace(annotation=hints[p.name], kind=kind) for p in own),
        *(
            inspect.Parameter(name, kind, annotation=common[name], default=defaults[name])
            for name in common
            if name != "file"
        ),
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def from_source_or_result(command: Callable[..., None]) -> Callable[..., None]:
    """The same for a command that takes a saved result as well."""
    return from_source(command, either=True)
