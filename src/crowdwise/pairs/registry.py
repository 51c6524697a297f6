"""Every model of pairs by its name."""

from __future__ import annotations

from typing import Any

from ..engine import make
from .baselines import GaussianItems, Itml, KMeansItems, Mmc, PairVote
from .mixture import PairMixture
from .model import PairsModel
from .scdc import BayesScdc, Scdc

DEFAULT = "pair-mixture"
PAIR_MODELS: dict[str, type[PairsModel]] = {
    kind.name: kind for kind in (PairMixture, BayesScdc, Scdc, PairVote, KMeansItems, GaussianItems, Itml, Mmc)
}


def pair_model(name: str, /, **settings: Any) -> PairsModel:
    """A model of pairs by its name, with hyperparameters.

    >>> pair_model("pair-mixture", restarts=5).settings()["restarts"]
    5
    """
    return make(PAIR_MODELS, name, settings)
