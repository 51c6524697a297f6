"""The engine shared by all kinds of answers: how models are defined, registered and fitted."""

from ..result.base import Trace
from .executor import Executor, InMemory
from .loop import Problem, Step, best_of, iterate
from .model import Model
from .registry import register
from .run import Checkpoint, Progress, Run

__all__ = [
    "Checkpoint", "Executor", "InMemory", "Model", "Problem", "Progress", "Run", "Step", "Trace", "best_of", "iterate",
    "register",
]  # fmt: skip
