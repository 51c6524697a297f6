"""What a result comes to: a summary of plain values first, its renderings second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..result import PairsResult, PointsResult, Result
from ..result.files import write_whole
from ..scoring import Judged
from .inspection import Inspection, inspect
from .page import Cost, Scaling
from .pairs import summarise_pairs, write_pairs_report
from .points import summarise_points, write_points_report
from .summary import Summary, summarise
from .words import short


def write_report(
    result: Result,
    path: str | Path,
    *,
    models: Sequence[str] | None = None,
    check: bool | None = None,
    judged: Judged | None = None,
    scaling: Scaling | None = None,
) -> Path:
    """Write the page of a result to one self-contained HTML file, whole or not at all; `judged` are methods held
    against the truth, `scaling` what fits took in time and memory."""
    from .build import build
    from .render import page_html

    data = page_html(build(result, models, check, judged, scaling)).encode("utf-8", "backslashreplace")
    return write_whole(Path(path), lambda file: file.write(data))


def notebook(result: Result) -> str:
    """The header, the tiles and the best workers as HTML."""
    from .render import NOTEBOOK_ROWS, notebook_html

    workers = result.workers.sort("rank", nulls_last=True).head(NOTEBOOK_ROWS).to_dicts()
    summary = summarise(result)
    warnings = [short(text, 300) for text in summary.warnings]
    told = replace(summary, source=short(summary.source, 120), warnings=warnings)
    return notebook_html(told, workers, result.answers.n_workers)


def points_notebook(result: PointsResult) -> str:
    """The header, the tiles and the most reliable workers as HTML."""
    from .render import NOTEBOOK_ROWS, notebook_html

    ranked = result.workers.sort("low", descending=True, nulls_last=True).head(NOTEBOOK_ROWS)
    rows = ranked.select("worker", "low", "high", answers="clicks", skill="reliability").to_dicts()
    return notebook_html(
        summarise_points(result),
        [{**row, "flags": ""} for row in rows],
        result.points.n_workers,
        ("Clicks", "Reliability"),
    )


def pairs_notebook(result: PairsResult) -> str:
    """The header, the tiles and the workers who weigh most as HTML."""
    from .render import NOTEBOOK_ROWS, notebook_html

    ranked = result.workers.sort("weight", descending=True, nulls_last=True).head(NOTEBOOK_ROWS)
    rows = ranked.select("worker", "answers", "skill", "low", "high").to_dicts()
    return notebook_html(summarise_pairs(result), [{**row, "flags": ""} for row in rows], result.pairs.n_workers)


__all__ = [
    "Cost",
    "Inspection",
    "Scaling",
    "Summary",
    "inspect",
    "notebook",
    "pairs_notebook",
    "points_notebook",
    "summarise",
    "summarise_pairs",
    "summarise_points",
    "write_pairs_report",
    "write_points_report",
    "write_report",
]
