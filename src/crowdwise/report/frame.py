"""What the pages of clicks and of pairs share: the summary on top, the search, the log, and the line that makes the
result again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

import numpy as np

from ..answers.intake import Intake
from .page import LONGEST, LogEntry
from .summary import Tile
from .words import SENTENCE, short

SWEEPS = 1000  # shown at most


@dataclass(frozen=True)
class CountedSummary:
    """What stands on top."""

    rows_are: ClassVar[str] = "rows"
    at_once: ClassVar[str] = "counted"  # what a model does that needs no sweeps

    source: str
    rows_read: int
    rows_used: int
    dropped: dict[str, int]
    counted: str  # how much of what there is, in words
    model: str
    converged: bool
    sweeps: int
    seed: int
    versions: dict[str, str]
    warnings: list[str]
    tiles: list[Tile]

    def lines(self) -> list[str]:
        """The summary for a person, warnings first."""
        dropped = "".join(f"; {count} left out: {reason}" for reason, count in self.dropped.items())
        state = "converged" if self.converged else "NOT converged"
        return [
            *(f"warning: {text}" for text in self.warnings),
            f"{self.source}: {self.rows_read} {self.rows_are} read, {self.rows_used} used{dropped}",
            self.counted,
            f"{self.model}: {state} after {self.sweeps} sweeps" if self.sweeps else f"{self.model}: {self.at_once}",
            *(f"{tile.name}: {tile.value}{f' ({tile.detail})' if tile.detail else ''}" for tile in self.tiles[2:]),
        ]


def told_of(result: Any, intake: Intake) -> dict[str, Any]:
    """What every such summary says of a result, and of the table it is from."""
    return {
        "source": short(intake.source, LONGEST),
        "rows_read": intake.rows_read,
        "rows_used": intake.rows_used,
        "dropped": {short(d.reason, SENTENCE): d.count for d in intake.dropped},
        "model": short(result.model.name, LONGEST),
        "converged": bool(result.converged),
        "sweeps": result.trace.height,
        "seed": result.seed,
        "versions": dict(result.versions),
        "warnings": [short(text, SENTENCE) for text in result.warnings],
    }


@dataclass(frozen=True)
class Search:
    """How the number of objects, or of clusters, was found."""

    says: str
    criterion: str
    best: float | None  # sweep at which the answer was taken
    rows: list[tuple[float, float | None, float | None]]  # sweep, objective, how many


def spread(length: int, most: int) -> list[int]:
    """At most so many places of a list of some length, from its first to its last."""
    return np.unique(np.linspace(0, max(length - 1, 0), min(length, most)).astype(int)).tolist() if length else []


def log_of(intake: Intake) -> list[LogEntry]:
    return [
        LogEntry(short(d.reason, SENTENCE), d.count, [short(row, SENTENCE) for row in d.examples])
        for d in intake.dropped
    ]


def notes_of(intake: Intake) -> list[str]:
    return [short(note, SENTENCE) for note in intake.notes]


def command_of(verb: str, result: Any, intake: Intake) -> str:
    """The line that makes a result again."""
    model = result.model
    parts: Sequence[str] = [verb, *(short(word, SENTENCE) for word in (intake.source, *intake.options))]
    parts = ["crowdwise", *parts, "--model", model.name, "--seed", str(result.seed)]
    usual = type(model)().settings()
    for name, value in model.settings().items():
        if value != usual.get(name) and isinstance(value, (int, float, str)):
            parts += ["--set", f"{name}={value}"]
    return shlex.join([*parts, "--out", "results"])


def plain(value: Any) -> Any:
    """As `asdict`, but long columns are not copied number by number."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return [plain(item) for item in value] if isinstance(value, list) and value and is_dataclass(value[0]) else value
