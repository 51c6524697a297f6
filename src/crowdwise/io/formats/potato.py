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
ABOUT = ("instance_id", "user_id", "annotator_origin", "annotator_origin_detail", "displayed_text")  # not answers


@register
class Potato(RecordFormat):
    """One record per instance; the worker is the folder of the file."""

    name = "potato"
    title = "Potato"
    files = "annotated_instances.jsonl in one folder per annotator"
    containers = ("records",)
    fields = {"task": "id", "worker": "name of the folder", "label": "label_annotations"}
    named_files = r"annotated_instances\.jsonl?$"

    def recognise(self, head: Head) -> bool:
        return head.has("id", "label_annotations")

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        spent = _SPENT.search(str((record.get("behavioral_data") or {}).get("time_string") or ""))
        days, hours, minutes, seconds = map(int, spent.groups()) if spent else (0, 0, 0, 0)
        about = Answer(
            task=as_label(record[settings.task or "id"]),
            worker=as_label(record.get("user_id")) or origin.folder or origin.stem,
            seconds=float(seconds + 60 * (minutes + 60 * (hours + 24 * days))) if spent else None,
        )
        yield from _schemas(record["label_annotations"] or {}, about)


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
            yield from _schemas(schemas or {}, Answer(task=str(task), worker=as_label(record["user_id"])))


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
            found = True
            yield about._replace(question=name, **_kept(_cell(cell), about))
        for schema, labels in ticked.items():
            found = True
            yield about._replace(question=schema, **_kept(one_or_set(labels), about))
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


def _schemas(schemas: Mapping[str, Any], about: Answer) -> Iterator[Answer]:
    """Yield the answer to each question: its options are the keys of a mapping."""
    found = False
    for schema, options in schemas.items():
        options = options.get("labels", options) if isinstance(options, Mapping) else {as_label(options): True}
        chosen = [option for option, value in options.items() if _is_chosen(value)]
        texts = [value for value in options.values() if isinstance(value, str) and value.lower() != "true"]
        found = found or bool(options)
        if chosen or not texts:
            yield about._replace(question=schema, **one_or_set(chosen))
        else:  # the options of a rating have their value, a text box has its text
            rating = len(texts) == 1 and texts[0] in (*options, *map(str, range(-100, 101)))
            fields: dict[str, Any] = {"kind": LABELS, "label": texts[0]} if rating else {"kind": TEXT}
            yield about._replace(question=schema, **fields)
    if not found:
        yield about._replace(status=EMPTY)


def _is_chosen(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")
