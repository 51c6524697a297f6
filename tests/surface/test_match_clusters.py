"""Clusters that were found, matched one to one with true ones, by items and by pairs."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.errors import DataError
from crowdwise.metrics.matching import cluster_scores

pytestmark = pytest.mark.filterwarnings("error")

IDS = [f"i{k:02d}" for k in range(24)]


def clustered(label: Any, ids: Any = IDS) -> cw.PairsResult:
    """A result in which items are clustered as given: by a vote of one who ties each to the next of its cluster."""
    rows, last = [], {}
    for item, c in zip(ids, label, strict=False):
        rows += [(last[c], item, "w", 1)] if c in last else []
        last[c] = item
    firsts = list(dict.fromkeys(last.values()))
    rows += [(a, b, "w", 0) for a, b in pairwise(firsts)]
    frame = pl.DataFrame(rows, ["left", "right", "worker", "answer"], orient="row")
    result: cw.PairsResult = cw.aggregate(cw.Pairs(frame), "pair-vote")
    return result


def test_scores_of_clusters_by_hand() -> None:
    true = [0] * 10 + [1] * 10 + [2] * 4
    perfect = clustered(true)
    assert perfect.cluster.tolist() == true
    assert cw.match_clusters(perfect, {"item": IDS, "label": true}) == {
        "items": 24, "clusters": 3, "true": 3, "accuracy": 1.0, "nmi": pytest.approx(1), "ami": pytest.approx(1),
    }  # fmt: skip
    renamed = {"item": IDS[::-1], "label": [("x", "z", "y")[t] for t in true][::-1]}
    assert cw.match_clusters(perfect, renamed)["accuracy"] == 1  # names and order do not matter
    merged = cw.match_clusters(clustered([0] * 20 + [2] * 4), {"item": IDS, "label": true})
    assert (merged["clusters"], merged["true"]) == (2, 3)
    assert merged["accuracy"] == pytest.approx(14 / 24)  # one of the two that were merged is wrong
    split = cw.match_clusters(clustered([0] * 6 + [3] * 4 + [1] * 10 + [2] * 4), {"item": IDS, "label": true})
    assert (split["clusters"], split["accuracy"]) == (4, pytest.approx(20 / 24))
    assert 0 < merged["nmi"] < split["nmi"] < 1
    alone = cw.match_clusters(clustered([0] * 24), {"item": IDS, "label": true})
    assert (alone["accuracy"], alone["nmi"], alone["ami"]) == (pytest.approx(10 / 24), 0, 0)


@pytest.mark.parametrize("seed", range(2))
def test_accuracy_is_that_of_the_best_matching(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found, true = rng.integers(0, 4, 30), rng.integers(0, 3, 30)
    ways = permutations(range(4), 3)
    best = max(sum((found[true == t] == c).sum() for t, c in enumerate(way)) for way in ways)
    assert cluster_scores(found, true)["accuracy"] == pytest.approx(best / 30)
    table = np.array([[((found == c) & (true == t)).sum() for t in range(3)] for c in range(4)]) / 30
    rows, columns = table.sum(1, keepdims=True), table.sum(0, keepdims=True)
    some = table > 0
    mutual = (table[some] * np.log((table / (rows * columns))[some])).sum()
    entropies = [-(p * np.log(p)).sum() for p in (rows, columns)]
    assert cluster_scores(found, true)["nmi"] == pytest.approx(mutual / np.mean(entropies))
    assert cluster_scores(found, true)["ami"] < cluster_scores(found, true)["nmi"]


def test_only_items_that_are_known_count() -> None:
    result = clustered([0] * 10 + [1] * 10)
    some = {"task": [*IDS[:3], "nobody", *IDS[10:12]], "label": [5, 5, 6, 6, 6, None]}
    assert cw.match_clusters(result, some)["items"] == 4
    assert cw.match_clusters(result, some)["accuracy"] == 0.75


def test_scores_by_pairs_by_hand() -> None:
    result = clustered([0] * 3 + [1] * 3)
    truth = {
        "left": ["i00", "i01", "i00", "i03", "i04", "i05", "i01", "i00"],
        "right": ["i01", "i02", "i03", "i04", "i05", "i02", "i04", "zz"],
        "answer": [1, 1, 1, 1, 0, 0, 1, 1],
    }
    scores = cw.match_clusters(result, truth)  # together: 01, 12, 34, 45
    assert scores == {"pairs": 7, "precision": 3 / 4, "recall": 3 / 5, "f1": pytest.approx(6 / 9)}
    swapped = {"left": truth["right"], "right": truth["left"], "label": truth["answer"]}
    assert cw.match_clusters(result, swapped) == scores


@pytest.mark.parametrize(
    ("yes", "no"), [("same", "different"), ("yes", "no"), ("true", "false"), (True, False), ("1", "0")]
)
def test_scores_by_pairs_take_the_words_of_answers(yes: Any, no: Any) -> None:
    truth = {"left": ["i00", "i00"], "right": ["i01", "i03"], "answer": [yes, no]}
    assert cw.match_clusters(clustered([0] * 3 + [1] * 3), truth) == {"pairs": 2, "precision": 1, "recall": 1, "f1": 1}


def test_truth_with_ids_of_another_type_that_say_the_same() -> None:
    numbers = clustered([0, 0, 1, 1], [1, 2, 3, 4])
    text = clustered([0, 0, 1, 1], list("1234"))
    for result in (numbers, text):
        for names in ([1, 2, 3, 4], list("1234")):
            assert cw.match_clusters(result, {"item": names, "label": [7, 7, 8, 8]})["accuracy"] == 1
            pairs = {"left": names[:2], "right": names[1:3], "answer": [1, 0]}
            assert cw.match_clusters(result, pairs)["f1"] == 1


@pytest.mark.parametrize(("truth", "said"), [
    ({"item": ["x", "y"], "label": [0, 1]}, "the truth and this result have no item in common"),
    ({"item": [1, 2], "label": [0, 1]}, "the truth and this result have no item in common"),
    ({"item": ["i00"], "label": [None]}, "the truth and this result have no item in common"),
    ({"item": ["i00", "i00"], "label": [0, 1]}, "has item 'i00' more than once"),
    ({"thing": ["i00"], "label": [0]}, "truth has columns thing, label; it needs item and label, or left, right"),
    ({"item": ["i00"], "class": [0]}, "it needs item and label"),
    ({"left": ["x"], "right": ["y"], "answer": [1]}, "the truth and this result have no pair in common"),
    ({"left": ["i00"], "right": ["i01"], "said": [1]}, "it needs left, right and answer"),
    ({"left": ["i00"], "right": ["i01"], "answer": ["perhaps"]}, "'perhaps'"),
    ("truth.csv", "is a file name, not a table"),
])  # fmt: skip
def test_truth_that_says_nothing_is_refused(truth: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        cw.match_clusters(clustered([0] * 3 + [1] * 3), truth)
