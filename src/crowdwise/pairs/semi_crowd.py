"""semi-crowd: a similarity learnt by completing the answers' matrix and regressing it on features, then k-means.

n items have answers, and a_ij is the share of the answers about the pair (i, j) that are "same". The pair is observed
as A_ij = 1 if a_ij >= high, as A_ij = 0 if a_ij <= low, and not observed otherwise. With X (D, n) the centred features
of these items,
    (5)  F = argmin of 1/2 sum over observed (i, j) of (A_ij - F_ij)^2 + c trace F,  F positive semidefinite
    (6)  M = argmin ||F - X' M X||_F = (X X')^-1 X F X' (X X')^-1.
The similarity of any two items x and y is x' M y; k-means clusters all items in the space of this inner product.
Yi, Jin, Jain, Yang & Jain 2012; what is read differently is in docs/maths/pair_baselines.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..engine import Run, register
from ..engine.model import SHARE, Rule, setting
from ..engine.resources import load
from ..errors import DataError, ParameterError
from ..kernels.layout import Floats, Ints
from .baselines import CentreModel
from .model import FeatureFit, PairAnswers

PENALTY = Rule((int, float), low=0.0, high=0.99)
MAX_RANK = 20  # of the completed matrix, or the number of clusters if that is larger
MAX_DENSE_ITEMS = 100  # up to this many items, all eigenvalues are computed
MAX_COMPLETION_ITER = 200
MIN_RELATIVE_FALL = 1e-4  # convergence of (5): the objective falls by less than this share
MIN_EIGENVALUE = 1e-10  # smaller eigenvalues of X X', relative to the largest, count as 0


class Observed(NamedTuple):
    """Observed entries of the similarity of n items: both of each pair, and the diagonal."""

    row: Ints  # (2 E + n,)
    column: Ints
    value: Floats
    n: int


class Completed(NamedTuple):
    """A completed matrix F = vectors diag(values) vectors', and the objective (5) after each iteration."""

    values: Floats  # (r,) positive
    vectors: Floats  # (n, r)
    objectives: list[float]


@register("semi-crowd", "similarity completed from voted pairs, regressed on features, number of clusters given")
@dataclass(frozen=True, kw_only=True)
class SemiCrowd(CentreModel):
    """Semi-crowdsourced clustering (Yi et al. 2012): matrix completion, regression of a metric, then k-means.

    Pairs on which workers disagree are dropped. Workers count equally.
    """

    low: float = setting(0.2, SHARE, "largest share of 'same' at which a pair counts as different; must be below high")
    high: float = setting(0.8, SHARE, "smallest share of 'same' at which a pair counts as the same")
    penalty: float = setting(
        0.2, PENALTY, "penalty of the completed matrix, relative to the largest eigenvalue of the observed one"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low >= self.high:
            raise ParameterError(f"{self.name}: low is {self.low} and high is {self.high}; low must be below high")

    def _fit_features(self, X: Floats, answers: PairAnswers, run: Run) -> FeatureFit:
        self.check_answers(answers)
        return super()._fit_features(X, answers, run)

    def transform(self, X: Floats, answers: PairAnswers, seed: int) -> Floats:
        """(D, r) map B with B B' = M of eq (6): inner products of mapped items are their similarities."""
        items, observed = self.observed(answers)
        centred = X - X.mean(0)
        rows = centred[items] / (float(centred.std()) or 1.0)
        rank = min(max(MAX_RANK, self.clusters), observed.n)
        found = complete(observed, self.penalty, rank, np.random.default_rng(seed))
        values, vectors = np.linalg.eigh(rows.T @ rows)
        kept = values > MIN_EIGENVALUE * values[-1]
        inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
        return np.asarray(inverse @ rows.T @ (found.vectors * np.sqrt(found.values)))

    def observed(self, answers: PairAnswers) -> tuple[Ints, Observed]:
        """Items with observed pairs, and the observed entries of their similarity."""
        N = answers.n_items
        pair, edge = np.unique(answers.left.astype(np.int64) * N + answers.right, return_inverse=True)
        share = np.bincount(edge, answers.weight * answers.same) / np.bincount(edge, answers.weight)
        clear = (share <= self.low) | (share >= self.high)
        if len(np.unique(share[clear] >= self.high)) < 2:
            raise DataError(
                f"{self.name} needs pairs on which most workers agree, some the same and some different. Use "
                "pair-mixture"
            )
        ends = np.concatenate([pair[clear] // N, pair[clear] % N])
        items, place = np.unique(ends, return_inverse=True)
        left, right = np.split(place, 2)
        own, same = np.arange(len(items)), (share[clear] >= self.high).astype(np.float64)
        rows, columns = np.concatenate([left, right, own]), np.concatenate([right, left, own])
        return items, Observed(rows, columns, np.concatenate([same, same, np.ones(len(items))]), len(items))


def complete(observed: Observed, penalty: float, rank: int, rng: np.random.Generator) -> Completed:
    """Minimise (5) over matrices of at most `rank`, by soft-thresholded eigenvalues (soft-impute).

    Each iteration fills the unobserved entries from the present F. The filled matrix is sparse plus of low rank.
    """
    row, column, value, n = observed
    start = rng.random(n) + 0.5
    values: Floats = np.empty(0)
    vectors: Floats = np.empty((n, 0))
    c = penalty * float(_leading(observed, value, values, vectors, 1, start)[0][-1])
    objectives: list[float] = []
    for _ in range(MAX_COMPLETION_ITER):
        fitted = ((vectors * values)[row] * vectors[column]).sum(1)
        found, directions = _leading(observed, value - fitted, values, vectors, rank, start)
        kept = found > c
        values, vectors = found[kept] - c, directions[:, kept]
        fitted = ((vectors * values)[row] * vectors[column]).sum(1)
        objectives.append(0.5 * float(((value - fitted) ** 2).sum()) + c * float(values.sum()))
        if len(objectives) > 1 and objectives[-2] - objectives[-1] <= MIN_RELATIVE_FALL * objectives[-2]:
            break
    return Completed(values, vectors, objectives)


def _leading(
    observed: Observed, residual: Floats, values: Floats, vectors: Floats, count: int, start: Floats
) -> tuple[Floats, Floats]:
    """Largest eigenvalues and their eigenvectors, of the residuals at the observed entries plus F."""
    sparse = load("scipy.sparse", "learn", "semi-crowd")
    R, n = sparse.csr_matrix((residual, (observed.row, observed.column)), (observed.n, observed.n)), observed.n
    if n <= max(MAX_DENSE_ITEMS, count + 1):
        found, directions = np.linalg.eigh(R.toarray() + (vectors * values) @ vectors.T)
        return found[-count:], directions[:, -count:]
    linalg = load("scipy.sparse.linalg", "learn", "semi-crowd")
    whole = linalg.LinearOperator((n, n), lambda v: R @ v + vectors @ (values * (vectors.T @ v)), dtype=np.float64)
    found, directions = linalg.eigsh(whole, count, which="LA", v0=start)
    return found, directions
