"""Coding of ids as integers 0, 1, 2, ... in sorted order, so that codes do not depend on the order of rows."""

from __future__ import annotations

import numbers
import secrets
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import polars as pl

from ..errors import ColumnError
from ..kernels.layout import Ints
from .arguments import brief
from .frames import FOREIGN, converting, surrogate

MIN_ROWS_TO_HASH = 200_000  # with fewer rows of text, hashing is slower
SEEDS = (secrets.randbits(63), secrets.randbits(63))


def normalise_ids(
    column: pl.Series, role: str, source: str, before: int = 0, keep_coded: bool = False
) -> tuple[pl.Series, list[str]]:
    """Return a column of one plain type, ready for coding, and warnings; `before` is the number of rows before it.

    Text stays text (the empty string is missing), typed columns keep their type, categories become their values, unless
    they are to stay coded, which takes less memory. A column of UUIDs or of mixed Python objects becomes text by
    `as_text`.
    """
    kind = column.dtype
    if kind == pl.Object:
        return _mixed(column, role, source, before)
    if kind.is_nested():
        row = int(column.is_not_null().arg_max() or 0)
        value = column[row].to_list() if isinstance(column[row], pl.Series) else column[row]
        raise ColumnError(
            f"{role} column {column.name!r} of {source} holds {kind}, for instance {value!r} in row "
            f"{row + 1 + before}; "
            "each cell must hold one plain value. For several labels per task, make each label a yes/no task of its own"
        )
    if isinstance(kind, (pl.Categorical, pl.Enum)):
        column = column if keep_coded and not (column == "").any() else column.cast(pl.String)
    column = _portable(column)
    if column.dtype.is_float():
        bad = ~column.is_finite()
        if bad.any():
            row = int(bad.arg_max() or 0)
            raise ColumnError(
                f"{role} column {column.name!r} of {source} has {column[row]} in row {row + 1 + before}; "
                "values must be finite; write a missing answer as null"
            )
    if column.dtype == pl.String:
        column = column.set(column.str.len_bytes() == 0, None) if (column == "").any() else column
    return column, []


def _portable(column: pl.Series) -> pl.Series:
    """Return ids in a type that files and other libraries have too: else as text, without a loss of digits."""
    kind = column.dtype
    if kind == pl.Null:
        return column.cast(pl.String)
    if kind == pl.Binary:
        with converting(f"column {column.name!r} of bytes", ColumnError):
            return column.cast(pl.String)
    if isinstance(kind, pl.Duration):
        return column.dt.to_string("iso")
    if isinstance(kind, (pl.Datetime, pl.Time)):
        nanoseconds = getattr(kind, "time_unit", "ns") == "ns"  # of which Python has none
        if nanoseconds and (column.to_physical() % 1000 != 0).any():
            return column.dt.to_string("iso")
    return column.dt.cast_time_unit("us") if isinstance(kind, pl.Datetime) else column


def _mixed(column: pl.Series, role: str, source: str, before: int) -> tuple[pl.Series, list[str]]:
    values = column.to_list()
    for row, value in enumerate(values):
        if not _is_plain(value):
            raise ColumnError(
                f"{role} column {column.name!r} of {source} has {brief(value)} in row {row + 1 + before}, a "
                f"{type(value).__name__}; each cell must hold one plain value: text, a finite number or a boolean"
            )
    kinds = sorted({type(v).__name__ for v in values if v is not None})
    text = _texts(column.name, values)
    text = text.set(text == "", None) if (text == "").any() else text
    warnings = []
    if len(kinds) > 1:
        warnings.append(
            f"{role} column {column.name!r} mixes {', '.join(kinds)}: all were converted to text; 1, 1.0 and '1' "
            "become '1', True becomes 'True'"
        )
    return text, warnings


def _is_plain(value: object) -> bool:
    """Return whether a value is text, a UUID, a boolean or a number that is not infinite."""
    if isinstance(value, (float, np.floating)):
        return not np.isinf(value)
    if isinstance(value, Decimal):
        return not value.is_infinite()
    return value is None or isinstance(value, (str, numbers.Real, np.bool_, UUID))


def as_text(value: object) -> str | None:
    """Convert a value to text: 1, 1.0 and "1" become "1", True becomes "True"; None and NaN are missing."""
    if value is None or (isinstance(value, (float, np.floating)) and np.isnan(value)):
        return None
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def to_text(column: pl.Series) -> pl.Series:
    """Convert a column to text with `as_text`."""
    if column.dtype == pl.String or column.dtype.is_integer():
        return column.cast(pl.String)
    return _texts(column.name, column.to_list())


def _texts(name: str, values: Sequence[Any]) -> pl.Series:
    with converting(f"column {name!r}", ColumnError):  # the values may be objects of any class
        texts = [as_text(value) for value in values]
    try:
        return pl.Series(name, texts, dtype=pl.String)
    except UnicodeEncodeError as error:
        raise surrogate(f"column {name!r}", texts, error) from None


def to_numbers(column: pl.Series) -> pl.Series:
    """Convert a column to numbers; what is no number, time or text of a number becomes null."""
    if column.dtype.is_numeric() or column.dtype.is_temporal() or column.dtype in (pl.Boolean, pl.Null):
        return column.to_physical().cast(pl.Float64)
    if column.dtype.is_nested() or column.dtype == pl.Binary:
        return pl.Series(column.name, [None], dtype=pl.Float64).new_from_index(0, len(column))
    return to_text(column).str.strip_chars().cast(pl.Float64, strict=False)


def to_type(column: pl.Series, kind: pl.DataType) -> pl.Series | None:
    """Convert a column to the type of another; None if its values are then no longer the same."""
    if column.dtype == kind:
        return column
    if kind == pl.String:
        return to_text(column)
    try:
        converted = column.cast(kind, strict=False)
        back = converted.cast(column.dtype, strict=False)
    except pl.exceptions.PolarsError:
        return None
    return converted if back.eq_missing(column).all() else None


def code(column: pl.Series) -> tuple[pl.Series, Ints]:
    """Return the sorted distinct values, and the index of every row among them (-1 if null)."""
    if column.dtype.is_integer() and column.null_count() == 0 and len(column) and _dense(column):
        return _code_dense(column)
    if isinstance(column.dtype, (pl.Categorical, pl.Enum)):
        return _code_categories(column)
    if column.dtype == pl.String and len(column) > MIN_ROWS_TO_HASH:
        return _code_hashed(column)
    ids = column.drop_nulls().unique().sort()
    places = pl.DataFrame({"id": ids, "code": np.arange(len(ids), dtype=np.int32)})
    codes = pl.DataFrame({"id": column}).join(places, on="id", how="left", maintain_order="left")["code"]
    return ids.alias(column.name), codes.fill_null(-1).to_numpy().astype(np.int32, copy=False)


def _code_hashed(column: pl.Series) -> tuple[pl.Series, Ints]:
    """Code a long text column by 128-bit hashes (seeded per process), sorting only one text per hash.

    This takes a quarter of the time of a table of texts. Codes do not depend on the seeds. The probability that any two
    of ten million texts share a hash is 1e-25.
    """
    from ..kernels import fast

    known = column.drop_nulls() if column.null_count() else column
    first, second = _hashes(known)
    guess: Any = pl.Series(first).approx_n_unique()
    likely = min(len(known), int(1.05 * guess) + 1000)
    codes, starts, table = fast.number(first, second, likely)
    ids = known[starts].sort()
    rank = np.empty(len(ids), np.int32)
    rank[fast.numbers_of(*_hashes(ids), table)] = np.arange(len(ids), dtype=np.int32)
    coded = rank[codes]
    if len(known) < len(column):
        whole = np.full(len(column), -1, np.int32)
        whole[column.is_not_null().to_numpy()] = coded
        coded = whole
    return ids.alias(column.name), coded


def _code_categories(column: pl.Series) -> tuple[pl.Series, Ints]:
    """Code a column whose texts are numbered already: only the different texts are sorted."""
    known = column.drop_nulls().unique()
    texts = known.cast(pl.String)
    order = texts.arg_sort().to_numpy()
    numbers = known.to_physical().to_numpy()
    rank = np.full(int(numbers.max(initial=0)) + 2, -1, np.int32)  # the last is for null
    rank[numbers[order]] = np.arange(len(order), dtype=np.int32)
    ids = texts[order].alias(column.name)
    if column.null_count():
        column = column.to_physical().cast(pl.Int64).fill_null(-1)
    return ids, rank[column.to_physical().to_numpy()]


def _hashes(column: pl.Series) -> tuple[Ints, Ints]:
    return column.hash(SEEDS[0]).to_numpy(), column.hash(SEEDS[1]).to_numpy()


def _dense(column: pl.Series) -> bool:
    if column.dtype in (pl.Int128, pl.UInt128):  # which numpy lacks
        return False
    low, high = int(column.min()), int(column.max())  # type: ignore[arg-type]
    return low >= 0 and high < 4 * len(column) + 1000


def _code_dense(column: pl.Series) -> tuple[pl.Series, Ints]:
    """Code small non-negative integers by a lookup table."""
    values = column.to_numpy()
    present = np.zeros(int(values.max()) + 1, bool)
    present[values] = True
    ids = np.flatnonzero(present)
    place = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return pl.Series(column.name, ids).cast(column.dtype), place[values]


def places(known: pl.Series, wanted: pl.Series) -> Ints:
    """Return the index of each value of `wanted` in `known`, or -1."""
    if known.dtype == wanted.dtype and known.dtype != pl.Object:
        numbered = pl.DataFrame({"id": known, "at": np.arange(len(known), dtype=np.int32)})
        found = pl.DataFrame({"id": wanted}).join(numbered, on="id", how="left", maintain_order="left")["at"]
        return found.fill_null(-1).to_numpy()
    at = {value: n for n, value in enumerate(known.to_list())}
    return np.array([at.get(value, -1) for value in wanted.to_list()], np.int32)


def sought(wanted: Any) -> Any:
    """Return an id of the caller's as it is among ids: a UUID as text."""
    return str(wanted) if isinstance(wanted, UUID) else wanted


def place_of(ids: pl.Series, wanted: Any) -> int | None:
    """Return the index of a value among ids; None if it is not there, whatever it is."""
    if isinstance(wanted, Decimal) and not wanted.is_finite():  # at which polars panics
        return None
    wanted = sought(wanted)
    try:
        return ids.index_of(wanted)
    except FOREIGN:  # a value of another type
        pass
    try:
        return ids.to_list().index(wanted)
    except FOREIGN:  # it is not there, or cannot be compared
        return None
