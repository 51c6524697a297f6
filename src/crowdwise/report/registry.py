"""The registry of sections. A section is one module `sections/<kind>/<id>.py` with a builder, registered by `section`.

A builder takes a result and returns what the section shows, or None: then the section, its link and its glossary terms
do not appear. It returns a dataclass for the script `page/src/sections/<kind>/<id>.ts`, or tables, which need no
script. Its keyword-only parameters are the options of `result.report` that it uses.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from ..errors import ParameterError, nearest
from . import sections

ANY = "any"  # kind of the sections that every kind has unless it registers its own of the same id
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Section:
    """A registered section."""

    kind: str
    id: str
    order: int
    title: str
    nav: str  # text of its link in the navigation
    intro: str
    terms: Sequence[str]  # words of the glossary that it uses; data may name more in its own `terms`
    build: Callable[..., Any]

    @property
    def options(self) -> list[str]:
        """Options of `result.report` that the builder uses."""
        parameters = inspect.signature(self.build).parameters.values()
        return [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]


SECTIONS: dict[str, dict[str, Section]] = {}  # by kind and id
SUMMARIES: dict[str, Callable[..., Any]] = {}  # by kind


def section(
    kind: str, id: str, *, order: int, title: str, nav: str = "", intro: str = "", terms: Sequence[str] = ()
) -> Callable[[Function], Function]:
    """Register the builder of a section."""

    def register(build: Function) -> Function:
        SECTIONS.setdefault(kind, {})[id] = Section(kind, id, order, title, nav or title, intro, terms, build)
        return build

    return register


def summary(kind: str) -> Callable[[Function], Function]:
    """Register the function that summarises results of a kind: it takes a result and a `Language`."""

    def register(summarise: Function) -> Function:
        SUMMARIES[kind] = summarise
        return summarise

    return register


def kinds() -> list[str]:
    """Return the kinds whose sections are part of this package."""
    return [info.name for info in pkgutil.iter_modules(sections.__path__)]


def load(kind: str) -> None:
    """Import the sections of a kind that are part of this package."""
    if kind in kinds():
        package = importlib.import_module(f"{sections.__name__}.{kind}")
        for info in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{info.name}")


def sections_of(kind: str) -> list[Section]:
    """Return the sections of a kind, in the order of the page."""
    load(ANY)
    load(kind)
    return sorted(({**SECTIONS[ANY], **SECTIONS.get(kind, {})}).values(), key=lambda each: each.order)


def summary_of(kind: str) -> Callable[..., Any]:
    """Return the function that summarises results of a kind."""
    load(kind)
    if kind not in SUMMARIES:
        raise ParameterError(f"no report is registered for results of the kind {kind!r}")
    return SUMMARIES[kind]


def check_options(kind: str, options: dict[str, Any]) -> None:
    """Refuse options that no section of the kind uses."""
    known = [*dict.fromkeys(name for each in sections_of(kind) for name in each.options), "command"]
    for name in options:
        if name not in known:
            raise ParameterError(
                f"the report of {kind} has no option {name!r}; it has {', '.join(known)}.{nearest(name, known)}"
            )


def once_per_result(compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Remember the value of a function while its result lives, for sections that share it."""
    values: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    @wraps(compute)
    def remembered(result: Any) -> Any:
        if result not in values:
            values[result] = compute(result)
        return values[result]

    return remembered
