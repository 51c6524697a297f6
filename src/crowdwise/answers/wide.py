"""Tables of labels with one column per worker, turned into one row per answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from ..errors import ColumnError, ParameterError, nearest, option
from .columns import LABEL_ROLES


class Melted(NamedTuple):
    """The rows of a wide table: columns task, worker and label."""

    frame: pl.DataFrame
    columns: dict[str, str]  # role -> column, as the user's table has it
    gold: pl.DataFrame | None  # task and label
    note: str


def looks_wide(frame: pl.DataFrame, given: Mapping[str, str | None]) -> bool:
    """Whether no column is called as those of workers and labels are, and the first column names each row once."""
    columns = frame.columns
    if any(given.get(role) for role in ("worker", "label")) or len(columns) < 3 or frame.is_empty():
        return False
    if LABEL_ROLES.guess("worker", columns) or LABEL_ROLES.guess("label", columns):
        return False
    if any(nearest(role, columns) for role in ("worker", "label")):  # a misspelt long table, not a worker
        return False
    return frame[:, 0].null_count() == 0 and frame[:, 0].n_unique() == frame.height


def melt(frame: pl.DataFrame, given: Mapping[str, str | None], insisted: bool, source: str) -> Melted:
    """One row per cell of a wide table, also of empty cells; `insisted`: the caller said that it is wide."""
    for role in ("worker", "label"):
        if given.get(role):
            raise ParameterError(f"{role}={given[role]!r} names a column, but in a wide table columns are workers")
    if insisted and all(LABEL_ROLES.guess(role, frame.columns) for role in ("worker", "label")):
        raise ColumnError(
            f"{source} has columns for worker and label, so it is a long table. Omit {option('wide', True)}"
        )
    key = given.get("task") or frame.columns[0]
    truth = given.get("gold") or LABEL_ROLES.guess("gold", frame.columns, {key})
    for role, name in (("task", key), ("gold", truth)):
        if name is not None and name not in frame.columns:
            raise LABEL_ROLES.missing(role, name, frame.columns, source)
    people = [name for name in frame.columns if name not in (key, truth)]
    tasks = frame.select(pl.col(key).alias("task"))
    parts = [tasks.with_columns(pl.lit(name).alias("worker"), frame[name].alias("label")) for name in people]
    return Melted(
        pl.concat(parts, how="vertical_relaxed"),
        {"task": key, "worker": f"the other {len(people)} columns"} | ({"gold": truth} if truth else {}),
        None if truth is None else frame.select(pl.col(key).alias("task"), pl.col(truth).alias("label")),
        f"wide table: {key!r} names the task, {len(people)} columns are workers, empty cells are no answers",
    )
