"""Spammers: score and trace of confusion matrices (Raykar & Yu 2011), and flags for workers at chance or inverted.

(1)  distance = min over v of || pi - 1 v' ||^2 (Frobenius); the best v is the mean of the rows of pi
(2)  score = distance / (K - 1): 0 if the answers do not depend on the truth, 1 if they determine it
(3)  trace = mean of the diagonal of pi
For flags, a worker's accuracy is mapped to a scale from -1 (never correct) to 1 (always correct), where 0 is the
accuracy of random answers with the worker's own label shares. The distribution of workers on this scale is learnt from
the whole crowd (a mixture over a grid, by EM). A flag is therefore based on a posterior probability: in a crowd without
spammers, no worker is flagged by bad luck alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..kernels.layout import Bools, Floats, Ints

MAX_MATRIX_CELLS = 400_000_000  # elements of all confusion matrices above which they are not computed
CHUNK_MATRIX_CELLS = 4_000_000  # elements of the confusion matrices of a chunk of workers
GRID = np.linspace(-1, 1, 81)
AT_CHANCE = 0.175  # workers below this on the scale carry almost no information
INVERTED = -0.2  # workers at or below this on the scale may have swapped labels
FLAG_PROBABILITY = 0.95  # of being at chance, for a flag
PRIOR_WORKERS = 5.0  # pseudo-workers in the distribution, nearly all of them honest
EM_ITERATIONS = 300
MAX_SAMPLE_WORKERS = 4000  # workers from which the distribution is learnt
CHUNK_WORKERS = 100_000  # workers in a chunk

Matrices = Callable[[Ints], Floats]  # worker numbers (M,) -> (M, K, K)


def spam_and_trace(matrices: Matrices | None, n_workers: int, n_classes: int) -> tuple[Floats, Floats]:
    """Return distance and trace of each worker (W,), eqs (1) and (3); NaN without matrices or if they are too large."""
    distance, trace = np.full(n_workers, np.nan), np.full(n_workers, np.nan)
    cells = n_classes**2
    if matrices is None or n_workers * cells > MAX_MATRIX_CELLS:
        return distance, trace
    step = max(1, CHUNK_MATRIX_CELLS // cells)
    for start in range(0, n_workers, step):
        part = np.arange(start, min(start + step, n_workers), dtype=np.int32)
        distance[part], trace[part] = of_matrices(matrices(part))
    return distance, trace


def of_matrices(pi: Floats) -> tuple[Floats, Floats]:
    """Return distance and trace (M,) of matrices (M, K, K)."""
    away = pi - pi.mean(1, keepdims=True)
    return np.einsum("mkl,mkl->m", away, away), np.einsum("mkk->m", pi) / pi.shape[1]


class Evidence(NamedTuple):
    """Estimated accuracy of each worker."""

    share: Floats  # (W,) share of correct answers
    worth: Floats  # (W,) equivalent number of answers to tasks with known truth


class Verdict(NamedTuple):
    at_chance: Bools  # (W,)
    inverted: Bools  # (W,)


def verdicts(model: Evidence, votes: Evidence, chance: Floats) -> Verdict:
    """Return which workers are at chance or inverted, by the model's evidence. The evidence of the other workers' votes
    must agree: if a model has converged to a wrong truth, honest workers look like spammers to it. `chance` (W,) is the
    accuracy of random answers."""
    low, wrong = _beliefs(model, chance)
    second, _ = _beliefs(votes, chance)
    spam = (low > FLAG_PROBABILITY) & (second > 0.5)
    swapped = wrong > FLAG_PROBABILITY * low
    return Verdict(spam & ~swapped, spam & swapped)


def _beliefs(seen: Evidence, chance: Floats) -> tuple[Floats, Floats]:
    """Return the posterior probabilities (W,) of being at chance or below, and of being inverted."""
    W = len(chance)
    some = np.arange(0, W, max(1, -(-W // MAX_SAMPLE_WORKERS)))
    spread = _learn(_likelihood(seen.share[some], seen.worth[some], chance[some]))
    low, wrong = np.empty(W), np.empty(W)
    for start in range(0, W, CHUNK_WORKERS):
        part = slice(start, start + CHUNK_WORKERS)
        belief = _likelihood(seen.share[part], seen.worth[part], chance[part]) * spread
        belief /= belief.sum(1, keepdims=True)
        low[part] = belief[:, GRID < AT_CHANCE].sum(1)
        wrong[part] = belief[:, GRID <= INVERTED].sum(1)
    return low, wrong


def _likelihood(share: Floats, worth: Floats, chance: Floats) -> Floats:
    """Return the likelihood (W, G) of each worker's share at each grid point, up to a factor per worker."""
    c = np.clip(chance, 0.02, 0.98)[:, None]
    p = np.clip(np.where(GRID >= 0, c + (1 - c) * GRID, c * (1 + GRID)), 0.005, 0.995)
    logs = worth[:, None] * (share[:, None] * np.log(p) + (1 - share[:, None]) * np.log1p(-p))
    return np.asarray(np.exp(logs - logs.max(1, keepdims=True)))


def _learn(fit: Floats) -> Floats:
    """Return the distribution (G,) of the crowd over the grid."""
    honest = GRID >= 0.2
    prior = np.where(honest, 0.94 / honest.sum(), 0.06 / (~honest).sum())
    spread = prior
    for _ in range(EM_ITERATIONS):
        evidence = np.einsum("jg,g->j", fit, spread)
        members = spread * np.einsum("j,jg->g", 1 / evidence, fit)  # (G,) expected workers at each grid point
        spread = (members + PRIOR_WORKERS * prior) / (len(fit) + PRIOR_WORKERS)
    return np.asarray(spread)
