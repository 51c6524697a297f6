"""What a worker's answers look like beside the others': agreement, a label overused, nothing but one label."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..answers import Labels
from ..kernels.layout import Bools, Floats, Ints, vote_parts, worker_answers

FEW = 5  # answers below which one label only means nothing
ONE = 0.9  # share of answers from which on "one label only" is said
DOUBT = np.log(1e-3)  # chance that all those tasks really are of that class, below which it is said
ALIKE = 0.85  # share of right answers above which it does no harm
OVERUSED = 3.0  # standard errors from which on a label counts as overused
CELLS = 20_000_000  # of posteriors gathered at a time
SLIGHT = 0.05  # and by at least this share of the worker's answers


class Part(NamedTuple):
    """A run of tasks, and an entry an answer to them."""

    tasks: slice
    answers: slice  # in task order
    task: Ints  # (M,) counted from the start of the table
    worker: Ints
    label: Ints
    votes: Floats  # (M,) votes that the label got on this task, with this one
    cast: Floats  # (M,) votes cast on this task


def parts(answers: Labels) -> Iterator[Part]:
    """All answers, some tasks at a time."""
    layout = answers.layout
    for tasks, votes in vote_parts(answers.kernels, layout, 1):
        inside = slice(int(layout.task_ptr[tasks.start]), int(layout.task_ptr[tasks.stop]))
        rows = layout.pair[inside]
        sizes = np.diff(layout.task_ptr[tasks.start : tasks.stop + 1])
        local = np.repeat(np.arange(len(sizes)), sizes)
        label = layout.row_label[rows]
        yield Part(
            tasks, inside, local + tasks.start, layout.row_worker[rows], label, votes[local, label], sizes[local]
        )


class Habits(NamedTuple):
    agreement: Floats  # (W,) share of the others' votes that say the same; not-a-number where nobody else answered
    overuses: Ints  # (W,) the label that stands out, or -1
    overuse: Floats  # (W,) by how much of the worker's answers it goes beyond the truth
    only: Ints  # (W,) the label of a worker who gives one label whatever the truth seems to be, or -1
    elsewhere: Floats  # (W,) share of a worker's answers that seem wrong


def habits(answers: Labels, posterior: Floats, totals: Floats) -> Habits:
    """`totals` (W, K) is how many of a worker's tasks seem to be of each class."""
    W = answers.n_workers
    same, others, own, logs = (np.zeros(W) for _ in range(4))
    for part in parts(answers):
        met = part.cast > 1
        share = np.divide(part.votes - 1, part.cast - 1, out=np.zeros(len(met)), where=met)
        q = posterior[part.task, part.label].astype(np.float64)
        for sums, values in ((same, share), (others, met), (own, q), (logs, np.log(np.maximum(q, 0.05)))):
            sums += np.bincount(part.worker, values, minlength=W)
    n = worker_answers(answers.layout)
    with np.errstate(invalid="ignore", divide="ignore"):
        agreement = np.where(others > 0, same / others, np.nan)
    label, excess = _overused(answers, totals)
    top, most = _most_told(answers)
    right = own / np.maximum(n, 1)
    only = (n >= FEW) & (most >= ONE * n) & (logs < DOUBT) & (right < ALIKE) & (answers.n_classes > 1)
    return Habits(agreement, label, excess, np.where(only, top, -1), 1 - right)


def _most_told(answers: Labels) -> tuple[Ints, Ints]:
    """(W,) the label that a worker gives most, and how often."""
    layout = answers.layout
    counts = np.diff(layout.row_ptr)
    best = _best_row(layout.worker_ptr, counts)
    told = best >= 0
    return np.where(told, layout.row_label[best], -1), np.where(told, counts[best], 0)


def _overused(answers: Labels, totals: Floats) -> tuple[Ints, Floats]:
    layout = answers.layout
    n = worker_answers(layout)[layout.row_worker].astype(np.float64)
    true = totals[layout.row_worker, layout.row_label]
    excess = np.diff(layout.row_ptr) - true
    share = np.clip(true / n, 0, 1)
    z = excess / np.sqrt(n * share * (1 - share) + 1)
    best = _best_row(layout.worker_ptr, z)
    stands_out: Bools = (best >= 0) & (z[best] > OVERUSED) & (excess[best] > SLIGHT * n[best]) if len(z) else best >= 0
    label = np.where(stands_out, layout.row_label[best], -1) if len(z) else np.full(len(best), -1)
    return label, np.where(stands_out, (excess / n)[best], np.nan) if len(z) else np.full(len(best), np.nan)


def _best_row(worker_ptr: Ints, value: Floats) -> Ints:
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


def seeming_classes(answers: Labels, posterior: Floats) -> Floats:
    """(W, K) how many of a worker's tasks seem to be of each class."""
    layout, K = answers.layout, answers.n_classes
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
