"""The section on images: those worth a look, with their objects, clicks and pictures.

Names of images come from strangers, the folder of pictures from whoever makes the page. So a name leads to files of
that folder and to no others, whatever it holds; and what a file is, its first bytes say, not its name.
"""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ..errors import FileError
from .words import LONGEST, column, count, digits_of, known, many, numbers, short

if TYPE_CHECKING:
    from ..result import PointsResult

IMAGES, CLICKS = 50, 200_000  # shown at most
DOUBTFUL = 0.9  # probability below which an object is worth a look
ENDINGS = ("", ".png", ".jpg", ".jpeg", ".webp", ".gif")
ROOM = 20_000_000  # characters of all pictures in a page
MISSING = "No file of that name in the folder"
LARGE = f"Left out, as pictures may take {ROOM // 1_000_000} MB in all"
STRANGE = "No PNG, JPEG, WebP or GIF"


def is_doubtful() -> pl.Expr:
    """Of objects: whether they are worth a look."""
    return (numbers("probability") < DOUBTFUL).fill_null(True)


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
    ellipse: tuple[float, float, float] | None  # two sigma: both half axes, and the angle of the first in degrees


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
    """An image that can be looked at."""

    image: str
    jobs: int  # workers who looked at it
    box: tuple[float, float, float, float]  # left, top, right, bottom
    total: int  # clicks, of which some may be left out below
    off: int  # clicks on no object
    clicks: Clicks
    objects: list[ObjectRow]
    picture: str | None  # data URI


@dataclass(frozen=True)
class Images:
    says: str
    notes: list[str]  # what is not shown, and why
    total: int
    measured: bool  # boxes are known; otherwise they are those of the clicks
    workers: list[str]  # those whose clicks are shown
    reliability: list[float | None]  # of these
    rows: list[ImageRow]  # most doubtful objects first


def images_section(result: PointsResult, folder: Path | None) -> Images:
    axes = result.answers.axes
    table = _by_doubt(result)
    shown, thinned = _fitting(table)
    keys = shown["key"].to_list()
    objects = _parts(result.objects.with_columns(doubtful=is_doubtful()), keys)
    clicks = _parts(result.clicks, keys)
    workers = result.workers.select(key=pl.col("worker").cast(pl.String), reliability="skill")
    used = pl.concat([part.select(key=pl.col("worker").cast(pl.String)) for part in clicks.values()] or [_nobody()])
    used = used.unique(maintain_order=True).join(workers, on="key", how="left", maintain_order="left")
    code = {key: n for n, key in enumerate(used["key"].to_list())}
    pictures, lacking = ([None] * len(keys), []) if folder is None else pictures_of(keys, folder)
    rows = [
        _image(row, clicks[row["key"]], objects[row["key"]], axes, code, picture)
        for row, picture in zip(shown.iter_rows(named=True), pictures, strict=True)
    ]
    measured = result.answers.box_from not in ("clicks", "data")
    return Images(
        says=_images_say(table),
        notes=[*_left_out(table, shown, thinned), *lacking, *_axes_say(axes), *_box_says(measured)],
        total=table.height,
        measured=measured,
        workers=[short(key, LONGEST) for key in code],
        reliability=column(used["reliability"], 4),
        rows=rows,
    )


def _nobody() -> pl.DataFrame:
    return pl.DataFrame({"key": []}, schema={"key": pl.String})


def _by_doubt(result: PointsResult) -> pl.DataFrame:
    """The images with their number of doubtful objects, most of them first; `key` is the name as text."""
    key = pl.col("image").cast(pl.String).alias("key")
    doubts = result.objects.group_by(key).agg(doubtful=is_doubtful().sum())
    images: pl.DataFrame = result.images
    table = images.with_columns(key).join(doubts, on="key", how="left", maintain_order="left")
    table = table.with_columns(pl.col("doubtful").fill_null(0))
    return table.sort("doubtful", "objects", "clicks", descending=True, maintain_order=True)


def _fitting(table: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
    """The images that are shown: as many as there is room for, and the first of them at any rate; then whether its
    clicks are too many."""
    room, kept = CLICKS, list[int]()
    for n, cost in enumerate((table["clicks"] + table["objects"]).to_list()):
        if len(kept) < IMAGES and cost <= room:
            kept.append(n)
            room -= cost
    if kept or table.is_empty():
        return table[kept], False
    return table[:1], int(table["clicks"][0]) > CLICKS


def _parts(frame: pl.DataFrame, keys: list[str]) -> dict[str, pl.DataFrame]:
    """Rows of each of these images."""
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
) -> ImageRow:
    left, top, right, bottom = _box(row, axes)
    digits = digits_of(max(right - left, bottom - top))
    off = clicks["object"].null_count()
    if clicks.height > CLICKS:
        clicks = clicks[np.linspace(0, clicks.height - 1, CLICKS).astype(int)]
    return ImageRow(
        image=short(row["key"], LONGEST),
        jobs=row["jobs"],
        box=(left, top, right, bottom),
        total=row["clicks"],
        off=off,
        clicks=Clicks(
            worker=[code[key] for key in clicks["worker"].cast(pl.String).to_list()],
            x=column(clicks[axes[0]], digits),
            y=column(clicks[axes[1]], digits) if len(axes) > 1 else [0.0] * clicks.height,
            object=clicks["object"].fill_null(0).cast(pl.Int64).to_list(),
            probability=column(clicks["probability"], 3),
            outlier=column(clicks["outlier"], 3),
        ),
        objects=[_object(each, axes, row["jobs"], digits) for each in objects[:CLICKS].iter_rows(named=True)],
        picture=picture,
    )


def _box(row: dict[str, Any], axes: Sequence[str]) -> tuple[float, float, float, float]:
    """That of an image; where none is known, nobody clicked, and any will do. Points on a line get some height."""
    sides = [known(row.get(f"{axis}{end}"), 12) for end in (0, 1) for axis in (*axes[:2], "")[:2]]
    left, top, right, bottom = ((0.0, 0.0, 1.0, 1.0)[n] if side is None else side for n, side in enumerate(sides))
    return (left, top, right, bottom) if len(axes) > 1 else (left, (left - right) / 8, right, (right - left) / 8)


def _object(row: dict[str, Any], axes: Sequence[str], jobs: int, digits: int) -> ObjectRow:
    supporters = None if row["supporters"] is None else int(row["supporters"])
    return ObjectRow(
        object=int(row["object"]),
        x=round(float(row[axes[0]]), digits),
        y=round(float(row[axes[1]]), digits) if len(axes) > 1 else 0.0,
        probability=known(row["probability"], 4),
        doubtful=row["doubtful"],
        clicks=known(row["clicks"], 1),
        supporters=supporters,
        share=None if supporters is None or not jobs else round(supporters / jobs, 4),
        spread=known(row["spread"], digits),
        ellipse=_ellipse(row, axes, digits),
    )


def _ellipse(row: dict[str, Any], axes: Sequence[str], digits: int) -> tuple[float, float, float] | None:
    """Half axes and angle (of the first, from x towards y) of where clicks are two sigma away."""
    names = (f"var_{axes[0]}", f"cov_{axes[0]}{axes[1]}", f"var_{axes[1]}") if len(axes) > 1 else ()
    told = [known(row.get(name), 12) for name in names]
    if not told or None in told:
        spread = known(row["spread"], digits)
        return None if spread is None else (2 * spread, 2 * spread, 0.0)
    xx, xy, yy = (value or 0.0 for value in told)
    middle, apart = (xx + yy) / 2, math.hypot((xx - yy) / 2, xy)
    long, short_ = (round(2 * math.sqrt(max(var, 0.0)), digits) for var in (middle + apart, middle - apart))
    return long, short_, round(math.degrees(math.atan2(2 * xy, xx - yy) / 2), 1)


def _images_say(table: pl.DataFrame) -> str:
    if table.is_empty():
        return "There are no images."
    first, doubtful = int(table["doubtful"][0]), int(table["doubtful"].sum())
    says = f"{many(table.height, 'image')} with {many(int(table['objects'].sum()), 'object')}"
    if not doubtful:
        return f"{says}; none is doubtful."
    some = int((table["doubtful"] > 0).sum())
    says += f", of which {count(doubtful)} {'is' if doubtful == 1 else 'are'} doubtful"
    if some == 1:
        return f"{says}{', all in one image' if table.height > 1 else ''}."
    return f"{says}: they are in {many(some, 'image')}, and {count(first)} in the first of them."


def _left_out(table: pl.DataFrame, shown: pl.DataFrame, thinned: bool) -> list[str]:
    notes = []
    if shown.height < table.height:
        rest = int(table["clicks"].sum()) - int(shown["clicks"].sum())
        notes.append(
            f"{count(shown.height)} of {count(table.height)} images are here, those with most doubtful objects; "
            f"the others, with {many(rest, 'click')}, are in objects.csv and clicks.csv."
        )
    if thinned:
        notes.append(f"The image has too many clicks to show: {count(CLICKS)} of them are drawn. clicks.csv holds all.")
    return notes


def _axes_say(axes: Sequence[str]) -> list[str]:
    told = [short(axis, 40) for axis in axes]
    if len(axes) < 2:
        return [f"Points have one coordinate ({told[0]}): they lie on a line."]
    if len(axes) == 2:
        return []
    left = f"the pictures show {told[0]} and {told[1]}, and nothing of the others"
    return [f"Points have {len(axes)} coordinates ({', '.join(told)}); {left}."]


def _box_says(measured: bool) -> list[str]:
    return [] if measured else ["No size of the images was given: the frame of each is that of its clicks."]


def pictures_of(images: Sequence[str], folder: Path, room: int = ROOM) -> tuple[list[str | None], list[str]]:
    """The picture of each image as a data URI, first come first served, and what is to be said of those without."""
    if not folder.is_dir():
        raise FileError(f"no folder {folder} to take pictures from. Name the folder that holds the images")
    pictures: list[str | None] = []
    why: Counter[str] = Counter()
    for image in images:
        told = _picture(image, folder.resolve(), room)
        if told in (MISSING, LARGE, STRANGE):
            why[told] += 1
            pictures.append(None)
        else:
            room -= len(told)
            pictures.append(told)
    if not why:
        return pictures, []
    said = " ".join(f"{reason}: {count}." for reason, count in why.items())
    return pictures, [f"{len(images) - why.total()} of {len(images)} images lie over their picture. {said}"]


def _picture(image: str, folder: Path, room: int) -> str:
    """The data URI, or why there is none."""
    path = _file(image, folder)
    if path is None:
        return MISSING
    try:
        if 4 * path.stat().st_size // 3 > room:
            return LARGE
        data = path.read_bytes()
    except OSError:
        return MISSING
    kind = _kind(data)
    return STRANGE if kind is None else f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _file(name: str, folder: Path) -> Path | None:
    """A file of the folder by this name, with or without an ending; links that leave the folder lead nowhere."""
    ways = (PurePosixPath(name), PureWindowsPath(name))
    if not name.strip() or any(way.anchor or ".." in way.parts for way in ways):
        return None
    for ending in ENDINGS:
        try:
            path = (folder / f"{name}{ending}").resolve()
            if path.is_relative_to(folder) and path.is_file():
                return path
        except (OSError, ValueError, RuntimeError):  # too long, a zero byte, a loop of links
            continue
    return None


def _kind(data: bytes) -> str | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if data.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "gif"
    return "webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None
