"""What a result says of each task, as the formats of platforms take it: labels with probabilities, or places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from .. import __version__
from ..errors import DataError
from .exported_labels import OF_LABEL, OF_TASK, SPLIT
from .formats.base import LABELS, POINTS, as_label

YES = "yes"


class Place(NamedTuple):
    """An object in an image."""

    x: float
    y: float
    spread: float | None  # standard deviation of the clicks on it
    label: str | None
    probability: float


class Estimate(NamedTuple):
    """What is estimated for one task."""

    labels: tuple[str, ...] = ()  # one, or any number where an answer is a set of labels
    probability: float | None = None
    answers: int = 0
    is_set: bool = False  # whether an answer is a set of labels, which may have none
    places: tuple[Place, ...] = ()
    size: tuple[float, float] | None = None  # of the image


class Estimates(NamedTuple):
    """What is estimated for all tasks of a question."""

    tasks: dict[str, Estimate]
    question: str
    kind: str  # labels or points
    by: str  # model and version: "crowdwise-pooled-0.1.0"
    field: str | None  # of the platform's record that names the task, if it is not the usual one

    @property
    def estimated(self) -> list[str]:
        """The tasks with an estimate: not those without any answer."""
        return [task for task, each in self.tasks.items() if each.labels or each.is_set or self.kind == POINTS]

    @property
    def classes(self) -> list[str]:
        """All labels, sorted."""
        labels = {label for each in self.tasks.values() for label in each.labels}
        return sorted(labels | {place.label for each in self.tasks.values() for place in each.places if place.label})


def estimates_of(result: Any) -> Estimates:
    """Return what a result says of each task."""
    intake = result.answers.intake
    options, by = intake.options, f"crowdwise-{result.model.name}-{__version__}"
    field = options.get("task") or options.get("image")
    if result.kind == "points":
        question = intake.columns.get("question", "object")
        return Estimates(_places(result, intake.columns.get("class")), question, POINTS, by, field)
    if result.kind == "pairs":
        tasks = {
            _text(row["item"]): Estimate((_text(row["cluster"]),), row["probability"])
            for row in result.clusters.iter_rows(named=True)
        }
        return Estimates(tasks, "cluster", LABELS, by, field)
    question = intake.columns.get("label", "label")
    tasks = _labels(result.labels)
    extras = result.answers.extras
    if options.get("sets") == "split" and {OF_TASK, OF_LABEL} <= {*extras.columns}:
        tasks = _joined(tasks, extras)
    return Estimates(tasks, question, LABELS, by, field)


def _text(value: Any) -> str:
    text = as_label(value)
    if text is None:
        raise DataError("a task has no name")
    return text


def _labels(labels: pl.DataFrame) -> dict[str, Estimate]:
    columns = [labels[name].to_list() for name in ("task", "label", "probability", "votes")]
    return {
        _text(task): Estimate(() if label is None else (_text(label),), probability, votes or 0)
        for task, label, probability, votes in zip(*columns, strict=True)
    }


def _joined(tasks: Mapping[str, Estimate], extras: pl.DataFrame) -> dict[str, Estimate]:
    """Return sets of labels, from one yes/no task for each label: the probability is that of the least certain one.
    A task without any answer has none."""
    found: dict[str, Estimate] = {}
    for task, label in extras.select(OF_TASK, OF_LABEL).unique().sort(OF_TASK, OF_LABEL).iter_rows():
        each = tasks[f"{task}{SPLIT}{label}"]
        before = found.get(task, Estimate(probability=1.0))
        labels = (*before.labels, label) if each.labels == (YES,) else before.labels
        probability = min(before.probability or 0.0, each.probability or 0.0)
        found[task] = Estimate(labels, probability, max(before.answers, each.answers), is_set=True)
    known = {f"{task}{SPLIT}{label}" for task, label in extras.select(OF_TASK, OF_LABEL).unique().iter_rows()}
    endings = [f"{SPLIT}{label}" for label in extras[OF_LABEL].unique()]
    for name in tasks:  # tasks without any answer
        ending = next((each for each in endings if name.endswith(each)), None)
        if name not in known and ending is not None:
            found.setdefault(name.removesuffix(ending), Estimate())
    return found


def _places(result: Any, label: str | None) -> dict[str, Estimate]:
    answers = result.answers
    if len(answers.axes) != 2:
        raise DataError(f"objects with {len(answers.axes)} coordinates cannot be given back to a platform")
    across, down = answers.axes
    boxes = answers.box.reshape(len(answers.images), 2, 2)
    places: dict[str, list[Place]] = {_text(image): [] for image in answers.images.to_list()}
    columns = result.objects.columns
    for row in result.objects.iter_rows(named=True):
        own = _text(row["class"]) if "class" in columns and row["class"] is not None else label
        places[_text(row["image"])].append(Place(row[across], row[down], row.get("spread"), own, row["probability"]))
    found = {}
    for (image, each), box in zip(places.items(), boxes, strict=True):
        known = answers.box_from in ("given", "jobs") and not box[0].any()
        size = (float(box[1, 0]), float(box[1, 1])) if known else None
        found[image] = Estimate(places=tuple(each), size=size)
    return found
