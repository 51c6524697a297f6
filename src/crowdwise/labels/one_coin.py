"""One coin: a worker is correct with the same probability for every true class, and errors are uniform.

    (1)  z_i ~ Categorical(rho)        (2)  l | z_i = k: k with probability p[j], each other label (1 - p[j]) / (K - 1)
    (3)  q[i, k] ~ rho[k] * product over answers n of task i of (p[j] if l = k else (1 - p[j]) / (K - 1))
    (4)  p[j] = (u + sum over j's answers n of q[task_n, label_n]) / (u + v + answers of j)
with Beta(1 + u, 1 + v) priors, so EM maximises log p(labels | rho, p) + sum_j [u log p[j] + v log(1 - p[j])], plus
sum log rho if the class shares are learnt. Derivation in docs/maths/one_coin.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from ..engine import register
from ..engine.model import POSITIVE, setting
from ..kernels import EStepResult
from ..kernels.layout import (
    Floats,
    Ints,
    Layout,
    PerRow,
    PerWorker,
    RowTable,
    find_rows,
    weighted_counts,
    worker_answers,
)
from ..kernels.rules import Real
from ..kernels.special import softmax
from ..rating.skills import match_left_out
from ..result import LeftOut
from .em import EMModel, Local
from .model import PREVALENCE_HELP, PREVALENCE_RULE, class_log_prior, class_shares, even_log
from .shard import Crowd, Shard

MAX_HIT = 1 - 2**-53  # below 1, so that the odds of a worker without known errors are finite


class Params(NamedTuple):
    rho: Annotated[Floats, Real("K", 0, 1, sums=True)]
    hit: Annotated[PerWorker, Real("W", 0, 1)]  # p: probability of a correct answer
    total: Annotated[PerWorker, Real("W", 0)]  # answers and pseudo-counts behind it
    crowd: Annotated[Floats, Real("", 0, 1)]  # the same of an average worker
    shares: Annotated[Floats, Real("K", 0, 1, sums=True)]  # mean posterior


class Stats(NamedTuple):
    shares: Floats  # (K,)
    right: PerRow  # (R,)  expected correct answers


@register("one-coin", "one accuracy for each worker, by EM")
@dataclass(frozen=True, kw_only=True)
class OneCoin(EMModel[Params, Stats]):
    """One accuracy per worker. It suits few answers per worker, or many classes."""

    params_type = Params
    calibration_offset = (-4.4, 0.0)
    right: float = setting(2.0, POSITIVE, "Pseudo-count u of correct answers in the prior of each worker.")
    wrong: float = setting(1.0, POSITIVE, "Pseudo-count v of wrong answers in the prior of each worker.")
    prevalence_is: str = setting("uniform", PREVALENCE_RULE, PREVALENCE_HELP)

    def posterior(self, shard: Shard, params: Params, local: Local) -> EStepResult:  # eq (3)
        layout = shard.layout
        hit = params.hit[layout.row_worker]
        miss, prior = np.log((1 - hit) / max(layout.n_classes - 1, 1)), params.rho[None]
        return shard.kernels.match_posterior(layout, np.log(hit), miss, prior, shard.gold, local.Z, shard.threads)

    def statistics(self, shard: Shard, local: Local, shares: Floats, params: Params | None) -> Stats:
        return Stats(shares, shard.kernels.match_counts(shard.layout, local.Z, shard.threads))

    def maximise(self, crowd: Crowd, stats: Stats, params: Params | None) -> Params:  # eq (4)
        hits, total = self.hits(crowd, stats), crowd.rows.per_worker
        hit = np.minimum((hits + self.right) / (total + self.right + self.wrong), MAX_HIT)
        mean_hit = np.minimum((hits.sum() + self.right) / (total.sum() + self.right + self.wrong), MAX_HIT)
        mean = stats.shares / max(stats.shares.sum(), 1)
        counted = total + self.right + self.wrong
        return Params(class_shares(self.prevalence_is, stats.shares), hit, counted, np.asarray(mean_hit), mean)

    def penalty(self, params: Params) -> float:
        prior = float(np.sum(self.right * np.log(params.hit) + self.wrong * np.log1p(-params.hit)))
        return prior + class_log_prior(self.prevalence_is, params.rho)

    def left_out(self, shard: Shard, params: Params, Z: Floats) -> LeftOut:
        others = max(shard.layout.n_classes - 1, 1)
        odds = np.repeat(params.hit / (1 - params.hit) * others, worker_answers(shard.layout))
        return LeftOut(*match_left_out(shard.layout, shard.gold, Z, odds.__getitem__))

    def leave_one_out(self, shard: Shard, params: Params, Z: Floats, gold: Ints) -> Floats:
        layout, K = shard.layout, shard.layout.n_classes
        task = np.repeat(np.arange(layout.n_tasks), np.diff(layout.task_ptr))
        worker, label = layout.row_worker[layout.pair], layout.row_label[layout.pair]
        total = params.total[worker]
        hit = np.clip((params.hit[worker] * total - Z[task, label]) / (total - 1), 1e-9, 1 - 1e-9)  # eq (4) without i
        miss = np.log((1 - hit) / max(K - 1, 1))
        scores = weighted_counts(task * K + label, np.log(hit) - miss, Z.size).reshape(Z.shape)
        scores += weighted_counts(task, miss, len(Z))[:, None] + np.log(params.rho)
        Z[:] = np.where((gold < 0)[:, None], softmax(scores), Z)
        return Z

    def factors(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        """With `calibrate`, skills without the contribution of the task, as in `leave_one_out`."""
        if not (self.calibrate and isinstance(layout, Layout)):
            return self.emission(params, layout, worker, label)
        given = layout.pair[layout.task_ptr[task] : layout.task_ptr[task + 1]]
        logs = self.emission(params, layout, layout.row_worker[given], layout.row_label[given])
        own = softmax(np.log(params.rho) + logs.sum(0))
        at, there = find_rows(layout, worker, label)
        total = params.total[worker]
        left = np.clip((params.hit[worker] * total - own[label]) / np.maximum(total - 1, 1e-9), 1e-9, 1 - 1e-9)
        hit = np.where(worker >= 0, params.hit[worker], params.crowd)
        return even_log(np.where(there & np.isin(at, given), left, hit), label, layout.n_classes)

    def emission(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: Ints | None = None) -> Floats:
        return even_log(np.where(worker >= 0, params.hit[worker], params.crowd), label, layout.n_classes)
