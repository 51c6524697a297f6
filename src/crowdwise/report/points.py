"""The page of objects found from clicks: from a result to the plain values that are shown. Totals are of everything.

`page/src/points-data.ts` mirrors the dataclasses. Long lists of clicks are kept as columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from . import frame
from .frame import BasePage, BaseSummary, Language, Search, Tile, reports
from .points_images import DOUBTFUL, Images, images_section, is_doubtful
from .words import LONGEST, NOT_KNOWN, count, known, many, numbers, percent, quoted, short

if TYPE_CHECKING:
    from ..result import PointsResult

CURVE = 300  # steps shown at most
GLOSSARY = [
    ("click", "A point that one worker set in one image."),
    ("worker", "An annotator: whoever looked at images and clicked."),
    ("object", "What clicks gather around: where several reliable workers click, something seems to be."),
    ("probability of an object", "How sure it is that the object is real, given all clicks and the workers behind."),
    ("doubtful", f"An object whose probability is below {percent(DOUBTFUL, 0)}: worth a look."),
    ("supporters", "Workers with a click that belongs to the object."),
    ("spread", "How far clicks lie around their object: one standard deviation, in units of the coordinates."),
    ("noise", "How far a worker's clicks lie around objects, against those of others: 1 is ordinary, 2 twice as far."),
    ("two-sigma ellipse", "Where about 86 of 100 clicks on the object fall."),
    ("on no object", "A click that more probably belongs to no object than to any: an outlier."),
    ("reliability", "The share of a worker's clicks that are on objects."),
    ("hit rate", "Of the objects in the images that a worker looked at, the share that the worker clicked."),
    ("interval", "The range that holds the true value 95 times in 100."),
    ("iteration", "One pass over all clicks while objects and reliabilities are found."),
    ("criterion", "What tells how many objects there are: how well they fit the clicks, less a price for each object."),
]
GLOSSARY_TRUTH = [
    ("success", "A run that finds as many objects as there are, each nearest to another true one."),
    ("ASE", "Average square error: of the centres found, in runs that are a success."),
    ("MAE", "Mean absolute error of the reliabilities."),
]


@dataclass(frozen=True, kw_only=True)
class PointsSummary(BaseSummary):
    rows_are, heads = "clicks", ("Clicks", "Reliability")

    clicks: int


@dataclass(frozen=True)
class PointsWorker:
    """A worker, as in `PointsResult.workers`."""

    worker: str
    rank: int | None  # by the lower end of reliability
    images: int
    clicks: int
    reliability: float | None  # share of the clicks that are on objects
    low: float | None
    high: float | None
    hit_rate: float | None  # share of the objects that were clicked
    hit_low: float | None
    hit_high: float | None
    spread: float | None  # of the clicks around objects, against that of others: 1 is ordinary


@dataclass(frozen=True)
class PointsWorkers:
    says: str
    total: int
    rows: list[PointsWorker]


@dataclass(frozen=True)
class Method:
    """A method held against the truth, over many runs."""

    method: str
    success: float | None  # share of the runs that found every object, and no other
    mae: float | None  # mean absolute error of reliabilities
    runs: int  # with an error
    median: float | None  # of the errors
    curve: list[tuple[float, float]]  # error, and the share of runs with at most that


@dataclass(frozen=True)
class Methods:
    says: str
    rows: list[Method]


@dataclass(frozen=True, kw_only=True)
class PointsPage(BasePage):
    """Everything on the page."""

    template, words = "points.html", GLOSSARY

    images: Images
    workers: PointsWorkers
    search: Search
    methods: Methods | None  # where the truth is known

    @property
    def glossary(self) -> Sequence[tuple[str, str]]:
        return GLOSSARY + (GLOSSARY_TRUTH if self.methods else [])


def summarise_points(result: PointsResult, language: Language) -> PointsSummary:
    """The summary of a result of clicks."""
    images, clicks, objects = result.images.height, result.clicks.height, result.objects.height
    said = ", ".join([many(images, "image"), many(result.workers.height, "worker"), many(objects, "object")])
    counted = f"{many(clicks, 'click')}: {said}"
    return PointsSummary.of(result, language, counted=counted, tiles=_tiles(result), clicks=clicks)


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
    return PointsPage.of(
        result,
        command,
        images=images_section(result, None if pictures is None else Path(pictures)),
        workers=workers_section(result.workers),
        search=search_section(result),
        methods=methods_section(judged) if judged else None,
    )


def workers_section(table: pl.DataFrame) -> PointsWorkers:
    names = ("skill", "low", "high", "hit_rate", "hit_low", "hit_high")
    shown, which = frame.workers_shown(table, (*names, "spread"))
    differ = table["spread"].drop_nulls().n_unique() > 1  # models without noise of workers say the same of all
    rows = [
        PointsWorker(
            worker=short(row["worker"], LONGEST),
            rank=row["rank"],
            images=row["images"],
            clicks=row["answers"],
            spread=known(row["spread"], 3) if differ else None,
            **{"reliability" if name == "skill" else name: known(row[name], 4) for name in names},
        )
        for row in shown.iter_rows(named=True)
    ]
    return PointsWorkers(f"{_workers_say(table)}{which}.", table.height, rows)


def _workers_say(table: pl.DataFrame) -> str:
    skill, workers = table.select(numbers("skill")).to_series().drop_nulls(), many(table.height, "worker")
    if skill.is_empty():
        return f"{workers}; the reliability of none is known"
    low, high = (percent(float(skill.quantile(q, "linear") or 0.0), 0) for q in (0.1, 0.9))
    if table.height >= 10:
        return f"Eight in ten of the {workers} have between {low} and {high} of their clicks on objects"
    least, most = (percent(float(end), 0) for end in (skill.min(), skill.max()))  # type: ignore[arg-type]
    return f"The share of clicks on objects goes from {least} to {most} among {workers}"


def search_section(result: PointsResult) -> Search:
    trace, best = result.trace, result.best
    criterion = short(result.criterion, LONGEST)
    rows = frame.search_rows(trace, "objects")
    if not rows:
        return Search("The objects were found in one go: there is no search to show.", criterion, None, [])
    taken = next((row for row in rows if row[0] == best), None)
    at = taken or rows[-1]
    found = "" if at[2] is None else f", with {many(round(at[2]), 'object')}"
    says = (
        f"The search took {many(len(rows), 'iteration')}; its answer is that of iteration {count(int(at[0]))}{found}."
    )
    if len(rows) > frame.ITERATIONS:
        kept = set(frame.spread(len(rows), frame.ITERATIONS))
        rows = [row for n, row in enumerate(rows) if n in kept or row is taken]
    return Search(says, criterion, None if taken is None else taken[0], rows)


def methods_section(judged: Sequence[Mapping[str, Any]]) -> Methods:
    rows = [_method(each) for each in judged]
    first = max(rows, key=lambda row: -1.0 if row.success is None else row.success)
    says = "Methods held against the truth."
    if first.success is not None:
        says = f"{quoted(first.method)} succeeds most often: in {percent(first.success)} of the runs."
    return Methods(says, rows)


def _method(told: Mapping[str, Any]) -> Method:
    errors = np.sort(np.asarray(told.get("ase") or [], float))
    finite = errors[np.isfinite(errors)]
    curve = [(float(f"{finite[n]:.4g}"), round((n + 1) / len(errors), 4)) for n in frame.spread(len(finite), CURVE)]
    middle = float(f"{np.median(finite):.4g}") if len(finite) else None
    success, mae = (known(told.get(name), 4) for name in ("success", "mae"))
    return Method(short(told["method"], LONGEST), success, mae, len(errors), middle, curve)
