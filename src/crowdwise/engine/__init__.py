"""The one engine: how models are fitted."""

from .climb import ClimbingModel
from .model import LabelModel, Work
from .registry import make
from .run import Checkpoint, Run, Step

__all__ = ["Checkpoint", "ClimbingModel", "LabelModel", "Run", "Step", "Work", "make"]
