"""What sections of several kinds share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from .text import numeric, rounded

MAX_ITERATIONS_SHOWN = 1000
MAX_WORKERS_SHOWN = 400


class MatrixCell(NamedTuple):
    """A cell of a confusion matrix that is not empty."""

    truth: int  # class
    given: int  # class
    value: float  # expected answers, or a probability


class Box(NamedTuple):
    """The frame of a picture."""

    left: float
    top: float
    right: float
    bottom: float


class Iteration(NamedTuple):
    """One iteration of a fit."""

    iteration: float
    objective: float | None
    found: float | None  # objects or clusters


@dataclass(frozen=True)
class Search:
    """How the number of objects or clusters was found."""

    headline: str
    criterion: str
    best: float | None  # iteration that the result is from
    rows: list[Iteration]


def search_rows(trace: pl.DataFrame, counted: str) -> list[Iteration]:
    """Return the iterations of a trace, with the column `counted`."""
    rows = trace.select("iteration", "objective", counted).rows()
    return [Iteration(float(n), rounded(objective, 6), rounded(count, 2)) for n, objective, count in rows]


def workers_shown(table: pl.DataFrame, columns: Sequence[str]) -> tuple[pl.DataFrame, str]:
    """Return workers by rank, or the best and the worst of many, and the end of a sentence that says which. These
    columns become numbers."""
    ranked = table.with_columns(numeric(*columns)).sort("rank", nulls_last=True)
    if ranked.height <= MAX_WORKERS_SHOWN:
        return ranked, ""
    half = MAX_WORKERS_SHOWN // 2
    return pl.concat([ranked.head(half), ranked.tail(half)]), f"; the table shows the {half} best and the {half} worst"


def spread(length: int, most: int) -> list[int]:
    """Return at most `most` positions, evenly spaced from the first to the last of `length`."""
    return np.unique(np.linspace(0, max(length - 1, 0), min(length, most)).astype(int)).tolist() if length else []


def has_any(rows: Sequence[Any], field: str) -> bool:
    """Return whether any row has a value in this field."""
    return any(getattr(row, field) is not None for row in rows)
