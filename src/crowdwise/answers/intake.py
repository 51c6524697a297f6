"""What was understood of a table of answers: which column is what, how many rows were used, what was dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

EXAMPLES = 3  # rows quoted for each reason


@dataclass(frozen=True)
class Dropped:
    """Rows left out, or folded into another, for one reason."""

    reason: str
    count: int
    examples: tuple[str, ...]  # "row 7 (answers.csv:8): t1, w3, "


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
    warnings: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)  # arguments that the reader was given: {"label": "verdict"}

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        values = asdict(self)
        values["dropped"] = [{**each, "examples": list(each["examples"])} for each in values["dropped"]]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Intake:
        dropped = tuple(Dropped(d["reason"], d["count"], tuple(d["examples"])) for d in values["dropped"])
        lists = {name: tuple(values.get(name, ())) for name in ("extras", "notes", "warnings")}
        options = values.get("options")  # version 0.1 kept words of a command line here, which are let go
        told = dict(options) if isinstance(options, Mapping) else {}
        return cls(**{**values, **lists, "dropped": dropped, "options": told})
