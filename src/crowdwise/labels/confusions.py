"""Base classes of models with full confusion matrices, stored as one row per observed (worker, label)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..kernels import TINY, EStepResult
from ..kernels.layout import Floats, Ints, PerRow, RowTable, find_rows, per_worker, weighted_counts
from ..kernels.special import digamma, dirichlet_kl
from ..result import LeftOut
from .em import EMModel, Local
from .shard import Crowd, Shard


class Stats(NamedTuple):
    shares: Floats  # (K,)    expected tasks of each class
    counts: PerRow  # (R, K)  expected answers of each row by true class


@dataclass(frozen=True, kw_only=True)
class RowModel(EMModel[Any, Stats]):
    """A model whose parameters have `rows` (R, K): the factor of each row's answers in the posterior of a task."""

    def posterior(self, shard: Shard, params: Any, local: Local) -> EStepResult:
        shard = self.weighted(shard, params)
        parts = (params.rows, self.prior(shard, params), shard.gold, local.Z, shard.threads, shard.weight)
        return shard.kernels.confusion_posterior(shard.layout, *parts)

    def statistics(self, shard: Shard, local: Local, shares: Floats, params: Any) -> Stats:
        if params is not None:
            shard = self.weighted(shard, params)
        return Stats(shares, shard.kernels.confusion_counts(shard.layout, local.Z, shard.threads, shard.weight))

    def hits(self, crowd: Crowd, stats: Stats) -> Floats:
        """Return the diagonal of the expected counts, summed per worker."""
        places = np.arange(crowd.rows.n_rows) * crowd.rows.n_classes + crowd.rows.row_label
        return per_worker(crowd.rows, stats.counts.take(places).astype(np.float64, copy=False))

    def left_out(self, shard: Shard, params: Any, Z: Floats) -> LeftOut:
        sums = shard.kernels.confusion_left_out(shard.layout, params.rows, shard.gold, Z, shard.threads)
        return LeftOut(per_worker(shard.layout, sums[0]), per_worker(shard.layout, sums[1]))


@dataclass(frozen=True, kw_only=True)
class SharesByBayes(RowModel):
    """A model with a Dirichlet(1) prior on the class shares. Its parameters have `n` (K,), the expected tasks of each
    class, and `bound` (), the terms of the objective that come from neither tasks nor classes."""

    criterion = "evidence lower bound"

    def penalty(self, params: Any) -> float:
        return float(params.bound) + self.class_penalty(params)

    def class_penalty(self, params: Any) -> float:
        return -dirichlet_kl(params.n, np.ones(len(params.n)))

    def prevalence(self, params: Any) -> Floats:
        return np.asarray((params.n + 1) / (params.n.sum() + len(params.n)))

    def class_prior(self, params: Any, n_classes: int, task: int | None = None) -> Floats:
        return expected_shares(params.n)


def expected_shares(n: Floats) -> Floats:
    """Return exp of the expected log class shares, shape (K,)."""
    return np.asarray(np.exp(digamma(n + 1) - digamma(np.asarray(n.sum() + len(n)))))


def mean_rows(layout: RowTable, rows: Floats, weight: Floats) -> Floats:
    """Return the mean confusion matrix (K, K) of all workers: rows (R, K) weighted by each worker's answers (W, K)."""
    K = layout.n_classes
    matrix = np.full((K, K), TINY)
    for k in range(K):
        matrix[k] += weighted_counts(layout.row_label, rows[:, k] * weight[layout.row_worker, k], K)
    return np.asarray(matrix / matrix.sum(1, keepdims=True))


def row_logs(layout: RowTable, worker: Ints, label: Ints, rows: Floats, unseen: Floats, crowd: Floats) -> Floats:
    """Return the log-probabilities (M, K) of pairs (worker, label).

    They come from `rows` if the pair was observed, from `unseen` (M, K) if a known worker never gave that label, and
    from the crowd's matrix `crowd` (K, K) for unknown workers.
    """
    at, there = find_rows(layout, worker, label)
    out = np.where(there[:, None], rows[at] if layout.n_rows else unseen, unseen).astype(np.float64)
    out[worker < 0] = crowd.T[label[worker < 0]]
    return np.log(np.maximum(out, TINY))
