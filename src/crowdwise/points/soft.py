"""Soft assignment: how likely each click is on each object."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from ..errors import ParameterError, UnknownIdError
from ..kernels.layout import Floats
from ..result import PointsResult
from .em import CUT, Mixture, object_terms, worker_terms

MIN_PROBABILITY = 0.01  # of a click and an object; pairs below are omitted


def soft_assignments(result: PointsResult, image: Any, *, least: float = MIN_PROBABILITY) -> pl.DataFrame:
    """How likely each click on an image is on each object: click (row of `result.clicks`, from 0), worker, object,
    probability. What is missing to 1 is the probability of none.

    >>> import crowdwise as cw
    >>> result = cw.aggregate(cw.simulate.clicks("E", seed=1).points)
    >>> cw.soft_assignments(result, "image").columns
    ['click', 'worker', 'object', 'probability']
    """
    if result.model.name != "click-mixture":
        raise ParameterError(f"{result.model.name} assigns clicks hard; fit 'click-mixture' for soft assignments")
    if image not in result.answers.images.to_list():
        raise UnknownIdError(f"no image {image!r} in these clicks")
    i = result.answers.images.to_list().index(image)
    shares, first = _shares(result, i), result.answers.clicks_of(i).start
    click, object_ = np.nonzero(shares >= least)
    return pl.DataFrame(
        [
            pl.Series("click", first + click),
            result.answers.workers[result.answers.worker[first + click]].alias("worker"),
            pl.Series("object", object_ + 1),
            pl.Series("probability", shares[click, object_]),
        ]
    )


def _shares(result: PointsResult, i: int) -> Floats:
    """(clicks, objects) of one image."""
    from ..kernels.fast.clicks import _match

    p, points = result.params, result.answers
    at, own = points.clicks_of(i), slice(int(p.ptr[i]), int(p.ptr[i + 1]))
    X, worker = points.X[at], points.worker[at]
    M = own.stop - own.start
    mixture = Mixture(np.array([0, M]), p.mean[own], p.cov[own], p.share[own], p.reliability, p.noise)
    objects, workers = object_terms(mixture), worker_terms(mixture)
    precision = workers.precision[worker]
    away = np.einsum("mde,nme->nmd", objects.root, X[:, None] - p.mean[own][None])
    far = (away**2).sum(2) * precision[:, None]
    odds = workers.odds[worker] + 0.5 * points.n_axes * np.log(precision) + np.log(points.sides[i]).sum()
    psi = np.where(far <= CUT, np.exp(np.minimum(objects.weight[None] + odds[:, None] - 0.5 * far, 600.0)), 0.0)
    if not p.once:
        return np.asarray(psi / (1 + psi.sum(1, keepdims=True)))
    shares = np.zeros_like(psi)
    jobs = points.job_ptr[points.image_ptr[i] : points.image_ptr[i + 1] + 1] - at.start
    for a, b in pairwise(jobs):
        row, comp = np.nonzero(psi[a:b])
        ptr = np.searchsorted(row, np.arange(b - a + 1)).astype(np.int64)
        share = np.empty(len(row))
        _match(
            ptr, np.arange(b - a), b - a, comp.astype(np.int32), psi[a:b][row, comp], np.empty(len(row)),
            np.empty(len(row)), share, np.zeros(M),
        )  # fmt: skip
        shares[a + row, comp] = share
    return shares
