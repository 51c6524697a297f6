"""Odd values, for any argument of a public function, and odd columns, for any table."""

from __future__ import annotations

import datetime as dt
import fractions
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

N = 6  # rows of the odd columns


class Broken:
    """An object whose methods raise what it is told to raise."""

    def _fails(self, *_: Any) -> Any:
        raise RuntimeError("broken")

    __str__ = __eq__ = __lt__ = __len__ = __bool__ = __iter__ = __float__ = __int__ = __hash__ = _fails  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "Broken()"


VALUES: dict[str, Any] = {
    "None": None, "True": True, "5": 5, "-1": -1, "0": 0, "1.5": 1.5, "nan": float("nan"), "inf": float("inf"),
    "-inf": -float("inf"), "2**70": 2**70, "10**400": 10**400, "''": "", "x": "x", "many": "many", "NUL": "a\0b",
    "surrogate": "\ud800", "long": "y" * 300, "b'x'": b"x", "()": (), "[]": [], "{}": {}, "set": {1, "a"},
    "object": object(), "[None]": [None], "[object]": [object()], "[[1]]": [[1], [2, 3]], "Decimal NaN": Decimal("NaN"),
    "1j": 1j, "float16": np.float16("nan"), "int64": np.int64(3), "NaT": np.datetime64("NaT"), "function": len,
    "class": int, "path": Path("no such"), "NUL path": Path("a\0b"), "no rows": pl.DataFrame(),
    "2-d": np.zeros((2, 2)), "0-d": np.array(3), "NA": pd.NA, "Broken": Broken(), "generator": (n for n in ()),
    "mixed": {"task": [1, "a", 2.5], "x": 3}, "date": dt.date(2026, 1, 2), "fraction": fractions.Fraction(1, 3),
}  # fmt: skip


def columns() -> Iterator[tuple[str, Any]]:
    """Yield odd columns of N values, by name."""
    yield from _python()
    yield from _numpy()
    yield from _pandas()
    yield from _polars()
    yield from _arrow()


def _python() -> Iterator[tuple[str, Any]]:
    yield "huge integers", [10**40, 10**40 + 1, 2**64, -(10**40), 1, 10**400]
    yield "beyond 64 bits", [2**64, 2**64 + 1, 2**63, 1, 2, 3]
    yield "beyond 128 bits", [2**128, 1, 2, 3, 4, 5]
    yield "decimals", [Decimal("1.50"), Decimal("NaN"), Decimal("Infinity"), Decimal(1), Decimal("1e400"), None]
    yield "decimal NaN", [Decimal("NaN")] * N
    yield "decimal sNaN", [Decimal("sNaN"), *[Decimal(1)] * (N - 1)]
    yield "fractions", [fractions.Fraction(1, n + 1) for n in range(N)]
    yield "fraction of integers", [fractions.Fraction(10**400, 3), 1.5, 2, 3, 4, 5]
    yield "surrogates", ["a", "\ud800", "b\udfff", "c", "d", "e"]
    yield "surrogate among others", ["a", "\ud800", 1, 2.5, None, True]
    yield "NUL", ["a\0b", "a", "\0", "", " ", "b"]
    yield "a megabyte", ["m" * 1_000_000, *"abcde"]
    yield "bytes", [b"a", b"\xff", b"", b"b", b"c", None]
    yield "complex", [1j, 2, 3, 4, 5, 6]
    yield "sets", [{1}, {2}, set(), {3}, frozenset({4}), None]
    yield "lists", [[1], [2, 3], [], None, [4], [5]]
    yield "nested lists", [[[1]], [[2], [3]], [], None, [[4]], [[5]]]
    yield "tuples", [(1, "a"), (2,), (), None, (3,), (4,)]
    yield "dicts", [{"a": 1}, {"b": 2}, {}, None, {"a": "x"}, {"c": []}]
    yield "mixed", [1, "a", 2.5, None, True, dt.date(2026, 1, 2)]
    yield "numbers and text", [1, "1", 1.0, "1.0", True, "True"]
    yield "nan and text", [float("nan"), "a", None, "b", float("inf"), "c"]
    yield "objects", [object() for _ in range(N)]
    yield "broken objects", [Broken() for _ in range(N)]
    yield "broken among others", ["a", Broken(), 1, 2, 3, 4]
    yield "classes", [int, str, float, None, bool, object]
    yield "times", [dt.datetime(2026, 1, 2), dt.date(2026, 1, 2), dt.time(3), dt.timedelta(1), None, "2026"]
    yield "zones", [dt.datetime(2026, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=n))) for n in range(N)]
    yield "old times", [dt.datetime.min, dt.datetime.max, dt.datetime(1, 1, 1), None, None, None]
    yield "set", set(range(N))
    yield "dict", {str(n): n for n in range(N)}
    yield "text", "abcdef"
    yield "one value", "a"
    yield "number", 5
    yield "none", None
    yield "nothing", []
    yield "all None", [None] * N
    yield "too few", [1, 2]
    yield "range", range(N)
    yield "iterator", iter(range(N))
    yield "broken", Broken()
    yield "paths", [Path("a"), Path("b"), "a", "b", None, Path("c")]


def _numpy() -> Iterator[tuple[str, Any]]:
    for unit in ("Y", "M", "W", "D", "h", "s", "ms", "us", "ns", "ps", "as"):
        yield f"datetime64[{unit}]", np.array([0, 1, 2, 3, 4, np.iinfo(np.int64).min], f"datetime64[{unit}]")
    yield "timedelta64[D]", np.arange(N).astype("timedelta64[D]")
    yield "timedelta64", np.array([1, 2, 3, 4, 5, "NaT"], "timedelta64[Y]")
    yield "datetime64", np.array(["NaT"] * N, "datetime64")
    yield "float16", np.array([1, 2, np.nan, np.inf, 3, 4], np.float16)
    yield "longdouble", np.arange(N, dtype=np.longdouble)
    yield "complex64", np.arange(N, dtype=np.complex64)
    yield "uint64", np.array([2**64 - 1, 0, 1, 2, 3, 4], np.uint64)
    yield "structured", np.array([(n, 1.5) for n in range(N)], [("a", "i4"), ("b", "f8")])
    yield "record array", np.rec.array([(n, "a") for n in range(N)])  # type: ignore[call-overload]
    yield "masked", np.ma.array(np.arange(N), mask=[0, 1, 0, 0, 1, 0])
    yield "masked floats", np.ma.array([1.5] * N, mask=[0, 1, 0, 0, 1, 0])
    yield "masked objects", np.ma.array(list("abcdef"), object, mask=[0, 1, 0, 0, 1, 0])
    yield "void", np.zeros(N, "V4")
    yield "fixed bytes", np.array([b"a", b"b", b"c", b"\xff", b"", b"a"])
    yield "fixed text", np.array(["a", "b", "c", "", "a\0", "d"])
    yield "big-endian", np.arange(N, dtype=">i4")
    yield "objects of numpy", np.array([1, "a", None, 2.5, [1], np.float32(1)], object)
    yield "0-d", np.array(3)
    yield "2-d", np.zeros((N, 2))
    yield "2-d objects", np.array([["a", "b"]] * N, object)
    yield "3-d", np.zeros((N, 1, 1))
    yield "matrix", np.asmatrix(np.zeros((N, 1)))
    if hasattr(np.dtypes, "StringDType"):
        yield "StringDType", np.array(["a", "b", "", "c", "d", "e"], np.dtypes.StringDType())


def _pandas() -> Iterator[tuple[str, Any]]:
    yield "Int64", pd.array([1, None, 2**62, 3, 4, 5], dtype="Int64")
    yield "Float64", pd.array([1.5, None, np.nan, 3, 4, 5], dtype="Float64")
    yield "boolean", pd.array([True, None, False, True, True, False], dtype="boolean")
    yield "string", pd.array(["a", None, "", "b", "c", "d"], dtype="string")
    yield "string[pyarrow]", pd.array(["a", None, "", "b", "c", "d"], dtype="string[pyarrow]")
    yield "int64[pyarrow]", pd.array([1, None, 2, 3, 4, 5], dtype="int64[pyarrow]")
    yield "list[pyarrow]", pd.array([[1], None, [2], [3], [], [5]], dtype=pd.ArrowDtype(pa.list_(pa.int64())))
    yield "category", pd.Categorical(["a", "b", None, "a", "c", "d"], categories=list("abcdef"))
    yield "mixed categories", pd.Categorical([1, "a", 2.5, None, 1, "b"], categories=[1, "a", 2.5, "b"])
    yield "categories of dates", pd.Categorical(pd.date_range("2026", periods=N))
    yield "categories of intervals", pd.cut(np.arange(N), 3)
    yield "categories of tuples", pd.Categorical([(1, 2), (3, 4), None, (1, 2), (3, 4), (1, 2)])
    yield "period", pd.period_range("2026-01", periods=N, freq="M")
    yield "interval", pd.interval_range(0, N)
    yield "sparse", pd.arrays.SparseArray([0, 0, 1, 0, 2, 0])
    yield "sparse text", pd.arrays.SparseArray(["a", "", "b", "", "", "c"])
    yield "timedelta", pd.to_timedelta(np.arange(N), "D")
    yield "zone", pd.date_range("2026", periods=N, tz="Europe/Berlin")
    yield "seconds", pd.Series(np.arange(N).astype("datetime64[s]"))
    yield "far dates", pd.Series(np.array(["9999-01-01"] * N, "datetime64[s]"))
    yield "objects of pandas", pd.Series([1, pd.NA, "a", pd.NaT, 2.5, None], dtype=object)
    yield "NA", pd.Series([pd.NA] * N)
    yield "NaT", pd.Series([pd.NaT] * N)
    yield "complex of pandas", pd.Series(np.arange(N) * 1j)
    yield "decimals of pandas", pd.Series([Decimal("NaN"), Decimal(1), None, Decimal(2), Decimal(3), Decimal(4)])
    yield "surrogates of pandas", pd.Series(["a", "\ud800", "b", "c", "d", "e"], dtype=object)
    yield "huge integers of pandas", pd.Series([10**40, 1, 2, 3, 4, 5], dtype=object)
    yield "MultiIndex", pd.MultiIndex.from_product([["a", "b"], [1, 2, 3]])
    yield "index", pd.Index(list("abcdef"))
    yield "frame", pd.DataFrame({"a": range(N), "b": range(N)})


def _polars() -> Iterator[tuple[str, Any]]:
    yield "Object", pl.Series("a", [1, "a", None, 2.5, {1}, object()], dtype=pl.Object)
    yield "Object of numbers", pl.Series("a", [1, 2, 10**40, 4, 5, 6], dtype=pl.Object)
    yield "List", pl.Series("a", [[1], [2], None, [], [3], [4]])
    yield "Array", pl.Series("a", [[1, 2]] * N, dtype=pl.Array(pl.Int64, 2))
    yield "Struct", pl.Series("a", [{"a": n, "b": "x"} for n in range(N)])
    yield "Null", pl.Series("a", [None] * N)
    yield "Categorical", pl.Series("a", ["a", "b", None, "", "c", "a"], dtype=pl.Categorical)
    yield "Enum", pl.Series("a", ["a", "b", None, "a", "b", "a"], dtype=pl.Enum(["b", "a", "c"]))
    yield "Binary", pl.Series("a", [b"a", b"\xff", None, b"", b"b", b"c"])
    yield "Decimal", pl.Series("a", [Decimal("1.50"), None, *[Decimal(2)] * 4], dtype=pl.Decimal(38, 2))
    yield "Int128", pl.Series("a", [2**100, -(2**100), 0, 1, None, 2], dtype=pl.Int128)
    yield "UInt64", pl.Series("a", [2**64 - 1, 0, 1, 2, None, 3], dtype=pl.UInt64)
    yield "Time", pl.Series("a", [dt.time(n) for n in range(N)])
    yield "Duration", pl.Series("a", [dt.timedelta(n) for n in range(N)])
    yield "Datetime", pl.Series("a", [dt.datetime(2026, 1, n + 1) for n in range(N)]).dt.replace_time_zone("UTC")
    yield "far Datetime", pl.Series("a", [2**62] * N, dtype=pl.Datetime("ms"))
    yield "Boolean", pl.Series("a", [True, False, None, True, True, False])
    yield "floats", pl.Series("a", [float("nan"), float("inf"), -0.0, 0.0, 1e308, 5e-324])
    yield "Float32", pl.Series("a", [0.1, 0.2, None, 0.3, 0.4, 0.5], dtype=pl.Float32)
    yield "no rows", pl.Series("a", [], dtype=pl.String)
    yield "expression", pl.col("a")


def _arrow() -> Iterator[tuple[str, Any]]:
    values = [1, 2, None, 1, 3, 4]
    yield "array", pa.array(values)
    yield "chunks", pa.chunked_array([[1, 2], [], [None, 1, 3, 4]])
    yield "dictionary", pa.array(list("abcabc")).dictionary_encode()
    yield "dictionary of numbers", pa.array(values).dictionary_encode()
    yield (
        "dictionary with nulls",
        pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2, 0, 1]), pa.array(["a", None, "b"])),
    )
    yield "repeated dictionary", pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0, 1, 2]), pa.array(["a", "a", "b"]))
    yield "struct", pa.array([{"a": n} for n in range(N)])
    yield "map", pa.array([[("a", n)] for n in range(N)], pa.map_(pa.string(), pa.int64()))
    yield "list", pa.array([[1], [2], None, [], [3], [4]])
    yield "large list", pa.array([[1]] * N, pa.large_list(pa.int64()))
    yield "fixed list", pa.array([[1, 2]] * N, pa.list_(pa.int64(), 2))
    yield (
        "union",
        pa.UnionArray.from_sparse(
            pa.array([0, 1, 0, 1, 0, 1], pa.int8()), [pa.array(range(N)), pa.array(list("abcdef"))]
        ),
    )
    yield (
        "dense union",
        pa.UnionArray.from_dense(
            pa.array([0, 1, 0, 1, 0, 1], pa.int8()),
            pa.array([0, 0, 1, 1, 2, 2], pa.int32()),
            [pa.array([1, 2, 3]), pa.array(list("abc"))],
        ),
    )
    yield "binary", pa.array([b"a", b"\xff", None, b"", b"b", b"c"])
    yield "fixed binary", pa.array([b"ab"] * N, pa.binary(2))
    yield "string view", pa.array(["a", "b", None, "", "c", "d"], pa.string_view())
    yield "binary view", pa.array([b"a", b"b", None, b"", b"c", b"d"], pa.binary_view())
    yield "large string", pa.array(["a", "b", None, "", "c", "d"], pa.large_string())
    yield "extension", pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)] * N, pa.binary(16)))
    if hasattr(pa, "json_"):  # from version 19 on
        yield "JSON", pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"] * N))
    yield "opaque", pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), "a", "b"), pa.array(range(N)))
    yield (
        "tensor",
        pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.int8(), [2]), pa.array([[1, 2]] * N, pa.list_(pa.int8(), 2))
        ),
    )
    yield "decimal128", pa.array([Decimal("1.50"), None, *[Decimal(2)] * 4], pa.decimal128(38, 2))
    yield "decimal256", pa.array([Decimal("1.50"), None, *[Decimal(2)] * 4], pa.decimal256(60, 2))
    yield "run ends", pa.RunEndEncodedArray.from_arrays(pa.array([2, 4, 6], pa.int32()), pa.array(["a", "b", None]))
    yield "half floats", pa.array([np.float16(1.5)] * N, pa.float16())
    yield "date32", pa.array([0, 1, None, 2, 3, 4], pa.date32())
    yield "date64", pa.array([0, 1, None, 2, 3, 2**62], pa.date64())
    yield "time64", pa.array([0, 1, None, 2, 3, 4], pa.time64("ns"))
    yield "time64 beyond a day", pa.array([0, 10**17, None, -1, 3, 4], pa.time64("ns"))
    yield "timestamp", pa.array([0, 1, None, 2, 3, 2**62], pa.timestamp("s", "Europe/Berlin"))
    yield "unknown zone", pa.array([0, 1, None, 2, 3, 4], pa.timestamp("s", "Nowhere/City"))
    yield "duration", pa.array([0, 1, None, 2, 3, 4], pa.duration("s"))
    yield "month intervals", pa.array([(1, 2, 3)] * N, pa.month_day_nano_interval())
    yield "null", pa.nulls(N)
    yield "bool", pa.array([True, False, None, True, True, False])
