"""What a worker's answers look like beside the others': agreement, a label overused, nothing but one label."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.layout import Bools, Floats, Ints, WorkerRows, weighted_counts
from .pieces import Piece, parts

FEW = 5  # answers below which one label only means nothing
ONE = 0.9  # share of answers from which on "one label only" is said
DOUBT = np.log(1e-3)  # chance that all those tasks really are of that class, below which it is said
ALIKE = 0.85  # share of right answers above which it does no harm
OVERUSED = 3.0  # standard errors from which on a label counts as overused
CELLS = 20_000_000  # of posteriors gathered at a time
SLIGHT = 0.05  # and by at least this share of the worker's answers


class Habits(NamedTuple):
    agreement: Floats  # (W,) share of the others' votes that say the same; not-a-number where nobody else answered
    overuses: Ints  # (W,) the label that stands out, or -1
    overuse: Floats  # (W,) by how much of the worker's answers it goes beyond the truth
    only: Ints  # (W,) the label of a worker who gives one label whatever the truth seems to be, or -1
    elsewhere: Floats  # (W,) share of a worker's answers that seem wrong


class HabitSums(NamedTuple):
    """Sums over each worker's answers; they add up over disjoint sets of tasks."""

    same: Floats  # (W,) share of the other votes that say the same
    compared: Floats  # (W,) answers to tasks that others answered, too
    own: Floats  # (W,) posterior of the label given
    logs: Floats  # (W,) its logarithm, bounded


def habit_sums(piece: Piece) -> HabitSums:
    W = piece.answers.n_workers
    sums = HabitSums(*(np.zeros(W) for _ in range(4)))
    for part in parts(piece):
        met = part.cast > 1
        share = np.divide(part.votes - 1, part.cast - 1, out=np.zeros(len(met)), where=met)
        q = piece.posterior[part.task, part.label].astype(np.float64)
        for total, values in zip(sums, (share, met, q, np.log(np.maximum(q, 0.05))), strict=True):
            total += weighted_counts(part.worker, values, W)
    return sums


def habits(rows: WorkerRows, sums: HabitSums, totals: Floats) -> Habits:
    """`totals` (W, K) is how many of a worker's tasks seem to be of each class."""
    n = rows.per_worker
    with np.errstate(invalid="ignore", divide="ignore"):
        agreement = np.where(sums.compared > 0, sums.same / sums.compared, np.nan)
    label, excess = _overused(rows, totals)
    top, most = _most_told(rows)
    right = sums.own / np.maximum(n, 1)
    only = (n >= FEW) & (most >= ONE * n) & (sums.logs < DOUBT) & (right < ALIKE) & (rows.n_classes > 1)
    return Habits(agreement, label, excess, np.where(only, top, -1), 1 - right)


def _most_told(rows: WorkerRows) -> tuple[Ints, Ints]:
    """(W,) the label that a worker gives most, and how often."""
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
    stands_out: Bools = (best >= 0) & (z[best] > OVERUSED) & (excess[best] > SLIGHT * n[best]) if len(z) else best >= 0
    label = np.where(stands_out, rows.row_label[best], -1) if len(z) else np.full(len(best), -1)
    return label, np.where(stands_out, (excess / n)[best], np.nan) if len(z) else np.full(len(best), np.nan)


def _best_row(worker_ptr: Ints, value: NDArray[Any]) -> Ints:
    """(W,) the row of each worker with the greatest value (the first of equals), -1 for none."""
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
    """(W, K) how many of a worker's tasks seem to be of each class; adds up over pieces."""
    answers, posterior, layout, K = piece.answers, piece.posterior, piece.layout, piece.answers.n_classes
    totals = np.zeros((answers.n_workers, K))
    ends = layout.row_ptr[layout.worker_ptr].astype(np.int64)  # where the answers of each worker begin, in row order
    step = max(1, CELLS // max(K, 1))
    for start in range(0, answers.n_answers, step):
        part = slice(start, min(start + step, answers.n_answers))
        first = int(np.searchsorted(ends, part.start, "right")) - 1
        last = int(np.searchsorted(ends, part.stop, "left"))
        cuts = np.clip(ends[first:last], part.start, None) - part.start
        some = np.diff(np.append(cuts, part.stop - part.start)) > 0
        sums = np.add.reduceat(posterior[layout.task[part]], cuts[some], axis=0, dtype=np.float64)
        totals[first:last][some] += sums
    return totals
