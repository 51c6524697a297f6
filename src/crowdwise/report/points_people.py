"""The section on workers who click."""

from __future__ import annotations

import polars as pl

from .points_page import PointsWorker, PointsWorkers
from .words import LONGEST, known, many, numbers, percent, short

WORKERS = 400  # shown at most


def workers_section(table: pl.DataFrame) -> PointsWorkers:
    names = ("reliability", "low", "high", "hit_rate", "hit_low", "hit_high")
    table = table.drop("rank").rename({"skill": "reliability"}).with_columns(numbers(*names, "spread"))
    table = table.sort("reliability", "answers", descending=True, nulls_last=True, maintain_order=True)
    ranked = table.with_row_index("rank", offset=1)
    told_apart = table["spread"].drop_nulls().n_unique() > 1  # models without noise of workers say the same of all
    shown = ranked
    if ranked.height > WORKERS:
        shown = pl.concat([ranked.head(WORKERS // 2), ranked.tail(WORKERS // 2)])
    rows = [
        PointsWorker(
            worker=short(row["worker"], LONGEST),
            rank=None if row["reliability"] is None else row["rank"],
            images=row["images"],
            clicks=row["answers"],
            spread=known(row["spread"], 3) if told_apart else None,
            **{name: known(row[name], 4) for name in names},
        )
        for row in shown.iter_rows(named=True)
    ]
    return PointsWorkers(_workers_say(ranked, shown), table.height, rows)


def _workers_say(table: pl.DataFrame, shown: pl.DataFrame) -> str:
    told = table["reliability"].drop_nulls()
    if told.is_empty():
        return f"{many(table.height, 'worker')}; the reliability of none is known."
    low, high = (float(told.quantile(q, "linear") or 0.0) for q in (0.1, 0.9))
    says = f"Eight in ten of the {many(table.height, 'worker')} have "
    says += f"between {percent(low, 0)} and {percent(high, 0)} of their clicks on objects"
    if table.height < 10:
        least, most = (float(value) for value in (told[-1], told[0]))
        says = f"The share of clicks on objects goes from {percent(least, 0)} to {percent(most, 0)} among "
        says += many(table.height, "worker")
    if shown.height < table.height:
        says += f"; shown are the {WORKERS // 2} best and the {WORKERS // 2} worst"
    return f"{says}."
