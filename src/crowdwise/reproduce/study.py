"""What a study comes to: tables with what they say, and files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl


class Asked(NamedTuple):
    """What a study is asked for."""

    data: Path | None  # the folder of its real sets
    out: Path | None  # the folder for its files
    seed: int
    watch: Callable[[str], None]  # told of each step
    quick: bool  # measure less
    full: bool = False  # measure more


@dataclass(frozen=True)
class Part:
    """One table of a study."""

    title: str
    rows: pl.DataFrame
    says: tuple[str, ...] = ()
    digits: int = 4  # of its numbers, where it is printed


@dataclass(frozen=True)
class Study:
    """The tables of a study in order, and the files it wrote."""

    name: str
    parts: tuple[Part, ...]
    files: tuple[Path, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        parts = [{"title": p.title, "rows": p.rows.to_dicts(), "says": list(p.says)} for p in self.parts]
        return {"study": self.name, "parts": parts, "files": [str(file) for file in self.files]}
