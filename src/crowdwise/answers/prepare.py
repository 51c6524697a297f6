"""From a frame to coded answers: columns found, gaps counted, nothing settled in silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from ..errors import ColumnError, DataError, EmptyDataError, ParameterError
from ..kernels.layout import Ints
from .coding import as_text, code, look_alikes, settle
from .columns import as_long
from .frames import to_frame
from .intake import EXAMPLES, Dropped, Intake

Policy: TypeAlias = Literal["last", "first", "error", "each"]
Where: TypeAlias = Callable[[int], str]


@dataclass(frozen=True)
class Prepared:
    """Coded answers in the order they came, and what is needed to lay them out."""

    tasks: pl.Series
    workers: pl.Series
    classes: pl.Series
    task: Ints  # (N,)
    worker: Ints
    label: Ints
    gold: Ints  # (T,)
    extras: pl.DataFrame
    intake: Intake
    rows: np.ndarray[Any, Any] | None  # (N,) row of the table each answer came from; None: its own place
    where: Where
    times: pl.Series | None = field(default=None)  # (N,) when the answer was given, for the rule "last"

    def keep(self, mask: np.ndarray[Any, np.dtype[np.bool_]], dropped: Sequence[Dropped]) -> Prepared:
        """Only the answers marked; the rest is told in the intake."""
        rows = np.flatnonzero(mask) if self.rows is None else self.rows[mask]
        spoken = np.unique(np.concatenate([self.label[mask], self.gold[self.gold >= 0]]))
        place = np.full(len(self.classes) + 1, -1, np.int32)  # the last for gold that is not known, -1
        place[spoken] = np.arange(len(spoken))
        chosen = pl.Series(mask)
        intake = replace(
            self.intake, rows_used=int(mask.sum()), dropped=(*self.intake.dropped, *(d for d in dropped if d.count))
        )
        return replace(
            self,
            task=self.task[mask],
            worker=self.worker[mask],
            label=place[self.label[mask]],
            classes=self.classes[spoken],
            gold=place[self.gold],
            extras=self.extras.filter(chosen) if self.extras.width else self.extras,
            times=None if self.times is None else self.times.filter(chosen),
            rows=rows,
            intake=intake,
        )


def prepare(
    frame: pl.DataFrame,
    *,
    given: Mapping[str, str | None],
    gold: Any,
    anonymous: Literal["refuse", "each"],
    missing: Sequence[str],
    wide: bool | None,
    source: str,
    notes: Sequence[str],
    where: Where | None,
) -> Prepared:
    if frame.height == 0:
        raise EmptyDataError(
            f"no answers in {source}: it has {frame.width} column(s) and no rows. Give a table with rows"
        )
    height, told = frame.height, where or (lambda row: f"row {row + 1}")
    table = _as_long(frame, given, wide, source, anonymous)
    frame, columns = table.frame, table.columns
    place: Where = (lambda row: told(row % height)) if table.was_wide else told
    settled, warnings = _settled(frame, columns, missing, source)
    rows_read = int(settled["label"].is_not_null().sum()) if table.was_wide else frame.height
    settled["worker"] = _name_anonymous(settled, anonymous, source, place)
    used, dropped = _usable(frame, settled, columns, place, table.was_wide)
    if used is not None and not used.any():
        raise EmptyDataError(f"no answers in {source}: {rows_read} row(s), none of them has both a task and a label")
    rows = None if used is None else np.flatnonzero(used.to_numpy())
    chosen = settled if used is None else {role: column.filter(used) for role, column in settled.items()}
    tasks, task = code(settled["task"])
    workers, worker = code(chosen["worker"])
    known, gold_notes = _gold_table(frame, columns, table.gold if gold is None else gold, settled, source)
    classes, label, added = _code_labels(chosen["label"], known)
    extras = _extras(frame, columns, used)
    return Prepared(
        tasks=tasks,
        workers=workers,
        classes=classes,
        task=task if rows is None else task[rows],
        worker=worker,
        label=label,
        gold=_gold_codes(known, tasks, classes),
        extras=extras,
        rows=rows,
        where=place,
        times=extras["timestamp"] if "timestamp" in extras.columns else None,
        intake=Intake(
            source=source,
            shape="wide" if table.was_wide else "long",
            columns=table.shown,
            guessed=table.guessed,
            extras=tuple(extras.columns),
            rows_read=rows_read,
            rows_used=len(label),
            dropped=dropped,
            notes=(*notes, *([table.note] if table.note else []), *gold_notes),
            warnings=(*warnings, *added, *look_alikes(classes, "label")),
        ),
    )


def _as_long(
    frame: pl.DataFrame, given: Mapping[str, str | None], wide: bool | None, source: str, anonymous: str
) -> Any:
    """The table with a row an answer; where each answer may be another person's, it needs no column of workers."""
    try:
        return as_long(frame, given, wide, source)
    except ColumnError:
        if anonymous != "each" or wide or given.get("worker") is not None or "worker" in frame.columns:
            raise
    return as_long(frame.with_columns(worker=pl.lit(None, pl.String)), given, wide, source)


def _settled(
    frame: pl.DataFrame, columns: Mapping[str, str], missing: Sequence[str], source: str
) -> tuple[dict[str, pl.Series], list[str]]:
    """The three columns that make an answer, each of one plain type, and warnings."""
    settled, warnings = {}, []
    for role in ("task", "worker", "label"):
        column = frame[columns[role]]
        settled[role], said = settle(_blank_out(column, missing) if role == "label" else column, role, source)
        warnings += said
    return settled, warnings


def _extras(frame: pl.DataFrame, columns: Mapping[str, str], used: pl.Series | None) -> pl.DataFrame:
    """Further columns, under the names of their roles where they have one."""
    taken = {columns[role] for role in ("task", "worker", "label")}
    extras = frame.select(column for column in frame.columns if column not in taken)
    names = {name: role for role, name in columns.items() if name in extras.columns and role not in extras.columns}
    mixed = [column for column in extras.get_columns() if column.dtype == pl.Object]  # of several types: as text
    texts = [pl.Series(c.name, [None if v is None else as_text(v) for v in c.to_list()]) for c in mixed]
    extras = extras.with_columns(texts).rename(names)
    return extras.filter(used) if used is not None and extras.width else extras


def _blank_out(column: pl.Series, missing: Sequence[str]) -> pl.Series:
    """Values that the user says mean "no answer" become null."""
    if not missing:
        return column
    text = pl.Series([None if v is None else str(v) for v in column.to_list()], dtype=pl.String)
    return column.set(text.is_in(list(missing)).fill_null(value=False), None)


def example(frame: pl.DataFrame, columns: Mapping[str, str], row: int, where: Where) -> str:
    values = (frame[columns[role]][row % frame.height] for role in ("task", "worker", "label"))
    return f"{where(row)}: " + ", ".join("(none)" if v is None else str(v)[:60] for v in values)


def _usable(
    frame: pl.DataFrame, settled: Mapping[str, pl.Series], columns: Mapping[str, str], where: Where, is_wide: bool
) -> tuple[pl.Series | None, tuple[Dropped, ...]]:
    """Which rows have a task and a label (None: all), and what was dropped."""
    if not any(settled[role].null_count() for role in ("task", "label")):
        return None, ()
    no_task = settled["task"].is_null()
    no_label = settled["label"].is_null() & ~no_task
    dropped = []
    for reason, mask in (("no task", no_task), ("no label", no_label)):
        rows = mask.arg_true().head(EXAMPLES).to_list()
        if rows and not (is_wide and reason == "no label"):
            dropped.append(Dropped(reason, int(mask.sum()), tuple(example(frame, columns, row, where) for row in rows)))
    return ~(no_task | no_label), tuple(dropped)


def _name_anonymous(
    settled: Mapping[str, pl.Series], anonymous: Literal["refuse", "each"], source: str, where: Where
) -> pl.Series:
    """Answers without a worker are refused, or each becomes a person of its own."""
    worker = settled["worker"]
    if anonymous not in ("refuse", "each"):
        raise ParameterError(f"anonymous is {anonymous!r}; it can be 'refuse' or 'each'")
    nobody = worker.is_null() & settled["label"].is_not_null() & settled["task"].is_not_null()
    if not nobody.any():
        return worker
    first = int(nobody.arg_max() or 0)
    if anonymous == "refuse":
        raise ColumnError(
            f"{int(nobody.sum())} answer(s) in {source} have no worker, the first at {where(first)}. "
            "Say --anonymous each (in Python anonymous='each') to take each as another person, or remove them"
        )
    # numbered by what was said, not by where it stands, so that the order of rows does not matter
    order = pl.DataFrame({"task": settled["task"], "label": settled["label"], "row": np.arange(len(worker))})
    rows = order.filter(nobody).sort("task", "label")["row"].to_numpy()
    named = worker.cast(pl.String)
    stem = "anonymous"
    while named.str.starts_with(stem).any():  # somebody is really called so
        stem += "-"
    names = [f"{stem}-{n:06d}" for n in range(1, len(rows) + 1)]
    return named.scatter(rows, pl.Series(names, dtype=pl.String))


def _code_labels(label: pl.Series, known: pl.DataFrame | None) -> tuple[pl.Series, Ints, list[str]]:
    """Classes are the labels spoken, and those that only gold names (with a warning)."""
    if known is None:
        return *code(label), []
    unspoken = known["label"].filter(~known["label"].is_in(label.unique().implode())).unique().sort()
    classes, codes = code(pl.concat([label, unspoken]))
    warnings = []
    if len(unspoken):
        names = ", ".join(map(str, unspoken.head(5).to_list()))
        warnings.append(f"gold has {len(unspoken)} label(s) that no worker gave, added as classes: {names}")
    return classes, codes[: len(label)], warnings


def _gold_table(
    frame: pl.DataFrame, columns: Mapping[str, str], gold: Any, settled: Mapping[str, pl.Series], source: str
) -> tuple[pl.DataFrame | None, list[str]]:
    """(task, label) of tasks whose truth is known, from a table or mapping, else from a column; and notes on it."""
    if gold is not None:
        if isinstance(gold, Mapping) and not {"task", "label"} <= set(map(str, gold)):
            gold = {"task": list(gold), "label": list(gold.values())}
        table = to_frame(gold)
        roles = find_gold(table.columns)
        task, label = table[roles["task"]], table[roles["label"]]
    elif "gold" in columns:
        task, label = settled["task"], frame[columns["gold"]]
    else:
        return None, []
    label, _ = settle(label, "gold", source)
    task, _ = settle(task, "task", source)
    pairs = pl.DataFrame(
        {"task": _as_type(task, settled["task"].dtype), "label": _as_type(label, settled["label"].dtype)}
    )
    empty = pairs["label"].null_count() if gold is not None else 0
    pairs = pairs.drop_nulls().unique().sort("task")
    twice = pairs.filter(pairs["task"].is_duplicated())
    if twice.height:
        raise DataError(
            f"gold of {source} names task {twice['task'][0]!r} twice with different labels: "
            f"{twice['label'][0]!r} and {twice['label'][1]!r}. Keep one"
        )
    met = pairs.filter(pairs["task"].is_in(settled["task"].drop_nulls().unique().implode()))
    notes = [f"gold for {met.height} task(s)"]
    if empty:
        notes.append(f"gold without a label for {empty} task(s) was ignored")
    if met.height < pairs.height:
        notes.append(f"gold for {pairs.height - met.height} task(s) that have no answers was ignored")
    return met, notes


def find_gold(names: Sequence[str]) -> dict[str, str]:
    """The task and label columns of a table of known labels."""
    from .columns import guess, missing

    task = guess("task", names, set())
    label = guess("gold", names, {task} if task else set()) or guess("label", names, {task} if task else set())
    if task is None or label is None:
        raise missing("task" if task is None else "label", "task" if task is None else "label", names, "the gold table")
    return {"task": task, "label": label}


def _as_type(column: pl.Series, kind: pl.DataType) -> pl.Series:
    """Gold in the type of the answers, so that 1 in a typed table meets "1" in a text file."""
    if column.dtype == kind:
        return column
    if kind == pl.String:
        return pl.Series(column.name, [as_text(v) for v in column.to_list()], dtype=pl.String)
    try:
        return column.cast(kind)
    except pl.exceptions.PolarsError:
        raise DataError(
            f"gold column {column.name!r} holds {column.dtype}, but the answers hold {kind}: "
            f"{column.drop_nulls()[0]!r} cannot be one of them. Give both in the same type"
        ) from None


def _gold_codes(known: pl.DataFrame | None, tasks: pl.Series, classes: pl.Series) -> Ints:
    codes = np.full(len(tasks), -1, np.int32)
    if known is None:
        return codes
    places = pl.DataFrame({"task": tasks, "i": np.arange(len(tasks), dtype=np.int32)})
    names = pl.DataFrame({"label": classes, "k": np.arange(len(classes), dtype=np.int32)})
    met = known.join(places, on="task", how="inner").join(names, on="label", how="inner")
    codes[met["i"].to_numpy()] = met["k"].to_numpy()
    return codes
