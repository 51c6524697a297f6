"""Every worker side by its name, and the methods that papers compare by theirs."""

from __future__ import annotations

from typing import Any

from .. import labels  # noqa: F401 - its models register
from ..engine.registry import MODELS, make
from ..errors import ParameterError, nearest
from ..labels.model import LabelModel
from .cmm import CMM
from .difficulty import Adaptive, Confusion, Fixed, FixedLiteral, Learned, TwoCoin
from .joint import DLEM, Ideal, JointGroups, JointPooled, JointTied

# The comparison of Mena and Nanculef, 2019, with the settings of their runs.
PUBLISHED: dict[str, tuple[str, dict[str, Any]]] = {
    "softMV": ("soft-vote", {}),
    "hardMV": ("majority-vote", {}),
    "DL-DS": ("dawid-skene", {"smoothing": 0.0}),
    "DL-EM": ("dl-em", {"early": 0.03, "max_iter": 50}),
    "CMM": ("cmm", {"groups": 3, "early": 0.03, "max_iter": 50}),
    "Ideal": ("ideal", {}),
}


def by_name(name: str, /, **settings: Any) -> LabelModel:
    """A worker side, a model of answers alone or a published method, with hyperparameters. Where a side and a model
    of answers alone have one name, it is the side."""
    sides, alone = MODELS["learn"], MODELS["labels"]
    if not isinstance(name, str) or name not in {**alone, **sides, **PUBLISHED}:
        names = f"{', '.join(sides)}, of answers alone {', '.join(sorted(alone.keys() - sides))}"
        hint = nearest(str(name), [*alone, *sides, *PUBLISHED])
        raise ParameterError(f"workers is {name!r}; it can be {names}, or as published {', '.join(PUBLISHED)}.{hint}")
    name, usual = PUBLISHED.get(name, (name, {}))
    return make(sides.get(name) or alone[name], {**usual, **settings})  # type: ignore[return-value]


__all__ = [
    "CMM", "DLEM", "PUBLISHED", "Adaptive", "Confusion", "Fixed", "FixedLiteral", "Ideal", "JointGroups", "JointPooled",
    "JointTied", "Learned", "TwoCoin", "by_name",
]  # fmt: skip
