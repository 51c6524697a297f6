"""Exports and tables as one table of judgements, whatever the platform, and as files of other platforms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ..answers import Answers, Labels, Pairs, Points
from ..answers.times import INSTANT, instants
from ..engine.verbs import perform, verb
from ..errors import DataError, EmptyDataError, ParameterError, nearest, option
from ..result.files import write_whole
from .asked import choose
from .exported_labels import with_blanks
from .exported_points import with_looks
from .formats import all_formats
from .formats.base import ANSWERED, COLUMNS, EMPTY, LABELS, OK, PAIRS, POINTS, Format, check_one_question
from .judgements import Export
from .parts import platform
from .writing import TABLES, record_writer, table_writer

CROWD_KIT = "crowd-kit"  # a table with task, worker and label
NEEDED = ("task", "worker", "question", "status", "source_row")  # columns by which a table of judgements is recognised


class Converted(NamedTuple):
    """A file that was written from the judgements in another."""

    path: Path
    rows: int
    left_out: Mapping[str, int]  # why judgements are not in it, and how many


def targets() -> list[str]:
    """Return the names that `convert` takes."""
    formats = [name for name, each in all_formats().items() if each.converted]
    return [*(ending[1:] for ending in TABLES), CROWD_KIT, *formats]


def target(to: str | None, out: Path) -> str:
    """Return the name of the format to write, from the ending of the file if none is given."""
    if to is None:
        found = next((ending for ending in TABLES if out.name.endswith(ending)), None)
        if found is None:
            raise ParameterError(f"what is {out} to be? Use {option('to', 'NAME')}: {', '.join(targets())}")
        return found[1:]
    if to not in targets():
        raise ParameterError(
            f"{option('to', to)} is not known; it can be {', '.join(targets())}.{nearest(to, targets())}"
        )
    return to


def table_of(export: Export, question: str | None) -> pl.DataFrame:
    """Return the judgements in an export as one table; of one question, if it is given."""
    frame = export.frame
    if export.format.shown_to_all:
        frame = with_blanks(with_looks(frame))
    if question is not None:
        asked, label = choose(export, question, ANSWERED)
        own = pl.col("question") == asked.name
        own = own if label is None else own & ((pl.col("label") == label) | pl.col("label").is_null())
        frame = frame.filter(own | pl.col("question").is_null())
    text = pl.col(pl.Categorical).cast(pl.String)
    return _as_judgements(frame.with_columns(text))


def _as_judgements(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table with the columns of judgements, in their order; those by which it is recognised are never
    missing."""
    absent = [name for name in NEEDED if name not in frame.columns]
    frame = frame.with_columns(pl.lit(None, COLUMNS[name]).alias(name) for name in absent)
    return frame.select(pl.col(name).cast(kind) for name, kind in COLUMNS.items() if name in frame.columns)


def table_of_answers(answers: Answers) -> pl.DataFrame:
    """Return answers of a plain table as a table of judgements."""
    return _as_judgements(pl.concat(perform("convert", answers), how="diagonal").with_row_index("source_row", 1))


def _text(ids: pl.Series, name: str) -> pl.Series:
    return ids.cast(pl.String).alias(name)


@verb("convert", "labels")
def _rows_of_labels(answers: Labels) -> list[pl.DataFrame]:
    frame = answers.frame()
    question = answers.intake.columns.get("label", "label")
    about = {"question": pl.lit(question), "kind": pl.lit(LABELS), "status": pl.lit(OK)}
    ids = [_text(frame[name], name) for name in ("task", "worker", "label")]
    weights = [pl.Series("weight", answers.weights)] if answers.weighted else []
    votes = pl.DataFrame([*ids, *_times(frame), *weights])
    known = answers.gold >= 0
    gold = {"task": _text(answers.tasks.filter(pl.Series(known)), "task")}
    labels = _text(answers.classes[answers.gold[known]], "label")
    gold_rows = pl.DataFrame([gold["task"], labels]).with_columns(**(about | {"status": pl.lit("gold")}))
    return [votes.with_columns(**about), gold_rows]


@verb("convert", "points")
def _rows_of_points(answers: Points) -> list[pl.DataFrame]:
    if len(answers.axes) != 2:
        raise DataError(f"{answers.intake.source} holds places in {len(answers.axes)} dimensions; 2 can be converted")
    frame = answers.frame()
    about = {"question": pl.lit("object"), "kind": pl.lit(POINTS), "status": pl.lit(OK)}
    places = [frame[axis].cast(pl.Float64).alias(name) for axis, name in zip(answers.axes, ("x", "y"), strict=True)]
    classes = [_text(frame["class"], "label")] if "class" in frame.columns else []
    clicks = pl.DataFrame(
        [_text(frame["image"], "task"), _text(frame["worker"], "worker"), *places, *classes, *_times(frame)]
    )
    seen = pl.DataFrame(
        [
            _text(answers.images[answers.job_image], "task"),
            _text(answers.workers[answers.job_worker], "worker"),
        ]
    )
    rows = [clicks.with_columns(**about), seen.join(clicks, on=["task", "worker"], how="anti").with_columns(**about)]
    if answers.box_from == "clicks" or answers.box[:, 0].any():
        return rows
    sizes = {"task": _text(answers.images, "task")}
    for n, name in enumerate(("image_width", "image_height")):
        sizes[name] = pl.Series(name, answers.box[:, 1, n])
    return [each.join(pl.DataFrame(list(sizes.values())), on="task", how="left") for each in rows]


@verb("convert", "pairs")
def _rows_of_pairs(answers: Pairs) -> list[pl.DataFrame]:
    frame = answers.frame()
    items = [_text(frame[side], side) for side in ("left", "right")]
    jobs = [_text(frame["hit"], "submission")] if "hit" in frame.columns else []
    said = pl.when(pl.col("answer") == 1).then(pl.lit("same")).otherwise(pl.lit("different")).alias("label")
    about = {"question": pl.lit("same"), "kind": pl.lit(PAIRS), "status": pl.lit(OK)}
    task = pl.format("{} | {}", "left", "right").alias("task")
    rows = pl.DataFrame([*items, _text(frame["worker"], "worker"), frame.select(said).to_series(), *jobs])
    return [rows.with_columns(task, **about)]


def _times(frame: pl.DataFrame) -> list[pl.Series]:
    found = []
    if "timestamp" in frame.columns:
        times = frame["timestamp"]
        found.append((times if times.dtype == INSTANT else instants(times)).alias("submitted_at"))
    if "seconds" in frame.columns and frame["seconds"].dtype.is_numeric():
        found.append(frame["seconds"].cast(pl.Float64))
    return found


def written(rows: pl.DataFrame, to: str, out: Path, excel_safe: bool) -> Converted:
    """Write judgements as a table, or as a file of a platform."""
    ending = f".{to}"
    if ending in TABLES:
        return Converted(write_whole(out, table_writer(rows, ending, excel_safe)), rows.height, {})
    held, left_out = _held(rows, to)
    if "kind" not in held.columns or not held["kind"].count():  # nothing but submissions without an answer
        reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
        raise EmptyDataError(f"none of the {rows.height} judgements can be written as {to}: {reasons}")
    if to == CROWD_KIT:
        check_one_question(held, to)
        table = held.select("task", "worker", "label")
        return Converted(write_whole(out, table_writer(table, ".csv", excel_safe)), held.height, left_out)
    format = all_formats()[to]
    write = record_writer(format.records(held), format.converted, excel_safe)
    return Converted(write_whole(out, write), held.height, left_out)


def _held(rows: pl.DataFrame, to: str) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the judgements that a format can hold, sorted by task, and the numbers of the others by reason."""
    format = None if to == CROWD_KIT else all_formats()[to]
    statuses = [OK] if format is None else [OK, EMPTY, *_statuses(format)]
    kinds = (LABELS,) if format is None else format.written_kinds
    left_out: dict[str, int] = {}

    def keep(frame: pl.DataFrame, mask: Any, reason: str) -> pl.DataFrame:
        kept = frame.filter(mask)
        if kept.height < frame.height:
            left_out[reason] = left_out.get(reason, 0) + frame.height - kept.height
        return kept

    def column(name: str) -> pl.Expr:
        return pl.col(name) if name in rows.columns else pl.lit(None)

    for status in rows["status"].cast(pl.String).unique().sort().to_list():
        if status not in statuses:
            reason = "no answer" if status == EMPTY else status
            rows = keep(rows, pl.col("status") != status, f"{reason} (no such status in {to})")
    empty = column("kind").is_null() & (pl.col("status") == EMPTY)
    rows = keep(rows, column("kind").is_in(list(kinds)) | (empty | column("kind").is_null()), "no label or place")
    if format is not None and format.needs_question:
        blank = column("question").is_null() & (pl.col("status") == EMPTY)
        rows = keep(rows, ~blank, "no answer to any question")
    if format is None:
        rows = keep(rows, column("label").is_not_null(), "a set of labels")
    rows = keep(rows, column("task").is_not_null(), "no task")
    rows = keep(rows, column("worker").is_not_null() | (pl.col("status").is_in([EMPTY, "gold"])), "no worker")
    return rows.sort("task", maintain_order=True), left_out


def _statuses(format: Format) -> list[str]:
    """Return the statuses that any file of the platform can hold."""
    return [status for each in platform(format) for status in each.statuses]


def by_task(rows: pl.DataFrame) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield each task and its judgements, as plain values without nulls."""
    task, group = None, list[dict[str, Any]]()
    for row in rows.iter_rows(named=True):
        if row["task"] != task:
            if group:
                yield str(task), group
            task, group = row["task"], []
        group.append({name: value for name, value in row.items() if value is not None})
    if group:
        yield str(task), group
