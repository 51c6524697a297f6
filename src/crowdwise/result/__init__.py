"""What a fit says: truth, workers, tasks, trace, doubts."""

from .explain import Explanation
from .result import Prediction, Result

__all__ = ["Explanation", "Prediction", "Result"]
