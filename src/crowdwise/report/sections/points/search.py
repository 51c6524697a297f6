"""How the number of objects was found."""

from __future__ import annotations

from ....result import PointsResult
from ...parts import MAX_ITERATIONS_SHOWN, Search, search_rows, spread
from ...registry import section
from ...text import MAX_NAME_CHARS, count, many, short


@section(
    "points", "search", order=30, nav="Number of objects", title="How the number of objects was found",
    intro="The search starts with many objects and removes those that do not improve the criterion. The ring marks the "
          "iteration that the result is from.",
    terms=("criterion", "iteration"),
)  # fmt: skip
def search(result: PointsResult) -> Search | None:
    rows = search_rows(result.trace, "objects")
    if not rows:
        return None
    best = next((row for row in rows if row.iteration == result.best), None)
    at = best or rows[-1]
    found = "" if at.found is None else f", with {many(round(at.found), 'object')}"
    headline = f"The search took {many(len(rows), 'iteration')}; the result is from iteration "
    headline += f"{count(int(at.iteration))}{found}."
    shown = set(spread(len(rows), MAX_ITERATIONS_SHOWN))
    rows = [row for n, row in enumerate(rows) if n in shown or row is best]
    return Search(headline, short(result.criterion, MAX_NAME_CHARS), best and best.iteration, rows)
