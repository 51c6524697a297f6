"""How a fit is run, apart from what is fitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from ..errors import ParameterError
from ..kernels import cores


class Step(NamedTuple):
    """What a watcher is told after every sweep."""

    iteration: int
    max_iter: int
    objective: float
    flips: int  # labels that changed
    moved: float  # largest change of a worker's skill


class Checkpoint(NamedTuple):
    """All that is needed to go on with a climb as if it had not been broken off."""

    params: dict[str, Any]
    trace: list[float]
    still: int
    hits: Any
    labels: Any  # (T,) most probable classes


@dataclass(frozen=True)
class Run:
    """Seed, threads, precision, who watches, and where to go on."""

    seed: int = 0
    threads: int = 0  # 0: all cores that this process may use
    precision: Literal["auto", "single", "double"] = "auto"  # storage; sums are always double
    watch: Callable[[Step], None] | None = None
    stop: Callable[[], bool] | None = None  # asked before every sweep; True breaks off with a checkpoint
    resume: Checkpoint | None = None

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not isinstance(self.seed, (int, np.integer)) or self.seed < 0:
            raise ParameterError(f"seed is {self.seed!r}; it must be a whole number of at least 0")
        if isinstance(self.threads, bool) or not isinstance(self.threads, int) or self.threads < 0:
            raise ParameterError(f"threads is {self.threads!r}; it must be a whole number, 0 for all cores")
        if self.precision not in ("auto", "single", "double"):
            raise ParameterError(f"precision is {self.precision!r}; it must be 'auto', 'single' or 'double'")
        if self.threads == 0:
            object.__setattr__(self, "threads", cores())

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)
