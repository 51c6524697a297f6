"""How good a result is where the truth is known."""

from .labels import Judged, area, auc, divergence, expertise, judged, known_classes, rand_index, roc, true_counts
from .matching import Matching, match_clusters, match_objects, matchings

__all__ = [
    "Judged", "Matching", "area", "auc", "divergence", "expertise", "judged", "known_classes", "match_clusters",
    "match_objects", "matchings", "rand_index", "roc", "true_counts",
]  # fmt: skip
