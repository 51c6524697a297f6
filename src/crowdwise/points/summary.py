"""Convert a fitted mixture to the parameters of a result: objects with probabilities, workers, assigned clicks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from ..answers import Points
from ..answers.arguments import checked
from ..answers.coding import place_of
from ..engine import Executor
from ..engine.resources import limit_threads
from ..errors import ParameterError, UnknownIdError
from ..kernels import TINY, special
from ..kernels.clicks import match
from ..kernels.layout import Floats, Ints, weighted_counts
from ..kernels.special import expit, gammaln
from ..result import Objects, PointsResult
from ..result.base import result_of
from ..result.points import supporters
from .e_step import Local, Stats
from .em import CUT, Boxes, Mixture, object_terms, worker_terms

GRID_VALUES = 256  # grid points of the posterior of a reliability
TAIL_PROBABILITY = 0.025  # in each tail of an interval
CROWD_MEANS = np.linspace(0.05, 0.975, 38)  # candidate means of the crowd's reliabilities
CROWD_STRENGTHS = np.geomspace(0.5, 8.0, 9)  # candidate concentrations of their Beta distribution; limit by coverage
OBJECTS_KNOWN = 0.8  # information about a reliability with estimated objects, over that with known ones; by coverage
BLOCK_WORKERS = 4096  # workers whose posteriors are held at a time
DECOY_BETA = (1.5, 8.5)  # Beta distribution of the share of workers who click on a decoy (not a real object)
DECOY_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)  # candidate shares of decoys; prior weight 1 / share
HIT_RATE_MEANS = np.linspace(0.05, 0.98, 32)  # candidate means of the share of workers who click on a real object
HIT_RATE_STRENGTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # candidate concentrations of that Beta distribution
HIT_RATE_GRID = len(HIT_RATE_STRENGTHS) * len(DECOY_SHARES), len(HIT_RATE_MEANS)  # shape of their weights
LOG_ODDS_WEIGHT = 0.5  # factor on the log-odds of an object, chosen on three real sets: docs/maths/click_mixture.md
MIN_ODDS = 1e-12  # smallest probability of an object or of none, before that factor
EAGER_QUANTILE = 0.75  # workers with a hit rate at or above this quantile count as having looked at the whole image
MIN_PROBABILITY = 0.01  # soft assignments below this are omitted


def summarise(
    points: Points, executor: Executor[Points], mixture: Mixture, stats: Stats, evidence: Floats,
    beta: tuple[float, float], once: bool,
) -> Objects:  # fmt: skip
    """Parameters of the result, after an E-step with `best`. `evidence` (M,) are the log-odds that objects are real."""
    parts = list(executor.each(_click_posteriors))
    alpha, best = (np.concatenate(each) for each in zip(*parts, strict=True))
    alpha = np.clip(alpha, 0.0, 1.0)
    image = np.repeat(np.arange(points.n_images), np.diff(mixture.ptr))
    object_, chance = best[:, 0].astype(np.int32), best[:, 1].copy()
    low, high = reliability_intervals(points, alpha, mixture.p, beta)
    return Objects(
        **{name: getattr(mixture, name) for name in ("ptr", "mean", "cov", "share", "noise")},
        clicks=stats.sums[:, 0].copy(),
        probability=calibrated(evidence, probability_real(points, image, *supporters(points, object_, chance))),
        reliability=mixture.p,
        low=np.minimum(low, mixture.p),
        high=np.maximum(high, mixture.p),
        outlier=1.0 - alpha,
        object=object_,
        chance=chance,
        once=np.array(int(once)),
    )


def _click_posteriors(points: Points, local: Local) -> tuple[Floats, Floats]:
    return local.alpha[:, 0], local.best


def reliability_intervals(points: Points, alpha: Floats, p: Floats, beta: tuple[float, float]) -> tuple[Floats, Floats]:
    """(W,) ends of the 95 % intervals of the reliabilities, given the objects.

    The reliabilities of the crowd have a Beta distribution. Its mean, with the prior Beta(*beta), and its concentration
    are averaged over a grid, weighted by the likelihood of all workers' clicks. The posterior of each click is used
    instead of expected counts, which would hide how uncertain the clicks are.
    """
    order = np.argsort(points.worker, kind="stable")
    ptr = np.searchsorted(points.worker[order], np.arange(points.n_workers + 1))
    alpha, grid = alpha[order], (np.arange(GRID_VALUES) + 0.5) / GRID_VALUES
    crowds, log_weight = _crowds(grid, beta)
    blocks = [slice(a, a + BLOCK_WORKERS) for a in range(0, points.n_workers, BLOCK_WORKERS)]

    def likelihood(block: slice) -> Floats:
        own = ptr[block.start : block.stop + 1]
        logs = np.empty((len(own) - 1, GRID_VALUES))
        points.kernels.reliability_scores(alpha, own, p[block], grid, logs)
        return np.asarray(np.exp(OBJECTS_KNOWN * (logs - logs.max(1, keepdims=True))))

    with limit_threads():
        for block in blocks:
            log_weight = log_weight + np.log(np.maximum(likelihood(block) @ crowds, TINY)).sum(0)
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        ends = np.empty((points.n_workers, 2))
        for block in blocks:
            found = likelihood(block)
            found *= (weight / np.maximum(found @ crowds, TINY)) @ crowds.T
            ends[block] = _central(found / found.sum(1, keepdims=True))
    return ends[:, 0], ends[:, 1]


def _crowds(grid: Floats, beta: tuple[float, float]) -> tuple[Floats, Floats]:
    """(G, H) candidate distributions of reliabilities over the grid (G,), and the log-prior (H,) of each."""
    mean, strength = (each.ravel() for each in np.meshgrid(CROWD_MEANS, CROWD_STRENGTHS))
    logs = np.outer(np.log(grid), mean * strength - 1) + np.outer(np.log1p(-grid), (1 - mean) * strength - 1)
    return special.softmax(logs.T).T, (beta[0] - 1) * np.log(mean) + (beta[1] - 1) * np.log1p(-mean)


def _central(p: Floats) -> Floats:
    """(W, 2) quantiles at TAIL_PROBABILITY and 1 - TAIL_PROBABILITY of distributions (W, G) over cells of [0, 1]."""
    below, G = p.cumsum(1), p.shape[1]
    ends = []
    for tail in (TAIL_PROBABILITY, 1 - TAIL_PROBABILITY):
        cell = np.minimum((below < tail).sum(1), G - 1)[:, None]
        own, up_to = np.take_along_axis(p, cell, 1)[:, 0], np.take_along_axis(below, cell, 1)[:, 0]
        ends.append((cell[:, 0] + 1 - np.clip((up_to - tail) / np.maximum(own, TINY), 0, 1)) / G)
    return np.stack(ends, axis=1)


def probability_real(points: Points, image_of: Ints, worker: Ints, object_: Ints) -> Floats:
    """(M,) probability that an object is real, not a decoy.

    `worker` and `object_` list the pairs of a worker and an object they clicked on; `image_of` (M,) is each object's
    image. The share of workers who click on a real object has a Beta distribution, and on a decoy a fixed one with a
    low mean. The mean and concentration of the former and the share of decoys are averaged over a grid, weighted by
    the likelihood of all objects of all images. A worker who clicks on few objects counts as having looked at only a
    part of the image.
    """
    M = len(image_of)
    if not M:
        return np.empty(0)
    k = np.bincount(object_, minlength=M).astype(np.float64)
    there = np.bincount(image_of, minlength=points.n_images).astype(np.float64)
    shown = weighted_counts(points.job_worker, there[points.job_image], points.n_workers)
    rate = hit_rate(np.bincount(worker, minlength=points.n_workers).astype(np.float64), shown)
    part = attention(rate, eager_rate(rate[points.job_worker]))
    looked = weighted_counts(points.job_image, part[points.job_worker], points.n_images)[image_of]
    return chance_real(k, looked, hit_rate_weights(k, looked))


def calibrated(evidence: Floats, real: Floats) -> Floats:
    """(M,) probability of objects from the log-odds that their clicks agree by more than chance, and the probability
    that an object on which clicks agree is real."""
    p = np.clip(expit(evidence) * real, MIN_ODDS, 1 - MIN_ODDS)
    return np.asarray(expit(LOG_ODDS_WEIGHT * (np.log(p) - np.log1p(-p))))


def hit_rate(hits: Floats, shown: Floats) -> Floats:
    """(W,) share of the objects shown to a worker on which they clicked, with a uniform prior."""
    return np.asarray((hits + 1.0) / (shown + 2.0))


def eager_rate(rate: Floats) -> float:
    """Hit rate of eager workers; `rate` (J,) has one row per job."""
    return float(np.quantile(rate, EAGER_QUANTILE))


def attention(rate: Floats, eager: float) -> Floats:
    """(W,) part of an image that a worker looks at: their hit rate over that of eager workers, at most 1."""
    return np.asarray(np.minimum(rate / eager, 1.0))


def hit_rate_weights(k: Floats, looked: Floats) -> Floats:
    """(strengths and shares, means) weights of the grid, given that k (M,) of `looked` (M,) workers click an object."""
    pairs, which = _distinct(k, looked)
    count = np.bincount(which, minlength=len(pairs))
    score = np.stack([both @ count - np.log(share) for share, _, both in _grid(pairs)])
    weight = np.exp(score - score.max())
    return np.asarray(weight / weight.sum())


def chance_real(k: Floats, looked: Floats, weight: Floats) -> Floats:
    """(M,) probability that an object is real, averaged over the grid with the weights of `hit_rate_weights`."""
    pairs, which = _distinct(k, looked)
    real = np.zeros(len(pairs))
    for row, (share, genuine, both) in zip(weight, _grid(pairs), strict=True):
        real += row @ np.exp(np.log1p(-share) + genuine - both)
    return np.asarray(real[which])


def _distinct(k: Floats, looked: Floats) -> tuple[Floats, Ints]:
    """Return the distinct pairs of clicks and looks, and the pair of each object."""
    both = np.stack([k, np.maximum(looked, k).round(2)], axis=1)
    pairs, which = np.unique(both, axis=0, return_inverse=True)
    return pairs, which.ravel()


def _grid(pairs: Floats) -> Iterator[tuple[float, Floats, Floats]]:
    """Yield the share of decoys, and the log-probabilities (means, pairs) of real objects and of all objects."""
    decoy = _log_beta_binomial(pairs, *DECOY_BETA)
    for strength in HIT_RATE_STRENGTHS:
        genuine = np.stack([_log_beta_binomial(pairs, m * strength, (1 - m) * strength) for m in HIT_RATE_MEANS])
        for share in DECOY_SHARES:
            yield share, genuine, np.logaddexp(np.log1p(-share) + genuine, np.log(share) + decoy)


def _log_beta_binomial(pairs: Floats, a: float, b: float) -> Floats:
    """(pairs,) log-probability that k of n workers click on an object, if the share of workers is Beta(a, b)."""
    k, n = pairs[:, 0], pairs[:, 1]
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    parts = gammaln(k + a) + gammaln(n - k + b) - gammaln(n + a + b)
    whole = gammaln(np.array([a, b, a + b]))
    return np.asarray(ways + parts - (whole[0] + whole[1] - whole[2]))


@checked
def soft_assignments(result: PointsResult, image: Any, *, least: float = MIN_PROBABILITY) -> pl.DataFrame:
    """Probability that each click on an image is on each object.

    The columns are click (row of `result.clicks`, from 0), worker, object and probability. The probabilities of a click
    add up to 1 minus its probability of being an outlier. Probabilities below `least` are omitted.

    >>> import crowdwise as cw
    >>> result = cw.aggregate(cw.simulate.clicks("E", seed=1).points)
    >>> cw.soft_assignments(result, "image").columns
    ['click', 'worker', 'object', 'probability']
    """
    result = result_of(result, "points", "soft_assignments")
    if result.model.name != "click-mixture":
        raise ParameterError(
            f"{result.model.name} makes hard assignments only. Fit 'click-mixture' to get soft assignments"
        )
    i = place_of(result.answers.images, image)
    if i is None:
        raise UnknownIdError(f"no image {image!r} in these clicks")
    shares, first = _shares(result, i), result.answers.clicks_of(i).start
    click, object_ = np.nonzero(shares >= least)
    return pl.DataFrame(
        [
            pl.Series("click", first + click),
            result.answers.workers[result.answers.worker[first + click]].alias("worker"),
            pl.Series("object", object_ + 1),
            pl.Series("probability", shares[click, object_]),
        ]
    )


def _shares(result: PointsResult, i: int) -> Floats:
    """(clicks, objects) assignment probabilities of one image."""
    p, points = result.params, result.answers
    at, own = points.clicks_of(i), slice(int(p.ptr[i]), int(p.ptr[i + 1]))
    X, worker = points.X[at], points.worker[at]
    M = own.stop - own.start
    mixture = Mixture(np.array([0, M]), p.mean[own], p.cov[own], p.share[own], p.reliability, p.noise)
    box = Boxes(points.box[[i]], points.kernels) if result.model.settings()["method"] == "merge" else None
    objects, workers = object_terms(mixture, box), worker_terms(mixture)
    precision = workers.precision[worker]
    away = np.einsum("mde,nme->nmd", objects.root, X[:, None] - p.mean[own][None])
    far = (away**2).sum(2) * precision[:, None]
    odds = workers.odds[worker] + 0.5 * points.n_axes * np.log(precision) + np.log(points.sides[i]).sum()
    psi = np.where(far <= CUT, np.exp(np.minimum(objects.weight[None] + odds[:, None] - 0.5 * far, 600.0)), 0.0)
    if not p.once:
        return np.asarray(psi / (1 + psi.sum(1, keepdims=True)))
    shares = np.zeros_like(psi)
    click, comp = np.nonzero(psi)
    job = np.repeat(np.arange(points.n_jobs), np.diff(points.job_ptr))[at][click]
    shares[click, comp] = match(job, click, comp, psi[click, comp])[0]
    return shares
