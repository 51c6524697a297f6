"""Numbers and names as the report writes them."""

from __future__ import annotations

import math
import re
from typing import Any

import polars as pl

MAX_NAME_CHARS = 120  # shown of the name of a task, worker, class, ...
MAX_SENTENCE_CHARS = 300  # shown of a warning or note
NOT_KNOWN = "not known"
TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")  # controls of the direction of text
DASH = "\u2013"  # in a table, where a value is not known


def short(value: object, longest: int) -> str:
    """Return the text of a value, cut with an ellipsis to `longest` characters."""
    text = str(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def count(number: int) -> str:
    """Return 1234 as "1 234", with a narrow space between thousands."""
    return f"{number:,}".replace(",", "\u202f")


def many(number: int, word: str) -> str:
    """Return "1 object", "2 objects"."""
    return f"{count(number)} {word}{'' if number == 1 else 's'}"


def percent(share: float, digits: int = 1) -> str:
    """Return 0.123 as "12.3 %", with a narrow space."""
    return f"{100 * share:.{digits}f}\u202f%"


def quoted(name: object) -> str:
    """Return a name in quotation marks, for use inside a sentence; characters that would turn the text around it are
    replaced."""
    safe = TURNING.sub("\ufffd", str(name))
    return f"\u201c{short(safe, 40)}\u201d"


def rounded(value: Any, digits: int = 4) -> Any:
    """Return a finite number, rounded; None for missing values, NaN and infinity."""
    return None if value is None or not math.isfinite(value) else round(float(value), digits)


def rounded_column(values: pl.Series, digits: int) -> list[Any]:
    """Return the values of a column as `rounded` does."""
    numbers = values.cast(pl.Float64)
    return numbers.set(~numbers.is_finite(), None).round(digits).to_list()


def numeric(*names: str) -> pl.Expr:
    """Select columns as floats, with null in place of NaN."""
    return pl.col(*names).cast(pl.Float64).fill_nan(None)


def decimals_for(extent: float) -> int:
    """Return how many decimals keep points apart in a picture of this extent."""
    return min(12, max(0, 4 - math.floor(math.log10(extent)))) if extent > 0 else 4
