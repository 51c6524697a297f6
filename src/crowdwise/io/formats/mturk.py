"""Amazon Mechanical Turk: the results of a batch as CSV, with one or several items per HIT."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import polars as pl

from . import register
from .base import (
    EMPTY,
    LABELS,
    OK,
    POINTS,
    STARTED,
    SUBMITTED,
    Answer,
    Head,
    Origin,
    Settings,
    TableFormat,
    as_frame,
    as_label,
    chosen_field,
    one_or_set,
    parsed,
    split_labels,
)
from .crowd_elements import element_answers

ANSWER, INPUT, ELEMENTS = "Answer.", "Input.", "Answer.taskAnswers"
_NUMBERED = re.compile(r"^(.*?[^\d])(\d+)$")
_OPTION = re.compile(r"^(.+)\.([^.]+)$")


class Asked(NamedTuple):
    """A column, or the columns of the options, with the answers to one question about one item of a HIT."""

    question: str
    item: str  # "" if there is one item per HIT
    columns: dict[str, str]  # option -> column of true and false; {"": column} for answers as they are
    shown: tuple[str, ...] = ()  # columns of Input that show the item


@register
class MechanicalTurk(TableFormat):
    """One row per assignment."""

    name = "mturk"
    title = "Mechanical Turk"
    files = "batch results CSV: one item per HIT, several items per HIT, Answer.taskAnswers"
    kinds = (LABELS, POINTS)
    statuses = {"rejected": "rejected assignment"}
    fields = {
        "task": "HITId", "worker": "WorkerId", "label": "Answer.*", "timestamp": "SubmitTime", "started": "AcceptTime",
        "seconds": "WorkTimeInSeconds",
    }  # fmt: skip
    unit = "pixels"
    in_parts = False  # columns of options are known by all of their values

    def recognise(self, head: Head) -> bool:
        answered = any(name.startswith(ANSWER) for name in head.columns)
        return answered and head.has("HITId", "WorkerId", "AssignmentStatus")

    def convert(self, frame: pl.DataFrame, origin: Origin, settings: Settings) -> pl.DataFrame:
        task = chosen_field(settings.task, "HITId", frame.columns, origin.name, "task")
        frame = frame.with_columns(
            pl.col(task).alias("task"),
            pl.col("WorkerId").alias("worker"),
            pl.col("AssignmentId").alias("submission")
            if "AssignmentId" in frame.columns
            else pl.lit(None).alias("submission"),
            pl.when(pl.col("AssignmentStatus") == "Rejected")
            .then(pl.lit("rejected"))
            .otherwise(pl.lit(OK))
            .alias("status"),
            *(
                pl.col(name).alias(role) if name in frame.columns else pl.lit(None, pl.String).alias(role)
                for role, name in ((STARTED, "AcceptTime"), (SUBMITTED, "SubmitTime"), ("seconds", "WorkTimeInSeconds"))
            ),
        )
        if ELEMENTS in frame.columns:
            return _elements(frame, origin)
        return pl.concat([_answers(frame, asked) for asked in _questions(frame)], how="diagonal")


ABOUT = ("task", "worker", "submission", "status", STARTED, SUBMITTED, "seconds", "source_row")


def _questions(frame: pl.DataFrame) -> list[Asked]:
    """Return what was asked: columns of true and false belong to one question, numbered ones to items of a HIT."""
    names = [name for name in frame.columns if name.startswith(ANSWER)]
    options: dict[str, dict[str, str]] = {}
    for name in names:
        found = _OPTION.match(name.removeprefix(ANSWER).removesuffix(".on"))
        if found and _all_ticks(frame[name]):
            options.setdefault(found[1], {})[found[2]] = name
    families = {question: columns for question, columns in options.items() if len(columns) > 1}
    taken = {name for columns in families.values() for name in columns.values()}
    single = {name.removeprefix(ANSWER): {"": name} for name in names if name not in taken}
    asked = families | single
    shown = _items([name.removeprefix(INPUT) for name in frame.columns if name.startswith(INPUT)])
    numbered = _items(list(asked))
    found_items = []
    for question, columns in asked.items():
        match = _NUMBERED.match(question)
        items = set(numbered.get(match[1], {})) if match else set()
        inputs = [each for each in shown.values() if items and items <= set(each)]
        if match and len(items) > 1 and inputs:
            found_items.append(
                Asked(match[1].rstrip("_.- "), match[2], columns, tuple(INPUT + each[match[2]] for each in inputs))
            )
        else:
            found_items.append(Asked(question, "", columns))
    return found_items


def _items(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return name without number -> number -> name, for numbered names."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        match = _NUMBERED.match(name)
        if match:
            found.setdefault(match[1], {})[match[2]] = name
    return found


def _all_ticks(column: pl.Series) -> bool:
    return bool(column.drop_nulls().str.to_lowercase().is_in(["true", "false", ""]).all())


def _answers(frame: pl.DataFrame, asked: Asked) -> pl.DataFrame:
    """Return the answers to one question about one item."""
    question = pl.lit(asked.question).alias("question")
    task = pl.col("task") + f"#{asked.item}" if asked.item else pl.col("task")
    if list(asked.columns) == [""]:
        cells = frame[asked.columns[""]].str.replace_all("&#44;", ",", literal=True)
        boxes = cells.str.contains("|", literal=True)  # several check boxes that are ticked
        found = frame.select(task, *ABOUT[1:], question, *asked.shown).with_columns(
            *split_labels(cells, boxes, lambda cell: cell.split("|"))
        )
    else:
        found = _ticked(frame.with_columns(task), asked).with_columns(question)
    found = found.with_columns(
        pl.lit(LABELS).alias("kind"),
        pl.when((pl.col("status") == OK) & pl.col("label").is_null() & pl.col("label_set").is_null())
        .then(pl.lit(EMPTY))
        .otherwise("status")
        .alias("status"),
    )
    if asked.shown:  # the last HIT of a batch may have fewer items
        nothing = pl.all_horizontal((pl.col(name).fill_null("") == "") for name in asked.shown)
        first = pl.lit(asked.item.lstrip("0") in ("", "1"))
        found = found.filter(~nothing | pl.col("label").is_not_null() | first).drop(asked.shown)
    return found


def _ticked(frame: pl.DataFrame, asked: Asked) -> pl.DataFrame:
    """Return the options that are true, as one label or a set."""
    ticks = frame.select(pl.col(name).str.to_lowercase() == "true" for name in asked.columns.values())
    chosen = [
        one_or_set(option for option, tick in zip(asked.columns, row, strict=True) if tick) for row in ticks.iter_rows()
    ]
    return frame.select(*ABOUT, *asked.shown).with_columns(
        pl.Series("label", [each.get("label") for each in chosen], pl.String),
        pl.Series("label_set", [each.get("label_set") for each in chosen], pl.String),
    )


def _elements(frame: pl.DataFrame, origin: Origin) -> pl.DataFrame:
    """Return the answers in the column of JSON that crowd elements fill."""
    found: list[Answer] = []
    rows: list[int] = []
    timed = frame.with_columns(pl.col("seconds").cast(pl.Float64, strict=False))
    for record in timed.select(*ABOUT, ELEMENTS).iter_rows(named=True):
        about = Answer(**{name: record[name] for name in ABOUT[:-1]})
        before = len(found)
        found.extend(_element_rows(record[ELEMENTS], about, f"{origin.name}:{record['source_row']}"))
        rows.extend([record["source_row"]] * (len(found) - before))
    return as_frame(found, rows)


def _element_rows(cell: str | None, about: Answer, where: str) -> Iterator[Answer]:
    from ...errors import FileError

    try:
        forms: Any = parsed(cell) or []
        some = False
        for form in forms if isinstance(forms, list) else [forms]:
            for question, fields in element_answers(form):
                some = True
                status = about.status if about.status != OK else fields.get("status", OK)
                yield about._replace(question=as_label(question), **(fields | {"status": status}))
        if not some:
            yield about._replace(status=EMPTY if about.status == OK else about.status)
    except (json.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise FileError(
            f"{where}: {ELEMENTS} is not the answer of crowd elements: {error}. Correct the cell"
        ) from error
