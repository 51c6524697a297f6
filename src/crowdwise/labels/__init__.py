"""Models of labels, one file each. To add a model, add a file that registers its class."""

from ..engine.registry import discover

discover(__name__)
