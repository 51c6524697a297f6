"""What a table of answers holds, as plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..answers import Intake, Labels
from ..kernels.layout import Ints


@dataclass(frozen=True)
class Spread:
    """Smallest, median and largest of some counts."""

    low: int
    median: float
    high: int


@dataclass(frozen=True)
class Inspection:
    """A table of answers in a few plain values."""

    intake: Intake
    answers: int
    tasks: int
    workers: int
    labels: list[tuple[Any, int]]  # label and number of answers, most frequent first
    answers_per_task: Spread
    answers_per_worker: Spread
    gold: int  # tasks whose true label is known

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON, with those of the intake at the top level."""
        values = asdict(self)
        del values["intake"]
        values["labels"] = [{"label": label, "answers": count} for label, count in self.labels]
        return {**self.intake.as_dict(), **values}


def inspect(answers: Labels) -> Inspection:
    """Count what is in a table of answers."""
    counts = np.bincount(answers.layout.row_label, np.diff(answers.layout.row_ptr), minlength=answers.n_classes)
    labels = zip(answers.classes.to_list(), map(int, counts), strict=True)
    return Inspection(
        intake=answers.intake,
        answers=answers.n_answers,
        tasks=answers.n_tasks,
        workers=answers.n_workers,
        labels=sorted(labels, key=lambda pair: -pair[1]),
        answers_per_task=_spread(answers.answers_per_task),
        answers_per_worker=_spread(answers.answers_per_worker),
        gold=int((answers.gold >= 0).sum()),
    )


def _spread(counts: Ints) -> Spread:
    return Spread(int(counts.min()), float(np.median(counts)), int(counts.max()))
