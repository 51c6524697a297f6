"""Answers: validated, coded as numbers, read-only; ids kept for the way back."""

from .base import Answers, Dropped, Intake
from .coding import places
from .labels import Labels
from .pairs import Pairs
from .points import Points

__all__ = ["Answers", "Dropped", "Intake", "Labels", "Pairs", "Points", "places"]
