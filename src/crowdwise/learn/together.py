"""Models of answers alone, with a classifier in the place of the shares of classes.

    (1)  q[i, k] ~ f_k(x_i) * what the model of workers makes of the answers to i
    (2)  the model's own step, with q; then better weights of f: those that raise sum_ik q[i, k] log f_k(x_i)
A network goes one epoch in every sweep; an epoch that would lower (2) is not taken, so that the objective never falls.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import ClimbingModel, Run, Work
from ..engine.model import NOT_NEGATIVE, SHARE, rules
from ..errors import DataError
from ..kernels.layout import Floats
from ..labels import dawid_skene, groups, pooled
from ..labels.groups import TIED, tied_start
from ..labels.majority_vote import MajorityVote
from ..result import Result
from .beside import Beside, side
from .objective import softmax

SWEEPS = ClimbingModel.__dataclass_fields__["max_iter"].metadata


@dataclass(frozen=True, kw_only=True)
class EarlyStop(Beside):
    """A side that may stop as the paper does."""

    max_iter: int = field(default=200, metadata=SWEEPS)
    # Stop where neither the objective nor, on average, the matrices moved by more than this share; 0: at rest.
    early: float = field(default=0.0, metadata=rules(NOT_NEGATIVE))

    def compared(self, params: Any) -> Floats:
        """The probabilities whose moves are looked at."""
        return np.asarray(params.rows)

    def enough(self, before: Any, after: Any, trace: list[float]) -> bool:
        if self.early == 0:
            return False
        was, now = self.compared(before), self.compared(after)
        moved = float(np.mean(np.abs(now - was) / was)) if was.size else 0.0
        return abs(trace[-1] - trace[-2]) <= self.early * abs(trace[-2]) and moved <= self.early


def widened(kind: Any, *names: str) -> Any:
    """A NamedTuple with further fields."""
    return namedtuple(kind.__name__, (*kind._fields, *names))


class Learnt(NamedTuple):
    """Statistics of a model of answers alone, and the posterior that a classifier is to follow."""

    shares: Floats  # (K,)
    counts: Floats  # (R, K)
    Z: Floats  # (T, K)


@dataclass(frozen=True, kw_only=True)
class Together(EarlyStop):
    """A classifier beside a model of answers alone: mixed into that model's class, before it."""

    tied_first: ClassVar[int] = TIED  # sweeps with one matrix for all, from soft votes

    def begin(self, work: Work) -> Floats:
        def told(Z: Floats) -> Floats:
            self.learner.follow(Z)
            return softmax(self.learner.logits())

        return tied_start(work, self.tied_first, told)

    def prior(self, work: Work, params: Any) -> Floats:
        return softmax(params.logits)

    def statistics(self, work: Work, Z: Floats, shares: Floats, params: Any) -> Any:
        found: Any = super().statistics(work, Z, shares, params)  # type: ignore[safe-super]
        return Learnt(found.shares, found.counts, Z)

    def maximise(self, work: Work, stats: Any, params: Any) -> Any:
        workers = super().maximise(work, stats, params)  # type: ignore[safe-super]
        self.learner.follow(stats.Z)
        return self.params_type(*workers, self.learner.logits(), np.asarray(self.learner.log_prior))

    def class_penalty(self, params: Any) -> float:
        return float(params.truth_prior)

    def class_prior(self, params: Any, n_classes: int, task: int | None = None) -> Floats:
        return self.prevalence(params) if task is None else softmax(params.logits[[task]])[0]

    def need(self, answers: Labels, dtype: np.dtype[Any]) -> int:
        return super().need(answers, dtype) + 32 * answers.n_tasks * answers.n_classes


@side("groups", "groups of workers who err alike, found together with their number")
@dataclass(frozen=True, kw_only=True)
class JointGroups(Together, groups.Groups):
    """`groups` beside a classifier: the Crowd Mixture Model where workers are known (Individual)."""

    params_type = widened(groups.Params, "logits", "truth_prior")


@side("tied", "one confusion matrix for all workers, one truth a task: needs no worker ids")
@dataclass(frozen=True, kw_only=True)
class JointTied(Together, groups.Tied):
    """`tied` beside a classifier: what to take where workers are not known (Global)."""

    params_type = JointGroups.params_type
    tied_first = 0


@side("pooled", "confusion matrices drawn around the crowd's, as closely as the data say")
@dataclass(frozen=True, kw_only=True)
class JointPooled(Together, pooled.Pooled):
    """`pooled` beside a classifier; what it reports is not hedged."""

    params_type = widened(pooled.Params, "logits", "truth_prior")
    hedge: float = field(default=0.0, metadata=rules(SHARE))


@side("dl-em", "a confusion matrix for every worker by EM, started from soft votes (Albarqouni et al. 2016)")
@dataclass(frozen=True, kw_only=True)
class DLEM(Together, dawid_skene.DawidSkene):
    """Raykar's EM with a network: Dawid-Skene with a classifier in the place of class shares, an answer added to every
    cell of a matrix."""

    params_type = widened(dawid_skene.Params, "logits", "truth_prior")
    tied_first = 0
    smoothing: float = field(default=1.0, metadata=rules(NOT_NEGATIVE))


@dataclass(frozen=True, kw_only=True)
class Ideal(MajorityVote):
    """The upper bound of a comparison: every task's label is known (gold), and answers are not looked at."""

    name, about = "ideal", "known labels, taught as they are: what could be reached"

    def fit(self, answers: Labels, run: Run | None = None) -> Result:
        missing = int((answers.gold < 0).sum())
        if missing:
            raise DataError(
                f"ideal is taught known labels, and {missing} of {answers.n_tasks} tasks have none. Give gold for all "
                "tasks (cw.Labels(answers.frame(), gold=table)), or leave those tasks out"
            )
        return super().fit(answers, run)
