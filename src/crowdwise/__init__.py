"""Crowdwise: estimate true labels, worker skill and task difficulty from many unreliable answers, with uncertainty.

import crowdwise as cw

answers = cw.read("answers.csv")
result = cw.aggregate(answers)
result.labels, result.workers, result.tasks
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any

from . import forks as _forks  # noqa: F401 - it notices forks from now on

__version__ = "0.1.0"

# Public name -> the module it lives in. Loaded at first use, so that `import crowdwise` costs nothing.
# Models are not listed: `_homes` finds their classes in labels/, points/ and pairs/. Those of learn/ are in `cw.learn`.
_HOME = {
    "Labels": "answers",
    "Points": "answers",
    "Pairs": "answers",
    "LabelsResult": "result",
    "PointsResult": "result",
    "PairsResult": "result",
    "Run": "engine",
    "Decision": "engine",
    "aggregate": "aggregation",
    "model": "aggregation",
    "models": "aggregation",
    "LabelStream": "streams",
    "ClickStream": "points",
    "soft_assignments": "points",
    "embed_points": "points",
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
    "label_sets": "acquisition",
    "plan": "acquisition",
    "review": "acquisition",
    "compare": "comparison",
    "inspect": "inspection",
    "match_objects": "metrics",
    "match_clusters": "metrics",
    "match_labels": "metrics",
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
    "convert": "io",
    "questions": "io",
    "export": "io",
    "formats": "io.formats",
    "errors": "errors",
    "compat": "compat",
    "spark": "spark",
}
_MODULES = {"simulate", "errors", "compat", "learn", "spark"}


@cache
def _homes() -> dict[str, str]:
    """Public name -> full name of its module, model classes included."""
    from .discovery import PACKAGES, model_homes

    found = {name: f"{__name__}.{module}" for name, module in _HOME.items()}
    for package in PACKAGES:
        if package != "learn":
            found |= model_homes(f"{__name__}.{package}")
    return found


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    home = "" if name.startswith("_") else _homes().get(name)
    if not home:
        raise AttributeError(f"module 'crowdwise' has no attribute {name!r}")
    if name != "errors":
        from .limits import refuse_small_limits

        refuse_small_limits()
    module = importlib.import_module(home)
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(["__version__", *_homes()])


# What type checkers see. A model that is missing here works, and has the type Any.
if TYPE_CHECKING:
    from . import compat as compat, errors as errors, learn as learn, simulate as simulate, spark as spark
    from .acquisition import (
        cost_curve as cost_curve,
        expected_accuracy as expected_accuracy,
        label_sets as label_sets,
        next_answers as next_answers,
        next_images as next_images,
        next_pairs as next_pairs,
        next_tasks as next_tasks,
        plan as plan,
        review as review,
    )
    from .aggregation import aggregate as aggregate, model as model, models as models
    from .answers import Labels as Labels, Pairs as Pairs, Points as Points
    from .comparison import compare as compare
    from .engine import Decision as Decision, Run as Run
    from .inspection import inspect as inspect
    from .inter_rater import agreement as agreement
    from .io import (
        convert as convert,
        questions as questions,
        export as export,
        load as load,
        read as read,
        read_content as read_content,
        read_features as read_features,
        read_pairs as read_pairs,
        read_points as read_points,
    )
    from .io.formats import formats as formats
    from .labels.dawid_skene import DawidSkene as DawidSkene
    from .labels.glad import Glad as Glad
    from .labels.groups import Groups as Groups, Tied as Tied
    from .labels.mace import Mace as Mace
    from .labels.majority_vote import MajorityVote as MajorityVote
    from .labels.one_coin import OneCoin as OneCoin
    from .labels.pooled import Pooled as Pooled
    from .labels.soft_vote import SoftVote as SoftVote
    from .labels.weighted_vote import WeightedVote as WeightedVote
    from .learn.estimator import CrowdClassifier as CrowdClassifier
    from .metrics import (
        auc as auc,
        divergence as divergence,
        expertise as expertise,
        match_clusters as match_clusters,
        match_labels as match_labels,
        match_objects as match_objects,
        rand_index as rand_index,
        roc as roc,
    )
    from .pairs import (
        BayesScdc as BayesScdc,
        Cspa as Cspa,
        GaussianItems as GaussianItems,
        Itml as Itml,
        KMeansItems as KMeansItems,
        Mcvc as Mcvc,
        Mmc as Mmc,
        MpckMeans as MpckMeans,
        PairMixture as PairMixture,
        PairVote as PairVote,
        Scdc as Scdc,
        SemiCrowd as SemiCrowd,
    )
    from .points import (
        ClickMixture as ClickMixture,
        ClickStream as ClickStream,
        Dbscan as Dbscan,
        FuzzyCMeans as FuzzyCMeans,
        Hdbscan as Hdbscan,
        KMeansClicks as KMeansClicks,
        embed_points as embed_points,
        soft_assignments as soft_assignments,
    )
    from .rating import rate as rate
    from .result import LabelsResult as LabelsResult, PairsResult as PairsResult, PointsResult as PointsResult
    from .streams import LabelStream as LabelStream
