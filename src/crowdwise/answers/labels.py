"""Labels: answers that assign a class to a task; validated, coded as integers, read-only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
import polars as pl

from ..errors import ColumnError, EmptyDataError, ParameterError, UnknownIdError, nearest
from ..forks import refuse_lost_threads
from ..kernels import Kernels, choose
from ..kernels.layout import Bools, Floats, Ints, Layout, WorkerRows, sort_answers, task_answers, worker_answers
from ..kernels.rules import Whole
from .arguments import check_list, checked, items
from .base import MAX_EXAMPLES, NO_OPTIONS, Answers, Dropped, Intake, Where, check_options
from .coding import place_of, to_numbers
from .columns import LABEL_ROLES, Roles
from .label_rows import POLICIES, Anonymous, LabelRows, Policy, read_labels, repeated, resolve_repeats
from .reading import Reading, given
from .rows import Rows
from .rules import Ids, Table

TASK_KEY = "key of the task"  # name of a column of `task_keys` in place of ids


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Labels(Answers):
    """Labels given by workers to tasks, from a frame (pandas, polars, arrow) or from three arrays.

    >>> import crowdwise as cw
    >>> answers = cw.Labels(["t1", "t1", "t2"], ["ann", "bob", "ann"], ["cat", "dog", "cat"])
    >>> answers
    Labels(3 answers, 2 tasks, 2 workers, 2 classes)
    >>> answers.classes.to_list()
    ['cat', 'dog']
    """

    kind: ClassVar[str] = "labels"
    title: ClassVar[str] = "labels of tasks"
    roles: ClassVar[Roles] = LABEL_ROLES
    tables: ClassVar[tuple[str, ...]] = ("gold",)
    choices: ClassVar[Mapping[str, tuple[object, ...]]] = {"duplicates": POLICIES, "anonymous": ("refuse", "each")}

    tasks: Annotated[pl.Series, Ids("T")]  # sorted ids; a task whose answers were all dropped is among them
    workers: Annotated[pl.Series, Ids("W")]
    classes: Annotated[pl.Series, Ids("K")]
    layout: Layout
    gold: Annotated[Ints, Whole("T", -1, below="K")]  # known class, or -1
    extras: Annotated[pl.DataFrame, Table("N", optional=True)]  # other columns, in task order
    intake: Intake

    @checked
    def __init__(
        self,
        data: Any,
        workers: Any = None,
        labels: Any = None,
        *,
        task: str | None = None,
        worker: str | None = None,
        label: str | None = None,
        gold: Any = None,
        duplicates: Policy | None = None,
        anonymous: Anonymous = "refuse",
        missing: Collection[str] = (),
        wide: bool | None = None,
        ignore: Collection[str] = (),
        source: str = "table",
        notes: Sequence[str] = (),
        where: Where | None = None,
        options: Mapping[str, Any] = NO_OPTIONS,
        part: int | None = None,
    ) -> None:
        check_options(type(self), {"duplicates": duplicates, "anonymous": anonymous})
        if (workers is None) != (labels is None):
            raise ParameterError("Labels takes one frame, or three arrays: tasks, workers, labels")
        table = data if workers is None else {"task": data, "worker": workers, "label": labels}
        names = {"task": task, "worker": worker, "label": label}
        column, gold = (gold, None) if isinstance(gold, str) else (None, gold)
        reading = Reading(table, source, notes, where, part=part)
        ignored, missing = items(ignore), items(missing)
        reading.ignore(ignored)
        recorded = given(
            {"anonymous": "refuse"}, **names, duplicates=duplicates, gold_column=column, anonymous=anonymous,
            missing=missing or None, wide=wide, ignore=ignored or None,
        )  # fmt: skip
        self._fill(
            **_build_fields(
                read_labels(reading, {**names, "gold": column}, gold, anonymous, missing, wide),
                duplicates,
                {**recorded, **options},
            )
        )

    def __repr__(self) -> str:
        return (
            f"Labels({self.n_answers} answers, {self.n_tasks} tasks, {self.n_workers} workers, "
            f"{self.n_classes} classes)"
        )

    @property
    def n_tasks(self) -> int:
        return self.layout.n_tasks

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def n_answers(self) -> int:
        return self.layout.n_answers

    @property
    def tasks_in_memory(self) -> int:
        """How many tasks a fit holds in memory together."""
        return self.n_tasks

    @property
    def row_table(self) -> Layout:
        """The observed (worker, label) pairs."""
        return self.layout

    @property
    def rows(self) -> WorkerRows:
        """The observed (worker, label) pairs, and the number of answers of each."""
        return self.layout.rows

    @property
    def kernels(self) -> Kernels:
        """The kernels chosen for the size of this table."""
        return choose(self.n_answers, self.n_classes)

    @property
    def answers_per_task(self) -> Ints:
        return task_answers(self.layout)

    @property
    def answers_per_worker(self) -> Ints:
        return worker_answers(self.layout)

    def codes(self) -> tuple[Ints, Ints, Ints]:
        """Return the codes of task, worker and label of every answer, in task order."""
        task = np.repeat(np.arange(self.n_tasks, dtype=np.int32), self.answers_per_task)
        return task, self.layout.row_worker[self.layout.pair], self.layout.row_label[self.layout.pair]

    def frame(self) -> pl.DataFrame:
        """Return the answers as a table: task, worker, label and the other columns; one of these names among the other
        columns is followed by `_other`."""
        task, worker, label = self.codes()
        columns = [
            self.tasks[task].alias("task"),
            self.workers[worker].alias("worker"),
            self.classes[label].alias("label"),
        ]
        taken = dict[str, str]()
        for name in {"task", "worker", "label"} & {*self.extras.columns}:
            taken[name] = name
            while taken[name] in self.extras.columns:
                taken[name] += "_other"
        return pl.DataFrame([*columns, *self.extras.rename(taken).get_columns()])

    @checked
    def numbers(self, column: str) -> Floats:
        """Return another column of the answers as numbers (N,), in task order."""
        if column not in self.extras.columns:
            raise ColumnError(
                f"the answers have no column {column!r}; other columns are {', '.join(self.extras.columns) or 'none'}"
            )
        values = to_numbers(self.extras[column])
        bad = values.is_null()
        if bad.any():
            value = self.extras[column][int(bad.arg_max() or 0)]
            raise ColumnError(
                f"column {column!r} has {int(bad.sum())} value(s) that are not numbers, for instance {value!r}"
            )
        return values.to_numpy()

    @property
    def n_gold(self) -> int:
        """Number of tasks with gold."""
        return int((self.gold >= 0).sum())

    def check_weights(self) -> None:
        """Raise ColumnError if there is no column of weights, or if it is invalid."""
        _ = self.weights

    @property
    def weighted(self) -> bool:
        """Whether answers have different weights: there is a column `weight`, and not all weights are 1."""
        return "weight" in self.extras.columns and not bool((self.weights == 1).all())

    @property
    def weights(self) -> Floats:
        """(N,) weight of each answer, in task order; finite and at least 0."""
        weight = self.numbers("weight")
        bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
        if len(bad):
            worker = self.workers[int(self.codes()[1][bad[0]])]
            raise ColumnError(
                f"an answer of worker {worker!r} has the weight {weight[bad[0]]}; weights must be finite and at "
                "least 0. Correct the column 'weight', or remove it"
            )
        return weight

    @property
    def task_keys(self) -> pl.Series:
        """A number for each task that depends on its id alone, to choose the same tasks in any part of a table."""
        return self.tasks if self.tasks.name == TASK_KEY else self.tasks.hash(0).alias(TASK_KEY)

    def task_number(self, task: object) -> int:
        """Return the index of a task in `tasks`."""
        return _place(self.tasks, task, "task")

    def worker_number(self, worker: object) -> int:
        """Return the index of a worker in `workers`."""
        return _place(self.workers, worker, "worker")

    def with_gold(self, gold: Ints | None) -> Labels:
        """Return the same answers with other gold labels, or without gold."""
        fixed = np.full(self.n_tasks, -1, np.int32) if gold is None else gold.astype(np.int32)
        return self.replaced(gold=fixed)

    def by_row(self, tasks: Any) -> Rows:
        """Return the answers in the order of the rows of a feature table, whose tasks are given."""
        return Rows.of(self, tasks)

    def only(self, tasks: Ints) -> Labels:
        """Return the answers to some tasks, given by ascending index; all workers and classes are kept."""
        if len(tasks) == self.n_tasks:
            return self
        place = np.full(self.n_tasks, -1, np.int32)
        place[tasks] = np.arange(len(tasks), dtype=np.int32)
        task, worker, label = self.codes()
        keep = place[task] >= 0
        shape = (len(tasks), self.n_workers, self.n_classes)
        layout, order = sort_answers(self.kernels, place[task[keep]], worker[keep], label[keep], shape)
        extras = self.extras.filter(pl.Series(keep))[order] if self.extras.width else self.extras
        return self.replaced(tasks=self.tasks[tasks], gold=self.gold[tasks], layout=layout, extras=extras)

    def shards(self, count: int) -> Iterator[Labels]:
        """Yield the answers in `count` shards of consecutive tasks. Shards share workers, rows and classes, so that
        their statistics can be added."""
        bounds = np.linspace(0, self.n_tasks, count + 1).astype(int)
        for start, stop in pairwise(bounds):
            yield self._tasks_between(int(start), int(stop))

    def take(self, keep: Bools) -> Labels:
        """Return the answers marked, in task order; all tasks, workers and classes are kept."""
        task, worker, label = (codes[keep] for codes in self.codes())
        shape = (self.n_tasks, self.n_workers, self.n_classes)
        layout, order = sort_answers(self.kernels, task, worker, label, shape)
        extras = self.extras.filter(pl.Series(keep))[order] if self.extras.width else self.extras
        return self.replaced(layout=layout, extras=extras)

    @checked
    def without(self, workers: Iterable[Any], reason: str = "worker left out") -> Labels:
        """Return the answers of all but some workers. Tasks and classes are kept, also those without answers; the
        record of the reading counts the answers dropped for `reason`.

        >>> import crowdwise as cw
        >>> cw.Labels(["t1", "t1", "t2"], ["ann", "bob", "ann"], ["cat", "dog", "cat"]).without(["bob"])
        Labels(2 answers, 2 tasks, 1 workers, 2 classes)
        """
        if isinstance(workers, str):
            raise ParameterError(f"without takes a list of workers; got the text {workers!r}. Write [{workers!r}]")
        listed = check_list("workers", workers, "a list of workers")
        gone = sorted({self.worker_number(worker) for worker in listed})
        if not gone:
            return self
        if len(gone) == self.n_workers:
            raise EmptyDataError(f"no answers are left without these {len(gone)} workers: there are no others")
        stays = np.ones(self.n_workers, bool)
        stays[gone] = False
        place = np.cumsum(stays, dtype=np.int32) - np.int32(1)
        task, worker, label = self.codes()
        keep = stays[worker]
        shape = (self.n_tasks, self.n_workers - len(gone), self.n_classes)
        layout, order = sort_answers(self.kernels, task[keep], place[worker[keep]], label[keep], shape)
        names = tuple(str(self.workers[number]) for number in gone[:MAX_EXAMPLES])
        dropped = (*self.intake.dropped, Dropped(reason, int((~keep).sum()), names))
        return self.replaced(
            workers=self.workers.filter(pl.Series(stays)),
            layout=layout,
            extras=self.extras.filter(pl.Series(keep))[order] if self.extras.width else self.extras,
            intake=replace(self.intake, rows_used=int(keep.sum()), dropped=dropped, path=""),
        )

    def _tasks_between(self, start: int, stop: int) -> Labels:
        whole = self.layout
        first, last = int(whole.task_ptr[start]), int(whole.task_ptr[stop])
        inside = (whole.task >= start) & (whole.task < stop)
        counts = np.concatenate([[0], np.cumsum(inside)])[whole.row_ptr]
        layout = whole._replace(
            task_ptr=whole.task_ptr[start : stop + 1] - np.int32(first),
            pair=whole.pair[first:last],
            row_ptr=counts.astype(np.int32),
            task=(whole.task[inside] - start).astype(np.int32),
        )
        tasks, gold = self.tasks[start:stop], self.gold[start:stop]
        return self.replaced(tasks=tasks, gold=gold, layout=layout, extras=self.extras[first:last])


def _build_fields(rows: LabelRows, duplicates: Policy | None, options: Mapping[str, Any]) -> dict[str, Any]:
    rows.reading.release()
    kernels = choose(len(rows.task), len(rows.classes))
    layout, order = _sorted(kernels, rows)
    dropped: list[Dropped] = []
    if duplicates != "each" and (groups := repeated(layout, order)).height:
        del layout, order  # the arrays of millions of answers are not held twice
        rows, dropped = resolve_repeats(rows, groups, duplicates)
        layout, order = _sorted(kernels, rows)
    return {
        **{name: getattr(rows, name) for name in ("tasks", "workers", "classes", "gold")},
        "layout": layout,
        "extras": rows.extras[rows.row[order]] if rows.extras.width else rows.extras,
        "intake": rows.reading.intake(
            rows.shape, len(rows.task), extras=rows.extras.columns, dropped=dropped, options=options
        ),
    }


def _sorted(kernels: Kernels, p: LabelRows) -> tuple[Layout, Ints]:
    return sort_answers(kernels, p.task, p.worker, p.label, (len(p.tasks), len(p.workers), len(p.classes)))


def _place(ids: pl.Series, wanted: Any, role: str) -> int:
    refuse_lost_threads()
    at = place_of(ids, wanted)
    if at is None:
        raise UnknownIdError(f"no {role} {wanted!r} in these answers.{nearest(wanted, ids.head(10_000).to_list())}")
    return int(at)
