"""Appen, formerly Figure Eight and CrowdFlower: the full report as CSV."""

from __future__ import annotations

import polars as pl

from ...errors import FileError, option
from . import register
from .base import EMPTY, LABELS, OK, STARTED, SUBMITTED, Head, Origin, Settings, TableFormat, chosen_field, split_labels

GOLD = "_gold"
UNIT = "_unit_id"


@register
class Appen(TableFormat):
    """One row per judgement."""

    name = "appen"
    title = "Appen (Figure Eight, CrowdFlower)"
    files = "full report CSV"
    statuses = {"rejected": "tainted judgement", "test": "test question"}
    in_parts = False  # without columns ..._gold, columns of answers are known by their values within a unit
    fields = {
        "task": "_unit_id", "worker": "_worker_id", "label": "the column with a column ..._gold beside it",
        "gold": "..._gold", "timestamp": "_created_at", "started": "_started_at",
    }  # fmt: skip

    def recognise(self, head: Head) -> bool:
        return head.has(UNIT, "_worker_id") or head.has(UNIT, "_trusted_judgments")

    def refuse(self, head: Head) -> str:
        if head.has("_worker_id"):
            return ""
        return (
            f"{head.name} is the aggregated report of Appen: it has no workers, so there is nothing to aggregate. "
            "Download the full report"
        )

    def convert(self, frame: pl.DataFrame, origin: Origin, settings: Settings) -> pl.DataFrame:
        task = chosen_field(settings.task, UNIT, frame.columns, origin.name, "task")
        tainted, golden = (_is_true(frame, name) for name in ("_tainted", "_golden"))
        about = frame.select(
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
            "source_row",
        )
        asked = _asked(frame.drop("source_row"), task)
        if not asked:
            raise FileError(
                f"{origin.name} looks like a report of Appen, but nothing says which columns are answers: no "
                f"column has another beside it whose name ends in {GOLD!r}, and in none do the workers of a unit "
                f"differ. Read it as a table: {option('format', 'csv')}, and name the columns: "
                f"{option('task', UNIT)}, {option('worker', '_worker_id')}, {option('label', 'COLUMN')}. Test "
                "questions and tainted judgements then count like the others"
            )
        return pl.concat([_answers(frame, about, name) for name in asked], how="diagonal")


def _asked(frame: pl.DataFrame, task: str) -> list[str]:
    """Return the columns of answers: those with known answers beside them or, in a job without test questions, those in
    which the workers of some unit differ."""
    text = [name for name, kind in frame.schema.items() if kind == pl.String and not name.startswith("_")]
    known = [name for name in text if name + GOLD in frame.columns]
    if known:
        return known
    values = frame.group_by(UNIT if UNIT in frame.columns else task).agg(pl.col(text).n_unique())
    return [name for name in text if name != task and (values[name] > 1).any()]


def _is_true(frame: pl.DataFrame, name: str) -> pl.Expr:
    return pl.col(name).str.to_lowercase().fill_null("") == "true" if name in frame.columns else pl.lit(False)


def _answers(frame: pl.DataFrame, about: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the answers to one question; several lines in a cell are a set of labels."""
    several = frame[name].str.contains("\n", literal=True)
    labels = split_labels(frame[name], several, lambda cell: [line.strip() for line in cell.split("\n")])
    found = about.with_columns(
        pl.lit(name).alias("question"), pl.lit(LABELS).alias("kind"), *labels, *_known(frame, name)
    )
    nothing = pl.col("label").is_null() & pl.col("label_set").is_null() & (pl.col("status") == OK)
    return found.with_columns(pl.when(nothing).then(pl.lit(EMPTY)).otherwise("status").alias("status"))


def _known(frame: pl.DataFrame, name: str) -> list[pl.Series]:
    """Return the known answers; of several in a cell, none is the known one."""
    if name + GOLD not in frame.columns:
        return []
    gold = pl.col(name + GOLD).str.strip_chars()
    one = ~gold.str.contains("\n", literal=True) & (gold != "")
    return [frame.select(pl.when(one).then(gold).alias("gold_label")).to_series()]
