"""Every model by its name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import TypeVar

from ..engine import LabelModel

MODELS: dict[str, type[LabelModel]] = {}
DEFAULT = "pooled"

M = TypeVar("M", bound=type[LabelModel])


def register(name: str, about: str) -> Callable[[M], M]:
    """Give a model its name and one line about it; from then on every command, comparison and contract test has it."""

    def keep(kind: M) -> M:
        kind.name, kind.about = name, about
        MODELS[name] = kind
        return kind

    return keep


def discover() -> None:
    """Import every file of this folder, so that it can register."""
    package = __package__ or ""
    for info in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{info.name}")
