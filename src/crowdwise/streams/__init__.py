"""Streams of answers that keep coming; those of clicks are in `points`."""

from .labels import LabelStream

__all__ = ["LabelStream"]
