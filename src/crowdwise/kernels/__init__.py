"""Numerical kernels on arrays. `choose` returns the numpy version for small tables, the compiled one for others."""

from __future__ import annotations

import importlib
import os
import threading
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from .layout import Floats, Ints, Layout, RowTable, SortedAnswers
from .threads import LOADING, interrupts_later

MAX_PLAIN_CELLS = 150_000  # answers x classes up to which numpy finishes before numba is loaded
MAX_PLAIN_CLICKS = 1_000  # the same for clicks
TINY = 1e-19  # smallest probability: the product of sixteen of them does not underflow


class EStepResult(NamedTuple):
    """Sums over all tasks after an E-step."""

    evidence: float  # sum over tasks of log p(answers of the task)
    shares: Floats  # (K,) sum of the posterior over tasks with answers
    flips: int  # tasks whose most probable class changed


class Kernels(Protocol):
    """The functions of both kernel modules; `plain` documents them."""

    STORAGE: Any

    def build_layout(self, task: Ints, worker: Ints, label: Ints, shape: tuple[int, int, int]) -> SortedAnswers: ...

    def confusion_posterior(
        self, layout: Layout, P: Floats, prior: Floats, gold: Ints, Z: Floats, threads: int,
        weight: Floats | None = None,
    ) -> EStepResult: ...  # fmt: skip

    def confusion_counts(self, layout: Layout, Z: Floats, threads: int, weight: Floats | None = None) -> Floats: ...

    def match_posterior(
        self, layout: Layout, hit: Floats, miss: Floats, prior: Floats, gold: Ints, Z: Floats, threads: int
    ) -> EStepResult: ...

    def match_counts(self, layout: Layout, Z: Floats, threads: int) -> Floats: ...

    def votes(self, layout: Layout, weight: Floats, Z: Floats, threads: int) -> None: ...

    def smooth_rows(
        self, layout: RowTable, counts: Floats, smoothing: float, dtype: Any, threads: int
    ) -> tuple[Floats, Floats, float]: ...

    def smooth_posterior(
        self, layout: Layout, Z: Floats, smoothing: float, dtype: Any, threads: int
    ) -> tuple[Floats, Floats, float, Floats]: ...

    def dirichlet_rows(
        self, layout: RowTable, counts: Floats, a: Floats, dtype: Any, threads: int
    ) -> tuple[Floats, Floats, float, Floats]: ...

    def dirichlet_slopes(
        self, layout: RowTable, counts: Floats, totals: Floats, a: Floats, threads: int
    ) -> tuple[Floats, Floats, Floats, Floats]: ...

    def ability_posterior(
        self, layout: Layout, ability: Floats, ease: Floats, prior: Floats, gold: Ints, Z: Floats, threads: int
    ) -> EStepResult: ...

    def ability_slopes(
        self, layout: Layout, ability: Floats, ease: Floats, Z: Floats, of_workers: bool, threads: int
    ) -> tuple[Floats, Floats]: ...

    def difficulty_posterior(
        self, layout: Layout, odds: Floats, ease: Floats, prior: Floats, gold: Ints, Z: Floats, slope: Floats,
        threads: int,
    ) -> EStepResult: ...  # fmt: skip

    def difficulty_slopes(self, layout: Layout, odds: Floats, ease: Floats, Z: Floats, threads: int) -> Floats: ...

    def difficulty_left_out(
        self, layout: Layout, odds: Floats, ease: Floats, gold: Ints, Z: Floats, threads: int
    ) -> tuple[Floats, Floats]: ...

    def confusion_left_out(
        self, layout: Layout, P: Floats, gold: Ints, Z: Floats, threads: int
    ) -> tuple[Floats, Floats]: ...

    def group_counts(self, layout: RowTable, counts: Floats, member: Floats, threads: int) -> Floats: ...

    def group_scores(self, layout: RowTable, counts: Floats, logs: Floats, threads: int) -> Floats: ...

    def group_rows(self, layout: RowTable, member: Floats, logs: Floats, dtype: Any, threads: int) -> Floats: ...

    def digamma(self, x: Floats) -> Floats: ...

    def gammaln(self, x: Floats) -> Floats: ...

    def cavity_left_out(
        self, layout: Layout, counts: Floats, totals: Floats, a: Floats, prior: Floats, gold: Ints, Z: Floats,
        threads: int, weight: Floats | None = None,
    ) -> tuple[Floats, Floats]: ...  # fmt: skip

    def cavity_posterior(
        self, layout: Layout, counts: Floats, totals: Floats, a: Floats, prior: Floats, gold: Ints, Z: Floats,
        threads: int, weight: Floats | None = None,
    ) -> None: ...  # fmt: skip

    def components(self, layout: Layout) -> Ints: ...

    def pair_counts(self, layout: Layout, place: Ints, size: int) -> tuple[Ints, Ints]: ...

    def pair_influence(
        self, layout: Layout, place: Ints, given: Ints, of_same: Floats, of_pair: Floats, of_chance: Floats
    ) -> Floats: ...


def choose(n_answers: int, n_classes: int) -> Kernels:
    """Return the kernel module for a table of this size. It depends on the data alone, so that results are
    reproducible."""
    name = "plain" if n_answers * n_classes <= MAX_PLAIN_CELLS else "fast"
    return cast(Kernels, _module(name))


def choose_clicks(n_clicks: int) -> Any:
    """Return the kernel module for so many clicks on all images together."""
    return _module("clicks" if n_clicks <= MAX_PLAIN_CLICKS else "fast.clicks")


def _module(name: str) -> Any:
    with LOADING, interrupts_later():
        return importlib.import_module(f"{__name__}.{name}")


def preload() -> None:
    """Load the compiled kernels in another thread, while this one waits for a large file or for polars."""
    threading.Thread(target=_load, name="crowdwise-preload").start()


def _load() -> None:
    none = np.zeros(0, np.uint64)
    with LOADING:  # the first call of a compiled function loads most of numba
        _module("fast").numbers_of(none, none, np.zeros((2, 4), np.uint64))


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
