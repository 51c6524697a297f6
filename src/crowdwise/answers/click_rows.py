"""Read clicks from a frame: find columns, drop rows with a reason, code ids, and find the jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..errors import ColumnError, DataError, DuplicateError, EmptyDataError, ParameterError, option
from ..kernels.layout import Bools, Floats, Ints
from .base import Dropped, Where
from .coding import code, normalise_ids, to_numbers, to_text, to_type
from .columns import POINT_ROLES
from .frames import to_frame
from .reading import Reading


@dataclass(frozen=True)
class Clicks:
    """The clicks of a table, in the order of its rows."""

    reading: Reading
    axes: tuple[str, ...]
    image: pl.Series  # (N,) ids
    worker: pl.Series
    X: Floats  # (N, D)
    extras: pl.DataFrame

    def dropped_clicks(self, reason: str, mask: Bools) -> Dropped:
        """Count and quote the clicks marked, which are dropped for `reason`."""
        columns = [self.reading.columns[role] for role in ("image", "worker", *self.axes)]
        return self.reading.dropped_rows(reason, self.reading.rows[mask], columns)


def read_clicks(reading: Reading, given: Mapping[str, str | None], axes: Sequence[str] | None) -> Clicks:
    """Read the clicks of a table; rows without an image or finite coordinates are dropped."""
    axes = _find(reading, given, axes)
    places = [reading.columns[axis] for axis in axes]
    image, worker = reading.ids("image"), reading.ids("worker")
    X = np.column_stack([_numbers(reading.frame[name], reading.source, reading.where) for name in places])
    quoted = [*reading.columns.values()]
    reading.drop_set_aside(quoted)
    reading.drop("no image", image.is_null().to_numpy(), quoted)
    reading.drop("no finite coordinates", np.asarray(~np.isfinite(X).all(axis=1)), quoted)
    advice = "Name the worker of every click; if the workers are unknown, use one name for all"
    reading.check(worker, advice, "with an image and coordinates")
    extras = reading.extras([reading.columns["image"], reading.columns["worker"], *places])
    durations = [name for name, kind in extras.schema.items() if isinstance(kind, pl.Duration)]
    extras = extras.with_columns(pl.col(durations).dt.total_microseconds() / 1e6)  # a table in CSV has no durations
    reserved = {"image", "worker", "object", "probability", "outlier", *axes}
    extras = extras.rename({name: f"{name}_" for name in extras.columns if name in reserved})
    return Clicks(reading, axes, reading.kept(image), reading.kept(worker), X[reading.used], extras)


def _find(reading: Reading, given: Mapping[str, str | None], axes: Sequence[str] | None) -> tuple[str, ...]:
    """Find the columns, and return the roles of the coordinates: x, y and z, or the names of the columns given."""
    if axes is None:
        reading.find(POINT_ROLES, given)
        return tuple(role for role in ("x", "y", "z") if role in reading.columns)
    names = reading.frame.columns
    if isinstance(axes, str) or len(axes) < 1 or len(set(axes)) < len(axes):
        raise ParameterError(f"axes is {axes!r}; give the columns of the coordinates, each once")
    for name in axes:
        if name not in names:
            raise POINT_ROLES.missing("x", name, names, reading.source)
    rest = [name for name in names if name not in axes]
    found, reading.guessed = POINT_ROLES.find(rest, given, reading.source, ("image", "worker"))
    others = {role: name for role, name in found.items() if role not in ("x", "y", "z")}
    reading.columns = others | {name: name for name in axes}
    return tuple(axes)


def _numbers(column: pl.Series, source: str, where: Where) -> Floats:
    """Return a column of coordinates as numbers. A cell that is neither empty nor a number raises ColumnError."""
    plain = to_text(column) if column.dtype == pl.Object else column
    if not (plain.dtype.is_numeric() or plain.dtype in (pl.String, pl.Null)):
        raise ColumnError(f"coordinate column {column.name!r} of {source} holds {column.dtype}; it must hold numbers")
    if plain.dtype == pl.String:
        plain = plain.str.strip_chars()
    values = plain.cast(pl.Float64, strict=False)
    wrong = values.is_null() & plain.is_not_null()
    if plain.dtype == pl.String:
        wrong &= plain != ""
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise ColumnError(
            f"coordinate column {column.name!r} of {source} has {column[row]!r} at {where(row)}, which is not a number"
        )
    return values.fill_null(float("nan")).to_numpy()


@dataclass(frozen=True)
class Jobs:
    """Which worker looked at which image."""

    images: pl.Series
    workers: pl.Series
    click_image: Ints  # (N,)
    click_worker: Ints
    image: Ints  # (J,) of all jobs, sorted; jobs without clicks included
    worker: Ints
    notes: tuple[str, ...]


def jobs_of(clicks: Clicks, jobs: Any) -> Jobs:
    """Return images, workers and jobs, from the clicks and from the table of jobs, if there is one."""
    image, worker = clicks.image, clicks.worker
    if jobs is not None:
        image, worker = _with_jobs(image, worker, to_frame(jobs))
    images, i = code(image)
    workers, w = code(worker)
    number, n = i.astype(np.int64) * len(workers) + w, len(clicks.image)
    if not len(number):
        raise EmptyDataError(f"no clicks in {clicks.reading.source}, and no jobs in the table of jobs")
    both = np.unique(number)
    notes: tuple[str, ...] = ()
    if jobs is not None:
        known, clicked = np.unique(number[n:]), np.unique(number[:n])
        notes = (f"{len(known)} job(s), {len(np.setdiff1d(known, clicked))} of them without a click",)
        unlisted = len(np.setdiff1d(clicked, known))
        if unlisted:
            notes += (f"{unlisted} job(s) with clicks are not in the table of jobs; they were added",)
    job_image, job_worker = (both // len(workers)).astype(np.int32), (both % len(workers)).astype(np.int32)
    return Jobs(images, workers, i[:n], w[:n], job_image, job_worker, notes)


def _with_jobs(image: pl.Series, worker: pl.Series, table: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
    """Return image and worker of the clicks, followed by those of the table of jobs."""
    source = "the table of jobs"
    both = []
    for role, have, column in zip(("image", "worker"), (image, worker), listed_jobs(table, source), strict=True):
        kind = have.dtype if len(have) else column.dtype
        same = to_type(column, kind)
        if same is None:
            raise DataError(
                f"{source} has {role}s of {column.dtype}, the clicks have {have.dtype}. Give both in the same type"
            )
        both.append(pl.concat([have.cast(kind).alias(role), same.alias(role)]))
    return both[0], both[1]


def listed_jobs(table: pl.DataFrame, source: str) -> tuple[pl.Series, pl.Series]:
    """Return image and worker of the rows of a table of jobs that have both."""
    found, _ = POINT_ROLES.find(table.columns, {}, source, ("image", "worker"))
    image, worker = (normalise_ids(table[found[role]], role, source)[0] for role in ("image", "worker"))
    known = image.is_not_null() & worker.is_not_null()
    return image.filter(known), worker.filter(known)


def select_clicks(
    clicks: Clicks, X: Floats, jobs: Jobs, corners: Floats, outside: str, duplicates: str
) -> tuple[Bools, list[Dropped]]:
    """Return a mask of the clicks to use, and the clicks dropped: outside the box, or repeated on the same spot."""
    low, high = corners[jobs.click_image, 0], corners[jobs.click_image, 1]
    out = ~((low <= X) & (high >= X)).all(1)
    dropped, source = list[Dropped](), clicks.reading.source
    if out.any():
        found = clicks.dropped_clicks("outside the box of the image", out)
        if outside == "error":
            raise DataError(
                f"{found.count} click(s) in {source} lie outside the box of their image: {found.examples[0]}. Correct "
                f"the box, or drop these clicks ({option('outside', 'drop')})"
            )
        dropped.append(found)
    again = ~_first(clicks, X, jobs) & ~out & (duplicates != "each")
    if again.any():
        found = clicks.dropped_clicks("repeated click of a worker on the same spot", again)
        if duplicates == "error":
            raise DuplicateError(
                f"{found.count} click(s) in {source} repeat a click of the same worker on the same spot: "
                f"{found.examples[0]}. Keep the first ({option('duplicates', 'first')}) or count each "
                f"({option('duplicates', 'each')})"
            )
        dropped.append(found)
    if len(X) and (out | again).all():
        raise EmptyDataError(
            f"no click in {source} lies in the box of its image, for instance {dropped[0].examples[0]}. Check the "
            f"box, and whether coordinates are pixels or percent ({option('unit')})"
        )
    return ~(out | again), dropped


def _first(clicks: Clicks, X: Floats, jobs: Jobs) -> Bools:
    """(N,) whether this is the worker's first click on the spot: by time if it is known, else by row."""
    same = pl.DataFrame(
        [pl.Series("i", jobs.click_image), pl.Series("w", jobs.click_worker)]
        + [pl.Series(f"x{d}", X[:, d]) for d in range(X.shape[1])]
    )
    order = np.lexsort(_times(clicks.extras)) if clicks.extras.width else np.arange(len(X))
    first = np.empty(len(X), bool)
    first[order] = same[order].select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
    return first


def sort_clicks(X: Floats, jobs: Jobs, keep: Bools, extras: pl.DataFrame) -> dict[str, Any]:
    """Sort clicks by image, worker, time (if known) and position, so that the order of rows does not matter."""
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
    """Sort keys of time for lexsort, the primary key last; a constant if no time is known."""
    timed = [name for name in ("seconds", "order") if name in extras.columns]
    known = [to_numbers(extras[name]).fill_null(np.inf).to_numpy() for name in timed]
    return [*known, np.zeros(extras.height)]
