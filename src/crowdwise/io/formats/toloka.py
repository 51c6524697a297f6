"""Toloka: the assignments of a pool as TSV. The times of Toloka are those of a page, which has several tasks."""

from __future__ import annotations

import json

import polars as pl

from . import register
from .base import (
    EMPTY,
    LABELS,
    OK,
    STARTED,
    SUBMITTED,
    Head,
    Origin,
    Settings,
    TableFormat,
    as_label,
    chosen_field,
    split_labels,
)

OUTPUT, INPUT, GOLDEN = "OUTPUT:", "INPUT:", "GOLDEN:"
TASK, SUITE, STATUS = "ASSIGNMENT:task_id", "ASSIGNMENT:assignment_id", "ASSIGNMENT:status"
STATUSES = {
    "APPROVED": OK, "ACCEPTED": OK, "SUBMITTED": OK, "REJECTED": "rejected", "SKIPPED": "skipped",
    "EXPIRED": "expired", "ACTIVE": "draft",
}  # fmt: skip


@register
class Toloka(TableFormat):
    """One row per task of an assignment."""

    name = "toloka"
    title = "Toloka"
    files = "assignments TSV"
    paged = True
    statuses = {
        "rejected": "REJECTED", "skipped": "SKIPPED", "expired": "EXPIRED", "draft": "ACTIVE",
        "test": "control task: GOLDEN is filled",
    }  # fmt: skip
    fields = {"task": "ASSIGNMENT:task_id", "worker": "ASSIGNMENT:worker_id", "label": "OUTPUT:*", "gold": "GOLDEN:*"}

    def recognise(self, head: Head) -> bool:
        return head.has("ASSIGNMENT:worker_id") and any(name.startswith(OUTPUT) for name in head.columns)

    def convert(self, frame: pl.DataFrame, origin: Origin, settings: Settings) -> pl.DataFrame:
        inputs = [name for name in frame.columns if name.startswith(INPUT)]
        usual = TASK if TASK in frame.columns else (inputs or [""])[0]
        task = chosen_field(settings.task or (None if usual else TASK), usual, frame.columns, origin.name, "task")
        status = pl.col(STATUS).replace_strict(STATUSES, default=OK) if STATUS in frame.columns else pl.lit(OK)
        frame = frame.with_columns(
            pl.col(task).alias("task"),
            pl.col("ASSIGNMENT:worker_id").alias("worker"),
            status.alias("status"),
            *(
                (pl.col(name) if name in frame.columns else pl.lit(None, pl.String)).alias(role)
                for role, name in (
                    (STARTED, "ASSIGNMENT:started"), (SUBMITTED, "ASSIGNMENT:submitted"), ("submission", SUITE),
                )
            ),
        )  # fmt: skip
        return pl.concat([_answers(frame, name) for name in frame.columns if name.startswith(OUTPUT)], how="diagonal")

    def finish(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Divide the time of a page by the number of its tasks."""
        if STARTED not in frame.columns or SUBMITTED not in frame.columns or "submission" not in frame.columns:
            return frame
        whole = (pl.col(SUBMITTED) - pl.col(STARTED)).dt.total_microseconds() / 1e6
        tasks = pl.col("task").n_unique().over("submission")
        return frame.with_columns(
            pl.when(pl.col("submission").is_not_null()).then(whole / tasks).alias("seconds")
        ).drop(STARTED)


def _answers(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the answers to one question."""
    question = name.removeprefix(OUTPUT)
    golden = pl.col(GOLDEN + question) if GOLDEN + question in frame.columns else pl.lit(None, pl.String)
    lists = frame[name].str.contains(r"^\s*\[.*\]\s*$")
    columns = ("task", "worker", STARTED, SUBMITTED, "submission", "source_row")
    found = frame.select(
        *columns,
        pl.lit(question).alias("question"),
        pl.lit(LABELS).alias("kind"),
        *split_labels(frame[name], lists, _listed),
        pl.when(golden.fill_null("") != "").then(golden).alias("gold_label"),
        "status",
    )
    nothing = pl.col("label").is_null() & pl.col("label_set").is_null()
    return found.with_columns(
        pl.when(pl.col("status") != OK)
        .then("status")
        .when(nothing)
        .then(pl.lit(EMPTY))
        .when(pl.col("gold_label").is_not_null())
        .then(pl.lit("test"))
        .otherwise(pl.lit(OK))
        .alias("status")
    )


def _listed(cell: str) -> list[str]:
    """Return the labels in a cell with a JSON list; a cell that only looks like one is one label."""
    try:
        values = json.loads(cell)
        return [as_label(value) or "" for value in values]
    except (ValueError, RecursionError):
        return [cell]
