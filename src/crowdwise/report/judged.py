"""Methods compared with the truth: ROC curves, skills; and groups of workers, beside the true ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ..kernels.layout import Bools, Floats, Ints
from ..kernels.special import divergence
from ..metrics import Evaluation, area, true_counts
from ..result import LabelsResult
from .frame import Cells
from .words import LONGEST, count, known, percent, quoted, short

POINTS = 1000  # of a curve
WORKERS = 300
TRUTH = "truth"  # the method that is no estimate
LEAST = 0.0005  # probabilities that are shown
MANY, KEPT = 12, 10  # of more classes than that, so many are shown: those that are mixed up most
BUSY = 5  # answers for every class that a worker must have given to be compared
CELLS = 1 << 22  # numbers in the matrices of workers that are compared


@dataclass(frozen=True)
class RocCurve:
    """How many of one class are found, against how many others are taken for it, as the threshold falls."""

    method: str
    auc: float
    points: list[tuple[float, float]]  # (false positive rate, true positive rate), from (0, 0) to (1, 1)


@dataclass(frozen=True)
class Roc:
    """A curve a method, the method of this result first."""

    says: str
    positive: int | None  # the class that is sought; None: every class against the others, together
    curves: list[RocCurve]


@dataclass(frozen=True)
class Expert:
    """How often a worker names a class where it is true."""

    worker: str
    label: int
    method: str  # who says so: a method, or TRUTH
    share: float


@dataclass(frozen=True)
class Expertise:
    """What methods say of workers, beside the truth where it is known."""

    says: str
    methods: list[str]  # in the order to show; TRUTH comes first where it is known
    rows: list[Expert]


def roc_section(result: LabelsResult, judged: Evaluation | None) -> Roc | None:
    if judged is None or not judged.curves:
        return None
    names = result.classes.to_list()
    curves = [RocCurve(name, known(area(curve)), _thinned(curve)) for name, curve in judged.curves.items()]
    best = max(curves, key=lambda curve: curve.auc)
    sought = f"a task that is {quoted(names[-1])}" if len(names) == 2 else "the true class of a task"
    says = f"By {best.method} {sought} is put before another {100 * best.auc:.1f} times in 100."
    return Roc(says, len(names) - 1 if len(names) == 2 else None, curves)


def _thinned(curve: pl.DataFrame) -> list[tuple[float, float]]:
    at = np.unique(np.linspace(0, curve.height - 1, min(curve.height, POINTS)).astype(int))
    rows = curve[at].select("false_positive", "true_positive").rows()
    return [(known(x), known(y)) for x, y in rows]


def expertise_section(result: LabelsResult, judged: Evaluation | None) -> Expertise | None:
    if judged is None or not judged.skills:
        return None
    shown = result.workers.with_row_index("number").sort("answers", descending=True, maintain_order=True).head(WORKERS)
    place = {name: n for n, name in enumerate(shown["worker"].to_list())}
    class_of = {name: k for k, name in enumerate(result.classes.to_list())}
    rows: list[Expert] = []
    with_truth = "true" in next(iter(judged.skills.values())).columns
    told = [(TRUTH, "true")] * with_truth + [(name, "estimated") for name in judged.skills]
    for method, column in told:
        table = judged.skills.get(method, next(iter(judged.skills.values())))
        table = table.filter(pl.col("worker").is_in(list(place))).drop_nulls(column)
        order = sorted(table.select("worker", "label", column).rows(), key=lambda row: place[row[0]])
        rows += [Expert(short(w, LONGEST), class_of[label], method, known(share)) for w, label, share in order]
    mean = float(np.mean([row.share for row in rows])) if rows else 0.0
    says = f"The mean over workers and classes is {percent(mean)}."
    if with_truth:
        error = {name: _error(table) for name, table in judged.skills.items()}
        best = min(error, key=lambda name: error[name])
        says = (
            f"{best[0].upper()}{best[1:]} comes closest to the truth, off by {100 * error[best]:.1f} points on average."
        )
    return Expertise(says, [method for method, _ in told], rows)


def _error(table: pl.DataFrame) -> float:
    """Mean error of skills, each weighed by the answers behind it."""
    both = table.drop_nulls("true")
    apart = (both["estimated"] - both["true"]).abs().to_numpy()
    return float(np.average(apart, weights=both["answers"].to_numpy())) if len(apart) else 0.0


@dataclass(frozen=True)
class Group:
    """Workers who err alike."""

    share: float  # of the crowd
    workers: float  # expected number
    similarity: float  # of its matrix to the identity, from 0 to 1
    entropy: float  # of a row of its matrix, in bits
    cells: Cells  # of its matrix: (true class, class told, probability from 0 to 1)


@dataclass(frozen=True)
class Compared:
    """A worker's confusion matrix as it was, and as it was estimated."""

    title: str  # "Told best", "Told worst", "All answers together"
    worker: str | None
    divergence: float  # of the two, in bits from 0 to 1
    truth: Cells  # probabilities, as in Group
    estimated: Cells


@dataclass(frozen=True)
class Groups:
    says: str
    note: str  # what a reader must know of how far groups can be told apart; may be empty
    groups: list[Group]  # the largest first
    compared_says: str
    compared: list[Compared]  # where the truth is known


def groups_section(result: LabelsResult, judged: Evaluation | None) -> Groups | None:
    found = result.model.grouping(result.params)
    if found is None:
        return None
    kept = _mixed_most(found.matrices)
    groups = [
        Group(
            known(row["share"]), known(row["workers"], 1), known(row["similarity"]), known(row["entropy"]),
            _cells(matrix, kept),
        )
        for row, matrix in zip(result.groups.iter_rows(named=True), found.matrices, strict=True)
    ]  # fmt: skip
    one = len(groups) == 1
    best = max(range(len(groups)), key=lambda m: groups[m].similarity)
    says = "All workers are taken as one: they have one confusion matrix."
    if not one:
        largest = percent(groups[0].share, 0)
        says = (
            f"Workers fall into {len(groups)} groups; the largest holds {largest} of the crowd, and group {best + 1} "
        )
        says += "errs least."
    note = (
        ""
        if result.model.shares_truth or one
        else "Answers here have a truth each, and the data know these matrices by their weighted sum alone: any other "
        "split of that sum fits as well."
    )
    return Groups(says, note, groups, *_compared(result, judged))


def _compared(result: LabelsResult, judged: Evaluation | None) -> tuple[str, list[Compared]]:
    """What is said, then the whole crowd, and of the busier workers the two told best and the two told worst."""
    if judged is None or judged.gold is None:
        return "", []
    answers, K = result.answers, result.answers.n_classes
    busy = np.flatnonzero(answers.answers_per_worker >= BUSY * K)
    busy = busy[np.argsort(-answers.answers_per_worker[busy], kind="stable")][: max(1, CELLS // K**2)]
    counts, estimated = true_counts(answers, judged.gold, busy), result.confusions(busy)
    some_true = counts.any((1, 2))
    busy, counts, estimated = busy[some_true], counts[some_true], estimated[some_true]
    apart = np.array([_apart(each, told) for each, told in zip(counts, estimated, strict=True)])
    out = [_pair("All answers together", None, true_counts(answers, judged.gold)[0], result.average_confusion)]
    order = np.argsort(apart, kind="stable")
    some = min(2, len(order) // 2)
    for title, chosen in (("Told best", order[:some]), ("Told worst", order[::-1][:some])):
        out += [_pair(title, short(answers.workers[int(busy[n])], LONGEST), counts[n], estimated[n]) for n in chosen]
    says = "True matrices are counted from the answers to tasks whose truth is known."
    if len(apart):
        says += (
            f" Of the {count(len(apart))} workers with at least {BUSY * K} answers, the estimated ones are "
            f"{apart.mean():.3f} bits from them on average (0: the same, 1: nothing in common)."
        )
    return says, out


def _pair(title: str, worker: str | None, counts: Floats, estimated: Floats) -> Compared:
    """Rows of classes that were never met say nothing, and are left out on both sides."""
    met, true = counts.sum(1) > 0, _true(counts)
    kept = _mixed_most(np.stack([true, estimated]))
    cells = (_cells(each, kept, met) for each in (true, estimated))
    return Compared(title, worker, known(_apart(counts, estimated)), *cells)


def _apart(counts: Floats, estimated: Floats) -> float:
    met = counts.sum(1) > 0
    return float(divergence(_true(counts[met]), estimated[met])) if met.any() else 0.0


def _true(counts: Floats) -> Floats:
    return np.asarray(counts / np.maximum(counts.sum(-1, keepdims=True), 1))


def _mixed_most(matrices: Floats) -> Ints:
    """The classes that are shown of matrices (M, K, K), in their own order."""
    K = matrices.shape[-1]
    wrong = matrices.sum(0) * (1 - np.eye(K))
    mixed = np.argsort(-(wrong.sum(0) + wrong.sum(1)), kind="stable")
    return np.arange(K) if K <= MANY else np.sort(mixed[:KEPT])


def _cells(matrix: Floats, kept: Ints, rows: Bools | None = None) -> Cells:
    """What is worth showing of a matrix."""
    shown = np.zeros(matrix.shape, bool)
    shown[np.ix_(kept, kept)] = True
    shown &= matrix >= LEAST
    if rows is not None:
        shown &= rows[:, None]
    cells = [(int(k), int(told), known(float(matrix[k, told]))) for k, told in zip(*np.nonzero(shown), strict=True)]
    return sorted(cells, key=lambda cell: -cell[2])
