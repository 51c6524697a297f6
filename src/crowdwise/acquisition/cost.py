"""Expected accuracy of the labels: now, and after more answers.

    (1)  now: E, the mean probability of the labels, with log-odds lowered by 0.2 x if answers show shared errors (x:
         see `labels.dependence`). Its range is that of logit(E) + b, with b in the range in which such estimates were
         wrong on real sets with known truth, widened by chance (`error_range` of the model).
    (2)  with known labels (gold): p_i is the probability of the label of task i, judged without its gold. One shift d
         of all log-odds is estimated, with the range of (1) as its prior; the mean of sigma(logit(p_i) + d) over the
         other tasks replaces E, and the error of d replaces the range.
    (3)  m more answers per task: gain = 0.65 U mean_i(1 / n_i - 1 / (n_i + m)), at most 1 - E. U is the share of pairs
         of answers to one task that differ, n_i the number of answers.
    (4)  m more answers for the share f of the tasks that are least certain: the gain of (3) times 1 - (1 - f)^4.
(3) and (4) were found on real sets and hold for several models; simulated crowds, whose workers err independently, gain
more. docs/maths/acquisition.md has the reasons and the errors. All ranges are 90 % ranges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from ..kernels.layout import Bools, Floats, vote_parts
from ..kernels.special import classes_of, expit
from ..limits import enough_memory
from ..result import LabelsResult
from ..result.base import result_of
from .known import left_out, n_known

if TYPE_CHECKING:
    from ..labels.model import LabelModel

EVERY, WORST = "every task", "the most uncertain tasks"
MAX_MORE = 5  # additional answers per task
WORST_SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8)  # of the tasks, in the second plan
GAIN, GAIN_ERROR = 0.65, 0.5  # of eq (3), and its standard deviation between real sets
WORST_POWER = 4  # of eq (4)
DEVIATIONS = 1.75  # standard deviations in half a 90 % range: a little more than 1.645, since errors have heavy tails
MIN_ANSWERS_PER_TASK = 1.5  # with fewer answers, agreement is hardly observed
MIN_GOLD = 5  # tasks with gold and answers from which the accuracy is corrected
MIN_PROBABILITY, MAX_PROBABILITY = 0.01, 0.995  # of a label, in eq (2)
MAX_SHIFT, BISECTIONS = 30.0, 60


class Accuracy(NamedTuple):
    """Expected accuracy and the range to expect."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class CostCurve:
    """Expected accuracy of the labels for more answers."""

    points: pl.DataFrame  # plan, answers (added), accuracy, low, high, gain, gain_low, gain_high
    disagreement: float | None  # U of eq (3)
    gold: int  # known labels that corrected the accuracy, eq (2)


def open_tasks(result: LabelsResult) -> Bools:
    """(T,) tasks whose label the model estimated: those with answers and without a known label."""
    return result.labels["status"].is_in(["ok", "unvoted"]).to_numpy()


def expected_accuracy(result: LabelsResult) -> Accuracy | None:
    """Expected accuracy of the estimated labels with its 90 % range, eqs (1) and (2). None if no label was estimated,
    or if tasks have fewer than 1.5 answers on average: these do not show how often workers agree.

    >>> import crowdwise as cw
    >>> result = cw.aggregate(cw.simulate.crowd(tasks=100, workers=10, seed=1).answers)
    >>> value, low, high = cw.expected_accuracy(result)
    >>> 0 < low < value < high <= 1
    True
    """
    result = result_of(result, "labels", "expected_accuracy")
    open_ = open_tasks(result)
    answers = result.answers.answers_per_task[open_]
    if not len(answers) or answers.mean() < MIN_ANSWERS_PER_TASK:
        return None
    p = _label_probabilities(result)[open_]
    if n_known(result) < MIN_GOLD:
        return accuracy_range(float(p.mean()), len(p), result.model, _level_shift(result))
    shift, error = _shift(result)
    value, below, above = (float(expit(_odds(p) + shift + side).mean()) for side in (0.0, -error, error))
    chance = 1.645 * np.sqrt(value * (1 - value) / len(p))
    ends = value - float(np.hypot(value - below, chance)), value + float(np.hypot(above - value, chance))
    return Accuracy(value, max(ends[0], 0.0), min(ends[1], 1.0))


def open_probabilities(result: LabelsResult) -> Floats:
    """Return the probabilities of the labels of open tasks, corrected by known labels as expected accuracy is."""
    p = _label_probabilities(result)[open_tasks(result)]
    if n_known(result) >= MIN_GOLD:
        return expit(_odds(p) + _shift(result)[0])
    mean = float(p.mean()) if len(p) else 1.0
    wrong = 1 - accuracy_range(mean, max(len(p), 1), result.model, _level_shift(result)).value
    return np.asarray(1 - (1 - p) * wrong / max(1 - mean, 1e-12))


def _level_shift(result: LabelsResult) -> float:
    answers = result.answers.answers_per_task[open_tasks(result)]
    return result.model.level_shift(result.params, float(answers.mean())) if len(answers) else 0.0


def accuracy_from_sums(sums: Floats, labels: int, n_answers: int, model: LabelModel, params: Any) -> Accuracy | None:
    """Expected accuracy with its range, from the number of labels estimated and the sum of their probabilities."""
    if not labels or n_answers < MIN_ANSWERS_PER_TASK * labels:
        return None
    return accuracy_range(float(sums[0]) / labels, labels, model, model.level_shift(params, n_answers / labels))


def accuracy_range(mean: float, tasks: int, model: LabelModel, shift: float = 0.0) -> Accuracy:
    """Eq (1)."""
    low, high = model.error_range
    p = min(max(mean, 1e-6), 1 - 1e-6)
    chance = DEVIATIONS / np.sqrt(p * (1 - p) * tasks)
    odds = float(np.log(p / (1 - p))) + shift
    value = float(expit(np.asarray(odds))) if shift else mean
    ends = (float(expit(odds + sign * np.hypot(side, chance))) for sign, side in ((-1, low), (1, high)))
    below, above = ends
    return Accuracy(value, min(below, value), max(above, value))


def _label_probabilities(result: LabelsResult) -> Floats:
    posterior = result.posterior
    label = classes_of(posterior, result.prevalence, np.full(len(posterior), -1))
    return posterior[np.arange(len(posterior)), label].astype(np.float64)


def _shift(result: LabelsResult) -> tuple[float, float]:
    """Return the shift d of eq (2) and half its 90 % range, found by bisection: the objective is concave in d."""
    found = left_out(result)
    odds, right = _odds(found.probability), found.right
    low, high = result.model.error_range
    middle, spread = (high - low) / 2 + _level_shift(result), max((high + low) / (2 * DEVIATIONS), 0.1)
    below, above = middle - MAX_SHIFT, middle + MAX_SHIFT
    for _ in range(BISECTIONS):
        shift = (below + above) / 2
        slope = float((right - expit(odds + shift)).sum()) - (shift - middle) / spread**2
        below, above = (shift, above) if slope > 0 else (below, shift)
    q = expit(odds + shift)
    return shift, float(1.645 / np.sqrt(float((q * (1 - q)).sum()) + spread**-2))


def _odds(p: Floats) -> Floats:
    p = np.clip(p, MIN_PROBABILITY, MAX_PROBABILITY)
    return np.asarray(np.log(p / (1 - p)))


def disagreement(result: LabelsResult) -> float | None:
    """Return U of eq (3), or None if no task has two answers."""
    layout = result.answers.layout
    n = result.answers.answers_per_task.astype(np.float64)
    several = n > 1
    if not several.any():
        return None
    agree = np.zeros(len(n))
    for part, votes in vote_parts(result.answers.kernels, layout, 1):
        agree[part] = (votes.astype(np.float64) * (votes - 1)).sum(1)
    return float((1 - agree[several] / (n * (n - 1))[several]).mean())


@enough_memory("cost_curve")
def cost_curve(result: LabelsResult) -> CostCurve:
    """Return the expected accuracy if every task got 1, 2, ... more answers, and if only the least certain tasks got
    five more, eqs (1) to (4).

    >>> import crowdwise as cw
    >>> result = cw.aggregate(cw.simulate.crowd(tasks=100, workers=10, seed=1).answers)
    >>> cw.cost_curve(result).points.columns
    ['plan', 'answers', 'accuracy', 'low', 'high', 'gain', 'gain_low', 'gain_high']
    """
    result = result_of(result, "labels", "cost_curve")
    now, U = expected_accuracy(result), disagreement(result)
    known = n_known(result)
    if now is None or U is None:
        return CostCurve(_points([]), U, 0)
    n = result.answers.answers_per_task[open_tasks(result)].astype(np.float64)
    T = len(n)

    def row(plan: str, added: int, x: float) -> tuple[Any, ...]:
        gain, error = gain_of(now, U, n, x)
        return plan, added, *after(now, U, n, x), gain, gain - error, min(gain + error, 1 - now.value)

    every = [row(EVERY, m * T, with_each(n, n + m)) for m in range(MAX_MORE + 1)]
    some = [0, *(tasks for tasks in (round(share * T) for share in WORST_SHARES) if tasks)]
    most = with_each(n, n + MAX_MORE)
    worst = [row(WORST, tasks * MAX_MORE, most * _part(tasks / T)) for tasks in some]
    return CostCurve(_points([*every, *worst]), U, known if known >= MIN_GOLD else 0)


def with_each(n: Floats, then: Floats | float) -> float:
    """Return the mean of 1 / n - 1 / then over tasks with n (T,) answers that will have `then` answers, or more."""
    return float((1 / n - 1 / np.maximum(n, then)).mean())


def _part(share: float) -> float:
    """Return the part of the gain that the least certain share of the tasks brings, eq (4)."""
    return float(1 - (1 - share) ** WORST_POWER)


def gain_of(now: Accuracy, U: float, n: Floats, x: float) -> tuple[float, float]:
    """Return the gain of more answers, eq (3) with x from `with_each`, and half its 90 % range, which has a part for
    chance, by the number of labels that change."""
    changed = U * x * min(1 + 0.4 * float(n.mean()), 4.0)
    error = DEVIATIONS * float(np.sqrt(changed / len(n) + (GAIN_ERROR * U * x) ** 2))
    return min(GAIN * U * x, 1 - now.value), error


def after(now: Accuracy, U: float, n: Floats, x: float) -> Accuracy:
    """Expected accuracy after more answers. Errors of the present accuracy and of the gain are added as independent
    ones; the range does not reach below that of the present accuracy."""
    gain, error = gain_of(now, U, n, x)
    value = now.value + gain
    low, high = (float(np.hypot(side, error)) for side in (now.value - now.low, now.high - now.value))
    return Accuracy(value, max(value - low, now.low), min(value + high, 1.0))


def one_more(result: LabelsResult) -> float | None:
    """Return the expected gain in accuracy from one more answer per task, or None if it is not known."""
    gains = cost_curve(result).points.filter(plan=EVERY)["gain"]
    return float(gains[1]) if len(gains) else None


def _points(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    numbers = ("accuracy", "low", "high", "gain", "gain_low", "gain_high")
    kinds = {"plan": pl.String, "answers": pl.Int64} | dict.fromkeys(numbers, pl.Float64)
    return pl.DataFrame(rows, schema=kinds, orient="row")
