"""The section on workers who compare items."""

from __future__ import annotations

from typing import Any

import polars as pl

from .pairs_page import PairsWorker, PairsWorkers
from .pairs_words import UNKNOWN
from .plain import Cell, Table
from .words import LONGEST, count, known, many, numbers, percent, short

WORKERS, PLAIN = 400, 60  # shown at most: by the script, and without
SHARES = (
    "skill", "low", "high",
    "sensitivity", "sensitivity_low", "sensitivity_high",
    "specificity", "specificity_low", "specificity_high",
)  # fmt: skip


def workers_section(table: pl.DataFrame) -> PairsWorkers:
    table = table.drop("rank").with_columns(numbers("weight", "counted", *SHARES))
    table = table.sort("weight", "answers", descending=True, nulls_last=True, maintain_order=True)
    ranked = table.with_row_index("rank", offset=1)
    tied = bool((table["counted"] < table["answers"] - 1e-6).any())
    shown = ranked
    if ranked.height > WORKERS:
        shown = pl.concat([ranked.head(WORKERS // 2), ranked.tail(WORKERS // 2)])
    rows = [
        PairsWorker(
            worker=short(row["worker"], LONGEST),
            rank=row["rank"],
            answers=row["answers"],
            counted=known(row["counted"], 1) if tied else None,
            weight=known(row["weight"], 3),
            **{name: known(row[name], 4) for name in SHARES},
        )
        for row in shown.iter_rows(named=True)
    ]
    return PairsWorkers(_workers_say(ranked, shown), table.height, rows)


def _workers_say(table: pl.DataFrame, shown: pl.DataFrame) -> str:
    told = table["weight"].drop_nulls()
    if told.is_empty():
        return f"{many(table.height, 'worker')}; the weight of none is known."
    if table.height == 1:
        return f"There is one worker, whose answers have a weight of {told[0]:.1f}."
    middle = float(told.median() or 0.0)  # type: ignore[arg-type]
    says = f"An answer of the best of {many(table.height, 'worker')} weighs {told[0]:.1f} (log-odds), of the "
    says += f"typical one {middle:.1f}, of the last {told[-1]:.1f}"
    idle = int((told < 0.5).sum())
    if idle:
        says += f"; the answers of {count(idle)} tell next to nothing, or the contrary"
    if shown.height < table.height:
        says += f". Shown are the {WORKERS // 2} best and the {WORKERS // 2} worst"
    return f"{says}.".replace(" -", " \u2212")


def workers_table(workers: PairsWorkers) -> Table:
    """The first workers, for who has no script."""
    heads = [("Worker", False), *((title, True) for title in ("Answers", "Weight", "Sensitivity", "Specificity"))]
    rows: list[list[str | Cell]] = [
        [
            Cell(row.worker),
            count(row.answers),
            UNKNOWN if row.weight is None else f"{row.weight:.2f}".replace("-", "\u2212"),
            _ranged(row.sensitivity, row.sensitivity_low, row.sensitivity_high),
            _ranged(row.specificity, row.specificity_low, row.specificity_high),
        ]
        for row in workers.rows[:PLAIN]
    ]
    some = f"the first {PLAIN} of {count(workers.total)}" if workers.total > PLAIN else "by weight"
    return Table(f"Workers, {some}", heads, rows)


def _ranged(share: Any, low: Any, high: Any) -> str:
    if share is None:
        return UNKNOWN
    ends = "" if low is None or high is None else f" ({100 * low:.1f}\u2013{percent(high)})"
    return f"{percent(share)}{ends}"
