"""How many answers per task a target accuracy needs: before a study, and after a pilot.

Before a study. Let s be the probability that one answer is right, K the number of classes, and rho the correlation of
errors, the part of the errors that comes from tasks that mislead many workers.
    (1)  answer shares of a task ~ Dirichlet(c s, c (1 - s) / (K - 1), ...),    c = (1 - rho) / rho
    (2)  accuracy of n answers = share of tasks of which the label with the most votes is right; ties count fractionally
Tasks are simulated. rho = 0.15 is the median of 18 real datasets; 0.05 and 0.3 give the range.

After a pilot, the expected accuracy of its labels and the law of the cost curve (eqs 1 to 3 of `cost`) replace these
assumptions. docs/maths/acquisition.md has the errors of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..answers.arguments import check_whole, is_number, is_whole
from ..errors import ParameterError, option
from ..kernels.layout import Floats
from ..limits import enough_memory
from ..result import LabelsResult
from ..result.base import result_of
from .cost import Accuracy, after, disagreement, expected_accuracy, open_tasks, with_each

MAX_ANSWERS = 25  # answers per task that are considered
USUAL, SHARED, INDEPENDENT = 0.15, 0.3, 0.05  # correlation of errors on real datasets: median, 90 %, lower quartile
TASKS = 50_000  # simulated
MAX_CELLS = 20_000_000  # tasks x classes


@dataclass(frozen=True)
class AnswerPlan:
    """How many answers per task a target accuracy needs. Numbers are None if those of `points`, up to 25, do not
    suffice. After a pilot they start at the answers per task that it has: it does not show what fewer would do."""

    target: float
    answers: int | None  # per task, as expected
    at_best: int | None  # if the accuracy is at the upper end of its range
    at_worst: int | None  # if it is at the lower end
    points: pl.DataFrame  # answers (per task), accuracy, low, high
    pilot: bool  # whether the numbers come from answers

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        numbers = {"target": self.target, "answers": self.answers, "at_best": self.at_best, "at_worst": self.at_worst}
        return {**numbers, "pilot": self.pilot, "points": self.points.to_dicts()}


@enough_memory("plan")
def plan(
    target: float,
    *,
    accuracy: float | None = None,
    classes: int | None = None,
    pilot: LabelsResult | None = None,
    seed: int = 0,
) -> AnswerPlan:
    """Return how many answers per task are needed so that the share `target` of the labels is right.

    Before a study, give `accuracy`, the probability that one answer is right, and the number of `classes`, by default
    2. The accuracy is that of plain votes; models that know their workers do better. After a pilot, give its result,
    which says more: about 50 to 100 tasks with three answers each.

    >>> import crowdwise as cw
    >>> found = cw.plan(0.9, accuracy=0.8)
    >>> found.at_best < found.answers
    True
    >>> found.at_worst is None  # with errors that many workers share, no number of answers suffices
    True
    """
    _check_share("target", target)
    check_whole("seed", seed, 0)
    if pilot is not None:
        if accuracy is not None or classes is not None:
            name = option("accuracy") if accuracy is not None else option("classes")
            raise ParameterError(f"{name} is for a study without a pilot. Omit it: the pilot's answers replace it")
        points = _after_pilot(result_of(pilot, "labels", "plan", argument="pilot"))
    else:
        points = _before(*_assumptions(accuracy, 2 if classes is None else classes), seed)
    return _made(float(target), points, pilot is not None)


def _assumptions(accuracy: float | None, classes: int) -> tuple[float, int]:
    if accuracy is None:
        raise ParameterError(
            f"give {option('accuracy')}, the probability that one answer is right, for instance 0.8, or the answers of "
            "a pilot"
        )
    if not is_whole(classes) or classes < 2 or classes > 1000:
        raise ParameterError(f"{option('classes', classes)} is not a whole number from 2 to 1000")
    _check_share("accuracy", accuracy)
    if accuracy <= 1 / classes:
        raise ParameterError(
            f"{option('accuracy', accuracy)} is what random answers to {classes} classes reach, or less: no number of "
            "answers helps"
        )
    return float(accuracy), int(classes)


def _check_share(name: str, value: object) -> None:
    if not is_number(value) or not 0 < float(value) < 1:
        hint = ""
        if is_number(value) and 1 < float(value) < 100:
            hint = f". For {float(value):g} percent, write {float(value) / 100:g}"
        raise ParameterError(f"{option(name, value)} is not a number above 0 and below 1{hint}")


def _before(accuracy: float, classes: int, seed: int) -> list[tuple[int, Accuracy]]:
    usual, low, high = (vote_accuracy(accuracy, classes, rho, seed=seed) for rho in (USUAL, SHARED, INDEPENDENT))
    ends = zip(usual, np.minimum(low, usual), np.maximum(high, usual), strict=True)
    return [(n, Accuracy(*map(float, each))) for n, each in enumerate(ends, start=1)]


def vote_accuracy(
    accuracy: float, classes: int, correlation: float, most: int = MAX_ANSWERS, *, seed: int = 0
) -> Floats:
    """Return the accuracy of votes of 1 to `most` answers (most,), eqs (1) and (2), by simulation."""
    rng = np.random.default_rng(seed)
    T = max(1000, min(TASKS, MAX_CELLS // classes))
    strength = (1 - correlation) / correlation
    shape = np.full(classes, strength * (1 - accuracy) / (classes - 1))
    shape[0] = strength * accuracy  # class 0 is the truth
    shares = rng.standard_gamma(np.broadcast_to(shape, (T, classes)))
    edges = np.cumsum(shares, axis=1)
    votes, rows, right = np.zeros((T, classes), np.int16), np.arange(T), np.empty(most)
    for n in range(most):
        drawn = rng.random(T) * edges[:, -1]
        votes[rows, np.minimum((drawn[:, None] > edges).sum(1), classes - 1)] += 1
        top = votes.max(1)
        right[n] = np.where(votes[:, 0] == top, 1 / (votes == top[:, None]).sum(1), 0).mean()
    right[:2] = accuracy  # exactly: a second answer decides nothing, since a tie counts half
    return right


def _after_pilot(result: LabelsResult) -> list[tuple[int, Accuracy]]:
    now, U = expected_accuracy(result), disagreement(result)
    if now is None or U is None:
        raise ParameterError(
            "this pilot does not show how often workers agree: its tasks have fewer than 1.5 answers on average, or "
            "all labels are known. Ask about three answers for each of 50 to 100 tasks"
        )
    n = result.answers.answers_per_task[open_tasks(result)].astype(np.float64)
    first = max(1, round(float(n.mean())))
    more = range(first + 1, MAX_ANSWERS + 1)
    return [(first, now), *((each, after(now, U, n, with_each(n, each))) for each in more)]


def _made(target: float, points: list[tuple[int, Accuracy]], pilot: bool) -> AnswerPlan:
    ends = {
        name: next((n for n, found in points if getattr(found, name) >= target), None)
        for name in ("value", "high", "low")
    }
    kinds = {"answers": pl.Int64, "accuracy": pl.Float64, "low": pl.Float64, "high": pl.Float64}
    table = pl.DataFrame([(n, *found) for n, found in points], schema=kinds, orient="row")
    return AnswerPlan(target, ends["value"], ends["high"], ends["low"], table, pilot)
