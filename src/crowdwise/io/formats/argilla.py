"""Argilla: records as JSON, nested (to_json) or flat (to_list with flatten=True, and datasets on the Hub).

Only the flat form says which responses were drafts or discarded; in the nested form all look like answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from . import register
from .base import (
    EMPTY,
    LABELS,
    MODEL,
    MODEL_PREFIX,
    OK,
    TEXT,
    Answer,
    Head,
    Origin,
    Original,
    RecordFormat,
    Settings,
    as_label,
    number,
    one_or_set,
)

if TYPE_CHECKING:
    from ..estimates import Estimate, Estimates

RESPONSES, USERS, STATUS, SUGGESTION = ".responses", ".responses.users", ".responses.status", ".suggestion"
STATUSES = {"draft": "draft", "discarded": "skipped"}  # all others are answers


class _Argilla(RecordFormat):
    """What both forms share."""

    containers = ("records", "table")
    fields = {"task": "id", "worker": "user_id", "label": "value of the response"}


@register
class ArgillaNested(_Argilla):
    """One record with its responses, by question."""

    returned = ".json"

    name = "argilla"
    title = "Argilla (nested)"
    files = "JSON and JSONL of to_json"
    statuses = {"prediction": "suggestion"}

    def recognise(self, head: Head) -> bool:
        return head.has("id", "fields", "responses")

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        about = Answer(task=as_label(record[settings.task] if settings.task else record.get("id")))
        found = False
        for question, responses in (record.get("responses") or {}).items():
            for response in responses or []:
                found = True
                fields = _fields(response.get("value"))
                yield about._replace(question=question, worker=as_label(response.get("user_id")), **fields)
        for question, guess in (record.get("suggestions") or {}).items():
            if guess:
                found = True
                yield _suggested(about, question, guess.get("value"), guess.get("agent"))
        if not found:
            yield about._replace(status=EMPTY)

    def give_back(self, estimates: Estimates, original: Original | None) -> Iterator[Mapping[str, Any]]:
        for record in _records(estimates, original):
            estimate = estimates.tasks[str(as_label(record[estimates.field or "id"]))]
            suggested = {"value": _value(estimate), "score": estimate.probability, "agent": estimates.by}
            known = {estimates.question: suggested} if estimate.labels else {}
            fields = record.get("fields") or {"task": record["id"]}
            yield {
                "id": record["id"],
                "fields": fields,
                "metadata": record.get("metadata") or {},
                "suggestions": known,
                "responses": {},
                "vectors": {},
            }


@register
class ArgillaFlat(_Argilla):
    """One record with a list of responses, of users and of statuses for each question."""

    name = "argilla-flat"
    title = "Argilla (flat)"
    files = "JSON and JSONL of to_list(flatten=True), Parquet of datasets"
    statuses = {"draft": "draft", "skipped": "discarded", "prediction": "suggestion"}
    converted = ".json"
    returned = ".json"

    def recognise(self, head: Head) -> bool:
        answered = any(name.endswith(USERS) and head.has(name.removesuffix(".users")) for name in head.columns)
        return answered or (head.has("id") and any(name.endswith(f"{SUGGESTION}.agent") for name in head.columns))

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        about = Answer(task=as_label(record[settings.task] if settings.task else record.get("id")))
        found = False
        for name in record:
            if name.endswith(USERS) and record[name]:
                question = name.removesuffix(USERS)
                users: Sequence[Any] = record[name]
                values = record[question + RESPONSES] or [None] * len(users)
                statuses = record.get(question + STATUS) or [None] * len(users)
                for user, value, status in zip(users, values, statuses, strict=True):
                    found = True
                    fields = _fields(value)
                    kept = STATUSES.get(str(status), fields.pop("status", OK))
                    yield about._replace(question=question, worker=as_label(user), **(fields | {"status": kept}))
            elif name.endswith(SUGGESTION) and record[name] is not None:
                found = True
                question = name.removesuffix(SUGGESTION)
                yield _suggested(about, question, record[name], record.get(f"{name}.agent"))
        if not found:
            yield about._replace(status=EMPTY)

    def records(self, rows: pl.DataFrame) -> Iterator[Mapping[str, Any]]:
        from ..conversion import by_task

        words = {"draft": "draft", "skipped": "discarded"}
        for task, judgements in by_task(rows):
            record: dict[str, Any] = {"id": task, "status": "completed", "task": task}
            for row in judgements:
                question, worker = row.get("question"), row.get("worker")
                if question is None or worker is None:
                    continue
                value = json.loads(row["label_set"]) if "label_set" in row else row.get("label")
                if row["status"] == "prediction":
                    record |= {question + SUGGESTION: value, f"{question}{SUGGESTION}.agent": _agent(worker)}
                    continue
                for ending, each in (
                    (RESPONSES, value), (USERS, worker), (STATUS, words.get(row["status"], "submitted")),
                ):  # fmt: skip
                    record.setdefault(question + ending, []).append(each)
            yield record

    def give_back(self, estimates: Estimates, original: Original | None) -> Iterator[Mapping[str, Any]]:
        name = estimates.question + SUGGESTION
        for record in _records(estimates, original):
            estimate = estimates.tasks[str(as_label(record[estimates.field or "id"]))]
            kept = {key: value for key, value in record.items() if not key.endswith((RESPONSES, USERS, STATUS))}
            if not estimate.labels:
                yield kept
                continue
            score = {f"{name}.score": estimate.probability, f"{name}.agent": estimates.by}
            yield kept | {name: _value(estimate)} | score


def _agent(worker: str) -> str:
    return worker.removeprefix(MODEL_PREFIX)


def _records(estimates: Estimates, original: Original | None) -> Iterator[Mapping[str, Any]]:
    """Yield the records that have an estimate; of the tasks alone, if there is no export."""
    if original is None:
        yield from ({"id": task, "task": task} for task in estimates.tasks)
        return
    for record in original():
        if as_label(record.get(estimates.field or "id")) in estimates.tasks:
            yield record


def _value(estimate: Estimate) -> Any:
    """Return the label that is suggested, or the list of labels."""
    return estimate.labels[0] if len(estimate.labels) == 1 else list(estimate.labels) or None


def _suggested(about: Answer, question: str, value: Any, agent: Any) -> Answer:
    worker = MODEL_PREFIX + (as_label(agent) or "model")
    fields = _fields(value) | {"status": "prediction"}
    return about._replace(question=question, worker=worker, worker_kind=MODEL, **fields)


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of an answer for the value of a response."""
    if value is None:
        return {"kind": LABELS, "status": EMPTY}
    if isinstance(value, list):
        return {"kind": TEXT} if any(isinstance(each, (list, Mapping)) for each in value) else one_or_set(value)
    if isinstance(value, Mapping):
        return {"kind": TEXT}
    plain = isinstance(value, (str, bool))
    return {"kind": LABELS, "label": as_label(value)} | ({} if plain else {"value": number(value)})
