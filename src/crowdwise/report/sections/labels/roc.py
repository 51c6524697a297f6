"""ROC curves of methods, where the truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from ....metrics import Evaluation, area
from ....result import LabelsResult
from ...parts import spread
from ...registry import section
from ...text import quoted, rounded

MAX_CURVE_POINTS = 1000


class RocPoint(NamedTuple):
    false_positive: float
    true_positive: float


@dataclass(frozen=True)
class RocCurve:
    method: str
    auc: float
    points: list[RocPoint]  # from (0, 0) to (1, 1)


@dataclass(frozen=True)
class Roc:
    """One curve per method, the method of this result first."""

    headline: str
    positive: int | None  # the class that is looked for; None: each class against the others, averaged
    curves: list[RocCurve]


@section(
    "labels", "roc", order=110, nav="ROC", title="True and false positives (ROC)",
    intro="The share of a class that is found, against the share of other tasks that are taken for it, as the "
          "threshold falls. A higher ROC curve, with a larger area under the curve, is better; the thin diagonal is "
          "chance.",
    terms=("ROC curve", "area under the curve"),
)  # fmt: skip
def roc(result: LabelsResult, *, judged: Evaluation | None = None) -> Roc | None:
    if judged is None or not judged.curves:
        return None
    names = result.classes.to_list()
    curves = [RocCurve(name, rounded(area(curve)), _points(curve)) for name, curve in judged.curves.items()]
    best = max(curves, key=lambda curve: curve.auc)
    what = (
        f"a task of class {quoted(names[-1])} above another task" if len(names) == 2 else "the true class above another"
    )
    headline = f"The best method, {best.method}, ranks {what} {100 * best.auc:.1f} times in 100."
    return Roc(headline, len(names) - 1 if len(names) == 2 else None, curves)


def _points(curve: pl.DataFrame) -> list[RocPoint]:
    rows = curve[spread(curve.height, MAX_CURVE_POINTS)].select("false_positive", "true_positive").rows()
    return [RocPoint(rounded(x), rounded(y)) for x, y in rows]
