"""EM for Gaussian objects: equations (7) to (12) of the clicks paper, with optional priors.

Given the boxes of the images, an object is a Gaussian truncated to its box: "The last fit" in
docs/maths/click_mixture.md. Without this, objects near an edge come out too small, and workers less reliable than
they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..answers import Points
from ..engine import Executor, InMemory, Problem, Run, Step
from ..engine.run import Arrays, packed, restored
from ..kernels.layout import HEAD, Floats, Ints
from ..kernels.rules import Real, Whole
from .e_step import ObjectTerms, Stats, WorkerTerms, e_step

CUT = 60.0  # objects beyond this squared Mahalanobis distance are ignored: their density is e^-30 of its peak
RELIABILITY_MARGIN = 1e-6  # smallest distance of a reliability from 0 and 1
MIN_SD = 1e-3  # smallest standard deviation of an object along any axis, as a fraction of the box side
NOISE_PRIOR_CLICKS = 20.0  # pseudo-clicks of average noise in the prior of a worker's noise
MAX_TRUNCATED_AXES = 2  # objects with more coordinates are not truncated to the box
MIN_MASS = 1e-3  # smallest part of an object that lies in the box
N_NODES = 48  # of the integral over the first axis
EM_TOL = 1e-7  # convergence tolerance: relative change of the objective


class Mixture(NamedTuple):
    """Parameters of the objects of all images and of the workers."""

    ptr: Annotated[Ints, Whole("I+1", ends="M", dtype="int64")]  # offset of each image's objects
    mean: Annotated[Floats, Real("M D")]
    cov: Annotated[Floats, Real("M D D")]
    share: Annotated[Floats, Real("M", 0)]  # share of the image's clicks on objects
    p: Annotated[Floats, Real("W", 0, 1)]  # reliability: probability that a click is on an object
    noise: Annotated[Floats, Real("W", 0)]  # position noise: factor on the objects' standard deviations

    @property
    def n_objects(self) -> int:
        return len(self.mean)


class Elsewhere(NamedTuple):
    """Statistics of the workers' clicks on images that are not part of a fit. They act as a prior."""

    on: Floats  # (W,) expected clicks on objects
    far: Floats  # (W,) sum of their squared distances
    sent: Floats  # (W,) clicks


def nowhere(workers: int) -> Elsewhere:
    """Return the statistics of workers who have clicked on no other image."""
    return Elsewhere(*np.zeros((3, workers)))


class Priors(NamedTuple):
    """Priors of the objects' covariances and of the reliabilities. The defaults give maximum likelihood."""

    nu: float = 0.0  # pseudo-clicks with covariance S
    S: Floats | None = None  # (D, D) covariance shared by all objects
    hits: float = 1.0  # a reliability has the prior Beta(hits, misses)
    misses: float = 1.0
    elsewhere: Elsewhere | None = None  # None: the workers have clicked on no other image


MAXIMUM_LIKELIHOOD = Priors()


class Boxes(NamedTuple):
    """The boxes of the images, to which objects are truncated."""

    corners: Floats  # (I, 2, D) low and high
    kernels: Any  # chosen for the clicks

    @classmethod
    def of(cls, points: Points) -> Boxes:
        return cls(points.box, points.kernels)


class Inside(NamedTuple):
    """The part of each object's Gaussian that lies in the box."""

    mass: Floats  # (M,) its probability
    first: Floats  # (M, D) its mean deviation from the object's mean
    second: Floats  # (M, D, D) and its mean squared deviation


def inside_box(mixture: Mixture, box: Boxes) -> Inside:
    """Compute the moments of the objects truncated to the boxes of their images.

    With more than MAX_TRUNCATED_AXES coordinates, no object is truncated.
    """
    M, D = mixture.mean.shape
    found = Inside(np.ones(M), np.zeros((M, D)), mixture.cov.copy())
    if D <= MAX_TRUNCATED_AXES and M:
        edges = np.repeat(box.corners, np.diff(mixture.ptr), axis=0)
        box.kernels.truncate(mixture.mean, mixture.cov, edges[:, 0].copy(), edges[:, 1].copy(), *_nodes(), *found)
    return found


@cache
def _nodes() -> tuple[Floats, Floats]:
    """Nodes and weights of Gauss-Legendre quadrature from -1 to 1."""
    return np.polynomial.legendre.leggauss(N_NODES)


def object_terms(mixture: Mixture, box: Boxes | None = None) -> ObjectTerms:
    """Compute the terms of the E-step that depend on the objects, truncated to their boxes if given."""
    D = mixture.mean.shape[1]
    L = np.linalg.cholesky(mixture.cov)
    root = np.ascontiguousarray(np.linalg.inv(L)) if len(L) else L
    log_det = 2 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(1)
    with np.errstate(divide="ignore"):
        weight = np.log(mixture.share) - 0.5 * log_det - 0.5 * D * np.log(2 * np.pi)
    if box is not None:
        weight -= np.log(np.maximum(inside_box(mixture, box).mass, MIN_MASS))
    spread = np.diagonal(mixture.cov, axis1=1, axis2=2)[:, [0, min(1, D - 1)]]
    reach = np.ascontiguousarray(np.sqrt(CUT * spread))
    return ObjectTerms(mixture.ptr, weight, np.zeros(len(weight)), mixture.mean, root, reach)


def worker_terms(mixture: Mixture) -> WorkerTerms:
    """Compute the terms of the E-step that depend on the workers."""
    miss = np.log1p(-mixture.p)
    return WorkerTerms(np.log(mixture.p) - miss, miss, mixture.noise**-2.0)


def in_shards(points: Points, run: Run) -> InMemory[Points]:
    """Return an executor over the clicks, split into `run.shards` shards."""
    return InMemory([points] if run.shards == 1 else list(points.shards(run.shards)))


def assign(
    executor: Executor[Points], mixture: Mixture, once: bool, threads: int, best: bool = False,
    box: Boxes | None = None,
) -> Stats:  # fmt: skip
    """Run the E-step on every shard. With `best`, each shard also keeps the most likely object of each click."""
    terms = object_terms(mixture, box), worker_terms(mixture)
    stats: Stats = executor.update(e_step, *terms, once, CUT, threads, best)
    return stats


def maximise(
    stats: Stats, mixture: Mixture, priors: Priors, sides: Floats, *, penalty: float = 0.0, noise: bool = False,
    box: Boxes | None = None,
) -> Mixture:  # fmt: skip
    """M-step: return the objects and workers that maximise the expected log-likelihood.

    `sides` (I, D) are the side lengths of the boxes, and `box` is given if objects are truncated to them. `penalty`
    clicks are subtracted from every object before shares are computed, eq. (14). An object with fewer clicks than that
    gets share 0 and keeps its other parameters.
    """
    D = mixture.mean.shape[1]
    n, b, S1 = stats.sums[:, 0], stats.sums[:, 1], stats.sums[:, HEAD : HEAD + D]
    S2 = stats.sums[:, HEAD + D :].reshape(-1, D, D)
    S2 = S2 + np.tril(S2, -1).transpose(0, 2, 1)  # the sums hold the lower triangle
    net, n_all = np.maximum(n - penalty, 0.0), n
    if box is not None:  # add the clicks that truncation is expected to have removed, eq. (36')
        inside = inside_box(mixture, box)
        n_all = n / np.maximum(inside.mass, MIN_MASS)
        b, S1 = b + n_all - n, S1 - n[:, None] * inside.first
        S2 = S2 + n_all[:, None, None] * mixture.cov - n[:, None, None] * inside.second
    alive = (net > 0)[:, None]
    move = np.divide(S1, b[:, None], out=np.zeros_like(S1), where=alive & (b[:, None] > 0))
    part = np.ones(len(move)) if box is None else _part_inside(mixture, move, box.corners)
    scatter = S2 - (part * (2 - part) * b)[:, None, None] * move[:, :, None] * move[:, None, :]
    prior = 0.0 if priors.S is None else priors.nu * priors.S
    cov = (scatter + prior) / np.maximum(priors.nu + n_all, 1e-300)[:, None, None]
    floor = np.repeat((MIN_SD * sides) ** 2, np.diff(mixture.ptr), axis=0)
    cov = np.where(alive[:, :, None], _raise_variances(cov, floor), mixture.cov)
    image = np.repeat(np.arange(len(sides)), np.diff(mixture.ptr))
    total = np.bincount(image, net, minlength=len(sides))
    share = np.divide(net, total[image], out=mixture.share.copy(), where=total[image] > 0)
    other = priors.elsewhere or nowhere(len(stats.sent))
    on, sent = stats.on + other.on, stats.sent + other.sent
    p = np.full(len(sent), 0.5)
    np.divide(on + priors.hits - 1, sent + priors.hits + priors.misses - 2, out=p,
              where=sent + priors.hits + priors.misses > 2)  # fmt: skip
    p = np.clip(p, RELIABILITY_MARGIN, 1 - RELIABILITY_MARGIN)
    factors = worker_noise(on, stats.far + other.far, D) if noise else mixture.noise
    return Mixture(mixture.ptr, mixture.mean + part[:, None] * move, cov, share, p, factors)


def _part_inside(mixture: Mixture, move: Floats, corners: Floats) -> Floats:
    """(M,) part of each move, 1 at most, after which the mean of an object is still in its box."""
    low, high = np.repeat(corners, np.diff(mixture.ptr), axis=0).transpose(1, 0, 2)
    room = np.where(move > 0, high - mixture.mean, mixture.mean - low)
    part = np.divide(room, np.abs(move), out=np.ones_like(move), where=np.abs(move) > room)
    return np.asarray(np.clip(part.min(1), 0.0, 1.0))


def worker_noise(on: Floats, far: Floats, D: int) -> Floats:
    """(W,) noise factors from the expected clicks on objects `on` (W,) and their squared distances `far` (W,)."""
    return np.sqrt((D * NOISE_PRIOR_CLICKS + far) / (D * NOISE_PRIOR_CLICKS + D * on))


def noise_prior(noise: Floats, D: int, elsewhere: Elsewhere) -> float:
    """Log-prior of the workers' noise factors."""
    square, pseudo = noise**2, D * NOISE_PRIOR_CLICKS
    return float(
        -0.5 * ((pseudo + D * elsewhere.on) * np.log(square) + (pseudo + elsewhere.far) * (1 / square - 1)).sum()
    )


def log_prior(mixture: Mixture, priors: Priors) -> float:
    """Log-prior of the mixture; EM maximises its sum with the log-likelihood."""
    other = priors.elsewhere or nowhere(len(mixture.p))
    hits, misses = priors.hits - 1 + other.on, priors.misses - 1 + other.sent - other.on
    fit = (hits * np.log(mixture.p) + misses * np.log1p(-mixture.p)).sum()
    if priors.S is not None and len(mixture.cov):
        inverse = np.linalg.inv(mixture.cov)
        log_det = np.linalg.slogdet(mixture.cov)[1]
        fit -= 0.5 * priors.nu * (log_det + np.einsum("de,med->m", priors.S, inverse)).sum()
    return float(fit) + noise_prior(mixture.noise, mixture.mean.shape[1], other)


class GaussianEM(Problem):
    """EM with a fixed number of objects: log-likelihood plus log-prior never decreases."""

    name = "click-mixture"

    def __init__(
        self, executor: Executor[Points], mixture: Mixture, sides: Floats, threads: int, max_iter: int, *,
        once: bool = False, noise: bool = False, priors: Priors = MAXIMUM_LIKELIHOOD, box: Boxes | None = None,
    ) -> None:  # fmt: skip
        self.executor, self.mixture, self.sides, self.threads = executor, mixture, sides, threads
        self.max_iter, self.once, self.noise, self.priors, self.box = max_iter, once, noise, priors, box

    def step(self) -> Step:
        self.stats = assign(self.executor, self.mixture, self.once, self.threads, box=self.box)
        objective = self.stats.fit + log_prior(self.mixture, self.priors)
        return Step(objective, {"objects": self.mixture.n_objects})

    def improve(self) -> None:
        self.mixture = maximise(self.stats, self.mixture, self.priors, self.sides, noise=self.noise, box=self.box)

    def converged(self, objectives: Sequence[float]) -> bool:
        return not self.mixture.n_objects or change_below(objectives, EM_TOL)

    def state(self) -> Arrays:
        return packed(self.mixture._asdict())

    def restore(self, state: Arrays) -> None:
        ptr, (W, D) = self.mixture.ptr, (len(self.mixture.p), self.sides.shape[1])
        self.mixture = restored(Mixture, state, I=len(ptr) - 1, W=W, D=D)


def change_below(objectives: Sequence[float], tol: float) -> bool:
    """Whether the last relative change of the objective is below `tol`."""
    return len(objectives) > 1 and abs(objectives[-1] - objectives[-2]) < tol * abs(objectives[-1])


def _raise_variances(cov: Floats, floor: Floats) -> Floats:
    """Raise the variances of covariances (M, D, D) to at least `floor` (M, D) in every direction."""
    if not len(cov):
        return cov
    scale = np.sqrt(floor)
    values, vectors = np.linalg.eigh(cov / (scale[:, :, None] * scale[:, None, :]))
    if (values >= 1).all():
        return cov
    lifted = (vectors * np.maximum(values, 1.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
    return np.asarray(lifted * scale[:, :, None] * scale[:, None, :])


def sort_objects(mixture: Mixture) -> tuple[Mixture, Ints]:
    """Sort the objects of every image by their coordinates; return the sorted mixture and the order."""
    image = np.repeat(np.arange(len(mixture.ptr) - 1), np.diff(mixture.ptr))
    order = np.lexsort((*mixture.mean.T[::-1], image))
    return mixture._replace(mean=mixture.mean[order], cov=mixture.cov[order], share=mixture.share[order]), order


def select_objects(mixture: Mixture, which: Ints) -> Mixture:
    """Keep only the objects `which`, in ascending order, and renormalise their shares."""
    image = np.repeat(np.arange(len(mixture.ptr) - 1), np.diff(mixture.ptr))[which]
    ptr = np.searchsorted(image, np.arange(len(mixture.ptr))).astype(np.int64)
    share = mixture.share[which]
    total = np.bincount(image, share, minlength=len(ptr) - 1)
    return mixture._replace(
        ptr=ptr, mean=mixture.mean[which], cov=mixture.cov[which], share=share / np.maximum(total[image], 1e-300)
    )
