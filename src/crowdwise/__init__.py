"""Crowdwise: the truth behind many unreliable answers, who is good, what is hard, and how sure it is.

import crowdwise as cw

answers = cw.read("answers.csv")
result = cw.aggregate(answers)
result.labels, result.workers, result.tasks
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public name -> the module it lives in. Loaded at first use, so that `import crowdwise` costs nothing.
_HOME = {
    "Labels": "answers",
    "Points": "answers",
    "Pairs": "answers",
    "Result": "result",
    "PointsResult": "result",
    "PairsResult": "result",
    "Run": "engine",
    "aggregate": "aggregation",
    "model": "aggregation",
    "MODELS": "labels",
    "MajorityVote": "labels.majority_vote",
    "SoftVote": "labels.soft_vote",
    "WeightedVote": "labels.weighted_vote",
    "DawidSkene": "labels.dawid_skene",
    "OneCoin": "labels.one_coin",
    "Pooled": "labels.pooled",
    "Groups": "labels.groups",
    "Tied": "labels.groups",
    "Glad": "labels.glad",
    "Mace": "labels.mace",
    "POINT_MODELS": "points",
    "ClickMixture": "points",
    "ClickStream": "points",
    "FuzzyCMeans": "points",
    "KMeansClicks": "points",
    "Dbscan": "points",
    "Hdbscan": "points",
    "soft_assignments": "points",
    "PAIR_MODELS": "pairs",
    "PairMixture": "pairs",
    "PairVote": "pairs",
    "BayesScdc": "pairs",
    "Scdc": "pairs",
    "match_objects": "matching",
    "match_clusters": "matching",
    "next_pairs": "pairing",
    "compare": "comparison",
    "roc": "scoring",
    "auc": "scoring",
    "expertise": "scoring",
    "divergence": "scoring",
    "rand_index": "scoring",
    "CrowdClassifier": "learn",
    "learn": "learn",
    "rate": "rating",
    "agreement": "reliability",
    "next_tasks": "asking",
    "cost_curve": "asking",
    "review": "asking",
    "simulate": "simulate",
    "read": "io",
    "read_features": "io",
    "read_points": "io",
    "read_pairs": "io",
    "load": "io",
    "errors": "errors",
    "compat": "compat",
}
_MODULES = {"simulate", "errors", "compat", "learn"}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'crowdwise' has no attribute {name!r}")
    module = importlib.import_module(f".{_HOME[name]}", __name__)
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from . import compat, errors, learn, simulate
    from .aggregation import aggregate, model
    from .answers import Labels, Pairs, Points
    from .asking import cost_curve, next_tasks, review
    from .comparison import compare
    from .engine import Run
    from .io import load, read, read_features, read_pairs, read_points
    from .labels import MODELS
    from .labels.dawid_skene import DawidSkene
    from .labels.glad import Glad
    from .labels.groups import Groups, Tied
    from .labels.mace import Mace
    from .labels.majority_vote import MajorityVote
    from .labels.one_coin import OneCoin
    from .labels.pooled import Pooled
    from .labels.soft_vote import SoftVote
    from .labels.weighted_vote import WeightedVote
    from .learn.estimator import CrowdClassifier
    from .matching import match_clusters, match_objects
    from .pairing import next_pairs
    from .pairs import PAIR_MODELS, BayesScdc, PairMixture, PairVote, Scdc
    from .points import (
        POINT_MODELS,
        ClickMixture,
        ClickStream,
        Dbscan,
        FuzzyCMeans,
        Hdbscan,
        KMeansClicks,
        soft_assignments,
    )
    from .rating import rate
    from .reliability import agreement
    from .result import PairsResult, PointsResult, Result
    from .scoring import auc, divergence, expertise, rand_index, roc
