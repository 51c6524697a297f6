"""What a result comes to: a summary of plain values first, its renderings second.

`reports(kind)` makes a function the report of a kind of answers; `plain_page` gives it a page without any script.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import for_python
from ..result import BaseResult
from ..result.files import write_whole
from .frame import Language, Tile, page_of, report_of, reports
from .labels import Cost, Scaling
from .plain import PlainPage, Section, plain_page, table_of
from .summary import Inspection, Summary, inspect


def write_report(result: BaseResult, path: str | Path, **options: Any) -> Path:
    """Write the page of a result to one self-contained HTML file, whole or not at all. Options are those of the report
    of its kind; `command` is the line that makes the result again (default: a line of Python)."""
    from .render import page_html

    data = page_html(page_of(result, options)).encode("utf-8", "backslashreplace")
    return write_whole(Path(path), lambda file: file.write(data))


def summarise(result: BaseResult, language: Language = for_python) -> Any:
    """The summary of a result; options in its warnings are written as Python arguments, or `for_shell` as flags."""
    return report_of(result).summary(result, language)


def notebook(result: BaseResult) -> str:
    """The header, the tiles and the best workers as HTML."""
    from .render import NOTEBOOK_ROWS, notebook_html

    workers = result.workers.sort("rank", nulls_last=True).head(NOTEBOOK_ROWS).to_dicts()
    return notebook_html(summarise(result), workers, result.workers.height)


__all__ = [
    "Cost", "Inspection", "PlainPage", "Scaling", "Section", "Summary", "Tile", "inspect", "notebook", "plain_page",
    "reports", "summarise", "table_of", "write_report",
]  # fmt: skip
