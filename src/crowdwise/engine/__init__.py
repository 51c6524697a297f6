"""The engine shared by all kinds of answers: how models are defined, registered and fitted."""

from ..result.base import Trace
from .executor import Executor, InMemory
from .loop import Problem, Step, best_of, iterate
from .model import Model
from .registry import register
from .run import Checkpoint, Progress, Run
from .stream import Decision, Standing, Stream

__all__ = [
    "Checkpoint", "Decision", "Executor", "InMemory", "Model", "Problem", "Progress", "Run", "Standing", "Step",
    "Stream", "Trace", "best_of", "iterate", "register",
]  # fmt: skip
