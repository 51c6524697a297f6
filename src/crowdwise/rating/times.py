"""Seconds per task, and who is too fast to have looked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from ..answers import Labels
from ..kernels.layout import Bools, Floats

FEW = 5  # timed answers below which nobody is called too fast
FAR = 3.5  # robust standard deviations of the logarithm (Iglewicz & Hoaglin 1993)
FRACTION = 1 / 3  # and not above this part of the typical worker's time
CROWD = 5  # timed workers below which there is no typical one


class Times(NamedTuple):
    median: Floats  # (W,) seconds; not-a-number where no answer carries a time
    too_fast: Bools  # (W,)
    typical: float  # seconds of the typical worker


def times(parts: Sequence[Labels]) -> Times:
    """Median times of all workers, by the answers in all parts of a table."""
    W, known = parts[0].n_workers, [(part, seconds(part)) for part in parts]
    median, too_fast = np.full(W, np.nan), np.zeros(W, bool)
    tables = [
        pl.DataFrame({"worker": part.layout.row_worker[part.layout.pair], "seconds": taken}).drop_nulls()
        for part, taken in known
        if taken is not None
    ]
    if not tables or not sum(table.height for table in tables):
        return Times(median, too_fast, np.nan)
    table = pl.concat(tables).group_by("worker").agg(pl.col("seconds").median(), pl.len().alias("n"))
    who = table["worker"].to_numpy()
    median[who] = table["seconds"].to_numpy()
    enough = table.filter(pl.col("n") >= FEW)
    if enough.height < CROWD:
        return Times(median, too_fast, float(np.nanmedian(median)))
    logs = np.log(enough["seconds"].to_numpy())
    middle = float(np.median(logs))
    scale = max(1.4826 * float(np.median(np.abs(logs - middle))), 0.1)
    fast = (logs < middle - FAR * scale) & (logs < middle + np.log(FRACTION))
    too_fast[enough["worker"].to_numpy()[fast]] = True
    return Times(median, too_fast, float(np.exp(middle)))


def seconds(answers: Labels) -> pl.Series | None:
    """(N,) seconds of every answer in task order, null where they are no positive number; None without times.

    Taken from a column `seconds`, else from `started` and `timestamp`.
    """
    extras = answers.extras
    if "seconds" in extras.columns:
        taken = _lasted(extras["seconds"])
    elif {"started", "timestamp"} <= set(extras.columns):
        taken = (_instant(extras["timestamp"]) - _instant(extras["started"])) / 1e6
    else:
        return None
    good = taken.is_finite() & (taken > 0)
    return taken.set(~good.fill_null(value=False), None)


def unreadable_times(answers: Labels) -> bool:
    """Whether there is a column of times of which not one can be used."""
    taken = seconds(answers)
    return taken is not None and len(taken) > 0 and taken.null_count() == len(taken)


def _lasted(column: pl.Series) -> pl.Series:
    """Seconds; null where a value is no length of time."""
    if column.dtype == pl.Duration:
        return column.dt.total_microseconds() / 1e6
    if column.dtype == pl.String or column.dtype.is_numeric():
        return column.cast(pl.Float64, strict=False)
    return _nothing(column)


def _instant(column: pl.Series) -> pl.Series:
    """Microseconds since some moment, null where a time cannot be read."""
    if column.dtype == pl.String:
        number = column.cast(pl.Float64, strict=False)
        if number.null_count() == column.null_count():  # seconds since some moment
            return number * 1e6
        column = _parsed(column)
    if column.dtype == pl.Date:
        column = column.cast(pl.Datetime("us"))
    if column.dtype == pl.Datetime:
        return column.dt.epoch("us").cast(pl.Float64)
    if column.dtype == pl.Time:  # of one day
        return column.cast(pl.Int64).cast(pl.Float64) / 1e3
    return column.cast(pl.Float64) * 1e6 if column.dtype.is_numeric() else _nothing(column)


def _parsed(column: pl.Series) -> pl.Series:
    """Moments written out: as ISO 8601, else as Mechanical Turk does, "Mon Nov 16 01:52:15 PST 2026"."""
    moments = column.str.to_datetime(strict=False, time_unit="us", time_zone="UTC")
    if moments.null_count() < len(moments):
        return moments
    plain = column.str.replace(r" [A-Z]{3,4} (\d{4})$", " $1")  # both ends carry the same zone
    return plain.str.to_datetime("%a %b %d %H:%M:%S %Y", strict=False, time_unit="us")


def _nothing(column: pl.Series) -> pl.Series:
    return pl.Series(column.name, [None], dtype=pl.Float64).extend_constant(None, len(column) - 1).head(len(column))
