"""Labels in parts: a table that is too large for the memory of one process is read as disjoint sets of tasks.

Every part is read by the same rules as a whole table, with ids of its own. `Merged` joins what the parts say of
themselves: the workers and classes of the whole table, its rows, and the record of how it was read. A part then becomes
a compact shard: `Merged.place` gives the classes of the whole table and the numbers of its rows and workers in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..errors import DataError, EmptyDataError
from ..kernels.layout import Ints, Layout, Subset, WorkerRows
from .alike import look_alikes
from .base import MAX_EXAMPLES, Dropped, Intake
from .coding import places
from .gold import GoldCounts, gold_notes, gold_warnings
from .label_rows import REASONS
from .labels import Labels


class PartIndex(NamedTuple):
    """What the whole table needs to know of a part."""

    workers: pl.Series  # sorted, as `classes`
    classes: pl.Series
    row_worker: Ints  # (r,) numbers in `workers`
    row_label: Ints  # (r,) numbers in `classes`
    answers: Ints  # (r,) answers of each row
    n_tasks: int
    n_gold: int  # tasks with gold
    weighted: bool
    intake: Intake

    @classmethod
    def of(cls, part: Labels) -> PartIndex:
        rows = part.layout.rows
        return cls(
            part.workers, part.classes, rows.row_worker, rows.row_label, rows.answers, part.n_tasks, part.n_gold,
            part.weighted, part.intake,
        )  # fmt: skip


class Place(NamedTuple):
    """Where a part stands in the whole table."""

    label: Ints  # (k,) class of the whole table for each class of the part
    subset: Subset


class Merged(NamedTuple):
    """The workers, classes and rows of a table in parts."""

    workers: pl.Series
    classes: pl.Series
    rows: WorkerRows
    n_tasks: int
    n_gold: int
    weighted: bool
    intake: Intake

    @classmethod
    def of(
        cls, parts: Iterable[PartIndex], gold: GoldCounts | None = None, order: Callable[[str], Any] | None = None
    ) -> Merged:
        """Merge parts, which are iterated twice. `gold` counts the tasks of a gold table, if there is one; `order`
        returns the place of a dropped row from the text that quotes it."""
        workers, classes, intake = _Union("worker"), _Union("label"), _IntakeSum(order)
        n_tasks, known, weighted = 0, 0, False
        for part in parts:
            workers.add(part.workers)
            classes.add(part.classes)
            intake.add(part.intake)
            n_tasks, known, weighted = n_tasks + part.n_tasks, known + part.n_gold, weighted or part.weighted
        rows, read = _rows(parts, workers.ids, classes.ids), intake.total()
        if gold is None and "gold" in read.columns:
            gold = GoldCounts(known, 0)
        ungiven = classes.ids[np.setdiff1d(np.arange(len(classes.ids)), rows.row_label)]
        read = replace(
            read,
            rows_used=rows.n_answers,
            notes=(*read.notes, *([] if gold is None else gold_notes(known, gold))),
            warnings=(
                *read.warnings,
                *gold_warnings(ungiven),
                *look_alikes(classes.ids, "label"),
                *look_alikes(workers.ids, "worker"),
            ),
        )
        if rows.n_answers == 0:
            raise EmptyDataError(
                f"no answers in {read.source}: {read.rows_read} row(s), none of them has both a task and a label"
            )
        return cls(workers.ids, classes.ids, rows, n_tasks, known, weighted, read)

    def place(self, part: PartIndex) -> Place:
        """Return where a part stands in this table."""
        K = len(self.classes)
        keys = self.rows.row_worker.astype(np.int64) * K + self.rows.row_label
        rows = np.searchsorted(keys, _keys(part, self.workers, self.classes)).astype(np.int32)
        subset = Subset(rows, _worker_places(self.workers, part), len(keys), len(self.workers))
        return Place(places(self.classes, part.classes), subset)


def in_whole(part: Labels, place: Place, classes: pl.Series) -> Labels:
    """Return a part with the classes of the whole table; its workers and rows are still its own."""
    label_of = np.append(place.label, -1).astype(np.int32)  # the last entry is for unknown gold, -1
    layout: Layout = part.layout._replace(n_classes=len(classes), row_label=label_of[part.layout.row_label])
    return part.replaced(classes=classes, layout=layout, gold=label_of[part.gold])


class _Union:
    """The distinct ids of all parts, sorted. A part without ids may have any type; workers become text if some parts
    have named anonymous ones."""

    def __init__(self, role: str) -> None:
        self.role, self.ids = role, pl.Series(role, [], dtype=pl.String)

    def add(self, ids: pl.Series) -> None:
        if not len(ids):
            return
        if self.role == "worker" and len(self.ids) and pl.String in (ids.dtype, self.ids.dtype):
            ids, self.ids = ids.cast(pl.String), self.ids.cast(pl.String)
        if len(self.ids) and ids.dtype != self.ids.dtype:
            raise DataError(
                f"the column of the {self.role} is {self.ids.dtype} in one part of the table and {ids.dtype} in "
                "another. Write it with one type"
            )
        self.ids = pl.concat([self.ids, ids.alias(self.ids.name)]).unique().sort() if len(self.ids) else ids.sort()


def _keys(part: PartIndex, workers: pl.Series, classes: pl.Series) -> Ints:
    """Return one number per row of a part, ascending: that of its worker and label in the whole table."""
    worker, label = _worker_places(workers, part), places(classes, part.classes)
    return worker[part.row_worker].astype(np.int64) * len(classes) + label[part.row_label]


def _worker_places(workers: pl.Series, part: PartIndex) -> Ints:
    return places(workers, part.workers.cast(workers.dtype))


def _rows(parts: Iterable[PartIndex], workers: pl.Series, classes: pl.Series) -> WorkerRows:
    found: Ints = np.zeros(0, np.int64)
    answers: Ints = np.zeros(0, np.int64)
    for part in parts:
        keys = _keys(part, workers, classes)
        both = np.union1d(found, keys)
        total = np.zeros(len(both), np.int64)
        total[np.searchsorted(both, found)] = answers
        total[np.searchsorted(both, keys)] += part.answers
        found, answers = both, total
    K = max(len(classes), 1)
    worker = (found // K).astype(np.int32)
    ptr = np.searchsorted(worker, np.arange(len(workers) + 1)).astype(np.int32)
    return WorkerRows(len(classes), worker, (found % K).astype(np.int32), ptr, answers)


class _IntakeSum:
    """The record of the whole table from those of its parts."""

    def __init__(self, order: Callable[[str], Any] | None) -> None:
        self.first: Intake | None = None
        self.order = order
        self.rows_read, self.counts, self.examples = 0, dict[str, int](), dict[str, list[tuple[str, ...]]]()
        self.notes, self.warnings = dict[str, None](), dict[str, None]()

    def add(self, part: Intake) -> None:
        self.first = self.first or part
        self.rows_read += part.rows_read
        self.notes |= dict.fromkeys(part.notes)
        self.warnings |= dict.fromkeys(part.warnings)
        for each in part.dropped:
            self.counts[each.reason] = self.counts.get(each.reason, 0) + each.count
            self.examples.setdefault(each.reason, []).append(each.examples)

    def total(self) -> Intake:
        if self.first is None:
            raise ValueError("a table needs at least one part")
        reasons = sorted(self.counts, key=lambda reason: [not reason.startswith(start) for start in REASONS])
        return replace(
            self.first,
            rows_read=self.rows_read,
            dropped=tuple(Dropped(reason, self.counts[reason], self._first(reason)) for reason in reasons),
            notes=tuple(self.notes),
            warnings=tuple(self.warnings),
        )

    def _first(self, reason: str) -> tuple[str, ...]:
        """Return the first rows that were dropped for a reason, in the order of the table."""
        found = self.examples[reason]
        every = [example for examples in found for example in examples]
        in_order = every if self.order is None or len(found) == 1 else sorted(every, key=self.order)
        return tuple(in_order[:MAX_EXAMPLES])
