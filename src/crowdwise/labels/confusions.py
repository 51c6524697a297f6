"""What models with whole confusion matrices share. A matrix is kept as rows: a (worker, label) that occurred each."""

from __future__ import annotations

import numpy as np

from ..kernels import TINY
from ..kernels.layout import Floats, Ints, Layout, find_rows, per_worker


def diagonal_hits(layout: Layout, counts: Floats) -> Floats:
    """(W,) expected right answers: the diagonal of expected counts (R, K), added up a worker."""
    right = counts[np.arange(layout.n_rows), layout.row_label].astype(np.float64)
    return per_worker(layout, right)


def mean_rows(layout: Layout, rows: Floats, weight: Floats) -> Floats:
    """(K, K) confusion matrix of all workers taken as one: rows (R, K) weighed by how much each worker (W, K) did."""
    K = layout.n_classes
    matrix = np.full((K, K), TINY)
    for k in range(K):
        matrix[k] += np.bincount(layout.row_label, rows[:, k] * weight[layout.row_worker, k], minlength=K)
    return np.asarray(matrix / matrix.sum(1, keepdims=True))


def row_logs(layout: Layout, worker: Ints, label: Ints, rows: Floats, unseen: Floats, crowd: Floats) -> Floats:
    """(M, K) log-probabilities of pairs (worker, label): from `rows` where the pair occurred, `unseen` (M, K) where a
    known worker never gave that label, and the crowd's matrix for workers that are not known."""
    at, there = find_rows(layout, worker, label)
    out = np.where(there[:, None], rows[at] if layout.n_rows else unseen, unseen).astype(np.float64)
    out[worker < 0] = crowd.T[label[worker < 0]]
    return np.log(np.maximum(out, TINY))
