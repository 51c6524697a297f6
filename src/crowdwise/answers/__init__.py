"""Answers: validated, coded as numbers, read-only; ids kept for the way back."""

from .intake import Dropped, Intake
from .labels import Labels, places
from .pairs import Pairs
from .points import Points

__all__ = ["Dropped", "Intake", "Labels", "Pairs", "Points", "places"]
