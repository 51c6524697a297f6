"""How the posterior of a model becomes the probabilities that are reported.

Models assume that answers to a task are independent given the truth. Real answers are not, so posteriors are
overconfident, the more so the more answers a task has. Calibration starts from leave-one-out posteriors c: task i does
not contribute to the parameters with which it is judged. With v the votes of the task, n their number and m the share
of each label among all votes,
    (1)  p[i, k] ~ c[i, k] ** kappa[i],     kappa[i] = 1 / (1 + rho[i] (n[i] - 1))      tempered posterior
    (2)  s[i, k] = (v[i, k] + m[k]) / (n[i] + 1)                                        smoothed vote
    (3)  r[i, k] = (1 - g[i]) p[i, k] + g[i] s[i, k]                                    reported probability
n[i] kappa[i] is the effective number of votes: n votes whose errors have the correlation rho carry as much information
as that many independent ones (Kish 1965). rho[i] and g[i] lie between a small and a large value; they are large if
answers share errors, or if the answers of the task are too few to show whether they do:
    (4)  y[i] = max(x, 1 - clip((n[i] - 3) / 7, 0, 1)),   rho = 0.05 + 0.15 y,   g = 0.02 + 0.08 y
x from 0 to 1 is the evidence for shared errors (`dependence`). Two guards then replace (3) as far as they apply:
    (5)  r <- (1 - f) r + f s                      if a class swallows tasks, or if no tasks are shared
    (6)  r <- t r + (1 - t) (0.8 / K + 0.2 s)      if the crowd is no better than chance; t is the trust in it
docs/maths/calibration.md has the reasons and the figures.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kernels.layout import Floats

MIN_CORRELATION, MAX_CORRELATION = 0.05, 0.2  # of errors: rho in eq (4)
MIN_VOTE, MAX_VOTE = 0.02, 0.1  # weight of the vote: g in eq (4)
FEW_VOTES, ENOUGH_VOTES = 3, 10  # votes between which a task begins to show whether errors are shared
VOTE_AT_CHANCE = 0.2  # weight of the vote if the crowd is at chance, eq (6)


class Calibration(NamedTuple):
    """What calibration depends on besides the votes of a task."""

    shared: float = 1.0  # x: evidence for shared errors, from 0 to 1
    fallback: float = 0.0  # f: weight of the vote in place of the model
    trust: float = 1.0  # t: 0 for a crowd at chance


class Weights(NamedTuple):
    """The weights of a task's probabilities, (T,) each."""

    kappa: Floats  # power of the posterior in eq (1)
    model: Floats  # of the tempered posterior in the reported probability
    vote: Floats  # of the smoothed vote; the rest is the uniform distribution


class Dependence(NamedTuple):
    """How far answers depend on each other, and what that does to the fit and its probabilities."""

    shared: float | None  # x: evidence for shared errors; None if too few tasks have enough answers
    seen: bool  # whether the answers show shared errors beyond chance
    anchor: float  # weight of the vote in the fit
    vote: tuple[float, float]  # weight of the vote in reported probabilities: of tasks with many and with few answers


class TaskParts(NamedTuple):
    """What the reported probabilities of one task are made of, eqs (1) to (6); the rest is uniform."""

    power: float  # kappa
    effective_votes: float
    model: float  # weight of the tempered posterior
    posterior: Floats  # (K,) the tempered posterior
    vote: float  # weight of the smoothed vote
    shares: Floats  # (K,) the smoothed vote


def weights(n: Floats, how: Calibration) -> Weights:
    """Return the weights of tasks with `n` (T,) votes."""
    y = np.maximum(how.shared, 1 - np.clip((n - FEW_VOTES) / (ENOUGH_VOTES - FEW_VOTES), 0, 1))
    rho = MIN_CORRELATION + (MAX_CORRELATION - MIN_CORRELATION) * y
    g = MIN_VOTE + (MAX_VOTE - MIN_VOTE) * y
    own = how.trust * (1 - how.fallback) * (1 - g)
    vote = how.trust - own + (1 - how.trust) * VOTE_AT_CHANCE
    return Weights(1 / (1 + rho * np.maximum(n - 1, 0)), own, vote)


def vote_range(how: Calibration) -> tuple[float, float]:
    """Return the weight of the vote in the probabilities of tasks with many and with few answers."""
    many, few = weights(np.array([ENOUGH_VOTES, FEW_VOTES]), how).vote
    return float(many), float(few)


def effective_votes(n: Floats, how: Calibration) -> Floats:
    """Return the number of independent votes (T,) that carry as much information as the `n` votes of a task."""
    return np.asarray(n * weights(n, how).kappa)


def smoothed_votes(votes: Floats, mean: Floats) -> Floats:
    """Eq (2): vote shares (T, K), with the label shares `mean` (K,) as one more vote."""
    return np.asarray((votes + mean) / (votes.sum(1, keepdims=True) + 1))


def calibrated(posterior: Floats, votes: Floats, mean: Floats, how: Calibration) -> Floats:
    """Return the reported probabilities (T, K) of leave-one-out posteriors, given votes (T, K)."""
    w = weights(votes.sum(1, dtype=np.float64), how)
    with np.errstate(divide="ignore"):
        p = np.log(posterior, dtype=np.float64)
    p -= p.max(1, keepdims=True)
    np.exp(p * w.kappa[:, None], out=p)
    p *= (w.model / p.sum(1))[:, None]
    p += w.vote[:, None] * smoothed_votes(votes, mean)
    return np.asarray(p + ((1 - w.model - w.vote) / votes.shape[1])[:, None])


def uncalibrated(reported: Floats, votes: Floats, mean: Floats, how: Calibration) -> tuple[Floats, Floats]:
    """Return the tempered posterior p (T, K) of eq (1) from the reported probabilities, and its weight (T,)."""
    w = weights(votes.sum(1, dtype=np.float64), how)
    rest = w.vote[:, None] * smoothed_votes(votes, mean) + ((1 - w.model - w.vote) / votes.shape[1])[:, None]
    p = np.maximum(reported - rest, 0)
    total = p.sum(1, keepdims=True)
    return np.where(total > 0, p / np.maximum(total, 1e-300), smoothed_votes(votes, mean)), w.model
