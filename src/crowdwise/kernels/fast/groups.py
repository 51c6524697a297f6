"""Groups of workers with the same confusion matrix, compiled.

The rows of a worker are contiguous, so a block of workers owns its rows; sums over workers are added in block order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import TINY
from ..layout import Floats, RowTable
from ..threads import run
from .blocks import by_workers, jit


@jit
def _counts(worker_ptr, row_label, C, member, out, start, stop):
    K, M = C.shape[1], member.shape[1]
    for j in range(start, stop):
        for r in range(worker_ptr[j], worker_ptr[j + 1]):
            for m in range(M):
                for k in range(K):
                    out[m, row_label[r], k] += member[j, m] * C[r, k]


def group_counts(layout: RowTable, counts: Floats, member: Floats, threads: int) -> Floats:
    bounds, K = by_workers(layout), counts.shape[1]
    out = np.zeros((len(bounds) - 1, member.shape[1], K, K))
    parts = (layout.worker_ptr, layout.row_label, counts, member)
    run(lambda b, start, stop: _counts(*parts, out[b], start, stop), bounds, threads)
    return np.ascontiguousarray(out.sum(0).transpose(0, 2, 1))


@jit
def _scores(worker_ptr, row_label, C, logs, out, start, stop):
    K, M = C.shape[1], out.shape[1]
    for j in range(start, stop):
        for r in range(worker_ptr[j], worker_ptr[j + 1]):
            for m in range(M):
                total = 0.0
                for k in range(K):
                    total += C[r, k] * logs[m, row_label[r], k]
                out[j, m] += total


def group_scores(layout: RowTable, counts: Floats, logs: Floats, threads: int) -> Floats:
    out, turned = np.zeros((layout.n_workers, len(logs))), np.ascontiguousarray(logs.transpose(0, 2, 1))
    parts = (layout.worker_ptr, layout.row_label, counts, turned, out)
    run(lambda b, start, stop: _scores(*parts, start, stop), by_workers(layout), threads)
    return out


@jit
def _rows(worker_ptr, row_label, member, logs, P, start, stop):
    K, M = P.shape[1], member.shape[1]
    for j in range(start, stop):
        for r in range(worker_ptr[j], worker_ptr[j + 1]):
            for k in range(K):
                total = 0.0
                for m in range(M):
                    total += member[j, m] * logs[m, row_label[r], k]
                P[r, k] = max(math.exp(total), TINY)


def group_rows(layout: RowTable, member: Floats, logs: Floats, dtype: Any, threads: int) -> Floats:
    P, turned = np.empty((layout.n_rows, layout.n_classes), dtype), np.ascontiguousarray(logs.transpose(0, 2, 1))
    parts = (layout.worker_ptr, layout.row_label, member, turned, P)
    run(lambda b, start, stop: _rows(*parts, start, stop), by_workers(layout), threads)
    return P
