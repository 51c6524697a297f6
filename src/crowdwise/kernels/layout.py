"""The memory layout of coded answers: they are sorted once, and kernels then only gather from them.

A *row* is an observed (worker, label) pair, so there are at most min(N, W K) rows. Answers are stored twice: in task
order (for the posterior of a task) and in row order (for the counts of a worker).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from .rules import Size, Whole, ascends

if TYPE_CHECKING:
    from . import Kernels

# Shapes are given at each use.
Ints: TypeAlias = NDArray[np.integer[Any]]
Floats: TypeAlias = NDArray[np.floating[Any]]
Bools: TypeAlias = NDArray[np.bool_]
# Fields of parameters and statistics with one entry per row or worker: a shard holds only some of them (see `Subset`).
PerRow: TypeAlias = Annotated[NDArray[Any], "rows"]
PerWorker: TypeAlias = Annotated[NDArray[Any], "workers"]


CHUNK_TASKS = 1 << 17  # tasks in a chunk of votes
# Adding and then subtracting this number rounds a double between 0 and 1 to a multiple of 2**-32. Posteriors stored in
# single precision are rounded so. Sums of up to 2**21 of them in double precision are exact: they depend neither on
# their order nor on how tasks are split into blocks and shards.
GRID = 1.5 * 2.0**20
HEAD = 3  # columns before the moments in the sums of clicks: clicks, clicks times precision, cost of removal


class WorkerRows(NamedTuple):
    """The observed (worker, label) pairs of a whole table; an M-step uses nothing else of the answers."""

    n_classes: Annotated[int, Size("K")]
    row_worker: Annotated[Ints, Whole("R", below="W")]  # ascending
    row_label: Annotated[Ints, Whole("R", below="K")]  # ascending within a worker
    worker_ptr: Annotated[Ints, Whole("W+1", ends="R")]  # rows of worker j are worker_ptr[j]:worker_ptr[j+1]
    answers: Annotated[Ints, Whole("R", dtype="int64")]  # number of answers of each row

    @property
    def flaw(self) -> str:
        """What contradicts itself in rows that were read from a file, or ""."""
        owner = np.repeat(np.arange(self.n_workers), np.diff(self.worker_ptr))
        sound = np.array_equal(self.row_worker, owner) and ascends(self.row_label, self.worker_ptr, strictly=True)
        return "" if sound else "has rows that are not in the order of worker and label"

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

    n_classes: Annotated[int, Size("K")]
    task_ptr: Annotated[Ints, Whole("T+1", ends="N")]  # answers of task i are task_ptr[i]:task_ptr[i+1] of `pair`
    pair: Annotated[Ints, Whole("N", below="R")]  # row of each answer, in task order; ascending within a task
    row_ptr: Annotated[Ints, Whole("R+1", ends="N")]  # answers of row r are row_ptr[r]:row_ptr[r+1] of `task`
    task: Annotated[Ints, Whole("N", below="T")]  # task of each answer, in row order; ascending within a row
    row_worker: Annotated[Ints, Whole("R", below="W")]  # ascending
    row_label: Annotated[Ints, Whole("R", below="K")]  # ascending within a worker
    worker_ptr: Annotated[Ints, Whole("W+1", ends="R")]  # rows of worker j are worker_ptr[j]:worker_ptr[j+1]

    @property
    def flaw(self) -> str:
        """What contradicts itself in a layout that was read from a file, or ""."""
        counts = np.bincount(self.pair, minlength=self.n_rows), np.bincount(self.task, minlength=self.n_tasks)
        alike = all(map(np.array_equal, counts, (np.diff(self.row_ptr), np.diff(self.task_ptr))))
        if alike and ascends(self.pair, self.task_ptr) and ascends(self.task, self.row_ptr):
            return self.rows.flaw
        return "has answers by task that are not its answers by worker"

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


def in_row_order(layout: Layout) -> Ints:
    """Return the positions, in task order, of the answers in row order (N,)."""
    return np.argsort(layout.pair, kind="stable")


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


def vote_parts(
    kernels: Kernels, layout: Layout, threads: int, weight: Floats | None = None
) -> Iterator[tuple[slice, Floats]]:
    """Yield chunks of tasks, as slices, with their votes (tasks, K); `weight` (N,) are the weights of answers."""
    ones, K = np.ones(layout.n_rows), layout.n_classes
    for start in range(0, layout.n_tasks, CHUNK_TASKS):
        stop = min(start + CHUNK_TASKS, layout.n_tasks)
        first, last = layout.task_ptr[start], layout.task_ptr[stop]
        some = layout._replace(
            task_ptr=layout.task_ptr[start : stop + 1] - first,
            pair=layout.pair[first:last],
        )
        if weight is None:
            votes = np.empty((stop - start, K), np.float32)
            kernels.votes(some, ones, votes, threads)
        else:
            task = np.repeat(np.arange(stop - start), np.diff(some.task_ptr))
            cells = weighted_counts(task * K + layout.row_label[some.pair], weight[first:last], (stop - start) * K)
            votes = cells.reshape(stop - start, K)
        yield slice(start, stop), votes


class Subset(NamedTuple):
    """The rows and workers of a shard, by their numbers in the whole table, ascending; None for all of them."""

    rows: Ints | None  # (r,)
    workers: Ints | None  # (w,)
    n_rows: int  # of the whole table
    n_workers: int


class ByRow(NamedTuple):
    """An array with one entry per row, as an argument for shards."""

    values: PerRow


def compact(layout: Layout) -> tuple[Layout, Subset]:
    """Return a layout without the rows and workers that have no answers in it, and which rows and workers are left."""
    rows = np.flatnonzero(np.diff(layout.row_ptr)).astype(np.int32)
    place = np.zeros(layout.n_rows, np.int32)
    place[rows] = np.arange(len(rows), dtype=np.int32)
    workers, owner = np.unique(layout.row_worker[rows], return_inverse=True)
    ends = np.searchsorted(owner, np.arange(len(workers) + 1))
    smaller = Layout(
        n_classes=layout.n_classes,
        task_ptr=layout.task_ptr,
        pair=place[layout.pair],
        row_ptr=np.append(layout.row_ptr[:-1][rows], layout.row_ptr[-1:]),
        task=layout.task,
        row_worker=owner.astype(np.int32),
        row_label=layout.row_label[rows],
        worker_ptr=ends.astype(np.int32),
    )
    return smaller, Subset(rows, workers, layout.n_rows, layout.n_workers)


@functools.cache
def _axes(kind: type) -> dict[str, str | None]:
    """Return the axis of each field of a named tuple: "rows", "workers" or None."""
    hints = get_type_hints(kind, include_extras=True)
    found = {name: get_args(hint)[1:] for name, hint in hints.items() if name in kind._fields}  # type: ignore[attr-defined]
    return {name: axis[0] if axis and axis[0] in Subset._fields else None for name, axis in found.items()}


def narrow(value: Any, subset: Subset | None) -> Any:
    """Return parameters for the rows and workers of a shard; everything else is unchanged."""
    if subset is None or not isinstance(value, tuple):
        return value
    if not hasattr(value, "_fields"):
        return tuple(narrow(each, subset) for each in value)
    axes = _axes(type(value))
    fields = (_selected(each, axes[name], subset) for name, each in value._asdict().items())  # type: ignore[attr-defined]
    return type(value)(*fields)


def _selected(value: Any, axis: str | None, subset: Subset) -> Any:
    if axis is None or value is None or len(value) == 0:
        return narrow(value, subset)
    places = getattr(subset, axis)
    return value if places is None else value[places]


def widen(value: Any, subset: Subset, fill: Callable[[NDArray[Any]], Any], axis: str | None = None) -> Any:
    """Return parameters or statistics of the rows and workers of a subset as those of the whole table; entries of other
    rows and workers are `fill(entries of the subset)`."""
    if isinstance(value, tuple):
        axes = _axes(type(value)) if hasattr(value, "_fields") else {}
        names = list(axes) or [""] * len(value)
        values = [widen(each, subset, fill, axes.get(name)) for name, each in zip(names, value, strict=True)]
        return type(value)(*values) if hasattr(value, "_fields") else tuple(values)
    if axis is None or value is None:
        return value
    if not len(value) and len(getattr(subset, axis)):  # an array that the model does not use
        return value
    size = subset.n_rows if axis == "rows" else subset.n_workers
    out = np.empty((size, *value.shape[1:]), value.dtype)
    out[:] = fill(value)
    out[getattr(subset, axis)] = value
    return out


def add_shard(total: Any, part: Any, subset: Subset | None, axis: str | None = None) -> Any:
    """Add the statistics of a shard to those of the whole table; arrays of `total` may be changed. Without a total,
    return the statistics of the shard as those of the whole table."""
    if total is None and subset is None:
        return part
    if isinstance(part, tuple):
        axes = _axes(type(part)) if hasattr(part, "_fields") else {}
        names = list(axes) or [""] * len(part)
        before = [None] * len(part) if total is None else total
        values = [add_shard(a, b, subset, axes.get(n)) for n, a, b in zip(names, before, part, strict=True)]
        return type(part)(*values) if hasattr(part, "_fields") else tuple(values)
    if part is None:
        return None
    if axis is None or subset is None:
        return part if total is None else total + part
    places = getattr(subset, axis)
    if total is None:
        dtype = np.float64 if part.dtype == np.float32 else part.dtype
        if places is None:
            return part.astype(dtype, copy=False)
        size = subset.n_rows if axis == "rows" else subset.n_workers
        total = np.zeros((size, *part.shape[1:]), dtype)
    if places is None:
        total += part
    else:
        total[places] += part
    return total


def spread_out(layout: Layout, subset: Subset, whole: WorkerRows) -> Layout:
    """Return the layout of a shard with all rows and workers of the whole table; most have answers in it."""
    rows = np.asarray(subset.rows)
    sizes = np.zeros(len(whole.row_worker), np.int32)
    sizes[rows] = np.diff(layout.row_ptr)
    return Layout(
        n_classes=whole.n_classes,
        task_ptr=layout.task_ptr,
        pair=rows[layout.pair].astype(np.int32),
        row_ptr=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        task=layout.task,
        row_worker=whole.row_worker,
        row_label=whole.row_label,
        worker_ptr=whole.worker_ptr,
    )


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


def minus(value: Any) -> Any:
    """Return statistics with the opposite sign; tuples field by field."""
    if value is None:
        return None
    if isinstance(value, tuple):
        values = [minus(each) for each in value]
        return type(value)(*values) if hasattr(value, "_fields") else tuple(values)
    return -value


def plus(first: Any, second: Any) -> Any:
    """Add two statistics; tuples are added field by field."""
    if first is None:
        return None
    if isinstance(first, tuple):
        values = [plus(a, b) for a, b in zip(first, second, strict=True)]
        return type(first)(*values) if hasattr(first, "_fields") else tuple(values)
    return first + second
