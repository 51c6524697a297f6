"""doccano: JSONL or CSV of one annotator, and the zip with a file for each. The worker is the name of the file.

In files of doccano 1.0, every annotation names its user instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...answers.columns import LABEL_ROLES
from ...errors import FileError, option
from . import register
from .base import EMPTY, LABELS, POINTS, TEXT, Answer, Head, Origin, RecordFormat, Settings, as_label, one_or_set

ALL = "all"  # stem of the file of a project on which everybody works together: it has no workers
SHOWN = ("text", "data", "filename")  # fields of what is labelled
LABELLED = ("label", "labels")  # fields of its labels
OTHERS = ("meta", "annotation_approver", "comments", "Comments")
PLAIN = ("id", *SHOWN, *LABELLED, *OTHERS)  # all fields, if the project has no metadata


@register
class Doccano(RecordFormat):
    """One record per example."""

    name = "doccano"
    title = "doccano"
    files = "zip with one file per annotator, JSONL, CSV"
    containers = ("records", "table")
    kinds = (LABELS, POINTS)
    fields = {"task": "id", "worker": "name of the file, or user of the annotation", "label": "label"}
    unit = "pixels"
    worker_is_file = True

    def recognise(self, head: Head) -> bool:
        if not (head.has("id") and {*SHOWN} & {*head.columns}):
            return False
        if head.has("Comments") and ({"text", "filename"} & {*head.columns}):
            return head.container == "records" or head.columns[:1] == ("id",)
        if head.container != "records":
            return False
        plain = {*head.columns} <= {*PLAIN} and all(_are_labels(row) for row in head.rows)
        return plain or head.has("annotation_approver") or any(_has_users(row) for row in head.rows)

    def insisted(self, head: Head) -> bool:
        labelled = {*LABELLED, "cats", "bbox"} & {*head.columns}
        workers = LABEL_ROLES.guess("worker", head.columns)  # doccano writes none
        return self.recognise(head) or (head.has("id") and bool(labelled) and workers is None)

    def refuse(self, head: Head) -> str:
        columns = {*head.columns}
        drawn = {"segmentation": "polygons", "relations": "spans and relations", "entities": "spans"}
        found = next((kind for field, kind in drawn.items() if field in columns), None)
        if found is None or columns & {*LABELLED, "cats", "bbox"}:
            return ""
        return (
            f"{head.name} (doccano) holds {found}, which cannot be aggregated; labels of whole examples and boxes can"
        )

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        about = Answer(task=as_label(record[settings.task or "id"]), question="label", kind=LABELS)
        if isinstance(record.get("annotations"), list):
            yield from _of_users(record["annotations"], about)
            return
        if origin.stem == ALL and not settings.anonymous:
            raise FileError(
                f"{origin.name} is of a doccano project whose annotators share their annotations, so it does not say "
                "who gave which label. Use a project that does not share annotations, which exports a file for each "
                f"annotator, or count every answer as that of another worker with {option('anonymous', 'each')}"
            )
        about = about._replace(worker=None if origin.stem == ALL else origin.worker(""))
        if "bbox" in record:
            yield from _boxes(record["bbox"] or [], about._replace(question="bbox", kind=POINTS))
            return
        question = "cats" if "cats" in record else "label"  # "cats" beside "entities" in projects of intents
        label = record.get(question, record.get("labels"))
        if isinstance(label, str):  # CSV
            label = label.split("#")
        yield about._replace(question=question, **_labels(label or []))


def _are_labels(row: Mapping[str, Any]) -> bool:
    """Return whether a record has a list of labels, or of spans with their labels, as only doccano writes it."""
    label = row.get("label", row.get("labels"))
    return isinstance(label, list) and all(
        isinstance(each, str) or (isinstance(each, list) and len(each) == 3 and isinstance(each[2], str))
        for each in label
    )


def _has_users(row: Mapping[str, Any]) -> bool:
    """Return whether a record has annotations with their users, as in doccano 1.0."""
    given = row.get("annotations")
    return isinstance(given, list) and any(isinstance(each, Mapping) and {"label", "user"} <= {*each} for each in given)


def _of_users(annotations: list[Mapping[str, Any]], about: Answer) -> Iterator[Answer]:
    """Yield the labels of each user; no row if there are none."""
    users: dict[str | None, list[Mapping[str, Any]]] = {}
    for each in annotations:
        users.setdefault(as_label(each.get("user")), []).append(each)
    for user, given in users.items():
        spans = any("start_offset" in each or "label" not in each for each in given)
        fields = {"kind": TEXT} if spans else one_or_set(each["label"] for each in given)
        yield about._replace(worker=user, **fields)
    if not users:
        yield about._replace(status=EMPTY)


def _boxes(boxes: list[Mapping[str, Any]], about: Answer) -> Iterator[Answer]:
    """Yield the centres of boxes; without any box, an empty row."""
    if not boxes:
        yield about._replace(status=EMPTY)
    for box in boxes:
        width, height = float(box["width"]), float(box["height"])
        place: dict[str, Any] = {"x": float(box["x"]) + width / 2, "y": float(box["y"]) + height / 2}
        yield about._replace(label=as_label(box.get("label")), width=width, height=height, **place)


def _labels(labels: list[Any]) -> dict[str, Any]:
    """Return the fields of an answer with these labels; spans are text. No label means that there is no answer yet."""
    if not labels:
        return {"status": EMPTY}
    if any(isinstance(each, (list, Mapping)) for each in labels):
        return {"kind": TEXT}
    return one_or_set(labels)
