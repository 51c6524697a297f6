"""Functions of arrays: digamma, log-gamma, softmax, divergences of confusion matrices, labels of a posterior.

scipy has the first three, but importing scipy.special takes twice as long as importing numpy, and commands on small
files should be fast. `fast` has compiled versions of the first two; tests compare both with scipy.
"""

from __future__ import annotations

import numpy as np

from .layout import Bools, Floats, Ints

MIN_PROBABILITY = 1e-7  # smaller probabilities are raised to this in divergences and entropies
TIE = 1e-6  # probabilities that differ by at most this are tied


def digamma(x: Floats) -> Floats:
    """Return psi(x) for x > 0: the argument is shifted by 7, then the asymptotic series is used."""
    y, shift = _shifted(x)
    inverse = 1.0 / (y * y)
    series = inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse / 132))))
    return np.asarray(np.log(y) - 0.5 / y - series - sum(1.0 / (x + i) for i in range(shift)))


def trigamma(x: Floats) -> Floats:
    """Return the derivative of psi(x) for x > 0, with the same shift."""
    y, shift = _shifted(x)
    inverse = 1.0 / (y * y)
    series = (1 + inverse * (1 / 6 - inverse * (1 / 30 - inverse * (1 / 42 - inverse / 30)))) / y
    return np.asarray(series + 0.5 * inverse + sum(1.0 / ((x + i) * (x + i)) for i in range(shift)))


def gammaln(x: Floats) -> Floats:
    """Return log Gamma(x) for x > 0, with the same shift and Stirling's series."""
    y, shift = _shifted(x)
    inverse = 1.0 / (y * y)
    series = (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse / 1188)))) / y
    product = np.ones_like(y)
    for i in range(shift):
        product *= x + i
    return np.asarray((y - 0.5) * np.log(y) - y + 0.9189385332046727 + series - np.log(product))


def _shifted(x: Floats) -> tuple[Floats, int]:
    return np.asarray(x, np.float64) + 7.0, 7


def expit(x: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)) without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


def softmax(logs: Floats) -> Floats:
    """Return exp(logs), normalised to sum to 1 over the last axis."""
    p = np.exp(logs - logs.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    return np.asarray(p)


def dirichlet_kl(counts: Floats, prior: Floats) -> float:
    """Return the sum over rows of KL(Dirichlet(prior + counts) || Dirichlet(prior)); counts (..., L), prior broadcast.

    It is for small arrays, such as class shares; the kernels have faster code for confusion matrices.
    """
    posterior = counts + prior
    total, prior_total = posterior.sum(-1), np.broadcast_to(prior, posterior.shape).sum(-1)
    norm = gammaln(total) - gammaln(prior_total) - (gammaln(posterior) - gammaln(prior)).sum(-1)
    return float(np.sum(norm + (counts * (digamma(posterior) - digamma(total)[..., None])).sum(-1)))


def divergence(first: Floats, second: Floats) -> Floats:
    """Return the Jensen-Shannon divergence (...) of two matrices, the mean over rows, in bits: from 0 to 1."""
    p, q = np.clip(first, MIN_PROBABILITY, 1), np.clip(second, MIN_PROBABILITY, 1)
    middle = (p + q) / 2
    rows = (p * np.log2(p / middle)).sum(-1) + (q * np.log2(q / middle)).sum(-1)
    return np.asarray(rows.mean(-1) / 2)


def similarity(matrices: Floats) -> Floats:
    """Return the similarity (...) of matrices to the identity: 1 minus the divergence from it."""
    return np.asarray(1 - divergence(matrices, np.eye(matrices.shape[-1])))


def entropy(matrices: Floats) -> Floats:
    """Return the mean entropy (...) of a row, in bits: from 0 to log2 K."""
    p = np.clip(matrices, MIN_PROBABILITY, 1)
    return np.asarray(np.abs((p * np.log2(p)).sum(-1)).mean(-1))


def decide(posterior: Floats, prevalence: Floats) -> tuple[Ints, Floats, Bools]:
    """Return the most probable class of each task, its probability, and whether it is tied.

    Ties go to the more prevalent class, then to the first in class order; neither depends on the order of rows.
    """
    T, K = posterior.shape
    if T == 0 or K == 0:
        return np.zeros(T, np.int32), np.zeros(T), np.zeros(T, bool)
    top = posterior.max(1)
    label = posterior.argmax(1).astype(np.int32)
    tied = posterior >= top[:, None] - TIE
    tie = np.count_nonzero(tied, axis=1) > 1
    if tie.any():
        by_share = np.argsort(-prevalence, kind="stable")
        label[tie] = by_share[tied[tie][:, by_share].argmax(1)]
    return label, top.astype(np.float64), tie


def classes_of(posterior: Floats, prevalence: Floats, gold: Ints) -> Ints:
    """Return the class number of each task (T,): the gold class if known, else the most probable one. Without answers
    that is the most prevalent class."""
    return np.where(gold >= 0, gold, decide(posterior, prevalence)[0])
