"""Logistic regression as the truth side: its weights are optimised together with the workers' odds.

    (1)  f[i] = W' x[i] + b,  with features scaled to mean 0 and variance 1
    (2)  adds -l2/2 |W|^2 - 1/10 |b|^2 to the objective
L-BFGS on the objective reaches the same optimum as EM in fewer iterations.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from ..engine.model import NOT_NEGATIVE, check
from ..engine.run import Arrays
from ..kernels.layout import Floats
from .objective import LBFGS_STEPS, SHARPENING, Objective, lbfgs, softmax

MAX_IMITATION_STEPS = 500  # L-BFGS steps on final targets
LOGIT_VARIANCE = 5.0  # prior variance of the logits


class Logistic(BaseEstimator):  # type: ignore[misc]
    """Multinomial logistic regression.

    `l2` is the strength of the ridge penalty on the weights. By default it depends on the number of features, so that
    the prior variance of the logits of a typical row is 5.
    """

    def __init__(self, l2: float | None = None) -> None:
        self.l2 = l2

    def learner(self, X: Floats, n_classes: int, rng: np.random.Generator) -> LogisticLearner:
        check({} if self.l2 is None else {"l2": NOT_NEGATIVE}, self)
        return LogisticLearner(X, n_classes, X.shape[1] / LOGIT_VARIANCE if self.l2 is None else self.l2)


class LogisticLearner:
    """Logistic regression being trained on given rows."""

    def __init__(self, X: Floats, n_classes: int, l2: float) -> None:
        self.mean, self.scale = X.mean(0), X.std(0)
        self.scale[self.scale <= 1e-12 * np.maximum(np.abs(self.mean), 1e-300)] = 1.0  # constant features
        self.l2, self.weights = l2, np.zeros((X.shape[1] + 1, n_classes))
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

    def _curvature(self) -> Floats:
        """Approximate second derivative of the objective by each weight, with the sign reversed."""
        P = softmax(self.logits())
        return np.asarray(((self.rows**2).T @ (P * (1 - P)) + self.ridge + 1e-6).ravel())

    def begin(self, Z: Floats) -> None:
        """Initialise from shares of votes."""
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
        return {"weights": self.weights}

    def restore(self, state: Arrays) -> None:
        self.weights = state["weights"]
