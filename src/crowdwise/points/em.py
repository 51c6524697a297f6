"""Objects as plain Gaussians, improved by expectation-maximisation: equations (7) to (12) of the clicks paper, with
priors where asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..answers import Points
from ..engine import Executor, InMemory, Problem, Run, Step
from ..engine.run import Arrays, packed, unpacked
from ..kernels.layout import HEAD, Floats, Ints
from .e_step import ObjectTerms, Stats, WorkerTerms, e_step

CUT = 100.0  # squared distance from which an object is ignored: e^-50 of its peak
MIN_CHANCE = 1e-6  # reliabilities stay this far from 0 and 1
MIN_SD = 1e-3  # least standard deviation of an object along any axis, in sides of the box
NOISE_CLICKS = 20.0  # clicks of ordinary noise that a worker's own noise starts from
TOL = 1e-7  # relative change of the objective that counts as converged


class Mixture(NamedTuple):
    """Objects of all images, and workers."""

    ptr: Ints  # (I+1,) objects of each image
    mean: Floats  # (M, D)
    cov: Floats  # (M, D, D)
    share: Floats  # (M,) of the clicks on objects of their image
    p: Floats  # (W,) chance that a click is on an object
    noise: Floats  # (W,) own position noise: a factor of standard deviations

    @property
    def n_objects(self) -> int:
        return len(self.mean)


class Priors(NamedTuple):
    """The priors of shapes and reliabilities; the defaults are those of maximum likelihood."""

    nu: float = 0.0  # clicks that the shape counts for
    S: Floats | None = None  # (D, D) the shape that objects share
    hits: float = 1.0  # of Beta(hits, misses), the prior of a reliability
    misses: float = 1.0


MAXIMUM_LIKELIHOOD = Priors()


def object_terms(mixture: Mixture) -> ObjectTerms:
    """The objects as the E-step needs them."""
    D = mixture.mean.shape[1]
    L = np.linalg.cholesky(mixture.cov)
    root = np.ascontiguousarray(np.linalg.inv(L)) if len(L) else L
    log_det = 2 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(1)
    with np.errstate(divide="ignore"):
        weight = np.log(mixture.share) - 0.5 * log_det - 0.5 * D * np.log(2 * np.pi)
    spread = np.diagonal(mixture.cov, axis1=1, axis2=2)[:, [0, min(1, D - 1)]]
    widest = max(1.0, float(mixture.noise.max(initial=1.0)))
    reach = np.ascontiguousarray(np.sqrt(CUT * spread) * widest)
    return ObjectTerms(mixture.ptr, weight, np.zeros(len(weight)), mixture.mean, root, reach)


def worker_terms(mixture: Mixture) -> WorkerTerms:
    """The workers as the E-step needs them."""
    miss = np.log1p(-mixture.p)
    return WorkerTerms(np.log(mixture.p) - miss, miss, mixture.noise**-2.0)


def in_shards(points: Points, run: Run) -> InMemory[Points]:
    """The clicks, ready for E-steps."""
    return InMemory([points] if run.shards == 1 else list(points.shards(run.shards)))


def assign(executor: Executor[Points], mixture: Mixture, once: bool, threads: int, best: bool = False) -> Stats:
    """The E-step on every shard. With `best`, shards also keep the most likely object of each click."""
    terms = object_terms(mixture), worker_terms(mixture)
    stats: Stats = executor.update(e_step, *terms, once, CUT, threads, best)
    return stats


def maximise(
    stats: Stats, mixture: Mixture, priors: Priors, sides: Floats, *, toll: float = 0.0, noise: bool = False
) -> Mixture:
    """The objects and workers that make the expected log-likelihood largest; `sides` (I, D) are those of the boxes.

    `toll` clicks are taken from every object before shares are made of them, eq. (14); objects that cannot pay have
    share 0 then, and stay as they were.
    """
    D = mixture.mean.shape[1]
    n, b, S1 = stats.sums[:, 0], stats.sums[:, 1], stats.sums[:, HEAD : HEAD + D]
    S2 = stats.sums[:, HEAD + D :].reshape(-1, D, D)
    S2 = S2 + np.tril(S2, -1).transpose(0, 2, 1)  # the sums hold the lower half
    paid = np.maximum(n - toll, 0.0)
    some = (paid > 0)[:, None]
    move = np.divide(S1, b[:, None], out=np.zeros_like(S1), where=some & (b[:, None] > 0))
    scatter = S2 - b[:, None, None] * move[:, :, None] * move[:, None, :]
    prior = 0.0 if priors.S is None else priors.nu * priors.S
    cov = (scatter + prior) / np.maximum(priors.nu + n, 1e-300)[:, None, None]
    floor = np.repeat((MIN_SD * sides) ** 2, np.diff(mixture.ptr), axis=0)
    cov = np.where(some[:, :, None], _floored(cov, floor), mixture.cov)
    image = np.repeat(np.arange(len(sides)), np.diff(mixture.ptr))
    total = np.bincount(image, paid, minlength=len(sides))
    share = np.divide(paid, total[image], out=mixture.share.copy(), where=total[image] > 0)
    p = np.full(len(stats.sent), 0.5)
    np.divide(stats.on + priors.hits - 1, stats.sent + priors.hits + priors.misses - 2, out=p,
              where=stats.sent + priors.hits + priors.misses > 2)  # fmt: skip
    own = own_noise(stats.on, stats.far, D) if noise else mixture.noise
    return Mixture(mixture.ptr, mixture.mean + move, cov, share, np.clip(p, MIN_CHANCE, 1 - MIN_CHANCE), own)


def own_noise(on: Floats, far: Floats, D: int) -> Floats:
    """(W,) factors of position noise from squared distances of expected clicks on objects."""
    return np.sqrt((D * NOISE_CLICKS + far) / (D * NOISE_CLICKS + D * on))


def noise_prior(noise: Floats, D: int) -> float:
    """Log-prior of the workers' own noise."""
    square = noise**2
    return float(-0.5 * D * NOISE_CLICKS * (np.log(square) + 1 / square - 1).sum())


def log_prior(mixture: Mixture, priors: Priors) -> float:
    """The log-prior, which EM maximises together with the log-likelihood."""
    fit = (priors.hits - 1) * np.log(mixture.p).sum() + (priors.misses - 1) * np.log1p(-mixture.p).sum()
    if priors.S is not None and len(mixture.cov):
        inverse = np.linalg.inv(mixture.cov)
        log_det = np.linalg.slogdet(mixture.cov)[1]
        fit -= 0.5 * priors.nu * (log_det + np.einsum("de,med->m", priors.S, inverse)).sum()
    return float(fit) + noise_prior(mixture.noise, mixture.mean.shape[1])


class GaussianEM(Problem):
    """EM with the number of objects as it is: the log-likelihood plus the log-prior never falls."""

    name = "click-mixture"

    def __init__(
        self, executor: Executor[Points], mixture: Mixture, sides: Floats, threads: int, max_iter: int, *,
        once: bool = False, noise: bool = False, priors: Priors = MAXIMUM_LIKELIHOOD,
    ) -> None:  # fmt: skip
        self.executor, self.mixture, self.sides, self.threads = executor, mixture, sides, threads
        self.max_iter, self.once, self.noise, self.priors = max_iter, once, noise, priors

    def step(self) -> Step:
        self.stats = assign(self.executor, self.mixture, self.once, self.threads)
        objective = self.stats.fit + log_prior(self.mixture, self.priors)
        return Step(objective, {"objects": self.mixture.n_objects})

    def improve(self) -> None:
        self.mixture = maximise(self.stats, self.mixture, self.priors, self.sides, noise=self.noise)

    def converged(self, objectives: Sequence[float]) -> bool:
        return not self.mixture.n_objects or little_change(objectives, TOL)

    def state(self) -> Arrays:
        return packed(self.mixture._asdict())

    def restore(self, state: Arrays) -> None:
        self.mixture = Mixture(**unpacked(state, ""))


def little_change(objectives: Sequence[float], tol: float) -> bool:
    """Whether the last iteration has changed the objective by less than a share `tol` of it."""
    return len(objectives) > 1 and abs(objectives[-1] - objectives[-2]) < tol * abs(objectives[-1])


def _floored(cov: Floats, floor: Floats) -> Floats:
    """Covariances with no direction thinner than the floor."""
    if not len(cov):
        return cov
    scale = np.sqrt(floor)
    values, vectors = np.linalg.eigh(cov / (scale[:, :, None] * scale[:, None, :]))
    if (values >= 1).all():
        return cov
    lifted = (vectors * np.maximum(values, 1.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
    return np.asarray(lifted * scale[:, :, None] * scale[:, None, :])


def in_order(mixture: Mixture) -> tuple[Mixture, Ints]:
    """The objects of every image by place: the first axis, then the next; and where each stood."""
    image = np.repeat(np.arange(len(mixture.ptr) - 1), np.diff(mixture.ptr))
    order = np.lexsort((*mixture.mean.T[::-1], image))
    return mixture._replace(mean=mixture.mean[order], cov=mixture.cov[order], share=mixture.share[order]), order


def keep(mixture: Mixture, which: Ints) -> Mixture:
    """Some of the objects, by number in ascending order, with shares that add up to one again."""
    image = np.repeat(np.arange(len(mixture.ptr) - 1), np.diff(mixture.ptr))[which]
    ptr = np.searchsorted(image, np.arange(len(mixture.ptr))).astype(np.int64)
    share = mixture.share[which]
    total = np.bincount(image, share, minlength=len(ptr) - 1)
    return mixture._replace(
        ptr=ptr, mean=mixture.mean[which], cov=mixture.cov[which], share=share / np.maximum(total[image], 1e-300)
    )
