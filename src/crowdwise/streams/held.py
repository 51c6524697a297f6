"""Answers that a stream holds: ids numbered as they come, and the answers of each task in a growing pool.

A call costs in proportion to the ids and tasks named in it, never to all answers held; arrays that are full are copied
to arrays of twice the size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ..answers.coding import to_text
from ..errors import DataError
from ..kernels.layout import Ints
from ..labels.incremental import TaskAnswers

MIN_ROOM = 4  # answers that a task has room for when it first grows


class Ids:
    """Ids of one role in the order of their numbers, all of one type."""

    def __init__(self, role: str, values: pl.Series | None = None) -> None:
        self.role = role
        self.type: Any = None if values is None or values.dtype == pl.Null else values.dtype
        self.values: list[Any] = [] if values is None else values.to_list()
        self.number = {value: n for n, value in enumerate(self.values)}

    def __len__(self) -> int:
        return len(self.values)

    def series(self) -> pl.Series:
        return pl.Series(self.role, self.values, dtype=self.type or pl.Null)

    def accepted(self, ids: pl.Series) -> pl.Series:
        """Return ids in the type of this role; whole numbers of any size are one type, others are refused."""
        if self.type is None or ids.dtype == self.type or ids.null_count() == len(ids):
            return ids
        if ids.dtype.is_integer() and self.type.is_integer():
            return ids
        raise DataError(
            f"the {self.role} ids of this update are {ids.dtype}, for instance {ids.drop_nulls()[0]!r}, but those of "
            f"the stream are {self.type}, for instance {self.values[0] if self.values else None!r}. Use one type"
        )

    def set_type(self, kind: Any) -> None:
        """Note the type of accepted ids."""
        wider = self.type is not None and self.type != kind  # both are whole numbers
        self.type = pl.Int64() if wider else kind

    def find(self, ids: Sequence[Any]) -> Ints:
        """Return the number of each id, or -1."""
        return np.fromiter((self.number.get(value, -1) for value in ids), np.int64, len(ids))

    def add(self, ids: Sequence[Any], kind: Any) -> None:
        """Add ids that are not among these, in order."""
        if len(ids):
            self.set_type(kind)
        for value in ids:
            self.number[value] = len(self.values)
            self.values.append(value)


class Numbering:
    """Numbers of ids, of which some may be new: these have the next numbers, and are added to the ids later."""

    def __init__(self, ids: Ids, kind: Any) -> None:
        self.ids, self.kind, self.new = ids, kind, dict[Any, int]()

    def of(self, values: Sequence[Any]) -> Ints:
        """Return the number of each id; an unknown id gets the next one."""
        known, new, first = self.ids.number, self.new, len(self.ids)
        found = (known[v] if v in known else new.setdefault(v, first + len(new)) for v in values)
        return np.fromiter(found, np.int64, len(values))

    def commit(self) -> None:
        self.ids.add(list(self.new), self.kind)

    def __len__(self) -> int:
        return len(self.ids) + len(self.new)


class Pool:
    """The answers of every task: a block of places per task, which moves to the end of the pool when it is full."""

    def __init__(self) -> None:
        self.start, self.size, self.room = (np.zeros(0, np.int64) for _ in range(3))  # (T,) with spare capacity
        self.cells = np.zeros((0, 3), np.int32)  # worker, label, extra; with spare capacity
        self.end = self.count = 0

    @classmethod
    def filled(cls, size: Ints, worker: Ints, label: Ints, extra: Ints) -> Pool:
        """Return a pool of answers given task by task; `size` (T,) is the number of each task's answers."""
        pool = cls()
        pool.size, pool.room = size.astype(np.int64), size.astype(np.int64)
        pool.start = np.cumsum(pool.size) - pool.size
        pool.cells = np.stack([worker, label, extra], axis=1).astype(np.int32)
        pool.end = pool.count = len(worker)
        return pool

    def of(self, tasks: Ints) -> TaskAnswers:
        """Return the answers of tasks; a number beyond the last task has none."""
        size = self.sizes(tasks)
        at, place = self._places(tasks, size)
        return TaskAnswers(at, *self.cells[place].T)

    def sizes(self, tasks: Ints) -> Ints:
        """Return the number of answers of each task."""
        known = tasks < len(self.size)
        return np.where(known, self.size[np.where(known, tasks, 0)] if len(self.size) else 0, 0)

    def _places(self, tasks: Ints, size: Ints) -> tuple[Ints, Ints]:
        at = np.repeat(np.arange(len(tasks)), size)
        within = np.arange(len(at)) - np.repeat(np.cumsum(size) - size, size)
        return at, self.start[tasks[at]] + within if len(at) else at

    def put(self, tasks: Ints, answers: TaskAnswers) -> None:
        """Replace all answers of tasks (distinct)."""
        top = int(tasks.max(initial=-1)) + 1
        self.start, self.size, self.room = (grown(a, top) for a in (self.start, self.size, self.room))
        size = np.bincount(answers.at, minlength=len(tasks))
        full = size > self.room[tasks]
        room = np.maximum(MIN_ROOM, size[full] + size[full] // 2)
        self.start[tasks[full]] = self.end + np.cumsum(room) - room
        self.room[tasks[full]] = room
        self.end += int(room.sum())
        self.cells = grown(self.cells, self.end)
        self.count += int(size.sum() - self.size[tasks].sum())
        self.size[tasks] = size
        self.cells[self._places(tasks, size)[1]] = np.stack(answers[1:], axis=1)


def grown(array: Any, size: int, fill: Any = 0) -> Any:
    """Return an array with at least `size` entries, by doubling; new ones are `fill`."""
    if size <= len(array):
        return array
    more = np.full((max(size, 2 * len(array)), *array.shape[1:]), fill, array.dtype)
    more[: len(array)] = array
    return more


class Extras:
    """Other columns of the answers (times, weights), in pieces as they came; an answer has the number of its row."""

    def __init__(self, first: pl.DataFrame | None = None) -> None:
        self.pieces = [] if first is None or not first.width else [first]
        self.height = sum(piece.height for piece in self.pieces)

    def numbers(self, piece: pl.DataFrame, count: int) -> Ints:
        """Return the row numbers that the `count` rows of a piece would have; -1 without columns."""
        return self.height + np.arange(count) if piece.width else np.full(count, -1)

    def add(self, piece: pl.DataFrame) -> None:
        if piece.width and piece.height:
            self.pieces.append(piece)
            self.height += piece.height

    def rows(self, numbers: Ints) -> pl.DataFrame:
        """Return rows by number; -1 is a row without values."""
        if not self.pieces or not len(numbers) or (numbers < 0).all():
            return pl.DataFrame()
        if len(self.pieces) > 1:
            self.pieces = [_stacked(self.pieces)]
        table = self.pieces[0]
        if (numbers < 0).any():
            table = pl.concat([table, table.clear(1)])
            numbers = np.where(numbers < 0, table.height - 1, numbers)
        return table[numbers]


def _stacked(pieces: list[pl.DataFrame]) -> pl.DataFrame:
    """Return all rows; a column whose types have nothing in common becomes text."""
    try:
        return pl.concat(pieces, how="diagonal_relaxed")
    except pl.exceptions.PolarsError:
        kinds: dict[str, set[str]] = {}
        for piece in pieces:
            for name, kind in piece.schema.items():
                kinds.setdefault(name, set()).add(str(kind))
        mixed = {name for name, found in kinds.items() if len(found) > 1}
        texts = [piece.with_columns([to_text(piece[n]) for n in piece.columns if n in mixed]) for piece in pieces]
        return pl.concat(texts, how="diagonal_relaxed")
