"""The memory layout of coded answers: they are sorted once, and kernels then only gather from them.

A *row* is an observed (worker, label) pair, so there are at most min(N, W K) rows. Answers are stored twice: in task
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

# Shapes are given at each use.
Ints: TypeAlias = NDArray[np.integer[Any]]
Floats: TypeAlias = NDArray[np.floating[Any]]
Bools: TypeAlias = NDArray[np.bool_]


CHUNK_TASKS = 1 << 17  # tasks in a chunk of votes
# Adding and then subtracting this number rounds a double between 0 and 1 to a multiple of 2**-32. Posteriors stored in
# single precision are rounded so. Sums of up to 2**21 of them in double precision are exact: they depend neither on
# their order nor on how tasks are split into blocks and shards.
GRID = 1.5 * 2.0**20
HEAD = 3  # columns before the moments in the sums of clicks: clicks, clicks times precision, cost of removal


class WorkerRows(NamedTuple):
    """The observed (worker, label) pairs of a whole table; an M-step uses nothing else of the answers."""

    n_classes: int
    row_worker: Ints  # (R,)    ascending
    row_label: Ints  # (R,)    ascending within a worker
    worker_ptr: Ints  # (W+1,)  rows of worker j are worker_ptr[j]:worker_ptr[j+1]
    answers: Ints  # (R,)    number of answers of each row

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
        """Number of answers of each worker (W,)."""
        return per_worker(self, self.answers)


class Layout(NamedTuple):
    """N answers of W workers on T tasks with K classes, in R rows; all int32."""

    n_classes: int
    task_ptr: Ints  # (T+1,)  answers of task i are task_ptr[i]:task_ptr[i+1] of `pair`
    pair: Ints  # (N,)    row of each answer, in task order; ascending within a task
    row_ptr: Ints  # (R+1,)  answers of row r are row_ptr[r]:row_ptr[r+1] of `task`
    task: Ints  # (N,)    task of each answer, in row order; ascending within a row
    row_worker: Ints  # (R,)    ascending
    row_label: Ints  # (R,)    ascending within a worker
    worker_ptr: Ints  # (W+1,)  rows of worker j are worker_ptr[j]:worker_ptr[j+1]

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
        """The observed (worker, label) pairs, and the number of answers of each."""
        counts = np.diff(self.row_ptr).astype(np.int64)
        return WorkerRows(self.n_classes, self.row_worker, self.row_label, self.worker_ptr, counts)


class SortedAnswers(NamedTuple):
    """Answers sorted by task and by row; `order` is the number of the input answer at each position in task order."""

    task_ptr: Ints  # (T+1,)
    pair: Ints  # (N,)
    row_ptr: Ints  # (R+1,)
    row_worker: Ints  # (R,)
    row_label: Ints  # (R,)
    task: Ints  # (N,)
    order: Ints  # (N,)


RowTable: TypeAlias = WorkerRows | Layout  # sums over workers take either


def sort_answers(
    kernels: Kernels, task: Ints, worker: Ints, label: Ints, shape: tuple[int, int, int]
) -> tuple[Layout, Ints]:
    """Build the layout of coded answers; `shape` is (T, W, K).

    Returns the layout and `order`: the number of the input answer at each position in task order.
    """
    found = kernels.build_layout(task, worker, label, shape)
    sizes = np.bincount(found.row_worker, minlength=shape[1])
    worker_ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    rows = {name: getattr(found, name) for name in SortedAnswers._fields if name != "order"}
    layout = Layout(n_classes=shape[2], worker_ptr=worker_ptr, **rows)
    for array in layout[1:]:
        array.flags.writeable = False
    return layout, found.order


def worker_answers(layout: Layout) -> Ints:
    """Return the number of answers of each worker (W,)."""
    return np.diff(layout.row_ptr[layout.worker_ptr]).astype(np.int64)


def task_answers(layout: Layout) -> Ints:
    """Return the number of answers of each task (T,)."""
    return np.diff(layout.task_ptr).astype(np.int64)


def per_worker(layout: RowTable, by_row: NDArray[Any]) -> NDArray[Any]:
    """Return the sums (W, ...) of values (R, ...) over the rows of each worker."""
    some = layout.worker_ptr[:-1] < layout.worker_ptr[1:]
    if some.all() and len(by_row):
        return np.asarray(np.add.reduceat(by_row, layout.worker_ptr[:-1], axis=0))
    out = np.zeros((layout.n_workers, *by_row.shape[1:]), by_row.dtype)
    if len(by_row):
        out[some] = np.add.reduceat(by_row, layout.worker_ptr[:-1][some], axis=0)
    return out


def weighted_counts(index: Ints, weights: NDArray[Any], size: int) -> Floats:
    """Return the sums (size,) of weights by index."""
    return np.asarray(np.bincount(index, weights, minlength=size), np.float64)


def find_rows(layout: RowTable, worker: Ints, label: Ints) -> tuple[Ints, Bools]:
    """Return the rows of pairs (worker, label), and which pairs have a row."""
    key = layout.row_worker.astype(np.int64) * layout.n_classes + layout.row_label
    wanted = worker.astype(np.int64) * layout.n_classes + label
    at = np.searchsorted(key, wanted).clip(max=max(len(key) - 1, 0))
    return at, (key[at] == wanted) & (worker >= 0) if len(key) else np.zeros(len(wanted), bool)


def vote_parts(kernels: Kernels, layout: Layout, threads: int) -> Iterator[tuple[slice, Floats]]:
    """Yield chunks of tasks, as slices, with their votes (tasks, K)."""
    ones = np.ones(layout.n_rows)
    for start in range(0, layout.n_tasks, CHUNK_TASKS):
        stop = min(start + CHUNK_TASKS, layout.n_tasks)
        first, last = layout.task_ptr[start], layout.task_ptr[stop]
        some = layout._replace(
            task_ptr=layout.task_ptr[start : stop + 1] - first,
            pair=layout.pair[first:last],
        )
        votes = np.empty((stop - start, layout.n_classes), np.float32)
        kernels.votes(some, ones, votes, threads)
        yield slice(start, stop), votes


def round_posterior(Z: Floats) -> Floats:
    """Round a posterior (T, K) in single precision to the grid, in place."""
    if Z.dtype == np.float32:
        for start in range(0, len(Z), CHUNK_TASKS):
            part = Z[start : start + CHUNK_TASKS]
            part[:] = (part.astype(np.float64) + GRID) - GRID
    return Z


def summed(parts: Iterable[Any]) -> Any:
    """Return the sum of statistics, added in their order."""
    return functools.reduce(plus, parts)


def plus(first: Any, second: Any) -> Any:
    """Add two statistics; tuples are added field by field."""
    if first is None:
        return None
    if isinstance(first, tuple):
        values = [plus(a, b) for a, b in zip(first, second, strict=True)]
        return type(first)(*values) if hasattr(first, "_fields") else tuple(values)
    return first + second
