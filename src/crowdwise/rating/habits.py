"""Patterns in a worker's answers: agreement with the others, an overused label, one label only."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.layout import Bools, Floats, Ints, PerWorker, WorkerRows, weighted_counts
from .pieces import Piece, parts

# A worker gives one label only if they have at least MIN_ANSWERS answers, at least ONE_LABEL_SHARE of them have that
# label, the log-probability that all are correct is below MAX_LOG_CORRECT, and fewer than MAX_CORRECT are correct.
MIN_ANSWERS = 5
ONE_LABEL_SHARE = 0.9
MAX_LOG_CORRECT = np.log(1e-3)
MAX_CORRECT = 0.85
# A label is overused if its excess is above MIN_EXCESS_SE standard errors and MIN_EXCESS of the worker's answers.
MIN_EXCESS_SE = 3.0
MIN_EXCESS = 0.05


class Habits(NamedTuple):
    agreement: Floats  # (W,) share of the other workers' votes that agree; NaN without other votes
    overuses: Ints  # (W,) the overused label, or -1
    overuse: Floats  # (W,) its excess over the expected count, as a share of the worker's answers
    only: Ints  # (W,) the label of a worker who gives only one label, or -1
    elsewhere: Floats  # (W,) expected share of a worker's answers that are wrong


class HabitSums(NamedTuple):
    """Sums over each worker's answers; they add up over disjoint sets of tasks."""

    same: PerWorker  # (W,) share of the other votes that agree
    compared: PerWorker  # (W,) answers to tasks with other answers
    own: PerWorker  # (W,) posterior of the label given
    logs: PerWorker  # (W,) its logarithm, bounded below


def habit_sums(piece: Piece) -> HabitSums:
    W = piece.answers.n_workers
    sums = HabitSums(*(np.zeros(W) for _ in range(4)))
    for part in parts(piece):
        compared = part.cast > 1
        share = np.divide(part.votes - 1, part.cast - 1, out=np.zeros(len(compared)), where=compared)
        q = piece.posterior[part.task, part.label].astype(np.float64)
        for total, values in zip(sums, (share, compared, q, np.log(np.maximum(q, 0.05))), strict=True):
            total += weighted_counts(part.worker, values, W)
    return sums


def habits(rows: WorkerRows, sums: HabitSums, totals: Floats) -> Habits:
    """Return the patterns of all workers; `totals` (W, K) are the expected classes of each worker's tasks."""
    n = rows.per_worker
    with np.errstate(invalid="ignore", divide="ignore"):
        agreement = np.where(sums.compared > 0, sums.same / sums.compared, np.nan)
    label, excess = _overused(rows, totals)
    top, most = _most_frequent(rows)
    right = sums.own / np.maximum(n, 1)
    only = (n >= MIN_ANSWERS) & (most >= ONE_LABEL_SHARE * n) & (rows.n_classes > 1)
    only &= (sums.logs < MAX_LOG_CORRECT) & (right < MAX_CORRECT)
    return Habits(agreement, label, excess, np.where(only, top, -1), 1 - right)


def _most_frequent(rows: WorkerRows) -> tuple[Ints, Ints]:
    """Return the most frequent label of each worker (W,), and how often they gave it."""
    best = _best_row(rows.worker_ptr, rows.answers)
    some = best >= 0
    return np.where(some, rows.row_label[best], -1), np.where(some, rows.answers[best], 0)


def _overused(rows: WorkerRows, totals: Floats) -> tuple[Ints, Floats]:
    n = rows.per_worker[rows.row_worker].astype(np.float64)
    true = totals[rows.row_worker, rows.row_label]
    excess = rows.answers - true
    share = np.clip(true / n, 0, 1)
    z = excess / np.sqrt(n * share * (1 - share) + 1)
    best = _best_row(rows.worker_ptr, z)
    if not len(z):
        return np.full(len(best), -1), np.full(len(best), np.nan)
    overused: Bools = (best >= 0) & (z[best] > MIN_EXCESS_SE) & (excess[best] > MIN_EXCESS * n[best])
    return np.where(overused, rows.row_label[best], -1), np.where(overused, (excess / n)[best], np.nan)


def _best_row(worker_ptr: Ints, value: NDArray[Any]) -> Ints:
    """Return the row of each worker (W,) with the largest value, the first if several are equal, -1 for none."""
    best = np.full(len(worker_ptr) - 1, -1, np.int64)
    some = np.diff(worker_ptr) > 0
    if len(value):
        top = np.maximum.reduceat(value, worker_ptr[:-1][some])
        worker = np.repeat(np.arange(some.sum()), np.diff(worker_ptr)[some])
        rows = np.flatnonzero(value == top[worker])
        first = np.unique(worker[rows], return_index=True)[1]
        best[some] = rows[first]
    return best


def expected_class_counts(piece: Piece) -> Floats:
    """Return the expected number of each worker's tasks of each class (W, K); adds up over pieces."""
    layout, everyone = piece.layout, np.arange(piece.answers.n_workers, dtype=np.int32)
    by_worker = layout._replace(  # all answers of a worker are one row
        row_ptr=layout.row_ptr[layout.worker_ptr], row_worker=everyone, row_label=everyone
    )
    return piece.kernels.confusion_counts(by_worker, piece.posterior, piece.threads)
