"""The section on groups of workers: what each confuses, and, where the truth is known, how well single workers were
told."""

from __future__ import annotations

import numpy as np

from ..kernels.divergence import divergence
from ..kernels.layout import Floats
from ..result import Result
from ..scoring import Judged, true_counts
from .page import LONGEST, Cells, Compared, Group, Groups
from .words import percent, rounded, short

LEAST = 0.0005  # probabilities that are shown
CELLS = 2500  # of a matrix, the largest
BUSY = 5  # answers for every class that a worker must have given to be compared
MOST = 3000  # workers among whom the best and worst told are sought


def groups_section(result: Result, judged: Judged | None) -> Groups | None:
    found = result.model.grouping(result.params)
    if found is None:
        return None
    table = result.groups
    groups = [
        Group(
            rounded(row["share"]), rounded(row["workers"], 1), rounded(row["similarity"]), rounded(row["entropy"]),
            _cells(matrix),
        )
        for row, matrix in zip(table.iter_rows(named=True), found.matrices, strict=True)
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
    compared = _compared(result, judged)
    mean = float(np.mean([each.divergence for each in compared])) if compared else 0.0
    told = f"The matrices shown are {mean:.3f} bits from the true ones on average (0: the same, 1: nothing in common)."
    return Groups(says, note, groups, told if compared else "", compared)


def _compared(result: Result, judged: Judged | None) -> list[Compared]:
    """The whole crowd, and of the busier workers the two told best and the two told worst."""
    if judged is None or judged.gold is None:
        return []
    answers, K = result.answers, result.answers.n_classes
    busy = np.flatnonzero(answers.answers_per_worker >= BUSY * K)
    busy = busy[np.argsort(-answers.answers_per_worker[busy], kind="stable")][: max(1, MOST // K)]
    counts, estimated = true_counts(answers, judged.gold, busy), result.confusions(busy)
    met = counts.sum(2) > 0
    apart = np.array(
        [float(divergence(_true(c[m]), e[m])) for c, e, m in zip(counts, estimated, met, strict=True) if m.any()]
    )
    busy, counts, estimated = (each[met.any(1)] for each in (busy, counts, estimated))
    everybody = true_counts(answers, judged.gold)[0]
    out = [_pair("All answers together", None, everybody, result.average_confusion)]
    order = np.argsort(apart, kind="stable")
    some = min(2, len(order) // 2)
    for title, chosen in (("Told best", order[:some]), ("Told worst", order[::-1][:some])):
        out += [_pair(title, short(answers.workers[int(busy[n])], LONGEST), counts[n], estimated[n]) for n in chosen]
    return out


def _pair(title: str, worker: str | None, counts: Floats, estimated: Floats) -> Compared:
    """Rows of classes that were never met say nothing, and are left out on both sides."""
    met = counts.sum(1) > 0
    apart = float(divergence(_true(counts[met]), estimated[met])) if met.any() else 0.0
    return Compared(title, worker, rounded(apart), _cells(_true(counts), met), _cells(estimated, met))


def _true(counts: Floats) -> Floats:
    return np.asarray(counts / np.maximum(counts.sum(-1, keepdims=True), 1))


def _cells(matrix: Floats, rows: Floats | None = None) -> Cells:
    """What is worth showing of a matrix."""
    shown = (matrix >= LEAST) if rows is None else (matrix >= LEAST) & rows[:, None]
    cells = [(int(k), int(told), rounded(float(matrix[k, told]))) for k, told in zip(*np.nonzero(shown), strict=True)]
    return sorted(cells, key=lambda cell: -cell[2])[:CELLS]
