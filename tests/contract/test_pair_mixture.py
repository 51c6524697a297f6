"""pair-mixture: clusters and workers estimated from features and answers, restarts, feature spaces, and hard input."""

from __future__ import annotations

import dataclasses
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairing import BLOBS, HALVES, IDS, ONE, about, answers, random_answers, same_bits, sound, spun
from scipy.linalg import eigh
from scipy.special import digamma

import crowdwise as cw
from crowdwise.errors import ColumnError, EmptyDataError, FeatureError, Interrupted, ParameterError, UnknownIdError
from crowdwise.pairs import gaussians, mixture, projection
from crowdwise.pairs.model import PairAnswers
from crowdwise.rating import WORKER_COLUMNS

pytestmark = pytest.mark.filterwarnings("error")


@st.composite
def crowds(draw: Any) -> tuple[cw.Pairs, tuple[list[str], Any]]:
    """Random answers, some in jobs, about items with random features, some of them equal."""
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
@settings(max_examples=10)
def test_the_bound_never_falls_on_anything(made: tuple[cw.Pairs, Any]) -> None:
    pairs, features = made
    result = cw.aggregate(pairs, features=features, restarts=2, run=ONE)
    assert sound(result)
    assert sound(cw.aggregate(pairs, run=ONE))
    value = result.trace["objective"].to_numpy()
    assert (np.diff(value) >= -1e-6 * np.abs(value[1:])).all()


@pytest.mark.parametrize("seed", range(2))
def test_the_bound_never_falls_on_pinwheels(seed: int) -> None:
    _, result = spun(seed)
    value = result.trace["objective"].to_numpy()
    assert len(value) > 5
    assert (np.diff(value) >= -1e-6 * np.abs(value[1:])).all()
    assert result.trace.columns == ["iteration", "objective", "clusters"]
    assert result.trace["clusters"][-1] == result.n_clusters
    assert result.criterion == "evidence lower bound"


# -------------------------------------------------------------------------------------------------------- what is found


@pytest.mark.parametrize("seed", range(2))
def test_pinwheels_are_found(seed: int) -> None:
    sim, result = spun(seed)
    scores = cw.match_clusters(result, sim.truth)
    assert scores["accuracy"] >= 0.97
    assert scores["nmi"] >= 0.9
    assert scores["clusters"] == 5
    assert result.converged
    assert sound(result)


@pytest.mark.parametrize("seed", range(2))
def test_items_without_answers_are_clustered_by_features(seed: int) -> None:
    sim, result = spun(seed)
    free = result.answers_of == 0
    assert free.sum() == 400
    assert cw.match_clusters(result, sim.truth.filter(pl.Series(free)))["accuracy"] >= 0.96
    placed = result.assign(sim.features[1], sim.features[0])
    assert placed["item"].to_list() == sim.truth["item"].to_list()
    assert (placed["cluster"].to_numpy() == result.cluster + 1)[free].all()
    assert np.allclose(placed["probability"].to_numpy()[free], result.params.chances[free, 0])
    assert (placed["cluster"].to_numpy() == result.cluster + 1).mean() > 0.98


def test_answers_separate_what_features_cannot() -> None:
    """Four groups of items; the answers join opposite ones to two clusters, or keep all apart."""
    heap = np.repeat(np.arange(4), 25)
    X = np.array([[0, 0], [9, 0], [9, 9], [0, 9]])[heap] + np.random.default_rng(0).normal(size=(100, 2))
    ids = [f"i{k:03d}" for k in range(100)]
    for truth, wanted in ((heap % 2, 2), (heap, 4), (heap // 3, 2)):
        result = cw.aggregate(about(truth, 0.03, right=0.9, ids=ids), features=(ids, X), restarts=3, run=ONE)
        scores = cw.match_clusters(result, {"item": ids, "label": truth})
        assert (scores["clusters"], scores["accuracy"]) == (wanted, 1.0)


def test_workers_are_reported_with_their_intervals() -> None:
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
        assert any(f"{enemies} of 20 workers are hardly better than chance" in text for text in result.warnings)
        assert result.workers["flags"].to_list() == ["inverted"] * enemies + [""] * (20 - enemies)
        worker = result.workers.row(0, named=True)
        assert worker["reasons"] == (
            f"{100 * worker['skill']:.0f} % correct (95 % interval {100 * worker['low']:.0f} to "
            f"{100 * worker['high']:.0f} %), while random answers would be 50 % correct: the answers may be swapped"
        )
        assert set(result.workers["rank"][:enemies]) == set(range(21 - enemies, 21))


def test_a_spammer_hardly_counts() -> None:
    sim = cw.simulate.pinwheel(alpha=[0.5] * 5 + [0.95] * 15, each=200, seed=1)
    workers = cw.aggregate(sim.pairs, features=sim.features, restarts=2).workers
    weight = workers["weight"].to_numpy()
    assert np.abs(weight[:5]).max() < 1
    assert weight[5:].min() > 3
    assert set(workers["flags"][5:]) == {""}
    near = (workers["high"].to_numpy() < 0.6) & (workers["high"].to_numpy() >= 0.5)
    assert near.sum() >= 2
    assert (workers["flags"] == "at chance").to_list() == near.tolist()
    reasons = workers.filter(pl.col("flags") == "at chance")["reasons"]
    assert reasons.str.ends_with("while random answers would be 50 % correct").all()


def test_workers_start_with_the_columns_of_every_kind() -> None:
    _, result = spun(0)
    workers = result.workers
    assert workers.columns[: len(WORKER_COLUMNS)] == list(WORKER_COLUMNS)
    assert workers.columns[len(WORKER_COLUMNS) :] == [
        "sensitivity", "sensitivity_low", "sensitivity_high", "specificity", "specificity_low", "specificity_high",
        "weight", "counted",
    ]  # fmt: skip
    assert workers["answers"].to_list() == [49] * 20 == workers["counted"].to_list()
    assert np.allclose(workers["skill"], (workers["sensitivity"] + workers["specificity"]) / 2)
    assert workers.sort("low", descending=True)["rank"].to_list() == list(range(1, 21))


# --------------------------------------------------------------------------------------------- seeds, threads, restarts


def test_blocks_in_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussians, "BLOCK_ROWS", 64)  # so that there are many blocks
    sim = cw.simulate.pinwheel(per_cluster=50, asked=60, seed=1)
    fit = lambda **run: cw.aggregate(sim.pairs, features=sim.features, restarts=2, run=cw.Run(**run))  # noqa: E731
    one = fit(seed=5, threads=1)
    assert same_bits(one, fit(seed=5, threads=3))
    assert not same_bits(one, fit(seed=6, threads=1))


def test_the_best_start_by_the_bound_is_kept() -> None:
    sim = cw.simulate.pinwheel(per_cluster=40, asked=60, workers=8, seed=1)
    model, run = cw.PairMixture(restarts=4), cw.Run(seed=1, threads=1)
    result = model.fit(sim.pairs, features=sim.features, run=run)
    on, X = sim.pairs.on(sim.features[0]), sim.features[1]
    rows = mixture.Frame.of(X, 40, "whole").rows(X)
    fits = [mixture._Fit(model, rows, PairAnswers.of(on), run.begin(), start).found() for start in range(4)]
    ends = [found.trace.objectives[-1] for found in fits]
    assert len(set(ends)) > 2
    assert result.trace["objective"][-1] == max(ends)
    assert int(np.argmax(ends)) > 0  # seed chosen so that the first is not the best


@pytest.mark.parametrize("features", [None, (IDS, BLOBS)], ids=["answers alone", "features"])
def test_a_fit_can_be_watched_and_stopped(features: Any) -> None:
    steps: list[Any] = []
    cw.aggregate(about(HALVES, 0.1), features=features, restarts=2, run=cw.Run(watch=steps.append))
    assert steps[0].iteration == 1
    assert {step.max_iter for step in steps} == {200}
    assert np.isfinite([step.objective for step in steps]).all()
    asked = iter([False, False, True])
    with pytest.raises(Interrupted, match="pair-mixture was interrupted after 2 iteration"):
        cw.aggregate(about(HALVES, 0.1, right=0.7), features=features, run=cw.Run(stop=lambda: next(asked, True)))


def test_too_few_iterations_are_reported() -> None:
    result = cw.aggregate(about(HALVES, 0.2, right=0.7), features=(IDS, BLOBS), max_iter=1, restarts=1)
    assert not result.converged
    assert result.warnings[0] == "not converged after 1 iteration (the maximum). Allow more: max_iter=2"
    assert "NOT CONVERGED" in repr(result)


# ----------------------------------------------------------------------------------------------------- frames and graph


def test_neither_place_nor_size_of_features_matters() -> None:
    pairs = about(HALVES, 0.1, right=0.9)
    one = cw.aggregate(pairs, features=(IDS, BLOBS), restarts=2, run=ONE)
    for X in (1e6 * BLOBS + 1e8, 1e-6 * BLOBS, BLOBS.astype(np.float32)):
        assert np.array_equal(cw.aggregate(pairs, features=(IDS, X), restarts=2, run=ONE).cluster, one.cluster)


def test_columns_can_be_scaled() -> None:
    """A large uninformative feature dominates the other unless features are scaled."""
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
    made = random_answers()._replace(left=left, right=right, worker=left * 0, same=same, weight=weight, n_items=150)
    scatter = []
    for rows in (same, ~same):
        S = sum(w * np.outer(X[a] - X[b], X[a] - X[b]) / 2
                for a, b, w in zip(left[rows], right[rows], weight[rows], strict=True))  # fmt: skip
        scatter.append((S + 16 * np.cov(X.T)) / (weight[rows].sum() + 16))  # sixteen answers that tell nothing
    values, vectors = eigh(scatter[1], scatter[0])
    got = projection.directions(X, made, 3)
    assert np.allclose(got.T @ scatter[0] @ got, np.eye(3), atol=1e-4)
    assert np.allclose(np.diag(got.T @ scatter[1] @ got), values[::-1][:3], rtol=1e-4)
    assert np.allclose(np.abs(np.diag(got.T @ scatter[0] @ vectors[:, ::-1][:, :3])), 1, atol=1e-3)


def test_answers_turn_features_to_what_counts(tmp_path: Path) -> None:
    ids, X, truth = hidden()
    pairs = about(truth, 0.02, right=0.95, ids=ids)
    seeing, blind = (cw.aggregate(pairs, features=(ids, X), turn=t, restarts=1, run=ONE) for t in (True, False))
    known = {"item": ids, "label": truth}
    assert cw.match_clusters(seeing, known)["accuracy"] > 0.97 > cw.match_clusters(blind, known)["accuracy"] + 0.05
    assert seeing.space["turn"].shape[1] < 8 == blind.space["turn"].shape[1]
    placed = seeing.assign(X)
    assert (placed["cluster"].to_numpy() == seeing.cluster + 1).mean() > 0.97
    assert cw.load(seeing.save(tmp_path)).assign(X).equals(placed)  # type: ignore[union-attr]
    assert same_bits(cw.aggregate(pairs, features=(ids, X), restarts=1, run=cw.Run(threads=2)), seeing)


def test_features_are_not_turned_by_a_few_answers_or_without_need() -> None:
    ids, X, truth = hidden()
    few = about(truth, 0.003, ids=ids)
    assert min(few.same.sum(), (~few.same).sum()) < 50
    assert cw.aggregate(few, features=(ids, X), restarts=1, run=ONE).space["turn"].shape == (8, 8)
    assert spun(0)[1].space["turn"].shape == (2, 2)
    assert not projection.can_project(PairAnswers.of(spun(0)[0].pairs), 2)
    assert projection.can_project(PairAnswers.of(spun(0)[0].pairs), 3)


def test_neighbours_find_rings() -> None:
    """Two concentric rings, which Gaussians cannot separate."""
    rng = np.random.default_rng(1)
    angle, ring = rng.random(240) * 2 * np.pi, np.repeat([1.0, 4.0], 120)
    X = ring[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * rng.normal(size=(240, 2))
    ids = [f"i{k:03d}" for k in range(240)]
    pairs = about((ring[::8] > 2).astype(int), 0.2, ids=ids[::8])
    result = cw.aggregate(pairs, features=(ids, X), space="graph", dims=4, restarts=2, run=ONE)
    assert cw.match_clusters(result, {"item": ids, "label": ring})["accuracy"] == 1
    assert (result.assign(X * 1.001)["cluster"].to_numpy() == result.cluster + 1).mean() > 0.99


def test_a_graph_of_too_few_items_is_refused() -> None:
    with pytest.raises(FeatureError, match="space='graph' needs"):
        cw.aggregate(answers([("a", "b", "w", 1)]), features=(["a", "b"], [[0.0], [1.0]]), space="graph")


# ------------------------------------------------------------------------------------------------------- kept and asked


@pytest.mark.parametrize("how", ["graph", "answers alone"])
def test_a_saved_result_can_be_fitted_again(how: str, tmp_path: Path) -> None:
    features = (IDS, BLOBS) if how == "graph" else None
    chosen = {"space": "graph", "dims": 3, "restarts": 2} if how == "graph" else {}
    result = cw.aggregate(about(HALVES, 0.1, right=0.9), features=features, run=cw.Run(seed=7, threads=1), **chosen)
    again = cw.load(result.save(tmp_path / "kept"))
    assert isinstance(again, cw.PairsResult)
    assert same_bits(again, result)
    for name, table in result.tables().items():
        assert table.equals(again.tables()[name])
    assert again.model == result.model
    assert again.answers.frame().equals(result.answers.frame())
    assert repr(again) == repr(result)
    assert same_bits(again.model.fit(again.answers, features=features, run=cw.Run(seed=7, threads=2)), result)
    if features is not None:
        fresh = np.random.default_rng(1).normal(size=(9, 2)) * 5
        assert again.assign(fresh).equals(result.assign(fresh))


@pytest.fixture(scope="module")
def halves() -> cw.PairsResult:
    """Two separate clusters and a few answers, all correct."""
    result: cw.PairsResult = cw.aggregate(about(HALVES, 0.1), features=(IDS, BLOBS), restarts=2, run=ONE)
    return result


def test_new_items_are_placed(halves: cw.PairsResult) -> None:
    result = halves
    fresh = np.array([[0.0, 0.0], [8.0, 8.0], [0.2, -0.1]])
    placed = result.assign(fresh, ["p", "q", "r"])
    home = dict(result.clusters.select("item", "cluster").rows())
    assert placed["cluster"].to_list() == [home["i00"], home["i39"], home["i00"]]
    assert placed["item"].to_list() == ["p", "q", "r"]
    assert (placed["probability"] > 0.9).all()
    assert result.assign(fresh)["item"].to_list() == [0, 1, 2]
    assert result.assign(np.empty((0, 2))).shape == (0, 3)


@pytest.mark.parametrize(("X", "items", "message"), [
    ([[1.0, 2.0, 3.0]], None, "X has 3 features per item, but the model was fitted on 2"),
    ([1.0, 2.0], None, r"of shape \(2,\); it must hold numbers, one row per item"),
    ([["a", "b"]], None, "numbers"),
    ([[np.nan, 1.0]], None, "not finite"),
    ([[np.inf, 1.0]], None, "not finite"),
    ([[1.0, 2.0]], ["a", "b"], "X has 1 rows, but there are 2 ids"),
])  # fmt: skip
def test_invalid_new_items_are_refused(X: Any, items: Any, message: str, halves: cw.PairsResult) -> None:
    with pytest.raises(FeatureError, match=message):
        halves.assign(X, items)


def test_without_features_nothing_can_be_placed() -> None:
    with pytest.raises(FeatureError, match="pair-mixture was fitted without features"):
        cw.aggregate(answers([("a", "b", "w", 1)])).assign([[1.0, 2.0]])


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
    assert asked["answers"].sum() == result.answers.n_answers
    assert asked["said_same"].sum() == result.answers.same.sum()
    with pytest.raises(UnknownIdError, match="no item 'i3' in this result"):
        result.probability_same(["i3"], ["i03"])
    with pytest.raises(ParameterError, match="left has 2 items and right 1"):
        result.probability_same(["i01", "i02"], ["i03"])


def test_tables_agree_with_the_arrays() -> None:
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
    assert np.allclose(clusters["entropy"], -(whole * np.log2(np.maximum(whole, 1e-300))).sum(1))
    assert (1 - p.sum(1)).max() > 1e-6
    first = result.of(1)
    assert first.height == sizes["items"][0]
    assert first["probability"].is_sorted(descending=True)
    for number in (0, 6, -1):
        with pytest.raises(UnknownIdError, match="clusters are numbered from 1 to 5"):
            result.of(number)


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
        assert result.answers.n_items == n


def test_no_worker_has_answered() -> None:
    for pairs in (cw.Pairs.none(IDS), answers([("x", "y", "w", 1)]).on(IDS, "drop")):
        with pytest.raises(EmptyDataError, match="no answers"):
            cw.aggregate(pairs, features=(IDS, BLOBS))
    with pytest.raises(EmptyDataError, match="no answers"):
        cw.aggregate(cw.Pairs.none(IDS))


@pytest.mark.parametrize(("features", "message"), [
    ((IDS, np.where(np.arange(80).reshape(40, 2) == 7, np.nan, 1.0)), r"1 item\(s\) .* the first 'i03' in column 2"),
    ((IDS, np.where(np.arange(80).reshape(40, 2) == 6, np.inf, 1.0)), r"1 item\(s\) .* the first 'i03' in column 1"),
    ((IDS, [["a", "b"]] * 40), "it must hold numbers"),
    ((IDS, [[1, None]] * 40), "it must hold numbers"),
    ((IDS, BLOBS + 1j), "it must hold numbers"),
    ((IDS, BLOBS[:, 0]), r"of shape \(40,\); it must hold numbers, one row per item"),
    ((IDS, BLOBS[:, :0]), "X has no columns"),
    ((IDS, BLOBS[:5]), "X has 5 rows, but there are 40 ids"),
    ((IDS, [[1, 2]] * 39 + [[1]]), "X is not a table of numbers .*Give one row per item, all of the same length"),
    ((IDS[1:], BLOBS[1:]), "1 of 20 items in pairs have no features, for instance 'i00'"),
    ((IDS[:39] + IDS[:1], BLOBS), "item 'i00' has more than one row of features"),
    (([*IDS[:39], None], BLOBS), "have no item"),
    ((IDS, BLOBS * 1e200), "Scale the features"),
    ((IDS, BLOBS * 1e-200), "Scale the features"),
    (BLOBS, r"features are of type ndarray; give a tuple \(ids, X\)"),
    (7, "features are of type int"),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_features_that_cannot_be_used_are_refused(features: Any, message: str) -> None:
    pairs = about(HALVES[:20], 0.3)
    for name in ("pair-mixture", "k-means-items"):
        with pytest.raises(FeatureError, match=message):
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
    {"parts": 0}, {"parts": 1.5}, {"parts": True}, {"dims": 0}, {"restarts": 0}, {"restarts": -1},
    {"prior_right": 0}, {"prior_right": float("nan")}, {"prior_wrong": -1}, {"prior_wrong": float("inf")},
    {"scale": "no"}, {"space": "latent"},
    {"turn": "no"}, {"max_iter": 0}, {"max_iter": -5}, {"n_iter": 5},
]  # fmt: skip


@pytest.mark.parametrize("chosen", WRONG, ids=str)
def test_d30_wrong_settings_are_refused_before_any_work(chosen: dict[str, Any]) -> None:
    name = next(iter(chosen))
    with pytest.raises(ParameterError, match=rf"{name} is |no setting '{name}'"):
        cw.aggregate(cw.Pairs.none([]), features="no features either", **chosen)


def test_other_data_than_pairs_are_refused() -> None:
    labels = {"task": [1], "worker": [1], "label": [1]}
    with pytest.raises(ColumnError, match="no column 'left' in table; columns are task, worker, label"):
        cw.aggregate(labels, "pair-mixture")  # a frame is read as what the model takes
    with pytest.raises(ParameterError, match=r"pooled takes no features\. .*crowdwise\.CrowdClassifier"):
        cw.aggregate(labels, features=(IDS, BLOBS))


def test_doubt_counts_what_lies_beyond_the_likeliest_clusters() -> None:
    result = cw.aggregate(cw.simulate.pinwheel(seed=1).pairs, "pair-vote")
    n = result.answers.n_items
    few = result.params._replace(choices=np.tile([0, 1], (n, 1)), chances=np.tile([0.5, 0.3], (n, 1)))
    wanted = -(0.5 * np.log2(0.5) + 0.3 * np.log2(0.3) + 0.2 * np.log2(0.2))  # bits
    assert dataclasses.replace(result, params=few).entropy == pytest.approx(np.full(n, wanted))
