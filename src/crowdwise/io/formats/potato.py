"""Potato: annotated instances of each annotator, the state files of Potato 2, and its CSV, TSV and Parquet exports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from . import register
from .base import (
    EMPTY,
    LABELS,
    MODEL,
    OK,
    TEXT,
    Answer,
    Head,
    Origin,
    RecordFormat,
    Settings,
    as_label,
    number,
    one_or_set,
)

_SPENT = re.compile(r"(\d+)d (\d+)h (\d+)m (\d+)s")
# Names that hold a value, and are no label: of points on a scale, sliders, boxes and menus.
_HOLDER = re.compile(r"scale_.*|slider|number|text_?box.*|free_response|select-one")
MENU = "select-one"  # whose value is the chosen option
RATED = "\x1f"  # between a question and an option whose value is a number, until all records are known
CHOSEN = ":::"  # between a question and an option
SPANS = "span_annotation"
MAX_RATING = 100
PAGE = ".html"  # ending of the ids of pages of a survey, such as consent.html
STEM = "annotated_instances"  # of files that are named alike, in a folder per annotator
ABOUT = ("instance_id", "user_id", "annotator_origin", "annotator_origin_detail", "displayed_text")  # not answers


class _Potato(RecordFormat):
    """What all files share."""

    def finish(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the table with options whose values are numbers as labels or ratings, and without answers to pages of
        a survey."""
        return _without_pages(_with_options(frame))


@register
class Potato(_Potato):
    """One record per instance; the worker is the folder of the file, or the file if it has a name of its own."""

    name = "potato"
    title = "Potato"
    files = "annotated_instances.jsonl in one folder per annotator"
    containers = ("records",)
    fields = {"task": "id", "worker": "name of the folder", "label": "label_annotations"}
    named_files = r"(annotated_instances|annotations)\.jsonl?$"

    def recognise(self, head: Head) -> bool:
        if head.has("instance_id", "user_id", "labels"):  # as `potato export` writes it
            return True
        return bool({"id", "instance_id"} & {*head.columns}) and head.has("label_annotations")

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        spent = _SPENT.search(str((record.get("behavioral_data") or {}).get("time_string") or ""))
        days, hours, minutes, seconds = map(int, spent.groups()) if spent else (0, 0, 0, 0)
        about = Answer(
            task=as_label(record[settings.task or ("id" if "id" in record else "instance_id")]),
            worker=as_label(record.get("user_id")) or (origin.folder if origin.stem.startswith(STEM) else origin.stem),
            seconds=float(seconds + 60 * (minutes + 60 * (hours + 24 * days))) if spent else None,
        )
        yield from _schemas(record["label_annotations" if "label_annotations" in record else "labels"] or {}, about)


@register
class PotatoState(_Potato):
    """The state of one annotator."""

    name = "potato-state"
    title = "Potato (state files)"
    files = "user_state.json"
    containers = ("object",)
    fields = {"task": "key of instance_id_to_label_to_value", "worker": "user_id", "label": "labels"}
    named_files = r"user_state\.json$"

    def recognise(self, head: Head) -> bool:
        return head.has("user_id", "instance_id_to_label_to_value")

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        for task, schemas in record["instance_id_to_label_to_value"].items():
            named = _paired(schemas) if isinstance(schemas, list) else schemas
            yield from _schemas(named or {}, Answer(task=str(task), worker=as_label(record["user_id"])))


@register
class PotatoTable(_Potato):
    """One row per instance and annotator, one column per question."""

    name = "potato-table"
    title = "Potato (tables)"
    files = "annotations CSV, TSV and Parquet"
    containers = ("table",)
    statuses = {"prediction": "annotator_origin tool or llm"}
    fields = {"task": "instance_id", "worker": "user_id", "label": "one column per question"}
    named_files = r"annotations?\.(csv|tsv|parquet)$"

    def recognise(self, head: Head) -> bool:
        return head.columns[:2] in (("instance_id", "user_id"), ("user_id", "instance_id"), ("user", "instance_id"))

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        machine = record.get("annotator_origin") in ("tool", "llm")
        about = Answer(
            task=as_label(record[settings.task or "instance_id"]),
            worker=as_label(record.get("user_id", record.get("user"))),
            worker_kind=MODEL if machine else None,
            status="prediction" if machine else OK,
        )
        ticked: dict[str, list[str]] = {}
        options: dict[str, dict[str, Any]] = {}
        found = False
        for name, cell in record.items():
            if name in (*ABOUT, "user", settings.task) or cell is None or cell == "":
                continue
            schema, several, choice = name.partition(CHOSEN)  # a column for each label of a question
            if several and (_is_number(cell) or _HOLDER.fullmatch(choice)):
                options.setdefault(schema, {})[choice] = cell
                continue
            if several and schema != SPANS:
                whole = str(cell) in ("true", "True", choice, name)
                ticked.setdefault(schema, []).append(choice if whole else as_label(cell) or "")
                continue
            if several:
                found = True
                yield about._replace(question=schema, kind=TEXT)
                continue
            schema, dot, choice = name.rpartition(".")  # a column for each option, as `potato export` writes it
            if dot and choice.startswith("_"):  # spans, and rooms where people annotate together
                continue
            known = _HOLDER.fullmatch(choice) or _is_chosen(choice, cell) or _is_blank(choice, cell) or _is_number(cell)
            if dot and known:
                options.setdefault(schema, {})[choice] = cell
                continue
            found = True
            yield about._replace(question=name, **_kept(_cell(cell), about))
        for schema, labels in ticked.items():
            found = True
            yield about._replace(question=schema, **_kept(one_or_set(labels), about))
        for schema, cells in options.items():
            found = True
            for question, fields in _answers(schema, cells):
                yield about._replace(question=question, **_kept(fields, about))
        if not found:
            yield about._replace(status=EMPTY if about.status == OK else about.status)


def _kept(fields: dict[str, Any], about: Answer) -> dict[str, Any]:
    return fields if about.status == OK else fields | {"status": about.status}


def _cell(cell: Any) -> dict[str, Any]:
    if isinstance(cell, list):
        return one_or_set(cell)
    if isinstance(cell, Mapping):
        return {"kind": TEXT}
    return {"kind": LABELS, "label": as_label(cell), "value": number(cell) if isinstance(cell, float) else None}


def _paired(pairs: list[Any]) -> dict[str, dict[str, Any]]:
    """Return the options of each question, for a list of pairs: [{"schema": question, "name": option}, value]."""
    schemas: dict[str, dict[str, Any]] = {}
    for option, value in pairs:
        schemas.setdefault(option["schema"], {})[option["name"]] = value
    return schemas


def _schemas(schemas: Mapping[str, Any], about: Answer) -> Iterator[Answer]:
    """Yield the answer to each question: its options are the keys of a mapping."""
    found = False
    for schema, options in schemas.items():
        options = options.get("labels", options) if isinstance(options, Mapping) else {str(as_label(options)): True}
        found = found or bool(options)
        for question, fields in _answers(schema, options):
            yield about._replace(question=question, **fields)
    if not found:
        yield about._replace(status=EMPTY)


def _answers(schema: str, options: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the fields of the answer to a question. A number beside an option may be the key that chooses it, or the
    rating of an item: which of them, all records of the question tell."""
    own = {option: option if value == f"{schema}{CHOSEN}{option}" else value for option, value in options.items()}
    chosen = [option for option, value in own.items() if _is_chosen(option, value)]
    rated = [option for option, value in own.items() if _is_number(value) and not _HOLDER.fullmatch(option)]
    if rated and not chosen:
        for option in rated:
            yield schema + RATED + option, {"kind": LABELS, "label": as_label(own[option])}
    elif chosen:
        yield schema, one_or_set(chosen)
    else:
        held = {option: value for option, value in own.items() if not _is_blank(option, value)}
        yield schema, _held([*held.values()], own) if held else one_or_set(())


def _is_chosen(option: str, value: Any) -> bool:
    """Return whether an option is chosen: it has the value true, or its own name, of which a scale to 10 keeps the
    last digit."""
    text = str(value).lower()
    if _HOLDER.fullmatch(option):
        return text == "true"
    return text == "true" or value == option or (option.isdecimal() and text == option[-1])


def _is_blank(option: str, value: Any) -> bool:
    """Return whether an option is not chosen."""
    return str(value).lower() in ("none", "false", "")


def _is_number(value: Any) -> bool:
    """Return whether a value may be a key, or a rating."""
    text = str(value)
    return not isinstance(value, bool) and text.isdecimal() and len(text) <= len(str(MAX_RATING))


def _held(values: list[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an answer that is a number, or the name of an option."""
    text = as_label(values[0]) if len(values) == 1 and isinstance(values[0], (str, int, float)) else None
    rating = text in (*options, *map(str, range(-MAX_RATING, MAX_RATING + 1))) or [*options] == [MENU]
    return {"kind": LABELS, "label": text} if rating else {"kind": TEXT}


def _with_options(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the table with options whose values are numbers as labels. They are ratings of items, each a question of
    its own, if a record has several of them and an option has several numbers, or two options have the same."""
    if "question" not in frame.columns:
        return frame
    parts = pl.col("question").cast(pl.String).str.split_exact(RATED, 1).struct.rename_fields(["schema", "option"])
    split = frame.with_row_index("order").with_columns(parts.alias("part")).unnest("part")
    rated = split.filter(pl.col("option").is_not_null())
    if not rated.height:
        return frame
    others = split.filter(pl.col("option").is_null())
    found = [_options(each) for each in rated.partition_by("schema", maintain_order=True)]
    whole = pl.concat([_as_text(each) for each in (others, *found)], how="diagonal_relaxed").sort("order")
    own = [pl.col(name).cast(frame.schema[name]) for name in ("kind", "status")]
    return whole.with_columns(pl.col("schema").alias("question"), *own).drop("order", "schema", "option", strict=False)


def _as_text(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.col(name).cast(pl.String) for name in ("label", "label_set") if name in rows.columns)


def _options(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the answers to one question whose options have numbers."""
    rows = rows.with_columns(pl.col("label").cast(pl.String))
    form = [name for name in rows.columns if name not in ("order", "option", "question", "label", "label_set")]
    each = rows.group_by("option").agg(pl.col("label").n_unique().alias("numbers"), pl.col("label").first())
    ticks = rows["label"].is_in(["0", "1"]).all()
    keys = each["numbers"].max() == 1 and each["label"].is_unique().all()
    single = each.height > 1 and rows.height == rows.select(form).n_unique()
    if not (ticks or keys or single):
        return rows.with_columns(pl.col("schema") + "." + pl.col("option"))
    chosen = pl.col("option").filter(pl.col("label") != "0") if ticks else pl.col("option")
    told = rows.group_by(form, maintain_order=True).agg(pl.col("order").min(), chosen)
    given = [one_or_set(options) for options in told["option"]]
    made = [pl.Series(name, [fields.get(name) for fields in given], pl.String) for name in ("label", "label_set")]
    empty = pl.when((pl.col("status") == OK) & pl.all_horizontal(pl.col("label", "label_set").is_null()))
    status = empty.then(pl.lit(EMPTY)).otherwise(pl.col("status").cast(pl.String)).alias("status")
    return told.drop("option").with_columns(*made).with_columns(status)


def _without_pages(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the table with the pages of a survey as rows without an answer: instances whose ids end in .html, and
    whose questions are asked of no other instance."""
    page = frame["task"].cast(pl.String).str.to_lowercase().str.ends_with(PAGE).fill_null(value=False)
    if "question" not in frame.columns or not page.any() or page.all():
        return frame
    question = frame["question"].cast(pl.String)
    page &= ~question.is_in(question.filter(~page).drop_nulls().unique().to_list()).fill_null(value=False)
    kept = [name for name in frame.columns if name not in ("task", "question", "kind", "label", "label_set", "value")]
    about = frame.filter(page).with_columns(pl.lit(EMPTY).cast(frame.schema["status"]).alias("status")).select(kept)
    return pl.concat([frame.filter(~page), about.unique(maintain_order=True)], how="diagonal")
