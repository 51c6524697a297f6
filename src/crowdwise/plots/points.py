"""Charts of clicks: workers, objects by probability, and an image with its clicks and objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.patheffects import withStroke

from ..errors import FileError, ParameterError
from ..result import PointsResult
from .chart import Chart
from .probabilities import Words, probability_chart
from .registry import chart
from .style import BLUE, INK, ORANGE, canvas, legend
from .text import count, many, shown
from .workers import TOP, skill_chart

DOUBTFUL = 0.9  # probability below which an object is drawn as doubtful
NUMBERED_OBJECTS = 150  # of an image, up to which their numbers are drawn
LONGEST_TITLE = 60  # characters of the name of an image in its title
SIDE = 7.2  # inches of the longer side of an image
VECTOR_CLICKS = 5000  # of an image, from which on the clicks are drawn as pixels also in SVG and PDF


@chart("points", "workers")
def workers_chart(result: PointsResult, *, top: int = TOP, workers: Any = None) -> Chart:
    """Reliability with its 95 % interval, best first; `top` workers, or those of a list `workers`."""
    axis = "reliability: share of the worker's clicks that are on objects"
    return skill_chart(result, top, workers, word="reliability", axis=axis, guessing=None, answers="clicks")


@chart("points", "tasks")
def tasks_chart(result: PointsResult) -> Chart:
    """How probable it is that the objects are real, and how many are expected not to be."""
    p = result.objects["probability"].fill_nan(None).drop_nulls().to_numpy().astype(np.float64)
    real = ("expected to be real", "expected not to be real", "are expected not to be real")
    words = Words("objects", "probability that the object is real", *real)
    note = f"Objects of {many(result.answers.n_images, 'image')}. Expected: one less the probability, added up."
    return probability_chart(p, words, note)


@chart("points", "image")
def image_chart(result: PointsResult, *, image: Any = None, picture: Any = None) -> Chart:
    """Clicks and objects of one `image` (default: the one with most doubtful objects), over its `picture`: an array
    (height, width) or (height, width, 3), or a file."""
    name = _most_doubtful(result) if image is None else image
    objects = result.of(name)
    clicks = result.clicks.filter(pl.col("image") == name)
    row = result.images.filter(pl.col("image") == name).row(0, named=True)
    x, y = result.answers.axes[0], (*result.answers.axes, "")[1]  # a line has no second axis
    pixels = None if picture is None else _pixels(picture)
    left, top, right, bottom = _frame(result, row, x, y, pixels)
    off = clicks["object"].null_count()
    title = f"Image {shown(name, LONGEST_TITLE)}: {many(objects.height, 'object')} from {many(clicks.height, 'click')}"
    note = "Ellipses hold about 86 of 100 clicks on their object; numbers are those of result.objects."
    if len(result.answers.axes) > 2:
        note += f" Drawn are {shown(x)} and {shown(y)}; clicks have {len(result.answers.axes)} coordinates."
    wide, high = _size(right - left, bottom - top)
    figure, axes = canvas(high + 1.9, title, note, width=wide + 0.8)
    if pixels is not None:
        axes.imshow(pixels, cmap="gray", extent=(left, right, bottom, top), alpha=0.75, aspect="equal")
    _clicks(axes, clicks, x, y)
    doubtful = _objects(axes, objects, x, y)
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.set_aspect("equal")
    axes.spines[:].set_visible(True)
    axes.set_xlabel(shown(x))
    axes.set_ylabel(shown(y) if y else "")
    axes.tick_params(labelleft=bool(y), left=bool(y))
    legend(axes, columns=2)
    said = f"{many(off, 'click')} on no object; {many(doubtful, 'object')} with a probability below 90\u202f%."
    return Chart(title, f"{title}. {said}", objects, figure)


def _most_doubtful(result: PointsResult) -> Any:
    doubts = (1 - result.objects["probability"].fill_null(0.0).to_numpy()).clip(0, 1)
    per_image = np.bincount(result.image_of, doubts, minlength=result.answers.n_images)
    return result.answers.images[int(per_image.argmax())]


def _pixels(picture: Any) -> Any:
    if isinstance(picture, str | Path):
        from matplotlib.image import imread

        try:
            return imread(picture)
        except (OSError, ValueError, SyntaxError) as error:
            raise FileError(f"cannot read a picture from {picture}: {error}") from error
    pixels = np.asarray(picture)
    if pixels.dtype.kind not in "buif" or not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (3, 4))):
        raise ParameterError(
            f"picture has shape {pixels.shape}; wanted is (height, width) or (height, width, 3), or the name of a file"
        )
    return pixels


def _frame(result: PointsResult, row: dict[str, Any], x: str, y: str, pixels: Any) -> tuple[float, float, float, float]:
    """Left, top, right, bottom: the box of the image, or the size of its picture where none was given."""
    if pixels is not None and result.answers.box_from == "clicks":
        return 0.0, 0.0, float(pixels.shape[1]), float(pixels.shape[0])
    left, right = float(row[f"{x}0"]), float(row[f"{x}1"])
    if not y:
        return left, (left - right) / 8, right, (right - left) / 8
    return left, float(row[f"{y}0"]), right, float(row[f"{y}1"])


def _size(width: float, height: float) -> tuple[float, float]:
    """Inches of an image: the longer side is SIDE, the shorter one long enough to hold the words around it."""
    longer = max(width, height, 1e-12)
    return max(SIDE * width / longer, 0.6 * SIDE), max(SIDE * height / longer, 0.3 * SIDE)


def _places(table: pl.DataFrame, x: str, y: str) -> tuple[Any, Any]:
    return table[x].to_numpy(), table[y].to_numpy() if y else np.zeros(table.height)


def _clicks(axes: Axes, clicks: pl.DataFrame, x: str, y: str) -> None:
    on = clicks["object"].is_not_null()
    looks: dict[str, Any] = {"zorder": 2, "rasterized": clicks.height > VECTOR_CLICKS}
    size = 14 if clicks.height < 500 else 7
    kinds: tuple[tuple[pl.Series, str, dict[str, Any]], ...] = (
        (on, "clicks on objects", {"s": size, "color": BLUE, "alpha": 0.75, "lw": 0}),
        (~on, "clicks on no object", {"s": 1.6 * size, "color": ORANGE, "marker": "x", "lw": 0.9}),
    )
    for mask, name, own in kinds:
        part = clicks.filter(mask)
        if part.height:
            across, down = _places(part, x, y)
            axes.scatter(across, down, label=f"{name} ({count(part.height)})", **own, **looks)


def _objects(axes: Axes, objects: pl.DataFrame, x: str, y: str) -> int:
    """Draw objects as ellipses of two standard deviations, doubtful ones dashed; how many those are."""
    doubtful = (objects["probability"].fill_nan(None).fill_null(0.0) < DOUBTFUL).to_numpy()
    px, py = _places(objects, x, y)
    width, height, angle = _ellipses(objects, x, y)
    for mask, dash, name in ((~doubtful, "-", "objects"), (doubtful, (0, (2, 1.5)), "doubtful objects")):
        if not mask.any():
            continue
        ellipses = EllipseCollection(
            width[mask], height[mask], angle[mask], units="xy", offsets=np.column_stack([px, py])[mask],
            offset_transform=axes.transData, facecolor="none", edgecolor=INK, linewidth=1.1, linestyle=dash, zorder=3,
            path_effects=[withStroke(linewidth=2.4, foreground="white", alpha=0.8)],
        )  # fmt: skip
        axes.add_collection(ellipses)
        axes.plot([], [], color=INK, ls=dash, lw=1.1, label=f"{name} ({count(int(mask.sum()))})")
    if objects.height <= NUMBERED_OBJECTS:
        size = 8 if objects.height <= 40 else 6
        for number, a, b in zip(objects["object"].to_list(), px, py, strict=True):
            if np.isfinite([a, b]).all():
                axes.annotate(
                    str(number), (a, b), (4, 4), textcoords="offset points", fontsize=size, color=INK, zorder=4,
                    bbox={"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.7},
                )  # fmt: skip
    return int(doubtful.sum())


def _ellipses(objects: pl.DataFrame, x: str, y: str) -> tuple[Any, Any, Any]:
    """Both axes of two standard deviations to each side, and the angle in degrees."""
    if not y:
        size = 4 * np.sqrt(np.maximum(objects[f"var_{x}"].to_numpy(), 0))
        return size, size, np.zeros(len(size))
    a, b, c = (objects[name].to_numpy() for name in (f"var_{x}", f"cov_{x}{y}", f"var_{y}"))
    middle, apart = (a + c) / 2, np.hypot((a - c) / 2, b)
    long, short = (4 * np.sqrt(np.maximum(var, 0)) for var in (middle + apart, middle - apart))
    return long, short, np.degrees(np.arctan2(2 * b, a - c) / 2)
