"""The page of a result as plain values: summary, sections, log, glossary, and the line that makes the result again.

The page is the same for every kind of answers; the registry says which sections it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Self

from ..errors import for_python, for_shell
from ..result import BaseResult
from .command import python_line
from .glossary import explained
from .registry import check_options, sections_of, summary_of
from .tables import Table
from .text import MAX_NAME_CHARS, MAX_SENTENCE_CHARS, many, short

Language = Callable[[str], str]  # `for_python` or `for_shell`


@dataclass(frozen=True)
class Tile:
    """A key figure."""

    name: str
    value: str
    detail: str
    help: str


@dataclass(frozen=True, kw_only=True)
class BaseSummary:
    """The key values of a fit, shared by terminal, JSON, notebook and page. Kinds of answers add their own."""

    rows_are: ClassVar[str] = "rows"
    heads: ClassVar[tuple[str, str]] = ("Answers", "Skill")  # of the first columns of the table of workers

    source: str
    rows_read: int
    rows_used: int
    dropped: dict[str, int]
    notes: list[str]  # how the table was read
    counted: str  # the size of the data, in words
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
        """Return the summary of a result. `counted`, `tiles` and the fields of a subclass are given in `own`."""
        intake, trace = result.answers.intake, result.trace
        shared = {
            "source": short(intake.source, MAX_NAME_CHARS),
            "rows_read": intake.rows_read,
            "rows_used": intake.rows_used,
            "dropped": {short(d.reason, MAX_SENTENCE_CHARS): d.count for d in intake.dropped},
            "notes": [short(note, MAX_SENTENCE_CHARS) for note in intake.notes],
            "model": short(result.model.name, MAX_NAME_CHARS),
            "settings": {k: dict(v) if hasattr(v, "items") else v for k, v in result.model.settings().items()},
            "converged": bool(result.converged),
            "iterations": trace.height,
            "objective": float(trace["objective"][-1]) if trace.height else None,
            "seconds": result.seconds,
            "seed": result.seed,
            "versions": dict(result.versions),
            "warnings": [short(language(text), MAX_SENTENCE_CHARS) for text in result.cautions],
        }
        return cls(**shared, **own)

    @property
    def title(self) -> str:
        """The title of the page."""
        return f"Report on {many(self.rows_used, 'answer')}"

    @property
    def terms(self) -> Sequence[str]:
        """Words of the glossary that tiles and facts use."""
        return ("iteration",) if self.iterations else ()

    @property
    def settings_text(self) -> str:
        """The hyperparameters in one line."""
        given = (f"{name}={value}" for name, value in self.settings.items() if value is not None)
        return short(", ".join(given), MAX_SENTENCE_CHARS)

    def lines(self) -> list[str]:
        """Return the summary as lines of text, warnings first."""
        dropped = "".join(f"; {count} left out: {reason}" for reason, count in self.dropped.items())
        state = "converged" if self.converged else "NOT converged"
        steps = f": {state}" if self.iterations or not self.converged else ""
        steps += f" after {many(self.iterations, 'iteration')}" if self.iterations else ""
        return [
            *(f"warning: {text}" for text in self.warnings),
            f"{self.source}: {self.rows_read} {self.rows_are} read, {self.rows_used} used{dropped}",
            *self.notes,
            self.counted,
            f"{self.model}{steps}",
            *(f"{tile.name}: {tile.value}{f' ({tile.detail})' if tile.detail else ''}" for tile in self.tiles),
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        values: dict[str, Any] = plain(self)
        return values


@dataclass(frozen=True)
class PageSection:
    """A section as it stands on a page."""

    id: str
    title: str
    nav: str
    intro: str
    data: Any  # what the builder returned
    terms: Sequence[str] = ()

    @property
    def tables(self) -> list[Table]:
        """Tables that need no script; data for a script may have some, too, for readers without one."""
        if isinstance(self.data, Table):
            return [self.data]
        return self.data if isinstance(self.data, list) else getattr(self.data, "tables", [])

    @property
    def scripted(self) -> bool:
        return not isinstance(self.data, Table | list)

    @property
    def headline(self) -> str:
        """The sentence that stands in for what a script draws."""
        return getattr(self.data, "headline", "") if self.scripted else ""


@dataclass(frozen=True)
class LogEntry:
    """Rows that were dropped for one reason."""

    reason: str
    count: int
    examples: list[str]


@dataclass(frozen=True)
class Shared:
    """What every script of a page gets beside the data of its section."""

    kind: str
    classes: list[str]  # names; sections refer to a class by its number here


@dataclass(frozen=True, kw_only=True)
class Page:
    """Everything on a page."""

    shared: Shared
    summary: Any
    sections: list[PageSection]
    log: list[LogEntry]
    command: str
    settings: list[tuple[str, str]]  # hyperparameters that are set, with their meaning

    @classmethod
    def of(cls, result: BaseResult, summary: Any, sections: list[PageSection], command: str | None = None) -> Self:
        """Return the page with these sections. `command` makes the result again (default: a line of Python)."""
        log = [
            LogEntry(
                short(d.reason, MAX_SENTENCE_CHARS), d.count, [short(row, MAX_SENTENCE_CHARS) for row in d.examples]
            )
            for d in result.answers.intake.dropped
        ]
        shared = Shared(result.kind, [short(name, MAX_NAME_CHARS) for name in getattr(summary, "classes", [])])
        line = python_line(result) if command is None else command
        settings = [
            (each.name, each.metadata["description"])
            for each in fields(result.model)
            if each.metadata.get("description") and getattr(result.model, each.name) is not None
        ]
        return cls(shared=shared, summary=summary, sections=sections, log=log, command=line, settings=settings)

    def __getitem__(self, id: str) -> Any:
        """Return the data of a section, or None if the page does not have it."""
        return next((section.data for section in self.sections if section.id == id), None)

    @property
    def glossary(self) -> list[tuple[str, str]]:
        """The words of this page, with their explanations."""
        terms = (*self.summary.terms, *(term for section in self.sections for term in section.terms))
        return explained(terms, self.shared.kind)

    @property
    def scripted(self) -> bool:
        """Whether any section needs the script."""
        return any(section.scripted for section in self.sections)

    def as_dict(self) -> dict[str, Any]:
        """Return what the script of the page draws."""
        drawn = {section.id: plain(section.data) for section in self.sections if section.scripted}
        return {**plain(self.shared), "sections": drawn}


def page_of(result: BaseResult, options: dict[str, Any]) -> Page:
    """Return the page of a result; options that no section uses are refused."""
    check_options(result.kind, options)
    command = options.get("command")
    summary = summary_of(result.kind)(result, for_python if command is None else for_shell)
    parts = []
    for each in sections_of(result.kind):
        data = each.build(result, **{name: options[name] for name in each.options if name in options})
        if data is not None:
            shown = data if isinstance(data, list) else [data]
            terms = (*each.terms, *(term for part in shown for term in getattr(part, "terms", ())))
            parts.append(PageSection(each.id, each.title, each.nav, each.intro, data, terms))
    return Page.of(result, summary, parts, command)


def plain(value: Any) -> Any:
    """Return a dataclass as a dictionary, as `asdict` does, without copying long columns number by number."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return [plain(item) for item in value] if isinstance(value, list) and value and is_dataclass(value[0]) else value
