"""The lecture's pictures of a dataset: three histograms, and confusion matrices of the best, the worst and all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ..kernels.layout import Floats, Ints
from ..result import LabelsResult
from .frame import Cells
from .people import CELLS, worker_cells
from .words import LONGEST, count, percent, rounded, short


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
    histograms: list[Histogram]  # answers a task, answers a worker, entropy of the soft votes
    says: str
    matrices: list[Matrix]  # best workers, worst workers, the average


def pictures_section(result: LabelsResult, counts: Floats | None) -> Pictures:
    answers = result.answers
    entropy = result.tasks["vote_entropy"].drop_nulls().to_numpy()
    per_task, per_worker = answers.answers_per_task, answers.answers_per_worker
    alike = float((entropy < 1e-6).mean()) if len(entropy) else 0.0
    histograms = [
        _histogram("Answers a task", "answers", per_task, f"The typical task has {np.median(per_task):g} answers."),
        _histogram(
            "Answers a worker", "answers", per_worker, f"The typical worker gave {np.median(per_worker):g} answers; "
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
    return Histogram(title, unit, says, whole, [Bin(rounded(a), rounded(b), int(n)) for a, b, n in pairs])
