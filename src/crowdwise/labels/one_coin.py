"""One coin: a worker is right with one chance, whatever the truth, and errs evenly.

    (1)  z_i ~ Categorical(rho)        (2)  l | z_i = k: k with probability p[j], each other label (1 - p[j]) / (K - 1)
    (3)  q[i, k] ~ rho[k] * product over answers n of task i of (p[j] if l = k else (1 - p[j]) / (K - 1))
    (4)  p[j] = (u + sum over j's answers n of q[task_n, label_n]) / (u + v + answers of j)
with Beta(1 + u, 1 + v) priors, so EM climbs log p(labels | rho, p) + sum_j [u log p[j] + v log(1 - p[j])], and, where
the shares of classes are learnt, + sum log rho. Derivation in docs/maths/one_coin.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..engine import ClimbingModel, Work
from ..engine.model import POSITIVE, even_log, rules
from ..kernels import Swept
from ..kernels.layout import Floats, Ints, Layout, per_worker, worker_answers
from ..rating.left_out import match_left_out
from .classes import PREVALENCE, class_log_prior, class_shares
from .registry import register


class Params(NamedTuple):
    rho: Floats  # (K,)
    hit: Floats  # (W,)  p: chance of a right answer
    crowd: Floats  # ()   of an average worker
    shares: Floats  # (K,) mean posterior


class Stats(NamedTuple):
    shares: Floats  # (K,)
    right: Floats  # (R,)  expected right answers


@register("one-coin", "one chance of being right for every worker, by EM")
@dataclass(frozen=True, kw_only=True)
class OneCoin(ClimbingModel[Params, Stats]):
    """One number a worker: for few answers, or many classes."""

    params_type = Params
    off = (-4.4, 0.0)
    right: float = field(default=2.0, metadata=rules(POSITIVE))  # u
    wrong: float = field(default=1.0, metadata=rules(POSITIVE))  # v
    prevalence_is: str = field(default="uniform", metadata=PREVALENCE)

    def posterior(self, work: Work, params: Params, Z: Floats) -> Swept:  # eq (3)
        layout = work.layout
        hit = params.hit[layout.row_worker]
        miss = np.log((1 - hit) / max(layout.n_classes - 1, 1))
        return work.kernels.match_posterior(layout, np.log(hit), miss, params.rho[None], work.gold, Z, work.threads)

    def statistics(self, work: Work, Z: Floats, shares: Floats, params: Params | None) -> Stats:
        return Stats(shares, work.kernels.match_counts(work.layout, Z, work.threads))

    def maximise(self, work: Work, stats: Stats, params: Params | None) -> Params:  # eq (4)
        hits, total = self.hits(work, stats), worker_answers(work.layout)
        hit = (hits + self.right) / (total + self.right + self.wrong)
        crowd = np.asarray((hits.sum() + self.right) / (total.sum() + self.right + self.wrong))
        mean = stats.shares / max(stats.shares.sum(), 1)
        return Params(class_shares(self.prevalence_is, stats.shares), hit, crowd, mean)

    def penalty(self, params: Params) -> float:
        prior = float(np.sum(self.right * np.log(params.hit) + self.wrong * np.log1p(-params.hit)))
        return prior + class_log_prior(self.prevalence_is, params.rho)

    def hits(self, work: Work, stats: Stats) -> Floats:
        return per_worker(work.layout, stats.right)

    def left_out(self, work: Work, params: Params, Z: Floats) -> tuple[Floats, Floats]:
        odds = np.repeat(params.hit / (1 - params.hit) * max(work.layout.n_classes - 1, 1), worker_answers(work.layout))
        return match_left_out(work.layout, work.gold, Z, odds.__getitem__)

    def prevalence(self, params: Params) -> Floats:
        return params.shares

    def class_prior(self, params: Params, n_classes: int, task: int | None = None) -> Floats:
        return params.rho

    def emission(self, params: Params, layout: Layout, worker: Ints, label: Ints, task: Ints | None = None) -> Floats:
        return even_log(np.where(worker >= 0, params.hit[worker], params.crowd), label, layout.n_classes)
