"""How the number of objects was found; and methods held against the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .frame import ITERATIONS, Search, search_rows, spread
from .points_page import Method, Methods
from .words import LONGEST, count, known, many, percent, quoted, short

if TYPE_CHECKING:
    from ..result import PointsResult

CURVE = 300  # steps shown at most


def search_section(result: PointsResult) -> Search:
    trace, best = result.trace, result.best
    criterion = short(result.criterion, LONGEST)
    rows = search_rows(trace, "objects")
    if not rows:
        return Search("The objects were found in one go: there is no search to show.", criterion, None, [])
    taken = next((row for row in rows if row[0] == best), None)
    at = taken or rows[-1]
    found = "" if at[2] is None else f", with {many(round(at[2]), 'object')}"
    says = (
        f"The search took {many(len(rows), 'iteration')}; its answer is that of iteration {count(int(at[0]))}{found}."
    )
    if len(rows) > ITERATIONS:
        kept = set(spread(len(rows), ITERATIONS))
        rows = [row for n, row in enumerate(rows) if n in kept or row is taken]
    return Search(says, criterion, None if taken is None else taken[0], rows)


def methods_section(judged: Sequence[Mapping[str, Any]]) -> Methods:
    rows = [_method(each) for each in judged]
    first = max(rows, key=lambda row: -1.0 if row.success is None else row.success)
    says = "Methods held against the truth."
    if first.success is not None:
        says = f"{quoted(first.method)} succeeds most often: in {percent(first.success)} of the runs."
    return Methods(says, rows)


def _method(told: Mapping[str, Any]) -> Method:
    errors = np.sort(np.asarray(told.get("ase") or [], float))
    finite = errors[np.isfinite(errors)]
    curve = [(float(f"{finite[n]:.4g}"), round((n + 1) / len(errors), 4)) for n in spread(len(finite), CURVE)]
    middle = float(f"{np.median(finite):.4g}") if len(finite) else None
    success, mae = (known(told.get(name), 4) for name in ("success", "mae"))
    return Method(short(told["method"], LONGEST), success, mae, len(errors), middle, curve)
