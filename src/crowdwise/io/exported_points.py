"""The points of a question in an export, as a table for `Points`, with who looked at which image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from ..errors import DataError, option
from .formats.base import EMPTY, LABELS, OK, POINTS, SUBMITTED
from .judgements import FILE, Export, Made, Wanted, aside_reasons, models_among, nothing, workers_of

REPEATED = "repeated (earlier work of the same worker on the image)"
OTHER_SHAPE = "no point (a line, a polygon or another shape)"
SIZES = ("image_width", "image_height")


def point_table(
    export: Export, rows: pl.DataFrame, label: str | None, wanted: Wanted, options: Mapping[str, Any]
) -> Made:
    """Return the points of a question, or those with one label; rows that are not votes have a reason. A row without a
    place says that its worker saw nothing: it becomes a job."""
    notes, warnings = list[str](), list[str]()
    aside = aside_reasons(rows, export.format, wanted.keep)
    if not export.format.shown_to_all:
        aside = aside.set((rows["status"].cast(pl.String) == EMPTY) & aside.is_null(), "no answer")
    absent = (rows["status"].cast(pl.String) == EMPTY) & workers_of(rows).is_null()
    aside = aside.set(absent.fill_null(value=False) & aside.is_null(), "no answer")
    shown = export.frame if export.format.shown_to_all else rows
    counted = aside_reasons(shown, export.format, wanted.keep) if export.format.shown_to_all else aside
    looks = shown.filter(counted.is_null() & workers_of(shown).is_not_null())  # whoever submitted anything looked
    aside = aside.set(_repeated(rows, looks) & aside.is_null(), REPEATED)
    if "kind" in rows.columns:
        other = rows["kind"].is_not_null() & (rows["kind"].cast(pl.String) != POINTS)
        aside = aside.set(other & aside.is_null(), OTHER_SHAPE)
    if label is not None:
        own = (rows["label"].cast(pl.String) == label).fill_null(value=False)
        rows, aside = rows.filter(own), aside.filter(own)
    places = [rows[axis] if axis in rows.columns else nothing(axis, pl.Float64, rows.height) for axis in ("x", "y")]
    classes = [rows["label"].cast(pl.String).alias("class")] if "label" in rows.columns else []
    who = [rows["task"].cast(pl.String).alias("image"), workers_of(rows)]
    frame = pl.DataFrame([*who, *places, *classes, *models_among(rows, aside, notes), aside])
    placed = frame["x"].is_not_null()
    _check_unit(rows.filter(placed & aside.is_null()), export.names[0], options)
    drawn = rows.filter(placed & aside.is_null())["task"].cast(pl.String)
    jobs = {"jobs": _with_sizes(_jobs(looks), export.frame, drawn, notes, warnings)}
    listed = placed | aside.is_not_null()
    return Made(frame.filter(listed), rows.filter(listed), jobs if options.get("jobs") is None else {}, notes, warnings)


def _repeated(rows: pl.DataFrame, looks: pl.DataFrame) -> pl.Series:
    """Return whether a row belongs to a submission after which its worker made another one about the same image."""
    never = pl.Series([False]).new_from_index(0, rows.height)
    if "submission" not in looks.columns or "worker" not in looks.columns:
        return never
    order = [*([SUBMITTED] if SUBMITTED in looks.columns else []), FILE, "source_row"]
    both = looks.sort(*order, maintain_order=True).group_by("task", "worker")
    each = both.agg(pl.col("submission").n_unique().alias("count"), pl.col("submission").last().alias("last"))
    several = each.filter(pl.col("count") > 1).drop("count")
    if not several.height:
        return never
    last = rows.join(several, on=["task", "worker"], how="left", maintain_order="left")["last"]
    return (rows["submission"] != last).fill_null(value=False)


def _jobs(looks: pl.DataFrame) -> pl.DataFrame:
    """Return who looked at which image."""
    if "worker" not in looks.columns:
        return pl.DataFrame(schema={"image": pl.String, "worker": pl.String})
    jobs = looks.select(pl.col("task").cast(pl.String).alias("image"), pl.col("worker").cast(pl.String))
    return jobs.drop_nulls().unique().sort("image", "worker")


def with_looks(frame: pl.DataFrame) -> pl.DataFrame:
    """Return an export in which every submission was asked all questions about points, with a row without a place for
    each of these questions that a submission drew nothing for."""
    if "kind" not in frame.columns or "question" not in frame.columns or "worker" not in frame.columns:
        return frame
    asked = frame.filter(pl.col("kind") == POINTS).select("question").drop_nulls().unique(maintain_order=True)
    if not asked.height:
        return frame
    each = ["task", "worker", *(["submission"] if "submission" in frame.columns else [])]
    counted = pl.col("status").is_in([OK, EMPTY]) & pl.col("worker").is_not_null()
    about = [name for name in (*each, SUBMITTED, *SIZES, "source_row", FILE) if name in frame.columns]
    jobs = frame.filter(counted).unique(each, keep="last", maintain_order=True).select(about).join(asked, how="cross")
    drawn = frame.filter(counted & (pl.col("kind") == POINTS))
    absent = jobs.join(drawn, on=[*each, "question"], how="anti", nulls_equal=True, maintain_order="left")
    said = {"kind": POINTS, "status": OK}
    absent = absent.with_columns(**{name: pl.lit(value).cast(frame.schema[name]) for name, value in said.items()})
    if not (frame["kind"] == LABELS).any():  # submissions without any answer are all among these
        frame = frame.filter((pl.col("status") != EMPTY) | pl.col("worker").is_null())
    return pl.concat([frame, absent], how="diagonal")


def _with_sizes(
    jobs: pl.DataFrame, rows: pl.DataFrame, drawn: pl.Series, notes: list[str], warnings: list[str]
) -> pl.DataFrame:
    """Add the sizes of the images, if the file has one size for each image in `drawn`, on which something is marked. An
    image on which nobody marked anything gets the usual size if its own is not known."""
    if not set(SIZES) <= {*rows.columns}:
        return jobs
    sizes = rows.select(pl.col("task").cast(pl.String).alias("image"), *SIZES).drop_nulls().unique()
    if not sizes.height:
        return jobs
    if sizes["image"].is_duplicated().any():
        warnings.append("some image has two sizes; the sizes of the images are not used")
        return jobs
    joined = jobs.join(sizes, on="image", how="left", maintain_order="left")
    unknown = joined.filter(pl.col(SIZES[0]).is_null())["image"].unique()
    if unknown.is_in(drawn.implode()).any():
        warnings.append("the sizes of some images are not known; the sizes of the images are not used")
        return jobs
    if len(unknown):
        notes.append(f"{len(unknown)} image(s) without marks have no size in the file: the median size is used")
    median = sizes.select(pl.col(*SIZES).median()).row(0)
    usual = (pl.col(name).fill_null(value) for name, value in zip(SIZES, median, strict=True))
    return joined.with_columns(usual).rename(dict(zip(SIZES, ("width", "height"), strict=True)))


def _check_unit(places: pl.DataFrame, name: str, options: Mapping[str, Any]) -> None:
    """Refuse places in percent of images whose sizes are not known, unless the caller says how to take them."""
    if "percent" not in places.columns or options.get("unit") is not None:
        return
    percent = int(places["percent"].fill_null(value=False).sum())
    if not percent:
        return
    if percent < places.height:
        raise DataError(
            f"{percent} of {places.height} points in {name} are percent of images whose sizes are not in the file; the "
            "others are pixels. Correct the export, so that all have original_width and original_height"
        )
    raise DataError(
        f"the points in {name} are percent of the images, whose sizes are not in the file. Give the sizes: "
        f"{option('unit', 'percent')} and {option('box', 'SIZES.csv')}, a table with image, width and height; or "
        f"work in percent: {option('unit', 'pixels')} and {option('box', '0,0,100,100')}"
    )
