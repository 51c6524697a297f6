"""Options of a run: seed, threads, shards, progress, interruption and resumption."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.arguments import check_arguments, check_whole
from ..errors import CheckpointError, check_choice, option
from ..kernels import cores
from ..kernels.rules import Sizes
from ..result.stored import base_of, flaw_of, kinds_of

Arrays = dict[str, NDArray[Any]]
WITHOUT_IT = f"Omit {option('resume')} to start from the beginning"


class Progress(NamedTuple):
    """The progress of a fit, reported after every iteration."""

    stage: str  # what is being fitted
    iteration: int
    max_iter: int
    objective: float | None
    counts: dict[str, float]  # by name: {"labels_changed": 3}, {"objects": 12}

    def __str__(self) -> str:
        if self.objective is None and not self.counts:
            return f"{self.stage} {100 * self.iteration // self.max_iter} %"
        counts = [f"{value:.3g} {name.replace('_', ' ')}" for name, value in self.counts.items()]
        return ", ".join([f"{self.stage} {self.iteration} of at most {self.max_iter}", *counts])


class Checkpoint(NamedTuple):
    """The state of an interrupted fit: arrays of every stage in progress. A resumed fit gives the same result."""

    stages: dict[str, Arrays]
    mark: str = ""  # identifies the fit
    seconds: float = 0.0  # that the fit took before it was interrupted


class Journal:
    """The stages of a fit. A stage registers a function that returns its state; it is called only if the fit is
    interrupted or a checkpoint is due. `mark` identifies the fit."""

    def __init__(self, checkpoint: Checkpoint | None = None, mark: Callable[[], str] = str) -> None:
        self._saved: dict[str, Arrays] = {} if checkpoint is None else dict(checkpoint.stages)
        self._open: dict[str, Callable[[], Arrays]] = {}
        self._mark = functools.cache(mark)
        self._began = time.perf_counter() - (0.0 if checkpoint is None else checkpoint.seconds)
        self.next_save = 0.0  # when the next checkpoint is due

    def __reduce__(self) -> tuple[type[Journal], tuple[()]]:
        return Journal, ()  # in another process it is empty: stages are functions of this one

    def resumes(self, stage: str) -> bool:
        """Return whether this stage was in progress when the fit was interrupted."""
        return stage in self._saved

    def saved(self, stage: str) -> Arrays | None:
        """Return the saved state of a stage, and remove it."""
        return self._saved.pop(stage, None)

    def keep(self, stage: str, arrays: Callable[[], Arrays]) -> None:
        """Register `arrays` as the function that returns the state of this stage."""
        self._open[stage] = arrays

    def forget(self, stage: str) -> None:
        """End a stage."""
        self._open.pop(stage, None)

    def checkpoint(self) -> Checkpoint:
        stages = self._saved | {stage: arrays() for stage, arrays in self._open.items()}
        return Checkpoint(stages, self._mark(), self.seconds)

    @property
    def seconds(self) -> float:
        """Seconds that the fit has taken, with those before an interruption."""
        return time.perf_counter() - self._began


@dataclass(frozen=True)
class Run:
    """Options of a run: seed, threads, precision, shards, callbacks, and a checkpoint to resume."""

    seed: int = 0
    threads: int = 0  # 0: all cores that this process may use
    precision: Literal["auto", "single", "double"] = "auto"  # of stored arrays; sums are always double
    shards: int = 1  # number of parts of the answers; results do not depend on it beyond rounding
    watch: Callable[[Progress], None] | None = None  # called after every iteration
    stop: Callable[[], bool] | None = None  # called before every iteration; True interrupts with a checkpoint
    resume: Checkpoint | None = None
    keep: Callable[[Checkpoint], None] | None = None  # called every so often with a checkpoint of the fit
    keep_every: float = 60.0  # seconds between checkpoints
    # Runs fit(n) for every n of a list on other machines, and yields n and the fit; None: in this process.
    spread: Callable[[Callable[[int], Any], list[int]], Iterator[tuple[int, Any]]] | None = None
    journal: Journal = field(default_factory=Journal, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_arguments(type(self).__annotations__, vars(self))
        for name, least in (("seed", 0), ("threads", 0), ("shards", 1)):
            check_whole(name, getattr(self, name), least, ", 0 for all cores" if name == "threads" else "")
        check_choice("precision", self.precision, ("auto", "single", "double"))
        if self.threads == 0:
            object.__setattr__(self, "threads", cores())

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def begin(self, mark: Callable[[], str] = str) -> Run:
        """Return the same run with its own journal, which counts the time from now; every fit starts with it. `mark`
        identifies the fit in checkpoints."""
        begun = replace(self, journal=Journal(self.resume, mark), resume=None)
        begun.journal.next_save = time.monotonic() + self.keep_every
        return begun

    def save(self) -> None:
        """Keep a checkpoint if it is due. Saving takes at most a twentieth of the time."""
        if self.keep is None or time.monotonic() < self.journal.next_save:
            return
        began = time.monotonic()
        self.keep(self.journal.checkpoint())
        ended = time.monotonic()
        self.journal.next_save = ended + max(self.keep_every, 20 * (ended - began))

    def inner(self) -> Run:
        """Return the run of a fit within this one, without progress. If it is sent to another machine, it has no
        functions of this process."""
        if self.spread is None:
            return replace(self, watch=None)
        return Run(seed=self.seed, threads=1, precision=self.precision)

    @property
    def stopped(self) -> bool:
        return self.stop is not None and self.stop()

    def report(self, progress: Progress) -> None:
        if self.watch is not None:
            self.watch(progress)


def packed(values: Mapping[str, Any], prefix: str = "") -> Arrays:
    """Return values as arrays. Named tuples and mappings are packed field by field, and None is omitted."""
    arrays: Arrays = {}
    for name, value in values.items():
        key = f"{prefix}{name}"
        if hasattr(value, "_asdict"):
            arrays |= packed(value._asdict(), f"{key}.")
        elif isinstance(value, Mapping):
            arrays |= packed(value, f"{key}.")
        elif value is not None:
            arrays[key] = np.array(value)
    return arrays


def unpacked(arrays: Arrays, prefix: str) -> dict[str, Any]:
    """Invert `packed` for a named tuple or mapping; arrays without dimensions become numbers."""
    return {name: array.item() if array.ndim == 0 else array for name, array in under(arrays, prefix).items()}


def restored(kind: Any, arrays: Arrays, prefix: str = "", **sizes: int) -> Any:
    """Return a named tuple from its arrays in a checkpoint, which must follow the rules of its fields."""
    plain = [name for name, each in kinds_of(kind).items() if base_of(each) in (bool, int, float)]
    found = under(arrays, prefix)
    value = kind(**{name: array.item() if name in plain else array for name, array in found.items()})
    flaw = flaw_of(value, sizes, unfinished=True)
    if flaw:
        raise CheckpointError(f"the checkpoint is damaged: {prefix}{flaw}. {WITHOUT_IT}")
    return value


def sound(arrays: Arrays, name: str, rule: Any, **sizes: int) -> NDArray[Any]:
    """Return an array of a checkpoint, which must follow a rule."""
    flaw = rule.shape_flaw(arrays[name], known := Sizes(sizes)) or rule.flaw(arrays[name], known)
    if flaw:
        raise CheckpointError(f"the checkpoint is damaged: {name} {flaw}. {WITHOUT_IT}")
    return arrays[name]


def under(arrays: Arrays, prefix: str) -> Arrays:
    """Return the arrays whose names begin with `prefix`, with the prefix removed."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def rng_state(rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return the state of a random generator, as bytes."""
    return np.frombuffer(json.dumps(rng.bit_generator.state).encode(), np.uint8)


def set_rng_state(rng: np.random.Generator, state: NDArray[np.uint8]) -> None:
    """Set the state of a random generator."""
    rng.bit_generator.state = json.loads(state.tobytes())
