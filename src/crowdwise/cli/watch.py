"""`crowdwise watch`: follow a folder of arriving files with a stream, and rewrite the results when they change."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from ..aggregation import model_class
from ..answers import recognise
from ..answers.gold import gold_columns
from ..engine import Run, Stream
from ..engine.registry import make
from ..engine.stream import NAME
from ..errors import ChecksumError, CrowdwiseError, DataError, FileError, ParameterError, for_shell
from ..io import is_export, read_table
from ..io.opening import disk_error
from ..io.tables import Reading, size_of
from ..io.writing import write_csv
from ..points import ClickStream
from ..result.outputs import Outputs
from ..result.store import NAME as SAVED
from ..result.store import unpack
from ..result.stored import conforms
from ..streams import LabelStream
from .job import check_file, settings_of, stoppable
from .options import WatchedFolder
from .say import words

STREAMS: dict[str, Any] = {"labels": LabelStream, "points": ClickStream}
LIMIT = "max_expanded"  # the option of which a later run may give another value
PROBLEMS = "problems.csv"  # the files that cannot be used
UNFINISHED = (".tmp", ".part")  # endings of files that are still being written
ONCE_PAUSE = 1.0  # seconds between the two looks of --once
TICK = 0.2  # seconds between checks for a signal
Seen = list[int]  # size in bytes and time of change in ns
NOTES = {  # what is kept in the file of the stream: which files were read or refused, and the options
    "taken": dict[str, Seen],
    "refused": dict[str, list[int | str]],
    "options": dict[str, str],
}
FAILED: Seen = [-1, -1]  # for a file that the disk did not give: it is read again at the next look


@dataclass(frozen=True, kw_only=True)
class Watch:
    """What to watch, and where to put the results."""

    source: WatchedFolder
    out: Path
    model: str | None = None
    setting: list[str] | None = None
    every: float = 10.0
    once: bool = False
    excel_safe: bool = False
    run: Run

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise FileError(f"{self.folder} is not a folder. Name the folder in which files arrive")
        if self.out.exists() and not self.out.is_dir():
            raise FileError(f"--out {self.out} is a file; name a folder for the results")
        if self.out.resolve() == self.folder.resolve():
            raise ParameterError("--out is the watched folder itself; name another folder for the results")
        if not self.every > 0:
            raise ParameterError(f"--every is {self.every}; it must be a number of seconds above 0")
        if self.source.anonymous not in (None, "refuse"):
            raise ParameterError("--anonymous does not apply: a stream keeps one answer per worker and task")
        refused = []
        for kind in self.kinds:
            try:
                self.begin(kind)
            except ParameterError as problem:
                refused.append(problem)
        if len(refused) == len(self.kinds):
            raise refused[0]
        check_file(None if self.source.gold is None else Path(self.source.gold), "--gold")

    @property
    def folder(self) -> Path:
        return Path(self.source.file)

    @cached_property
    def kinds(self) -> dict[str, Any]:
        """The model by kind of answers, for every kind that the files may hold; None is the default model."""
        kind, settings = self.source.kind, settings_of(self.setting or [])
        if kind is not None and kind not in STREAMS:
            raise ParameterError(f"--kind is {kind!r}; watch takes {' or '.join(STREAMS)}")
        if self.model is None:
            made = {each: make(STREAMS[each].models[0], settings) if settings else None for each in STREAMS}
            return made if kind is None else {kind: made[kind]}
        found = model_class(self.model, kind)
        if found.kind not in STREAMS:
            raise ParameterError(f"{self.model} is a model of {found.kind}; watch takes {' or '.join(STREAMS)}")
        return {found.kind: make(found, settings)}

    @property
    def tables(self) -> list[str]:
        """Names of the tables of results of every kind that the files may hold."""
        made = [model or STREAMS[kind].models[0]() for kind, model in self.kinds.items()]
        return [name for model in made for name in model.table_names]

    def begin(self, kind: str) -> Stream[Any, Any]:
        """Return a new stream of a kind of answers."""
        if kind != "labels":
            return STREAMS[kind](self.kinds[kind])  # type: ignore[no-any-return]
        given = self.source.given()
        names = ("task", "worker", "label", "missing", "wide", "duplicates")
        reading = {name: given[name] for name in names if name in given}
        return LabelStream(self.kinds[kind], gold=given.get("gold_column"), **reading)


class Watcher:
    """A stream, and which files it was given."""

    def __init__(self, watch: Watch, outputs: Outputs) -> None:
        self.watch, self.outputs = watch, outputs
        self.options = {name: str(value) for name, value in sorted(watch.source.given().items())}
        self.stream: Stream[Any, Any] | None = None
        self.taken: dict[str, Seen] = {}
        self.refused: dict[str, list[Any]] = {}  # size, time and reason
        self.last: dict[str, Seen] = {}
        if SAVED in outputs.last:
            raise FileError(f"--out {watch.out} has the results of another command. Name another folder")
        outputs.refuse_others([PROBLEMS, *(f"{name}.csv" for name in watch.tables)])
        if (watch.out / NAME).exists():
            self._go_on()

    def _go_on(self) -> None:
        """Load the stream of an earlier run."""
        watch, file = self.watch, self.watch.out / NAME
        kinds = {each.__name__: kind for kind, each in STREAMS.items()}
        kind = kinds.get(unpack(file, "stream")[0].get("stream", ""), "")
        if kind not in watch.kinds:
            raise ParameterError(f"{file} is not a stream of {' or '.join(watch.kinds)}; give another --out")
        stream, model = STREAMS[kind].load(file), watch.kinds[kind]
        notes = stream.notes
        if "taken" not in notes:
            raise DataError(f"{file} was not written by crowdwise watch, so it is not changed; give another --out")
        if not all(conforms(notes.get(name), kind) for name, kind in NOTES.items()):
            raise ChecksumError(f"{file} does not say which files were read. Give another --out")
        if (model is not None and model != stream.model) or not self._same_options(notes["options"]):
            began = f"the model {stream.model.name} and the options {notes['options'] or 'by default'}"
            raise ParameterError(f"{file} was begun with {began}. Give the same ones, or another --out")
        self.stream, self.taken = stream, notes["taken"]
        if notes["options"].get(LIMIT) == self.options.get(LIMIT):  # else, files that were too large are read again
            self.refused = notes["refused"]
        words(f"going on from {file}: {stream!r}, {len(self.taken)} files")

    def _same_options(self, before: dict[str, str]) -> bool:
        """Whether the options of an earlier run read files as those of this one do."""
        changed = {*before.items()} ^ {*self.options.items()}
        return {name for name, _ in changed} <= {LIMIT}

    def look(self) -> list[Path]:
        """Return the files to read: new or changed, and the same as at the last look; by their time."""
        now: dict[str, Seen] = {}
        for path in self.watch.folder.iterdir():
            if path.name.startswith(".") or path.name.endswith(UNFINISHED) or not path.is_file():
                continue
            try:
                about = path.stat()
            except OSError:  # removed since it was listed
                continue
            now[path.name] = [about.st_size, about.st_mtime_ns]
        ready = [name for name, seen in now.items() if self.last.get(name) == seen and not self._known(name, seen)]
        self.last = now
        return [self.watch.folder / name for name in sorted(ready, key=lambda name: (now[name][1], name))]

    def _known(self, name: str, seen: Seen) -> bool:
        return self.taken.get(name) == seen or self.refused.get(name, [])[:2] == seen

    def take(self, path: Path) -> bool:
        """Give a file to the stream; one that cannot be used is reported, and kept in the list of such files. Return
        whether anything is new."""
        seen = self.last[path.name]
        try:
            if is_export(path, **self.watch.source.reading()):
                answers = self.watch.source.read(path, list(self.watch.kinds))
                stream = self._begun(answers.kind) if self.stream is None else self.stream
                given = answers.frame().rename(self._names()) if isinstance(stream, LabelStream) else answers
            else:
                frame = read_table(path, self._how()).frame
                kind = recognise(frame.columns, self.watch.source.given(), list(self.watch.kinds))
                stream = self._begun(kind) if self.stream is None else self.stream
                given = self._answers(stream, path, frame)
            self.stream = stream.update(given, run=self.watch.run)
        except (CrowdwiseError, OSError) as problem:
            reason = for_shell(str(problem.args[0])) if isinstance(problem, CrowdwiseError) else str(problem)
            before, now = self.refused.get(path.name), [*(FAILED if disk_error(problem) else seen), reason]
            if now == before:
                return False
            self.refused[path.name] = now
            self.taken.pop(path.name, None)
            words(f"{path.name} was not used: {reason}")
            return True
        self.refused.pop(path.name, None)
        self.taken[path.name] = seen
        return True

    def _how(self) -> Reading:
        given = self.watch.source.given()
        delimiter = given.get("delimiter")
        expanded = size_of("max_expanded", given.get("max_expanded"))
        delimiter = delimiter and delimiter.replace("\\t", "\t")
        return Reading(given.get("format"), delimiter, given.get("encoding"), expanded, given.get("sheet"))

    def _names(self) -> dict[str, str]:
        """Return the names that the stream has for task, worker and label, where the caller gave other ones."""
        given = self.watch.source.given()
        return {role: given[role] for role in ("task", "worker", "label") if role in given}

    def _begun(self, kind: str) -> Stream[Any, Any]:
        """Return a new stream of a kind of answers."""
        given = self.watch.source.given()
        stream = self.watch.begin(kind)
        if kind == "labels" and "gold" in given:
            how = Reading(max_expanded=self._how().max_expanded)
            named = given.get("task", "task"), given.get("gold_column", "gold")
            stream.update(_gold_rows(Path(given["gold"]), *named, how))
        return stream

    def _answers(self, stream: Stream[Any, Any], path: Path, frame: pl.DataFrame) -> Any:
        """Return what to give to the stream: rows of labels, which may also delete answers, or answers of another
        kind."""
        if isinstance(stream, LabelStream):
            return frame
        return self.watch.source.read(path, next(kind for kind, each in STREAMS.items() if type(stream) is each))

    def write(self) -> None:
        """Write the results of all answers held, and the stream: all of them, or none."""
        watch, stream, new, said = self.watch, self.stream, self.outputs.new, ""
        if self.refused:
            reasons = [each[2] for each in self.refused.values()]
            write_csv(pl.DataFrame({"file": [*self.refused], "reason": reasons}), new / PROBLEMS, watch.excel_safe)
        if stream is not None:
            try:
                result = stream.result(run=watch.run)
            except DataError as problem:  # all answers were deleted
                said = f"no results: {problem}"
            else:
                for name, table in result.tables().items():
                    write_csv(table, new / f"{name}.csv", watch.excel_safe)
                files = f"{len(self.taken)} file{'s' * (len(self.taken) != 1)}"
                said = f"{result!r}, from {files}; results are in {watch.out}"
            stream.notes = {"taken": self.taken, "refused": self.refused, "options": self.options}
            stream.save(new)
        self.outputs.publish()
        words(*[said] * bool(said))


def _gold_rows(path: Path, task: str, gold: str, how: Reading) -> pl.DataFrame:
    """Return the tasks and labels of a file of gold, with these names of columns."""
    tasks, labels = gold_columns(read_table(path, how).frame)
    return pl.DataFrame([tasks.alias(task), labels.alias(gold)])


def follow(watch: Watch) -> None:
    """Follow the folder until a signal arrives, or work off what is there."""
    with Outputs(watch.out) as outputs:
        _follow(watch, Watcher(watch, outputs))


def _follow(watch: Watch, watcher: Watcher) -> None:
    words(f"watching {watch.folder}" + ("" if watch.once else f" every {watch.every:g} s; Ctrl-C ends"))
    with stoppable() as stop:
        watcher.look()
        while not stop():
            _wait(min(watch.every, ONCE_PAUSE) if watch.once else watch.every, stop)
            changed = False
            for path in watcher.look():
                if stop():
                    break
                changed |= watcher.take(path)
            if changed:
                watcher.write()
            if watch.once:
                break
    if stop():
        words("stopped; all files that were read are in the results")


def _wait(seconds: float, stop: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while not stop() and time.monotonic() < end:
        time.sleep(min(TICK, max(end - time.monotonic(), 0)))
