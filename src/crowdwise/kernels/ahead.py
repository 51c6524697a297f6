"""What more answers to a task would add: the expected probability of being right, and how well workers tell classes
apart. docs/maths/acquisition.md derives it."""

from __future__ import annotations

from math import comb

import numpy as np

from .layout import Floats, Ints


def expected_right(q: Floats, given: Floats, most: int) -> Floats:
    """Return the expected probability of being right (T, most + 1) now and after 1, 2, ... more answers.

    `q` (T, 2) are the probabilities of the label and of its rival, `given` (T, 2, 3) those that a worker gives the
    label, the rival or another label, if the label or the rival is true.
    """
    V = np.stack([q.max(1), *(_value(q, given, m) for m in range(1, most + 1))], axis=1)
    return np.asarray(np.maximum.accumulate(V, axis=1))  # up to rounding, it never falls


def _value(q: Floats, given: Floats, m: int) -> Floats:
    """(T,) sum over the counts c of m answers of max(q[0] P(c | label), q[1] P(c | rival))."""
    total = np.zeros(len(q))
    power = [given**0, *(given**n for n in range(1, m + 1))]
    for a in range(m + 1):
        for b in range(m + 1 - a):
            ways = comb(m, a) * comb(m - a, b)
            chance = power[a][:, :, 0] * power[b][:, :, 1] * power[m - a - b][:, :, 2]
            total += ways * (q * chance).max(1)
    return total


def label_rival_other(pi: Floats, truth: Ints, label: Ints, rival: Ints) -> Floats:
    """(T, 3) probabilities that a worker with the confusion matrix pi (K, K) gives the label, the rival, or another
    label."""
    return with_other(pi[truth, label], pi[truth, rival])


def with_other(first: Floats, second: Floats) -> Floats:
    """(T, 3) the probabilities of two labels, and of any other."""
    return np.stack([first, second, np.maximum(1 - first - second, 1e-12)], axis=1)


def information(first: Floats, second: Floats) -> Floats:
    """Symmetric Kullback-Leibler divergence between the distributions of answers under two true classes."""
    first, second = np.maximum(first, 1e-9), np.maximum(second, 1e-9)
    return np.asarray(((first - second) * np.log(first / second)).sum(-1))
