"""Workers by weight, with sensitivity and specificity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from ....result import PairsResult
from ...parts import has_any, workers_shown
from ...registry import section
from ...tables import Cell, Table
from ...text import DASH, MAX_NAME_CHARS, count, many, numeric, percent, rounded, short

MAX_WORKERS_TABLE = 60  # without the script
MIN_WEIGHT = 0.5  # log-odds, below which an answer counts for almost nothing
SHARES = (
    "skill", "low", "high",
    "sensitivity", "sensitivity_low", "sensitivity_high",
    "specificity", "specificity_low", "specificity_high",
)  # fmt: skip


@dataclass(frozen=True)
class PairsWorker:
    """A worker, as in `PairsResult.workers`."""

    worker: str
    rank: int  # by the lower end of skill
    answers: int
    counted: float | None  # what the answers are worth; None if that is their number for all workers
    weight: float | None
    skill: float | None
    low: float | None
    high: float | None
    sensitivity: float | None
    sensitivity_low: float | None
    sensitivity_high: float | None
    specificity: float | None
    specificity_low: float | None
    specificity_high: float | None


@dataclass(frozen=True)
class PairsWorkers:
    headline: str
    total: int
    rows: list[PairsWorker]

    @property
    def terms(self) -> Sequence[str]:
        return ("counted",) if has_any(self.rows, "counted") else ()

    @property
    def tables(self) -> list[Table]:
        """The first workers, for readers without a script."""
        heads = [("Worker", False), *((title, True) for title in ("Answers", "Weight", "Sensitivity", "Specificity"))]
        rows: list[list[str | Cell]] = [
            [
                Cell(row.worker),
                count(row.answers),
                DASH if row.weight is None else f"{row.weight:.2f}".replace("-", "\u2212"),
                _share(row.sensitivity, row.sensitivity_low, row.sensitivity_high),
                _share(row.specificity, row.specificity_low, row.specificity_high),
            ]
            for row in self.rows[:MAX_WORKERS_TABLE]
        ]
        cut = self.total > MAX_WORKERS_TABLE
        which = f"the first {MAX_WORKERS_TABLE} of {count(self.total)}" if cut else "the best first"
        return [Table(f"Workers, {which}", heads, rows)]


def _share(share: float | None, low: float | None, high: float | None) -> str:
    if share is None:
        return DASH
    ends = "" if low is None or high is None else f" ({100 * low:.1f}\u2013{percent(high)})"
    return f"{percent(share)}{ends}"


@section(
    "pairs", "workers", order=30, nav="Workers", title="Workers and the weight of their answers",
    intro="Weight is how much an answer of the worker counts. Sensitivity is the probability to recognise that two "
          "items are the same, specificity that they differ; the line around the dot is the 95 % interval.",
    terms=("weight", "skill", "sensitivity", "specificity", "interval"),
)  # fmt: skip
def workers(result: PairsResult) -> PairsWorkers | None:
    table = result.workers
    if table.is_empty():
        return None
    shown, which = workers_shown(table, ("weight", "counted", *SHARES))
    dependent = bool((table["counted"] < table["answers"] - 1e-6).any())
    rows = [
        PairsWorker(
            worker=short(row["worker"], MAX_NAME_CHARS),
            rank=row["rank"],
            answers=row["answers"],
            counted=rounded(row["counted"], 1) if dependent else None,
            weight=rounded(row["weight"], 3),
            **{name: rounded(row[name]) for name in SHARES},
        )
        for row in shown.iter_rows(named=True)
    ]
    return PairsWorkers(f"{_headline(table)}{which}.", table.height, rows)


def _headline(table: pl.DataFrame) -> str:
    weight, workers = table.select(numeric("weight")).to_series().drop_nulls(), many(table.height, "worker")
    if weight.is_empty():
        return f"{workers}; no weight is known"
    low, middle, high = (f"{float(weight.quantile(q, 'linear') or 0.0):.1f}" for q in (0, 0.5, 1))
    if table.height == 1:
        return f"There is one worker, with a weight of {low}".replace("-", "\u2212")
    headline = f"The weights of {workers} are between {low} and {high}, with a median of {middle}"
    idle = int((weight < MIN_WEIGHT).sum())
    headline += f"; answers of {many(idle, 'worker')} count for almost nothing, or against" if idle else ""
    return headline.replace(" -", " \u2212")
