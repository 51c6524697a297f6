"""A page of plain sections: what a kind of answers needs that brings no script of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ..errors import for_python, for_shell
from ..result import BaseResult
from .frame import BasePage, BaseSummary, Tile
from .words import LONGEST, short

WORKERS = 100  # shown at most


@dataclass(frozen=True)
class Thumb:
    """A small picture."""

    src: str  # data URI
    alt: str = ""  # empty beside a name that says it
    item: int | None = None


@dataclass(frozen=True)
class Cell:
    """What stands in a cell: pictures, then a name that somebody else chose."""

    name: str = ""
    thumbs: list[Thumb] = field(default_factory=list)


@dataclass(frozen=True)
class Table:
    """A table that needs no script."""

    caption: str
    heads: list[tuple[str, bool]]  # title, and whether numbers stand below
    rows: list[list[str | Cell]]


@dataclass(frozen=True)
class Section:
    """A sentence, and the table that it is about."""

    title: str
    says: str
    table: Table | None


@dataclass(frozen=True, kw_only=True)
class PlainPage(BasePage):
    """A summary and sections."""

    template = "plain.html"
    words = (
        ("answer", "What one worker said about one task."),
        ("skill", "How good a worker is, from 0 to 1."),
        ("interval", "The range that holds the true value 95 times in 100."),
    )

    title: str
    sections: list[Section]

    def as_dict(self) -> dict[str, Any]:
        """Nothing: all of it stands in the page."""
        return {"kind": "plain"}


def plain_page(
    result: BaseResult, tiles: Sequence[Tile], sections: Sequence[Section], command: str | None = None
) -> PlainPage:
    """A page of some tiles and sections, and the workers."""
    language = for_python if command is None else for_shell
    summary = BaseSummary.of(result, language, counted=result.counted, tiles=list(tiles))
    workers = result.workers.sort("rank", nulls_last=True).head(WORKERS)
    people = Section("Workers", f"{result.workers.height} workers, the best first.", table_of(workers, "Workers"))
    title = f"What {result.answers.intake.rows_used} answers say"
    return PlainPage.of(result, command, summary=summary, title=title, sections=[*sections, people])


def table_of(frame: pl.DataFrame, caption: str = "") -> Table:
    """A frame as a table."""
    heads = [(name.replace("_", " ").capitalize(), dtype.is_numeric()) for name, dtype in frame.schema.items()]
    rows: list[list[str | Cell]] = [[_shown(value) for value in row] for row in frame.rows()]
    return Table(caption or ", ".join(title for title, _ in heads), heads, rows)


def _shown(value: object) -> str | Cell:
    if value is None:
        return "\u2013"
    return f"{value:.4g}" if isinstance(value, float) else Cell(short(value, LONGEST))
