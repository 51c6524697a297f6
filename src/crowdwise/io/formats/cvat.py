"""CVAT: the XML called "CVAT for images 1.1", with points, boxes, tags and attributes of tags; and tracks of "CVAT for
video 1.1".

The file does not say who drew a shape: by default the worker is the name of the file, so give one file per annotator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from ...errors import FileError, check_choice, option
from . import register
from .base import (
    EMPTY,
    LABELS,
    MODEL,
    MODEL_PREFIX,
    POINTS,
    TEXT,
    Answer,
    Head,
    Origin,
    RecordFormat,
    Settings,
    number,
    one_or_set,
)

USUAL_FILE = "annotations"  # in the zip of every job
WORKERS = ("file", "segment", "owner", "assignee")
FILE = "source_file"  # column of the whole table with the number of the file


@register
class Cvat(RecordFormat):
    """One record per image, or per frame of a video."""

    name = "cvat"
    title = "CVAT"
    files = "XML for images 1.1 and for video 1.1"
    containers = ("xml",)
    takes_worker = True
    kinds = (LABELS, POINTS)
    statuses = {"prediction": 'source="auto"'}
    fields = {
        "task": "name of the image",
        "worker": "name of the file; of annotations.xml, the folder or zip",
        "label": "label of the tag, or value of its attribute",
    }
    unit = "pixels"
    worker_is_file = True
    shown_to_all = True

    def recognise(self, head: Head) -> bool:
        return head.columns == ("annotations",)

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        check_choice("worker", settings.worker, (None, *WORKERS))
        who = _worker(record, origin, settings.worker)
        about = Answer(
            task=record["task"], worker=who, image_width=number(record.get("width")),
            image_height=number(record.get("height")), submission=record["task"],
        )  # fmt: skip
        said: dict[tuple[str, bool], list[str]] = {}  # question, and whether a program answered -> labels
        if all(shape.get("source") == "auto" for shape in record["shapes"]):
            yield about._replace(status=EMPTY)  # the worker looked at the image, and saw nothing
        for shape in record["shapes"]:
            kind, automatic = shape["shape"], shape.get("source") == "auto"
            if kind == "tag":
                said.setdefault(("tags", automatic), []).append(shape["label"])
                for name, value in shape.get("attributes", ()):
                    said.setdefault((f"{shape['label']}/{name}", automatic), []).append(value)
                continue
            for place in _places(kind, shape):
                yield _by(about._replace(question="boxes" if kind == "box" else kind, **place), automatic)
        for (question, automatic), labels in said.items():
            yield _by(about._replace(question=question, **one_or_set(labels)), automatic)

    def finish(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Tell the submissions of the program apart by file, as each file holds those of another annotator's job."""
        if "worker_kind" not in frame.columns or "task" not in frame.columns:
            return frame
        own = pl.format("{}#{}", pl.col("task").cast(pl.String), FILE).cast(pl.Categorical)
        program = pl.col("submission").is_not_null() & (pl.col("worker_kind") == MODEL)
        return frame.with_columns(pl.when(program).then(own).otherwise("submission").alias("submission"))


def _worker(record: Mapping[str, Any], origin: Origin, field: str | None) -> str:
    """Return the worker: named by the file or its folder, or by a field of the task."""
    if field in (None, "file"):
        return origin.worker(USUAL_FILE)
    who = record.get(str(field))
    if who is None:
        raise FileError(f"{origin.name} has no {field}. Omit {option('worker', field)}: the worker is then the file")
    return str(who)


def _by(answer: Answer, automatic: bool) -> Answer:
    """Return a shape as drawn by a person, or by a program."""
    if not automatic:
        return answer
    return answer._replace(worker=f"{MODEL_PREFIX}auto", worker_kind=MODEL, status="prediction")


def _places(kind: str, shape: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    label = shape["label"]
    if kind == "points":
        for pair in shape["points"].split(";"):
            x, y = pair.split(",")
            yield {"kind": POINTS, "label": label, "x": number(x), "y": number(y)}
    elif kind == "box":
        left, top, right, bottom = (float(shape[name]) for name in ("xtl", "ytl", "xbr", "ybr"))
        size = {"width": right - left, "height": bottom - top, "rotation": number(shape.get("rotation"))}
        yield {"kind": POINTS, "label": label, "x": (left + right) / 2, "y": (top + bottom) / 2} | size
    elif kind == "ellipse":
        yield {"kind": POINTS, "label": label, "x": number(shape["cx"]), "y": number(shape["cy"])}
    else:
        yield {"kind": TEXT}
