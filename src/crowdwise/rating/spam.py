"""Spammers: score and trace of confusion matrices (Raykar & Yu 2011), and who answers at chance or inverted.

(1)  distance = min over v of || pi - 1 v' ||^2 (Frobenius); the best v is the mean of the rows of pi
(2)  score = distance / (K - 1): 0 for who answers whatever the truth is, 1 for answers that give the truth away
(3)  trace = mean of the diagonal of pi
For flags, a worker's chance of a right answer is put on a scale where 0 is what answering at random would give, with
the worker's own mix of labels on these tasks, 1 is always right and -1 never right. How workers are spread over that
scale is learnt from the whole crowd (a mixture over a grid, by EM), so that a flag is a posterior probability: in a
crowd without spammers nobody becomes one by bad luck alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..kernels.layout import Bools, Floats, Ints

MAX_CELLS = 400_000_000  # cells of confusion matrices beyond which they are not gone through
MATRIX_CELLS = 4_000_000  # of them at a time
GRID = np.linspace(-1, 1, 81)
AT_CHANCE = 0.175  # below this on the scale next to nothing is to be had of a worker
INVERTED = -0.2
SURE = 0.95
BEFORE = 5.0  # workers that the spread starts from: nearly all of them honest
ROUNDS = 300
SAMPLE = 4000  # workers that the spread is learnt from
WORKERS_AT_ONCE = 100_000  # workers judged at a time

Matrices = Callable[[Ints], Floats]  # worker numbers (M,) -> (M, K, K)


def spam_and_trace(matrices: Matrices | None, n_workers: int, n_classes: int) -> tuple[Floats, Floats]:
    """(W,) eqs (1) and (3); not-a-number where there is no matrix, or too many cells."""
    distance, trace = np.full(n_workers, np.nan), np.full(n_workers, np.nan)
    cells = n_classes**2
    if matrices is None or n_workers * cells > MAX_CELLS:
        return distance, trace
    step = max(1, MATRIX_CELLS // cells)
    for start in range(0, n_workers, step):
        part = np.arange(start, min(start + step, n_workers), dtype=np.int32)
        distance[part], trace[part] = of_matrices(matrices(part))
    return distance, trace


def of_matrices(pi: Floats) -> tuple[Floats, Floats]:
    """(M,) distance and trace of matrices (M, K, K)."""
    away = pi - pi.mean(1, keepdims=True)
    return np.einsum("mkl,mkl->m", away, away), np.einsum("mkk->m", pi) / pi.shape[1]


class Evidence(NamedTuple):
    """What one way of looking says of every worker."""

    share: Floats  # (W,) of right answers
    worth: Floats  # (W,) answers with known truth that this share is worth


class Verdict(NamedTuple):
    at_chance: Bools  # (W,)
    inverted: Bools  # (W,)


def verdicts(model: Evidence, votes: Evidence, chance: Floats) -> Verdict:
    """By the model's evidence, unless that of the bare votes of the others speaks against it: where a model has found a
    wrong truth, honest workers look like spammers to it. `chance` (W,) is what answering at random would give."""
    low, wrong = _beliefs(model, chance)
    second, _ = _beliefs(votes, chance)
    spam = (low > SURE) & (second > 0.5)
    swapped = wrong > SURE * low
    return Verdict(spam & ~swapped, spam & swapped)


def _beliefs(seen: Evidence, chance: Floats) -> tuple[Floats, Floats]:
    """(W,) posterior probability of being at chance or below, and of being the wrong way round."""
    W = len(chance)
    some = np.arange(0, W, max(1, -(-W // SAMPLE)))
    spread = _learn(_likelihood(seen.share[some], seen.worth[some], chance[some]))
    low, wrong = np.empty(W), np.empty(W)
    for start in range(0, W, WORKERS_AT_ONCE):
        part = slice(start, start + WORKERS_AT_ONCE)
        belief = _likelihood(seen.share[part], seen.worth[part], chance[part]) * spread
        belief /= belief.sum(1, keepdims=True)
        low[part] = belief[:, GRID < AT_CHANCE].sum(1)
        wrong[part] = belief[:, GRID <= INVERTED].sum(1)
    return low, wrong


def _likelihood(share: Floats, worth: Floats, chance: Floats) -> Floats:
    """(W, G) of the share under each place on the scale, up to a factor a worker."""
    c = np.clip(chance, 0.02, 0.98)[:, None]
    p = np.clip(np.where(GRID >= 0, c + (1 - c) * GRID, c * (1 + GRID)), 0.005, 0.995)
    logs = worth[:, None] * (share[:, None] * np.log(p) + (1 - share[:, None]) * np.log1p(-p))
    return np.asarray(np.exp(logs - logs.max(1, keepdims=True)))


def _learn(fit: Floats) -> Floats:
    """(G,) how the crowd is spread over the scale."""
    honest = GRID >= 0.2
    prior = np.where(honest, 0.94 / honest.sum(), 0.06 / (~honest).sum())
    spread = prior
    for _ in range(ROUNDS):
        member = fit * spread
        member /= member.sum(1, keepdims=True)
        spread = (member.sum(0) + BEFORE * prior) / (len(fit) + BEFORE)
    return np.asarray(spread)
