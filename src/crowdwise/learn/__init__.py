"""Models with features: scikit-learn estimators that learn a classifier from crowd labels.

A model has two exchangeable sides. The classifier (`Logistic`, `Network`, `Refit`) predicts the true class of a task
from its features; the worker side (`crowdwise.models("learn")`) models the label that a worker gives, given the class.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..engine.resources import require

# Module -> extras that it needs, and its public names. Torch is imported only for networks.
_MODULES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "estimator": (("learn",), ("CrowdClassifier",)),
    "logistic": (("learn",), ("Logistic",)),
    "refit": (("learn",), ("Refit",)),
    "network": (("deep",), ("Network",)),
    "store": (("learn",), ("load",)),
    "sides": ((), ("PUBLISHED", "TwoCoin", "Confusion", "Adaptive", "Learned", "Fixed", "FixedLiteral", "JointGroups",
                   "JointTied", "JointPooled", "DLEM", "CMM", "Ideal")),
}  # fmt: skip
_HOME = {name: module for module, (_, names) in _MODULES.items() for name in names}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'crowdwise.learn' has no attribute {name!r}")
    module = _HOME[name]
    require(_MODULES[module][0], f"crowdwise.learn.{name}")
    return getattr(importlib.import_module(f".{module}", __name__), name)
