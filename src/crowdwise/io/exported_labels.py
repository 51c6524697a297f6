"""The labels of a question in an export, as a table for `Labels`."""

from __future__ import annotations

import json
from collections.abc import Sequence

import polars as pl

from ..errors import DataError, option
from .formats.base import SUBMITTED
from .judgements import FILE, Export, Made, Wanted, aside_reasons, models_among, nothing, workers_of
from .questions import Question

UNUSED = ("question", "kind", "submission", "started_at", "x", "y", "width", "height", "rotation")  # columns
JOINT = " | "  # between the labels of a set that counts as one label
MAX_SPLIT_ROWS = 50_000_000


def label_table(export: Export, rows: pl.DataFrame, asked: Question, wanted: Wanted) -> Made:
    """Return the labels of a question; rows that are not votes have a reason."""
    notes, warnings = list[str](), list[str]()
    aside = aside_reasons(rows, export.format, wanted.keep)
    label = rows["label"] if "label" in rows.columns else nothing("label", pl.String, rows.height)
    kept = [rows[name] for name in export.format.kept if name in rows.columns]
    columns = [rows["task"], workers_of(rows), label, *models_among(rows, aside, notes), *_times(rows, warnings)]
    frame = pl.DataFrame([*columns, *kept, aside])
    if "test" in wanted.keep:
        frame = frame.with_columns((rows["status"].cast(pl.String) == "test").alias("is_check"))
    gold = _gold(rows, wanted, warnings)
    if gold is not None:
        frame = frame.join(gold, on="task", how="left", maintain_order="left")
    if "label_set" in rows.columns and (rows["label_set"].is_not_null() & aside.is_null()).any():
        frame, rows = _sets(frame, rows, asked, wanted, export.names[0])
        how = "each label is a yes/no task" if wanted.sets == "split" else "each set is one label"
        notes.append(f"sets of labels: {how}")
    return Made(frame, rows.select(FILE, "source_row"), {"duplicates": "last"}, notes, warnings)


def _times(rows: pl.DataFrame, warnings: list[str]) -> list[pl.Series]:
    """Return the columns of times; durations below zero are counted and removed."""
    found = []
    if SUBMITTED in rows.columns and rows[SUBMITTED].null_count() < rows.height:
        found.append(rows[SUBMITTED].alias("timestamp"))
    if "seconds" in rows.columns and rows["seconds"].null_count() < rows.height:
        wrong = (rows["seconds"] < 0).fill_null(value=False)
        if wrong.any():
            warnings.append(f"{int(wrong.sum())} answer(s) end before they start; their duration is not used")
        found.append(rows["seconds"].set(wrong, None))
    return found


def _gold(rows: pl.DataFrame, wanted: Wanted, warnings: list[str]) -> pl.DataFrame | None:
    """Return the known labels: of annotations that are the known answer, and of test questions if those are kept."""
    known = []
    gold = pl.col("label").cast(pl.String).alias("gold")
    if "label" in rows.columns:
        known.append(rows.filter(pl.col("status") == "gold").select("task", gold))
    if "gold_label" in rows.columns and "test" in wanted.keep:
        known.append(rows.select("task", pl.col("gold_label").cast(pl.String).alias("gold")))
    if not known:
        return None
    table = pl.concat(known).drop_nulls().unique().sort("task", "gold")
    several = table.filter(pl.col("task").is_duplicated())["task"]
    if len(several):
        warnings.append(
            f"{several.n_unique()} task(s) have different known labels, which are not used; the first is {several[0]!r}"
        )
    table = table.filter(~pl.col("task").is_duplicated())
    return table if table.height else None


def _sets(
    frame: pl.DataFrame, rows: pl.DataFrame, asked: Question, wanted: Wanted, name: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Turn answers with several labels into answers with one."""
    listed = rows["label_set"].cast(pl.String)
    if wanted.sets == "refuse":
        at = int(listed.is_not_null().arg_max() or 0)
        raise DataError(
            f"question {asked.name!r} of {name} has answers with several labels ({asked.sets} of {asked.answers}), for "
            f"instance {', '.join(map(repr, json.loads(listed[at])))}. Make each label a yes/no task "
            f"({option('sets', 'split')}), or count each set as one label ({option('sets', 'joined')})"
        )
    sets = [json.loads(text) if text else None for text in listed.to_list()]
    if wanted.sets == "joined":
        joined = pl.Series("label", [None if each is None else JOINT.join(each) for each in sets], pl.String)
        return frame.with_columns(frame["label"].cast(pl.String).fill_null(joined)), rows
    single = [[] if label is None else [label] for label in frame["label"].to_list()]
    given = [several if several is not None else one for several, one in zip(sets, single, strict=True)]
    return _split(frame, rows, given, f"question {asked.name!r} of {name}")


def _split(
    frame: pl.DataFrame, rows: pl.DataFrame, given: Sequence[Sequence[str]], what: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a yes/no task for every label of every task; `given` are the labels of each row."""
    classes = sorted({label for each in given for label in each})
    if len(classes) * frame.height > MAX_SPLIT_ROWS:
        raise DataError(
            f"{what} has {len(classes)} labels; with a yes/no task for each there are "
            f"{len(classes) * frame.height:,} answers. Count each set as one label: {option('sets', 'joined')}"
        )
    parts = []
    for name in classes:
        said = [("yes" if name in each else "no") if each else None for each in given]
        label = pl.Series("label", said, pl.String)
        parts.append(
            frame.with_columns(pl.col("task").cast(pl.String) + f" / {name}", label).drop("gold", strict=False)
        )
    return pl.concat(parts), pl.concat([rows] * len(classes))
