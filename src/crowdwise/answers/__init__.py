"""Answers: validated, coded as numbers, read-only; ids kept for the way back."""

from .intake import Dropped, Intake
from .labels import Labels, places
from .points import Points

__all__ = ["Dropped", "Intake", "Labels", "Points", "places"]
