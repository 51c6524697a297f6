"""Summary of what was read from a table of answers, as plain values, for every kind."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from .answers import Intake, Labels, Pairs, Points, as_answers
from .answers.split import SplitLabels
from .engine.verbs import perform, verb
from .kernels.layout import Ints


@dataclass(frozen=True)
class Spread:
    """Minimum, median and maximum of counts."""

    low: int
    median: float
    high: int

    @classmethod
    def of(cls, counts: Ints) -> Spread:
        """Return the spread of counts; zeros without counts."""
        return cls(int(counts.min()), float(np.median(counts)), int(counts.max())) if len(counts) else cls(0, 0.0, 0)


@dataclass(frozen=True)
class Inspection:
    """Summary of a table of answers."""

    kind: str
    intake: Intake
    counts: dict[str, int]  # {"answers": 1800, "tasks": 300, ...}
    spreads: dict[str, Spread]  # {"answers per task": ...}
    values: list[tuple[Any, int]] = field(default_factory=list)  # (value, number of answers), most frequent first
    value: str = ""  # name of the values: "label"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON, starting with those of the intake."""
        spreads = {name.replace(" ", "_"): asdict(spread) for name, spread in self.spreads.items()}
        values = [{self.value: value, "answers": count} for value, count in self.values]
        return {
            **self.intake.as_dict(), "kind": self.kind,
            **{name.replace(" ", "_"): count for name, count in self.counts.items()}, **spreads,
            **({f"{self.value}s": values} if self.value else {}),
        }  # fmt: skip


def inspect(answers: Any) -> Inspection:
    """Summarise a table of answers of any kind.

    >>> import crowdwise as cw
    >>> cw.inspect(cw.simulate.clicks(seed=1).points).counts["images"]
    1
    """
    return perform("inspect", as_answers(answers))  # type: ignore[no-any-return]


@verb("inspect", "labels", in_parts=True)
def inspect_labels(answers: Labels | SplitLabels) -> Inspection:
    """`inspect` for labels, in memory or in parts."""
    given = np.bincount(answers.rows.row_label, answers.rows.answers, minlength=answers.n_classes)
    values = sorted(zip(answers.classes.to_list(), map(int, given), strict=True), key=lambda pair: -pair[1])
    counts = {
        "answers": answers.n_answers, "tasks": answers.n_tasks, "workers": answers.n_workers,
        "classes": answers.n_classes, "known labels": answers.n_gold,
    }  # fmt: skip
    spreads = {
        "answers per task": Spread.of(answers.answers_per_task),
        "answers per worker": Spread.of(answers.answers_per_worker),
    }
    return Inspection("labels", answers.intake, counts, spreads, values, "label")


@verb("inspect", "points")
def inspect_points(points: Points) -> Inspection:
    """`inspect` for clicks."""
    counts = {
        "clicks": points.n_clicks, "images": points.n_images, "workers": points.n_workers, "jobs": points.n_jobs,
        "jobs without a click": int((np.diff(points.job_ptr) == 0).sum()),
    }  # fmt: skip
    spreads = {
        "clicks per image": Spread.of(points.clicks_per_image),
        "workers per image": Spread.of(np.diff(points.image_ptr)),
        "clicks per worker": Spread.of(np.bincount(points.worker, minlength=points.n_workers)),
    }
    return Inspection("points", points.intake, counts, spreads)


@verb("inspect", "pairs")
def inspect_pairs(pairs: Pairs) -> Inspection:
    """`inspect` for pairs."""
    left, _, edge = pairs.edges
    same = int(pairs.same.sum())
    counts = {
        "answers": pairs.n_answers, "pairs": len(left), "items": pairs.n_items, "workers": pairs.n_workers,
    }  # fmt: skip
    spreads = {
        "answers per pair": Spread.of(np.bincount(edge, minlength=len(left))),
        "answers per worker": Spread.of(np.bincount(pairs.worker, minlength=pairs.n_workers)),
        "answers per item": Spread.of(np.bincount(np.concatenate([pairs.left, pairs.right]), minlength=pairs.n_items)),
    }
    values = sorted([("same", same), ("different", pairs.n_answers - same)], key=lambda pair: -pair[1])
    return Inspection("pairs", pairs.intake, counts, spreads, values, "answer")
