"""A fit from the command line: progress, signals, checkpoints, files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from ..aggregation import model_class
from ..engine import Checkpoint, Model, Run
from ..engine.extras import require
from ..engine.registry import make
from ..errors import Interrupted, ParameterError
from ..io.spreadsheets import spreadsheet_safe
from ..result import BaseResult
from ..result.files import write_whole
from ..result.store import fingerprint, read_checkpoint, write_checkpoint
from .command import command_line, verb_of
from .say import progress, words
from .signals import stoppable

CHECKPOINT = "checkpoint.crowdwise"
CHECKED = 5_000  # answers up to which the page's cost curve is checked by one more fit
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to fit and where to put it; wrong settings are refused before any file is read."""

    kind: ClassVar[str] = "labels"

    name: str
    settings: dict[str, Any]
    out: Path | None
    seed: int = 0
    threads: int = 0
    precision: str = "auto"
    resume: bool = False
    page: bool = False
    excel_safe: bool = False

    def __post_init__(self) -> None:
        require(self.model().extras, self.name)
        self.run()
        if self.resume and self.out is None:
            raise ParameterError("--resume needs --out, the folder that holds the checkpoint")

    def model(self) -> Model[Any, Any]:
        return make(model_class(self.name, self.kind), self.settings)

    def run(self, **more: Any) -> Run:
        return Run(seed=self.seed, threads=self.threads, precision=self.precision, **more)  # type: ignore[arg-type]

    def fit(self, fit: Callable[[Run], T], what: str, *inputs: Any) -> T:
        """Run a fit with progress, signals and a checkpoint; `inputs` (answers, features) are what it depends on."""
        resume = self._resumed(inputs) if self.resume else None
        with stoppable() as stop, progress(f"{self.name} on {what}") as watch:
            try:
                return fit(self.run(watch=watch, stop=stop, resume=resume))
            except Interrupted as broken:
                broken.exit_status = stop.exit_status
                if self.out is not None:
                    path = self.out / CHECKPOINT
                    write_checkpoint(path, self.model(), fingerprint(*inputs), broken.checkpoint)
                    broken.args = (f"{broken.args[0]}; say --resume to continue from {path}",)
                raise

    def _resumed(self, inputs: tuple[Any, ...]) -> Checkpoint | None:
        assert self.out is not None
        path = self.out / CHECKPOINT
        if not path.exists():
            words(f"no checkpoint in {self.out}: starting from the beginning")
            return None
        stages = read_checkpoint(path, self.model(), fingerprint(*inputs))
        words(f"continuing from {path}")
        return Checkpoint(stages)

    def write(self, result: BaseResult, more: dict[str, Any] | None = None, **page: Any) -> list[Path]:
        """Every table of a result as CSV, `more` tables, report.html and the saved result; the checkpoint goes."""
        assert self.out is not None
        files = write_result(result, self.out, self.page, self.excel_safe, more, **page)
        (self.out / CHECKPOINT).unlink(missing_ok=True)
        return files


def write_result(
    result: BaseResult,
    out: Path,
    page: bool = True,
    excel_safe: bool = False,
    more: dict[str, Any] | None = None,
    **options: Any,
) -> list[Path]:
    """Every table of a result as CSV, `more` tables, report.html and the saved result."""
    tables = result.tables() | (more or {})
    files = [write_csv(table, out / f"{name}.csv", excel_safe) for name, table in tables.items()]
    for name in {"groups", "members"} - tables.keys():
        (out / f"{name}.csv").unlink(missing_ok=True)  # of a former run
    if page:
        line = command_line(verb_of(result), result)
        files.append(result.report(out / "report.html", command=line, **options))
    return [*files, result.save(out)]


def quick_page(result: Any) -> dict[str, Any]:
    """Options of the page of labels that a command writes: only the vote beside it, and no further fit of a large
    table."""
    return {"models": ("majority-vote",), "check": None if result.answers.n_answers <= CHECKED else False}


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


def work(job: Job, answers: Any) -> Any:
    """Fit answers, and write everything that --out asks for."""
    model = job.model()
    result = job.fit(lambda run: model.fit(answers, run=run), f"{answers.n_answers} answers", answers)
    if job.out is not None:
        job.write(result, **quick_page(result))
    return result


def write_csv(table: Any, path: Path, excel_safe: bool) -> Path:
    """A table as CSV, for programs as it is, for people with cells that no spreadsheet computes."""
    return write_whole(path, (spreadsheet_safe(table) if excel_safe else table).write_csv)
