"""Writing tables and records as files of platforms: whole or not at all, one record at a time."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import polars as pl

from ..result.files import write_whole

FORMULA = r"^[=+\-@\t\r]"  # beginnings of cells that a spreadsheet takes for formulas
TABLES = (".csv", ".jsonl", ".parquet")  # endings of tables
Write = Callable[[IO[bytes]], object]


def table_writer(table: Any, ending: str, excel_safe: bool = False) -> Write:
    """Return a function that writes a table."""
    if ending == ".parquet":
        return table.write_parquet  # type: ignore[no-any-return]
    if ending == ".jsonl":
        return table.write_ndjson  # type: ignore[no-any-return]
    safe = spreadsheet_safe(table) if excel_safe else table
    return safe.sink_csv if isinstance(safe, pl.LazyFrame) else safe.write_csv


def write_csv(table: Any, path: Path, excel_safe: bool) -> Path:
    """Write a table as CSV: unchanged for programs, or safe to open in a spreadsheet."""
    return write_whole(path, table_writer(table, ".csv", excel_safe))


def spreadsheet_safe(table: Any) -> Any:
    """Put an apostrophe before every text and column name that begins with = + - @, a tab or a carriage return."""
    text = pl.col(pl.String)
    safe = table.with_columns(pl.when(text.str.contains(FORMULA)).then("'" + text).otherwise(text).name.keep())
    names = table.collect_schema().names()
    return safe.rename({name: f"'{name}" for name in names if name[:1] in tuple("=+-@\t\r")})


def record_writer(records: Iterable[Mapping[str, Any]], ending: str, excel_safe: bool = False) -> Write:
    """Return a function that writes records as JSON (a list), JSONL or CSV, or a single object as JSON (".object")."""

    def write(file: IO[bytes]) -> None:
        if ending == ".csv":
            _rows(records, file, excel_safe)
            return
        text = io.TextIOWrapper(file, encoding="utf-8", write_through=True)
        before, between, after = ("[\n", ",\n", "\n]\n") if ending == ".json" else ("", "\n", "\n")
        text.write(before)
        for number, record in enumerate(records):
            text.write(
                (between if number else "") + json.dumps(record, ensure_ascii=False, allow_nan=False, default=_number)
            )
        text.write(after)
        text.detach()

    return write


def _number(value: Any) -> float:
    """Return a number of JSON that was read with all its digits."""
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _rows(records: Iterable[Mapping[str, Any]], file: IO[bytes], excel_safe: bool) -> None:
    """Write records with the same keys as CSV."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer: csv.DictWriter[str] | None = None
    for record in records:
        if writer is None:
            writer = csv.DictWriter(text, list(record), lineterminator="\n")
            writer.writeheader()
        writer.writerow({name: _safe(value) if excel_safe else value for name, value in record.items()})
    text.detach()


def _safe(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in tuple("=+-@\t\r") else value
