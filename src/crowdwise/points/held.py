"""What a stream of clicks holds about an image: its clicks by worker, and what was learned from them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl

from ..answers import Intake, Points
from ..answers.rules import Ids
from ..engine import Executor
from ..errors import DataError, option
from ..kernels.clicks import KAPPA, precisions
from ..kernels.layout import Floats, Ints, weighted_counts
from ..kernels.rules import Bits, Real, Sizes, Whole
from ..result.points import HALF, are_covariances, supporters
from ..result.stored import Parts, Stored, UnsoundError, flaw_of
from .e_step import Local
from .em import Mixture
from .image_fit import ImageFit
from .merge import MergeFit
from .summary import hit_rate

COUNTS = ("on", "far", "sent", "judged", "hits", "shown", "jobs")  # rows of the workers' counts, see `Learned.counts`
ON, _, _, JUDGED, HITS, SHOWN, JOBS = range(len(COUNTS))
NONE = np.empty(0)
ENDLESS = sys.maxsize  # rows of a table that never ends


class Learned(NamedTuple):
    """What was learned from the clicks on an image, given the reliabilities of its workers."""

    worker: Annotated[Ints, Whole("J", below="W", dtype="int64")]  # numbers of those who looked, by id
    on: Annotated[Floats, Real("J", 0)]  # expected clicks on objects
    far: Annotated[Floats, Real("J", 0)]  # sum of their squared distances
    sent: Annotated[Floats, Real("J", 0)]  # clicks
    strays: Annotated[Floats, Real("J", 0)]  # clicks that are probably on no object
    hits: Annotated[Floats, Real("J", 0)]  # objects on which the worker clicked
    mean: Annotated[Floats, Real("M D")]  # objects, sorted by position
    evidence: Annotated[Floats, Real("M")]  # log-odds that the clicks on an object agree by more than chance
    supporters: Annotated[Floats, Real("M", 0)]  # workers who clicked on an object
    precision: Annotated[Floats, Real("D D")]  # sum of the objects' expected precisions

    @property
    def counts(self) -> Floats:
        """(len(COUNTS), J) what this image adds to the counts of its workers: expected clicks on objects, the sum of
        their squared distances, clicks, clicks if there are objects, objects clicked, objects shown, jobs."""
        M, one = len(self.mean), np.ones(len(self.worker))
        return np.stack([self.on, self.far, self.sent, self.sent * (M > 0), self.hits, M * one, one])


class Sums(NamedTuple):
    """What was learned from images, added up."""

    counts: Annotated[Floats, Real("7 W")]  # one row for each of COUNTS
    precision: Annotated[Floats, Real("D D")]
    objects: int

    def plus(self, learned: Iterable[Learned], sign: int = 1) -> Sums:
        """Return the sums with some images added or, with a sign of -1, subtracted."""
        counts, precision, objects = self.counts.copy(), self.precision, self.objects
        for each in learned:
            counts[:, each.worker] += sign * each.counts
            precision = precision + sign * each.precision
            objects += sign * len(each.mean)
        return Sums(counts, precision, objects)

    def shape(self, first: Floats) -> tuple[Floats, float]:
        """Return the covariance of the objects and its weight in objects; `first` is the covariance without any."""
        weight = KAPPA + self.objects
        return np.linalg.inv((KAPPA * np.linalg.inv(first) + self.precision) / weight), weight

    @property
    def hit_rate(self) -> Floats:
        """(W,) share of the objects shown to a worker on which they clicked."""
        return hit_rate(self.counts[HITS], self.counts[SHOWN])


class Jobs(NamedTuple):
    """The jobs of an image."""

    box: Floats  # (2, D)
    estimated: bool  # whether the box was estimated from clicks
    clicks: Mapping[int, Floats]  # (n, D) clicks of each worker who looked, by the worker's number

    @property
    def n_clicks(self) -> int:
        return sum(len(X) for X in self.clicks.values())

    def same_clicks(self, other: Jobs) -> bool:
        """Whether another image has the same jobs with the same clicks, in any order."""
        own, others = self.clicks, other.clicks
        return own.keys() == others.keys() and all(
            X is others[w] or np.array_equal(X[np.lexsort(X.T)], others[w][np.lexsort(others[w].T)])
            for w, X in own.items()
        )


class Image(NamedTuple):
    """An image of a stream."""

    jobs: Jobs
    found: ImageFit | None  # objects found in this image alone; None if it has no clicks
    once: bool  # assumption with which they were found
    learned: Learned


def jobs_by_image(points: Points, numbers: Ints) -> dict[Any, dict[int, Floats]]:
    """Return the clicks of every job, by image and by the number of the worker; `numbers` (W,) are those numbers."""
    blocks, names = np.split(points.X, points.job_ptr[1:-1]), points.images.to_list()
    found: dict[Any, dict[int, Floats]] = {}
    for i, w, block in zip(points.job_image.tolist(), numbers[points.job_worker].tolist(), blocks, strict=True):
        found.setdefault(names[i], {})[w] = block
    return found


def kept_boxes(points: Points, images: Mapping[Any, Image]) -> dict[Any, tuple[Floats, bool]]:
    """Return the box of every image, and whether it was estimated. A box must stay as it was in earlier updates, from
    which `images` are; where none is given, the earlier one is used."""
    estimated, boxes = points.box_from == "clicks", {}
    for i, name in enumerate(points.images.to_list()):
        box, before = points.box[i], images.get(name)
        boxes[name] = (box, estimated)
        if before is None or np.array_equal(box, before.jobs.box):
            continue
        X, (low, high) = points.X[points.clicks_of(i)], before.jobs.box
        if not estimated or not ((low <= X) & (high >= X)).all():
            found = "clicks outside" if estimated else f"the box {box.ravel().tolist()} here, not"
            raise DataError(
                f"image {name!r} has {found} the box of earlier updates, {before.jobs.box.ravel().tolist()}. Give "
                f"all updates the same {option('box')}"
            )
        boxes[name] = before.jobs.box, before.jobs.estimated
    return boxes


def as_points(
    images: Mapping[Any, Jobs], workers: Sequence[Any], axes: tuple[str, ...], types: Mapping[str, Any], endless: bool
) -> tuple[Points, Ints]:
    """Return the clicks on images, and the number (W,) of each of their workers. Images and workers are sorted by id,
    so that the order in which they came does not matter. If they are a part of an endless table, they are fitted by the
    kernels of large tables: what is found in an image must not depend on how many came with it."""
    names = pl.Series("image", list(images), dtype=types["image"]).sort()
    held = [images[name] for name in names.to_list()]
    number = np.array([w for each in held for w in each.clicks], np.int64)
    image = np.repeat(np.arange(len(held)), [len(each.clicks) for each in held])
    known, place = np.unique(number, return_inverse=True)
    ids = pl.Series("worker", [workers[w] for w in known.tolist()], dtype=types["worker"])
    by_id = ids.arg_sort().to_numpy()
    worker = np.argsort(by_id)[place]
    order = np.lexsort((worker, image))
    blocks = [X for each in held for X in each.clicks.values()]
    sizes = np.array([len(blocks[k]) for k in order.tolist()], np.int64)
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    points = Points.of(
        images=names, workers=ids[by_id], axes=axes,
        X=np.concatenate([np.empty((0, len(axes))), *(blocks[k] for k in order.tolist())]),
        worker=np.repeat(worker[order], sizes).astype(np.int32), job_image=image[order].astype(np.int32),
        job_worker=worker[order].astype(np.int32), job_ptr=ptr,
        image_ptr=np.searchsorted(image[order], np.arange(len(held) + 1)).astype(np.int64),
        box=np.array([each.box for each in held]).reshape(len(held), 2, len(axes)),
        box_from="clicks" if any(each.estimated for each in held) else "given", extras=pl.DataFrame(),
        intake=Intake("stream", "clicks", {}, (), (), int(ptr[-1]), ENDLESS if endless else int(ptr[-1])),
    )  # fmt: skip
    return points, known[by_id]


def learned_by_image(
    points: Points, executor: Executor[Points], number: Ints, mixture: Mixture, fit: MergeFit, order: Ints
) -> list[Learned]:
    """Return what was learned from every image, after an E-step with `best`. `order` sorts the objects of the fit, and
    `number` (W,) are the numbers of the workers."""
    alpha, best = (np.concatenate(each) for each in zip(*executor.each(_click_posteriors), strict=True))
    J, M, W = points.n_jobs, mixture.n_objects, points.n_workers
    sent = np.diff(points.job_ptr)
    per_click = alpha[:, 0], alpha[:, 1], alpha[:, 0] < HALF
    on, far, strays = (weighted_counts(np.repeat(np.arange(J), sent), each, J) for each in per_click)
    image = np.repeat(np.arange(points.n_images), np.diff(mixture.ptr))
    worker, object_ = supporters(points, best[:, 0].astype(np.int64), best[:, 1])
    job = np.searchsorted(points.job_image.astype(np.int64) * W + points.job_worker, image[object_] * W + worker)
    hits, clicked = (np.bincount(each, minlength=size).astype(float) for each, size in ((job, J), (object_, M)))
    V, n, evidence = fit.posterior.V[order], fit.posterior.n[order], fit.evidence[order]
    learned = []
    for i in range(points.n_images):
        jobs = slice(int(points.image_ptr[i]), int(points.image_ptr[i + 1]))
        own = slice(int(mixture.ptr[i]), int(mixture.ptr[i + 1]))
        precision = precisions(V[own], n[own], fit.shapes.nu)
        by_job = on[jobs], far[jobs], sent[jobs].astype(float), strays[jobs], hits[jobs]
        objects = mixture.mean[own], evidence[own], clicked[own], precision
        learned.append(Learned(number[points.job_worker[jobs]], *by_job, *objects))
    return learned


def _click_posteriors(points: Points, local: Local) -> tuple[Floats, Floats]:
    return local.alpha, local.best


def store(parts: Parts, images: Mapping[Any, Image], dtype: Any, D: int) -> None:
    """Add images to the parts of a file: one array per field, with the rows of all images one after the other."""
    held = list(images.values())
    jobs = [each.jobs for each in held]
    blocks = [X for each in jobs for X in each.clicks.values()]
    parts.add("images", pl.Series("image", list(images), dtype=dtype))
    parts.add("box", np.array([each.box for each in jobs]).reshape(len(jobs), 2, D))
    parts.add("estimated", np.array([each.estimated for each in jobs], np.uint8))
    parts.add("once", np.array([each.once for each in held], np.uint8))
    parts.add("jobs.size", np.array([len(each.clicks) for each in jobs], np.int64))
    parts.add("jobs.worker", np.array([w for each in jobs for w in each.clicks], np.int64))
    parts.add("jobs.clicks", np.array([len(X) for X in blocks], np.int64))
    parts.add("jobs.X", np.concatenate([np.empty((0, D)), *blocks]))
    for name, kind, each in (
        ("found", ImageFit, [image.found for image in held]),
        ("learned", Learned, [image.learned for image in held]),
    ):
        parts.add(f"{name}.there", np.array([value is not None for value in each], np.uint8))
        for field in kind._fields:
            values = [np.asarray(getattr(value, field)) for value in each if value is not None]
            parts.add(f"{name}.{field}.shape", np.array([value.shape for value in values], np.int64))
            flat = np.concatenate([np.empty(0), *(value.ravel() for value in values)])
            parts.add(f"{name}.{field}", flat.astype(values[0].dtype if values else np.float64))


SAVED = {  # what `store` writes, apart from what was found and learned
    "images": Annotated[pl.Series, Ids("I")],
    "box": Annotated[Floats, Real("I 2 D")],
    "estimated": Annotated[Ints, Bits("I", "uint8")],
    "once": Annotated[Ints, Bits("I", "uint8")],
    "jobs.size": Annotated[Ints, Whole("I", dtype="int64")],
    "jobs.worker": Annotated[Ints, Whole("J", below="W", dtype="int64")],
    "jobs.clicks": Annotated[Ints, Whole("J", dtype="int64")],
    "jobs.X": Annotated[Floats, Real("N D")],
}


def restore(stored: Stored) -> tuple[pl.Series, dict[Any, Image]]:
    """Invert `store`: return the ids of the images, and the images."""
    values = {name: stored.get(name, kind) for name, kind in SAVED.items()}
    found, learned = (_values(stored, name, kind) for name, kind in (("found", ImageFit), ("learned", Learned)))
    stored.settle()
    _check_sums(values["jobs.clicks"], len(values["jobs.X"]))
    _check_sums(values["jobs.size"], len(values["jobs.worker"]))
    blocks = np.split(values["jobs.X"], np.cumsum(values["jobs.clicks"])[:-1])
    pairs = list(zip(values["jobs.worker"].tolist(), blocks, strict=False))
    ends = np.cumsum(values["jobs.size"]).tolist()
    boxes = zip(values["box"], values["estimated"].astype(bool).tolist(), [0, *ends], ends, strict=False)
    jobs = [Jobs(box, estimated, dict(pairs[a:b])) for box, estimated, a, b in boxes]
    once = values["once"].astype(bool).tolist()
    images = list(map(Image, jobs, found, once, learned))
    for image in images:
        _check_image(image, stored.sizes)
    return values["images"], dict(zip(values["images"].to_list(), images, strict=True))


def _check_sums(counts: Ints, total: int) -> None:
    if counts.max(initial=0) > total or counts.sum() != total:
        raise UnsoundError("its jobs have other clicks than there are")


def _check_image(image: Image, whole: Sizes) -> None:
    """Raise ValueError if what was found in an image does not belong to it."""
    (low, high), own = image.jobs.box, {name: whole[name] for name in ("D", "W")}
    if not (high > low).all():
        raise UnsoundError("it has boxes without an area")
    known = image.learned
    flaw = flaw_of(known, own | {"J": len(image.jobs.clicks)})
    if image.found is not None:
        flaw = flaw or flaw_of(image.found, own)
        if not are_covariances(image.found.V) or not all(map(is_definite, (image.found.S, image.found.S0))):
            flaw = flaw or "has covariances that are none"
    if flaw or set(known.worker.tolist()) != set(image.jobs.clicks) or not are_covariances(known.precision):
        raise UnsoundError(f"what was learned from an image is not sound: {flaw}")


def is_definite(matrix: Floats) -> bool:
    """Whether a matrix is a covariance that has an inverse."""
    return are_covariances(matrix) and bool(np.linalg.eigvalsh(matrix).min(initial=1.0) > 0)


def _values(stored: Stored, name: str, kind: Any) -> list[Any]:
    """Return one named tuple per image, None where there was none."""
    fields = []
    for field in kind._fields:
        shapes, flat = stored.get(f"{name}.{field}.shape"), stored.get(f"{name}.{field}")
        if (
            (shapes.ndim != 2 and len(shapes))
            or shapes.min(initial=0) < 0
            or shapes.max(initial=0) > max(len(flat), 1 << 16)
        ):
            raise UnsoundError(f"{name}.{field} has shapes that cannot be")
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes]).astype(np.int64)
        parts = np.split(flat, ends[:-1]) if len(ends) else []
        values = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
        fields.append([value.item() if value.ndim == 0 else value for value in values])
    rows = iter(zip(*fields, strict=True))
    return [kind(*next(rows)) if there else None for there in stored.get(f"{name}.there")]
