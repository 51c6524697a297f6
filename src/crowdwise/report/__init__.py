"""The report of a result: a summary and a page of plain values first, their rendering as HTML second.

`section` registers a section of the page and `summary` the summary, for a kind of answers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..answers.arguments import check_given
from ..errors import for_python
from ..forks import refuse_lost_threads
from ..limits import enough_memory
from ..result import BaseResult
from ..result.files import write_whole
from .page import BaseSummary, Language, Tile, page_of
from .registry import section, summary, summary_of
from .sections.labels.scaling import Cost, Scaling
from .sections.labels.summary import Summary
from .tables import Table, table_of


def write_report(result: BaseResult, path: str | Path, **options: Any) -> Path:
    """Write the page of a result to one self-contained HTML file, completely or not at all. The sections of its kind
    take options; `command` is the line that makes the result again (default: a line of Python)."""
    from .render import page_html

    refuse_lost_threads()
    check_given("command", options.get("command"), str, "the line that makes the page again")
    with enough_memory("the report"):
        data = page_html(page_of(result, options)).encode("utf-8", "backslashreplace")
    return write_whole(Path(path), lambda file: file.write(data))


def summarise(result: BaseResult, language: Language = for_python) -> Any:
    """Return the summary of a result. Its warnings name options as Python arguments, or `for_shell` as flags."""
    refuse_lost_threads()
    return summary_of(result.kind)(result, language)


def notebook(result: BaseResult) -> str:
    """Return tiles, facts and the best workers as HTML."""
    from .render import MAX_NOTEBOOK_ROWS, notebook_html

    workers = result.workers.sort("rank", nulls_last=True).head(MAX_NOTEBOOK_ROWS).to_dicts()
    return notebook_html(summarise(result), workers, result.workers.height)


__all__ = [
    "BaseSummary", "Cost", "Scaling", "Summary", "Table", "Tile", "notebook", "section",
    "summarise", "summary", "table_of", "write_report",
]  # fmt: skip
