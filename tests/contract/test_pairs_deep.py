"""bayes-scdc and scdc: short fits to features, to images, and to very few answers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pairing import BLOBS, HALVES, IDS, ONE, same_bits

import crowdwise as cw
from crowdwise.errors import FeatureError, Interrupted, MissingError, ParameterError

torch = pytest.importorskip("torch")

from crowdwise.pairs import scdc  # noqa: E402
from crowdwise.pairs.deep import amortised, bayes  # noqa: E402
from crowdwise.pairs.model import FeatureFit, PairAnswers, best_fit, new_trace  # noqa: E402
from crowdwise.pairs.scdc import MIN_GAIN  # noqa: E402

pytestmark = pytest.mark.filterwarnings("error")

DEEP = ("bayes-scdc", "scdc")
TINY: dict[str, Any] = {"epochs": 4, "hidden": (8,), "parts": 4}


@pytest.fixture(autouse=True)
def one_core() -> Iterator[None]:
    """Small tensors are slower in threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def about(truth: Any, count: int = 120, workers: int = 4, right: float = 0.95, ids: Any = IDS) -> cw.Pairs:
    """Answers to random pairs."""
    rng = np.random.default_rng(1)
    left, right_ = np.array([rng.choice(len(truth), 2, replace=False) for _ in range(count)]).T
    true = np.asarray(truth)[left] == np.asarray(truth)[right_]
    said = (true == (rng.random(count) < right)).astype(int)
    frame = {"left": [ids[k] for k in left], "right": [ids[k] for k in right_], "answer": said}
    return cw.Pairs({**frame, "worker": [f"w{k % workers}" for k in range(count)]}, contradictions="each")


def simulated_by(result: cw.PairsResult, count: int) -> Any:
    """(K, count, D) simulated observations of every component."""
    module = {"bayes-scdc": bayes, "scdc": amortised}[result.model.name]
    return module.draw(result.space, count, np.random.default_rng(0))


def sound(result: cw.PairsResult) -> bool:
    p = result.params
    assert all(np.isfinite(np.asarray(array, float)).all() for array in (*p, result.trace["objective"]))
    assert ((p.chances >= 0) & (p.chances <= 1 + 1e-6)).all()
    assert ((p.same >= 0) & (p.same <= 1 + 1e-6)).all()
    assert set(result.cluster) == set(range(result.n_clusters))
    assert result.trace["clusters"][-1] == result.n_clusters
    assert np.allclose(p.shares.sum(1), 1)
    assert len(p.shares) == len(p.epochs)
    assert (p.alpha > 0).all()
    assert (p.beta > 0).all()
    return True


# ----------------------------------------------------------------------------------------------------------------- fits


def test_bayes_scdc_finds_the_pinwheel() -> None:
    sim = cw.simulate.pinwheel(seed=0)
    result = cw.aggregate(sim.pairs, "bayes-scdc", features=sim.features, epochs=40)
    scores = cw.match_clusters(result, sim.truth)
    assert scores["accuracy"] >= 0.95
    assert scores["clusters"] == 5
    assert sound(result)
    assert result.trace["objective"][-1] > result.trace["objective"][0] + 1
    both = result.workers.join(sim.workers, on="worker", suffix="_true")
    for name in ("sensitivity", "specificity"):
        true, low, high = (both[f"{name}{end}"].to_numpy() for end in ("_true", "_low", "_high"))
        assert ((low <= true) & (true <= high)).sum() >= 16
    free = result.answers_of == 0
    placed = result.assign(sim.features[1])["cluster"].to_numpy() == result.cluster + 1
    assert placed[free].mean() > 0.99
    assert cw.match_clusters(result, sim.truth.filter(pl.Series(free)))["accuracy"] >= 0.95
    made = simulated_by(result, 40)[result.space["used"]]
    for k in range(5):  # what is simulated of a cluster lies where its items do
        mine = sim.features[1][result.cluster == k]
        assert np.linalg.norm(made[k].mean(0) - mine.mean(0)) < 2


def test_scdc_improves_and_beats_chance() -> None:
    sim = cw.simulate.pinwheel(per_cluster=40, seed=0)
    result = cw.aggregate(sim.pairs, "scdc", features=sim.features, epochs=80, parts=8)
    assert sound(result)
    value = result.trace["objective"]
    assert value[-1] > value[40] > value[0] + 1
    assert cw.match_clusters(result, sim.truth)["accuracy"] > 0.6
    assert cw.match_clusters(result, sim.truth)["nmi"] > 0.6


def test_scdc_may_start_from_pairs() -> None:
    result = cw.aggregate(about(HALVES), "scdc", features=(IDS, BLOBS), epochs=3, start="pairs", hidden=(8,))
    assert cw.match_clusters(result, {"item": IDS, "label": HALVES})["accuracy"] == 1
    assert result.n_clusters == 2


@pytest.mark.parametrize("name", DEEP)
def test_one_seed_is_one_result(name: str) -> None:
    """For any number of threads and any seed of torch."""
    chosen = {**TINY, "epochs": 2, "batch": 16, "start": "pairs", "latent": 1, "scale": "none"}
    torch.set_num_threads(2)
    state = torch.get_rng_state()
    fit = lambda **run: cw.aggregate(  # noqa: E731
        about(HALVES), name, features=(IDS, BLOBS), run=cw.Run(**run), **chosen
    )
    one = fit(seed=3, threads=1)
    assert same_bits(one, fit(seed=3, threads=2))
    assert sound(one)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == 2
    assert not same_bits(one, fit(seed=4))


@pytest.mark.parametrize("name", DEEP)
def test_without_answers_the_features_alone_are_learnt(name: str) -> None:
    result = cw.aggregate(cw.Pairs.none(IDS), name, features=(IDS, BLOBS), **TINY)
    assert sound(result)
    assert result.answers.n_workers == result.workers.height == result.asked.height == 0
    assert result.clusters["answers"].sum() == 0
    assert not result.warnings
    dropped = about(HALVES[:6], 9, ids=list("abcdef")).on(IDS, "drop")
    again = cw.aggregate(dropped, name, features=(IDS, BLOBS), **TINY)
    assert again.workers["answers"].sum() == 0


def test_without_answers_far_clusters_are_found() -> None:
    result = cw.aggregate(cw.Pairs.none(IDS), "bayes-scdc", features=(IDS, BLOBS), epochs=60, hidden=(8,), parts=6)
    groups = [set(result.cluster[k == HALVES]) for k in (0, 1)]
    assert not groups[0] & groups[1]


def images(n: int = 60, side: int = 8) -> tuple[Any, Any]:
    """Images with bright left or upper halves, each pixel flipped with probability 0.1."""
    kind = np.arange(n) % 2
    proto = np.zeros((2, side, side))
    proto[0, :, : side // 2] = proto[1, : side // 2] = 1
    flip = np.random.default_rng(2).random((n, side, side)) < 0.1
    return np.where(flip, 1 - proto[kind], proto[kind]), kind


@pytest.mark.parametrize(("name", "bytes_"), [("bayes-scdc", False), ("bayes-scdc", True), ("scdc", True)])
def test_images_are_bernoulli(name: str, bytes_: bool) -> None:
    X, kind = images()
    X = (X * 255).astype(np.uint8) if bytes_ else X
    ids = [f"i{k:02d}" for k in range(60)]
    pairs = about(kind, 150, ids=ids)
    chosen = {"epochs": 8, "hidden": (16,), "parts": 4, "latent": 3, "batch": 20, "start": "pairs"}
    result = cw.aggregate(pairs, name, features=(ids, X), run=ONE, **chosen)
    assert sound(result)
    assert float(result.space["scaling.bernoulli"]) == 1
    assert cw.match_clusters(result, {"item": ids, "label": kind})["accuracy"] > 0.9
    samples = result.params.samples
    assert samples.dtype == np.uint8
    assert samples.shape == (result.n_clusters, 6, 8, 8)
    assert samples.max() > 60  # not black
    made = simulated_by(result, 3)
    assert made.shape == (4, 3, 64)
    assert made.min() >= 0
    assert made.max() <= (255 if bytes_ else 1)
    assert result.assign(X)["cluster"].is_in(range(1, result.n_clusters + 1)).all()


@pytest.mark.parametrize("name", DEEP)
def test_what_is_simulated_has_the_units_of_the_features(name: str) -> None:
    X = 1000 + 50 * BLOBS
    result = cw.aggregate(about(HALVES), name, features=(IDS, X), epochs=15, hidden=(8,), parts=3)
    made = simulated_by(result, 7)
    assert made.shape == (3, 7, 2)
    assert np.array_equal(made, simulated_by(result, 7))
    assert abs(np.median(made) - 1200) < 800
    assert len(result.params.samples) == 0  # rows are no images


@pytest.mark.parametrize("relations", ["all", "sampled"])
def test_mini_batches_learn_too(relations: str) -> None:
    chosen = {"batch": 10, "epochs": 12, "hidden": (8,), "parts": 4, "relations": relations, "start": "pairs"}
    result = cw.aggregate(about(HALVES), "bayes-scdc", features=(IDS, BLOBS), **chosen)
    assert sound(result)
    assert result.trace.height == 12
    assert cw.match_clusters(result, {"item": IDS, "label": HALVES})["accuracy"] == 1


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("batch", [None, 8])
def test_a_fit_can_be_watched_and_stopped(name: str, batch: Any) -> None:
    steps: list[Any] = []
    result = cw.aggregate(
        about(HALVES), name, features=(IDS, BLOBS), batch=batch, restarts=1, run=cw.Run(watch=steps.append), **TINY
    )
    steps = [step for step in steps if step.stage == "epoch"]
    assert [step.iteration for step in steps] == [1, 2, 3, 4]
    assert {step.max_iter for step in steps} == {4}
    assert [step.objective for step in steps[:-1]] == result.trace["objective"].to_list()[:-1]  # the last is improved
    calls = iter([False] * 3)
    stop = cw.Run(stop=lambda: next(calls, True))
    with pytest.raises(Interrupted, match=f"{name} was interrupted after"):
        cw.aggregate(about(HALVES), name, features=(IDS, BLOBS), batch=batch, run=stop, **{**TINY, "epochs": 500})


@pytest.mark.parametrize("name", DEEP)
def test_the_best_start_by_the_bound_is_kept(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, ends = type(cw.model(name)), []
    one = kind._fit_start

    def recorded(*args: Any) -> Any:
        found = one(*args)
        ends.append(found.trace.objectives[-1])
        return found

    monkeypatch.setattr(kind, "_fit_start", recorded)
    result = cw.aggregate(about(HALVES), name, features=(IDS, BLOBS), restarts=3, run=cw.Run(seed=1), **TINY)
    assert len(set(ends)) == 3
    assert result.trace["objective"][-1] == max(ends)
    assert result.trace.height == 4


def test_the_width_of_clusters_is_chosen_by_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: dict[float, float] = {}
    features, answers = (IDS, BLOBS), about(HALVES)

    def recorded(X: Any, answers: Any, model: Any, *more: Any) -> Any:
        found = one(X, answers, model, *more)
        ends[model.width] = found.trace.objectives[-1]
        return found

    one = bayes.bayes_scdc
    monkeypatch.setattr(bayes, "bayes_scdc", recorded)
    result = cw.aggregate(answers, "bayes-scdc", features=features, run=cw.Run(seed=1), **TINY)
    assert ends.keys() == {0.02, 1.0}
    assert result.trace["objective"][-1] == max(ends.values())
    for given, chosen in ((answers, {"width": 0.3}), (cw.Pairs.none(IDS), {})):
        ends.clear()
        cw.aggregate(given, "bayes-scdc", features=features, run=cw.Run(seed=1), **TINY, **chosen)
        assert list(ends) == [chosen.get("width", 0.02)]


@pytest.mark.parametrize("name", DEEP)
def test_a_saved_result_places_simulates_and_can_be_fitted_again(name: str, tmp_path: Path) -> None:
    X, kind = images(30)
    ids = IDS[:30]
    chosen = {**TINY, "epochs": 2, "hidden": (6, 5), "batch": 10, "latent": 3}
    result = cw.aggregate(about(kind, 60, ids=ids), name, features=(ids, X), run=cw.Run(seed=2), **chosen)
    again = cw.load(result.save(tmp_path / "kept"))
    assert isinstance(again, cw.PairsResult)
    assert same_bits(again, result)
    fresh = np.random.default_rng(1).random((5, 8, 8))
    assert again.assign(fresh).equals(result.assign(fresh))
    assert np.array_equal(simulated_by(again, 2), simulated_by(result, 2))
    assert same_bits(again.model.fit(again.answers, features=(ids, X), run=cw.Run(seed=2)), result)


# ----------------------------------------------------------------------------------------------------------- hard input

FEATURES: dict[str, Any] = {
    "constant": np.ones((40, 2)),
    "one column": BLOBS[:, :1],
    "rows of two kinds": np.repeat([[0.0, 0.0], [5.0, 5.0]], 20, axis=0),
    "yes and no": BLOBS > 4,
    "far away": BLOBS + 1e6,
}


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("kind", FEATURES)
def test_features_of_any_kind_give_sound_answers(kind: str, name: str) -> None:
    for start in ("pairs", "random") if kind == "constant" else ("pairs",):
        chosen = {**TINY, "epochs": 2, "start": start}
        result = cw.aggregate(about(HALVES), name, features=(IDS, FEATURES[kind]), **chosen)
        assert sound(result)


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_hardly_any_items(name: str, n: int) -> None:
    pairs = cw.Pairs.none(IDS[:1]) if n == 1 else cw.Pairs({"left": ["i00"], "right": ["i01"], "worker": ["w"],
                                                            "answer": [0]})  # fmt: skip
    result = cw.aggregate(pairs, name, features=(IDS[:n], BLOBS[:n]), epochs=2, hidden=(4,))
    assert sound(result)
    assert result.answers.n_items == n


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("answer", [0, 1])
def test_answers_of_one_kind(name: str, answer: int) -> None:
    frame = pl.DataFrame({"left": IDS[:10], "right": IDS[10:20], "worker": ["w"] * 10, "answer": [answer] * 10})
    result = cw.aggregate(cw.Pairs(frame), name, features=(IDS, BLOBS), **TINY)
    assert sound(result)
    assert any("every answer is" in text for text in result.warnings)


@pytest.mark.parametrize("name", DEEP)
def test_features_are_needed(name: str) -> None:
    with pytest.raises(ParameterError, match=rf"{name} needs features\. Give features=\(ids, X\), or use pair-mixture"):
        cw.aggregate(about(HALVES), name)
    with pytest.raises(FeatureError, match=r"1 item\(s\) .* the first 'i03' in column 2"):
        cw.aggregate(about(HALVES), name, features=(IDS, np.where(np.arange(80).reshape(40, 2) == 7, np.nan, 1.0)))
    with pytest.raises(FeatureError, match="'bernoulli' features must be from 0 to 1"):
        cw.aggregate(about(HALVES), name, features=(IDS, BLOBS), observation="bernoulli", **TINY)


def test_features_beyond_the_numbers_of_networks_are_refused() -> None:
    said = r"bayes-scdc: numerical failure in the Cholesky decomposition .*Scale the features"
    with pytest.raises(FeatureError, match=said):
        cw.aggregate(about(HALVES), "bayes-scdc", features=(IDS, 1e30 * BLOBS), scale="none", **TINY)


@pytest.mark.parametrize("name", DEEP)
def test_without_torch_the_error_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    said = rf"{name} needs torch, which is not installed\. Run: pip install 'crowdwise\[deep\]'"
    with pytest.raises(MissingError, match=said):
        cw.aggregate(about(HALVES), name, features=(IDS, BLOBS), **TINY)


WRONG: list[dict[str, Any]] = [
    {"parts": 0}, {"latent": 0}, {"latent": 1.5}, {"hidden": ()}, {"hidden": (0,)}, {"hidden": (4, -1)},
    {"hidden": (True,)}, {"hidden": "40,40"}, {"hidden": (4.5,)}, {"observation": "poisson"}, {"epochs": 0},
    {"epochs": 2.5}, {"batch": 1}, {"rate": 0}, {"rate": float("nan")}, {"rate": -0.1}, {"start": "k-means"},
    {"restarts": 0}, {"scale": "yes"}, {"n_iter": 5},
]  # fmt: skip
BAYES: list[dict[str, Any]] = [
    {"step": 0}, {"step": -1}, {"step": 5.0}, {"step": float("nan")}, {"relations": "some"}, {"width": 0},
    {"width": float("inf")},
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "chosen"), [(n, c) for n in DEEP for c in WRONG] + [("bayes-scdc", c) for c in BAYES], ids=str
)
def test_d30_wrong_settings_are_refused_before_any_work(name: str, chosen: dict[str, Any]) -> None:
    setting = next(iter(chosen))
    with pytest.raises(ParameterError, match=rf"{setting} is |no setting '{setting}'"):
        cw.aggregate(cw.Pairs.none([]), name, features="no features either", **chosen)


def test_sizes_of_layers_as_a_command_gives_them() -> None:
    assert cw.model("bayes-scdc", hidden=(40.0, 20.0)).hidden == (40, 20)
    assert cw.model("scdc", hidden=30).hidden == (30,)


@pytest.mark.parametrize(("gain", "kept"), [(0.0, 25), (0.02, 12), (0.5, 6)])
def test_more_clusters_must_raise_the_bound_by_more_than_its_noise(gain: float, kept: int) -> None:
    def fit(start: int) -> FeatureFit:
        clusters, bound = ((50, -98.4), (25, -98.27), (12, -98.36), (6, -99.3))[start]
        trace = new_trace()
        trace.add(bound, {"clusters": clusters})
        return FeatureFit(np.eye(clusters), np.ones((1, 2)), np.ones((1, 2)), trace, {}, True)

    assert best_fit(4, fit, cw.Run().begin(), min_gain=gain).posterior.shape[1] == kept


def test_images_without_answers_prefer_fewer_clusters() -> None:
    X, kind = images(30)
    model = cw.model("bayes-scdc")
    some, none = (
        PairAnswers.of(pairs.on(IDS[:30])) for pairs in (about(kind, 60, ids=IDS[:30]), cw.Pairs.none(IDS[:30]))
    )
    assert model.min_gain(X.reshape(30, -1), none) == MIN_GAIN > 0
    assert model.min_gain(X.reshape(30, -1), some) == 0
    assert model.min_gain(BLOBS, none) == 0


def test_a_fit_of_images_without_answers_keeps_fewer_clusters_at_nearly_the_same_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounds = {5: -10.0, 3: -10.0 - 1.5 * MIN_GAIN}  # two clusters more must add twice the gain

    def fitted(X: Any, answers: Any, model: Any, rng: Any, run: Any, begin: int) -> FeatureFit:
        found = one(X, answers, replace(model, epochs=1), rng, run, begin)
        trace = new_trace()
        trace.add(bounds[begin], {"clusters": begin})
        return found._replace(posterior=np.eye(begin)[np.arange(len(X)) % begin], trace=trace)

    one = bayes.bayes_scdc
    monkeypatch.setattr(bayes, "bayes_scdc", fitted)
    monkeypatch.setattr(scdc, "START_SHARES", (1.0, 0.6))
    X, _ = images(30)
    result = cw.aggregate(cw.Pairs.none(IDS[:30]), "bayes-scdc", features=(IDS[:30], X), **TINY | {"parts": 5})
    assert result.n_clusters == 3
