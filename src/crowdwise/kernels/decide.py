"""From a posterior to labels."""

from __future__ import annotations

import numpy as np

from .layout import Bools, Floats, Ints

TIE = 1e-6  # probabilities closer than this are tied


def decide(posterior: Floats, prevalence: Floats) -> tuple[Ints, Floats, Bools]:
    """Most probable class of each task, its probability, and whether it is tied.

    Among tied classes the more prevalent one is taken, then the first in class order: neither depends on row order.
    """
    T, K = posterior.shape
    if T == 0 or K == 0:
        return np.zeros(T, np.int32), np.zeros(T), np.zeros(T, bool)
    top = posterior.max(1)
    label = posterior.argmax(1).astype(np.int32)
    near = posterior >= top[:, None] - TIE
    tie = np.count_nonzero(near, axis=1) > 1
    if tie.any():
        by_share = np.argsort(-prevalence, kind="stable")
        label[tie] = by_share[near[tie][:, by_share].argmax(1)]
    return label, top.astype(np.float64), tie


def classes_of(posterior: Floats, prevalence: Floats, gold: Ints) -> Ints:
    """(T,) number of the class of each task: the known one, else the most probable, which is the most prevalent where
    nothing is known."""
    return np.where(gold >= 0, gold, decide(posterior, prevalence)[0])
