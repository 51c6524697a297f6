"""Conversion of pandas, polars and arrow frames, mappings and records to polars frames."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..errors import ColumnError, DataError
from ..forks import refuse_lost_threads


class Handed:
    """A large table that is handed over to a class of answers: nobody else holds it, so its memory can be freed."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frames = [frame]

    def taken(self) -> pl.DataFrame:
        """Return the table, once."""
        return self._frames.pop()


def to_frame(data: Any) -> pl.DataFrame:
    """Return a polars frame from a frame of pandas, polars or Spark, a DuckDB relation, an arrow table, dataset or
    reader, a mapping of columns, or a list of records."""
    refuse_lost_threads()
    try:
        return _frame(data)
    except UnicodeEncodeError as error:
        raise DataError(
            f"a text contains the lone surrogate {error.object[error.start : error.end]!a}, which is not valid "
            "Unicode. Correct the text"
        ) from None


def _frame(data: Any) -> pl.DataFrame:
    if isinstance(data, pl.DataFrame):
        return data
    if isinstance(data, Handed):
        return data.taken()
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if isinstance(data, Mapping):
        return _build({str(name): _series(str(name), values) for name, values in data.items()})
    if _is_pandas(data) and hasattr(data, "iloc"):  # a frame or a Series
        return _from_pandas(data)
    if _module(data) == "pyspark" and hasattr(data, "toArrow"):
        return pl.DataFrame(data.toArrow())
    if _module(data) in ("duckdb", "_duckdb") and hasattr(data, "pl"):
        return data.pl()  # type: ignore[no-any-return]
    if _module(data) == "pyarrow" and hasattr(data, "to_table"):  # a dataset
        return pl.DataFrame(data.to_table())
    if hasattr(data, "__arrow_c_stream__"):
        return pl.DataFrame(data)
    if isinstance(data, list) and data and isinstance(data[0], Mapping):
        names = list(dict.fromkeys(name for record in data for name in record))
        return to_frame({name: [record.get(name) for record in data] for name in names})
    if isinstance(data, (str, Path)):
        raise DataError(f"{str(data)!r} is a file name, not a table. To read a file, use crowdwise.read({str(data)!r})")
    raise DataError(
        f"answers cannot be made from {type(data).__name__}; give a pandas, polars, arrow, DuckDB or Spark frame, a "
        "mapping of columns, or three arrays: tasks, workers, labels"
    )


def _build(columns: dict[str, pl.Series]) -> pl.DataFrame:
    sizes = {name: len(column) for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        raise ColumnError(f"columns differ in length: {', '.join(f'{n} {s}' for n, s in sizes.items())}")
    return pl.DataFrame(list(columns.values()))


def _from_pandas(data: Any) -> pl.DataFrame:
    if not hasattr(data, "columns"):  # a Series of gold labels indexed by task, as in crowd-kit
        data = data.rename("label").rename_axis("task").reset_index()
    names = [str(name) for name in data.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ColumnError(f"the frame has more than one column {twice[0]!r}; rename one")
    return _build({str(name): _pandas_column(str(name), data[name]) for name in data.columns})


def _is_pandas(data: Any) -> bool:
    return _module(data) == "pandas"


def _module(data: Any) -> str:
    """The package that an object comes from."""
    return type(data).__module__.split(".")[0]


def _pandas_column(name: str, values: Any) -> pl.Series:
    """Convert a Series, an Index or an array of pandas; NaN and NA become null."""
    import pandas as pd

    column = pd.Series(values.to_flat_index() if isinstance(values, pd.MultiIndex) else values)
    if isinstance(column.dtype, (pd.PeriodDtype, pd.IntervalDtype)):
        column = column.astype(object).map(str, na_action="ignore")
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufbM":
        return pl.Series(name, column.to_numpy(), nan_to_null=True)
    if column.dtype != object and importlib.util.find_spec("pyarrow"):
        try:
            return pl.Series(name, pl.from_pandas(column, nan_to_null=True))
        except (TypeError, ValueError, NotImplementedError, pl.exceptions.PolarsError):
            pass  # a type unknown to arrow: convert the values below
    column = column.astype(object)
    return _from_list(name, column.where(column.notna(), None).tolist())


def _series(name: str, values: Any) -> pl.Series:
    if isinstance(values, pl.Series):
        return values.alias(name)
    if _is_pandas(values):
        return _pandas_column(name, values)
    if isinstance(values, np.ndarray) and values.dtype != object:
        if values.ndim != 1:
            raise ColumnError(f"{name} has shape {values.shape}; give a 1D array with one value per answer")
        return pl.Series(name, values)
    if hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"):
        return pl.Series(name, values)
    return _from_list(name, list(values))


def _from_list(name: str, values: list[Any]) -> pl.Series:
    values = [v.item() if isinstance(v, np.generic) else v for v in values]  # np.int64 and int count as one type
    kinds = {type(v) for v in values if v is not None}
    if len(kinds) > 1 or any(issubclass(kind, (list, tuple, set, dict, np.ndarray)) for kind in kinds):
        return pl.Series(name, values, dtype=pl.Object)
    try:
        return pl.Series(name, values)
    except OverflowError:  # integers of more than 128 bits
        return pl.Series(name, values, dtype=pl.Object)
