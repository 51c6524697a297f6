"""Simulated clicks: objects and outliers as in Sec. 4 of the clicks paper, drawn from one seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..answers import Points
from ..answers.arguments import check_array, checked, generator
from ..errors import ParameterError, nearest
from ..kernels.layout import Floats
from ..limits import enough_memory
from .labels import Codes, Rng, check_size, write_tables

BOX = (1.0, 0.0, 4.0, 5.0)
# Centres of ten objects in BOX: five small, four medium, one large. The paper does not list its own centres. H1 to H5
# are harder: they were drawn from a seed, and their closest objects are 3.6 to 4.2 standard deviations apart.
LAYOUTS: dict[str, tuple[tuple[float, float], ...]] = {
    "E": ((3.68, 0.36), (2.1, 2.09), (1.32, 1.51), (2.39, 3.14), (1.32, 2.7), (3.55, 3.26), (1.45, 3.99), (2.73, 4.49),
          (3.47, 1.77), (2.37, 0.62)),
    "P1": ((3.48, 3.14), (2.46, 3.3), (2.56, 0.47), (2.58, 4.64), (1.32, 2.93), (1.84, 1.78), (1.45, 0.51),
           (3.55, 4.31), (3.05, 1.83), (1.55, 4.27)),
    "P2": ((1.36, 3.14), (2.54, 1.63), (2.36, 2.7), (3.68, 3.42), (3.68, 1.16), (1.45, 1.65), (3.41, 2.29),
           (3.39, 4.49), (2.81, 0.51), (2.04, 4.38)),
}  # fmt: skip
HARD_LAYOUTS: dict[str, tuple[tuple[float, float], ...]] = {
    "H1": ((2.784, 2.399), (3.66, 4.341), (3.596, 2.376), (2.885, 4.577), (1.322, 0.761), (3.503, 1.096),
           (3.294, 3.373), (1.79, 2.377), (2.4, 1.313), (2.129, 3.727)),
    "H2": ((2.25, 2.988), (3.329, 4.499), (2.406, 1.952), (1.559, 2.281), (2.451, 4.435), (3.28, 2.386),
           (1.478, 4.42), (3.14, 1.164), (3.005, 3.554), (1.616, 0.977)),
    "H3": ((2.703, 3.848), (3.639, 1.924), (1.323, 1.071), (1.906, 2.795), (3.42, 0.794), (3.523, 4.459),
           (3.463, 3.213), (2.697, 1.982), (2.366, 0.778), (1.593, 4.09)),
    "H4": ((2.738, 0.725), (2.37, 4.497), (1.734, 1.625), (1.615, 3.9), (3.484, 0.76), (1.85, 0.565),
           (3.531, 4.357), (2.663, 3.537), (1.652, 2.715), (2.973, 2.25)),
    "H5": ((3.587, 0.384), (1.366, 2.851), (1.706, 4.534), (3.311, 4.373), (2.689, 0.522), (3.526, 2.97),
           (2.167, 2.195), (3.443, 1.587), (1.732, 0.981), (2.399, 3.553)),
}  # fmt: skip
VARIANCES = ((0.04, 0.05),) * 5 + ((0.08, 0.1),) * 4 + ((0.12, 0.15),)
RELIABILITY = (0.95,) * 15 + (0.75,) * 3 + (0.25,) * 2
MIN_CLICKS_PER_WORKER, MAX_CLICKS_PER_WORKER = 36, 48


@dataclass(frozen=True, repr=False)
class ClickCrowd:
    """Simulated clicks together with their hidden truth."""

    points: Points
    centres: Floats  # (M, D) true centres of objects
    covariances: Floats  # (M, D, D)
    objects: pl.DataFrame  # image, object, x, y
    workers: pl.DataFrame  # worker, reliability
    on: pl.Series  # true object of each click of `points`, from 1; null for an outlier

    def __repr__(self) -> str:
        return f"ClickCrowd({self.points!r}, {len(self.centres)} objects)"

    @checked
    def save(self, folder: str | Path) -> list[Path]:
        """Write clicks.csv, truth.csv and workers.csv."""
        tables = {"clicks": self.points.frame(), "truth": self.objects, "workers": self.workers}
        return write_tables(folder, tables)


@enough_memory("the simulation")
@checked
def clicks(
    layout: str | Any = "P1", *, workers: int = 20, total: int = 850, seed: int | np.random.Generator = 0
) -> ClickCrowd:
    """Simulate clicks on one image as in the paper.

    `layout` is E, P1, P2, H1 to H5, or the (M, 2) centres of up to ten objects. Out of 20 workers, 15 are reliable
    (0.95), three are medium (0.75) and two are poor (0.25); more workers repeat this pattern. All clicks lie in the box
    from (1, 0) to (4, 5).

    >>> clicks("E", seed=3)
    ClickCrowd(Points(850 clicks, 1 image, 20 workers, 20 jobs), 10 objects)
    """
    if isinstance(layout, str):
        known = LAYOUTS | HARD_LAYOUTS
        if layout not in known:
            raise ParameterError(f"no layout {layout!r}; there are {', '.join(known)}.{nearest(layout, known)}")
        layout = known[layout]
    size = len(VARIANCES)
    centres = check_array("layout", layout, f"the name of a layout, or the (x, y) centres of 1 to {size} objects")
    if centres.ndim != 2 or centres.shape[1] != 2 or not 1 <= len(centres) <= size:
        raise ParameterError(f"layout has shape {centres.shape}; give the (x, y) centres of 1 to {size} objects")
    if not ((centres >= BOX[:2]) & (centres <= BOX[2:])).all():
        raise ParameterError(f"layout has a centre outside the box {BOX}; move all centres inside it")
    if workers < 1 or total < workers:
        raise ParameterError(f"workers is {workers} and total is {total}; total must be at least the number of workers")
    check_size(clicks=total)
    rng = generator(seed, 0)
    reliability = np.resize(RELIABILITY, workers)
    worker = np.repeat(np.arange(workers), _loads(workers, total, rng))
    on = np.where(rng.random(total) < reliability[worker], rng.integers(len(centres), size=total), -1)
    X = rng.uniform(BOX[:2], BOX[2:], (total, 2))
    deviation = np.sqrt(VARIANCES[: len(centres)])
    pending = np.flatnonzero(on >= 0)
    while len(pending):  # draw again until every click is inside the box
        X[pending] = centres[on[pending]] + deviation[on[pending]] * rng.standard_normal((len(pending), 2))
        pending = pending[~((X[pending] >= BOX[:2]) & (X[pending] <= BOX[2:])).all(1)]
    names = pl.Series([f"w{w + 1:02d}" for w in range(workers)])
    frame = pl.DataFrame({"worker": names[worker], "x": X[:, 0], "y": X[:, 1], "on": on + 1})
    frame = frame.with_columns(pl.lit("image").alias("image"), pl.col("on").replace(0, None))
    points = Points(frame, box=BOX, duplicates="each", source=f"clicks simulated with seed {seed}")
    objects = {"image": "image", "object": np.arange(1, len(centres) + 1), "x": centres[:, 0], "y": centres[:, 1]}
    return ClickCrowd(
        points.replaced(intake=replace(points.intake, extras=()), extras=pl.DataFrame()),
        centres,
        deviation[:, :, None] ** 2 * np.eye(2),
        pl.DataFrame(objects),
        pl.DataFrame({"worker": names, "reliability": reliability}),
        points.extras["on"].alias("object"),
    )


def _loads(workers: int, total: int, rng: Rng) -> Codes:
    """Number of clicks of each worker, (W,): 36 to 48 if that can add up to the total, else an even split."""
    if not MIN_CLICKS_PER_WORKER * workers <= total <= MAX_CLICKS_PER_WORKER * workers:
        bounds = np.linspace(0, total, workers + 1).astype(np.int64)
        return np.asarray(bounds[1:] - bounds[:-1])
    count = rng.integers(MIN_CLICKS_PER_WORKER, MAX_CLICKS_PER_WORKER + 1, workers)
    while count.sum() != total:
        w = rng.integers(workers)
        count[w] = np.clip(count[w] + np.sign(total - count.sum()), MIN_CLICKS_PER_WORKER, MAX_CLICKS_PER_WORKER)
    return np.asarray(count)
