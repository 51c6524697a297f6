"""pair-mixture without features: clusters from answers alone, against the enumeration of all clusterings."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairing import HALVES, IDS, ONE, about, answers, random_answers, sound

import crowdwise as cw
from crowdwise.answers.pairs import components
from crowdwise.engine import Trace, iterate
from crowdwise.kernels.fast.links import join
from crowdwise.pairs import without_features
from crowdwise.pairs.model import Coins, PairAnswers
from crowdwise.pairs.without_features import ClusterSampler, Edges, PairByPair, evidence

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize(("share", "workers"), [(1.0, 1), (0.8, 1), (0.5, 3)])
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
    """One "same" and one "different" leave an item in doubt; more "different" answers make it more surely single."""
    torn = [*CALM, *((f"{g}1", "X", "u", 0) for g in "pqrs"), ("q2", "X", "v", 1)]
    doubtful = cw.aggregate(answers(torn))
    home = dict(doubtful.clusters.select("item", "cluster").rows())
    row = doubtful.clusters.row(by_predicate=pl.col("item") == "X", named=True)
    assert home["X"] == home["q2"]  # likelier than that it is alone
    assert row["probability"] == pytest.approx(doubtful.probability_same(["X"], ["q2"])[0])
    clusters = cw.aggregate(answers([*torn, *(("q1", "X", w, 0) for w in "vxyz")])).clusters
    surer = clusters.row(by_predicate=pl.col("item") == "X", named=True)
    assert (clusters["cluster"] == surer["cluster"]).sum() == 1
    assert 0.3 < row["probability"] < 0.7 < surer["probability"] < 0.95
    assert all(each["probability"] + each["second_probability"] <= 1 + 1e-9 for each in (row, surer))


def test_an_item_left_alone_is_not_sure_where_answers_waver() -> None:
    rows = [("a", "b", w, 1) for w in "uvw"] + [("c", "d", "u", 1), ("c", "d", "v", 0), ("c", "d", "w", 0)]
    rows += [("e", "f", w, 0) for w in "uvw"] + [("a", "e", w, 0) for w in "uvw"]
    result = cw.aggregate(answers(rows))
    of = {row["item"]: row for row in result.clusters.iter_rows(named=True)}
    assert result.sizes["items"].to_list() == [2, 1, 1, 1, 1]
    assert 0.5 < of["c"]["probability"] < of["e"]["probability"]
    assert of["c"]["probability"] == of["d"]["probability"]
    assert of["c"]["second"] == of["d"]["cluster"]  # where it would be, were it not alone


def test_every_item_is_in_its_likeliest_cluster() -> None:
    """The probability of a cluster is the mean over an item's pairs with it; that of the item's own is the highest."""
    result = cw.aggregate(about(np.arange(60) % 12, 0.2, 2, right=0.8, ids=[f"i{k:02d}" for k in range(60)]))
    second = result.clusters.drop_nulls("second")
    assert second.height == 60
    assert (second["probability"] >= second["second_probability"]).all()
    place, chance = result.clusters.select("item", "cluster"), result.clusters.select("item", "probability")
    ends = [result.asked.select(item=a, far=b, pair="probability") for a, b in (("left", "right"), ("right", "left"))]
    others = (
        pl.concat(ends).join(place.rename({"item": "far"}), on="far").join(place, on="item", suffix="_own")
        .filter(pl.col("cluster") != pl.col("cluster_own")).group_by("item", "cluster").agg(pl.col("pair").mean())
        .join(chance, on="item")
    )  # fmt: skip
    assert others.height > 300
    assert (others["pair"] <= others["probability"] + 1e-9).all()
    assert 0.2 < second["second_probability"].max() < second["probability"].max()  # some are in doubt


def test_noisy_pairs_are_better_clustered_jointly_than_separately() -> None:
    truth = np.repeat(np.arange(5), 8)
    pairs = about(truth, 0.7, 2, right=0.8, seed=3)
    ours, vote = (cw.match_clusters(cw.aggregate(pairs, name), {"item": IDS, "label": truth})["accuracy"]
                  for name in ("pair-mixture", "pair-vote"))  # fmt: skip
    assert ours > 0.95 > 0.5 > vote


def partitions(n: int) -> list[Any]:
    """All partitions of n items."""
    found: list[list[int]] = [[]]
    for _ in range(n):
        found = [[*part, group] for part in found for group in range(max(part, default=-1) + 2)]
    return [np.array(part) for part in found]


def enumerated(n: int, left: Any, right: Any, odds: Any) -> tuple[Any, Any]:
    """Probabilities that pairs are together and that items are single, over all clusterings connected by links."""
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
    edges = Edges.of(left, right, n)
    walk, rng, rounds = ClusterSampler(edges, odds[edges.edge], np.arange(n)), np.random.default_rng(1), 12_000
    together = np.zeros(len(left))
    for _ in range(rounds):
        walk.step(rng)
        together += walk.label[left] == walk.label[right]
    wanted, lonely = enumerated(n, left, right, odds)
    assert np.abs(together / rounds - wanted).max() < 0.025
    assert np.abs(walk.alone / rounds - lonely).max() < 0.025


@st.composite
def graphs(draw: Any) -> tuple[int, Edges, Any]:
    n = draw(st.integers(2, 9))
    every = list(combinations(range(n), 2))
    links = draw(st.lists(st.sampled_from(every), min_size=1, max_size=len(every), unique=True))
    left, right = (np.array([link[end] for link in sorted(links)]) for end in (0, 1))
    odds = draw(st.lists(st.floats(-5, 5), min_size=len(links), max_size=len(links)))
    return n, Edges.of(left, right, n), np.array(odds)


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
        value = without_features._total_odds(edges, odds, label)
        assert value >= last - 1e-9
        last = value
    assert without_features._total_odds(edges, odds, without_features._partition(edges, odds, n)) >= last - 1e-9
    label = np.array([random.randrange(n) for _ in range(n)])
    moved = without_features._move_items(edges, weight, label)
    assert without_features._total_odds(edges, odds, moved) >= without_features._total_odds(edges, odds, label) - 1e-9


@given(graphs())
@settings(max_examples=60)
def test_sampling_finds_the_best_clusters_of_few_items(graph: Any) -> None:
    n, edges, odds = graph
    if n > 7:
        return
    best = max(without_features._total_odds(edges, odds, part) for part in partitions(n))
    label = without_features._search(edges, odds, n, np.random.default_rng(0))
    assert without_features._total_odds(edges, odds, label) <= best + 1e-9
    assert without_features._total_odds(edges, odds, label) >= 0.8 * best - 1e-9


@given(graphs())
@settings(max_examples=100)
def test_clusters_of_answers_alone_hang_together(graph: Any) -> None:
    n, edges, odds = graph
    hang_together(without_features._partition(edges, odds, n), edges)


def hang_together(label: Any, edges: Edges) -> None:
    inside = label[edges.left] == label[edges.right]
    assert len(np.unique(components(edges.left[inside], edges.right[inside], len(label)))) == len(np.unique(label))


def test_a_cluster_whose_middle_moves_away_is_two() -> None:
    links = {"ad": 5, "ce": 5, "ab": 2, "bc": 2, "bx": 1.5, "by": 1.5, "bz": 1.5, "dx": -3, "dy": -3, "dz": -3, "xy": 1,
             "yz": 1}  # fmt: skip
    place = {name: k for k, name in enumerate("abcdexyz")}
    left, right = (np.array([place[link[end]] for link in links]) for end in (0, 1))
    edges = Edges.of(left, right, 8)
    hang_together(without_features._partition(edges, np.array(list(links.values()), float), 8), edges)


def test_evidence_is_that_of_averaged_workers_and_a_restaurant() -> None:
    """Probability of all answers with workers integrated out, and of the clusters by a Chinese restaurant process."""
    a = random_answers(3, 5, 2, 14)._replace(weight=np.ones(14))
    key, edge = np.unique(a.left * 5 + a.right, return_inverse=True)
    edges = Edges.of(key // 5, key % 5, 5)
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
    assert evidence(a, edges, edge, label, prior) == pytest.approx(chance + best)


def test_separate_pairs_raise_their_bound() -> None:
    pairs = about(HALVES, 0.3, 4, right=0.75)
    left, _, edge = pairs.edges
    prior, trace = np.array([2.0, 1.0]), Trace()
    problem = PairByPair(PairAnswers.of(pairs), edge, len(left), prior, 500)
    assert iterate(problem, ONE, trace)
    assert (np.diff(trace.objectives) >= -1e-9).all()
    assert ((problem.P > 0) & (problem.P < 1)).all()
    wanted = Coins.from_answers(PairAnswers.of(pairs), problem.P[edge], prior)
    assert np.allclose(problem.coins.alpha, wanted.alpha, rtol=0.01)
