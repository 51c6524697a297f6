"""Potato: annotated instances of each annotator, the state files of Potato 2, and its CSV, TSV and Parquet exports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

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
_HOLDER = re.compile(r"scale_.*|slider|number|text_?box.*|free_response")  # names that hold a value, and are no label
STEM = "annotated_instances"  # of files that are named alike, in a folder per annotator
ABOUT = ("instance_id", "user_id", "annotator_origin", "annotator_origin_detail", "displayed_text")  # not answers


@register
class Potato(RecordFormat):
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
class PotatoState(RecordFormat):
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
class PotatoTable(RecordFormat):
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
            schema, several, choice = name.partition(":::")  # a column for each label of a question
            if several:
                ticked.setdefault(schema, []).append(
                    choice if str(cell) in ("1", "true", "True", choice) else as_label(cell) or ""
                )
                continue
            schema, dot, choice = name.rpartition(".")  # a column for each option, as `potato export` writes it
            if dot and choice.startswith("_"):  # spans, and rooms where people annotate together
                continue
            if dot and (_HOLDER.fullmatch(choice) or _is_chosen(choice, cell) or _is_blank(choice, cell)):
                options.setdefault(schema, {})[choice] = cell
                continue
            found = True
            yield about._replace(question=name, **_kept(_cell(cell), about))
        for schema, labels in ticked.items():
            found = True
            yield about._replace(question=schema, **_kept(one_or_set(labels), about))
        for schema, cells in options.items():
            found = True
            yield about._replace(question=schema, **_kept(_chosen(cells), about))
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
        yield about._replace(question=schema, **_chosen(options))
    if not found:
        yield about._replace(status=EMPTY)


def _chosen(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an answer: of the options that are chosen; else a rating has its value, a box its text."""
    chosen = [option for option, value in options.items() if _is_chosen(option, value)]
    others = [value for option, value in options.items() if option not in chosen and not _is_blank(option, value)]
    return one_or_set(chosen) if chosen or not others else _held(others, options)


def _is_chosen(option: str, value: Any) -> bool:
    """Return whether an option is chosen: it has the value true, or 1, or its own name."""
    text = str(value).lower()
    return text == "true" or (not _HOLDER.fullmatch(option) and (text == "1" or value == option))


def _is_blank(option: str, value: Any) -> bool:
    """Return whether an option is not chosen."""
    text = str(value).lower()
    return text in ("none", "false", "") or (not _HOLDER.fullmatch(option) and text == "0")


def _held(values: list[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an answer that is a number, or the name of an option."""
    text = as_label(values[0]) if len(values) == 1 and isinstance(values[0], (str, int, float)) else None
    rating = text in (*options, *map(str, range(-100, 101)))
    return {"kind": LABELS, "label": text} if rating else {"kind": TEXT}
