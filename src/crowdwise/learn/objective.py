"""What both sides maximise together: the log-likelihood of the answers, given features, plus the log-prior of workers.

Classifier: logits f[i] of task i, prior P(z_i) = softmax(f[i]). Worker j: odds[j, k, l] >= 0, the log-odds of the truth
k over a wrong label l on the easiest task. Ease h[i] of task i, from 0 (all guess) to 1 (as good as they can be).
    (1)  P(j says l | z_i = k) ~ exp(-h[i] odds[j, k, l]),    odds[j, k, k] = 0
    (2)  log p(answers of i) = log sum_k P(z_i = k) prod over answers n of P(label_n | k)
    (3)  objective = sum_i (2) - r/2 sum (odds - c)^2 - 1/2 (c - c0)^2 - 1/2 log(kappa)^2 + what the classifier adds
with c the crowd's common odds (found in closed form, whatever the odds are) or, for a side that holds workers near
their start, those. Derivation, and the eqs (1), (2) of the paper as the case K = 2: docs/maths/difficulty.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..kernels import TINY, plain, special
from ..kernels.layout import Floats, Ints, Layout, per_worker

if TYPE_CHECKING:
    from ..labels.shard import Shard

Bounds = tuple[Floats, Floats]  # lowest and highest

MAX_ODDS = 30.0  # log-odds beyond are as good as certainty
SHARPENING = 2.0  # shares of votes understate what is known: logits learnt from them start this much larger
LBFGS_MEMORY = 20  # steps that L-BFGS remembers
LBFGS_STEPS = 50  # in an iteration
MAX_LOG_KAPPA = 2.0


class Value(NamedTuple):
    """The objective at one place, and its slopes."""

    total: float
    logits: Floats  # (T, K)
    theta: Floats  # (S,)


class Ease(NamedTuple):
    """How easy tasks are, and by what it changes."""

    h: Floats  # (T,)
    slope: Floats | None  # (T, K) by the scaled logits; None where classifiers do not matter


class Objective:
    """The objective of one side on some answers, as a function of logits (T, K) and the workers' numbers `theta`:
    all odds off the diagonal, then log(kappa) where it is learnt."""

    def __init__(self, shard: Shard, *, ridge: float, free: bool, kappa: float | None, ease: Floats | None) -> None:
        """`ease` (T,) is given, or follows from the classifier with a sharpness `kappa`, None to learn it."""
        self.shard, self.ridge, self.free, self.given = shard, ridge, free, ease
        self.learns = ease is None and kappa is None
        self.log_kappa = 0.0 if kappa is None else float(np.log(kappa))
        K = shard.layout.n_classes
        self.shape = (shard.layout.n_workers, K, K)
        self.off = ~np.eye(K, dtype=bool)
        self.centre: Floats | None = None  # (W, K, K) odds to hold to; None: to the crowd's
        self.usual = float(np.log(3 * max(K - 1, 1)))  # c0: right three times in four

    @property
    def bounds(self) -> Bounds:
        count = int(self.shape[0] * self.off.sum())
        high = np.append(np.full(count, MAX_ODDS), [MAX_LOG_KAPPA] * self.learns)
        return (-high if self.free else np.append(np.zeros(count), [-MAX_LOG_KAPPA] * self.learns)), high

    def pack(self, odds: Floats, log_kappa: float) -> Floats:
        return np.append(odds[:, self.off].ravel(), log_kappa if self.learns else [])

    def unpack(self, theta: Floats) -> tuple[Floats, float]:
        odds = np.zeros(self.shape)
        count = self.shape[0] * int(self.off.sum())
        odds[:, self.off] = theta[:count].reshape(self.shape[0], -1)
        return odds, float(theta[-1]) if self.learns else self.log_kappa

    def ease(self, logits: Floats, log_kappa: float, tasks: Ints | slice = slice(None)) -> Ease:
        """Of all tasks, or of some whose logits are given."""
        if self.given is not None:
            return Ease(self.given[tasks], None)
        return ease_by_classifier(logits, log_kappa)

    def curvature(self, theta: Floats, logits: Floats, Z: Floats) -> Floats:
        """(S,) about how much the slope by theta changes with it, at the posterior Z."""
        layout = self.shard.layout
        odds, log_kappa = self.unpack(theta)
        h = self.ease(logits, log_kappa).h
        rows = self.shard.kernels.confusion_counts(layout, Z * (h * h)[:, None], self.shard.threads)
        weight = per_worker(layout, rows)[:, :, None]
        p = np.exp(-odds)
        p /= p.sum(2, keepdims=True)
        curvature = (weight * p * (1 - p) + self.ridge)[:, self.off].ravel()
        return np.asarray(np.maximum(np.append(curvature, [len(logits)] * self.learns), 1e-3))

    def penalty(self, odds: Floats, log_kappa: float) -> tuple[float, Floats]:
        """Log-prior of the workers, and its slope by the odds off the diagonal."""
        free = odds[:, self.off]
        if self.centre is not None:
            apart = free - self.centre[:, self.off]
            spread = 0.0
        else:  # the crowd's odds that fit these best
            centre = (self.usual + self.ridge * free.sum()) / (1 + self.ridge * free.size)
            apart, spread = free - centre, (centre - self.usual) ** 2
        fall = self.ridge * (apart**2).sum() + spread + self.learns * log_kappa**2
        return -0.5 * float(fall), -self.ridge * apart

    def __call__(self, logits: Floats, theta: Floats) -> Value:
        shard = self.shard
        odds, log_kappa = self.unpack(theta)
        ease, prior = self.ease(logits, log_kappa), softmax(logits)
        Z, by_ease = np.zeros_like(prior), np.empty(len(prior))
        swept = shard.kernels.difficulty_posterior(
            shard.layout, odds, ease.h, prior, shard.gold, Z, by_ease, shard.threads
        )
        slopes = shard.kernels.difficulty_slopes(shard.layout, odds, ease.h, Z, shard.threads)
        log_prior, fall = self.penalty(odds, log_kappa)
        by_logits, by_kappa = self._through(logits, prior, Z, ease, by_ease, log_kappa)
        theta_slope = (slopes[:, self.off] + fall).ravel()
        if self.learns:
            theta_slope = np.append(theta_slope, by_kappa - log_kappa)
        return Value(swept.evidence + log_prior, by_logits, theta_slope)

    def _through(
        self, logits: Floats, prior: Floats, Z: Floats, ease: Ease, by_ease: Floats, log_kappa: float
    ) -> tuple[Floats, float]:
        """Slopes by the logits, as prior and as ease, and by log(kappa). Tasks without answers have none."""
        by_logits, by_kappa = Z - prior, 0.0
        if ease.slope is not None:
            through = np.exp(log_kappa) * by_ease[:, None] * ease.slope
            by_logits += through
            by_kappa = float((through * logits).sum())
        return by_logits, by_kappa

    def some(self, tasks: Ints, logits: Floats, odds: Floats, log_kappa: float) -> tuple[float, Floats]:
        """Evidence of some tasks alone, and its slope by their logits: what a network is taught in a batch."""
        layout, gold = part_of(self.shard.layout, tasks), self.shard.gold[tasks]
        ease, prior = self.ease(logits, log_kappa, tasks), softmax(logits)
        Z, by_ease = np.zeros_like(prior), np.empty(len(prior))
        swept = plain.difficulty_posterior(layout, odds, ease.h, prior, gold, Z, by_ease, 1)
        return swept.evidence, self._through(logits, prior, Z, ease, by_ease, log_kappa)[0]


def part_of(layout: Layout, tasks: Ints) -> Layout:
    """The answers of some tasks in task order, which is all that the posterior of tasks needs."""
    first = layout.task_ptr[tasks]
    count = layout.task_ptr[tasks + 1] - first
    ptr = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
    at = np.arange(ptr[-1]) - np.repeat(ptr[:-1], count) + np.repeat(first, count)
    return layout._replace(task_ptr=ptr, pair=layout.pair[at])


def ease_of(p: Floats) -> Floats:
    """(T,) how far probabilities (T, K) are from being all the same, 0, towards certainty, 1."""
    K = p.shape[1]
    return np.asarray((K * (p * p).sum(1) - 1) / (K - 1)) if K > 1 else np.ones(len(p))


def ease_by_classifier(logits: Floats, log_kappa: float) -> Ease:
    """h = (K |p|^2 - 1) / (K - 1) with p = softmax(kappa f): for two classes 4 (p - 1/2)^2."""
    K = logits.shape[1]
    if K == 1:
        return Ease(np.ones(len(logits)), None)
    p = softmax(np.exp(log_kappa) * logits)
    return Ease(ease_of(p), 2 * K / (K - 1) * p * (p - (p * p).sum(1, keepdims=True)))


def ease_by_votes(votes: Floats) -> Floats:
    """(T,) the same of shares of votes (T, K); where there are none, all are as likely."""
    K = votes.shape[1]
    total = votes.sum(1, keepdims=True)
    shares = np.divide(votes, total, out=np.full(votes.shape, 1 / K), where=total > 0)
    return ease_of(shares)


def softmax(logits: Floats) -> Floats:
    """Rows of probabilities, none of them 0."""
    return np.asarray(np.maximum(special.softmax(logits), TINY))


def log_score(targets: Floats, logits: Floats) -> float:
    """How well logits (T, K) predict soft targets (T, K): the sum of targets times log-probabilities."""
    return float((targets * np.log(softmax(logits))).sum())


def lbfgs(
    value: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    curvature: Floats,
    bounds: Bounds | None,
    steps: int,
) -> Floats:
    """The best place that L-BFGS-B finds within some steps; never below the start. `curvature` (S,) is about how much
    the slope changes with each number: steps are measured in it, so that weak and strong directions converge alike."""
    from scipy import optimize

    if not len(start):
        return start
    unit = 1 / np.sqrt(curvature)

    def turned(x: Floats) -> tuple[float, Floats]:
        total, slope = value(x * unit)
        return -total, -slope * unit

    within = None if bounds is None else optimize.Bounds(bounds[0] / unit, bounds[1] / unit)
    options = {"maxiter": steps, "maxcor": LBFGS_MEMORY, "ftol": 1e-9, "gtol": 1e-6}
    found = optimize.minimize(turned, start / unit, jac=True, method="L-BFGS-B", bounds=within, options=options)
    return np.asarray(found.x * unit)


def improve_workers(objective: Objective, logits: Floats, theta: Floats, Z: Floats) -> Floats:
    """Better numbers of the workers, with a classifier that stays as it is."""

    def value(x: Floats) -> tuple[float, Floats]:
        here = objective(logits, x)
        return here.total, here.theta

    return lbfgs(value, theta, objective.curvature(theta, logits, Z), objective.bounds, LBFGS_STEPS)
