"""Why a task got its label, and what would flip it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..kernels.layout import Floats


@dataclass(frozen=True)
class Explanation:
    """A task's label against its strongest rival, as a sum of log-odds."""

    task: Any
    label: Any
    rival: Any  # None when there is one class only
    probability: float
    prior: float  # log-odds before any answer
    answers: pl.DataFrame  # worker, label, log_odds: positive speaks for the label
    total: float  # prior plus all answers
    removals: int | None  # fewest answers whose removal flips the label; None: no removal does
    additions: int | None  # answers of average workers for the rival that flip it; None: none would

    @property
    def flip(self) -> str:
        """What would flip the label, in words."""
        if self.rival is None:
            return "there is only one class, so nothing can flip the label"
        said = []
        if self.removals is not None:
            said.append(f"without the {self.removals} strongest answer(s) for it, the label would be {self.rival}")
        if self.additions is not None:
            said.append(f"{self.additions} more answer(s) {self.rival} by average workers would flip it")
        return "; ".join(said) if said else f"no answers by average workers would make it {self.rival}"

    def __str__(self) -> str:
        head = f"task {self.task}: {self.label}, probability {self.probability:.4f}"
        if self.rival is None:
            return f"{head}\n{self.flip}"
        rows = "\n".join(f"  {row[0]!s:<20} {row[1]!s:<16} {row[2]:+8.2f}" for row in self.answers.iter_rows())
        return (
            f"{head}\nlog-odds for {self.label} against {self.rival}:\n"
            f"  {'before any answer':<37} {self.prior:+8.2f}\n{rows}\n"
            f"  {'sum':<37} {self.total:+8.2f}\n{self.flip}"
        )


def removals_to_flip(total: float, log_odds: Floats) -> int | None:
    """How many of the strongest answers for the label must go until the sum falls below 0."""
    strongest = -np.sort(-log_odds[log_odds > 0])
    left = total - np.cumsum(strongest)
    flips = np.flatnonzero(left < 0)
    return int(flips[0]) + 1 if len(flips) else None


def additions_to_flip(total: float, one_more: float) -> int | None:
    """How many answers, each worth `one_more` (negative), take the sum below 0."""
    return max(1, math.floor(total / -one_more) + 1) if one_more < 0 else None
