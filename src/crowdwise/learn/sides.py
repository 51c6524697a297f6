"""Every worker side by its name, and the methods that papers compare by theirs."""

from __future__ import annotations

from typing import Any

from ..engine import LabelModel, make
from ..labels import MODELS
from . import cmm, eased, together
from .beside import SIDES
from .cmm import CMM
from .eased import Adaptive, Confusion, Fixed, FixedLiteral, Learned, TwoCoin
from .together import DLEM, Ideal, JointGroups, JointPooled, JointTied

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
    name, usual = PUBLISHED.get(name, (name, {}))
    kinds: dict[str, type[LabelModel]] = {**MODELS, **SIDES, Ideal.name: Ideal}
    return make(kinds, name, {**usual, **settings})


def revived(name: str, beside: bool, settings: dict[str, Any]) -> LabelModel:
    """The model of a saved result; `beside` says whether a classifier was its truth side."""
    return by_name(name, **settings) if beside or name not in MODELS else make(MODELS, name, settings)


__all__ = [
    "CMM", "DLEM", "PUBLISHED", "SIDES", "Adaptive", "Confusion", "Fixed", "FixedLiteral", "Ideal", "JointGroups",
    "JointPooled", "JointTied", "Learned", "TwoCoin", "by_name", "cmm", "eased", "revived", "together",
]  # fmt: skip
