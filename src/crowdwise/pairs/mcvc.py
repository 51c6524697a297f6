"""mcvc: clusters by a softmax of the features, workers with sensitivity and specificity, by variational inference.

The one-view case of Chang et al. 2017: all workers have the same clusters in mind. With x_i the features, scaled to
unit variance, and a 1 for the intercept,
    (7)  W[d, k] ~ N(0, 1),  z_i | x_i ~ softmax(W' x_i),  alpha_j, beta_j ~ Beta(10, 1),
and worker j answers "same" with probability alpha_j if z_i = z_i', else 1 - beta_j. The posterior is
q(W) q(alpha) q(beta) q(z), with Beta posteriors of the workers and q(z_i) tied to the mean of the weights,
    (8)  q(W[d, k]) = N(V[d, k], S[d, k]),  q(z_i = k) = eta_ik,  eta_i = softmax(V' x_i).
With s_a = sum_k eta_ik eta_i'k for the pair of answer a, the bound is
    (11)  L = sum_a (s_a E log p(a | same) + (1 - s_a) E log p(a | different))
              + sum_i (lse_k(V' x_i) - lse_k(V' x_i + S' x_i^2 / 2)) - KL(q(W) || p) - KL(q(alpha, beta) || p),
where lse is the logarithm of the sum of exponentials. Derivation in docs/maths/pair_baselines.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine import Problem, Run, Step, iterate, register
from ..engine.model import COUNT, POSITIVE, setting
from ..engine.resources import limit_threads, load
from ..engine.run import Arrays, packed, unpacked
from ..kernels.layout import Floats
from ..kernels.special import softmax
from .baselines import GivenClusters
from .model import Coins, FeatureFit, PairAnswers, best_fit, finite, new_trace

INNER_ITER = 50  # iterations of L-BFGS in each update of the weights
MIN_RELATIVE_RISE = 1e-6  # convergence: the bound rises by less than this share
FIRST_LOG_VARIANCE = -2.0  # of the weights
LOG_VARIANCES = (-30.0, 0.0)  # range of log S; at a maximum of (11), S is at most the prior variance, 1


@register("mcvc", "softmax of features with answers of two-coin workers, one view, number of clusters given")
@dataclass(frozen=True, kw_only=True)
class Mcvc(GivenClusters):
    """Clustering views from uncertain experts (Chang et al. 2017), with one view for all workers.

    A softmax of the features gives the cluster probabilities. Each worker has a sensitivity and a specificity, and
    their answers are weighted accordingly. The restart with the highest evidence lower bound is kept.
    """

    extras = ("learn",)

    prior_right: float = setting(
        10.0, POSITIVE, "pseudo-count of right answers of every worker, for pairs of each kind (same, different)"
    )
    prior_wrong: float = setting(1.0, POSITIVE, "pseudo-count of wrong answers of every worker, for pairs of each kind")
    restarts: int = setting(20, COUNT, "number of restarts, from random weights")
    max_iter: int = setting(100, COUNT, "maximum number of iterations")

    def _fit_features(self, X: Floats, answers: PairAnswers, run: Run) -> FeatureFit:
        self.check_answers(answers)
        X = np.asarray(X, np.float64)
        centre, scale = X.mean(0), X.std(0)
        constant = scale <= 1e-9 * np.abs(X).max(0)
        scale[constant] = np.finfo(np.float64).max  # so that the column counts as 0, and can be saved
        Z = design(X, centre, scale)
        with limit_threads():
            best = best_fit(self.restarts, lambda start: _Fit(self, Z, answers, run, start).found(), run)
        return best._replace(view=X, space=best.space | {"centre": centre, "scale": scale})

    def space_rules(self, space: dict[str, Any]) -> dict[str, Any]:
        return {"V": finite("D+1 K"), "centre": finite("D"), "scale": finite("D")}

    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        return softmax(design(X, space["centre"], space["scale"]) @ space["V"])


def design(X: Floats, centre: Floats, scale: Floats) -> Floats:
    """(N, D + 1) scaled features and a column of ones."""
    return np.column_stack([(X - centre) / scale, np.ones(len(X))])


def log_sums(A: Floats) -> Floats:
    """(N,) logarithm of the sum of exponentials of each row."""
    top = A.max(1)
    return np.asarray(top + np.log(np.exp(A - top[:, None]).sum(1)))


class _Fit(Problem):
    """The fit of one restart: weights by L-BFGS, workers in closed form."""

    def __init__(self, model: Mcvc, Z: Floats, answers: PairAnswers, run: Run, start: int) -> None:
        self.name, self.max_iter, self.Z, self.answers, self.run = model.name, model.max_iter, Z, answers, run
        self.squares = Z**2
        prior = np.array([model.prior_right, model.prior_wrong])
        if not run.journal.resumes("iteration"):
            rng, shape = np.random.default_rng([run.seed, start]), (Z.shape[1], model.clusters)
            self.V, self.log_S = rng.normal(size=shape), np.full(shape, FIRST_LOG_VARIANCE)
            workers = np.tile(prior, (answers.n_workers, 1))
            self.coins = Coins(workers, workers, prior)

    def state(self) -> Arrays:
        return packed({"V": self.V, "log_S": self.log_S, "coins": self.coins})

    def restore(self, state: Arrays) -> None:
        self.V, self.log_S, self.coins = state["V"], state["log_S"], Coins(**unpacked(state, "coins."))

    def found(self) -> FeatureFit:
        """Iterate until the bound stops rising."""
        trace = new_trace()
        converged = iterate(self, self.run, trace)
        eta = softmax(self.Z @ self.V)
        return FeatureFit(eta, self.coins.alpha, self.coins.beta, trace, {"V": self.V}, converged)

    def converged(self, objectives: Sequence[float]) -> bool:
        if len(objectives) < 2:
            return False
        return objectives[-1] - objectives[-2] <= MIN_RELATIVE_RISE * max(abs(objectives[-1]), 1.0)

    def step(self) -> Step:
        """Update the weights given the workers, then the workers given the weights."""
        self._update_weights()
        eta, a = softmax(self.Z @ self.V), self.answers
        self.coins = Coins.from_answers(a, np.einsum("ak,ak->a", eta[a.left], eta[a.right]), self.coins.prior)
        value = self.bound(*self.links(), self.V, self.log_S)[0] - self.coins.divergence()
        return Step(value, {"clusters": len(np.unique(eta.argmax(1)))})

    def links(self) -> tuple[Any, float]:
        """Symmetric matrix (N, N) of the log-odds of the answers, and the log-likelihood if all pairs are different."""
        a, N = self.answers, len(self.Z)
        same, other = self.coins.logs(a)
        ends = np.concatenate([a.left, a.right]), np.concatenate([a.right, a.left])
        sparse = load("scipy.sparse", "learn", self.name)
        return sparse.csr_matrix((np.tile(same - other, 2), ends), (N, N)), float(other.sum())

    def bound(self, odds: Any, different: float, V: Floats, log_S: Floats) -> tuple[float, Floats, Floats]:
        """The bound (11) without the divergence of the workers, and its derivatives by V and log S."""
        S, U = np.exp(log_S), self.Z @ V
        eta, G = softmax(U), odds @ softmax(U)
        upper = U + 0.5 * self.squares @ S
        rho = softmax(upper)
        value = different + 0.5 * float((eta * G).sum()) + float((log_sums(U) - log_sums(upper)).sum())
        value -= 0.5 * float((S + V**2 - 1 - log_S).sum())
        by_U = eta * (G - (eta * G).sum(1, keepdims=True)) + eta - rho
        return value, self.Z.T @ by_U - V, 0.5 - 0.5 * S * (1 + self.squares.T @ rho)

    def _update_weights(self) -> None:
        """Maximise the bound over V and log S; L-BFGS never returns a worse point."""
        odds, different = self.links()
        optimize = load("scipy.optimize", "learn", self.name)

        def negative(at: Floats) -> tuple[float, Floats]:
            value, by_V, by_log_S = self.bound(odds, different, *at.reshape(2, *self.V.shape))
            return -value, -np.concatenate([by_V.ravel(), by_log_S.ravel()])

        start = np.concatenate([self.V.ravel(), self.log_S.ravel()])
        ranges = [(None, None)] * self.V.size + [LOG_VARIANCES] * self.V.size
        best = optimize.minimize(
            negative, start, jac=True, method="L-BFGS-B", bounds=ranges, options={"maxiter": INNER_ITER}
        )
        if best.fun <= negative(start)[0]:
            self.V, self.log_S = best.x.reshape(2, *self.V.shape)
