"""The E-step: which object each click is on, and the statistics of that.

It runs on one shard of the clicks, in blocks that the data fix, in threads; sums are added in the order of blocks. EM,
variational Bayes and streams of clicks all use it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..answers import Points
from ..kernels.layout import HEAD, Floats, Ints

BLOCK_CLICKS = 1 << 15


class ObjectTerms(NamedTuple):
    """Objects in an E-step: weight + log N(click; mean, root' root), within `reach` in the first two axes."""

    ptr: Ints  # (I+1,) objects of each image
    weight: Floats  # (M,) log of share and norm
    slack: Floats  # (M,) added to squared distances: how unsure a mean is
    mean: Floats  # (M, D)
    root: Floats  # (M, D, D) lower triangular
    reach: Floats  # (M, 2)


class WorkerTerms(NamedTuple):
    """Workers in an E-step."""

    odds: Floats  # (W,) log-odds that a click is on some object, before its position is known
    miss: Floats  # (W,) log-probability that it is on none
    precision: Floats  # (W,) one over the square of a worker's own noise


class Stats(NamedTuple):
    """All that an M-step needs of clicks; statistics of shards add up to those of the whole."""

    fit: float  # log-likelihood
    sums: Floats  # (M, HEAD + D + D D): clicks, by precision, price of removal, moments about the mean
    on: Floats  # (W,) expected clicks on objects
    far: Floats  # (W,) their squared distances
    sent: Floats  # (W,) clicks


class Local(NamedTuple):
    """What is kept of a shard between iterations."""

    blocks: list[tuple[int, int, int, int]]  # first and last image, first and last job
    log_box: Floats  # (I,) log-density of a click on no object
    sent: Floats  # (W,) clicks
    alpha: Floats  # (N, 2) chance of a click to be on an object, and squared distance by it
    best: Floats  # (N, 3) most likely object (-1: none), its chance, entropy of all; no rows unless asked for


def e_step(
    points: Points, local: Local | None, objects: ObjectTerms, workers: WorkerTerms, once: bool, cut: float,
    threads: int, best: bool = False,
) -> tuple[Local, Stats]:  # fmt: skip
    """Assign the clicks of a shard to objects. With `once`, a worker clicks an object at most once; objects further
    from a click than the squared distance `cut` are ignored."""
    from ..kernels.fast.blocks import run
    from ..kernels.fast.clicks import assign_clicks

    if local is None:
        blocks, log_box, sent = _blocks(points), -np.log(points.sides).sum(1), clicks_per_worker(points)
    else:
        blocks, log_box, sent, *_ = local
    D, W = points.n_axes, points.n_workers
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
                fit, _ = assign_clicks(
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
    """(W,) how many clicks each worker has made."""
    return np.bincount(points.worker, minlength=points.n_workers).astype(np.float64)


def _blocks(points: Points) -> list[tuple[int, int, int, int]]:
    """Runs of whole images, or of jobs of one large image, of about BLOCK_CLICKS clicks each."""
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
