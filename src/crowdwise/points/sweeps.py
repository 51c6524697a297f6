"""A sweep over all clicks: in blocks that the data fix, in threads, summed in the order of blocks."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..answers import Points
from ..kernels.layout import HEAD, Floats, Ints

BLOCK = 1 << 15  # clicks


class Seen(NamedTuple):
    """Objects as clicks see them: weight + log N(click; mean, root' root), within `reach` in the first two axes."""

    ptr: Ints  # (I+1,) objects of each image
    weight: Floats  # (M,) log of share and norm
    slack: Floats  # (M,) added to squared distances: how unsure a mean is
    mean: Floats  # (M, D)
    root: Floats  # (M, D, D) lower triangular
    reach: Floats  # (M, 2)


class Side(NamedTuple):
    """Workers as clicks see them."""

    odds: Floats  # (W,) log-odds of a click to be on some object, before it is looked at
    precision: Floats  # (W,) one over the square of a worker's own noise


class Swept(NamedTuple):
    """What a sweep comes to."""

    log_sum: float  # against all clicks being on no object
    sums: Floats  # (M, HEAD + D + D D): clicks, by precision, price of removal, moments about the mean
    alpha: Floats  # (N, 2) chance of a click to be on an object, and squared distance by it
    best: Floats  # (N, 3) most likely object (-1: none), its chance, entropy of all, where asked for


class Sweeper:
    """Runs sweeps over the clicks of all images."""

    def __init__(self, points: Points, threads: int) -> None:
        self.points, self.threads = points, threads
        self.log_box = -np.log(points.sides).sum(1)
        self.sent = np.bincount(points.worker, minlength=points.n_workers).astype(np.float64)
        self.blocks = _blocks(points)

    @property
    def outliers(self) -> float:
        """The log-density of all clicks if none were on an object, apart from workers' shares."""
        return float(self.points.clicks_per_image @ self.log_box)

    def run(self, seen: Seen, side: Side, *, once: bool, cut: float, best: bool = False) -> Swept:
        """Which object each click is of."""
        from ..kernels.fast.blocks import run
        from ..kernels.fast.clicks import sweep

        p, D = self.points, self.points.n_axes
        width = HEAD + D + D * D
        alpha, none = np.zeros((p.n_clicks, 2)), np.empty((0, 3))
        told = np.zeros((p.n_clicks if best else 0, 3))
        told[:, 0] = -1
        found, parts = np.zeros(len(self.blocks)), [np.empty(0)] * len(self.blocks)
        odds = side.odds + 0.5 * D * np.log(side.precision)

        def block(number: int, _start: int, _stop: int) -> None:
            first, last, start, stop = self.blocks[number]
            parts[number] = np.zeros((seen.ptr[last] - seen.ptr[first], width))
            for i in range(first, last):
                own = slice(int(seen.ptr[i]), int(seen.ptr[i + 1]))
                if own.stop > own.start:
                    begin, end = max(start, int(p.image_ptr[i])), min(stop, int(p.image_ptr[i + 1]))
                    log_sum, _ = sweep(
                        p.X, p.worker, p.job_ptr, begin, end, seen.weight[own], seen.slack[own], seen.mean[own],
                        seen.root[own], seen.reach[own], odds, -self.log_box[i], side.precision, cut, once,
                        parts[number][own.start - seen.ptr[first] : own.stop - seen.ptr[first]], alpha, none, told,
                    )  # fmt: skip
                    found[number] += log_sum

        run(block, np.arange(len(self.blocks) + 1), self.threads)
        sums = np.zeros((len(seen.mean), width))
        for (first, last, _, _), part in zip(self.blocks, parts, strict=True):
            sums[seen.ptr[first] : seen.ptr[last]] += part
        if best:
            on = told[:, 0] >= 0
            told[on, 0] += seen.ptr[p.image[on]]
        return Swept(float(found.sum()), sums, alpha, told)

    def by_worker(self, values: Floats) -> Floats:
        """(W,) sums over each worker's clicks."""
        return np.bincount(self.points.worker, values, minlength=self.points.n_workers)


def _blocks(points: Points) -> list[tuple[int, int, int, int]]:
    """Runs of whole images, or of jobs of one large image, of about BLOCK clicks: first and last image, and job."""
    blocks, first, size = [], 0, 0
    at = points.job_ptr[points.image_ptr]
    for i in range(points.n_images):
        clicks = int(at[i + 1] - at[i])
        if clicks > BLOCK:
            if first < i:
                blocks.append((first, i, int(points.image_ptr[first]), int(points.image_ptr[i])))
            jobs = points.job_ptr[points.image_ptr[i] : points.image_ptr[i + 1] + 1]
            cuts = np.searchsorted(jobs, np.arange(at[i], at[i + 1], BLOCK)) + points.image_ptr[i]
            bounds = np.unique(np.append(cuts, points.image_ptr[i + 1]))
            blocks += [(i, i + 1, int(a), int(b)) for a, b in pairwise(bounds)]
            first, size = i + 1, 0
            continue
        size += clicks
        if size >= BLOCK or i + 1 == points.n_images:
            blocks.append((first, i + 1, int(points.image_ptr[first]), int(points.image_ptr[i + 1])))
            first, size = i + 1, 0
    if first < points.n_images:
        blocks.append((first, points.n_images, int(points.image_ptr[first]), int(points.image_ptr[-1])))
    return blocks
