"""Models of clicks, found by name; and clicks that keep coming."""

from .baselines import Dbscan, FuzzyCMeans, Hdbscan, KMeansClicks
from .mixture import ClickMixture
from .model import PointsModel
from .registry import DEFAULT, POINT_MODELS, point_model
from .soft import soft_assignments
from .stream import ClickStream

__all__ = [
    "DEFAULT", "POINT_MODELS", "ClickMixture", "ClickStream", "Dbscan", "FuzzyCMeans", "Hdbscan", "KMeansClicks",
    "PointsModel", "point_model",
    "soft_assignments",
]  # fmt: skip
