"""Models with features: classifiers learnt from crowds, as scikit-learn estimators.

Two sides, each of which can be swapped: a classifier (`Logistic`, `Network`, `Refit`) says what the truth of a task may
be, a worker side (`SIDES`) how a person turns it into an answer.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import MissingError

# Public name -> the module it lives in, so that torch is loaded only for networks, scikit-learn only for classifiers.
_HOME = {
    "CrowdClassifier": "estimator",
    "Logistic": "logistic",
    "Refit": "refit",
    "Network": "network",
    "SIDES": "sides",
    "PUBLISHED": "sides",
    "TwoCoin": "sides",
    "Confusion": "sides",
    "Adaptive": "sides",
    "Learned": "sides",
    "Fixed": "sides",
    "FixedLiteral": "sides",
    "JointGroups": "sides",
    "JointTied": "sides",
    "JointPooled": "sides",
    "DLEM": "sides",
    "CMM": "sides",
    "Ideal": "sides",
    "load": "store",
}
_EXTRA = {"sklearn": "learn", "scipy": "learn", "torch": "deep"}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'crowdwise.learn' has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    except ModuleNotFoundError as error:
        raise missing(error) from error


def needed(extra: str) -> None:
    """Refuse where the libraries of an extra are not installed."""
    try:
        for module, brings in _EXTRA.items():
            if brings in ("learn", extra):
                importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise missing(error) from error


def missing(error: ModuleNotFoundError) -> Exception:
    """What to install, where a library of an extra is not there."""
    name = (error.name or "").split(".")[0]
    extra = _EXTRA.get(name)
    if extra is None:
        return error
    return MissingError(f"{name} is not installed. Say: pip install 'crowdwise[{extra}]'")
