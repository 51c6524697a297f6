"""pair-mixture: Gaussians, workers, messages and the evidence lower bound, each against a formula written out."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from pairing import BLOBS, ONE, random_answers
from scipy import stats
from scipy.special import digamma, gammaln, logsumexp, multigammaln

import crowdwise as cw
from crowdwise.kernels.fast.links import pass_messages
from crowdwise.pairs import gaussians, merge, mixture
from crowdwise.pairs.gaussians import Normals, Prior, phi
from crowdwise.pairs.model import Coins, first_odds
from crowdwise.pairs.without_features import Edges

pytestmark = pytest.mark.filterwarnings("error")


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
    made = Normals.from_sums(R.T @ phi(X), prior)
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


def test_workers_are_two_coins() -> None:
    a, prior = random_answers(), np.array([2.0, 1.0])
    same = np.random.default_rng(1).random(25)
    coins = Coins.from_answers(a, same, prior)
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


def linked(strength: float = 1.0, C: int = 3) -> tuple[Edges, Any, Any, Any]:
    """Links between items, their odds, log-likelihoods of features, and initial assignments."""
    rng, a = np.random.default_rng(0), random_answers()
    links = Edges.of(a.left, a.right, a.n_items)
    assert (np.diff(links.ptr) > 0).all()  # every item has a link
    return links, strength * rng.normal(size=25), rng.normal(size=(6, C)), rng.dirichlet(np.ones(C), 6)


def test_one_round_of_messages_is_that_of_a_loop() -> None:
    links, odds, U, R = linked()
    n, C = R.shape
    M, own, spoken = np.empty((n, C)), np.empty(n), R.copy()
    moved = pass_messages(links.ptr, links.other, odds[links.edge], U, spoken, M, own)
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
    assert moved == changed > 0


@pytest.mark.parametrize(("strength", "gap"), [(0.05, 0.01), (1.0, 2.5), (4.0, 12.0)])
def test_messages_rise_to_a_bound_below_the_sum_over_all_clusterings(strength: float, gap: float) -> None:
    links, odds, U, R = linked(strength)
    n, C = R.shape
    M, own, values = np.empty((n, C)), np.empty(n), []
    for _ in range(60):
        pass_messages(links.ptr, links.other, odds[links.edge], U, R, M, own)
        values.append(own.sum() + (odds * (R[links.left] * R[links.right]).sum(1)).sum())
    assert (np.diff(values) >= -1e-9).all()
    ends = list(zip(links.left, links.right, odds, strict=True))
    terms = [
        sum(U[i, z[i]] for i in range(n)) + sum(w for a, b, w in ends if z[a] == z[b])
        for z in product(range(C), repeat=n)
    ]
    assert -1e-9 <= logsumexp(terms) - values[-1] < gap


def begun(seed: int = 0, **settings: Any) -> mixture._Fit:
    """A small fit at its start: 30 items, 12 of them asked about."""
    X = np.random.default_rng(seed).normal(size=(30, 2)) + 3 * np.repeat([[0, 0], [1, 1], [0, 2]], 10, axis=0)
    model = cw.PairMixture(**{"parts": 4, **settings})
    return mixture._Fit(model, X, random_answers(seed, 12, 3, 40)._replace(n_items=30), ONE, seed % 2)


def test_the_trace_counts_the_clusters_of_all_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third group has no answers and is a cluster of its own; the last count is that of the result."""
    fit = begun(parts=3)
    third = ((fit.normals.mean - fit.X[20:].mean(0)) ** 2).sum(1).argmin()
    fit._start((np.arange(3) == third).astype(int), mixture._one_hot(np.zeros(len(fit.items), int), 2))
    assert fit.step().counts == {"clusters": 2}
    assert not fit.R.argmax(1).any()
    monkeypatch.setattr(mixture, "MIN_EXPECTED_ITEMS", np.inf)
    sim = cw.simulate.pinwheel(per_cluster=16, asked=50, workers=6, seed=2)
    result = cw.aggregate(sim.pairs, features=sim.features, restarts=1)
    assert result.trace["clusters"].to_list() == [0] * (result.trace.height - 1) + [result.n_clusters]


def whole_bound(c: mixture._Fit, before: Any) -> float:
    """Every term of the bound written out, item by item, component by component, cluster by cluster."""
    normals_, theta, coins = before
    A, B = phi(c.X) @ normals_.coefficients(), np.log(theta)
    (K, C), place = theta.shape, {int(item): k for k, item in enumerate(c.items)}
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


@pytest.mark.parametrize("seed", range(2))  # one of either kind of start
def test_the_bound_is_that_written_out(seed: int) -> None:
    c = begun(seed)
    values = []
    for _ in range(5):
        before = (c.normals, c.theta, c.coins)
        value, _ = c.step()
        assert value == pytest.approx(whole_bound(c, before), rel=1e-9)
        values.append(value)
    assert (np.diff(values) >= -1e-9).all()


@pytest.mark.parametrize("seed", range(2))
def test_what_follows_an_iteration_is_best_given_the_items(seed: int) -> None:
    """Any other workers, components or loyalties lower the bound, with the items fixed."""
    c = begun(seed)
    before = (c.normals, c.theta, c.coins)
    c.step()
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


def _local(c: mixture._Fit, before: Any) -> Any:
    """(N, K, C) component and cluster of every item, as the iteration had them."""
    normals_, theta, _ = before
    logs = (phi(c.X) @ normals_.coefficients())[:, :, None] + np.log(theta)
    q = np.exp(logs - logsumexp(logs, axis=(1, 2), keepdims=True))
    asked = c.items
    q[asked] = np.exp(logs[asked] - logsumexp(logs[asked], axis=1, keepdims=True)) * c.R[:, None, :]
    return q


def _given(c: mixture._Fit, q: Any, rest: Any) -> float:
    """The part of the bound that is not the items' own entropy."""
    normals_, theta, coins = rest
    yes, no = coins.logs(c.answers)
    logs = (phi(c.X) @ normals_.coefficients())[:, :, None] + np.log(theta)
    P = c._same()
    value = (q * logs).sum() + (P * yes + (1 - P) * no).sum() + (c.loyal * np.log(theta)).sum()
    return float(value - coins.divergence() - normals_.divergence(c.gauss))


def test_blocks_change_nothing_but_the_last_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = begun()
    monkeypatch.setattr(gaussians, "BLOCK_ROWS", 7)
    cut = begun()
    for _ in range(3):
        assert whole.step().objective == pytest.approx(cut.step().objective, rel=1e-12)


# ---------------------------------------------------------------------------------------------------- starts and merges


def test_components_are_joined_while_the_odds_speak_for_it() -> None:
    S = np.array([[0, 5, -9, 0], [5, 0, 2, 0], [-9, 2, 0, 0], [0, 0, 0, 0]], float)
    n = np.array([[0, 2, 3, 0], [2, 0, 1, 0], [3, 1, 0, 0], [0, 0, 0, 0]], float)
    assert merge.join_components(S, n).tolist() == [0, 0, 1, 2]
    S[0, 2] = S[2, 0] = -1
    assert merge.join_components(S, n).tolist() == [0, 0, 0, 1]
    centres = np.array([[0.0], [1], [9], [8]])
    assert merge.assign_unasked(np.array([0, 0, 1, 2]), np.array([1, 1, 1, 0]), centres).tolist() == [0, 0, 1, 1]


def test_tables_between_components_are_sums_over_answers() -> None:
    a, which = random_answers(2), np.array([0, 0, 1, 1, 2, 2])
    odds = first_odds(a)
    S, n = merge.answers_between(a.left, a.right, odds, a.weight, which, 3)
    for p, q in product(range(3), repeat=2):
        mine = [k for k in range(25) if {p, q} == {which[a.left[k]], which[a.right[k]]}]
        twice = 2 if p == q else 1
        assert S[p, q] == pytest.approx(twice * odds[mine].sum())
        assert n[p, q] == pytest.approx(twice * a.weight[mine].sum())
    assert np.allclose(odds, a.weight * np.where(a.same, 1, -1) * np.log(9))


def test_k_means_leaves_no_row_far() -> None:
    centres = gaussians.k_means(BLOBS, 2, np.random.default_rng(0))
    which, away = gaussians.nearest_centres(BLOBS, centres)
    assert len(set(which[:20])) == len(set(which[20:])) == 1
    assert np.allclose(away, ((BLOBS - centres[which]) ** 2).sum(1))
    assert np.allclose(centres[which[0]], BLOBS[:20].mean(0))
    assert len(gaussians.k_means(np.repeat([[0.0], [1.0]], 5, axis=0), 7, np.random.default_rng(0))) == 2


def test_a_join_of_many_answers_comes_before_one_of_a_single_clear_one() -> None:
    S = np.array([[0, 2.2, -10], [2.2, 0, 20], [-10, 20, 0]])
    n = np.array([[0, 1, 5], [1, 0, 10], [5, 10, 0]], float)
    assert merge.join_components(S, n).tolist() == [0, 1, 1]
