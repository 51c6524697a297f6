"""What every worker side has that is fitted beside a classifier, and what it asks of that classifier."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from ..answers import Labels
from ..engine import ClimbingModel, LabelModel, Run
from ..errors import ParameterError
from ..kernels.layout import Floats
from ..result import Result

if TYPE_CHECKING:
    from .objective import Objective

SIDES: dict[str, type[LabelModel]] = {}
S = TypeVar("S", bound="type[LabelModel]")
B = TypeVar("B", bound="Beside")


def side(name: str, about: str) -> Any:
    """Give a worker side its name and one line about it."""

    def keep(kind: S) -> S:
        kind.name, kind.about = name, about
        SIDES[name] = kind
        return kind

    return keep


class Learner(Protocol):
    """A truth side: what is learnt of features."""

    @property
    def log_prior(self) -> float: ...
    def logits(self, X: Floats | None = None) -> Floats: ...
    def imitate(self, Z: Floats) -> None: ...
    def begin(self, Z: Floats) -> None: ...
    def warm(self, objective: Objective, theta: Floats, Z: Floats) -> Floats: ...
    def improve(self, objective: Objective, theta: Floats, Z: Floats) -> Floats: ...
    def follow(self, targets: Floats) -> None: ...


class Beside(ClimbingModel[Any, Any]):
    """A model of workers whose truth side is a classifier."""

    needs_features = True
    asks_classifier: ClassVar[bool] = True  # whether the classifier is its truth side, or only learns from it
    learner: ClassVar[Any] = None  # the truth side, while fitting

    def with_learner(self: B, learner: Learner) -> B:
        """The same side beside a truth side."""
        new = replace(self)
        object.__setattr__(new, "learner", learner)
        return new

    def fit(self, answers: Labels, run: Run | None = None) -> Result:
        """Learn from answers whose features the learner has."""
        if self.learner is None:
            raise ParameterError(f"{self.name} goes with a classifier: fit crowdwise.CrowdClassifier(workers=...)")
        if run is not None and run.resume is not None:
            raise ParameterError(f"{self.name} cannot go on from a checkpoint: its classifier is not in it")
        return super().fit(answers, run)
