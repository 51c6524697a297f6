"""The summary of labels, and what was understood of a table of answers, as plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..acquisition import expected, expected_accuracy, open_tasks
from ..answers import Intake, Labels
from ..inter_rater import agreement
from ..kernels.layout import Floats, Ints
from ..result import LabelsResult
from .frame import BaseSummary, Language, Tile
from .words import NOT_KNOWN, count, many, percent

HALF = 0.5  # part of the labels expected to be wrong that the tasks to review hold


@dataclass(frozen=True, kw_only=True)
class Summary(BaseSummary):
    """The summary of labels."""

    answers: int
    tasks: int
    workers: int
    classes: list[Any]
    prevalence: list[float]
    expected_accuracy: float | None  # mean probability of the labels given
    expected_low: float | None  # range that held the share of right labels on 17 of 18 real sets
    expected_high: float | None
    alpha: float | None  # Krippendorff's
    alpha_low: float | None
    alpha_high: float | None
    expected_wrong: float  # labels
    to_review: int  # the most uncertain tasks, which hold half of them
    flagged: int  # workers with a flag
    gain: float | None  # in expected accuracy, by one more answer to every task
    ties: int


def _tiles(said: dict[str, Any], alpha_note: str) -> list[Tile]:
    """The five figures on top of every rendering; `alpha_note` says why there is no alpha."""
    alpha, gain = said["alpha"], said["gain"]
    return [
        Tile(
            "Expected accuracy of the labels",
            _percent(said["expected_accuracy"]),
            _range(said["expected_low"], said["expected_high"], _percent),
            "The mean probability of the labels. The range is how far such an expectation of this model was off on "
            "17 of 18 real sets whose truth is known.",
        ),
        Tile(
            "Agreement (Krippendorff's alpha)",
            NOT_KNOWN if alpha is None else f"{alpha:.2f}",
            alpha_note or _range(said["alpha_low"], said["alpha_high"], "{:.2f}".format),
            "1 is full agreement, 0 is what chance would give.",
        ),
        Tile(
            "Tasks to review",
            count(said["to_review"]),
            f"of {count(said['tasks'])}: they hold half of the {said['expected_wrong']:.0f} labels expected to be "
            "wrong",
            "The most uncertain tasks: a look by an expert, or another answer, helps here most.",
        ),
        Tile(
            "Workers flagged",
            count(said["flagged"]),
            f"of {count(said['workers'])}",
            "At chance, one label only, inverted, a copy of another, or too fast. A flag is a reason to look.",
        ),
        Tile(
            "Gain from one more answer per task",
            NOT_KNOWN if gain is None else f"+{100 * gain:.1f}",
            "points of expected accuracy" if gain is not None else "",
            "What the labels would gain if every task got one more answer by an average worker.",
        ),
    ]


def _percent(share: float | None) -> str:
    return NOT_KNOWN if share is None else percent(share)


def _range(low: float | None, high: float | None, told: Any) -> str:
    return "" if low is None or high is None else f"{told(low)} to {told(high)}"


def summarise_labels(result: LabelsResult, language: Language) -> Summary:
    """The summary of a result of labels."""
    answers = result.answers
    right = expected(result, 1)[open_tasks(result)]
    mean, low, high = expected_accuracy(result) or (None, None, None)
    wrong, review = doubtful(right[:, 0])
    alpha = agreement(answers).row(0, named=True)
    said = {
        "answers": answers.n_answers,
        "tasks": answers.n_tasks,
        "workers": answers.n_workers,
        "classes": answers.classes.to_list(),
        "prevalence": [float(share) for share in result.prevalence],
        "expected_accuracy": mean,
        "expected_low": low,
        "expected_high": high,
        "alpha": alpha["value"],
        "alpha_low": alpha["low"],
        "alpha_high": alpha["high"],
        "expected_wrong": wrong,
        "to_review": review,
        "flagged": int((result.workers["flags"] != "").sum()),
        "gain": float((right[:, 1] - right[:, 0]).mean()) if len(right) else None,
        "ties": int(result.labels["tie"].sum()),
    }
    names = (("answer", "answers"), ("task", "tasks"), ("worker", "workers"))
    parts = [many(int(said[name]), one) for one, name in names]
    parts.append(f"{count(answers.n_classes)} class{'es' * (answers.n_classes != 1)}")
    counted = f"{parts[0]}: {', '.join(parts[1:])}"
    return Summary.of(result, language, counted=counted, tiles=_tiles(said, alpha["note"]), **said)


def doubtful(p: Floats) -> tuple[float, int]:
    """How many labels of these probabilities are expected to be wrong, and how many of the least probable hold half of
    them."""
    wrong = np.sort(1 - p)[::-1]
    total = float(wrong.sum())
    return total, int(np.searchsorted(np.cumsum(wrong), HALF * total)) + 1 if total >= HALF else 0


@dataclass(frozen=True)
class Spread:
    """Smallest, middle and largest of some counts."""

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
    labels: list[tuple[Any, int]]  # label and how many answers gave it, most frequent first
    answers_per_task: Spread
    answers_per_worker: Spread
    gold: int  # tasks whose truth is known

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; what is told of the intake stands at the top."""
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
