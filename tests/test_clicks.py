"""Objects from clicks: the models against slow doubles, on made-up crowds and on real ones."""

from __future__ import annotations

import dataclasses
import functools
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as distributions
from scipy.special import betaln, gammaln, logsumexp, multigammaln, psi

import crowdwise as cw
from crowdwise.errors import ChecksumError, DataError, Interrupted, ParameterError
from crowdwise.kernels.fast.clicks import _match
from crowdwise.points import em, merge, paper
from crowdwise.points.sweeps import Sweeper
from crowdwise.points.trace import Trace

pytestmark = pytest.mark.filterwarnings("error")

BOX = (1, 0, 4, 5)  # of simulated clicks
SQUARE = (0, 0, 100, 100)
LAYOUTS = ("E", "P1", "P2")
BASELINES: dict[str, dict[str, Any]] = {
    "fuzzy-c-means": {"objects": 4},
    "k-means": {"objects": 4},
    "dbscan": {"distance": 3.0},
    "hdbscan": {"at_least": 4},
}
ONE = cw.Run(threads=1)


def tables(result: cw.PointsResult) -> dict[str, pl.DataFrame]:
    return {name: getattr(result, name) for name in ("objects", "workers", "clicks", "images", "trace")}


def same_bits(one: cw.PointsResult, two: cw.PointsResult) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.params, two.params, strict=True)) and np.array_equal(
        one.sweeps, two.sweeps
    )


def finite(result: cw.PointsResult) -> bool:
    return all(np.isfinite(np.asarray(array, float)).all() for array in (*result.params, result.sweeps))


def counts(result: cw.PointsResult) -> list[int]:
    return np.diff(result.params.ptr).tolist()


def to_centres(mean: Any, sim: cw.simulate.ClickCrowd) -> Any:
    return np.sqrt(((mean[:, None] - sim.centres[None]) ** 2).sum(2))


def success(result: cw.PointsResult, sim: cw.simulate.ClickCrowd) -> bool:
    """As many objects as there are, and the nearest true one of each is another one."""
    away = to_centres(result.params.mean, sim)
    return len(away) == len(sim.centres) == len(set(away.argmin(1)))


def never_falls(result: cw.PointsResult, least: int = 5) -> bool:
    """The objective, from one sweep to the next with as many objects."""
    value, objects = result.sweeps.T
    climb = np.diff(value)[np.diff(objects) == 0]
    assert len(climb) >= least
    return bool((climb >= -1e-8 * np.abs(value).max()).all())


@dataclasses.dataclass
class Spots:
    points: cw.Points
    truth: pl.DataFrame


def spots(images: int = 3, objects: int = 8, workers: int = 10, *, seed: int = 0, stray: float = 2.0) -> Spots:
    """Images whose spots each worker clicks once or not at all, some more exactly than others, and some strays."""
    rng = np.random.default_rng(seed)
    noise, rows, truth = rng.uniform(0.5, 1.5, workers), [], []
    for i in range(images):
        centres = rng.permutation([(x, y) for x in range(12, 95, 19) for y in range(12, 95, 19)])[:objects]
        centres = centres + rng.uniform(-4, 4, centres.shape)
        truth += [(f"i{i}", *centre) for centre in centres.tolist()]
        for w in range(workers):
            seen = centres[rng.random(objects) < 0.85]
            clicks = np.clip(seen + noise[w] * rng.normal(size=seen.shape), 0, 100)
            rows += [(f"i{i}", f"w{w}", *click) for click in clicks.tolist()]
            rows += [(f"i{i}", f"w{w}", *click) for click in (rng.random((rng.poisson(stray), 2)) * 100).tolist()]
    frame = pl.DataFrame(rows, schema=["image", "worker", "x", "y"], orient="row")
    return Spots(cw.Points(frame, box=SQUARE), pl.DataFrame(truth, schema=["image", "x", "y"], orient="row"))


@pytest.fixture(scope="module")
def spotted() -> Spots:
    return spots()


@functools.cache
def simulated(layout: str, seed: int) -> tuple[cw.simulate.ClickCrowd, cw.PointsResult]:
    sim = cw.simulate.clicks(layout, seed=seed)
    return sim, cw.aggregate(sim.points, run=cw.Run(seed=seed))


# ---------------------------------------------------------------------------------------------- the paper's EM, in full


def dense(points: cw.Points, mixture: em.Mixture) -> tuple[float, em.Mixture]:
    """The log-likelihood (2), and one step by (7) to (12), written out for every click and object."""
    W = points.n_workers
    fit, on, parts = 0.0, np.zeros(W), []
    for i in range(points.n_images):
        at, own = points.clicks_of(i), slice(*mixture.ptr[i : i + 2])
        X, worker = points.X[at], points.worker[at]
        N = np.stack(
            [
                distributions.multivariate_normal(m, S).pdf(X)
                for m, S in zip(mixture.mean[own], mixture.cov[own], strict=True)
            ],
            axis=-1,
        ).reshape(len(X), -1)
        f = mixture.share[own] * N
        g, p = 1 / np.prod(points.sides[i]), mixture.p[worker]
        both = p * f.sum(1) + (1 - p) * g
        alpha = p * f.sum(1) / both  # (7)
        zeta = f / f.sum(1, keepdims=True)  # (8)
        w = alpha[:, None] * zeta
        n = w.sum(0)
        mean = w.T @ X / n[:, None]  # (11)
        away = X[:, None] - mean[None]
        cov = np.einsum("im,imd,ime->mde", w, away, away) / n[:, None, None]  # (12)
        parts.append((mean, cov, n / alpha.sum()))  # (10)
        fit += np.log(both).sum()
        on += np.bincount(worker, alpha, minlength=W)
    sent = np.bincount(points.worker, minlength=W)
    mean, cov, share = (np.concatenate(part) for part in zip(*parts, strict=True))
    return float(fit), em.Mixture(mixture.ptr, mean, cov, share, on / sent, mixture.noise)  # (9)


def gathered(D: int, images: int = 2, seed: int = 0) -> tuple[cw.Points, em.Mixture]:
    """Clicks around three places an image in D coordinates, with outliers; and a mixture that is not yet right."""
    rng = np.random.default_rng(seed)
    N = 150 * images
    place = rng.uniform(20, 80, (images, 3, D))
    image, which = rng.integers(0, images, N), rng.integers(0, 3, N)
    X = np.clip(place[image, which] + rng.normal(scale=5, size=(N, D)), 0, 100)
    X = np.where(rng.random((N, 1)) < 0.2, rng.random((N, D)) * 100, X)
    frame = {"image": image, "worker": rng.integers(0, 6, N)} | {f"x{d}": X[:, d] for d in range(D)}
    points = cw.Points(frame, axes=[f"x{d}" for d in range(D)], box=(*[0] * D, *[100] * D))
    M = 3 * images
    A = rng.normal(size=(M, D, D))
    cov = 60 * np.eye(D) + 10 * A @ A.transpose(0, 2, 1)
    share = rng.dirichlet(np.full(3, 5.0), images).ravel()
    mean = place.reshape(M, D) + rng.normal(scale=6, size=(M, D))
    return points, em.Mixture(np.arange(images + 1) * 3, mean, cov, share, rng.uniform(0.2, 0.9, 6), np.ones(6))


def close(one: em.Mixture, two: em.Mixture, tolerance: float = 1e-9) -> bool:
    return all(np.allclose(a, b, rtol=tolerance, atol=tolerance) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("D", [1, 2, 3])
def test_a_step_is_that_of_the_equations(D: int) -> None:
    points, mixture = gathered(D)
    for _ in range(4):
        fit, after = dense(points, mixture)
        swept, stats = em.sweep(Sweeper(points, 1), mixture, once=False)
        assert np.isclose(stats.fit, fit, rtol=1e-12)
        better = em.maximise(stats, mixture, em.Priors(), points.sides)
        assert close(better, after)
        assert not close(better, mixture, 1e-3)
        mixture = better
    assert np.isclose(swept.alpha[:, 0].sum(), stats.sums[:, 0].sum())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_papers_method_is_the_equations_repeated(layout: str) -> None:
    points, model = cw.simulate.clicks(layout, seed=4).points, cw.ClickMixture(method="paper", objects=7, max_iter=25)
    result = model.fit(points, ONE)
    mixture = paper._start(model, Sweeper(points, 1), ONE, 0)
    assert np.unique(mixture.mean, axis=0).shape == (7, 2)
    assert (mixture.p == 0.5).all()
    trace = []
    for sweep in range(len(result.sweeps)):
        if sweep:
            mixture = dense(points, mixture)[1]
        trace.append(dense(points, mixture)[0])
    assert len(trace) > 15
    assert np.allclose(result.sweeps[:, 0], trace, rtol=1e-10)
    found, order = result.params, np.lexsort(mixture.mean.T[::-1])
    assert np.linalg.eigvalsh(mixture.cov).min() > 0.01  # no variance had to be held up
    assert np.allclose(found.mean, mixture.mean[order], rtol=1e-7)
    assert np.allclose(found.cov, mixture.cov[order], rtol=1e-6, atol=1e-9)
    assert np.allclose(found.share, mixture.share[order], rtol=1e-6)
    assert np.allclose(found.reliability, mixture.p, rtol=1e-6)


@pytest.mark.parametrize("criterion", ["bic", "icl"])
def test_the_papers_criterion_by_hand(criterion: Any) -> None:
    points, mixture = gathered(2, images=1)
    X, p = points.X, mixture.p[points.worker]
    f = np.stack(
        [distributions.multivariate_normal(m, S).pdf(X) for m, S in zip(mixture.mean, mixture.cov, strict=True)]
    )
    parts = np.vstack([p * mixture.share[:, None] * f, (1 - p) / 1e4])
    w = parts / parts.sum(0)
    entropy = -np.sum(w * np.log(np.maximum(w, 1e-300)))
    wanted = np.log(parts.sum(0)).sum() - 2.5 * 3 * np.log((1 - w[-1]).sum())
    wanted -= entropy if criterion == "icl" else 0.0
    swept, stats = em.sweep(Sweeper(points, 1), mixture, once=False, best=True)
    score = paper._criterion(cw.ClickMixture(criterion=criterion), stats.fit, swept, mixture, 5.0)
    assert np.isclose(score, wanted, rtol=1e-10)


def piles(sizes: Any, deviation: float = 0.3, seed: int = 0) -> cw.Points:
    """Heaps of clicks of given sizes far from each other, every click by another worker."""
    rng = np.random.default_rng(seed)
    at = np.array([(x, y) for x in (10, 35, 60, 85) for y in (10, 35, 60, 85)])[: len(sizes)]
    X = np.repeat(at, sizes, axis=0) + deviation * rng.normal(size=(sum(sizes), 2))
    return cw.Points({"image": ["a"] * len(X), "worker": np.arange(len(X)), "x": X[:, 0], "y": X[:, 1]}, box=SQUARE)


def test_annihilation_by_hand() -> None:  # eq (14)
    points = piles([10, 4, 2])
    mean = np.array([(10, 10), (10, 35), (10, 60)], float)
    start = em.Mixture(
        np.array([0, 3]),
        mean,
        np.repeat(np.eye(2)[None], 3, axis=0),
        np.full(3, 1 / 3),
        np.full(16, 0.999),
        np.ones(16),
    )
    _, stats = em.sweep(Sweeper(points, 1), start, once=False)
    assert np.allclose(stats.sums[:, 0], [10, 4, 2], atol=1e-3)
    after = em.maximise(stats, start, em.Priors(), points.sides, toll=2.5)
    assert np.allclose(after.share, np.array([7.5, 1.5, 0]) / 9, atol=1e-3)
    assert after.mean[2].tolist() == [10, 60]  # what cannot pay stays as it was
    assert after.cov[2].tolist() == np.eye(2).tolist()
    assert np.allclose(after.mean[0], points.X[:10].mean(0), atol=1e-6)
    kept = em.keep(after, np.flatnonzero(after.share > 0))
    assert np.allclose(kept.share, [5 / 6, 1 / 6], atol=1e-3)
    assert kept.ptr.tolist() == [0, 2]


def test_the_paper_gives_up_what_holds_fewer_clicks_than_half_its_parameters() -> None:
    """Two clicks are below L / 2 = 2.5, three are not."""
    found = [counts(cw.aggregate(piles([10] * 7 + [n]), method="paper", start=8, spread=(1.0, 1.0)))[0] for n in (2, 3)]
    assert found == [7, 8]


# -------------------------------------------------------------------------------------------------- sums over matchings


def by_hand(odds: Any) -> tuple[float, Any]:
    """The log of the sum over all matchings of clicks (rows) and objects, and the chance of every pair."""
    n, m = odds.shape
    total, pairs = 0.0, np.zeros((n, m))
    for which in product(range(-1, m), repeat=n):
        taken = [j for j in which if j >= 0]
        if len(taken) == len(set(taken)):
            weight = np.prod([odds[i, j] for i, j in enumerate(which) if j >= 0])
            total += weight
            for i, j in enumerate(which):
                if j >= 0:
                    pairs[i, j] += weight
    return float(np.log(total)), pairs / total


def by_messages(odds: Any) -> tuple[float, Any]:
    """The same by the kernel; odds of 0 are objects that a click does not see."""
    n, m = odds.shape
    ptr = np.concatenate([[0], np.cumsum((odds > 0).sum(1))]).astype(np.int64)
    comp, seen = np.nonzero(odds)[1].astype(np.int32), odds[odds > 0]
    out, back, share, total = np.empty(len(seen)), np.empty(len(seen)), np.empty(len(seen)), np.zeros(m)
    value = _match(ptr, np.arange(n), n, comp, seen, out, back, share, total)
    assert not total.any()  # left as it was found
    w = np.zeros((n, m))
    w[odds > 0] = share
    return float(value), w


RINGLESS = {
    "two clicks, one object": [[3.0], [0.5]],
    "four clicks, one object": [[3.0], [0.5], [20.0], [1.0]],
    "one click, three objects": [[1.0, 2.0, 30.0]],
    "a path": [[2.0, 5.0, 0.0], [0.0, 1.5, 8.0]],
    "a longer path": [[4.0, 0.3, 0.0, 0.0], [0.0, 9.0, 1.0, 0.0], [0.0, 0.0, 2.0, 6.0]],
    "a star and a stranger": [[2.0, 0.0], [3.0, 0.0], [0.0, 7.0]],
}


@pytest.mark.parametrize("name", RINGLESS)
def test_without_rings_the_sum_over_matchings_is_exact(name: str) -> None:
    odds = np.array(RINGLESS[name])
    (value, w), (true, pairs) = by_messages(odds), by_hand(odds)
    assert np.isclose(value, true, rtol=1e-9, atol=1e-10)
    assert np.allclose(w, pairs, atol=1e-5)


@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
def test_the_sum_over_matchings_is_below_the_true_one_and_near(scale: float) -> None:
    rng, gaps, off = np.random.default_rng(8), [], []
    for _ in range(60):
        odds = np.exp(scale * rng.normal(size=rng.integers(2, 5, 2)))
        (value, w), (true, pairs) = by_messages(odds), by_hand(odds)
        assert value <= true + 1e-9
        assert value >= true - 0.5 * np.log(2) * min(odds.shape)  # as far off as a permanent's can be
        assert (w.sum(0) <= 1 + 1e-6).all()
        assert (w.sum(1) <= 1 + 1e-6).all()
        gaps.append(true - value)
        off.append(np.abs(w - pairs).max())
    assert 0 < np.mean(gaps) < 0.15
    assert np.mean(off) < 0.05
    assert max(off) < 0.25


def mixture_of(mean: Any, variance: float, p: Any, share: Any = None) -> em.Mixture:
    M = len(mean)
    share = np.full(M, 1 / M) if share is None else np.asarray(share)
    cov = np.repeat(variance * np.eye(2)[None], M, axis=0)
    return em.Mixture(np.array([0, M]), np.asarray(mean, float), cov, share, np.asarray(p, float), np.ones(len(p)))


def test_a_sweep_matches_job_by_job() -> None:
    rng = np.random.default_rng(2)
    frame = {"image": ["a"] * 11, "worker": [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3]}
    X = rng.uniform(30, 60, (11, 2))
    X[-2:] += 40  # one worker with clicks that no object sees
    points = cw.Points({**frame, "x": X[:, 0], "y": X[:, 1]}, box=SQUARE)
    mixture = mixture_of([(35, 40), (45, 45), (50, 38)], 60.0, [0.9, 0.5, 0.7, 0.8], [0.5, 0.3, 0.2])
    swept, stats = em.sweep(Sweeper(points, 1), mixture, once=True, best=True)
    _, loose = em.sweep(Sweeper(points, 1), mixture, once=False)
    f = np.stack([distributions.multivariate_normal(m, 60.0).pdf(points.X) for m in mixture.mean], axis=1)
    odds = mixture.share * f * (mixture.p / (1 - mixture.p))[points.worker][:, None] * 1e4
    base = np.log((1 - mixture.p)[points.worker] / 1e4).sum()
    values, expected = 0.0, np.zeros(3)
    for j in range(points.n_jobs):
        at = slice(*points.job_ptr[j : j + 2])
        value, w = by_messages(odds[at])
        true, pairs = by_hand(odds[at])
        assert value <= true + 1e-9
        assert np.allclose(swept.alpha[at, 0], w.sum(1), atol=1e-4)
        assert np.allclose(swept.best[at, 1], w.max(1), atol=1e-4)
        assert np.abs(w - pairs).max() < 0.1
        values, expected = values + value, expected + w.sum(0)
    assert np.isclose(stats.fit, base + values, atol=1e-5)
    assert np.allclose(stats.sums[:, 0], expected, atol=1e-4)
    assert np.isclose(loose.fit, base + np.log1p(odds.sum(1)).sum(), rtol=1e-10)  # without once the plain mixture's
    assert loose.fit > stats.fit + 0.1  # as fewer ways are summed up


def test_once_is_nothing_to_workers_of_one_click() -> None:
    points = piles([6, 5, 4], deviation=8.0)
    mixture = mixture_of([(10, 10), (12, 35), (10, 58)], 50.0, np.full(15, 0.7))
    results = [em.sweep(Sweeper(points, 1), mixture, once=once)[1] for once in (True, False)]
    assert np.isclose(results[0].fit, results[1].fit, rtol=1e-12)
    assert np.allclose(results[0].sums, results[1].sums)


def test_a_worker_who_clicks_an_object_twice_tells_of_two_objects_or_a_slip() -> None:
    points = cw.Points({"image": ["a"] * 2, "worker": [1, 1], "x": [50, 51.0], "y": [50, 50.0]}, box=SQUARE)
    mixture = mixture_of([(50.5, 50)], 4.0, [0.9])
    loose, strict = (em.sweep(Sweeper(points, 1), mixture, once=once)[0].alpha[:, 0] for once in (False, True))
    assert (loose > 0.99).all()
    assert np.allclose(strict, 0.5, atol=0.01)


# --------------------------------------------------------------------------------------------------- the bound, in full


def bound(points: cw.Points, climbed: merge.Climbed) -> float:
    """(27) for one image without own noise, every term written out."""
    state, shapes = climbed.state, climbed.shapes
    M, D = state.mean.shape
    nu0, b0, m0, S = shapes.nu, shapes.b0[0], shapes.m0[0], shapes.S
    nu, beta, A, B = nu0 + state.n, b0 + state.n, state.A, state.B
    log_share = psi(1 + state.n) - psi(M + state.n.sum())
    log_det = np.linalg.slogdet(state.V)[1]
    degrees = (nu[:, None] + 1 - np.arange(1, D + 1)) / 2
    log_precision = psi(degrees).sum(1) + D * np.log(2) - log_det
    W = np.linalg.inv(state.V)
    away = points.X[:, None] - state.mean[None]
    q = nu * np.einsum("imd,mde,ime->im", away, W, away) + D / beta
    rho = log_share + 0.5 * log_precision - 0.5 * D * np.log(2 * np.pi) - 0.5 * q  # (22)
    log_g = -np.log(points.sides[0]).sum()
    hit, miss = psi(A) - psi(A + B), psi(B) - psi(A + B)
    r = points.worker
    parts = np.column_stack([hit[r][:, None] + rho, miss[r] + log_g])
    value = logsumexp(parts, axis=1).sum()
    total = gammaln(M + state.n.sum()) - gammaln(M) - gammaln(1 + state.n).sum() + (state.n * log_share).sum()
    value -= total  # KL of shares
    from_middle = np.einsum("md,mde,me->m", state.mean - m0, W, state.mean - m0)
    value -= 0.5 * (D * b0 / beta + b0 * nu * from_middle - D - D * np.log(b0 / beta)).sum()  # KL of means
    V0 = nu0 * S
    ratio = np.linalg.slogdet(V0)[1] - log_det
    trace = np.einsum("de,med->m", V0, W)
    gammas = multigammaln(nu0 / 2, D) - np.array([multigammaln(v / 2, D) for v in nu])
    value -= (-0.5 * nu0 * ratio + 0.5 * nu * (trace - D) + gammas + 0.5 * (nu - nu0) * psi(degrees).sum(1)).sum()
    value -= (betaln(3, 1.2) - betaln(A, B) + (A - 3) * hit + (B - 1.2) * miss).sum()  # KL of workers
    value += gammaln(M + 1)
    shape = np.linalg.slogdet(S)[1] - np.trace(S @ np.linalg.inv(shapes.S0))
    return float(value + 0.5 * nu0 * shape)


@pytest.mark.parametrize(("layout", "objects"), [("E", None), ("P1", 6), ("P2", 1)])
def test_the_evidence_is_the_bound_written_out(layout: str, objects: Any) -> None:
    points = cw.simulate.clicks(layout, total=300, seed=1).points
    model, trace = cw.ClickMixture(noise=False, once=False, objects=objects), Trace("")
    climbed = merge.merged(model, Sweeper(points, 1), ONE, trace)
    assert len(climbed.state.mean) == (objects or len(climbed.state.mean)) >= 1
    assert np.isclose(trace.rows[-1][0], bound(points, climbed), rtol=1e-7)
    worse = climbed._replace(state=climbed.state._replace(mean=climbed.state.mean + 0.02))
    assert bound(points, worse) < bound(points, climbed) - 1e-3


# ------------------------------------------------------------------------------------------------------------ the climb


@pytest.mark.parametrize("objects", [1, 10, 30])
def test_with_objects_given_the_papers_likelihood_never_falls(objects: int) -> None:
    sim = cw.simulate.clicks("P1", seed=objects)
    assert never_falls(cw.aggregate(sim.points, method="paper", objects=objects))


def test_with_several_images_the_papers_likelihood_never_falls(spotted: Spots) -> None:
    result = cw.aggregate(spotted.points, method="paper", objects=8)
    assert never_falls(result, least=3)
    assert result.criterion == "log-likelihood"


@pytest.mark.parametrize(("objects", "noise"), [(None, True), (None, False), (7, True)])
@pytest.mark.parametrize("once", [True, False])
def test_the_evidence_never_falls_while_objects_stay(once: bool, noise: bool, objects: Any, spotted: Spots) -> None:
    alone, several = spotted.points.only(np.array([1])), spotted.points
    if not once:
        alone = cw.simulate.clicks("E", seed=2).points
        frames = [cw.simulate.clicks(layout, total=300, seed=2).points.frame() for layout in ("E", "P1")]
        several = cw.Points(pl.concat([frames[0], frames[1].with_columns(image=pl.lit("other"))]), box=BOX)
    for points in (alone, several):
        result = cw.aggregate(points, once=once, noise=noise, objects=objects)
        assert result.criterion == "evidence"
        assert never_falls(result, least=2)


@pytest.mark.parametrize("once", [True, False])
def test_the_last_climb_never_falls(once: bool, spotted: Spots) -> None:
    """Plain Gaussians with priors and own noise."""
    points, sweeper = spotted.points, Sweeper(spotted.points, 1)
    result = cw.aggregate(points, once=once)
    p, rng = result.params, np.random.default_rng(0)
    off = rng.normal(scale=1.5, size=p.mean.shape)
    mixture = em.Mixture(p.ptr, p.mean + off, 3 * p.cov, p.share, np.full(points.n_workers, 0.5), np.ones_like(p.noise))
    priors, values = em.Priors(5.0, p.cov.mean(0), 3.0, 1.2), []
    for _ in range(30):
        _, stats = em.sweep(sweeper, mixture, once)
        values.append(stats.fit + em.log_prior(mixture, priors))
        mixture = em.maximise(stats, mixture, priors, points.sides, noise=True)
    assert values[-1] > values[0] + 10
    assert np.diff(values).min() >= -1e-8 * abs(values[-1])


def test_a_fit_can_be_watched_and_stopped(spotted: Spots) -> None:
    seen: list[Any] = []
    result = cw.aggregate(spotted.points, run=cw.Run(watch=seen.append))
    sweeps = [step.objective for step in seen if not np.isnan(step.objective)]
    assert sweeps == result.trace["objective"].to_list()
    images = [
        step for step in seen if np.isnan(step.objective)
    ]  # each image that was not done at the start, one by one
    assert all(1 <= step.iteration <= step.max_iter == spotted.points.n_images for step in images)
    assert [step.iteration for step in images] == sorted(step.iteration for step in images)
    for method in ("merge", "paper"):
        with pytest.raises(Interrupted, match="click-mixture was stopped after"):
            cw.aggregate(spotted.points, method=method, run=cw.Run(stop=lambda: True))


@pytest.mark.parametrize("settings", [{}, {"method": "paper", "start": 15}, {"once": True, "noise": False}], ids=str)
def test_one_seed_is_one_result_whatever_the_threads(
    settings: dict[str, Any], spotted: Spots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crowdwise.points.sweeps.BLOCK", 64)  # so that there is something to share out
    assert len(Sweeper(spotted.points, 1).blocks) > 3
    one, two, again = (cw.aggregate(spotted.points, run=cw.Run(seed=3, threads=n), **settings) for n in (1, 2, 2))
    assert same_bits(one, two)
    assert same_bits(two, again)


def test_blocks_change_nothing_but_the_last_digits(spotted: Spots, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = cw.aggregate(spotted.points)
    monkeypatch.setattr("crowdwise.points.sweeps.BLOCK", 16)
    parts = cw.aggregate(spotted.points)
    assert counts(whole) == counts(parts)
    assert np.allclose(whole.params.mean, parts.params.mean, atol=1e-6)


# -------------------------------------------------------------------------------------------------------- what is found


@pytest.mark.parametrize("layout", LAYOUTS)
def test_merging_finds_ten_of_ten(layout: str) -> None:
    for seed in range(3):
        sim, result = simulated(layout, seed)
        assert result.converged
        assert success(result, sim)
        assert not result.params.once
        assert np.abs(result.workers["reliability"] - sim.workers["reliability"]).mean() <= 0.16
        squared = (to_centres(result.params.mean, sim).min(1) ** 2).mean()
        assert squared < 0.012
        assert (result.params.probability > 0.5).all()


def test_the_papers_method_finds_most() -> None:
    sims = [cw.simulate.clicks(layout, seed=seed) for layout in LAYOUTS for seed in range(2)]
    results = [cw.aggregate(sim.points, method="paper", spread=(0.15, 0.25)) for sim in sims]
    assert sum(map(success, results, sims)) >= 5
    for sim, result in zip(sims, results, strict=True):
        assert np.abs(result.workers["reliability"] - sim.workers["reliability"]).mean() <= 0.2
        assert result.best is not None
        assert result.sweeps[result.best - 1, 0] == result.sweeps[:, 0].max()  # the best of all sweeps
        assert result.sweeps[result.best - 1, 1] == len(result.params.mean)


def test_clicks_that_gather_nowhere_are_no_objects() -> None:
    found = []
    for seed in range(5):
        X = np.random.default_rng(seed).random((200, 2)) * 100
        frame = {"image": ["a"] * 200, "worker": np.arange(200) % 10, "x": X[:, 0], "y": X[:, 1]}
        found.append(counts(cw.aggregate(cw.Points(frame, box=SQUARE)))[0])
    assert sum(found) <= 1


def test_spots_are_found_in_every_image(spotted: Spots) -> None:
    result = cw.aggregate(spotted.points)
    assert result.params.once  # found out
    match = cw.match_objects(result, spotted.truth, within=3)
    assert match["f1"].min() >= 0.93
    assert (result.clicks["outlier"] > 0.5).mean() == pytest.approx(0.22, abs=0.08)
    noise = np.random.default_rng(0).uniform(0.5, 1.5, 10)  # as `spots` draws it
    assert np.corrcoef(result.workers["spread"], noise)[0, 1] > 0.8


def test_a_large_image_is_searched_by_a_part_of_its_clicks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdwise.points.starts.LARGE", 500)
    sim, whole = simulated("E", 1)
    by_part = cw.aggregate(sim.points)
    assert success(by_part, sim)
    assert np.allclose(by_part.params.mean, whole.params.mean, atol=0.02)
    assert not same_bits(by_part, whole)
    assert by_part.clicks.height == 850


@pytest.mark.parametrize("method", ["merge", "paper"])
@pytest.mark.parametrize("objects", [1, 3, 8, 13])
def test_objects_are_as_many_as_asked_for(method: Any, objects: int, spotted: Spots) -> None:
    result = cw.aggregate(spotted.points, method=method, objects=objects)
    assert counts(result) == [objects] * 3
    assert finite(result)


@pytest.mark.parametrize("method", ["merge", "paper"])
@pytest.mark.parametrize("size", [10, 200])
def test_at_least_so_many_objects_are_found(method: Any, size: int) -> None:
    points = cw.Points(cw.simulate.clicks("E", seed=6).points.frame()[:size], box=BOX)
    plain = cw.aggregate(points, method=method)
    few, many = (counts(cw.aggregate(points, method=method, at_least=n))[0] for n in (1, min(14, size)))
    assert few >= 1
    assert many >= min(14, size)
    assert many > counts(plain)[0] or size == 10


def test_once_is_taken_from_the_clicks() -> None:
    few = cw.simulate.clicks("E", workers=60, seed=1)  # 14 clicks of each
    assert not cw.aggregate(few.points).params.once
    for seed in range(3):
        assert cw.aggregate(spots(2, seed=seed).points).params.once


@pytest.mark.parametrize("seed", [16, 19, 25])
def test_few_clicks_of_workers_who_click_twice_are_told_apart(seed: int) -> None:
    """Sixty clicks on three places, each worker some on each: with a wrong `once` they would be one wide object."""
    x = np.repeat([1, 5, 9], 20) + np.random.default_rng(seed).normal(size=60) * 0.1
    result = cw.aggregate(cw.Points({"image": ["a"] * 60, "worker": list("uvwxyz") * 10, "x": x}, axes=["x"]))
    assert np.allclose(result.params.mean[:, 0], [1, 5, 9], atol=0.1)


def test_intervals_hold_the_reliability() -> None:
    inside = []
    for layout, seed in product(LAYOUTS, range(3)):
        sim, result = simulated(layout, seed)
        table, true = result.workers, sim.workers["reliability"]
        assert ((table["low"] <= table["reliability"]) & (table["reliability"] <= table["high"])).all()
        assert table["low"].min() >= 0
        assert table["high"].max() <= 1
        assert (table["high"] - table["low"]).mean() < 0.5
        assert np.corrcoef(table["reliability"], true)[0, 1] > 0.6
        inside.append(((table["low"] <= true) & (true <= table["high"])).mean())
    assert np.mean(inside) >= 0.75  # 95 % if objects were known


@pytest.mark.parametrize("kind", ["once", "as often as they like"])
def test_soft_assignments_are_those_of_the_clicks(kind: str, spotted: Spots) -> None:
    result = cw.aggregate(spotted.points) if kind == "once" else simulated("P1", 1)[1]
    assert bool(result.params.once) == (kind == "once")
    for image in result.points.images:
        table, clicks = cw.soft_assignments(result, image, least=1e-9), result.clicks.with_row_index("click")
        assert table.columns == ["click", "worker", "object", "probability"]
        both = table.join(clicks, on="click", suffix="_best").filter(pl.col("image") == image)
        assert both.height == table.height
        assert (both["worker"] == both["worker_best"]).all()
        total = both.group_by("click").agg(pl.col("probability").sum(), pl.col("outlier").first())
        assert np.allclose(total["probability"] + total["outlier"], 1, atol=1e-5)
        likely = both.filter(pl.col("object") == pl.col("object_best"))
        assert likely.height == clicks.filter(pl.col("image") == image)["object"].count() > 50
        assert np.allclose(likely["probability"], likely["probability_best"], atol=1e-5)
        assert table.filter(pl.col("probability") >= 0.3).equals(cw.soft_assignments(result, image, least=0.3))
        expected = table.group_by("object").agg(pl.col("probability").sum()).sort("object")["probability"]
        assert np.allclose(expected, result.of(image)["clicks"], atol=1e-3)
    with pytest.raises(cw.errors.UnknownIdError, match="no image 'nowhere' in these clicks"):
        cw.soft_assignments(result, "nowhere")


def test_hard_assignments_are_not_told_as_soft_ones(spotted: Spots) -> None:
    with pytest.raises(ParameterError, match="dbscan assigns clicks hard"):
        cw.soft_assignments(cw.aggregate(spotted.points, "dbscan"), "i0")
    stream = cw.ClickStream().partial_fit(spotted.points)
    assert cw.soft_assignments(stream.result(spotted.points), "i0").height > 50


def test_what_is_told_keeps_its_bounds(spotted: Spots) -> None:
    for name, chosen in {"click-mixture": {}, **BASELINES}.items():
        result = cw.aggregate(spotted.points, name, **chosen)
        o, w, c = result.objects, result.workers, result.clicks
        assert o["probability"].is_between(0, 1).all()
        assert c["outlier"].is_between(0, 1).all()
        assert c["probability"].drop_nulls().is_between(0, 1 + 1e-9).all()
        assert (c["object"].is_null() == (c["outlier"] >= 0.5)).all()
        assert (o["supporters"] <= o["jobs"]).all()
        assert np.allclose(o.group_by("image").agg(pl.col("share").sum())["share"], 1)
        assert w["hit_rate"].is_between(0, 1).all()
        assert ((w["hit_low"] <= w["hit_rate"]) & (w["hit_rate"] <= w["hit_high"])).all()
        assert np.linalg.eigvalsh(result.params.cov).min() >= 0
        assert c.height == spotted.points.n_clicks == w["clicks"].sum()
        for image in ("i0", "i1"):
            assert result.of(image)["object"].to_list() == list(range(1, result.of(image).height + 1))


# ------------------------------------------------------------------------------------------------------------ real data


def real(folder: Path, name: str, images: Any = None) -> tuple[cw.Points, pl.DataFrame]:
    frames = [pl.read_parquet(folder / name / f"{part}.parquet") for part in ("points", "jobs", "points_truth")]
    if images is not None:
        frames = [frame.filter(pl.col("image").is_in(images)) for frame in frames]
    return cw.Points(frames[0], jobs=frames[1]), frames[2]


def mean_f1(result: cw.PointsResult, truth: pl.DataFrame) -> float:
    match = cw.match_objects(result, truth, within=4)
    assert match["image"].sort().to_list() == result.points.images.to_list()
    return float(match["f1"].mean())  # type: ignore[arg-type]


def test_beads_are_found(shared_data: Path) -> None:
    points, truth = real(shared_data, "beads")
    result = cw.aggregate(points)
    assert points.box_from == "jobs"
    assert mean_f1(result, truth) > 0.955
    assert result.params.once
    assert np.diff(points.job_ptr).min() == 0  # somebody saw nothing


def test_spots_of_real_workers_are_found(shared_data: Path) -> None:
    name = "MAX_{}ISP_300_1_nspots{}_spot_sig1.75_snr10_2.5spot_img"
    points, truth = real(shared_data, "fish_spots", [name.format(*a) for a in (("C3-", 50), ("", 50), ("", 100))])
    result = cw.aggregate(points)
    assert points.n_images == 3
    assert mean_f1(result, truth) > 0.87


def test_own_noise_helps_where_workers_differ(shared_data: Path) -> None:
    points, truth = real(shared_data, "smfish_cells")
    # a start is given to save time; found out it is twice as many, which is better still
    with_it, without = (mean_f1(cw.aggregate(points, noise=noise, start=160), truth) for noise in (True, False))
    assert with_it > 0.52
    assert with_it > without + 0.02


# ------------------------------------------------------------------------------------------------------ shards, streams


@pytest.mark.parametrize("once", [True, False])
def test_statistics_of_shards_add_up(once: bool, spotted: Spots) -> None:
    points = spotted.points
    p = cw.aggregate(points, once=once).params
    mixture = em.Mixture(p.ptr, p.mean + 0.5, 2 * p.cov, p.share, p.reliability, p.noise)
    _, whole = em.sweep(Sweeper(points, 1), mixture, once)
    parts = [em.sweep(Sweeper(shard, 1), mixture, once)[1] for shard in points.shards(3)]
    assert min(part.sums[:, 0].sum() for part in parts) > 10
    total = parts[0].plus(parts[1]).plus(parts[2])
    assert all(np.allclose(a, b, rtol=1e-9, atol=1e-9) for a, b in zip(total, whole, strict=True))
    priors = em.Priors(5.0, p.cov.mean(0), 3.0, 1.2)
    one, two = (em.maximise(stats, mixture, priors, points.sides, noise=True) for stats in (total, whole))
    assert close(one, two)
    assert not close(one, mixture, 1e-2)


def batches(sim: cw.simulate.ClickCrowd, count: int) -> list[cw.Points]:
    frame = sim.points.frame().sample(fraction=1.0, shuffle=True, seed=1)
    cuts = np.linspace(0, frame.height, count + 1).astype(int)
    return [cw.Points(frame[a:b], box=BOX) for a, b in pairwise(cuts)]


def test_a_stream_comes_nearer_with_every_batch() -> None:
    sim, stream, error = cw.simulate.clicks("E", total=4000, seed=5), cw.ClickStream(), []
    for batch in batches(sim, 8):
        stream.partial_fit(batch)
        error.append((to_centres(stream.objects.select("x", "y").to_numpy(), sim).min(1) ** 2).mean())
    assert error[-1] < 0.75 * error[0]
    assert error[-1] < 0.004
    assert repr(stream) == "ClickStream(8 batches, 4000 clicks, 1 image, 10 objects, 20 workers)"
    assert stream.workers["clicks"].sum() == 4000
    assert stream.objects["share"].sum() == pytest.approx(1)
    assert stream.objects["clicks"].sum() < 4000
    both = stream.workers.join(sim.workers, on="worker")
    assert np.abs(both["reliability"] - both["reliability_right"]).mean() < 0.12


def test_a_stream_follows_what_moves() -> None:
    rng, stream = np.random.default_rng(0), cw.ClickStream(cw.ClickMixture(objects=2, once=False))
    for k in range(30):
        centres = np.array([(30.0, 30.0), (70.0, 60.0)]) + (1.5 if k else 0.0)
        X = np.repeat(centres, 30, axis=0) + rng.normal(scale=[1.0, 3.0], size=(60, 2))
        frame = {"image": ["a"] * 60, "worker": np.arange(60) % 6, "x": X[:, 0], "y": X[:, 1]}
        stream.partial_fit(cw.Points(frame, box=SQUARE))
    assert np.allclose(stream.objects.select("x", "y").sort("x"), centres, atol=0.4)
    spread = stream.result(cw.Points(frame, box=SQUARE)).objects
    assert np.allclose(spread["var_x"], 1, atol=0.3)
    assert np.allclose(spread["var_y"], 9, atol=2.0)


def test_a_stream_meets_new_workers_and_images() -> None:
    every = spots(3, workers=8, seed=3)
    frame = every.points.frame()
    late, late_image = pl.col("worker").is_in(["w6", "w7"]), pl.col("image") == "i2"
    stream = cw.ClickStream()
    for part in (frame.filter(~late & ~late_image), frame.filter(late & ~late_image), frame.filter(late_image)):
        stream.partial_fit(cw.Points(part, box=SQUARE))
    assert stream.workers["worker"].to_list() == [f"w{k}" for k in range(8)]
    sent = frame.group_by("worker").len().sort("worker")["len"].to_list()
    assert stream.workers["clicks"].to_list() == sent
    match = cw.match_objects(stream.objects, every.truth, within=3)
    assert match["f1"].min() > 0.85
    result = stream.result(every.points)
    assert counts(result) == stream.objects.group_by("image", maintain_order=True).len()["len"].to_list()
    assert result.clicks.height == every.points.n_clicks
    assert finite(result)


def test_what_a_stream_is_asked_it_does_not_learn() -> None:
    sim = cw.simulate.clicks("E", seed=3)
    stream = cw.ClickStream().partial_fit(sim.points)
    before = (repr(stream), stream.objects, stream.workers)
    strange = cw.Points({"image": ["image"], "worker": ["stranger"], "x": [2.0], "y": [2.0]}, box=BOX)
    assert stream.result(strange).workers["worker"].to_list() == ["stranger"]
    assert repr(stream) == before[0]
    assert stream.objects.equals(before[1])
    assert stream.workers.equals(before[2])


def test_a_stream_refuses_what_it_cannot_place() -> None:
    stream = cw.ClickStream().partial_fit(cw.simulate.clicks("E", seed=3).points)
    other = {"image": ["other"], "worker": ["w01"], "x": [2.0], "y": [2.0]}
    with pytest.raises(DataError, match=r"the stream has not seen image 'other' \(1 such\)"):
        stream.result(cw.Points(other, box=BOX))
    known = {**other, "image": ["image"]}
    with pytest.raises(DataError, match="box"):
        stream.partial_fit(cw.Points(known, box=(0, 0, 9, 9)))
    with pytest.raises(DataError, match="the batch has coordinates u, v, the stream x, y"):
        stream.partial_fit(
            cw.Points({"image": ["image"], "worker": ["w"], "u": [2], "v": [2]}, axes=["u", "v"], box=BOX)
        )
    for call in (stream.partial_fit, stream.result):
        with pytest.raises(DataError, match=r"got dict\. Give crowdwise\.Points"):
            call(known)
    assert repr(stream) == "ClickStream(1 batches, 850 clicks, 1 image, 10 objects, 20 workers)"


def test_an_image_that_had_no_clicks_is_looked_at_when_it_has() -> None:
    frame = spots(2, seed=1).points.frame()
    one, two = (frame.filter(pl.col("image") == image) for image in ("i0", "i1"))
    stream = cw.ClickStream().partial_fit(cw.Points(one, box=SQUARE, jobs={"image": ["i1"], "worker": ["w0"]}))
    assert set(stream.objects["image"]) == {"i0"}
    stream.partial_fit(cw.Points(one[:5], box=SQUARE, jobs={"image": ["i2"], "worker": ["w0"]}))
    stream.partial_fit(cw.Points(two, box=SQUARE))
    assert set(stream.objects["image"]) == {"i0", "i1"}


def test_a_few_clicks_do_not_decide_for_all_that_workers_click_once() -> None:
    sims = [cw.simulate.clicks("E", seed=seed) for seed in range(3)]
    stream = cw.ClickStream().partial_fit(sims[0].points)
    stream.partial_fit(
        cw.Points({"image": ["n"] * 3, "worker": list("abc"), "x": [2, 2, 2.1], "y": [2, 2.1, 2]}, box=BOX)
    )
    assert not stream.result(sims[0].points).params.once


@pytest.mark.parametrize("chosen", [{"rate": 0.5}, {"rate": 1.5}, {"rate": float("nan")}, {"delay": -1}], ids=str)
def test_a_stream_needs_steps_that_fall(chosen: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match=r"rate is .* and delay"):
        cw.ClickStream(**chosen)
    with pytest.raises(ParameterError, match="a stream needs a ClickMixture"):
        cw.ClickStream(cw.Dbscan())  # type: ignore[arg-type]


# -------------------------------------------------------------------------------------------------------- save and load


@pytest.mark.parametrize("name", ["click-mixture", "paper", *BASELINES])
def test_a_saved_result_comes_back(name: str, tmp_path: Path, spotted: Spots) -> None:
    chosen = {"method": "paper", "spread": (9.0, 9.0), "objects": 5} if name == "paper" else BASELINES.get(name, {})
    points = cw.Points(
        spotted.points.frame().with_columns(note=pl.lit("é"), day=pl.date(2020, 1, 1)),
        jobs={"image": ["blank"], "worker": ["idle"]}, box=SQUARE,
    )  # fmt: skip
    result = cw.aggregate(points, "click-mixture" if name == "paper" else name, run=cw.Run(seed=7), **chosen)
    again = cw.load(result.save(tmp_path / "kept"))
    assert isinstance(again, cw.PointsResult)
    assert all(table.equals(tables(again)[key]) for key, table in tables(result).items())
    assert again.model == result.model
    assert again.warnings == result.warnings
    assert again.points.intake == points.intake
    assert repr(again) == repr(result)
    told = ("criterion", "best", "converged", "seed", "seconds", "versions")
    assert [getattr(again, field) for field in told] == [getattr(result, field) for field in told]
    assert same_bits(again.model.fit(again.points, cw.Run(seed=7)), result)  # and can be fitted again


def test_a_changed_byte_is_noticed(tmp_path: Path, spotted: Spots) -> None:
    path = cw.aggregate(spotted.points, "dbscan").save(tmp_path / "result.crowdwise")
    whole = path.read_bytes()
    for at in np.linspace(100, len(whole) - 2000, 12).astype(int):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        with pytest.raises(ChecksumError):
            cw.load(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ChecksumError):
        cw.load(path)
    path.write_bytes(whole)
    assert isinstance(cw.load(path), cw.PointsResult)


# ------------------------------------------------------------------------------------------------------------ baselines


def hard(name: str) -> cw.Points:
    """An image with clicks apart, one with one click, one with none."""
    clicks = {"image": ["a"] * 4 + ["b"], "worker": list("uvwxu"), "x": [1, 30, 60, 90, 5], "y": [1, 90, 30, 60, 5]}
    return cw.Points(clicks, jobs={"image": ["c"], "worker": ["u"]}, box=SQUARE)


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_tell_what_the_mixture_tells(name: str, spotted: Spots) -> None:
    ours, theirs = cw.aggregate(spotted.points), cw.aggregate(spotted.points, name, **BASELINES[name])
    for table in tables(ours):
        assert tables(theirs)[table].schema == tables(ours)[table].schema
    assert theirs.trace.is_empty()
    assert theirs.converged
    assert finite(theirs)
    assert np.allclose(theirs.objects["clicks"].sum(), theirs.clicks["object"].count())
    for (image, number), part in theirs.clicks.drop_nulls("object").group_by("image", "object"):
        row = theirs.of(image).row(int(number) - 1, named=True)
        assert np.allclose((row["x"], row["y"]), part.select(pl.col("x", "y").mean()).row(0))
        assert row["supporters"] == part.filter(pl.col("probability") >= 0.5)["worker"].n_unique()
        assert row["probability"] == pytest.approx(row["supporters"] / row["jobs"])
        assert row["var_x"] == pytest.approx(part["x"].var(ddof=0))


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_take_hard_images(name: str) -> None:
    result = cw.aggregate(hard(name), name, **BASELINES[name])
    assert finite(result)
    assert result.images["image"].to_list() == ["a", "b", "c"]
    assert counts(result)[2] == 0
    assert {key: table.schema for key, table in tables(result).items()} == {
        key: table.schema for key, table in tables(cw.aggregate(hard(name), "dbscan", at_least=1)).items()
    }
    if name in ("dbscan", "hdbscan"):  # all are outliers
        assert counts(result) == [0, 0, 0]
        assert result.clicks["object"].null_count() == 5
        assert result.clicks["outlier"].to_list() == [1.0] * 5
        assert result.workers["reliability"].to_list() == [0.0] * 4
        assert result.workers["hit_rate"].null_count() == 4
    else:
        assert counts(result) == [4, 1, 0]
        assert result.clicks["outlier"].to_list() == [0.0] * 5


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_find_what_lies_apart(name: str) -> None:
    points = piles([9, 9, 9, 9], deviation=0.5)
    result = cw.aggregate(points, name, **BASELINES[name])
    true = pl.DataFrame({"image": ["a"] * 4, "x": [10.0] * 4, "y": [10.0, 35, 60, 85]})
    assert cw.match_objects(result, true, within=1)["f1"].to_list() == [1.0]
    assert same_bits(result, cw.aggregate(points, name, **BASELINES[name]))


@pytest.mark.parametrize("fuzziness", [1.01, 1.5, 2.0, 8.0])
def test_fuzzy_clusters_of_any_fuzziness_are_numbers(fuzziness: float) -> None:
    frame = {"image": ["a"] * 40, "worker": list("uvwx") * 10, "x": np.repeat([10, 500], 20) + np.arange(40) * 0.1,
             "y": np.repeat([10, 500], 20)}  # fmt: skip
    result = cw.aggregate(cw.Points(frame), "fuzzy-c-means", objects=2, fuzziness=fuzziness)
    assert finite(result)
    assert counts(result) == [2]
    assert np.allclose(np.sort(result.objects["clicks"]), [20, 20])


# ------------------------------------------------------------------------------------------------------------- matching


def places(*rows: tuple[Any, float, float]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"image": type(rows[0][0]), "x": float, "y": float}, orient="row")


def test_matching_by_hand() -> None:
    found = places(("a", 0, 0), ("a", 10, 0), ("a", 50, 50), ("b", 5, 5), ("d", 1, 1))
    truth = places(("a", 0, 3), ("a", 10, 4), ("b", 5, 11), ("c", 9, 9))
    table = cw.match_objects(found, truth, within=5)
    assert table.columns == ["image", "found", "true", "matched", "precision", "recall", "f1", "error"]
    rows = {row["image"]: row for row in table.iter_rows(named=True)}
    assert set(rows) == {"a", "b", "c", "d"}
    assert [rows["a"][c] for c in ("found", "true", "matched", "precision", "recall")] == [3, 2, 2, 2 / 3, 1.0]
    assert rows["a"]["f1"] == pytest.approx(0.8)
    assert rows["a"]["error"] == pytest.approx(np.sqrt((9 + 16) / 2))
    assert [rows["b"][c] for c in ("found", "true", "matched", "f1", "error")] == [1, 1, 0, 0.0, None]
    assert [rows["c"][c] for c in ("found", "true", "matched", "precision", "recall", "f1")] == [0, 1, 0, 0.0, 0.0, 0.0]
    assert [rows["d"][c] for c in ("found", "true", "matched", "precision", "recall", "f1")] == [1, 0, 0, 0.0, 0.0, 0.0]
    assert cw.match_objects(found, truth, within=6)["matched"].sum() == 3  # the bound itself is within


def test_matching_takes_as_many_pairs_as_can_be() -> None:
    """The nearest pair first would leave one true object alone."""
    found, truth = places(("a", 0, 0), ("a", 3, 0)), places(("a", 2, 0), ("a", 6.5, 0))
    table = cw.match_objects(found, truth, within=3.6)
    assert table["matched"].to_list() == [2]
    assert table["error"][0] == pytest.approx(np.sqrt((4 + 3.5**2) / 2))
    crowd = places(*[("a", k, 0) for k in range(10)])
    assert cw.match_objects(crowd, places(("a", 4, 0)), within=20).select("matched", "f1", "error").row(0) == (
        1,
        2 / 11,
        0,
    )


def test_matching_counts_images_without_objects() -> None:
    result = cw.aggregate(hard("dbscan"), "dbscan")
    table = cw.match_objects(result, places(("a", 1, 1)), within=2)
    assert table.select("image", "found", "true", "f1").rows() == [("a", 0, 1, 0.0), ("b", 0, 0, 1.0), ("c", 0, 0, 1.0)]


def test_matching_is_symmetric_and_bounded() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        one, two = (places(*[("a", *p) for p in (rng.random((n, 2)) * 10).tolist()]) for n in rng.integers(1, 12, 2))
        there, back = (cw.match_objects(a, b, within=1.5).row(0, named=True) for a, b in ((one, two), (two, one)))
        assert there["matched"] == back["matched"] <= min(one.height, two.height)
        assert (there["precision"], there["recall"]) == (back["recall"], back["precision"])
        assert 0 <= there["f1"] <= 1
        assert there["error"] is None or there["error"] <= 1.5


def test_matching_takes_many_images_without_a_pair() -> None:
    names = [f"{k:03d}" for k in range(150)]
    found = pl.DataFrame({"image": names, "x": [0.0] * 150, "y": [0.0] * 150})
    truth = found.with_columns(x=pl.when(pl.int_range(150) < 120).then(50.0).otherwise(0.0))
    assert cw.match_objects(found, truth, within=1)["matched"].sum() == 30


@pytest.mark.parametrize("within", [0, -1, float("nan"), float("inf"), "3", None])
def test_matching_needs_a_distance(within: Any) -> None:
    with pytest.raises(ParameterError, match="it must be a distance above 0"):
        cw.match_objects(places(("a", 0, 0)), places(("a", 0, 0)), within=within)


@pytest.mark.parametrize(("truth", "said"), [
    ({"image": ["a"], "q": [1.0]}, "no column 'x'"),
    ({"image": ["a"], "x": ["east"], "y": [1.0]}, "x"),
    ({"image": [1], "x": [1.0], "y": [1.0]}, "image"),
])  # fmt: skip
def test_matching_refuses_what_it_cannot_compare(truth: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        cw.match_objects(places(("a", 0, 0)), truth, within=1)


# --------------------------------------------------------------------------------------------------- names and settings


def test_aggregate_knows_clicks_from_labels(spotted: Spots) -> None:
    assert isinstance(cw.aggregate(spotted.points), cw.PointsResult)
    assert cw.aggregate(spotted.points).model == cw.ClickMixture()
    assert cw.aggregate(spotted.points, "k-means", objects=2).model == cw.KMeansClicks(objects=2)
    labels = {"task": [1, 1], "worker": ["a", "b"], "label": ["x", "y"]}
    assert isinstance(cw.aggregate(labels), cw.Result)
    with pytest.raises(DataError, match=r"click-mixture finds objects in clicks; got dict\. Give crowdwise\.Points"):
        cw.aggregate(labels, "click-mixture")
    with pytest.raises(ParameterError, match="no model 'dawid-skene'; there are click-mixture, dbscan"):
        cw.aggregate(spotted.points, "dawid-skene")
    for answers in (labels, spotted.points):
        with pytest.raises(ParameterError, match=r"click-mixture has no setting 'objcts'.*Did you mean 'objects'"):
            cw.aggregate(answers, "click-mixture", objcts=3)
    assert set(cw.POINT_MODELS) == {"click-mixture", *BASELINES}
    assert not set(cw.POINT_MODELS) & set(cw.MODELS)


WRONG = [
    ("click-mixture", {"objects": 0}), ("click-mixture", {"objects": 2.5}), ("click-mixture", {"objects": True}),
    ("click-mixture", {"at_least": -1}), ("click-mixture", {"start": 0}), ("click-mixture", {"start": 3, "objects": 5}),
    ("click-mixture", {"start": 3, "at_least": 5}), ("click-mixture", {"objects": 2, "at_least": 5}),
    ("click-mixture", {"method": "em"}), ("click-mixture", {"criterion": "aic"}), ("click-mixture", {"once": "yes"}),
    ("click-mixture", {"noise": None}), ("click-mixture", {"freedom": 0}), ("click-mixture", {"freedom": float("nan")}),
    ("click-mixture", {"hits": 1}), ("click-mixture", {"misses": 0.5}), ("click-mixture", {"max_iter": 0}),
    ("click-mixture", {"spread": (1.0, -1.0)}), ("click-mixture", {"spread": (1.0, 0.0)}),
    ("click-mixture", {"spread": "wide"}), ("click-mixture", {"spread": 3.0}),
    ("fuzzy-c-means", {"fuzziness": 1.0}), ("fuzzy-c-means", {"objects": 0}), ("fuzzy-c-means", {"tol": 0.0}),
    ("k-means", {"objects": 0}), ("dbscan", {"distance": 0.0}), ("dbscan", {"at_least": 0}),
    ("hdbscan", {"at_least": 1}), ("hdbscan", {"samples": 0}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "chosen"), WRONG, ids=str)
def test_wrong_settings_are_refused_before_any_work(name: str, chosen: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=f"{name}: .*{next(iter(chosen))}"):
        cw.model(name, **chosen)


@pytest.mark.parametrize("freedom", [0.5, 1.0])
def test_a_shape_that_counts_for_too_few_clicks_is_refused(freedom: float, spotted: Spots) -> None:
    """A Wishart distribution has more degrees of freedom than coordinates less one."""
    with pytest.raises(ParameterError, match="freedom"):
        cw.aggregate(spotted.points, freedom=freedom)
    assert finite(cw.aggregate(spotted.points, freedom=1.1))


def test_a_start_of_other_coordinates_is_refused(spotted: Spots) -> None:
    with pytest.raises(ParameterError, match="spread has 1 variances, the clicks have 2 coordinates"):
        cw.aggregate(spotted.points, method="paper", spread=(1.0,))


# ------------------------------------------------------------------------------------------------------- made-up clicks


def test_simulated_clicks_are_as_they_are_told() -> None:
    sim = cw.simulate.clicks("P2", total=20_000, workers=40, seed=3)
    p = sim.points
    assert (p.n_clicks, p.n_workers, p.box.tolist()) == (20_000, 40, [[[1, 0], [4, 5]]])
    on = sim.on.is_not_null().to_numpy()
    right = np.bincount(p.worker[on], minlength=40) / np.bincount(p.worker)
    assert np.abs(right - sim.workers["reliability"]).max() < 0.08
    assert sorted(set(sim.workers["reliability"])) == [0.25, 0.75, 0.95]
    number = sim.on.to_numpy()[on].astype(int) - 1
    assert np.allclose(np.bincount(number) / on.sum(), 0.1, atol=0.01)
    away = (p.X[on] - sim.centres[number])[number == 2]  # far from the edge of the box
    assert np.allclose(away.std(0), np.sqrt([0.04, 0.05]), atol=0.01)
    assert np.allclose(away.mean(0), 0, atol=0.02)
    again = cw.simulate.clicks("P2", total=20_000, workers=40, seed=3)
    assert again.points.frame().equals(p.frame())
    assert not cw.simulate.clicks("P2", seed=4).points.frame().equals(cw.simulate.clicks("P2", seed=5).points.frame())
    paper_like = cw.simulate.clicks(seed=0).points
    assert paper_like.n_clicks == 850
    assert np.isin(np.bincount(paper_like.worker), range(36, 49)).all()


@pytest.mark.parametrize("chosen", [
    {"layout": "Q"}, {"layout": [(1, 2, 3)]}, {"layout": []}, {"layout": [(100.0, 100.0)]},
    {"layout": [(float("nan"), 1.0)]}, {"layout": [(2.0, 2.0)] * 11}, {"workers": 0}, {"workers": 30, "total": 20},
], ids=str)  # fmt: skip
def test_what_cannot_be_simulated_is_refused(chosen: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        cw.simulate.clicks(**chosen)


# ------------------------------------------------------------------------------------------------------------ any table


@st.composite
def clicked(draw: Any) -> tuple[cw.Points, dict[str, Any]]:
    """1 to 30 clicks of up to 6 workers on up to 3 images, on a coarse grid, a line or anywhere; and settings."""
    size = draw(st.integers(1, 30))
    step = draw(st.sampled_from([1, 10, 50, 100]))
    coarse = st.integers(0, 100 // step).map(lambda k: float(k * step))
    place = draw(st.sampled_from([coarse, st.floats(0, 100), st.just(50.0)]))
    column = lambda values: draw(st.lists(values, min_size=size, max_size=size))  # noqa: E731
    images, workers = draw(st.integers(0, 2)), draw(st.integers(0, 5))
    frame = {
        "image": column(st.integers(0, images)), "worker": column(st.integers(0, workers)),
        "x": column(coarse if draw(st.booleans()) else st.floats(0, 100)), "y": column(place),
    }  # fmt: skip
    jobs = {"image": [draw(st.integers(0, 3))], "worker": [draw(st.integers(0, 6))]} if draw(st.booleans()) else None
    box = draw(st.sampled_from([SQUARE, None]))
    rule = draw(st.sampled_from(["first", "each"]))
    chosen = draw(st.sampled_from([{}, {}, {"once": False}, {"once": True}, {"method": "paper"}, {"at_least": 2}]))
    return cw.Points(frame, jobs=jobs, box=box, duplicates=rule, unit="pixels"), chosen


@given(clicked())
@settings(max_examples=50)
def test_any_clicks_give_finite_answers(given_: tuple[cw.Points, dict[str, Any]]) -> None:
    points, chosen = given_
    result = cw.ClickMixture(**chosen).fit(points)
    assert finite(result)
    assert result.objects["probability"].is_between(0, 1).all()
    assert np.allclose(result.objects.group_by("image").agg(pl.col("share").sum())["share"], 1)
    assert result.clicks.select("image", "worker", "x", "y").equals(points.frame().select("image", "worker", "x", "y"))
    assert result.clicks["outlier"].is_between(0, 1).all()
    assert result.images["image"].equals(points.images.alias("image"))
    assert result.workers.height == points.n_workers
    assert ((result.workers["low"] <= result.workers["reliability"]) & result.workers["high"].is_between(0, 1)).all()
    low, high = points.box[result.image_of, 0], points.box[result.image_of, 1]
    assert ((result.params.mean >= low - 1e-6) & (result.params.mean <= high + 1e-6)).all()


# ------------------------------------------------------------------------------------------- nothing there, and decoys


@pytest.mark.parametrize(("workers", "each"), [(10, 6), (20, 20)])
def test_clicks_that_agree_on_nothing_have_no_objects(workers: int, each: int) -> None:
    """Workers are believed to click on objects, which alone would make some: one wide one, or what met by chance."""
    for seed in range(3):
        X = np.random.default_rng(seed).uniform(0, 500, (workers * each, 2))
        frame = {"image": ["a"] * len(X), "worker": np.repeat(np.arange(workers), each), "x": X[:, 0], "y": X[:, 1]}
        result = cw.aggregate(cw.Points(frame, box=(0, 0, 500, 500)))
        assert result.objects.height == 0
        assert result.params.outlier.min() == 1.0


def test_what_few_of_those_who_looked_click_on_is_doubted() -> None:
    rng = np.random.default_rng(0)
    places = np.stack(np.meshgrid([60, 180, 300, 420], [60, 180, 300, 420]), axis=-1).reshape(-1, 2)
    rows = [(w, *(place + rng.normal(0, 3, 2))) for w in range(20) for place in places[:-1] if rng.random() < 0.9]
    rows += [(w, *(places[-1] + rng.normal(0, 3, 2))) for w in range(4)]  # four of twenty, and they agree
    frame = pl.DataFrame(rows, schema=["worker", "x", "y"], orient="row").with_columns(image=pl.lit("a"))
    objects = cw.aggregate(cw.Points(frame, box=(0, 0, 480, 480))).objects
    assert objects.height == 16
    doubted = objects.filter(pl.col("supporters") == 4)["probability"].item()
    assert doubted < 0.9
    assert objects.filter(pl.col("supporters") > 10)["probability"].min() > 0.99
