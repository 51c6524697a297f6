"""Metrics of a result against a known truth."""

from .labels import Evaluation, area, auc, divergence, evaluate, expertise, known_classes, rand_index, roc, true_counts
from .matching import Matching, match_clusters, match_images, match_labels, match_objects

__all__ = [
    "Evaluation", "Matching", "area", "auc", "divergence", "evaluate", "expertise", "known_classes", "match_clusters",
    "match_images", "match_labels", "match_objects", "rand_index", "roc", "true_counts",
]  # fmt: skip
