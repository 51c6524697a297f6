"""Simulated clicks, fits and measures shared by the tests of click models."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import polars as pl

import crowdwise as cw

BOX = (1, 0, 4, 5)  # of simulated clicks
SQUARE = (0, 0, 100, 100)
LAYOUTS = ("E", "P1", "P2")
BASELINES: dict[str, dict[str, Any]] = {
    "fuzzy-c-means": {"objects": 4},
    "k-means": {"objects": 4},
    "dbscan": {"distance": 3.0},
    "hdbscan": {"at_least": 4},
}
ONE = cw.Run(threads=1)


@dataclasses.dataclass
class Spots:
    points: cw.Points
    truth: pl.DataFrame


def spots(images: int = 3, objects: int = 8, workers: int = 10, *, seed: int = 0, stray: float = 2.0) -> Spots:
    """Simulate images whose spots each worker clicks at most once, with different precision, and stray clicks."""
    rng = np.random.default_rng(seed)
    noise, rows, truth = rng.uniform(0.5, 1.5, workers), [], []
    for i in range(images):
        centres = rng.permutation([(x, y) for x in range(12, 95, 19) for y in range(12, 95, 19)])[:objects]
        centres = centres + rng.uniform(-4, 4, centres.shape)
        truth += [(f"i{i}", *centre) for centre in centres.tolist()]
        for w in range(workers):
            seen = centres[rng.random(objects) < 0.85]
            clicks = np.clip(seen + noise[w] * rng.normal(size=seen.shape), 0, 100)
            rows += [(f"i{i}", f"w{w}", *click) for click in clicks.tolist()]
            rows += [(f"i{i}", f"w{w}", *click) for click in (rng.random((rng.poisson(stray), 2)) * 100).tolist()]
    frame = pl.DataFrame(rows, schema=["image", "worker", "x", "y"], orient="row")
    return Spots(cw.Points(frame, box=SQUARE), pl.DataFrame(truth, schema=["image", "x", "y"], orient="row"))


@functools.cache
def spotted() -> Spots:
    return spots()


@functools.cache
def fitted(name: str = "click-mixture") -> cw.PointsResult:
    """A fit of the spots, cached for all tests that do not change it."""
    result: cw.PointsResult = cw.aggregate(spotted().points, name, **BASELINES.get(name, {}))
    return result


@functools.cache
def simulated(layout: str, seed: int) -> tuple[cw.simulate.ClickCrowd, cw.PointsResult]:
    sim = cw.simulate.clicks(layout, seed=seed)
    return sim, cw.aggregate(sim.points, run=cw.Run(seed=seed))


def piles(sizes: Any, deviation: float = 0.3, seed: int = 0) -> cw.Points:
    """Distant groups of clicks of given sizes, each click from a different worker."""
    rng = np.random.default_rng(seed)
    at = np.array([(x, y) for x in (10, 35, 60, 85) for y in (10, 35, 60, 85)])[: len(sizes)]
    X = np.repeat(at, sizes, axis=0) + deviation * rng.normal(size=(sum(sizes), 2))
    return cw.Points({"image": ["a"] * len(X), "worker": np.arange(len(X)), "x": X[:, 0], "y": X[:, 1]}, box=SQUARE)


def tables(result: cw.PointsResult) -> dict[str, pl.DataFrame]:
    return result.tables() | {"trace": result.trace}


def same_bits(one: cw.PointsResult, two: cw.PointsResult) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.params, two.params, strict=True)) and one.trace.equals(
        two.trace
    )


def finite(result: cw.PointsResult) -> bool:
    return all(np.isfinite(np.asarray(array, float)).all() for array in (*result.params, result.trace["objective"]))


def counts(result: cw.PointsResult) -> list[int]:
    """Number of objects in each image."""
    return np.diff(result.params.ptr).tolist()


def to_centres(mean: Any, sim: cw.simulate.ClickCrowd) -> Any:
    return np.sqrt(((mean[:, None] - sim.centres[None]) ** 2).sum(2))


def success(result: cw.PointsResult, sim: cw.simulate.ClickCrowd) -> bool:
    """Whether the number of objects is right, and each is nearest to a different true one."""
    away = to_centres(result.params.mean, sim)
    return len(away) == len(sim.centres) == len(set(away.argmin(1)))


def never_falls(result: cw.PointsResult, least: int = 5) -> bool:
    """Whether the objective never falls between iterations with the same number of objects."""
    value, objects = (result.trace[name].to_numpy() for name in ("objective", "objects"))
    rise = np.diff(value)[np.diff(objects) == 0]
    assert len(rise) >= least
    return bool((rise >= -1e-8 * np.abs(value).max()).all())
