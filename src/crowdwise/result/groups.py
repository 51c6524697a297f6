"""Groups of workers who err alike, where a model has found some."""

from __future__ import annotations

from typing import NamedTuple

from ..kernels.layout import Floats


class Grouping(NamedTuple):
    """The groups that a model found, the largest first."""

    share: Floats  # (M,)       of the crowd
    matrices: Floats  # (M, K, K)  confusion matrix of each
    member: Floats  # (W, M)     chance of each worker to be of each group
