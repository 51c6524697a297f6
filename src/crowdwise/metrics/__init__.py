"""Metrics of a result against a known truth."""

from .labels import Evaluation, area, auc, divergence, evaluate, expertise, known_classes, rand_index, roc, true_counts
from .matching import match_clusters, match_objects

__all__ = [
    "Evaluation", "area", "auc", "divergence", "evaluate", "expertise", "known_classes", "match_clusters",
    "match_objects", "rand_index", "roc", "true_counts",
]  # fmt: skip
