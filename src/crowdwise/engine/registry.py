"""Models by their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from ..errors import ParameterError, nearest

Kind = TypeVar("Kind")


def make(kinds: Mapping[str, type[Kind]], name: str, settings: Mapping[str, Any]) -> Kind:
    """One of `kinds` by its name; wrong names are refused, of kinds and of settings."""
    if name not in kinds:
        raise ParameterError(f"no model {name!r}; there are {', '.join(sorted(kinds))}.{nearest(name, kinds)}")
    kind = kinds[name]
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for key in settings:
        if key not in known:
            where = {"seed": f"run=crowdwise.Run({key}=...)", "gold": "Labels or read"}
            where |= {"threads": where["seed"], "precision": where["seed"]}
            hint = f" It goes to {where[key]}." if key in where else nearest(key, known)
            raise ParameterError(f"{name} has no setting {key!r}; it has {', '.join(known)}.{hint}")
    return kind(**settings)
