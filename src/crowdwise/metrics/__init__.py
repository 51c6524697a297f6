"""How good a result is where the truth is known."""

from .labels import Judged, area, auc, divergence, expertise, judged, known_classes, rand_index, roc, true_counts
from .matching import match_clusters, match_objects

__all__ = [
    "Judged", "area", "auc", "divergence", "expertise", "judged", "known_classes", "match_clusters", "match_objects",
    "rand_index", "roc", "true_counts",
]  # fmt: skip
