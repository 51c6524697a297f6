"""Argilla: records as JSON, nested (to_json) or flat (to_list with flatten=True, and datasets on the Hub), and records
of Argilla 1.x.

The nested form does not say which responses were drafts or discarded: all look like answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from ...errors import FileError, option
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
from .exchange import each_of, numeric

if TYPE_CHECKING:
    from ..estimates import Estimate, Estimates

RESPONSES, USERS, STATUS, SUGGESTION = ".responses", ".responses.users", ".responses.status", ".suggestion"
HUB_SUGGESTION = "-suggestion"  # in datasets of Argilla 1.x
TITLE = "Argilla"
STATUSES = {"draft": "draft", "discarded": "skipped"}  # all others are answers


class _Argilla(RecordFormat):
    """What the forms share."""

    containers: ClassVar[tuple[str, ...]] = ("records", "table", "object")
    fields = {"task": "id", "worker": "user_id", "label": "value of the response"}


@register
class ArgillaNested(_Argilla):
    """One record with its responses, by question."""

    returned = ".json"

    name = "argilla"
    title = "Argilla (nested)"
    files = "JSON and JSONL of to_json, JSON of to_dict"
    statuses = {"prediction": "suggestion"}

    def recognise(self, head: Head) -> bool:
        return {"id", "fields", "responses"} <= _names(head) and not _of_v1_api(head)

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        for each in _records_in(record):
            yield from self._answers(each, settings)

    def _answers(self, record: Mapping[str, Any], settings: Settings) -> Iterator[Answer]:
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
        return _given_back(estimates, original, nested=True)


@register
class ArgillaFlat(_Argilla):
    """One record with a list of responses, of users and of statuses for each question."""

    name = "argilla-flat"
    title = "Argilla (flat)"
    files = "JSON and JSONL of to_list(flatten=True), JSON of to_dict(flatten=True), Parquet of datasets"
    statuses = {"draft": "draft", "skipped": "discarded", "prediction": "suggestion"}
    converted = ".json"
    returned = ".json"
    needs_question = True

    def recognise(self, head: Head) -> bool:
        names = _names(head)
        answered = any(name.endswith(USERS) and name.removesuffix(".users") in names for name in names)
        return answered or ("id" in names and any(name.endswith(f"{SUGGESTION}.agent") for name in names))

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        for each in _records_in(record):
            yield from self._answers(each, settings)

    def _answers(self, record: Mapping[str, Any], settings: Settings) -> Iterator[Answer]:
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

        asked = rows["question"].drop_nulls().unique().sort().to_list() if "question" in rows.columns else []
        several = rows.filter(pl.col("label_set").is_not_null()) if "label_set" in rows.columns else rows.clear()
        listed, numbers = {*several.get_column("question", default=pl.Series())}, numeric(rows)
        words = {"draft": "draft", "skipped": "discarded"}
        for task, judgements in by_task(rows):
            record: dict[str, Any] = {"id": task, "status": "completed", "task": task}
            for row in judgements:
                worker, status = row.get("worker"), words.get(row["status"], "submitted")
                if worker is None or (row["status"] == EMPTY and "question" not in row):
                    continue
                for question in [row["question"]] if "question" in row else asked:  # a submission without answers
                    value = _written(row, question in listed, numbers.get(question))
                    if row["status"] == "prediction":
                        record |= {question + SUGGESTION: value, f"{question}{SUGGESTION}.agent": _agent(worker)}
                        continue
                    for ending, each in ((RESPONSES, value), (USERS, worker), (STATUS, status)):
                        record.setdefault(question + ending, []).append(each)
            yield record

    def give_back(self, estimates: Estimates, original: Original | None) -> Iterator[Mapping[str, Any]]:
        return _given_back(estimates, original, nested=False)


@register
class ArgillaV1(_Argilla):
    """Records of Argilla 1.x: those of its API, with a list of responses, and the rows of its datasets on the Hub, with
    a list of responses for each question."""

    name = "argilla-v1"
    title = "Argilla 1.x"
    files = "JSON and JSONL of records, Parquet of datasets"
    containers = ("records", "table")
    statuses = {"draft": "draft", "skipped": "discarded", "prediction": "suggestion"}
    fields = {"task": "external_id, else id", "worker": "user_id", "label": "value of the response"}

    def recognise(self, head: Head) -> bool:
        suggested = any(f"{name}{HUB_SUGGESTION}" in head.columns for name in head.columns)
        return _of_v1_api(head) or (head.has("external_id", "metadata") and suggested)

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        task = as_label(record[settings.task]) if settings.task else as_label(record.get("external_id"))
        task = task or as_label(record.get("id"))
        if task is None:
            raise FileError(
                f"{origin.name} has records without external_id and id, so nothing names the tasks. Name a field that "
                f"is different for every task with {option('task', 'FIELD')}"
            )
        about = Answer(task=task)
        found = False
        for answer in self._of_api(record, about) if "responses" in record else self._of_hub(record, about):
            found = True
            yield answer
        if not found:
            yield about._replace(status=EMPTY)

    def _of_api(self, record: Mapping[str, Any], about: Answer) -> Iterator[Answer]:
        for response in record["responses"] or []:
            one = about._replace(worker=as_label(response.get("user_id")))
            status = STATUSES.get(str(response.get("status")))
            for question, value in (response.get("values") or {}).items():
                yield _answered(one, question, value.get("value"), status)
            if not response.get("values"):
                yield one._replace(status=status or EMPTY)
        for guess in record.get("suggestions") or []:
            if guess.get("question_name"):  # without it, the question is an id that nothing else in the file has
                yield _suggested(about, guess["question_name"], guess.get("value"), guess.get("agent"))

    def _of_hub(self, record: Mapping[str, Any], about: Answer) -> Iterator[Answer]:
        for name, cell in record.items():
            question = name.removesuffix(HUB_SUGGESTION)
            if question != name and cell is not None:
                agent = (record.get(f"{name}-metadata") or {}).get("agent")
                yield _suggested(about, question, cell, agent)
            elif _is_responses(cell):
                for response in cell:
                    one = about._replace(worker=as_label(response["user_id"]))
                    status = STATUSES.get(str(response.get("status")))
                    yield _answered(one, name, response.get("value"), status)


def _answered(about: Answer, question: str, value: Any, status: str | None) -> Answer:
    """Return a response with its status, if that says that it is no vote."""
    fields = _fields(value)
    return about._replace(question=question, **(fields | ({"status": status} if status else {})))


def _names(head: Head) -> set[str]:
    """Return the fields of records; an object of to_dict may hold records by their ids."""
    if head.container == "object" and head.rows:
        first = next(iter(head.rows[0].values()), None)
        if isinstance(first, Mapping):
            return {*first}
    return {*head.columns}


def _of_v1_api(head: Head) -> bool:
    """Return whether responses are a list for each record, as in Argilla 1.x, and not by question."""
    given = (row.get("responses") for row in head.rows)
    return head.container != "object" and head.has("fields", "responses") and any(isinstance(r, list) for r in given)


def _records_in(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a record, or those in an object of to_dict: lists by the names of fields, or records by their ids."""
    if isinstance(record.get("id"), list):
        for values in zip(*record.values(), strict=True):
            yield dict(zip(record, values, strict=True))
    elif "id" not in record and record and all(isinstance(each, Mapping) for each in record.values()):
        yield from record.values()
    else:
        yield record


def _agent(worker: str) -> str:
    return worker.removeprefix(MODEL_PREFIX)


def _written(row: Mapping[str, Any], listed: bool, whole: bool | None) -> Any:
    """Return the value of a response: a list, a number (`whole`: an integer), a label, or None."""
    if listed:
        labels = json.loads(row["label_set"]) if "label_set" in row else [row["label"]] if "label" in row else None
        return labels
    if whole is None or "value" not in row:
        return row.get("label")
    return int(row["value"]) if whole else row["value"]


def _given_back(estimates: Estimates, original: Original | None, nested: bool) -> Iterator[Mapping[str, Any]]:
    """Yield the records that have an estimate, in the form that the original has, with the estimate as a suggestion; of
    the tasks alone, if there is no original."""
    if original is None:
        for task, estimate in estimates.tasks.items():
            record = {"id": task, "fields": {"task": task}, "responses": {}} if nested else {"id": task, "task": task}
            yield _with_suggestion(record, estimates, estimate, {}, listed=False)
        return
    values: dict[str, Any] = {}
    listed = False
    for given in each_of(original, TITLE, lambda record: _values(record, estimates.question)):
        for value in given:
            listed = listed or isinstance(value, list)
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, (str, bool, int, float, Decimal)):
                    values.setdefault(str(as_label(each)), each)

    def suggested(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        found = list[Mapping[str, Any]]()
        for each in _records_in(record):
            estimate = estimates.tasks.get(str(as_label(each[estimates.field] if estimates.field else _id(each))))
            if estimate is not None:
                found.append(_with_suggestion(each, estimates, estimate, values, listed))
        return found

    for several in each_of(original, TITLE, suggested):
        yield from several


def _id(record: Mapping[str, Any]) -> Any:
    """Return the id of a record; that of Argilla 1.x stands in another field."""
    v1 = isinstance(record.get("responses"), list) or "id" not in record
    return record.get("external_id") or record.get("id") if v1 else record["id"]


def _values(record: Mapping[str, Any], question: str) -> list[Any]:
    """Return the values of the responses to a question in a record."""
    found: list[Any] = []
    for each in _records_in(record):
        given = each.get("responses") or {}
        if isinstance(given, list):  # Argilla 1.x
            found += [one["values"][question]["value"] for one in given if question in (one.get("values") or {})]
        elif "fields" in each:
            found += [response["value"] for response in given.get(question) or []]
        elif _is_responses(each.get(question)):
            found += [response["value"] for response in each[question]]
        else:
            found += each.get(question + RESPONSES) or []
    return found


def _is_responses(cell: Any) -> bool:
    """Return whether a cell holds the responses to a question, as on the Hub by Argilla 1.x."""
    return isinstance(cell, list) and any(isinstance(each, Mapping) and "user_id" in each for each in cell)


def _with_suggestion(
    record: Mapping[str, Any], estimates: Estimates, estimate: Estimate, values: Mapping[str, Any], listed: bool
) -> dict[str, Any]:
    """Return a record without responses, with an estimate as the suggestion, whose value has the type of responses."""
    question, labels = estimates.question, [values.get(label, label) for label in estimate.labels]
    value = labels if listed or len(labels) > 1 else labels[0] if labels else None
    if "fields" in record:
        suggestion = {"value": value, "score": estimate.probability, "agent": estimates.by}
        return {
            "id": _id(record),
            "fields": record["fields"],
            "metadata": record.get("metadata") or {},
            "suggestions": {question: suggestion} if labels else {},
            "responses": {},
            "vectors": record.get("vectors") or {},
        }
    old = (RESPONSES, USERS, STATUS, SUGGESTION, f"{SUGGESTION}.score", f"{SUGGESTION}.agent")
    kept = {key: each for key, each in record.items() if not (key.endswith(old) or _is_responses(each))}
    if "id" not in record:
        kept = {"id": _id(record)} | {key: each for key, each in kept.items() if HUB_SUGGESTION not in key}
    if not labels:
        return kept
    name = question + SUGGESTION
    return kept | {name: value, f"{name}.score": estimate.probability, f"{name}.agent": estimates.by}


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
