"""What the pages of all kinds share: the registry, the summary, the log, and the line that makes the result again.

A kind of answers has one report: a function from a result to a page of plain values, found by the kind.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import polars as pl

from ..errors import ParameterError, for_python, for_shell, nearest
from ..result import BaseResult
from .words import LONGEST, SENTENCE, known, numbers, short

ITERATIONS, WORKERS = 1000, 400  # shown at most
Build = TypeVar("Build", bound=Callable[..., Any])
Language = Callable[[str], str]  # `for_python` or `for_shell`


# A matrix in sparse form: (true class, label told, expected answers), only where there are any.
Cells = list[tuple[int, int, float]]


class Report(NamedTuple):
    """How results of one kind are shown."""

    page: Callable[..., BasePage]
    summary: Callable[[Any, Language], Any]


REPORTS: dict[str, Report] = {}
OWN = {"labels": "labels", "points": "points", "pairs": "pairs"}  # kinds whose reports are modules of this package


def reports(kind: str, summary: Callable[[Any, Language], Any] | None = None) -> Callable[[Build], Build]:
    """Make a function the report of a kind: it takes a result and options, and returns its page. `summary` makes the
    summary alone, where the whole page would take long."""

    def keep(build: Build) -> Build:
        REPORTS[kind] = Report(build, summary or (lambda result, language: build(result).summary))
        return build

    return keep


def report_of(result: BaseResult) -> Report:
    """The report of a result's kind."""
    if result.kind not in REPORTS and result.kind in OWN:
        importlib.import_module(f".{OWN[result.kind]}", __package__)
    if result.kind not in REPORTS:
        raise ParameterError(f"no report is registered for results of the kind {result.kind!r}")
    return REPORTS[result.kind]


def page_of(result: BaseResult, options: dict[str, Any]) -> BasePage:
    """The page of a result; options that its report does not take are refused."""
    build = report_of(result).page
    takes = list(inspect.signature(build).parameters)[1:]
    for name in options:
        if name not in takes:
            raise ParameterError(
                f"the report of {result.kind} has no option {name!r}; it has {', '.join(takes)}.{nearest(name, takes)}"
            )
    return build(result, **options)


@dataclass(frozen=True)
class Tile:
    """One figure that everybody asks for."""

    name: str
    value: str
    detail: str
    help: str


@dataclass(frozen=True)
class LogEntry:
    reason: str
    count: int
    examples: list[str]


@dataclass(frozen=True, kw_only=True)
class BaseSummary:
    """A fit in a few plain values, which terminal, JSON, notebook and page share; a kind may add its own."""

    rows_are: ClassVar[str] = "rows"
    heads: ClassVar[tuple[str, str]] = ("Answers", "Skill")  # of the first columns of workers

    source: str
    rows_read: int
    rows_used: int
    dropped: dict[str, int]
    notes: list[str]  # how the table was read
    counted: str  # how much there is of what, in words
    model: str
    settings: dict[str, Any]
    converged: bool
    iterations: int
    objective: float | None
    seconds: float
    seed: int
    versions: dict[str, str]
    warnings: list[str]
    tiles: list[Tile]

    @classmethod
    def of(cls, result: BaseResult, language: Language, **own: Any) -> Self:
        """The summary of a result: `counted`, `tiles` and what a kind adds are given, all else is found."""
        intake, trace = result.answers.intake, result.trace
        found = {
            "source": short(intake.source, LONGEST),
            "rows_read": intake.rows_read,
            "rows_used": intake.rows_used,
            "dropped": {short(d.reason, SENTENCE): d.count for d in intake.dropped},
            "notes": [short(note, SENTENCE) for note in intake.notes],
            "model": short(result.model.name, LONGEST),
            "settings": {k: dict(v) if hasattr(v, "items") else v for k, v in result.model.settings().items()},
            "converged": bool(result.converged),
            "iterations": trace.height,
            "objective": float(trace["objective"][-1]) if trace.height else None,
            "seconds": result.seconds,
            "seed": result.seed,
            "versions": dict(result.versions),
            "warnings": [short(language(text), SENTENCE) for text in result.cautions],
        }
        return cls(**found, **own)

    def lines(self) -> list[str]:
        """The summary for a person, warnings first."""
        dropped = "".join(f"; {count} left out: {reason}" for reason, count in self.dropped.items())
        state = "converged" if self.converged else "NOT converged"
        steps = f": {state}" if self.iterations or not self.converged else ""
        steps += f" after {self.iterations} iterations" if self.iterations else ""
        return [
            *(f"warning: {text}" for text in self.warnings),
            f"{self.source}: {self.rows_read} {self.rows_are} read, {self.rows_used} used{dropped}",
            *self.notes,
            self.counted,
            f"{self.model}{steps}",
            *(f"{tile.name}: {tile.value}{f' ({tile.detail})' if tile.detail else ''}" for tile in self.tiles),
        ]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        values: dict[str, Any] = plain(self)
        return values


@dataclass(frozen=True, kw_only=True)
class BasePage:
    """What every page has; a subclass adds its sections."""

    template: ClassVar[str]
    words: ClassVar[Sequence[tuple[str, str]]]  # the glossary

    kind: str  # of answers
    summary: Any
    log: list[LogEntry]
    command: str

    @classmethod
    def of(cls, result: BaseResult, command: str | None, **own: Any) -> Self:
        """The page of a result: sections are given; `command` is the line that makes the result again (default: a line
        of Python)."""
        if "summary" not in own:
            own["summary"] = report_of(result).summary(result, for_python if command is None else for_shell)
        log = [
            LogEntry(short(d.reason, SENTENCE), d.count, [short(row, SENTENCE) for row in d.examples])
            for d in result.answers.intake.dropped
        ]
        return cls(kind=result.kind, log=log, command=command or python_line(result), **own)

    @property
    def glossary(self) -> Sequence[tuple[str, str]]:
        return self.words

    def as_dict(self) -> dict[str, Any]:
        """What the script of the page draws."""
        inherited = {field.name for field in fields(BasePage)} - {"kind"}
        return {field.name: plain(getattr(self, field.name)) for field in fields(self) if field.name not in inherited}


@dataclass(frozen=True)
class Search:
    """How the number of objects, or of clusters, was found."""

    says: str
    criterion: str
    best: float | None  # iteration at which the answer was taken
    rows: list[tuple[float, float | None, float | None]]  # iteration, objective, how many


def workers_shown(table: pl.DataFrame, columns: Sequence[str]) -> tuple[pl.DataFrame, str]:
    """Workers by rank, with these columns as known numbers: all, or the best and the worst of many, and what is to be
    said then."""
    ranked = table.with_columns(numbers(*columns)).sort("rank", nulls_last=True)
    if ranked.height <= WORKERS:
        return ranked, ""
    half = WORKERS // 2
    return pl.concat([ranked.head(half), ranked.tail(half)]), f"; shown are the {half} best and the {half} worst"


def spread(length: int, most: int) -> list[int]:
    """At most so many places of a list of some length, from its first to its last."""
    return np.unique(np.linspace(0, max(length - 1, 0), min(length, most)).astype(int)).tolist() if length else []


def search_rows(trace: pl.DataFrame, counted: str) -> list[tuple[float, float | None, float | None]]:
    """iteration, objective, and how many there were of what is counted."""
    rows = trace.select("iteration", "objective", counted).rows()
    return [(float(n), known(objective, 6), known(count, 2)) for n, objective, count in rows]


def changed_settings(model: Any) -> dict[str, Any]:
    """Hyperparameters that differ from their defaults, as far as they are plain values."""
    usual = type(model)().settings()
    return {
        name: value
        for name, value in model.settings().items()
        if value != usual.get(name) and isinstance(value, (int, float, str))
    }


READERS = {"labels": "read", "points": "read_points", "pairs": "read_pairs"}
NOT_READ = ("features", "array", "unknown", "classifier", "threshold", "restarts")  # recorded, but no matter of reading


def python_line(result: Any) -> str:
    """The line of Python that makes a result again."""
    model, intake = result.model, result.answers.intake
    options = {"gold" if name == "gold_column" else name: value for name, value in intake.options.items()}
    reading = {name: value for name, value in options.items() if name not in NOT_READ}
    table = f"crowdwise.{READERS.get(result.kind, 'read')}({_arguments([intake.source], reading)})"
    if model.kind == "learn":
        own = {"workers": model.name, "random_state": result.seed}
        return f"crowdwise.CrowdClassifier({_arguments([], own)}).fit(X, {table}, tasks)"
    more = ", features=features" if "features" in options or getattr(result, "space", None) else ""
    settings = _arguments([model.name], changed_settings(model))
    return f"crowdwise.aggregate({table}, {settings}{more}, run=crowdwise.Run(seed={result.seed}))"


def _arguments(values: list[Any], named: dict[str, Any]) -> str:
    told = {name: _literal(value) for name, value in named.items()}
    return ", ".join([*map(_literal, values), *(f"{name}={value}" for name, value in told.items())])


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return json.dumps(short(value, SENTENCE), ensure_ascii=False) if isinstance(value, str) else repr(value)


def plain(value: Any) -> Any:
    """As `asdict`, but long columns are not copied number by number."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return [plain(item) for item in value] if isinstance(value, list) and value and is_dataclass(value[0]) else value
