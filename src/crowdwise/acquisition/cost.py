"""Expected accuracy of the labels: now, and after more answers.

The accuracy that a model expects is the mean probability of its labels. Its range has three parts:
    (1)  the error of such expectations on real sets with known truth, a range of log-odds (decision 0011),
    (2)  chance: 1.96 standard deviations of the share of right labels, if each is right with its probability,
    (3)  for added answers, the error of the check: |observed - predicted| for each answer per task.
Parts (1) and (2) are added as independent errors, part (3) on top. The range at 0 added answers is that of the present
labels, so the summary and the cost curve start from the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from ..engine import Run
from ..kernels.layout import Bools, Floats
from ..rating.skills import Z95
from ..result import LabelsResult
from ..result.base import result_of
from .tasks import MAX_AHEAD, expected, hull_slopes

if TYPE_CHECKING:
    from ..labels.model import LabelModel

EVERY, WORST = "every task", "the most uncertain tasks"
WORST_ANSWERS_PER_TASK = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 4.9)  # points of the second plan
MAX_ANSWERS_CHECKED = 200_000  # by default, larger tables are not checked
MIN_PROBABILITY = 1e-9  # before taking logarithms


class Accuracy(NamedTuple):
    """Expected accuracy and the range to expect."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Check:
    """What the curve predicted from fewer answers, and what was observed."""

    predicted: float
    observed: float
    tasks: int


@dataclass(frozen=True)
class CostCurve:
    """Expected accuracy of the labels for more answers."""

    points: pl.DataFrame  # plan, answers (added), accuracy, low, high
    check: Check | None  # None if the check was not made


def open_tasks(result: LabelsResult) -> Bools:
    """(T,) tasks whose label the model estimated: those with answers and without a known label."""
    return result.labels["status"].is_in(["ok", "unvoted"]).to_numpy()


def expected_accuracy(result: LabelsResult) -> Accuracy | None:
    """Expected accuracy of the estimated labels with its range, parts (1) and (2); None where no label was estimated.

    >>> import crowdwise as cw
    >>> result = cw.aggregate(cw.simulate.crowd(tasks=100, workers=10, seed=1).answers)
    >>> value, low, high = cw.expected_accuracy(result)
    >>> 0 < low < value < high <= 1
    True
    """
    result = result_of(result, "labels", "expected_accuracy")
    p = expected(result, 0)[open_tasks(result), 0]
    return _accuracy(float(p.mean()), _variance(p), len(p), result.model.calibration_offset) if len(p) else None


def accuracy_from_sums(sums: Floats, labels: int, model: LabelModel) -> Accuracy | None:
    """Expected accuracy with its range, from the number of labels estimated and their sums of p and of p (1 - p)."""
    return _accuracy(sums[0] / labels, float(sums[1]), labels, model.calibration_offset) if labels else None


def _variance(p: Floats) -> float:
    """Variance of the number of right labels, each right with its probability."""
    return float((p * (1 - p)).sum())


def _accuracy(mean: float, variance: float, T: int, off: tuple[float, float], error: float = 0.0) -> Accuracy:
    """Parts (1) to (3); `error` is part (3)."""
    chance = Z95 * np.sqrt(variance) / T
    odds = np.log(max(mean, MIN_PROBABILITY)) - np.log(max(1 - mean, MIN_PROBABILITY))
    low, high = (float(1 / (1 + np.exp(-(odds + shift)))) for shift in off)
    below, above = (float(np.hypot(side, chance)) + error for side in (mean - low, high - mean))
    return Accuracy(mean, max(mean - below, 0.0), min(mean + above, 1.0))


def cost_curve(result: LabelsResult, *, check: bool | None = None, seed: int = 0) -> CostCurve:
    """Return the expected accuracy if every task got 1, 2, ... more answers, and if the same answers went to the most
    uncertain tasks.

    The check removes one answer of each task, fits the model again, and compares what the curve then predicts with the
    accuracy that is expected with that answer. By default it is made for tables of up to 200,000 answers;
    `check` turns it on or off.
    """
    result = result_of(result, "labels", "cost_curve")
    open_ = open_tasks(result)
    T = int(open_.sum())
    if T == 0:
        return CostCurve(_points([]), None)
    V = expected(result)[open_]
    wanted = result.answers.n_answers <= MAX_ANSWERS_CHECKED if check is None else check
    checked = _check(result, open_, seed) if wanted and result.model.features == "none" else None
    error = abs(checked.observed - checked.predicted) if checked else 0.0
    gains = np.concatenate([[0.0], np.cumsum(np.sort(hull_slopes(V).ravel())[::-1])])
    added = [0, *dict.fromkeys(n for n in (int(each * T) for each in WORST_ANSWERS_PER_TASK) if 0 < n < len(gains))]
    every = [(EVERY, m * T, float(V[:, m].mean()), _variance(V[:, m])) for m in range(MAX_AHEAD + 1)]
    worst = [(WORST, n, min(every[0][2] + float(gains[n]) / T, 1.0), every[0][3]) for n in added]
    return CostCurve(
        _points(
            [
                (plan, n, *_accuracy(mean, variance, T, result.model.calibration_offset, error * min(n / T, MAX_AHEAD)))
                for plan, n, mean, variance in every + worst
            ]
        ),
        checked,
    )


def _points(rows: list[tuple[str, int, float, float, float]]) -> pl.DataFrame:
    kinds = {"plan": pl.String, "answers": pl.Int64, "accuracy": pl.Float64, "low": pl.Float64, "high": pl.Float64}
    return pl.DataFrame(rows, schema=kinds, orient="row")


def _check(result: LabelsResult, open_: Bools, seed: int) -> Check | None:
    """Remove one answer from every task that has two or more, and predict what it adds."""
    answers = result.answers
    several = answers.answers_per_task > 1
    if not (several & open_).any():
        return None
    rng = np.random.default_rng(seed)
    removed = answers.layout.task_ptr[:-1] + (rng.random(answers.n_tasks) * answers.answers_per_task).astype(np.int64)
    keep = np.ones(answers.n_answers, bool)
    keep[removed[several]] = False
    fewer = result.model.fit(answers.take(keep), run=Run(seed=seed))
    at = several & open_
    now = expected(fewer, 1)[at, 1].mean()
    return Check(float(now), float(expected(result, 0)[at, 0].mean()), int(at.sum()))
