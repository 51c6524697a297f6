"""doccano: JSONL or CSV of one annotator, and the zip with a file for each. The worker is the name of the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import register
from .base import EMPTY, LABELS, POINTS, TEXT, Answer, Head, Origin, RecordFormat, Settings, as_label, one_or_set

ALL = "all"  # stem of the file of a project on which everybody works together: it has no workers


@register
class Doccano(RecordFormat):
    """One record per example."""

    name = "doccano"
    title = "doccano"
    files = "zip with one file per annotator, JSONL, CSV"
    containers = ("records", "table")
    kinds = (LABELS, POINTS)
    fields = {"task": "id", "worker": "name of the file", "label": "label"}
    unit = "pixels"
    worker_is_file = True

    def recognise(self, head: Head) -> bool:
        if head.has("id", "Comments") and ({"text", "filename"} & {*head.columns}):
            return True
        return head.how == "csv" and head.columns[:1] == ("id",) and head.has("text", "label", "Comments")

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        about = Answer(
            task=as_label(record[settings.task or "id"]), worker=None if origin.stem == ALL else origin.worker(""),
            question="label", kind=LABELS,
        )  # fmt: skip
        if "bbox" in record:
            boxes = record["bbox"] or []
            if not boxes:
                yield about._replace(question="bbox", kind=POINTS, status=EMPTY)
            for box in boxes:
                width, height = float(box["width"]), float(box["height"])
                place: dict[str, Any] = {"x": float(box["x"]) + width / 2, "y": float(box["y"]) + height / 2}
                yield about._replace(
                    question="bbox", kind=POINTS, label=as_label(box.get("label")), width=width, height=height, **place
                )
            return
        label = record.get("label")
        if isinstance(label, str):  # CSV
            label = label.split("#")
        if not label:
            yield about._replace(status=EMPTY)
        elif any(isinstance(each, (list, Mapping)) for each in label):
            yield about._replace(kind=TEXT)
        else:
            yield about._replace(**one_or_set(label))
