"""What was understood of a table of answers: which column is what, how many rows were used, what was dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ..kernels.layout import Ints

EXAMPLES = 3  # rows quoted for each reason


@dataclass(frozen=True)
class Dropped:
    """Rows left out, or folded into another, for one reason."""

    reason: str
    count: int
    examples: tuple[str, ...]  # "row 7 (answers.csv:8): t1, w3, "


def quoted(frame: pl.DataFrame, columns: Sequence[str], rows: Ints, where: Callable[[int], str]) -> tuple[str, ...]:
    """A few rows of a table as they stand in it, each with its place."""
    return tuple(
        f"{where(int(r))}: " + ", ".join("(none)" if (v := frame[c][int(r)]) is None else str(v)[:60] for c in columns)
        for r in rows[:EXAMPLES]
    )


@dataclass(frozen=True)
class Intake:
    """How a table became answers."""

    source: str  # file name, or "table"
    shape: str  # "long" or "wide"
    columns: dict[str, str]  # role -> column: {"task": "item_id", ...}
    guessed: bool  # some column was found by its common name
    extras: tuple[str, ...]  # further columns kept
    rows_read: int
    rows_used: int
    dropped: tuple[Dropped, ...] = ()
    notes: tuple[str, ...] = ()  # how the file was read
    warnings: tuple[str, ...] = field(default=())
    options: tuple[str, ...] = ()  # how the reader was told to read, as words of the command line

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "source": self.source,
            "shape": self.shape,
            "columns": dict(self.columns),
            "guessed": self.guessed,
            "extras": list(self.extras),
            "rows_read": self.rows_read,
            "rows_used": self.rows_used,
            "dropped": [{"reason": d.reason, "count": d.count, "examples": list(d.examples)} for d in self.dropped],
            "notes": list(self.notes),
            "warnings": list(self.warnings),
            "options": list(self.options),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Intake:
        dropped = tuple(Dropped(d["reason"], d["count"], tuple(d["examples"])) for d in values["dropped"])
        lists = {name: tuple(values.get(name, ())) for name in ("extras", "notes", "warnings", "options")}
        return cls(**{**values, **lists, "dropped": dropped})
