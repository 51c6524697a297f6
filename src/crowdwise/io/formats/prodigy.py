"""Prodigy: JSONL as `prodigy db-out` writes it; binary answers, choices, and boxes on pictures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from . import register
from .base import (
    EMPTY,
    LABELS,
    OK,
    POINTS,
    TEXT,
    Answer,
    Head,
    Origin,
    Original,
    RecordFormat,
    Settings,
    as_id,
    as_label,
    check_one_question,
    number,
    one_or_set,
)

if TYPE_CHECKING:
    from ..estimates import Estimate, Estimates

# Fields of a record that are about its answer, not its task.
OF_THE_ANSWER = ("answer", "accept", "_annotator_id", "_session_id", "_timestamp", "spans", "meta")
CHOICE, BINARY, SPANS = "choice", "accept", "spans"  # names of the questions


@register
class Prodigy(RecordFormat):
    """One record per answer of an annotator."""

    name = "prodigy"
    title = "Prodigy"
    files = "JSONL of db-out: binary, choice, spans on images"
    containers = ("records",)
    kinds = (LABELS, POINTS)
    statuses = {"skipped": "ignored"}
    fields = {
        "task": "_task_hash (binary), _input_hash (choice)", "worker": "_annotator_id, else _session_id",
        "label": "answer (binary), accept (choice)", "timestamp": "_timestamp",
    }  # fmt: skip
    unit = "pixels"
    converted = ".jsonl"
    returned = ".jsonl"

    def recognise(self, head: Head) -> bool:
        return head.container == "records" and head.has("answer", "_input_hash", "_task_hash")

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        answer, spans = record["answer"], record.get("spans")
        boxes: list[Any] = spans or []
        kind = CHOICE if "options" in record or "accept" in record else SPANS if spans is not None else BINARY
        if kind == SPANS and "label" in record and not any("x" in each or "points" in each for each in boxes):
            kind = BINARY  # a classification, with spans that are shown
        about = Answer(
            task=as_label(record[settings.task or ("_task_hash" if kind == BINARY else "_input_hash")]),
            worker=as_label(record.get(settings.worker or "_annotator_id")) or as_label(record.get("_session_id")),
            submitted_at=as_label(record.get("_timestamp")),
            question=kind,
            kind=POINTS if kind == SPANS else LABELS,
            status="skipped" if answer == "ignore" else OK,
            image_width=number(record.get("width")) if kind == SPANS else None,
            image_height=number(record.get("height")) if kind == SPANS else None,
        )
        if answer == "ignore":
            yield about
        elif kind == BINARY:
            yield about._replace(label=as_label(answer))
        elif kind == CHOICE:
            chosen = record.get("accept") or []
            labels = ["reject"] if answer == "reject" else chosen if isinstance(chosen, list) else [chosen]
            yield about._replace(**one_or_set(labels))
        elif answer == "accept":
            yield from _spans(boxes, about)
        else:
            yield about._replace(status=EMPTY)

    def records(self, rows: pl.DataFrame) -> Iterator[Mapping[str, Any]]:
        check_one_question(rows, self.title)
        known = rows["label"].drop_nulls().unique().sort().to_list() if "label" in rows.columns else []
        options = [{"id": label, "text": label} for label in known]
        for row in rows.iter_rows(named=True):
            yield _record(row, options)

    def give_back(self, estimates: Estimates, original: Original | None) -> Iterator[Mapping[str, Any]]:
        options = [{"id": label, "text": label} for label in estimates.classes]
        if original is None:
            for task, estimate in estimates.tasks.items():
                shown = {"text": task, "_input_hash": as_id(task), "_task_hash": as_id(task), "options": options}
                if estimate.labels:
                    yield shown | _accepted(CHOICE, estimate, options)
            return
        seen = set[str]()
        field = estimates.field or ("_task_hash" if estimates.question == BINARY else "_input_hash")
        for record in original():
            task = str(as_label(record[field]))
            if task in seen or task not in estimates.tasks or not estimates.tasks[task].labels:
                continue
            seen.add(task)
            kept = {name: value for name, value in record.items() if name not in OF_THE_ANSWER}
            yield kept | _accepted(estimates.question, estimates.tasks[task], record.get("options") or [])


def _record(row: Mapping[str, Any], options: list[dict[str, str]]) -> dict[str, Any]:
    """Return a judgement as a choice."""
    labels = json.loads(row["label_set"]) if row.get("label_set") else [row["label"]] if row.get("label") else []
    found = {
        "text": row["task"], "_input_hash": as_id(row["task"]), "_task_hash": as_id(row["task"]), "options": options,
        "accept": labels, "answer": "ignore" if row["status"] == "skipped" else "accept",
        "_annotator_id": row.get("worker"),
    }  # fmt: skip
    time = row.get("submitted_at")
    return found if time is None else found | {"_timestamp": time.timestamp()}


def _accepted(question: str, estimate: Estimate, options: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return an estimate as an answer to the question."""
    score = {"meta": {"score": estimate.probability}}
    if question == BINARY:
        return {"answer": estimate.labels[0]} | score
    ids = {as_label(each.get("id")): each.get("id") for each in options}
    return {"accept": [ids.get(label, label) for label in estimate.labels], "answer": "accept"} | score


def _spans(spans: list[Mapping[str, Any]], about: Answer) -> Iterator[Answer]:
    """Yield the centres of boxes; without any span, that the worker saw nothing."""
    if not spans:
        yield about
    for span in spans:
        if "x" not in span or "width" not in span:
            yield about._replace(kind=TEXT)
            continue
        width, height = float(span["width"]), float(span["height"])
        place: dict[str, Any] = {"x": float(span["x"]) + width / 2, "y": float(span["y"]) + height / 2}
        yield about._replace(label=as_label(span.get("label")), width=width, height=height, **place)
