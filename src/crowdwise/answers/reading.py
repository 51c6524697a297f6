"""Reading a table of answers of any kind: find columns, normalise ids, drop rows with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from ..errors import ColumnError, EmptyDataError, nearest, option, phrase
from ..kernels.layout import Bools, Ints
from .base import MAX_EXAMPLES, Dropped, Intake, Where
from .coding import normalise_ids, to_text
from .columns import LABEL_ROLES, Roles
from .frames import to_frame
from .proposals import proposed

NOT_PLAIN = (pl.Object, pl.Binary)
SET_ASIDE = "__set_aside__"  # column of reasons why rows of an export are not answers; null for answers


class Reading:
    """A table that is being read. Call `find` for the columns, `ids` for each role, `drop` for unusable rows, `check`.

    `columns` maps roles to columns; `used` marks the rows that are not dropped; `notes` and `warnings` are collected.
    `part` is the number of this part of a table that is read in parts: a part may have no answers, and what can be said
    only of the whole table is left to `parts.Merged`.
    """

    def __init__(
        self, data: Any, source: str, notes: Sequence[str], where: Where | None, noun: str = "answer", *,
        may_be_empty: bool = False, part: int | None = None,
    ) -> None:  # fmt: skip
        self.source, self.noun, self.part = source, noun, part  # the origin of the table, and the noun for a row
        self.notes, self.warnings, self.dropped = list(notes), list[str](), list[Dropped]()
        self.columns, self.guessed = dict[str, str](), tuple[str, ...]()
        self.set_frame(to_frame(data), where or (lambda row: f"row {row + 1}"))
        if self.frame.height == 0 and not may_be_empty and part is None:
            raise EmptyDataError(
                f"no {noun}s in {source}: it has {self.frame.width} column(s) and no rows. Give a table with rows"
            )

    def set_frame(self, frame: pl.DataFrame, where: Where) -> None:
        """Set the rows to read; `where` describes the place of a row."""
        self.set_aside = frame[SET_ASIDE] if SET_ASIDE in frame.columns else None
        self.exported = self.set_aside is not None  # whether the table is from an export of a platform
        self.frame, self.where, self.rows_read = frame.drop(SET_ASIDE, strict=False), where, frame.height
        self.used: Bools = np.ones(frame.height, bool)

    def ignore(self, columns: Sequence[str]) -> None:
        """Leave out columns; those of a part that was read without them are not there any more."""
        absent = [name for name in columns if name not in self.frame.columns]
        if absent and self.part is None:
            raise ColumnError(
                f"no column {absent[0]!r} in {self.source} to leave out; columns are {', '.join(self.frame.columns)}."
                f"{nearest(absent[0], self.frame.columns)}"
            )
        self.frame = self.frame.drop(columns, strict=False)

    def find(self, roles: Roles, given: Mapping[str, str | None]) -> None:
        """Find the columns: those given; the others are recognised by name."""
        try:
            self.columns, self.guessed = roles.find(self.frame.columns, given, self.source)
        except ColumnError as error:
            advice = self._advice(roles, given)
            raise ColumnError(error.args[0] + advice) if advice else error from error.__cause__

    def _advice(self, roles: Roles, given: Mapping[str, str | None]) -> str:
        """Return options that name the columns of labels, if their values say which they may be."""
        known = {role: name for role, name in given.items() if name is not None and role in roles.required}
        if roles is not LABEL_ROLES or any(name not in self.frame.columns for name in known.values()):
            return ""
        guessed = {role: roles.guess(role, self.frame.columns) for role in roles.required}
        found = proposed(self.frame, {role: name for role, name in guessed.items() if name is not None} | known)
        if found is None:
            return ""
        new = [option(role, found[role]) for role in roles.required if found[role] != guessed[role]]
        return f". By their values, these may be the columns: {phrase(', ', ' ').join(new)}" if new else ""

    def counted(self, count: int) -> str:
        """Return a count for a message; a part knows only its own rows."""
        return str(count) if self.part is None else f"at least {count}"

    def ids(self, role: str, column: pl.Series | None = None, keep_coded: bool = False) -> pl.Series:
        """Return the column of a role, converted to one plain type; categories stay if they are to be kept coded."""
        raw = self.frame[self.columns[role]] if column is None else column
        ids, warnings = normalise_ids(raw, role, self.source, keep_coded=keep_coded)
        self.warnings += warnings
        return ids

    def drop_set_aside(self, columns: Sequence[str]) -> None:
        """Drop the rows of an export that are not answers, by their reasons."""
        reasons = self.set_aside
        if reasons is not None:
            for reason in reasons.drop_nulls().unique().sort().to_list():
                self.drop(reason, (reasons == reason).fill_null(value=False).to_numpy(), columns)

    def drop(self, reason: str, mask: Bools, columns: Sequence[str]) -> None:
        """Drop the rows marked and record why, quoting `columns` of the first few; an empty reason records nothing."""
        mask = mask & self.used
        if reason and mask.any():
            self.dropped.append(self.dropped_rows(reason, np.flatnonzero(mask), columns))
        self.used &= ~mask

    def dropped_rows(self, reason: str, rows: Ints, columns: Sequence[str]) -> Dropped:
        """Count rows that are dropped for `reason`, and quote the first few with their place."""
        quoted = []
        for row in np.sort(rows)[:MAX_EXAMPLES].tolist():
            values = (self.frame[name][row] for name in columns)
            quoted.append(f"{self.where(row)}: " + ", ".join("(none)" if v is None else str(v)[:60] for v in values))
        return Dropped(reason, len(rows), tuple(quoted))

    def check(self, worker: pl.Series, advice: str, wanted: str) -> None:
        """Raise an error if a row has no worker (with `advice`), or if no row is left (none `wanted`)."""
        unnamed = worker.is_null().to_numpy() & self.used if worker.null_count() else np.zeros(1, bool)
        if unnamed.any():
            raise ColumnError(
                f"{self.counted(int(unnamed.sum()))} {self.noun}(s) in {self.source} have no worker, "
                f"{'the first' if self.part is None else 'one'} at "
                f"{self.where(int(np.argmax(unnamed)))}. {advice}"
            )
        if self.rows_read and not self.used.any() and self.part is None:
            raise EmptyDataError(f"no {self.noun}s in {self.source}: {self.rows_read} row(s), none {wanted}")

    @cached_property
    def rows(self) -> Ints:
        """(N,) row of the table of each answer. Use it only after all rows to drop are dropped."""
        return np.flatnonzero(self.used).astype(np.uint32)

    def kept(self, column: pl.Series) -> pl.Series:
        """Return a column without the dropped rows."""
        return column if self.used.all() else column.filter(pl.Series(self.used))

    def other_columns(self, taken: Iterable[str]) -> list[str]:
        """Return the names of all columns that are not in `taken`."""
        return [name for name in self.frame.columns if name not in set(taken)]

    def extras(self, taken: Iterable[str]) -> pl.DataFrame:
        """Return the other columns of the rows that are not dropped."""
        return pl.DataFrame([self.kept(column) for column in self.others(taken).get_columns()])

    def others(self, taken: Iterable[str]) -> pl.DataFrame:
        """Return the other columns, renamed to their roles; those of mixed types or of no plain values become text."""
        extras = self.frame.select(self.other_columns(taken))
        names = {
            name: role for role, name in self.columns.items() if name in extras.columns and role not in extras.columns
        }
        mixed = [to_text(each) for each in extras.get_columns() if each.dtype.is_nested() or each.dtype in NOT_PLAIN]
        return extras.with_columns(mixed).rename(names)

    def release(self) -> None:
        """Drop the table, of which all that is needed has been taken: it may be large."""
        self.rows  # noqa: B018  (needed later, for the places of answers)
        self.frame, self.set_aside = self.frame.clear(), None

    def intake(
        self, shape: str, used: int, *, extras: Sequence[str], dropped: Iterable[Dropped], options: Mapping[str, Any]
    ) -> Intake:
        """Return the record of the reading; `dropped` are rows that were dropped after `check`."""
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


def given(defaults: Mapping[str, Any], **arguments: Any) -> dict[str, Any]:
    """Return the arguments that differ from their defaults (None if not in `defaults`), as plain values for JSON.

    >>> given({"outside": "drop"}, outside="drop", unit=None, axes=("left", "top"))
    {'axes': ['left', 'top']}
    """
    changed = {name: value for name, value in arguments.items() if value is not None and value != defaults.get(name)}
    return {name: _plain(value) for name, value in changed.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (bool, int, float, str)) else str(value)
