"""Tasks of Label Studio as they are imported: from judgements, and with estimates as predictions."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from ...errors import DataError
from .base import EMPTY, MODEL_PREFIX, POINTS, Original, as_id, as_label
from .exchange import each_of, numeric

if TYPE_CHECKING:
    from ..estimates import Estimate, Estimates, Place

SHOWN = "task"  # field of the data, and name of the object, where there is no export to take them from
DOT = 1.0  # width of a keypoint, in percent
TITLE = "Label Studio"
CHOICES, RATING, NUMBER = "choices", "rating", "number"  # types of results
KEYPOINT, RECTANGLE = "keypoint", "rectangle"  # those without labels; with labels, they are keypointlabels and so on


def tasks_of(rows: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield tasks with their annotations, drafts and predictions."""
    from ..conversion import by_task

    types = {question: RATING if whole else NUMBER for question, whole in numeric(rows).items()}
    for task, judgements in by_task(rows):
        found: dict[str, list[dict[str, Any]]] = {"annotations": [], "drafts": [], "predictions": []}
        for each in _submissions(judgements):
            first = each[0]
            result = [
                _result(row, types) for row in each if row["status"] != EMPTY and {"x", "label", "label_set"} & {*row}
            ]
            kind = {"draft": "drafts", "prediction": "predictions"}.get(first["status"], "annotations")
            if "worker" in first or kind != "annotations" or result:
                found[kind].append(_submission(first, kind, result))
        yield {"id": as_id(task), "data": {SHOWN: task}, **found}


def _submissions(rows: Iterable[dict[str, Any]]) -> Iterable[list[dict[str, Any]]]:
    """Return the rows of each annotation. Without ids of submissions, a worker's second answer to a question begins
    another annotation; several places are one."""
    found: dict[Any, list[dict[str, Any]]] = {}
    count: dict[Any, int] = {}
    for row in rows:
        who = row.get("worker"), row["status"]
        if "submission" in row or row.get("kind") == POINTS:
            key = (*who, row.get("submission"))
        else:
            asked = (*who, row.get("question"))
            count[asked] = count.get(asked, 0) + 1
            key = (*who, count[asked])
        found.setdefault(key, []).append(row)
    return found.values()


def _submission(row: Mapping[str, Any], kind: str, result: list[dict[str, Any]]) -> dict[str, Any]:
    about: dict[str, Any] = {"result": result}
    if "submitted_at" in row:
        about["updated_at" if kind != "predictions" else "created_at"] = row["submitted_at"].isoformat()
    if kind == "predictions":
        return about | {"model_version": row["worker"].removeprefix(MODEL_PREFIX)}
    if kind == "drafts":
        return about | {"user": as_id(row.get("worker"))}
    about |= {"was_cancelled": row["status"] == "skipped", "ground_truth": row["status"] == "gold"}
    about |= {"lead_time": row["seconds"]} if "seconds" in row else {}
    about |= {"id": as_id(row["submission"])} if "submission" in row else {}
    worker = row.get("worker")
    return about | {"completed_by": {"email": worker} if worker and "@" in worker else as_id(worker)}


def _result(row: Mapping[str, Any], types: Mapping[str | None, str]) -> dict[str, Any]:
    about = {"from_name": row.get("question", SHOWN), "to_name": SHOWN}
    if row["kind"] == POINTS:
        return about | _drawn(row)
    kind = types.get(row.get("question"), CHOICES)
    return about | {"type": kind, "value": _value(kind, _listed(row))}


def _listed(row: Mapping[str, Any]) -> list[str]:
    return json.loads(row["label_set"]) if "label_set" in row else [row["label"]] if "label" in row else []


def _drawn(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a place as a keypoint or, if it has a size, as a rectangle; in percent of the image."""
    size = row.get("image_width", 0.0), row.get("image_height", 0.0)
    if row.get("percent"):
        across, down, known = 1.0, 1.0, {}
    elif min(size) > 0:
        across, down = 100 / size[0], 100 / size[1]
        known = {"original_width": size[0], "original_height": size[1]}
    else:
        raise DataError(
            f"task {row['task']!r} has places in pixels and no size of its image; Label Studio needs places in "
            "percent. Write a table: csv, jsonl or parquet"
        )
    if "width" not in row or "height" not in row:
        return _shape(KEYPOINT, {"x": row["x"] * across, "y": row["y"] * down, "width": DOT}, row.get("label")) | known
    x, y = _corner(row)
    place = {"x": x * across, "y": y * down, "width": row["width"] * across, "height": row["height"] * down}
    return _shape(RECTANGLE, place | {"rotation": row.get("rotation", 0.0)}, row.get("label")) | known


def _corner(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return the corner of a box at the top left, about which it is turned; x and y are its centre."""
    turn, width, height = math.radians(row.get("rotation", 0.0)), row["width"] / 2, row["height"] / 2
    x = row["x"] - width * math.cos(turn) + height * math.sin(turn)
    y = row["y"] - width * math.sin(turn) - height * math.cos(turn)
    return x, y


def _shape(shape: str, place: Mapping[str, float], label: str | None) -> dict[str, Any]:
    """Return the type and the value of a result with a place; those of shapes without labels have other types."""
    if label is None:
        return {"type": shape, "value": {**place}}
    return {"type": f"{shape}labels", "value": {**place, f"{shape}labels": [label]}}


class Control(NamedTuple):
    """What an export says of the control of a question."""

    to_name: str  # the object that the question is about
    type: str  # of the results
    label: str | None = None  # of all places, if there is only one


def with_predictions(estimates: Estimates, original: Original | None) -> Iterator[dict[str, Any]]:
    """Yield tasks with their data and an estimate as a prediction."""
    if original is None:
        control = Control(SHOWN, f"{KEYPOINT}labels" if estimates.kind == POINTS else CHOICES)
        for task, estimate in estimates.tasks.items():
            yield _predicted(as_id(task), {SHOWN: task}, estimate, estimates, control)
        return
    from .label_studio import as_task, field_of

    control = _control(estimates.question, original)
    seen = set[str]()

    def predicted(record: Mapping[str, Any]) -> dict[str, Any] | None:
        task = as_task(record)
        name = as_label(field_of(task, estimates.field) if estimates.field else task.get("id")) or ""
        if name not in estimates.tasks or (name in seen and task is not record):  # another annotation of the task
            return None
        seen.add(name)
        return _predicted(task.get("id"), task["data"], estimates.tasks[name], estimates, control)

    yield from each_of(original, TITLE, predicted)


def _control(question: str, original: Original) -> Control:
    """Return the object that a question is about, the type of its answers, and the label of places if all have one."""
    from .label_studio import annotations_of, as_task, whole

    def results(record: Mapping[str, Any]) -> list[Any]:
        task = as_task(record)
        submissions = [*whole(annotations_of(task)), *whole(task.get("predictions"))]
        given = [result for each in submissions for result in each.get("result") or []]
        return [result for result in given if result.get("from_name") == question]

    found, labels = None, set[str]()
    for several in each_of(original, TITLE, results):
        for result in several:
            found = found or Control(str(result.get("to_name", SHOWN)), str(result.get("type", CHOICES)))
            labels.update(map(str, (result.get("value") or {}).get(found.type) or ()) if _is_drawn(found) else ())
        if found is not None and (not _is_drawn(found) or len(labels) > 1):
            break
    if found is None:
        raise DataError(f"the export has no question {question!r}. Name the export that the answers were read from")
    return found._replace(label=labels.pop()) if len(labels) == 1 else found


def _is_drawn(control: Control) -> bool:
    return control.type == f"{KEYPOINT}labels"


def _predicted(task: Any, data: Any, estimate: Estimate, estimates: Estimates, control: Control) -> dict[str, Any]:
    about = {"from_name": estimates.question, "to_name": control.to_name}
    if estimates.kind == POINTS:
        if not control.type.startswith(KEYPOINT):
            raise DataError(
                f"question {estimates.question!r} asks for {control.type}, of which only the centres are estimated. "
                "Write csv, jsonl, parquet or coco"
            )
        places = [place._replace(label=place.label or control.label) for place in estimate.places]
        result = [about | {"score": place.probability} | _placed(place, estimate.size) for place in places]
        score = min((place.probability for place in places), default=None)
    else:
        value = _value(control.type, estimate.labels) if estimate.labels else None
        result = [about | {"type": control.type, "value": value}] if value else []
        score = estimate.probability
    known = result or estimates.kind == POINTS or estimate.is_set  # no object, no label: known too
    predictions = [{"model_version": estimates.by, "score": score, "result": result}] if known else []
    return {"id": task, "data": data, "predictions": predictions}


def _placed(place: Place, size: tuple[float, float] | None) -> dict[str, Any]:
    if size is None or min(size) <= 0:
        raise DataError(
            "the sizes of the images are not known, and Label Studio needs places in percent. Fit with a table of "
            "sizes as the box, or write csv, jsonl, parquet or coco"
        )
    at = {"x": 100 * place.x / size[0], "y": 100 * place.y / size[1], "width": DOT}
    return _shape(KEYPOINT, at, place.label) | {"original_width": size[0], "original_height": size[1]}


def _value(kind: str, labels: Sequence[str]) -> dict[str, Any]:
    """Return labels as the value of a result of this type."""
    if kind in (RATING, NUMBER):
        value = float(labels[0])
        return {kind: int(value) if value.is_integer() else value}
    if kind == "taxonomy":
        return {kind: [label.split(" / ") for label in labels]}
    if kind == "pairwise":
        return {"selected": labels[0]}
    return {"choices": list(labels)}
