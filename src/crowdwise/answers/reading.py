"""From a table to answers of any kind: columns found, ids of one type, rows left out with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from ..errors import ColumnError, EmptyDataError
from ..kernels.layout import Bools, Ints
from .base import EXAMPLES, Dropped, Intake, Where
from .coding import settle, to_text
from .columns import Roles
from .frames import to_frame


class Reading:
    """A table while it is read. A kind `find`s its columns, asks for their `ids`, `drop`s rows, then calls `check`.

    `columns` maps roles to columns; `used` marks the rows that are not dropped; notes and warnings are collected.
    """

    def __init__(self, data: Any, source: str, notes: Sequence[str], where: Where | None, noun: str = "answer") -> None:
        self.source, self.noun = source, noun  # where the table comes from, and what a row is
        self.notes, self.warnings, self.dropped = list(notes), list[str](), list[Dropped]()
        self.columns, self.guessed = dict[str, str](), tuple[str, ...]()
        self.hold(to_frame(data), where or (lambda row: f"row {row + 1}"))
        if self.frame.height == 0:
            raise EmptyDataError(
                f"no {noun}s in {source}: it has {self.frame.width} column(s) and no rows. Give a table with rows"
            )

    def hold(self, frame: pl.DataFrame, where: Where) -> None:
        """Take these rows, whose places `where` puts into words."""
        self.frame, self.where, self.rows_read = frame, where, frame.height
        self.used: Bools = np.ones(frame.height, bool)

    def find(self, roles: Roles, given: Mapping[str, str | None]) -> None:
        """Find the columns: those given, else guessed by name."""
        self.columns, self.guessed = roles.find(self.frame.columns, given, self.source)

    def ids(self, role: str, column: pl.Series | None = None) -> pl.Series:
        """The column of a role, of one plain type."""
        settled, said = settle(self.frame[self.columns[role]] if column is None else column, role, self.source)
        self.warnings += said
        return settled

    def drop(self, reason: str, mask: Bools, columns: Sequence[str]) -> None:
        """Leave out the rows marked; the first few are quoted by some columns. Without a reason they go unmentioned."""
        mask = mask & self.used
        if reason and mask.any():
            self.dropped.append(self.left_out(reason, np.flatnonzero(mask), columns))
        self.used &= ~mask

    def left_out(self, reason: str, rows: Ints, columns: Sequence[str]) -> Dropped:
        """Rows of the table, counted and the first few quoted as they stand in it, each with its place."""
        quoted = []
        for row in np.sort(rows)[:EXAMPLES].tolist():
            values = (self.frame[name][row] for name in columns)
            quoted.append(f"{self.where(row)}: " + ", ".join("(none)" if v is None else str(v)[:60] for v in values))
        return Dropped(reason, len(rows), tuple(quoted))

    def check(self, worker: pl.Series, advice: str, wanted: str) -> None:
        """Refuse rows without a worker, and a table of which no row is left."""
        nobody = worker.is_null().to_numpy() & self.used if worker.null_count() else np.zeros(1, bool)
        if nobody.any():
            raise ColumnError(
                f"{int(nobody.sum())} {self.noun}(s) in {self.source} have no worker, the first at "
                f"{self.where(int(np.argmax(nobody)))}. {advice}"
            )
        if not self.used.any():
            raise EmptyDataError(f"no {self.noun}s in {self.source}: {self.rows_read} row(s), none {wanted}")

    @cached_property
    def rows(self) -> Ints:
        """(N,) the row of the table that each answer came from; ask only when no more rows are dropped."""
        return np.flatnonzero(self.used)

    def kept(self, column: pl.Series) -> pl.Series:
        """A column without the rows that were dropped."""
        return column if self.used.all() else column.filter(pl.Series(self.used))

    def further(self, taken: Iterable[str]) -> list[str]:
        """Columns that are none of those taken."""
        return [name for name in self.frame.columns if name not in set(taken)]

    def extras(self, taken: Iterable[str]) -> pl.DataFrame:
        """Further columns, under the names of their roles where they have one; a column of several types as text."""
        extras = self.frame.select(self.further(taken))
        names = {
            name: role for role, name in self.columns.items() if name in extras.columns and role not in extras.columns
        }
        mixed = [to_text(column) for column in extras.get_columns() if column.dtype == pl.Object]
        return pl.DataFrame([self.kept(column) for column in extras.with_columns(mixed).rename(names).get_columns()])

    def intake(
        self, shape: str, used: int, *, extras: Sequence[str], dropped: Iterable[Dropped], options: Mapping[str, Any]
    ) -> Intake:
        """The record of all this; `dropped` are further rows that a kind left out later."""
        return Intake(
            source=self.source,
            shape=shape,
            columns=self.columns,
            guessed=self.guessed,
            extras=tuple(extras),
            rows_read=self.rows_read,
            rows_used=used,
            dropped=(*self.dropped, *dropped),
            notes=tuple(self.notes),
            warnings=tuple(self.warnings),
            options=dict(options),
        )


def given(usual: Mapping[str, Any], **arguments: Any) -> dict[str, Any]:
    """The arguments that differ from their usual values (None, if not said otherwise), as plain values for JSON.

    >>> given({"outside": "drop"}, outside="drop", unit=None, axes=("left", "top"))
    {'axes': ['left', 'top']}
    """
    told = {name: value for name, value in arguments.items() if value is not None and value != usual.get(name)}
    return {name: _plain(value) for name, value in told.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (bool, int, float, str)) else str(value)
