"""Fit one image: start from many components and merge or remove them while the evidence increases.

The derivation is in docs/maths/click_mixture.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from ..answers import Points
from ..engine import Run
from ..kernels.clicks import seeds
from ..kernels.layout import Floats
from ..kernels.rules import Real
from .em import MIN_SD

if TYPE_CHECKING:
    from .mixture import ClickMixture

FIRST_COMPONENTS = 20  # components of the first trial; each further trial doubles them
PEAK_RADIUS = 2.5  # radius in standard deviations in which clicks are counted, and the distance of peaks
MIN_PEAK_DENSITY = 1.5  # clicks within that radius, weighted by their distance, that a peak needs
A0 = 1.0  # parameter of the Dirichlet prior of shares
MIN_CLICKS = 1.0  # expected clicks that an object needs
MAX_DROP_NATS = 25.0  # merging ends when the evidence is this far below its best value
MAX_DROP_NATS_MANY = 10.0  # the same, with more than MAX_ONE_BY_ONE components
MAX_ONE_BY_ONE = 32  # up to this many components, changes are made one by one and each level is fitted to convergence
MAX_ITER_MANY, MAX_ITER = 6, 150  # iterations per level with more than MAX_ONE_BY_ONE components, and with fewer


class ImageFit(NamedTuple):
    """Normal-Wishart posteriors of the objects of one image, with its own shared covariance and workers."""

    mean: Annotated[Floats, Real("M D")]
    V: Annotated[Floats, Real("M D D")]
    n: Annotated[Floats, Real("M", 0)]
    score: Annotated[float, Real("")]  # evidence without the prior of S
    S: Annotated[Floats, Real("D D")]  # covariance shared by the objects, estimated
    S0: Annotated[Floats, Real("D D")]  # its initial value
    A: Annotated[Floats, Real("workers", 0)]  # Beta parameters of the reliabilities
    B: Annotated[Floats, Real("workers", 0)]
    trace: Annotated[Floats, Real("iterations 2")]  # evidence and number of components

    @property
    def n_objects(self) -> int:
        return len(self.mean)


def centre_weight(S: Floats, sides: Floats) -> Floats:
    """(I,) prior weight, in clicks, of the box's centre as an object's mean; small, so that objects may be anywhere."""
    D = len(S)
    return np.asarray((np.linalg.det(S) / np.prod(sides**2 / 12, axis=1)) ** (1 / D))


def first_shape(X: Floats, sides: Floats, start: int) -> Floats:
    """(D, D) initial shared covariance: that of `start` equal objects that together cover the clicks."""
    D = X.shape[1]
    return np.asarray(np.diag(np.maximum(X.var(0) / start ** (2 / D), (MIN_SD * sides) ** 2)))


def start_components(model: ClickMixture, clicks: int, ratio: float) -> int:
    """Number of components at the start of an image with `clicks` clicks, if they do not start at peaks."""
    least = model.objects if model.objects is not None else model.at_least
    if model.start is not None:
        return max(1, min(model.start, clicks))
    return max(1, min(clicks, max(2 * least, min(FIRST_COMPONENTS, clicks // 2), round(clicks * ratio))))


class ImageFitter:
    """Fits one image, from many components down to the number with the highest evidence, or to a given number.

    Components start at the peaks of the density of clicks, on the scale of the covariance `S`. If it is None, they
    start at `count` clicks far from each other, and S is estimated. With `learn`, a given S is estimated again.
    """

    def __init__(
        self, model: ClickMixture, points: Points, image: int, once: bool, run: Run, *, S: Floats | None = None,
        learn: bool = False, count: int = 1,
    ) -> None:  # fmt: skip
        at, self.kernels = points.clicks_of(image), points.kernels
        self.X, self.once = np.ascontiguousarray(points.X[at]), once
        jobs = points.job_ptr[points.image_ptr[image] : points.image_ptr[image + 1] + 1]
        self.job_ptr = (jobs - jobs[0]).astype(np.int64)
        workers, worker = np.unique(points.worker[at], return_inverse=True)
        self.worker, self.sent = worker.astype(np.int32), np.bincount(worker).astype(np.float64)
        for array in (self.X, self.worker, self.job_ptr):  # read-only as in Points, so that kernels compile only once
            array.flags.writeable = False
        sides = points.sides[image]
        self.log_box, self.m0 = -float(np.log(sides).sum()), points.box[image].mean(0)
        self.learn, self.S0 = learn or S is None, first_shape(self.X, sides, count) if S is None else S
        self.min_variance = (MIN_SD * sides) ** 2
        self.nu, self.b0 = float(model.freedom), float(centre_weight(self.S0, sides[None])[0])
        self.hits, self.misses = np.full(len(workers), float(model.hits)), np.full(len(workers), float(model.misses))
        self.given = model.objects is not None
        self.min_objects = model.objects if model.objects is not None else max(1, model.at_least)
        chosen = self._seeds(model, S, count, np.random.default_rng([run.seed, image]))
        count = len(chosen)
        n = np.full(count, len(self.X) / count)
        V = (self.nu + n)[:, None, None] * self.S0
        A, B = self.hits + 0.8 * self.sent, self.misses + 0.2 * self.sent
        self.parts: tuple[Floats, ...] = (chosen, V, n, n.copy(), self.S0.copy(), A, B)
        self.alpha, self.held = np.empty((len(self.X), 2)), np.empty((2 * len(self.X), 3))
        self.trace: list[Floats] = []

    def _seeds(self, model: ClickMixture, S: Floats | None, count: int, rng: np.random.Generator) -> Floats:
        """(M, D) means of the components at the start."""
        if S is not None and model.start is None:
            root = np.linalg.inv(np.linalg.cholesky(S))
            found = np.asarray(self.X[self.kernels.peaks(self.X, root, PEAK_RADIUS, MIN_PEAK_DENSITY)])
            if len(found) >= max(1, 2 * (model.objects or model.at_least)):
                return found
            count = start_components(model, len(self.X), 0.0)
        return seeds(self.X, rng.random(count))

    def fit(self) -> ImageFit:
        """Return the level with the highest evidence, fitted to convergence."""
        best, kept = -np.inf, None
        while True:
            M = len(self.parts[0])
            few = M <= MAX_ONE_BY_ONE
            now, sums, more = self.level(MAX_ITER if few else MAX_ITER_MANY)
            deepest = MAX_DROP_NATS if few else MAX_DROP_NATS_MANY
            poor = bool((sums[:, 0] < MIN_CLICKS).any()) and self.min_objects < M
            if not poor and now > best and (self.min_objects >= M or not self.given):
                best, kept = now, tuple(array.copy() for array in self.parts)
            if self.min_objects >= M or (not poor and not self.given and now < best - deepest):
                break
            if not self.reduce(sums, poor, *more):
                break
        self.parts = self.parts if kept is None else kept
        self.level(MAX_ITER)
        mean, V, n, _, S, A, B = self.parts
        trace = np.concatenate(self.trace)
        score = float(trace[-1, 0] - trace[-1, 1])
        return ImageFit(mean, V, n, score, S, self.S0, A, B, trace[:, [0, 2]])

    def level(self, max_iter: int) -> tuple[float, Floats, tuple[Any, ...]]:
        """Iterate with the present components; return the evidence, the sums and what `reduce` needs."""
        trace = np.empty((max_iter, 3))
        mean, V, n, b, S, A, B = self.parts
        rows, used, sums, off, reach, _ = self.kernels.fit_components(
            self.X, self.worker, self.job_ptr, self.log_box, self.once, mean, V, n, b, S, self.S0, self.min_variance,
            self.learn, self.nu, self.b0, A0, self.m0, A, B, self.hits, self.misses, self.sent, max_iter,
            self.alpha, self.held, trace,
        )  # fmt: skip
        trace[:, 2] = len(mean)
        self.trace.append(trace[:rows])
        return float(trace[rows - 1, 0]), sums, (used, off, reach)

    def reduce(self, sums: Floats, poor: bool, used: int, off: Floats, reach: Floats) -> bool:
        """Reduce the number of components; return whether that was possible.

        With `poor`, remove the components with less than MIN_CLICKS clicks. Otherwise take the merge or removal that
        costs the least evidence or, with many components, a batch of the cheapest ones.
        """
        mean, V, n, b, *shared = self.parts
        M = len(mean)
        dead = np.zeros(M, np.bool_)
        if poor:
            weak = np.flatnonzero(sums[:, 0] < MIN_CLICKS)
            dead[weak[np.argsort(sums[weak, 0], kind="stable")][: M - self.min_objects]] = True
        else:
            cost, mate = self.kernels.prices(
                mean, V, sums[:, 0], sums[:, 2], reach, self.held, used, self.once, self.nu
            )
            most, few = (1, 1) if M <= MAX_ONE_BY_ONE else (M // 4, M // 32)
            order = np.argsort(cost, kind="stable")
            merged = self.kernels.apply_merges(
                order, cost, mate, mean, V, n, b, off, self.nu, most, few, self.min_objects, dead
            )
            if not merged:
                return False
        alive = ~dead
        self.parts = (mean[alive], V[alive], n[alive], b[alive], *shared)
        return bool(alive.any())
