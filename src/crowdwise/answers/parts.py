"""Labels in parts: a table that is too large for the memory of one process is read as disjoint sets of tasks.

Every part is read by the same rules as a whole table, with ids of its own. `Merged` joins what the parts say of
themselves: the workers and classes of the whole table, its rows, and the record of how it was read. A part then becomes
a compact shard: `Merged.place` gives the classes of the whole table and the numbers of its rows and workers in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
        known = int((part.gold >= 0).sum())
        return cls(
            part.workers, part.classes, rows.row_worker, rows.row_label, rows.answers, part.n_tasks, known,
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
    def of(cls, parts: Sequence[PartIndex], gold: int | None = None) -> Merged:
        """Merge parts; `gold` is the number of tasks in a gold table, if there is one."""
        workers, classes = _union([part.workers for part in parts]), _union([part.classes for part in parts])
        keys = [_keys(part, workers, classes) for part in parts]
        rows = _rows(keys, [part.answers for part in parts], len(workers), len(classes))
        known = sum(part.n_gold for part in parts)
        intake = _merged_intake([part.intake for part in parts])
        intake = replace(
            intake,
            rows_used=rows.n_answers,
            notes=(*intake.notes, *_gold_notes(known, gold)),
            warnings=(*intake.warnings, *_gold_warnings(rows, classes), *look_alikes(classes, "label")),
        )
        if rows.n_answers == 0:
            raise EmptyDataError(
                f"no answers in {intake.source}: {intake.rows_read} row(s), none of them has both a task and a label"
            )
        n_tasks = sum(part.n_tasks for part in parts)
        return cls(workers, classes, rows, n_tasks, known, any(part.weighted for part in parts), intake)

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


def _union(ids: Sequence[pl.Series]) -> pl.Series:
    """Return the distinct ids of all parts, sorted. A part without ids may have any type."""
    some = [each for each in ids if len(each)] or list(ids[:1])
    kinds = {each.dtype for each in some}
    if len(kinds) > 1:
        names = ", ".join(sorted(map(str, kinds)))
        raise DataError(
            f"column {some[0].name!r} has several types in different parts of the table ({names}). Write it with one"
        )
    return pl.concat(some).unique().sort()


def _keys(part: PartIndex, workers: pl.Series, classes: pl.Series) -> Ints:
    """Return one number per row of a part, ascending: that of its worker and label in the whole table."""
    worker, label = places(workers, part.workers), places(classes, part.classes)
    return worker[part.row_worker].astype(np.int64) * len(classes) + label[part.row_label]


def _rows(keys: Sequence[Ints], answers: Sequence[Ints], n_workers: int, n_classes: int) -> WorkerRows:
    found = np.unique(np.concatenate(keys))
    count = np.zeros(len(found), np.int64)
    for key, n in zip(keys, answers, strict=True):
        count[np.searchsorted(found, key)] += n
    worker = (found // max(n_classes, 1)).astype(np.int32)
    ptr = np.searchsorted(worker, np.arange(n_workers + 1)).astype(np.int32)
    return WorkerRows(n_classes, worker, (found % max(n_classes, 1)).astype(np.int32), ptr, count)


def _merged_intake(parts: Sequence[Intake]) -> Intake:
    first = parts[0]
    return replace(
        first,
        rows_read=sum(part.rows_read for part in parts),
        dropped=_merged_drops(part.dropped for part in parts),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        warnings=tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
    )


def _merged_drops(parts: Iterable[Sequence[Dropped]]) -> tuple[Dropped, ...]:
    merged: dict[str, Dropped] = {}
    for each in (dropped for part in parts for dropped in part):
        before = merged.get(each.reason, Dropped(each.reason, 0, ()))
        examples = (*before.examples, *each.examples)[:MAX_EXAMPLES]
        merged[each.reason] = Dropped(each.reason, before.count + each.count, examples)
    return tuple(merged.values())


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
