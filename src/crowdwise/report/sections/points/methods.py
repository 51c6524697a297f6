"""Methods compared with the truth, over many runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ....answers.arguments import check_list
from ....errors import ParameterError
from ....result import PointsResult
from ...parts import spread
from ...registry import section
from ...text import MAX_NAME_CHARS, percent, quoted, rounded, short

MAX_CURVE_POINTS = 300


class ErrorPoint(NamedTuple):
    error: float
    share: float  # of the runs with at most this error


@dataclass(frozen=True)
class Method:
    method: str
    success: float | None  # share of the runs that found every object, and no other
    mae: float | None  # mean absolute error of the reliabilities
    runs: int  # with an error
    median: float | None  # of the errors
    curve: list[ErrorPoint]


@dataclass(frozen=True)
class Methods:
    headline: str
    rows: list[Method]


WANTED = "a list of mappings with method, success, ase and mae"


@section(
    "points", "methods", order=40, nav="Methods", title="Methods compared with the truth",
    intro="How often each method finds the true objects, and the error of their centres when it does. A curve further "
          "to the left is better.",
    terms=("success", "ASE", "MAE"),
)  # fmt: skip
def methods(result: PointsResult, *, judged: Sequence[Mapping[str, Any]] | None = None) -> Methods | None:
    """`judged` has one mapping per method: `method`, `success` (share of runs), `ase` (errors of the centres, one per
    run) and `mae` (of the reliabilities)."""
    judged = None if judged is None else check_list("judged", judged, WANTED)
    if not judged:
        return None
    if not all(isinstance(each, Mapping) and "method" in each for each in judged):
        raise ParameterError(f"judged is {judged!r:.200}; give {WANTED}")
    rows = [_method(each) for each in judged]
    best = max(rows, key=lambda row: -1.0 if row.success is None else row.success)
    headline = f"{len(rows)} methods."
    if best.success is not None:
        headline = f"{quoted(best.method)} succeeds most often, in {percent(best.success)} of the runs."
    return Methods(headline, rows)


def _method(values: Mapping[str, Any]) -> Method:
    errors = np.sort(np.asarray(values.get("ase") or [], float))
    finite = errors[np.isfinite(errors)]
    shown = spread(len(finite), MAX_CURVE_POINTS)
    curve = [ErrorPoint(float(f"{finite[n]:.4g}"), round((n + 1) / len(errors), 4)) for n in shown]
    median = float(f"{np.median(finite):.4g}") if len(finite) else None
    success, mae = (rounded(values.get(name)) for name in ("success", "mae"))
    return Method(short(values["method"], MAX_NAME_CHARS), success, mae, len(errors), median, curve)
