"""Workers as two coins: one for pairs that are the same, one for pairs that are not (Dawid-Skene on pairs)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kernels.layout import Floats
from ..kernels.special import digamma, dirichlet_kl
from .model import PairAnswers


class Coins(NamedTuple):
    """Beta posteriors of sensitivity and specificity."""

    alpha: Floats  # (W, 2) called the same, called different, of pairs that are the same
    beta: Floats  # (W, 2) called different, called the same, of pairs that are not
    prior: Floats  # (2,) Beta parameters before any answer

    @classmethod
    def seen(cls, answers: PairAnswers, same: Floats, prior: Floats) -> Coins:
        """What answers say of workers where each pair is the same with a chance `same` (A,)."""
        W, w = answers.n_workers, answers.weight
        yes, no = np.where(answers.same, w, 0.0), np.where(answers.same, 0.0, w)

        def by_worker(a: Floats, b: Floats) -> Floats:
            counts = [np.bincount(answers.worker, each, minlength=W) for each in (a, b)]
            return np.asarray(np.column_stack(counts) + prior)

        return cls(by_worker(yes * same, no * same), by_worker(no * (1 - same), yes * (1 - same)), prior)

    def logs(self, answers: PairAnswers) -> tuple[Floats, Floats]:
        """(A,) weighted expected log-chances of each answer if the pair is the same, and if it is not."""
        a, b = (digamma(each) - digamma(each.sum(1))[:, None] for each in (self.alpha, self.beta))
        w, s = answers.worker, answers.same
        return (
            answers.weight * np.where(s, a[w, 0], a[w, 1]),
            answers.weight * np.where(s, b[w, 1], b[w, 0]),
        )

    def divergence(self) -> float:
        """How far the posteriors are from the prior: what they cost in the bound."""
        return dirichlet_kl(self.alpha - self.prior, self.prior) + dirichlet_kl(self.beta - self.prior, self.prior)


def first_odds(answers: PairAnswers, right: float = 0.9) -> Floats:
    """(A,) log-odds of the same by each answer, of workers who are all as good."""
    return np.asarray(answers.weight * np.log(right / (1 - right)) * np.where(answers.same, 1.0, -1.0))
