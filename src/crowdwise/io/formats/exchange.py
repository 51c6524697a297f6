"""What formats share when they write: the records of an original export, and questions whose labels are numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import polars as pl

from ...errors import CrowdwiseError, FileError
from .base import LABELS, ODD, Original, what

T = TypeVar("T")


def each_of(original: Original, title: str, made: Callable[[Mapping[str, Any]], T | None]) -> Iterator[T]:
    """Yield what is made of each record, unless it is None. A record that is not as the platform writes it raises
    FileError with its number."""
    for number, record in enumerate(original(), 1):
        try:
            found = made(record)
        except CrowdwiseError:
            raise
        except ODD as error:
            raise FileError(
                f"record {number} of the original export is not as {title} writes it: {what(error)}. Correct or "
                "remove it"
            ) from error
        if found is not None:
            yield found


def numeric(rows: pl.DataFrame) -> dict[str | None, bool]:
    """Return the questions of which every label is a number, with whether all of these are integers."""
    if not {"value", "label", "kind"} <= {*rows.columns}:
        return {}
    plain = pl.col("value").is_not_null() & (pl.col("label").cast(pl.Float64, strict=False) == pl.col("value"))
    question = "question" if "question" in rows.columns else pl.lit(None).alias("question")
    some = pl.any_horizontal(pl.col(name).is_not_null() for name in ("label", "label_set") if name in rows.columns)
    each = (
        rows.filter((pl.col("kind") == LABELS) & some)
        .group_by(question)
        .agg(plain.fill_null(value=False).all().alias("plain"), (pl.col("value") % 1 == 0).all().alias("whole"))
    )
    return {row["question"]: row["whole"] for row in each.iter_rows(named=True) if row["plain"]}
