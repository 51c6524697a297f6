"""pair-mixture: every formula held to one written out, the climb, clusters and workers found, and hard input."""

from __future__ import annotations

import dataclasses
import functools
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.linalg import eigh
from scipy.special import digamma, gammaln, logsumexp, multigammaln

import crowdwise as cw
from crowdwise.answers.pairs import components
from crowdwise.errors import DataError, EmptyDataError, FeatureError, Interrupted, ParameterError, UnknownIdError
from crowdwise.kernels.fast.links import join, pass_messages
from crowdwise.pairs import alone, gaussians, merge, mixture, turning
from crowdwise.pairs.gaussians import Normals, Prior, phi
from crowdwise.pairs.model import Answers
from crowdwise.pairs.workers import Coins, first_odds

pytestmark = pytest.mark.filterwarnings("error")

ONE = cw.Run(threads=1)
IDS = [f"i{k:02d}" for k in range(40)]
HALVES = np.repeat([0, 1], 20)
BLOBS = np.random.default_rng(0).normal(size=(40, 2)) + 8.0 * HALVES[:, None]


def answers(rows: Any) -> cw.Pairs:
    return cw.Pairs(pl.DataFrame(rows, ["left", "right", "worker", "answer"], orient="row"))


def about(
    truth: Any, share: float = 1.0, workers: int = 3, right: float = 1.0, seed: int = 0, ids: Any = IDS
) -> cw.Pairs:
    """Answers of workers who are right with a chance, each to a share of all pairs."""
    rng = np.random.default_rng(seed)
    return answers([
        (ids[a], ids[b], f"w{w}", int((truth[a] == truth[b]) == (rng.random() < right)))
        for a, b in combinations(range(len(truth)), 2) for w in range(workers) if rng.random() < share
    ])  # fmt: skip


def same_bits(one: cw.PairsResult, two: cw.PairsResult) -> bool:
    return (
        all(np.array_equal(a, b) for a, b in zip(one.params, two.params, strict=True))
        and np.array_equal(one.sweeps, two.sweeps)
        and one.space.keys() == two.space.keys()
        and all(np.array_equal(one.space[name], two.space[name]) for name in one.space)
    )


def sound(result: cw.PairsResult) -> bool:
    """Every number a number, every chance a chance, every item in one cluster, the clusters without gaps."""
    p, tables = result.params, (result.clusters, result.sizes, result.workers, result.asked)
    assert all(np.isfinite(np.asarray(array, float)).all() for array in (*p, result.sweeps))
    assert ((p.chances >= 0) & (p.chances <= 1 + 1e-9)).all()
    assert (p.chances.sum(1) <= 1 + 1e-9).all()
    assert ((p.same >= 0) & (p.same <= 1 + 1e-9)).all()
    assert set(result.cluster) == set(range(result.n_clusters))
    assert result.sizes["items"].to_list() == np.bincount(result.cluster).tolist()
    assert (np.diff(result.sizes["items"]) <= 0).all()
    assert not any(
        frame[name].is_nan().any() for frame in tables for name in frame.columns if frame[name].dtype.is_float()
    )
    low, skill, high = (result.workers[name].to_numpy() for name in ("low", "skill", "high"))
    assert ((low <= skill) & (skill <= high)).all()
    return True


@functools.cache
def spun(seed: int) -> tuple[cw.simulate.PairCrowd, cw.PairsResult]:
    sim = cw.simulate.pinwheel(seed=seed)
    return sim, cw.aggregate(sim.pairs, features=sim.features, run=cw.Run(seed=seed, threads=1))


# ----------------------------------------------------------------------------------------------- Gaussians, written out


def normals(K: int = 3, D: int = 2, seed: int = 0) -> tuple[Normals, Prior]:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(K + 1, D, D))
    S = A @ A.transpose(0, 2, 1) + np.eye(D)
    nu = D + 1 + 6 * rng.random(K)
    made = Normals(rng.uniform(0.5, 9, K), rng.normal(size=(K, D)), rng.uniform(0.3, 5, K), nu, S[:K])
    return made, Prior(0.4, 0.2, D + 2.0, S[K])


@pytest.mark.parametrize("D", [1, 2, 4])
def test_expected_densities_are_those_of_the_formula(D: int) -> None:
    made, _ = normals(D=D, seed=D)
    X = np.random.default_rng(9).normal(size=(7, D)) * 3
    got = phi(X) @ made.coefficients()
    for k in range(3):
        W = np.linalg.inv(made.S[k])
        log_det = digamma((made.nu[k] - np.arange(D)) / 2).sum() + D * np.log(2) + np.linalg.slogdet(W)[1]
        away = X - made.mean[k]
        squares = D / made.kappa[k] + made.nu[k] * np.einsum("nd,de,ne->n", away, W, away)
        wanted = 0.5 * (log_det - D * np.log(2 * np.pi) - squares)
        wanted += digamma(made.share[k]) - digamma(made.share.sum())
        assert np.allclose(got[:, k], wanted, rtol=1e-9)


def draws(made: Normals, k: int, n: int, rng: Any) -> tuple[Any, Any]:
    """Precisions and means drawn from the posterior of a component."""
    D = made.mean.shape[1]
    L = stats.wishart(made.nu[k], np.linalg.inv(made.S[k])).rvs(n, random_state=rng).reshape(n, D, D)
    half = np.linalg.cholesky(np.linalg.inv(made.kappa[k] * L))
    return L, made.mean[k] + np.einsum("nij,nj->ni", half, rng.normal(size=(n, D)))


def log_density(x: Any, mu: Any, L: Any) -> Any:
    away = x - mu
    D = away.shape[-1]
    squares = np.einsum("nd,nde,ne->n", away, L, away)
    return 0.5 * (np.linalg.slogdet(L)[1] - D * np.log(2 * np.pi) - squares)


def test_expected_densities_are_means_over_the_posterior() -> None:
    made, _ = normals()
    x, rng = np.array([0.7, -1.2]), np.random.default_rng(1)
    shares = digamma(made.share) - digamma(made.share.sum())
    for k in range(3):
        L, mu = draws(made, k, 40_000, rng)
        some = log_density(x, mu, L)
        got = (phi(x[None]) @ made.coefficients())[0, k] - shares[k]
        assert got == pytest.approx(some.mean(), abs=5 * some.std() / 200)


def niw(made: Normals, k: int, L: Any, mu: Any) -> Any:
    """Log-density of a precision and a mean under the posterior of a component."""
    D, nu, S = made.mean.shape[1], made.nu[k], made.S[k]
    log_det = np.linalg.slogdet(L)[1]
    norm = 0.5 * nu * np.linalg.slogdet(S)[1] - 0.5 * nu * D * np.log(2) - multigammaln(nu / 2, D)
    wishart = norm + 0.5 * (nu - D - 1) * log_det - 0.5 * np.einsum("de,ned->n", S, L)
    return wishart + log_density(mu, made.mean[k], made.kappa[k] * L)


def as_normals(prior: Prior, K: int) -> Normals:
    D = len(prior.S)
    full = [np.full(K, getattr(prior, name)) for name in ("share", "kappa", "nu")]
    return Normals(full[0], np.zeros((K, D)), full[1], full[2], np.repeat(prior.S[None], K, axis=0))


def test_the_divergence_is_none_at_the_prior_and_the_mean_of_log_ratios_off_it() -> None:
    made, prior = normals()
    before = as_normals(prior, 3)
    assert before.divergence(prior) == pytest.approx(0, abs=1e-9)
    rng, total, noise = np.random.default_rng(2), 0.0, 0.0
    for k in range(3):
        L, mu = draws(made, k, 40_000, rng)
        ratio = niw(made, k, L, mu) - niw(before, k, L, mu)
        total, noise = total + ratio.mean(), noise + ratio.var() / len(ratio)
    P = rng.dirichlet(made.share, 40_000)
    ratio = stats.dirichlet(made.share).logpdf(P.T) - stats.dirichlet(before.share).logpdf(P.T)
    total, noise = total + ratio.mean(), noise + ratio.var() / len(ratio)
    assert noise < 0.01
    assert made.divergence(prior) == pytest.approx(total, abs=5 * np.sqrt(noise))
    for name, value in {
        "mean": before.mean + 0.1, "nu": before.nu + 1, "kappa": 2 * before.kappa, "share": np.array([1.4, 0.4, 0.4]),
    }.items():  # fmt: skip
        assert before._replace(**{name: value}).divergence(prior) > 1e-4


def test_posteriors_of_rows_are_the_conjugate_ones() -> None:
    rng = np.random.default_rng(4)
    X, R = rng.normal(size=(30, 3)), rng.dirichlet(np.ones(4), 30)
    _, prior = normals(D=3)
    made = Normals.seen(R.T @ phi(X), prior)
    for k in range(4):
        n = R[:, k].sum()
        middle = R[:, k] @ X / n
        scatter = (X - middle).T @ (R[:, [k]] * (X - middle))
        assert made.share[k] == pytest.approx(prior.share + n)
        assert made.kappa[k] == pytest.approx(prior.kappa + n)
        assert made.nu[k] == pytest.approx(prior.nu + n)
        assert np.allclose(made.mean[k], n * middle / (prior.kappa + n))
        shift = prior.kappa * n / (prior.kappa + n) * np.outer(middle, middle)
        assert np.allclose(made.S[k], prior.S + scatter + shift)


# ------------------------------------------------------------------------------------------------- workers, written out


def told(seed: int = 0, n_items: int = 6, n_workers: int = 3, size: int = 25) -> Answers:
    """Random answers that count random amounts."""
    rng = np.random.default_rng(seed)
    left = rng.integers(0, n_items - 1, size)
    right = left + 1 + (rng.random(size) * (n_items - 1 - left)).astype(int)
    worker, weight = rng.integers(0, n_workers, size), rng.uniform(0.2, 1, size)
    made = {
        "left": left, "right": right, "worker": worker, "same": rng.random(size) < 0.5, "weight": weight,
        "job": np.full(size, -1), "n_items": n_items, "n_workers": n_workers,
    }  # fmt: skip
    return Answers(**{name: made[name] for name in Answers._fields})


def test_workers_are_two_coins() -> None:
    a, prior = told(), np.array([2.0, 1.0])
    same = np.random.default_rng(1).random(25)
    coins = Coins.seen(a, same, prior)
    alpha, beta = np.tile(prior, (3, 1)), np.tile(prior, (3, 1))
    for k in range(25):
        alpha[a.worker[k], 0 if a.same[k] else 1] += a.weight[k] * same[k]
        beta[a.worker[k], 1 if a.same[k] else 0] += a.weight[k] * (1 - same[k])
    assert np.allclose(coins.alpha, alpha)
    assert np.allclose(coins.beta, beta)
    yes, no = coins.logs(a)
    for k in range(25):
        A, B = alpha[a.worker[k]], beta[a.worker[k]]
        hit = digamma(A if a.same[k] else A[::-1])[0] - digamma(A.sum())
        miss = digamma(B[::-1] if a.same[k] else B)[0] - digamma(B.sum())
        assert (yes[k], no[k]) == pytest.approx((a.weight[k] * hit, a.weight[k] * miss))
    cost = sum(beta_kl(p, prior) for p in (*alpha, *beta))
    assert coins.divergence() == pytest.approx(cost)
    assert Coins(np.tile(prior, (2, 1)), np.tile(prior, (2, 1)), prior).divergence() == pytest.approx(0, abs=1e-9)


def beta_kl(p: Any, q: Any) -> float:
    """Divergence of Beta(p) from Beta(q)."""
    norm = gammaln(p.sum()) - gammaln(p).sum() - gammaln(q.sum()) + gammaln(q).sum()
    return float(norm + ((p - q) * (digamma(p) - digamma(p.sum()))).sum())


# ----------------------------------------------------------------------------------------------- messages and the bound


def linked(
    n: int = 6, C: int = 3, seed: int = 0, strength: float = 1.0
) -> tuple[Answers, mixture.Links, Any, Any, Any]:
    rng = np.random.default_rng(seed)
    a = told(seed, n)
    links = mixture.Links.of(a)
    n = len(links.items)
    return a, links, strength * rng.normal(size=len(a.left)), rng.normal(size=(n, C)), rng.dirichlet(np.ones(C), n)


def test_one_round_of_messages_is_that_of_a_loop() -> None:
    _, links, odds, U, R = linked()
    n, C = R.shape
    M, own, spoken = np.empty((n, C)), np.empty(n), R.copy()
    flips = pass_messages(links.ptr, links.other, odds[links.answer], U, spoken, M, own)
    wanted, changed = R.copy(), 0
    for i in range(n):
        heard = np.zeros(C)
        for k in range(len(odds)):
            if links.left[k] == i:
                heard += odds[k] * wanted[links.right[k]]
            if links.right[k] == i:
                heard += odds[k] * wanted[links.left[k]]
        was = wanted[i].argmax()
        wanted[i] = np.exp(heard + U[i] - logsumexp(heard + U[i]))  # and speaks at once
        changed += wanted[i].argmax() != was
        assert np.allclose(M[i], heard)
        assert own[i] == pytest.approx((wanted[i] * (U[i] - np.log(wanted[i]))).sum())
    assert np.allclose(spoken, wanted)
    assert flips == changed > 0


@pytest.mark.parametrize(("strength", "gap"), [(0.05, 0.01), (1.0, 2.5), (4.0, 12.0)])
def test_messages_climb_to_a_bound_below_the_sum_over_all_clusterings(strength: float, gap: float) -> None:
    _, links, odds, U, R = linked(strength=strength)
    n, C = R.shape
    M, own, values = np.empty((n, C)), np.empty(n), []
    for _ in range(60):
        pass_messages(links.ptr, links.other, odds[links.answer], U, R, M, own)
        values.append(own.sum() + (odds * (R[links.left] * R[links.right]).sum(1)).sum())
    assert (np.diff(values) >= -1e-9).all()
    ends = list(zip(links.left, links.right, odds, strict=True))
    terms = [
        sum(U[i, z[i]] for i in range(n)) + sum(w for a, b, w in ends if z[a] == z[b])
        for z in product(range(C), repeat=n)
    ]
    assert -1e-9 <= logsumexp(terms) - values[-1] < gap


def climb(seed: int = 0, **settings: Any) -> mixture._Climb:
    """A small climb at its start: 30 items, 12 of them asked about."""
    X = np.random.default_rng(seed).normal(size=(30, 2)) + 3 * np.repeat([[0, 0], [1, 1], [0, 2]], 10, axis=0)
    model = cw.PairMixture(**{"parts": 4, **settings})
    return mixture._Climb(model, X, told(seed, 12, 3, 40)._replace(n_items=30), ONE, seed % 2)


def whole_bound(c: mixture._Climb, before: Any) -> float:
    """Every term of the bound written out, item by item, component by component, cluster by cluster."""
    normals_, theta, coins = before
    A, B = phi(c.X) @ normals_.coefficients(), np.log(theta)
    (K, C), place = theta.shape, {int(item): k for k, item in enumerate(c.links.items)}
    value = 0.0
    for i in range(len(c.X)):
        logs = A[i][:, None] + B  # of component and cluster
        if i in place:
            R = c.R[place[i]]
            within = logs - logsumexp(logs, axis=0)
            q = np.exp(within) * R
            assert q.shape == (K, C)
        else:
            q = np.exp(logs - logsumexp(logs))
        value += (q * (logs - np.log(np.maximum(q, 1e-300)))).sum()
    a = c.answers
    yes, no = coins.logs(a)
    for k in range(len(a.left)):
        P = c.R[place[int(a.left[k])]] @ c.R[place[int(a.right[k])]]
        value += P * yes[k] + (1 - P) * no[k]
    value -= sum(beta_kl(p, c.prior) for p in (*coins.alpha, *coins.beta))
    return float(value - normals_.divergence(c.gauss) + (c.loyal * B).sum())


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_that_written_out(seed: int) -> None:
    c = climb(seed)
    values = []
    for _ in range(5):
        before = (c.normals, c.theta, c.coins)
        value, _ = c._sweep()
        assert value == pytest.approx(whole_bound(c, before), rel=1e-9)
        values.append(value)
    assert (np.diff(values) >= -1e-9).all()


@pytest.mark.parametrize("seed", range(2))
def test_what_follows_a_sweep_is_best_given_the_items(seed: int) -> None:
    """Any other workers, components or loyalties make the bound lower, the items being as they are."""
    c = climb(seed)
    before = (c.normals, c.theta, c.coins)
    c._sweep()
    at = _local(c, before)
    best = _given(c, at, (c.normals, c.theta, c.coins))
    assert best > _given(c, at, before) + 1e-6
    rng = np.random.default_rng(seed)
    for size in (1e-3, 0.1):
        shaken = c.normals._replace(
            mean=c.normals.mean + size * rng.normal(size=c.normals.mean.shape), kappa=c.normals.kappa * (1 + size)
        )
        theta = mixture._shares(c.theta * np.exp(size * rng.normal(size=c.theta.shape)))
        coins = c.coins._replace(alpha=c.coins.alpha * (1 + size), beta=c.coins.beta * (1 - size / 2))
        for other in ((shaken, c.theta, c.coins), (c.normals, theta, c.coins), (c.normals, c.theta, coins)):
            assert best > _given(c, at, other)


def _local(c: mixture._Climb, before: Any) -> Any:
    """(N, K, C) component and cluster of every item, as the sweep had them."""
    normals_, theta, _ = before
    logs = (phi(c.X) @ normals_.coefficients())[:, :, None] + np.log(theta)
    q = np.exp(logs - logsumexp(logs, axis=(1, 2), keepdims=True))
    asked = c.links.items
    q[asked] = np.exp(logs[asked] - logsumexp(logs[asked], axis=1, keepdims=True)) * c.R[:, None, :]
    return q


def _given(c: mixture._Climb, q: Any, rest: Any) -> float:
    """The part of the bound that is not the items' own entropy."""
    normals_, theta, coins = rest
    yes, no = coins.logs(c.answers)
    logs = (phi(c.X) @ normals_.coefficients())[:, :, None] + np.log(theta)
    P = c._same()
    value = (q * logs).sum() + (P * yes + (1 - P) * no).sum() + (c.loyal * np.log(theta)).sum()
    return float(value - coins.divergence() - normals_.divergence(c.gauss))


@st.composite
def crowds(draw: Any) -> tuple[cw.Pairs, tuple[list[str], Any]]:
    """Answers that mean nothing, some in jobs, about items whose features mean nothing, some of them equal."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, A = draw(st.integers(2, 30)), draw(st.integers(1, 60))
    X = rng.normal(size=(n, draw(st.integers(1, 3)))).round(draw(st.integers(0, 3)))
    left = rng.integers(0, n, A)
    right = (left + 1 + rng.integers(0, n - 1, A)) % n
    frame = {"left": left, "right": right, "worker": rng.integers(0, 4, A), "answer": rng.integers(0, 2, A)}
    if draw(st.booleans()):
        frame["hit"] = rng.integers(0, 3, A)
    return cw.Pairs(frame, contradictions="each"), (list(range(n)), X)


@given(crowds())
@settings(max_examples=12)
def test_the_bound_never_falls_on_anything(made: tuple[cw.Pairs, Any]) -> None:
    pairs, features = made
    result = cw.aggregate(pairs, features=features, restarts=2, run=ONE)
    assert sound(result)
    assert sound(cw.aggregate(pairs, run=ONE))
    value = result.sweeps[:, 0]
    assert (np.diff(value) >= -1e-6 * np.abs(value[1:])).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_never_falls_on_pinwheels(seed: int) -> None:
    _, result = spun(seed)
    value = result.sweeps[:, 0]
    assert len(value) > 5
    assert (np.diff(value) >= -1e-6 * np.abs(value[1:])).all()
    assert result.trace["objective"].to_list() == value.tolist()
    assert result.criterion == "evidence lower bound"


# -------------------------------------------------------------------------------------------------------- what is found


@pytest.mark.parametrize("seed", range(3))
def test_pinwheels_are_found(seed: int) -> None:
    sim, result = spun(seed)
    scores = cw.match_clusters(result, sim.truth)
    assert scores["accuracy"] >= 0.97
    assert scores["nmi"] >= 0.9
    assert scores["clusters"] == 5
    assert result.converged
    assert sound(result)


@pytest.mark.parametrize("seed", range(3))
def test_items_without_answers_go_by_their_features(seed: int) -> None:
    sim, result = spun(seed)
    free = result.answers_of == 0
    assert free.sum() == 400
    assert cw.match_clusters(result, sim.truth.filter(pl.Series(free)))["accuracy"] >= 0.96
    placed = result.assign(sim.features[1], sim.features[0])
    assert placed["item"].to_list() == sim.truth["item"].to_list()
    assert (placed["cluster"].to_numpy() == result.cluster + 1)[free].all()
    assert np.allclose(placed["probability"].to_numpy()[free], result.params.chances[free, 0])
    assert (placed["cluster"].to_numpy() == result.cluster + 1).mean() > 0.98


def test_answers_say_what_features_cannot() -> None:
    """Four heaps; the answers make two clusters of opposite ones, or one of each."""
    heap = np.repeat(np.arange(4), 25)
    X = np.array([[0, 0], [9, 0], [9, 9], [0, 9]])[heap] + np.random.default_rng(0).normal(size=(100, 2))
    ids = [f"i{k:03d}" for k in range(100)]
    for truth, wanted in ((heap % 2, 2), (heap, 4), (heap // 3, 2)):
        result = cw.aggregate(about(truth, 0.03, right=0.9, ids=ids), features=(ids, X), run=ONE)
        scores = cw.match_clusters(result, {"item": ids, "label": truth})
        assert (scores["clusters"], scores["accuracy"]) == (wanted, 1.0)


def test_workers_are_told_with_their_intervals() -> None:
    alpha, beta = np.linspace(0.6, 0.98, 30), np.linspace(0.98, 0.7, 30)
    sim = cw.simulate.pinwheel(workers=30, each=300, asked=200, alpha=alpha, beta=beta, seed=4)
    result = cw.aggregate(sim.pairs, features=sim.features, restarts=2)
    both = result.workers.join(sim.workers, on="worker", suffix="_true")
    assert both.height == 30
    for name in ("sensitivity", "specificity"):
        true, low, high = (both[f"{name}{end}"].to_numpy() for end in ("_true", "_low", "_high"))
        assert np.abs(both[name].to_numpy() - true).mean() < 0.05
        assert np.corrcoef(both[name], true)[0, 1] > 0.8
        assert ((low <= true) & (true <= high)).sum() >= 26
        assert (high - low < 0.3).all()
    skill = (both["sensitivity_true"] + both["specificity_true"]).to_numpy() / 2
    assert ((both["low"].to_numpy() <= skill) & (skill <= both["high"].to_numpy())).sum() >= 26
    assert both["answers"].to_list() == [300] * 30
    expected = [digamma(a[0]) - digamma(a[1]) + digamma(b[0]) - digamma(b[1])
                for a, b in zip(result.params.alpha, result.params.beta, strict=True)]  # fmt: skip
    assert np.allclose(both["weight"], expected)


def test_an_adversary_is_turned_round_and_does_no_harm() -> None:
    for enemies in (1, 5):
        alpha = [0.1] * enemies + [0.9] * (20 - enemies)
        sim = cw.simulate.pinwheel(alpha=alpha, seed=0)
        result = cw.aggregate(sim.pairs, features=sim.features, restarts=2)
        assert (result.workers["weight"].to_numpy() < -1).tolist() == [True] * enemies + [False] * (20 - enemies)
        assert result.workers["high"].to_numpy()[:enemies].max() < 0.5
        assert cw.match_clusters(result, sim.truth)["accuracy"] >= 0.97
        assert any(f"{enemies} of 20 workers are no better than chance" in text for text in result.warnings)


def test_a_spammer_hardly_counts() -> None:
    sim = cw.simulate.pinwheel(alpha=[0.5] * 5 + [0.95] * 15, each=200, seed=1)
    weight = cw.aggregate(sim.pairs, features=sim.features, restarts=2).workers["weight"].to_numpy()
    assert np.abs(weight[:5]).max() < 1
    assert weight[5:].min() > 3


# --------------------------------------------------------------------------------------------- seeds, threads, restarts


def test_one_seed_is_one_result_whatever_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussians, "ROWS", 64)  # so that there are many blocks
    sim = cw.simulate.pinwheel(seed=1)
    one, two, three = (
        cw.aggregate(sim.pairs, features=sim.features, restarts=2, run=cw.Run(seed=5, threads=t)) for t in (1, 2, 3)
    )
    assert same_bits(one, two)
    assert same_bits(two, three)
    other = cw.aggregate(sim.pairs, features=sim.features, restarts=2, run=cw.Run(seed=6, threads=1))
    assert not same_bits(one, other)


def test_blocks_change_nothing_but_the_last_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = climb(0)
    monkeypatch.setattr(gaussians, "ROWS", 7)
    cut = climb(0)
    for _ in range(3):
        assert whole._sweep()[0] == pytest.approx(cut._sweep()[0], rel=1e-12)


def test_alone_one_seed_is_one_result() -> None:
    pairs = about(HALVES, 0.1, right=0.8)
    one, two = (cw.aggregate(pairs, run=cw.Run(seed=3, threads=t)) for t in (1, 2))
    assert same_bits(one, two)


def test_the_best_start_by_the_bound_is_kept() -> None:
    sim = cw.simulate.pinwheel(seed=2)
    model, run = cw.PairMixture(restarts=4), cw.Run(seed=2, threads=1)
    result = model.fit(sim.pairs, sim.features, run)
    on, X = sim.pairs.on(sim.features[0]), sim.features[1]
    frame = mixture.Frame.of(X, 40, "whole")
    ends = [
        mixture._Climb(model, frame.rows(X), Answers.of(on), run, start).found(frame).bound[-1][0] for start in range(4)
    ]
    assert len(set(ends)) > 2
    assert result.sweeps[-1, 0] == max(ends)
    assert int(np.argmax(ends)) > 0  # seed chosen so that the first is not the best


def test_a_fit_can_be_watched_and_stopped() -> None:
    for features in (None, (IDS, BLOBS)):
        steps: list[Any] = []
        cw.aggregate(about(HALVES, 0.1), features=features, run=cw.Run(watch=steps.append))
        assert steps[0].iteration == 1
        assert {step.max_iter for step in steps} == {200}
        assert np.isfinite([step.objective for step in steps]).all()
        asked = iter([False, False, True])
        with pytest.raises(Interrupted, match="nothing was written"):
            cw.aggregate(
                about(HALVES, 0.1, right=0.7), features=features, run=cw.Run(stop=lambda asked=asked: next(asked, True))
            )


def test_too_few_sweeps_are_told() -> None:
    result = cw.aggregate(about(HALVES, 0.2, right=0.7), features=(IDS, BLOBS), max_iter=1)
    assert not result.converged
    assert result.warnings[0] == "the climb did not come to rest within max_iter (1) sweeps. Raise it"
    assert "NOT CONVERGED" in repr(result)


# ----------------------------------------------------------------------------------------------------- frames and graph


def test_neither_place_nor_size_of_features_matters() -> None:
    pairs = about(HALVES, 0.1, right=0.9)
    one = cw.aggregate(pairs, features=(IDS, BLOBS), restarts=2, run=ONE)
    for X in (1e6 * BLOBS + 1e8, 1e-6 * BLOBS, BLOBS.astype(np.float32)):
        assert np.array_equal(cw.aggregate(pairs, features=(IDS, X), restarts=2, run=ONE).cluster, one.cluster)


def test_columns_can_be_made_alike() -> None:
    """A feature that says nothing and is large drowns the other unless columns are made alike."""
    rng = np.random.default_rng(3)
    X = np.column_stack([BLOBS[:, 0], 1000 * rng.random(40)])
    frame = mixture.Frame.of(X, 40, "columns")
    assert np.allclose(frame.rows(X).std(0), frame.rows(X).std(0)[0])
    pairs = about(HALVES, 0.05, right=0.95)
    result = cw.aggregate(pairs, features=(IDS, X), scale="columns", parts=4, restarts=2, run=ONE)
    assert cw.match_clusters(result, {"item": IDS, "label": HALVES})["accuracy"] == 1


def test_many_features_are_cut_to_their_main_directions() -> None:
    rng = np.random.default_rng(5)
    X = BLOBS @ rng.normal(size=(2, 60)) + 0.01 * rng.normal(size=(40, 60))
    frame = mixture.Frame.of(X, 5, "whole")
    got = frame.rows(X)
    values = np.linalg.svd(X - X.mean(0), compute_uv=False)
    assert got.shape == (40, 5)
    assert np.allclose(got.T @ got / (got**2).sum(), np.diag(values[:5] ** 2) / (values[:5] ** 2).sum(), atol=1e-10)
    result = cw.aggregate(about(HALVES, 0.1), features=(IDS, X), dims=3, turn=False, run=ONE)
    assert result.space["turn"].shape == (60, 3)
    assert cw.match_clusters(result, {"item": IDS, "label": HALVES})["accuracy"] == 1
    assert (result.assign(X)["cluster"].to_numpy() == result.cluster + 1).all()


def hidden(seed: int = 0) -> tuple[Any, Any, Any]:
    """Clusters in one direction of eight, in all others of which items differ more."""
    rng = np.random.default_rng(seed)
    truth = np.arange(150) % 3
    rows = np.column_stack([4.0 * truth + 0.5 * rng.normal(size=150), 8 * rng.normal(size=(150, 7))])
    return [f"i{k:03d}" for k in range(150)], rows @ np.linalg.qr(rng.normal(size=(8, 8)))[0], truth


def test_directions_are_those_in_which_different_items_differ_most() -> None:
    _, X, truth = hidden()
    rng = np.random.default_rng(2)
    left, right = rng.integers(0, 150, (2, 400))
    weight, same = rng.uniform(0.2, 1, 400), truth[left] == truth[right]
    made = told()._replace(left=left, right=right, worker=left * 0, same=same, weight=weight, n_items=150)
    scatter = []
    for rows in (same, ~same):
        S = sum(w * np.outer(X[a] - X[b], X[a] - X[b]) / 2
                for a, b, w in zip(left[rows], right[rows], weight[rows], strict=True))  # fmt: skip
        scatter.append((S + 16 * np.cov(X.T)) / (weight[rows].sum() + 16))  # sixteen answers that tell nothing
    values, vectors = eigh(scatter[1], scatter[0])
    got = turning.directions(X, made, 3)
    assert np.allclose(got.T @ scatter[0] @ got, np.eye(3), atol=1e-4)
    assert np.allclose(np.diag(got.T @ scatter[1] @ got), values[::-1][:3], rtol=1e-4)
    assert np.allclose(np.abs(np.diag(got.T @ scatter[0] @ vectors[:, ::-1][:, :3])), 1, atol=1e-3)


def test_answers_turn_features_to_what_counts(tmp_path: Path) -> None:
    ids, X, truth = hidden()
    pairs = about(truth, 0.02, right=0.95, ids=ids)
    seeing, blind = (cw.aggregate(pairs, features=(ids, X), turn=t, restarts=2, run=ONE) for t in (True, False))
    known = {"item": ids, "label": truth}
    assert cw.match_clusters(seeing, known)["accuracy"] > 0.97 > cw.match_clusters(blind, known)["accuracy"] + 0.05
    assert seeing.space["turn"].shape[1] < 8 == blind.space["turn"].shape[1]
    placed = seeing.assign(X)
    assert (placed["cluster"].to_numpy() == seeing.cluster + 1).mean() > 0.97
    assert cw.load(seeing.save(tmp_path)).assign(X).equals(placed)  # type: ignore[union-attr]
    assert same_bits(cw.aggregate(pairs, features=(ids, X), restarts=2, run=cw.Run(threads=2)), seeing)


def test_features_are_not_turned_by_a_few_answers_or_without_need() -> None:
    ids, X, truth = hidden()
    few = about(truth, 0.003, ids=ids)
    assert min(few.same.sum(), (~few.same).sum()) < 50
    assert cw.aggregate(few, features=(ids, X), restarts=1, run=ONE).space["turn"].shape == (8, 8)
    assert spun(0)[1].space["turn"].shape == (2, 2)
    assert not turning.worth_it(Answers.of(spun(0)[0].pairs), 2)
    assert turning.worth_it(Answers.of(spun(0)[0].pairs), 3)


def test_neighbours_find_rings() -> None:
    """Two rings within each other, which no Gaussian tells apart."""
    rng = np.random.default_rng(1)
    angle, ring = rng.random(240) * 2 * np.pi, np.repeat([1.0, 4.0], 120)
    X = ring[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * rng.normal(size=(240, 2))
    ids = [f"i{k:03d}" for k in range(240)]
    pairs = about((ring[::8] > 2).astype(int), 0.2, ids=ids[::8])
    result = cw.aggregate(pairs, features=(ids, X), space="graph", dims=4, restarts=2, run=ONE)
    assert cw.match_clusters(result, {"item": ids, "label": ring})["accuracy"] == 1
    assert (result.assign(X * 1.001)["cluster"].to_numpy() == result.cluster + 1).mean() > 0.99
    again = cw.aggregate(pairs, features=(ids, X), space="graph", dims=4, restarts=2, run=ONE)
    assert same_bits(result, again)


def test_a_graph_of_too_few_items_is_refused() -> None:
    with pytest.raises(FeatureError, match="space='graph' needs"):
        cw.aggregate(answers([("a", "b", "w", 1)]), features=(["a", "b"], [[0.0], [1.0]]), space="graph")


# ------------------------------------------------------------------------------------------------------- kept and asked


@pytest.mark.parametrize("how", ["features", "graph", "alone"])
def test_a_saved_result_comes_back(how: str, tmp_path: Path) -> None:
    features = None if how == "alone" else (IDS, BLOBS)
    chosen = {"space": "graph", "dims": 3} if how == "graph" else {}
    result = cw.aggregate(about(HALVES, 0.1, right=0.9), features=features, run=cw.Run(seed=7), **chosen)
    again = cw.load(result.save(tmp_path / "kept"))
    assert isinstance(again, cw.PairsResult)
    assert same_bits(again, result)
    for name in ("clusters", "sizes", "workers", "asked", "trace"):
        assert getattr(again, name).equals(getattr(result, name))
    assert again.model == result.model
    assert again.warnings == result.warnings
    assert again.pairs.intake == result.pairs.intake
    assert again.pairs.frame().equals(result.pairs.frame())
    assert repr(again) == repr(result)
    fields = ("criterion", "converged", "seed", "seconds", "versions")
    assert [getattr(again, name) for name in fields] == [getattr(result, name) for name in fields]
    assert same_bits(again.model.fit(again.pairs, features, cw.Run(seed=7)), result)  # and can be fitted again
    if features is not None:
        fresh = np.random.default_rng(1).normal(size=(9, 2)) * 5
        assert again.assign(fresh).equals(result.assign(fresh))


def test_new_items_are_placed() -> None:
    result = cw.aggregate(about(HALVES, 0.1), features=(IDS, BLOBS), restarts=2, run=ONE)
    fresh = np.array([[0.0, 0.0], [8.0, 8.0], [0.2, -0.1]])
    placed = result.assign(fresh, ["p", "q", "r"])
    home = dict(result.clusters.select("item", "cluster").rows())
    assert placed["cluster"].to_list() == [home["i00"], home["i39"], home["i00"]]
    assert placed["item"].to_list() == ["p", "q", "r"]
    assert (placed["probability"] > 0.9).all()
    assert result.assign(fresh)["item"].to_list() == [0, 1, 2]
    assert result.assign(np.empty((0, 2))).shape == (0, 3)


@pytest.mark.parametrize(("X", "items", "said"), [
    ([[1.0, 2.0, 3.0]], None, "X has 3 features an item; the fit had 2"),
    ([1.0, 2.0], None, r"X has shape \(2,\); wanted is a row an item"),
    ([["a", "b"]], None, "numbers"),
    ([[np.nan, 1.0]], None, "no numbers"),
    ([[np.inf, 1.0]], None, "no numbers"),
    ([[1.0, 2.0]], ["a", "b"], "X has 1 rows and items 2 names"),
])  # fmt: skip
def test_what_cannot_be_placed_is_refused(X: Any, items: Any, said: str) -> None:
    result = cw.aggregate(about(HALVES, 0.1), features=(IDS, BLOBS), restarts=1, run=ONE)
    with pytest.raises(FeatureError, match=said):
        result.assign(X, items)


def test_without_features_nothing_can_be_placed() -> None:
    with pytest.raises(FeatureError, match="pair-mixture knows no features"):
        cw.aggregate(about(HALVES, 0.1)).assign([[1.0, 2.0]])


@pytest.mark.parametrize("features", [None, (IDS, BLOBS)], ids=["alone", "features"])
def test_chances_of_pairs(features: Any) -> None:
    result = cw.aggregate(about(HALVES, 0.3, right=0.95), features=features, restarts=2, run=ONE)
    asked = result.asked
    chance = result.probability_same(asked["left"], asked["right"])
    assert np.allclose(chance, asked["probability"], atol=1e-6)
    assert np.allclose(chance, result.probability_same(asked["right"], asked["left"]))
    assert result.probability_same(["i03"], ["i03"]).tolist() == [1.0]
    far, near = result.probability_same(["i01", "i21"], ["i39", "i39"])
    assert far < 0.05 < 0.9 < near
    assert (asked["together"] == (asked["probability"] > 0.5)).mean() > 0.9
    assert asked["answers"].sum() == result.pairs.n_answers
    assert asked["said_same"].sum() == result.pairs.same.sum()
    with pytest.raises(UnknownIdError, match="no item 'i3' in this result"):
        result.probability_same(["i3"], ["i03"])
    with pytest.raises(ParameterError, match="left names 2 items and right 1"):
        result.probability_same(["i01", "i02"], ["i03"])


def test_tables_say_what_the_arrays_say() -> None:
    sim, result = spun(0)
    clusters, sizes = result.clusters, result.sizes
    assert clusters["item"].to_list() == sim.truth["item"].to_list()
    assert (clusters["cluster"].to_numpy() == result.params.choices[:, 0] + 1).all()
    some = clusters.drop_nulls("second")
    assert (some["second"] != some["cluster"]).all()
    assert (some["second_probability"] <= some["probability"]).all()
    assert clusters["answers"].sum() == 2 * sim.pairs.n_answers
    assert sizes["share"].sum() == pytest.approx(1)
    assert sizes["asked"].sum() == 100
    doubt = clusters.sort("probability").head(20)["entropy"].mean()
    assert doubt > 10 * clusters.sort("probability").tail(20)["entropy"].mean()  # type: ignore[operator]
    p = result.params.chances.astype(float)
    assert p.shape[1] == 4 < result.n_clusters
    whole = np.column_stack([p, np.maximum(1 - p.sum(1), 1e-300)])  # what is beyond the likeliest counts as one
    assert np.allclose(clusters["entropy"], -(whole * np.log(np.maximum(whole, 1e-300))).sum(1))
    assert (1 - p.sum(1)).max() > 1e-6
    first = result.of(1)
    assert first.height == sizes["items"][0]
    assert first["probability"].is_sorted(descending=True)
    for number in (0, 6, -1):
        with pytest.raises(UnknownIdError, match="they are numbered from 1 to 5"):
            result.of(number)


# -------------------------------------------------------------------------------------------------------- answers alone


@pytest.mark.parametrize(("share", "workers"), [(1.0, 1), (0.8, 1), (0.5, 3), (1.0, 3)])
def test_clean_answers_are_clustered_exactly(share: float, workers: int) -> None:
    truth = np.repeat(np.arange(6), [9, 7, 6, 4, 3, 1])
    ids = IDS[:30]
    result = cw.aggregate(about(truth, share, workers, ids=ids))
    assert result.cluster.tolist() == truth.tolist()  # the largest first
    assert sound(result)
    assert (result.params.alpha[:, 0] > result.params.alpha[:, 1]).all()


CALM = [
    (f"{a}{j}", f"{b}{k}", worker, int(a == b))
    for (a, j), (b, k) in combinations(product("pqrs", range(3)), 2) for worker in "uvxyz"
]  # fmt: skip


@pytest.mark.parametrize(("votes", "wanted"), [
    ({"AB": "11111", "BC": "11111", "AC": "10100"}, [{"A", "B", "C"}]),
    ({"AB": "11111", "BC": "11100", "AC": "00000"}, [{"A", "B"}, {"C"}]),
    ({"AB": "11100", "BC": "11111", "AC": "00000"}, [{"A"}, {"B", "C"}]),
    ({"AB": "00000", "BC": "00000", "AC": "11111"}, [{"A", "C"}, {"B"}]),
    ({"AB": "11111", "BC": "11111", "CD": "11111", "AD": "00110", "AC": "11111", "BD": "11111"}, [set("ABCD")]),
], ids=range(5))  # fmt: skip
def test_where_a_chain_contradicts_itself_all_links_decide(votes: dict[str, str], wanted: Any) -> None:
    rows = [(*pair, worker, int(v)) for pair, said in votes.items() for worker, v in zip("uvxyz", said, strict=True)]
    clusters = cw.aggregate(answers([*CALM, *rows])).clusters
    found = clusters.filter(pl.col("item").str.len_chars() == 1).group_by("cluster").agg("item")["item"].to_list()
    assert sorted(map(sorted, found)) == sorted(map(sorted, wanted))
    assert clusters.filter(pl.col("item").str.len_chars() == 2)["cluster"].n_unique() == 4


def test_how_sure_it_is_that_an_item_is_alone() -> None:
    """One yes and a no to the same cluster leave it in doubt; the more say no, the surer."""
    torn = [*CALM, *((f"{g}1", "X", "u", 0) for g in "pqrs"), ("q2", "X", "v", 1)]
    told_ = []
    for rows in (torn, [*torn, *(("q1", "X", w, 0) for w in "vxyz")]):
        clusters = cw.aggregate(answers(rows)).clusters
        home = dict(clusters.select("item", "cluster").rows())
        assert list(home.values()).count(home["X"]) == 1
        told_.append(clusters.filter(pl.col("item") == "X").row(0, named=True) | {"friend": home["q2"]})
    assert told_[0]["second"] == told_[0]["friend"]
    assert 0.3 < told_[0]["probability"] < 0.7 < told_[1]["probability"] < 0.95
    assert all(row["probability"] + row["second_probability"] <= 1 + 1e-9 for row in told_)


def test_noisy_answers_are_better_together_than_one_by_one() -> None:
    truth = np.repeat(np.arange(5), 8)
    pairs = about(truth, 0.7, 2, right=0.8, seed=3)
    ours, vote = (cw.match_clusters(cw.aggregate(pairs, name), {"item": IDS, "label": truth})["accuracy"]
                  for name in ("pair-mixture", "pair-vote"))  # fmt: skip
    assert ours > 0.95 > 0.5 > vote


def partitions(n: int) -> list[Any]:
    """All ways to put n items into groups."""
    found: list[list[int]] = [[]]
    for _ in range(n):
        found = [[*part, group] for part in found for group in range(max(part, default=-1) + 2)]
    return [np.array(part) for part in found]


def enumerated(n: int, left: Any, right: Any, odds: Any) -> tuple[Any, Any]:
    """Chances of pairs to be together, and of items to be alone, over all clusterings that hang together by links."""
    total, together, lonely = 0.0, np.zeros(len(left)), np.zeros(n)
    for part in partitions(n):
        inside = part[left] == part[right]
        if len(np.unique(components(left[inside], right[inside], n))) > part.max() + 1:
            continue
        weight = np.exp(odds[inside].sum())
        total += weight
        together += weight * inside
        lonely += weight * (np.bincount(part)[part] == 1)
    return together / total, lonely / total


GRAPHS: dict[str, tuple[int, list[tuple[int, int]], Any]] = {
    "all of 4": (4, list(combinations(range(4), 2)), [1.0, -0.5, 2.0, 0.3, -2.0, 1.0]),
    "all of 5": (5, list(combinations(range(5), 2)), np.linspace(-2, 2, 10)),
    "path of 3": (3, [(0, 1), (1, 2)], [1.0, 1.0]),
    "path of 4": (4, [(0, 1), (1, 2), (2, 3)], [2.0, -1.0, 1.0]),
    "star": (4, [(0, 1), (0, 2), (0, 3)], [1.0, 1.0, -0.5]),
    "ring and a stranger": (5, [(0, 1), (1, 2), (2, 3), (0, 3)], [1.5, 1.0, -1.0, 0.5]),
}


def test_there_are_as_many_clusterings_as_there_are() -> None:
    assert [len(partitions(n)) for n in range(1, 6)] == [1, 2, 5, 15, 52]


@pytest.mark.parametrize("name", GRAPHS)
def test_sampled_clusterings_are_those_of_the_posterior(name: str) -> None:
    n, links, odds = GRAPHS[name]
    left, right = (np.array([link[end] for link in links]) for end in (0, 1))
    odds = np.asarray(odds)
    edges = alone.Edges.of(left, right, n)
    walk, rng, rounds = alone.Walk(edges, odds[edges.edge], np.arange(n)), np.random.default_rng(1), 12_000
    together = np.zeros(len(left))
    for _ in range(rounds):
        walk.step(rng)
        together += walk.label[left] == walk.label[right]
    wanted, lonely = enumerated(n, left, right, odds)
    assert np.abs(together / rounds - wanted).max() < 0.025
    assert np.abs(walk.alone / rounds - lonely).max() < 0.025


@st.composite
def graphs(draw: Any) -> tuple[int, alone.Edges, Any]:
    n = draw(st.integers(2, 9))
    every = list(combinations(range(n), 2))
    links = draw(st.lists(st.sampled_from(every), min_size=1, max_size=len(every), unique=True))
    left, right = (np.array([link[end] for link in sorted(links)]) for end in (0, 1))
    odds = draw(st.lists(st.floats(-5, 5), min_size=len(links), max_size=len(links)))
    return n, alone.Edges.of(left, right, n), np.array(odds)


@given(graphs(), st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_joining_and_moving_never_lower_the_odds(graph: Any, random: Any) -> None:
    n, edges, odds = graph
    weight = odds[edges.edge]
    good = np.flatnonzero(odds > 0)
    order, last = good[np.argsort(-odds[good], kind="stable")], 0.0
    for count in range(len(order) + 1):  # joined by the surest links only
        label = np.arange(n)
        follow, end, size = np.full(n, -1), np.arange(n), np.ones(n, np.int64)
        join(order[:count], edges.left, edges.right, edges.ptr, edges.other, weight, label, follow, end, size)
        value = alone._total(edges, odds, label)
        assert value >= last - 1e-9
        last = value
    assert alone._total(edges, odds, alone._partition(edges, odds, n)) >= last - 1e-9
    label = np.array([random.randrange(n) for _ in range(n)])
    moved = alone._moved(edges, weight, label)
    assert alone._total(edges, odds, moved) >= alone._total(edges, odds, label) - 1e-9


@given(graphs())
@settings(max_examples=60)
def test_sampling_finds_the_best_clusters_of_few_items(graph: Any) -> None:
    n, edges, odds = graph
    if n > 7:
        return
    best = max(alone._total(edges, odds, part) for part in partitions(n))
    label = alone._searched(edges, odds, n, np.random.default_rng(0))
    assert alone._total(edges, odds, label) <= best + 1e-9
    assert alone._total(edges, odds, label) >= 0.8 * best - 1e-9


@given(graphs())
@settings(max_examples=100)
def test_clusters_of_answers_alone_hang_together(graph: Any) -> None:
    n, edges, odds = graph
    hang_together(alone._partition(edges, odds, n), edges)


def hang_together(label: Any, edges: alone.Edges) -> None:
    inside = label[edges.left] == label[edges.right]
    assert len(np.unique(components(edges.left[inside], edges.right[inside], len(label)))) == len(np.unique(label))


def test_a_cluster_whose_middle_moves_away_is_two() -> None:
    links = {"ad": 5, "ce": 5, "ab": 2, "bc": 2, "bx": 1.5, "by": 1.5, "bz": 1.5, "dx": -3, "dy": -3, "dz": -3, "xy": 1,
             "yz": 1}  # fmt: skip
    place = {name: k for k, name in enumerate("abcdexyz")}
    left, right = (np.array([place[link[end]] for link in links]) for end in (0, 1))
    edges = alone.Edges.of(left, right, 8)
    hang_together(alone._partition(edges, np.array(list(links.values()), float), 8), edges)


def test_evidence_is_that_of_averaged_workers_and_a_restaurant() -> None:
    """The chance of all answers with workers integrated out, and of the clusters by seating one after another."""
    a = told(3, 5, 2, 14)._replace(weight=np.ones(14))
    key, edge = np.unique(a.left * 5 + a.right, return_inverse=True)
    edges = alone.Edges.of(key // 5, key % 5, 5)
    prior, label = np.array([2.0, 1.0]), np.array([0, 0, 1, 1, 2])
    chance = 0.0
    for w, inside in product(range(2), (True, False)):
        right, wrong = prior  # one answer after another, by those before
        for k in range(14):
            if a.worker[k] == w and (label[a.left[k]] == label[a.right[k]]) == inside:
                good = bool(a.same[k]) == inside
                chance += np.log((right if good else wrong) / (right + wrong))
                right, wrong = right + good, wrong + (not good)

    def seated(concentration: float) -> float:
        value, tables = 0.0, {}
        for i, table in enumerate(label):
            value += np.log(tables.get(table, concentration) / (i + concentration))
            tables[table] = tables.get(table, 0) + 1
        return float(value)

    best = max(seated(10.0**c) for c in np.linspace(-2, 6, 33))
    assert alone.evidence(a, edges, edge, label, prior) == pytest.approx(chance + best)


def test_pairs_one_by_one_climb_their_bound() -> None:
    pairs = about(HALVES, 0.3, 4, right=0.75)
    left, _, edge = pairs.edges
    prior = np.array([2.0, 1.0])
    _, P, coins, bound, converged = alone.one_by_one(Answers.of(pairs), edge, len(left), prior, 500, ONE)
    assert converged
    assert (np.diff(bound) >= -1e-9).all()
    assert ((P > 0) & (P < 1)).all()
    wanted = Coins.seen(Answers.of(pairs), P[edge], prior)
    assert np.allclose(coins.alpha, wanted.alpha, rtol=0.01)


def test_products_are_found_better_than_by_votes_and_by_workers(shared_data: Path) -> None:
    frame = pl.read_parquet(shared_data / "product_er" / "pairs.parquet")
    truth = pl.read_parquet(shared_data / "product_er" / "pairs_truth.parquet")
    ours = cw.match_clusters(cw.aggregate(cw.Pairs(frame)), truth)["f1"]
    pair = pl.concat_str("left", "right", separator="|").alias("task")
    labels = frame.select(pair, "worker", pl.col("answer").alias("label"))
    true = truth.select(pair, pl.col("answer").alias("true"))
    scores = {}
    for name in ("majority-vote", "dawid-skene"):
        both = cw.aggregate(labels, name).labels.select("task", "label").join(true, on="task")
        said, same = both["label"].to_numpy() == 1, both["true"].to_numpy() == 1
        scores[name] = 2 * (said & same).sum() / (said.sum() + same.sum())
    assert both.height == 8315
    assert 0.55 < scores["majority-vote"] < scores["dawid-skene"] < ours
    assert ours > 0.72


# ----------------------------------------------------------------------------------------------------------------- jobs


def test_answers_of_a_job_make_workers_less_sure(shared_data: Path) -> None:
    frame = pl.read_parquet(shared_data / "mnist_pairs" / "pairs.parquet")
    few = frame.filter(pl.col("hit") < 20)
    hung, free = (cw.aggregate(cw.Pairs(f), "pair-vote").workers for f in (few, few.drop("hit")))
    assert hung["worker"].to_list() == free["worker"].to_list()
    assert hung["answers"].to_list() == free["answers"].to_list()
    assert (hung["counted"].to_numpy() < 0.5 * free["counted"].to_numpy()).all()
    assert np.array_equal(free["counted"], free["answers"])
    width = [w["high"].to_numpy() - w["low"].to_numpy() for w in (hung, free)]
    assert (width[0] > 1.2 * width[1]).all()


def test_counted_answers_are_what_the_mixture_counts() -> None:
    """A whole sorting job says no more than its weights: sums of what was counted are those of the coins."""
    truth = np.repeat(np.arange(3), 4)
    rows = [(IDS[a], IDS[b], "w", int(truth[a] == truth[b]), 1) for a, b in combinations(range(12), 2)]
    pairs = cw.Pairs(pl.DataFrame(rows, ["left", "right", "worker", "answer", "hit"], orient="row"))
    X = truth[:, None] * 9.0 + np.random.default_rng(0).normal(size=(12, 2))
    result = cw.aggregate(pairs, features=(IDS[:12], X), parts=3)
    seen = result.params.alpha.sum() + result.params.beta.sum() - 2 * 3.0
    assert seen == pytest.approx(pairs.weight.sum()) == pytest.approx(result.workers["counted"].sum())
    assert seen == pytest.approx(3 * 4 / 2 + 3 * 4)


# ---------------------------------------------------------------------------------------------------- starts and merges


def test_components_are_joined_while_the_odds_speak_for_it() -> None:
    S = np.array([[0, 5, -9, 0], [5, 0, 2, 0], [-9, 2, 0, 0], [0, 0, 0, 0]], float)
    n = np.array([[0, 2, 3, 0], [2, 0, 1, 0], [3, 1, 0, 0], [0, 0, 0, 0]], float)
    assert merge.joined(S, n).tolist() == [0, 0, 1, 2]
    S[0, 2] = S[2, 0] = -1
    assert merge.joined(S, n).tolist() == [0, 0, 0, 1]
    centres = np.array([[0.0], [1], [9], [8]])
    assert merge.adopted(np.array([0, 0, 1, 2]), np.array([1, 1, 1, 0]), centres).tolist() == [0, 0, 1, 1]


def test_tables_between_components_are_sums_over_answers() -> None:
    a, which = told(2), np.array([0, 0, 1, 1, 2, 2])
    odds = first_odds(a)
    S, n = merge.between(a.left, a.right, odds, a.weight, which, 3)
    for p, q in product(range(3), repeat=2):
        mine = [k for k in range(25) if {p, q} == {which[a.left[k]], which[a.right[k]]}]
        twice = 2 if p == q else 1
        assert S[p, q] == pytest.approx(twice * odds[mine].sum())
        assert n[p, q] == pytest.approx(twice * a.weight[mine].sum())
    assert np.allclose(odds, a.weight * np.where(a.same, 1, -1) * np.log(9))


def test_k_means_leaves_no_row_far() -> None:
    centres = gaussians.k_means(BLOBS, 2, np.random.default_rng(0))
    which, away = gaussians.near(BLOBS, centres)
    assert len(set(which[:20])) == len(set(which[20:])) == 1
    assert np.allclose(away, ((BLOBS - centres[which]) ** 2).sum(1))
    assert np.allclose(centres[which[0]], BLOBS[:20].mean(0))
    assert len(gaussians.k_means(np.repeat([[0.0], [1.0]], 5, axis=0), 7, np.random.default_rng(0))) == 2


# ----------------------------------------------------------------------------------------------------------- hard input

FEATURES: dict[str, Any] = {
    "constant": np.ones((40, 2)),
    "one column": BLOBS[:, :1],
    "twice the same column": BLOBS[:, [0, 0]],
    "rows of two kinds": np.repeat([[0.0, 0.0], [5.0, 5.0]], 20, axis=0),
    "yes and no": BLOBS > 4,
    "bytes": (np.clip(BLOBS, 0, 10) * 20).astype(np.uint8),
    "far away": BLOBS + 1e7,
    "images": np.random.default_rng(0).random((40, 3, 3)) + HALVES[:, None, None],
}


@pytest.mark.parametrize("name", FEATURES)
def test_features_of_any_kind_give_sound_answers(name: str) -> None:
    X = FEATURES[name]
    result = cw.aggregate(about(HALVES, 0.3, right=0.95), features=(IDS, X), restarts=2, run=ONE)
    assert sound(result)
    assert (result.assign(X)["cluster"] <= result.n_clusters).all()
    if name != "constant":
        assert cw.match_clusters(result, {"item": IDS, "label": HALVES})["accuracy"] == 1


@pytest.mark.parametrize("parts", [1, 2, 40, 500])
def test_any_number_of_components(parts: int) -> None:
    assert sound(cw.aggregate(about(HALVES, 0.1), features=(IDS, BLOBS), parts=parts, restarts=2, run=ONE))


FEW: dict[str, list[Any]] = {
    "one pair": [("i00", "i01", "w", 1)],
    "one pair apart": [("i00", "i01", "w", 0)],
    "a worker of one answer": [*((f"i0{k}", f"i0{k + 1}", "w", 1) for k in range(4)), ("i00", "i39", "v", 0)],
    "all the same": [(f"i0{a}", f"i0{b}", w, 1) for a, b in combinations(range(5), 2) for w in "uv"],
    "all different": [(f"i0{a}", f"i0{b}", w, 0) for a, b in combinations(range(5), 2) for w in "uv"],
    "disconnected": [("i00", "i01", "u", 1), ("i10", "i11", "u", 1), ("i30", "i31", "v", 1), ("i20", "i25", "v", 0)],
    "a ring of no": [("i00", "i01", "u", 0), ("i01", "i02", "u", 0), ("i02", "i00", "u", 0)],
    "a chain against itself": [("i00", "i01", "u", 1), ("i01", "i02", "u", 1), ("i02", "i00", "u", 0)],
}  # fmt: skip


@pytest.mark.parametrize("how", ["alone", "features"])
@pytest.mark.parametrize("name", FEW)
def test_few_answers_give_sound_clusters(name: str, how: str) -> None:
    pairs = answers(FEW[name])
    result = cw.aggregate(pairs, features=(IDS, BLOBS) if how == "features" else None, restarts=2, run=ONE)
    assert sound(result)
    assert result.converged
    home = dict(result.clusters.select("item", "cluster").rows())
    if how == "alone":
        apart = {"one pair": 1, "one pair apart": 2, "all the same": 1, "all different": 5, "a ring of no": 3}
        assert name not in apart or result.n_clusters == apart[name]
        if name == "disconnected":
            assert home["i00"] == home["i01"] != home["i10"] == home["i11"] != home["i30"] == home["i31"] != home["i00"]
            assert home["i20"] != home["i25"]
    if name.startswith("all"):
        word = "the same" if name == "all the same" else "different"
        assert any(f"every answer is {word!r}" in text for text in result.warnings)


def test_a_pair_that_contradicts_itself_is_in_doubt() -> None:
    pairs = cw.Pairs({"left": ["a", "a"], "right": ["b", "b"], "worker": ["w", "w"], "answer": [1, 0]},
                     contradictions="each")  # fmt: skip
    result = cw.aggregate(pairs)
    assert sound(result)
    assert 0.1 < result.asked["probability"][0] < 0.9


@pytest.mark.parametrize("n", [2, 3])
def test_hardly_any_items(n: int) -> None:
    ids = IDS[:n]
    for answer in (0, 1):
        result = cw.aggregate(answers([(ids[0], ids[1], "w", answer)]), features=(ids, BLOBS[:n]), restarts=2, run=ONE)
        assert sound(result)
        assert result.pairs.n_items == n


def test_nobody_has_answered() -> None:
    for pairs in (cw.Pairs.none(IDS), answers([("x", "y", "w", 1)]).on(IDS, "drop")):
        with pytest.raises(EmptyDataError, match="no answers"):
            cw.aggregate(pairs, features=(IDS, BLOBS))
    with pytest.raises(EmptyDataError, match="no answers"):
        cw.aggregate(cw.Pairs.none(IDS))


@pytest.mark.parametrize(("features", "said"), [
    ((IDS, np.where(np.arange(80).reshape(40, 2) == 7, np.nan, 1.0)), r"1 item\(s\) .* the first 'i03' in column 2"),
    ((IDS, np.where(np.arange(80).reshape(40, 2) == 6, np.inf, 1.0)), r"1 item\(s\) .* the first 'i03' in column 1"),
    ((IDS, [["a", "b"]] * 40), "wanted are numbers"),
    ((IDS, [[1, None]] * 40), "wanted are numbers"),
    ((IDS, BLOBS + 1j), "wanted are numbers"),
    ((IDS, BLOBS[:, 0]), r"of shape \(40,\); wanted are numbers, a row an item"),
    ((IDS, BLOBS[:, :0]), "X has no columns"),
    ((IDS, BLOBS[:5]), "X has 5 rows and there are 40 ids"),
    ((IDS, [[1, 2]] * 39 + [[1]]), "a row of as many numbers"),
    ((IDS[1:], BLOBS[1:]), "1 of 20 items in pairs have no features, for instance 'i00'"),
    ((IDS[:39] + IDS[:1], BLOBS), "item 'i00' has more than one row of features"),
    (([*IDS[:39], None], BLOBS), "have no item"),
    ((IDS, BLOBS * 1e200), "Scale them"),
    ((IDS, BLOBS * 1e-200), "Scale them"),
    (BLOBS, r"features are ndarray; give a tuple of ids and rows, \(ids, X\)"),
    (7, "features are int"),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_features_that_cannot_be_used_are_refused(features: Any, said: str) -> None:
    pairs = about(HALVES[:20], 0.3)
    for name in ("pair-mixture", "k-means-items", "bayes-scdc"):
        with pytest.raises(FeatureError, match=said):
            cw.aggregate(pairs, name, features=features)


def test_features_may_come_in_any_order_and_from_any_frame() -> None:
    pairs = about(HALVES, 0.1)
    one = cw.aggregate(pairs, features=(IDS, BLOBS), restarts=2, run=ONE)
    for X in (BLOBS.tolist(), pl.DataFrame(BLOBS)):
        assert same_bits(cw.aggregate(pairs, features=(pl.Series(IDS), X), restarts=2, run=ONE), one)
    turned = cw.aggregate(pairs, features=(IDS[::-1], BLOBS[::-1]), restarts=2, run=ONE)
    assert turned.clusters["item"].to_list() == IDS[::-1]
    assert cw.match_clusters(turned, {"item": IDS, "label": HALVES})["accuracy"] == 1


WRONG: list[dict[str, Any]] = [
    {"parts": 0}, {"parts": 1.5}, {"parts": True}, {"dims": 0}, {"restarts": 0}, {"restarts": -1}, {"right": 0},
    {"right": float("nan")}, {"wrong": -1}, {"wrong": float("inf")}, {"scale": "no"}, {"space": "latent"},
    {"turn": "no"}, {"max_iter": 0}, {"max_iter": -5}, {"n_iter": 5},
]  # fmt: skip


@pytest.mark.parametrize("chosen", WRONG, ids=str)
def test_wrong_settings_are_refused_before_any_work(chosen: dict[str, Any]) -> None:  # D30
    name = next(iter(chosen))
    with pytest.raises(ParameterError, match=rf"{name} is |no setting '{name}'"):
        cw.aggregate(cw.Pairs.none([]), features="no features either", **chosen)


def test_what_is_no_pairs_is_refused() -> None:
    with pytest.raises(DataError, match=r"got dict. Give crowdwise.Pairs"):
        cw.aggregate({"task": [1], "worker": [1], "label": [1]}, "pair-mixture")
    with pytest.raises(ParameterError, match="features= goes with pairs"):
        cw.aggregate({"task": [1], "worker": [1], "label": [1]}, features=(IDS, BLOBS))


def test_doubt_counts_what_lies_beyond_the_likeliest_clusters() -> None:
    result = cw.aggregate(cw.simulate.pinwheel(seed=1).pairs, "pair-vote")
    n = result.pairs.n_items
    few = result.params._replace(choices=np.tile([0, 1], (n, 1)), chances=np.tile([0.5, 0.3], (n, 1)))
    wanted = -(0.5 * np.log(0.5) + 0.3 * np.log(0.3) + 0.2 * np.log(0.2))
    assert dataclasses.replace(result, params=few).entropy == pytest.approx(np.full(n, wanted))


def test_an_item_left_alone_is_not_sure_where_answers_waver() -> None:
    rows = [("a", "b", w, 1) for w in "uvw"] + [("c", "d", "u", 1), ("c", "d", "v", 0), ("c", "d", "w", 0)]
    rows += [("e", "f", w, 0) for w in "uvw"] + [("a", "e", w, 0) for w in "uvw"]
    frame = pl.DataFrame(rows, ["left", "right", "worker", "answer"], orient="row")
    result = cw.aggregate(cw.Pairs(frame))
    chance = dict(zip(result.clusters["item"].to_list(), result.clusters["probability"].to_list(), strict=True))
    assert result.sizes["items"].to_list() == [2, 1, 1, 1, 1]
    assert 0.5 < chance["c"] < chance["e"]
    assert chance["c"] == chance["d"]
