"""The E-step: the posterior over objects of each click, and its sufficient statistics.

It processes one shard in blocks, in several threads. The data alone determine the blocks, and sums are added in block
order, so results do not depend on the number of threads. EM, variational Bayes and streams of clicks share this code.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..answers import Points
from ..kernels.layout import HEAD, Floats, Ints
from ..kernels.threads import run

BLOCK_CLICKS = 1 << 11  # approximate number of clicks in a block


class ObjectTerms(NamedTuple):
    """Terms that depend on the objects: the log-density of a click is weight - 1/2 |root (click - mean)|^2."""

    ptr: Ints  # (I+1,) offset of each image's objects
    weight: Floats  # (M,) log of the share and of the normalising constant
    slack: Floats  # (M,) added to squared distances: uncertainty of the mean
    mean: Floats  # (M, D)
    root: Floats  # (M, D, D) lower triangular
    reach: Floats  # (M, 2) clicks of average noise that are further away than this along the first two axes are ignored


class WorkerTerms(NamedTuple):
    """Terms that depend on the workers."""

    odds: Floats  # (W,) prior log-odds that a click is on an object
    miss: Floats  # (W,) log-probability that a click is on no object
    precision: Floats  # (W,) inverse square of the worker's noise factor


class Stats(NamedTuple):
    """Sufficient statistics for the M-step. They are additive over shards."""

    fit: float  # log-likelihood
    sums: Floats  # (M, HEAD + D + D D): clicks, clicks by precision, cost of removal, moments about the mean
    on: Floats  # (W,) expected clicks on objects
    far: Floats  # (W,) sum of their squared distances
    sent: Floats  # (W,) clicks


class Local(NamedTuple):
    """State of a shard that is kept between iterations."""

    blocks: list[tuple[int, int, int, int]]  # image range, job range
    log_box: Floats  # (I,) log-density of a click on no object
    sent: Floats  # (W,) clicks
    alpha: Floats  # (N, 2) probability that a click is on an object, and expected squared distance
    best: Floats  # (N, 3) most likely object (-1: none), its probability, posterior entropy; no rows unless `best`


def e_step(
    points: Points, local: Local | None, objects: ObjectTerms, workers: WorkerTerms, once: bool, cut: float,
    threads: int, best: bool = False,
) -> tuple[Local, Stats]:  # fmt: skip
    """Compute the posterior over objects of the clicks of a shard, and the statistics for the M-step.

    With `once`, a worker clicks an object at most once. Objects beyond the squared distance `cut` of a click are
    ignored. With `best`, the most likely object of each click is kept, too.
    """
    if local is None:
        blocks, log_box, sent = _blocks(points), -np.log(points.sides).sum(1), clicks_per_worker(points)
    else:
        blocks, log_box, sent, *_ = local
    D, W, kernels = points.n_axes, points.n_workers, points.kernels
    width = HEAD + D + D * D
    alpha, none = np.zeros((points.n_clicks, 2)), np.empty((0, 3))
    chosen = np.zeros((points.n_clicks if best else 0, 3))
    chosen[:, 0] = -1
    fits, parts = np.zeros(len(blocks)), [np.empty(0)] * len(blocks)
    odds = workers.odds + 0.5 * D * np.log(workers.precision)

    def block(number: int, _start: int, _stop: int) -> None:
        first, last, start, stop = blocks[number]
        parts[number] = np.zeros((objects.ptr[last] - objects.ptr[first], width))
        for i in range(first, last):
            own = slice(int(objects.ptr[i]), int(objects.ptr[i + 1]))
            begin, end = max(start, int(points.image_ptr[i])), min(stop, int(points.image_ptr[i + 1]))
            if own.stop > own.start and end > begin:
                fit, _ = kernels.assign_clicks(
                    points.X, points.worker, points.job_ptr, begin, end, objects.weight[own], objects.slack[own],
                    objects.mean[own], objects.root[own], objects.reach[own], odds, -log_box[i], workers.precision, cut,
                    once, parts[number][own.start - objects.ptr[first] : own.stop - objects.ptr[first]], alpha, none,
                    chosen,
                )  # fmt: skip
                fits[number] += fit

    run(block, np.arange(len(blocks) + 1), threads)
    sums = np.zeros((len(objects.mean), width))
    for (first, last, _, _), part in zip(blocks, parts, strict=True):
        sums[objects.ptr[first] : objects.ptr[last]] += part
    if best:
        on = chosen[:, 0] >= 0
        chosen[on, 0] += objects.ptr[points.image[on]]
    outliers = float(points.clicks_per_image @ log_box)
    fit = float(fits.sum()) + outliers + float(sent @ workers.miss)
    by_worker = [np.bincount(points.worker, alpha[:, k], minlength=W).astype(np.float64) for k in (0, 1)]
    return Local(blocks, log_box, sent, alpha, chosen), Stats(fit, sums, by_worker[0], by_worker[1], sent)


def clicks_per_worker(points: Points) -> Floats:
    """(W,) number of clicks of each worker."""
    return np.bincount(points.worker, minlength=points.n_workers).astype(np.float64)


def _blocks(points: Points) -> list[tuple[int, int, int, int]]:
    """Split into blocks of about BLOCK_CLICKS clicks: several whole images, or some jobs of one large image."""
    blocks, first, size = [], 0, 0
    at = points.job_ptr[points.image_ptr]
    for i in range(points.n_images):
        clicks = int(at[i + 1] - at[i])
        if clicks > BLOCK_CLICKS:
            if first < i:
                blocks.append((first, i, int(points.image_ptr[first]), int(points.image_ptr[i])))
            jobs = points.job_ptr[points.image_ptr[i] : points.image_ptr[i + 1] + 1]
            cuts = np.searchsorted(jobs, np.arange(at[i], at[i + 1], BLOCK_CLICKS)) + points.image_ptr[i]
            bounds = np.unique(np.append(cuts, points.image_ptr[i + 1]))
            blocks += [(i, i + 1, int(a), int(b)) for a, b in pairwise(bounds)]
            first, size = i + 1, 0
            continue
        size += clicks
        if size >= BLOCK_CLICKS or i + 1 == points.n_images:
            blocks.append((first, i + 1, int(points.image_ptr[first]), int(points.image_ptr[i + 1])))
            first, size = i + 1, 0
    if first < points.n_images:
        blocks.append((first, points.n_images, int(points.image_ptr[first]), int(points.image_ptr[-1])))
    return blocks
