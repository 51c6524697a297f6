"""Zooniverse: the classification export of a project as CSV, with questions and with points on pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    number,
    one_or_set,
    parsed,
)

if TYPE_CHECKING:
    from ..estimates import Estimates

SHAPE_KEYS = {"x", "y", "tool", "toolIndex", "toolType", "x1", "pathX", "points", "details", "frame"}
VERSION = "@"  # between a subject and the version of a question
SEPARATOR = "\x1f"  # between workflow, version and task, until all rows are known


@register
class Zooniverse(RecordFormat):
    """One row per classification of a subject."""

    name = "zooniverse"
    title = "Zooniverse"
    files = "classifications CSV: questions and points"
    containers = ("table",)
    kinds = (LABELS, POINTS)
    statuses = {"skipped": "question answered with null", "gold": "gold standard classification"}
    fields = {
        "task": "subject_ids",
        "worker": "user_id, else user_name",
        "label": "annotations",
        "timestamp": "created_at",
    }
    unit = "pixels"
    returned = ".csv"
    written_kinds = (LABELS, POINTS)

    def recognise(self, head: Head) -> bool:
        return head.has("classification_id", "annotations", "subject_ids", "user_name")

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        metadata = parsed(record.get("metadata")) or {}
        gold = str(record.get("gold_standard") or "").lower() == "true"
        size = next(iter(metadata.get("subject_dimensions") or []), None) or {}
        started, finished = metadata.get("started_at"), metadata.get("finished_at")
        about = Answer(
            task=as_label(record[settings.task or "subject_ids"]),
            worker=as_label(record.get("user_id")) or as_label(record.get("user_name")),
            status="gold" if gold else OK,
            submission=as_label(record["classification_id"]),
            started_at=started,
            submitted_at=finished or record.get("created_at"),
        )
        sizes = {f"image_{name}": number(size.get(f"natural{name.title()}")) for name in ("width", "height")}
        version = str(record.get("workflow_version") or "").split(".")[0]
        before = f"{record.get('workflow_id') or ''}{SEPARATOR}{version}{SEPARATOR}"
        found = False
        for task, fields in _tasks(parsed(record["annotations"]) or []):
            found = True
            status = about.status if about.status != OK else fields.get("status", OK)
            place = sizes if fields["kind"] == POINTS else {}
            yield about._replace(question=before + task, **(fields | {"status": status} | place))
        if not found:
            yield about._replace(status=EMPTY)

    def give_back(self, estimates: Estimates, original: Original | None) -> Iterator[Mapping[str, Any]]:
        for task, each in estimates.tasks.items():
            subject = {"subject_id": task.partition(VERSION)[0], "question": estimates.question}
            if estimates.kind == POINTS:
                for place in each.places:
                    yield subject | {
                        "x": place.x,
                        "y": place.y,
                        "#label": place.label,
                        "#probability": place.probability,
                    }
                continue
            label = " | ".join(each.labels)
            yield subject | {"#label": label, "#probability": each.probability, "#answers": each.answers}

    def finish(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Name questions by their task: with the workflow if there are several, and with the major version of the
        workflow at the subject if a question has several versions."""
        if "question" not in frame.columns:
            return frame
        frame = frame.with_columns(pl.col("question").cast(pl.String))
        names = frame.select(pl.col("question").unique().drop_nulls()).with_columns(
            pl.col("question")
            .str.split_exact(SEPARATOR, 2)
            .struct.rename_fields(["workflow", "version", "name"])
            .alias("part")
        )
        names = names.unnest("part").with_columns(
            versions=pl.col("version").n_unique().over("workflow", "name"), workflows=pl.col("workflow").n_unique()
        )
        known = frame.join(names, on="question", how="left", maintain_order="left")
        several = pl.col("versions").fill_null(1) > 1
        return known.with_columns(
            pl.when(several).then(pl.col("task") + VERSION + pl.col("version")).otherwise("task").alias("task"),
            pl.when(pl.col("workflows") > 1)
            .then(pl.col("workflow") + "/" + pl.col("name"))
            .otherwise("name")
            .alias("question"),
        ).drop("workflow", "version", "name", "versions", "workflows")


def _tasks(annotations: list[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tasks of a classification and the fields of their answers; combined tasks are taken apart."""
    for annotation in annotations:
        value, task = annotation.get("value"), str(annotation["task"])
        if isinstance(value, list) and value and all(isinstance(each, Mapping) and "task" in each for each in value):
            yield from _tasks(value)
        else:
            for fields in _fields(value):
                yield task, fields


def _fields(value: Any) -> Iterator[dict[str, Any]]:
    if value is None:
        yield {"kind": None, "status": "skipped"}
    elif not isinstance(value, (list, Mapping)):
        yield {"kind": LABELS, "label": as_label(value)}
    elif isinstance(value, Mapping):
        yield {"kind": TEXT}
    elif not value:  # the worker looked, and marked nothing
        yield {"kind": POINTS}
    elif all(isinstance(each, Mapping) and "choice" in each for each in value):
        yield one_or_set(each["choice"] for each in value)
    elif all(isinstance(each, Mapping) for each in value):
        for each in value:
            yield _place(each)
    else:
        yield one_or_set(each for each in value if not isinstance(each, (list, Mapping)))


def _place(shape: Mapping[str, Any]) -> dict[str, Any]:
    """Return the centre of a shape in pixels; shapes that have none are not used."""
    if shape.get("x") is None or shape.get("y") is None or "x1" in shape:
        return {"kind": TEXT}
    x, y = float(shape["x"]), float(shape["y"])
    tool = shape.get("tool_label", shape.get("toolIndex", shape.get("tool")))
    found: dict[str, Any] = {"kind": POINTS, "label": as_label(tool)}
    if "width" in shape and "height" in shape:  # x and y are the corner at the top left; rotation is about the centre
        width, height = float(shape["width"]), float(shape["height"])
        found |= {"width": width, "height": height, "rotation": number(shape.get("angle"))}
        x, y = x + width / 2, y + height / 2
    return found | {"x": x, "y": y}
