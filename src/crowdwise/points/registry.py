"""Every model of clicks by its name."""

from __future__ import annotations

from typing import Any

from ..engine import make
from .baselines import Dbscan, FuzzyCMeans, Hdbscan, KMeansClicks
from .mixture import ClickMixture
from .model import PointsModel

DEFAULT = "click-mixture"
POINT_MODELS: dict[str, type[PointsModel]] = {
    kind.name: kind for kind in (ClickMixture, FuzzyCMeans, KMeansClicks, Dbscan, Hdbscan)
}


def point_model(name: str, /, **settings: Any) -> PointsModel:
    """A model of clicks by its name, with hyperparameters.

    >>> point_model("dbscan", distance=3.0).settings()
    {'distance': 3.0, 'at_least': 3}
    """
    return make(POINT_MODELS, name, settings)
