"""What a model of clicks is: hyperparameters, and a fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from ..answers import Points
from ..engine import Run
from ..engine.model import check
from ..result import PointsResult


@dataclass(frozen=True, kw_only=True)
class PointsModel(ABC):
    """Finds objects in clicks."""

    name: ClassVar[str]
    about: ClassVar[str]  # one line for `crowdwise models`

    def __post_init__(self) -> None:
        check({f.name: f.metadata["rule"] for f in fields(self) if "rule" in f.metadata}, self, f"{self.name}: ")

    def settings(self) -> dict[str, Any]:
        """The hyperparameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @abstractmethod
    def fit(self, points: Points, run: Run | None = None) -> PointsResult:
        """Learn from clicks; everything found is in the PointsResult."""

    def check(self, points: Points) -> None:
        """Refuse what is no clicks."""
        if not isinstance(points, Points):
            from ..errors import DataError

            raise DataError(f"{self.name} finds objects in clicks; got {type(points).__name__}. Give crowdwise.Points")
