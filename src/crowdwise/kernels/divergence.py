"""How far confusion matrices are from each other, and from certainty. They are (..., K, K), a row a true class."""

from __future__ import annotations

import numpy as np

from .layout import Floats

LEAST = 1e-7  # probabilities below are taken as this


def divergence(first: Floats, second: Floats) -> Floats:
    """(...) Jensen-Shannon divergence of two matrices, the mean over rows, in bits: from 0 to 1."""
    p, q = np.clip(first, LEAST, 1), np.clip(second, LEAST, 1)
    middle = (p + q) / 2
    rows = (p * np.log2(p / middle)).sum(-1) + (q * np.log2(q / middle)).sum(-1)
    return np.asarray(rows.mean(-1) / 2)


def similarity(matrices: Floats) -> Floats:
    """(...) how near matrices are to the identity: 1 minus the divergence from it."""
    return np.asarray(1 - divergence(matrices, np.eye(matrices.shape[-1])))


def entropy(matrices: Floats) -> Floats:
    """(...) mean entropy of a row, in bits: from 0 to log2 K."""
    p = np.clip(matrices, LEAST, 1)
    return np.asarray(np.abs((p * np.log2(p)).sum(-1)).mean(-1))
