"""Online learning from batches of clicks, by stepwise EM."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..answers import Points, places
from ..engine import Run, Trace
from ..errors import DataError, ParameterError, option
from ..kernels.layout import HEAD, Floats, Ints
from ..result import PointsResult
from .e_step import Stats
from .em import MAXIMUM_LIKELIHOOD, RELIABILITY_MARGIN, Mixture, assign, in_shards, maximise, worker_noise
from .mixture import ClickMixture, evidence_without_search
from .model import concat, object_ptr
from .summary import summarise

RATE, DELAY = 0.7, 5.0  # a batch has the weight (batches so far + DELAY) ** -RATE


class _Image(NamedTuple):
    """State of an image: its objects, and their mean statistics per click, taken about the fixed positions `at`."""

    name: Any
    box: Floats
    mean: Floats
    cov: Floats
    share: Floats
    sums: Floats  # (M, HEAD + D + D D) per click, about `at`
    at: Floats  # (M, D)
    batches: int
    clicks: float

    @property
    def n_objects(self) -> int:
        return len(self.mean)


class ClickStream:
    """Learn objects and workers from clicks that arrive in batches; of old clicks only statistics are kept.

    `model` finds the objects of an image in its first batch; later batches refine them by stepwise EM. All clicks of a
    worker count towards their reliability. Objects that appear only in later batches are not added, so fit all clicks
    again from time to time.

    >>> import crowdwise as cw
    >>> stream = cw.ClickStream()
    >>> for seed in (1, 2, 3):
    ...     stream = stream.partial_fit(cw.simulate.clicks("E", seed=seed).points)
    >>> stream
    ClickStream(3 batches, 2550 clicks, 1 image, 10 objects, 20 workers)
    """

    def __init__(self, model: ClickMixture | None = None, *, rate: float = RATE, delay: float = DELAY) -> None:
        self.model = model or ClickMixture()
        if not isinstance(self.model, ClickMixture):
            raise ParameterError(f"model is {type(self.model).__name__}; a stream needs a ClickMixture")
        if not 0.5 < rate <= 1 or delay < 0:
            raise ParameterError(
                f"rate is {rate} and delay is {delay}; rate must be above 0.5 and at most 1, delay must be at least 0"
            )
        self.rate, self.delay = rate, delay
        self.batches, self.clicks = 0, 0
        self._images: dict[Any, _Image] = {}
        self._workers: pl.Series | None = None
        self._on, self._far, self._sent = np.empty(0), np.empty(0), np.empty(0)
        self._once = False
        self._axes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        n, M = len(self._images), sum(image.n_objects for image in self._images.values())
        W = 0 if self._workers is None else len(self._workers)
        return (
            f"ClickStream({self.batches} batches, {self.clicks} clicks, {n} image{'s' if n != 1 else ''}, {M} objects, "
            f"{W} workers)"
        )

    def partial_fit(self, points: Any, run: Run | None = None) -> ClickStream:
        """Learn from one more batch of clicks."""
        run = run or Run()
        points = self.model.accept(points)
        if self._workers is not None and points.axes != self._axes:
            raise DataError(
                f"this batch has the coordinates {', '.join(points.axes)}, but the stream has {', '.join(self._axes)}"
            )
        self._axes = points.axes
        clicked = np.flatnonzero(points.clicks_per_image > 0)  # a shard also lists images of other shards
        fresh = np.array([i for i in clicked if points.images[int(i)] not in self._images], np.int64)
        known = np.setdiff1d(clicked, fresh)
        self._check_boxes(points.only(known))
        if len(fresh):
            self._fit_new(points.only(fresh), run)
        if len(known):
            self._update_known(points.only(known), run)
        self.batches += 1
        self.clicks += points.n_clicks
        return self

    def result(self, points: Any, run: Run | None = None) -> PointsResult:
        """Apply the stream to clicks on known images, without learning from them."""
        run = (run or Run()).begin()
        points = self.model.accept(points)
        executor, mixture = in_shards(points, run), self._mixture(points)
        stats = assign(executor, mixture, self._once, run.threads, best=True)
        evidence = evidence_without_search(self.model, points, mixture, stats.sums)
        beta = (self.model.hits, self.model.misses)
        params = summarise(points, executor, mixture, stats, evidence, beta, self._once)
        return self.model.make_result(points, run, Trace(objects=int), "", params=params, best=None, converged=True)

    @property
    def objects(self) -> pl.DataFrame:
        """Objects so far, with the columns image, object, one per coordinate, share, and clicks (expected)."""
        rows = list(self._images.values())
        columns: dict[str, Any] = {
            "image": [image.name for image in rows for _ in image.mean],
            "object": [k + 1 for image in rows for k in range(len(image.mean))],
        }
        for d, axis in enumerate(self._axes):
            columns[axis] = np.concatenate([image.mean[:, d] for image in rows]) if rows else []
        columns["share"] = np.concatenate([image.share for image in rows]) if rows else []
        columns["clicks"] = np.concatenate([image.sums[:, 0] * image.clicks for image in rows]) if rows else []
        return pl.DataFrame(columns)

    @property
    def workers(self) -> pl.DataFrame:
        """Workers so far, with the columns worker, answers (clicks) and skill (reliability)."""
        names = pl.Series("worker", []) if self._workers is None else self._workers.alias("worker")
        skill = self._reliability(self._on, self._sent)
        return pl.DataFrame([names]).with_columns(answers=self._sent.astype(np.int64), skill=skill)

    def _reliability(self, on: Floats, sent: Floats) -> Floats:
        return np.asarray((on + self.model.hits - 1) / (sent + self.model.hits + self.model.misses - 2))

    def _worker_codes(self, points: Points) -> Ints:
        """Positions of a batch's workers among all workers; new workers are appended."""
        if self._workers is None:
            self._workers = points.workers
        else:
            try:
                new = points.workers.cast(self._workers.dtype)
            except pl.exceptions.PolarsError:
                raise DataError(
                    f"worker ids are {points.workers.dtype} in this batch and {self._workers.dtype} in the stream. Use "
                    "one type"
                ) from None
            self._workers = pl.concat(
                [self._workers, new.filter(~new.is_in(self._workers.implode())).alias(self._workers.name)]
            )
        more = len(self._workers) - len(self._sent)
        self._on, self._far, self._sent = (np.append(a, np.zeros(more)) for a in (self._on, self._far, self._sent))
        return places(self._workers, points.workers)

    def _add_counts(self, points: Points, stats: Stats) -> None:
        at = self._worker_codes(points)
        for total, part in ((self._on, stats.on), (self._far, stats.far), (self._sent, stats.sent)):
            total[at] += part

    def _check_boxes(self, points: Points) -> None:
        """Refuse images whose box differs from that of earlier batches."""
        for i, name in enumerate(points.images.to_list()):
            before = self._images[name].box
            if not np.array_equal(points.box[i], before):
                raise DataError(
                    f"image {name!r} has the box {points.box[i].ravel().tolist()} in this batch, but had "
                    f"{before.ravel().tolist()} before. Give all batches the same {option('box')}"
                )

    def _fit_new(self, points: Points, run: Run) -> None:
        """Fit new images with the model, and add the clicks to the workers' counts."""
        p = self.model.fit(points, run=run).params
        if not self._images or points.n_clicks > self.clicks / 2:  # a small batch does not change `once`
            self._once = bool(p.once)
        mixture = Mixture(p.ptr, p.mean, p.cov, p.share, p.reliability, p.noise)
        stats = assign(in_shards(points, run), mixture, self._once, run.threads)
        self._add_counts(points, stats)
        for i, name in enumerate(points.images.to_list()):
            own = slice(int(p.ptr[i]), int(p.ptr[i + 1]))
            clicks = int(points.clicks_per_image[i])
            objects = (p.mean[own], p.cov[own], p.share[own], stats.sums[own] / clicks, p.mean[own])
            self._images[name] = _Image(name, points.box[i], *objects, 1, clicks)

    def _mixture(self, points: Points) -> Mixture:
        """Present parameters of a batch's images and workers."""
        unknown = [name for name in points.images.to_list() if name not in self._images]
        if unknown:
            raise DataError(
                f"{len(unknown)} image(s) are unknown to the stream, for instance {unknown[0]!r}. Pass their clicks to "
                "partial_fit first"
            )
        self._check_boxes(points)
        images = [self._images[name] for name in points.images.to_list()]
        known = pl.Series([], dtype=points.workers.dtype) if self._workers is None else self._workers
        at = places(known, points.workers)
        on, far, sent = (np.append(a, 0.0)[at] for a in (self._on, self._far, self._sent))  # -1: a new worker
        noise = worker_noise(on, far, points.n_axes) if self.model.noise else np.ones(points.n_workers)
        p = np.clip(self._reliability(on, sent), RELIABILITY_MARGIN, 1 - RELIABILITY_MARGIN)
        D = points.n_axes
        objects = concat(images, "mean", D), concat(images, "cov", D, D), concat(images, "share")
        return Mixture(object_ptr(images), *objects, p, noise)

    def _update_known(self, points: Points, run: Run) -> None:
        """Update known images by one step of stepwise EM."""
        mixture = self._mixture(points)
        stats = assign(in_shards(points, run), mixture, self._once, run.threads)
        self._add_counts(points, stats)
        for i, name in enumerate(points.images.to_list()):
            image = self._images[name]
            own = slice(int(mixture.ptr[i]), int(mixture.ptr[i + 1]))
            clicks = int(points.clicks_per_image[i])
            step = (image.batches + self.delay) ** -self.rate
            now = _shift_origin(stats.sums[own] / clicks, image.mean - image.at)
            sums = (1 - step) * image.sums + step * now
            single = Mixture(np.array([0, len(image.mean)]), image.at, image.cov, image.share, np.empty(0), np.empty(0))
            whole = Stats(0.0, sums * (image.clicks + clicks), np.empty(0), np.empty(0), np.empty(0))
            better = maximise(whole, single, MAXIMUM_LIKELIHOOD, (image.box[1] - image.box[0])[None])
            self._images[name] = image._replace(
                mean=better.mean, cov=better.cov, share=better.share, sums=sums, batches=image.batches + 1,
                clicks=image.clicks + clicks,
            )  # fmt: skip


def _shift_origin(sums: Floats, shift: Floats) -> Floats:
    """Recompute moments as if every click were displaced by `shift` (M, D)."""
    D = shift.shape[1]
    out = sums.copy()
    b, S1 = sums[:, 1], sums[:, HEAD : HEAD + D]
    out[:, HEAD : HEAD + D] += b[:, None] * shift
    cross = S1[:, :, None] * shift[:, None, :]
    S2 = cross + cross.transpose(0, 2, 1) + b[:, None, None] * shift[:, :, None] * shift[:, None, :]
    out[:, HEAD + D :] += np.tril(S2).reshape(len(sums), D * D)
    return out
