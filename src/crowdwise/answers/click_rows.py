"""From a frame to coded clicks: columns found, gaps counted, jobs known, nothing settled in silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..errors import ColumnError, DataError, DuplicateError, EmptyDataError, ParameterError
from ..kernels.layout import Floats, Ints
from .coding import as_text, code, settle
from .columns import POINT_NAMES, find, missing
from .frames import to_frame
from .intake import Dropped, quoted

Where = Callable[[int], str]


class Clicks:
    """The columns of a table of clicks, found and checked; rows without a place or a name are left out."""

    def __init__(
        self,
        frame: pl.DataFrame,
        given: Mapping[str, str | None],
        axes: Sequence[str] | None,
        source: str,
        where: Where,
    ) -> None:
        if frame.height == 0:
            raise EmptyDataError(f"no clicks in {source}: it has {frame.width} column(s) and no rows")
        named = dict(given)
        if axes is not None:
            if isinstance(axes, str) or len(axes) < 1 or len(set(axes)) < len(axes):
                raise ParameterError(f"axes is {axes!r}; give the columns of the coordinates, each once")
            for name in axes:
                if name not in frame.columns:
                    raise missing("x", name, frame.columns, source)
        required = ("image", "worker") if axes is not None else ("image", "worker", "x", "y")
        rest = [name for name in frame.columns if axes is None or name not in axes]
        self.columns, self.guessed = find(rest, named, source, POINT_NAMES, required)
        if axes is None:
            self.axes: tuple[str, ...] = tuple(role for role in ("x", "y", "z") if role in self.columns)
            places = [self.columns[role] for role in self.axes]
        else:
            for role in ("x", "y", "z"):
                self.columns.pop(role, None)
            self.axes = tuple(axes)
            places = list(axes)
            self.columns |= {name: name for name in axes}
        self.warnings: list[str] = []
        ids = {}
        for role in ("image", "worker"):
            ids[role], said = settle(frame[self.columns[role]], role, source)
            self.warnings += said
        values = [_numbers(frame[name], source, where) for name in places]
        bad = np.zeros(frame.height, bool)
        nowhere = ~np.isfinite(np.stack(values)).all(0)
        self.dropped: list[Dropped] = []
        for reason, mask in (
            ("no image", ids["image"].is_null().to_numpy()),
            ("no finite coordinates", nowhere),
        ):
            mask = mask & ~bad
            if mask.any():
                self.dropped.append(_dropped(reason, mask, frame, [*self.columns.values()], where))
            bad |= mask
        nobody = ids["worker"].is_null().to_numpy() & ~bad
        if nobody.any():
            raise ColumnError(
                f"{int(nobody.sum())} click(s) in {source} have no worker, the first at "
                f"{where(int(np.argmax(nobody)))}. Name who clicked (one name for all, if nobody knows)"
            )
        if bad.all():
            raise EmptyDataError(f"no clicks in {source}: {frame.height} row(s), none with an image and coordinates")
        self.rows, self.frame, self.source, self.where = np.flatnonzero(~bad), frame, source, where
        good = pl.Series(~bad)
        self.image, self.worker = ids["image"].filter(good), ids["worker"].filter(good)
        self.X = np.ascontiguousarray(np.stack(values, axis=1)[~bad])
        taken = {self.columns[role] for role in ("image", "worker")} | set(places)
        extras = frame.select(name for name in frame.columns if name not in taken)
        extras = extras.filter(good) if extras.width else extras
        roles = {name: role for role, name in self.columns.items() if name in extras.columns and role != name}
        extras = extras.rename({name: role for name, role in roles.items() if role not in extras.columns})
        own = {"image", "worker", "object", "probability", "outlier", *self.axes}
        self.extras = extras.rename({name: f"{name}_" for name in extras.columns if name in own})


def _numbers(column: pl.Series, source: str, where: Where) -> Floats:
    """A column of coordinates as numbers; a cell that is neither empty nor a number is refused."""
    plain = column
    if column.dtype == pl.Object:
        plain = pl.Series(column.name, [as_text(value) for value in column.to_list()], dtype=pl.String)
    if not (plain.dtype.is_numeric() or plain.dtype in (pl.String, pl.Null)):
        raise ColumnError(f"coordinate column {column.name!r} of {source} holds {column.dtype}; numbers are wanted")
    if plain.dtype == pl.String:
        plain = plain.str.strip_chars()
    values = plain.cast(pl.Float64, strict=False)
    wrong = values.is_null() & plain.is_not_null()
    if plain.dtype == pl.String:
        wrong &= plain != ""
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise ColumnError(
            f"coordinate column {column.name!r} of {source} has {column[row]!r} at {where(row)}, which is no number"
        )
    return values.fill_null(float("nan")).to_numpy()


def _dropped(
    reason: str, mask: np.ndarray[Any, Any], frame: pl.DataFrame, columns: Sequence[str], where: Where
) -> Dropped:
    return Dropped(reason, int(mask.sum()), quoted(frame, columns, np.flatnonzero(mask), where))


@dataclass(frozen=True)
class Jobs:
    images: pl.Series
    workers: pl.Series
    click_image: Ints  # (N,)
    click_worker: Ints
    image: Ints  # (J,) of all jobs, sorted, also of those without clicks
    worker: Ints
    notes: tuple[str, ...]


def jobs_of(read: Clicks, jobs: Any) -> Jobs:
    """Images, workers and who looked at what: from the clicks, and from the table of jobs where there is one."""
    image, worker = read.image, read.worker
    notes: tuple[str, ...] = ()
    clicks = len(image)
    if jobs is not None:
        table = to_frame(jobs)
        found, _ = find(table.columns, {}, "the table of jobs", POINT_NAMES, ("image", "worker"))
        more = {}
        for role, have in (("image", image), ("worker", worker)):
            column, _ = settle(table[found[role]], role, "the table of jobs")
            same = column.cast(have.dtype, strict=False)
            if not (same.cast(column.dtype, strict=False) == column).fill_null(column.is_null()).all():
                raise DataError(
                    f"the table of jobs has {role}s of {column.dtype}, the clicks have {have.dtype}. Give both alike"
                )
            more[role] = same
        known = more["image"].is_not_null() & more["worker"].is_not_null()
        image = pl.concat([image.alias("image"), more["image"].filter(known).alias("image")])
        worker = pl.concat([worker.alias("worker"), more["worker"].filter(known).alias("worker")])
    images, i = code(image)
    workers, w = code(worker)
    pairs = np.unique(i.astype(np.int64) * len(workers) + w)
    if jobs is not None:
        listed = np.unique(i[clicks:].astype(np.int64) * len(workers) + w[clicks:])
        clicked = np.unique(i[:clicks].astype(np.int64) * len(workers) + w[:clicks])
        empty = len(np.setdiff1d(listed, clicked))
        notes = (f"{len(listed)} job(s), {empty} of them without a click",)
        unlisted = len(np.setdiff1d(clicked, listed))
        if unlisted:
            notes += (f"{unlisted} job(s) with clicks are not in the table of jobs, and are taken as jobs",)
    return Jobs(
        images,
        workers,
        i[:clicks],
        w[:clicks],
        (pairs // len(workers)).astype(np.int32),
        (pairs % len(workers)).astype(np.int32),
        notes,
    )


def kept(
    read: Clicks, X: Floats, jobs: Jobs, corners: Floats, outside: str, duplicates: str
) -> tuple[np.ndarray[Any, np.dtype[np.bool_]], list[Dropped]]:
    """Which clicks are used: those in their image's box, and of clicks on the very same spot the first."""
    low, high = corners[jobs.click_image, 0], corners[jobs.click_image, 1]
    out = ~((low <= X) & (high >= X)).all(1)
    dropped = []
    columns = [read.columns[role] for role in ("image", "worker")] + [read.columns[name] for name in read.axes]

    def told(reason: str, mask: np.ndarray[Any, Any]) -> Dropped:
        rows = np.zeros(read.frame.height, bool)
        rows[read.rows[mask]] = True
        return _dropped(reason, rows, read.frame, columns, read.where)

    if out.any():
        said = told("outside the box of the image", out)
        if outside == "error":
            raise DataError(
                f"{said.count} click(s) in {read.source} lie outside the box of their image: {said.examples[0]}. Mend "
                "the box, or leave them out (outside='drop', --outside drop)"
            )
        dropped.append(said)
    same = pl.DataFrame(
        [pl.Series("i", jobs.click_image), pl.Series("w", jobs.click_worker)]
        + [pl.Series(f"x{d}", X[:, d]) for d in range(X.shape[1])]
    )
    order = np.lexsort(_times(read.extras)) if read.extras.width else np.arange(len(X))  # the first click, not row
    first = np.empty(len(X), bool)
    first[order] = same[order].select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
    again = ~first & ~out & (duplicates != "each")
    if again.any():
        said = told("a worker's click on the very spot of another", again)
        if duplicates == "error":
            raise DuplicateError(
                f"{said.count} click(s) in {read.source} are on the very spot of another by the same worker: "
                f"{said.examples[0]}. Keep the first (duplicates='first') or count each (duplicates='each')"
            )
        dropped.append(said)
    if (out | again).all():
        raise EmptyDataError(
            f"no clicks in {read.source} lie in the box of their image, for instance {dropped[0].examples[0]}. Check "
            "the box, and whether coordinates are pixels or percent (unit=, --unit)"
        )
    return ~(out | again), dropped


def in_order(X: Floats, jobs: Jobs, keep: np.ndarray[Any, Any], extras: pl.DataFrame) -> dict[str, Any]:
    """Clicks by image, worker, order of clicking (where known) and place: the order of rows does not matter."""
    image, worker = jobs.click_image[keep], jobs.click_worker[keep]
    keys = [X[:, d] for d in range(X.shape[1] - 1, -1, -1)]
    order = np.lexsort((*keys, *_times(extras)[:-1], worker, image))
    X, image, worker = X[order], image[order], worker[order]
    key, width = image.astype(np.int64), len(jobs.workers)
    wanted = jobs.image.astype(np.int64) * width + jobs.worker
    ptr = np.searchsorted(key * width + worker, np.append(wanted, np.iinfo(np.int64).max)).astype(np.int64)
    return {
        "X": np.ascontiguousarray(X),
        "worker": worker,
        "job_image": jobs.image,
        "job_worker": jobs.worker,
        "job_ptr": ptr,
        "image_ptr": np.searchsorted(jobs.image, np.arange(len(jobs.images) + 1)).astype(np.int64),
        "extras": extras[order] if extras.width else extras,
    }


def _times(extras: pl.DataFrame) -> list[Floats]:
    """Keys to sort clicks in time by, the last the foremost; a constant where nothing is known."""
    timed = [name for name in ("seconds", "order") if name in extras.columns]
    known = [extras[name].cast(pl.Float64, strict=False).fill_null(np.inf).to_numpy() for name in timed]
    return [*known, np.zeros(extras.height)]
