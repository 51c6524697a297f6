"""The compiled kernels of clicks. `kernels.clicks` has the same functions in numpy, for small tables."""

from .assigning import assign_clicks, reliability_scores, truncate
from .merging import apply_merges, betas, expect, fit_components, improve, peaks, prices

__all__ = [
    "apply_merges", "assign_clicks", "betas", "expect", "fit_components", "improve", "peaks", "prices",
    "reliability_scores", "truncate",
]  # fmt: skip
