"""The labels of a question in an export, as a table for `Labels`."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from ..answers.reading import SET_ASIDE
from ..errors import DataError, option
from .asked import Question
from .formats.base import ASIDE, EMPTY, LABELS, NOTHING, OK, POINTS, SUBMITTED
from .judgements import FILE, Export, Made, Wanted, aside_reasons, models_among, nothing, workers_of

UNUSED = ("question", "kind", "submission", "started_at", "x", "y", "width", "height", "rotation")  # columns
JOINT = " | "  # between the labels of a set that counts as one label
SPLIT = " / "  # between a task and a label, where each label of a set is a yes/no task
OF_TASK, OF_LABEL = "of_task", "of_label"  # columns with the two
MAX_SPLIT_ROWS = 50_000_000


def label_rows(export: Export, question: str, wanted: Wanted) -> pl.DataFrame:
    """Return the rows of an export about a question; a submission without any answer is about every question."""
    frame = export.frame
    if wanted.sets == "split":
        if export.format.shown_to_all:
            frame = with_blanks(frame, question)
        if {"kind", "label_set"} <= {*frame.columns}:  # a list of nothing may be of either kind
            chosen = pl.when(pl.col("kind") == POINTS).then(pl.lit(NOTHING, pl.Categorical)).otherwise("label_set")
            frame = frame.with_columns(chosen.alias("label_set"))
    own = (pl.col("question") == question) | pl.col("question").is_null()
    mine = frame.select(own.fill_null(value=False)).to_series()
    needed = frame.drop(UNUSED, strict=False)
    return needed if mine.all() else needed.filter(mine)


def label_table(export: Export, rows: pl.DataFrame, asked: Question, wanted: Wanted) -> Made:
    """Return the labels of a question; rows that are not votes have a reason."""
    notes, warnings = list[str](), list[str]()
    sets = _sets(rows, asked, wanted, export.names[0])
    aside = aside_reasons(rows, export.format, wanted.keep)
    label = rows["label"] if "label" in rows.columns else nothing("label", pl.String, rows.height)
    kept = [rows[name] for name in export.format.kept if name in rows.columns and rows[name].count()]
    columns = [rows["task"], workers_of(rows), label, *models_among(rows, aside, notes), *_times(rows, warnings)]
    frame = pl.DataFrame([*columns, *kept, aside])
    if "test" in wanted.keep:
        frame = frame.with_columns((rows["status"].cast(pl.String) == "test").alias("is_check"))
    gold = _gold(rows, wanted, warnings)
    if sets is None or wanted.sets == "joined":
        if sets is not None:
            frame = frame.with_columns(frame["label"].cast(pl.String).fill_null(_joint(rows["label_set"])))
            notes.append("sets of labels: each set is one label")
        known = None if gold is None else gold.drop_nulls("gold")
        if known is not None and known.height:
            frame = frame.join(known.select("task", "gold"), on="task", how="left", maintain_order="left")
    else:
        frame, rows = _split(frame, rows, gold, f"question {asked.name!r} of {export.names[0]}", notes)
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
    """Return the known labels, columns task, gold (a label or, if sets are joined, a set as one label) and gold_set (a
    set, as a JSON list): of annotations that are the known answer, and of test questions if those are kept."""
    schema: dict[str, Any] = {"task": rows.schema["task"], "gold": pl.String, "gold_set": pl.String}
    known = [pl.DataFrame(schema=schema)]
    given = rows.filter(pl.col("status") == "gold")
    if given.height and {"label", "label_set"} & {*rows.columns}:
        label, label_set = (pl.col(name) if name in rows.columns else pl.lit(None) for name in ("label", "label_set"))
        known.append(given.select("task", gold=label.cast(pl.String), gold_set=label_set.cast(pl.String)))
    if "gold_label" in rows.columns and "test" in wanted.keep:
        known.append(rows.select("task", gold=pl.col("gold_label").cast(pl.String), gold_set=pl.lit(None, pl.String)))
    table = pl.concat(known).filter(pl.col("gold").is_not_null() | pl.col("gold_set").is_not_null())
    table = table.unique().sort("task", "gold", "gold_set")
    several = table.filter(pl.col("task").is_duplicated())["task"]
    if len(several):
        warnings.append(
            f"{several.n_unique()} task(s) have different known labels, which are not used; the first is {several[0]!r}"
        )
    table = table.filter(~pl.col("task").is_duplicated())
    if wanted.sets == "joined":
        table = table.with_columns(pl.col("gold").fill_null(_joint(table["gold_set"])))
    return table if table.height else None


def _sets(rows: pl.DataFrame, asked: Question, wanted: Wanted, name: str) -> pl.Series | None:
    """Return the answers with several labels; None if no vote has any. They are refused unless the caller says how to
    count them."""
    if "label_set" not in rows.columns:
        return None
    counted = rows.filter(~pl.col("status").is_in([status for status in ASIDE if status not in wanted.keep]))
    listed = counted["label_set"].drop_nulls().cast(pl.String)
    listed = listed.filter(listed != NOTHING)
    if not len(listed):
        return None
    if wanted.sets == "refuse":
        raise DataError(
            f"question {asked.name!r} of {name} has answers with several labels ({asked.sets} of {asked.answers}), for "
            f"instance {', '.join(map(repr, json.loads(listed[0])))}. Make each label a yes/no task "
            f"({option('sets', 'split')}), or count each set as one label ({option('sets', 'joined')})"
        )
    return listed


def _joint(listed: pl.Series) -> pl.Series:
    """Return sets, as JSON lists, as one label each."""
    joined = [JOINT.join(json.loads(text)) or None if text else None for text in listed.cast(pl.String)]
    return pl.Series("label", joined, pl.String)


def with_blanks(frame: pl.DataFrame, question: str | None = None) -> pl.DataFrame:
    """Return an export in which every submission was asked all questions, with an empty set of labels for each question
    with sets, or for the one given, about which a submission says nothing."""
    if not {"kind", "question", "worker", "label_set"} <= {*frame.columns}:
        return frame
    sets = frame.filter((pl.col("kind") == LABELS) & pl.col("label_set").is_not_null())
    asked = sets.select("question").unique(maintain_order=True)
    asked = asked if question is None else asked.filter(pl.col("question") == question)
    if not asked.height:
        return frame
    known = pl.col("worker").is_not_null() & pl.col("task").is_not_null()
    counted = frame.filter(pl.col("status").is_in([OK, EMPTY]) & known)
    about = [name for name in ("task", "worker", "worker_kind", SUBMITTED, "source_row", FILE) if name in frame.columns]
    each = counted.unique(["task", "worker"], keep="last", maintain_order=True).select(about).join(asked, how="cross")
    said = frame.filter(pl.col("question").is_not_null())
    absent = each.join(said, on=["task", "worker", "question"], how="anti", maintain_order="left")
    blank = {"kind": LABELS, "status": EMPTY, "label_set": NOTHING}
    absent = absent.with_columns(**{name: pl.lit(value, frame.schema[name]) for name, value in blank.items()})
    others = frame.filter((pl.col("kind") == LABELS) & ~pl.col("question").is_in(asked["question"].implode()))
    if question is not None or not others.height:  # submissions without any answer are among the absent ones
        frame = frame.filter(pl.col("question").is_not_null() | (pl.col("status") != EMPTY) | ~known)
    return pl.concat([frame, absent], how="diagonal")


def _split(
    frame: pl.DataFrame, rows: pl.DataFrame, gold: pl.DataFrame | None, what: str, notes: list[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a yes/no task for every label of every task, named "task / label". An answer in which nothing is chosen
    says no to all labels."""
    listed = rows["label_set"].cast(pl.String).to_list()
    single = frame["label"].cast(pl.String).to_list()
    given = [
        json.loads(several) if several else [one] if one else [] for several, one in zip(listed, single, strict=True)
    ]
    classes = sorted({label for each in given for label in each})
    if len(classes) * frame.height > MAX_SPLIT_ROWS:
        raise DataError(
            f"{what} has {len(classes)} labels; with a yes/no task for each there are "
            f"{len(classes) * frame.height:,} answers. Count each set as one label: {option('sets', 'joined')}"
        )
    none = (rows["label_set"] == NOTHING) & frame[SET_ASIDE].is_null() & frame["worker"].is_not_null()
    blank = none.fill_null(value=False).to_list()
    notes.append("sets of labels: each label is a yes/no task")
    if any(blank):
        count = "1 answer" if sum(blank) == 1 else f"{sum(blank)} answers"
        notes.append(f"{count} without any chosen label: no to every label")
    known = {} if gold is None else _known_sets(gold)
    tasks = frame["task"].cast(pl.String)
    parts = []
    for name in classes:
        said = [
            ("yes" if name in each else "no") if no or each else None for no, each in zip(blank, given, strict=True)
        ]
        own = [
            pl.Series("label", said, pl.String),
            tasks.alias(OF_TASK),
            pl.Series(OF_LABEL, [name]).new_from_index(0, len(tasks)),
        ]
        if known:
            right = {task: "yes" if name in each else "no" for task, each in known.items()}
            own.append(tasks.replace_strict(right, default=None, return_dtype=pl.String).alias("gold"))
        parts.append(frame.with_columns(tasks + SPLIT + name, *own))
    return pl.concat(parts), pl.concat([rows] * len(classes))


def _known_sets(gold: pl.DataFrame) -> dict[str, list[str]]:
    """Return the known labels of each task."""
    columns = (gold[name].cast(pl.String).to_list() for name in ("task", "gold", "gold_set"))
    return {task: json.loads(several) if several else [one] for task, one, several in zip(*columns, strict=True)}
