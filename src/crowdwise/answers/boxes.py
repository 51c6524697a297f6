"""The extent of images: given, of the table of jobs, or taken from the clicks; and in which unit clicks are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ..errors import DataError, ParameterError, option
from ..kernels.layout import Floats, Ints
from .coding import settle, to_text
from .columns import POINT_ROLES
from .frames import to_frame

PADDING = 0.05  # of the range of clicks, on every side, where no box is given
SURE = 1e-9  # chance below which clicks that all lie in 0 to 100 are taken for percent


def boxes_of(box: Any, jobs: Any, images: pl.Series, axes: tuple[str, ...], source: str) -> tuple[Floats | None, str]:
    """(I, 2, D) corners, and where they come from; None where they must be taken from the clicks."""
    D = len(axes)
    if box is None:
        table = None if jobs is None else to_frame(jobs)
        if table is None or not _has_box(table.columns, axes):
            return None, "clicks"
        return _of_table(table, images, axes, "the table of jobs"), "jobs"
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
    return _of_table(to_frame(box), images, axes, "the table of boxes"), "given"


def _corners(box: Any, D: int) -> Floats:
    """(2, D) of as many numbers."""
    try:
        corners = np.asarray(box, np.float64)
    except (TypeError, ValueError):
        corners = np.empty(0)
    if corners.size != 2 * D:
        raise ParameterError(f"box is {box!r}; wanted are {2 * D} numbers: the low corner, then the high one")
    return corners.reshape(2, D)


def _has_box(columns: Sequence[str], axes: tuple[str, ...]) -> bool:
    names = set(columns)
    return {f"{axis}{end}" for axis in axes for end in (0, 1)} <= names or (
        len(axes) == 2 and {"width", "height"} <= names
    )


def _of_table(table: pl.DataFrame, images: pl.Series, axes: tuple[str, ...], source: str) -> Floats:
    name = POINT_ROLES.guess("image", table.columns)
    if name is None or not _has_box(table.columns, axes):
        wanted = ", ".join(f"{axis}0, {axis}1" for axis in axes)
        raise ParameterError(
            f"{source} has columns {', '.join(table.columns)}; wanted are image and {wanted}, or image, width, height"
        )
    column, _ = settle(table[name], "image", source)
    sizes = "width" in table.columns and f"{axes[0]}0" not in table.columns
    columns = ["width", "height"] if sizes else [f"{axis}{end}" for end in (0, 1) for axis in axes]
    values = np.column_stack([to_text(table[name]).cast(pl.Float64, strict=False).to_numpy() for name in columns])
    found = np.full((len(images), 2, len(axes)), np.nan)
    at = {value: k for k, value in enumerate(images.to_list())}
    for image, row in zip(column.cast(images.dtype, strict=False).to_list(), values, strict=True):
        if image in at:
            corners = np.stack([np.zeros(2), row]) if sizes else row.reshape(2, len(axes))
            before = found[at[image]]
            if not np.isnan(before).any() and not (before == corners).all():
                raise DataError(f"{source} gives image {image!r} two boxes: {before.tolist()} and {corners.tolist()}")
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
            f"{source}: the box of {images[k]!r} is {corners[k].ravel().tolist()}, which holds no area; give the low "
            "corner, then the high one, x0,y0,x1,y1"
        )


def padded(X: Floats, image: Ints, n_images: int) -> Floats:
    """(I, 2, D) ranges of the clicks of each image, padded; an image without clicks has the range of all."""
    D = X.shape[1]
    corners = np.empty((n_images, 2, D))
    corners[:, 0], corners[:, 1] = np.inf, -np.inf
    np.minimum.at(corners[:, 0], image, X)
    np.maximum.at(corners[:, 1], image, X)
    empty = ~np.isfinite(corners).all((1, 2))
    corners[empty, 0], corners[empty, 1] = X.min(0), X.max(0)
    side = corners[:, 1] - corners[:, 0]
    usual = np.maximum(side.max(), 1.0)  # clicks on one spot or line still need some area
    pad = np.maximum(PADDING * side, 0.5 * PADDING * usual)
    corners[:, 0] -= pad
    corners[:, 1] += pad
    return corners


def to_pixels(X: Floats, image: Ints, corners: Floats | None, unit: str | None, source: str) -> Floats:
    """Clicks that are percent or fractions of the box, in the box's own unit."""
    if unit in (None, "pixels"):
        return X
    whole = 100.0 if unit == "percent" else 1.0
    if corners is None:
        raise ParameterError(f"unit is {unit!r}, so a box is needed that they are {unit} of. Give {option('box')}")
    if X.min() < 0 or X.max() > whole:
        worst = X.ravel()[np.argmax(np.abs(X - 0.5 * whole))]
        raise DataError(f"unit is {unit!r}, but {source} has a coordinate of {worst:g}. Are they pixels?")
    low = corners[image, 0]
    return np.asarray(low + X / whole * (corners[image, 1] - low))


def check_units(X: Floats, image: Ints, worker: Ints, corners: Floats | None, workers: pl.Series, source: str) -> None:
    """Refuse a table in which some workers seem to have given percent where others gave pixels."""
    if corners is None:
        corners = padded(X, image, int(image.max()) + 1)
    large = ((corners[image, 1] - corners[image, 0]) > 200).any(1) & (corners[image, 0] > -100).all(1)
    small = ((X >= 0) & (X <= 100)).all(1)
    n = np.bincount(worker[large], minlength=len(workers))
    inside = np.bincount(worker[large & small], minlength=len(workers))
    others = (inside.sum() - inside + 1) / (n.sum() - n + 2)  # share of the others' clicks that lie there
    with np.errstate(divide="ignore"):
        odd = (n >= 5) & (inside == n) & (n * np.log(others) < np.log(SURE)) & (n < n.sum())
    for w in np.flatnonzero(odd).tolist():  # who gave up in a corner did not fill the range of per cents
        own = X[(worker == w) & large]
        odd[w] = (own.min(0) < 25).all() and (own.max(0) > 75).all()
    if odd.any():
        w = int(np.argmax(odd))
        raise DataError(
            f"in {source} all {int(n[w])} clicks of worker {workers[w]!r} lie in 0 to 100, while images are "
            f"larger and only {others[w]:.0%} of the others' clicks do ({int(odd.sum())} such). Percent among "
            f"pixels? Mend the table, or say that all are pixels ({option('unit', 'pixels')})"
        )
