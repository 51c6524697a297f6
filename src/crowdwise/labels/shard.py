"""The inputs of label models: shards of tasks with their answers, and the table of workers that an M-step uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import Executor, InMemory, Run
from ..kernels import Kernels, choose
from ..kernels.layout import (
    Floats,
    Ints,
    Layout,
    Subset,
    WorkerRows,
    compact,
    round_posterior,
    vote_parts,
    weighted_counts,
)  # fmt: skip


class Shard(NamedTuple):
    """Some tasks with all their answers. Labels are those of the whole table; workers and rows are too, unless there is
    a `subset` of them."""

    kernels: Kernels
    layout: Layout
    gold: Ints  # (T,) or -1
    weight: Floats | None  # (N,) weight of each answer, in task order; None: all equal
    threads: int
    dtype: Any  # of posteriors and confusion rows
    truth: Any = None  # a classifier of features, if one is fitted together with the workers
    subset: Subset | None = None
    answers: Any = None  # the `Labels` of these tasks

    @classmethod
    def of(cls, answers: Labels, run: Run, truth: Any = None, kernels: Kernels | None = None) -> Shard:
        """Return the answers as one shard. If they are part of a table, pass the `kernels` of the whole table."""
        kernels = answers.kernels if kernels is None else kernels
        weight = answers.weights if answers.weighted else None
        dtype = stored_dtype(kernels, run)
        return cls(kernels, answers.layout, answers.gold, weight, run.threads, dtype, truth, answers=answers)

    def compacted(self) -> Shard:
        """Return this shard with the rows and workers that have answers in it."""
        layout, subset = compact(self.layout)
        workers = self.answers.workers[np.asarray(subset.workers)]
        return self._replace(
            answers=self.answers.replaced(workers=workers, layout=layout), layout=layout, subset=subset
        )

    def vote_shares(self, weight: Floats | None = None) -> Floats:
        """Return vote shares (T, K). Each vote has weight 1, or the `weight` (R,) of its row.

        If all votes on a task have weight 0, they count equally. Tasks with gold have their known label, and tasks
        without answers have uniform shares.
        """
        K = self.layout.n_classes
        Z = self.votes(np.ones(self.layout.n_rows) if weight is None else weight)
        total = Z.sum(1, keepdims=True)
        np.divide(Z, total, out=Z, where=total > 0)
        void = total[:, 0] == 0
        if void.any():
            Z[void] = 1 / K if weight is None else self.vote_shares()[void]
        return self.obey_gold(round_posterior(Z))

    def votes(self, by_row: Floats) -> Floats:
        """Return sums of vote weights (T, K): the weight of the row (R,) times that of the answer."""
        T, K = self.layout.n_tasks, self.layout.n_classes
        Z = np.empty((T, K), self.dtype)
        if self.weight is None:
            self.kernels.votes(self.layout, by_row, Z, self.threads)
            return Z
        task = np.repeat(np.arange(T), np.diff(self.layout.task_ptr))
        cell = task * K + self.layout.row_label[self.layout.pair]
        Z[:] = weighted_counts(cell, self.weight * by_row[self.layout.pair], T * K).reshape(T, K)
        return Z

    def smoothed_votes(self, by_row: Floats, mean: Floats) -> Floats:
        """Return vote shares (T, K) as `votes` weights them, with `mean` (K,) as one more vote; gold is obeyed."""
        Z = self.votes(by_row)
        Z += mean
        Z /= Z.sum(1, keepdims=True)
        return self.obey_gold(round_posterior(Z))

    def whole_workers(self) -> Ints:
        """Return the numbers of the shard's workers in the whole table (w,)."""
        some = None if self.subset is None else self.subset.workers
        return np.arange(self.layout.n_workers) if some is None else some

    def obey_gold(self, Z: Floats) -> Floats:
        """Set the rows of Z (T, K) with gold to their known label, in place."""
        known = np.flatnonzero(self.gold >= 0)
        Z[known] = 0
        Z[known, self.gold[known]] = 1
        return Z

    def votes_by_part(self) -> Iterator[tuple[slice, Floats]]:
        """Yield the votes (tasks, K) of consecutive chunks of tasks, to limit memory."""
        return vote_parts(self.kernels, self.layout, self.threads, self.weight)

    def shares(self, Z: Floats) -> Floats:
        """Return the sum (K,) of the posterior over tasks with answers."""
        answered = np.diff(self.layout.task_ptr) > 0
        return np.asarray((Z if answered.all() else Z[answered]).sum(0, dtype=np.float64))


class Crowd(NamedTuple):
    """The inputs of an M-step: how often each worker gave each label, and computing options. It has no answers."""

    kernels: Kernels
    rows: WorkerRows
    threads: int
    dtype: Any
    seed: int  # for random starts
    workers: Any  # ids
    truth: Any = None  # as in Shard
    found: Any = None  # how far answers depend on each other, for models that use it: `sampled.Found`


@dataclass(frozen=True)
class ShardOfPart:
    """Makes the shard of a part of a table, in this process or another."""

    n_answers: int  # of the whole table
    n_classes: int
    precision: str
    threads: int

    def __call__(self, part: Labels, subset: Subset) -> Shard:
        kernels = choose(self.n_answers, self.n_classes)
        run = Run(threads=self.threads, precision=self.precision)  # type: ignore[arg-type]
        return Shard.of(part, run, None, kernels)._replace(subset=subset)


def spread(answers: Any, run: Run, truth: Any = None) -> tuple[Crowd, Executor[Shard]]:
    """Return the crowd and an executor over shards of tasks: `run.shards` of them, or the parts of `SplitLabels`."""
    kernels = answers.kernels
    shards: Executor[Shard]
    if answers.in_parts:
        make = ShardOfPart(answers.n_answers, answers.n_classes, run.precision, run.threads)
        shards = answers.executor(make)
    else:
        parts = [answers] if run.shards == 1 else answers.shards(run.shards)
        made = [Shard.of(part, run, truth, kernels) for part in parts]
        shards = InMemory([shard.compacted() for shard in made] if run.shards > 1 and truth is None else made)
    dtype = stored_dtype(kernels, run)
    return Crowd(kernels, answers.rows, run.threads, dtype, int(run.seed), answers.workers, truth), shards


def stored_dtype(kernels: Kernels, run: Run) -> np.dtype[Any]:
    """Return the type in which posteriors and confusion rows are stored."""
    chosen: np.dtype[Any] = np.dtype(
        {"auto": kernels.STORAGE, "single": np.float32, "double": np.float64}[run.precision]
    )
    return chosen
