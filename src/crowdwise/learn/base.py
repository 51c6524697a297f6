"""Base classes of the worker sides that are fitted together with a classifier, and the interface of that classifier.

A worker side is a model of labels. Its truth side, a `Learner`, is passed as `features` and is available as
`shard.truth` and `crowd.truth`. A classifier learns from all answers together, so there is a single shard, and
statistics may refer to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

from ..answers import Labels
from ..engine import Run
from ..engine.run import Arrays
from ..errors import ParameterError, flags, phrase
from ..kernels.layout import Floats
from ..labels.em import EMModel
from ..result import LabelsResult
from .objective import Evidence, Objective, softmax


@runtime_checkable
class Learner(Protocol):
    """Truth side: a classifier being trained on the rows of a fit.

    Targets and posteriors have shape (T, K). `theta` are the parameters of the workers; `warm` and `improve` return
    updated ones.
    """

    @property
    def log_prior(self) -> float: ...  # term that its weights add to the objective
    def logits(self, X: Any = None) -> Floats: ...  # (n, K) of new rows, or of the training rows
    def inputs(self) -> Floats: ...  # (T, D) features of the training rows, as numbers
    def imitate(self, Z: Floats) -> None: ...  # train on soft targets
    def follow(self, targets: Floats) -> None: ...  # make some steps towards targets that may still change
    def begin(self, Z: Floats, objective: Objective, theta: Floats) -> None: ...  # initialise from shares of votes
    def warm(self, objective: Objective, theta: Floats, Z: Floats) -> Floats: ...  # improve, with equally easy tasks
    def improve(self, objective: Objective, theta: Floats, Z: Floats) -> Floats: ...
    def evidence(self, objective: Objective, theta: Floats) -> Evidence: ...  # to compare objectives
    def state(self) -> Arrays: ...  # everything that later steps and predictions depend on
    def restore(self, state: Arrays) -> None: ...  # return to a saved state


@dataclass(frozen=True, kw_only=True)
class WorkerSide(EMModel[Any, Any]):
    """Base class of models of workers whose truth side is a classifier."""

    kind = "learn"
    features = "required"
    extras = ("learn",)
    without_features: ClassVar[str] = "It is fitted together with a classifier of features: " + phrase(
        "crowdwise.CrowdClassifier(workers=...).fit(X, answers)",
        f"crowdwise learn FILE {flags(features='FILE', workers='NAME')}",
    )
    asks_classifier: ClassVar[bool] = True  # whether the classifier is its truth side, or is only trained on its result

    def _fit(self, answers: Labels, features: Any, run: Run) -> LabelsResult:
        if not isinstance(features, Learner):
            raise ParameterError(f"{self.name} does not take features directly. {self.without_features}")
        return super()._fit(answers, features, replace(run, shards=1))

    def candidates(self, answers: Labels) -> tuple[WorkerSide, ...]:
        """Return the sides to choose from, if hyperparameters are chosen by `score`."""
        return (self,)

    def score(self, result: LabelsResult) -> float:
        """Return the number by which restarts and candidates are compared."""
        return float(result.trace["objective"][-1])

    def class_prior(self, params: Any, n_classes: int, task: int | None = None) -> Floats:
        return self.prevalence(params) if task is None else softmax(params.logits[[task]])[0]


@dataclass(frozen=True, kw_only=True)
class PriorByClassifier(WorkerSide):
    """A worker side whose class prior is the classifier's prediction.

    Its parameters have the fields `logits` (T, K), `shares` (K,) and `log_prior` (); its statistics have `right` (R,),
    the expected number of right answers of each row.
    """

    def penalty(self, params: Any) -> float:
        return float(params.log_prior)
