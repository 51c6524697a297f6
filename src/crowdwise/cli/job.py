"""A fit from the command line, for every kind of answers: read, fit with progress and checkpoints, write, report."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any

import polars as pl
import typer

from ..aggregation import model_class
from ..answers import KINDS
from ..engine import Checkpoint, Model, Run
from ..engine.registry import DEFAULTS, make
from ..engine.resources import require
from ..engine.stream import NAME as STREAM
from ..errors import FileError, Interrupted, ParameterError, check_choice, for_shell
from ..io.stored import PARTS
from ..io.writing import write_csv
from ..kernels import preload
from ..report import summarise
from ..result import BaseResult
from ..result.outputs import Outputs
from ..result.store import read_checkpoint, write_checkpoint
from .options import FeatureOptions, FileOptions, FitOptions
from .say import progress, say_json, words

CHECKPOINT, PAGE = "checkpoint.crowdwise", "report.html"
MIN_BYTES_TO_PRELOAD = 20_000_000  # a file of this size always needs the compiled kernels


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to read and fit, and where to put it. Wrong settings and missing libraries are refused before any file is
    read, missing files before the fit."""

    source: FileOptions
    options: FitOptions = field(default_factory=FitOptions)
    name: str | None = None  # of the model; None for the default of the kind
    out: Path | None = None
    settings: dict[str, Any] = field(default_factory=dict)  # besides those of --set
    precision: str = "auto"
    features: FeatureOptions = field(default_factory=FeatureOptions)
    worker_side: bool = False  # the model is a worker side beside a classifier

    def __post_init__(self) -> None:
        self.run()
        models = self.models
        if self.options.resume and self.out is None:
            raise ParameterError("--resume needs --out, the folder that holds the checkpoint")
        if self.out is not None and self.out.exists() and not self.out.is_dir():
            raise FileError(f"--out {self.out} is a file; name a folder for the results")
        if len(models) == 1 and not self.worker_side:
            next(iter(models.values())).check_needs(self.features.features is not None)
        check_choice("--unknown", self.features.unknown, ("error", "drop", None))
        check_file(self.features.features, "--features")

    @cached_property
    def models(self) -> dict[str, Model[Any, Any]]:
        """The model by kind of answers, for every kind that the file may hold: one that has the model, takes all of its
        settings and, where there are features, can use them."""
        settings = settings_of(self.options.setting or [], **self.settings)
        if self.worker_side:
            from ..learn.sides import by_name

            return {"labels": by_name(str(self.name), **settings)}
        insisted = self.source.insisted or getattr(self.source, "kind", None)
        check_choice("--kind", insisted, (*KINDS, None))
        if self.name is not None:
            found = model_class(self.name, insisted)
            return {found.kind: make(found, settings)}
        made, refused = dict[str, Model[Any, Any]](), list[ParameterError]()
        for kind in [insisted] if insisted else list(KINDS):
            try:
                made[kind] = make(model_class(default_model(kind), kind), settings)
            except ParameterError as error:
                refused.append(error)
        if self.features.features is not None:
            made = {kind: each for kind, each in made.items() if each.features != "none"} or made
        if not made:
            raise refused[0]
        return made

    def run(self, **more: Any) -> Run:
        options = self.options
        return Run(seed=options.seed, threads=options.threads, precision=self.precision, **more)  # type: ignore[arg-type]

    @contextmanager
    def outputs(self) -> Iterator[Outputs | None]:
        """Lock the folder of the results until the end of the block; None without one."""
        if self.out is None:
            yield None
            return
        with Outputs(self.out) as outputs:
            if STREAM in outputs.last:
                raise FileError(f"--out {self.out} belongs to crowdwise watch. Name another folder for these results")
            yield outputs

    def read(self) -> Any:
        """The answers, and the features that go with them or None."""
        path = Path(self.source.file)
        if path.is_file() and path.stat().st_size >= MIN_BYTES_TO_PRELOAD:
            preload()
        with progress(f"reading {self.source.file}") as watch:
            answers = self.source.answers(list(self.models), scratch=self.out, watch=watch)
        if answers.in_parts:
            words(f"{answers.intake.source} needs more memory than may be used: {answers!r} are on disk in parts")
        if answers.kind not in self.models:
            raise ParameterError(f"{self.source.file} holds {answers.title}, which {self.name} is not a model of")
        return self.features.joined(answers, self.source.max_expanded)

    def fitted(self, check: Callable[[Any], None]) -> Any:
        """The result of the fit of the answers, which `check` may refuse before."""
        answers, features = self.read()
        check(answers)
        return self.fit(self.models[answers.kind], answers, features)

    def fit(
        self, model: Model[Any, Any], answers: Any, features: Any = None, fit: Callable[[Run], Any] | None = None
    ) -> Any:
        """Fit the answers with the model, or by `fit`, with progress, signals and a checkpoint."""
        require(model.extras, model.name)
        fit = fit or (lambda run: model.fit(answers, features=features, run=run))
        resume = self._resumed() if self.options.resume else None
        with stoppable() as stop, progress(f"{model.name} on {len(answers)} {answers.noun}s") as watch:
            try:
                return fit(self.run(watch=watch, stop=stop, resume=resume, **self._kept()))
            except Interrupted as broken:
                broken.exit_status = stop.exit_status
                if self.out is not None:
                    path = write_checkpoint(self.out / CHECKPOINT, broken.checkpoint)
                    broken.args = (f"{broken.args[0]}; say --resume to continue from {path}",)
                raise

    def _kept(self) -> dict[str, Any]:
        """Options of the run for checkpoints."""
        out, every = self.out, self.options.checkpoint_every
        if out is None or every <= 0:
            return {}
        return {"keep": lambda checkpoint: write_checkpoint(out / CHECKPOINT, checkpoint), "keep_every": every}

    def _resumed(self) -> Checkpoint | None:
        assert self.out is not None
        path = self.out / CHECKPOINT
        if not path.exists():
            words(f"no checkpoint in {self.out}: starting from the beginning")
            return None
        words(f"continuing from {path}")
        return Checkpoint(*read_checkpoint(path))

    def write(
        self,
        outputs: Outputs,
        result: BaseResult,
        further: dict[str, pl.DataFrame | None] | None = None,
        *,
        saved: Sequence[Any] = (),
        inputs: Sequence[Path | None] = (),
        **page: Any,
    ) -> list[Path]:
        """Write the outputs of a run as `write_result` does; with them, the checkpoint goes."""
        read = self._files_read(inputs)
        return write_result(
            outputs, result, self.options.page, self.options.excel_safe, further, saved=saved, inputs=read, **page
        )

    def refuse_others(
        self, outputs: Outputs | None, kind: str, further: Sequence[str], inputs: Sequence[Path | None]
    ) -> None:
        """Refuse, before the fit, to replace files of others by the outputs, with `further` tables."""
        if outputs is not None:
            tables = [f"{name}.csv" for name in (*self.models[kind].table_names, *further)]
            outputs.refuse_others([*tables, *[PAGE] * self.options.page], self._files_read(inputs))

    def _files_read(self, inputs: Sequence[Path | None]) -> list[Path | None]:
        gold = getattr(self.source, "gold", None)
        return [Path(self.source.file), self.features.features, *inputs, None if gold is None else Path(gold)]

    def close(
        self, result: BaseResult, files: Sequence[Path], about: dict[str, Any], show: Callable[[], None] | None = None
    ) -> None:
        """Report a fit: its summary and what else there is `about` it as JSON, or as text with what `show` prints. Exit
        with status 3 if it has not converged."""
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


def default_model(kind: str) -> str:
    """The name of the default model of a kind."""
    model_class("majority-vote")  # registers all models
    return DEFAULTS[kind]


def check_kind(answers: Any, kind: str, verb: str) -> None:
    """Refuse answers of another kind before they are fitted."""
    if answers.kind != kind:
        wanted = KINDS[kind].title
        raise ParameterError(f"{verb} works on {wanted}; {answers.intake.source} holds {answers.title}")


def check_file(file: Path | None, flag: str) -> None:
    """Refuse a file that is not there, before long work starts."""
    if file is not None and not file.is_file():
        raise FileError(f"{flag} {file}: there is no such file. Check the name")


def check_folder(folder: Path | None, flag: str) -> None:
    """Refuse a folder that is not there, before long work starts."""
    if folder is not None and not folder.is_dir():
        raise FileError(f"{flag} {folder}: there is no such folder. Name the folder that holds the pictures")


def write_result(
    outputs: Outputs,
    result: BaseResult,
    page: bool = True,
    excel_safe: bool = False,
    further: dict[str, pl.DataFrame | None] | None = None,
    *,
    saved: Sequence[Any] = (),
    inputs: Sequence[Path | None] = (),
    unlisted: Sequence[str] = (),
    **options: Any,
) -> list[Path]:
    """Write every table of a result and `further` ones as CSV, report.html, the saved result, and what else is to be
    `saved`: all of them, or none. The next run leaves `unlisted` outputs alone."""
    new = outputs.new
    for name, table in (result.tables() | (further or {})).items():
        if table is not None:
            write_csv(table, new / f"{name}.csv", excel_safe)
    if page and not result.in_parts:
        result.report(new / PAGE, command=command_line(result), **options)
    for each in (result, *saved):
        each.save(new)
    return outputs.publish(without=(CHECKPOINT, PARTS, PAGE), unlisted=unlisted, inputs=inputs)


def settings_of(pairs: list[str], **options: Any) -> dict[str, Any]:
    """Settings from NAME=VALUE and from options; values that read as numbers are numbers."""
    found = {name: value for name, value in options.items() if value is not None}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ParameterError(f"--set {pair!r} has no '='; write --set NAME=VALUE, for instance --set smoothing=0.1")
        key = name.replace("-", "_")
        if key in found:
            raise ParameterError(f"--set {pair!r}: {key} is already given, as {found[key]!r}. Give it once")
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
    """Whether a signal has arrived, and which."""

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


def command_line(result: Any) -> str | None:
    """The command that is running, to be run again from any folder: `cd FOLDER && crowdwise ...`. None if the name of
    the file is not to be shown, because it is that of a worker."""
    if not result.answers.intake.path:
        return None
    return f"cd {shlex.quote(os.getcwd())} && {shlex.join(['crowdwise', *sys.argv[1:]])}"
