"""Recognition of the kind of answers in a table, by the options given and by the names of its columns."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ..errors import ParameterError, check_choice, nearest, option
from .arguments import check_arguments
from .base import KINDS, Answers, check_options
from .frames import to_frame

INTERNAL = ("source", "notes", "where", "options", "part")  # arguments for readers of files, not for callers


@cache
def options_of(kind: str) -> tuple[str, ...]:
    """Return the names of the options for reading answers of a kind: `task`, `label`, `gold`, ..."""
    parameters = inspect.signature(KINDS[kind].__init__).parameters.values()
    return tuple(each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.name not in INTERNAL)


def candidates(options: Mapping[str, Any], kind: str | Sequence[str] | None = None) -> list[str]:
    """Return the kinds that accept all of these options. Unknown options and invalid values raise ParameterError."""
    among = [kind] if isinstance(kind, str) else list(kind or KINDS)
    for each in among:
        check_choice("kind", each, KINDS)
    known = sorted({name for each in among for name in options_of(each)})
    for name in options:
        if name not in known:
            of = "" if len(among) > 1 else f" of {among[0]}"
            raise ParameterError(
                f"{option(name)} is not an option for reading answers{of}.{_other_kinds(name)}{nearest(name, known)}"
            )
    fitting = [each for each in among if set(options) <= set(options_of(each))]
    for each in fitting:
        check_arguments(KINDS[each].__init__.__annotations__, options)
    if not fitting:
        raise ParameterError(f"{_contradiction(options, among)}. A table has one kind of answers: omit an option")
    possible = [each for each in fitting if _possible(each, options)]
    if not possible:
        check_options(KINDS[fitting[0]], options)
    return possible


def recognise(columns: Sequence[str], options: Mapping[str, Any], among: Sequence[str]) -> str:
    """Return the kind of answers in a table with these columns.

    Of the kinds whose required columns are all present, this is the one that requires most columns. If there is none,
    it is the first of `among`.

    >>> recognise(["image", "worker", "x", "y"], {}, ["labels", "points", "pairs"])
    'points'
    >>> recognise(["item", "rater", "verdict"], {"label": "verdict"}, ["labels"])
    'labels'
    """
    roles = {kind: KINDS[kind].roles for kind in among}
    complete = [kind for kind, each in roles.items() if each is not None and each.complete(columns, options)]
    return max(complete, key=lambda kind: len(roles[kind].required)) if complete else among[0]  # type: ignore[union-attr]


def as_answers(data: Any) -> Answers:
    """Return answers unchanged, or read them from a frame, whose kind is recognised by its columns.

    >>> as_answers({"image": ["a"], "worker": ["ann"], "x": [1.0], "y": [2.0]}).kind
    'points'
    """
    if isinstance(data, Answers):
        return data
    frame = to_frame(data)
    return KINDS[recognise(frame.columns, {}, list(KINDS))](frame)  # type: ignore[call-arg]


def _possible(kind: str, options: Mapping[str, Any]) -> bool:
    try:
        check_options(KINDS[kind], options)
    except ParameterError:
        return False
    return True


def _other_kinds(name: str) -> str:
    others = [kind for kind in KINDS if name in options_of(kind)]
    return f" It is an option of {' and '.join(others)}." if others else ""


def _contradiction(options: Mapping[str, Any], among: Sequence[str]) -> str:
    kinds = {name: [kind for kind in among if name in options_of(kind)] for name in options}
    specific = {name: found for name, found in kinds.items() if len(found) < len(among)}
    return ", ".join(f"{option(name)} is an option of {' and '.join(found)}" for name, found in specific.items())
