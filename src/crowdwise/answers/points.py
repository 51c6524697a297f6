"""Points: clicks of workers on images; validated, coded as integers, read-only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl

from ..kernels import choose_clicks
from ..kernels.layout import Floats, Ints
from ..kernels.rules import Real, Whole
from .alike import look_alikes
from .arguments import checked
from .base import NO_OPTIONS, Answers, Intake, Where, check_options
from .boxes import boxes_of, check_range, check_units, padded, to_pixels
from .click_rows import jobs_of, read_clicks, select_clicks, sort_clicks
from .columns import POINT_ROLES, Roles
from .reading import Reading, given
from .rules import Ids, Table

CHOICES = {
    "outside": ("drop", "error"),
    "duplicates": ("first", "each", "error"),
    "unit": (None, "pixels", "percent", "fraction"),
}
BOX_NOTES = {  # by origin of the box
    "clicks": ("no box given: estimated from the clicks of each image, padded by 5 % on every side",),
    "jobs": ("the box of each image is taken from the table of jobs",),
}


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Points(Answers):
    """Clicks of workers on images, from a frame (pandas, polars, arrow) with one row per click.

    `jobs` (image, worker) lists which worker looked at which image, including workers who clicked nothing; with it, the
    frame may have no rows. `box` is the extent of all images, (x0, y0, x1, y1), or a table with one row per image; by
    default it is estimated from the clicks. `unit` is "percent" or "fraction" if coordinates are relative to the box;
    "pixels" turns off the check for mixed units.

    >>> import crowdwise as cw
    >>> clicks = {"image": ["a", "a", "b"], "worker": ["ann", "bob", "ann"], "x": [10, 11, 40], "y": [10, 9, 52]}
    >>> cw.Points(clicks, box=(0, 0, 100, 100))
    Points(3 clicks, 2 images, 2 workers, 3 jobs)
    """

    kind: ClassVar[str] = "points"
    noun: ClassVar[str] = "click"
    title: ClassVar[str] = "clicks on images"
    roles: ClassVar[Roles] = POINT_ROLES
    tables: ClassVar[tuple[str, ...]] = ("jobs", "box")
    choices: ClassVar[Mapping[str, tuple[object, ...]]] = CHOICES

    images: Annotated[pl.Series, Ids("I")]  # sorted ids
    workers: Annotated[pl.Series, Ids("W")]
    axes: tuple[str, ...]  # names of the coordinates
    X: Annotated[Floats, Real("N D")]  # clicks, sorted by image, worker, time
    worker: Annotated[Ints, Whole("N", below="W")]
    job_image: Annotated[Ints, Whole("J", below="I")]  # jobs, sorted by image and worker
    job_worker: Annotated[Ints, Whole("J", below="W")]
    job_ptr: Annotated[Ints, Whole("J+1", ends="N", dtype="int64")]  # clicks of a job
    image_ptr: Annotated[Ints, Whole("I+1", ends="J", dtype="int64")]  # jobs of an image
    box: Annotated[Floats, Real("I 2 D")]  # low and high corner
    box_from: str  # "given", "jobs" or "clicks"
    extras: Annotated[pl.DataFrame, Table("N", optional=True)]  # other columns, one row per click
    intake: Intake

    @checked
    def __init__(
        self,
        data: Any,
        *,
        image: str | None = None,
        worker: str | None = None,
        axes: Sequence[str] | None = None,
        jobs: Any = None,
        box: Any = None,
        unit: Literal["pixels", "percent", "fraction"] | None = None,
        outside: Literal["drop", "error"] = "drop",
        duplicates: Literal["first", "each", "error"] = "first",
        source: str = "table",
        notes: Sequence[str] = (),
        where: Where | None = None,
        options: Mapping[str, Any] = NO_OPTIONS,
    ) -> None:
        check_options(type(self), {"outside": outside, "duplicates": duplicates, "unit": unit})
        reading = Reading(data, source, notes, where, noun=self.noun, may_be_empty=jobs is not None)
        read = read_clicks(reading, {"image": image, "worker": worker}, axes)
        done = jobs_of(read, jobs)
        corners, box_from = boxes_of(box, jobs, done.images, read.axes, source)
        X = to_pixels(read.X, done.click_image, corners, unit, source)
        if corners is None:
            corners = padded(X, done.click_image, len(done.images))
            check_range(corners, done.images, source)
        if unit is None and len(X):
            check_units(X, done.click_image, done.click_worker, corners, done.workers, source)
        keep, dropped = select_clicks(read, X, done, corners, outside, duplicates)
        reading.notes += [*BOX_NOTES.get(box_from, ()), *done.notes]
        reading.warnings += [*look_alikes(done.images, "image"), *look_alikes(done.workers, "worker")]
        recorded = given(
            {"outside": "drop", "duplicates": "first"}, image=image, worker=worker, axes=axes, unit=unit,
            outside=outside, duplicates=duplicates, box=list(box) if isinstance(box, (list, tuple)) else None,
        )  # fmt: skip
        extras = read.extras.filter(pl.Series(keep)) if read.extras.width else read.extras
        recorded |= options
        self._fill(
            **sort_clicks(X[keep], done, keep, extras),
            images=done.images, workers=done.workers, axes=read.axes, box=corners, box_from=box_from,
            intake=reading.intake("clicks", int(keep.sum()), extras=extras.columns, dropped=dropped, options=recorded),
        )  # fmt: skip

    @property
    def flaw(self) -> str:
        """What contradicts itself in clicks that were read from a file, or ""."""
        jobs = self.job_image.astype(np.int64) * self.n_workers + self.job_worker
        owners = (
            np.repeat(np.arange(self.n_images), np.diff(self.image_ptr)),
            np.repeat(self.job_worker, np.diff(self.job_ptr)),
        )
        if not (all(map(np.array_equal, owners, (self.job_image, self.worker))) and (np.diff(jobs) > 0).all()):
            return "has clicks that are not in the order of image and worker"
        names = ["image", "worker", *self.axes, *self.extras.columns]
        if not self.axes or len(self.axes) != self.n_axes or not all(self.axes) or len(set(names)) < len(names):
            return f"has the columns {names}"
        sides_flaw = "" if (self.sides > 0).all() else "has boxes without an area"
        return sides_flaw if self.box_from in ("given", "jobs", "clicks") else f"has a box from {self.box_from!r}"

    def __repr__(self) -> str:
        return (
            f"Points({self.n_clicks} clicks, {self.n_images} image{'s' * (self.n_images != 1)}, "
            f"{self.n_workers} workers, {self.n_jobs} jobs"
            f"{'' if self.n_axes == 2 else f', {self.n_axes} coordinates'})"
        )

    @property
    def n_answers(self) -> int:
        return len(self.X)

    n_clicks = n_answers

    @property
    def n_images(self) -> int:
        return len(self.images)

    @property
    def n_jobs(self) -> int:
        return len(self.job_image)

    @property
    def n_axes(self) -> int:
        return int(self.X.shape[1])

    @property
    def kernels(self) -> Any:
        """The kernels chosen for the size of the whole table, of which this may be a part."""
        return choose_clicks(self.intake.rows_used)

    @property
    def sides(self) -> Floats:
        """(I, D) lengths of the boxes."""
        return np.asarray(self.box[:, 1] - self.box[:, 0])

    @property
    def image(self) -> Ints:
        """(N,) image of each click."""
        return np.repeat(self.job_image, np.diff(self.job_ptr))

    @property
    def clicks_per_image(self) -> Ints:
        """(I,) number of clicks on each image."""
        return np.diff(self.job_ptr[self.image_ptr])

    def clicks_of(self, image: int) -> slice:
        """Return the slice of the clicks of an image, given by its index."""
        first, last = self.image_ptr[image], self.image_ptr[image + 1]
        return slice(int(self.job_ptr[first]), int(self.job_ptr[last]))

    def frame(self) -> pl.DataFrame:
        """Return the clicks as a table: image, worker, coordinates and the other columns."""
        columns = [self.images[self.image].alias("image"), self.workers[self.worker].alias("worker")]
        columns += [pl.Series(name, self.X[:, d]) for d, name in enumerate(self.axes)]
        return pl.DataFrame([*columns, *self.extras.get_columns()])

    def only(self, images: Ints) -> Points:
        """Return the clicks on some images, given by ascending index; all workers are kept."""
        jobs = np.flatnonzero(np.isin(self.job_image, images))
        place = np.full(self.n_images, -1, np.int32)
        place[images] = np.arange(len(images), dtype=np.int32)
        selected = self._select_jobs(jobs)
        selected |= {"images": self.images[images], "box": self.box[images], "job_image": place[self.job_image[jobs]]}
        selected["image_ptr"] = np.searchsorted(selected["job_image"], np.arange(len(images) + 1)).astype(np.int64)
        return self.replaced(**selected)

    def shards(self, count: int) -> Iterator[Points]:
        """Yield the clicks in `count` shards of consecutive jobs. All shards share images and workers, so that their
        statistics can be added."""
        bounds = np.linspace(0, self.n_jobs, count + 1).astype(int)
        for start, stop in pairwise(bounds):
            yield self.replaced(**self._select_jobs(np.arange(start, stop)))

    def _select_jobs(self, jobs: Ints) -> dict[str, Any]:
        sizes = np.diff(self.job_ptr)[jobs]
        starts = np.repeat(self.job_ptr[jobs] - np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64), sizes)
        clicks = np.arange(int(sizes.sum())) + starts
        image = self.job_image[jobs]
        return {
            "X": self.X[clicks],
            "worker": self.worker[clicks],
            "job_image": image,
            "job_worker": self.job_worker[jobs],
            "job_ptr": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            "image_ptr": np.searchsorted(image, np.arange(self.n_images + 1)).astype(np.int64),
            "extras": self.extras[clicks] if self.extras.width else self.extras,
        }
