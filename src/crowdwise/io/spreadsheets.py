"""CSV for people: cells that a spreadsheet would take for a formula are made text."""

from __future__ import annotations

import polars as pl

FORMULA = r"^[=+\-@\t\r]"


def spreadsheet_safe(table: pl.DataFrame) -> pl.DataFrame:
    """The table with an apostrophe before every text that begins with = + - @, a tab or a carriage return; the names
    of columns too."""
    text = pl.col(pl.String)
    safe = table.with_columns(pl.when(text.str.contains(FORMULA)).then("'" + text).otherwise(text).name.keep())
    return safe.rename({name: f"'{name}" for name in table.columns if name[:1] in tuple("=+-@\t\r")})
