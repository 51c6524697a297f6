"""Same/different answers made up from one seed: a pinwheel of items, and workers of given skill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..answers import Pairs
from ..errors import ParameterError
from ..kernels.layout import Floats, Ints
from .labels import Rng, numbered, write_tables


@dataclass(frozen=True, repr=False)
class PairCrowd:
    """Simulated pairs with everything that is usually hidden."""

    pairs: Pairs
    features: tuple[pl.Series, Floats]  # ids, and a row an item
    truth: pl.DataFrame  # item, label
    workers: pl.DataFrame  # worker, sensitivity, specificity

    def __repr__(self) -> str:
        return f"PairCrowd({self.pairs!r}, {self.truth['label'].n_unique()} clusters)"

    def save(self, folder: str | Path) -> list[Path]:
        """Write pairs.csv, features.csv, truth.csv and workers.csv."""
        ids, X = self.features
        items = pl.DataFrame({"item": ids, **{f"x{d + 1}": X[:, d] for d in range(X.shape[1])}})
        return write_tables(folder, pairs=self.pairs.frame(), features=items, truth=self.truth, workers=self.workers)


def pinwheel(
    *,
    clusters: int = 5,
    per_cluster: int = 100,
    asked: int = 100,
    workers: int = 20,
    each: int = 49,
    alpha: float | Sequence[float] = 0.9,
    beta: float | Sequence[float] | None = None,
    seed: int = 0,
) -> PairCrowd:
    """The pinwheel of the paper: arms of items that wind around a middle, and answers about some of them.

    `asked` items are drawn, among which each of `workers` compares `each` pairs; `alpha` and `beta` (as alpha, if not
    given) are the chances to call the same what is the same, and different what is not, one for all or one a worker.

    >>> pinwheel(seed=3)
    PairCrowd(Pairs(980 answers on 892 pairs of 100 items, 20 workers), 5 clusters)
    """
    n = clusters * per_cluster
    if min(clusters, per_cluster, workers, each) < 1 or not 2 <= asked <= n:
        raise ParameterError(
            f"{clusters} clusters of {per_cluster} items, {asked} asked, {workers} workers of {each} pairs cannot be: "
            "all must be at least 1, and from 2 items to all can be asked about"
        )
    rng = np.random.default_rng([1, seed])
    truth = np.repeat(np.arange(clusters), per_cluster)
    arm = rng.standard_normal((n, 2)) * (0.3, 0.05) + (1.0, 0.0)  # long, and narrow
    angle = 2 * np.pi * truth / clusters + 0.25 * np.exp(arm[:, 0])
    turn = np.stack([np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)], axis=1).reshape(-1, 2, 2)
    X = 10.0 * np.einsum("ni,nij->nj", arm, turn)
    some = np.sort(rng.choice(n, asked, replace=False))
    made = answers_about(truth, some, workers, each, alpha, beta, rng, source=f"pinwheel simulated with seed {seed}")
    names = numbered("i", n).alias("item")
    return PairCrowd(made[0], (names, X), pl.DataFrame({"item": names, "label": truth}), made[1])


def answers_about(
    truth: Ints,
    some: Ints,
    workers: int,
    each: int,
    alpha: float | Sequence[float],
    beta: float | Sequence[float] | None,
    rng: Rng,
    *,
    balanced: bool = False,
    names: Sequence[Any] | None = None,
    source: str = "simulated pairs",
) -> tuple[Pairs, pl.DataFrame]:
    """Answers of workers to random pairs of `some` items, whose clusters are `truth` (N,), no worker meeting a pair
    twice; `balanced` has as many pairs that are the same as pairs that are not."""
    a = _skills(alpha, workers, "alpha")
    b = a if beta is None else _skills(beta, workers, "beta")
    worker = np.repeat(np.arange(workers), each)
    left, right = _pairs(truth, some, worker, balanced, rng)
    same = truth[left] == truth[right]
    right_answer = rng.random(len(left)) < np.where(same, a[worker], b[worker])
    ids = numbered("i", len(truth)) if names is None else pl.Series(names)
    who = pl.Series([f"w{w + 1:02d}" for w in range(workers)])
    answer = (same == right_answer).astype(np.int64)
    frame = pl.DataFrame({"left": ids[left], "right": ids[right], "worker": who[worker], "answer": answer})
    return Pairs(frame, source=source), pl.DataFrame({"worker": who, "sensitivity": a, "specificity": b})


def sorting_jobs(
    truth: Ints, some: Ints, jobs: int, size: int, right: float, workers: int, rng: Rng, *, names: Any = None
) -> Pairs:
    """Answers of workers who sort `size` of `some` items into piles, a job at a time, and put each on the pile of its
    cluster with a chance of `right`, else on another: all pairs of a job, with its number as `hit`."""
    if not 2 <= size <= len(some) or jobs < 1 or workers < 1 or not 0 <= right <= 1:
        raise ParameterError(f"{jobs} jobs of {size} items by {workers} workers, right with {right}, cannot be")
    C = int(truth.max()) + 1
    a, b = np.triu_indices(size, 1)
    ids = np.arange(len(truth)) if names is None else np.asarray(names)
    parts = []
    for job in range(jobs):
        items = rng.choice(some, size, replace=False)
        wrong = rng.random(size) >= right
        pile = np.where(wrong, (truth[items] + rng.integers(1, max(C, 2), size)) % C, truth[items])
        told = {"left": ids[items[a]], "right": ids[items[b]], "answer": (pile[a] == pile[b]).astype(np.int64)}
        who = pl.lit(f"w{job % workers + 1:02d}").alias("worker")
        parts.append(pl.DataFrame(told).with_columns(who, pl.lit(job).alias("hit")))
    return Pairs(pl.concat(parts), source="simulated sorting jobs")


def _skills(value: float | Sequence[float], workers: int, name: str) -> Floats:
    skills = np.broadcast_to(np.asarray(value, np.float64), (workers,)) if np.ndim(value) == 0 else np.asarray(value)
    if skills.shape != (workers,) or not ((skills >= 0) & (skills <= 1)).all():
        raise ParameterError(f"{name} is {value!r}; wanted is a chance from 0 to 1, for all or one a worker")
    return skills.astype(np.float64)


def _pairs(truth: Ints, some: Ints, worker: Ints, balanced: bool, rng: Rng) -> tuple[Ints, Ints]:
    """A random pair of two different items for each place of `worker`; balanced: every other one the same."""
    count, sizes = len(worker), np.unique(truth[some], return_counts=True)[1]
    same = int((sizes * (sizes - 1) // 2).sum())
    there = min(same, len(some) * (len(some) - 1) // 2 - same) * 2 if balanced else len(some) * (len(some) - 1) // 2
    if np.bincount(worker).max() > there:
        raise ParameterError(
            f"a worker is to compare {np.bincount(worker).max()} pairs, but {len(some)} items have {there} such pairs"
        )
    left, right = np.empty(count, np.int64), np.empty(count, np.int64)
    open_ = np.arange(count)
    while len(open_):
        left[open_], right[open_] = rng.choice(some, len(open_)), rng.choice(some, len(open_))
        low, high = np.minimum(left, right), np.maximum(left, right)
        bad = np.ones(count, bool)
        bad[np.unique((worker * len(truth) + low) * len(truth) + high, return_index=True)[1]] = False
        bad |= left == right
        if balanced:
            bad |= (truth[left] == truth[right]) != (np.arange(count) % 2 == 0)
        open_ = np.flatnonzero(bad)
    return left, right
