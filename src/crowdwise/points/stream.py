"""Streams of clicks: only the images that new clicks touch are fitted again.

An image is fitted given what its workers did on all other images, eq (40) of docs/maths/click_mixture.md. Then the
image's share in the counts of its workers is replaced by the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from ..answers import Points
from ..answers.arguments import checked
from ..answers.click_rows import listed_jobs
from ..answers.frames import FOREIGN, to_frame
from ..engine import Model, Run, Standing, Stream, Trace
from ..errors import DataError, EmptyDataError, ParameterError, UnknownIdError, nearest
from ..kernels.layout import Ints
from ..result import PointsResult
from ..result.stored import Parts, Stored, UnsoundError
from .asking import Asking, HitRates, reliability
from .em import Boxes, Elsewhere, assign, in_shards, sort_objects
from .held import (
    COUNTS,
    JOBS,
    NONE,
    Image,
    Jobs,
    Learned,
    Sums,
    as_points,
    jobs_by_image,
    kept_boxes,
    learned_by_image,
    restore,
    store,
)
from .image_fit import ImageFit, ImageFitter
from .merge import fit_jointly, no_objects, refine
from .mixture import ClickMixture
from .model import fit_images
from .saved import SAVED_STREAM, contradiction
from .starts import SAMPLE_IMAGES, Start, choose_start, sample_images, shape_change
from .summary import summarise

START_GROWTH = 1.25  # the start of searches is chosen again when the number of clicks changed by this factor
HIT_RATE_GROWTH = 1.1  # hit rates are estimated again when the number of jobs changed by this factor
MAX_SHAPE_CHANGE = 1.1  # a search is repeated for a result if variances at its start differ by more than this


class ClickStream(Stream[Points, PointsResult]):
    """Learn objects and workers from clicks that keep coming; an update costs as much as the images that it touches.

    The unit is a job: a worker who looked at an image. The clicks of a job replace those given before for the same job.
    List workers who looked and clicked nothing in the table `jobs` of `cw.Points`.

    >>> import crowdwise as cw
    >>> points = cw.simulate.clicks("E", seed=1).points
    >>> stream = cw.ClickStream()
    >>> for part in points.shards(3):
    ...     stream = stream.update(part)
    >>> stream
    ClickStream(850 clicks, 1 image, 10 objects, 20 workers, 20 jobs)
    >>> stream.update(points)  # the same clicks again
    ClickStream(850 clicks, 1 image, 10 objects, 20 workers, 20 jobs)
    >>> stream.decide("image").status
    'settled'
    """

    models: ClassVar[tuple[type[Model[Any, Any]], ...]] = (ClickMixture,)
    model: ClickMixture

    def __init__(self, model: ClickMixture | None = None) -> None:
        super().__init__(model)
        if self.model.method != "merge":
            raise ParameterError(f"method is {self.model.method!r}; ClickStream needs method='merge'")
        self._clear()

    def _clear(self) -> None:
        """Hold nothing, as a new stream."""
        self._axes: tuple[str, ...] = ()
        self._types: dict[str, Any] = {}  # of the ids of images and workers
        self._images: dict[Any, Image] = {}
        self._workers: dict[Any, int] = {}  # number of each worker, in the order of arrival
        self._sums, self._clicks = Sums(np.zeros((len(COUNTS), 0)), np.zeros((0, 0)), 0), 0
        self._start: tuple[Start, int] | None = None  # of searches, and the number of clicks when it was chosen
        self._rates: HitRates | None = None

    def __repr__(self) -> str:
        n, M, jobs = len(self._images), self._sums.objects, self._sums.counts[JOBS]
        return (
            f"ClickStream({self._clicks} clicks, {n} image{'s' * (n != 1)}, {M} objects, {int((jobs > 0).sum())} "
            f"workers, {int(jobs.sum())} jobs)"
        )

    @checked
    def update(self, answers: Any, *, run: Run | None = None) -> Self:
        """Learn from clicks. The clicks of a worker on an image replace those given before, so the same clicks again
        change nothing."""
        points = self.model.accept(answers)
        self.model._check_axes(points.n_axes)
        if not self._images:
            self._clear()
        if self._axes and points.axes != self._axes:
            raise DataError(
                f"these clicks have the coordinates {', '.join(points.axes)}, but the stream has "
                f"{', '.join(self._axes)}"
            )
        ids = self._as_ids(points.images, "image"), self._as_ids(points.workers, "worker")
        points = points.replaced(images=ids[0], workers=ids[1])
        boxes = kept_boxes(points, self._images)
        if not self._axes:
            self._sums = self._sums._replace(precision=np.zeros((points.n_axes, points.n_axes)))
        self._axes, self._types = points.axes, {"image": ids[0].dtype, "worker": ids[1].dtype}
        changed = {}
        for name, clicks in jobs_by_image(points, self._numbers(ids[1].to_list())).items():
            before = self._images.get(name)
            jobs = Jobs(*boxes[name], clicks if before is None else {**before.jobs.clicks, **clicks})
            if before is None or not before.jobs.same_clicks(jobs):
                changed[name] = jobs
        self._learn(changed, run)
        return self

    @checked
    def remove(self, answers: Any, *, run: Run | None = None) -> int:
        """Delete the jobs listed in a table with the columns image and worker; return how many of them are unknown."""
        image, worker = listed_jobs(to_frame(answers), "the table of jobs to remove")
        changed: dict[Any, Jobs] = {}
        unknown = 0
        ids = self._as_ids(image, "image"), self._as_ids(worker, "worker")
        for name, who in dict.fromkeys(zip(*(each.to_list() for each in ids), strict=True)):
            held, number = self._images.get(name), self._workers.get(who, -1)
            if held is None or number not in held.jobs.clicks:
                unknown += 1
                continue
            left = changed.get(name, held.jobs)
            changed[name] = left._replace(clicks={w: X for w, X in left.clicks.items() if w != number})
        self._learn(changed, run)
        return unknown

    @checked
    def result(self, *, run: Run | None = None) -> PointsResult:
        """Return the result of all clicks held: all images are fitted jointly, from the objects found in each.

        The search for objects is repeated only in a few images, from which its start is chosen, and in images that were
        searched from a much different start. Up to SAMPLE_IMAGES images are fitted as in a batch.
        """
        points = self.points
        if points.n_images <= SAMPLE_IMAGES or not points.n_clicks:
            return self.model.fit(points, run=run)
        run, trace = (run or Run()).begin(), Trace(objects=int)
        executor = in_shards(points, run)
        start, found = choose_start(self.model, points, run)
        for i, name in enumerate(points.images.to_list()):
            held = self._images[name]
            if i not in found and held.found is not None and self._still_valid(held, held.found, start):
                found[i] = held.found
        fits = _search(self.model, points, start, run, found)
        fit = fit_jointly(self.model, points, executor, run, trace, start, fits)
        mixture, order = sort_objects(refine(self.model, points, executor, run, fit))
        stats = assign(executor, mixture, fit.once, run.threads, best=True, box=Boxes.of(points))
        beta = self.model.hits, self.model.misses
        params = summarise(points, executor, mixture, stats, fit.evidence[order], beta, fit.once)
        best = len(trace.rows) or None
        return self.model.make_result(points, run, trace, "evidence", params=params, best=best, converged=fit.converged)

    @property
    def points(self) -> Points:
        """The clicks held."""
        if not self._images:
            raise EmptyDataError("the stream holds no clicks; pass some to update first")
        return self._as_points({name: image.jobs for name, image in self._images.items()}, endless=False)[0]

    @property
    def objects(self) -> pl.DataFrame:
        """Objects so far, with the columns image, object, one per coordinate, probability, supporters and jobs."""
        known = [image.learned for image in self._images.values()]
        size, D = [len(each.mean) for each in known], len(self._axes)
        mean = np.concatenate([np.empty((0, D)), *(each.mean for each in known)])
        columns = {
            "image": pl.Series(list(self._images), dtype=self._types.get("image")).gather(
                np.repeat(np.arange(len(size)), size)
            ),
            "object": np.concatenate([np.empty(0, np.int64), *map(np.arange, size)]) + 1,
            **{axis: mean[:, d] for d, axis in enumerate(self._axes)},
            "probability": self._asking.probabilities(known),
            "supporters": np.concatenate([np.empty(0), *(each.supporters for each in known)]).astype(np.int64),
            "jobs": np.repeat(np.array([len(each.worker) for each in known], np.int64), size),
        }
        return pl.DataFrame(columns).sort("image", "object")

    @property
    def workers(self) -> pl.DataFrame:
        """Workers so far, with the columns worker, answers (clicks), skill (reliability), jobs and hit_rate (share of
        the objects in the images they looked at on which they clicked)."""
        on, _, sent, _, hits, shown, jobs = self._sums.counts
        table = pl.DataFrame(
            {
                "worker": pl.Series(list(self._workers), dtype=self._types.get("worker")),
                "answers": sent.astype(np.int64),
                "skill": reliability(self.model, on, sent),
                "jobs": jobs.astype(np.int64),
                "hit_rate": np.divide(hits, shown, out=np.full(len(hits), np.nan), where=shown > 0),
            }
        )
        return table.filter(pl.col("jobs") > 0).sort("worker").with_columns(pl.col("hit_rate").fill_nan(None))

    def _as_ids(self, ids: pl.Series, role: str) -> pl.Series:
        """Return ids in the type of the stream's ids."""
        kind = self._types.get(role, ids.dtype)
        if kind == ids.dtype:
            return ids
        same = ids.cast(kind, strict=False) if pl.String not in (kind, ids.dtype) else None
        if same is None or not (same.cast(ids.dtype, strict=False) == ids).fill_null(False).all():
            raise DataError(f"{role} ids are {ids.dtype} in this table and {kind} in the stream. Use one type")
        return same

    def _numbers(self, names: Iterable[Any]) -> Ints:
        """Return the numbers of workers; new workers get the next numbers."""
        numbers = np.array([self._workers.setdefault(name, len(self._workers)) for name in names], np.int64)
        more = len(self._workers) - self._sums.counts.shape[1]
        self._sums = self._sums._replace(counts=np.pad(self._sums.counts, ((0, 0), (0, more))))
        return numbers

    def _as_points(self, images: Mapping[Any, Jobs], *, endless: bool = True) -> tuple[Points, Ints]:
        return as_points(images, list(self._workers), self._axes, self._types, endless)

    def _learn(self, changed: Mapping[Any, Jobs], run: Run | None) -> None:
        """Fit the images that changed, given all others, and replace what they add to the sums over images."""
        before = [self._images[name] for name in changed if name in self._images]
        clicks = self._clicks + sum(jobs.n_clicks for jobs in changed.values())
        clicks -= sum(image.jobs.n_clicks for image in before)
        sums = self._sums.plus((image.learned for image in before), -1)
        looked = {name: jobs for name, jobs in changed.items() if jobs.clicks}
        start = self._renewed_start(changed, clicks, run)
        fitted = self._fit(looked, start and start[0], sums, (run or Run()).begin()) if looked else {}
        self._start, self._clicks = start, clicks
        self._sums = sums.plus(image.learned for image in fitted.values())
        self._images.update(fitted)
        for name in changed.keys() - fitted.keys():
            del self._images[name]

    def _renewed_start(self, changed: Mapping[Any, Jobs], clicks: int, run: Run | None) -> tuple[Start, int] | None:
        """Return the start of searches, and the number of clicks when it was chosen. It is chosen on a few of all
        images when the number of clicks has changed much; None if there were never any clicks."""
        before = 0 if self._start is None else self._start[1]
        if clicks and not before / START_GROWTH <= clicks <= before * START_GROWTH:
            jobs = {**{name: image.jobs for name, image in self._images.items()}, **changed}
            names = list(jobs)
            sample = sample_images(np.array([each.n_clicks for each in jobs.values()]))
            points, _ = self._as_points({names[i]: jobs[names[i]] for i in sample.tolist()})
            return choose_start(self.model, points, (run or Run()).begin())[0], clicks
        return self._start

    def _fit(self, images: Mapping[Any, Jobs], start: Start | None, others: Sums, run: Run) -> dict[Any, Image]:
        """Fit some images, given the sums over all others."""
        points, number = self._as_points(images)
        executor, elsewhere = in_shards(points, run), Elsewhere(*np.maximum(others.counts[:3, number], 0.0))
        found: list[ImageFit | None] = [None] * points.n_images
        if points.n_clicks and start is not None:
            found = _search(self.model, points, start, run, {})
            shape, trace = others.shape(start.shape), Trace(objects=int)
            fit = fit_jointly(self.model, points, executor, run, trace, start, found, elsewhere, shape)
        else:
            fit = no_objects(self.model, points)
        mixture, order = sort_objects(refine(self.model, points, executor, run, fit, elsewhere))
        assign(executor, mixture, fit.once, run.threads, best=True, box=Boxes.of(points))
        learned = learned_by_image(points, executor, number, mixture, fit, order)
        names = points.images.to_list()
        return {
            name: Image(images[name], each and each._replace(A=NONE, B=NONE, trace=NONE.reshape(0, 2)), fit.once, own)
            for name, each, own in zip(names, found, learned, strict=True)
        }

    def _still_valid(self, image: Image, found: ImageFit, start: Start) -> bool:
        """Whether a search from `start` would begin about as the search that was made."""
        return image.once == start.once and shape_change(start.shape, found.S) <= MAX_SHAPE_CHANGE

    def _known(self, item: Any) -> Learned:
        """Return what was learned about an image."""
        try:
            known = item in self._images
        except FOREIGN:  # it cannot be compared
            known = False
        if not known:
            raise UnknownIdError(f"no image {item!r} in the stream.{nearest(item, list(self._images)[:10_000])}")
        return self._images[item].learned

    def _hit_rates(self) -> HitRates:
        """Return how many workers click on objects. It is learned from all images when the number of jobs has changed
        much."""
        jobs, before = int(self._sums.counts[JOBS].sum()), self._rates
        if before is None or not before.jobs / HIT_RATE_GROWTH <= jobs <= before.jobs * HIT_RATE_GROWTH:
            known = [image.learned for image in self._images.values()]
            self._rates = before = HitRates.learned(known, self._sums)
        return before

    @property
    def _asking(self) -> Asking:
        return Asking(self.model, self._sums, self._hit_rates)

    def _standing(self, item: Any) -> Standing:
        known = self._known(item)
        doubt, J = self._asking.doubt(known), len(known.worker)
        return Standing(J, doubt.probability, f"{J} worker{'s' * (J != 1)} looked, and {doubt.words}")

    def _missing(self, item: Any, probability: float, most: int) -> int:
        return self._asking.missing(self._known(item), probability, most)

    def _worth_asking(self, item: Any) -> tuple[Any, ...]:
        names = list(self._workers)
        return tuple(names[w] for w in self._asking.worth_asking(self._known(item)).tolist())

    def _parts(self) -> Parts:
        parts = Parts()
        parts.add("axes", self._axes)
        parts.add("clicks", self._clicks)
        parts.add("workers", pl.Series("worker", list(self._workers), dtype=self._types.get("worker")))
        parts.add("sums", self._sums)
        parts.add("start", self._start and self._start[0])
        parts.add("start_clicks", self._start and self._start[1])
        parts.add("rates", self._rates)
        store(parts, self._images, self._types.get("image"), len(self._axes))
        return parts

    def _restore(self, stored: Stored) -> None:
        values = {name: stored.get(name, kind) for name, kind in SAVED_STREAM.items()}
        images, self._images = restore(stored)
        flaw = contradiction(values, self._images)
        if flaw:
            raise UnsoundError(flaw)
        self._axes, self._clicks, self._sums, self._rates = (
            values[name] for name in ("axes", "clicks", "sums", "rates")
        )
        self._workers = {name: number for number, name in enumerate(values["workers"].to_list())}
        self._start = None if values["start"] is None else (values["start"], values["start_clicks"])
        self._types = {"image": images.dtype, "worker": values["workers"].dtype} if self._axes else {}


def _search(
    model: ClickMixture, points: Points, start: Start, run: Run, found: dict[int, ImageFit]
) -> list[ImageFit | None]:
    """Find the objects of every image that is not in `found`. What is found in an image does not depend on others."""

    def fit(i: int) -> ImageFit:
        own = points.only(np.array([i]))
        return ImageFitter(model, own, 0, start.once, run, S=start.shape).fit()

    return fit_images(model.name, points, run, fit, ImageFit, threads=run.threads, done=found)
