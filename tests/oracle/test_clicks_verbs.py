"""Agreement of clicks and images to show next, against slow reference implementations and values by hand."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

import crowdwise as cw
from crowdwise.acquisition import images
from crowdwise.inter_rater import points as agreement

HAND = {
    "image": ["i"] * 4 + ["j"] * 3,
    "worker": ["a", "a", "b", "b", "a", "b", "b"],
    "x": [0.0, 10.0, 0.0, 50.0, 5.0, 5.0, 6.0],
    "y": [0.0, 10.0, 1.0, 50.0, 5.0, 5.0, 5.0],
}


def test_the_f1_between_two_workers_by_hand() -> None:
    """Image i: one match of 4 clicks. Image j: one match of 3 clicks, because a click matches once."""
    table = cw.agreement(cw.Points(HAND, box=(0, 0, 100, 100)), within=2.0)
    assert table["measure"].to_list() == ["f1", "f1-beyond-chance"]
    assert table["value"][0] == pytest.approx(2 * (1 + 1) / (4 + 3))
    assert table["note"][0] == "clicks at most 2 apart match"
    assert cw.agreement(cw.Points(HAND, box=(0, 0, 100, 100)), within=0.5)["value"][0] == pytest.approx(2 / 7)


def test_the_f1_agrees_with_a_slow_matching() -> None:
    points, radius = cw.simulate.clicks("P1", seed=3).points, 0.2
    jobs = [points.X[points.job_ptr[n] : points.job_ptr[n + 1]] for n in range(points.n_jobs)]
    matched = clicks = 0
    for first, second in combinations(jobs, 2):
        distances = np.sqrt(((first[:, None] - second[None]) ** 2).sum(2))
        free = [set(range(len(first))), set(range(len(second)))]
        for a, b in sorted(product(*free), key=lambda pair: distances[pair]):
            if distances[a, b] <= radius and a in free[0] and b in free[1]:
                free[0].remove(a)
                free[1].remove(b)
                matched += 1
        clicks += len(first) + len(second)
    assert cw.agreement(points, within=radius)["value"][0] == pytest.approx(2 * matched / clicks)


def test_every_pair_of_jobs_on_an_image_is_compared_once() -> None:
    table = {"image": ["i"] * 5 + ["j"] * 3, "worker": [*"abcde", *"abc"], "x": np.arange(8.0), "y": np.arange(8.0)}
    points = cw.Points(table, box=(0, 0, 10, 10))
    first, second = agreement._job_pairs(points)
    pairs = {(int(a), int(b)) for a, b in zip(first, second, strict=True)}
    wanted = [range(5), range(5, 8)]
    assert pairs == {pair for jobs in wanted for pair in combinations(jobs, 2)}
    assert len(first) == len(pairs) == 13


def test_the_value_of_looks_is_that_of_all_outcomes() -> None:
    """Eq (2) by enumeration of who clicks: after k looks the more probable of real and not real is taken."""
    result = cw.aggregate(cw.simulate.clicks("E", seed=2).points, "hdbscan")
    p, s, n = (result.objects[name].to_numpy().astype(float) for name in ("probability", "supporters", "jobs"))
    h, f = (((w * s).sum() + 0.5) / ((w * n).sum() + 1) for w in (p, 1 - p))
    V = images._values(result)
    assert p.min() < 0.5 < p.max()
    for m, k in product((int(p.argmin()), int(p.argmax())), (0, 1, 2, 3)):
        expected = 0.0
        for outcome in product((0, 1), repeat=k):
            c = sum(outcome)
            expected += max(p[m] * h**c * (1 - h) ** (k - c), (1 - p[m]) * f**c * (1 - f) ** (k - c))
        assert V[m, k] == pytest.approx(expected)
    table = cw.next_images(result, 3)
    assert table["ask"].sum() == 3
    assert table["gain"][0] == pytest.approx(V[:, 3].sum() - V[:, 0].sum())
