"""Soft vote: the share of votes of each label, kept as a distribution.

    (1)  q[i, k] = (answers of task i that say k) / (answers of task i)

The lecture's naive soft labels; also where every fit starts. Derivation in docs/maths/soft_vote.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..engine import register
from .votes import VoteModel


@register("soft-vote", "the share of votes of each label, as a distribution")
@dataclass(frozen=True, kw_only=True)
class SoftVote(VoteModel):
    """Shares of votes: the labels of a majority vote with a naive doubt."""

    off = (-0.7, 0.9)
