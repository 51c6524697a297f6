"""Labels in parts: a table that is too large for the memory of one process is read as disjoint sets of tasks.

Every part is read by the same rules as a whole table, with ids of its own. `Merged` joins what the parts say of
themselves: the workers and classes of the whole table, its rows, and the record of how it was read. A part then becomes
a compact shard: `Merged.place` gives the classes of the whole table and the numbers of its rows and workers in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from ..errors import DataError, EmptyDataError
from ..kernels.layout import Ints, Layout, Subset, WorkerRows
from .base import MAX_EXAMPLES, Dropped, Intake
from .coding import look_alikes, places
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
    def of(cls, parts: Iterable[PartIndex], gold: int | None = None) -> Merged:
        """Merge parts, which are iterated twice; `gold` is the number of tasks in a gold table, if there is one."""
        workers, classes, intake = _Union("worker"), _Union("label"), _IntakeSum()
        n_tasks, known, weighted = 0, 0, False
        for part in parts:
            workers.add(part.workers)
            classes.add(part.classes)
            intake.add(part.intake)
            n_tasks, known, weighted = n_tasks + part.n_tasks, known + part.n_gold, weighted or part.weighted
        rows = _rows(parts, workers.ids, classes.ids)
        read = replace(
            intake.total(),
            rows_used=rows.n_answers,
            notes=(*intake.notes, *_gold_notes(known, gold)),
            warnings=(*intake.warnings, *_gold_warnings(rows, classes.ids), *look_alikes(classes.ids, "label")),
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
        subset = Subset(rows, places(self.workers, part.workers), len(keys), len(self.workers))
        return Place(places(self.classes, part.classes), subset)


def in_whole(part: Labels, place: Place, classes: pl.Series) -> Labels:
    """Return a part with the classes of the whole table; its workers and rows are still its own."""
    label_of = np.append(place.label, -1).astype(np.int32)  # the last entry is for unknown gold, -1
    layout: Layout = part.layout._replace(n_classes=len(classes), row_label=label_of[part.layout.row_label])
    return part.replaced(classes=classes, layout=layout, gold=label_of[part.gold])


class _Union:
    """The distinct ids of all parts, sorted. A part without ids may have any type."""

    def __init__(self, role: str) -> None:
        self.role, self.ids = role, pl.Series(role, [], dtype=pl.String)

    def add(self, ids: pl.Series) -> None:
        if not len(ids):
            return
        if len(self.ids) and ids.dtype != self.ids.dtype:
            raise DataError(
                f"the column of the {self.role} is {self.ids.dtype} in one part of the table and {ids.dtype} in "
                "another. Write it with one type"
            )
        self.ids = pl.concat([self.ids, ids.alias(self.ids.name)]).unique().sort() if len(self.ids) else ids.sort()


def _keys(part: PartIndex, workers: pl.Series, classes: pl.Series) -> Ints:
    """Return one number per row of a part, ascending: that of its worker and label in the whole table."""
    worker, label = places(workers, part.workers), places(classes, part.classes)
    return worker[part.row_worker].astype(np.int64) * len(classes) + label[part.row_label]


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

    def __init__(self) -> None:
        self.first: Intake | None = None
        self.rows_read, self.dropped = 0, dict[str, Dropped]()
        self.notes, self.warnings = dict[str, None](), dict[str, None]()

    def add(self, part: Intake) -> None:
        self.first = self.first or part
        self.rows_read += part.rows_read
        self.notes |= dict.fromkeys(part.notes)
        self.warnings |= dict.fromkeys(part.warnings)
        for each in part.dropped:
            before = self.dropped.get(each.reason, Dropped(each.reason, 0, ()))
            examples = (*before.examples, *each.examples)[:MAX_EXAMPLES]
            self.dropped[each.reason] = Dropped(each.reason, before.count + each.count, examples)

    def total(self) -> Intake:
        if self.first is None:
            raise ValueError("a table needs at least one part")
        return replace(self.first, rows_read=self.rows_read, dropped=tuple(self.dropped.values()))


def _gold_notes(known: int, given: int | None) -> list[str]:
    notes = [f"gold for {known} task(s)"] if known or given is not None else []
    if given is not None and given > known:
        notes.append(f"gold for {given - known} task(s) that have no answers was ignored")
    return notes


def _gold_warnings(rows: WorkerRows, classes: pl.Series) -> list[str]:
    ungiven = np.setdiff1d(np.arange(len(classes)), rows.row_label)
    if not len(ungiven):
        return []
    names = ", ".join(map(str, classes[ungiven].head(5).to_list()))
    return [f"gold has {len(ungiven)} label(s) that no worker gave, added as classes: {names}"]
