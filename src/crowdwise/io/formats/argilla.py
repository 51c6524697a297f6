"""Argilla: records as JSON, nested (to_json) or flat (to_list with flatten=True, and datasets on the Hub).

Only the flat form says which responses were drafts or discarded; in the nested form all look like answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
    RecordFormat,
    Settings,
    as_label,
    number,
    one_or_set,
)

RESPONSES, USERS, STATUS, SUGGESTION = ".responses", ".responses.users", ".responses.status", ".suggestion"
STATUSES = {"draft": "draft", "discarded": "skipped"}  # all others are answers


class _Argilla(RecordFormat):
    """What both forms share."""

    containers = ("records", "table")
    fields = {"task": "id", "worker": "user_id", "label": "value of the response"}


@register
class ArgillaNested(_Argilla):
    """One record with its responses, by question."""

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


@register
class ArgillaFlat(_Argilla):
    """One record with a list of responses, of users and of statuses for each question."""

    name = "argilla-flat"
    title = "Argilla (flat)"
    files = "JSON and JSONL of to_list(flatten=True), Parquet of datasets"
    statuses = {"draft": "draft", "skipped": "discarded", "prediction": "suggestion"}

    def recognise(self, head: Head) -> bool:
        return any(name.endswith(USERS) and head.has(name.removesuffix(".users")) for name in head.columns)

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
