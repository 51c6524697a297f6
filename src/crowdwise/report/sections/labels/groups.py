"""Groups of workers with similar errors, and workers beside the truth where it is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....kernels.layout import Bools, Floats, Ints
from ....kernels.special import divergence
from ....metrics import Evaluation, true_counts
from ....result import LabelsResult
from ...parts import MatrixCell
from ...registry import section
from ...text import MAX_NAME_CHARS, count, percent, rounded, short

MIN_PROBABILITY = 0.0005  # of a cell that is shown
MAX_CLASSES_WHOLE = 12  # up to which all classes are shown; of more, those that are mixed up most
MAX_CLASSES_CUT = 10  # classes shown of more than those
MIN_ANSWERS_PER_CLASS = 5  # of a worker who is compared with the truth
MAX_CELLS_COMPARED = 1 << 22  # numbers in the matrices of workers who are compared
WORKERS_EACH = 2  # shown of those estimated best, and worst


@dataclass(frozen=True)
class Group:
    share: float  # of the workers
    workers: float  # expected number
    similarity: float  # of its matrix to the identity, from 0 to 1
    entropy: float  # of a row of its matrix, in bits
    cells: list[MatrixCell]  # probabilities


@dataclass(frozen=True)
class Compared:
    """The true and the estimated confusion matrix of a worker, or of all workers."""

    title: str  # "All workers", "Estimated best", "Estimated worst"
    worker: str | None
    divergence: float  # of the two, in bits from 0 to 1
    truth: list[MatrixCell]  # probabilities
    estimated: list[MatrixCell]


@dataclass(frozen=True)
class Groups:
    headline: str
    note: str  # a caution about groups that the data cannot separate; may be empty
    groups: list[Group]  # the largest first
    compared_headline: str
    compared: list[Compared]  # where the truth is known

    @property
    def terms(self) -> Sequence[str]:
        return ("divergence",) if self.compared else ()


@section(
    "labels", "groups", order=90, title="Groups of workers", nav="Groups",
    intro="Workers of a group make similar errors, so each group has one confusion matrix. Rows: true class. Columns: "
          "label given.",
    terms=("group", "confusion matrix", "similarity to the identity", "entropy of a row"),
)  # fmt: skip
def groups(result: LabelsResult, *, judged: Evaluation | None = None) -> Groups | None:
    found = result.model.grouping(result.params)
    if found is None:
        return None
    shown = _mixed_up_most(found.matrices)
    rows = [
        Group(
            rounded(row["share"]), rounded(row["workers"], 1), rounded(row["similarity"]), rounded(row["entropy"]),
            _cells(matrix, shown),
        )
        for row, matrix in zip(result.groups.iter_rows(named=True), found.matrices, strict=True)
    ]  # fmt: skip
    headline, note = "All workers are one group, with one confusion matrix.", ""
    if len(rows) > 1:
        best = max(range(len(rows)), key=lambda m: rows[m].similarity)
        headline = (
            f"There are {len(rows)} groups; the largest holds {percent(rows[0].share, 0)} of the workers, and group "
            f"{best + 1} makes the fewest errors."
        )
        if not result.model.shares_truth:
            note = (
                "In this model every answer has a true class of its own, so the data determine only the weighted sum "
                "of these matrices. Other groups with the same sum fit equally well."
            )
    return Groups(headline, note, rows, *_compared(result, judged))


def _compared(result: LabelsResult, judged: Evaluation | None) -> tuple[str, list[Compared]]:
    """Return a sentence, and matrices of all workers and of the busy workers estimated best and worst."""
    if judged is None or judged.gold is None:
        return "", []
    answers, K = result.answers, result.answers.n_classes
    busy = np.flatnonzero(answers.answers_per_worker >= MIN_ANSWERS_PER_CLASS * K)
    busy = busy[np.argsort(-answers.answers_per_worker[busy], kind="stable")][: max(1, MAX_CELLS_COMPARED // K**2)]
    counts, estimated = true_counts(answers, judged.gold, busy), result.confusions(busy)
    judgeable = counts.any((1, 2))
    busy, counts, estimated = busy[judgeable], counts[judgeable], estimated[judgeable]
    distance = np.array([_distance(each, other) for each, other in zip(counts, estimated, strict=True)])
    out = [_pair("All workers", None, true_counts(answers, judged.gold)[0], result.average_confusion)]
    order = np.argsort(distance, kind="stable")
    each = min(WORKERS_EACH, len(order) // 2)
    for title, chosen in (("Estimated best", order[:each]), ("Estimated worst", order[::-1][:each])):
        names = [short(answers.workers[int(busy[n])], MAX_NAME_CHARS) for n in chosen]
        out += [_pair(title, name, counts[n], estimated[n]) for name, n in zip(names, chosen, strict=True)]
    headline = "True matrices are counted from the answers to tasks whose true class is known."
    if len(distance):
        headline += (
            f" For the {count(len(distance))} workers with at least {MIN_ANSWERS_PER_CLASS * K} answers, the estimated "
            f"matrices diverge from the true ones by {distance.mean():.3f} bits on average (0: the same, 1: nothing in "
            "common)."
        )
    return headline, out


def _pair(title: str, worker: str | None, counts: Floats, estimated: Floats) -> Compared:
    """Rows of classes without any answer are left empty in both matrices."""
    answered, true = counts.sum(1) > 0, _shares(counts)
    shown = _mixed_up_most(np.stack([true, estimated]))
    cells = (_cells(each, shown, answered) for each in (true, estimated))
    return Compared(title, worker, rounded(_distance(counts, estimated)), *cells)


def _distance(counts: Floats, estimated: Floats) -> float:
    answered = counts.sum(1) > 0
    return float(divergence(_shares(counts[answered]), estimated[answered])) if answered.any() else 0.0


def _shares(counts: Floats) -> Floats:
    return np.asarray(counts / np.maximum(counts.sum(-1, keepdims=True), 1))


def _mixed_up_most(matrices: Floats) -> Ints:
    """Return the classes to show of matrices (M, K, K), in their own order."""
    K = matrices.shape[-1]
    wrong = matrices.sum(0) * (1 - np.eye(K))
    order = np.argsort(-(wrong.sum(0) + wrong.sum(1)), kind="stable")
    return np.arange(K) if K <= MAX_CLASSES_WHOLE else np.sort(order[:MAX_CLASSES_CUT])


def _cells(matrix: Floats, classes: Ints, rows: Bools | None = None) -> list[MatrixCell]:
    """Return the cells of these classes that are not close to zero, the largest first."""
    shown = np.zeros(matrix.shape, bool)
    shown[np.ix_(classes, classes)] = True
    shown &= matrix >= MIN_PROBABILITY
    if rows is not None:
        shown &= rows[:, None]
    cells = [MatrixCell(int(i), int(j), rounded(float(matrix[i, j]))) for i, j in zip(*np.nonzero(shown), strict=True)]
    return sorted(cells, key=lambda cell: -cell.value)
