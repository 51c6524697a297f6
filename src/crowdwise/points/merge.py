"""Objects by variational Bayes, from many components downwards, chosen by evidence: docs/maths/click_mixture.md."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..answers import Points
from ..engine import Run
from ..kernels.layout import Floats, Ints
from .em import THIN, Mixture, Priors, log_prior, maximise, noise_prior, own_noise, sweep
from .sweeps import Seen, Side, Sweeper, Swept
from .trace import Trace

if TYPE_CHECKING:
    from .mixture import ClickMixture

FIRST = 20  # components that the first try starts from; each further one from twice as many
SAMPLE = 3  # images that the start is chosen on
LARGE = 6_000  # clicks of an image above which the start is chosen on a part of them
ENOUGH = 30  # clicks an object in that part, from which it is enough to find the objects on, too
A0 = 1.0  # of the Dirichlet of shares
LEAST = 1.0  # clicks that an object needs
SHARES = (
    0.02,
    0.05,
    0.1,
    0.2,
    0.35,
    0.5,
    0.65,
    0.8,
    0.9,
    0.95,
    0.99,
)  # of clicks on objects, tried where there may be none
DROP = 25.0  # nats below the best at which merging ends
CLOSE = 64  # components up to which every level is climbed to the end, and changes are made one by one
SHORT, LONG = 6, 150  # sweeps a level, above and below that
NEAR = 2000  # clicks of an image whose neighbours tell whether workers click an object once
SAME = 0.5  # of the own clicks that chance would put near a click: fewer, and a worker clicks once
MANY = 50.0  # of those expected, from which that is enough to tell
RARE = 1e-3  # chance of so few own clicks, below which fewer are enough, too
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


class Found(NamedTuple):
    """What the descent of one image came to."""

    mean: Floats
    V: Floats
    n: Floats
    score: float
    S: Floats
    S0: Floats
    A: Floats  # (workers of the image,)
    B: Floats
    start: int
    trace: Floats


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
        state = _together(model, sweeper, [None] * points.n_images, shapes)
        return Climbed(state, shapes, np.empty(0), once=True, converged=True)
    once, ratio, shape, done = _start(model, points, run)
    found = _descents(model, points, run, once, ratio, shape, done)
    alone = points.n_images == 1 and found[0] is not None
    S, S0 = (found[0].S, found[0].S0) if alone else (shape, shape)  # type: ignore[union-attr]
    if alone:
        trace.extend(found[0].trace)  # type: ignore[union-attr]
    shapes = Shapes(model.freedom, S, S0, _b0(S0, points.sides), points.box.mean(1))
    state = _together(model, sweeper, found, shapes)
    if alone and len(found[0].A):  # type: ignore[union-attr]  # the climb goes on where the descent ended
        who = np.unique(points.worker)
        state.A[who], state.B[who] = found[0].A, found[0].B  # type: ignore[union-attr]
    return _climb(model, sweeper, run, trace, state, shapes, once)


def _b0(S: Floats, sides: Floats) -> Floats:
    """(I,) the middle of the box counts for so many clicks that an object may be anywhere in it."""
    D = len(S)
    return np.asarray((np.linalg.det(S) / np.prod(sides**2 / 12, axis=1)) ** (1 / D))


def _first_shape(X: Floats, sides: Floats, start: int) -> Floats:
    """The shape of objects if `start` of them filled the clicks' extent."""
    D = X.shape[1]
    return np.asarray(np.diag(np.maximum(X.var(0) / start ** (2 / D), (THIN * sides) ** 2)))


def descend(
    model: ClickMixture, points: Points, image: int, once: bool, start: int, S: Floats | None, run: Run
) -> Found | None:
    """One image for itself; None where it has no clicks. The shape is learnt unless it is given."""
    at = points.clicks_of(image)
    if at.stop == at.start:
        return None
    return _Descent(model, points, image, once, start, S, run).found()


class _Descent:
    """One image from many components down to the number that the evidence favours, or that is given."""

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
        self.learn, self.S0 = S is None, _first_shape(self.X, sides, start) if S is None else S
        self.thin = (THIN * sides) ** 2
        self.nu, self.b0 = float(model.freedom), float(_b0(self.S0, sides[None])[0])
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

    def found(self) -> Found:
        """The best of all levels, climbed to the end."""
        best, kept = -np.inf, None
        while True:
            M = len(self.parts[0])
            now, sums, rest = self.level(LONG if M <= CLOSE else SHORT)
            poor = bool((sums[:, 0] < LEAST).any()) and self.least < M
            if not poor and now > best and (self.least >= M or not self.given):
                best, kept = now, tuple(array.copy() for array in self.parts)
            if self.least >= M or (not poor and not self.given and now < best - DROP):
                break
            if not self.down(sums, poor, *rest):
                break
        self.parts = self.parts if kept is None else kept  # type: ignore[assignment]
        self.level(LONG)
        mean, V, n, _, S, A, B = self.parts
        trace = np.concatenate(self.trace)
        return Found(mean, V, n, float(trace[-1, 0] - trace[-1, 1]), S, self.S0, A, B, self.start, trace[:, [0, 2]])

    def level(self, sweeps: int) -> tuple[float, Floats, tuple[Any, ...]]:
        """Sweeps with the components as they are."""
        from ..kernels.fast.merging import level

        trace = np.empty((sweeps, 3))
        mean, V, n, b, S, A, B = self.parts
        rows, used, sums, off, reach, _ = level(
            self.X, self.worker, self.job_ptr, self.log_box, self.once, mean, V, n, b, S, self.S0, self.thin,
            self.learn, self.nu, self.b0, A0, self.m0, A, B, self.hits, self.misses, self.sent, sweeps, self.alpha,
            self.held, trace,
        )  # fmt: skip
        trace[:, 2] = len(mean)
        self.trace.append(trace[:rows])
        return float(trace[rows - 1, 0]), sums, (used, off, reach)

    def down(self, sums: Floats, poor: bool, used: int, off: Floats, reach: Floats) -> bool:
        """Fewer components: those that hold less than a click go; else the cheapest merge or removal, and where
        components are many all that cost less than they save. Whether there was anything to do."""
        from ..kernels.fast.merging import prices, take

        mean, V, n, b, *rest = self.parts
        M = len(mean)
        dead = np.zeros(M, np.bool_)
        if poor:
            weak = np.flatnonzero(sums[:, 0] < LEAST)
            dead[weak[np.argsort(sums[weak, 0], kind="stable")][: M - self.least]] = True
        else:
            cost, mate = prices(mean, V, sums[:, 0], sums[:, 2], reach, self.held, used, self.once, self.nu)
            most = 1 if M <= CLOSE else max(1, M // 8)
            order = np.argsort(cost, kind="stable")
            if not take(order, cost, mate, mean, V, n, b, off, self.nu, most, self.least, dead):
                return False
        alive = ~dead
        self.parts = (mean[alive], V[alive], n[alive], b[alive], *rest)
        return bool(alive.any())


def _sample(points: Points) -> Ints:
    """A few images with many, but not only the most, clicks."""
    clicks = np.array([points.clicks_of(i).stop - points.clicks_of(i).start for i in range(points.n_images)])
    some = np.flatnonzero(clicks > 0)
    order = some[np.argsort(clicks[some], kind="stable")]
    picks = np.unique(np.linspace(len(order) // 2, len(order) - 1, min(SAMPLE, len(order))).astype(int))
    return np.sort(order[picks])


def _part(points: Points, image: int, rng: np.random.Generator) -> Points:
    """Whole jobs of an image with about LARGE clicks in all; of jobs that are longer, as many of their clicks."""
    own = points.only(np.array([image]))
    order = rng.permutation(own.n_jobs)
    enough = int(np.searchsorted(np.cumsum(np.diff(own.job_ptr)[order]), LARGE)) + 1
    chosen = np.isin(np.repeat(np.arange(own.n_jobs), np.diff(own.job_ptr)), order[:enough])
    clicks = np.flatnonzero(chosen)
    if len(clicks) > 2 * LARGE:
        clicks = np.sort(rng.choice(clicks, LARGE, replace=False))
    job = np.repeat(np.arange(own.n_jobs), np.diff(own.job_ptr))[clicks]
    ptr = np.searchsorted(job, np.arange(own.n_jobs + 1)).astype(np.int64)
    fields = {name: getattr(own, name) for name in own.__dataclass_fields__}
    return Points.of(**{**fields, "X": own.X[clicks], "worker": own.worker[clicks], "job_ptr": ptr})


class _Ladder:
    """Descents of a few images from ever more components, until more do not help."""

    def __init__(self, model: ClickMixture, parts: list[tuple[Points, int]], run: Run) -> None:
        self.model, self.parts, self.run = model, parts, run
        self.clicks = [points.clicks_of(i).stop - points.clicks_of(i).start for points, i in parts]
        self.largest = max(self.clicks)

    def climb(self, once: bool, start: int) -> tuple[list[Found], int]:
        """The best descents, and from how many components (for the largest image) they started."""
        best: list[Found] = []
        total, from_ = -np.inf, start
        while True:
            found = [
                descend(self.model, points, i, once, starts(self.model, n, start / self.largest), None, self.run)
                for (points, i), n in zip(self.parts, self.clicks, strict=True)
            ]
            kept = [each for each in found if each is not None]
            score = sum(each.score for each in kept)
            if score <= total + 1.0:
                return best, from_
            best, total, from_ = kept, score, start
            if 2 * start > self.largest // 2 or self.model.start is not None:
                return best, from_
            start *= 2


def starts(model: ClickMixture, clicks: int, ratio: float) -> int:
    """How many components an image of so many clicks starts from."""
    least = model.objects if model.objects is not None else model.at_least
    if model.start is not None:
        return max(1, min(model.start, clicks))
    return max(1, min(clicks, max(2 * least, min(FIRST, clicks // 2), round(clicks * ratio))))


def _start(model: ClickMixture, points: Points, run: Run) -> tuple[bool, float, Floats, dict[int, Found]]:
    """Whether workers click an object once, components a click to start from, the shape, and what is done already."""
    parts = []
    for i in _sample(points):
        size = points.clicks_of(int(i)).stop - points.clicks_of(int(i)).start
        rng = np.random.default_rng([run.seed, int(i), 1])
        parts.append((_part(points, int(i), rng), 0) if size > LARGE else (points, int(i)))
    once = clicks_once(parts, np.random.default_rng([run.seed, 2])) if model.once is None else model.once
    ladder = _Ladder(model, parts, run)
    start = min(FIRST, max(1, ladder.largest // 2)) if model.start is None else model.start
    if once is None:
        both = {way: ladder.climb(way, start) for way in (True, False)}
        scores = {way: sum(each.score for each in found) for way, (found, _) in both.items()}
        once = scores[True] + _clashes(parts, both[True][0]) > scores[False]
        found, start = both[once]
    else:
        found, start = ladder.climb(once, start)
    inverse = [len(each.mean) * np.linalg.inv(each.S) for each in found]
    shape = np.linalg.inv(np.sum(inverse, axis=0) / sum(len(each.mean) for each in found))
    done = {}
    for (part, i), each in zip(parts, found, strict=True):
        whole = part is points
        if whole and points.n_images <= SAMPLE:
            done[i] = each
        elif not whole and len(part.X) / max(1, len(each.mean)) >= ENOUGH:
            image = int(np.flatnonzero((points.images == part.images[0]).to_numpy())[0])
            at = points.clicks_of(image)
            done[image] = _grown(each, (at.stop - at.start) / len(part.X), model.freedom)
    return once, start / ladder.largest, shape, done


def _grown(found: Found, times: float, nu: float) -> Found:
    """As if there had been so many times the clicks; of workers and sweeps, which were of a part, nothing is kept."""
    prior, none = nu * found.S, np.empty(0)
    V = prior + times * (found.V - prior)
    return found._replace(n=times * found.n, V=V, A=none, B=none, trace=np.empty((0, 2)))


def clicks_once(parts: list[tuple[Points, int]], rng: np.random.Generator) -> bool | None:
    """Whether workers click on an object at most once; None where so few clicks cannot tell. Near a click of others, a
    worker who clicks as often as he likes has as many of his own as his share of clicks says; one who clicks once has
    none."""
    own, chance = 0.0, 0.0
    for points, i in parts:
        at = points.clicks_of(i)
        X, worker = points.X[at], points.worker[at]
        clicks = np.bincount(worker)
        chosen = np.sort(rng.choice(len(X), min(len(X), NEAR), replace=False))
        radius = None
        for some in np.array_split(chosen, max(1, len(chosen) // 200)):
            same = worker[some][:, None] == worker[None]
            away = np.sqrt(((X[some][:, None] - X[None]) ** 2).sum(2))
            to_others = np.where(same, np.inf, away).min(1)
            if radius is None:  # the first clicks tell how far off the others' are
                radius = 3 * float(np.median(to_others))
            close = away <= radius if np.isfinite(radius) else np.zeros_like(same)
            sent = clicks[worker[some]]
            own += float((close & same & (away > 0)).sum())
            chance += float(((close & ~same).sum(1) * (sent - 1) / np.maximum(len(X) - sent, 1)).sum())
    if float(chance) >= MANY:
        return own < SAME * chance
    below = sum(math.exp(k * math.log(max(chance, 1e-300)) - chance - math.lgamma(k + 1)) for k in range(int(own) + 1))
    return True if below < RARE else None


def _clashes(parts: list[tuple[Points, int]], found: list[Found]) -> float:
    """Pairs of clicks by one worker on one object that chance would make: about minus the log of the chance that there
    are none, which the sum over matchings lacks against that over all ways."""
    total = 0.0
    for (points, i), each in zip(parts, found, strict=True):
        sent = np.bincount(points.worker[points.clicks_of(i)]).astype(np.float64)
        on, share = each.n.sum() / sent.sum(), each.n / each.n.sum()
        total += float(0.5 * (sent * np.maximum(sent - 1, 0)).sum() * on**2 * (share**2).sum())
    return total


def _descents(
    model: ClickMixture, points: Points, run: Run, once: bool, ratio: float, shape: Floats, done: dict[int, Found]
) -> list[Found | None]:
    from ..kernels.fast.blocks import run as in_threads

    found: list[Found | None] = [done.get(i) for i in range(points.n_images)]

    def one(i: int, _start: int, _stop: int) -> None:
        if found[i] is None and not (run.stop is not None and run.stop()):
            at = points.clicks_of(i)
            found[i] = descend(model, points, i, once, starts(model, at.stop - at.start, ratio), shape, run)

    in_threads(one, np.arange(points.n_images + 1), run.threads)
    return found


def _together(model: ClickMixture, sweeper: Sweeper, found: list[Found | None], shapes: Shapes) -> State:
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
    share = state.n / np.maximum(total[image], 1e-300) if len(image) else state.n
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
