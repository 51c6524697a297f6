"""Options that charts share, checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from ..answers.arguments import brief, is_whole
from ..errors import ParameterError, UnknownIdError, nearest


def check_top(top: object) -> int:
    """How many rows to draw at most."""
    if not is_whole(top) or top < 1:
        raise ParameterError(f"top is {brief(top)}; wanted is a whole number from 1: how many are drawn")
    return top


def places_of(names: pl.Series, wanted: Any, what: str) -> list[int]:
    """Places of the names that were asked for, each once; one name may be given without a list."""
    asked = [wanted] if isinstance(wanted, str) or not isinstance(wanted, Iterable) else list(wanted)
    place = {name: n for n, name in enumerate(names.to_list())}
    for name in asked:
        if name not in place:
            raise UnknownIdError(f"no {what} {name!r} in this result.{nearest(name, list(place)[:10_000])}")
    if not asked:
        raise ParameterError(f"{what}s is empty; name some, or omit it")
    return [place[name] for name in dict.fromkeys(asked)]
