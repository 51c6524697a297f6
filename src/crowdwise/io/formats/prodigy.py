"""Prodigy: JSONL as `prodigy db-out` writes it; binary answers, choices, and boxes on pictures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
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
    as_label,
    check_one_question,
    number,
    one_or_set,
)
from .exchange import each_of

if TYPE_CHECKING:
    from ..estimates import Estimate, Estimates

# Fields of a record that are about its answer, not its task.
OF_THE_ANSWER = ("answer", "accept", "_annotator_id", "_session_id", "_timestamp", "spans")
CHOICE, BINARY, SPANS = "choice", "accept", "spans"  # names of the questions
REJECT = "reject"  # label of a record that was rejected
HASH_BITS = 31  # of a hash that is made of an id which is no integer


@register
class Prodigy(RecordFormat):
    """One record per answer of an annotator."""

    name = "prodigy"
    title = "Prodigy"
    files = "JSONL of db-out: binary, choice, spans on images"
    containers = ("records",)
    takes_worker = True
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

    def read(self, part: Any, rows: Sequence[int], origin: Origin, settings: Settings) -> pl.DataFrame:
        """Every record is a submission, which the time alone does not tell from others."""
        frame = super().read(part, rows, origin, settings)
        time = [pl.col("submission")] if "submission" in frame.columns else []
        return frame.with_columns(
            pl.concat_str(*time, "source_row", separator="-", ignore_nulls=True).alias("submission")
        )

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        answer, spans = record["answer"], record.get("spans")
        boxes: list[Any] = spans or []
        kind = CHOICE if "options" in record or "accept" in record else SPANS if spans is not None else BINARY
        if kind == SPANS and "label" in record and not any("x" in each or "points" in each for each in boxes):
            kind = BINARY  # a classification, with spans that are shown
        bare = kind == BINARY and "label" not in record  # nothing says whether spans were asked for
        drawn = kind == SPANS or bare
        about = Answer(
            task=as_label(record[settings.task or ("_task_hash" if kind == BINARY else "_input_hash")]),
            worker=as_label(record.get(settings.worker or "_annotator_id")) or as_label(record.get("_session_id")),
            submitted_at=as_label(record.get("_timestamp")),
            submission=as_label(record.get("_timestamp")),
            question=kind,
            kind=POINTS if kind == SPANS else LABELS,
            status="skipped" if answer == "ignore" else OK,
            image_width=number(record.get("width")) if drawn else None,
            image_height=number(record.get("height")) if drawn else None,
            left=as_label(record[settings.task or "_input_hash"]) if bare else None,  # the task, if these are spans
        )
        if answer == "ignore":
            yield about
        elif kind == BINARY:
            yield about._replace(label=as_label(answer))
        elif kind == CHOICE:
            chosen = record.get("accept") or []
            labels = [REJECT] if answer == REJECT else chosen if isinstance(chosen, list) else [chosen]
            yield about._replace(**one_or_set(labels))
        elif answer == "accept":
            yield from _spans(boxes, about)
        else:
            yield about._replace(status=EMPTY)

    def finish(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Records that have neither spans nor a label are answers without a span, if other records have spans."""
        if "left" not in frame.columns:
            return frame
        if (frame["question"] == SPANS).any():
            bare, rejected = pl.col("left").is_not_null(), (pl.col("label") == REJECT).fill_null(value=False)
            status = pl.when(rejected).then(pl.lit(EMPTY)).otherwise("status")
            made: dict[str, Any] = {
                "question": pl.lit(SPANS),
                "task": "left",
                "kind": pl.lit(POINTS),
                "label": None,
                "status": status,
            }
            frame = frame.with_columns(
                pl.when(bare).then(value).otherwise(name).cast(frame.schema[name]).alias(name)
                for name, value in made.items()
            )
        return frame.drop("left")

    def records(self, rows: pl.DataFrame) -> Iterator[Mapping[str, Any]]:
        check_one_question(rows, self.title)
        known = rows["label"].drop_nulls().unique().sort().to_list() if "label" in rows.columns else []
        for column in rows.get_column("label_set", default=pl.Series([], dtype=pl.String)).drop_nulls().unique():
            known += json.loads(column)
        own = CHOICE if "question" in rows.columns and (rows["question"] == CHOICE).any() else ""
        options = _options(sorted({*known}), own)
        for row in rows.iter_rows(named=True):
            yield _record(row, options)

    def give_back(self, estimates: Estimates, original: Original | None) -> Iterator[Mapping[str, Any]]:
        if original is None:
            options = _options(estimates.classes, estimates.question)
            for task, estimate in estimates.tasks.items():
                if _is_known(estimate):
                    shown = _shown(task, options)
                    yield shown | _accepted(CHOICE, estimate, options, shown["meta"])
            return
        seen = set[str]()
        field = estimates.field or ("_task_hash" if estimates.question == BINARY else "_input_hash")

        def answered(record: Mapping[str, Any]) -> Mapping[str, Any] | None:
            task = str(as_label(record[field]))
            if task in seen or task not in estimates.tasks or not _is_known(estimates.tasks[task]):
                return None
            seen.add(task)
            kept = {name: value for name, value in record.items() if name not in OF_THE_ANSWER}
            given = record.get("options") or []
            return kept | _accepted(estimates.question, estimates.tasks[task], given, record.get("meta") or {})

        yield from each_of(original, self.title, answered)


def _options(labels: Sequence[str], question: str) -> list[dict[str, str]]:
    """Return labels as the options of a choice; where Prodigy asked, a record that was rejected is no option."""
    return [{"id": label, "text": label} for label in labels if label != REJECT or question != CHOICE]


def _hash(task: str) -> int:
    """Return an id as a hash of Prodigy: an integer as it is, else 31 bits that depend on the id alone.

    >>> _hash("-7"), _hash("007"), _hash("a.png")
    (-7, 613761040, 1895939262)
    """
    if re.fullmatch(r"0|-?[1-9][0-9]{0,17}", task):
        return int(task)
    return int.from_bytes(blake2b(task.encode(), digest_size=8).digest(), "big") >> (64 - HASH_BITS)


def _shown(task: str, options: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a task as the input of a choice."""
    hashes = {"_input_hash": _hash(task), "_task_hash": _hash(task)}
    return {"text": task, "meta": {"task": task}, **hashes, "options": options}


def _record(row: Mapping[str, Any], options: list[dict[str, str]]) -> dict[str, Any]:
    """Return a judgement as a choice."""
    labels = json.loads(row["label_set"]) if row.get("label_set") else [row["label"]] if row.get("label") else []
    found = _shown(row["task"], options) | _chosen(labels, options) | {"_annotator_id": row.get("worker")}
    if row["status"] == "skipped":
        found |= {"answer": "ignore"}
    time = row.get("submitted_at")
    return found if time is None else found | {"_timestamp": time.timestamp()}


def _chosen(labels: Sequence[str], options: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return labels as an answer to a choice."""
    ids = {as_label(each.get("id")): each.get("id") for each in options}
    if list(labels) == [REJECT] and REJECT not in ids:
        return {"accept": [], "answer": REJECT}
    return {"accept": [ids.get(label, label) for label in labels], "answer": "accept"}


def _is_known(estimate: Estimate) -> bool:
    """Return whether there is an estimate; that no label applies is one."""
    return bool(estimate.labels) or bool(estimate.is_set)


def _accepted(
    question: str, estimate: Estimate, options: Sequence[Mapping[str, Any]], meta: Mapping[str, Any]
) -> dict[str, Any]:
    """Return an estimate as an answer to the question."""
    score = {"meta": {**meta, "score": estimate.probability}}
    if question == BINARY:
        return {"answer": estimate.labels[0]} | score
    return _chosen(estimate.labels, options) | score


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
