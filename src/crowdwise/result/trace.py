"""What happened during a fit, iteration by iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl


class Trace:
    """The objective and named counts after every iteration."""

    def __init__(self, **columns: type) -> None:
        self.columns = columns  # of the counts: int or float
        self.rows: list[tuple[float, ...]] = []

    def add(self, objective: float, counts: dict[str, float]) -> None:
        self.rows.append((float(objective), *(float(counts[name]) for name in self.columns)))

    @property
    def objectives(self) -> list[float]:
        return [row[0] for row in self.rows]

    def array(self) -> Any:
        return np.array(self.rows, np.float64).reshape(len(self.rows), 1 + len(self.columns))

    def set(self, rows: Any) -> None:
        self.rows = [tuple(map(float, row)) for row in rows]

    def frame(self) -> pl.DataFrame:
        """iteration, objective, and the counts."""
        values = self.array()
        kinds = {int: pl.Int64, float: pl.Float64}
        counts = [
            pl.Series(name, values[:, n + 1]).cast(kinds[kind]) for n, (name, kind) in enumerate(self.columns.items())
        ]
        return pl.DataFrame(
            [pl.Series("iteration", np.arange(1, len(values) + 1)), pl.Series("objective", values[:, 0]), *counts]
        )
