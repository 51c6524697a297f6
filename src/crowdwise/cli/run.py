"""A fit from the command line: progress, signals, checkpoints, files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..answers import Labels
from ..engine import Checkpoint, LabelModel, Run
from ..errors import Interrupted, ParameterError
from ..io.spreadsheets import spreadsheet_safe
from ..labels import model as by_name
from ..report import write_report
from ..result import Result
from ..result.files import write_whole
from ..result.store import fingerprint, read_checkpoint, write_checkpoint
from ..scoring import Judged
from .say import progress, words
from .signals import stoppable

CHECKPOINT = "checkpoint.crowdwise"
CHECKED = 5_000  # answers up to which the page's cost curve is checked by one more fit


@dataclass(frozen=True)
class Job:
    """What to fit and where to put it; wrong settings are refused before any file is read."""

    name: str
    settings: dict[str, Any]
    out: Path | None
    seed: int
    threads: int
    precision: str
    resume: bool
    page: bool = False
    excel_safe: bool = False

    def __post_init__(self) -> None:
        self.model()
        self.run()
        if self.resume and self.out is None:
            raise ParameterError("--resume needs --out, the folder that holds the checkpoint")

    def model(self) -> LabelModel:
        return by_name(self.name, **self.settings)

    def run(self, **more: Any) -> Run:
        return Run(seed=self.seed, threads=self.threads, precision=self.precision, **more)  # type: ignore[arg-type]

    @property
    def checkpoint(self) -> Path | None:
        return None if self.out is None else self.out / CHECKPOINT


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


def work(job: Job, answers: Labels) -> Result:
    """Fit, and write everything that --out asks for."""
    chosen = job.model()
    mark = fingerprint(answers) if job.resume else ""
    resume = _resumed(job, chosen, mark)
    with stoppable() as stop, progress(f"{chosen.name} on {answers.n_answers} answers") as watch:
        try:
            result = chosen.fit(answers, job.run(watch=watch, stop=stop, resume=resume))
        except Interrupted as broken:
            broken.exit_status = stop.exit_status
            if job.checkpoint is not None:
                settings = chosen.settings()
                write_checkpoint(job.checkpoint, chosen.name, settings, fingerprint(answers), broken.checkpoint)
                broken.args = (f"{broken.args[0]}; say --resume to go on from {job.checkpoint}",)
            raise
    if job.out is not None:
        write_tables(result, job.out, job.page, job.excel_safe)
        (job.out / CHECKPOINT).unlink(missing_ok=True)
    return result


def _resumed(job: Job, chosen: LabelModel, mark: str) -> Checkpoint | None:
    if not job.resume or job.checkpoint is None:
        return None
    if not job.checkpoint.exists():
        words(f"no checkpoint in {job.out}: starting from the beginning")
        return None
    fields = read_checkpoint(job.checkpoint, chosen.name, chosen.settings(), mark)
    words(f"going on after sweep {len(fields['trace'])}")
    return Checkpoint(**fields)


def write_tables(
    result: Result, out: Path, page: bool = True, excel_safe: bool = False, judged: Judged | None = None
) -> list[Path]:
    """labels.csv, workers.csv, tasks.csv, groups.csv and members.csv of a model with groups, report.html and the saved
    result."""
    tables = {"labels": result.labels, "workers": result.workers, "tasks": result.tasks}
    if result.model.grouping(result.params) is not None:
        tables |= {"groups": result.groups, "members": result.members}
    files = [write_csv(table, out / f"{name}.csv", excel_safe) for name, table in tables.items()]
    for name in {"groups", "members"} - tables.keys():
        (out / f"{name}.csv").unlink(missing_ok=True)  # of a former run
    if page:  # quickly: only the vote beside it, and no further fit of a large table
        check = None if result.answers.n_answers <= CHECKED else False
        beside = ("majority-vote",)
        files.append(write_report(result, out / "report.html", models=beside, check=check, judged=judged))
    return [*files, result.save(out)]


def write_csv(table: Any, path: Path, excel_safe: bool) -> Path:
    """A table as CSV, for programs as it is, for people with cells that no spreadsheet computes."""
    return write_whole(path, (spreadsheet_safe(table) if excel_safe else table).write_csv)
