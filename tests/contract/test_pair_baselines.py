"""The baselines mpck-means, cspa, semi-crowd and mcvc: their equations against slow doubles, recovery, and errors."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.errors import DataError, EmptyDataError, Interrupted, ParameterError
from crowdwise.kernels.special import softmax
from crowdwise.pairs import constrained, mcvc, semi_crowd
from crowdwise.pairs.constrained import Links
from crowdwise.pairs.model import PairAnswers
from crowdwise.simulate.labels import numbered

pytestmark = pytest.mark.filterwarnings("error")

NAMES = ("mpck-means", "cspa", "semi-crowd", "mcvc")
FEW = {"mpck-means": {"restarts": 2}, "mcvc": {"restarts": 5}}


def crowd(seed: int = 0, n: int = 60, each: int = 80, right: Any = (0.95, 0.9, 0.8)) -> SimpleNamespace:
    """Three clusters that only the first two of five columns show; the others are noise of larger variance."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % 3
    corners = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    X = np.column_stack([corners[label] + rng.normal(size=(n, 2)), 5 * rng.normal(size=(n, 3))])
    pairs, _ = cw.simulate.answers_about(label, np.arange(n), len(right), each, right, None, rng, balanced=True)
    ids = numbered("i", n)
    answers = PairAnswers.of(pairs.on(ids))
    return SimpleNamespace(
        X=X, ids=ids, pairs=pairs, answers=answers, truth=pl.DataFrame({"item": ids, "label": label})
    )


def fit(name: str, data: SimpleNamespace, **settings: Any) -> cw.PairsResult:
    chosen = {"clusters": 3, **FEW.get(name, {}), **settings}
    result: cw.PairsResult = cw.aggregate(data.pairs, name, features=(data.ids, data.X), **chosen)
    return result


# ------------------------------------------------------------------------------------------------------ all four models


@pytest.mark.parametrize("name", NAMES)
def test_answers_show_which_columns_count(name: str) -> None:
    """k-means on features alone is misled by the noise columns."""
    data = crowd(each=800, n=90)
    blind = cw.match_clusters(fit("k-means-items", data), data.truth)["accuracy"]
    seeing = cw.match_clusters(fit(name, data), data.truth)["accuracy"]
    assert blind < 0.6
    assert seeing > (0.8 if name == "cspa" else 0.95)  # one worker's answers say less than those of all


@pytest.mark.parametrize("name", ["cspa", "semi-crowd", "mcvc"])
def test_a_pinwheel_is_found(name: str) -> None:
    sim = cw.simulate.pinwheel(per_cluster=40, asked=80, workers=8, each=80, seed=1)
    result = cw.aggregate(sim.pairs, name, features=sim.features, clusters=5)
    assert cw.match_clusters(result, sim.truth)["accuracy"] > 0.9


@pytest.mark.parametrize("name", ["mpck-means", "mcvc"])
@pytest.mark.parametrize("seed", range(4))
def test_the_objective_never_gets_worse(name: str, seed: int) -> None:
    objective = fit(name, crowd(seed, right=(0.9, 0.6, 0.5))).trace["objective"].to_numpy()
    assert len(objective) > 2
    assert np.diff(objective).min() >= -1e-9 * abs(objective[-1])


@pytest.mark.parametrize("name", NAMES)
def test_hard_features_give_sound_clusters(name: str) -> None:
    data = crowd()
    for X in (np.ones((60, 2)), np.repeat([[0.0, 0.0], [5.0, 5.0]], 30, axis=0), data.X[:, :1], data.X[:, [0, 0]],
              data.X > 3, (20 * data.X.clip(0)).astype(np.uint8), 1e80 * data.X, 1e-80 * data.X):  # fmt: skip
        result = fit(name, SimpleNamespace(**vars(data) | {"X": X}))
        assert np.isfinite(result.params.chances).all()
        assert 1 <= result.n_clusters <= 3
        assert result.assign(X)["probability"].is_finite().all()


@pytest.mark.parametrize("name", NAMES)
def test_features_of_any_scale_give_the_same_clusters(name: str) -> None:
    data = crowd()
    scaled = SimpleNamespace(**vars(data) | {"X": 1000 * data.X + 7})
    assert fit(name, data).clusters["cluster"].equals(fit(name, scaled).clusters["cluster"])


@pytest.mark.parametrize("name", ["cspa", "semi-crowd", "mcvc"])
def test_models_that_need_answers_say_so(name: str) -> None:
    data = crowd()
    with pytest.raises(EmptyDataError, match=f"{name}: there are no answers about these items. Use k-means-items"):
        cw.aggregate(cw.Pairs.none(data.ids), name, features=(data.ids, data.X))


# ---------------------------------------------------------------------------------------------------------- mpck-means


def test_without_answers_features_decide() -> None:
    data = crowd()
    result = cw.aggregate(cw.Pairs.none(data.ids), "mpck-means", features=(data.ids, data.X[:, :2]), clusters=3)
    assert cw.match_clusters(result, data.truth)["accuracy"] > 0.95
    assert result.workers.height == 0


def problem(data: SimpleNamespace, seed: int = 0) -> Any:
    Z = constrained.Scaled.of(data.X).Z
    links = Links.of(data.answers, Z)
    return constrained._Fit("mpck-means", 50, Z, links, 3, cw.Run(seed=seed), 0)


def slow_objective(fit: Any, label: Any) -> float:
    """Eq (1), pair by pair."""
    Z, A = fit.Z, fit.A

    def distance(h: int, x: Any, y: Any) -> float:
        return float(((x - y) ** 2 * A[h]).sum())

    widest = [max(distance(h, x, y) for x, y in combinations(Z, 2)) for h in range(len(A))]
    total = sum(distance(h, x, fit.centres[h]) - np.log(A[h]).sum() for x, h in zip(Z, label, strict=True))
    edges = fit.links.edges
    for i, j, must in zip(edges.left, edges.right, fit.links.must, strict=True):
        h, g = label[i], label[j]
        if must and h != g:
            total += 0.5 * (distance(h, Z[i], Z[j]) + distance(g, Z[i], Z[j]))
        if not must and h == g:
            total += widest[h] - distance(h, Z[i], Z[j])
    return float(total)


def test_the_objective_is_that_of_the_paper() -> None:
    fit = problem(crowd(n=30))
    for _ in range(4):
        reported = -fit.step().objective
        assert reported == pytest.approx(slow_objective(fit, fit.label), rel=1e-9)


def test_items_are_assigned_greedily_one_after_the_other() -> None:
    fit = problem(crowd(n=12, each=12))
    fit.step()
    fit.label = np.random.default_rng(4).integers(0, 3, 12)
    label, free = fit.label.copy(), np.setdiff1d(np.arange(12), fit.asked)
    order = np.random.default_rng()
    order.bit_generator.state = fit.rng.bit_generator.state
    for i in [*free, *order.permutation(fit.asked)]:
        choices = [np.where(np.arange(12) == i, h, label) for h in range(3)]
        label = min(choices, key=lambda each: slow_objective(fit, each))
    fit._assign()
    assert fit.label.tolist() == label.tolist()


def test_the_metric_is_a_minimum_while_the_farthest_pair_stays() -> None:
    fit = problem(crowd(n=30))
    fit.step()
    spread, far = np.array([9.0, 1.0, 4.0, 2.0, 3.0]), constrained.farthest(fit.Z, np.ones(5))
    fit._update_metric(0, spread, 10.0, 0.0)
    assert fit.A[0] == pytest.approx(10 / spread)
    fit.A[0], fit.far[0] = np.ones(5), far
    before = spread.sum() + 3 * far.sum()
    after = fit._update_metric(0, spread, 10.0, 3.0)
    assert after < before
    assert after == pytest.approx(spread @ fit.A[0] + 3 * fit.far[0] @ fit.A[0] - 10 * np.log(fit.A[0]).sum())
    fit._update_metric(1, np.array([1.0, 1.0, 1.0, 0.0, -1.0]), 10.0, 0.0)
    assert fit.A[1, 3:] == pytest.approx(1 / constrained.MIN_VARIANCE)  # bounded where the spread is not positive


@pytest.mark.parametrize("seed", range(5))
def test_the_farthest_pair_is_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    Z, A = rng.normal(size=(80, 3)), rng.random(3)
    widest = max(((x - y) ** 2 @ A for x, y in combinations(Z, 2)))
    assert constrained.farthest(Z, A) @ A == pytest.approx(widest)
    many = rng.normal(size=(3000, 3))
    many /= np.linalg.norm(many, axis=1, keepdims=True)  # on a sphere nearly all are candidates
    assert constrained.farthest(many, np.ones(3)).sum() > 3.9


def test_centres_start_at_the_largest_neighbourhoods() -> None:
    Z = np.array([[0.0], [0.1], [0.15], [0.2], [5.0], [5.1], [5.2], [7.0], [7.1], [20.0]])
    left, right = np.array([0, 1, 2, 4, 5, 7]), np.array([1, 2, 3, 5, 6, 8])
    answers = PairAnswers(left, right, np.zeros(6, int), np.ones(6, bool), np.ones(6), 10, 1)
    links, rng = Links.of(answers, Z), np.random.default_rng(0)
    first = constrained.first_centres(Z, links, 2, rng).ravel()
    assert first == pytest.approx([0.1125, 5.1])  # three items at a distance of 5 weigh more than two at 7
    more = constrained.first_centres(Z, links, 5, rng).ravel()
    assert sorted(more[:3]) == pytest.approx([0.1125, 5.1, 7.05])
    assert np.abs(more[3:] - Z.mean()).max() < 0.5 * Z.std()
    assert more[3] != more[4]


# ---------------------------------------------------------------------------------------------------------------- cspa


def test_the_consensus_is_spectral_clustering_of_the_mean_similarity() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, (4, 40))
    dense, H = np.concatenate(np.eye(3)[label], axis=1), constrained.one_hot(label, 3)
    assert H.toarray().tolist() == dense.tolist()
    S = dense @ dense.T / 4  # eq (4)
    degree = np.sqrt(S.sum(1))
    leading = np.linalg.eigh(S / degree[:, None] / degree)[1][:, -3:]
    leading /= np.linalg.norm(leading, axis=1, keepdims=True)
    found = constrained.embedded(H, constrained.spectral_map(H, 3))
    assert found @ found.T == pytest.approx(leading @ leading.T, abs=1e-9)  # up to a rotation of the axes


def test_workers_who_agree_are_followed() -> None:
    label, other = np.arange(30) % 3, np.arange(30) // 10
    H = constrained.one_hot(np.stack([label, label, other]), 3)
    rows = constrained.embedded(H, constrained.spectral_map(H, 3))
    within = [np.linalg.norm(a - b) for a, b in combinations(rows[label == 0], 2)]
    between = np.linalg.norm(rows[label == 0].mean(0) - rows[label == 1].mean(0))
    assert max(within) < between


def test_an_interrupted_consensus_continues_with_the_workers_left(monkeypatch: pytest.MonkeyPatch) -> None:
    data, calls = crowd(), []
    whole = fit("cspa", data)
    with pytest.raises(Interrupted, match="after 2 iteration") as broken:
        fit("cspa", data, run=cw.Run(stop=lambda: calls.append(1) or len(calls) > 2))
    monkeypatch.setattr(constrained, "Links", SimpleNamespace(of=lambda *args: calls.append(0) or Links.of(*args)))
    calls.clear()
    again = fit("cspa", data, run=cw.Run(resume=broken.value.checkpoint))
    assert calls == [0]  # one of three workers was left
    assert again.cluster.tolist() == whole.cluster.tolist()


def test_too_many_workers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constrained, "MAX_COLUMNS", 8)
    with pytest.raises(
        DataError, match="cspa combines a clustering for each worker: 3 workers with 3 clusters are more"
    ):
        fit("cspa", crowd())


# ---------------------------------------------------------------------------------------------------------- semi-crowd


def test_pairs_in_doubt_are_not_observed() -> None:
    rows = [("a", "b", f"w{k}", k < 4) for k in range(5)] + [("a", "c", f"w{k}", k < 1) for k in range(5)]
    rows += [("b", "c", f"w{k}", k < 3) for k in range(5)]
    frame = pl.DataFrame(rows, ["left", "right", "worker", "answer"], orient="row")
    items, observed = cw.SemiCrowd().observed(PairAnswers.of(cw.Pairs(frame)))
    entries = {(int(i), int(j)): v for i, j, v in zip(observed.row, observed.column, observed.value, strict=True)}
    assert items.tolist() == [0, 1, 2]
    assert entries == {(0, 1): 1, (1, 0): 1, (0, 2): 0, (2, 0): 0, (0, 0): 1, (1, 1): 1, (2, 2): 1}


@pytest.mark.parametrize("n", [40, 150])  # by all eigenvalues, and by the leading ones
def test_a_similarity_is_completed(n: int) -> None:
    rng = np.random.default_rng(0)
    label = np.arange(n) % 3
    whole = (label[:, None] == label).astype(float)
    left, right = np.nonzero(np.triu(rng.random((n, n)) < 0.5, 1))
    own = np.arange(n)
    row, column = np.concatenate([left, right, own]), np.concatenate([right, left, own])
    found = semi_crowd.complete(semi_crowd.Observed(row, column, whole[row, column], n), 0.01, 5, rng)
    assert np.abs((found.vectors * found.values) @ found.vectors.T - whole).max() < 0.1
    assert all(b <= a * (1 + 1e-9) for a, b in pairwise(found.objectives))


def test_the_metric_is_that_of_the_paper() -> None:
    data, model = crowd(), cw.SemiCrowd(clusters=3)
    items, observed = model.observed(data.answers)
    turn = model.transform(data.X, data.answers, 7)
    done = semi_crowd.complete(observed, model.penalty, 20, np.random.default_rng(7))
    centred = data.X - data.X.mean(0)
    X = (centred / centred.std())[items].T  # (D, n) as in eq (6)
    inverse = np.linalg.inv(X @ X.T)
    F = (done.vectors * done.values) @ done.vectors.T
    assert turn @ turn.T == pytest.approx(inverse @ X @ F @ X.T @ inverse)


@pytest.mark.parametrize("answer", [0, 1])
def test_a_similarity_needs_answers_of_both_kinds(answer: int) -> None:
    data = crowd()
    frame = data.pairs.frame().with_columns(answer=pl.lit(answer))
    with pytest.raises(DataError, match="semi-crowd needs pairs on which most workers agree, some the same and some"):
        cw.aggregate(cw.Pairs(frame), "semi-crowd", features=(data.ids, data.X))


def test_thresholds_are_checked() -> None:
    with pytest.raises(ParameterError, match=r"semi-crowd: low is 0.9 and high is 0.8; low must be below high"):
        cw.SemiCrowd(low=0.9)
    with pytest.raises(ParameterError, match=r"semi-crowd: penalty is 1; it must be a number from 0 to 0.99"):
        cw.SemiCrowd(penalty=1)


# ---------------------------------------------------------------------------------------------------------------- mcvc


def softmax_problem(data: SimpleNamespace) -> Any:
    Z = mcvc.design(data.X, data.X.mean(0), data.X.std(0))
    return mcvc._Fit(cw.Mcvc(clusters=3), Z, data.answers, cw.Run(), 0)


def test_a_constant_column_counts_as_nothing_and_is_saved(tmp_path: Path) -> None:
    data = crowd(n=90, each=400)
    data.X = np.column_stack([data.X, np.full(len(data.X), 7.0)])
    found = fit("mcvc", data)
    assert cw.match_clusters(found, data.truth)["accuracy"] > 0.95
    assert cw.load(found.save(tmp_path / "saved")).clusters.equals(found.clusters)


def test_the_bound_is_that_of_the_page() -> None:
    """Eq (11), answer by answer and item by item."""
    fit = softmax_problem(crowd(n=20, each=30))
    reported = fit.step().objective
    a, S = fit.answers, np.exp(fit.log_S)
    eta = softmax(fit.Z @ fit.V)
    same, other = fit.coins.logs(a)
    total = 0.0
    for n, (i, j) in enumerate(zip(a.left, a.right, strict=True)):
        s = float(eta[i] @ eta[j])
        total += s * same[n] + (1 - s) * other[n]
    for x in fit.Z:
        total += np.log(np.exp(fit.V.T @ x).sum()) - np.log(np.exp(fit.V.T @ x + 0.5 * S.T @ x**2).sum())
    total -= 0.5 * (S + fit.V**2 - 1 - np.log(S)).sum() + fit.coins.divergence()
    assert reported == pytest.approx(total, rel=1e-9)


def test_the_bound_is_below_its_expectation_by_sampling() -> None:
    """The log-sum of exponentials in (11) bounds its mean under q(W)."""
    rng = np.random.default_rng(0)
    V, S, x = rng.normal(size=(4, 3)), rng.random((4, 3)), rng.normal(size=4)
    W = V + np.sqrt(S) * rng.normal(size=(20_000, 4, 3))
    mean = np.log(np.exp(np.einsum("ndk,d->nk", W, x)).sum(1)).mean()
    assert mean < np.log(np.exp(V.T @ x + 0.5 * S.T @ x**2).sum())


def test_derivatives_of_the_bound() -> None:
    fit = softmax_problem(crowd(n=20, each=30))
    odds, different = fit.links()
    fit.log_S = np.random.default_rng(1).normal(size=fit.V.shape) - 1
    _, by_V, by_log_S = fit.bound(odds, different, fit.V, fit.log_S)
    for d, k in ((0, 0), (3, 1), (5, 2)):
        step = np.zeros_like(fit.V)
        step[d, k] = 1e-5
        for derivative, one, two in ((by_V, step, 0 * step), (by_log_S, 0 * step, step)):
            ends = [fit.bound(odds, different, fit.V + sign * one, fit.log_S + sign * two)[0] for sign in (1, -1)]
            assert derivative[d, k] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-6)


def test_workers_are_weighted_by_their_skill() -> None:
    workers = fit("mcvc", crowd(n=90, each=400, right=(0.95, 0.8, 0.5))).workers.sort("worker")
    assert np.abs(workers["skill"].to_numpy() - [0.95, 0.8, 0.5]).max() < 0.06
    assert workers["weight"].is_sorted(descending=True)
