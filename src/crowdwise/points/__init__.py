"""Models of clicks, found by name."""

from .mixture import ClickMixture
from .model import PointsModel

__all__ = ["ClickMixture", "PointsModel"]
