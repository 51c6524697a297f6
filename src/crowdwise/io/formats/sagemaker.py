"""SageMaker Ground Truth: output manifests with the answers of all workers, the files of worker responses, and the
requests that consolidate them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from . import register
from .base import EMPTY, LABELS, POINTS, Answer, Head, Origin, RecordFormat, Settings, as_label, number, parsed
from .crowd_elements import RADIO_GROUP, element_answers, with_radio_groups

ALL_WORKERS = "annotationsFromAllWorkers"
GENERIC = ("annotatedResult", "response")  # names of elements that say nothing


class _GroundTruth(RecordFormat):
    """What both files share."""

    kinds = (LABELS, POINTS)
    fields = {"task": "source-ref, else source", "worker": "workerId", "label": "annotationData"}
    unit = "pixels"

    def finish(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the table with the radio buttons of crowd elements as one question."""
        return with_radio_groups(frame)


@register
class GroundTruthManifest(_GroundTruth):
    """One record per object, with an attribute for the labelling job."""

    name = "sagemaker"
    title = "SageMaker Ground Truth (manifest)"
    files = "output manifest, JSONL"
    containers = ("records",)

    def recognise(self, head: Head) -> bool:
        return bool({"source-ref", "source"} & {*head.columns}) and any(
            name.endswith("-metadata") and head.has(name.removesuffix("-metadata")) for name in head.columns
        )

    def refuse(self, head: Head) -> str:
        if any(_workers(value) is not None for row in head.rows for value in row.values()):
            return ""
        return (
            f"{head.name} is an output manifest of Ground Truth with one consolidated label per object and without the "
            "workers, so there is nothing to aggregate. Give the folder annotations/worker-response of the job"
        )

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        usual = "source-ref" if "source-ref" in record else "source"
        task = as_label(record[settings.task or usual])
        found = False
        for job, value in record.items():
            for each in _workers(value) or []:
                content = parsed(each["annotationData"]["content"]) or {}
                about = Answer(task=task, worker=as_label(each["workerId"]))
                for answer in _contents(content, about, job):
                    found = True
                    yield answer
        if not found:
            yield Answer(task=task, status=EMPTY)


def _workers(value: Any) -> list[Any] | None:
    """Return the answers of all workers in an attribute; None in others."""
    if isinstance(value, Mapping) and isinstance(value.get("annotatedResult"), Mapping):
        value = value["annotatedResult"]
    found = value.get(ALL_WORKERS) if isinstance(value, Mapping) else None
    return found if isinstance(found, list) else None


@register
class GroundTruthConsolidation(_GroundTruth):
    """One record per object, with the answers of its workers, as a function that consolidates them gets it; or with
    its answer, which may have them."""

    name = "sagemaker-consolidation"
    title = "SageMaker Ground Truth (consolidation)"
    files = "consolidation requests, JSON"
    containers = ("records",)
    fields = _GroundTruth.fields | {"task": "datasetObjectId"}

    def recognise(self, head: Head) -> bool:
        return head.has("datasetObjectId") and bool({"annotations", "consolidatedAnnotation"} & {*head.columns})

    def refuse(self, head: Head) -> str:
        if head.has("annotations") or any(_consolidated(row) for row in head.rows):
            return ""
        return (
            f"{head.name} is a response of the consolidation of Ground Truth with one label per object and without the "
            "workers, so there is nothing to aggregate. Give the folder annotations/worker-response of the job"
        )

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        task = as_label(record[settings.task or "datasetObjectId"])
        found = False
        for each, job in _consolidated(record):
            found = True
            about = Answer(task=task, worker=as_label(each["workerId"]))
            yield from _contents(parsed(each["annotationData"]["content"]) or {}, about, job)
        if not found:
            yield Answer(task=task, status=EMPTY)


def _consolidated(record: Mapping[str, Any]) -> list[tuple[Any, str | None]]:
    """Return the answers of all workers in a request, or in a response with the attribute of the job."""
    if isinstance(record.get("annotations"), list):
        return [(each, None) for each in record["annotations"]]
    annotation = record.get("consolidatedAnnotation")
    content = annotation.get("content") if isinstance(annotation, Mapping) else None
    found = content.items() if isinstance(content, Mapping) else ()
    return [(each, job) for job, value in found for each in _workers(value) or []]


@register
class GroundTruthResponses(_GroundTruth):
    """One file per object, with the answers of its workers. The task is the folder and the name of the file."""

    name = "sagemaker-responses"
    title = "SageMaker Ground Truth (worker responses)"
    files = "worker-response JSON"
    containers = ("object",)
    fields = _GroundTruth.fields | {"task": "number of the folder", "timestamp": "submissionTime"}

    def recognise(self, head: Head) -> bool:
        rows = head.rows[0].get("answers") if head.rows else None
        return isinstance(rows, list) and bool(rows) and isinstance(rows[0], Mapping) and "answerContent" in rows[0]

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        for each in record["answers"]:
            about = Answer(
                task=as_label(record[settings.task]) if settings.task else _object(origin),
                worker=as_label(each["workerId"]),
                started_at=each.get("acceptanceTime"),
                submitted_at=each.get("submissionTime"),
                seconds=number(each.get("timeSpentInSeconds")),
            )
            yield from _contents(parsed(each["answerContent"]) or {}, about, None)


def _object(origin: Origin) -> str:
    """Return the number of the object, which is the name of the folder of its responses; else folder and file."""
    return origin.folder if origin.folder.isdigit() else f"{origin.folder}/{origin.name}"


def _contents(content: Mapping[str, Any], about: Answer, job: str | None) -> Iterator[Answer]:
    """Yield the answers of a worker; an element with a generic name, or none, is called after the job, if that is
    known."""
    found = False
    for question, fields in element_answers(content, job or RADIO_GROUP):
        found = True
        named = job is not None and question in GENERIC
        yield about._replace(question=job if named else question, **fields)
    if not found:
        yield about._replace(status=EMPTY)
