"""The accuracy to expect from more answers."""

from __future__ import annotations

from dataclasses import dataclass

from ....acquisition import EVERY, CostCurve, cost_curve
from ....answers.arguments import check_given
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
    check_given("cost", cost, CostCurve, "crowdwise.cost_curve(result)")
    found = cost_curve(result) if cost is None else cost
    rows = found.points.select("plan", "answers", "accuracy", "low", "high").rows()
    points = [CurvePoint(plan, n, *(rounded(p, DIGITS) for p in numbers)) for plan, n, *numbers in rows]
    if not points:
        return None
    return Curve(_headline(points, found), points)


def _headline(points: list[CurvePoint], found: CostCurve) -> str:
    """Return what more answers would bring, in words."""
    gold, gains = found.gold, found.points.filter(plan=EVERY).select("gain", "gain_low", "gain_high").rows()
    if found.disagreement == 0 and not gold:
        return "Everybody agrees. That cannot show errors that all workers make."
    every = [point for point in points if point.plan == EVERY]
    now, five = every[0], every[-1]
    checked = f"Checked on {many(gold, 'known task')}: " if gold else ""
    ends = f"{percent(now.low, 0)} to {percent(now.high, 0)}"
    known = f"{checked}about {percent(now.accuracy, 0)} of the labels are right ({ends})"
    first = f"{known[0].upper()}{known[1:]}."
    more = [f"One more answer per task: {_points(*gains[1])}.", f"Five more: {_points(*gains[-1])}."]
    some = [p for p in points if p.plan != EVERY and 0 < p.answers <= 0.4 * five.answers]
    if some and five.accuracy > now.accuracy:
        share = (some[-1].accuracy - now.accuracy) / (five.accuracy - now.accuracy)
        tasks = some[-1].answers / five.answers
        more.append(
            f"Five more only for the {percent(tasks, 0)} least certain tasks: about {percent(share, 0)} of that, for "
            f"{percent(tasks, 0)} of the answers."
        )
    return " ".join([first, *more, "Errors that the workers share stay."])


def _points(gain: float, low: float, high: float) -> str:
    """Return a gain in points, with its range."""
    if gain < 0.0005:
        return "hardly any gain"
    least = "may bring nothing" if low < 0.0005 else f"at least +{100 * low:.1f}"
    return f"about +{100 * gain:.1f} points ({least}, at most +{100 * high:.1f})"
