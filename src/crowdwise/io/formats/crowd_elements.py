"""The answers of Amazon's crowd HTML elements, which Mechanical Turk and SageMaker Ground Truth have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .base import LABELS, POINTS, TEXT, as_label, number, one_or_set

UNUSABLE = ("polygons", "polylines", "entities", "instances", "labeledImage", "labelMappings")


def element_answers(content: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each element of a form, and the fields of its answers."""
    for name, value in content.items():
        for fields in _fields(value):
            yield name, fields


def _fields(value: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(value, (Mapping, list)):
        label = as_label(value)
        yield {"kind": LABELS, "label": label} if label is not None else {"kind": LABELS, "status": "empty"}
    elif isinstance(value, list):
        yield {"kind": TEXT} if any(isinstance(each, (Mapping, list)) for each in value) else one_or_set(value)
    elif "boundingBoxes" in value or "keypoints" in value:
        yield from _places(value)
    elif isinstance(value.get("labels"), list):
        yield one_or_set(value["labels"])
    elif "label" in value:
        yield one_or_set([value["label"]])
    elif set(value) == {"on"}:
        yield one_or_set([value["on"]])
    elif value and all(isinstance(ticked, bool) for ticked in value.values()):
        yield one_or_set(option for option, ticked in value.items() if ticked)
    else:
        yield {"kind": TEXT}


def _places(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the centres of boxes and the key points, in pixels; without any, that the worker saw nothing."""
    image = value.get("inputImageProperties") or {}
    size = {f"image_{name}": number(image.get(name)) for name in ("width", "height")}
    found = False
    for box in value.get("boundingBoxes") or []:
        width, height = float(box["width"]), float(box["height"])
        place = {"x": float(box["left"]) + width / 2, "y": float(box["top"]) + height / 2}
        yield {"kind": POINTS, "label": as_label(box.get("label")), "width": width, "height": height} | place | size
        found = True
    for point in value.get("keypoints") or []:
        place = {"x": float(point["x"]), "y": float(point["y"])}
        yield {"kind": POINTS, "label": as_label(point.get("label"))} | place | size
        found = True
    if not found:
        yield {"kind": POINTS} | size
