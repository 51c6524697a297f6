"""The accuracy to expect from more answers."""

from __future__ import annotations

from dataclasses import dataclass

from ....acquisition import EVERY, CostCurve, cost_curve
from ....result import LabelsResult
from ...registry import section
from ...text import many, percent, rounded

DIGITS = 6  # of an accuracy: enough to write it as the summary does


@dataclass(frozen=True)
class CurvePoint:
    """Expected accuracy after some more answers."""

    plan: str  # "every task", "the most uncertain tasks"
    answers: int  # added
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class Curve:
    headline: str
    points: list[CurvePoint]


@section(
    "labels", "curve", order=50, nav="More answers", title="The value of more answers",
    intro="Expected accuracy of the labels after more answers. The y axis is scaled to the lines; the shaded "
          "range extends beyond it.",
    terms=("expected accuracy",),
)  # fmt: skip
def curve(result: LabelsResult, *, cost: CostCurve | None = None) -> Curve | None:
    found = cost_curve(result, check=False) if cost is None else cost
    points = [CurvePoint(plan, n, *(rounded(p, DIGITS) for p in numbers)) for plan, n, *numbers in found.points.rows()]
    if not points:
        return None
    now, more = [point for point in points if point.plan == EVERY][:2]
    targeted = [p.accuracy for p in points if p.plan != EVERY and p.answers <= more.answers]
    headline = _gain(*(percent(p) for p in (now.accuracy, more.accuracy, max(targeted, default=more.accuracy))))
    if found.check is None:
        return Curve(f"{headline} This curve was not checked.", points)
    headline += (
        f" Check: one answer was removed from each of {many(found.check.tasks, 'task')}; the curve predicted "
        f"{percent(found.check.predicted)}, and {percent(found.check.observed)} was observed."
    )
    return Curve(headline, points)


def _gain(now: str, more: str, targeted: str) -> str:
    """Return what one more answer per task would change; increases that rounding hides are not called so."""
    if more == now:
        headline = f"One more answer per task would hardly change expected accuracy ({now})"
    else:
        headline = f"One more answer per task would raise expected accuracy from {now} to {more}"
    if targeted != more:
        headline += f"; the same number of answers to the most uncertain tasks would raise it to {targeted}"
    return f"{headline}."
