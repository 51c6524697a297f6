"""From a fitted mixture to what a result holds of objects, workers and clicks."""

from __future__ import annotations

import numpy as np

from ..answers import Points
from ..engine import Executor
from ..kernels.layout import Floats
from ..kernels.special import expit
from ..result import Objects
from ..result.points import supporters
from .e_step import Local, Stats
from .em import Mixture
from .existence import real

GRID_VALUES = 256  # reliabilities at which their posterior is evaluated
TAIL = 0.025  # probability outside each end of an interval


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
        ptr=mixture.ptr,
        mean=mixture.mean,
        cov=mixture.cov,
        share=mixture.share,
        clicks=stats.sums[:, 0].copy(),
        probability=expit(evidence) * real(points, image, *supporters(points, object_, chance)),
        reliability=mixture.p,
        low=np.minimum(low, mixture.p),
        high=np.maximum(high, mixture.p),
        noise=mixture.noise,
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
    from ..kernels.fast.reliabilities import posterior

    order = np.argsort(points.worker, kind="stable")
    ptr = np.searchsorted(points.worker[order], np.arange(points.n_workers + 1))
    grid = (np.arange(GRID_VALUES) + 0.5) / GRID_VALUES
    prior = (beta[0] - 1) * np.log(grid) + (beta[1] - 1) * np.log1p(-grid)
    out = np.empty((points.n_workers, 2))
    posterior(alpha[order], ptr, p, grid, prior, TAIL, out)
    return out[:, 0], out[:, 1]
