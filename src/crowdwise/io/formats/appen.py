"""Appen, formerly Figure Eight and CrowdFlower: the full report as CSV."""

from __future__ import annotations

import polars as pl

from ...errors import FileError, option
from . import register
from .base import EMPTY, LABELS, OK, STARTED, SUBMITTED, Head, Origin, Settings, TableFormat, chosen_field, split_labels

GOLD = "_gold"


@register
class Appen(TableFormat):
    """One row per judgement."""

    name = "appen"
    title = "Appen (Figure Eight, CrowdFlower)"
    files = "full report CSV"
    statuses = {"rejected": "tainted judgement", "test": "test question"}
    fields = {
        "task": "_unit_id", "worker": "_worker_id", "label": "the column that also has a column ..._gold",
        "gold": "..._gold", "timestamp": "_created_at", "started": "_started_at",
    }  # fmt: skip

    def recognise(self, head: Head) -> bool:
        return head.has("_unit_id", "_worker_id") or (head.has("_unit_id", "_trusted_judgments"))

    def refuse(self, head: Head) -> str:
        if head.has("_worker_id"):
            return ""
        return (
            f"{head.name} is the aggregated report of Appen: it has no workers, so there is nothing to aggregate. "
            "Download the full report"
        )

    def convert(self, frame: pl.DataFrame, origin: Origin, settings: Settings) -> pl.DataFrame:
        task = chosen_field(settings.task, "_unit_id", frame.columns, origin.name, "task")
        tainted, golden = (_is_true(frame, name) for name in ("_tainted", "_golden"))
        frame = frame.with_columns(
            pl.col(task).alias("task"),
            pl.col("_worker_id").alias("worker"),
            pl.when(tainted)
            .then(pl.lit("rejected"))
            .when(golden)
            .then(pl.lit("test"))
            .otherwise(pl.lit(OK))
            .alias("status"),
            *(
                (pl.col(name) if name in frame.columns else pl.lit(None, pl.String)).alias(role)
                for role, name in ((STARTED, "_started_at"), (SUBMITTED, "_created_at"), ("submission", "_id"))
            ),
        )
        asked = [name for name in frame.columns if name + GOLD in frame.columns and not name.startswith("_")]
        if not asked:
            raise FileError(
                f"{origin.name} looks like a report of Appen, but no column has another beside it whose name ends in "
                f"{GOLD!r}, which would mark the answers. Read it as a table: {option('format', 'csv')}, and name the "
                f"columns: {option('task', '_unit_id')}, {option('worker', '_worker_id')}, {option('label', 'COLUMN')}"
            )
        return pl.concat([_answers(frame, name) for name in asked], how="diagonal")


def _is_true(frame: pl.DataFrame, name: str) -> pl.Expr:
    return pl.col(name).str.to_lowercase().fill_null("") == "true" if name in frame.columns else pl.lit(False)


def _answers(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the answers to one question; several lines in a cell are a set of labels."""
    several = frame[name].str.contains("\n", literal=True)
    labels = split_labels(frame[name], several, lambda cell: [line.strip() for line in cell.split("\n")])
    gold = frame[name + GOLD].str.strip_chars()
    only = pl.when(~gold.str.contains("\n", literal=True) & (gold != "")).then(
        gold
    )  # of several, none is the known one
    found = frame.select(
        "task", "worker", STARTED, SUBMITTED, "submission", "source_row", "status",
        pl.lit(name).alias("question"), pl.lit(LABELS).alias("kind"), *labels, only.alias("gold_label"),
    )  # fmt: skip
    nothing = pl.col("label").is_null() & pl.col("label_set").is_null() & (pl.col("status") == OK)
    return found.with_columns(pl.when(nothing).then(pl.lit(EMPTY)).otherwise("status").alias("status"))
