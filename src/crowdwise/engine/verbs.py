"""Questions put to answers and results, by kind: `review`, `next`, `agreement`, `compare`, `inspect`.

A verb has one function for each kind of answers that it makes sense for. Functions register themselves, so that a new
kind brings its own; for any other kind an error says which kinds the verb takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ..answers.base import KINDS, Answers
from ..errors import DataError, ParameterError, nearest, option
from ..forks import refuse_lost_threads
from ..limits import enough_memory
from ..result.base import BaseResult, refuse_parts

F = TypeVar("F", bound=Callable[..., Any])

VERBS: dict[str, dict[str, Callable[..., Any]]] = {}  # verb -> kind -> function
TAKE_PARTS: set[tuple[str, str]] = set()  # verb and kind


def verb(name: str, kind: str, *, in_parts: bool = False) -> Callable[[F], F]:
    """Make a function the answer of a verb to one kind, also to answers in parts if it takes them."""

    def keep(function: F) -> F:
        VERBS.setdefault(name, {})[kind] = function
        if in_parts:
            TAKE_PARTS.add((name, kind))
        return function

    return keep


def perform(name: str, subject: Answers | BaseResult, /, *arguments: Any, **options: Any) -> Any:
    """Call the function of a verb for the kind of `subject`. Options that are None are as good as not given; an option
    that the verb does not have for this kind is refused."""
    refuse_lost_threads()
    if (name, subject.kind) not in TAKE_PARTS:
        refuse_parts(subject, name)
    found = VERBS[name].get(subject.kind)
    if found is None:
        takes = " or ".join(KINDS[kind].title if kind in KINDS else kind for kind in VERBS[name])
        raise DataError(f"{name} takes {takes}; this is {KINDS[subject.kind].title} ({subject!r})")
    given = {key: value for key, value in options.items() if value is not None}
    known = [each.name for each in inspect.signature(found).parameters.values() if each.kind is each.KEYWORD_ONLY]
    for key in given:
        if key not in known:
            raise ParameterError(
                f"{name} of {subject.kind} has no option {option(key)}; it has {', '.join(known) or 'none'}"
                f".{nearest(key, known)}"
            )
    with enough_memory(name):
        return found(subject, *arguments, **given)
