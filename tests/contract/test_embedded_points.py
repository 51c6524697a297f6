"""Contributions with features as points: the worker model of clicks beyond two dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import crowdwise as cw
from crowdwise.errors import FeatureError, ParameterError


def contaminated(seed: int) -> tuple[Any, Any, Any, Any]:
    """Images of digits from twenty workers; a worker spoils some of them: half of the pixels are noise."""
    rng, digits = np.random.default_rng(seed), load_digits()
    reliability = np.array([0.95] * 15 + [0.75] * 3 + [0.25] * 2)
    worker = rng.integers(20, size=len(digits.data))
    spoilt = rng.random(len(worker)) > reliability[worker]
    noise = spoilt[:, None] & (rng.random(digits.data.shape) < 0.5)
    return np.where(noise, rng.uniform(0, 16, digits.data.shape), digits.data), worker, spoilt, reliability


def test_spoilt_digits_and_their_workers_are_recognised() -> None:
    X, worker, spoilt, reliability = contaminated(0)
    result = cw.aggregate(cw.embed_points(X, worker))
    row = result.clicks["row"].to_numpy()
    assert np.array_equal(result.clicks["worker"].to_numpy(), worker[row])
    (warning,) = result.warnings
    assert "rank workers" in warning
    outlier = result.params.outlier
    assert (outlier[spoilt[row]][:, None] > outlier[~spoilt[row]][None]).mean() > 0.85
    assert np.corrcoef(result.params.reliability, reliability)[0, 1] > 0.8
    clusters, digit = result.params.object, load_digits().target[row]
    right = [np.bincount(digit[clusters == m]).max() for m in np.unique(clusters) if m >= 0]
    assert np.sum(right) / (clusters >= 0).sum() > 0.8


def test_the_same_seed_gives_the_same_points_and_collections_are_kept_apart() -> None:
    rng = np.random.default_rng(0)
    X, workers, images = rng.normal(size=(60, 3, 4)), list("abc") * 20, ["p", "q"] * 30
    one, two = (cw.embed_points(X, workers, images=images, dims=3, seed=1) for _ in range(2))
    assert np.array_equal(one.X, two.X)
    assert one.axes == ("dim1", "dim2", "dim3")
    assert one.images.to_list() == ["p", "q"]
    assert one.n_clicks == 60


@pytest.mark.parametrize(
    ("X", "workers", "more", "error", "words"),
    [
        (np.zeros((30, 4)), ["a"] * 29, {}, FeatureError, "29 workers"),
        (np.zeros(30), ["a"] * 30, {}, FeatureError, "shape"),
        (np.zeros((10, 4)), ["a"] * 10, {}, FeatureError, "at least 20"),
        (np.full((30, 4), np.nan), ["a"] * 30, {}, FeatureError, "first in row 0"),
        ([["x"] * 4] * 30, ["a"] * 30, {}, FeatureError, "does not hold numbers"),
        (np.zeros((30, 4)), ["a"] * 30, {"dims": 5}, ParameterError, "from 1 to 4"),
        (np.zeros((30, 4)), ["a"] * 30, {"dims": 0}, ParameterError, "dims is 0"),
    ],
)
def test_wrong_input_is_refused(X: Any, workers: Any, more: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        cw.embed_points(X, workers, **more)


def test_by_default_there_are_no_more_dimensions_than_features() -> None:
    X = np.random.default_rng(0).normal(size=(60, 7))
    assert [cw.embed_points(X[:, :n], np.arange(60) // 10).n_axes for n in (3, 7)] == [3, 5]
