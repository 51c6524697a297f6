"""Models of answers alone, with a classifier in the place of the shares of classes.

    (1)  q[i, k] ~ f_k(x_i) * what the model of workers makes of the answers to i
    (2)  the model's own step, with q; then better weights of f: those that raise sum_ik q[i, k] log f_k(x_i)
A network goes one epoch in every iteration; an epoch that would lower (2) is undone, so the objective never decreases.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import Executor, Run, register
from ..engine.model import COUNT, NOT_NEGATIVE, SHARE, setting
from ..errors import DataError
from ..kernels.layout import Floats
from ..labels import dawid_skene, groups, pooled
from ..labels.em import Local
from ..labels.majority_vote import MajorityVote
from ..labels.shard import Crowd, Shard
from ..result import LabelsResult
from .base import WorkerSide
from .objective import softmax


@dataclass(frozen=True, kw_only=True)
class EarlyStop(WorkerSide):
    """A side that may stop as the paper does."""

    max_iter: int = setting(200, COUNT, "Iterations at most.")
    early: float = setting(
        0.0, NOT_NEGATIVE, "Stop where objective and matrices changed by no more than this share; 0: when converged."
    )

    def compared(self, params: Any) -> Floats:
        """The probabilities whose changes are looked at."""
        return np.asarray(params.rows)

    def stop_early(self, before: Any, after: Any, objectives: Sequence[float]) -> bool:
        if self.early == 0:
            return False
        was, now = self.compared(before), self.compared(after)
        moved = float(np.mean(np.abs(now - was) / was)) if was.size else 0.0
        return abs(objectives[-1] - objectives[-2]) <= self.early * abs(objectives[-2]) and moved <= self.early


def widened(kind: Any, *names: str) -> Any:
    """A NamedTuple with further fields."""
    return namedtuple(kind.__name__, (*kind._fields, *names))


class Stats(NamedTuple):
    """Statistics of a model of answers alone, and the posterior that a classifier is to follow."""

    shares: Floats  # (K,)
    counts: Floats  # (R, K)
    Z: Floats  # (T, K)


@dataclass(frozen=True, kw_only=True)
class JointModel(EarlyStop):
    """A classifier together with a model of answers alone: mixed into that model's class, before it."""

    tied_first: ClassVar[int] = groups.TIED_ITERATIONS  # iterations with one matrix for all, from soft votes

    def begin(self, crowd: Crowd, shards: Executor[Shard]) -> Any:
        """From soft votes, some iterations with one matrix for all; the classifier follows each."""
        stats: Any = self.from_votes(shards)
        for _ in range(self.tied_first):
            tied = groups.Groups().tied(crowd, stats)
            crowd.truth.follow(stats.Z)
            stats = shards.update(self.warm, JointGroups.params_type(*tied, crowd.truth.logits(), np.zeros(()))).stats
        return stats

    def prior(self, shard: Shard, params: Any) -> Floats:
        return softmax(params.logits)

    def statistics(self, shard: Shard, local: Local, shares: Floats, params: Any) -> Any:
        found: Any = super().statistics(shard, local, shares, params)  # type: ignore[safe-super]
        return Stats(found.shares, found.counts, local.Z)

    def maximise(self, crowd: Crowd, stats: Any, params: Any) -> Any:
        workers = super().maximise(crowd, stats, params)  # type: ignore[safe-super]
        crowd.truth.follow(stats.Z)
        return self.params_type(*workers, crowd.truth.logits(), np.asarray(crowd.truth.log_prior))

    def class_penalty(self, params: Any) -> float:
        return float(params.truth_prior)

    def need(self, answers: Labels, dtype: np.dtype[Any]) -> int:
        return super().need(answers, dtype) + 32 * answers.n_tasks * answers.n_classes


@register("groups", "groups of workers who err alike, found together with their number")
@dataclass(frozen=True, kw_only=True)
class JointGroups(JointModel, groups.Groups):
    """`groups` together with a classifier: the Crowd Mixture Model where workers are known (Individual)."""

    params_type = widened(groups.Params, "logits", "truth_prior")


@register("tied", "one confusion matrix for all workers, one truth per task: needs no worker ids")
@dataclass(frozen=True, kw_only=True)
class JointTied(JointModel, groups.Tied):
    """`tied` together with a classifier: the choice where workers are not known (Global)."""

    params_type = JointGroups.params_type
    tied_first = 0


@register("pooled", "confusion matrices drawn around the crowd's, as closely as the data say")
@dataclass(frozen=True, kw_only=True)
class JointPooled(JointModel, pooled.Pooled):
    """`pooled` together with a classifier; the reported probabilities are not hedged."""

    params_type = widened(pooled.Params, "logits", "truth_prior")
    hedge: float = setting(0.0, SHARE, "Weight of the vote in the reported probabilities.")


@register("dl-em", "a confusion matrix for every worker by EM, started from soft votes (Albarqouni et al. 2016)")
@dataclass(frozen=True, kw_only=True)
class DLEM(JointModel, dawid_skene.DawidSkene):
    """Raykar's EM with a network: Dawid-Skene with a classifier in the place of class shares, an answer added to every
    cell of a matrix."""

    params_type = widened(dawid_skene.Params, "logits", "truth_prior")
    tied_first = 0
    smoothing: float = setting(1.0, NOT_NEGATIVE, "Answers added to every cell of a matrix.")


@register("ideal", "known labels, taught as they are: what could be reached")
@dataclass(frozen=True, kw_only=True)
class Ideal(MajorityVote):
    """The upper bound of a comparison: every task's label is known (gold), and answers are not looked at."""

    kind = "learn"

    def _fit(self, answers: Labels, features: Any, run: Run) -> LabelsResult:
        missing = int((answers.gold < 0).sum())
        if missing:
            raise DataError(
                f"ideal is taught known labels, and {missing} of {answers.n_tasks} tasks have none. Give gold for all "
                "tasks (cw.Labels(answers.frame(), gold=table)), or leave those tasks out"
            )
        return super()._fit(answers, features, run)
