"""Tasks of Label Studio as they are imported: from judgements, and with estimates as predictions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from ...errors import DataError
from .base import EMPTY, MODEL_PREFIX, POINTS, Original, as_id, as_label

if TYPE_CHECKING:
    from ..estimates import Estimate, Estimates, Place

SHOWN = "task"  # field of the data, and name of the object, where there is no export to take them from
DOT = 1.0  # width of a keypoint, in percent
TAG_OF_KEYPOINTS = "keypointlabels"


def tasks_of(rows: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield tasks with their annotations, drafts and predictions."""
    from ..conversion import by_task

    for task, judgements in by_task(rows):
        found: dict[str, list[dict[str, Any]]] = {"annotations": [], "drafts": [], "predictions": []}
        for each in _submissions(judgements):
            first = each[0]
            result = [_result(row) for row in each if row["status"] != EMPTY and {"x", "label", "label_set"} & {*row}]
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
    return about | {"completed_by": as_id(row.get("worker"))}


def _result(row: Mapping[str, Any]) -> dict[str, Any]:
    question = row.get("question", SHOWN)
    if row["kind"] == POINTS:
        return {"from_name": question, "to_name": SHOWN} | _drawn(row)
    labels = _listed(row)
    return {"from_name": question, "to_name": SHOWN, "type": "choices", "value": {"choices": labels}}


def _listed(row: Mapping[str, Any]) -> list[str]:
    return json.loads(row["label_set"]) if "label_set" in row else [row["label"]] if "label" in row else []


def _drawn(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a place as a keypoint, in percent of the image."""
    if row.get("percent"):
        return _keypoint(row["x"], row["y"], row.get("label"))
    if "image_width" not in row or "image_height" not in row:
        raise DataError(
            f"task {row['task']!r} has places in pixels and no size of its image; Label Studio needs places in "
            "percent. Write a table: csv, jsonl or parquet"
        )
    size = row["image_width"], row["image_height"]
    return _keypoint(100 * row["x"] / size[0], 100 * row["y"] / size[1], row.get("label")) | {
        "original_width": size[0],
        "original_height": size[1],
    }


def _keypoint(x: float, y: float, label: str | None) -> dict[str, Any]:
    labels = {TAG_OF_KEYPOINTS: [label]} if label is not None else {}
    return {"type": TAG_OF_KEYPOINTS if labels else "keypoint", "value": {"x": x, "y": y, "width": DOT} | labels}


def with_predictions(estimates: Estimates, original: Original | None) -> Iterator[dict[str, Any]]:
    """Yield tasks with their data and an estimate as a prediction."""
    if original is None:
        control = (SHOWN, TAG_OF_KEYPOINTS if estimates.kind == POINTS else "choices")
        for task, estimate in estimates.tasks.items():
            yield _predicted(as_id(task), {SHOWN: task}, estimate, estimates, control)
        return
    from .label_studio import field_of

    control = _control(estimates.question, original)
    for record in original():
        name = as_label(field_of(record, estimates.field) if estimates.field else record.get("id"))
        found = estimates.tasks.get(name or "")
        if found is not None:
            yield _predicted(record.get("id"), record["data"], found, estimates, control)


def _control(question: str, original: Original) -> tuple[str, str]:
    """Return the object that a question is about, and the type of its answers."""
    for record in original():
        for source in ("annotations", "completions", "predictions"):
            for submission in record.get(source) or []:
                for result in submission.get("result") or []:
                    if result.get("from_name") == question:
                        return str(result.get("to_name", SHOWN)), str(result.get("type", "choices"))
    raise DataError(f"the export has no question {question!r}. Name the export that the answers were read from")


def _predicted(
    task: Any, data: Any, estimate: Estimate, estimates: Estimates, control: tuple[str, str]
) -> dict[str, Any]:
    to_name, kind = control
    about = {"from_name": estimates.question, "to_name": to_name}
    if estimates.kind == POINTS:
        if not kind.startswith("keypoint"):
            raise DataError(
                f"question {estimates.question!r} asks for {kind}, of which only the centres are estimated. Write csv, "
                "jsonl, parquet or coco"
            )
        result = [about | {"score": place.probability} | _placed(place, estimate.size) for place in estimate.places]
        score = min((place.probability for place in estimate.places), default=None)
    else:
        result = [about | {"type": kind, "value": _value(kind, estimate.labels)}] if estimate.labels else []
        score = estimate.probability
    known = bool(result) or estimates.kind == POINTS  # an image without objects is an estimate too
    predictions = [{"model_version": estimates.by, "score": score, "result": result}] if known else []
    return {"id": task, "data": data, "predictions": predictions}


def _placed(place: Place, size: tuple[float, float] | None) -> dict[str, Any]:
    if size is None:
        raise DataError(
            "the sizes of the images are not known, and Label Studio needs places in percent. Fit with a table of "
            "sizes as the box, or write csv, jsonl, parquet or coco"
        )
    shown = _keypoint(100 * place.x / size[0], 100 * place.y / size[1], place.label)
    return shown | {"original_width": size[0], "original_height": size[1]}


def _value(kind: str, labels: tuple[str, ...]) -> dict[str, Any]:
    """Return labels as the value of a result of this type."""
    if kind in ("rating", "number"):
        value = float(labels[0])
        return {kind: int(value) if value.is_integer() else value}
    if kind == "taxonomy":
        return {kind: [label.split(" / ") for label in labels]}
    if kind == "pairwise":
        return {"selected": labels[0]}
    return {"choices": list(labels)}
