"""Pooled Dawid-Skene: a hierarchical prior shrinks workers' confusion matrices to the crowd's, by a learnt amount.

    (1)  z_i ~ Categorical(rho),  rho ~ Dirichlet(1)       (2)  l | z_i = k ~ Categorical(pi[j, k])
    (3)  pi[j, k] ~ Dirichlet(a[k])                        (4)  a[k, l] ~ Gamma(2, 1)
Row k of `a` is the crowd's confusion row times the strength of pooling. Variational Bayes with q(z) q(rho) q(pi):
    (5)  q[i, k] ~ exp(psi(1 + n[k]) - psi(K + n.)) * product over answers n of i of
                   exp(psi(a[k, l] + C[j, k, l]) - psi(a[k, .] + C[j, k, .]))
    (6)  n[k] = sum_i q[i, k],   C[j, k, l] = sum over j's answers n with label l of q[task_n, k]
    (7)  a[k, l] <- (a[k, l] * sum_j [psi(a[k, l] + C[j, k, l]) - psi(a[k, l])] + 1)
                    / (sum_j [psi(a[k, .] + C[j, k, .]) - psi(a[k, .])] + 1)
(7) never decreases the evidence of the counts, so the lower bound on the evidence of the answers never decreases:
    (8)  sum_i log(normaliser of (5)) - KL(q(rho)) - sum_jk KL(q(pi[j, k]) || Dirichlet(a[k])) + sum log p(a)
A worker with few answers is close to an average worker; with many answers the model approaches Dawid-Skene. Real
answers are less independent than (2) assumes, so (5) is overconfident. The reported posterior therefore mixes (5) with
the vote shares, smoothed by one vote with the class shares m:
    (9)  (1 - h) * q[i, k] + h * (votes[i, k] + m[k]) / (votes[i, .] + 1)
Workers' skills and matrices are those of (5). The fit starts from votes weighted by the variety of each worker's
labels. It extrapolates (7) by several steps where that does not decrease the evidence. Derivation in
docs/maths/pooled.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import Executor, register
from ..engine.model import POSITIVE, SHARE, setting
from ..kernels.layout import (
    Floats,
    Ints,
    PerRow,
    PerWorker,
    RowTable,
    find_rows,
    per_worker,
    vote_parts,
    weighted_counts,
)
from ..result import LeftOut
from .confusions import SharesByBayes, Stats
from .shard import Crowd, Shard

MIN_A, MAX_A = 1e-3, 1e4  # bounds of the pseudo-counts a
EVERY_ITERATION = 6  # iterations that all update a; later one in three does, which is cheaper and sufficient
MAX_PACE = 100.0  # largest extrapolation, in steps of (7)
FEW_ANSWERS = 10.0  # answers per worker below which the initial pooling is stronger
LABEL_PRIOR_ANSWERS = 2.0  # pseudo-answers with the crowd's label shares in each worker's label shares


class Params(NamedTuple):
    n: Floats  # (K,)    expected tasks of each class
    a: Floats  # (K, K)  pseudo-counts of the prior on workers' rows
    counts: PerRow  # (R, K)  C, observed (j, l) only
    totals: PerWorker  # (W, K)  C[j, k, .]
    rows: PerRow  # (R, K)  the factors of eq (5)
    bound: Floats  # ()      eq (8) without its first two terms
    step: Floats  # (K, K)  log of the step that (7) proposed last
    pace: Floats  # (K,)    extrapolation factor of that step, by row
    sweeps: Floats  # ()      iterations so far


@register(
    "pooled",
    "confusion matrices shrunk towards the crowd's, by an amount learnt from the data, by variational Bayes",
    default=True,
)
@dataclass(frozen=True, kw_only=True)
class Pooled(SharesByBayes):
    """The default model: between a vote and Dawid-Skene, depending on how much data each worker has."""

    params_type = Params
    calibration_offset = (-1.7, 0.8)
    hedge: float = setting(0.25, SHARE, "Weight h of the vote in the reported probabilities, eq (9).")
    start_diagonal: float = setting(2.0, POSITIVE, "Initial diagonal of the pseudo-counts a, minus 1.")

    def begin(self, crowd: Crowd, shards: Executor[Shard]) -> Stats:
        """Start from votes. A worker's votes have weight 1 - (sum of squared label shares of the worker).

        A worker who always gives the same label carries no information. Without the weights, a majority of such
        spammers would determine the start.
        """
        layout, K, prior = crowd.rows, crowd.rows.n_classes, LABEL_PRIOR_ANSWERS
        n = layout.answers.astype(np.float64)
        shares = weighted_counts(layout.row_label, n, K) / max(n.sum(), 1)
        total = layout.per_worker + prior
        seen = per_worker(layout, ((n + prior * shares[layout.row_label]) / total[layout.row_worker]) ** 2)
        unseen = (shares**2).sum() - per_worker(layout, shares[layout.row_label] ** 2)
        variety = 1 - seen - unseen * (prior / total) ** 2
        return self.from_votes(shards, np.maximum(variety, 0)[layout.row_worker])

    def maximise(self, crowd: Crowd, stats: Stats, params: Params | None) -> Params:
        K, counts = crowd.rows.n_classes, stats.counts
        a: Floats
        step: Floats
        pace: Floats
        if params is None:
            # start closer to a vote if workers have few answers: convergence there is slow
            strength = max(1.0, FEW_ANSWERS * crowd.rows.n_workers / max(crowd.rows.n_answers, 1))
            a = strength * (np.ones((K, K)) + self.start_diagonal * np.eye(K))
            step, pace, iterations = np.zeros((K, K)), np.ones(K), 0
        else:
            a, step, pace, iterations = params.a, params.step, params.pace, int(params.sweeps) + 1
        if params is not None and (iterations <= EVERY_ITERATION or iterations % 3 == 0):
            a, step, pace, (rows, totals, kl) = self._pool(crowd, counts, params)
        else:
            rows, totals, kl, _ = crowd.kernels.dirichlet_rows(crowd.rows, counts, a, crowd.dtype, crowd.threads)
        bound = _log_prior(a) - kl
        return Params(stats.shares, a, counts, totals, rows, np.asarray(bound), step, pace, np.asarray(iterations))

    def _pool(
        self, crowd: Crowd, counts: Floats, params: Params
    ) -> tuple[Floats, Floats, Floats, tuple[Floats, Floats, float]]:
        """Eq (7) with extrapolation: each row moves by the multiple of its step that the last two steps predict
        (Barzilai and Borwein). If that decreases the evidence of the counts, the plain step is used, which never does.
        """
        old = params.a
        totals: Floats = per_worker(crowd.rows, counts).astype(np.float64)
        top, below, fit = crowd.kernels.dirichlet_slopes(crowd.rows, counts, totals, old, crowd.threads)
        plain = np.clip((old * top + 1) / (below[:, None] + 1), MIN_A, MAX_A)  # eq (7)
        step = np.log(plain / old)
        pace = _pace(params.step, step, params.pace)
        a = np.clip(old * np.exp(pace[:, None] * step), MIN_A, MAX_A)
        rows, totals, kl, better = crowd.kernels.dirichlet_rows(crowd.rows, counts, a, crowd.dtype, crowd.threads)
        if np.all(pace == 1) or better + _log_prior(a) >= fit + _log_prior(old):
            return a, step, pace, (rows, totals, kl)
        rows, totals, kl, _ = crowd.kernels.dirichlet_rows(crowd.rows, counts, plain, crowd.dtype, crowd.threads)
        return plain, step, np.ones(len(pace)), (rows, totals, kl)

    def finish(self, crowd: Crowd, params: Params, shards: Executor[Shard]) -> Params:
        return params._replace(counts=params.counts.astype(crowd.dtype, copy=False))

    def left_out(self, shard: Shard, params: Params, Z: Floats) -> LeftOut:
        prior = self.prior(shard, params)
        parts = (params.counts, params.totals, params.a, prior)
        return LeftOut(*shard.kernels.cavity_left_out(shard.layout, *parts, shard.gold, Z, shard.threads))

    def need(self, answers: Labels, dtype: np.dtype[Any]) -> int:
        K, rows = answers.n_classes, answers.row_table.n_rows
        return K * (
            (answers.tasks_in_memory + 3 * rows) * dtype.itemsize + 8 * (2 * rows + 4 * answers.n_workers + 12 * K)
        )

    def emission(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: Ints | None = None) -> Floats:
        """Use the posterior mean of a worker's row; an unknown worker has the crowd's."""
        above = params.a.sum(1)
        below = params.totals[worker] + above
        prior = params.a.T[label]
        at, there = find_rows(layout, worker, label)
        counts = params.counts[at] if layout.n_rows else np.zeros_like(prior)
        known = (prior + np.where(there[:, None], counts, 0)) / below
        crowd = params.a / above[:, None]
        return np.asarray(np.log(np.where((worker >= 0)[:, None], known, crowd.T[label])))

    def factors(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        at, there = find_rows(layout, worker, label)
        means = self.emission(params, layout, worker, label)
        own = np.log(params.rows[at].astype(np.float64)) if layout.n_rows else means
        return np.where(there[:, None], own, means)

    def reported(self, shard: Shard, params: Params, Z: Floats) -> Floats:  # eq (9)
        if self.hedge > 0:
            mean = self.prevalence(params)
            for part, votes in shard.votes_by_part():
                free = shard.gold[part] < 0
                hedged = (1 - self.hedge) * Z[part] + self.hedge * _smoothed_shares(votes, mean)
                Z[part] = np.where(free[:, None], hedged, Z[part])
        return Z

    def unhedged(self, params: Params, answers: Labels, posterior: Floats) -> tuple[Floats, float]:
        if self.hedge in (0, 1):
            return posterior, self.own_weight
        Z, mean = posterior.astype(np.float64), self.prevalence(params)
        for part, votes in vote_parts(answers.kernels, answers.layout, 1):
            vote = self.hedge * _smoothed_shares(votes, mean)
            own = np.clip((Z[part] - vote) / (1 - self.hedge), 0, 1)  # eq (9) inverted
            free = (answers.gold[part] < 0)[:, None]
            Z[part] = np.where(free, own / np.maximum(own.sum(1, keepdims=True), 1e-300), Z[part])
        return Z, self.own_weight

    @property
    def own_weight(self) -> float:
        return 1.0 - self.hedge

    def task_posterior(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        q = super().task_posterior(params, layout, worker, label, task)
        votes = np.bincount(label, minlength=layout.n_classes)[None].astype(np.float64)
        return np.asarray((1 - self.hedge) * q + self.hedge * _smoothed_shares(votes, self.prevalence(params))[0])


def _smoothed_shares(votes: Floats, mean: Floats) -> Floats:
    """Return vote shares (T, K) from votes (T, K), with the class shares (K,) as one more vote."""
    return np.asarray((votes + mean) / (votes.sum(1, keepdims=True) + 1))


def _pace(before: Floats, step: Floats, pace: Floats) -> Floats:
    """Return the extrapolation factor (K,): the steps of each row to its fixed point, assuming that its steps keep
    shrinking at the last rate."""
    shrunk = (before * (before - step)).sum(1)
    whole = (before * before).sum(1) * pace
    predicted = np.divide(whole, shrunk, out=np.ones_like(whole), where=shrunk > 1e-12 * whole)
    return np.asarray(np.clip(predicted, 1.0, MAX_PACE))


def _log_prior(a: Floats) -> float:
    return float(np.log(a).sum() - a.sum())  # Gamma(2, 1) up to a constant
