"""The answers about pairs of items in an export, as a table for `Pairs`."""

from __future__ import annotations

import polars as pl

from .formats.base import PAIRS
from .judgements import FILE, Export, Made, Wanted, aside_reasons, nothing, workers_of

COLUMNS = {"left": "left", "right": "right", "label": "answer", "submission": "hit"}


def pair_table(export: Export, rows: pl.DataFrame, wanted: Wanted) -> Made:
    """Return the answers about pairs; rows that are not votes have a reason. A submission is a job."""
    rows = rows.filter(pl.col("kind") == PAIRS)
    found = {
        new: rows[old] if old in rows.columns else nothing(old, pl.String, rows.height) for old, new in COLUMNS.items()
    }
    columns = [
        column.alias(name) for name, column in found.items() if name != "hit" or column.null_count() < rows.height
    ]
    frame = pl.DataFrame([*columns, workers_of(rows), aside_reasons(rows, export.format, wanted.keep)])
    return Made(frame, rows.select(FILE, "source_row"), {}, [], [])
