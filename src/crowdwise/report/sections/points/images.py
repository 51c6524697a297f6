"""Images with their objects, clicks and pictures; those with most doubtful objects first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ....errors import ParameterError, option
from ....io import read_content
from ....metrics import Matching, match_images
from ....result import PointsResult
from ...parts import Box
from ...pictures import content_pictures
from ...registry import section
from ...text import MAX_NAME_CHARS, count, decimals_for, many, rounded, rounded_column, short
from .summary import is_doubtful

MAX_IMAGES_SHOWN = 50
MAX_CLICKS_SHOWN = 200_000  # and objects, over all images
EMPTY_BOX = Box(0.0, 0.0, 1.0, 1.0)  # of an image of unknown size without clicks


class Ellipse(NamedTuple):
    """Two standard deviations around an object."""

    long: float  # half axis
    short: float  # half axis
    angle: float  # of the long axis, in degrees from x towards y


@dataclass(frozen=True)
class ObjectRow:
    """An object of an image."""

    object: int
    x: float
    y: float
    probability: float | None  # that it is real
    doubtful: bool
    clicks: float | None  # expected number
    supporters: int | None  # workers who clicked it
    share: float | None  # of the workers who looked at the image
    spread: float | None
    ellipse: Ellipse | None
    matched: bool | None  # with a true object; None: there is no truth


class TrueObject(NamedTuple):
    x: float
    y: float
    object: int | None  # found there; None: missed


@dataclass(frozen=True)
class Clicks:
    """The clicks on an image, as columns."""

    worker: list[int]  # number in Images.workers
    x: list[float]
    y: list[float]
    object: list[int]  # 0: none
    probability: list[float | None]  # of that object
    outlier: list[float | None]  # probability that the click is on no object


@dataclass(frozen=True)
class ImageRow:
    image: str
    jobs: int  # workers who looked at it
    box: Box
    total: int  # clicks, of which some may be omitted below
    off: int  # clicks on no object
    clicks: Clicks
    objects: list[ObjectRow]
    picture: str | None  # data URI
    text: str | None  # what the image is about
    truth: list[TrueObject] | None


@dataclass(frozen=True)
class Images:
    headline: str
    notes: list[str]  # what is not shown, and why
    total: int
    measured: bool  # boxes are known; otherwise they are those of the clicks
    workers: list[str]  # whose clicks are shown
    reliability: list[float | None]  # of these workers
    rows: list[ImageRow]  # most doubtful objects first


@section(
    "points", "images", order=10, title="Images",
    intro="The clicks of all workers, and the objects found from them. An ellipse holds most clicks on its object; the "
          "number beside it is that of the object in the table. Images with most doubtful objects come first.",
    terms=("object", "click", "probability", "doubtful", "ellipse", "spread", "on no object"),
)  # fmt: skip
def images(
    result: PointsResult,
    *,
    pictures: str | Path | None = None,
    content: Any = None,
    truth: Any = None,
    within: float | None = None,
) -> Images | None:
    """`pictures` is a folder with files named as the images, with or without .png, .jpg, .jpeg, .webp or .gif;
    `content` is what `crowdwise.read_content` returns, or a table or mapping that it takes;
    `truth` is a table of true objects (image, x, y), which match objects found at a distance of up to `within`."""
    about = read_content(content, pictures)
    about.check(result.answers.images.to_list(), "image")
    axes = result.answers.axes
    true = _truth(result, truth, within)
    table = _by_doubt(result)
    if table.is_empty():
        return None
    shown, thinned = _fitting(table)
    keys = shown["key"].to_list()
    objects = _parts(result.objects.with_columns(doubtful=is_doubtful()), keys)
    clicks = _parts(result.clicks, keys)
    workers = result.workers.select(key=pl.col("worker").cast(pl.String), reliability="skill")
    used = pl.concat([part.select(key=pl.col("worker").cast(pl.String)) for part in clicks.values()])
    used = used.unique(maintain_order=True).join(workers, on="key", how="left", maintain_order="left")
    code = {key: n for n, key in enumerate(used["key"].to_list())}
    found, lacking = content_pictures(about, keys, "image")
    rows = [
        _image(row, clicks[row["key"]], objects[row["key"]], axes, code, picture, about.text(row["key"]), true)
        for row, picture in zip(shown.iter_rows(named=True), found, strict=True)
    ]
    measured = result.answers.box_from not in ("clicks", "data")
    return Images(
        headline=_headline(table),
        notes=[*_omitted(table, shown, thinned), *lacking, *_axes_note(axes), *_box_note(measured)],
        total=table.height,
        measured=measured,
        workers=[short(key, MAX_NAME_CHARS) for key in code],
        reliability=rounded_column(used["reliability"], 4),
        rows=rows,
    )


def _by_doubt(result: PointsResult) -> pl.DataFrame:
    """Return the images by their number of doubtful objects, most first; `key` is the name as text."""
    key = pl.col("image").cast(pl.String).alias("key")
    doubts = result.objects.group_by(key).agg(doubtful=is_doubtful().sum())
    images: pl.DataFrame = result.images
    table = images.with_columns(key).join(doubts, on="key", how="left", maintain_order="left")
    table = table.with_columns(pl.col("doubtful").fill_null(0))
    return table.sort("doubtful", "objects", "clicks", descending=True, maintain_order=True)


def _fitting(table: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
    """Return the images that fit, at least the first, and whether the clicks of that one are too many."""
    room, kept = MAX_CLICKS_SHOWN, list[int]()
    for n, cost in enumerate((table["clicks"] + table["objects"]).to_list()):
        if len(kept) < MAX_IMAGES_SHOWN and cost <= room:
            kept.append(n)
            room -= cost
    if kept:
        return table[kept], False
    return table[:1], int(table["clicks"][0]) > MAX_CLICKS_SHOWN


def _parts(frame: pl.DataFrame, keys: list[str]) -> dict[str, pl.DataFrame]:
    """Return the rows of each of these images."""
    key = pl.col("image").cast(pl.String).alias("key")
    found = frame.with_columns(key).filter(pl.col("key").is_in(keys)).partition_by("key", as_dict=True)
    return {key: found.get((key,), frame.clear()) for key in keys}


def _image(
    row: dict[str, Any],
    clicks: pl.DataFrame,
    objects: pl.DataFrame,
    axes: Sequence[str],
    code: dict[str, int],
    picture: str | None,
    text: str | None,
    true: dict[str, Matching],
) -> ImageRow:
    match = true.get(row["key"])
    partners = {} if match is None else dict(zip(match.columns.tolist(), match.rows.tolist(), strict=True))
    paired = set(partners.values())
    box = _box(row, axes)
    digits = decimals_for(max(box.right - box.left, box.bottom - box.top))
    off = clicks["object"].null_count()
    if clicks.height > MAX_CLICKS_SHOWN:
        clicks = clicks[np.linspace(0, clicks.height - 1, MAX_CLICKS_SHOWN).astype(int)]
    return ImageRow(
        image=short(row["key"], MAX_NAME_CHARS),
        jobs=row["jobs"],
        box=box,
        total=row["clicks"],
        off=off,
        clicks=Clicks(
            worker=[code[key] for key in clicks["worker"].cast(pl.String).to_list()],
            x=rounded_column(clicks[axes[0]], digits),
            y=rounded_column(clicks[axes[1]], digits) if len(axes) > 1 else [0.0] * clicks.height,
            object=clicks["object"].fill_null(0).cast(pl.Int64).to_list(),
            probability=rounded_column(clicks["probability"], 3),
            outlier=rounded_column(clicks["outlier"], 3),
        ),
        objects=[
            _object(each, axes, row["jobs"], digits, None if match is None else n in paired)
            for n, each in enumerate(objects[:MAX_CLICKS_SHOWN].iter_rows(named=True))
        ],
        picture=picture,
        text=text,
        truth=None if match is None else _true_objects(match, partners, objects["object"].to_list(), digits),
    )


def _truth(result: PointsResult, truth: Any, within: float | None) -> dict[str, Matching]:
    """Return the true objects of each image, matched with those found; an image that the truth omits has none."""
    if truth is None:
        return {}
    if within is None:
        raise ParameterError(
            f"the truth needs a distance within which an object found matches a true one; say {option('within', 4)}"
        )
    return {str(name): each for name, each in match_images(result, truth, within=within).items()}


def _true_objects(match: Matching, partners: dict[int, int], numbers: list[int], digits: int) -> list[TrueObject]:
    places = match.true[:MAX_CLICKS_SHOWN].round(digits).tolist()
    return [
        TrueObject(place[0], place[1] if len(place) > 1 else 0.0, numbers[partners[n]] if n in partners else None)
        for n, place in enumerate(places)
    ]


def _box(row: dict[str, Any], axes: Sequence[str]) -> Box:
    """Return the frame of an image; points on a line get some height."""
    sides = [rounded(row.get(f"{axis}{end}"), 12) for end in (0, 1) for axis in (*axes[:2], "")[:2]]
    box = Box(*(EMPTY_BOX[n] if side is None else side for n, side in enumerate(sides)))
    height = (box.right - box.left) / 8
    return box if len(axes) > 1 else box._replace(top=-height, bottom=height)


def _object(row: dict[str, Any], axes: Sequence[str], jobs: int, digits: int, matched: bool | None) -> ObjectRow:
    supporters = None if row["supporters"] is None else int(row["supporters"])
    return ObjectRow(
        object=int(row["object"]),
        x=round(float(row[axes[0]]), digits),
        y=round(float(row[axes[1]]), digits) if len(axes) > 1 else 0.0,
        probability=rounded(row["probability"], 4),
        doubtful=row["doubtful"],
        clicks=rounded(row["clicks"], 1),
        supporters=supporters,
        share=None if supporters is None or not jobs else round(supporters / jobs, 4),
        spread=rounded(row["spread"], digits),
        ellipse=_ellipse(row, axes, digits),
        matched=matched,
    )


def _ellipse(row: dict[str, Any], axes: Sequence[str], digits: int) -> Ellipse | None:
    names = (f"var_{axes[0]}", f"cov_{axes[0]}{axes[1]}", f"var_{axes[1]}") if len(axes) > 1 else ()
    covariance = [rounded(row.get(name), 12) for name in names]
    if not covariance or None in covariance:
        spread = rounded(row["spread"], digits)
        return None if spread is None else Ellipse(2 * spread, 2 * spread, 0.0)
    xx, xy, yy = covariance
    mean, half = (xx + yy) / 2, math.hypot((xx - yy) / 2, xy)  # eigenvalues: mean plus and minus half
    long, short_ = (round(2 * math.sqrt(max(var, 0.0)), digits) for var in (mean + half, mean - half))
    return Ellipse(long, short_, round(math.degrees(math.atan2(2 * xy, xx - yy) / 2), 1))


def _headline(table: pl.DataFrame) -> str:
    doubtful, some = int(table["doubtful"].sum()), int((table["doubtful"] > 0).sum())
    found = f"{many(table.height, 'image')} with {many(int(table['objects'].sum()), 'object')}"
    if not doubtful:
        return f"{found}; none is doubtful."
    found += f"; {count(doubtful)} {'is' if doubtful == 1 else 'are'} doubtful"
    if some == 1:
        return f"{found}{', all in one image' if table.height > 1 else ''}."
    return f"{found}, in {many(some, 'image')}; the first of these images has {count(int(table['doubtful'][0]))}."


def _omitted(table: pl.DataFrame, shown: pl.DataFrame, thinned: bool) -> list[str]:
    notes = []
    if shown.height < table.height:
        others = int(table["clicks"].sum()) - int(shown["clicks"].sum())
        notes.append(
            f"{count(shown.height)} of {count(table.height)} images are shown, those with most doubtful objects; "
            f"the others, with {many(others, 'click')}, are in objects.csv and clicks.csv."
        )
    if thinned:
        notes.append(
            f"The image has too many clicks to show: {count(MAX_CLICKS_SHOWN)} of them are drawn. clicks.csv holds all."
        )
    return notes


def _axes_note(axes: Sequence[str]) -> list[str]:
    names = [short(axis, 40) for axis in axes]
    if len(axes) < 2:
        return [f"Points have one coordinate ({names[0]}): they lie on a line."]
    if len(axes) == 2:
        return []
    return [
        f"Points have {len(axes)} coordinates ({', '.join(names)}); the pictures show {names[0]} and {names[1]} only."
    ]


def _box_note(measured: bool) -> list[str]:
    return [] if measured else ["The size of the images is not known: the frame of each is that of its clicks."]
