"""Majority vote: the label that most workers gave.

    (1)  q[i, k] = 1 / (number of classes tied for most votes on i) if k is one of them, else 0
With `ties="first"` the first of them has q = 1.

Derivation in docs/maths/majority_vote.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..engine import register
from ..engine.model import one_of, setting
from ..kernels.layout import Floats
from .votes import VoteModel


@register("majority-vote", "the label that most workers gave; all votes count equally")
@dataclass(frozen=True, kw_only=True)
class MajorityVote(VoteModel):
    """One vote per worker. It ignores skill, and is a robust baseline."""

    ties: str = setting(
        "split", one_of("split", "first"), "Tied classes share the probability, or the first in order gets all of it."
    )

    def decided(self, shares: Floats) -> Floats:
        top = shares.max(1, keepdims=True) * (1 - 1e-6) <= shares  # eq (1)
        if self.ties == "first":
            top &= np.cumsum(top, 1) == 1
        return np.asarray(np.divide(top, top.sum(1, keepdims=True), out=shares))
