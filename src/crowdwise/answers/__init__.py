"""Answers of every kind: validated, coded as integers, read-only. The original ids are kept."""

from .base import KINDS, Answers, Dropped, Intake
from .coding import places
from .kinds import as_answers, candidates, options_of, recognise
from .labels import Labels
from .pairs import Pairs
from .points import Points
from .split import SplitLabels

__all__ = [
    "KINDS", "Answers", "Dropped", "Intake", "Labels", "Pairs", "Points", "SplitLabels", "as_answers", "candidates",
    "options_of", "places", "recognise",
]  # fmt: skip
