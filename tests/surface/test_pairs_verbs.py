"""What can be done with pairs: baselines, what to ask next, saved results, and the command."""

from __future__ import annotations

import csv
import functools
import json
import re
import zipfile
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.acquisition.pairs import _gain
from crowdwise.answers.pairs import components
from crowdwise.engine.registry import DEFAULTS, MODELS
from crowdwise.errors import ChecksumError, DataError, FeatureError, ParameterError
from crowdwise.rating import WORKER_COLUMNS

pytestmark = pytest.mark.filterwarnings("error")

ONE = cw.Run(threads=1)
IDS = [f"i{k:02d}" for k in range(40)]
HALVES = np.repeat([0, 1], 20)
BLOBS = np.random.default_rng(0).normal(size=(40, 2)) + 8.0 * HALVES[:, None]
BASELINES: dict[str, dict[str, Any]] = {  # with the number of clusters, and what keeps MMC short
    "k-means-items": {"clusters": 2}, "gaussian-mixture": {"clusters": 2}, "itml": {"clusters": 2},
    "mmc": {"clusters": 2, "projections": 100}, "mpck-means": {"clusters": 2}, "cspa": {"clusters": 2},
    "semi-crowd": {"clusters": 2}, "mcvc": {"clusters": 2},
}  # fmt: skip
ITERATIVE = ("mpck-means", "mcvc")  # baselines with a trace


def answers(rows: Any) -> cw.Pairs:
    return cw.Pairs(pl.DataFrame(rows, ["left", "right", "worker", "answer"], orient="row"))


def about(truth: Any, share: float = 0.15, right: float = 0.95, workers: int = 3, ids: Any = IDS) -> cw.Pairs:
    rng = np.random.default_rng(1)
    return answers([
        (ids[a], ids[b], f"w{w}", int((truth[a] == truth[b]) == (rng.random() < right)))
        for a, b in combinations(range(len(truth)), 2) for w in range(workers) if rng.random() < share
    ])  # fmt: skip


@pytest.fixture(scope="module")
def sim() -> cw.simulate.PairCrowd:
    return cw.simulate.pinwheel(per_cluster=30, asked=60, workers=8, each=60, seed=1)


@pytest.fixture(scope="module")
def result(sim: cw.simulate.PairCrowd) -> cw.PairsResult:
    return cw.aggregate(sim.pairs, features=sim.features, restarts=2, run=ONE)


@functools.cache
def baseline(name: str) -> cw.PairsResult:
    """Two clusters that lie apart, by a baseline; one fit for all tests that only look."""
    features = None if name == "pair-vote" else (IDS, BLOBS)
    result: cw.PairsResult = cw.aggregate(about(HALVES), name, features=features, run=ONE, **BASELINES.get(name, {}))
    return result


# ------------------------------------------------------------------------------------------------------------ baselines


def test_votes_are_closed_over_chains() -> None:
    rows = [
        *[("a", "b", w, 1) for w in "uvw"], ("b", "c", "u", 1), ("b", "c", "v", 1), ("b", "c", "w", 0),
        ("a", "c", "u", 0),  # which the chain overrules
        ("d", "e", "u", 1), ("d", "e", "v", 0),  # a tie is no
        ("e", "f", "u", 0), ("g", "h", "w", 1),
    ]  # fmt: skip
    result = cw.aggregate(answers(rows), "pair-vote")
    home = dict(result.clusters.select("item", "cluster").rows())
    groups = {frozenset(k for k in home if home[k] == c) for c in set(home.values())}
    assert groups == {frozenset("abc"), frozenset("gh"), frozenset("d"), frozenset("e"), frozenset("f")}
    assert [home["a"], home["g"]] == [1, 2]  # the largest first
    asked = {(row["left"], row["right"]): row for row in result.asked.iter_rows(named=True)}
    assert asked["b", "c"]["probability"] == pytest.approx(2 / 3)
    assert asked["a", "c"]["together"]
    assert not asked["d", "e"]["together"]
    assert result.workers.filter(pl.col("worker") == "w")["answers"].to_list() == [3]
    assert result.params.alpha.tolist() == [[2 + 1, 1 + 1], [2 + 1, 0 + 1], [2 + 1, 1 + 1]]  # held against the clusters
    assert result.converged
    assert result.trace.is_empty()


def test_votes_of_a_crowd_are_those_by_hand() -> None:
    pairs = about(HALVES, 0.3, right=0.9)
    left, right, edge = pairs.edges
    yes = np.bincount(edge, np.where(pairs.same, 1, -1)) > 0
    group = components(left[yes], right[yes], 40)
    result = cw.aggregate(pairs, "pair-vote")
    same = result.cluster[:, None] == result.cluster
    assert np.array_equal(same, group[:, None] == group)


@pytest.mark.parametrize("name", BASELINES)
def test_clusters_that_lie_apart_are_found(name: str) -> None:
    result = baseline(name)
    assert cw.match_clusters(result, {"item": IDS, "label": HALVES})["accuracy"] == 1
    assert (result.assign(BLOBS)["cluster"].to_numpy() == result.cluster + 1).all()
    fresh = result.assign([[0.0, 0.0], [8.0, 8.0]])["cluster"].to_list()
    assert fresh == [result.cluster[0] + 1, result.cluster[39] + 1]
    for table, frame in cw.aggregate(about(HALVES[:4], 1.0)).tables().items():  # as those of the mixture
        assert result.tables()[table].schema == frame.schema
    assert np.abs(result.workers["skill"].to_numpy() - 0.95).max() < 0.08  # held against the clusters
    assert result.trace.is_empty() == (name not in ITERATIVE)
    assert result.converged


@pytest.mark.parametrize("name", sorted(set(BASELINES) - set(ITERATIVE)))
def test_as_many_clusters_as_asked_for(name: str) -> None:
    for clusters in (5,) if name in ("itml", "mmc") else (1, 5):  # after the metric it is k-means
        chosen = {**BASELINES[name], "clusters": clusters}
        assert cw.aggregate(about(HALVES), name, features=(IDS, BLOBS), **chosen).n_clusters == clusters


def test_a_metric_learns_which_column_counts() -> None:
    X = np.column_stack([BLOBS[:, 0] / 4, 5 * np.random.default_rng(5).normal(size=40)])
    blind, seeing = (
        cw.aggregate(about(HALVES, 0.2, 1.0), n, features=(IDS, X), clusters=2) for n in ("k-means-items", "itml")
    )
    truth = {"item": IDS, "label": HALVES}
    assert cw.match_clusters(blind, truth)["accuracy"] < 0.75
    assert cw.match_clusters(seeing, truth)["accuracy"] > 0.9


@pytest.mark.parametrize("name", ["itml", "mmc"])
@pytest.mark.parametrize("answer", [0, 1])
def test_a_metric_needs_answers_of_both_kinds(name: str, answer: int) -> None:
    pairs = answers([(IDS[k], IDS[k + 1], "w", answer) for k in range(10)])
    with pytest.raises(DataError, match=f"{name} needs pairs voted the same and pairs voted different"):
        cw.aggregate(pairs, name, features=(IDS, BLOBS))


HARD: dict[str, Any] = {
    "constant": np.ones((40, 2)),
    "two kinds": np.repeat([[0.0, 0.0], [5.0, 5.0]], 20, axis=0),
    "one column": BLOBS[:, :1],
    "columns alike": BLOBS[:, [0, 0]],
    "yes and no": BLOBS > 4,
    "bytes": (BLOBS.clip(0) * 20).astype(np.uint8),
    "large": 1e80 * BLOBS,
}


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("name", ["k-means-items", "gaussian-mixture"])
def test_hard_features_give_sound_clusters(name: str, kind: str) -> None:
    result = cw.aggregate(about(HALVES), name, features=(IDS, HARD[kind]), clusters=3)
    assert np.isfinite(result.params.chances).all()
    wanted = {"constant": 1, "two kinds": 2}
    assert result.n_clusters == wanted[kind] if kind in wanted else result.n_clusters <= 3
    assert (result.assign(HARD[kind])["cluster"].to_numpy() == result.cluster + 1).all()


@pytest.mark.parametrize("kind", ["constant", "two kinds"])
def test_features_that_have_no_metric_are_refused(kind: str) -> None:
    with pytest.raises(FeatureError, match="itml failed on these features"):
        cw.aggregate(about(HALVES), "itml", features=(IDS, HARD[kind]), clusters=3)


@pytest.mark.parametrize("name", ["k-means-items", "gaussian-mixture"])
def test_hardly_any_items(name: str) -> None:
    result = cw.aggregate(answers([("a", "b", "w", 1)]), name, features=(["a", "b"], [[0.0, 1.0], [1.0, 2.0]]))
    assert result.n_clusters == 2
    none = cw.aggregate(cw.Pairs.none(IDS), name, features=(IDS, BLOBS), clusters=2)
    assert cw.match_clusters(none, {"item": IDS, "label": HALVES})["accuracy"] == 1
    assert none.workers.height == 0


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_need_features_and_a_number(name: str) -> None:
    with pytest.raises(ParameterError, match=rf"{name} needs features\. Give features=\(ids, X\)"):
        cw.aggregate(cw.Pairs.none(IDS), name)
    for wrong in (0, -1, 2.5, True, None):
        with pytest.raises(ParameterError, match=f"{name}: clusters is {wrong!r}; it must be a whole number"):
            cw.aggregate(cw.Pairs.none([]), name, clusters=wrong)


def test_votes_take_no_features() -> None:
    with pytest.raises(ParameterError, match=r"pair-vote takes no features\. Omit features=, or use pair-mixture"):
        cw.aggregate(about(HALVES), "pair-vote", features=(IDS, BLOBS))
    with pytest.raises(FeatureError, match="pair-vote was fitted without features"):
        baseline("pair-vote").assign(BLOBS)


@pytest.mark.parametrize("name", BASELINES)
def test_a_saved_baseline_places_new_items(name: str, tmp_path: Path) -> None:
    again = cw.load(baseline(name).save(tmp_path))
    assert isinstance(again, cw.PairsResult)
    assert again.assign(BLOBS).equals(baseline(name).assign(BLOBS))


def test_a_changed_byte_of_any_part_is_noticed(tmp_path: Path, result: cw.PairsResult) -> None:
    path = result.save(tmp_path / "result.crowdwise")
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as file:
        parts = [file.read(name) for name in file.namelist()]
    assert len(parts) >= 4
    for at in (whole.index(part) + len(part) // 2 for part in parts):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        with pytest.raises(ChecksumError):
            cw.load(path)
    path.write_bytes(whole)
    assert isinstance(cw.load(path), cw.PairsResult)


# ---------------------------------------------------------------------------------------------------------- what to ask


def information(p: float, alpha: float, beta: float) -> float:
    """Mutual information of whether a pair is the same and of an answer in bits, summed over all four cases."""
    joint = np.array([[p * alpha, p * (1 - alpha)], [(1 - p) * (1 - beta), (1 - p) * beta]])
    outer = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    some = joint > 0
    return float((joint[some] * np.log2(joint[some] / outer[some])).sum())


def test_gain_is_the_information_that_an_answer_is_expected_to_bring() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        p, alpha, beta = rng.random(3)
        assert _gain(np.array([p]), alpha, beta)[0] == pytest.approx(information(p, alpha, beta), abs=1e-9)
    assert _gain(np.array([0.0, 1.0]), 0.9, 0.9) == pytest.approx([0, 0], abs=1e-9)
    assert _gain(np.array([0.3]), 0.4, 0.6)[0] == pytest.approx(0, abs=1e-12)  # an answer that is a coin's
    assert _gain(np.array([0.5]), 1.0, 1.0)[0] == pytest.approx(1.0, abs=1e-6)


@pytest.fixture(scope="module", params=["features", "answers alone", "pair-vote", "k-means-items"])
def any_result(request: pytest.FixtureRequest, sim: Any, result: Any) -> cw.PairsResult:
    if request.param == "features":
        return result  # type: ignore[no-any-return]
    name = "pair-mixture" if request.param == "answers alone" else request.param
    features = sim.features if name == "k-means-items" else None
    return cw.aggregate(sim.pairs, name, features=features, run=ONE)  # type: ignore[no-any-return]


@pytest.mark.parametrize("budget", [1, 7, 400])
def test_next_pairs_are_new_and_the_best_come_first(budget: int, any_result: cw.PairsResult) -> None:
    result = any_result
    table = cw.next_pairs(result, budget)
    assert table.columns == ["left", "right", "probability", "gain", "about"]
    assert 1 <= table.height <= budget
    ends = [tuple(sorted(row)) for row in table.select("left", "right").rows()]
    assert len(set(ends)) == len(ends)
    assert all(a != b for a, b in ends)
    known = {tuple(sorted(row)) for row in result.asked.select("left", "right").rows()}
    again = [pair in known for pair in ends]
    assert again == sorted(again)  # what was asked already comes last
    fresh = table["gain"].to_numpy()[: again.count(False)]
    assert (np.diff(fresh) <= 1e-12).all()
    p = result.params
    alpha, beta = (float(each[:, 0].sum() / each.sum()) for each in (p.alpha, p.beta))
    assert np.allclose(table["gain"], [information(x, alpha, beta) for x in table["probability"]], atol=1e-6)
    assert np.allclose(table["probability"], result.probability_same(table["left"], table["right"]))
    assert all(item in pair for item, pair in zip(table["about"], ends, strict=True))


def test_the_most_doubtful_item_is_asked_about_first(result: cw.PairsResult) -> None:
    doubtful = result.clusters.sort("entropy", descending=True).head(5)["item"].to_list()
    assert set(cw.next_pairs(result, 3)["about"]) & set(doubtful)
    best, p = cw.next_pairs(result, 3), result.params
    every = list(combinations(result.answers.items.to_list(), 2))
    alpha, beta = (float(each[:, 0].sum() / each.sum()) for each in (p.alpha, p.beta))
    gain = _gain(result.probability_same(*zip(*every, strict=True)), alpha, beta)
    assert best["gain"].min() > np.quantile(gain, 0.98)  # of all pairs that could be asked


def test_where_all_was_asked_it_is_asked_again() -> None:
    pairs = answers([(a, b, "w", int(a[0] == b[0])) for a, b in combinations(["p1", "p2", "q1", "q2"], 2)])
    table = cw.next_pairs(cw.aggregate(pairs), 50)
    assert 1 <= table.height <= 6
    assert (table["left"] < table["right"]).all()


def test_next_pairs_without_any_answers() -> None:
    result = cw.aggregate(cw.Pairs.none(IDS), "gaussian-mixture", features=(IDS, BLOBS), clusters=2)
    table = cw.next_pairs(result, 5)
    assert table.height == 5
    assert table["gain"].is_finite().all()
    assert (table["left"] != table["right"]).all()


@pytest.mark.parametrize("budget", [0, -1, 1.5, True, "3", None])
def test_a_budget_is_a_number_of_pairs(budget: Any, result: cw.PairsResult) -> None:
    with pytest.raises(ParameterError, match=f"budget is {budget!r}; it must be a whole number of at least 1"):
        cw.next_pairs(result, budget)


# --------------------------------------------------------------------------------------------------- names and settings


def test_aggregate_takes_the_kind_from_the_answers(sim: cw.simulate.PairCrowd) -> None:
    assert cw.aggregate(sim.pairs).model == cw.PairMixture()
    assert DEFAULTS["pairs"] == "pair-mixture"
    assert set(MODELS["pairs"]) == {
        "pair-mixture", "bayes-scdc", "scdc", "pair-vote", "k-means-items", "gaussian-mixture", "itml", "mmc",
        "mpck-means", "cspa", "semi-crowd", "mcvc",
    }  # fmt: skip
    for name, kind in MODELS["pairs"].items():
        assert isinstance(cw.model(name), kind)
        assert cw.model(name).name == name
    with pytest.raises(ParameterError, match=r"'dawid-skene' is a model of labels, not of pairs\. Models of pairs: b"):
        cw.aggregate(sim.pairs, "dawid-skene")
    with pytest.raises(ParameterError, match="Did you mean 'pair-mixture'"):
        cw.aggregate(sim.pairs, "pair-mixtur")
    with pytest.raises(ParameterError, match="pair-vote has no setting 'clusters'"):
        cw.aggregate(sim.pairs, "pair-vote", clusters=3)


def test_the_models_are_listed(command: Any) -> None:
    status, out, _ = command("models")
    assert status == 0
    for name in set(MODELS["pairs"]) - {"pair-mixture"}:
        assert f"{name} (crowdwise pairs)" in out
    assert "pair-mixture (crowdwise pairs, the default)" in out
    rows = {row["name"]: row for row in json.loads(command("models", "--json")[1]) if row["kind"] == "pairs"}
    assert set(rows) == set(MODELS["pairs"])
    needs = {name: row["features"] for name, row in rows.items() if row["features"] != "required"}
    assert needs == {"pair-mixture": "optional", "pair-vote": "none"}
    assert rows["pair-mixture"]["settings"] == cw.PairMixture().settings()


# ---------------------------------------------------------------------------------------------------------- the command

COLUMNS = {
    "clusters": ["item", "cluster", "probability"],
    "sizes": ["cluster", "items", "share", "asked", "probability"],
    "workers": [*WORKER_COLUMNS],
    "asked": ["left", "right", "answers", "said_same", "probability", "together"],
    "next": ["left", "right", "probability", "gain", "about"],
}
FILES = sorted([*(f"{name}.csv" for name in COLUMNS), "report.html", "result.crowdwise"])


@pytest.fixture(scope="module")
def files(sim: cw.simulate.PairCrowd, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    sim.save(folder)
    ids, X = sim.features
    np.savez(folder / "features.npz", x=X, item=ids.to_numpy().astype(str), other=X[:, :1])
    pl.DataFrame({"item": ids, "x": X[:, 0], "y": X[:, 1]}).head(100).write_csv(folder / "few.csv")
    frame = sim.pairs.frame()
    said = pl.when(pl.col("answer") == 1).then(pl.lit("gleich")).otherwise(pl.lit("anders"))
    frame.with_columns(answer=said).write_csv(folder / "german.csv")
    frame.rename({"left": "p", "right": "q", "worker": "who", "answer": "said"}).write_csv(
        folder / "named.tsv", separator="\t"
    )
    return folder


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_everything_that_is_promised_is_written(
    files: Path, tmp_path: Path, command: Any, sim: Any, result: Any
) -> None:
    status, out, err = command(
        "pairs", files / "pairs.csv", "--features", files / "features.csv", "--truth", files / "truth.csv", "--out",
        tmp_path / "out", "--set", "restarts=2", "--threads", 1,
    )  # fmt: skip
    assert status == 0
    assert out.splitlines()[0].split() == COLUMNS["sizes"]
    assert len(out.splitlines()) == 6
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted([*FILES, "crowdwise.json"])
    for name, columns in COLUMNS.items():
        table = rows(tmp_path / "out" / f"{name}.csv")
        assert list(table[0])[: len(columns)] == columns
    table = rows(tmp_path / "out" / "clusters.csv")
    assert [row["item"] for row in table] == sim.truth["item"].to_list()
    assert [int(row["cluster"]) for row in table] == (result.cluster + 1).tolist()
    assert [float(row["probability"]) for row in table] == pytest.approx(result.params.chances[:, 0].tolist())
    people = rows(tmp_path / "out" / "workers.csv")
    assert [row["worker"] for row in people] == result.workers["worker"].to_list()
    assert [float(row["skill"]) for row in people] == pytest.approx(result.workers["skill"].to_list())
    assert "compared with the truth: items 150, clusters 5, true 5, accuracy " in err
    assert f"results are in {tmp_path / 'out'}: {', '.join(FILES)}" in err
    kept = cw.load(tmp_path / "out")
    assert isinstance(kept, cw.PairsResult)
    assert kept.clusters.equals(result.clusters)
    assert "<section" in (tmp_path / "out" / "report.html").read_text()


def test_features_may_be_an_npz(files: Path, tmp_path: Path, command: Any, result: Any) -> None:
    chosen = ("--set", "restarts=2", "--threads", 1, "--no-page", "--json")
    status, out, _ = command(
        "pairs", files / "pairs.csv", "--features", files / "features.npz", "--out", tmp_path / "x", *chosen
    )
    assert status == 0
    assert json.loads(out)["sizes"] == result.sizes.to_dicts()
    assert not (tmp_path / "x" / "report.html").exists()
    status, out, _ = command(
        "pairs", files / "pairs.csv", "--features", files / "features.npz", "--array", "other", "--out", tmp_path / "y",
        *chosen,
    )  # fmt: skip
    assert status == 0
    assert json.loads(out)["sizes"] != result.sizes.to_dicts()


def test_without_features(files: Path, tmp_path: Path, command: Any, sim: Any) -> None:
    words = ("--out", tmp_path, "--json", "--no-page", "--ask", 4, "--truth", files / "pairs.csv")
    status, out, _ = command("pairs", files / "pairs.csv", *words)
    assert status == 0
    found = json.loads(out)
    wanted = cw.aggregate(sim.pairs)
    assert found["sizes"] == wanted.sizes.to_dicts()
    assert found["answers"] == sim.pairs.n_answers
    assert found["out"] == str(tmp_path)
    assert found["scores"] == pytest.approx(cw.match_clusters(wanted, sim.pairs.frame()))
    assert len(rows(tmp_path / "next.csv")) == 4
    assert len(rows(tmp_path / "clusters.csv")) == 60


def test_columns_and_words_can_be_named(files: Path, tmp_path: Path, command: Any) -> None:
    plain = ("--model", "pair-vote", "--no-page", "--json", "--out")
    wanted = json.loads(command("pairs", files / "pairs.csv", *plain, tmp_path / "a")[1])["sizes"]
    german = command("pairs", files / "german.csv", "--same", "gleich", "--same", "equal", *plain, tmp_path / "b")
    assert json.loads(german[1])["sizes"] == wanted
    named = command(
        "pairs", files / "named.tsv", "--left", "p", "--right", "q", "--worker", "who", "--answer", "said",
        "--delimiter", "\\t", *plain, tmp_path / "c",
    )  # fmt: skip
    assert json.loads(named[1])["sizes"] == wanted
    options = cw.load(tmp_path / "c").answers.intake.options  # type: ignore[union-attr]
    assert (options["left"], options["right"]) == ("p", "q")
    status, _, err = command("pairs", files / "german.csv", *plain, tmp_path / "d")
    assert status == 1
    assert "at german.csv:2, which means neither same nor different. List the values that mean same with --same" in err
    assert not (tmp_path / "d").exists()


def test_unknown_items_are_refused_or_dropped(files: Path, tmp_path: Path, command: Any) -> None:
    words = ("pairs", files / "pairs.csv", "--features", files / "few.csv", "--no-page", "--set", "restarts=1", "--out")
    status, _, err = command(*words, tmp_path / "a")
    assert status == 1
    assert "items in pairs have no features" in err
    assert "--unknown drop" in err
    assert not (tmp_path / "a").exists()
    status, _, err = command(*words, tmp_path / "b", "--unknown", "drop")
    assert status == 0
    assert "left out: item without features" in err
    kept = cw.load(tmp_path / "b")
    assert isinstance(kept, cw.PairsResult)
    assert kept.answers.n_items == 100


def test_jobs_and_contradictions(table: Any, tmp_path: Path, command: Any) -> None:
    file = table("left,right,worker,answer,batch\na,b,w,1,1\na,c,w,0,1\nb,c,w,0,1\nd,e,w,1,2\ne,d,w,0,3\n", "pairs.csv")
    words = ("pairs", file, "--no-page", "--hit", "batch", "--out")
    status, _, err = command(*words, tmp_path / "a")
    assert status == 0
    kept = cw.load(tmp_path / "a")
    assert isinstance(kept, cw.PairsResult)
    assert kept.answers.weight.tolist() == pytest.approx([1, 0.5**0.5, 0.5**0.5])
    assert "2 left out: contradicts another answer of the same worker" in err
    assert command(*words, tmp_path / "b", "--contradictions", "each")[0] == 0
    assert rows(tmp_path / "b" / "asked.csv")[-1]["answers"] == "2"
    status, _, err = command(*words, tmp_path / "c", "--contradictions", "error")
    assert status == 1
    assert "Use --contradictions drop or each" in err


@pytest.mark.parametrize("words", [
    ("--model", "nothing"), ("--model", "majority-vote"), ("--set", "parts=0"), ("--set", "parts"),
    ("--set", "n_iter=3"), ("--set", "prior_right=nan"), ("--ask", 0), ("--unknown", "keep"),
    ("--contradictions", "last"), ("--seed", -1), ("--threads", -1),
    ("--model", "k-means-items", "--set", "clusters=2"),
], ids=lambda words: " ".join(map(str, words)))  # fmt: skip
def test_d30_wrong_usage_is_refused_before_anything_is_read(words: Any, tmp_path: Path, command: Any) -> None:
    status, out, err = command("pairs", tmp_path / "nowhere.csv", "--out", tmp_path / "out", *words)
    assert (status, out) == (2, "")
    assert "nowhere.csv" not in err
    assert not (tmp_path / "out").exists()


def test_what_the_command_needs_is_said(tmp_path: Path, command: Any) -> None:
    assert command("pairs", tmp_path / "nowhere.csv")[0] == 1
    assert command("pairs", "--out", tmp_path)[0] == 2
    assert command("pairs", tmp_path / "x.csv", "--out", tmp_path, "--no-such-option")[0] == 2


@pytest.mark.parametrize(("text", "said"), [
    ("left,right,worker,answer\n", "no answers in pairs.csv"),
    ("left,right,worker,answer\na,a,w,1\n", "none about two items"),
    ("left,right,worker,answer\na,b,w,1\nb,a,w,0\n", "gave contradictory answers to every pair"),
    ("left,right,answer\na,b,1\n", "no column 'worker' in pairs.csv"),
    ("left,right,worker,answer\na,b,,1\n", "have no worker, the first at pairs.csv:2"),
    ("left,right,worker,answer\na,b,w,1,7\n", "pairs.csv"),
])  # fmt: skip
def test_data_that_cannot_be_used_are_refused(text: str, said: str, table: Any, tmp_path: Path, command: Any) -> None:
    status, out, err = command("pairs", table(text, "pairs.csv"), "--out", tmp_path / "out")
    assert (status, out) == (1, "")
    assert said in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("features", "said"), [
    ("item,x\na,1\n", "1 of 2 items in pairs have no features"),
    ("item,x\na,1\nb,2\nb,3\n", "item 'b' has more than one row of features"),
    ("item,x\na,1\nb,east\n", "'east'"),
    ("item,x\na,1\nb,\n", "not finite, the first 'b' in column 1"),
    ("item\na\nb\n", "only one column"),
])  # fmt: skip
def test_features_that_cannot_be_used_are_refused(
    features: str, said: str, table: Any, tmp_path: Path, command: Any
) -> None:
    pairs = table("left,right,worker,answer\na,b,w,1\n", "pairs.csv")
    status, _, err = command("pairs", pairs, "--features", table(features, "features.csv"), "--out", tmp_path / "out")
    assert status == 1
    assert said in err
    assert not (tmp_path / "out").exists()


def test_files_that_are_not_there(files: Path, tmp_path: Path, command: Any) -> None:
    pairs = files / "pairs.csv"
    for words in (
        ("nowhere.csv",), (pairs, "--features", "nowhere.csv"), (pairs, "--features", "nowhere.npz"),
        (pairs, "--truth", "nowhere.csv"),
    ):  # fmt: skip
        status, _, err = command("pairs", *words, "--out", tmp_path / "out")
        assert status == 1
        assert "nowhere" in err
        assert not (tmp_path / "out").exists()


def test_a_truth_that_says_nothing_is_refused(files: Path, tmp_path: Path, command: Any) -> None:
    words = ("--model", "pair-vote", "--no-page", "--truth", files / "workers.csv", "--out", tmp_path)
    status, _, err = command("pairs", files / "pairs.csv", *words)
    assert status == 1
    assert "it needs item and label, or left, right and answer" in err


def test_a_fit_that_has_not_converged_is_reported(files: Path, tmp_path: Path, command: Any) -> None:
    words = ("pairs", files / "pairs.csv", "--features", files / "features.csv", "--no-page", "--set", "restarts=1")
    status, _, err = command(*words, "--set", "max_iter=1", "--out", tmp_path / "one")
    assert status == 3
    assert (tmp_path / "one" / "clusters.csv").exists()
    advice = re.search(r"not converged after 1 iteration \(the maximum\)\. Allow more: (--\S.*)", err)
    assert advice is not None
    again, _, err = command(*words, *advice[1].split(), "--out", tmp_path / "two")
    assert again in (0, 3), err  # the advice is an option of this command
    assert "not converged after 1 iteration" not in err


def test_a_network_from_the_command_line(files: Path, tmp_path: Path, command: Any) -> None:
    pytest.importorskip("torch")
    status, out, _ = command(
        "pairs", files / "pairs.csv", "--features", files / "features.npz", "--model", "bayes-scdc",
        "--set", "epochs=2", "--set", "hidden=8,6", "--set", "scale=columns", "--no-page", "--json", "--out", tmp_path,
    )  # fmt: skip
    assert status == 0
    assert sum(row["items"] for row in json.loads(out)["sizes"]) == 150
    kept = cw.load(tmp_path)
    assert isinstance(kept, cw.PairsResult)
    assert kept.model.settings()["hidden"] == (8, 6)


def test_names_that_are_formulas_are_written_as_text(table: Any, tmp_path: Path, command: Any) -> None:
    file = table("left,right,worker,answer\n=1+1,@b,-w,1\n=1+1,+c,-w,0\n", "pairs.csv")
    assert command("pairs", file, "--no-page", "--out", tmp_path / "raw")[0] == 0
    assert command("pairs", file, "--no-page", "--out", tmp_path / "safe", "--excel-safe")[0] == 0
    assert {row["item"] for row in rows(tmp_path / "raw" / "clusters.csv")} == {"=1+1", "@b", "+c"}
    assert {row["item"] for row in rows(tmp_path / "safe" / "clusters.csv")} == {"'=1+1", "'@b", "'+c"}
    assert {row["worker"] for row in rows(tmp_path / "safe" / "workers.csv")} == {"'-w"}


def test_a_page_of_a_saved_result(tmp_path: Path, command: Any, result: cw.PairsResult) -> None:
    path = result.save(tmp_path)
    status, _, err = command("report", tmp_path)
    assert status == 0
    assert f"wrote {tmp_path / 'report.html'}" in err
    page = (tmp_path / "report.html").read_text()
    assert "150 items" in page
    assert "5 clusters" in page
    (tmp_path / "report.html").unlink()
    assert command("report", path)[0] == 0
    assert (tmp_path / "report.html").exists()


def test_simulated_files_are_those_of_the_crowd(tmp_path: Path, command: Any) -> None:
    status, out, _ = command("simulate", "pinwheel", "--out", tmp_path, "--seed", 4, "--json")
    assert status == 0
    found, made = json.loads(out), cw.simulate.pinwheel(seed=4)
    assert (found["answers"], found["seed"]) == (980, 4)
    wanted = ["features.csv", "pairs.csv", "truth.csv", "workers.csv"]
    assert sorted(Path(file).name for file in found["files"]) == wanted
    assert cw.read_pairs(tmp_path / "pairs.csv").frame().equals(made.pairs.frame())
    back = cw.read_features(tmp_path / "features.csv")
    assert back.tasks.to_list() == made.features[0].to_list()
    assert np.array_equal(back.x, made.features[1])
    assert [row["label"] for row in rows(tmp_path / "truth.csv")] == list(map(str, made.truth["label"]))
    for workers in (50, 7):
        out = command("simulate", "pinwheel", "--out", tmp_path, "--workers", workers, "--json")[1]
        assert json.loads(out)["answers"] == 49 * workers
