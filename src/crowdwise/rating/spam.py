"""Spammer score and trace of confusion matrices (Raykar & Yu 2011).

(1)  distance = min over v of || pi - 1 v' ||^2 (Frobenius); the best v is the mean of the rows of pi
(2)  score = distance / (K - 1): 0 for who answers whatever the truth is, 1 for answers that give the truth away
(3)  trace = mean of the diagonal of pi
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..kernels.layout import Floats, Ints

MOST = 400_000_000  # cells of confusion matrices beyond which they are not gone through
AT_ONCE = 4_000_000

Matrices = Callable[[Ints], Floats]  # worker numbers (M,) -> (M, K, K)


def spam_and_trace(matrices: Matrices | None, n_workers: int, n_classes: int) -> tuple[Floats, Floats]:
    """(W,) eqs (1) and (3); not-a-number where there is no matrix, or too many cells."""
    distance, trace = np.full(n_workers, np.nan), np.full(n_workers, np.nan)
    cells = n_classes**2
    if matrices is None or n_workers * cells > MOST:
        return distance, trace
    step = max(1, AT_ONCE // cells)
    for start in range(0, n_workers, step):
        part = np.arange(start, min(start + step, n_workers), dtype=np.int32)
        distance[part], trace[part] = of_matrices(matrices(part))
    return distance, trace


def of_matrices(pi: Floats) -> tuple[Floats, Floats]:
    """(M,) distance and trace of matrices (M, K, K)."""
    away = pi - pi.mean(1, keepdims=True)
    return np.einsum("mkl,mkl->m", away, away), np.einsum("mkk->m", pi) / pi.shape[1]
