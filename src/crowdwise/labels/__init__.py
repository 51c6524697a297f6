"""Models of answers that are labels, one file each. Adding a file that registers a class is all it takes."""

from ..engine.registry import discover

discover(__name__)
