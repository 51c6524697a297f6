"""Models of clicks on images. To add a model, add a file here that registers its class."""

from ..engine.registry import discover
from .baselines import Dbscan, FuzzyCMeans, Hdbscan, KMeansClicks
from .embedding import embed_points
from .mixture import ClickMixture
from .model import PointsModel
from .stream import ClickStream
from .summary import soft_assignments

discover(__name__)

__all__ = [
    "ClickMixture", "ClickStream", "Dbscan", "FuzzyCMeans", "Hdbscan", "KMeansClicks", "PointsModel",
    "embed_points", "soft_assignments",
]  # fmt: skip
