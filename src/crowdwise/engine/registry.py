"""The registry of models by kind and name. Commands, comparisons, storage and tests look up models here."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from ..discovery import model_homes
from ..errors import ParameterError, flags, nearest, phrase
from .model import Model

M = TypeVar("M", bound=type[Model[Any, Any]])

MODELS: dict[str, dict[str, type[Model[Any, Any]]]] = {}  # kind -> name -> class
DEFAULTS: dict[str, str] = {}  # kind -> name
RUN_OPTIONS = {"seed": "run=crowdwise.Run(seed=...)", "threads": "run=crowdwise.Run(threads=...)",
               "precision": "run=crowdwise.Run(precision=...)", "shards": "run=crowdwise.Run(shards=...)"}  # fmt: skip


def register(name: str, description: str, *, default: bool = False) -> Callable[[M], M]:
    """Register a model with its name and a one-line description. `default` makes it the default model of its kind."""

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
    """Import the modules of a package that hold models, so that they register."""
    for module in dict.fromkeys(model_homes(package).values()):
        importlib.import_module(module)


def find(name: str, kind: str | None = None) -> type[Model[Any, Any]]:
    """Return a model class by its name, of one kind or of any; for an unknown name the error suggests a similar one."""
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
    raise ParameterError(f"no model {name!r}. {_listed(kinds)}{nearest(name, everything)}")


def _listed(kinds: list[str]) -> str:
    return " ".join(f"Models of {kind}: {', '.join(sorted(MODELS.get(kind, {})))}." for kind in kinds)


def make(model: type[Model[Any, Any]], settings: Mapping[str, Any]) -> Model[Any, Any]:
    """Return a model with hyperparameters; for an unknown name the error suggests a similar one."""
    known = [field.name for field in fields(model)]
    for key in settings:
        if key not in known:
            hint = f" Give it as {RUN_OPTIONS[key]}." if key in RUN_OPTIONS else nearest(key, known)
            raise ParameterError(f"{model.name} has no setting {key!r}; it has {', '.join(known) or 'none'}.{hint}")
    return model(**settings)
