"""Incremental EM: when the answers of a few tasks change, only these tasks and the M-step are computed again.

The statistics of an EM model add up over tasks, so those of the changed tasks can be taken away, with their old answers
and posteriors, and added again with the new ones; the M-step needs nothing but the sums (Neal & Hinton 1998). Each step
increases the same objective as a fit of all answers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..engine import InMemory
from ..kernels import choose
from ..kernels.layout import (
    Floats,
    Ints,
    Subset,
    WorkerRows,
    add_shard,
    compact,
    find_rows,
    minus,
    narrow,
    sort_answers,
    widen,
)
from .em import EMModel, Local
from .shard import Crowd, Shard

MIN_ROUNDS, MAX_ROUNDS = 2, 12  # E-steps of the changed tasks and M-steps, after a first estimate
ROUND_CELLS = 200_000  # (answers + rows) x classes of all rounds, unless there are fewer than MIN_ROUNDS
ROUND_TOL = 1e-3  # the rounds end when no posterior changes by more


class TaskAnswers(NamedTuple):
    """Answers of some tasks, task by task."""

    at: Ints  # (n,) position of the task among those asked for, ascending
    worker: Ints  # (n,)
    label: Ints  # (n,)
    extra: Ints  # (n,) row of the table of other columns, or -1


class Learned(NamedTuple):
    """What is known about workers and classes."""

    rows: WorkerRows
    stats: Any  # sums over all tasks, given their posteriors
    params: Any


class Changed(NamedTuple):
    """Some tasks before and after a change."""

    before: TaskAnswers
    after: TaskAnswers
    gold_before: Ints  # (T,)
    gold: Ints  # (T,)
    Z: Floats  # (T, K) posterior before; of new tasks, anything

    @property
    def n_tasks(self) -> int:
        return len(self.gold)


class Computing(NamedTuple):
    """Options of a computation."""

    n_classes: int
    n_answers: int  # held after the change
    threads: int
    seed: int


def learn_change(
    model: EMModel[Any, Any], known: Learned, changed: Changed, n_workers: int, how: Computing
) -> tuple[Learned, Floats]:
    """Return what is known after a change, and the new posterior (T, K) of the changed tasks."""
    old = small_shard(changed.before, changed.gold_before, known.rows, how)
    part = model.statistics(old, Local(changed.Z), old.shares(changed.Z), narrow(known.params, old.subset))
    rest = add_shard(_copied(known.stats), minus(part), old.subset)
    rows, place = _new_rows(known.rows, changed, n_workers)
    rest = _not_negative(widen(rest, place, lambda each: 0))
    params = widen(known.params, place, _mean)
    new = small_shard(changed.after, changed.gold, rows, how)
    params = model.moved(params, place, old, new)
    crowd = Crowd(choose(how.n_answers, how.n_classes), rows, how.threads, np.dtype(np.float64), how.seed, None)
    local = Local(first_posterior(model, known, new))
    shares, own = new.shares(local.Z), narrow(params, new.subset)
    cells = (rows.n_rows + new.layout.n_answers) * how.n_classes
    rounds = min(max(ROUND_CELLS // max(cells, 1), MIN_ROUNDS), MAX_ROUNDS)
    for turn in range(1 + rounds):
        before = local.Z.copy()
        if turn:
            shares = model.posterior(new, own, local).shares
        stats = add_shard(_copied(rest), model.statistics(new, local, shares, own), new.subset)
        params = model.maximise(crowd, model.renewed(stats, params), params)
        own = narrow(params, new.subset)
        if turn >= MIN_ROUNDS and np.abs(local.Z - before).max(initial=0) <= ROUND_TOL:
            break
    return Learned(rows, stats, model.finish(crowd, params, InMemory([]))), local.Z


def small_shard(answers: TaskAnswers, gold: Ints, rows: WorkerRows, how: Computing) -> Shard:
    """Return a shard of some tasks, with only the rows and workers that occur in it."""
    kernels = choose(how.n_answers, how.n_classes)
    shape = (len(gold), rows.n_workers, how.n_classes)
    task, worker, label = (np.ascontiguousarray(each, np.int32) for each in answers[:3])
    layout, _ = sort_answers(kernels, task, worker, label, shape)
    own, found = compact(layout)
    number, _ = find_rows(rows, layout.row_worker, layout.row_label)
    subset = Subset(number, found.workers, rows.n_rows, rows.n_workers)
    return Shard(kernels, own, gold.astype(np.int32), None, how.threads, np.dtype(np.float64), None, subset)


def first_posterior(model: EMModel[Any, Any], known: Learned, shard: Shard) -> Floats:
    """Return the posterior (T, K) of tasks by what is known; unknown workers are average ones."""
    layout, subset = shard.layout, shard.subset
    worker = layout.row_worker if subset is None else np.asarray(subset.workers)[layout.row_worker]
    worker = np.where(worker < known.rows.n_workers, worker, -1)
    P = np.exp(model.emission(known.params, known.rows, worker, layout.row_label)).astype(np.float64)
    prior = model.class_prior(known.params, layout.n_classes)[None]
    Z = np.zeros((layout.n_tasks, layout.n_classes))
    shard.kernels.confusion_posterior(layout, P, prior, shard.gold, Z, shard.threads)
    return Z


def _new_rows(rows: WorkerRows, changed: Changed, n_workers: int) -> tuple[WorkerRows, Subset]:
    """Return the rows after a change, and the places of the rows before among them. Rows without answers stay."""
    K = rows.n_classes
    keys = rows.row_worker.astype(np.int64) * K + rows.row_label
    after, more = np.unique(changed.after.worker.astype(np.int64) * K + changed.after.label, return_counts=True)
    before, less = np.unique(changed.before.worker.astype(np.int64) * K + changed.before.label, return_counts=True)
    new = after[~_among(after, keys)]
    every = np.insert(keys, np.searchsorted(keys, new), new)
    place = np.searchsorted(every, keys)
    answers = np.zeros(len(every), np.int64)
    answers[place] = rows.answers
    answers[np.searchsorted(every, before)] -= less
    answers[np.searchsorted(every, after)] += more
    worker = every // K
    ends = np.searchsorted(worker, np.arange(n_workers + 1)).astype(np.int32)
    table = WorkerRows(K, worker.astype(np.int32), (every % K).astype(np.int32), ends, answers)
    return table, Subset(place, np.arange(rows.n_workers), len(every), n_workers)


def _among(wanted: Ints, keys: Ints) -> Any:
    """Return which of the wanted keys are among the sorted keys."""
    at = np.searchsorted(keys, wanted)
    return np.append(keys, -1)[at] == wanted


def _mean(values: Any) -> Any:
    return values.mean(0) if len(values) else 0


def _copied(value: Any) -> Any:
    if isinstance(value, tuple):
        return type(value)(*map(_copied, value))
    return None if value is None else np.array(value)


def _not_negative(value: Any) -> Any:
    """Return statistics without the small negative numbers that rounding leaves when answers are taken away."""
    if isinstance(value, tuple):
        return type(value)(*map(_not_negative, value))
    return None if value is None else np.maximum(value, 0)
