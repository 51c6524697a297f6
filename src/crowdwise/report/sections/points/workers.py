"""Annotators by reliability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from ....result import PointsResult
from ...parts import has_any, workers_shown
from ...registry import section
from ...text import MAX_NAME_CHARS, many, numeric, percent, rounded, short

SHARES = ("skill", "low", "high", "hit_rate", "hit_low", "hit_high")
MIN_WORKERS_FOR_QUANTILES = 10


@dataclass(frozen=True)
class PointsWorker:
    """A worker, as in `PointsResult.workers`."""

    worker: str
    rank: int | None  # by the lower end of reliability
    images: int
    clicks: int
    reliability: float | None
    low: float | None
    high: float | None
    hit_rate: float | None
    hit_low: float | None
    hit_high: float | None
    spread: float | None  # of the clicks around objects, relative to other workers; None if equal for all


@dataclass(frozen=True)
class PointsWorkers:
    headline: str
    total: int
    rows: list[PointsWorker]

    @property
    def terms(self) -> Sequence[str]:
        return [
            term for term, field in {"hit rate": "hit_rate", "noise": "spread"}.items() if has_any(self.rows, field)
        ]


@section(
    "points", "workers", order=20, nav="Workers", title="Annotators by reliability",
    intro="Reliability is the share of a worker's clicks that are on objects; the line around the dot is its 95 % "
          "interval.",
    terms=("reliability", "interval"),
)  # fmt: skip
def workers(result: PointsResult) -> PointsWorkers | None:
    table = result.workers
    if table.is_empty():
        return None
    shown, which = workers_shown(table, (*SHARES, "spread"))
    differ = table["spread"].drop_nulls().n_unique() > 1
    rows = [
        PointsWorker(
            worker=short(row["worker"], MAX_NAME_CHARS),
            rank=row["rank"],
            images=row["images"],
            clicks=row["answers"],
            spread=rounded(row["spread"], 3) if differ else None,
            **{"reliability" if name == "skill" else name: rounded(row[name]) for name in SHARES},
        )
        for row in shown.iter_rows(named=True)
    ]
    return PointsWorkers(f"{_headline(table)}{which}.", table.height, rows)


def _headline(table: pl.DataFrame) -> str:
    skill, workers = table.select(numeric("skill")).to_series().drop_nulls(), many(table.height, "worker")
    if skill.is_empty():
        return f"{workers}; no reliability is known"
    few = table.height < MIN_WORKERS_FOR_QUANTILES
    low, high = (percent(float(skill.quantile(q, "linear") or 0.0), 0) for q in ((0, 1) if few else (0.1, 0.9)))
    return f"The reliability of {workers if few else f'8 in 10 of the {workers}'} is between {low} and {high}"
