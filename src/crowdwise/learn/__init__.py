"""Models with features: scikit-learn estimators that learn a classifier from crowd labels.

A model has two exchangeable sides. The classifier (`Logistic`, `Network`, `Refit`) predicts the true class of a task
from its features; the worker side (`crowdwise.models("learn")`) models the label that a worker gives, given the class.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..discovery import model_homes
from ..engine.resources import require

# Module -> extras that it needs, and its public names. Torch is imported only for networks.
_MODULES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "estimator": (("learn",), ("CrowdClassifier",)),
    "logistic": (("learn",), ("Logistic",)),
    "refit": (("learn",), ("Refit",)),
    "network": (("deep",), ("Network",)),
    "store": (("learn",), ("load",)),
    "sides": ((), ("PUBLISHED",)),
}
# Public name -> its module and the extras that it needs; models are found in their files.
_HOME = {name: (f"{__name__}.{module}", extras) for module, (extras, names) in _MODULES.items() for name in names}
_HOME |= {name: (module, ()) for name, module in model_homes(__name__).items()}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'crowdwise.learn' has no attribute {name!r}")
    module, extras = _HOME[name]
    require(extras, f"crowdwise.learn.{name}")
    return getattr(importlib.import_module(module), name)
