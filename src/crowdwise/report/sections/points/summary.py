"""The summary of objects found from clicks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ....result import PointsResult
from ...glossary import DOUBTFUL_OBJECT
from ...page import BaseSummary, Language, Tile
from ...registry import summary
from ...text import NOT_KNOWN, count, many, numeric, percent


@dataclass(frozen=True, kw_only=True)
class PointsSummary(BaseSummary):
    rows_are, heads = "clicks", ("Clicks", "Reliability")

    clicks: int

    @property
    def title(self) -> str:
        return f"Objects found from {many(self.clicks, 'click')}"

    @property
    def terms(self) -> Sequence[str]:
        return (*super().terms, "click", "object", "on no object", "reliability", "doubtful")


def is_doubtful() -> pl.Expr:
    """Select whether objects are doubtful."""
    return (numeric("probability") < DOUBTFUL_OBJECT).fill_null(True)


@summary("points")
def summarise(result: PointsResult, language: Language) -> PointsSummary:
    """Return the summary of a result of clicks."""
    images, clicks, objects = result.images.height, result.clicks.height, result.objects.height
    sizes = ", ".join([many(images, "image"), many(result.workers.height, "worker"), many(objects, "object")])
    counted = f"{many(clicks, 'click')}: {sizes}"
    return PointsSummary.of(result, language, counted=counted, tiles=_tiles(result), clicks=clicks)


def _tiles(result: PointsResult) -> list[Tile]:
    images, objects, clicks = result.images, result.objects, result.clicks
    off, empty = clicks["object"].null_count(), images.filter(pl.col("objects").cast(pl.Int64) == 0).height
    reliability = result.workers.select(numeric("skill")).to_series().drop_nulls().to_numpy()
    p = objects.select(numeric("probability")).to_series().drop_nulls().to_numpy()
    unreal = many(round(float((1 - p).sum())), "object")
    with_objects = images.height - empty
    return [
        Tile(
            "Objects found",
            count(objects.height),
            f"{objects.height / with_objects:.1f} per image with objects" if with_objects else "",
            "Places where the clicks of several workers gather.",
        ),
        Tile(
            "Images",
            count(images.height),
            f"{count(empty)} without objects" if empty else "all with objects",
            "Images that workers looked at, with or without a click.",
        ),
        Tile(
            "Clicks on no object",
            percent(off / clicks.height) if clicks.height else NOT_KNOWN,
            f"{count(off)} of {count(clicks.height)}",
            "Clicks that are more likely to belong to no object than to any object.",
        ),
        Tile(
            "Median reliability",
            percent(float(np.median(reliability))) if len(reliability) else NOT_KNOWN,
            f"of {many(result.workers.height, 'worker')}",
            "Reliability is the share of a worker's clicks that are on objects. Half of the workers are above it.",
        ),
        Tile(
            "Doubtful objects to review",
            count(int(objects.select(is_doubtful().sum()).item())),
            f"probability below {percent(DOUBTFUL_OBJECT, 0)}; about {unreal} may not be real",
            "An expert, or another worker, helps most here.",
        ),
    ]  # fmt: skip
