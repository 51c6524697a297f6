"""The extent of images (given, from the table of jobs, or estimated from the clicks), and the unit of clicks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ..errors import DataError, ParameterError, option
from ..kernels.layout import Floats, Ints
from .coding import normalise_ids, to_numbers, to_type
from .columns import POINT_ROLES
from .frames import to_frame

MAX_COORDINATE = 1e30  # larger ones leave the range of float64 in the covariances of clicks and their determinants
PADDING = 0.05  # added on every side if no box is given, as a share of the range of the clicks
MAX_PIXEL_PROBABILITY = 1e-9  # of clicks that all lie between 0 and 100; below it they are taken as percent


def boxes_of(box: Any, jobs: Any, images: pl.Series, axes: tuple[str, ...], source: str) -> tuple[Floats | None, str]:
    """Return corners (I, 2, D) and their origin; the corners are None if they must be estimated from the clicks."""
    D = len(axes)
    if box is None:
        table = None if jobs is None else to_frame(jobs)
        if table is None or not _has_box(table.columns, axes):
            return None, "clicks"
        return _from_table(table, images, axes, "the table of jobs"), "jobs"
    if isinstance(box, (Sequence, np.ndarray)):
        corners = _corners(box, D)
        _check(corners[None], pl.Series(["all images"]), "box")
        return np.repeat(corners[None], len(images), axis=0), "given"
    if isinstance(box, Mapping) and not {"width", "x0", f"{axes[0]}0"} & set(map(str, box)):
        rows = np.array([_corners(corner, D).ravel() for corner in box.values()]).reshape(-1, 2 * D)
        names = [f"{axis}{end}" for end in (0, 1) for axis in axes]
        box = {"image": list(box)} | {name: rows[:, k] for k, name in enumerate(names)}
    if isinstance(box, (int, float)):
        raise ParameterError(f"box is {box!r}; give x0, y0, x1, y1, or a table with one row per image")
    return _from_table(to_frame(box), images, axes, "the table of boxes"), "given"


def _corners(box: Any, D: int) -> Floats:
    """Return the corners (2, D) from 2 D numbers."""
    try:
        corners = np.asarray(box, np.float64)
    except (TypeError, ValueError):
        corners = np.empty(0)
    if corners.size != 2 * D:
        raise ParameterError(f"box is {box!r}; give {2 * D} numbers: the low corner, then the high one")
    return corners.reshape(2, D)


def _has_box(columns: Sequence[str], axes: tuple[str, ...]) -> bool:
    names = set(columns)
    return {f"{axis}{end}" for axis in axes for end in (0, 1)} <= names or (
        len(axes) == 2 and {"width", "height"} <= names
    )


def _from_table(table: pl.DataFrame, images: pl.Series, axes: tuple[str, ...], source: str) -> Floats:
    name = POINT_ROLES.guess("image", table.columns)
    if name is None or not _has_box(table.columns, axes):
        wanted = ", ".join(f"{axis}0, {axis}1" for axis in axes)
        raise ParameterError(
            f"{source} has columns {', '.join(table.columns)}; it needs image and {wanted}, or image, width, height"
        )
    column, _ = normalise_ids(table[name], "image", source)
    same = to_type(column, images.dtype)
    if same is None:
        raise DataError(
            f"{source} has images of {column.dtype}, the clicks have {images.dtype}. Give both in the same type"
        )
    sizes = "width" in table.columns and f"{axes[0]}0" not in table.columns
    columns = ["width", "height"] if sizes else [f"{axis}{end}" for end in (0, 1) for axis in axes]
    values = np.column_stack([to_numbers(table[name]).to_numpy() for name in columns])
    found = np.full((len(images), 2, len(axes)), np.nan)
    at = {value: k for k, value in enumerate(images.to_list())}
    for image, row in zip(same.to_list(), values, strict=True):
        if image in at:
            corners = np.stack([np.zeros(2), row]) if sizes else row.reshape(2, len(axes))
            before = found[at[image]]
            if not np.isnan(before).any() and not (before == corners).all():
                raise DataError(f"{source} has two boxes for image {image!r}: {before.tolist()} and {corners.tolist()}")
            found[at[image]] = corners
    lost = np.isnan(found).any((1, 2))
    if lost.any():
        raise DataError(
            f"{source} has no box for {int(lost.sum())} image(s), for instance {images[int(np.argmax(lost))]!r}"
        )
    _check(found, images, source)
    return found


def _check(corners: Floats, images: pl.Series, source: str) -> None:
    wrong = ~(np.isfinite(corners).all((1, 2)) & (corners[:, 1] > corners[:, 0]).all(1))
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ParameterError(
            f"{source}: the box of {images[k]!r} is {corners[k].ravel().tolist()}, which has no area. Give the low "
            "corner, then the high one, x0,y0,x1,y1"
        )
    check_range(corners, images, source)


def check_range(corners: Floats, images: pl.Series, source: str) -> None:
    """Raise DataError if an image extends so far that the arithmetic would overflow; clicks are within."""
    far = ~(np.abs(corners) <= MAX_COORDINATE).all((1, 2))
    if far.any():
        k = int(np.argmax(far))
        largest = float(np.abs(corners[k]).max())
        raise DataError(
            f"{source}: the extent of {images[k]!r} reaches to the coordinate {largest:.2g}; coordinates may be at "
            f"most {MAX_COORDINATE:g}. Correct them, or give them in a larger unit"
        )


def padded(X: Floats, image: Ints, n_images: int) -> Floats:
    """Padded range (I, 2, D) of the clicks of each image; an image without clicks gets the range of all clicks."""
    if not len(X):
        raise ParameterError(f"no clicks from which the box of the images can be estimated. Give {option('box')}")
    D = X.shape[1]
    corners = np.empty((n_images, 2, D))
    corners[:, 0], corners[:, 1] = np.inf, -np.inf
    np.minimum.at(corners[:, 0], image, X)
    np.maximum.at(corners[:, 1], image, X)
    empty = ~np.isfinite(corners).all((1, 2))
    corners[empty, 0], corners[empty, 1] = X.min(0), X.max(0)
    with np.errstate(over="ignore"):  # which `check_range` reports
        side = corners[:, 1] - corners[:, 0]
    largest = np.maximum(side.max(), 1.0)  # clicks on one spot or line still need some area
    pad = np.maximum(PADDING * side, 0.5 * PADDING * largest)
    corners[:, 0] -= pad
    corners[:, 1] += pad
    return corners


def to_pixels(X: Floats, image: Ints, corners: Floats | None, unit: str | None, source: str) -> Floats:
    """Convert clicks given as percent or fraction of the box to the unit of the box."""
    if unit in (None, "pixels") or not len(X):
        return X
    whole = 100.0 if unit == "percent" else 1.0
    if corners is None:
        raise ParameterError(f"unit is {unit!r}, so the box of the images is needed. Give {option('box')}")
    if X.min() < 0 or X.max() > whole:
        worst = X.ravel()[np.argmax(np.abs(X - 0.5 * whole))]
        raise DataError(f"unit is {unit!r}, but {source} has a coordinate of {worst:g}. Are the coordinates pixels?")
    low = corners[image, 0]
    return np.asarray(low + X / whole * (corners[image, 1] - low))


def check_units(X: Floats, image: Ints, worker: Ints, corners: Floats, workers: pl.Series, source: str) -> None:
    """Raise DataError if some workers appear to have given percent and others pixels."""
    large = ((corners[image, 1] - corners[image, 0]) > 200).any(1) & (corners[image, 0] > -100).all(1)
    small = ((X >= 0) & (X <= 100)).all(1)
    n = np.bincount(worker[large], minlength=len(workers))
    inside = np.bincount(worker[large & small], minlength=len(workers))
    others = (inside.sum() - inside + 1) / (n.sum() - n + 2)  # share of the other workers' clicks in that range
    with np.errstate(divide="ignore"):
        odd = (n >= 5) & (inside == n) & (n * np.log(others) < np.log(MAX_PIXEL_PROBABILITY)) & (n < n.sum())
    for w in np.flatnonzero(odd).tolist():  # clicks in one corner only are not percent
        own = X[(worker == w) & large]
        odd[w] = (own.min(0) < 25).all() and (own.max(0) > 75).all()
    if odd.any():
        w = int(np.argmax(odd))
        raise DataError(
            f"all {int(n[w])} clicks of worker {workers[w]!r} in {source} lie between 0 and 100, but images are "
            f"larger and only {others[w]:.0%} of the other workers' clicks do ({int(odd.sum())} such worker(s)). Are "
            f"these percent and the others pixels? Correct the table, or use {option('unit', 'pixels')} if not"
        )
