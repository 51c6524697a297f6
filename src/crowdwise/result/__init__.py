"""What a fit says: truth, workers, tasks, trace, doubts."""

from .explain import Explanation
from .groups import Assignment, Grouping
from .pairs import Clusters, PairsResult
from .points import Objects, PointsResult
from .result import Prediction, Result

__all__ = [
    "Assignment",
    "Clusters",
    "Explanation",
    "Grouping",
    "Objects",
    "PairsResult",
    "PointsResult",
    "Prediction",
    "Result",
]
