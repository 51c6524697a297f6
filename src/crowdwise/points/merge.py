"""Variational Bayes for the objects of all images, with shared workers and a shared covariance.

The derivation is in docs/maths/click_mixture.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from ..answers import Points
from ..engine import Executor, Problem, Run, Step, Trace, iterate
from ..engine.run import Arrays, packed, restored, sound
from ..kernels.clicks import JOINT_CUT, KAPPA, evidence, precisions, shape_prior, thicken
from ..kernels.layout import Floats, Ints
from ..kernels.rules import Real, Whole
from .e_step import Local, ObjectTerms, WorkerTerms, clicks_per_worker, e_step
from .em import (
    MIN_SD,
    Boxes,
    Elsewhere,
    GaussianEM,
    Mixture,
    Priors,
    change_below,
    noise_prior,
    nowhere,
    worker_noise,
)  # fmt: skip
from .image_fit import A0, MIN_CLICKS, ImageFit, ImageFitter, centre_weight
from .model import concat, fit_images, object_ptr
from .starts import Start, choose_start

if TYPE_CHECKING:
    from .mixture import ClickMixture

# Candidate shares of clicks on objects, used to test whether an image has any object.
OBJECT_SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99)
JOINT_TOL = 5e-6  # relative change of the evidence at which the joint fit of all images has converged
MAX_REFINE_ITER = 100  # iterations of the final EM
REFINE_TOL = 1e-6  # relative increase of its objective at convergence


class Shapes(NamedTuple):
    """Prior of the objects' means and covariances."""

    nu: Annotated[float, Real("")]  # weight of S, in clicks
    S: Annotated[Floats, Real("D D")]  # covariance shared by all objects, estimated
    S0: Annotated[Floats, Real("D D")]  # its prior
    kappa: Annotated[float, Real("")]  # weight of S0, in objects
    b0: Annotated[Floats, Real("I", 0)]  # weight of m0, in clicks
    m0: Annotated[Floats, Real("I D")]  # centre of the box


class Posterior(NamedTuple):
    """Normal-Wishart posteriors of the objects of all images, and Beta posteriors of the workers."""

    ptr: Annotated[Ints, Whole("I+1", ends="M", dtype="int64")]
    mean: Annotated[Floats, Real("M D")]
    V: Annotated[Floats, Real("M D D")]
    n: Annotated[Floats, Real("M", 0)]
    b: Annotated[Floats, Real("M", 0)]
    A: Annotated[Floats, Real("W", 0)]
    B: Annotated[Floats, Real("W", 0)]
    noise: Annotated[Floats, Real("W", 0)]


class MergeFit(NamedTuple):
    """Result of merging."""

    posterior: Posterior
    shapes: Shapes
    evidence: Floats  # (M,) log-odds that an object is real
    once: bool
    converged: bool


def merge_fit(model: ClickMixture, points: Points, executor: Executor[Points], run: Run, trace: Trace) -> MergeFit:
    """Find the objects of all images, or take them from the journal of an interrupted run."""
    saved = run.journal.saved("merge")
    if saved is None:
        fit = _fit(model, points, executor, run, trace)
    else:
        trace.set(sound(saved, "trace", Real("iterations 2")))
        sizes = {"I": points.n_images, "W": points.n_workers, "D": points.n_axes}
        posterior, shapes = (
            restored(kind, saved, name, **sizes) for kind, name in ((Posterior, "posterior."), (Shapes, "shapes."))
        )
        evidence = sound(saved, "evidence", Real("M"), M=len(posterior.mean))
        fit = MergeFit(posterior, shapes, evidence, bool(saved["once"]), bool(saved["converged"]))
    for stage in ("start", "images"):
        run.journal.forget(stage)
    run.journal.keep("merge", lambda: packed(fit._asdict() | {"trace": trace.array()}))
    return fit


def _fit(model: ClickMixture, points: Points, executor: Executor[Points], run: Run, trace: Trace) -> MergeFit:
    """Fit every image separately, then all images jointly."""
    if not points.n_clicks:
        return no_objects(model, points)
    return fit_jointly(model, points, executor, run, trace, *_fit_images(model, points, run))


def no_objects(model: ClickMixture, points: Points) -> MergeFit:
    """Return the fit of images without clicks."""
    one = np.eye(points.n_axes)
    shapes = Shapes(model.freedom, one, one, 1.0, np.ones(points.n_images), points.box.mean(1))
    posterior = _start_posterior(model, points, [None] * points.n_images, nowhere(points.n_workers))
    return MergeFit(posterior, shapes, np.empty(0), True, True)


def fit_jointly(
    model: ClickMixture, points: Points, executor: Executor[Points], run: Run, trace: Trace, start: Start,
    images: Sequence[ImageFit | None], elsewhere: Elsewhere | None = None, shape: tuple[Floats, float] | None = None,
) -> MergeFit:  # fmt: skip
    """Fit all images jointly, from separate fits of all images.

    `elsewhere` are the workers' clicks on images that are not part of this fit, and `shape` is the covariance of the
    objects in those images with its weight in objects.
    """
    single = images[0] if points.n_images == 1 and shape is None else None
    S, S0 = (start.shape, start.shape) if single is None else (single.S, single.S0)
    S0, kappa = shape or (S0, KAPPA)
    shapes = Shapes(model.freedom, S, S0, kappa, centre_weight(S0, points.sides), points.box.mean(1))
    elsewhere = elsewhere or nowhere(points.n_workers)
    posterior = _start_posterior(model, points, images, elsewhere)
    if single is not None and len(single.trace):  # continue where the fit of the only image ended
        trace.set(single.trace)
        workers = np.unique(points.worker)
        posterior.A[workers], posterior.B[workers] = single.A, single.B
    problem = VariationalFit(model, points, executor, run, posterior, shapes, start.once, elsewhere)
    return _fit_all(model, problem, run, trace)


def _fit_images(model: ClickMixture, points: Points, run: Run) -> tuple[Start, list[ImageFit | None]]:
    """Fit every image separately, in threads; None for an image without clicks."""
    saved, done = run.journal.saved("start"), None
    if saved is None:
        start, done = choose_start(model, points, run)
    else:
        start = restored(Start, saved, D=points.n_axes)
    run.journal.keep("start", lambda: packed(start._asdict()))
    fit = _OneImage(model, points, start, run.inner())
    return start, fit_images(model.name, points, run, fit, ImageFit, threads=run.threads, done=done)


@dataclass(frozen=True)
class _OneImage:
    """Fits an image by its number."""

    model: ClickMixture
    points: Points
    start: Start
    run: Run

    def __call__(self, i: int) -> ImageFit:
        return ImageFitter(self.model, self.points, i, self.start.once, self.run, S=self.start.shape).fit()


def _start_posterior(
    model: ClickMixture, points: Points, images: Sequence[ImageFit | None], elsewhere: Elsewhere
) -> Posterior:
    """Concatenate the objects of all images; a worker starts with the reliability and the noise of their other clicks,
    or with 80 % of their clicks on objects if there are none."""
    D, sent, n = points.n_axes, clicks_per_worker(points), concat(images, "n")
    objects = concat(images, "mean", D), concat(images, "V", D, D), n, n.copy()
    rate = np.full(points.n_workers, 0.8)
    np.divide(elsewhere.on, elsewhere.sent, out=rate, where=elsewhere.sent > 0)
    A = model.hits + elsewhere.on + rate * sent
    B = model.misses + elsewhere.sent - elsewhere.on + (1 - rate) * sent
    noise = worker_noise(elsewhere.on, elsewhere.far, D) if model.noise else np.ones(points.n_workers)
    return Posterior(object_ptr(images), *objects, A, B, noise)


def _fit_all(model: ClickMixture, problem: VariationalFit, run: Run, trace: Trace) -> MergeFit:
    """Fit all images jointly, remove the objects with negative evidence, and repeat until none is removed.

    From an image whose objects together have negative evidence, the weaker half is removed. The remaining objects are
    part of the problem's state, so an interrupted round needs no other record.
    """
    while True:
        converged = iterate(problem, run, trace)
        posterior, n = problem.posterior, problem.stats.sums[:, 0]
        gain = evidence_of(posterior.ptr, problem.stats.sums, problem.off)
        image, rank = _ranked(posterior.ptr, gain)
        weak = (problem.evidence_for_any()[image] < 0) & (2 * rank >= np.diff(posterior.ptr)[image] - 1)
        bad = (gain < 0) | (n < MIN_CLICKS) | weak
        smaller = _select(posterior, np.flatnonzero(~bad | (rank < model.at_least)))
        if model.objects is not None or len(smaller.n) == len(posterior.n) or not converged:
            return MergeFit(posterior, problem.shapes, gain, problem.once, converged)
        problem.posterior = smaller


def _ranked(ptr: Ints, evidence: Floats) -> tuple[Ints, Ints]:
    """(M,) the image of each object, and its rank among the objects of the image, 0 for that with the most evidence."""
    image = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    rank = np.empty(len(image), np.int64)
    rank[np.lexsort((-evidence, image))] = np.arange(len(image)) - ptr[image]
    return image, rank


def _select(posterior: Posterior, which: Ints) -> Posterior:
    """Keep only the objects `which`, in ascending order."""
    image = np.repeat(np.arange(len(posterior.ptr) - 1), np.diff(posterior.ptr))
    ptr = np.searchsorted(image[which], np.arange(len(posterior.ptr))).astype(np.int64)
    mean, V, n, b = (array[which] for array in posterior[1:5])
    return posterior._replace(ptr=ptr, mean=mean, V=V, n=n, b=b)


def objects_by_image(ptr: Ints) -> list[tuple[int, slice]]:
    """Slices of the objects of each image that has objects."""
    return [(i, slice(int(a), int(b))) for i, (a, b) in enumerate(pairwise(ptr)) if b > a]


def expected_terms(kernels: Any, posterior: Posterior, shapes: Shapes) -> tuple[ObjectTerms, Floats, Floats]:
    """Return the objects' terms of the E-step, the KL divergence of each from its prior, and that of the shares (I,),
    minus the log of the number of orders of the objects."""
    M, D = posterior.mean.shape
    terms = ObjectTerms(posterior.ptr, np.empty(M), np.empty(M), posterior.mean, np.empty((M, D, D)), np.empty((M, 2)))
    off, shares = np.empty(M), np.zeros(len(posterior.ptr) - 1)
    for i, own in objects_by_image(posterior.ptr):
        shares[i] = kernels.expect(
            posterior.mean[own], posterior.V[own], posterior.n[own], posterior.b[own], shapes.nu, shapes.b0[i], A0,
            shapes.m0[i], shapes.S, JOINT_CUT, terms.weight[own], terms.slack[own], terms.root[own], terms.reach[own],
            off[own],
        )  # fmt: skip
    return terms, off, shares


def evidence_of(ptr: Ints, sums: Floats, off: Floats) -> Floats:
    """(M,) decrease of the evidence, in nats, if an object is removed and its clicks become outliers."""
    image = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    return evidence(image, sums[:, 0], off, sums[:, 2], A0)


class VariationalFit(Problem):
    """Variational Bayes with a fixed number of objects: the evidence never decreases."""

    name = "click-mixture"

    def __init__(
        self, model: ClickMixture, points: Points, executor: Executor[Points], run: Run, posterior: Posterior,
        shapes: Shapes, once: bool, elsewhere: Elsewhere,
    ) -> None:  # fmt: skip
        self.model, self.executor, self.threads, self.max_iter = model, executor, run.threads, model.max_iter
        self.posterior, self.shapes, self.once, self.elsewhere = posterior, shapes, once, elsewhere
        self.hits, self.misses = model.hits + elsewhere.on, model.misses + elsewhere.sent - elsewhere.on
        self.min_variance = (MIN_SD * points.sides.min(0)) ** 2
        self.kernels = points.kernels

    def step(self) -> Step:
        odds, miss, off_workers = self.kernels.betas(self.posterior.A, self.posterior.B, self.hits, self.misses)
        terms, self.off, self.off_shares = expected_terms(self.kernels, self.posterior, self.shapes)
        self.workers, noise = WorkerTerms(odds, miss, self.posterior.noise**-2.0), self.posterior.noise
        self.stats = self.executor.update(e_step, terms, self.workers, self.once, JOINT_CUT, self.threads)
        nu, S, S0, kappa, *_ = self.shapes
        now = self.stats.fit + (
            kappa * shape_prior(S, S0, nu) + noise_prior(noise, terms.mean.shape[1], self.elsewhere)
            - self.off.sum() - self.off_shares.sum() - off_workers
        )  # fmt: skip
        return Step(float(now), {"objects": len(terms.mean)})

    def improve(self) -> None:
        old, shapes, stats = self.posterior, self.shapes, self.stats
        new = Posterior(old.ptr, *(array.copy() for array in old[1:]))
        for i, own in objects_by_image(new.ptr):
            self.kernels.improve(
                new.mean[own], new.V[own], new.n[own], new.b[own], stats.sums[own], shapes.nu, shapes.b0[i],
                shapes.m0[i], shapes.S,
            )  # fmt: skip
        noise = new.noise
        if self.model.noise:
            noise = worker_noise(self.elsewhere.on + stats.on, self.elsewhere.far + stats.far, new.mean.shape[1])
        A, B = self.hits + stats.on, self.misses + stats.sent - stats.on
        self.posterior = new._replace(A=A, B=B, noise=noise)
        self.shapes = shapes._replace(S=_shared_covariance(self.posterior, shapes, self.min_variance))

    def converged(self, objectives: Sequence[float]) -> bool:
        return change_below(objectives, JOINT_TOL)

    def state(self) -> Arrays:
        return packed({"posterior": self.posterior, "shapes": self.shapes})

    def restore(self, state: Arrays) -> None:
        sizes = {"I": len(self.posterior.ptr) - 1, "W": len(self.posterior.A), "D": len(self.shapes.S)}
        self.posterior = restored(Posterior, state, "posterior.", **sizes)
        self.shapes = restored(Shapes, state, "shapes.", **sizes)

    def evidence_for_any(self) -> Floats:
        """(I,) evidence, in nats, that an image has any objects at all.

        All clicks of the image are given the same prior probability of being on an object, so that neither the prior
        of the workers nor the other images decide.
        """
        ptr = self.posterior.ptr
        fits = self.executor.total(_fits_by_share, self.workers.odds)
        image = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        costs = np.bincount(image, self.off, minlength=len(ptr) - 1) + self.off_shares
        return np.asarray(np.max(fits, axis=0) - costs)


def _fits_by_share(points: Points, local: Local, odds: Floats) -> Floats:
    """(shares, I) log-likelihood ratio of each image's clicks, for each candidate share of clicks on objects."""
    alpha, image = local.alpha[:, 0], points.image
    ratio = np.minimum(alpha / np.maximum(1 - alpha, 1e-15) * np.exp(-odds[points.worker]), 1e15)
    return np.stack([np.bincount(image, np.log1p(p * (ratio - 1)), minlength=points.n_images) for p in OBJECT_SHARES])


def _shared_covariance(posterior: Posterior, shapes: Shapes, min_variance: Floats) -> Floats:
    """(D, D) covariance shared by all objects: the inverse of their mean expected precision."""
    total = shapes.kappa * np.linalg.inv(shapes.S0) + precisions(posterior.V, posterior.n, shapes.nu)
    S = np.linalg.inv(total / (shapes.kappa + len(posterior.n)))
    thicken(S, min_variance)
    return np.asarray(S)


class Refinement(GaussianEM):
    """EM with priors that starts from the objects found by merging."""

    def converged(self, objectives: Sequence[float]) -> bool:
        return len(objectives) > 1 and objectives[-1] - objectives[-2] < REFINE_TOL * abs(objectives[-1])


def refine(
    model: ClickMixture, points: Points, executor: Executor[Points], run: Run, fit: MergeFit,
    elsewhere: Elsewhere | None = None,
) -> Mixture:  # fmt: skip
    """Refine the objects found by merging to a posterior mode, by EM.

    Outlier probabilities and reliabilities at the mode are closer to the truth than those of the variational bound,
    which counts the uncertainty about each object against it.
    """
    posterior, shapes = fit.posterior, fit.shapes
    cov = posterior.V / (shapes.nu + posterior.n)[:, None, None]
    image = np.repeat(np.arange(points.n_images), np.diff(posterior.ptr))
    total = np.bincount(image, posterior.n, minlength=points.n_images)
    share = 1 / np.maximum(np.diff(posterior.ptr), 1)[image]
    np.divide(posterior.n, total[image], out=share, where=total[image] > 0)
    p = posterior.A / (posterior.A + posterior.B)
    problem = Refinement(
        executor, Mixture(posterior.ptr, posterior.mean, cov, share, p, posterior.noise), points.sides, run.threads,
        MAX_REFINE_ITER, once=fit.once, noise=model.noise,
        priors=Priors(shapes.nu, shapes.S, model.hits, model.misses, elsewhere), box=Boxes.of(points),
    )  # fmt: skip
    if not iterate(problem, run, Trace(objects=int), "refinement"):
        problem.improve()
    return problem.mixture
