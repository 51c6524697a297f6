"""Label Studio: JSON (all annotations, with what was cancelled), JSON_MIN, CSV, TSV, and the files of a storage, which
hold one annotation each."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from . import register
from .base import (
    EMPTY,
    LABELS,
    MODEL,
    MODEL_PREFIX,
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

SHAPES = ("keypoint", "rectangle", "ellipse")  # of which the place is read; their labels are in <shape>labels
MAX_LABEL_CHARS = 200  # longer text in JSON_MIN and CSV is data of the task
MAX_LABELS = 20  # a column of JSON_MIN or CSV with more values, and hardly fewer than tasks, is data of the tasks
# Fields of a record of JSON_MIN and CSV that are neither data nor answers.
RECORD_FIELDS = (
    "id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "history",
)  # fmt: skip


@register
class LabelStudio(RecordFormat):
    """Tasks with their annotations, drafts and predictions."""

    name = "label-studio"
    title = "Label Studio"
    files = "JSON, and the JSON files of a storage"
    containers = ("records", "object")
    kinds = (LABELS, POINTS)
    written_kinds = (LABELS, POINTS)
    statuses = {
        "skipped": "cancelled annotation", "gold": "ground truth annotation", "draft": "draft",
        "prediction": "prediction",
    }  # fmt: skip
    fields = {"task": "id", "worker": "completed_by", "label": "value of the result", "seconds": "lead_time"}
    unit = "percent of the image, turned into pixels by original_width and original_height"
    shown_to_all = True
    converted = ".json"
    returned = ".json"
    written_kinds = (LABELS, POINTS)

    def recognise(self, head: Head) -> bool:
        if head.container not in self.containers:
            return False
        tasks = "data" in head.columns and bool({"annotations", "completions", "predictions"} & {*head.columns})
        return tasks or head.has("result", "completed_by", "task")

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        record = as_task(record)
        task = as_label(field_of(record, settings.task) if settings.task else record.get("id"))
        found = False
        for annotation in annotations_of(record):
            if not isinstance(annotation, Mapping):
                raise ValueError("its annotations are ids alone; export the annotations as well")
            cancelled = annotation.get("was_cancelled") or annotation.get("skipped")
            status = "skipped" if cancelled else "gold" if annotation.get("ground_truth") else OK
            about = _submission(task, annotation, annotation.get("completed_by"), status)
            yield from _results(annotation.get("result") or [], about)
            found = True
        for draft in whole(record.get("drafts")):
            yield from _results(draft.get("result") or [], _submission(task, draft, draft.get("user"), "draft"))
            found = True
        for guess in whole(record.get("predictions")):
            about = _submission(task, guess, None, "prediction")
            model = MODEL_PREFIX + (as_label(guess.get("model_version")) or "model")
            yield from _results(guess.get("result") or [], about._replace(worker=model, worker_kind=MODEL))
            found = True
        if not found:
            yield Answer(task=task, status=EMPTY)

    def records(self, rows: pl.DataFrame) -> Iterator[Mapping[str, Any]]:
        from .label_studio_tasks import tasks_of

        return tasks_of(rows)

    def give_back(self, estimates: Estimates, original: Original | None) -> Iterator[Mapping[str, Any]]:
        from .label_studio_tasks import with_predictions

        return with_predictions(estimates, original)


def as_task(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record as a task: the files of a storage hold one annotation each, with its task inside."""
    if "result" not in record or "task" not in record:
        return record
    task = record["task"] if isinstance(record["task"], Mapping) else {"id": record["task"]}
    return {**task, "annotations": [record]}


def annotations_of(task: Mapping[str, Any]) -> Sequence[Any]:
    """Return the annotations of a task; "completions" in old exports."""
    return task.get("annotations") or task.get("completions") or []


def whole(entries: Any) -> list[Mapping[str, Any]]:
    """Return drafts or predictions without those that are ids alone, as exports by the button have them."""
    return [each for each in entries or [] if not isinstance(each, (int, str))]


def field_of(record: Mapping[str, Any], name: str) -> Any:
    """Return a field of a task or, if there is none, of its data."""
    return record[name] if name in record else record["data"][name.removeprefix("data.")]


def _person(worker: Any) -> str | None:
    """Return the id of an annotator, or the e-mail address if there is no id."""
    if isinstance(worker, Mapping):
        worker = worker.get("id") if worker.get("id") is not None else worker.get("email")
    return as_label(worker)


def _submission(task: str | None, annotation: Mapping[str, Any], worker: Any, status: str) -> Answer:
    """Return the fields that all results of an annotation share."""
    return Answer(
        task=task, worker=_person(worker), status=status, submission=as_label(annotation.get("id")),
        submitted_at=annotation.get("updated_at") or annotation.get("created_at"),
        seconds=number(annotation.get("lead_time")),
    )  # fmt: skip


def _results(results: list[Any], about: Answer) -> Iterator[Answer]:
    """Yield the answers of an annotation; one empty row if it has none."""
    if not results:
        yield about._replace(status=EMPTY if about.status == OK else about.status)
    for result in results:
        if result.get("type") == "relation" or "from_name" not in result:
            continue
        value = {
            **result["value"],
            **{name: result[name] for name in ("original_width", "original_height") if name in result},
        }
        fields = read_value(value, str(result.get("type") or ""))
        kept = about.status if about.status != OK else fields.pop("status", OK)
        yield about._replace(question=str(result["from_name"]), **(fields | {"status": kept}))


def read_value(value: Mapping[str, Any], kind: str = "") -> dict[str, Any]:
    """Return the fields of an answer for a value of a result, whose type is known or follows from its keys."""
    shape = next((each for each in SHAPES if kind in (each, f"{each}labels") or f"{each}labels" in value), None)
    if shape is not None and "x" in value:
        return _place(value, shape)
    if "x" in value or "start" in value or "points" in value:  # a label of a region, a span or a polygon
        return {"kind": TEXT}
    if "choices" in value:
        return one_or_set(value["choices"] if isinstance(value["choices"], list) else [value["choices"]])
    for name in ("rating", "number"):
        if name in value:
            return {"kind": LABELS, "label": as_label(value[name]), "value": number(value[name])}
    if "taxonomy" in value:
        return one_or_set(" / ".join(map(str, path)) if isinstance(path, list) else path for path in value["taxonomy"])
    if isinstance(value.get("selected"), str):
        return {"kind": LABELS, "label": value["selected"]}
    return {"kind": TEXT}


def _place(value: Mapping[str, Any], shape: str) -> dict[str, Any]:
    """Return the centre of a shape, in pixels if the size of the image is known."""
    size = number(value.get("original_width")) or 0.0, number(value.get("original_height")) or 0.0
    known = min(size) > 0
    across, down = (size[0] / 100, size[1] / 100) if known else (1.0, 1.0)
    x, y = float(value["x"]) * across, float(value["y"]) * down
    label = next(iter(value.get(f"{shape}labels") or []), None)
    found: dict[str, Any] = {"kind": POINTS, "label": as_label(label)}
    if shape == "rectangle":
        width, height = float(value["width"]) * across, float(value["height"]) * down
        turn = math.radians(float(value.get("rotation") or 0))  # clockwise, about the corner at the top left
        x += width / 2 * math.cos(turn) - height / 2 * math.sin(turn)
        y += width / 2 * math.sin(turn) + height / 2 * math.cos(turn)
        found |= {"width": width, "height": height, "rotation": math.degrees(turn)}
    if not known:
        return found | {"x": x, "y": y, "percent": True}
    return found | {"x": x, "y": y, "image_width": size[0], "image_height": size[1]}


@register
class LabelStudioMin(RecordFormat):
    """One record per annotation that was not cancelled; data of the task and answers share one level."""

    name = "label-studio-min"
    title = "Label Studio (JSON_MIN, CSV, TSV)"
    files = "JSON_MIN, CSV and TSV"
    containers = ("records", "table")
    kinds = (LABELS, POINTS)
    fields = {"task": "id", "worker": "annotator", "seconds": "lead_time"}
    unit = LabelStudio.unit
    shown_to_all = True

    def recognise(self, head: Head) -> bool:
        return head.has("id", "annotator", "annotation_id", "lead_time")

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        task = as_label(record[settings.task or "id"])
        about = _submission(task, record, record.get("annotator"), OK)
        about = about._replace(submission=as_label(record.get("annotation_id")))
        if about.worker is None:
            yield Answer(task=task, status=EMPTY)
            return
        found = False
        for name, cell in record.items():
            if name in RECORD_FIELDS or name.startswith("_data_") or name == settings.task:
                continue
            for fields in _cells(cell):
                found = True
                yield about._replace(question=name, **fields)
        if not found:
            yield about._replace(status=EMPTY)

    def finish(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Mark text that is data of the tasks, which no field tells from answers."""
        if "label" not in frame.columns or "question" not in frame.columns:
            return frame
        is_data = pl.col("question").is_in(_data_columns(frame).implode()) & (pl.col("kind") == LABELS)
        is_data = is_data.fill_null(value=False)
        kinds = frame.schema["kind"]
        marked = frame.with_columns(
            pl.when(is_data).then(pl.lit(TEXT)).otherwise("kind").cast(kinds).alias("kind"),
            only=is_data.all().over("source_row", "source_file"),
        )
        unanswered = marked.filter("only").unique(["source_row", "source_file"], keep="first", maintain_order=True)
        blank = [
            pl.lit(None, frame.schema[name]).alias(name)
            for name in ("question", "kind", "label", "value")
            if name in frame.columns
        ]
        empty = unanswered.with_columns(*blank, pl.lit(EMPTY).cast(frame.schema["status"]).alias("status"))
        return pl.concat([marked, empty]).drop("only")


def _data_columns(frame: pl.DataFrame) -> pl.Series:
    """Return the columns of JSON_MIN or CSV that are data of the tasks. Data are the same in all records of a task. A
    column that is not so holds answers; one that is may hold answers on which all agree, if it has several values and
    fewer than tasks. Where no column is of these, those whose value never changes are questions; else, all others are,
    if there are several to choose from."""
    found = _columns(frame)
    answered = found.filter(pl.col("varies") | (pl.col("values").is_between(2, pl.col("tasks") - 1) & pl.col("few")))
    if not answered.height and not frame["kind"].is_in([POINTS]).any():
        constant = found.filter((pl.col("values") == 1) & (pl.col("tasks") > 1))
        several = found if found.height > 1 or found["tasks"].max() == 1 else found.clear()
        answered = constant if constant.height else several
    return found.filter(~pl.col("question").is_in(answered["question"].implode()))["question"]


def _columns(frame: pl.DataFrame) -> pl.DataFrame:
    """Return how the values of every column with labels are spread over tasks and records."""
    given = pl.coalesce(pl.col(name).cast(pl.String) for name in ("label", "label_set") if name in frame.columns)
    record = pl.col("source_file").cast(pl.UInt64) * 2**32 + pl.col("source_row").cast(pl.UInt64)
    rated = pl.col("value").is_not_null() if "value" in frame.columns else pl.lit(value=False)
    about = frame.lazy().filter(pl.col("status") == OK)
    rows = about.select("question", "task", "kind", record=record, value=given, rated=rated)
    plain = rows.filter((pl.col("kind") == LABELS) & pl.col("value").is_not_null())
    records = rows.group_by("task").agg(pl.col("record").n_unique().alias("all"))
    counts = plain.group_by("question", "task").agg(pl.col("value", "record").n_unique(), pl.col("rated").any())
    each = counts.join(records, on="task")
    varies = ((pl.col("value") > 1) | (pl.col("record") < pl.col("all")) | pl.col("rated")).any().alias("varies")
    tasks = each.group_by("question").agg(varies, pl.len().alias("tasks"))
    values = plain.group_by("question").agg(pl.col("value").n_unique().alias("values"))
    few = (pl.col("values") <= MAX_LABELS) | (2 * pl.col("values") <= pl.col("tasks"))
    return tasks.join(values, on="question").with_columns(few=few).collect()


def _cells(cell: Any) -> Iterator[dict[str, Any]]:
    """Yield the fields of the answers in a cell: text, a number, a JSON value or a list of regions."""
    if isinstance(cell, str) and cell[:2] in ('{"', "[{", '["'):
        with contextlib.suppress(json.JSONDecodeError):  # text that begins like JSON
            cell = parsed(cell)
    if isinstance(cell, Mapping):
        yield read_value(cell)
    elif isinstance(cell, list):
        if cell and not all(isinstance(each, Mapping) for each in cell):
            yield {"kind": TEXT} if any(isinstance(each, (list, Mapping)) for each in cell) else one_or_set(cell)
            return
        for each in cell:
            yield read_value(each)
    else:
        label = as_label(cell)
        if label is not None and len(label) <= MAX_LABEL_CHARS:
            yield {"kind": LABELS, "label": label}
