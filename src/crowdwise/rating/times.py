"""Seconds per answer, and workers who are too fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from ..answers import Labels
from ..answers.times import instants
from ..kernels.layout import Bools, Floats

# A worker is too fast if the logarithm of their median time is more than MIN_DEVIATIONS robust standard deviations
# below the crowd's median (Iglewicz & Hoaglin 1993), and the time itself below MAX_FRACTION of the crowd's.
MIN_DEVIATIONS = 3.5
MAX_FRACTION = 1 / 3
MIN_TIMED_ANSWERS = 5  # timed answers of a worker
MIN_TIMED_WORKERS = 5  # workers with that many timed answers


class Times(NamedTuple):
    median: Floats  # (W,) seconds; NaN without timed answers
    too_fast: Bools  # (W,)
    typical: float  # seconds of the median worker
    limit: float = np.nan  # seconds below which a worker is too fast; NaN if too few workers have times


def no_times(n_workers: int) -> Times:
    """Return the times of answers that have none."""
    return Times(np.full(n_workers, np.nan), np.zeros(n_workers, bool), np.nan)


def times(parts: Sequence[Labels]) -> Times:
    """Return the median times of all workers, over the answers in all parts of a table."""
    known = [(part, seconds(part)) for part in parts]
    median, too_fast, *_ = nothing = no_times(parts[0].n_workers)
    tables = [
        pl.DataFrame({"worker": part.layout.row_worker[part.layout.pair], "seconds": taken}).drop_nulls()
        for part, taken in known
        if taken is not None
    ]
    if not tables or not sum(table.height for table in tables):
        return nothing
    table = pl.concat(tables).group_by("worker").agg(pl.col("seconds").median(), pl.len().alias("n"))
    median[table["worker"].to_numpy()] = table["seconds"].to_numpy()
    enough = table.filter(pl.col("n") >= MIN_TIMED_ANSWERS)
    if enough.height < MIN_TIMED_WORKERS:
        return Times(median, too_fast, float(np.nanmedian(median)))
    logs = np.log(enough["seconds"].to_numpy())
    middle = float(np.median(logs))
    scale = max(1.4826 * float(np.median(np.abs(logs - middle))), 0.1)
    limit = min(middle - MIN_DEVIATIONS * scale, middle + np.log(MAX_FRACTION))
    too_fast[enough["worker"].to_numpy()[logs < limit]] = True
    return Times(median, too_fast, float(np.exp(middle)), float(np.exp(limit)))


def seconds(answers: Labels) -> pl.Series | None:
    """Return the seconds of every answer (N,) in task order, null if not a positive number; None without times.

    They come from a column `seconds`, or else from `started` and `timestamp`.
    """
    taken = _given(answers)
    if taken is None:
        return None
    good = taken.is_finite() & (taken > 0)
    return taken.set(~good.fill_null(value=False), None)


def unreadable_times(answers: Labels) -> bool:
    """Return whether there are columns of times, but no usable time in them."""
    taken = seconds(answers)
    return taken is not None and len(taken) > 0 and taken.null_count() == len(taken)


def negative_times(answers: Labels) -> int:
    """Return the number of answers that end before they start."""
    taken = _given(answers)
    return 0 if taken is None else int((taken < 0).sum())


def _given(answers: Labels) -> pl.Series | None:
    """Return the seconds of every answer as the columns have them, null if they cannot be read; None without times."""
    extras = answers.extras
    if "seconds" in extras.columns:
        return _duration(extras["seconds"])
    if {"started", "timestamp"} <= set(extras.columns):
        return (_instant(extras["timestamp"]) - _instant(extras["started"])) / 1e6
    return None


def _duration(column: pl.Series) -> pl.Series:
    """Return seconds; null for values that are not durations."""
    if column.dtype == pl.Duration:
        return column.dt.total_microseconds() / 1e6
    if column.dtype == pl.String or column.dtype.is_numeric():
        return column.cast(pl.Float64, strict=False)
    return _nulls(column)


def _instant(column: pl.Series) -> pl.Series:
    """Return microseconds since a fixed time, null if a time cannot be read."""
    if column.dtype == pl.String:
        number = column.cast(pl.Float64, strict=False)
        if number.null_count() == column.null_count():  # seconds since a fixed time
            return number * 1e6
        column = _parsed(column)
    if column.dtype == pl.Date:
        column = column.cast(pl.Datetime("us"))
    if column.dtype == pl.Datetime:
        return column.dt.epoch("us").cast(pl.Float64)
    if column.dtype == pl.Time:  # within one day
        return column.cast(pl.Int64).cast(pl.Float64) / 1e3
    return column.cast(pl.Float64) * 1e6 if column.dtype.is_numeric() else _nulls(column)


def _parsed(column: pl.Series) -> pl.Series:
    """Parse times. If none has a known time zone, start and end are taken to have the same one."""
    times = instants(column)
    if times.null_count() < len(times):
        return times
    return instants(column.str.replace(r" [A-Z]{2,5} (\d{4})$", " UTC $1"))


def _nulls(column: pl.Series) -> pl.Series:
    return pl.Series(column.name, [None], dtype=pl.Float64).extend_constant(None, len(column) - 1).head(len(column))
