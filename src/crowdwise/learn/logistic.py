"""Logistic regression as the truth side: its weights are optimised together with the workers' odds.

    (1)  f[i] = W' x[i] + b,  with features scaled to mean 0 and variance 1
    (2)  adds -l2/2 |W|^2 - 1/10 |b|^2 to the objective
    (3)  log-evidence = objective - (K - 1)/2 sum_j log(1 + c s[j] / l2)
with s the eigenvalues of X'X and c the information of a task's answers about its logits, averaged over the tasks.
L-BFGS on the objective reaches the same optimum as EM in fewer iterations.
"""

from __future__ import annotations

import functools

import numpy as np
from sklearn.base import BaseEstimator

from ..engine.model import NOT_NEGATIVE, check
from ..engine.run import Arrays
from ..kernels import TINY
from ..kernels.layout import Floats
from .objective import LBFGS_STEPS, SHARPENING, Evidence, Objective, lbfgs, softmax

MAX_IMITATION_STEPS = 500  # L-BFGS steps on final targets
L2_STEP, MAX_L2_POWER = 4.0, 6  # factor between the ridge penalties that are compared, and how often it is applied
MIN_L2_GAIN = 2.0  # evidence, in nats, that an increase of the penalty must add
MAX_SPECTRUM_ROWS = 2000  # rows from which the eigenvalues of X'X are estimated
LOGIT_VARIANCE = 5.0  # prior variance of the logits


class Logistic(BaseEstimator):  # type: ignore[misc]
    """Multinomial logistic regression.

    `l2` is the strength of the ridge penalty on the weights. By default the prior variance of the logits of a typical
    row is 5, or less if the answers give more evidence for that, as with many uninformative features.
    """

    def __init__(self, l2: float | None = None) -> None:
        self.l2 = l2

    def learner(self, X: Floats, n_classes: int, rng: np.random.Generator) -> LogisticLearner:
        check({} if self.l2 is None else {"l2": NOT_NEGATIVE}, self)
        return LogisticLearner(X, n_classes, self.l2)


class LogisticLearner:
    """Logistic regression being trained on given rows."""

    def __init__(self, X: Floats, n_classes: int, l2: float | None) -> None:
        self.mean, self.scale = X.mean(0), X.std(0)
        self.scale[self.scale <= 1e-12 * np.maximum(np.abs(self.mean), 1e-300)] = 1.0  # constant features
        self.chooses_l2, self.l2 = l2 is None, X.shape[1] / LOGIT_VARIANCE if l2 is None else l2
        self.weights = np.zeros((X.shape[1] + 1, n_classes))
        self.rows = self._scaled(X)

    @classmethod
    def of(cls, mean: Floats, scale: Floats, weights: Floats, l2: float) -> LogisticLearner:
        """Rebuild a trained classifier, without its training rows."""
        new = cls.__new__(cls)
        new.mean, new.scale, new.weights, new.l2 = mean, scale, weights, l2
        return new

    def _scaled(self, X: Floats) -> Floats:
        return np.column_stack([(X - self.mean) / self.scale, np.ones(len(X))])

    def logits(self, X: Floats | None = None) -> Floats:
        """(n, K) logits of new rows, or of the training rows."""
        return np.asarray((self.rows if X is None else self._scaled(X)) @ self.weights)

    def inputs(self) -> Floats:
        return self.rows[:, :-1]

    @property
    def log_prior(self) -> float:
        return self._log_prior(self.weights)

    @property
    def ridge(self) -> Floats:
        """(features + 1, 1) penalties of the weights, and of the intercept."""
        return np.append(np.full(len(self.mean), self.l2), 1 / LOGIT_VARIANCE)[:, None]

    def _log_prior(self, W: Floats) -> float:
        return -0.5 * float((self.ridge * W**2).sum())

    def imitate(self, Z: Floats) -> None:
        """Train on soft targets (T, K)."""
        self._learn(Z, MAX_IMITATION_STEPS)

    def follow(self, targets: Floats) -> None:
        """Make some steps towards targets (T, K) that may still change; rows may sum to more than 1."""
        self._learn(targets, LBFGS_STEPS)

    def _learn(self, Z: Floats, steps: int) -> None:
        weight = Z.sum(1, keepdims=True)

        def value(w: Floats) -> tuple[float, Floats]:
            W = w.reshape(self.weights.shape)
            P = softmax(self.rows @ W)
            fit = float((Z * np.log(P)).sum()) + self._log_prior(W)
            return fit, (self.rows.T @ (Z - weight * P) - self.ridge * W).ravel()

        found = lbfgs(value, self.weights.ravel(), self._curvature(), None, steps)
        self.weights = found.reshape(self.weights.shape)

    def _choose_l2(self, Z: Floats, objective: Objective, theta: Floats) -> None:
        """Choose the ridge penalty with the highest evidence after one iteration from the shares of votes Z (T, K).

        Starting from the default, it is increased as long as that adds evidence.
        """
        best, kept = -np.inf, (self.l2, self.weights)
        for power in range(MAX_L2_POWER + 1):
            self.l2 = kept[0] * L2_STEP ** min(power, 1)
            self._learn(Z, LBFGS_STEPS)
            votes, self.weights = self.weights, SHARPENING * self.weights
            fit, complexity = self.evidence(objective, self.improve(objective, theta, Z))
            found = fit - complexity
            if found <= best + MIN_L2_GAIN:
                break
            best, kept = found, (self.l2, votes)
        self.l2, self.weights = kept

    def evidence(self, objective: Objective, theta: Floats) -> Evidence:
        """Log-evidence of the answers by Laplace's method, eq. (3), without terms that depend on the workers alone."""
        logits, K = self.logits(), self.weights.shape[1]
        here, P = objective(logits, theta), softmax(logits)
        by_ease = here.logits - (here.Z - P)
        per_task = (here.Z**2 - P**2 + by_ease**2).sum(1)
        information = max(float(per_task.mean()), 0.0) / max(K - 1, 1)
        complexity = 0.5 * (K - 1) * float(np.log1p(information * self.spectrum / max(self.l2, TINY)).sum())
        return Evidence(float(here.total + self.log_prior), complexity)

    @functools.cached_property
    def spectrum(self) -> Floats:
        """Eigenvalues of the products of the features, estimated from at most MAX_SPECTRUM_ROWS rows."""
        rows = self.rows[:: -(-len(self.rows) // MAX_SPECTRUM_ROWS), :-1]
        gram = rows.T @ rows if rows.shape[1] <= len(rows) else rows @ rows.T
        return np.asarray(np.maximum(np.linalg.eigvalsh(gram), 0) * len(self.rows) / max(len(rows), 1))

    def _curvature(self) -> Floats:
        """Approximate second derivative of the objective by each weight, with the sign reversed."""
        P = softmax(self.logits())
        return np.asarray(((self.rows**2).T @ (P * (1 - P)) + self.ridge + 1e-6).ravel())

    def begin(self, Z: Floats, objective: Objective, theta: Floats) -> None:
        """Initialise from shares of votes, and choose the ridge penalty if it is not given."""
        if self.chooses_l2:
            self._choose_l2(Z, objective, theta)
        self.imitate(Z)
        self.weights *= SHARPENING

    def improve(self, objective: Objective, theta: Floats, Z: Floats) -> Floats:
        """Optimise the weights together with the workers' parameters `theta`, which are returned."""
        size = self.weights.size

        def value(x: Floats) -> tuple[float, Floats]:
            W = x[:size].reshape(self.weights.shape)
            here = objective(self.rows @ W, x[size:])
            slope = self.rows.T @ here.logits - self.ridge * W
            return here.total + self._log_prior(W), np.concatenate([slope.ravel(), here.theta])

        start = np.concatenate([self.weights.ravel(), theta])
        curvature = np.concatenate([self._curvature(), objective.curvature(theta, self.logits(), Z)])
        free = np.full(size, np.inf)
        low, high = objective.bounds
        best = lbfgs(value, start, curvature, (np.append(-free, low), np.append(free, high)), LBFGS_STEPS)
        self.weights = best[:size].reshape(self.weights.shape)
        return best[size:]

    warm = improve

    def state(self) -> Arrays:
        return {"weights": self.weights, "l2": np.asarray(self.l2)}

    def restore(self, state: Arrays) -> None:
        self.weights, self.l2 = state["weights"], float(state["l2"])
