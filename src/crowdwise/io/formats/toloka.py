"""Toloka: the assignments of a pool as TSV. The times of Toloka are those of a page, which has several tasks."""

from __future__ import annotations

import json

import polars as pl

from ...errors import FileError
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

OUTPUT, INPUT, GOLDEN, CONFIDENCE = "OUTPUT:", "INPUT:", "GOLDEN:", "CONFIDENCE:"
JOINT = " | "  # between the inputs of a task
TASK, SUITE, STATUS = "ASSIGNMENT:task_id", "ASSIGNMENT:assignment_id", "ASSIGNMENT:status"
WORKER = "ASSIGNMENT:worker_id"
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
    fields = {
        "task": "ASSIGNMENT:task_id, or all of INPUT:*", "worker": "ASSIGNMENT:worker_id", "label": "OUTPUT:*",
        "gold": "GOLDEN:*",
    }  # fmt: skip

    def recognise(self, head: Head) -> bool:
        aggregated = any(name.startswith(CONFIDENCE) for name in head.columns)
        answered = any(name.startswith(OUTPUT) for name in head.columns)
        return answered and (head.has(WORKER) or aggregated)

    def refuse(self, head: Head) -> str:
        if head.has(WORKER):
            return ""
        return (
            f"{head.name} has the aggregated results of Toloka: there are no workers, so there is nothing to "
            "aggregate. Download the assignments of the pool"
        )

    def convert(self, frame: pl.DataFrame, origin: Origin, settings: Settings) -> pl.DataFrame:
        frame = frame.with_columns(
            _task(frame, origin, settings).alias("task"),
            pl.col(WORKER).alias("worker"),
            _status(frame, origin).alias("status"),
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


def _task(frame: pl.DataFrame, origin: Origin, settings: Settings) -> pl.Expr:
    """Return the task: a column, or all inputs together where a file has no ids of tasks."""
    inputs = [name for name in frame.columns if name.startswith(INPUT)]
    if settings.task is None and TASK not in frame.columns and len(inputs) > 1:
        whole = pl.concat_str([pl.col(name).fill_null("") for name in inputs], separator=JOINT)
        return pl.when(pl.any_horizontal(pl.col(inputs).is_not_null())).then(whole)
    usual = TASK if TASK in frame.columns else (inputs or [""])[0]
    return pl.col(chosen_field(settings.task or (None if usual else TASK), usual, frame.columns, origin.name, "task"))


def _status(frame: pl.DataFrame, origin: Origin) -> pl.Series:
    """Return the status of each row, a vote where the cell is empty; a word that is not known raises FileError."""
    if STATUS not in frame.columns:
        return pl.Series([OK]).new_from_index(0, frame.height)
    words = frame[STATUS].fill_null("").str.strip_chars().str.to_uppercase()
    unknown = frame.filter(~words.is_in([*STATUSES, ""]))
    if unknown.height:
        raise FileError(
            f"{origin.name}:{unknown['source_row'][0]}: {STATUS} is {unknown[STATUS][0]!r}; it can be "
            f"{', '.join(STATUSES)}. Correct it, or remove the row"
        )
    return words.replace_strict(STATUSES | {"": OK}, return_dtype=pl.String)


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
