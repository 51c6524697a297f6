"""The clicks paper's own algorithm: EM with annihilation, forced removal, and the best of all iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..engine import Run
from ..kernels.layout import Floats
from .em import Mixture, Priors, keep, maximise, sweep
from .sweeps import Sweeper, Swept
from .trace import Trace

if TYPE_CHECKING:
    from .mixture import ClickMixture

START = 40  # components, the paper's M0
FEWEST = 6  # components below which it stops, as in its simulations
P0 = 0.5
TOL = {"bic": 1e-5, "icl": 1e-4}  # relative change that counts as rest
PART = 1 / 75  # start variances, in squares of the box's sides: about those of the paper's simulations
LLOYD = 50  # rounds of k-means at most


def papers(model: ClickMixture, sweeper: Sweeper, run: Run, trace: Trace) -> tuple[Mixture, int | None, bool]:
    """The mixture, the sweep that was best, and whether it came to rest."""
    points = sweeper.points
    if points.n_images == 1:
        return _one(model, sweeper, run, trace, 0)
    alone = []
    for i in range(points.n_images):
        own = Sweeper(points.only(np.array([i])), 1)
        quiet = Trace(trace.name)
        alone.append(_one(model, own, run, quiet, i)[0])
        trace.ask(run)
    ptr = np.concatenate([[0], np.cumsum([len(each.mean) for each in alone])]).astype(np.int64)
    mixture = Mixture(
        ptr,
        np.concatenate([each.mean for each in alone]),
        np.concatenate([each.cov for each in alone]),
        np.concatenate([each.share for each in alone]),
        np.full(points.n_workers, P0),
        np.ones(points.n_workers),
    )
    return _climbed(model, sweeper, run, trace, mixture)


def centres(X: Floats, count: int, rng: np.random.Generator) -> Floats:
    """k-means: centres of `count` groups of clicks, fewer where clicks share a spot.

    scikit-learn has it, but it is no part of the core, and this start need not be the best.
    """
    from ..kernels.fast.merging import seeds

    middle, found = seeds(np.ascontiguousarray(X), rng.random(min(count, len(X))))
    middle = middle[:found]
    before = None
    for _ in range(LLOYD):
        near = np.concatenate([_nearest(X[a : a + 10_000], middle) for a in range(0, len(X), 10_000)])
        if before is not None and (near == before).all():
            break
        before = near
        size = np.bincount(near, minlength=len(middle)).astype(float)
        total = np.stack([np.bincount(near, X[:, d], minlength=len(middle)) for d in range(X.shape[1])], axis=1)
        middle = np.where(size[:, None] > 0, total / np.maximum(size, 1)[:, None], middle)
    return np.asarray(middle)


def _nearest(X: Floats, middle: Floats) -> Floats:
    return np.asarray(((X[:, None] - middle[None]) ** 2).sum(2).argmin(1))


def _start(model: ClickMixture, sweeper: Sweeper, run: Run, image: int) -> Mixture:
    points = sweeper.points
    count = model.objects or model.start or max(START, 2 * model.at_least)
    rng = np.random.default_rng([run.seed, image])
    mean = centres(points.X, count, rng) if points.n_clicks else np.empty((0, points.n_axes))
    spread = PART * points.sides[0] ** 2 if model.spread is None else np.asarray(model.spread, np.float64)
    M = len(mean)
    cov = np.repeat(np.diag(spread)[None], M, axis=0)
    W = points.n_workers
    return Mixture(np.array([0, M]), mean, cov, np.full(M, 1 / max(M, 1)), np.full(W, P0), np.ones(W))


def _one(model: ClickMixture, sweeper: Sweeper, run: Run, trace: Trace, image: int) -> tuple[Mixture, int | None, bool]:
    """One image by Sec. 3.2, or by Sec. 3.1 where the number of objects is given."""
    mixture = _start(model, sweeper, run, image)
    if model.objects is not None or not len(mixture.mean):
        return _climbed(model, sweeper, run, trace, mixture)
    D = sweeper.points.n_axes
    L = D * (D + 3) / 2
    fewest = model.at_least or min(FEWEST, len(mixture.mean))
    best, kept, before, rested = -np.inf, mixture, -np.inf, False
    at: int | None = None
    for _ in range(model.max_iter):
        trace.ask(run)
        swept, stats = sweep(sweeper, mixture, once=False, best=model.criterion == "icl")
        score = _criterion(model, stats.fit, swept, mixture, L)
        trace.add(score, len(mixture.mean), run, model.max_iter)
        if score > best:
            best, kept, at = score, mixture, len(trace.rows)
        if abs(score - before) < TOL[model.criterion] * abs(score):
            if len(mixture.mean) <= fewest:
                rested = True
                break
            mixture, before = keep(mixture, np.delete(np.arange(len(mixture.mean)), mixture.share.argmin())), -np.inf
            continue
        before = score
        toll = 0.5 * L
        n = swept.sums[:, 0]
        if (n <= toll).sum() > 1 and len(n) > fewest:  # one at a time: the others may live on what it leaves
            weakest = int(n.argmin())
            mixture = keep(mixture, np.delete(np.arange(len(n)), weakest))
            continue
        poor = (n <= toll).any() and len(n) <= fewest  # then all stay, and pay nothing
        mixture = maximise(stats, mixture, Priors(), sweeper.points.sides, toll=0.0 if poor else toll)
        alive = np.flatnonzero(mixture.share > 0)
        if 0 < len(alive) < len(n):
            mixture = keep(mixture, alive)
    return kept, at, rested or len(mixture.mean) < len(kept.mean)  # the search went past the best


def _criterion(model: ClickMixture, fit: float, swept: Swept, mixture: Mixture, L: float) -> float:
    """BIC by the log-likelihood, or eq. (15) to the letter: Q, the log-likelihood less the posterior's entropy.

    As printed, (15) is to be minimised; here it is turned, so that more is better.
    """
    on = max(float(swept.alpha[:, 0].sum()), 1.0)
    penalty = 0.5 * L * len(mixture.mean) * np.log(on)
    if model.criterion == "icl":
        fit -= float(swept.best[:, 2].sum())
    return float(fit - penalty)


def _climbed(
    model: ClickMixture, sweeper: Sweeper, run: Run, trace: Trace, mixture: Mixture
) -> tuple[Mixture, int | None, bool]:
    """EM with the number of objects as it is: the log-likelihood never falls."""
    before, rested = -np.inf, False
    for turn in range(model.max_iter):
        trace.ask(run)
        _, stats = sweep(sweeper, mixture, once=False)
        fit = stats.fit
        trace.add(fit, len(mixture.mean), run, model.max_iter)
        rested = abs(fit - before) < TOL["bic"] * 1e-2 * abs(fit) or not len(mixture.mean)
        if rested or turn + 1 == model.max_iter:
            break
        before = fit
        mixture = maximise(stats, mixture, Priors(), sweeper.points.sides)
    return mixture, len(trace.rows) or None, rested
