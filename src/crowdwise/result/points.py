"""PointsResult: the result of a fit of clicks, the same for every model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl

from ..answers import Points
from ..answers.coding import place_of
from ..answers.rules import Table
from ..errors import UnknownIdError, nearest
from ..kernels.layout import Floats, Ints, weighted_counts
from ..kernels.rules import Real, Whole
from ..rating.skills import wilson
from ..rating.table import flagged, worker_table
from .base import BaseResult

COV_ROUNDING = 1e-9  # by which an eigenvalue of a covariance may be below 0, as a share of its entries
HALF = 0.5  # a click counts as on an object from this probability; a worker is flagged below this reliability


class Objects(NamedTuple):
    """Estimated parameters, as arrays."""

    ptr: Annotated[Ints, Whole("I+1", ends="M", dtype="int64")]  # objects of image i are ptr[i]:ptr[i+1]
    mean: Annotated[Floats, Real("M D")]
    cov: Annotated[Floats, Real("M D D")]
    share: Annotated[Floats, Real("M", 0, 1)]  # share of the clicks on objects in its image
    clicks: Annotated[Floats, Real("M", 0)]  # expected number of clicks
    probability: Annotated[Floats, Real("M", 0, 1)]  # probability that the object is real
    reliability: Annotated[Floats, Real("W", 0, 1)]  # share of a worker's clicks that are on objects
    low: Annotated[Floats, Real("W", 0, 1)]  # its 95 % interval
    high: Annotated[Floats, Real("W", 0, 1)]
    noise: Annotated[Floats, Real("W", 0)]  # position noise of the worker, a factor of the standard deviations
    outlier: Annotated[Floats, Real("N", 0, 1)]  # probability that a click is on no object
    object: Annotated[Ints, Whole("N", -1, below="M")]  # most probable object, -1 for none
    chance: Annotated[Floats, Real("N", 0, 1)]  # its probability
    once: Annotated[Ints, Whole("", dtype="int64")]  # whether a worker clicks an object at most once

    @property
    def flaw(self) -> str:
        """What contradicts itself in objects that were read from a file, or ""."""
        return "" if are_covariances(self.cov) else "has covariances that are none"


def are_covariances(cov: Floats) -> bool:
    """Whether matrices (..., D, D) are symmetric and have no eigenvalue below 0, up to rounding."""
    least = -COV_ROUNDING * np.abs(cov).max(initial=0.0)
    return np.allclose(cov, cov.swapaxes(-1, -2), atol=-least) and bool((np.linalg.eigvalsh(cov) >= least).all())


def supporters(points: Points, object_: Ints, chance: Floats) -> tuple[Ints, Ints]:
    """Return the distinct (worker, object) pairs, by number, such that the worker has a click that is on the object
    with probability of at least one half."""
    on = (object_ >= 0) & (chance >= HALF)
    pairs = np.unique(object_[on].astype(np.int64) * points.n_workers + points.worker[on])
    return pairs % points.n_workers, pairs // points.n_workers


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PointsResult(BaseResult):
    """Objects, workers and clicks of one fit.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.clicks(seed=1)
    >>> result = cw.aggregate(sim.points)
    >>> result.counted
    '10 objects in 1 image, 20 workers'
    >>> result.objects.columns[:5]
    ['image', 'object', 'x', 'y', 'probability']
    """

    kind = "points"
    table_names = ("objects", "workers", "clicks", "images")

    answers: Points
    params: Objects
    trace: Annotated[pl.DataFrame, Table("iterations", ("iteration", "objective", "objects"), numbers=True)]
    best: int | None  # iteration with the reported parameters, from 1

    @property
    def counted(self) -> str:
        n, M, W = self.answers.n_images, len(self.params.mean), self.answers.n_workers
        return f"{M} object{'s' * (M != 1)} in {n} image{'s' * (n != 1)}, {W} worker{'s' * (W != 1)}"

    def tables(self) -> dict[str, pl.DataFrame]:
        """Return the tables objects, workers, clicks and images."""
        return {"objects": self.objects, "workers": self.workers, "clicks": self.clicks, "images": self.images}

    @cached_property
    def image_of(self) -> Ints:
        """Image number of each object (M,)."""
        return np.repeat(np.arange(self.answers.n_images), np.diff(self.params.ptr))

    @cached_property
    def hits(self) -> tuple[Ints, Ints]:
        """Distinct (worker, object) pairs, by number, such that the worker clicked on the object."""
        return supporters(self.answers, self.params.object, self.params.chance)

    @cached_property
    def objects(self) -> pl.DataFrame:
        """One row per object: image, object (from 1 in every image), coordinates of the centre, probability that it is
        real, clicks (expected number), supporters (workers with a click on it), jobs in its image, share of the clicks
        on objects in its image, spread (root mean square of the standard deviations along the axes), and the
        covariance."""
        p, axes, image = self.params, self.answers.axes, self.image_of
        M = len(image)
        supporters = np.bincount(self.hits[1], minlength=M)
        jobs = np.diff(self.answers.image_ptr)
        columns = [
            self.answers.images[image].alias("image"),
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
        """One row per worker: worker, answers (clicks), skill (reliability: share of clicks that are on objects) with
        its 95 % interval low to high, rank, flags and reasons, images annotated, hit_rate (share of the objects in
        those images that the worker clicked) with its interval, and spread (position noise relative to the other
        workers; 1 is typical). The rank is by the harmonic mean of skill and hit rate, at their lower ends: few clicks,
        all of them on objects, are not enough."""
        p, points = self.params, self.answers
        W = points.n_workers
        worker, clicked = self.hits
        hits = weighted_counts(worker, p.probability[clicked], W)
        objects = weighted_counts(self.image_of, p.probability, points.n_images)
        shown = weighted_counts(points.job_worker, objects[points.job_image], W)
        rate = np.divide(hits, shown, out=np.full(W, np.nan), where=shown > 0)
        low, high = wilson(np.where(shown > 0, rate, 0.0), np.maximum(shown, 1e-9))
        unknown = pl.Series(shown <= 0)
        by_hits = np.where(shown > 0, low, p.low), np.where(shown > 0, rate, p.reliability)
        return worker_table(
            points.workers,
            np.bincount(points.worker, minlength=W),
            p.reliability,
            p.low,
            p.high,
            rank_by=(_harmonic_mean(p.low, by_hits[0]), _harmonic_mean(p.reliability, by_hits[1])),
            **flagged({"mostly off objects": (p.high < HALF, self._reason)}),
            images=pl.Series(np.bincount(points.job_worker, minlength=W), dtype=pl.Int64),
            hit_rate=pl.Series(rate).set(unknown, None),
            hit_low=pl.Series(low).set(unknown, None),
            hit_high=pl.Series(high).set(unknown, None),
            spread=p.noise,
        )

    def _reason(self, worker: int) -> str:
        p = self.params
        return (
            f"only {100 * p.reliability[worker]:.0f} % of the clicks are on objects "
            f"(95 % interval {100 * p.low[worker]:.0f} to {100 * p.high[worker]:.0f} %)"
        )

    @cached_property
    def clicks(self) -> pl.DataFrame:
        """One row per click used: image, worker, coordinates, object (null: none), probability of that object, outlier
        (probability that the click is on no object), and the other columns of the input."""
        p, points = self.params, self.answers
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
        """One row per image: image, jobs, clicks, objects and the box."""
        points = self.answers
        columns = [
            points.images.alias("image"),
            pl.Series("jobs", np.diff(points.image_ptr)),
            pl.Series("clicks", points.clicks_per_image),
            pl.Series("objects", np.diff(self.params.ptr)),
        ]
        ends = [(f"{axis}{end}", points.box[:, end, d]) for end in (0, 1) for d, axis in enumerate(points.axes)]
        return pl.DataFrame([*columns, *(pl.Series(name, values) for name, values in ends)])

    def of(self, image: Any) -> pl.DataFrame:
        """Return the objects of one image."""
        names = self.answers.images
        if place_of(names, image) is None:
            raise UnknownIdError(f"no image {image!r} in these clicks.{nearest(image, names.head(10_000).to_list())}")
        return self.objects.filter(pl.col("image") == image)

    def own_warnings(self) -> list[str]:
        points, warnings = self.answers, []
        if points.box_from == "clicks":
            warnings.append(
                "no box was given, so the bounding box of the clicks is used. It is smaller than the images, so fewer "
                "clicks count as outliers"
            )
        empty = int((np.diff(self.params.ptr) == 0).sum())
        if empty:
            warnings.append(f"{empty} of {points.n_images} image(s) have no object that the clicks agree on")
        if points.n_jobs < 3 * points.n_images:
            warnings.append(
                "there are fewer than three workers per image on average, so objects are hard to distinguish from "
                "random clicks"
            )
        return warnings


def _harmonic_mean(a: Floats, b: Floats) -> Floats:
    return np.asarray(2 * a * b / np.maximum(a + b, 1e-300))
