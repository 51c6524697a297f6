"""PointsResult: everything that a fit of clicks has learnt, whatever the model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..answers import Points
from ..errors import UnknownIdError, nearest
from ..kernels.layout import Floats, Ints, weighted_counts
from ..rating.skills import wilson
from ..rating.table import flagged, worker_table
from .base import BaseResult

HALF = 0.5  # share of a click from which it counts as on its object


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

    answers: Points
    params: Objects
    best: int | None  # iteration that the answer was taken from, from 1

    @property
    def counted(self) -> str:
        n, M, W = self.answers.n_images, len(self.params.mean), self.answers.n_workers
        return f"{M} object{'s' * (M != 1)} in {n} image{'s' * (n != 1)}, {W} worker{'s' * (W != 1)}"

    def tables(self) -> dict[str, pl.DataFrame]:
        """objects, workers, clicks and images."""
        return {"objects": self.objects, "workers": self.workers, "clicks": self.clicks, "images": self.images}

    @cached_property
    def image_of(self) -> Ints:
        """(M,) image of each object, by number."""
        return np.repeat(np.arange(self.answers.n_images), np.diff(self.params.ptr))

    @cached_property
    def hits(self) -> tuple[Ints, Ints]:
        """(worker, object) pairs, by number: who clicked on which object, each once."""
        return supporters(self.answers, self.params.object, self.params.chance)

    @cached_property
    def objects(self) -> pl.DataFrame:
        """image, object (from 1 in every image), the centre, probability that it is real, expected clicks, supporters
        (workers with a click on it), jobs of its image, share of the image's clicks on objects, spread (standard
        deviation, all axes together), and the covariance."""
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
        """worker, answers (clicks), skill (reliability: the share of clicks that are on objects) with its 95 % interval
        low to high, rank, flags and reasons, images looked at, hit_rate (share of the objects in those images that got
        a click) with its interval, and spread (own position noise relative to that of others; 1 is ordinary)."""
        p, points = self.params, self.answers
        W = points.n_workers
        who, what = self.hits
        got = weighted_counts(who, p.probability[what], W)
        there = weighted_counts(self.image_of, p.probability, points.n_images)
        shown = weighted_counts(points.job_worker, there[points.job_image], W)
        rate = np.divide(got, shown, out=np.full(W, np.nan), where=shown > 0)
        low, high = wilson(np.where(shown > 0, rate, 0.0), np.maximum(shown, 1e-9))
        gaps = pl.Series(shown <= 0)
        return worker_table(
            points.workers,
            np.bincount(points.worker, minlength=W),
            p.reliability,
            p.low,
            p.high,
            **flagged({"mostly off objects": (p.high < HALF, self._reason)}),
            images=pl.Series(np.bincount(points.job_worker, minlength=W), dtype=pl.Int64),
            hit_rate=pl.Series(rate).set(gaps, None),
            hit_low=pl.Series(low).set(gaps, None),
            hit_high=pl.Series(high).set(gaps, None),
            spread=p.noise,
        )

    def _reason(self, worker: int) -> str:
        p = self.params
        return (
            f"{p.reliability[worker]:.0%} of the clicks are on objects ({p.low[worker]:.0%} to {p.high[worker]:.0%}): "
            "most are elsewhere"
        )

    @cached_property
    def clicks(self) -> pl.DataFrame:
        """Every click used: image, worker, coordinates, object (null: on none), probability of that object, outlier
        (chance to be on no object), and the further columns of the table."""
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
        """image, jobs, clicks, objects and the box."""
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
        """The objects of one image."""
        names = self.answers.images
        if image not in names.to_list():
            raise UnknownIdError(
                f"no image {image!r} in these clicks.{nearest(str(image), names.head(10_000).to_list())}"
            )
        return self.objects.filter(pl.col("image") == image)

    def own_warnings(self) -> list[str]:
        points, said = self.answers, []
        if points.box_from == "clicks":
            said.append("no box was given: that of the clicks is smaller than the images, so that outliers count less")
        empty = int((np.diff(self.params.ptr) == 0).sum())
        if empty:
            said.append(f"{empty} of {points.n_images} image(s) have no object that the clicks agree on")
        if points.n_jobs < 3 * points.n_images:
            said.append("fewer than three workers per image, on average: objects are hard to tell from chance")
        return said
