"""How coded answers lie in memory: sorted once, then only gathered from.

A *row* is an observed (worker, label) pair, so there are at most min(N, W K) of them. Answers stand twice: in task
order (for the posterior of a task) and in row order (for the counts of a worker).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from . import Kernels

# Shapes stand beside each use.
Ints: TypeAlias = NDArray[np.integer[Any]]
Floats: TypeAlias = NDArray[np.floating[Any]]
Bools: TypeAlias = NDArray[np.bool_]


PART = 1 << 17  # tasks whose votes are counted at a time
HEAD = 3  # columns of the sums of clicks before moments: clicks, the same by precision, price of removal


class WorkerRows(NamedTuple):
    """The observed (worker, label) pairs of a whole table: all that an M-step knows of the answers."""

    n_classes: int
    row_worker: Ints  # (R,)    ascending
    row_label: Ints  # (R,)    ascending within a worker
    worker_ptr: Ints  # (W+1,)  rows of worker j stand at worker_ptr[j]:worker_ptr[j+1]
    answers: Ints  # (R,)    answers of each row

    @property
    def n_workers(self) -> int:
        return len(self.worker_ptr) - 1

    @property
    def n_rows(self) -> int:
        return len(self.row_worker)

    @property
    def n_answers(self) -> int:
        return int(self.answers.sum())

    @property
    def per_worker(self) -> Ints:
        """(W,) answers of each worker."""
        return per_worker(self, self.answers)


class Layout(NamedTuple):
    """N answers of W workers on T tasks with K classes, in R rows; all int32."""

    n_classes: int
    task_ptr: Ints  # (T+1,)  answers of task i stand at task_ptr[i]:task_ptr[i+1] of `pair`
    pair: Ints  # (N,)    row of each answer, in task order; ascending within a task
    row_ptr: Ints  # (R+1,)  answers of row r stand at row_ptr[r]:row_ptr[r+1] of `task`
    task: Ints  # (N,)    task of each answer, in row order; ascending within a row
    row_worker: Ints  # (R,)    ascending
    row_label: Ints  # (R,)    ascending within a worker
    worker_ptr: Ints  # (W+1,)  rows of worker j stand at worker_ptr[j]:worker_ptr[j+1]

    @property
    def n_tasks(self) -> int:
        return len(self.task_ptr) - 1

    @property
    def n_workers(self) -> int:
        return len(self.worker_ptr) - 1

    @property
    def n_answers(self) -> int:
        return len(self.pair)

    @property
    def n_rows(self) -> int:
        return len(self.row_worker)

    @property
    def rows(self) -> WorkerRows:
        """The observed (worker, label) pairs, and how often each occurs here."""
        counts = np.diff(self.row_ptr).astype(np.int64)
        return WorkerRows(self.n_classes, self.row_worker, self.row_label, self.worker_ptr, counts)


class LaidOut(NamedTuple):
    """Answers sorted by task and by row; `order` says which input answer stands at each place of the task order."""

    task_ptr: Ints  # (T+1,)
    pair: Ints  # (N,)
    row_ptr: Ints  # (R+1,)
    row_worker: Ints  # (R,)
    row_label: Ints  # (R,)
    task: Ints  # (N,)
    order: Ints  # (N,)


RowTable: TypeAlias = WorkerRows | Layout  # what sums over workers need


def sort_answers(
    kernels: Kernels, task: Ints, worker: Ints, label: Ints, shape: tuple[int, int, int]
) -> tuple[Layout, Ints]:
    """Lay coded answers out; `shape` is (T, W, K).

    Returns the layout and `order`: which input answer stands at each place of the task order.
    """
    laid = kernels.lay_out(task, worker, label, shape)
    sizes = np.bincount(laid.row_worker, minlength=shape[1])
    worker_ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    rows = {name: getattr(laid, name) for name in LaidOut._fields if name != "order"}
    layout = Layout(n_classes=shape[2], worker_ptr=worker_ptr, **rows)
    for array in layout[1:]:
        array.flags.writeable = False
    return layout, laid.order


def worker_answers(layout: Layout) -> Ints:
    """(W,) answers of each worker."""
    return np.diff(layout.row_ptr[layout.worker_ptr]).astype(np.int64)


def task_answers(layout: Layout) -> Ints:
    """(T,) answers of each task."""
    return np.diff(layout.task_ptr).astype(np.int64)


def per_worker(layout: RowTable, by_row: NDArray[Any]) -> NDArray[Any]:
    """(W, ...) sums of (R, ...) values over the rows of each worker."""
    out = np.zeros((layout.n_workers, *by_row.shape[1:]), by_row.dtype)
    some = np.diff(layout.worker_ptr) > 0
    if len(by_row):
        out[some] = np.add.reduceat(by_row, layout.worker_ptr[:-1][some], axis=0)
    return out


def weighted_counts(index: Ints, weights: NDArray[Any], size: int) -> Floats:
    """(size,) sums of weights by index."""
    return np.asarray(np.bincount(index, weights, minlength=size), np.float64)


def find_rows(layout: RowTable, worker: Ints, label: Ints) -> tuple[Ints, Bools]:
    """Where the pairs (worker, label) stand among the rows, and which of them do."""
    key = layout.row_worker.astype(np.int64) * layout.n_classes + layout.row_label
    wanted = worker.astype(np.int64) * layout.n_classes + label
    at = np.searchsorted(key, wanted).clip(max=max(len(key) - 1, 0))
    return at, (key[at] == wanted) & (worker >= 0) if len(key) else np.zeros(len(wanted), bool)


def vote_parts(kernels: Kernels, layout: Layout, threads: int) -> Iterator[tuple[slice, Floats]]:
    """Which tasks, and their votes (tasks, K), a run of tasks at a time."""
    ones = np.ones(layout.n_rows)
    for start in range(0, layout.n_tasks, PART):
        stop = min(start + PART, layout.n_tasks)
        first, last = layout.task_ptr[start], layout.task_ptr[stop]
        some = layout._replace(
            task_ptr=layout.task_ptr[start : stop + 1] - first,
            pair=layout.pair[first:last],
        )
        votes = np.empty((stop - start, layout.n_classes), np.float32)
        kernels.votes(some, ones, votes, threads)
        yield slice(start, stop), votes


def summed(parts: Iterable[Any]) -> Any:
    """The sum of statistics, in their order."""
    return functools.reduce(plus, parts)


def plus(first: Any, second: Any) -> Any:
    """Two statistics together: numbers and arrays are added, tuples field by field."""
    if first is None:
        return None
    if isinstance(first, tuple):
        values = [plus(a, b) for a, b in zip(first, second, strict=True)]
        return type(first)(*values) if hasattr(first, "_fields") else tuple(values)
    return first + second
