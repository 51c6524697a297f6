"""Methods held against the truth: ROC curves, and what each says of workers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ..metrics import Judged, area
from ..result import LabelsResult
from .words import LONGEST, percent, quoted, rounded, short

POINTS = 1000  # of a curve
WORKERS = 300


TRUTH = "truth"  # the method that is no estimate


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


def roc_section(result: LabelsResult, judged: Judged | None) -> Roc | None:
    if judged is None or not judged.curves:
        return None
    names = result.classes.to_list()
    curves = [RocCurve(name, rounded(area(curve)), _thinned(curve)) for name, curve in judged.curves.items()]
    best = max(curves, key=lambda curve: curve.auc)
    sought = f"a task that is {quoted(names[-1])}" if len(names) == 2 else "the true class of a task"
    says = f"By {best.method} {sought} is put before another {100 * best.auc:.1f} times in 100."
    return Roc(says, len(names) - 1 if len(names) == 2 else None, curves)


def _thinned(curve: pl.DataFrame) -> list[tuple[float, float]]:
    at = np.unique(np.linspace(0, curve.height - 1, min(curve.height, POINTS)).astype(int))
    rows = curve[at].select("false_positive", "true_positive").rows()
    return [(rounded(x), rounded(y)) for x, y in rows]


def expertise_section(result: LabelsResult, judged: Judged | None) -> Expertise | None:
    if judged is None or not judged.skills:
        return None
    shown = result.workers.with_row_index("number").sort("answers", descending=True, maintain_order=True).head(WORKERS)
    place = {name: n for n, name in enumerate(shown["worker"].to_list())}
    class_of = {name: k for k, name in enumerate(result.classes.to_list())}
    rows: list[Expert] = []
    known = "true" in next(iter(judged.skills.values())).columns
    told = [(TRUTH, "true")] * known + [(name, "estimated") for name in judged.skills]
    for method, column in told:
        table = judged.skills.get(method, next(iter(judged.skills.values())))
        table = table.filter(pl.col("worker").is_in(list(place))).drop_nulls(column)
        order = sorted(table.select("worker", "label", column).rows(), key=lambda row: place[row[0]])
        rows += [Expert(short(w, LONGEST), class_of[label], method, rounded(share)) for w, label, share in order]
    mean = float(np.mean([row.share for row in rows])) if rows else 0.0
    says = f"The mean over workers and classes is {percent(mean)}."
    if known:
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
