"""Histograms of the answers, and confusion matrices of the best, the worst and all workers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ....kernels.layout import Floats, Ints
from ....result import LabelsResult
from ...parts import MatrixCell
from ...registry import section
from ...text import MAX_NAME_CHARS, count, percent, rounded, short
from .mixups import MIN_ANSWERS, class_counts
from .workers import MAX_CELLS_SHOWN, worker_cells

MAX_BINS = 24
WORKERS_EACH = 3  # of the best, and of the worst


@dataclass(frozen=True)
class Bin:
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Histogram:
    title: str
    unit: str
    counted: str  # what bars count: tasks, workers
    headline: str
    whole: bool  # whole numbers: a bin holds those from `low` to below `high`
    bins: list[Bin]


@dataclass(frozen=True)
class Matrix:
    title: str
    worker: str | None
    cells: list[MatrixCell]


@dataclass(frozen=True)
class Pictures:
    histograms: list[Histogram]  # answers per task, answers per worker, entropy of the votes
    headline: str
    matrices: list[Matrix]  # best workers, worst workers, all workers


@section(
    "labels", "pictures", order=70, nav="Distributions", title="Distributions and confusion matrices",
    intro="How many answers tasks and workers have, and how the best, the worst and all workers confuse the classes.",
    terms=("entropy", "confusion matrix"),
)  # fmt: skip
def pictures(result: LabelsResult) -> Pictures:
    answers = result.answers
    entropy = result.tasks["vote_entropy"].drop_nulls().to_numpy()
    per_task, per_worker = answers.answers_per_task, answers.answers_per_worker
    unanimous = float((entropy < 1e-6).mean()) if len(entropy) else 0.0
    histograms = [
        _histogram(
            "Answers per task", "answers", "tasks", per_task, f"The median task has {_typical(per_task)}."
        ),
        _histogram(
            "Answers per worker", "answers", "workers", per_worker, f"The median worker gave {_typical(per_worker)}, "
            f"the busiest worker {count(int(per_worker.max()))}.",
        ),
        _histogram(
            "Entropy of the votes", "bits", "tasks", entropy,
            f"Tasks on which all votes agree: {percent(unanimous, 0)}.",
        ),
    ]  # fmt: skip
    headline = "Rows: estimated true class. Columns: label given by the worker. Numbers: expected number of answers."
    return Pictures([h for h in histograms if h.bins], headline, _matrices(result))


def _matrices(result: LabelsResult) -> list[Matrix]:
    ranked = result.workers.with_row_index("number").filter(pl.col("skill").is_not_null())
    best = ranked.sort("low", "worker", descending=[True, False]).head(WORKERS_EACH)
    others = ranked.filter(~pl.col("number").is_in(best["number"].implode()))
    worst = others.sort("high", "worker").head(WORKERS_EACH)
    matrices = [
        Matrix(f"{title} worker {n}", short(row["worker"], MAX_NAME_CHARS), worker_cells(result, row["number"]))
        for title, table in (("Best", best), ("Worst", worst))
        for n, row in enumerate(table.iter_rows(named=True), 1)
    ]
    counts = class_counts(result)
    if counts is not None:
        cells = [
            MatrixCell(int(k), int(given), round(float(counts[k, given]), 1))
            for k, given in zip(*np.nonzero(counts >= MIN_ANSWERS), strict=True)
        ]
        matrices.append(Matrix("All workers", None, sorted(cells, key=lambda c: -c.value)[: 10 * MAX_CELLS_SHOWN]))
    return matrices


def _typical(answers: Ints) -> str:
    """Return the median number of answers in words."""
    median = float(np.median(answers))
    return f"{median:g} answer{'' if median == 1 else 's'}"


def _histogram(title: str, unit: str, counted: str, values: Ints | Floats, headline: str) -> Histogram:
    """At most `MAX_BINS` bins; whole numbers get whole bins."""
    whole = bool(np.issubdtype(values.dtype, np.integer))
    if not len(values):
        return Histogram(title, unit, counted, headline, whole, [])
    low, high = float(values.min()), float(values.max())
    if whole:
        width = max(1, int(np.ceil((high - low + 1) / MAX_BINS)))
        edges = low + width * np.arange(int((high - low) // width) + 2)
    else:
        edges = np.linspace(0, max(high, 1e-9), MAX_BINS + 1)
    counts, edges = np.histogram(values, edges)
    bins = [Bin(rounded(a), rounded(b), int(n)) for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)]
    return Histogram(title, unit, counted, headline, whole, bins)
