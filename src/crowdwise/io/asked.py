"""The questions in an export: which there are, and which one is to be answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from ..errors import ColumnError, DataError, EmptyDataError, ParameterError, QuestionError, nearest, option
from .formats.base import LABELS, OK, PAIRS, POINTS, TEXT
from .judgements import Export

ROWS_AT_ONCE = 100_000  # of which memory is needed for counting
MAX_SHOWN = 8  # questions, or classes of points, that a message lists


class Question(NamedTuple):
    """A question of an export."""

    name: str
    kind: str
    answers: int  # that count
    sets: int  # of them with several labels
    classes: tuple[str, ...]  # labels of points

    def __str__(self) -> str:
        more = f", {self.sets} with several labels" if self.sets else ""
        return f"{self.name!r} ({self.kind}, {self.answers} answer{'s' * (self.answers != 1)}{more})"


def questions(frame: pl.DataFrame) -> list[Question]:
    """Return the questions of an export, sorted by name."""
    if "question" not in frame.columns:
        return []
    counted = pl.concat([_counted(part) for part in frame.iter_slices(ROWS_AT_ONCE)])
    counts = pl.col("places", "looked", "pairs", "labels", "sets", "answers", "rows").sum()
    table = counted.group_by("question").agg(counts, pl.col("classes").explode().drop_nulls().unique())
    table = table.sort(pl.col("question").cast(pl.String))
    return [
        Question(
            str(row["question"]),
            _kind(row),
            row["answers"],
            row["sets"],
            tuple(sorted(row["classes"])),
        )
        for row in table.iter_rows(named=True)
    ]


def question_table(export: Export) -> pl.DataFrame:
    """Return the questions of an export as a table."""
    schema: dict[str, Any] = {
        "question": pl.String,
        "kind": pl.String,
        "answers": pl.Int64,
        "sets": pl.Int64,
        "classes": pl.List(pl.String),
    }
    rows = [(each.name, each.kind, each.answers, each.sets, list(each.classes)) for each in questions(export.frame)]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _kind(row: Mapping[str, Any]) -> str:
    """Return the kind of a question from the numbers of its rows."""
    if row["places"] or 0 < row["looked"] == row["rows"]:
        return POINTS
    return PAIRS if row["pairs"] else LABELS if row["labels"] else TEXT


def _counted(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the number of rows of each kind, and the classes of points, of every question in a part of an export."""
    names = ("x", "label", "label_set", "kind")
    x, label, label_set, kind = (pl.col(name) if name in frame.columns else pl.lit(None) for name in names)
    some = label.is_not_null() | label_set.is_not_null()
    own = frame.filter(pl.col("question").is_not_null())
    return own.group_by("question").agg(
        places=x.is_not_null().sum(),
        looked=(kind == POINTS).sum(),
        pairs=(kind == PAIRS).sum(),
        labels=((kind == LABELS) & some).sum(),
        sets=((pl.col("status") == OK) & label_set.is_not_null()).sum(),
        answers=(pl.col("status") == OK).sum(),
        classes=label.filter(x.is_not_null()).cast(pl.String).drop_nulls().unique(),
        rows=kind.is_not_null().sum(),
    )


def choose(export: Export, wanted: str | None, among: Sequence[str]) -> tuple[Question, str | None]:
    """Return the question to answer, and the class of points if the caller wants only one."""
    known = questions(export.frame)
    listed = "; ".join(map(str, known[:MAX_SHOWN])) + ("; ..." if len(known) > MAX_SHOWN else "")
    name = export.names[0]
    if wanted is None:
        return _only(export, [each for each in known if each.kind in among], listed, among), None
    if not isinstance(wanted, str):
        raise ParameterError(f"{option('question', wanted)} is not the name of one question. Give text")
    asked, label = _named(known, wanted)
    near = next((each for each in known if wanted.startswith(f"{each.name}/") and each.classes), None)
    if asked is None and near is not None:
        raise ColumnError(
            f"question {near.name!r} of {name} has no points of the class {wanted.removeprefix(f'{near.name}/')!r}; "
            f"classes are {', '.join(map(repr, near.classes[:MAX_SHOWN]))}"
        )
    if asked is None:
        raise ColumnError(
            f"no question {wanted!r} in {name}; it has {listed or 'none'}."
            f"{nearest(wanted, [each.name for each in known])}"
        )
    kind = LABELS if asked.kind == TEXT and _has_labels(export.frame, asked.name) else asked.kind
    if kind not in among:
        raise DataError(
            f"question {asked.name!r} of {name} has answers of the kind {asked.kind}, not {' or '.join(among)}. "
            f"Questions are {listed}"
        )
    return asked._replace(kind=kind), label


def _only(export: Export, usable: Sequence[Question], listed: str, among: Sequence[str]) -> Question:
    """Return the one question that can be answered; none, or several, raise an error."""
    name = f"{export.names[0]} ({export.format.title})"
    if not usable:
        raise EmptyDataError(f"{name} has no question with {' or '.join(among)}; it has {listed or 'no answers'}")
    if len(usable) > 1:
        likely = min(usable, key=lambda each: (each.sets > 0, -each.answers))
        raise _several(export, f"{name} has several questions: {listed}. Choose one: {option('question', likely.name)}")
    only = usable[0]
    if len(only.classes) > 1:
        shown = ", ".join(only.classes[:MAX_SHOWN])
        raise _several(
            export,
            f"question {only.name!r} of {name} has points of several classes: {shown}. Choose one, for instance "
            f"{option('question', f'{only.name}/{only.classes[0]}')}, or take all together: "
            f"{option('question', only.name)}",
        )
    return only


def _several(export: Export, message: str) -> QuestionError:
    """Return the error for an export of which no question is chosen."""
    error = QuestionError(message)
    error.questions = question_table(export)
    return error


def _named(known: Sequence[Question], wanted: str) -> tuple[Question | None, str | None]:
    """Return the question with a name, and the class of points in it: "T1/cat". "Answer.label" is "label"."""
    by_name = {each.name: each for each in known}
    for name in (wanted, wanted.partition(".")[2], wanted.partition(":")[2]):
        if name in by_name:
            return by_name[name], None
    for each in known:
        label = wanted.removeprefix(f"{each.name}/")
        if label != wanted and label in each.classes:
            return each, label
    return None, None


def _has_labels(frame: pl.DataFrame, question: str) -> bool:
    rows = frame.filter(pl.col("question") == question)
    return "label" in rows.columns and bool(rows["label"].is_not_null().any())
