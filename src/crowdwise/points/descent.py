"""One image by itself: from many components down to the number that the evidence favours.

docs/maths/click_mixture.md has the mathematics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..answers import Points
from ..engine import Run
from ..kernels.layout import Floats
from .em import MIN_SD

if TYPE_CHECKING:
    from .mixture import ClickMixture

A0 = 1.0  # of the Dirichlet of shares
MIN_CLICKS = 1.0  # that an object needs
MAX_DROP = 25.0  # nats below the best at which merging ends
MAX_ONE_BY_ONE = 64  # components up to which every level is fitted to the end, and changes are made one by one
MAX_ITER_MANY, MAX_ITER = 6, 150  # iterations per level, above and below that


class ImageFit(NamedTuple):
    """Objects of one image as Normal-Wisharts, with its own shape and workers."""

    mean: Floats  # (M, D)
    V: Floats  # (M, D, D)
    n: Floats  # (M,)
    score: float  # evidence without the prior of the shape
    S: Floats  # (D, D) the shape, learnt
    S0: Floats  # and as first guessed
    A: Floats  # (workers of the image,)
    B: Floats
    start: int  # components at the start
    trace: Floats  # (iterations, 2) evidence and components

    @property
    def n_objects(self) -> int:
        return len(self.mean)


def at_middle(S: Floats, sides: Floats) -> Floats:
    """(I,) clicks that the middle of the box counts for: so few that an object may be anywhere in it."""
    D = len(S)
    return np.asarray((np.linalg.det(S) / np.prod(sides**2 / 12, axis=1)) ** (1 / D))


def first_shape(X: Floats, sides: Floats, start: int) -> Floats:
    """The shape of objects if `start` of them filled the clicks' extent."""
    D = X.shape[1]
    return np.asarray(np.diag(np.maximum(X.var(0) / start ** (2 / D), (MIN_SD * sides) ** 2)))


class Descent:
    """One image with clicks, from many components down to the number that the evidence favours, or that is given. The
    shape is learnt unless it is given."""

    def __init__(
        self, model: ClickMixture, points: Points, image: int, once: bool, start: int, S: Floats | None, run: Run
    ) -> None:
        from ..kernels.fast.merging import seeds

        at = points.clicks_of(image)
        self.X, self.once, self.start = np.ascontiguousarray(points.X[at]), once, start
        jobs = points.job_ptr[points.image_ptr[image] : points.image_ptr[image + 1] + 1]
        self.job_ptr = (jobs - jobs[0]).astype(np.int64)
        who, worker = np.unique(points.worker[at], return_inverse=True)
        self.worker, self.sent = worker.astype(np.int32), np.bincount(worker).astype(np.float64)
        sides = points.sides[image]
        self.log_box, self.m0 = -float(np.log(sides).sum()), points.box[image].mean(0)
        self.learn, self.S0 = S is None, first_shape(self.X, sides, start) if S is None else S
        self.thin = (MIN_SD * sides) ** 2
        self.nu, self.b0 = float(model.freedom), float(at_middle(self.S0, sides[None])[0])
        self.hits, self.misses = np.full(len(who), float(model.hits)), np.full(len(who), float(model.misses))
        self.given = model.objects is not None
        self.least = model.objects if model.objects is not None else max(1, model.at_least)
        chosen, count = seeds(self.X, np.random.default_rng([run.seed, image]).random(start))
        n = np.full(count, len(self.X) / count)
        V = (self.nu + n)[:, None, None] * self.S0
        A, B = self.hits + 0.8 * self.sent, self.misses + 0.2 * self.sent
        self.parts = (chosen[:count].copy(), V, n, n.copy(), self.S0.copy(), A, B)
        for array in (self.X, self.worker, self.job_ptr):  # as those of Points are, so that kernels are compiled once
            array.flags.writeable = False
        self.alpha, self.held = np.empty((len(self.X), 2)), np.empty((2 * len(self.X), 3))
        self.trace: list[Floats] = []

    def fit(self) -> ImageFit:
        """The best of all levels, fitted to the end."""
        best, kept = -np.inf, None
        while True:
            M = len(self.parts[0])
            now, sums, more = self.level(MAX_ITER if M <= MAX_ONE_BY_ONE else MAX_ITER_MANY)
            poor = bool((sums[:, 0] < MIN_CLICKS).any()) and self.least < M
            if not poor and now > best and (self.least >= M or not self.given):
                best, kept = now, tuple(array.copy() for array in self.parts)
            if self.least >= M or (not poor and not self.given and now < best - MAX_DROP):
                break
            if not self.down(sums, poor, *more):
                break
        self.parts = self.parts if kept is None else kept  # type: ignore[assignment]
        self.level(MAX_ITER)
        mean, V, n, _, S, A, B = self.parts
        trace = np.concatenate(self.trace)
        score = float(trace[-1, 0] - trace[-1, 1])
        return ImageFit(mean, V, n, score, S, self.S0, A, B, self.start, trace[:, [0, 2]])

    def level(self, max_iter: int) -> tuple[float, Floats, tuple[Any, ...]]:
        """Iterations with the components as they are."""
        from ..kernels.fast.merging import fit_components

        trace = np.empty((max_iter, 3))
        mean, V, n, b, S, A, B = self.parts
        rows, used, sums, off, reach, _ = fit_components(
            self.X, self.worker, self.job_ptr, self.log_box, self.once, mean, V, n, b, S, self.S0, self.thin,
            self.learn, self.nu, self.b0, A0, self.m0, A, B, self.hits, self.misses, self.sent, max_iter,
            self.alpha, self.held, trace,
        )  # fmt: skip
        trace[:, 2] = len(mean)
        self.trace.append(trace[:rows])
        return float(trace[rows - 1, 0]), sums, (used, off, reach)

    def down(self, sums: Floats, poor: bool, used: int, off: Floats, reach: Floats) -> bool:
        """Fewer components: those that hold less than a click go; else the cheapest merge or removal, and where
        components are many all that cost less than they save. Whether there was anything to do."""
        from ..kernels.fast.merging import apply_merges, prices

        mean, V, n, b, *shared = self.parts
        M = len(mean)
        dead = np.zeros(M, np.bool_)
        if poor:
            weak = np.flatnonzero(sums[:, 0] < MIN_CLICKS)
            dead[weak[np.argsort(sums[weak, 0], kind="stable")][: M - self.least]] = True
        else:
            cost, mate = prices(mean, V, sums[:, 0], sums[:, 2], reach, self.held, used, self.once, self.nu)
            most = 1 if M <= MAX_ONE_BY_ONE else max(1, M // 8)
            order = np.argsort(cost, kind="stable")
            if not apply_merges(order, cost, mate, mean, V, n, b, off, self.nu, most, self.least, dead):
                return False
        alive = ~dead
        self.parts = (mean[alive], V[alive], n[alive], b[alive], *shared)
        return bool(alive.any())
