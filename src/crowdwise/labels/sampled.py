"""A sample of whole tasks of a large table, fits of the model to it, and pairs of answers to one task.

`dependence` and `copies` estimate from these how far answers depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import Executor, Run
from ..kernels.layout import Bools, Floats, Ints, Layout, weighted_counts
from ..kernels.plain import cavity_logs, sum_rows
from .shard import Shard, spread

if TYPE_CHECKING:
    from .pooled import Pooled

MAX_SAMPLE_ANSWERS = 30_000
MAX_SAMPLE_PAIRS = 150_000  # pairs of answers to one task
MAX_PAIR_CELLS = 6_000_000  # pairs x classes
MAX_TASK_ANSWERS = 60  # answers of a task that are paired
MAX_ITERATIONS, TOLERANCE = 25, 1e-3  # of a fit to the sample
MIN_RELEVANT = 0.01  # probability from which a class matters to a pair of answers


class Found(NamedTuple):
    """What was found about the dependence between answers."""

    anchor: float  # weight h of the vote in the fit
    shared: float  # x of eq (4) of `dependence`
    trust: float  # of eq (5) of `dependence`
    excess: float  # of eq (3) of `dependence`
    error: float  # its standard error; infinite if the excess is not known
    cluster: Ints  # (W,) cluster of copies of each worker, or -1
    copying: Floats  # (G,) rate r of each cluster
    group: Ints  # (W,) group that agrees beyond the crowd, or -1; its answers count fully
    agreeing: Floats  # rate r of each group
    alone: float = 0.0  # 1 if no task has answers of two workers
    a: Floats | None = None  # (K, K) pseudo-counts of the crowd in a free fit to the sample: a start for others


def independent(n_workers: int, anchor: float) -> Found:
    """Return what to assume if nothing is known."""
    none = np.full(n_workers, -1, np.int32)
    return Found(anchor, 1.0, 1.0, 0.0, np.inf, none, np.zeros(0), none, np.zeros(0))


def sample_of(answers: Any, shards: Executor[Shard]) -> Labels:
    """Return the answers, or whole tasks of a large table, chosen by a hash of their ids."""
    pairs, n_classes = sum(shards.each(_count_pairs)), max(answers.n_classes, 1)
    most = min(MAX_SAMPLE_PAIRS, MAX_PAIR_CELLS // n_classes)
    step = max(1, -(-answers.n_answers // MAX_SAMPLE_ANSWERS), -(-pairs // most))
    if not answers.in_parts:
        return answers.only(chosen_tasks(answers, step))  # type: ignore[no-any-return]
    return joined(answers, list(shards.each(task_sample, step)))


def joined(answers: Any, parts: list[Any]) -> Labels:
    """Return samples of tasks of all parts of a table as one table."""
    starts = np.cumsum([0, *(len(part.gold) for part in parts)])
    task = np.concatenate([part.task + start for part, start in zip(parts, starts[:-1], strict=True)]).astype(np.int32)
    worker, label = (np.concatenate([getattr(part, of) for part in parts]) for of in ("worker", "label"))
    return answers.sample(task, worker, label, np.concatenate([part.gold for part in parts]))  # type: ignore[no-any-return]


class TaskSample(NamedTuple):
    """Some tasks of a shard with their answers; workers are those of the whole table."""

    task: Ints  # (N,) numbered from 0
    worker: Ints
    label: Ints
    gold: Ints  # (T,)


def task_sample(shard: Shard, local: Any, step: int) -> TaskSample:
    """Return about one in `step` tasks of a shard."""
    some = shard.answers.only(chosen_tasks(shard.answers, step))
    task, worker, label = some.codes()
    return TaskSample(task, shard.whole_workers()[worker].astype(np.int32), label, some.gold)


def chosen_tasks(answers: Labels, step: int) -> Ints:
    """Return the numbers of about one in `step` tasks."""
    return np.arange(answers.n_tasks) if step == 1 else np.flatnonzero(answers.task_keys.to_numpy() % step == 0)


def _count_pairs(shard: Shard, local: Any) -> int:
    n = np.minimum(np.diff(shard.layout.task_ptr), MAX_TASK_ANSWERS).astype(np.int64)
    return int((n * (n - 1)).sum() // 2)


class Fit(NamedTuple):
    """A fit to the sample, by answer in task order."""

    sample: Labels
    params: Any
    Z: Floats  # (T, K) posterior
    U: Floats  # (T, K) mixture with the anchor, with which counts were summed
    weight: Floats | None  # (N,)
    task: Ints  # (N,), as the others
    worker: Ints
    label: Ints
    logs: Floats  # (N, K) log-factors without the contribution of the task
    scores: Floats  # (T, K) their sums with the log-prior


def fit(model: Pooled, sample: Labels, run: Run, anchor: float, cluster: Ints, rates: list[float]) -> Fit:
    """Fit the model to a sample, with a given anchor and given clusters of copies."""
    crowd, shards = spread(sample, run)
    given = independent(sample.n_workers, anchor)._replace(cluster=cluster, copying=np.array(rates))
    learnt = model.learn_given(given, sample, crowd, shards, run.begin(), max_iter=MAX_ITERATIONS, tol=TOLERANCE)
    params = learnt.params
    shard, local = next(iter(shards.each(_both)))
    Z = local.Z.astype(np.float64)
    shard, U = model.fitted_with(shard, params, Z.copy())
    task, worker, label = sample.codes()
    logs = cavity_logs(shard.layout, params.counts, params.totals, params.a, U, shard.weight)
    prior = np.log(params.n + 1) - np.log(params.n.sum() + sample.n_classes)
    return Fit(
        sample, params, Z, U, shard.weight, task, worker, label, logs,
        sum_rows(shard.layout.task_ptr, np.arange(len(logs)), logs) + prior,
    )  # fmt: skip


def _both(shard: Any, local: Any) -> tuple[Any, Any]:
    return shard, local


def label_shares(sample: Labels) -> Floats:
    """Return the share of each label among all answers (K,)."""
    rows = sample.row_table
    counts = weighted_counts(rows.row_label, np.diff(sample.layout.row_ptr), sample.n_classes)
    return np.asarray(counts / max(counts.sum(), 1))


class ByClass(NamedTuple):
    """Pairs of answers to tasks that may be of class k, and the probability of agreement if they are."""

    k: int
    pairs: Ints  # numbers of the pairs
    agree: Floats  # probability


def answer_pairs(layout: Layout) -> tuple[Ints, Ints]:
    """Return pairs of answers to the same task, by position in task order; at most MAX_TASK_ANSWERS per task."""
    n = np.diff(layout.task_ptr)
    place = np.arange(layout.n_answers) - np.repeat(layout.task_ptr[:-1], n)
    later = np.maximum(np.minimum(np.repeat(n, n), MAX_TASK_ANSWERS) - 1 - place, 0)
    first = np.repeat(np.arange(layout.n_answers), later)
    step = np.arange(len(first)) - np.repeat(np.cumsum(later) - later, later)
    return first, first + 1 + step


def by_class(of: Fit, a: Ints, b: Ints, relevant: Bools) -> Iterator[ByClass]:
    """Yield the probability that the answers a and b (P,) agree, for every class that is `relevant` (P, K)."""
    layout, params = of.sample.layout, of.params
    W, K = layout.n_workers, layout.n_classes
    for k in range(K):
        pairs = np.flatnonzero(relevant[:, k])
        x, y = a[pairs], b[pairs]
        table = np.zeros((W, K))
        table[layout.row_worker, layout.row_label] = params.counts[:, k]
        table += params.a[k]
        share = of.U[of.task, k] if of.weight is None else of.U[of.task, k] * of.weight
        u, v, lx, ly = share[x], share[y], of.label[x], of.label[y]
        wx, wy = of.worker[x], of.worker[y]
        dot = np.einsum("pl,pl->p", table[wx], table[wy])
        dot += -u * table[wy, lx] - v * table[wx, ly] + u * v * (lx == ly)
        below = table.sum(1)
        yield ByClass(k, pairs, np.clip(dot / ((below[wx] - u) * (below[wy] - v)), 0, 1))
