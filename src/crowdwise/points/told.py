"""From a fitted mixture to what a result says of objects, workers and clicks."""

from __future__ import annotations

import numpy as np

from ..kernels.layout import Floats
from ..kernels.special import expit
from ..result import Objects
from ..result.points import supporters
from .em import Mixture
from .existence import real
from .sweeps import Sweeper, Swept

GRID = 256  # values of a reliability that are weighed
TAIL = 0.025


def told(
    sweeper: Sweeper, mixture: Mixture, swept: Swept, evidence: Floats, beta: tuple[float, float], once: bool
) -> Objects:
    """What a result keeps. `evidence` (M,) are log-odds of objects against chance."""
    points, alpha = sweeper.points, np.clip(swept.alpha[:, 0], 0.0, 1.0)
    image = np.repeat(np.arange(points.n_images), np.diff(mixture.ptr))
    object_, chance = swept.best[:, 0].astype(np.int32), swept.best[:, 1].copy()
    low, high = intervals(sweeper, alpha, mixture.p, beta)
    return Objects(
        ptr=mixture.ptr,
        mean=mixture.mean,
        cov=mixture.cov,
        share=mixture.share,
        clicks=swept.sums[:, 0].copy(),
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


def intervals(sweeper: Sweeper, alpha: Floats, p: Floats, beta: tuple[float, float]) -> tuple[Floats, Floats]:
    """(W,) 95 % intervals of the chance that a click is on an object, the objects taken as known: a click that may be
    either way says little, which counting chances would hide."""
    from ..kernels.fast.reliabilities import posterior

    order = np.argsort(sweeper.points.worker, kind="stable")
    ptr = np.searchsorted(sweeper.points.worker[order], np.arange(sweeper.points.n_workers + 1))
    grid = (np.arange(GRID) + 0.5) / GRID
    prior = (beta[0] - 1) * np.log(grid) + (beta[1] - 1) * np.log1p(-grid)
    out = np.empty((sweeper.points.n_workers, 2))
    posterior(alpha[order], ptr, p, grid, prior, TAIL, out)
    return out[:, 0], out[:, 1]
