"""Columns of a table that may be task, worker and label, by their values: for a proposal where names say nothing."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

MAX_SAMPLE = 20_000  # rows that are looked at
MAX_CLASSES = 50
MIN_ROWS = 6
ODD_TYPES = (pl.Object, pl.Binary, pl.Duration)  # whose values are no ids or labels
MAX_REPEATS = 0.02  # share of rows in which a worker answers a task again


def proposed(frame: pl.DataFrame, given: Mapping[str, str]) -> dict[str, str] | None:
    """Return the columns of task, worker and label, of which those in `given` are known; None if nothing fits.

    Labels have the fewest different values. Of two columns that together tell the rows apart, and of which each has
    repeated values, the one with more values is the task.

    >>> rows = [(t, w, "gut" if t < "p3" else "schlecht") for t in ("p1", "p2", "p3", "p4") for w in ("x", "y", "z")]
    >>> proposed(pl.DataFrame(rows, schema=["Bild", "Wer", "Urteil"], orient="row"), {})
    {'label': 'Urteil', 'task': 'Bild', 'worker': 'Wer'}
    """
    sample = frame.head(MAX_SAMPLE)
    plain = [name for name, kind in sample.schema.items() if not (kind.is_nested() or kind in ODD_TYPES)]
    if not {*given.values()} <= {*plain} or len({*given.values()}) < len(given):
        return None
    rows = sample.select(pl.col(plain).cast(pl.String)).drop_nulls(list(given.values()))
    counts = {name: rows[name].drop_nulls().n_unique() for name in plain}
    free = [name for name in plain if name not in given.values() and counts[name] > 1 and _filled(rows[name])]
    if rows.height < MIN_ROWS:
        return None
    few = min(MAX_CLASSES, rows.height // 3)
    labels = [given["label"]] if "label" in given else [name for name in free if counts[name] <= few]
    for label in sorted(labels, key=lambda name: counts[name]):
        others = [name for name in free if name != label and counts[name] < rows.height]
        tasks = [given["task"]] if "task" in given else others
        workers = [given["worker"]] if "worker" in given else others
        fitting = [
            (task, worker)
            for task in tasks
            for worker in workers
            if task != worker and (counts[task] >= counts[worker] or given) and _tell_apart(rows, task, worker)
        ]
        if fitting:
            task, worker = min(fitting, key=lambda pair: sum(_length(rows[name]) for name in pair))
            return {"label": label, "task": task, "worker": worker}
    return None


def _filled(column: pl.Series) -> bool:
    """Return whether nearly every row has a value."""
    return column.null_count() + int((column == "").sum()) <= 0.1 * len(column)


def _tell_apart(rows: pl.DataFrame, task: str, worker: str) -> bool:
    """Return whether each worker answers a task about once."""
    return rows[[task, worker]].n_unique() >= (1 - MAX_REPEATS) * rows.height


def _length(column: pl.Series) -> float:
    """Return how long the values are: ids are shorter than texts."""
    return float(column.str.len_chars().mean() or 0)  # type: ignore[arg-type]
