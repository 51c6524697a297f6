"""The numpy kernels of clicks, which serve small tables, against the compiled ones."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from clicking import spotted

import crowdwise as cw
from crowdwise.kernels import MAX_PLAIN_CLICKS, choose_clicks, clicks
from crowdwise.kernels.fast import clicks as compiled
from crowdwise.kernels.layout import HEAD

BOTH = (clicks, compiled)


def components(rng: Any, M: int, D: int) -> tuple[Any, ...]:
    """Random components: mean, V, n, b."""
    root = rng.normal(size=(M, D, D))
    n = rng.uniform(0.5, 40, M)
    V = root @ root.transpose(0, 2, 1) + (4 + n)[:, None, None] * np.eye(D)
    return rng.uniform(0, 60, (M, D)), V, n, 0.9 * n


def scene(rng: Any, D: int) -> dict[str, Any]:
    """Clicks of 12 jobs by 9 workers near 14 components, and what the E-step needs."""
    mean, V, n, b = components(rng, 14, D)
    M, N = 14, 150
    X = mean[rng.integers(M, size=N)] + rng.normal(size=(N, D)) * 1.5
    job_ptr = np.sort(np.concatenate([[0, 0, N], rng.integers(0, N, 10)])).astype(np.int64)
    worker = np.repeat(np.arange(12) % 9, np.diff(job_ptr)).astype(np.int32)
    terms = np.empty(M), np.empty(M), np.empty((M, D, D)), np.empty((M, 2)), np.empty(M)
    clicks.expect(mean, V, n, b, 4.0, 0.01, 1.0, np.full(D, 30.0), np.eye(D), 40.0, *terms)
    for array in (X, worker, job_ptr):
        array.flags.writeable = False
    return {
        "X": X, "worker": worker, "job_ptr": job_ptr, "mean": mean, "V": V, "n": n, "b": b, "terms": terms,
        "odds": rng.normal(1, 1, 9), "precision": rng.uniform(0.2, 1.5, 9),
    }  # fmt: skip


@pytest.mark.parametrize("D", [1, 2, 3])
@pytest.mark.parametrize("once", [False, True])
def test_clicks_are_assigned_alike(D: int, once: bool) -> None:
    at = scene(np.random.default_rng(D), D)
    weight, slack, root, reach, _ = at["terms"]
    found = []
    for kernels in BOTH:
        sums, alpha = np.zeros((14, HEAD + D + D * D)), np.zeros((150, 2))
        held, best = np.zeros((300, 3)), np.zeros((150, 3))
        value, used = kernels.assign_clicks(
            at["X"], at["worker"], at["job_ptr"], 0, 12, weight, slack, at["mean"], root, reach, at["odds"], 6.0,
            at["precision"], 40.0, once, sums, alpha, held, best,
        )  # fmt: skip
        found.append((value, used, sums, alpha, held[:used], best))
    assert found[0][1] == found[1][1] > 20
    for plain, fast in zip(*found, strict=True):
        assert np.allclose(plain, fast, rtol=1e-4 if once else 1e-9, atol=1e-4 if once else 1e-9)


@pytest.mark.parametrize("D", [1, 2, 3])
def test_components_are_updated_alike(D: int) -> None:
    rng = np.random.default_rng(10 + D)
    at = scene(rng, D)
    sums = np.abs(rng.normal(size=(14, HEAD + D + D * D)))
    found = []
    for kernels in BOTH:
        terms = tuple(np.empty_like(each) for each in at["terms"])
        parts = [at[name].copy() for name in ("mean", "V", "n", "b")]
        shares = kernels.expect(*parts, 4.0, 0.01, 1.0, np.full(D, 30.0), 1.3 * np.eye(D), 30.0, *terms)
        kernels.improve(*parts, sums, 4.0, 0.01, np.full(D, 30.0), 1.3 * np.eye(D))
        found.append([shares, *terms, *parts])
    assert all(np.allclose(plain, fast, rtol=1e-9) for plain, fast in zip(*found, strict=True))


@pytest.mark.parametrize("once", [False, True])
def test_merges_are_priced_and_applied_alike(once: bool) -> None:
    rng = np.random.default_rng(3)
    mean, V, n, b = components(rng, 90, 2)
    held = np.stack([rng.integers(90, size=400), np.sort(rng.integers(30, size=400)), rng.random(400)], axis=1)
    held = held[np.unique(held[:, :2], axis=0, return_index=True)[1]]
    held = held[np.argsort(held[:, 1], kind="stable")]
    gain, off = rng.uniform(0, 60, 90), rng.uniform(0, 30, 90)
    for M in (20, 90):
        near, few = held[held[:, 0] < M], (mean[:M], V[:M], n[:M])
        (cost, mate), (fast_cost, fast_mate) = (
            kernels.prices(*few, gain[:M], np.full((M, 2), 1e3), near, len(near), once, 4.0) for kernels in BOTH
        )
        assert np.allclose(cost, fast_cost)
        assert (mate == fast_mate).all()
        assert 0 < (mate >= 0).sum() < M
        found = []
        for kernels in BOTH:
            parts, dead = [array[:M].copy() for array in (mean, V, n, b)], np.zeros(M, bool)
            order = np.argsort(cost, kind="stable")
            changes = kernels.apply_merges(order, cost, mate, *parts, off[:M], 4.0, M // 4, M // 8, 5, dead)
            found.append([changes, dead, *(part[~dead] for part in parts)])
        assert found[0][0] > 1
        assert all(np.allclose(plain, fast) for plain, fast in zip(*found, strict=True))


@pytest.mark.parametrize("D", [1, 2])
def test_edges_and_reliabilities_are_weighed_alike(D: int) -> None:
    rng = np.random.default_rng(5)
    mean, V, *_ = components(rng, 40, D)
    cov = V / 20
    nodes, weights = np.polynomial.legendre.leggauss(48)
    found = []
    for kernels in BOTH:
        parts = np.ones(40), np.zeros((40, D)), cov.copy()
        kernels.truncate(mean, cov, np.full((40, D), 2.0), np.full((40, D), 58.0), nodes, weights, *parts)
        found.append(parts)
    assert (found[0][0] < 0.999).any()
    assert all(np.allclose(plain, fast) for plain, fast in zip(*found, strict=True))
    alpha, ptr = rng.random(60), np.array([0, 20, 20, 60])
    p, grid = np.array([0.3, 0.5, 0.9]), np.linspace(0.01, 0.99, 9)
    logs = [np.empty((3, 9)), np.empty((3, 9))]
    for kernels, out in zip(BOTH, logs, strict=True):
        kernels.reliability_scores(alpha, ptr, p, grid, out)
    assert np.allclose(*logs)


@pytest.mark.parametrize(
    ("layout", "settings"), [("E", {}), ("spots", {"once": True}), ("H1", {"objects": 7}), ("H4", {})]
)
def test_fits_are_alike(layout: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    points = spotted().points if layout == "spots" else cw.simulate.clicks(layout, seed=4).points
    found = []
    for most in (10**9, -1):
        monkeypatch.setattr("crowdwise.kernels.MAX_PLAIN_CLICKS", most)
        found.append(cw.aggregate(points, **settings).params)
    plain, fast = found
    assert len(plain.mean) == len(fast.mean) > 1
    for name in ("mean", "cov", "share", "reliability", "low", "high", "outlier", "probability"):
        assert np.allclose(getattr(plain, name), getattr(fast, name), rtol=1e-4, atol=1e-4), name


def test_seeds_are_distinct_clicks_far_apart() -> None:
    rng = np.random.default_rng(2)
    piles = np.array([[0.0, 0], [100, 0], [0, 100], [100, 100]])
    X = piles[rng.integers(4, size=200)] + rng.normal(size=(200, 2))
    chosen = clicks.seeds(X, rng.random(4))
    assert len(np.unique(chosen.round(-2), axis=0)) == 4
    assert all((each == X).all(1).any() for each in chosen)
    assert len(clicks.seeds(np.repeat(piles, 3, axis=0), rng.random(10))) == 4  # no more than are distinct
    assert len(clicks.seeds(X, np.array([0.999999]))) == 1


def test_the_choice_depends_on_the_whole_table() -> None:
    assert choose_clicks(MAX_PLAIN_CLICKS) is clicks
    assert choose_clicks(MAX_PLAIN_CLICKS + 1) is compiled
    points = cw.simulate.clicks("E", total=1700, seed=1).points
    assert all(shard.kernels is compiled for shard in points.shards(4))


def test_streams_use_compiled_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found in an image does not depend on how many images came with it."""

    def refused(*_: Any) -> None:
        raise AssertionError("numpy kernels were used")

    for name in ("assign_clicks", "fit_components", "truncate"):
        monkeypatch.setattr(clicks, name, refused)
    assert len(cw.ClickStream().update(spotted().points).objects) > 10
    with pytest.raises(AssertionError, match="numpy"):
        cw.aggregate(spotted().points)


def test_a_small_table_needs_no_compiler() -> None:
    code = (
        "import sys, crowdwise as cw\n"
        "result = cw.aggregate(cw.simulate.clicks('E', seed=1).points)\n"
        "cw.soft_assignments(result, 'image')\n"
        "assert 'numba' not in sys.modules, 'numba was loaded'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
