"""What label models work on: shards of tasks with their answers, and the crowd as an M-step knows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import InMemory, Run
from ..kernels import Kernels
from ..kernels.layout import Floats, Ints, Layout, WorkerRows, vote_parts, weighted_counts


class Shard(NamedTuple):
    """Some tasks with all their answers; workers, labels and rows are those of the whole table."""

    kernels: Kernels
    layout: Layout
    gold: Ints  # (T,) or -1
    weight: Floats | None  # (N,) what each answer counts, in task order; None: all the same
    threads: int
    dtype: Any  # of posteriors and confusion rows
    truth: Any = None  # a classifier of features, where one is fitted together with the workers

    @classmethod
    def of(cls, answers: Labels, run: Run, truth: Any = None, kernels: Kernels | None = None) -> Shard:
        """The answers as one shard; `kernels` are those of the whole table, where the answers are a part of it."""
        kernels = answers.kernels if kernels is None else kernels
        dtype = {"auto": kernels.STORAGE, "single": np.float32, "double": np.float64}[run.precision]
        weight = answers.weights if answers.weighted else None
        return cls(kernels, answers.layout, answers.gold, weight, run.threads, np.dtype(dtype), truth)

    def vote_shares(self, weight: Floats | None = None) -> Floats:
        """(T, K) shares of votes, each weighing 1, or `weight` (R,) by row.

        Votes that all weigh nothing count alike, known labels are obeyed, and without answers all classes are alike.
        """
        K = self.layout.n_classes
        Z = self.votes(np.ones(self.layout.n_rows) if weight is None else weight)
        total = Z.sum(1, keepdims=True)
        np.divide(Z, total, out=Z, where=total > 0)
        void = total[:, 0] == 0
        if void.any():
            Z[void] = 1 / K if weight is None else self.vote_shares()[void]
        return self.obey_gold(Z)

    def votes(self, by_row: Floats) -> Floats:
        """(T, K) sums of what votes weigh: the weight of their row (R,), times their own."""
        T, K = self.layout.n_tasks, self.layout.n_classes
        Z = np.empty((T, K), self.dtype)
        if self.weight is None:
            self.kernels.votes(self.layout, by_row, Z, self.threads)
            return Z
        task = np.repeat(np.arange(T), np.diff(self.layout.task_ptr))
        cell = task * K + self.layout.row_label[self.layout.pair]
        Z[:] = weighted_counts(cell, self.weight * by_row[self.layout.pair], T * K).reshape(T, K)
        return Z

    def obey_gold(self, Z: Floats) -> Floats:
        """Z (T, K) with all probability of known tasks on their known label."""
        known = np.flatnonzero(self.gold >= 0)
        Z[known] = 0
        Z[known, self.gold[known]] = 1
        return Z

    def votes_by_part(self) -> Iterator[tuple[slice, Floats]]:
        """Votes (some tasks, K) of all tasks, a run of tasks at a time, so that they need little memory."""
        return vote_parts(self.kernels, self.layout, self.threads)

    def shares(self, Z: Floats) -> Floats:
        """(K,) sum of the posterior over tasks that have answers."""
        answered = np.diff(self.layout.task_ptr) > 0
        return np.asarray((Z if answered.all() else Z[answered]).sum(0, dtype=np.float64))


class Crowd(NamedTuple):
    """What an M-step knows: who gave which label how often, and how to compute. It never sees the answers."""

    kernels: Kernels
    rows: WorkerRows
    threads: int
    dtype: Any
    seed: int  # of what is drawn at the start
    workers: Any  # ids
    truth: Any = None  # as in Shard


def spread(answers: Labels, run: Run, truth: Any = None) -> tuple[Crowd, InMemory[Shard]]:
    """The crowd, and an executor over as many shards of tasks as the run asks for."""
    kernels = answers.kernels
    parts = [answers] if run.shards == 1 else answers.shards(run.shards)
    shards = [Shard.of(part, run, truth, kernels) for part in parts]
    rows, dtype = answers.layout.rows, shards[0].dtype
    return Crowd(kernels, rows, run.threads, dtype, int(run.seed), answers.workers, truth), InMemory(shards)
