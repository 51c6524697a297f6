"""GLAD: the chance of a correct answer depends on the worker's ability times the task's ease.

    (1)  z_i ~ Categorical(rho)
    (2)  answer n is correct with probability sigma(x_n),  x_n = ability[j] * ease[i];  errors are uniform
    (3)  q[i, k] ~ rho[k] * product over answers n of task i of (sigma(x_n) if l = k else sigma(-x_n) / (K - 1))
    (4)  ability[j] ~ Normal(1, 1)        (5)  ease[i] ~ Normal(1, v), at least 0.05
EM whose M-step uses the quadratic bound on log sigma that touches at the current x, with curvature
c_n = tanh(x_n / 2) / (2 x_n). Both updates have a closed form, and log p(labels) + log priors never decreases:
    (6)  ability[j] = (1 + sum_n (h_n - 1/2) ease[i]) / (1 + sum_n c_n ease[i]^2),    h_n = q[task_n, label_n]
    (7)  ease[i] = max(0.05, (1/v + sum_n (h_n - 1/2) ability[j]) / (1/v + sum_n c_n ability[j]^2))
Difficulty is 1 / ease. Whitehill et al. 2009 use gradients in log ease instead. Derivation in docs/maths/glad.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from ..engine import register
from ..engine.model import POSITIVE, setting
from ..kernels import EStepResult
from ..kernels.layout import Floats, Ints, PerRow, PerWorker, RowTable, worker_answers
from ..kernels.rules import Real
from ..kernels.special import expit
from ..rating.skills import match_left_out
from ..result import LeftOut
from .em import EMModel, Local
from .model import PREVALENCE_HELP, PREVALENCE_RULE, class_log_prior, class_shares, even_log
from .shard import Crowd, Shard

MIN_EASE = 0.05


class Params(NamedTuple):
    rho: Annotated[Floats, Real("K", 0, 1, sums=True)]
    ability: Annotated[PerWorker, Real("W")]
    ease: Annotated[Floats, Real("T", 0, optional=True)]  # in the shards during the fit, copied here at the end
    shares: Annotated[Floats, Real("K", 0, 1, sums=True)]  # mean posterior


class Stats(NamedTuple):
    shares: Floats  # (K,)
    right: PerRow  # (R,)  expected correct answers
    rise: PerWorker  # (W,)  sum in the numerator of (6)
    curve: PerWorker  # (W,)  sum in its denominator


@register("glad", "ability of workers and difficulty of tasks, by EM (Whitehill et al. 2009)")
@dataclass(frozen=True, kw_only=True)
class Glad(EMModel[Params, Stats]):
    """An ability for each worker and a difficulty for each task."""

    params_type = Params
    calibration_offset = (-3.5, 0.0)
    can_stream = False  # the curvature of an answer depends on the ability at the time when it was counted
    spread: float = setting(1.0, POSITIVE, "Variance v of the prior on ease.")
    prevalence_is: str = setting("uniform", PREVALENCE_RULE, PREVALENCE_HELP)

    def posterior(self, shard: Shard, params: Params, local: Local) -> EStepResult:  # eq (3)
        ease = local.own["ease"] = local.own["next"]
        found = shard.kernels.ability_posterior(
            shard.layout, params.ability, ease, params.rho[None], shard.gold, local.Z, shard.threads
        )
        prior = -0.5 / self.spread * float(((ease - 1) ** 2).sum())  # eq (5)
        return found._replace(evidence=found.evidence + prior)

    def statistics(self, shard: Shard, local: Local, shares: Floats, params: Params | None) -> Stats:
        layout = shard.layout
        ability = np.ones(layout.n_workers) if params is None else params.ability
        ease = np.ones(layout.n_tasks) if params is None else local.own["ease"]
        slopes, v = shard.kernels.ability_slopes, self.spread
        rise, curve = slopes(layout, ability, ease, local.Z, False, shard.threads)
        ease = local.own["next"] = np.maximum(MIN_EASE, (1 / v + rise) / (1 / v + curve))  # eq (7)
        rise, curve = slopes(layout, ability, ease, local.Z, True, shard.threads)
        return Stats(shares, shard.kernels.match_counts(layout, local.Z, shard.threads), rise, curve)

    def maximise(self, crowd: Crowd, stats: Stats, params: Params | None) -> Params:
        ability = (1 + stats.rise) / (1 + stats.curve)  # eq (6)
        mean = stats.shares / max(stats.shares.sum(), 1)
        return Params(class_shares(self.prevalence_is, stats.shares), ability, np.zeros(0), mean)

    def with_tasks(self, params: Params, local: Sequence[Local]) -> Params:
        return params._replace(ease=np.concatenate([each.own["ease"] for each in local]))

    def penalty(self, params: Params) -> float:
        prior = -0.5 * float(((params.ability - 1) ** 2).sum())
        return prior + class_log_prior(self.prevalence_is, params.rho)

    def left_out(self, shard: Shard, params: Params, Z: Floats) -> LeftOut:
        layout = shard.layout
        ability = np.repeat(params.ability, worker_answers(layout))
        others = max(layout.n_classes - 1, 1)

        def odds(part: slice) -> Floats:
            return np.asarray(np.exp(ability[part] * params.ease[layout.task[part]]) * others)

        return LeftOut(*match_left_out(layout, shard.gold, Z, odds))

    def difficulty(self, params: Params) -> Floats:
        return 1 / params.ease

    def emission(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: Ints | None = None) -> Floats:
        """Tasks of the fit have their own ease, others ease 1; an unknown worker has the mean ability."""
        ease = 1.0 if task is None else params.ease[task]
        ability = np.where(worker >= 0, params.ability[worker], params.ability.mean())
        return even_log(expit(ability * ease), label, layout.n_classes)

    def factors(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        return self.emission(params, layout, worker, label, np.full(len(worker), task))
