"""What a fit says: truth, workers, tasks, trace, doubts."""

from .explain import Explanation
from .groups import Grouping
from .result import Prediction, Result

__all__ = ["Explanation", "Grouping", "Prediction", "Result"]
