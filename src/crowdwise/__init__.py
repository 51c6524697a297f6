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
    "LabelsResult": "result",
    "PointsResult": "result",
    "PairsResult": "result",
    "Run": "engine",
    "aggregate": "aggregation",
    "model": "aggregation",
    "models": "aggregation",
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
    "ClickMixture": "points",
    "FuzzyCMeans": "points",
    "KMeansClicks": "points",
    "Dbscan": "points",
    "Hdbscan": "points",
    "ClickStream": "points",
    "soft_assignments": "points",
    "PairMixture": "pairs",
    "PairVote": "pairs",
    "BayesScdc": "pairs",
    "Scdc": "pairs",
    "KMeansItems": "pairs",
    "GaussianItems": "pairs",
    "Itml": "pairs",
    "Mmc": "pairs",
    "CrowdClassifier": "learn",
    "learn": "learn",
    "rate": "rating",
    "agreement": "inter_rater",
    "next_answers": "acquisition",
    "next_tasks": "acquisition",
    "next_images": "acquisition",
    "next_pairs": "acquisition",
    "cost_curve": "acquisition",
    "expected_accuracy": "acquisition",
    "review": "acquisition",
    "compare": "comparison",
    "inspect": "inspection",
    "match_objects": "metrics",
    "match_clusters": "metrics",
    "roc": "metrics",
    "auc": "metrics",
    "expertise": "metrics",
    "divergence": "metrics",
    "rand_index": "metrics",
    "simulate": "simulate",
    "read": "io",
    "read_content": "io",
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
    from .acquisition import cost_curve, expected_accuracy, next_answers, next_images, next_pairs, next_tasks, review
    from .aggregation import aggregate, model, models
    from .answers import Labels, Pairs, Points
    from .comparison import compare
    from .engine import Run
    from .inspection import inspect
    from .inter_rater import agreement
    from .io import load, read, read_content, read_features, read_pairs, read_points
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
    from .metrics import auc, divergence, expertise, match_clusters, match_objects, rand_index, roc
    from .pairs import BayesScdc, GaussianItems, Itml, KMeansItems, Mmc, PairMixture, PairVote, Scdc
    from .points import ClickMixture, ClickStream, Dbscan, FuzzyCMeans, Hdbscan, KMeansClicks, soft_assignments
    from .rating import rate
    from .result import LabelsResult, PairsResult, PointsResult
