"""From a fitted mixture to what a result holds: objects and whether they are real, workers, clicks on objects."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from ..answers import Points
from ..engine import Executor
from ..errors import ParameterError, UnknownIdError
from ..kernels.layout import Floats, Ints
from ..kernels.special import expit, gammaln
from ..result import Objects, PointsResult
from ..result.points import supporters
from .e_step import Local, Stats
from .em import CUT, Mixture, object_terms, worker_terms

GRID_VALUES = 256  # reliabilities at which their posterior is evaluated
TAIL = 0.025  # probability outside each end of an interval
DECOY = (1.5, 8.5)  # Beta of the share of workers who take something else for an object
DECOYS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)  # shares of them among all objects, with smaller ones more likely
MEANS = np.linspace(0.05, 0.98, 32)  # of the share of workers who click on a real object
STRENGTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # how alike real objects are in that
EAGER = 0.75  # quantile of hit rates that counts as having looked at everything
MIN_PROBABILITY = 0.01  # of a click and an object; pairs below are omitted


def summarise(
    points: Points, executor: Executor[Points], mixture: Mixture, stats: Stats, evidence: Floats,
    beta: tuple[float, float], once: bool,
) -> Objects:  # fmt: skip
    """What a result keeps, after an E-step with `best`. `evidence` (M,) are log-odds of objects against chance."""
    parts = list(executor.each(_of_clicks))
    alpha, best = (np.concatenate(each) for each in zip(*parts, strict=True))
    alpha = np.clip(alpha, 0.0, 1.0)
    image = np.repeat(np.arange(points.n_images), np.diff(mixture.ptr))
    object_, chance = best[:, 0].astype(np.int32), best[:, 1].copy()
    low, high = intervals(points, alpha, mixture.p, beta)
    return Objects(
        **{name: getattr(mixture, name) for name in ("ptr", "mean", "cov", "share", "noise")},
        clicks=stats.sums[:, 0].copy(),
        probability=expit(evidence) * real(points, image, *supporters(points, object_, chance)),
        reliability=mixture.p,
        low=np.minimum(low, mixture.p),
        high=np.maximum(high, mixture.p),
        outlier=1.0 - alpha,
        object=object_,
        chance=chance,
        once=np.array(int(once)),
    )


def _of_clicks(points: Points, local: Local) -> tuple[Floats, Floats]:
    return local.alpha[:, 0], local.best


def intervals(points: Points, alpha: Floats, p: Floats, beta: tuple[float, float]) -> tuple[Floats, Floats]:
    """(W,) 95 % intervals of the probability that a click is on an object, given the objects. A click that may be on an
    object or not says little; a count of expected clicks would hide that."""
    from ..kernels.fast.clicks import posterior

    order = np.argsort(points.worker, kind="stable")
    ptr = np.searchsorted(points.worker[order], np.arange(points.n_workers + 1))
    grid = (np.arange(GRID_VALUES) + 0.5) / GRID_VALUES
    prior = (beta[0] - 1) * np.log(grid) + (beta[1] - 1) * np.log1p(-grid)
    out = np.empty((points.n_workers, 2))
    posterior(alpha[order], ptr, p, grid, prior, TAIL, out)
    return out[:, 0], out[:, 1]


def real(points: Points, image_of: Ints, worker: Ints, object_: Ints) -> Floats:
    """(M,) probability that an object is real and no decoy. `worker` and `object_` are pairs, by number: who clicked on
    what. `image_of` (M,) are the images of objects.

    Real objects are clicked by shares of workers from one Beta distribution, decoys by shares from a low one. Which
    real ones, how alike and how many decoys is weighed over a grid by what all objects of all images say together. A
    worker who clicks on few objects of any kind counts as having looked at as few.
    """
    M = len(image_of)
    if not M:
        return np.empty(0)
    k = np.bincount(object_, minlength=M).astype(np.float64)
    looks = _looks(points, image_of, worker)
    shown = np.bincount(points.job_image, looks[points.job_worker], minlength=points.n_images)[image_of]
    pairs, which = np.unique(np.stack([k, np.maximum(shown, k).round(2)], axis=1), axis=0, return_inverse=True)
    count = np.bincount(which.ravel(), minlength=len(pairs))
    decoy = _chance(pairs, *DECOY)
    rows, scores = [], []
    for strength in STRENGTHS:
        genuine = np.stack([_chance(pairs, m * strength, (1 - m) * strength) for m in MEANS])
        for share in DECOYS:
            both = np.logaddexp(np.log1p(-share) + genuine, np.log(share) + decoy)
            scores.append(both @ count - np.log(share))
            rows.append(np.exp(np.log1p(-share) + genuine - both))
    score = np.stack(scores)
    weight = np.exp(score - score.max())
    mean = np.einsum("gm,gmk->k", weight, np.stack(rows)) / weight.sum()
    return np.asarray(mean[which.ravel()])


def _looks(points: Points, image_of: Ints, worker: Ints) -> Floats:
    """(W,) how much of an image a worker looks at: the share of objects clicked on, against that of eager workers."""
    there = np.bincount(image_of, minlength=points.n_images).astype(np.float64)
    shown = np.bincount(points.job_worker, there[points.job_image], minlength=points.n_workers)
    rate = (np.bincount(worker, minlength=points.n_workers) + 1.0) / (shown + 2.0)
    return np.asarray(np.minimum(rate / np.quantile(rate[points.job_worker], EAGER), 1.0))


def _chance(pairs: Floats, a: float, b: float) -> Floats:
    """(pairs,) log-chance of k clicks on an object that n workers looked at, as often as Beta(a, b) says."""
    k, n = pairs[:, 0], pairs[:, 1]
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    parts = gammaln(k + a) + gammaln(n - k + b) - gammaln(n + a + b)
    whole = gammaln(np.array([a, b, a + b]))
    return np.asarray(ways + parts - (whole[0] + whole[1] - whole[2]))


def soft_assignments(result: PointsResult, image: Any, *, least: float = MIN_PROBABILITY) -> pl.DataFrame:
    """How likely each click on an image is on each object: click (row of `result.clicks`, from 0), worker, object,
    probability. What is missing to 1 is the probability of none.

    >>> import crowdwise as cw
    >>> result = cw.aggregate(cw.simulate.clicks("E", seed=1).points)
    >>> cw.soft_assignments(result, "image").columns
    ['click', 'worker', 'object', 'probability']
    """
    if result.model.name != "click-mixture":
        raise ParameterError(f"{result.model.name} assigns clicks hard; fit 'click-mixture' for soft assignments")
    if image not in result.answers.images.to_list():
        raise UnknownIdError(f"no image {image!r} in these clicks")
    i = result.answers.images.to_list().index(image)
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
    """(clicks, objects) of one image."""
    from ..kernels.fast.clicks import _match

    p, points = result.params, result.answers
    at, own = points.clicks_of(i), slice(int(p.ptr[i]), int(p.ptr[i + 1]))
    X, worker = points.X[at], points.worker[at]
    M = own.stop - own.start
    mixture = Mixture(np.array([0, M]), p.mean[own], p.cov[own], p.share[own], p.reliability, p.noise)
    objects, workers = object_terms(mixture), worker_terms(mixture)
    precision = workers.precision[worker]
    away = np.einsum("mde,nme->nmd", objects.root, X[:, None] - p.mean[own][None])
    far = (away**2).sum(2) * precision[:, None]
    odds = workers.odds[worker] + 0.5 * points.n_axes * np.log(precision) + np.log(points.sides[i]).sum()
    psi = np.where(far <= CUT, np.exp(np.minimum(objects.weight[None] + odds[:, None] - 0.5 * far, 600.0)), 0.0)
    if not p.once:
        return np.asarray(psi / (1 + psi.sum(1, keepdims=True)))
    shares = np.zeros_like(psi)
    jobs = points.job_ptr[points.image_ptr[i] : points.image_ptr[i + 1] + 1] - at.start
    for a, b in pairwise(jobs):
        row, comp = np.nonzero(psi[a:b])
        ptr = np.searchsorted(row, np.arange(b - a + 1)).astype(np.int64)
        share = np.empty(len(row))
        _match(
            ptr, np.arange(b - a), b - a, comp.astype(np.int32), psi[a:b][row, comp], np.empty(len(row)),
            np.empty(len(row)), share, np.zeros(M),
        )  # fmt: skip
        shares[a + row, comp] = share
    return shares
