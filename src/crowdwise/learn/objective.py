"""The objective that both sides maximise: log-likelihood of the answers given the features, plus log-priors.

Classifier: logits f[i] of task i, class prior P(z_i) = softmax(f[i]). Worker j: odds[j, k, l] >= 0, the log-odds of the
true class k over a wrong label l on the easiest task. Ease h[i] of task i, from 0 (workers guess) to 1 (easiest task).
    (1)  P(j gives l | z_i = k) ~ exp(-h[i] odds[j, k, l]),    odds[j, k, k] = 0
    (2)  log p(answers of i) = log sum_k P(z_i = k) prod over answers n of P(label_n | k)
    (3)  objective = sum_i (2) - r/2 sum (odds[j, k, l] - c[k, l])^2 - 1/2 sum (c[k, l] - c)^2 - 1/2 (c - c0)^2
                     - 2 log(kappa)^2 + log-prior of the classifier
    (4)  h[i] = floor + (1 - floor) e[i],    e[i] = (K |p|^2 - 1) / (K - 1),  p = softmax(kappa f[i])
where c[k, l] are the odds of the crowd (maximised in closed form) or, for a side that keeps workers near their start,
the initial odds of each worker. The derivation, and eqs (1), (2) of the paper as the case K = 2, are in
docs/maths/difficulty.md.
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

MAX_ODDS = 30.0  # upper limit of log-odds
SHARPENING = 2.0  # initial factor on logits trained on vote shares, which understate the certainty
LBFGS_MEMORY = 20  # number of corrections that L-BFGS stores
LBFGS_STEPS = 50  # maximum number of steps in an iteration
MAX_LOG_KAPPA = 1.0
KAPPA_PRECISION = 4.0  # of the prior of log(kappa)
START_FLOOR = 0.5  # initial floor of the ease
CROWD_RIDGE = 1.0  # strength of the shrinkage of the crowd's odds of a cell towards their common centre


class Relation(NamedTuple):
    """How the ease of a task depends on the logits of the classifier, eq. (4)."""

    log_kappa: float = 0.0  # sharpness
    floor: float = 0.0  # ease of a task on which the classifier is undecided; 1: all tasks are equally easy


class Value(NamedTuple):
    """The objective at one point, and its derivatives."""

    total: float
    Z: Floats  # (T, K) posterior
    logits: Floats  # (T, K) derivatives by the logits
    theta: Floats  # (S,) derivatives by the workers' parameters


class Evidence(NamedTuple):
    """Log-evidence of the answers is fit - complexity, in nats."""

    fit: float  # objective with the classifier's log-prior, or log-likelihood of answers that were not used
    complexity: float = 0.0  # part of it that the weights of the classifier would gain from noise


class Ease(NamedTuple):
    """Ease of tasks, and its derivatives."""

    h: Floats  # (T,)
    slope: Floats | None  # (T, K) derivatives by the logits; None if the ease does not depend on them
    by_floor: Floats | float = 0.0  # (T,) derivatives by the floor


class Objective:
    """The objective of a worker side, as a function of logits (T, K) and the workers' parameters `theta` (S,).

    `theta` holds all odds off the diagonal, followed by log(kappa) and the floor of the ease if they are learnt.
    """

    def __init__(self, shard: Shard, *, ridge: float, free: bool, kappa: float | None, ease: Floats | None) -> None:
        """`ease` (T,) is fixed, or None to compute it from the classifier with sharpness `kappa` (None: learnt)."""
        self.shard, self.ridge, self.free, self.given_ease = shard, ridge, free, ease
        self.learns_relation = ease is None and kappa is None
        self.relation = Relation(floor=1.0)  # if it is learnt, its initial value
        if ease is None:
            self.relation = Relation(floor=START_FLOOR) if kappa is None else Relation(float(np.log(kappa)))
        K = shard.layout.n_classes
        self.shape = (shard.layout.n_workers, K, K)
        self.off = ~np.eye(K, dtype=bool)
        self.centre: Floats | None = None  # (W, K, K) centre of the prior of the odds; None: the crowd's common odds
        self.prior_odds = float(np.log(3 * max(K - 1, 1)))  # c0: an accuracy of 3/4

    @property
    def bounds(self) -> Bounds:
        count = int(self.shape[0] * self.off.sum())
        low = np.full(count, -MAX_ODDS if self.free else 0.0)
        if not self.learns_relation:
            return low, np.full(count, MAX_ODDS)
        return np.append(low, [-MAX_LOG_KAPPA, 0.0]), np.append(np.full(count, MAX_ODDS), [MAX_LOG_KAPPA, 1.0])

    def pack(self, odds: Floats, relation: Relation) -> Floats:
        return np.append(odds[:, self.off].ravel(), relation if self.learns_relation else [])

    def unpack(self, theta: Floats) -> tuple[Floats, Relation]:
        odds = np.zeros(self.shape)
        count = self.shape[0] * int(self.off.sum())
        odds[:, self.off] = theta[:count].reshape(self.shape[0], -1)
        return odds, Relation(*theta[count:].tolist()) if self.learns_relation else self.relation

    def ease(self, logits: Floats, relation: Relation, tasks: Ints | slice = slice(None)) -> Ease:
        """Ease of all tasks, or of the tasks that the logits belong to."""
        if self.given_ease is not None:
            return Ease(self.given_ease[tasks], None)
        return ease_by_classifier(logits, relation)

    def curvature(self, theta: Floats, logits: Floats, Z: Floats) -> Floats:
        """(S,) approximate second derivatives by theta with the sign reversed, at the posterior Z (T, K)."""
        layout = self.shard.layout
        odds, relation = self.unpack(theta)
        h = self.ease(logits, relation).h
        rows = self.shard.kernels.confusion_counts(layout, Z * (h * h)[:, None], self.shard.threads)
        weight = per_worker(layout, rows)[:, :, None]
        p = np.exp(-odds)
        p /= p.sum(2, keepdims=True)
        curvature = (weight * p * (1 - p) + self.ridge)[:, self.off].ravel()
        return np.asarray(np.maximum(np.append(curvature, [len(logits)] * 2 * self.learns_relation), 1e-3))

    def penalty(self, odds: Floats, relation: Relation) -> tuple[float, Floats]:
        """Log-prior of the workers, and its derivatives by the odds off the diagonal."""
        free = odds[:, self.off]
        if self.centre is not None:
            deviation = free - self.centre[:, self.off]
            spread = 0.0
        else:  # odds of the crowd, maximised in closed form: of each cell, and their common centre
            workers, cells = free.shape
            weight, means = workers * self.ridge, free.mean(0)
            joint = weight * CROWD_RIDGE / (weight + CROWD_RIDGE)  # precision of a mean, given the centre
            centre = (self.prior_odds + joint * means.sum()) / (1 + joint * cells)
            crowd = (weight * means + CROWD_RIDGE * centre) / (weight + CROWD_RIDGE)
            deviation = free - crowd
            spread = CROWD_RIDGE * ((crowd - centre) ** 2).sum() + (centre - self.prior_odds) ** 2
        loss = (
            self.ridge * (deviation**2).sum() + spread + self.learns_relation * KAPPA_PRECISION * relation.log_kappa**2
        )
        return -0.5 * float(loss), -self.ridge * deviation

    def __call__(self, logits: Floats, theta: Floats) -> Value:
        shard = self.shard
        odds, relation = self.unpack(theta)
        ease, prior = self.ease(logits, relation), softmax(logits)
        Z, by_ease = np.zeros_like(prior), np.empty(len(prior))
        swept = shard.kernels.difficulty_posterior(
            shard.layout, odds, ease.h, prior, shard.gold, Z, by_ease, shard.threads
        )
        slopes = shard.kernels.difficulty_slopes(shard.layout, odds, ease.h, Z, shard.threads)
        log_prior, prior_slope = self.penalty(odds, relation)
        by_logits, by_kappa = self._slopes(logits, prior, Z, ease, by_ease)
        theta_slope = (slopes[:, self.off] + prior_slope).ravel()
        if self.learns_relation:
            by_floor = float((by_ease * ease.by_floor).sum())
            theta_slope = np.append(theta_slope, [by_kappa - KAPPA_PRECISION * relation.log_kappa, by_floor])
        return Value(swept.evidence + log_prior, Z, by_logits, theta_slope)

    def _slopes(self, logits: Floats, prior: Floats, Z: Floats, ease: Ease, by_ease: Floats) -> tuple[Floats, float]:
        """Derivatives by the logits (through prior and ease) and by log(kappa); zero for tasks without answers."""
        by_logits, by_kappa = Z - prior, 0.0
        if ease.slope is not None:
            through = by_ease[:, None] * ease.slope
            by_logits += through
            by_kappa = float((through * logits).sum())
        return by_logits, by_kappa

    def batch_evidence(self, tasks: Ints, logits: Floats, odds: Floats, relation: Relation) -> tuple[float, Floats]:
        """Evidence of a mini-batch of tasks, and its derivatives by their logits."""
        layout, gold = part_of(self.shard.layout, tasks), self.shard.gold[tasks]
        ease, prior = self.ease(logits, relation, tasks), softmax(logits)
        Z, by_ease = np.zeros_like(prior), np.empty(len(prior))
        swept = plain.difficulty_posterior(layout, odds, ease.h, prior, gold, Z, by_ease, 1)
        return swept.evidence, self._slopes(logits, prior, Z, ease, by_ease)[0]


def part_of(layout: Layout, tasks: Ints) -> Layout:
    """Layout of the answers of some tasks in task order, which suffices for the posterior of these tasks."""
    ptr, at = answers_to(layout, tasks)
    return layout._replace(task_ptr=ptr, pair=layout.pair[at])


def answers_to(layout: Layout, tasks: Ints) -> tuple[Ints, Ints]:
    """Return the offset of each task's answers, and the numbers of the answers to all of these tasks."""
    first = layout.task_ptr[tasks]
    count = layout.task_ptr[tasks + 1] - first
    ptr = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
    return ptr, np.arange(ptr[-1]) - np.repeat(ptr[:-1], count) + np.repeat(first, count)


def ease_of(p: Floats) -> Floats:
    """(T,) ease from probabilities (T, K): 0 if they are uniform, 1 if they are certain."""
    K = p.shape[1]
    return np.asarray((K * (p * p).sum(1) - 1) / (K - 1)) if K > 1 else np.ones(len(p))


def ease_by_classifier(logits: Floats, relation: Relation) -> Ease:
    """Ease by eq. (4); for two classes and without a floor, 4 (p - 1/2)^2."""
    K, kappa, span = logits.shape[1], np.exp(relation.log_kappa), 1 - relation.floor
    if K == 1:
        return Ease(np.ones(len(logits)), None)
    p = softmax(kappa * logits)
    certain = ease_of(p)
    slope = span * kappa * 2 * K / (K - 1) * p * (p - (p * p).sum(1, keepdims=True))
    return Ease(relation.floor + span * certain, slope, 1 - certain)


def ease_by_votes(votes: Floats) -> Floats:
    """(T,) ease from the shares of votes (T, K), which are uniform for a task without votes."""
    K = votes.shape[1]
    total = votes.sum(1, keepdims=True)
    shares = np.divide(votes, total, out=np.full(votes.shape, 1 / K), where=total > 0)
    return ease_of(shares)


def softmax(logits: Floats) -> Floats:
    """Rows of probabilities, all above 0."""
    return np.asarray(np.maximum(special.softmax(logits), TINY))


def log_score(targets: Floats, logits: Floats) -> float:
    """Log score of logits (T, K) on soft targets (T, K): the sum of targets times log-probabilities."""
    return float((targets * np.log(softmax(logits))).sum())


def lbfgs(
    value: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    curvature: Floats,
    bounds: Bounds | None,
    steps: int,
) -> Floats:
    """Maximise `value` by L-BFGS-B; the result is never below the start.

    `curvature` (S,) are approximate second derivatives with the sign reversed. They scale the parameters, so that weak
    and strong directions converge equally fast.
    """
    from scipy import optimize

    if not len(start):
        return start
    unit = 1 / np.sqrt(curvature)

    def scaled(x: Floats) -> tuple[float, Floats]:
        total, slope = value(x * unit)
        return -total, -slope * unit

    within = None if bounds is None else optimize.Bounds(bounds[0] / unit, bounds[1] / unit)
    options = {"maxiter": steps, "maxcor": LBFGS_MEMORY, "ftol": 1e-9, "gtol": 1e-6}
    found = optimize.minimize(scaled, start / unit, jac=True, method="L-BFGS-B", bounds=within, options=options)
    return np.asarray(found.x * unit)


def improve_workers(objective: Objective, logits: Floats, theta: Floats, Z: Floats) -> Floats:
    """Optimise the workers' parameters for fixed logits of the classifier."""

    def value(x: Floats) -> tuple[float, Floats]:
        here = objective(logits, x)
        return here.total, here.theta

    return lbfgs(value, theta, objective.curvature(theta, logits, Z), objective.bounds, LBFGS_STEPS)
