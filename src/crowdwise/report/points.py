"""The page of objects found from clicks: from a result to the plain values that are shown. Totals are of everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ..errors import for_python, for_shell
from .frame import Language, Tile, frame_of, reports, summary_fields
from .points_images import images_section
from .points_page import PointsPage, PointsSummary
from .points_people import workers_section
from .points_search import methods_section, search_section
from .points_words import DOUBTFUL, is_doubtful
from .words import NOT_KNOWN, count, many, numbers, percent

if TYPE_CHECKING:
    from ..result import PointsResult


def summarise_points(result: PointsResult, language: Language) -> PointsSummary:
    """The summary of a result of clicks."""
    images, clicks, objects = result.images.height, result.clicks.height, result.objects.height
    said = ", ".join([many(images, "image"), many(result.workers.height, "worker"), many(objects, "object")])
    return PointsSummary(
        **summary_fields(result, language),
        counted=f"{many(clicks, 'click')}: {said}",
        clicks=clicks,
        tiles=_tiles(result),
    )


def _tiles(result: PointsResult) -> list[Tile]:
    images, objects, clicks = result.images, result.objects, result.clicks
    off, empty = clicks["object"].null_count(), images.filter(pl.col("objects").cast(pl.Int64) == 0).height
    reliable = result.workers.select(numbers("skill")).to_series().drop_nulls().to_numpy()
    p = objects.select(numbers("probability")).to_series().drop_nulls().to_numpy()
    unreal = many(round(float((1 - p).sum())), "object")
    some = images.height - empty
    return [
        Tile(
            "Objects found",
            count(objects.height),
            f"{objects.height / some:.1f} an image that has any" if some else "",
            "Places where the clicks of several workers gather.",
        ),
        Tile(
            "Images",
            count(images.height),
            f"{count(empty)} without any object" if empty else "all with objects",
            "Images that workers looked at, with or without a click.",
        ),
        Tile(
            "Clicks on no object",
            percent(off / clicks.height) if clicks.height else NOT_KNOWN,
            f"{count(off)} of {count(clicks.height)}",
            "Clicks that more probably belong to no object than to any.",
        ),
        Tile(
            "Median reliability",
            percent(float(np.median(reliable))) if len(reliable) else NOT_KNOWN,
            f"of {many(result.workers.height, 'worker')}",
            "Half of the workers have a larger share of their clicks on objects, half a smaller one.",
        ),
        Tile(
            "Doubtful objects to review",
            count(int(objects.select(is_doubtful().sum()).item())),
            f"probability below {percent(DOUBTFUL, 0)}; about {unreal} in all may not be real",
            "A look by an expert, or another worker, helps here most.",
        ),
    ]  # fmt: skip


@reports("points", summary=summarise_points)
def points_page(
    result: PointsResult,
    *,
    pictures: str | Path | None = None,
    judged: Sequence[Mapping[str, Any]] | None = None,
    command: str | None = None,
) -> PointsPage:
    """The page of objects found from clicks.

    `pictures` is a folder with files named as the images (with or without .png, .jpg, .jpeg, .webp, .gif), which are
    shown under the clicks; `judged` are methods compared with the truth: `method`, `success` (share of runs), `ase`
    (errors of the centres, one per run) and `mae` (of reliabilities); `command` is the line that makes the result again
    (default: a line of Python).
    """
    return PointsPage(
        **frame_of(result, command),
        kind="points",
        summary=summarise_points(result, for_python if command is None else for_shell),
        images=images_section(result, None if pictures is None else Path(pictures)),
        workers=workers_section(result.workers),
        search=search_section(result),
        methods=methods_section(judged) if judged else None,
    )
