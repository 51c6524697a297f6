"""PointsResult: everything that a fit of clicks says, whatever the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl

from ..answers import Points
from ..errors import UnknownIdError, nearest
from ..kernels.layout import Floats, Ints
from ..rating.skills import wilson
from .result import versions

HALF = 0.5  # share of a click from which it counts as on its object


class PointsModel(Protocol):
    """What a result asks of the model that made it."""

    @property
    def name(self) -> str: ...
    def settings(self) -> dict[str, Any]: ...


class Objects(NamedTuple):
    """What was learnt, as arrays."""

    ptr: Ints  # (I+1,) objects of each image
    mean: Floats  # (M, D)
    cov: Floats  # (M, D, D)
    share: Floats  # (M,) of the clicks on objects of their image
    clicks: Floats  # (M,) expected
    probability: Floats  # (M,) that it is real
    reliability: Floats  # (W,) share of a worker's clicks that are on objects
    low: Floats  # (W,) its 95 % interval
    high: Floats
    noise: Floats  # (W,) own position noise, a factor of standard deviations
    outlier: Floats  # (N,) chance of a click to be on no object
    object: Ints  # (N,) most likely object, -1 for none
    chance: Floats  # (N,) and its chance
    once: Ints  # () whether workers were taken to click an object at most once


def supporters(points: Points, object_: Ints, chance: Floats) -> tuple[Ints, Ints]:
    """(worker, object) pairs, by number, each once: who has a click that is rather on an object than not."""
    on = (object_ >= 0) & (chance >= HALF)
    pairs = np.unique(object_[on].astype(np.int64) * points.n_workers + points.worker[on])
    return pairs % points.n_workers, pairs // points.n_workers


@dataclass(frozen=True, eq=False, repr=False)
class PointsResult:
    """Objects, workers, clicks and doubts of one fit.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.clicks(seed=1)
    >>> result = cw.aggregate(sim.points)
    >>> result
    PointsResult(click-mixture: 10 objects in 1 image, 20 workers, converged)
    >>> result.objects.columns[:5]
    ['image', 'object', 'x', 'y', 'probability']
    """

    points: Points
    model: PointsModel
    params: Objects
    sweeps: Floats  # (S, 2) objective and number of objects after every sweep
    criterion: str  # what the objective is
    best: int | None  # sweep that the answer was taken from, from 1
    converged: bool
    seed: int
    seconds: float
    versions: dict[str, str] = field(default_factory=versions)

    def __repr__(self) -> str:
        n, M, W = self.points.n_images, len(self.params.mean), self.points.n_workers
        state = "converged" if self.converged else "NOT CONVERGED"
        counts = f"{M} object{'s' * (M != 1)} in {n} image{'s' * (n != 1)}, {W} worker{'s' * (W != 1)}"
        return f"PointsResult({self.model.name}: {counts}, {state})"

    @cached_property
    def image_of(self) -> Ints:
        """(M,) image of each object, by number."""
        return np.repeat(np.arange(self.points.n_images), np.diff(self.params.ptr))

    @cached_property
    def hits(self) -> tuple[Ints, Ints]:
        """(worker, object) pairs, by number: who clicked on which object, each once."""
        return supporters(self.points, self.params.object, self.params.chance)

    @cached_property
    def objects(self) -> pl.DataFrame:
        """image, object (from 1 in every image), the centre, probability that it is real, expected clicks, supporters
        (workers with a click on it), jobs of its image, share of the image's clicks on objects, spread (standard
        deviation, all axes together), and the covariance."""
        p, axes, image = self.params, self.points.axes, self.image_of
        M = len(image)
        supporters = np.bincount(self.hits[1], minlength=M)
        jobs = np.diff(self.points.image_ptr)
        columns = [
            self.points.images[image].alias("image"),
            pl.Series("object", np.arange(M) - p.ptr[image] + 1, dtype=pl.Int64),
            *(pl.Series(axis, p.mean[:, d]) for d, axis in enumerate(axes)),
            pl.Series("probability", p.probability),
            pl.Series("clicks", p.clicks),
            pl.Series("supporters", supporters, dtype=pl.Int64),
            pl.Series("jobs", jobs[image], dtype=pl.Int64),
            pl.Series("share", p.share),
            pl.Series("spread", np.sqrt(np.trace(p.cov, axis1=1, axis2=2) / max(len(axes), 1))),
        ]
        for d, axis in enumerate(axes):
            columns.append(pl.Series(f"var_{axis}", p.cov[:, d, d]))
            columns += [pl.Series(f"cov_{axis}{other}", p.cov[:, d, e]) for e, other in enumerate(axes) if e > d]
        return pl.DataFrame(columns)

    @cached_property
    def workers(self) -> pl.DataFrame:
        """worker, images looked at, clicks, reliability (share of clicks that are on objects) with its 95 % interval
        low to high, hit_rate (share of the objects in those images that got a click) with its interval, and spread (own
        position noise against that of others; 1 is ordinary)."""
        p, points = self.params, self.points
        W = points.n_workers
        who, what = self.hits
        got = np.bincount(who, p.probability[what], minlength=W)
        there = np.bincount(self.image_of, p.probability, minlength=points.n_images)
        shown = np.bincount(points.job_worker, there[points.job_image], minlength=W)
        rate = np.divide(got, shown, out=np.full(W, np.nan), where=shown > 0)
        low, high = wilson(np.where(shown > 0, rate, 0.0), np.maximum(shown, 1e-9))
        gaps = pl.Series(shown <= 0)
        return pl.DataFrame(
            [
                points.workers.alias("worker"),
                pl.Series("images", np.bincount(points.job_worker, minlength=W), dtype=pl.Int64),
                pl.Series("clicks", np.bincount(points.worker, minlength=W), dtype=pl.Int64),
                pl.Series("reliability", p.reliability),
                pl.Series("low", p.low),
                pl.Series("high", p.high),
                pl.Series("hit_rate", rate).set(gaps, None),
                pl.Series("hit_low", low).set(gaps, None),
                pl.Series("hit_high", high).set(gaps, None),
                pl.Series("spread", p.noise),
            ]
        )

    @cached_property
    def clicks(self) -> pl.DataFrame:
        """Every click used: image, worker, coordinates, object (null: on none), probability of that object, outlier
        (chance to be on no object), and the further columns of the table."""
        p, points = self.params, self.points
        on = (p.object >= 0) & (p.outlier < HALF)
        number = np.where(on, p.object - p.ptr[points.image] + 1, 0)
        table = points.frame().get_columns()
        found = [
            pl.Series("object", number, dtype=pl.Int64).set(pl.Series(~on), None),
            pl.Series("probability", np.where(on, p.chance, 0.0)).set(pl.Series(~on), None),
            pl.Series("outlier", p.outlier),
        ]
        place = 2 + points.n_axes
        return pl.DataFrame([*table[:place], *found, *table[place:]])

    @cached_property
    def images(self) -> pl.DataFrame:
        """image, jobs, clicks, objects and the box."""
        points = self.points
        columns = [
            points.images.alias("image"),
            pl.Series("jobs", np.diff(points.image_ptr)),
            pl.Series("clicks", points.clicks_per_image),
            pl.Series("objects", np.diff(self.params.ptr)),
        ]
        ends = [(f"{axis}{end}", points.box[:, end, d]) for end in (0, 1) for d, axis in enumerate(points.axes)]
        return pl.DataFrame([*columns, *(pl.Series(name, values) for name, values in ends)])

    @property
    def trace(self) -> pl.DataFrame:
        """sweep, objective, objects."""
        return pl.DataFrame(
            {
                "sweep": np.arange(1, len(self.sweeps) + 1),
                "objective": self.sweeps[:, 0],
                "objects": self.sweeps[:, 1].astype(np.int64),
            }
        )

    def of(self, image: Any) -> pl.DataFrame:
        """The objects of one image."""
        names = self.points.images
        if image not in names.to_list():
            raise UnknownIdError(
                f"no image {image!r} in these clicks.{nearest(str(image), names.head(10_000).to_list())}"
            )
        return self.objects.filter(pl.col("image") == image)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know before trusting the objects, worst first."""
        points, said = self.points, []
        if not self.converged:
            most = self.model.settings().get("max_iter")
            said.append(f"the climb did not come to rest within max_iter ({most}) sweeps. Raise it")
        read = points.intake.rows_read
        many = [dropped for dropped in points.intake.dropped if dropped.count > 0.01 * read]
        said += [f"{dropped.count} of {read} clicks were left out: {dropped.reason}" for dropped in many]
        if points.box_from == "clicks":
            said.append("no box was given: that of the clicks is smaller than the images, so that outliers count less")
        empty = int((np.diff(self.params.ptr) == 0).sum())
        if empty:
            said.append(f"{empty} of {points.n_images} image(s) have no object that the clicks agree on")
        if points.n_jobs < 3 * points.n_images:
            said.append("fewer than three workers looked at an image, on average: objects and chance are hard to tell")
        return (*said, *points.intake.warnings)

    def report(self, path: str | Path, *, pictures: str | Path | None = None) -> Path:
        """Write one self-contained HTML page about this result, and return its path. `pictures` is a folder with the
        images, named as in the clicks."""
        from ..report import write_points_report

        return write_points_report(self, Path(path), pictures=None if pictures is None else Path(pictures))

    def _repr_html_(self) -> str:
        """What a notebook shows: header, tiles and the most reliable workers."""
        from ..report import points_notebook

        return points_notebook(self)

    def save(self, path: str | Path) -> Path:
        """Write this result to a folder (or a file ending in .crowdwise), whole or not at all."""
        from .store import write_points

        return write_points(self, Path(path))
