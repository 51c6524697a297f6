"""Time per answer against skill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from ....inter_rater import rank_correlation
from ....result import LabelsResult
from ...registry import section
from ...text import MAX_NAME_CHARS, rounded, short

MAX_DOTS = 800
MIN_WORKERS = 3  # for a correlation
MIN_CORRELATION = 0.2  # that is called a tendency


class WorkerTime(NamedTuple):
    worker: str
    seconds: float  # median
    skill: float
    flagged: bool


@dataclass(frozen=True)
class Times:
    headline: str
    rows: list[WorkerTime]


@section(
    "labels", "times", order=60, nav="Time", title="Time and skill",
    intro="One mark per worker. Very fast answers of low skill are a sign of carelessness.",
    terms=("skill",),
)  # fmt: skip
def times(result: LabelsResult) -> Times | None:
    table = result.workers.filter(pl.col("seconds") > 0, pl.col("seconds").is_finite(), pl.col("skill").is_not_null())
    if table.height < MIN_WORKERS:
        return None
    seconds, skill = (table[name].to_numpy() for name in ("seconds", "skill"))
    shown = table.with_columns(flagged=pl.col("flags") != "").sort("flagged", "answers", descending=True).head(MAX_DOTS)
    rows = [
        WorkerTime(short(worker, MAX_NAME_CHARS), rounded(s, 2), rounded(k), flagged)
        for worker, s, k, flagged in shown.select("worker", "seconds", "skill", "flagged").rows()
    ]
    link = rank_correlation(seconds, skill)
    tendency = "slower workers tend to be better" if link > 0 else "faster workers tend to be better"
    if abs(link) <= MIN_CORRELATION:
        tendency = "time and skill are hardly related"
    median = float(np.median(seconds))
    return Times(f"The median worker takes {median:.3g} s per task; {tendency} (rank correlation {link:+.2f}).", rows)
