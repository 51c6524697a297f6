"""Models of same/different answers about pairs, found by name."""

from .baselines import GaussianItems, Itml, KMeansItems, Mmc, PairVote
from .mixture import PairMixture
from .model import PairsModel
from .registry import DEFAULT, PAIR_MODELS, pair_model
from .scdc import BayesScdc, Scdc

__all__ = [
    "DEFAULT", "PAIR_MODELS", "BayesScdc", "GaussianItems", "Itml", "KMeansItems", "Mmc", "PairMixture", "PairVote",
    "PairsModel", "Scdc", "pair_model",
]  # fmt: skip
