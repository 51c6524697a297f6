"""What ids and tables may hold that come from a file, declared beside the field as the rules of arrays are."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ..kernels.rules import Sizes


@dataclass(frozen=True)
class Ids:
    """Different plain values, of which there are as many as the size says."""

    size: str

    def shape_flaw(self, ids: pl.Series, sizes: Sizes) -> str:
        """Return what is wrong with the type and the number of ids, or ""."""
        kind = ids.dtype
        if kind.is_nested() or kind in (pl.Object, pl.Binary) or (kind == pl.Null and len(ids)):
            return f"holds {kind}; each id must be one plain value"
        return sizes.mismatch(self.size, (len(ids),))

    def flaw(self, ids: pl.Series, sizes: Sizes) -> str:
        """Return what is wrong with the ids, or ""."""
        if ids.null_count() or (ids.dtype.is_float() and not ids.is_finite().all()):
            return "has an id that is missing"
        return "has an id twice" if ids.n_unique() < len(ids) else ""


@dataclass(frozen=True)
class Table:
    """A table with the columns named and others; with `optional`, it may have no columns."""

    size: str
    columns: tuple[str, ...] = ()
    numbers: bool = False  # whether all columns must be numbers
    optional: bool = False

    def shape_flaw(self, table: pl.DataFrame, sizes: Sizes) -> str:
        """Return what is wrong with the columns and the number of rows, or ""."""
        if self.optional and not table.width:
            return ""
        if tuple(table.columns[: len(self.columns)]) != self.columns:
            return f"has the columns {table.columns}; it must begin with {list(self.columns)}"
        odd = [name for name, kind in table.schema.items() if self.numbers and not kind.is_numeric()]
        if odd:
            return f"has {table[odd[0]].dtype} in the column {odd[0]!r}; it must hold numbers"
        return sizes.mismatch(self.size, (table.height,))

    def flaw(self, table: pl.DataFrame, sizes: Sizes) -> str:
        """Return what is wrong with the values, or ""."""
        columns = table.get_columns() if self.numbers else []
        sound = all(column.is_finite().all() and not column.null_count() for column in columns)
        return "" if sound else "has numbers that are missing or not finite"
