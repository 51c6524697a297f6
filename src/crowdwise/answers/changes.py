"""Changes to labels that are held already: answers to add, to replace or to delete, and gold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from ..errors import ColumnError, DuplicateError, option
from ..kernels.layout import Ints
from .coding import code, normalise_ids
from .columns import LABEL_ROLES
from .frames import to_frame
from .gold import code_labels, gold_codes, known_labels
from .label_rows import answer_times, id_columns, looks_wide, melt
from .labels import Labels
from .reading import Reading

Repeats: TypeAlias = Literal["last", "first", "error"]
REPEATS = ("last", "first", "error")


class Changes(NamedTuple):
    """Changes to answers, coded by the ids that occur in them. There is one row per task and worker."""

    tasks: pl.Series  # distinct ids
    workers: pl.Series
    classes: pl.Series  # labels given, and gold labels
    task: Ints  # (N,)
    worker: Ints  # (N,)
    label: Ints  # (N,) -1 deletes the answer
    gold: Ints  # (T,) class of each task, or -1
    extras: pl.DataFrame  # other columns, N rows or no columns
    ignored: int  # rows without a task, or with neither a worker nor gold


def read_changes(
    data: Any,
    given: Mapping[str, str | None],
    *,
    missing: Sequence[str] = (),
    wide: bool | None = None,
    repeats: Repeats = "last",
    label_type: Any = None,
    source: str = "table",
) -> Changes | None:
    """Read changes from `Labels`, or from a table with one row per answer; None if the table has no rows.

    A row without a label deletes the worker's answer to the task, except in a wide table, where an empty cell is no
    answer. A row without worker and label may have gold. Of several rows for one worker and task, the last is used: by
    time if every row has a time, else in the order of rows. `label_type` is the type of the labels so far.
    """
    if isinstance(data, Labels):
        return _of_labels(data)
    frame = pl.DataFrame() if isinstance(data, list) and not data else to_frame(data)
    if frame.is_empty():
        return None
    reading, gold = Reading(frame, source, (), None), None
    if looks_wide(frame, given) if wide is None else wide:
        melted = melt(frame, given, bool(wide), source)
        reading.set_frame(melted.frame.drop_nulls("label"), lambda row: f"answer {row + 1}")
        given, gold = {role: role for role in LABEL_ROLES.required}, melted.gold
    _find(reading, given)
    columns = [reading.columns[role] for role in LABEL_ROLES.required]
    ids = id_columns(reading, columns, missing)
    if ids["label"].null_count() == len(ids["label"]):
        ids["label"] = ids["label"].cast(label_type or _gold_type(reading, gold))
    unnamed = ids["worker"].is_null() & ids["label"].is_not_null() & ids["task"].is_not_null()
    if unnamed.any():
        raise ColumnError(
            f"{int(unnamed.sum())} answer(s) in {source} have no worker, the first at "
            f"{reading.where(int(unnamed.arg_max() or 0))}. Name the workers: a stream keeps one answer per worker and "
            "task"
        )
    return _coded(reading, ids, columns, gold, repeats)


def read_removals(data: Any, given: Mapping[str, str | None], source: str = "table") -> tuple[pl.Series, pl.Series]:
    """Return the columns of task and worker of a table that lists answers to delete."""
    if isinstance(data, Labels):
        data = data.frame()
    frame = to_frame(data)
    named = {role: given.get(role) for role in ("task", "worker")}
    columns, _ = LABEL_ROLES.find(frame.columns, named, source, required=("task", "worker"))
    task, worker = (normalise_ids(frame[columns[role]], role, source)[0] for role in ("task", "worker"))
    return task, worker


def _find(reading: Reading, given: Mapping[str, str | None]) -> None:
    """Find the columns. A table of gold needs neither workers nor labels."""
    found = reading.frame.columns
    names = {role: given.get(role) or LABEL_ROLES.guess(role, found) or role for role in ("worker", "label", "gold")}
    if names["gold"] in found and names["worker"] not in found and names["label"] not in found:
        empty = (pl.lit(None, pl.String).alias(names[role]) for role in ("worker", "label"))
        reading.frame = reading.frame.with_columns(empty)
    reading.find(LABEL_ROLES, given)


def _gold_type(reading: Reading, gold: pl.DataFrame | None) -> Any:
    """Return the type of gold labels, for a table without other labels."""
    column = gold["label"] if gold is not None else reading.frame[reading.columns.get("gold", reading.columns["label"])]
    return normalise_ids(column, "gold", reading.source)[0].dtype


def _coded(
    reading: Reading, ids: Mapping[str, pl.Series], columns: Sequence[str], gold: Any, repeats: Repeats
) -> Changes:
    column = reading.frame[reading.columns["gold"]] if "gold" in reading.columns else None
    known, _ = known_labels(gold, column, ids["task"], ids["label"], reading.source)
    reading.used = (ids["task"].is_not_null() & ids["worker"].is_not_null()).to_numpy().copy()
    useful = ids["task"].is_not_null() & (
        ids["worker"].is_not_null() | (False if column is None else column.is_not_null())
    )
    tasks, task = code(ids["task"])
    workers, worker = code(reading.kept(ids["worker"]))
    classes, label, _ = code_labels(reading.kept(ids["label"]), known)
    extras = reading.extras(columns)
    keep = _one_each(reading, (task[reading.used], worker, label), extras, repeats)
    return Changes(
        tasks, workers, classes, task[reading.used][keep], worker[keep], label[keep],
        gold_codes(known, tasks, classes), extras[keep] if extras.width else extras, int((~useful).sum()),
    )  # fmt: skip


def _one_each(reading: Reading, codes: tuple[Ints, Ints, Ints], extras: pl.DataFrame, repeats: Repeats) -> Ints:
    """Return the number of the one row to use for each task and worker, ascending."""
    task, worker, label = codes
    times = answer_times(extras)
    rank = np.arange(len(task)) if times is None or repeats == "first" else times
    order = np.lexsort((np.arange(len(task)), rank, worker, task))
    same = (np.diff(task[order]) == 0) & (np.diff(worker[order]) == 0)
    clash = np.flatnonzero(same & (np.diff(label[order]) != 0))
    if repeats == "error" and len(clash):
        rows = (reading.where(int(reading.rows[order[at]])) for at in (clash[0], clash[0] + 1))
        raise DuplicateError(
            f"{len(clash)} time(s) a worker gave different labels to one task in {reading.source}, first at "
            f"{' and '.join(rows)}. Use {option('duplicates', 'last')} or first"
        )
    ends = np.append(True, ~same) if repeats == "first" else np.append(~same, True)
    return np.sort(order[ends]) if len(order) else order


def _of_labels(answers: Labels) -> Changes:
    task, worker, label = answers.codes()
    if len(task) > 1 and ((np.diff(task) == 0) & (np.diff(worker) == 0)).any():
        raise DuplicateError(
            "these labels hold repeated answers of a worker to a task. A stream keeps one: read the answers with "
            f"{option('duplicates', 'last')}"
        )
    ids = (answers.tasks, answers.workers, answers.classes)
    return Changes(*ids, task, worker, label, answers.gold, answers.extras, 0)
