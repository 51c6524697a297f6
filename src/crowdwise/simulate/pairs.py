"""Simulated same/different answers: items in a pinwheel, and workers of given skill, drawn from one seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..answers import Pairs
from ..answers.arguments import check_array, checked, generator
from ..errors import ParameterError
from ..kernels.layout import Floats, Ints
from ..limits import enough_memory
from .labels import Rng, check_size, numbered, write_tables


@dataclass(frozen=True, repr=False)
class PairCrowd:
    """Simulated pairs together with their hidden truth."""

    pairs: Pairs
    features: tuple[pl.Series, Floats]  # item ids, and one row of features per item
    truth: pl.DataFrame  # item, label
    workers: pl.DataFrame  # worker, sensitivity, specificity

    def __repr__(self) -> str:
        return f"PairCrowd({self.pairs!r}, {self.truth['label'].n_unique()} clusters)"

    @checked
    def save(self, folder: str | Path) -> list[Path]:
        """Write pairs.csv, features.csv, truth.csv and workers.csv."""
        ids, X = self.features
        items = pl.DataFrame({"item": ids, **{f"x{d + 1}": X[:, d] for d in range(X.shape[1])}})
        tables = {"pairs": self.pairs.frame(), "features": items, "truth": self.truth, "workers": self.workers}
        return write_tables(folder, tables)


@enough_memory("the simulation")
@checked
def pinwheel(
    *,
    clusters: int = 5,
    per_cluster: int = 100,
    asked: int = 100,
    workers: int = 20,
    each: int = 49,
    alpha: float | Sequence[float] = 0.9,
    beta: float | Sequence[float] | None = None,
    seed: int | np.random.Generator = 0,
) -> PairCrowd:
    """Simulate the paper's pinwheel: clusters that spiral around a centre, and answers about some of the items.

    `asked` items are drawn at random, and each of the `workers` compares `each` pairs of them. `alpha` is the
    probability of answering "same" for items of one cluster (sensitivity), and `beta` that of answering "different" for
    items of two (specificity; `alpha` by default). Both are one number for all workers, or one per worker.

    >>> pinwheel(seed=3)
    PairCrowd(Pairs(980 answers on 892 pairs of 100 items, 20 workers), 5 clusters)
    """
    n = clusters * per_cluster
    if min(clusters, per_cluster, workers, each) < 1 or not 2 <= asked <= n:
        raise ParameterError(
            f"clusters is {clusters}, per_cluster {per_cluster}, asked {asked}, workers {workers} and each {each}; "
            f"asked must be from 2 to {n}, the number of items, and the others at least 1"
        )
    check_size(items=n, answers=workers * each)
    rng = generator(seed, 1)
    truth = np.repeat(np.arange(clusters), per_cluster)
    arm = rng.standard_normal((n, 2)) * (0.3, 0.05) + (1.0, 0.0)  # long, and narrow
    angle = 2 * np.pi * truth / clusters + 0.25 * np.exp(arm[:, 0])
    turn = np.stack([np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)], axis=1).reshape(-1, 2, 2)
    X = 10.0 * np.einsum("ni,nij->nj", arm, turn)
    some = np.sort(rng.choice(n, asked, replace=False))
    source = f"pinwheel simulated with seed {seed}"
    pairs, skills = answers_about(truth, some, workers, each, alpha, beta, rng, source=source)
    names = numbered("i", n).alias("item")
    return PairCrowd(pairs, (names, X), pl.DataFrame({"item": names, "label": truth}), skills)


@enough_memory("the simulation")
@checked
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
    """Simulate answers about random pairs; returns the pairs, and the skills of the workers.

    `truth` (N,) gives the cluster of every item, and `some` the items that pairs are drawn from. No worker gets the
    same pair twice. With `balanced`, half of the pairs are the same and half are different.
    """
    a = _skills(alpha, workers, "alpha")
    b = a if beta is None else _skills(beta, workers, "beta")
    worker = np.repeat(np.arange(workers), each)
    left, right = _draw_pairs(truth, some, worker, balanced, rng)
    same = truth[left] == truth[right]
    correct = rng.random(len(left)) < np.where(same, a[worker], b[worker])
    ids = numbered("i", len(truth)) if names is None else pl.Series(names)
    worker_ids = pl.Series([f"w{w + 1:02d}" for w in range(workers)])
    answer = (same == correct).astype(np.int64)
    frame = pl.DataFrame({"left": ids[left], "right": ids[right], "worker": worker_ids[worker], "answer": answer})
    return Pairs(frame, source=source), pl.DataFrame({"worker": worker_ids, "sensitivity": a, "specificity": b})


@enough_memory("the simulation")
@checked
def sorting_jobs(
    truth: Ints, some: Ints, jobs: int, size: int, right: float, workers: int, rng: Rng, *, names: Any = None
) -> Pairs:
    """Simulate workers who sort `size` of `some` items into piles in each job.

    An item lands on the pile of its cluster with probability `right`, else on another pile. The answers are all pairs
    of a job, with the number of the job in the column `hit`.
    """
    if not 2 <= size <= len(some) or jobs < 1 or workers < 1 or not 0 <= right <= 1:
        raise ParameterError(
            f"jobs is {jobs}, size {size}, workers {workers} and right {right}; jobs and workers must be at least 1, "
            f"size from 2 to {len(some)}, and right from 0 to 1"
        )
    C = int(truth.max()) + 1
    a, b = np.triu_indices(size, 1)
    ids = np.arange(len(truth)) if names is None else np.asarray(names)
    parts = []
    for job in range(jobs):
        items = rng.choice(some, size, replace=False)
        wrong = rng.random(size) >= right
        pile = np.where(wrong, (truth[items] + rng.integers(1, max(C, 2), size)) % C, truth[items])
        columns = {"left": ids[items[a]], "right": ids[items[b]], "answer": (pile[a] == pile[b]).astype(np.int64)}
        worker = pl.lit(f"w{job % workers + 1:02d}").alias("worker")
        parts.append(pl.DataFrame(columns).with_columns(worker, pl.lit(job).alias("hit")))
    return Pairs(pl.concat(parts), source="simulated sorting jobs")


def _skills(value: float | Sequence[float], workers: int, name: str) -> Floats:
    given = check_array(name, value, "one probability from 0 to 1, or one per worker")
    skills = np.broadcast_to(given, (workers,)) if given.ndim == 0 else given
    if skills.shape != (workers,) or not ((skills >= 0) & (skills <= 1)).all():
        raise ParameterError(f"{name} is {value!r}; give one probability from 0 to 1, or one per worker")
    return skills.astype(np.float64)


def _draw_pairs(truth: Ints, some: Ints, worker: Ints, balanced: bool, rng: Rng) -> tuple[Ints, Ints]:
    """Draw a pair of different items for each entry of `worker`, (N,); if balanced, every other pair is the same."""
    count, sizes = len(worker), np.unique(truth[some], return_counts=True)[1]
    same = int((sizes * (sizes - 1) // 2).sum())
    total = len(some) * (len(some) - 1) // 2
    available = 2 * min(same, total - same) if balanced else total
    if np.bincount(worker).max() > available:
        raise ParameterError(
            f"{np.bincount(worker).max()} pairs per worker were asked for, but {len(some)} items have only {available} "
            "such pairs; ask for fewer pairs per worker, or use more items"
        )
    left, right = np.empty(count, np.int64), np.empty(count, np.int64)
    pending = np.arange(count)
    while len(pending):
        left[pending], right[pending] = rng.choice(some, len(pending)), rng.choice(some, len(pending))
        low, high = np.minimum(left, right), np.maximum(left, right)
        bad = np.ones(count, bool)
        bad[np.unique((worker * len(truth) + low) * len(truth) + high, return_index=True)[1]] = False
        bad |= left == right
        if balanced:
            bad |= (truth[left] == truth[right]) != (np.arange(count) % 2 == 0)
        pending = np.flatnonzero(bad)
    return left, right
