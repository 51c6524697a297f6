"""MACE: an answer is either honest, and then correct, or a guess from the worker's own label distribution.

    (1)  z_i ~ Uniform                              (2)  g_n ~ Bernoulli(theta[j]),  theta[j] ~ Beta(b, b)
    (3)  l = z_i if g_n = 1, else l ~ Categorical(xi[j]),  xi[j] ~ Dirichlet(c)
Variational Bayes with q(z, g) q(theta) q(xi); t[j] = E log theta, u[j] = E log(1 - theta), x[j, l] = E log xi:
    (4)  q[i, k] ~ 1/K * product over answers n of task i of (exp(t) [l = k] + exp(u + x))
    (5)  honest[j, l] = sum over j's answers n with label l of q[task_n, l] exp(t) / (exp(t) + exp(u + x))
    (6)  theta[j] ~ Beta(b + honest[j, .], b + guesses[j, .]),  xi[j, l] ~ Dirichlet(c + guesses[j, l])
where guesses = answers - honest. The bound is sum_i log(normaliser of (4)) - KL(q(theta)) - KL(q(xi)).
Hovy et al. 2013, Sec. 2-3. Derivation in docs/maths/mace.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from ..engine import register
from ..engine.model import POSITIVE, setting
from ..kernels import EStepResult
from ..kernels.layout import Floats, Ints, PerRow, PerWorker, RowTable, find_rows, per_worker, weighted_counts
from ..kernels.rules import Real
from ..rating.skills import match_left_out
from ..result import LeftOut
from .em import EMModel, Local
from .shard import Crowd, Shard

MAX_LOG_ODDS = 700.0  # their exponential is finite


class Params(NamedTuple):
    honest: Annotated[PerWorker, Real("W", 0)]  # expected honest answers
    guesses: Annotated[PerRow, Real("R", 0)]  # expected guesses of each row
    hit: Annotated[PerRow, Real("R")]  # log(exp(t) + exp(u + x))
    miss: Annotated[PerRow, Real("R")]  # u + x
    bound: Annotated[Floats, Real("")]
    shares: Annotated[Floats, Real("K", 0, 1, sums=True)]  # mean posterior


class Stats(NamedTuple):
    shares: Floats  # (K,)
    right: PerRow  # (R,)  expected correct answers
    honest: PerRow  # (R,)


@register("mace", "honest answers or random guesses, by variational Bayes (Hovy et al. 2013)")
@dataclass(frozen=True, kw_only=True)
class Mace(EMModel[Params, Stats]):
    """Each worker is honest with some probability and otherwise guesses from their own label distribution."""

    params_type = Params
    criterion = "evidence lower bound"
    calibration_offset = (-5.9, 0.75)
    honesty: float = setting(0.5, POSITIVE, "Parameter b of the Beta prior on honesty.")
    habit: float = setting(1.0, POSITIVE, "Parameter c of the Dirichlet prior on guesses.")

    def posterior(self, shard: Shard, params: Params, local: Local) -> EStepResult:  # eq (4)
        layout, prior = shard.layout, self.class_prior(params, shard.layout.n_classes)[None]
        return shard.kernels.match_posterior(layout, params.hit, params.miss, prior, shard.gold, local.Z, shard.threads)

    def statistics(self, shard: Shard, local: Local, shares: Floats, params: Params | None) -> Stats:  # eq (5)
        right = shard.kernels.match_counts(shard.layout, local.Z, shard.threads)
        return Stats(shares, right, right * (0.5 if params is None else _honest_share(params)))

    def renewed(self, stats: Stats, params: Params) -> Stats:
        return stats._replace(honest=stats.right * _honest_share(params))

    def maximise(self, crowd: Crowd, stats: Stats, params: Params | None) -> Params:  # eq (6)
        layout, K, b, c = crowd.rows, crowd.rows.n_classes, self.honesty, self.habit
        guesses = crowd.rows.answers - stats.honest
        honest, guessed = per_worker(layout, stats.honest), per_worker(layout, guesses)
        psi, lgamma = crowd.kernels.digamma, crowd.kernels.gammaln
        below = psi(honest + guessed + 2 * b)
        t, u = psi(honest + b) - below, psi(guessed + b) - below
        x = psi(guesses + c) - psi(guessed + K * c)[layout.row_worker]
        miss = u[layout.row_worker] + x
        hit = np.logaddexp(t[layout.row_worker], miss)
        kl = (honest * t + guessed * u + lgamma(honest + guessed + 2 * b)).sum()  # KL of theta
        kl -= (lgamma(honest + b) + lgamma(guessed + b)).sum()
        kl += (guesses * x - lgamma(guesses + c)).sum() + lgamma(guessed + K * c).sum()  # KL of xi
        one = lgamma(np.array([b, 2 * b, c, K * c]))
        kl += len(honest) * (2 * one[0] - one[1] - one[3]) + len(guesses) * one[2]
        return Params(honest, guesses, hit, miss, np.asarray(-kl), stats.shares / max(stats.shares.sum(), 1))

    def penalty(self, params: Params) -> float:
        return float(params.bound)

    def factors(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        """Return the factors of eq (4) if the worker gave this label in the fit, else those of the posterior means."""
        at, there = find_rows(layout, worker, label)
        means = self.emission(params, layout, worker, label)
        if not layout.n_rows:
            return means
        own = np.repeat(params.miss[at][:, None], layout.n_classes, axis=1)
        own[np.arange(len(label)), label] = params.hit[at]
        return np.where(there[:, None], own, means)

    def left_out(self, shard: Shard, params: Params, Z: Floats) -> LeftOut:
        odds = np.repeat(np.exp(np.minimum(params.hit - params.miss, MAX_LOG_ODDS)), np.diff(shard.layout.row_ptr))
        return LeftOut(*match_left_out(shard.layout, shard.gold, Z, odds.__getitem__))

    def class_prior(self, params: Params, n_classes: int, task: int | None = None) -> Floats:
        return np.full(n_classes, 1 / n_classes)

    def emission(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: Ints | None = None) -> Floats:
        """Use the posterior means of theta and xi; an unknown worker has the crowd's."""
        K, b, c = layout.n_classes, self.honesty, self.habit
        guessed = per_worker(layout, params.guesses)
        at, there = find_rows(layout, worker, label)
        own = np.where(there, params.guesses[at] if layout.n_rows else 0.0, 0.0)
        theta = (params.honest[worker] + b) / (params.honest[worker] + guessed[worker] + 2 * b)
        habit = (own + c) / (guessed[worker] + K * c)
        stranger = worker < 0
        theta[stranger] = (params.honest.sum() + b) / (params.honest.sum() + guessed.sum() + 2 * b)
        by_label = weighted_counts(layout.row_label, params.guesses, K)
        habit[stranger] = (by_label[label[stranger]] + c) / (guessed.sum() + K * c)
        out = np.repeat(((1 - theta) * habit)[:, None], K, axis=1)
        out[np.arange(len(label)), label] += theta
        return np.asarray(np.log(out))


def _honest_share(params: Params) -> Floats:
    """Return the probability (R,) that an answer is honest if it is correct: the last factor of eq (5)."""
    return np.asarray(-np.expm1(params.miss - params.hit))
