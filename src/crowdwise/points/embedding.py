"""Contributions with features, such as images, as points in a few coordinates: clicks beyond two dimensions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ..answers import Points
from ..answers.arguments import checked, generator
from ..answers.frames import FOREIGN, to_series
from ..engine.resources import limit_threads, load
from ..engine.spectral import MIN_ITEMS, embed
from ..errors import FeatureError, ParameterError

DIMS = 5
CAVEAT = (
    "the coordinates are an embedding of features: reliabilities rank workers; their intervals hold only if outliers "
    "are spread evenly over it"
)


@checked
def embed_points(
    X: Any, workers: Any, *, images: Any = None, dims: int | None = None, seed: int | np.random.Generator = 0
) -> Points:
    """Place contributions with features in a few coordinates, in which `aggregate` finds clusters and outliers.

    Row n of `X` (N, ...) holds the features of a contribution, for instance the pixels of a photograph, and `workers`
    (N,) who made it. `images` (N,) separates independent collections; by default there is one. The coordinates are a
    spectral embedding of nearest neighbours with `dims` dimensions, by default 5, or as many as there are features.
    The clicks of the result have a column `row` with the row of X.

    >>> import numpy as np, crowdwise as cw
    >>> rng = np.random.default_rng(0)
    >>> shapes = rng.normal(size=(3, 64))
    >>> X = shapes[np.arange(300) % 3] + 0.3 * rng.normal(size=(300, 64))
    >>> cw.embed_points(X, np.arange(300) // 30, dims=2)
    Points(300 clicks, 1 image, 10 workers, 10 jobs)
    """
    load("scipy.sparse", "learn", "the embedding of features")
    try:
        rows = np.asarray(X, np.float64)
    except FOREIGN as error:
        raise FeatureError(f"X does not hold numbers: {error}. Give an array with one row per contribution") from None
    worker = to_series("worker", workers)
    image = to_series(
        "image", ["all"] * rows.shape[0] if images is None and rows.ndim else () if images is None else images
    )
    if rows.ndim < 2 or not len(worker) == len(image) == len(rows):
        given = f"{len(worker)} workers" + ("" if images is None else f" and {len(image)} images")
        raise FeatureError(
            f"X has shape {rows.shape}, and there are {given}; give one row of features and one worker "
            f"{'' if images is None else 'and one image '}per contribution"
        )
    rows = rows.reshape(len(rows), -1)
    if not np.isfinite(rows).all():
        bad = int(np.flatnonzero(~np.isfinite(rows).all(1))[0])
        raise FeatureError(f"X contains NaN or infinity, first in row {bad}. Fill these values or omit the rows")
    if len(rows) < MIN_ITEMS:
        raise FeatureError(f"the embedding needs at least {MIN_ITEMS} contributions; there are {len(rows)}")
    most = min(rows.shape[1], len(rows) - 2)
    dims = min(DIMS, most) if dims is None else dims
    if not 1 <= dims <= most:
        raise ParameterError(f"dims is {dims!r}; it must be a whole number from 1 to {most}")
    with limit_threads():
        place = embed(rows, dims, generator(seed))["graph.embedding"]
    axes = [f"dim{d + 1}" for d in range(dims)]
    frame = pl.DataFrame([image, worker, *(pl.Series(axis, place[:, d]) for d, axis in enumerate(axes))])
    frame = frame.with_columns(pl.Series("row", np.arange(len(rows))))
    points = Points(frame, axes=axes, duplicates="each", unit="pixels", source="embedded features")
    # nobody could give a box, so what is said about a missing one does not apply
    return points.replaced(box_from="given", intake=replace(points.intake, notes=(), warnings=(CAVEAT,)))
