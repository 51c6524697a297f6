"""Clusters of a fit, scored: what the parts of the study of pairs have in common."""

from __future__ import annotations

from typing import Any

from ..answers import Pairs
from ..engine import Run
from ..matching import match_clusters
from ..pairs import PairsModel
from ..result import PairsResult
from .ledger import Figures

SUBSET = 10_000  # images of MNIST and CIFAR-10, unless all are asked for
FEW = 2_000  # with --quick


def scored(model: PairsModel, pairs: Pairs, features: Any, truth: Any, seed: int) -> tuple[PairsResult, Figures]:
    """A fit, and its scores; clusters of five items or more are counted."""
    result = model.fit(pairs, features, Run(seed=seed))
    scores = match_clusters(result, truth)
    kept: Figures = {name: float(scores[name]) for name in ("accuracy", "nmi", "ami")}
    sizes = result.sizes["items"].to_numpy()
    return result, kept | {"clusters": float((sizes >= 5).sum()), "seconds": result.seconds}
