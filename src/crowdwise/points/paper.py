"""The algorithm of the clicks paper: EM with annihilation and forced removal; the best iteration is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..answers import Points
from ..engine import Executor, InMemory, Problem, Run, Step, Trace, iterate
from ..engine.loop import best_of
from ..engine.run import Arrays, packed, restored, sound
from ..kernels.clicks import seeds
from ..kernels.layout import Floats, Ints
from ..kernels.rules import Real
from .e_step import Local
from .em import MAXIMUM_LIKELIHOOD, GaussianEM, Mixture, assign, maximise, select_objects
from .model import concat, fit_images, object_ptr

if TYPE_CHECKING:
    from .mixture import ClickMixture

START_COMPONENTS = 40  # M0 in the paper
RESTARTS = 10  # starts for a given number of objects
P0 = 0.5  # initial reliability of every worker
CRITERION_TOL = {"bic": 1e-5, "icl": 1e-4}  # convergence tolerance: relative change of the criterion
START_VARIANCE = 1 / 75  # initial variance over the squared box side: about that of the paper's simulations
MAX_KMEANS_ITER = 50


def paper_fit(
    model: ClickMixture, points: Points, executor: Executor[Points], run: Run, trace: Trace
) -> tuple[Mixture, int | None, bool]:
    """Return the mixture, the iteration it was taken from, and whether the fit has converged.

    Several images are first fitted one by one, then jointly.
    """
    if points.n_images == 1:
        return _fit_image(model, points, executor, run, trace, 0)
    fit = _OneImage(model, points, run.inner())
    images = fit_images(model.name, points, run, fit, Mixture)
    D, W = points.n_axes, points.n_workers
    objects = concat(images, "mean", D), concat(images, "cov", D, D), concat(images, "share")
    start = Mixture(object_ptr(images), *objects, np.full(W, P0), np.ones(W))
    return _em(model, points, executor, run, trace, start)


@dataclass(frozen=True)
class _OneImage:
    """Fits an image by its number."""

    model: ClickMixture
    points: Points
    run: Run

    def __call__(self, i: int) -> Mixture:
        own = self.points.only(np.array([i]))
        mixture, *_ = _fit_image(self.model, own, InMemory([own]), self.run, Trace(objects=int), i)
        return mixture._replace(p=np.empty(0), noise=np.empty(0))


def centres(X: Floats, count: int, rng: np.random.Generator) -> Floats:
    """k-means centres of `count` groups of clicks, fewer if there are fewer distinct positions.

    scikit-learn's k-means is not used because the core does not depend on scikit-learn.
    """
    middle, before = seeds(X, rng.random(min(count, len(X)))), None
    for _ in range(MAX_KMEANS_ITER):
        near = np.concatenate([_nearest(X[a : a + 10_000], middle) for a in range(0, len(X), 10_000)])
        if before is not None and (near == before).all():
            break
        before = near
        size = np.bincount(near, minlength=len(middle)).astype(float)
        total = np.stack([np.bincount(near, X[:, d], minlength=len(middle)) for d in range(X.shape[1])], axis=1)
        middle = np.where(size[:, None] > 0, total / np.maximum(size, 1)[:, None], middle)
    return np.asarray(middle)


def _nearest(X: Floats, middle: Floats) -> Ints:
    return np.asarray(((X[:, None] - middle[None]) ** 2).sum(2).argmin(1))


def _start(model: ClickMixture, points: Points, run: Run, *number: int) -> Mixture:
    """Initial mixture with its components at k-means centres; `number` are those of the image and of the restart."""
    count = model.objects or model.start or max(START_COMPONENTS, 2 * model.at_least)
    rng = np.random.default_rng([run.seed, *number])
    mean = centres(points.X, count, rng) if points.n_clicks else np.empty((0, points.n_axes))
    spread = START_VARIANCE * points.sides[0] ** 2 if model.spread is None else np.asarray(model.spread, np.float64)
    M = len(mean)
    cov = np.repeat(np.diag(spread)[None], M, axis=0)
    W = points.n_workers
    return Mixture(np.array([0, M]), mean, cov, np.full(M, 1 / max(M, 1)), np.full(W, P0), np.ones(W))


def _fit_image(
    model: ClickMixture, points: Points, executor: Executor[Points], run: Run, trace: Trace, image: int
) -> tuple[Mixture, int | None, bool]:
    """Fit the only image of `points` by the search of Sec. 3.2, or by EM if the number of objects is given."""
    start = _start(model, points, run, image)
    if not start.n_objects:
        return _em(model, points, executor, run, trace, start)
    if model.objects is not None:
        return _best_em(model, points, executor, run, trace, image, start)
    search = Annihilation(model, executor, start, points.sides, run.threads)
    converged = iterate(search, run, trace)
    if not converged:
        search.improve()  # only after a removal is it known whether the search has passed the best mixture
    return search.best, search.best_at, converged or search.mixture.n_objects < search.best.n_objects


def _em(
    model: ClickMixture, points: Points, executor: Executor[Points], run: Run, trace: Trace, start: Mixture
) -> tuple[Mixture, int | None, bool]:
    """The EM of Sec. 3.1, with as many objects as at the start."""
    problem = GaussianEM(executor, start, points.sides, run.threads, model.max_iter)
    converged = iterate(problem, run, trace)
    return problem.mixture, len(trace.rows) or None, converged


def _best_em(
    model: ClickMixture, points: Points, executor: Executor[Points], run: Run, trace: Trace, image: int, start: Mixture
) -> tuple[Mixture, int | None, bool]:
    """EM from several k-means starts; return the fit with the highest likelihood."""

    def fit(number: int) -> tuple[Mixture, Floats, bool]:
        own = Trace(objects=int)
        begin = start if number == 0 else _start(model, points, run, image, number)
        mixture, _, converged = _em(model, points, executor, run, own, begin)
        return mixture, own.array(), converged

    mixture, rows, converged = best_of(
        RESTARTS if start.n_objects > 1 else 1, fit, lambda found: float(found[1][-1, 0]), run,
        pack=lambda found: packed(dict(zip(("mixture", "rows", "converged"), found, strict=True))),
        unpack=lambda kept: (
            restored(Mixture, kept, "mixture.", I=points.n_images, W=points.n_workers, D=points.n_axes),
            sound(kept, "rows", Real("iterations 2")),
            bool(kept["converged"]),
        ),
    )  # fmt: skip
    trace.set(rows)
    return mixture, len(rows) or None, converged


class Annihilation(Problem):
    """The search of Sec. 3.2: EM that removes objects with too few clicks.

    When the criterion has converged, the smallest object is removed, too. The best mixture of all iterations is kept.
    """

    name = "click-mixture"

    def __init__(
        self, model: ClickMixture, executor: Executor[Points], start: Mixture, sides: Floats, threads: int
    ) -> None:
        self.executor, self.mixture, self.sides, self.threads = executor, start, sides, threads
        self.criterion, self.max_iter = model.criterion, model.max_iter
        self.min_objects = max(1, model.at_least)
        D = sides.shape[1]
        self.n_free = D * (D + 3) / 2  # free parameters of an object
        self.best, self.best_score = start, -np.inf
        self.best_at: int | None = None  # iteration
        self.score, self.before, self.iterations = -np.inf, -np.inf, 0

    def step(self) -> Step:
        self.iterations += 1
        self.stats = assign(self.executor, self.mixture, False, self.threads, best=self.criterion == "icl")
        self.score = self._score()
        if self.score > self.best_score:
            self.best, self.best_score, self.best_at = self.mixture, self.score, self.iterations
        return Step(self.score, {"objects": self.mixture.n_objects})

    def _score(self) -> float:
        """Return the BIC, or the ICL of eq. (15): Q, the log-likelihood minus the entropy of the posterior.

        The paper minimises (15); here its sign is reversed, so that higher is better.
        """
        on, entropy = self.executor.total(_click_sums)
        penalty = 0.5 * self.n_free * self.mixture.n_objects * np.log(max(on, 1.0))
        return float(self.stats.fit - entropy - penalty)

    def _criterion_converged(self) -> bool:
        return bool(abs(self.score - self.before) < CRITERION_TOL[self.criterion] * abs(self.score))

    def converged(self, objectives: Sequence[float]) -> bool:
        return self._criterion_converged() and self.mixture.n_objects <= self.min_objects

    def improve(self) -> None:
        if self._criterion_converged():
            self._remove(int(self.mixture.share.argmin()))
            self.before = -np.inf
            return
        self.before = self.score
        n, penalty = self.stats.sums[:, 0], 0.5 * self.n_free
        if (n <= penalty).sum() > 1 and len(n) > self.min_objects:  # one at a time: the others may gain its clicks
            self._remove(int(n.argmin()))
            return
        poor = (n <= penalty).any() and len(n) <= self.min_objects  # no more removals: drop the penalty
        penalty = 0.0 if poor else penalty
        self.mixture = maximise(self.stats, self.mixture, MAXIMUM_LIKELIHOOD, self.sides, penalty=penalty)
        alive = np.flatnonzero(self.mixture.share > 0)
        if 0 < len(alive) < len(n):
            self.mixture = select_objects(self.mixture, alive)

    def _remove(self, weakest: int) -> None:
        self.mixture = select_objects(self.mixture, np.delete(np.arange(self.mixture.n_objects), weakest))

    def state(self) -> Arrays:
        names = ("mixture", "best", "best_score", "best_at", "before", "iterations")
        return packed({name: getattr(self, name) for name in names})

    def restore(self, state: Arrays) -> None:
        sizes = {"I": len(self.mixture.ptr) - 1, "W": len(self.mixture.p), "D": self.sides.shape[1]}
        self.mixture, self.best = (restored(Mixture, state, name, **sizes) for name in ("mixture.", "best."))
        self.best_score, self.before = float(state["best_score"]), float(state["before"])
        self.iterations = int(state["iterations"])
        self.best_at = int(state["best_at"]) if "best_at" in state else None


def _click_sums(points: Points, local: Local) -> tuple[float, float]:
    """Expected clicks on objects, and the entropy of their assignment if it was computed."""
    return float(local.alpha[:, 0].sum()), float(local.best[:, 2].sum())
