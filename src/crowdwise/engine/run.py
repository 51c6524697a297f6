"""How a fit is run, apart from what is fitted: seed, threads, shards, progress, interruption and resumption."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from ..kernels import cores

Arrays = dict[str, NDArray[Any]]


class Progress(NamedTuple):
    """What a watcher gets after every iteration."""

    stage: str  # what is being fitted
    iteration: int
    max_iter: int
    objective: float | None
    counts: dict[str, float]  # by name: {"labels_changed": 3}, {"objects": 12}

    def __str__(self) -> str:
        counts = [f"{value:.3g} {name.replace('_', ' ')}" for name, value in self.counts.items()]
        return ", ".join([f"{self.stage} {self.iteration} of at most {self.max_iter}", *counts])


class Checkpoint(NamedTuple):
    """All that is needed to continue a fit as if it had not been interrupted: arrays of every stage under way."""

    stages: dict[str, Arrays]
    mark: str = ""  # identifies the fit that it belongs to


class Journal:
    """What a fit has reached, stage by stage. A stage says what would have to be kept of it; nothing is copied until
    the fit is interrupted."""

    def __init__(self, checkpoint: Checkpoint | None = None) -> None:
        self._saved: dict[str, Arrays] = {} if checkpoint is None else dict(checkpoint.stages)
        self._open: dict[str, Callable[[], Arrays]] = {}

    def resumes(self, stage: str) -> bool:
        """Whether this stage was under way when the fit was interrupted."""
        return stage in self._saved

    def saved(self, stage: str) -> Arrays | None:
        """What was kept of a stage; it is handed out once."""
        return self._saved.pop(stage, None)

    def keep(self, stage: str, arrays: Callable[[], Arrays]) -> None:
        """From now on, an interruption keeps `arrays()` for this stage."""
        self._open[stage] = arrays

    def forget(self, stage: str) -> None:
        """The stage is over."""
        self._open.pop(stage, None)

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(self._saved | {stage: arrays() for stage, arrays in self._open.items()})


@dataclass(frozen=True)
class Run:
    """Seed, threads, precision, shards, who watches, and where to continue."""

    seed: int = 0
    threads: int = 0  # 0: all cores that this process may use
    precision: Literal["auto", "single", "double"] = "auto"  # storage; sums are always double
    shards: int = 1  # parts that the answers are cut into; the result does not depend on it beyond rounding
    watch: Callable[[Progress], None] | None = None
    stop: Callable[[], bool] | None = None  # asked before every iteration; True interrupts with a checkpoint
    resume: Checkpoint | None = None
    journal: Journal = field(default_factory=Journal, repr=False, compare=False)
    began: float = field(default=0.0, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, least in (("seed", 0), ("threads", 0), ("shards", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                zero = ", 0 for all cores" if name == "threads" else ""
                raise ParameterError(f"{name} is {value!r}; it must be a whole number of at least {least}{zero}")
        if self.precision not in ("auto", "single", "double"):
            raise ParameterError(f"precision is {self.precision!r}; it must be 'auto', 'single' or 'double'")
        if self.threads == 0:
            object.__setattr__(self, "threads", cores())

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def begin(self) -> Run:
        """The same run with a journal of its own, beginning now: every fit starts with one."""
        return replace(self, journal=Journal(self.resume), resume=None, began=time.perf_counter())

    @property
    def stopped(self) -> bool:
        return self.stop is not None and self.stop()

    def report(self, progress: Progress) -> None:
        if self.watch is not None:
            self.watch(progress)


def packed(values: Mapping[str, Any], prefix: str = "") -> Arrays:
    """Values as arrays: numbers and arrays as they are, named tuples and mappings field by field, None left out."""
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
    """What `packed` made of a named tuple or mapping; single numbers are numbers again."""
    return {name: array.item() if array.ndim == 0 else array for name, array in under(arrays, prefix).items()}


def under(arrays: Arrays, prefix: str) -> Arrays:
    """The arrays whose names begin with `prefix`, named without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def rng_state(rng: np.random.Generator) -> NDArray[np.uint8]:
    """Where a generator stands, as bytes."""
    return np.frombuffer(json.dumps(rng.bit_generator.state).encode(), np.uint8)


def set_rng_state(rng: np.random.Generator, state: NDArray[np.uint8]) -> None:
    """Put a generator where another stood."""
    rng.bit_generator.state = json.loads(state.tobytes())
