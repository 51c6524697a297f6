"""Conversion of pandas, polars and arrow frames, mappings and records to polars frames.

What a library raises while it converts a table or column of the caller's becomes a DataError (`converting`); a column
that cannot be converted as a whole is converted value by value.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..errors import ColumnError, CrowdwiseError, DataError
from ..forks import refuse_lost_threads
from .arguments import brief

# What a library may raise: anything. The panics of polars are no Exception.
FOREIGN = (Exception, pl.exceptions.PanicException)
NUMPY_UNITS = {"Y": "D", "M": "D", "W": "D", "h": "ms", "m": "ms", "s": "ms", "ps": "ns", "fs": "ns", "as": "ns"}
# The first value that Python has, and the first one beyond: days, and seconds, since 1970.
LIMITS: dict[type, tuple[int, int]] = {
    pl.Date: (-719_162, 2_932_897), pl.Datetime: (-62_135_596_800, 253_402_300_800), pl.Duration: (-(10**13), 10**13),
}  # fmt: skip
MARGIN = 100_000  # seconds between these limits and times in zones, which are converted to others
PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
CONTAINERS = (list, tuple, set, dict, np.ndarray)


class Handed:
    """A large table that is handed over to a class of answers: nobody else holds it, so its memory can be freed."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frames = [frame]

    def taken(self) -> pl.DataFrame:
        """Return the table, once."""
        return self._frames.pop()


@contextmanager
def converting(what: str, kind: type[CrowdwiseError] = DataError) -> Iterator[None]:
    """Raise a DataError for what a library raises while it converts a value of the caller's. The body calls nothing but
    the library."""
    try:
        yield
    except (CrowdwiseError, MemoryError):
        raise
    except FOREIGN as error:
        why = (str(error).strip() or "no reason given").splitlines()[0]
        raise kind(f"{what} cannot be read: {type(error).__name__}: {why[:200]}") from error


def to_frame(data: Any) -> pl.DataFrame:
    """Return a polars frame from a frame of pandas, polars or Spark, a DuckDB relation, an arrow table, dataset or
    reader, a mapping of columns, or a list of records."""
    refuse_lost_threads()
    frame = _frame(data)
    odd = [_readable(frame[name]) for name, kind in frame.schema.items() if _may_be_unreadable(kind)]
    return frame.with_columns(odd) if odd else frame


def _frame(data: Any) -> pl.DataFrame:
    if isinstance(data, pl.DataFrame):
        return data
    if isinstance(data, Handed):
        return data.taken()
    if isinstance(data, pl.LazyFrame):
        with converting("the lazy frame"):
            return data.collect()
    if isinstance(data, Mapping):
        return _build((name, data[name]) for name in data)
    if _is_pandas(data) and hasattr(data, "iloc"):  # a frame or a Series
        return _from_pandas(data)
    if _module(data) in ("duckdb", "_duckdb") and hasattr(data, "pl"):
        with converting("the relation"):
            return data.pl()  # type: ignore[no-any-return]
    arrow = _arrow_table(data)
    if arrow is not None:
        return _build(zip(arrow.column_names, arrow.columns, strict=True))
    if hasattr(data, "__arrow_c_stream__"):
        with converting("the table"):
            return pl.DataFrame(data)
    if isinstance(data, list) and data and isinstance(data[0], Mapping):
        return _from_records(data)
    if isinstance(data, (str, Path)):
        raise DataError(f"{str(data)!r} is a file name, not a table. To read a file, use crowdwise.read({str(data)!r})")
    raise DataError(
        f"answers cannot be made from {type(data).__name__}; give a pandas, polars, arrow, DuckDB or Spark frame, a "
        "mapping of columns, or three arrays: tasks, workers, labels"
    )


def _arrow_table(data: Any) -> Any:
    """Return the table in an object of pyarrow, or in a frame of Spark; None for anything else."""
    for module, method in (("pyspark", "toArrow"), ("pyarrow", "to_table"), ("pyarrow", "read_all")):
        if _module(data) == module and hasattr(data, method):
            with converting("the table"):
                return getattr(data, method)()
    return data if _module(data) == "pyarrow" and hasattr(data, "column_names") else None


def _from_records(records: list[Any]) -> pl.DataFrame:
    for row, record in enumerate(records, start=1):
        if not isinstance(record, Mapping):
            raise DataError(f"record {row} is a {type(record).__name__}, not a mapping of columns as the first one")
    names = dict.fromkeys(name for record in records for name in record)
    return _build((name, [record.get(name) for record in records]) for name in names)


def _build(columns: Iterable[tuple[Any, Any]]) -> pl.DataFrame:
    found: dict[str, pl.Series] = {}
    for key, values in columns:
        name = str(key)
        if name in found:
            raise ColumnError(f"the frame has more than one column {name!r}; rename one")
        found[name] = to_series(name, values)
    sizes = {name: len(column) for name, column in found.items()}
    if len(set(sizes.values())) > 1:
        raise ColumnError(f"columns differ in length: {', '.join(f'{n} {s}' for n, s in sizes.items())}")
    return pl.DataFrame(list(found.values()))


def _from_pandas(data: Any) -> pl.DataFrame:
    if not hasattr(data, "columns"):  # a Series of gold labels indexed by task, as in crowd-kit
        with converting("the Series"):
            data = data.rename("label").rename_axis("task").reset_index()
    return _build((name, data.iloc[:, number]) for number, name in enumerate(data.columns))


def _is_pandas(data: Any) -> bool:
    return _module(data) == "pandas"


def _module(data: Any) -> str:
    """The package that an object comes from."""
    return type(data).__module__.split(".")[0]


def to_series(name: str, values: Any) -> pl.Series:
    """Return a column of the caller's as a polars column; what no library can convert raises ColumnError."""
    with converting(f"column {name!r}", ColumnError):
        if isinstance(values, pl.Series):
            return values.alias(name)
        if getattr(values, "ndim", 1) != 1:
            raise ColumnError(f"{name} has shape {values.shape}; give a 1D array with one value per answer")
        if _is_pandas(values):
            return _pandas_column(name, values)
        if isinstance(values, np.ma.MaskedArray):
            return _from_list(name, values.tolist())
        if isinstance(values, np.ndarray) and values.dtype != object:
            return _numpy_column(name, values)
        if hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"):
            return _arrow_column(name, values)
        if isinstance(values, (str, bytes, Mapping, set, frozenset)) or not hasattr(values, "__iter__"):
            raise ColumnError(
                f"column {name!r} is {brief(values)}, a {type(values).__name__}; give a list or an array with one "
                "value per row"
            )
        return _from_list(name, list(values))


def _pandas_column(name: str, values: Any) -> pl.Series:
    """Convert a Series, an Index or an array of pandas; NaN and NA become null."""
    import pandas as pd

    column = pd.Series(values.to_flat_index() if isinstance(values, pd.MultiIndex) else values)
    if isinstance(column.dtype, (pd.PeriodDtype, pd.IntervalDtype)):
        column = column.astype(object).map(str, na_action="ignore")
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufbmM":
        return _numpy_column(name, column.to_numpy(), nan_to_null=True)
    if column.dtype != object and importlib.util.find_spec("pyarrow"):
        try:
            return pl.Series(name, pl.from_pandas(column, nan_to_null=True))
        except FOREIGN:
            pass  # a type unknown to arrow: convert the values below
    column = column.astype(object)
    return _from_list(name, column.where(column.notna(), None).tolist())


def _numpy_column(name: str, values: Any, nan_to_null: bool = False) -> pl.Series:
    """Convert an array of numpy. Times are converted to a unit that polars has."""
    if values.dtype.kind in "mM":
        unit = np.datetime_data(values.dtype)[0]
        fitting = values.astype(f"{values.dtype.kind}8[{NUMPY_UNITS.get(unit, 'us' if unit == 'generic' else unit)}]")
        lost = np.flatnonzero((fitting.astype(values.dtype) != values) & ~np.isnat(values))
        if len(lost):
            raise ColumnError(
                f"column {name!r} has the time {values[lost[0]]!r} in row {lost[0] + 1}, which is too far"
            )
        values = fitting
    return pl.Series(name, values, nan_to_null=nan_to_null)


def _arrow_column(name: str, values: Any) -> pl.Series:
    """Convert an array of arrow; types that polars lacks are converted value by value."""
    listed = hasattr(values, "to_pylist")
    if not (listed and "decimal256" in str(values.type)):  # at which polars panics
        try:
            return pl.Series(name, values)
        except FOREIGN:
            if not listed:
                raise
    return _from_list(name, values.to_pylist())


def _from_list(name: str, values: list[Any]) -> pl.Series:
    values = [_python(value) for value in values]  # np.int64 and int count as one type
    kinds = {type(v) for v in values if v is not None}
    plain = len(kinds) < 2 and not any(issubclass(kind, CONTAINERS) for kind in kinds)
    try:
        return pl.Series(name, values) if plain and _fits(values, kinds) else _objects(name, values)
    except UnicodeEncodeError as error:
        raise surrogate(f"column {name!r}", values, error) from None
    except OverflowError:  # integers of more than 128 bits
        return _objects(name, values)


def _objects(name: str, values: list[Any]) -> pl.Series:
    return pl.Series(name, values, dtype=pl.Object)


def _python(value: Any) -> Any:
    """Return a value of numpy as one of Python, and a decimal NaN as None."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else value.astype("datetime64[us]").item()
    if isinstance(value, Decimal) and value.is_nan():
        return None
    return value.item() if isinstance(value, np.generic) else value


def _fits(values: list[Any], kinds: set[type]) -> bool:
    """Whether polars has a type for these values, which are all of one kind: it panics at some decimals."""
    if kinds != {Decimal}:
        return True
    digits = [value.as_tuple() for value in values if value is not None]
    return all(isinstance(each.exponent, int) and abs(each.exponent) + len(each.digits) < 35 for each in digits)


def surrogate(where: str, values: Iterable[Any], error: UnicodeEncodeError) -> DataError:
    """Return the error for a text with a lone surrogate."""
    rows = (row for row, text in enumerate(values, start=1) if isinstance(text, str) and not _encodes(text))
    return DataError(
        f"{where} has a text with the lone surrogate {error.object[error.start : error.end]!a} in row {next(rows, 1)}, "
        "which is not valid Unicode. Correct the text"
    )


def _encodes(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _may_be_unreadable(kind: pl.DataType) -> bool:
    return isinstance(kind, (pl.BaseExtension, pl.Datetime, pl.Date, pl.Duration))


def _readable(column: pl.Series) -> pl.Series:
    """Return a column whose values can be converted to Python: of an extension type, what is stored; times beyond the
    calendar of Python are refused."""
    kind: Any = column.dtype
    if isinstance(kind, pl.BaseExtension):
        return column.ext.storage()
    second = 1 if isinstance(kind, pl.Date) else PER_SECOND[kind.time_unit]
    low, high = LIMITS[type(kind)]
    if getattr(kind, "time_zone", None) is not None:
        low, high = low + MARGIN, high - MARGIN
    wide = column.to_physical().cast(pl.Int128)
    wrong = ~wide.is_between(low * second, high * second, closed="left").fill_null(value=True)
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise ColumnError(
            f"column {column.name!r} has a time in row {row + 1} that is beyond the calendar (years 1 to 9999). "
            "Correct it, or give the times as numbers"
        )
    return column
