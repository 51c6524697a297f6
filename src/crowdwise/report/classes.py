"""The sections on classes: shares, mix-ups, and the histograms and confusion matrices of a dataset."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ..kernels.layout import Floats, Ints
from ..result import LabelsResult
from .frame import Cells
from .people import CELLS, worker_cells
from .words import LONGEST, count, known, percent, quoted, short

CLASSES = 1000  # up to which classes are set against each other


@dataclass(frozen=True)
class ClassShare:
    """How often a class is told, and how often it seems true."""

    label: int
    votes: float
    truth: float


@dataclass(frozen=True)
class MixUp:
    """A class told in place of another."""

    truth: int
    said: int
    answers: float  # expected
    share: float  # of the answers to tasks of this truth


@dataclass(frozen=True)
class MixUps:
    says: str
    rows: list[MixUp]


def _votes_by_class(result: LabelsResult) -> Floats:
    layout = result.answers.layout
    votes = np.bincount(layout.row_label, np.diff(layout.row_ptr), minlength=layout.n_classes)
    return np.asarray(votes / max(votes.sum(), 1))


def prevalence(result: LabelsResult) -> list[ClassShare]:
    votes = _votes_by_class(result)
    order = np.argsort(-result.prevalence, kind="stable")
    rows = [ClassShare(int(k), known(votes[k]), known(result.prevalence[k])) for k in order[:100].tolist()]
    return rows


def prevalence_says(result: LabelsResult) -> str:
    votes, names = _votes_by_class(result), result.classes
    gap = votes - result.prevalence
    if len(names) < 2:
        return "There is one class only."
    over, under = int(gap.argmax()), int(gap.argmin())
    if gap[over] < 0.005:
        return "Every class is told about as often as it seems true."
    return (
        f"{quoted(names[over])} is told more often than it seems true ({percent(votes[over])} against "
        f"{percent(result.prevalence[over])}), {quoted(names[under])} less often ({percent(votes[under])} against "
        f"{percent(result.prevalence[under])})."
    )


def class_counts(result: LabelsResult) -> Floats | None:
    """(K, K) expected answers by true class and label told; None with very many classes."""
    layout, K = result.answers.layout, result.answers.n_classes
    if K > CLASSES:
        return None
    counts = result.answers.kernels.confusion_counts(layout, result.posterior, 1)
    return np.stack([np.bincount(layout.row_label, counts[:, k], minlength=K) for k in range(K)])


def mixups(counts: Floats | None, result: LabelsResult) -> MixUps:
    if counts is None:
        return MixUps(f"There are too many classes ({result.answers.n_classes}) to set against each other.", [])
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    total = counts.sum(1)
    pairs = np.argsort(-wrong, axis=None, kind="stable")[:15]
    rows = [
        MixUp(int(k), int(told), known(wrong[k, told], 1), known(wrong[k, told] / max(total[k], 1e-9)))
        for k, told in zip(*np.unravel_index(pairs, wrong.shape), strict=True)
        if wrong[k, told] >= 0.5
    ]
    if not rows:
        return MixUps("Hardly any class is told in place of another.", [])
    first, names = rows[0], result.classes
    said, truth = quoted(names[first.said]), quoted(names[first.truth])
    says = (
        f"Most often {said} is told where the truth seems to be {truth}: "
        f"about {first.answers:.0f} answers, {percent(first.share, 0)} of those to such tasks."
    )
    return MixUps(says, rows)


@dataclass(frozen=True)
class Bin:
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Histogram:
    title: str
    unit: str
    says: str
    whole: bool  # whole numbers: a bin holds those from `low` to below `high`
    bins: list[Bin]


@dataclass(frozen=True)
class Matrix:
    title: str
    worker: str | None
    cells: Cells


@dataclass(frozen=True)
class Pictures:
    histograms: list[Histogram]  # answers per task, answers per worker, entropy of the soft votes
    says: str
    matrices: list[Matrix]  # best workers, worst workers, the average


def pictures_section(result: LabelsResult, counts: Floats | None) -> Pictures:
    answers = result.answers
    entropy = result.tasks["vote_entropy"].drop_nulls().to_numpy()
    per_task, per_worker = answers.answers_per_task, answers.answers_per_worker
    alike = float((entropy < 1e-6).mean()) if len(entropy) else 0.0
    histograms = [
        _histogram("Answers per task", "answers", per_task, f"The typical task has {np.median(per_task):g} answers."),
        _histogram(
            "Answers per worker", "answers", per_worker, f"The typical worker gave {np.median(per_worker):g} answers; "
            f"the busiest {count(int(per_worker.max()))}.",
        ),
        _histogram("Entropy of the votes", "bits", entropy, f"On {percent(alike, 0)} of the tasks all answers agree."),
    ]  # fmt: skip
    ranked = result.workers.with_row_index("number").filter(pl.col("skill").is_not_null())
    best = ranked.sort("low", "worker", descending=[True, False]).head(3)
    worst = ranked.filter(~pl.col("number").is_in(best["number"].implode())).sort("high", "worker").head(3)
    matrices = [
        Matrix(f"{title} worker {n}", short(row["worker"], LONGEST), worker_cells(result, row["number"]))
        for title, table in (("Best", best), ("Worst", worst))
        for n, row in enumerate(table.iter_rows(named=True), 1)
    ]
    if counts is not None:
        cells = [
            (int(k), int(told), round(float(counts[k, told]), 1))
            for k, told in zip(*np.nonzero(counts >= 0.5), strict=True)
        ]
        matrices.append(Matrix("All workers together", None, sorted(cells, key=lambda cell: -cell[2])[: 10 * CELLS]))
    says = "Rows are the truth as it seems, columns what was told; numbers are expected answers."
    return Pictures([h for h in histograms if h.bins], says, matrices)


def _histogram(title: str, unit: str, values: Ints | Floats, says: str) -> Histogram:
    """At most 24 bins; whole numbers get whole bins."""
    whole = bool(np.issubdtype(values.dtype, np.integer))
    if not len(values):
        return Histogram(title, unit, says, whole, [])
    low, high = float(values.min()), float(values.max())
    if whole:
        width = max(1, int(np.ceil((high - low + 1) / 24)))
        edges = low + width * np.arange(int((high - low) // width) + 2)
    else:
        edges = np.linspace(0, max(high, 1e-9), 25)
    counts, edges = np.histogram(values, edges)
    pairs = zip(edges[:-1], edges[1:], counts, strict=True)
    return Histogram(title, unit, says, whole, [Bin(known(a), known(b), int(n)) for a, b, n in pairs])
