"""Answers: validated, coded as numbers, read-only; ids kept for the way back."""

from .intake import Dropped, Intake
from .labels import Labels, places

__all__ = ["Dropped", "Intake", "Labels", "places"]
