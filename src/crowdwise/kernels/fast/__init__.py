"""The arithmetic of a sweep, compiled: the same functions as `plain`, for tables that are worth it."""

from __future__ import annotations

import numpy as np

from .confusion import cavity_left_out, confusion_counts, confusion_left_out, confusion_posterior, smooth_rows
from .dirichlet import digamma, dirichlet_rows, dirichlet_slopes, gammaln
from .eased import eased_left_out, eased_posterior, eased_slopes
from .groups import group_counts, group_rows, group_scores
from .match import ability_posterior, ability_slopes, match_counts, match_posterior, votes
from .pairs import pair_counts, pair_influence
from .sorting import components, lay_out, number, numbers_of

STORAGE = np.dtype(np.float32)

__all__ = [
    "STORAGE", "ability_posterior", "ability_slopes", "cavity_left_out", "components", "confusion_counts",
    "confusion_left_out", "confusion_posterior", "digamma", "dirichlet_rows", "dirichlet_slopes", "eased_left_out",
    "eased_posterior", "eased_slopes", "gammaln", "group_counts", "group_rows", "group_scores", "lay_out",
    "match_counts", "match_posterior", "number", "numbers_of", "pair_counts", "pair_influence", "smooth_rows", "votes",
]  # fmt: skip
