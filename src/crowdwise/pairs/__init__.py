"""Models of same/different answers about pairs of items. Importing this package registers them."""

from ..engine.registry import discover
from .baselines import GaussianItems, Itml, KMeansItems, Mmc, PairVote
from .constrained import Cspa, MpckMeans
from .mcvc import Mcvc
from .mixture import PairMixture
from .model import PairsModel
from .scdc import BayesScdc, Scdc
from .semi_crowd import SemiCrowd

discover(__name__)

__all__ = [
    "BayesScdc", "Cspa", "GaussianItems", "Itml", "KMeansItems", "Mcvc", "Mmc", "MpckMeans", "PairMixture", "PairVote",
    "PairsModel", "Scdc", "SemiCrowd",
]  # fmt: skip
