"""Gold labels from a table, a mapping or a column, converted to the type of the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..errors import DataError
from ..kernels.layout import Ints
from .coding import code, normalise_ids, to_text
from .columns import LABEL_ROLES
from .frames import to_frame


def gold_columns(gold: Any) -> tuple[pl.Series, pl.Series]:
    """Return the columns of task and label of a gold table, or of a mapping of tasks to labels."""
    if isinstance(gold, Mapping) and not {"task", "label"} <= set(map(str, gold)):
        gold = {"task": list(gold), "label": list(gold.values())}
    table = to_frame(gold)
    names = table.columns
    task = LABEL_ROLES.guess("task", names)
    taken = {task} if task else set()
    label = LABEL_ROLES.guess("gold", names, taken) or LABEL_ROLES.guess("label", names, taken)
    if task is None or label is None:
        role = "task" if task is None else "label"
        raise LABEL_ROLES.missing(role, role, names, "the gold table")
    return table[task], table[label]


def gold_table(gold: Any, source: str) -> pl.DataFrame:
    """Return a gold table or a mapping of tasks to labels as a table with columns task and label, of plain types."""
    task, label = gold_columns(gold)
    return pl.DataFrame(
        {"task": normalise_ids(task, "task", source)[0], "label": normalise_ids(label, "gold", source)[0]}
    )


class GoldCounts(NamedTuple):
    """How many tasks have a label in a gold table, and how many rows have none."""

    tasks: int
    empty: int

    @classmethod
    def of(cls, gold: pl.DataFrame) -> GoldCounts:
        """Count in a table of `gold_table`."""
        return cls(gold.drop_nulls()["task"].n_unique(), gold["label"].null_count())


def gold_notes(known: int, given: GoldCounts) -> list[str]:
    """Return notes about gold, of which `known` tasks are among the answers."""
    notes = [f"gold for {known} task(s)"]
    if given.empty:
        notes.append(f"gold without a label for {given.empty} task(s) was ignored")
    if known < given.tasks:
        notes.append(f"gold for {given.tasks - known} task(s) that have no answers was ignored")
    return notes


def gold_warnings(ungiven: pl.Series) -> list[str]:
    """Return a warning about gold labels that no worker gave, sorted, if there are any."""
    if not len(ungiven):
        return []
    names = ", ".join(map(str, ungiven.head(5).to_list()))
    return [f"gold has {len(ungiven)} label(s) that no worker gave, added as classes: {names}"]


def known_labels(
    gold: Any, column: pl.Series | None, tasks: pl.Series, labels: pl.Series, source: str
) -> tuple[pl.DataFrame | None, list[str]]:
    """Return the gold labels of tasks that have answers, columns task and label, and notes.

    Gold comes from `gold` (a table or mapping), else from `column`; without both, it is None. A task with two different
    gold labels raises DataError.
    """
    if gold is None and column is None:
        return None, []
    table = gold_table({"task": tasks, "label": column} if gold is None else gold, source)
    task, label = (_as_type(table[name], ids.dtype) for name, ids in (("task", tasks), ("label", labels)))
    pairs = pl.DataFrame({"task": task, "label": label})
    empty = pairs["label"].null_count() if gold is not None else 0
    pairs = pairs.drop_nulls().unique().sort("task", "label")
    twice = pairs.filter(pairs["task"].is_duplicated())
    if twice.height:
        raise DataError(
            f"gold of {source} has two different labels for task {twice['task'][0]!r}: "
            f"{twice['label'][0]!r} and {twice['label'][1]!r}. Keep one"
        )
    matched = pairs.filter(pairs["task"].is_in(tasks.drop_nulls().unique().implode()))
    return matched, gold_notes(matched.height, GoldCounts(pairs.height, empty))


def _as_type(column: pl.Series, kind: pl.DataType) -> pl.Series:
    """Convert gold to the type of the answers, so that 1 in a typed table matches "1" in a text file."""
    kind = pl.String() if isinstance(kind, (pl.Categorical, pl.Enum)) else kind
    if column.dtype == kind:
        return column
    if kind == pl.String:
        return to_text(column)
    try:
        return column.cast(kind)
    except pl.exceptions.PolarsError:
        raise DataError(
            f"gold column {column.name!r} holds {column.dtype}, but the answers hold {kind}: "
            f"{column.drop_nulls()[0]!r} cannot be converted. Give both in the same type"
        ) from None


def code_labels(label: pl.Series, known: pl.DataFrame | None) -> tuple[pl.Series, Ints, list[str]]:
    """Return classes, codes (N,) and warnings. Labels that occur only in gold are classes too."""
    if known is None:
        return *code(label), []
    label = label.cast(pl.String) if isinstance(label.dtype, (pl.Categorical, pl.Enum)) else label
    ungiven = known["label"].filter(~known["label"].is_in(label.unique().implode())).unique().sort()
    classes, codes = code(pl.concat([label, ungiven]))
    return classes, codes[: len(label)], gold_warnings(ungiven)


def gold_codes(known: pl.DataFrame | None, tasks: pl.Series, classes: pl.Series) -> Ints:
    """(T,) gold class of each task, or -1."""
    codes = np.full(len(tasks), -1, np.int32)
    if known is None:
        return codes
    places = pl.DataFrame({"task": tasks, "i": np.arange(len(tasks), dtype=np.int32)})
    names = pl.DataFrame({"label": classes, "k": np.arange(len(classes), dtype=np.int32)})
    matched = known.join(places, on="task", how="inner").join(names, on="label", how="inner")
    codes[matched["i"].to_numpy()] = matched["k"].to_numpy()
    return codes
