"""Zooniverse: the classification export of a project as CSV, with questions and with points on pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from ...errors import ColumnError, nearest
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
    chosen_field,
    number,
    one_or_set,
    parsed,
)

if TYPE_CHECKING:
    from ..estimates import Estimates

VERSION = "@"  # between a subject and the version of a question
FRAME = "#"  # between a subject of several images and the number of the image, from 0
SEPARATOR = "\x1f"  # between the parts of names of questions and tasks, until all rows are known
OWN = ("subject_id", "question", "x", "y", "#label", "#probability", "#answers")  # columns of a manifest
DATA = "subject_data."  # before a field of the subject's data, as the name of the task
_NUMBER = re.compile(r"(\d+)(\.0)?")


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
        sizes = metadata.get("subject_dimensions") or []
        user = _NUMBER.fullmatch(str(record.get("user_id") or ""))
        about = Answer(
            task=_named_task(record, settings.task, origin.name),
            worker=user[1] if user else as_label(record.get("user_name")),
            status="gold" if gold else OK,
            submission=as_label(record["classification_id"]),
            started_at=metadata.get("started_at"),
            submitted_at=metadata.get("finished_at") or record.get("created_at"),
        )
        version = str(record.get("workflow_version") or "").split(".")[0]
        before = f"{record.get('workflow_id') or ''}{SEPARATOR}{version}{SEPARATOR}"
        found = False
        for task, value in _tasks(parsed(record["annotations"]) or []):
            for select, fields in _answers(value, sizes):
                found = True
                status = about.status if about.status != OK else fields.get("status", OK)
                frame = fields.pop("frame", None)
                named = about.task if frame is None or about.task is None else f"{about.task}{SEPARATOR}{frame}"
                question = before + task + SEPARATOR + select
                yield about._replace(**(fields | {"task": named, "question": question, "status": status}))
        if not found:
            yield about._replace(status=EMPTY)

    def give_back(self, estimates: Estimates, original: Original | None) -> Iterator[Mapping[str, Any]]:
        """Yield the lines of a manifest of subjects: with the data of the subject, if there is an export."""
        subjects, fields = _subjects(estimates, original)
        for task, each in estimates.tasks.items():
            about = subjects.get(task)
            if original is not None and not subjects:
                return
            subject = dict.fromkeys(fields, "") | (about or {_id_field(estimates): _without_marks(task)})
            subject["question"] = estimates.question
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
        """Name questions by their task: with the workflow if there are several, with the dropdown if the task has
        several, and with the major version of the workflow at the subject if a question has several versions."""
        if "question" not in frame.columns:
            return frame
        frame = _framed(frame.with_columns(pl.col("question").cast(pl.String)))
        names = frame.select(pl.col("question").unique().drop_nulls()).with_columns(
            pl.col("question")
            .str.split_exact(SEPARATOR, 3)
            .struct.rename_fields(["workflow", "version", "name", "select"])
            .alias("part")
        )
        names = names.unnest("part").with_columns(
            versions=pl.col("version").n_unique().over("workflow", "name"),
            workflows=pl.col("workflow").n_unique(),
            selects=pl.col("select").filter(pl.col("select") != "").n_unique().over("workflow", "name"),
        )
        names = names.with_columns(
            pl.when((pl.col("selects") > 1) & (pl.col("select") != ""))
            .then(pl.col("name") + "/" + pl.col("select"))
            .otherwise("name")
            .alias("name")
        )
        known = frame.join(names, on="question", how="left", maintain_order="left")
        several = pl.col("versions").fill_null(1) > 1
        return known.with_columns(
            pl.when(several).then(pl.col("task") + VERSION + pl.col("version")).otherwise("task").alias("task"),
            pl.when(pl.col("workflows") > 1)
            .then(pl.col("workflow") + "/" + pl.col("name"))
            .otherwise("name")
            .alias("question"),
        ).drop("workflow", "version", "name", "select", "versions", "workflows", "selects")


def _framed(frame: pl.DataFrame) -> pl.DataFrame:
    """Name the images of subjects that have several as tasks of questions about points. Of other questions, whose list
    of answers may be empty, the task is the subject."""
    parts = pl.col("task").cast(pl.String).str.split_exact(SEPARATOR, 1).struct.rename_fields(["subject", "frame"])
    known = frame.with_columns(parts.alias("part")).unnest("part")
    if known["frame"].null_count() == known.height:
        return frame
    labelled = pl.col("kind").eq(LABELS).any().over("question").fill_null(value=False)
    several = pl.col("frame").is_not_null().any().over("subject")
    known = known.filter(~(labelled & (pl.col("frame") != "0")).fill_null(value=False))
    image = pl.col("subject") + FRAME + pl.col("frame").fill_null("0")
    task = pl.when((pl.col("kind") == POINTS) & several & ~labelled).then(image).otherwise("subject")
    return known.with_columns(task.alias("task")).drop("subject", "frame")


def _named_task(record: Mapping[str, Any], field: str | None, name: str) -> str | None:
    """Return the task of a classification: its subject, or what the field that the caller names says of the subject."""
    if field is None:
        return as_label(record["subject_ids"])
    if field in record or not field.startswith(DATA):
        return as_label(record[chosen_field(field, "", tuple(record), name, "task")])
    data = _subject(record)
    wanted = field.removeprefix(DATA)
    if wanted not in data:
        known = tuple(DATA + each for each in data)
        raise ColumnError(
            f"the data of subject {record['subject_ids']} in {name} have no field {wanted!r}; fields are "
            f"{', '.join(known)}.{nearest(field, known)}"
        )
    return as_label(data[wanted])


def _without_marks(task: str) -> str:
    """Return a task without the version of the workflow and the number of the image."""
    return re.sub(rf"({FRAME}\d+)?({VERSION}\d+)?$", "", task)


def _id_field(estimates: Estimates) -> str:
    return "subject_id" if estimates.field is None else estimates.field.removeprefix(DATA)


def _subjects(estimates: Estimates, original: Original | None) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the ids and data of the subjects that tasks are about, and all columns in order of first appearance."""
    tasks: dict[str, list[str]] = {}
    for task in estimates.tasks:
        for name in {task, _without_marks(task)}:
            tasks.setdefault(name, []).append(task)
    found: dict[str, dict[str, Any]] = {}
    fields = dict.fromkeys(["subject_id"] if original is not None else [_id_field(estimates)])
    for record in original() if original is not None else ():
        named = _named_task(record, estimates.field, "the original export")
        for task in tasks.pop(named or "", ()):
            if task == named or task not in found:
                data = {name: value for name, value in _subject(record).items() if name not in ("retired", *OWN)}
                found[task] = {"subject_id": as_label(record["subject_ids"])} | data
                fields |= dict.fromkeys(found[task])
    return found, list(fields)


def _subject(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the data of the subject of a classification."""
    return next(iter((parsed(record.get("subject_data")) or {}).values()), None) or {}


def _tasks(annotations: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the tasks of a classification and their values: combined tasks are taken apart, and the species of a
    survey, each of which may be an annotation of its own, are put together. The value of a task about a mark is a
    mapping, which is no answer about the subject."""
    surveys: dict[str, list[Any]] = {}
    for task, value in _apart(annotations):
        if not _is_survey(value):
            yield task, value
        elif task in surveys:
            surveys[task].extend(value)
        else:
            surveys[task] = [*value]
    yield from surveys.items()


def _apart(annotations: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    for annotation in annotations:
        value, task = annotation.get("value"), str(annotation["task"])
        if annotation.get("markIndex") is not None:
            yield task, {"value": value}
        elif _is_list_with(value, "task"):
            yield from _apart(value)
        else:
            yield task, value


def _is_list_with(value: Any, key: str) -> bool:
    """Return whether a value is a list of objects that all have a key."""
    return isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) and key in each for each in value)


def _is_survey(value: Any) -> bool:
    return _is_list_with(value, "choice")


def _answers(value: Any, sizes: Sequence[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the fields of the answers to a task, each with the name of its dropdown, which is "" for other tasks."""
    if isinstance(value, Mapping) and "option" in value and "value" in value:
        value = [value]
    if _is_list_with(value, "option") and _is_list_with(value, "value"):
        for number_, each in enumerate(value, 1):
            yield as_label(each.get("select_label")) or str(number_), _selected(each)
    elif value is None:
        yield "", {"kind": None, "status": "skipped"}
    elif not isinstance(value, (list, Mapping)):
        yield "", {"kind": LABELS, "label": as_label(value)}
    elif isinstance(value, Mapping):
        yield "", {"kind": TEXT}
    elif _is_survey(value):
        yield "", one_or_set(each["choice"] for each in value)
    elif all(isinstance(each, Mapping) for each in value):
        yield from (("", fields) for fields in _marks(value, sizes))
    else:
        yield "", one_or_set(each for each in value if not isinstance(each, (list, Mapping)))


def _selected(choice: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the answer in a dropdown."""
    label = as_label(choice.get("label"))
    label = as_label(choice["value"]) if label is None else label
    return {"kind": None, "status": "skipped"} if label is None else {"kind": LABELS, "label": label}


def _marks(shapes: Sequence[Mapping[str, Any]], sizes: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield the fields of each mark. A frame on which nothing was clicked gives a row without a place: the volunteer
    looked, and saw nothing. Subjects of several images have frames: those whose sizes the metadata have, or on which
    there are marks."""
    frames = [int(shape.get("frame") or 0) for shape in shapes]
    several = len(sizes) > 1 or any(frames)
    clicked = set()
    for shape, frame in zip(shapes, frames, strict=True):
        fields = _place(shape)
        if fields["kind"] == POINTS:
            clicked.add(frame)
        yield fields | _frame(frame, sizes, several)
    shown = range(len(sizes)) if len(sizes) > 1 else sorted({*frames}) or [0]
    for frame in shown:
        if frame not in clicked:
            yield {"kind": POINTS} | _frame(frame, sizes, several)


def _frame(frame: int, sizes: Sequence[Any], several: bool) -> dict[str, Any]:
    """Return the size of an image of a subject, and its number if the subject has several."""
    size = (sizes[frame] if frame < len(sizes) else None) or {}
    found = {f"image_{name}": number(size.get(f"natural{name.title()}")) for name in ("width", "height")}
    return found | ({"frame": frame} if several else {})


def _place(shape: Mapping[str, Any]) -> dict[str, Any]:
    """Return the centre of a shape in pixels; shapes that have none, such as lines and polygons, are not used."""
    centre = shape.get("x_center", shape.get("x")), shape.get("y_center", shape.get("y"))
    if None in centre or "x1" in shape:
        return {"kind": TEXT}
    x, y = map(float, centre)
    tool = shape.get("tool_label")
    tool = shape.get("toolIndex", shape.get("tool")) if tool is None else tool
    found: dict[str, Any] = {"kind": POINTS, "label": as_label(tool)}
    if "width" in shape and "height" in shape:  # rotation is about the centre
        width, height = float(shape["width"]), float(shape["height"])
        found |= {"width": width, "height": height, "rotation": number(shape.get("angle"))}
        if "x_center" not in shape:  # x and y are the corner at the top left
            x, y = x + width / 2, y + height / 2
    return found | {"x": x, "y": y}
