"""What a fit says: truth, workers, tasks, trace, doubts."""

from .explain import Explanation
from .groups import Assignment, Grouping
from .points import Objects, PointsResult
from .result import Prediction, Result

__all__ = ["Assignment", "Explanation", "Grouping", "Objects", "PointsResult", "Prediction", "Result"]
