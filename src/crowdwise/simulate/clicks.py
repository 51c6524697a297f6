"""Clicks made up from one seed: objects and outliers as in the clicks paper's simulations (Sec. 4)."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..answers import Points
from ..errors import ParameterError, nearest
from ..kernels.layout import Floats
from ..result.files import write_whole

BOX = (1.0, 0.0, 4.0, 5.0)
# Centres of ten objects in that box: five small, four middling, one large. The paper does not list its own.
LAYOUTS: dict[str, tuple[tuple[float, float], ...]] = {
    "E": ((3.68, 0.36), (2.1, 2.09), (1.32, 1.51), (2.39, 3.14), (1.32, 2.7), (3.55, 3.26), (1.45, 3.99), (2.73, 4.49),
          (3.47, 1.77), (2.37, 0.62)),
    "P1": ((3.48, 3.14), (2.46, 3.3), (2.56, 0.47), (2.58, 4.64), (1.32, 2.93), (1.84, 1.78), (1.45, 0.51),
           (3.55, 4.31), (3.05, 1.83), (1.55, 4.27)),
    "P2": ((1.36, 3.14), (2.54, 1.63), (2.36, 2.7), (3.68, 3.42), (3.68, 1.16), (1.45, 1.65), (3.41, 2.29),
           (3.39, 4.49), (2.81, 0.51), (2.04, 4.38)),
}  # fmt: skip
VARIANCES = ((0.04, 0.05),) * 5 + ((0.08, 0.1),) * 4 + ((0.12, 0.15),)
RELIABILITY = (0.95,) * 15 + (0.75,) * 3 + (0.25,) * 2
CLICKS = 850
FEWEST, MOST = 36, 48  # clicks of a worker
HARD = 5  # layouts besides, drawn from a seed
CLOSEST = 3.6  # and the least distance of their objects, in standard deviations
INSIDE = 1.6  # standard deviations that a centre stays from the edge


@dataclass(frozen=True, repr=False)
class ClickCrowd:
    """Simulated clicks with everything that is usually hidden."""

    points: Points
    centres: Floats  # (M, D) true centres of objects
    covariances: Floats  # (M, D, D)
    objects: pl.DataFrame  # image, object, x, y
    workers: pl.DataFrame  # worker, reliability
    on: pl.Series  # true object of each click of `points`, from 1; null for an outlier

    def __repr__(self) -> str:
        return f"ClickCrowd({self.points!r}, {len(self.centres)} objects)"

    def save(self, folder: str | Path) -> list[Path]:
        """Write clicks.csv, truth.csv and workers.csv."""
        tables = {"clicks": self.points.frame(), "truth": self.objects, "workers": self.workers}
        return [write_whole(Path(folder) / f"{name}.csv", table.write_csv) for name, table in tables.items()]


def separation(centres: Floats, variances: Floats) -> float:
    """The least distance of two objects, in standard deviations of both."""
    away = centres[:, None] - centres[None]
    scaled = np.sqrt((away**2 / (0.5 * (variances[:, None] + variances[None]))).sum(2))
    np.fill_diagonal(scaled, np.inf)
    return float(scaled.min())


@functools.cache
def hard_layouts() -> dict[str, Floats]:
    """Five layouts fixed by a seed, whose closest objects are from 3.6 to 4.2 standard deviations apart.

    >>> {name: round(separation(centres, np.array(VARIANCES)), 2) for name, centres in hard_layouts().items()}
    {'H1': 3.79, 'H2': 3.7, 'H3': 3.85, 'H4': 3.67, 'H5': 3.91}
    """
    rng = np.random.default_rng(20260)
    variances = np.array(VARIANCES)
    low = np.array(BOX[:2]) + INSIDE * np.sqrt(variances)
    high = np.array(BOX[2:]) - INSIDE * np.sqrt(variances)
    found: dict[str, Floats] = {}
    while len(found) < HARD:
        least = rng.uniform(CLOSEST, 4.2)
        centres = np.empty_like(variances)
        for m in range(len(centres) - 1, -1, -1):  # the large ones first; each where it is far enough from those before
            tries = rng.uniform(low[m], high[m], (300, 2))
            away = (tries[:, None] - centres[m + 1 :]) ** 2 / (0.5 * (variances[m] + variances[m + 1 :]))
            good = np.flatnonzero((away.sum(2) >= least**2).all(1))
            if not len(good):
                break
            centres[m] = tries[good[0]]
        else:
            found[f"H{len(found) + 1}"] = centres.round(3)
    return found


def clicks(layout: str | Any = "P1", *, workers: int = 20, total: int = CLICKS, seed: int = 0) -> ClickCrowd:
    """Clicks on one image as in the paper: `layout` is E, P1, P2, H1 to H5, or (M, 2) centres of up to ten objects.

    Of 20 workers 15 are reliable (0.95), three middling (0.75), two poor (0.25); others repeat that. All clicks lie in
    the box from (1, 0) to (4, 5).

    >>> clicks("E", seed=3)
    ClickCrowd(Points(850 clicks, 1 image, 20 workers, 20 jobs), 10 objects)
    """
    if isinstance(layout, str):
        known: dict[str, Any] = {**LAYOUTS, **(hard_layouts() if layout.startswith("H") else {})}
        if layout not in known:
            names = [*LAYOUTS, *(f"H{k + 1}" for k in range(HARD))]
            raise ParameterError(f"no layout {layout!r}; there are {', '.join(names)}.{nearest(layout, names)}")
        layout = known[layout]
    centres = np.asarray(layout, np.float64)
    if centres.ndim != 2 or centres.shape[1] != 2 or not 1 <= len(centres) <= len(VARIANCES):
        raise ParameterError(
            f"layout has shape {centres.shape}; wanted are up to {len(VARIANCES)} centres of two numbers"
        )
    if not ((centres >= BOX[:2]) & (centres <= BOX[2:])).all():
        raise ParameterError(f"layout has a centre outside the box {BOX}: clicks on it would have to be drawn for ever")
    if workers < 1 or total < workers:
        raise ParameterError(f"workers is {workers} and total is {total}; at least one click a worker is wanted")
    rng = np.random.default_rng([0, seed])
    reliability = np.resize(RELIABILITY, workers)
    sent = _loads(workers, total, rng)
    worker = np.repeat(np.arange(workers), sent)
    on = np.where(rng.random(total) < reliability[worker], rng.integers(len(centres), size=total), -1)
    low, high = np.array(BOX[:2]), np.array(BOX[2:])
    X = rng.uniform(low, high, (total, 2))
    deviation = np.sqrt(np.array(VARIANCES[: len(centres)]))
    open_ = np.flatnonzero(on >= 0)
    while len(open_):  # clicks outside the box are drawn again
        X[open_] = centres[on[open_]] + deviation[on[open_]] * rng.standard_normal((len(open_), 2))
        open_ = open_[~((X[open_] >= low) & (X[open_] <= high)).all(1)]
    names = [f"w{w + 1:02d}" for w in range(workers)]
    frame = {
        "image": ["image"] * total, "worker": [names[w] for w in worker], "x": X[:, 0], "y": X[:, 1],
        "on": pl.Series(on + 1).set(pl.Series(on < 0), None),
    }  # fmt: skip
    points = Points(frame, box=BOX, duplicates="each", source=f"clicks simulated with seed {seed}")
    truth = points.extras["on"].alias("object")
    fields = {name: getattr(points, name) for name in points.__dataclass_fields__}
    fields["intake"] = replace(points.intake, extras=())
    return ClickCrowd(
        Points.of(**{**fields, "extras": pl.DataFrame()}),
        centres,
        deviation[:, :, None] ** 2 * np.eye(2),
        pl.DataFrame(
            {"image": "image", "object": np.arange(1, len(centres) + 1), "x": centres[:, 0], "y": centres[:, 1]}
        ),
        pl.DataFrame({"worker": names, "reliability": reliability}),
        truth,
    )


def _loads(workers: int, total: int, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Clicks of each worker: from 36 to 48 where that can add up to the total, else as even as can be."""
    if not FEWEST * workers <= total <= MOST * workers:
        bounds = np.linspace(0, total, workers + 1).astype(np.int64)
        return np.asarray(bounds[1:] - bounds[:-1])
    sent = rng.integers(FEWEST, MOST + 1, workers)
    while sent.sum() != total:
        w = rng.integers(workers)
        sent[w] = np.clip(sent[w] + np.sign(total - sent.sum()), FEWEST, MOST)
    return np.asarray(sent)
