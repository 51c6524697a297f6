"""Simulated pairs, fits and measures shared by the tests of pair models."""

from __future__ import annotations

import functools
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

import crowdwise as cw
from crowdwise.pairs.model import PairAnswers

ONE = cw.Run(threads=1)
IDS = [f"i{k:02d}" for k in range(40)]
HALVES = np.repeat([0, 1], 20)
BLOBS = np.random.default_rng(0).normal(size=(40, 2)) + 8.0 * HALVES[:, None]


def answers(rows: Any) -> cw.Pairs:
    return cw.Pairs(pl.DataFrame(rows, ["left", "right", "worker", "answer"], orient="row"))


def about(
    truth: Any, share: float = 1.0, workers: int = 3, right: float = 1.0, seed: int = 0, ids: Any = IDS
) -> cw.Pairs:
    """Answers of workers with given accuracy, each to a random share of all pairs."""
    rng = np.random.default_rng(seed)
    return answers([
        (ids[a], ids[b], f"w{w}", int((truth[a] == truth[b]) == (rng.random() < right)))
        for a, b in combinations(range(len(truth)), 2) for w in range(workers) if rng.random() < share
    ])  # fmt: skip


def random_answers(seed: int = 0, n_items: int = 6, n_workers: int = 3, size: int = 25) -> PairAnswers:
    """Random answers with random weights."""
    rng = np.random.default_rng(seed)
    left = rng.integers(0, n_items - 1, size)
    right = left + 1 + (rng.random(size) * (n_items - 1 - left)).astype(int)
    worker, weight = rng.integers(0, n_workers, size), rng.uniform(0.2, 1, size)
    return PairAnswers(left, right, worker, rng.random(size) < 0.5, weight, n_items, n_workers)


@functools.cache
def spun(seed: int) -> tuple[cw.simulate.PairCrowd, cw.PairsResult]:
    sim = cw.simulate.pinwheel(seed=seed)
    return sim, cw.aggregate(sim.pairs, features=sim.features, restarts=3, run=cw.Run(seed=seed, threads=1))


def same_bits(one: cw.PairsResult, two: cw.PairsResult) -> bool:
    return (
        all(np.array_equal(a, b) for a, b in zip(one.params, two.params, strict=True))
        and one.trace.equals(two.trace)
        and one.space.keys() == two.space.keys()
        and all(np.array_equal(one.space[name], two.space[name]) for name in one.space)
    )


def sound(result: cw.PairsResult) -> bool:
    """Whether all numbers are finite, probabilities are in [0, 1], and clusters are numbered without gaps."""
    p = result.params
    assert all(np.isfinite(np.asarray(array, float)).all() for array in (*p, result.trace["objective"]))
    assert ((p.chances >= 0) & (p.chances <= 1 + 1e-9)).all()
    assert (p.chances.sum(1) <= 1 + 1e-9).all()
    assert ((p.same >= 0) & (p.same <= 1 + 1e-9)).all()
    assert set(result.cluster) == set(range(result.n_clusters))
    assert result.sizes["items"].to_list() == np.bincount(result.cluster).tolist()
    assert (np.diff(result.sizes["items"]) <= 0).all()
    assert not any(
        frame[name].is_nan().any()
        for frame in result.tables().values()
        for name in frame.columns
        if frame[name].dtype.is_float()
    )
    low, skill, high = (result.workers[name].to_numpy() for name in ("low", "skill", "high"))
    assert ((low <= skill) & (skill <= high)).all()
    return True
