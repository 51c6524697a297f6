"""Tasks whose label is known, judged as if it were not: how good the probabilities are, and label sets that hold.

A label set contains the true label with a given probability, the coverage. Split conformal prediction (Vovk et al.
2005; Sadinle et al. 2019) needs nothing but known tasks that are chosen at random: with p_i the probability of the true
label of the n known tasks, in ascending order,
    (1)  threshold = p_(j),   j = floor((n + 1) (1 - coverage))
    (2)  set of a task = all classes with at least this probability, and the label found
All probabilities of (1) and (2) are those of the fit without known labels.
A further task misses its set with probability at most 1 - coverage, whatever the model, if known and other tasks are
judged alike. So the model is fitted again without the known labels. Where that is not possible (beside a classifier, or
if the model needs known labels), known tasks are judged by parameters to which they did not contribute (leave-one-out),
and the coverage is approximate.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl

from ..answers import Labels
from ..answers.arguments import is_number
from ..engine import Run
from ..errors import ParameterError, option
from ..kernels.layout import Bools, Floats, Ints
from ..kernels.special import classes_of
from ..limits import enough_memory
from ..result import LabelsResult
from ..result.base import result_of

COVERAGE = 0.9
MAX_QUICK_ANSWERS = 200_000  # up to which one more fit for the known tasks is quick
BINS = 10


class Judged(NamedTuple):
    """Tasks with known labels and answers."""

    tasks: Ints  # (G,) numbers
    truth: Ints  # (G,)
    posterior: Floats  # (G, K) as it would be if the labels were not known
    label: Ints  # (G,) the labels that they would get
    others: Floats  # (T, K) posteriors of all tasks, comparable with these

    @property
    def probability(self) -> Floats:
        """The probability (G,) of the label."""
        return self.posterior[np.arange(len(self.label)), self.label].astype(np.float64)

    @property
    def right(self) -> Bools:
        return np.asarray(self.label == self.truth)


_remembered: WeakKeyDictionary[LabelsResult, Judged] = WeakKeyDictionary()


def judged(result: LabelsResult) -> Judged:
    """Return the tasks with known labels and answers, as they would be judged if no label were known."""
    if result not in _remembered:
        found = _judged(result)
        if result.answers.n_answers > MAX_QUICK_ANSWERS:
            return found
        _remembered[result] = found
    return _remembered[result]


def _judged(result: LabelsResult) -> Judged:
    if result.model.kind != "labels" or result.model.needs_gold or not n_known(result):
        return left_out(result)
    again = result.model.fit(result.answers.with_gold(None), run=Run(seed=result.seed))
    return _of(result, again.posterior[_known(result.answers)], again.posterior, again.prevalence)


def left_out(result: LabelsResult) -> Judged:
    """Return the same, judged by parameters to which the task did not contribute. Other known labels did: this shows
    how good the labels of tasks without gold are."""
    posterior = result.model.without_gold(result.params, result.answers, _known(result.answers))
    return _of(result, posterior, result.posterior, result.prevalence)


def _of(result: LabelsResult, posterior: Floats, others: Floats, prevalence: Floats) -> Judged:
    tasks = _known(result.answers)
    label = classes_of(posterior, prevalence, np.full(len(tasks), -1))
    return Judged(tasks, result.answers.gold[tasks], posterior, label, others)


def _known(answers: Labels) -> Ints:
    """Return the numbers of tasks with known labels and answers."""
    return np.flatnonzero((answers.gold >= 0) & (answers.answers_per_task > 0))


def n_known(result: LabelsResult) -> int:
    """Return the number of tasks with known labels and answers, if the model can judge them without these labels."""
    return len(_known(result.answers)) if result.model.judges_known else 0


class Bin(NamedTuple):
    """Labels with similar probabilities."""

    low: float
    high: float
    tasks: int
    probability: float  # mean
    right: float  # share that is right
    right_low: float  # its 90 % interval
    right_high: float


def reliability(found: Judged) -> list[Bin]:
    """Return how often labels are right, by their probability; without empty bins."""
    p, right = found.probability, found.right
    place = np.minimum((p * BINS + 1e-9).astype(int), BINS - 1)
    bins = []
    for number in np.unique(place).tolist():
        own = place == number
        n, share = int(own.sum()), float(right[own].mean())
        low, high = _interval(share, n)
        bins.append(Bin(number / BINS, (number + 1) / BINS, n, float(p[own].mean()), share, low, high))
    return bins


def _interval(share: float, n: int, z: float = 1.645) -> tuple[float, float]:
    """Return the 90 % interval of a share (Wilson 1927)."""
    below = 1 + z * z / n
    middle = (share + z * z / (2 * n)) / below
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / below
    return max(0.0, min(share, float(middle - half))), min(1.0, max(share, float(middle + half)))


def check_coverage(coverage: float, answers: Labels) -> None:
    """Refuse a coverage that these answers cannot have."""
    if not is_number(coverage) or not 0 < float(coverage) < 1:
        raise ParameterError(f"{option('coverage', coverage)} is not a number above 0 and below 1, such as 0.9")
    known, needed = len(_known(answers)), known_needed(float(coverage))
    if known < needed:
        raise ParameterError(
            f"label sets of coverage {coverage:g} need at least {needed} tasks with answers whose label is known; "
            f"there are {known}. Give more known labels with {option('gold')}, or lower the coverage"
        )


def known_needed(coverage: float) -> int:
    """Return how many known tasks label sets of this coverage need."""
    return max(1, int(np.ceil(coverage / (1 - coverage) - 1e-9)))


def threshold(found: Judged, coverage: float) -> float:
    """Eq (1)."""
    p = np.sort(found.posterior[np.arange(len(found.truth)), found.truth].astype(np.float64))
    place = int(np.floor((len(p) + 1) * (1 - coverage) + 1e-9))
    return float(p[min(max(place, 1), len(p)) - 1])


@enough_memory("label_sets")
def label_sets(result: LabelsResult, coverage: float = COVERAGE) -> pl.DataFrame:
    """Return sets of labels that contain the true one with probability `coverage`: one row per task and label of its
    set, with columns task, label, probability and size (labels of the set). It needs known labels (gold) of tasks that
    were chosen at random: nine for a coverage of 0.9, and more for smaller sets. Probabilities are those of a fit
    without the known labels; a known task has its known label.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.crowd(tasks=200, workers=20, seed=1)
    >>> known = dict(sim.truth.head(50).rows())
    >>> sets = cw.label_sets(cw.aggregate(cw.Labels(sim.answers.frame(), gold=known)))
    >>> sets.columns, sets["task"].n_unique()
    (['task', 'label', 'probability', 'size'], 200)
    """
    result = result_of(result, "labels", "label_sets")
    if not result.model.judges_known:
        raise ParameterError(
            f"label sets are not available with the worker side {result.model.name!r}, which cannot judge a task as if "
            "its label were not known. Use workers='pooled', or a model of labels"
        )
    check_coverage(coverage, result.answers)
    answers, found = result.answers, judged(result)
    inside = (found.others >= threshold(found, float(coverage))) & (answers.gold < 0)[:, None]
    inside[np.arange(len(inside)), classes_of(result.posterior, result.prevalence, answers.gold)] = True
    task, of = np.nonzero(inside)
    p = np.where(answers.gold[task] >= 0, 1.0, found.others[task, of].astype(np.float64))
    return pl.DataFrame(
        [
            answers.tasks[task].alias("task"),
            answers.classes[of].alias("label"),
            pl.Series("probability", p),
            pl.Series("size", inside.sum(1)[task].astype(np.int64)),
        ]
    )
