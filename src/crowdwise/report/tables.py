"""Tables that the page shows without a script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from .text import DASH, MAX_NAME_CHARS, short


@dataclass(frozen=True)
class Thumb:
    """A small picture."""

    src: str  # data URI
    alt: str = ""  # empty beside a name
    item: int | None = None
    photo: bool = False  # a file, which is larger than it is shown


@dataclass(frozen=True)
class Cell:
    """Pictures, then a name from the data and what it is about."""

    name: str = ""
    thumbs: list[Thumb] = field(default_factory=list)
    text: str = ""


@dataclass(frozen=True)
class Fold:
    """A list that a reader can open."""

    title: str
    rows: list[tuple[Cell, str]]  # with a number, in words
    more: str = ""  # what is not listed


@dataclass(frozen=True)
class Folds:
    """Lists below a table."""

    title: str
    headline: str
    number: str  # what the numbers are
    notes: list[str]
    folds: list[Fold]


@dataclass(frozen=True)
class Table:
    """A table, with an optional title and sentence above it."""

    caption: str
    heads: list[tuple[str, bool]]  # title, and whether the column is numeric
    rows: list[list[str | Cell]]
    headline: str = ""
    title: str = ""
    terms: Sequence[str] = ()  # words of the glossary that it uses
    folds: Folds | None = None


def table_of(frame: pl.DataFrame, headline: str = "", caption: str = "") -> Table:
    """Return a frame as a table."""
    heads = [(name.replace("_", " ").capitalize(), dtype.is_numeric()) for name, dtype in frame.schema.items()]
    rows: list[list[str | Cell]] = [[_text(value) for value in row] for row in frame.rows()]
    return Table(caption or ", ".join(title for title, _ in heads), heads, rows, headline)


def _text(value: object) -> str | Cell:
    if value is None:
        return DASH
    return f"{value:.4g}" if isinstance(value, float) else Cell(short(value, MAX_NAME_CHARS))
