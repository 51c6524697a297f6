"""Models of labels without features, extended by a classifier f as class prior.

    (1)  q[i, k] ~ f_k(x_i) * likelihood of the answers to task i given class k
    (2)  the M-step of the model with q; then new weights of f that increase sum_ik q[i, k] log f_k(x_i)
A network makes one epoch per iteration. An epoch that would decrease (2) is undone, so the objective never decreases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, get_type_hints

import numpy as np

from ..answers import Labels
from ..engine import Executor, Run, register
from ..engine.model import COUNT, NOT_NEGATIVE, YES_NO, setting
from ..errors import DataError, flags, phrase
from ..kernels.layout import Floats, Ints
from ..kernels.rules import Real
from ..labels import dawid_skene, groups, pooled
from ..labels.em import Local
from ..labels.majority_vote import MajorityVote
from ..labels.shard import Crowd, Shard
from ..result import LabelsResult
from .base import WorkerSide
from .objective import softmax


@dataclass(frozen=True, kw_only=True)
class EarlyStop(WorkerSide):
    """Base class of worker sides with the early stopping rule of the paper."""

    max_iter: int = setting(200, COUNT, "Maximum number of iterations.")
    early: float = setting(
        0.0,
        NOT_NEGATIVE,
        "Stop early when the relative change of objective and matrices is at most this; 0: run to convergence.",
    )

    def compared(self, params: Any) -> Floats:
        """Probabilities whose relative change is compared with `early`."""
        return np.asarray(params.rows)

    def stop_early(self, before: Any, after: Any, objectives: Sequence[float]) -> bool:
        if self.early == 0:
            return False
        was, now = self.compared(before), self.compared(after)
        moved = float(np.mean(np.abs(now - was) / was)) if was.size else 0.0
        return abs(objectives[-1] - objectives[-2]) <= self.early * abs(objectives[-2]) and moved <= self.early


def with_fields(kind: Any, **more: Any) -> Any:
    """Return a copy of a NamedTuple class with further fields, by name and type."""
    fields = get_type_hints(kind, include_extras=True) | more
    return NamedTuple(kind.__name__, list(fields.items()))


TRUTH = {"logits": Annotated[Floats, Real("T K")], "truth_prior": Annotated[Floats, Real("")]}  # of the classifier


class Stats(NamedTuple):
    """Statistics of a model without features, and the posterior that the classifier is trained on."""

    shares: Floats  # (K,)
    counts: Floats  # (R, K)
    Z: Floats  # (T, K)


@dataclass(frozen=True, kw_only=True)
class JointModel(EarlyStop):
    """Mixin that adds a classifier to a model without features; it comes before that model in the list of bases."""

    tied_iterations: ClassVar[int] = groups.TIED_ITERATIONS  # initial iterations with one matrix for all workers

    def begin(self, crowd: Crowd, shards: Executor[Shard]) -> Any:
        """Start from soft votes and some iterations with one matrix for all workers; each trains the classifier."""
        stats: Any = self.from_votes(shards)
        for _ in range(self.tied_iterations):
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


@register("groups", "groups of workers with similar errors; estimates the number of groups")
@dataclass(frozen=True, kw_only=True)
class JointGroups(JointModel, groups.Groups):
    """`groups` together with a classifier: the Crowd Mixture Model with worker ids (Individual)."""

    params_type = with_fields(groups.Params, **TRUTH)


@register("tied", "one confusion matrix for all workers, one true class per task; needs no worker ids")
@dataclass(frozen=True, kw_only=True)
class JointTied(JointModel, groups.Tied):
    """`tied` together with a classifier: the recommended model without worker ids (Global)."""

    params_type = JointGroups.params_type
    tied_iterations = 0


@register("pooled", "confusion matrix per worker, shrunk towards the crowd's by as much as the data support")
@dataclass(frozen=True, kw_only=True)
class JointPooled(JointModel, pooled.Pooled):
    """`pooled` together with a classifier; by default without an anchor, copies and calibration."""

    params_type = with_fields(pooled.Params, **TRUTH)
    calibrate: bool = setting(False, YES_NO, "Report calibrated probabilities; otherwise the posterior of the model.")
    anchor: float | None = setting(0.0, pooled.NO_ANCHOR_RULE, "0: there is no anchor beside a classifier.")
    copying: float = setting(1.0, pooled.NO_COPYING_RULE, "1: no search for copies beside a classifier.")

    def weighted(self, shard: Shard, params: Any, worker: Ints | None = None) -> Shard:
        return shard


@register("dl-em", "one confusion matrix per worker by EM, started from soft votes (Albarqouni et al. 2016)")
@dataclass(frozen=True, kw_only=True)
class DLEM(JointModel, dawid_skene.DawidSkene):
    """Raykar's EM with a network: Dawid-Skene with a classifier as class prior."""

    params_type = with_fields(dawid_skene.Params, **TRUTH)
    tied_iterations = 0
    smoothing: float = setting(1.0, NOT_NEGATIVE, "Pseudo-count added to every cell of a confusion matrix.")


@register("ideal", "training on known labels: the upper bound of a comparison")
@dataclass(frozen=True, kw_only=True)
class Ideal(MajorityVote):
    """Upper bound of a comparison: the classifier is trained on known labels (gold) of all tasks, not on answers."""

    kind = "learn"

    def _fit(self, answers: Labels, features: Any, run: Run) -> LabelsResult:
        missing = int((answers.gold < 0).sum())
        if missing:
            raise DataError(
                f"ideal needs a known label for every task, but {missing} of {answers.n_tasks} tasks have none. Give "
                f"all known labels ({phrase('crowdwise.Labels(answers.frame(), gold=table)', flags(gold='FILE'))}), or "
                "omit these tasks"
            )
        return super()._fit(answers, features, run)
