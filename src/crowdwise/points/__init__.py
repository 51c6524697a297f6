"""Models of answers that are clicks. Adding a file that registers a class is all it takes."""

from ..engine.registry import discover
from .baselines import Dbscan, FuzzyCMeans, Hdbscan, KMeansClicks
from .mixture import ClickMixture
from .model import PointsModel
from .stream import ClickStream
from .summary import soft_assignments

discover(__name__)

__all__ = [
    "ClickMixture", "ClickStream", "Dbscan", "FuzzyCMeans", "Hdbscan", "KMeansClicks", "PointsModel",
    "soft_assignments",
]  # fmt: skip
