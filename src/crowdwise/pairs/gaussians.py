"""Gaussian components with Normal-inverse-Wishart posteriors: two matrix products per iteration.

With phi(x) = (1, x, x_i x_j for i <= j), the expected log-densities of a row are phi @ coefficients, and the sufficient
statistics of the components are responsibilities.T @ phi. Rows are processed in blocks, in threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..kernels.layout import Floats, Ints
from ..kernels.special import digamma, dirichlet_kl, gammaln
from ..kernels.threads import run

BLOCK_ROWS = 4096
LOG_2PI = float(np.log(2 * np.pi))
SAMPLE_ROWS = 50_000  # k-means uses at most this many rows


class Prior(NamedTuple):
    """Prior of the components, the same for each."""

    share: float  # Dirichlet parameter
    kappa: float
    nu: float
    S: Floats  # (D, D)


class Normals(NamedTuple):
    """Posteriors of K components."""

    share: Floats  # (K,) Dirichlet parameters
    mean: Floats  # (K, D)
    kappa: Floats  # (K,)
    nu: Floats  # (K,)
    S: Floats  # (K, D, D)

    @classmethod
    def from_sums(cls, sums: Floats, prior: Prior) -> Normals:
        """Posterior from weighted sums (K, 1 + D + D (D + 1) / 2) of phi over rows; the prior mean is 0."""
        D = len(prior.S)
        n, first = sums[:, 0], sums[:, 1 : 1 + D]
        second = np.empty((len(sums), D, D))
        i, j = np.triu_indices(D)
        second[:, i, j] = second[:, j, i] = sums[:, 1 + D :]
        kappa = prior.kappa + n
        mean = first / kappa[:, None]
        S = prior.S + second - kappa[:, None, None] * mean[:, :, None] * mean[:, None, :]
        return cls(prior.share + n, mean, kappa, prior.nu + n, 0.5 * (S + S.transpose(0, 2, 1)))

    def coefficients(self) -> Floats:
        """(1 + D + D (D + 1) / 2, K) coefficients of phi in the expected log-share plus log-density."""
        D = self.mean.shape[1]
        half = self._log_det()
        L = self.nu[:, None, None] * np.linalg.inv(self.S)
        linear = np.einsum("kde,ke->kd", L, self.mean)
        shares = digamma(self.share) - digamma(self.share.sum())
        constant = shares + 0.5 * (half - D * LOG_2PI - D / self.kappa - (linear * self.mean).sum(1))
        i, j = np.triu_indices(D)
        quadratic = L[:, i, j] * np.where(i == j, -0.5, -1.0)
        return np.ascontiguousarray(np.column_stack([constant, linear, quadratic]).T)

    def _log_det(self) -> Floats:
        """(K,) expected log-determinant of the precision."""
        D = self.mean.shape[1]
        halves = 0.5 * (self.nu[:, None] - np.arange(D))
        return np.asarray(digamma(halves).sum(1) + D * np.log(2) - np.linalg.slogdet(self.S)[1])

    def divergence(self, prior: Prior) -> float:
        """Kullback-Leibler divergence from the prior, summed over components."""
        D = self.mean.shape[1]
        log_det = self._log_det()
        precision = self.nu[:, None, None] * np.linalg.inv(self.S)
        trace = np.einsum("de,ked->k", prior.S, precision)
        away = np.einsum("kd,kde,ke->k", self.mean, precision, self.mean)
        normal = 0.5 * (D * prior.kappa / self.kappa + prior.kappa * away - D - D * np.log(prior.kappa / self.kappa))
        ends = (
            _wishart_norm(self.nu, np.linalg.slogdet(self.S)[1], D),
            _wishart_norm(np.array([prior.nu]), np.linalg.slogdet(prior.S)[1][None], D),
        )
        wishart = 0.5 * ((self.nu - prior.nu) * log_det - self.nu * D + trace) + ends[0] - ends[1]
        shares = dirichlet_kl((self.share - prior.share)[None], np.full((1, len(self.share)), prior.share))
        return float(normal.sum() + wishart.sum()) + shares


def _wishart_norm(nu: Floats, log_det: Floats, D: int) -> Floats:
    """Log of the normalising constant of a Wishart density with scale S^-1."""
    halves = 0.5 * (nu[:, None] - np.arange(D))
    pi = 0.25 * D * (D - 1) * np.log(np.pi)
    return np.asarray(0.5 * nu * log_det - 0.5 * nu * D * np.log(2) - pi - gammaln(halves).sum(1))


def phi(X: Floats) -> Floats:
    """(n, 1 + D + D (D + 1) / 2) monomials 1, x_i and x_i x_j, in which log-densities are linear."""
    n, D = X.shape
    out = np.empty((n, 1 + D + D * (D + 1) // 2))
    out[:, 0], out[:, 1 : 1 + D] = 1.0, X
    at = 1 + D
    for d in range(D):
        np.multiply(X[:, d:], X[:, d : d + 1], out=out[:, at : at + D - d])
        at += D - d
    return out


def over_blocks(n: int, threads: int, work: Callable[[slice], Floats]) -> Floats:
    """Sum work(rows) over blocks of n rows, in threads; terms are added in block order."""
    bounds = np.append(np.arange(0, n, BLOCK_ROWS), n)
    total: Floats | None = None
    step = 4 * max(threads, 1)
    for start in range(0, len(bounds) - 1, step):
        part = bounds[start : start + step + 1]
        sums: list[Floats] = [np.empty(0)] * (len(part) - 1)

        def one(b: int, begin: int, end: int, sums: list[Floats] = sums) -> None:
            sums[b] = work(slice(begin, end))

        run(one, part, threads)
        for each in sums:
            total = each if total is None else total + each
    assert total is not None
    return total


def log_sum(A: Floats) -> tuple[Floats, Floats]:
    """Normalise rows of log-weights A (n, K) to probabilities, in place; return them and the logs of the sums (n,)."""
    top = A.max(1, keepdims=True)
    A -= top
    np.exp(A, out=A)
    total = A.sum(1, keepdims=True)
    A /= total
    return A, (top + np.log(total))[:, 0]


def nearest_centres(X: Floats, centres: Floats) -> tuple[Ints, Floats]:
    """(n,) nearest centre of each row, and (n,) its squared distance."""
    which, away = np.empty(len(X), np.int64), np.empty(len(X))
    squares = (centres**2).sum(1)
    for start in range(0, len(X), BLOCK_ROWS):
        rows = X[start : start + BLOCK_ROWS]
        d = squares - 2 * (rows @ centres.T)
        which[start : start + BLOCK_ROWS] = d.argmin(1)
        away[start : start + BLOCK_ROWS] = np.maximum(d.min(1) + (rows**2).sum(1), 0.0)
    return which, away


def k_means(X: Floats, K: int, rng: np.random.Generator, rounds: int = 25) -> Floats:
    """(at most K, D) centres by k-means++ and Lloyd's algorithm, on at most SAMPLE_ROWS rows."""
    rows = X if len(X) <= SAMPLE_ROWS else X[np.sort(rng.choice(len(X), SAMPLE_ROWS, replace=False))]
    centres = rows[[int(rng.integers(len(rows)))]]
    _, away = nearest_centres(rows, centres)
    while len(centres) < K and away.max() > 1e-12:
        new = rows[
            [int(np.searchsorted(np.cumsum(away), rng.random() * away.sum(), side="right").clip(0, len(rows) - 1))]
        ]
        centres = np.concatenate([centres, new])
        away = np.minimum(away, ((rows - new) ** 2).sum(1))
    for _ in range(rounds):
        which, _ = nearest_centres(rows, centres)
        n = np.bincount(which, minlength=len(centres))
        sums = np.stack([np.bincount(which, rows[:, d], minlength=len(centres)) for d in range(rows.shape[1])], axis=1)
        moved = np.where(n[:, None] > 0, sums / np.maximum(n, 1)[:, None], centres)
        if np.allclose(moved, centres, rtol=0, atol=1e-7):
            break
        centres = moved
    return centres
