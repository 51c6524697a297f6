"""Dawid-Skene: every worker has a confusion matrix; EM finds it together with the truth.

In answer n, worker j = worker_n gave task i = task_n the label l = label_n.
    (1)  z_i ~ Categorical(rho)                  (2)  l | z_i = k ~ Categorical(pi[j, k])
    (3)  q[i, k]     ~ rho[k] * product over answers n of task i of pi[j, k, l]
    (4)  rho[k]      ~ s + sum_i q[i, k]
    (5)  pi[j, k, l] ~ s + sum over j's answers n with label l of q[task_n, k]
with s the pseudo-count of the Dirichlet(1 + s) priors, so EM maximises
    (6)  log p(labels | rho, pi) + s * (sum log rho + sum log pi).
Dawid & Skene 1979: eqs 2.3 and 2.4 are the steps (4) and (5), 2.5 is (3). Derivation in docs/maths/dawid_skene.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import Executor, register
from ..engine.model import NOT_NEGATIVE, setting
from ..kernels import TINY
from ..kernels.layout import Floats, Ints, Layout, PerRow, PerWorker, RowTable, find_rows, per_worker
from ..kernels.rules import Real
from ..kernels.special import softmax
from .confusions import RowModel, Stats, mean_rows, row_logs
from .em import Local
from .shard import Crowd, Shard


class Smoothed(NamedTuple):
    """Confusion rows, in place of the counts of `Stats` that they are computed from."""

    shares: Floats  # (K,)
    rows: Floats  # (R, K)
    totals: Floats  # (W, K)
    log_prior: float
    right: Floats  # (R,)  expected correct answers


class Params(NamedTuple):
    rho: Annotated[Floats, Real("K", 0, 1, sums=True)]  # share of each class
    rows: Annotated[PerRow, Real("R K", 0, 1)]  # pi[j, k, l] for every observed (j, l)
    totals: Annotated[PerWorker, Real("W K", 0)]  # expected answers of worker j on tasks of class k
    log_prior: Annotated[Floats, Real("")]  # the last term of (6)
    crowd: Annotated[Floats, Real("K K", 0, 1, later=True)]  # mean confusion matrix, computed after the fit


@register("dawid-skene", "a confusion matrix for every worker, by EM (Dawid & Skene 1979)")
@dataclass(frozen=True, kw_only=True)
class DawidSkene(RowModel):
    """A full confusion matrix for each worker, with K (K - 1) free parameters."""

    params_type = Params
    smoothing: float = setting(0.01, NOT_NEGATIVE, "Pseudo-count s of the priors; 0 is maximum likelihood.")

    def sums(self, shard: Shard, local: Local, shares: Floats, params: Params | None) -> Any:
        """Return the statistics; of the only shard, the rows that (5) makes of them, without a table of counts."""
        if shard.subset is not None or shard.truth is not None:
            return self.statistics(shard, local, shares, params)
        smooth = shard.kernels.smooth_posterior
        return Smoothed(shares, *smooth(shard.layout, local.Z, self.smoothing, shard.dtype, shard.threads))

    def hits(self, crowd: Crowd, stats: Stats | Smoothed) -> Floats:
        if isinstance(stats, Smoothed):
            return per_worker(crowd.rows, stats.right)
        return super().hits(crowd, stats)

    def maximise(self, crowd: Crowd, stats: Stats | Smoothed, params: Params | None) -> Params:
        rho = np.maximum(stats.shares + self.smoothing, TINY)  # eq (4)
        rho /= rho.sum()
        if isinstance(stats, Smoothed):
            _, rows, totals, log_prior, _ = stats
        else:
            smooth = crowd.kernels.smooth_rows  # eq (5)
            rows, totals, log_prior = smooth(crowd.rows, stats.counts, self.smoothing, crowd.dtype, crowd.threads)
        return Params(rho, rows, totals, np.asarray(log_prior), np.zeros((0, 0)))

    def finish(self, crowd: Crowd, params: Params, shards: Executor[Shard]) -> Params:
        below = params.totals + crowd.rows.n_classes * self.smoothing
        return params._replace(crowd=mean_rows(crowd.rows, params.rows, below))

    def penalty(self, params: Params) -> float:
        return float(params.log_prior) + self.class_penalty(params)

    def class_penalty(self, params: Params) -> float:
        return float(self.smoothing * np.log(params.rho).sum())

    def prevalence(self, params: Params) -> Floats:
        return params.rho

    def leave_one_out(self, shard: Shard, params: Params, Z: Floats, gold: Ints) -> Floats:
        s, K = max(self.smoothing, TINY), shard.layout.n_classes
        below = (params.totals + K * self.smoothing)[shard.layout.row_worker]
        counts = np.maximum(params.rows * below - self.smoothing, 0)  # eq (5), solved for the counts
        parts = (counts, params.totals, np.full((K, K), s), self.prior(shard, params), gold)
        shard.kernels.cavity_posterior(shard.layout, *parts, Z, shard.threads)
        return Z

    def factors(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        """With `calibrate`, rows without the contribution of the task, as in `leave_one_out`."""
        means = self.emission(params, layout, worker, label)
        if not (self.calibrate and isinstance(layout, Layout)):
            return means
        given = layout.pair[layout.task_ptr[task] : layout.task_ptr[task + 1]]
        prior = np.maximum(self.class_prior(params, layout.n_classes, task), TINY)
        own = softmax(np.log(prior) + np.log(np.maximum(params.rows[given].astype(np.float64), TINY)).sum(0))
        at, there = find_rows(layout, worker, label)
        lost = np.isin(at, given)[:, None] * own
        s, K = max(self.smoothing, TINY), layout.n_classes
        totals = params.totals[worker]
        counts = np.maximum(params.rows[at] * (totals + K * self.smoothing) - self.smoothing, 0)
        left = np.log((np.maximum(counts - lost, 0) + s) / (np.maximum(totals - lost, 0) + K * s))
        return np.asarray(np.where(there[:, None], left, means))

    def need(self, answers: Labels, dtype: np.dtype[Any]) -> int:
        K, rows = answers.n_classes, answers.row_table.n_rows
        return K * ((answers.tasks_in_memory + 3 * rows) * dtype.itemsize + 8 * (rows + 2 * answers.n_workers + 4 * K))

    def answers_needed(self, n_classes: int) -> int:
        return 2 * n_classes  # each of the n_classes rows has n_classes - 1 free parameters

    def emission(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: Ints | None = None) -> Floats:
        s, K = self.smoothing, layout.n_classes
        with np.errstate(divide="ignore", invalid="ignore"):
            unseen = np.nan_to_num(s / (params.totals[worker] + K * s), nan=1 / K)
        return row_logs(layout, worker, label, params.rows, unseen, params.crowd)
