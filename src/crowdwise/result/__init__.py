"""Results of a fit: estimated truth, workers, trace and warnings, with one base class for all kinds of answers."""

from .base import BaseResult
from .explain import Explanation
from .groups import Assignment, Grouping
from .labels import FittedLabels, LabelsResult, LeftOut, Prediction
from .pairs import Clusters, PairsResult
from .points import Objects, PointsResult
from .split import SplitResult, TaskTables

__all__ = [
    "Assignment", "BaseResult", "Clusters", "Explanation", "FittedLabels", "Grouping", "LabelsResult", "LeftOut",
    "Objects", "PairsResult", "PointsResult", "Prediction", "SplitResult", "TaskTables",
]  # fmt: skip
