"""Objects of all images by variational Bayes, with shared workers and a shared shape: docs/maths/click_mixture.md."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..engine import Run
from ..kernels.layout import Floats, Ints
from .descent import A0, LEAST, Found, at_middle
from .em import THIN, Mixture, Priors, log_prior, maximise, noise_prior, own_noise, sweep
from .starts import begun, descents
from .sweeps import Seen, Side, Sweeper, Swept
from .trace import Trace

if TYPE_CHECKING:
    from .mixture import ClickMixture

# Shares of clicks on objects that are tried where there may be none.
SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99)
POLISH = 100  # sweeps of the last climb


class Shapes(NamedTuple):
    """What objects have in common."""

    nu: float  # clicks that the shape counts for
    S: Floats  # (D, D) the shape, learnt
    S0: Floats  # and as first guessed
    b0: Floats  # (I,) clicks that the middle of an image counts for
    m0: Floats  # (I, D) middle


class State(NamedTuple):
    """Objects of all images as Normal-Wisharts, and workers as Betas."""

    ptr: Ints
    mean: Floats
    V: Floats
    n: Floats
    b: Floats
    A: Floats  # (W,)
    B: Floats
    noise: Floats  # (W,)


class Climbed(NamedTuple):
    """What merging came to."""

    state: State
    shapes: Shapes
    evidence: Floats  # (M,) log-odds of an object to be real
    once: bool
    converged: bool


def merged(model: ClickMixture, sweeper: Sweeper, run: Run, trace: Trace) -> Climbed:
    """Objects of all images with shared workers and a shared shape."""
    points = sweeper.points
    if not points.n_clicks:
        D = points.n_axes
        shapes = Shapes(model.freedom, np.eye(D), np.eye(D), np.ones(points.n_images), points.box.mean(1))
        state = _together(model, sweeper, [None] * points.n_images)
        return Climbed(state, shapes, np.empty(0), once=True, converged=True)
    once, ratio, shape, done = begun(model, points, run)
    found = descents(model, points, run, once, ratio, shape, done)
    alone = found[0] if points.n_images == 1 else None
    S, S0 = (shape, shape) if alone is None else (alone.S, alone.S0)
    shapes = Shapes(model.freedom, S, S0, at_middle(S0, points.sides), points.box.mean(1))
    state = _together(model, sweeper, found)
    if alone is not None and len(alone.trace):  # the climb goes on where the descent ended
        trace.extend(alone.trace)
        who = np.unique(points.worker)
        state.A[who], state.B[who] = alone.A, alone.B
    return _climb(model, sweeper, run, trace, state, shapes, once)


def _together(model: ClickMixture, sweeper: Sweeper, found: list[Found | None]) -> State:
    """The objects of all images as one state; workers start as 8 of 10 on objects."""
    D = sweeper.points.n_axes
    counts = [0 if each is None else len(each.mean) for each in found]
    some = [each for each in found if each is not None and len(each.mean)]
    ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    n = np.concatenate([each.n for each in some]) if some else np.empty(0)
    return State(
        ptr,
        np.concatenate([each.mean for each in some]) if some else np.empty((0, D)),
        np.concatenate([each.V for each in some]) if some else np.empty((0, D, D)),
        n,
        n.copy(),
        model.hits + 0.8 * sweeper.sent,
        model.misses + 0.2 * sweeper.sent,
        np.ones(sweeper.points.n_workers),
    )


def _climb(
    model: ClickMixture, sweeper: Sweeper, run: Run, trace: Trace, state: State, shapes: Shapes, once: bool
) -> Climbed:
    """All images at once until the evidence rests; then objects that it speaks against go, and on."""
    fixed = model.objects is not None
    while True:
        state, shapes, evidence, something, n, converged = _settle(model, sweeper, run, trace, state, shapes, once)
        bad = (evidence < 0) | (n < LEAST) | np.repeat(something < 0, np.diff(state.ptr))
        smaller = _without(state, bad, evidence, model.at_least)
        if fixed or len(smaller.n) == len(state.n) or not converged:
            return Climbed(state, shapes, evidence, once, converged)
        state = smaller


def _without(state: State, bad: np.ndarray[tuple[int], np.dtype[np.bool_]], evidence: Floats, least: int) -> State:
    """The state without some objects, but with `least` of each image kept: the strongest."""
    image = np.repeat(np.arange(len(state.ptr) - 1), np.diff(state.ptr))
    rank = np.empty(len(image), np.int64)
    rank[np.lexsort((-evidence, image))] = np.arange(len(image)) - state.ptr[image]
    which = np.flatnonzero(~bad | (rank < least))
    ptr = np.searchsorted(image[which], np.arange(len(state.ptr))).astype(np.int64)
    return state._replace(ptr=ptr, mean=state.mean[which], V=state.V[which], n=state.n[which], b=state.b[which])


def of_images(ptr: Ints) -> list[tuple[int, slice]]:
    """The objects of every image that has some."""
    return [(i, slice(int(a), int(b))) for i, (a, b) in enumerate(pairwise(ptr)) if b > a]


def seen_by(state: State, shapes: Shapes) -> tuple[Seen, Floats, float]:
    """The objects as clicks see them, how far each is off the prior, and the same of shares."""
    from ..kernels.fast.merging import expect

    M, D = state.mean.shape
    seen = Seen(state.ptr, np.empty(M), np.empty(M), state.mean, np.empty((M, D, D)), np.empty((M, 2)))
    off, shares = np.empty(M), 0.0
    widest = max(1.0, float(state.noise.max(initial=1.0)))
    for i, own in of_images(state.ptr):
        shares += expect(
            state.mean[own], state.V[own], state.n[own], state.b[own], shapes.nu, shapes.b0[i], A0, shapes.m0[i],
            shapes.S, widest, seen.weight[own], seen.slack[own], seen.root[own], seen.reach[own], off[own],
        )  # fmt: skip
    return seen, off, shares


def evidence_of(ptr: Ints, sums: Floats, off: Floats) -> Floats:
    """(M,) nats that are lost when an object goes and its clicks are on none."""
    from ..kernels.fast.merging import evidence

    out = np.empty(len(sums))
    for _, own in of_images(ptr):
        out[own] = evidence(sums[own, 0].copy(), off[own], sums[own, 2].copy(), A0)
    return out


def _something(sweeper: Sweeper, ptr: Ints, alpha: Floats, odds: Floats, off: Floats) -> Floats:
    """(I,) nats by which the objects of an image beat none at all, if all its clicks were as likely on some: what is
    believed of workers is no reason for objects, nor is that objects are there for workers."""
    image = sweeper.points.image
    ratio = np.minimum(alpha / np.maximum(1 - alpha, 1e-15) * np.exp(-odds[sweeper.points.worker]), 1e15)
    fits = [np.bincount(image, np.log1p(p * (ratio - 1)), minlength=len(ptr) - 1) for p in SHARES]
    whose = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    return np.asarray(np.max(fits, axis=0) - np.bincount(whose, off, minlength=len(ptr) - 1))


def _settle(
    model: ClickMixture, sweeper: Sweeper, run: Run, trace: Trace, state: State, shapes: Shapes, once: bool
) -> tuple[State, Shapes, Floats, Floats, Floats, bool]:
    """Sweeps until the evidence rests; also the evidence of each object and of any in each image, and clicks."""
    from ..kernels.fast.merging import CUT, KAPPA, TOL, betas, improve

    W, D = sweeper.points.n_workers, sweeper.points.n_axes
    hits, misses = np.full(W, model.hits), np.full(W, model.misses)
    thin = (THIN * sweeper.points.sides.min(0)) ** 2
    before, converged = -np.inf, False
    for turn in range(model.max_iter):
        trace.ask(run)
        odds, miss, off_workers = betas(state.A, state.B, hits, misses)
        seen, off, off_shares = seen_by(state, shapes)
        swept: Swept = sweeper.run(seen, Side(odds, state.noise**-2.0), once=once, cut=CUT)
        now = swept.log_sum + sweeper.outliers + float(miss @ sweeper.sent)
        now += KAPPA * _shape_prior(shapes) + noise_prior(state.noise, D) - off.sum() - off_shares - off_workers
        trace.add(now, len(seen.mean), run, model.max_iter)
        converged = abs(now - before) < TOL * abs(now)
        if converged or turn + 1 == model.max_iter:
            break
        before = now
        state = State(state.ptr, *(array.copy() for array in state[1:]))
        for i, own in of_images(state.ptr):
            improve(
                state.mean[own], state.V[own], state.n[own], state.b[own], swept.sums[own], shapes.nu, shapes.b0[i],
                shapes.m0[i], shapes.S,
            )  # fmt: skip
        on = sweeper.by_worker(swept.alpha[:, 0])
        noise = own_noise(on, sweeper.by_worker(swept.alpha[:, 1]), D) if model.noise else state.noise
        state = state._replace(A=model.hits + on, B=model.misses + sweeper.sent - on, noise=noise)
        shapes = shapes._replace(S=_learnt(state, shapes, thin))
    each = evidence_of(state.ptr, swept.sums, off)
    something = _something(sweeper, state.ptr, swept.alpha[:, 0], odds, off)
    return state, shapes, each, something, swept.sums[:, 0], bool(converged)


def _learnt(state: State, shapes: Shapes, thin: Floats) -> Floats:
    """The shape that objects share: the inverse of their mean expected precision."""
    from ..kernels.fast.merging import KAPPA, precisions, thicken

    total = KAPPA * np.linalg.inv(shapes.S0)
    precisions(state.V, state.n, shapes.nu, total)
    S = np.linalg.inv(total / (KAPPA + len(state.n)))
    thicken(S, thin)
    return S


def _shape_prior(shapes: Shapes) -> float:
    log_det = np.linalg.slogdet(shapes.S)[1]
    return float(0.5 * shapes.nu * (log_det - np.trace(shapes.S @ np.linalg.inv(shapes.S0))))


def polished(model: ClickMixture, sweeper: Sweeper, climbed: Climbed) -> Mixture:
    """The objects found as plain Gaussians, climbed to the most probable ones: shares of outliers and reliabilities are
    nearer to the truth than those of the bound, which pays for every doubt about an object."""
    state, shapes = climbed.state, climbed.shapes
    cov = state.V / (shapes.nu + state.n)[:, None, None]
    image = np.repeat(np.arange(len(state.ptr) - 1), np.diff(state.ptr))
    total = np.bincount(image, state.n, minlength=len(state.ptr) - 1)
    share = 1 / np.maximum(np.diff(state.ptr), 1)[image]
    np.divide(state.n, total[image], out=share, where=total[image] > 0)
    mixture = Mixture(state.ptr, state.mean, cov, share, state.A / (state.A + state.B), state.noise)
    priors = Priors(shapes.nu, shapes.S, model.hits, model.misses)
    before = -np.inf
    for _ in range(POLISH):
        _, stats = sweep(sweeper, mixture, climbed.once)
        now = stats.fit + log_prior(mixture, priors)
        if now - before < 1e-7 * abs(now):
            break
        before = now
        mixture = maximise(stats, mixture, priors, sweeper.points.sides, noise=model.noise)
    return mixture
