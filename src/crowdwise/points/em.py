"""Objects as plain Gaussians, improved by expectation-maximisation: equations (7) to (12) of the clicks paper, with
priors where asked for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kernels.layout import HEAD, Floats, Ints
from .sweeps import Seen, Side, Sweeper, Swept

CUT = 100.0  # squared distance at which an object no longer sees a click: e^-50 of its peak
CLIP = 1e-6  # reliabilities stay this far from 0 and 1
THIN = 1e-3  # least standard deviation of an object along any axis, in sides of the box
CALM = 20.0  # clicks of ordinary noise that a worker's own noise starts from


class Mixture(NamedTuple):
    """Objects of all images, and workers."""

    ptr: Ints  # (I+1,) objects of each image
    mean: Floats  # (M, D)
    cov: Floats  # (M, D, D)
    share: Floats  # (M,) of the clicks on objects of their image
    p: Floats  # (W,) chance that a click is on an object
    noise: Floats  # (W,) own position noise: a factor of standard deviations


class Priors(NamedTuple):
    """What is believed before any click; all zero for maximum likelihood."""

    nu: float = 0.0  # clicks that the shape counts for
    S: Floats | None = None  # (D, D) the shape that objects share
    hits: float = 1.0  # of Beta(hits, misses), the chance of a click to be on an object
    misses: float = 1.0


def seen(mixture: Mixture) -> Seen:
    """The objects as clicks see them."""
    D = mixture.mean.shape[1]
    L = np.linalg.cholesky(mixture.cov)
    root = np.ascontiguousarray(np.linalg.inv(L)) if len(L) else L
    log_det = 2 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(1)
    with np.errstate(divide="ignore"):
        weight = np.log(mixture.share) - 0.5 * log_det - 0.5 * D * np.log(2 * np.pi)
    spread = np.diagonal(mixture.cov, axis1=1, axis2=2)[:, [0, min(1, D - 1)]]
    widest = max(1.0, float(mixture.noise.max(initial=1.0)))
    reach = np.ascontiguousarray(np.sqrt(CUT * spread) * widest)
    return Seen(mixture.ptr, weight, np.zeros(len(weight)), mixture.mean, root, reach)


def side(mixture: Mixture) -> Side:
    """The workers as clicks see them."""
    return Side(np.log(mixture.p) - np.log1p(-mixture.p), mixture.noise**-2.0)


class Stats(NamedTuple):
    """All that is needed of clicks to improve objects and workers; sums over shards add up to that of the whole."""

    fit: float  # log-likelihood
    sums: Floats  # (M, HEAD + D + D D) about the means: see Swept
    on: Floats  # (W,) expected clicks on objects
    far: Floats  # (W,) their squared distances
    sent: Floats  # (W,) clicks

    def plus(self, other: Stats) -> Stats:
        """Those of both shards."""
        return Stats(
            self.fit + other.fit,
            self.sums + other.sums,
            self.on + other.on,
            self.far + other.far,
            self.sent + other.sent,
        )


def sweep(sweeper: Sweeper, mixture: Mixture, once: bool, best: bool = False) -> tuple[Swept, Stats]:
    """Which object each click is of, and the statistics of that."""
    swept = sweeper.run(seen(mixture), side(mixture), once=once, cut=CUT, best=best)
    fit = swept.log_sum + sweeper.outliers + float(sweeper.sent @ np.log1p(-mixture.p))
    on, far = (sweeper.by_worker(swept.alpha[:, k]) for k in (0, 1))
    return swept, Stats(fit, swept.sums, on, far, sweeper.sent)


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
    floor = np.repeat((THIN * sides) ** 2, np.diff(mixture.ptr), axis=0)
    cov = np.where(some[:, :, None], _floored(cov, floor), mixture.cov)
    image = np.repeat(np.arange(len(sides)), np.diff(mixture.ptr))
    total = np.bincount(image, paid, minlength=len(sides))
    share = np.divide(paid, total[image], out=mixture.share.copy(), where=total[image] > 0)
    p = np.full(len(stats.sent), 0.5)
    np.divide(stats.on + priors.hits - 1, stats.sent + priors.hits + priors.misses - 2, out=p,
              where=stats.sent + priors.hits + priors.misses > 2)  # fmt: skip
    own = own_noise(stats.on, stats.far, D) if noise else mixture.noise
    return Mixture(mixture.ptr, mixture.mean + move, cov, share, np.clip(p, CLIP, 1 - CLIP), own)


def own_noise(on: Floats, far: Floats, D: int) -> Floats:
    """(W,) factors of position noise from squared distances of expected clicks on objects."""
    return np.sqrt((D * CALM + far) / (D * CALM + D * on))


def noise_prior(noise: Floats, D: int) -> float:
    """What is believed of own noises (nats)."""
    square = noise**2
    return float(-0.5 * D * CALM * (np.log(square) + 1 / square - 1).sum())


def log_prior(mixture: Mixture, priors: Priors) -> float:
    """What `maximise` climbs besides the log-likelihood."""
    fit = (priors.hits - 1) * np.log(mixture.p).sum() + (priors.misses - 1) * np.log1p(-mixture.p).sum()
    if priors.S is not None and len(mixture.cov):
        inverse = np.linalg.inv(mixture.cov)
        log_det = np.linalg.slogdet(mixture.cov)[1]
        fit -= 0.5 * priors.nu * (log_det + np.einsum("de,med->m", priors.S, inverse)).sum()
    return float(fit) + noise_prior(mixture.noise, mixture.mean.shape[1])


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
