"""What every worker side has that is fitted together with a classifier, and what it asks of that classifier.

A worker side is a model of labels. Its truth side, a `Learner`, is given as `features=` and arrives as `shard.truth`
and `crowd.truth`. Classifiers learn from all answers at once, so there is one shard, and statistics may carry it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

from ..answers import Labels
from ..engine import Run
from ..engine.run import Arrays
from ..errors import ParameterError
from ..kernels.layout import Floats
from ..labels.em import EMModel
from ..result import LabelsResult
from .objective import Objective, softmax


@runtime_checkable
class Learner(Protocol):
    """A truth side: what is learnt from features. Targets and posteriors are (T, K); `theta` are the workers' numbers,
    and `warm` and `improve` return better ones."""

    @property
    def log_prior(self) -> float: ...  # what its weights add to the objective
    def logits(self, X: Any = None) -> Floats: ...  # (n, K) of new rows, or of those learnt from
    def imitate(self, Z: Floats) -> None: ...  # learn soft targets
    def follow(self, targets: Floats) -> None: ...  # some steps towards targets that are not final
    def begin(self, Z: Floats) -> None: ...  # start from shares of votes
    def warm(self, objective: Objective, theta: Floats, Z: Floats) -> Floats: ...  # as if all tasks were equally easy
    def improve(self, objective: Objective, theta: Floats, Z: Floats) -> Floats: ...
    def state(self) -> Arrays: ...  # all that its next steps and predictions depend on
    def restore(self, state: Arrays) -> None: ...  # go to where `state` was taken


@dataclass(frozen=True, kw_only=True)
class WorkerSide(EMModel[Any, Any]):
    """A model of workers whose truth side is a classifier."""

    kind = "learn"
    features = "required"
    extras = ("learn",)
    without_features: ClassVar[str] = (
        "It is fitted together with a classifier of features: crowdwise.CrowdClassifier(workers=...).fit(X, answers)"
    )
    asks_classifier: ClassVar[bool] = True  # whether the classifier is its truth side, or only learns from it

    def _fit(self, answers: Labels, features: Any, run: Run) -> LabelsResult:
        if not isinstance(features, Learner):
            raise ParameterError(f"{self.name} takes no features as they are. {self.without_features}")
        return super()._fit(answers, features, replace(run, shards=1))

    def class_prior(self, params: Any, n_classes: int, task: int | None = None) -> Floats:
        return self.prevalence(params) if task is None else softmax(params.logits[[task]])[0]


@dataclass(frozen=True, kw_only=True)
class PriorByClassifier(WorkerSide):
    """A side whose parameters have `logits` (T, K), `shares` (K,) and `log_prior` (), and whose statistics have `right`
    (R,), the expected right answers of each row."""

    def penalty(self, params: Any) -> float:
        return float(params.log_prior)
