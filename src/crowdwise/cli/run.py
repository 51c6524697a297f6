"""A fit from the command line: progress, signals, checkpoints, files, and the line that makes the result again."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any

import polars as pl
import typer

from ..acquisition import cost_curve
from ..aggregation import model_class
from ..comparison import chosen_models, compare
from ..engine import Checkpoint, Model, Run
from ..engine.registry import make
from ..engine.resources import require
from ..errors import Interrupted, ParameterError, for_shell
from ..report import summarise
from ..report.command import changed_settings
from ..report.text import MAX_SENTENCE_CHARS, short
from ..result import BaseResult
from ..result.files import write_whole
from ..result.store import read_checkpoint, write_checkpoint
from .options import FitOptions
from .say import progress, say_json, words

CHECKPOINT = "checkpoint.crowdwise"
CHECKED = 5_000  # answers up to which the page's cost curve is checked by one more fit
COMPARED = 50_000  # answers up to which `report` compares all models
FORMULA = r"^[=+\-@\t\r]"  # what makes a spreadsheet take a cell for a formula
REPEATED = ("missing", "same")  # flags that are given once per value; other lists are joined by commas


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to fit and where to put it; wrong settings are refused before any file is read."""

    name: str
    kind: str = "labels"
    out: Path | None = None
    options: FitOptions = field(default_factory=FitOptions)
    settings: dict[str, Any] = field(default_factory=dict)  # besides those of --set
    precision: str = "auto"

    def __post_init__(self) -> None:
        require(self.model.extras, self.name)
        self.run()
        if self.options.resume and self.out is None:
            raise ParameterError("--resume needs --out, the folder that holds the checkpoint")

    @cached_property
    def model(self) -> Model[Any, Any]:
        settings = settings_of(self.options.setting or [], **self.settings)
        if self.kind == "learn":
            from ..learn.sides import by_name

            return by_name(self.name, **settings)
        return make(model_class(self.name, self.kind), settings)

    def run(self, **more: Any) -> Run:
        options = self.options
        return Run(seed=options.seed, threads=options.threads, precision=self.precision, **more)  # type: ignore[arg-type]

    def fit(self, answers: Any, features: Any = None, fit: Callable[[Run], Any] | None = None) -> Any:
        """Fit the answers with the model, or by `fit`, with progress, signals and a checkpoint."""
        fit = fit or (lambda run: self.model.fit(answers, features=features, run=run))
        resume = self._resumed() if self.options.resume else None
        with stoppable() as stop, progress(f"{self.name} on {len(answers)} {answers.noun}s") as watch:
            try:
                return fit(self.run(watch=watch, stop=stop, resume=resume))
            except Interrupted as broken:
                broken.exit_status = stop.exit_status
                if self.out is not None:
                    path = write_checkpoint(self.out / CHECKPOINT, broken.checkpoint)
                    broken.args = (f"{broken.args[0]}; say --resume to continue from {path}",)
                raise

    def _resumed(self) -> Checkpoint | None:
        assert self.out is not None
        path = self.out / CHECKPOINT
        if not path.exists():
            words(f"no checkpoint in {self.out}: starting from the beginning")
            return None
        words(f"continuing from {path}")
        return Checkpoint(*read_checkpoint(path))

    def write(
        self, result: BaseResult, further: dict[str, pl.DataFrame | None] | None = None, **page: Any
    ) -> list[Path]:
        """Every table of a result and `further` ones as CSV, report.html and the saved result; the checkpoint goes. A
        further table that is None is not written, and that of a former run goes."""
        assert self.out is not None
        files = write_result(result, self.out, self.options.page, self.options.excel_safe, further, **page)
        (self.out / CHECKPOINT).unlink(missing_ok=True)
        return files

    def close(
        self, result: BaseResult, files: Sequence[Path], about: dict[str, Any], show: Callable[[], None] | None = None
    ) -> None:
        """Report what came of a fit: its summary with what else there is `about` it as JSON, or in words, with what
        `show` prints in between. Leave with status 3 where it has not converged."""
        summary = summarise(result, for_shell)
        if self.options.as_json:
            say_json(summary.as_dict() | about | ({} if self.out is None else {"out": str(self.out)}))
        else:
            words(*summary.lines())
            if show is not None:
                show()
            if files:
                words(f"results are in {self.out}: {', '.join(sorted(path.name for path in files))}")
        if not result.converged:
            raise typer.Exit(3)


def write_result(
    result: BaseResult,
    out: Path,
    page: bool = True,
    excel_safe: bool = False,
    further: dict[str, pl.DataFrame | None] | None = None,
    **options: Any,
) -> list[Path]:
    """Every table of a result and `further` ones as CSV, report.html and the saved result."""
    tables = dict.fromkeys(("groups", "members")) | result.tables() | (further or {})
    files = [write_csv(table, out / f"{name}.csv", excel_safe) for name, table in tables.items() if table is not None]
    for name in (name for name, table in tables.items() if table is None):
        (out / f"{name}.csv").unlink(missing_ok=True)  # of a former run
    if page:
        line = command_line(verb_of(result), result)
        files.append(result.report(out / "report.html", command=line, **options))
    return [*files, result.save(out)]


def write_csv(table: Any, path: Path, excel_safe: bool) -> Path:
    """A table as CSV, for programs as it is, for people with cells that no spreadsheet computes."""
    return write_whole(path, (spreadsheet_safe(table) if excel_safe else table).write_csv)


def spreadsheet_safe(table: pl.DataFrame) -> pl.DataFrame:
    """The table with an apostrophe before every text that begins with = + - @, a tab or a carriage return; the names
    of columns too."""
    text = pl.col(pl.String)
    safe = table.with_columns(pl.when(text.str.contains(FORMULA)).then("'" + text).otherwise(text).name.keep())
    return safe.rename({name: f"'{name}" for name in table.columns if name[:1] in tuple("=+-@\t\r")})


def quick_page(result: Any) -> dict[str, Any]:
    """Options of the page of labels that a command writes: only the vote beside it, and no further fit of a large
    table."""
    return labels_page(result, ("majority-vote",), None if result.answers.n_answers <= CHECKED else False)


def labels_page(result: Any, models: Sequence[str] | None, check: bool | None) -> dict[str, Any]:
    """Options of the page of labels: these models beside it (default: all, for small tables), and the cost curve."""
    options: dict[str, Any] = {"cost": cost_curve(result, check=check)}
    if models is None and result.answers.n_answers > COMPARED:
        return options
    others = [each for each in chosen_models(models, 0) if each.name != result.model.name]
    if others:
        run = Run(seed=result.seed)
        options["comparison"] = compare(result.answers, others, folds=0, run=run, against=result)
    return options


def settings_of(pairs: list[str], **options: Any) -> dict[str, Any]:
    """NAME=VALUE and options to settings; numbers where they read as numbers."""
    found = {name: value for name, value in options.items() if value is not None}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ParameterError(f"--set {pair!r} has no '='; write --set NAME=VALUE, for instance --set smoothing=0.1")
        key = name.replace("-", "_")
        if key in found:
            raise ParameterError(f"--set {pair!r}: {key} was given before, as {found[key]!r}. Say it once")
        found[key] = _value(value)
    return found


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    try:
        return tuple(float(part) for part in text.split(",")) if "," in text else text
    except ValueError:
        return text


class Stop:
    """Whether a signal has come, and which."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __call__(self) -> bool:
        return self.signal is not None

    @property
    def exit_status(self) -> int:
        return 128 + (self.signal or signal.SIGINT)

    def note(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Within the block, a first SIGINT or SIGTERM asks the fit to stop after its iteration; a second stops at once."""
    stop = Stop()
    before = {number: signal.signal(number, stop.note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def verb_of(result: Any) -> str:
    """The command that makes such a result."""
    return {"labels": "aggregate"}.get(result.model.kind, str(result.model.kind))


def command_line(verb: str, result: Any, **further: Any) -> str:
    """`crowdwise VERB FILE --flags ... --out results`; `further` are flags beside those of the recorded reading.

    >>> import crowdwise as cw
    >>> answers = cw.Labels([1, 1], ["a", "b"], ["x", "y"], source="it's.csv", options={"label": "verdict"})
    >>> command_line("aggregate", cw.aggregate(answers, "majority-vote"))
    'crowdwise aggregate \\'it\\'"\\'"\\'s.csv\\' --label verdict --model majority-vote --seed 0 --out results'
    """
    intake = result.answers.intake
    line = ["crowdwise", verb, intake.source]
    for name, value in {**intake.options, **further}.items():
        line += _flag(name, value)
    line += ["--workers" if verb == "learn" else "--model", result.model.name, "--seed", str(result.seed)]
    for name, value in changed_settings(result.model).items():
        line += ["--set", f"{name}={value}"]
    return shlex.join([*(short(word, MAX_SENTENCE_CHARS) for word in line), "--out", "results"])


def _flag(name: str, value: Any) -> list[str]:
    """An option as words: --wide or --long, --axes left,top, --missing NA --missing -1, --label verdict."""
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag] if value else ["--long" if name == "wide" else f"--no-{flag[2:]}"]
    if isinstance(value, list) and name in REPEATED:
        return [word for each in value for word in (flag, str(each))]
    if isinstance(value, list):
        return [flag, ",".join(f"{each:g}" if isinstance(each, float) else str(each) for each in value)]
    return [flag, str(value)]
