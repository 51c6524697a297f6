"""bayes-scdc and scdc: posteriors, messages, bounds, networks and starts, each against a formula written out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, expit, logsumexp
from scipy.special import softmax as shares_of

import crowdwise as cw
from crowdwise.errors import FeatureError
from crowdwise.pairs.gaussians import Normals, Prior, phi
from crowdwise.pairs.model import Coins, PairAnswers

torch = pytest.importorskip("torch")

from crowdwise.pairs.deep import amortised, bayes, networks, posteriors, starts  # noqa: E402
from crowdwise.pairs.deep.posteriors import Globals, Placed  # noqa: E402
from crowdwise.pairs.deep.relations import Relations  # noqa: E402

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(autouse=True)
def one_core() -> Iterator[None]:
    """Small tensors are slower in threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def as_answers(rows: Any, n_items: int, n_workers: int, weight: Any = None) -> PairAnswers:
    """Rows of left, right, worker and answer."""
    table = np.array(rows, np.int64).reshape(-1, 4)
    weight = np.ones(len(table)) if weight is None else weight
    return PairAnswers(*table[:, :3].T.copy(), table[:, 3] == 1, weight, n_items, n_workers)


# ---------------------------------------------------------------------------------------------- posteriors, written out


def posterior_twice(K: int = 3, d: int = 2, W: int = 2, seed: int = 0) -> tuple[Globals, Normals, Any, Any]:
    """The same posterior twice: as parameters of steps, and as Normals with the workers' Beta parameters."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(K, d, d))
    S, m = A @ A.transpose(0, 2, 1) + np.eye(d), rng.normal(size=(K, d))
    counts, kappa, nu = rng.uniform(0.5, 9, K), rng.uniform(0.5, 5, K), d + 1 + 5 * rng.random(K)
    alpha, beta = rng.uniform(1, 9, (W, 2)), rng.uniform(1, 9, (W, 2))
    second = S + kappa[:, None, None] * m[:, :, None] * m[:, None, :]
    arrays = (counts, kappa[:, None] * m, second, kappa, nu, alpha, beta)
    return Globals(*(torch.as_tensor(a) for a in arrays)), Normals(counts, m, kappa, nu, S), alpha, beta


def test_centres_come_back_from_the_parameters_of_steps() -> None:
    g, made, _, _ = posterior_twice()
    m, S = g.centre()
    assert np.allclose(m, made.mean)
    assert np.allclose(S, made.S)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_expected_densities_are_those_of_the_formula(d: int) -> None:
    g, made, _, _ = posterior_twice(d=d)
    rng = np.random.default_rng(5)
    a, B = rng.normal(size=(6, d)), rng.normal(size=(6, d, d))
    V = B @ B.transpose(0, 2, 1)
    second = V + a[:, :, None] * a[:, None, :]
    e = posteriors.expected(g)
    got = posteriors.densities(e, torch.as_tensor(a).float(), torch.as_tensor(second).float()).numpy()
    for n in range(6):
        for k in range(3):
            L = made.nu[k] * np.linalg.inv(made.S[k])
            log_det = digamma((made.nu[k] - np.arange(d)) / 2).sum() + d * np.log(2) - np.linalg.slogdet(made.S[k])[1]
            away = a[n] - made.mean[k]
            squares = d / made.kappa[k] + away @ L @ away + np.trace(L @ V[n])
            assert got[n, k] == pytest.approx(0.5 * (log_det - d * np.log(2 * np.pi) - squares), rel=1e-4, abs=1e-4)


def test_expected_densities_of_points_are_those_of_the_mixture_without_networks() -> None:
    g, made, _, _ = posterior_twice()
    X = np.random.default_rng(2).normal(size=(9, 2)) * 2
    e, x = posteriors.expected(g), torch.as_tensor(X).float()
    got = e.log_share + posteriors.densities(e, x, x[:, :, None] * x[:, None, :])
    assert np.allclose(got.numpy(), phi(X) @ made.coefficients(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("width", [1.0, 0.02])
def test_the_divergence_is_that_of_the_mixture_without_networks(width: float) -> None:
    g, made, alpha, beta = posterior_twice()
    p = posteriors.prior(3, 2, 2, width)
    before = Prior(0.05, 0.5, 2.5, 2.5 * width * np.eye(2))
    wanted = made.divergence(before) + Coins(alpha, beta, np.ones(2)).divergence()
    assert posteriors.divergence(g, p) == pytest.approx(wanted, rel=1e-9)
    assert posteriors.divergence(p, p) == pytest.approx(0, abs=1e-9)
    for seed in range(5):
        assert posteriors.divergence(posterior_twice(seed=seed)[0], p) > 0.1
    nobody = posteriors.prior(3, 2, 0, width)
    assert posteriors.divergence(nobody, nobody) == pytest.approx(0, abs=1e-9)


def test_expected_answers_are_those_of_two_coins() -> None:
    g, _, alpha, beta = posterior_twice()
    e = posteriors.expected(g)
    a = as_answers([(0, 1, w, same) for w in range(2) for same in (0, 1)], 2, 2)
    yes, no = Coins(alpha, beta, np.ones(2)).logs(a)
    assert np.allclose(e.same.numpy().ravel(), yes, atol=1e-5)
    assert np.allclose(e.different.numpy().ravel(), no, atol=1e-5)


def test_a_place_is_the_product_of_potential_and_component() -> None:  # eq. (12)
    g, made, _, _ = posterior_twice()
    rng = np.random.default_rng(3)
    precision, pull, z = rng.uniform(0.1, 3, (5, 2)), rng.normal(size=(5, 2)), rng.dirichlet(np.ones(3), 5)
    x = posteriors.place(posteriors.expected(g), *(torch.as_tensor(a).float() for a in (precision, pull, z)))
    L = made.nu[:, None, None] * np.linalg.inv(made.S)
    for n in range(5):
        P = np.diag(precision[n]) + np.einsum("k,kde->de", z[n], L)
        h = pull[n] + np.einsum("k,kde,ke->d", z[n], L, made.mean)
        mean, cov = np.linalg.solve(P, h), np.linalg.inv(P)
        assert np.allclose(x.mean[n], mean, atol=1e-4)
        assert np.allclose(x.second[n], cov + np.outer(mean, mean), atol=1e-4)
        assert np.allclose(x.root[n] @ x.root[n].T, P, rtol=1e-4)


def test_draws_of_a_place_have_its_moments() -> None:
    root = torch.tensor([[1.5, 0.0], [-0.7, 0.8]])
    mean = torch.tensor([3.0, -1.0])
    n = 40_000
    torch.manual_seed(0)
    x = posteriors.sample_x(Placed(mean.repeat(n, 1), torch.zeros(n, 2, 2), root.repeat(n, 1, 1))).numpy()
    assert np.allclose(x.mean(0), mean, atol=0.05)
    assert np.allclose(np.cov(x.T), np.linalg.inv(root.numpy() @ root.numpy().T), atol=0.08)


def test_terms_of_an_item_are_component_place_and_entropies() -> None:
    g, _, _, _ = posterior_twice()
    e, rng = posteriors.expected(g), np.random.default_rng(4)
    z = torch.as_tensor(rng.dirichlet(np.ones(3), 4)).float()
    x = posteriors.place(e, torch.rand(4, 2) + 0.5, torch.randn(4, 2), z)
    got = posteriors.local_bound(e, z, x).numpy()
    logs = (e.log_share + posteriors.densities(e, x.mean, x.second)).numpy()
    for n in range(4):
        cov = np.linalg.inv((x.root[n] @ x.root[n].T).numpy())
        entropy = stats.multivariate_normal(np.zeros(2), cov).entropy()
        q = z[n].numpy()
        assert got[n] == pytest.approx((q * (logs[n] - np.log(q))).sum() + entropy, abs=1e-4)


# ------------------------------------------------------------------------------------------------ messages, written out


def prepared(rows: Any, weight: Any = None, n: int = 8, K: int = 3, **more: Any) -> bayes._Model:
    """Untrained networks, random components and two workers on a few items."""
    X = np.random.default_rng(6).normal(size=(n, 2))
    with networks.seeded(np.random.default_rng(7)):
        settings = cw.BayesScdc(parts=K, hidden=(6,), epochs=1, **more)
        scaling, o, shape = networks.prepare(X, settings)
        nets = networks.build_networks(o, shape, scaling.observation)
        model = bayes._Model(o, nets, Relations(as_answers(rows, n, 2, weight), n), settings)
    model.now = posterior_twice(K)[0]
    return model


ROWS = [(0, 1, 0, 1), (0, 1, 1, 0), (1, 2, 0, 0), (3, 4, 1, 1), (0, 4, 0, 1), (2, 4, 1, 0)]
WEIGHT = np.array([1.0, 0.5, 1.0, 0.3, 0.8, 1.0])


def test_items_converge_where_messages_and_features_agree() -> None:  # eq. (14)
    model = prepared(ROWS, WEIGHT)
    e = posteriors.expected(model.now)
    with torch.no_grad():
        precision, pull = model.potentials()
        first = posteriors.first_guess(e, precision, pull)
        z = model.pass_messages(e, precision, pull, model.relations.full_batch(), times=30)
    P, h, table = precision.numpy().astype(float), pull.numpy().astype(float), z.numpy().astype(float)
    L, b, offset = (t.numpy().astype(float) for t in (e.precision, e.pull, e.offset))
    for i in range(8):
        cov = np.linalg.inv(np.diag(P[i]) + np.einsum("k,kde->de", table[i], L))
        mean = cov @ (h[i] + table[i] @ b)
        second = cov + np.outer(mean, mean)
        logits = e.log_share.numpy() + offset + b @ mean - 0.5 * np.einsum("kde,ed->k", L, second)
        for (left, right, worker, same), weight in zip(ROWS, WEIGHT, strict=True):
            if i in (left, right):  # every answer sends its whole weight to both ends
                odds = float(e.same[worker, same] - e.different[worker, same])
                logits = logits + weight * odds * table[right if i == left else left]
        assert np.allclose(shares_of(logits), table[i], atol=1e-3)
    assert not np.allclose(first.numpy()[[0, 1, 2, 4]], table[[0, 1, 2, 4]], atol=1e-2)


def test_the_same_pulls_together_and_different_apart() -> None:
    def overlap(rows: Any) -> float:
        model = prepared(rows, width=1.0)
        good = torch.tensor([[20.0, 1.0]] * 2, dtype=torch.float64)
        model.now.alpha, model.now.beta = good, good.clone()
        e = posteriors.expected(model.now)
        with torch.no_grad():
            z = model.pass_messages(e, *model.potentials(), model.relations.full_batch(), times=4)
        return float(z[0] @ z[1])

    apart, nothing, together = overlap([(0, 1, 0, 0)]), overlap([]), overlap([(0, 1, 0, 1)])
    assert apart + 0.02 < nothing < together - 0.02
    assert overlap([(0, 1, w, 1) for w in range(2)]) > together


def test_an_inverted_worker_is_read_as_the_opposite() -> None:
    model = prepared([(0, 1, 0, 1), (0, 1, 1, 0)])
    model.now.alpha = torch.tensor([[20.0, 1.0], [1.0, 20.0]], dtype=torch.float64)
    model.now.beta = model.now.alpha.clone()
    odds = model.odds(posteriors.expected(model.now), model.relations.full_batch())
    assert (odds > 2).all()  # "different" of a liar is "the same"


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_a_step_is_that_of_the_conjugate_posterior(share: float) -> None:  # eq. (17)
    model = prepared(ROWS, WEIGHT)
    rng = np.random.default_rng(8)
    X, R = rng.normal(size=(8, 2)), rng.dirichlet(np.ones(3), 8)
    x, z = torch.as_tensor(X).float(), torch.as_tensor(R).float()
    model.table = z.clone()
    before = model.now
    placed = Placed(x, x[:, :, None] * x[:, None, :], torch.zeros(8, 2, 2))
    model.update_globals(z, placed, model.relations.full_batch(), step=share)
    width = float(model.prior.second[0, 0, 0]) / 2.5
    wanted = Normals.from_sums(R.T @ phi(X), Prior(0.05, 0.5, 2.5, 2.5 * width * np.eye(2)))
    second = wanted.S + wanted.kappa[:, None, None] * wanted.mean[:, :, None] * wanted.mean[:, None, :]
    a = as_answers(ROWS, 8, 2, WEIGHT)
    coins = Coins.from_answers(a, (R[a.left] * R[a.right]).sum(1), np.ones(2))
    for name, target in {
        "counts": wanted.share, "first": wanted.kappa[:, None] * wanted.mean, "second": second, "kappa": wanted.kappa,
        "nu": wanted.nu, "alpha": coins.alpha, "beta": coins.beta,
    }.items():  # fmt: skip
        mixed = (1 - share) * getattr(before, name).numpy() + share * target
        assert np.allclose(getattr(model.now, name).numpy(), mixed, rtol=1e-5, atol=1e-5)


def test_answers_in_the_bound_are_counted_once() -> None:
    model = prepared(ROWS, WEIGHT)
    R = np.random.default_rng(9).dirichlet(np.ones(3), 8)
    model.table = torch.as_tensor(R).float()
    e, g = posteriors.expected(model.now), model.now
    got = model.answer_bound(e, model.table, model.relations.full_batch())
    a = as_answers(ROWS, 8, 2, WEIGHT)
    yes, no = Coins(g.alpha.numpy(), g.beta.numpy(), np.ones(2)).logs(a)
    P = (R[a.left] * R[a.right]).sum(1)
    assert got == pytest.approx((P * yes + (1 - P) * no).sum(), rel=1e-5)


def test_batches_stand_for_the_whole() -> None:
    rows = [(i, j, (i + j) % 2, (i * j) % 2) for i, j in combinations(range(10), 2)]
    whole = Relations(as_answers(rows, 30, 2), 30)
    everything = whole.full_batch()
    assert everything.items.tolist() == list(range(30))
    assert float(everything.share.sum()) == pytest.approx(45)  # half at either end
    assert float(everything.scale.sum()) == 30
    assert whole.annotated.tolist() == list(range(10))
    torch.manual_seed(0)
    parts = list(whole.batches(7, "all"))
    assert sorted(torch.cat([part.items for part in parts]).tolist()) == list(range(30))
    assert [float(part.scale.sum()) for part in parts] == pytest.approx([30.0] * 5)
    ends = sum(float(part.share.sum()) * len(part.items) / 30 for part in parts)
    assert ends == pytest.approx(45)
    assert [len(part.items) for part in whole.batches(None, "all")] == [30]
    for part in whole.batches(10, "sampled"):
        asked = part.items < 10
        assert float(part.scale[asked].sum()) == pytest.approx(10)
        assert float(part.scale[~asked].sum()) == pytest.approx(20)
        assert float(part.share.sum()) == pytest.approx(45)
    chosen = whole.sampled(np.array([20, 21]), np.array([0, 3]))
    row = {int(i): k for k, i in enumerate(chosen.items)}
    found = {(int(chosen.items[r]), int(o)) for r, o in zip(chosen.row, chosen.other, strict=True)}
    assert found == {(0, 1), (1, 0), (0, 4), (4, 0)}
    assert set(row) == {0, 1, 4, 20, 21}


# ------------------------------------------------------------------------------------------------------------- networks


def test_likelihoods_are_gaussian_or_bernoulli() -> None:
    torch.manual_seed(1)
    o, x = torch.rand(5, 3), torch.randn(5, 2)
    for kind in ("gaussian", "bernoulli"):
        nets = networks.build_networks(o, networks.Shape(2, (4,)), kind)
        location, spread = (None if t is None else t.detach().numpy() for t in nets.decoder(x))
        if kind == "bernoulli":
            p = expit(location)
            wanted = np.log(p) * o.numpy() + np.log(1 - p) * (1 - o.numpy())
        else:
            wanted = stats.norm(location, np.sqrt(np.log1p(np.exp(spread)) + 1e-4)).logpdf(o.numpy())
        assert np.allclose(nets.likelihood(o, x).detach(), wanted.sum(1), atol=1e-4)


def test_what_kind_of_features_they_are() -> None:
    rng = np.random.default_rng(0)
    kind = lambda X, **more: networks.fit_scaling(X, more.get("observation"), "columns").observation  # noqa: E731
    assert kind(rng.random((9, 60))) == "bernoulli"
    assert kind(rng.integers(0, 256, (9, 60)).astype(np.uint8)) == "bernoulli"
    assert kind(rng.random((9, 5))) == "gaussian"
    assert kind(rng.normal(size=(9, 60))) == "gaussian"
    assert kind(rng.random((9, 60)) * 200) == "gaussian"  # fractions above 1
    assert kind(rng.random((9, 5)), observation="bernoulli") == "bernoulli"
    with pytest.raises(FeatureError, match="'bernoulli' features must be from 0 to 1"):
        kind(rng.normal(size=(9, 5)), observation="bernoulli")


@pytest.mark.parametrize("X", [
    np.array([[1000.0, 3.0, 7.0], [1100.0, 5.0, 7.0], [900.0, 4.0, 7.0]]),
    np.array([[0, 255], [128, 3]], np.uint8),
], ids=["numbers", "bytes"])  # fmt: skip
def test_scaling_can_be_undone(X: Any) -> None:
    scaling = networks.fit_scaling(X, "bernoulli" if X.dtype == np.uint8 else None, "columns")
    o = scaling.apply(X)
    assert float(o.abs().max()) <= 2
    assert np.allclose(scaling.undo(o), X, rtol=1e-5)
    again = networks.unpack_scaling(networks.pack_scaling(scaling))
    assert torch.equal(again.apply(X), o)
    if X.dtype != np.uint8:
        assert np.allclose(o.numpy().std(0), [1, 1, 0], atol=1e-5)  # a column that never differs stays
        assert networks.fit_scaling(X, None, "none").apply(X)[0, 0] == 1000


def test_packed_weights_give_the_same_network() -> None:
    """In any order: a file keeps none."""
    torch.manual_seed(2)
    o, hidden = torch.randn(6, 5), (7, 4, 9, 3, 8, 2)
    for kind in ("gaussian", "bernoulli"):
        nets = networks.build_networks(o, networks.Shape(3, hidden), kind)
        for name in ("encoder", "decoder"):
            module, x = getattr(nets, name), o if name == "encoder" else torch.randn(6, 3)
            packed = networks.pack(module, name)
            for names in (list(packed), list(packed)[::-1], sorted(packed)):
                again = networks.unpack_heads({key: packed[key] for key in names}, name, kind)
                for one, two in zip(module(x), again(x), strict=True):
                    assert (one is None and two is None) or torch.equal(one, two)


@pytest.mark.parametrize("latent", [2, 4, 7])
def test_linear_maps_begin_at_main_directions(latent: int) -> None:
    X = np.random.default_rng(3).normal(size=(50, 4)) * [5, 3, 0.1, 0.01]
    o = torch.as_tensor(X).float()
    inward, outward = networks.principal_maps(o, latent, "gaussian")
    assert inward.shape == (latent, 4)
    assert outward.shape == (4, latent)
    back = (o @ inward.T @ outward.T).numpy()
    assert np.abs(back - X)[:, :2].max() < 0.2


def test_main_directions_are_the_same_with_fewer_items_than_features() -> None:
    o = torch.as_tensor(np.random.default_rng(3).normal(size=(12, 20)) * np.linspace(5, 0.1, 20)).float()
    few, _ = networks.principal_maps(o, 3, "gaussian")
    centred = (o - o.mean(0)).double()
    _, _, axes = torch.linalg.svd(centred, full_matrices=False)
    assert np.allclose(np.abs((few.double() @ axes[:3].T).numpy()), np.eye(3), atol=1e-5)


def test_all_randomness_comes_from_one_generator() -> None:
    torch.manual_seed(5)
    state = torch.get_rng_state()
    draws = []
    for _ in range(2):
        with networks.seeded(np.random.default_rng(3)):
            draws.append(torch.rand(3))
    assert torch.equal(*draws)
    assert torch.equal(torch.get_rng_state(), state)


# --------------------------------------------------------------------------------------------------------------- starts


def test_a_start_from_pairs_joins_items_by_answers() -> None:
    rng = np.random.default_rng(0)
    heap = np.repeat(np.arange(4), 30)
    points = np.array([[0, 0], [9, 0], [9, 9], [0, 9]])[heap] + rng.normal(size=(120, 2))
    truth = heap // 2
    pairs = rng.choice(120, (200, 2))
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    a = as_answers([(i, j, 0, int(truth[i] == truth[j])) for i, j in pairs], 120, 1)
    found = starts.partition(points, a, 10, np.random.default_rng(1))
    assert len(np.unique(found)) == 2
    assert (found == truth).all() or (found == 1 - truth).all()
    alone = starts.partition(points, as_answers([], 120, 1), 4, np.random.default_rng(1))
    assert len(np.unique(alone)) == 4
    assert all(len(np.unique(alone[heap == k])) == 1 for k in range(4))


def test_small_clusters_stay_where_answers_hold_them_apart() -> None:
    labels = np.repeat([0, 1, 2], [50, 45, 5])
    points = np.array([[0.0], [9.0], [1.0]])[labels]
    rows = [(a, b, 0, int(labels[a] == labels[b])) for a, b in combinations(range(0, 95, 5), 2)]
    apart = [(a, b, 0, 0) for a in range(0, 90, 6) for b in range(95, 100)]
    alike = [(a, b, 0, 1) for a in range(0, 40, 6) for b in range(95, 100)]
    found = [starts.dissolve(labels, points, as_answers([*rows, *more], 100, 1)) for more in ([], apart, alike)]
    assert [len(np.unique(part)) for part in found] == [2, 3, 2]
    assert (found[0][95:] == found[0][0]).all()  # the nearest centre
    assert np.array_equal(found[1], labels)


def test_when_a_start_is_from_pairs() -> None:
    few, many = (as_answers([(0, 1, 0, 1)] * count, 5, 1) for count in (4, 5))
    assert starts.default_start(few, 5, raw=False) == "random"
    assert starts.default_start(many, 5, raw=False) == "pairs"
    assert starts.default_start(few, 5, raw=True) == "pairs"


def test_clusters_beyond_the_most_go_to_the_nearest() -> None:
    points = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [4.0], [0.5]])
    assert starts.merge_small(np.array([7, 7, 7, 3, 3, 1, 2]), points, 2).tolist() == [0, 0, 0, 1, 1, 1, 0]


# ---------------------------------------------------------------------------------------------------- scdc, written out


def flat_model(rows: Any = ROWS, weight: Any = WEIGHT) -> tuple[Any, Any, Any]:
    torch.manual_seed(3)
    o = torch.randn(8, 3)
    model = amortised._Model(o, networks.Shape(2, (5,)), "gaussian", 3, 2)
    with torch.no_grad():
        for part in (model.share, model.log_root, model.low_root, model.alpha, model.beta):
            part += 0.3 * torch.randn_like(part)
    return model, o, amortised._Answers(as_answers(rows, 8, 2, weight))


def test_the_bound_of_an_item_is_summed_over_components(monkeypatch: pytest.MonkeyPatch) -> None:
    model, o, _ = flat_model()
    monkeypatch.setattr(torch, "randn_like", torch.zeros_like)  # the draw is the mean
    with torch.no_grad():
        got = model.bounds(o).numpy()
        log_z = model.log_z(o).numpy().astype(float)
        mean, variance = (t.numpy().astype(float) for t in model.place(o))
        seen = networks.log_likelihood(model.decoder, "gaussian", o[:, None], model.place(o)[0]).numpy()
    share = model.share.detach().numpy()
    log_share = share - logsumexp(share)
    assert np.allclose(np.exp(log_z).sum(1), 1)
    for n in range(8):
        value = 0.0
        for k in range(3):
            root = np.diag(np.exp(model.log_root[k].detach().numpy())) + np.tril(model.low_root[k].detach().numpy(), -1)
            P = root @ root.T
            away = mean[n, k] - model.mean[k].detach().numpy()
            fit = 0.5 * np.linalg.slogdet(P)[1] - 0.5 * (away @ P @ away + np.trace(P @ np.diag(variance[n, k])))
            entropy = 0.5 * (1 + np.log(variance[n, k])).sum()
            value += np.exp(log_z[n, k]) * (log_share[k] + fit + entropy + seen[n, k] - log_z[n, k])
        assert got[n] == pytest.approx(value, rel=1e-3)


def test_the_bound_of_answers_is_that_of_two_coins() -> None:
    model, o, said = flat_model()
    with torch.no_grad():
        z = model.log_z(o).exp()
        got = float(said.bound(model, z[said.left], z[said.right], torch.arange(6)))
    a, b = (expit(part.detach().numpy()) for part in (model.alpha, model.beta))
    R, value = z.numpy(), 0.0
    for (left, right, worker, same), weight in zip(ROWS, WEIGHT, strict=True):
        together = R[left] @ R[right]
        hit, miss = (a[worker], 1 - b[worker]) if same else (1 - a[worker], b[worker])
        value += weight * (together * np.log(hit) + (1 - together) * np.log(miss))
    assert got == pytest.approx(value, rel=1e-4)
    counts = said.pseudo_counts(model, z)
    assert np.allclose(sum(part.sum() - 4 for part in counts), WEIGHT.sum(), rtol=1e-5)
    assert np.allclose((counts[0][:, 0] - 1) / (counts[0].sum(1) - 2), a, rtol=1e-4)
