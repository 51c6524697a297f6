"""One-to-one matching of estimated with true objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.errors import DataError, ParameterError

pytestmark = pytest.mark.filterwarnings("error")


def places(*rows: tuple[Any, float, float]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"image": type(rows[0][0]), "x": float, "y": float}, orient="row")


def test_matching_against_hand_computed_values() -> None:
    found = places(("a", 0, 0), ("a", 10, 0), ("a", 50, 50), ("b", 5, 5), ("d", 1, 1))
    truth = places(("a", 0, 3), ("a", 10, 4), ("b", 5, 11), ("c", 9, 9))
    table = cw.match_objects(found, truth, within=5)
    assert table.columns == ["image", "found", "true", "matched", "precision", "recall", "f1", "error"]
    rows = {row["image"]: row for row in table.iter_rows(named=True)}
    assert set(rows) == {"a", "b", "c", "d"}
    assert [rows["a"][c] for c in ("found", "true", "matched", "precision", "recall")] == [3, 2, 2, 2 / 3, 1.0]
    assert rows["a"]["f1"] == pytest.approx(0.8)
    assert rows["a"]["error"] == pytest.approx(np.sqrt((9 + 16) / 2))
    assert [rows["b"][c] for c in ("found", "true", "matched", "f1", "error")] == [1, 1, 0, 0.0, None]
    assert [rows["c"][c] for c in ("found", "true", "matched", "precision", "recall", "f1")] == [0, 1, 0, 0.0, 0.0, 0.0]
    assert [rows["d"][c] for c in ("found", "true", "matched", "precision", "recall", "f1")] == [1, 0, 0, 0.0, 0.0, 0.0]
    assert cw.match_objects(found, truth, within=6)["matched"].sum() == 3  # the bound itself is within


def test_matching_takes_as_many_pairs_as_can_be() -> None:
    """Matching the nearest pair first would leave one true object unmatched."""
    found, truth = places(("a", 0, 0), ("a", 3, 0)), places(("a", 2, 0), ("a", 6.5, 0))
    table = cw.match_objects(found, truth, within=3.6)
    assert table["matched"].to_list() == [2]
    assert table["error"][0] == pytest.approx(np.sqrt((4 + 3.5**2) / 2))
    crowd = places(*[("a", k, 0) for k in range(10)])
    table = cw.match_objects(crowd, places(("a", 4, 0)), within=20)
    assert table.select("matched", "f1", "error").row(0) == (1, 2 / 11, 0)


def test_matching_counts_images_without_objects() -> None:
    clicks = {"image": ["a"] * 4 + ["b"], "worker": list("uvwxu"), "x": [1, 30, 60, 90, 5], "y": [1, 90, 30, 60, 5]}
    points = cw.Points(clicks, jobs={"image": ["c"], "worker": ["u"]}, box=(0, 0, 100, 100))
    table = cw.match_objects(cw.aggregate(points, "dbscan"), places(("a", 1, 1)), within=2)
    assert table.select("image", "found", "true", "f1").rows() == [("a", 0, 1, 0.0), ("b", 0, 0, 1.0), ("c", 0, 0, 1.0)]


def test_matching_is_symmetric_and_bounded() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        one, two = (places(*[("a", *p) for p in (rng.random((n, 2)) * 10).tolist()]) for n in rng.integers(1, 12, 2))
        there, back = (cw.match_objects(a, b, within=1.5).row(0, named=True) for a, b in ((one, two), (two, one)))
        assert there["matched"] == back["matched"] <= min(one.height, two.height)
        assert (there["precision"], there["recall"]) == (back["recall"], back["precision"])
        assert 0 <= there["f1"] <= 1
        assert there["error"] is None or there["error"] <= 1.5


def test_matching_takes_many_images_without_a_pair() -> None:
    names = [f"{k:03d}" for k in range(150)]
    found = pl.DataFrame({"image": names, "x": [0.0] * 150, "y": [0.0] * 150})
    truth = found.with_columns(x=pl.when(pl.int_range(150) < 120).then(50.0).otherwise(0.0))
    assert cw.match_objects(found, truth, within=1)["matched"].sum() == 30


@pytest.mark.parametrize("within", [0, -1, float("nan"), float("inf"), "3", None])
def test_matching_needs_a_distance(within: Any) -> None:
    with pytest.raises(ParameterError, match="it must be a distance above 0"):
        cw.match_objects(places(("a", 0, 0)), places(("a", 0, 0)), within=within)


@pytest.mark.parametrize(("truth", "message"), [
    ({"image": ["a"], "q": [1.0]}, "no column 'x'"),
    ({"image": ["a"], "x": ["east"], "y": [1.0]}, "x"),
    ({"image": [1], "x": [1.0], "y": [1.0]}, "image"),
])  # fmt: skip
def test_matching_refuses_what_it_cannot_compare(truth: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        cw.match_objects(places(("a", 0, 0)), truth, within=1)
