"""Soft vote: the distribution of the votes over labels.

    (1)  q[i, k] = (answers of task i with label k) / (answers of task i)

Iterative models start from it. Derivation in docs/maths/soft_vote.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..engine import register
from .votes import VoteModel


@register("soft-vote", "the share of votes for each label, as a distribution")
@dataclass(frozen=True, kw_only=True)
class SoftVote(VoteModel):
    """The labels of a majority vote, with vote shares as probabilities."""

    calibration_offset = (-0.7, 0.9)
