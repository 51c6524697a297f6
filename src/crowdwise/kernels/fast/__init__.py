"""The kernels compiled with numba: the same functions as `plain`, for larger tables."""

from __future__ import annotations

import numpy as np

from .confusion import (
    cavity_left_out,
    cavity_posterior,
    confusion_counts,
    confusion_left_out,
    confusion_posterior,
    smooth_posterior,
    smooth_rows,
)
from .difficulty import difficulty_left_out, difficulty_posterior, difficulty_slopes
from .dirichlet import digamma, dirichlet_rows, dirichlet_slopes, gammaln
from .groups import group_counts, group_rows, group_scores
from .match import ability_posterior, ability_slopes, match_counts, match_posterior, votes
from .pairs import pair_counts, pair_influence
from .sorting import build_layout, components, number, numbers_of

STORAGE = np.dtype(np.float32)

__all__ = [
    "STORAGE", "ability_posterior", "ability_slopes", "build_layout", "cavity_left_out",
    "cavity_posterior", "components",
    "confusion_counts", "confusion_left_out", "confusion_posterior", "difficulty_left_out", "difficulty_posterior",
    "difficulty_slopes", "digamma", "dirichlet_rows", "dirichlet_slopes", "gammaln", "group_counts", "group_rows",
    "group_scores", "match_counts", "match_posterior", "number", "numbers_of", "pair_counts", "pair_influence",
    "smooth_posterior", "smooth_rows", "votes",
]  # fmt: skip
