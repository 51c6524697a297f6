"""Objects from clicks: EM, sums over matchings and the evidence, against slow reference implementations."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from clicking import ONE, SQUARE, counts, fitted, piles, spotted
from scipy import special
from scipy import stats as distributions
from scipy.special import betaln, gammaln, logsumexp, multigammaln, psi

import crowdwise as cw
from crowdwise.engine import Trace
from crowdwise.kernels import choose_clicks
from crowdwise.kernels.clicks import match
from crowdwise.kernels.fast.assigning import _match
from crowdwise.kernels.layout import plus
from crowdwise.points import em, image_fit, merge, paper, summary
from crowdwise.points.e_step import Local, Stats, e_step

pytestmark = [pytest.mark.usefixtures("click_kernels"), pytest.mark.filterwarnings("error")]


def assigned(points: cw.Points, mixture: em.Mixture, once: bool, best: bool = False) -> tuple[Local, Stats]:
    """One E-step, and its results for every click."""
    return e_step(points, None, em.object_terms(mixture), em.worker_terms(mixture), once, em.CUT, 1, best)


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
    """Clicks around three places per image in D coordinates, with outliers; and a mixture that is not yet right."""
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
        local, stats = assigned(points, mixture, once=False)
        assert np.isclose(stats.fit, fit, rtol=1e-12)
        better = em.maximise(stats, mixture, em.Priors(), points.sides)
        assert close(better, after)
        assert not close(better, mixture, 1e-3)
        mixture = better
    assert np.isclose(local.alpha[:, 0].sum(), stats.sums[:, 0].sum())


@pytest.mark.parametrize("layout", ["E", "P2"])
def test_the_papers_method_is_the_equations_repeated(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "RESTARTS", 1)
    points = cw.simulate.clicks(layout, seed=4).points
    model = cw.ClickMixture(method="paper", objects=7, max_iter=18)
    result = model.fit(points, run=ONE)
    mixture = paper._start(model, points, ONE, 0)
    assert np.unique(mixture.mean, axis=0).shape == (7, 2)
    assert (mixture.p == 0.5).all()
    objective = []
    for _ in range(result.trace.height):
        before = mixture
        fit, mixture = dense(points, before)
        objective.append(fit)
    assert len(objective) > 15
    assert np.allclose(result.trace["objective"], objective, rtol=1e-10)
    found, order = result.params, np.lexsort(before.mean.T[::-1])
    assert np.linalg.eigvalsh(before.cov).min() > 0.01  # no variance had to be held up
    assert np.allclose(found.mean, before.mean[order], rtol=1e-7)
    assert np.allclose(found.cov, before.cov[order], rtol=1e-6, atol=1e-9)
    assert np.allclose(found.share, before.share[order], rtol=1e-6)
    assert np.allclose(found.reliability, before.p, rtol=1e-6)


def test_a_given_number_of_objects_is_fitted_from_several_starts() -> None:
    points = cw.simulate.clicks("P1", seed=2).points
    model = cw.ClickMixture(method="paper", objects=10)
    result = model.fit(points, run=ONE)
    ends = []
    for number in range(paper.RESTARTS):
        start = paper._start(model, points, ONE, 0, *([number] if number else []))
        trace = Trace(objects=int)
        paper._em(model, points, em.in_shards(points, ONE), ONE, trace, start)
        ends.append(float(trace.array()[-1, 0]))
    assert result.trace["objective"][-1] == max(ends)
    assert max(ends) - min(ends) > 5


@pytest.mark.parametrize("criterion", ["bic", "icl"])
def test_the_papers_criterion_against_hand_computed_values(criterion: Any) -> None:
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
    model = cw.ClickMixture(method="paper", criterion=criterion)
    search = paper.Annihilation(model, em.in_shards(points, ONE), mixture, points.sides, 1)
    objective, found = search.step()
    assert np.isclose(objective, wanted, rtol=1e-10)
    assert found == {"objects": 3}


def test_annihilation_against_hand_computed_values() -> None:  # eq (14)
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
    _, stats = assigned(points, start, once=False)
    assert np.allclose(stats.sums[:, 0], [10, 4, 2], atol=1e-3)
    after = em.maximise(stats, start, em.Priors(), points.sides, penalty=2.5)
    assert np.allclose(after.share, np.array([7.5, 1.5, 0]) / 9, atol=1e-3)
    assert after.mean[2].tolist() == [10, 60]  # what cannot pay stays as it was
    assert after.cov[2].tolist() == np.eye(2).tolist()
    assert np.allclose(after.mean[0], points.X[:10].mean(0), atol=1e-6)
    kept = em.select_objects(after, np.flatnonzero(after.share > 0))
    assert np.allclose(kept.share, [5 / 6, 1 / 6], atol=1e-3)
    assert kept.ptr.tolist() == [0, 2]


def test_the_paper_gives_up_what_holds_fewer_clicks_than_half_its_parameters() -> None:
    """Two clicks are below L / 2 = 2.5, three are not."""
    found = [counts(cw.aggregate(piles([10] * 7 + [n]), method="paper", start=8, spread=(1.0, 1.0)))[0] for n in (2, 3)]
    assert found == [7, 8]


# -------------------------------------------------------------------------------------------------- sums over matchings


def by_hand(odds: Any) -> tuple[float, Any]:
    """Log of the sum over all matchings of clicks (rows) and objects, and the probability of every pair."""
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
    """The same by the kernels; odds of 0 mark objects that a click cannot belong to."""
    n, m = odds.shape
    w, (click, object_) = np.zeros((n, m)), np.nonzero(odds)
    if choose_clicks(1).__name__ == "crowdwise.kernels.clicks":
        w[odds > 0], value = match(np.zeros(len(click), int), click, object_, odds[odds > 0])
        return value, w
    ptr = np.concatenate([[0], np.cumsum((odds > 0).sum(1))]).astype(np.int64)
    comp, seen = object_, odds[odds > 0]
    out, back, share, total = np.empty(len(seen)), np.empty(len(seen)), np.empty(len(seen)), np.zeros(m)
    value = _match(ptr, np.arange(n), n, comp, seen, out, back, share, total)
    assert not total.any()  # left as it was found
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


def test_an_e_step_matches_job_by_job() -> None:
    rng = np.random.default_rng(2)
    frame = {"image": ["a"] * 11, "worker": [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3]}
    X = rng.uniform(30, 60, (11, 2))
    X[-2:] += 40  # one worker with clicks that no object sees
    points = cw.Points({**frame, "x": X[:, 0], "y": X[:, 1]}, box=SQUARE)
    mixture = mixture_of([(35, 40), (45, 45), (50, 38)], 60.0, [0.9, 0.5, 0.7, 0.8], [0.5, 0.3, 0.2])
    local, stats = assigned(points, mixture, once=True, best=True)
    _, loose = assigned(points, mixture, once=False)
    f = np.stack([distributions.multivariate_normal(m, 60.0).pdf(points.X) for m in mixture.mean], axis=1)
    odds = mixture.share * f * (mixture.p / (1 - mixture.p))[points.worker][:, None] * 1e4
    base = np.log((1 - mixture.p)[points.worker] / 1e4).sum()
    values, expected = 0.0, np.zeros(3)
    for j in range(points.n_jobs):
        at = slice(*points.job_ptr[j : j + 2])
        value, w = by_messages(odds[at])
        true, pairs = by_hand(odds[at])
        assert value <= true + 1e-9
        assert np.allclose(local.alpha[at, 0], w.sum(1), atol=1e-4)
        assert np.allclose(local.best[at, 1], w.max(1), atol=1e-4)
        assert np.abs(w - pairs).max() < 0.1
        values, expected = values + value, expected + w.sum(0)
    assert np.isclose(stats.fit, base + values, atol=1e-5)
    assert np.allclose(stats.sums[:, 0], expected, atol=1e-4)
    assert np.isclose(loose.fit, base + np.log1p(odds.sum(1)).sum(), rtol=1e-10)  # without once the plain mixture's
    assert loose.fit > stats.fit + 0.1  # as fewer ways are summed up


def test_once_is_nothing_to_workers_of_one_click() -> None:
    points = piles([6, 5, 4], deviation=8.0)
    mixture = mixture_of([(10, 10), (12, 35), (10, 58)], 50.0, np.full(15, 0.7))
    one, two = (assigned(points, mixture, once)[1] for once in (True, False))
    assert np.isclose(one.fit, two.fit, rtol=1e-12)
    assert np.allclose(one.sums, two.sums)


def test_a_worker_who_clicks_an_object_twice_shows_two_objects_or_a_slip() -> None:
    points = cw.Points({"image": ["a"] * 2, "worker": [1, 1], "x": [50, 51.0], "y": [50, 50.0]}, box=SQUARE)
    mixture = mixture_of([(50.5, 50)], 4.0, [0.9])
    loose, strict = (assigned(points, mixture, once)[0].alpha[:, 0] for once in (False, True))
    assert (loose > 0.99).all()
    assert np.allclose(strict, 0.5, atol=0.01)


# ------------------------------------------------------------------------------------------------ the evidence, in full


def bound(points: cw.Points, fit: merge.MergeFit) -> float:
    """(27) for one image without own noise, every term written out."""
    state, shapes = fit.posterior, fit.shapes
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
    model, trace = cw.ClickMixture(noise=False, once=False, objects=objects), Trace(objects=int)
    fit = merge.merge_fit(model, points, em.in_shards(points, ONE), ONE.begin(), trace)
    assert len(fit.posterior.mean) == (objects or len(fit.posterior.mean)) >= 1
    assert np.isclose(trace.objectives[-1], bound(points, fit), rtol=1e-7)
    worse = fit._replace(posterior=fit.posterior._replace(mean=fit.posterior.mean + 0.02))
    assert bound(points, worse) < bound(points, fit) - 1e-3


@pytest.mark.parametrize("once", [True, False])
def test_the_refinement_never_falls(once: bool) -> None:
    """Plain Gaussians with priors and own noise."""
    points, p, rng = spotted().points, fitted().params, np.random.default_rng(0)
    off = rng.normal(scale=1.5, size=p.mean.shape)
    mixture = em.Mixture(p.ptr, p.mean + off, 3 * p.cov, p.share, np.full(points.n_workers, 0.5), np.ones_like(p.noise))
    executor, priors = em.in_shards(points, ONE), em.Priors(5.0, p.cov.mean(0), 3.0, 1.2)
    problem = em.GaussianEM(executor, mixture, points.sides, 1, 30, once=once, noise=True, priors=priors)
    values = []
    for _ in range(30):
        values.append(problem.step().objective)
        problem.improve()
    assert values[-1] > values[0] + 10
    assert np.diff(values).min() >= -1e-8 * abs(values[-1])


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("place", [0.1, 2.0, 5.0])
def test_moments_in_the_box_are_those_of_many_draws(axes: int, place: float) -> None:
    mean, cov = np.full(axes, place), np.array([[1.0, 0.7], [0.7, 2.0]])[:axes, :axes]
    low, high = np.zeros(axes), np.full(axes, 100.0)
    mixture = em.Mixture(np.array([0, 1]), mean[None], cov[None], np.ones(1), np.ones(1), np.ones(1))
    found = em.inside_box(mixture, em.Boxes(np.stack([low, high])[None], choose_clicks(1)))
    draws = np.random.default_rng(0).multivariate_normal(mean, cov, 1_000_000)
    kept = draws[((draws >= low) & (draws <= high)).all(1)] - mean
    assert np.isclose(found.mass[0], len(kept) / len(draws), atol=2e-3)
    assert np.allclose(found.first[0], kept.mean(0), atol=6e-3)
    assert np.allclose(found.second[0], kept.T @ kept / len(kept), atol=2e-2)


def test_objects_at_the_edge_keep_their_size() -> None:
    """Gaussians cut off at the box: covariances are estimated without bias only if they are truncated."""
    sims = [cw.simulate.clicks("P1", total=4000, workers=100, seed=seed) for seed in range(3)]
    size = {}
    for truncated in (True, False):
        ratios = []
        for sim in sims:
            points, M = sim.points, len(sim.centres)
            start = em.Mixture(
                np.array([0, M]), sim.centres, sim.covariances, np.full(M, 1 / M), np.full(100, 0.8), np.ones(100)
            )
            box = em.Boxes.of(points) if truncated else None
            problem = em.GaussianEM(em.in_shards(points, ONE), start, points.sides, 1, 60, box=box)
            values = []
            for _ in range(60):
                values.append(problem.step().objective)
                problem.improve()
            assert np.diff(values).min() >= -1e-8 * abs(values[-1])
            assert ((problem.mixture.mean >= points.box[0, 0]) & (problem.mixture.mean <= points.box[0, 1])).all()
            ratios.append(np.linalg.slogdet(problem.mixture.cov)[1] - np.linalg.slogdet(sim.covariances)[1])
        size[truncated] = float(np.exp(np.mean(ratios)))
    assert 0.85 < size[True] < 1.15
    assert size[False] < 0.75


def test_peaks_are_where_clicks_gather_and_far_enough_apart() -> None:
    rng = np.random.default_rng(1)
    centres = np.array([[10.0, 10.0], [30.0, 10.0], [10.0, 30.0], [30.0, 30.0]])
    X = np.concatenate([centres.repeat(15, 0) + rng.normal(size=(60, 2)), [[80.0, 80.0]]])
    found = X[choose_clicks(1).peaks(X, np.eye(2), image_fit.PEAK_RADIUS, image_fit.MIN_PEAK_DENSITY)]
    away = np.sqrt(((found[:, None] - found[None]) ** 2).sum(2)) + 100 * np.eye(len(found))
    assert 4 <= len(found) <= 8
    assert away.min() > image_fit.PEAK_RADIUS
    assert (np.sqrt(((centres[:, None] - found[None]) ** 2).sum(2)).min(1) < 2).all()
    assert not (found == 80).any()  # nobody else clicked there


def test_probabilities_of_objects_are_less_sure_than_their_clicks() -> None:
    evidence, real = np.array([-3.0, 0.0, 2.0, 8.0]), np.ones(4)
    p = summary.calibrated(evidence, real)
    assert np.allclose(np.log(p / (1 - p)), summary.LOG_ODDS_WEIGHT * evidence)
    assert (summary.calibrated(np.array([40.0]), np.array([0.6])) < 0.6).all()


# ------------------------------------------------------------------------------------------------------ shards, threads


@pytest.mark.parametrize("once", [True, False])
def test_statistics_of_shards_add_up(once: bool) -> None:
    points, p = spotted().points, fitted().params
    mixture = em.Mixture(p.ptr, p.mean + 0.5, 2 * p.cov, p.share, p.reliability, p.noise)
    whole = em.assign(em.in_shards(points, ONE), mixture, once, 1)
    parts = [assigned(shard, mixture, once)[1] for shard in points.shards(3)]
    assert min(part.sums[:, 0].sum() for part in parts) > 10
    total = plus(plus(parts[0], parts[1]), parts[2])
    assert all(np.allclose(a, b, rtol=1e-9, atol=1e-9) for a, b in zip(total, whole, strict=True))
    in_parts = em.assign(em.in_shards(points, cw.Run(shards=3)), mixture, once, 1)
    assert all(np.array_equal(a, b) for a, b in zip(in_parts, total, strict=True))
    priors = em.Priors(5.0, p.cov.mean(0), 3.0, 1.2)
    one, two = (em.maximise(stats, mixture, priors, points.sides, noise=True) for stats in (total, whole))
    assert close(one, two)
    assert not close(one, mixture, 1e-2)


@pytest.mark.parametrize("once", [True, False])
def test_threads_change_no_bit_of_an_e_step(once: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdwise.points.e_step.BLOCK_CLICKS", 64)  # so that there is something to share out
    points, p = spotted().points, fitted().params
    mixture = em.Mixture(p.ptr, p.mean, p.cov, p.share, p.reliability, p.noise)
    terms = em.object_terms(mixture), em.worker_terms(mixture)
    (local, one), *others = (e_step(points, None, *terms, once, em.CUT, threads, True) for threads in (1, 2, 2))
    assert len(local.blocks) > 3
    for other, two in others:
        assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
        assert np.array_equal(local.alpha, other.alpha)
        assert np.array_equal(local.best, other.best)


def test_objects_are_ranked_and_selected_within_their_image() -> None:
    mean, n = np.arange(10.0).reshape(5, 2), np.ones(5)
    objects = merge.Posterior(np.array([0, 3, 5]), mean, np.ones((5, 2, 2)), n, n, np.ones(1), np.ones(1), np.ones(1))
    image, rank = merge._ranked(objects.ptr, np.array([-2.0, -1, -3, 4, -5]))
    assert image.tolist() == [0, 0, 0, 1, 1]
    assert rank.tolist() == [1, 0, 2, 0, 1]
    kept = merge._select(objects, np.array([1, 3, 4]))
    assert kept.mean[:, 0].tolist() == [2, 6, 8]
    assert kept.ptr.tolist() == [0, 1, 3]


def test_the_papers_search_takes_back_all_of_its_state() -> None:
    points, model = spotted().points.only(np.array([0])), cw.ClickMixture(method="paper")
    start = paper._start(model, points, ONE, 0)
    search, again = (paper.Annihilation(model, em.in_shards(points, ONE), start, points.sides, 1) for _ in range(2))
    for _ in range(5):
        search.step()
        search.improve()
    again.restore(search.state())
    assert again.state().keys() == search.state().keys()
    assert all(np.array_equal(again.state()[name], value) for name, value in search.state().items())


def test_starts_are_compared_without_the_prior_of_their_shape() -> None:
    model, points = cw.ClickMixture(), cw.simulate.clicks("E", total=300, seed=1).points
    fit = image_fit.ImageFitter(model, points, 0, False, ONE, count=20).fit()
    prior = 0.5 * model.freedom * (np.linalg.slogdet(fit.S)[1] - np.trace(fit.S @ np.linalg.inv(fit.S0)))
    assert abs(prior) > 1
    assert fit.score == pytest.approx(fit.trace[-1, 0] - prior)


def test_what_is_real_is_weighed_over_the_grid() -> None:
    """Six workers, two clicks each: of three objects one has all of them, one four and one two."""
    worker, object_ = np.repeat(np.arange(6), 2), np.array([0, 1] * 4 + [0, 2] * 2)
    points = cw.Points({"image": ["a"] * 12, "worker": worker, "x": object_, "y": object_}, box=(0, 0, 3, 3))
    k, decoy, terms = [6, 4, 2], distributions.betabinom(6, *summary.DECOY_BETA).logpmf([6, 4, 2]), []
    for s, m, share in product(summary.HIT_RATE_STRENGTHS, summary.HIT_RATE_MEANS, summary.DECOY_SHARES):
        real = np.log(1 - share) + distributions.betabinom(6, m * s, (1 - m) * s).logpmf(k)
        both = np.logaddexp(real, np.log(share) + decoy)
        terms.append((both.sum() - np.log(share), np.exp(real - both)))
    wanted = special.softmax([score for score, _ in terms]) @ np.array([chance for _, chance in terms])
    assert np.allclose(summary.probability_real(points, np.zeros(3, int), worker, object_), wanted, rtol=1e-9)
