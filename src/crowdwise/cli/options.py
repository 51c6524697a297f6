"""Options that commands share, and what they lead to: answers, or a result that is loaded or fitted."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from ..answers import Labels, Pairs, Points
    from ..result import LabelsResult


def _option(metavar: str, help: str) -> Any:
    return typer.Option(metavar=metavar, help=help)


_FILE = "Answers: CSV, TSV, JSON, JSONL or Parquet, also .gz; - is stdin"
Model = Annotated[str, _option("NAME", "See `crowdwise models`")]
Seed = Annotated[int, typer.Option(help="The one seed of everything random")]
Threads = Annotated[int, typer.Option(help="Threads; 0 is all cores. The result does not depend on it")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, for programs")]
Out = Annotated[Path | None, _option("DIR", "Folder for the results")]
OutDir = Annotated[Path, _option("DIR", "Folder for the results")]
Models = Annotated[list[str] | None, typer.Option("--model", metavar="NAME", help="Only these models; may be repeated")]
NpzArray = Annotated[str | None, _option("NAME", "The array of an npz file, if not x")]


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """How a fit is run, and what is written of it."""

    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting of the model (for learn: of the worker side); may be repeated",
        ),
    ] = None
    resume: Annotated[bool, typer.Option(help="Continue where an interrupted run stopped (needs --out)")] = False
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write report.html, too")] = True
    excel_safe: Annotated[
        bool, typer.Option("--excel-safe", help="Make text of cells that a spreadsheet would take for formulas")
    ] = False
    seed: Seed = 0
    threads: Threads = 0
    as_json: Json = False


@dataclass(frozen=True, kw_only=True)
class ListOptions:
    """How a table is shown, and where the whole of it is written."""

    top: Annotated[int, typer.Option(min=1, help="Rows shown")] = 20
    out: Annotated[Path | None, _option("FILE", "Write the whole table as CSV")] = None
    raw: Annotated[
        bool, typer.Option("--raw", help="Leave cells as they are that a spreadsheet would take for formulas")
    ] = False
    as_json: Json = False

    def write(self, table: Any) -> None:
        """Write the table, if asked for, and say so."""
        if self.out is not None:
            from .run import write_csv
            from .say import words

            words(f"wrote {write_csv(table, self.out, excel_safe=not self.raw)}")


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """A file of answers, and how its text is read."""

    file: Annotated[str, typer.Argument(metavar="FILE", help=_FILE)]
    worker: Annotated[str | None, _option("COL", "Column of the worker")] = None
    format: Annotated[str | None, _option("NAME", "csv, json, jsonl or parquet; else found")] = None
    delimiter: Annotated[str | None, _option("CHAR", "What separates fields; else found")] = None
    encoding: Annotated[str | None, _option("NAME", "For instance latin-1; else UTF-8, or UTF-16 by its mark")] = None

    def given(self, **other: Any) -> dict[str, Any]:
        """The options by name, with some `other` values, as functions that read take them."""
        options = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "file"}
        delimiter = self.delimiter.replace("\\t", "\t") if self.delimiter else None
        return options | {"delimiter": delimiter} | other


@dataclass(frozen=True, kw_only=True)
class LabelsSource(TableOptions):
    """A file of labels."""

    format: Annotated[str | None, _option("NAME", "csv, json, jsonl, parquet or cifar10h; else found")] = None
    task: Annotated[str | None, _option("COL", "Column of the task")] = None
    label: Annotated[str | None, _option("COL", "Column of the label")] = None
    gold: Annotated[str | None, _option("FILE", "Known labels: a table with task and label")] = None
    gold_column: Annotated[str | None, _option("COL", "Known labels: a column of FILE")] = None
    duplicates: Annotated[
        str | None, _option("RULE", "A worker's second answer to a task: last, first, error or each")
    ] = None
    anonymous: Annotated[
        str, _option("RULE", "Answers without a worker: refuse, or each (every one is another person)")
    ] = "refuse"
    missing: Annotated[list[str] | None, _option("TEXT", "A label that means no answer, e.g. -1; may be repeated")] = (
        None
    )
    wide: Annotated[
        bool | None, typer.Option("--wide/--long", help="One column per worker, or one row per answer; else guessed")
    ] = None

    def answers(self) -> Labels:
        """Read the file."""
        from ..errors import FileError, check_choice
        from ..io import read

        check_choice("--anonymous", self.anonymous, ("refuse", "each"))
        if self.gold is not None and not Path(self.gold).exists():
            raise FileError(
                f"no gold file {self.gold}. Give a table with task and label, or name a column with --gold-column"
            )
        options = self.given(missing=self.missing or (), gold=Path(self.gold) if self.gold else self.gold_column)
        del options["gold_column"]
        return read(self.file, **options)


@dataclass(frozen=True, kw_only=True)
class PointsSource(TableOptions):
    """A file of clicks."""

    file: Annotated[str, typer.Argument(metavar="FILE", help=_FILE.replace("Answers", "Clicks"))]
    jobs: Annotated[
        Path | None, _option("FILE", "Who looked at what: image, worker; also without a click")
    ] = None  # fmt: skip
    box: Annotated[str | None, _option("BOX", "x0,y0,x1,y1 of all images, or a table with one row per image")] = None
    image: Annotated[str | None, _option("COL", "Column of the image")] = None
    axes: Annotated[str | None, _option("COLS", "Columns of the coordinates: x,y or x,y,z")] = None
    unit: Annotated[str | None, _option("NAME", "pixels; percent or fraction of the box; else as they are")] = None
    outside: Annotated[str, _option("RULE", "Clicks outside the box: drop or error")] = "drop"
    duplicates: Annotated[str, _option("RULE", "A worker's clicks on the same spot: first, each or error")] = "first"

    def answers(self) -> Points:
        """Read the file."""
        from ..io import read_points

        axes = None if self.axes is None else self.axes.split(",")
        return read_points(self.file, **self.given(axes=axes, box=self._box()))

    def _box(self) -> Any:
        """Four numbers, or the name of a table of boxes."""
        from ..errors import ParameterError

        if self.box is None or Path(self.box).exists():
            return self.box
        try:
            return tuple(float(part) for part in self.box.split(","))
        except ValueError:
            raise ParameterError(
                f"--box is {self.box!r}, which is neither a file nor numbers; write x0,y0,x1,y1, for instance "
                "--box 0,0,300,300"
            ) from None


@dataclass(frozen=True, kw_only=True)
class PairsSource(TableOptions):
    """A file of same/different answers."""

    left: Annotated[str | None, _option("COL", "Column of one item")] = None
    right: Annotated[str | None, _option("COL", "Column of the other item")] = None
    answer: Annotated[str | None, _option("COL", "Column of the answer")] = None
    hit: Annotated[str | None, _option("COL", "Column of the job: answers of one job depend on each other")] = None
    same: Annotated[list[str] | None, _option("VALUE", "An answer that means the same; may be repeated")] = None
    contradictions: Annotated[
        str, _option("RULE", "Answers of a worker to a pair that contradict: drop, each or error")
    ] = "drop"

    def answers(self) -> Pairs:
        """Read the file."""
        from ..io import read_pairs

        return read_pairs(self.file, **self.given(same=self.same or None))


@dataclass(frozen=True, kw_only=True)
class LabelsOrResult(LabelsSource):
    """A file of labels, or a saved result."""

    file: Annotated[str, typer.Argument(metavar="FILE", help=f"{_FILE}. Or the folder of a saved result")]

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

    def any_loaded(self) -> Any:
        """The saved result, of any kind; options that would need the answers read or fitted again are refused."""
        from ..errors import ParameterError
        from ..io import load

        usual = type(self)(file=self.file)
        given = [each.name for each in fields(self) if getattr(self, each.name) != getattr(usual, each.name)]
        given = [name for name in given if name != "threads"]
        if given:
            raise ParameterError(
                f"{self.file} is a saved result, so --{given[0].replace('_', '-')} has no meaning. "
                "Give the file of answers, or omit the option"
            )
        return load(self.file)

    def loaded(self) -> LabelsResult:
        """The saved result of labels."""
        from ..errors import ParameterError

        found = self.any_loaded()
        if found.kind != "labels":
            raise ParameterError(
                f"{self.file} holds a result of {found.kind}, not of labels; its tables are in its folder, and "
                "`crowdwise report` makes its page"
            )
        return found  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class FittedSource(LabelsOrResult):
    """A file of labels that is fitted, or a saved result."""

    model: Annotated[str | None, _option("NAME", "To fit answers: see `crowdwise models`")] = None
    seed: Annotated[int | None, typer.Option(help="To fit answers: the one seed of everything random")] = None
    threads: Threads = 0

    def given(self, **other: Any) -> dict[str, Any]:
        options = super().given(**other)
        return {name: value for name, value in options.items() if name not in ("model", "seed", "threads")}

    def result(self) -> LabelsResult:
        """The saved result, or a fit of the answers."""
        from .run import Job

        if self.saved:
            return self.loaded()
        job = Job(name=self.model or "pooled", options=FitOptions(seed=self.seed or 0, threads=self.threads))
        return job.fit(self.answers())  # type: ignore[no-any-return]


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters of the types above become one option for each of their fields: FILE first, then the
    command's own options, then those."""
    own, hints = inspect.signature(command).parameters, get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        each.replace(annotation=hints[name], kind=keyword) for name, each in own.items() if name not in groups
    ]
    for kind in reversed(groups.values()):
        known = _hints(kind)
        for each in fields(kind):
            first = each.name == "file"
            default = inspect.Parameter.empty if first else each.default
            parameters.insert(
                0 if first else len(parameters),
                inspect.Parameter(each.name, keyword, annotation=known[each.name], default=default),
            )

    def run(**given: Any) -> None:
        made = {
            name: kind(**{each.name: given.pop(each.name) for each in fields(kind)}) for name, kind in groups.items()
        }
        command(**made, **given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run
