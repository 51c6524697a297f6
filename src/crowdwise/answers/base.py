"""The base class of all kinds of answers, and the record of how a table was read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeAlias, cast

import numpy as np
import polars as pl

from ..errors import DataError, check_choice
from .columns import Roles

Where: TypeAlias = Callable[[int], str]  # describes the place of a row: "answers.csv:8"
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
MAX_EXAMPLES = 3  # dropped rows quoted for each reason


KINDS: dict[str, type[Answers]] = {}  # every kind of answers by its name, filled as the classes are defined


class Answers:
    """Base class of answers. A subclass is a frozen dataclass that names its kind; its constructor takes a frame."""

    kind: ClassVar[str]
    noun: ClassVar[str] = "answer"  # one row of a table
    title: ClassVar[str] = "answers"  # the answers of this kind in a sentence: "clicks on images"
    roles: ClassVar[Roles | None] = None  # the columns by which the kind is recognised
    tables: ClassVar[tuple[str, ...]] = ()  # options of the constructor that may name a file
    choices: ClassVar[Mapping[str, tuple[object, ...]]] = NO_OPTIONS  # allowed values of options of the constructor
    in_parts: ClassVar[bool] = False  # whether the answers are in parts that are not in memory together
    workers: pl.Series
    intake: Intake

    def __init_subclass__(cls, listed: bool = True) -> None:
        super().__init_subclass__()
        if listed:
            KINDS[cls.kind] = cls

    def _fill(self, **fields: Any) -> None:
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, **fields: Any) -> Self:
        """Create answers from fields that are valid already, without checks."""
        new = cls.__new__(cls)
        new._fill(**fields)
        return new

    def replaced(self, **fields: Any) -> Self:
        """Return a copy with some fields replaced."""
        return self.of(**{each.name: getattr(self, each.name) for each in dataclasses.fields(cast(Any, self))} | fields)

    def identity(self) -> list[Any]:
        """Return the values that identify these answers: everything but the record of how they were read."""
        names = [each.name for each in dataclasses.fields(cast(Any, self))]
        return [getattr(self, name) for name in names if name != "intake"]

    @property
    def n_answers(self) -> int:
        return self.intake.rows_used

    def __len__(self) -> int:
        return self.n_answers

    @property
    def n_workers(self) -> int:
        return len(self.workers)

    @classmethod
    def from_any(cls, answers: Any) -> Self:
        """Return answers of this kind unchanged, or read them from a frame. Answers of another kind raise DataError."""
        if isinstance(answers, cls):
            return answers
        if isinstance(answers, Answers) and answers.kind == cls.kind:
            raise DataError(
                f"this needs the answers in memory; {answers!r} are in parts. If there is enough memory, use "
                "answers.load()"
            )
        if isinstance(answers, Answers):
            raise DataError(
                f"expected answers of the kind {cls.kind!r} (crowdwise.{cls.__name__}); got "
                f"{type(answers).__name__}, of the kind {answers.kind!r}"
            )
        return cls(answers)  # type: ignore[call-arg]


@dataclass(frozen=True)
class Dropped:
    """Rows that were dropped for one reason."""

    reason: str
    count: int
    examples: tuple[str, ...]  # "row 7 (answers.csv:8): t1, w3, "


@dataclass(frozen=True)
class Intake:
    """How a table became answers."""

    source: str  # file name, or "table"
    shape: str  # "long" or "wide"
    columns: dict[str, str]  # role -> column: {"task": "item_id", ...}
    guessed: tuple[str, ...]  # roles whose column was recognised by its name; the caller named the others
    extras: tuple[str, ...]  # other columns that were kept
    rows_read: int
    rows_used: int
    dropped: tuple[Dropped, ...] = ()
    notes: tuple[str, ...] = ()  # how the file was read
    warnings: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)  # arguments given to the reader: {"label": "verdict"}
    path: str = ""  # the file as the caller named it; empty for a frame

    @property
    def flaw(self) -> str:
        """What contradicts itself in a record that was read from a file, or ""."""
        numbers = (self.rows_read, self.rows_used, *(each.count for each in self.dropped))
        return "" if min(numbers) >= 0 else "has a negative number of rows"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        values = asdict(self)
        values["dropped"] = [{**each, "examples": list(each["examples"])} for each in values["dropped"]]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Intake:
        dropped = tuple(Dropped(d["reason"], d["count"], tuple(d["examples"])) for d in values["dropped"])
        lists = {name: tuple(values.get(name, ())) for name in ("guessed", "extras", "notes", "warnings")}
        return cls(**{**values, **lists, "dropped": dropped})


def check_options(kind: type[Answers], options: Mapping[str, Any]) -> None:
    """Raise ParameterError if an option of the constructor has a value that is not allowed."""
    for name, known in kind.choices.items():
        check_choice(name, options.get(name, known[0]), known)
