"""Seconds a task, and who is too fast to have looked."""

from __future__ import annotations

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


def times(answers: Labels) -> Times:
    W, taken = answers.n_workers, seconds(answers)
    median, too_fast = np.full(W, np.nan), np.zeros(W, bool)
    if taken is None or taken.null_count() == len(taken):
        return Times(median, too_fast, np.nan)
    worker = answers.layout.row_worker[answers.layout.pair]
    table = pl.DataFrame({"worker": worker, "seconds": taken}).drop_nulls()
    table = table.group_by("worker").agg(pl.col("seconds").median(), pl.len().alias("n"))
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
        taken = extras["seconds"]
        taken = (
            taken.dt.total_microseconds() / 1e6 if taken.dtype == pl.Duration else taken.cast(pl.Float64, strict=False)
        )
    elif {"started", "timestamp"} <= set(extras.columns):
        taken = (_instant(extras["timestamp"]) - _instant(extras["started"])) / 1e6
    else:
        return None
    good = taken.is_finite() & (taken > 0)
    return taken.set(~good.fill_null(value=False), None)


def _instant(column: pl.Series) -> pl.Series:
    """Microseconds since some moment, null where a time cannot be read."""
    if column.dtype == pl.String:
        number = column.cast(pl.Float64, strict=False)
        if number.null_count() == column.null_count():  # seconds since some moment
            return number * 1e6
        column = column.str.to_datetime(strict=False, time_unit="us", time_zone="UTC")
    if column.dtype == pl.Date:
        column = column.cast(pl.Datetime("us"))
    if column.dtype == pl.Datetime:
        return column.dt.epoch("us").cast(pl.Float64)
    return column.cast(pl.Float64, strict=False) * 1e6
