"""Models of same/different answers about pairs of items. Importing this package registers them."""

from ..engine.registry import discover
from .baselines import GaussianItems, Itml, KMeansItems, Mmc, PairVote
from .mixture import PairMixture
from .model import PairsModel
from .scdc import BayesScdc, Scdc

discover(__name__)

__all__ = [
    "BayesScdc", "GaussianItems", "Itml", "KMeansItems", "Mmc", "PairMixture", "PairVote", "PairsModel", "Scdc",
]  # fmt: skip
