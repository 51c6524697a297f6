"""Clicks that keep coming: stepwise EM from a warm start, one batch after another."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..answers import Points, places
from ..engine import Run, Trace
from ..errors import DataError, ParameterError
from ..kernels.layout import HEAD, Floats, Ints
from ..result import PointsResult
from .e_step import Stats
from .em import MAXIMUM_LIKELIHOOD, MIN_CHANCE, Mixture, assign, in_shards, maximise, own_noise
from .mixture import ClickMixture, evidence_afterwards
from .model import joined, pointers
from .summary import summarise

RATE, DELAY = 0.7, 5.0  # a batch counts for (batches so far + DELAY) ** -RATE


class _Image(NamedTuple):
    """What is kept of an image: its objects, their sums about fixed places for each click, and batches so far."""

    name: Any
    box: Floats
    mean: Floats
    cov: Floats
    share: Floats
    sums: Floats  # (M, HEAD + D + D D) a click, about `at`
    at: Floats  # (M, D)
    batches: int
    clicks: float

    @property
    def n_objects(self) -> int:
        return len(self.mean)


class ClickStream:
    """Objects and workers from clicks that come in batches: nothing is kept of old clicks but sums.

    The first batch of an image finds its objects (by `model`); later ones improve them by stepwise EM. Workers count
    all their clicks. Objects that only later clicks show are not added: fit anew from time to time.

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
            raise ParameterError(f"rate is {rate} and delay {delay}; wanted are 0.5 < rate <= 1 and delay >= 0")
        self.rate, self.delay = rate, delay
        self.batches, self.clicks = 0, 0
        self._images: dict[Any, _Image] = {}
        self._workers: pl.Series | None = None
        self._on, self._far, self._sent = np.empty(0), np.empty(0), np.empty(0)
        self._once = False
        self._axes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        n, M = len(self._images), sum(image.n_objects for image in self._images.values())
        people = 0 if self._workers is None else len(self._workers)
        return (
            f"ClickStream({self.batches} batches, {self.clicks} clicks, {n} image{'s' if n != 1 else ''}, {M} objects, "
            f"{people} workers)"
        )

    def partial_fit(self, points: Any, run: Run | None = None) -> ClickStream:
        """Learn from one more batch."""
        run = run or Run()
        points = self.model.accept(points)
        if self._workers is not None and points.axes != self._axes:
            raise DataError(f"the batch has coordinates {', '.join(points.axes)}, the stream {', '.join(self._axes)}")
        self._axes = points.axes
        clicked = np.flatnonzero(points.clicks_per_image > 0)  # a shard names images of others, too
        fresh = np.array([i for i in clicked if points.images[int(i)] not in self._images], np.int64)
        known = np.setdiff1d(clicked, fresh)
        self._same_boxes(points.only(known))
        if len(fresh):
            self._first(points.only(fresh), run)
        if len(known):
            self._further(points.only(known), run)
        self.batches += 1
        self.clicks += points.n_clicks
        return self

    def result(self, points: Any, run: Run | None = None) -> PointsResult:
        """What has been learnt, applied to some clicks on images that the stream knows: nothing more is learnt."""
        run = (run or Run()).begin()
        points = self.model.accept(points)
        executor, mixture = in_shards(points, run), self._mixture(points)
        stats = assign(executor, mixture, self._once, run.threads, best=True)
        evidence = evidence_afterwards(self.model, points, mixture, stats.sums)
        beta = (self.model.hits, self.model.misses)
        params = summarise(points, executor, mixture, stats, evidence, beta, self._once)
        return self.model.make_result(points, run, Trace(objects=int), "", params=params, best=None, converged=True)

    @property
    def objects(self) -> pl.DataFrame:
        """image, object, the centre, share, and expected clicks so far."""
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
        """worker, answers (clicks), skill (reliability)."""
        names = pl.Series("worker", []) if self._workers is None else self._workers.alias("worker")
        skill = self._reliability(self._on, self._sent)
        return pl.DataFrame([names]).with_columns(answers=self._sent.astype(np.int64), skill=skill)

    def _reliability(self, on: Floats, sent: Floats) -> Floats:
        return np.asarray((on + self.model.hits - 1) / (sent + self.model.hits + self.model.misses - 2))

    def _meet(self, points: Points) -> Ints:
        """Where the workers of a batch stand among all; new ones are added at the end."""
        if self._workers is None:
            self._workers = points.workers
        else:
            try:
                new = points.workers.cast(self._workers.dtype)
            except pl.exceptions.PolarsError:
                raise DataError(
                    f"the batch names workers as {points.workers.dtype}, the stream as {self._workers.dtype}"
                ) from None
            self._workers = pl.concat(
                [self._workers, new.filter(~new.is_in(self._workers.implode())).alias(self._workers.name)]
            )
        more = len(self._workers) - len(self._sent)
        self._on, self._far, self._sent = (np.append(a, np.zeros(more)) for a in (self._on, self._far, self._sent))
        return places(self._workers, points.workers)

    def _count(self, points: Points, stats: Stats) -> None:
        at = self._meet(points)
        for total, part in ((self._on, stats.on), (self._far, stats.far), (self._sent, stats.sent)):
            total[at] += part

    def _same_boxes(self, points: Points) -> None:
        """Refuse images whose box is another than before."""
        for i, name in enumerate(points.images.to_list()):
            had = self._images[name].box
            if not np.array_equal(points.box[i], had):
                raise DataError(
                    f"image {name!r} has the box {points.box[i].ravel().tolist()} in this batch, and had "
                    f"{had.ravel().tolist()}. Give one box to all batches (box=)"
                )

    def _first(self, points: Points, run: Run) -> None:
        """New images: the model finds their objects; its counts are added to those of workers."""
        p = self.model.fit(points, run=run).params
        if not self._images or points.n_clicks > self.clicks / 2:  # what few clicks say of all workers counts for less
            self._once = bool(p.once)
        mixture = Mixture(p.ptr, p.mean, p.cov, p.share, p.reliability, p.noise)
        stats = assign(in_shards(points, run), mixture, self._once, run.threads)
        self._count(points, stats)
        for i, name in enumerate(points.images.to_list()):
            own = slice(int(p.ptr[i]), int(p.ptr[i + 1]))
            clicks = int(points.clicks_per_image[i])
            objects = (p.mean[own], p.cov[own], p.share[own], stats.sums[own] / clicks, p.mean[own])
            self._images[name] = _Image(name, points.box[i], *objects, 1, clicks)

    def _mixture(self, points: Points) -> Mixture:
        """The objects of a batch's images and its workers, as known so far."""
        unknown = [name for name in points.images.to_list() if name not in self._images]
        if unknown:
            raise DataError(
                f"the stream has not seen image {unknown[0]!r} ({len(unknown)} such). Give them to partial_fit"
            )
        self._same_boxes(points)
        images = [self._images[name] for name in points.images.to_list()]
        known = pl.Series([], dtype=points.workers.dtype) if self._workers is None else self._workers
        at = places(known, points.workers)
        on, far, sent = (np.append(a, 0.0)[at] for a in (self._on, self._far, self._sent))  # -1: not met before
        noise = own_noise(on, far, points.n_axes) if self.model.noise else np.ones(points.n_workers)
        p = np.clip(self._reliability(on, sent), MIN_CHANCE, 1 - MIN_CHANCE)
        D = points.n_axes
        objects = joined(images, "mean", D), joined(images, "cov", D, D), joined(images, "share")
        return Mixture(pointers(images), *objects, p, noise)

    def _further(self, points: Points, run: Run) -> None:
        """Known images: one step of stepwise EM."""
        mixture = self._mixture(points)
        stats = assign(in_shards(points, run), mixture, self._once, run.threads)
        self._count(points, stats)
        for i, name in enumerate(points.images.to_list()):
            image = self._images[name]
            own = slice(int(mixture.ptr[i]), int(mixture.ptr[i + 1]))
            clicks = int(points.clicks_per_image[i])
            step = (image.batches + self.delay) ** -self.rate
            now = _moved(stats.sums[own] / clicks, image.mean - image.at)
            sums = (1 - step) * image.sums + step * now
            alone = Mixture(np.array([0, len(image.mean)]), image.at, image.cov, image.share, np.empty(0), np.empty(0))
            whole = Stats(0.0, sums * (image.clicks + clicks), np.empty(0), np.empty(0), np.empty(0))
            better = maximise(whole, alone, MAXIMUM_LIKELIHOOD, (image.box[1] - image.box[0])[None])
            self._images[name] = image._replace(
                mean=better.mean, cov=better.cov, share=better.share, sums=sums, batches=image.batches + 1,
                clicks=image.clicks + clicks,
            )  # fmt: skip


def _moved(sums: Floats, shift: Floats) -> Floats:
    """Sums about other places: those of before plus `shift` (M, D) were their origin."""
    D = shift.shape[1]
    out = sums.copy()
    b, S1 = sums[:, 1], sums[:, HEAD : HEAD + D]
    out[:, HEAD : HEAD + D] += b[:, None] * shift
    cross = S1[:, :, None] * shift[:, None, :]
    S2 = cross + cross.transpose(0, 2, 1) + b[:, None, None] * shift[:, :, None] * shift[:, None, :]
    out[:, HEAD + D :] += np.tril(S2).reshape(len(sums), D * D)
    return out
