"""Every model by kind and name. A model registers itself; commands, comparisons, storage and tests find it here."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from ..errors import ParameterError, flags, nearest, phrase
from .model import Model

M = TypeVar("M", bound=type[Model[Any, Any]])

MODELS: dict[str, dict[str, type[Model[Any, Any]]]] = {}  # kind -> name -> class
DEFAULTS: dict[str, str] = {}  # kind -> name
ELSEWHERE = {"seed": "run=crowdwise.Run(seed=...)", "threads": "run=crowdwise.Run(threads=...)",
             "precision": "run=crowdwise.Run(precision=...)", "shards": "run=crowdwise.Run(shards=...)"}  # fmt: skip


def register(name: str, description: str, *, default: bool = False) -> Callable[[M], M]:
    """Give a model its name and one line about it. `default`: it is what its kind of answers is fitted with."""

    def keep(model: M) -> M:
        model.name, model.description = name, description
        model.__doc__ = f"{model.__doc__}\n\n{_described(model)}".rstrip()
        MODELS.setdefault(model.kind, {})[name] = model
        if default:
            DEFAULTS[model.kind] = name
        return model

    return keep


def _described(model: type[Model[Any, Any]]) -> str:
    lines = []
    for field in fields(model):
        default = "" if field.default is MISSING else f" (default {field.default!r})"
        lines.append(f"    {field.name}{default}: {field.metadata.get('description', '')}")
    return "\n".join(["    Settings:", *lines]) if lines else ""


def discover(package: str) -> None:
    """Import every module of a package, so that its models register."""
    for info in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if not info.ispkg:
            importlib.import_module(f"{package}.{info.name}")


def find(name: str, kind: str | None = None) -> type[Model[Any, Any]]:
    """A model class by its name, of one kind or of any; a misspelt name gets a suggestion from all kinds."""
    kinds = [kind] if kind is not None else [each for each in MODELS if each != "learn"]
    for each in kinds:
        if name in MODELS.get(each, {}):
            return MODELS[each][name]
    others = [each for each, models in MODELS.items() if name in models]
    if others == ["learn"]:
        raise ParameterError(
            f"{name!r} is fitted together with a classifier of features: "
            + phrase(
                f"crowdwise.CrowdClassifier(workers={name!r})",
                f"crowdwise learn FILE {flags(features='FILE', workers=name)}",
            )
        )
    if others:
        raise ParameterError(f"{name!r} is a model of {others[0]}, not of {kind}. {_listed(kinds)}")
    everything = [each for models in MODELS.values() for each in models]
    raise ParameterError(f"no model {name!r}. {_listed(kinds)}{nearest(str(name), everything)}")


def _listed(kinds: list[str]) -> str:
    return " ".join(f"Models of {kind}: {', '.join(sorted(MODELS.get(kind, {})))}." for kind in kinds)


def make(model: type[Model[Any, Any]], settings: Mapping[str, Any]) -> Model[Any, Any]:
    """A model with hyperparameters; wrong names are refused with a suggestion."""
    known = [field.name for field in fields(model)]
    for key in settings:
        if key not in known:
            hint = f" It goes to {ELSEWHERE[key]}." if key in ELSEWHERE else nearest(key, known)
            raise ParameterError(f"{model.name} has no setting {key!r}; it has {', '.join(known) or 'none'}.{hint}")
    return model(**settings)
