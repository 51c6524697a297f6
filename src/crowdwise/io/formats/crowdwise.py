"""Crowdwise's own table of judgements, as `crowdwise convert` writes it: CSV, JSONL or Parquet."""

from __future__ import annotations

import json

import polars as pl

from ...answers.coding import to_text
from ...answers.times import INSTANT
from ...errors import FileError
from . import register
from .base import ANSWERED, COLUMNS, Head, Origin, Settings, TableFormat, chosen_field

ROW = "source_row"


@register
class Judgements(TableFormat):
    """One row per judgement, whatever the platform it came from."""

    name = "crowdwise"
    title = "Crowdwise (converted)"
    files = "CSV, JSONL and Parquet of crowdwise convert"
    containers = ("table", "records")
    takes_worker = True
    kinds = ANSWERED
    statuses = {
        "skipped": "skipped", "rejected": "rejected", "draft": "draft", "expired": "expired", "test": "test question",
        "gold": "known answer", "prediction": "prediction",
    }  # fmt: skip
    fields = {"task": "task", "worker": "worker", "label": "label"}
    unit = "pixels"
    kept = ("value", "probabilities", "weight")

    def recognise(self, head: Head) -> bool:
        return head.has("task", "worker", "question", "status", ROW)

    def convert(self, frame: pl.DataFrame, origin: Origin, settings: Settings) -> pl.DataFrame:
        named = {
            role: chosen_field(given, role, [name for name in frame.columns if name != ROW], origin.name, role)
            for role, given in (("task", settings.task), ("worker", settings.worker))
        }
        frame = frame.with_columns(pl.col(name).alias(role) for role, name in named.items() if name != role)
        return pl.DataFrame([_typed(frame, name, origin) for name in COLUMNS if name in frame.columns])


def _check_sets(sets: pl.Series, rows: pl.Series, origin: Origin) -> None:
    """Raise FileError for a set of labels that is no JSON list of texts."""
    for known in sets.drop_nulls().unique(maintain_order=True):
        try:
            labels = json.loads(known) if known else []
        except (ValueError, RecursionError):
            labels = None
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            row = rows[int((sets == known).arg_max() or 0)]
            raise FileError(
                f"{origin.name}:{row}: label_set is {known[:80]!r}, not a JSON list of labels. Correct the row"
            )


def _typed(frame: pl.DataFrame, name: str, origin: Origin) -> pl.Series:
    """Return a column with its type. A value that does not have it raises FileError, and so does a row without a
    status: it would count as a vote."""
    column, kind = frame[name], COLUMNS[name]
    if kind == INSTANT or name == ROW:
        return column
    if column.dtype.is_nested() or column.dtype == pl.Object:
        raise FileError(f"{origin.name}: the column {name!r} holds lists or objects. Write text or numbers")
    text = column.cast(pl.String) if column.dtype == pl.Boolean else to_text(column)
    if name == "label_set":
        _check_sets(text, frame[ROW], origin)
    if kind == pl.String:
        return text
    given = text.set((text == "").fill_null(value=False), None)
    if kind == pl.Boolean:
        known = {"true": True, "false": False}
        typed = given.str.to_lowercase().replace_strict(known, default=None, return_dtype=pl.Boolean)
    else:
        typed = given.cast(kind, strict=False)
    wrong = typed.is_null() & (given.is_not_null() | (name == "status"))
    if kind == pl.Float64:
        wrong |= ~typed.is_finite().fill_null(value=True)
    if wrong.any():
        at = int(wrong.arg_max() or 0)
        known_values = "a number" if kind == pl.Float64 else "true or false" if kind == pl.Boolean else ""
        wanted = known_values or f"one of {', '.join(kind.categories.to_list())}"
        found = "nothing" if given[at] is None else repr(text[at])
        raise FileError(f"{origin.name}:{frame[ROW][at]}: {name} is {found}, not {wanted}. Correct the row")
    return typed
