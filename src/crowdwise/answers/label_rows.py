"""Read labels from a table: long or wide shape, anonymous answers, gold, repeated answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from ..errors import ColumnError, DuplicateError, ParameterError, flags, nearest, option, phrase
from ..kernels.layout import Bools, Floats, Ints, Layout
from .alike import look_alikes
from .base import MAX_EXAMPLES, Dropped
from .coding import code, to_text
from .columns import LABEL_ROLES, likely
from .frames import to_series
from .gold import code_labels, gold_codes, known_labels
from .reading import Reading
from .times import instants

Policy: TypeAlias = Literal["last", "first", "error", "each"]
Anonymous: TypeAlias = Literal["refuse", "each"]
REASONS = ("no task", "no label", "same label again", "another label")  # beginnings of reasons for dropping, in order
MAX_LISTED = 8  # columns in a message
FLAGS = {"true", "false", "yes", "no"}
MIN_ALONE = 5  # values of a column, none of which is in another one
# Words in the names of columns of a wide table that are no workers.
NO_WORKERS = {
    "consensus", "majority", "final", "note", "notes", "comment", "comments", "remark", "remarks", "text", "title",
    "url", "timestamp",
}  # fmt: skip
NO_TIMES = "There is no column of times to decide which is the last. "
UNREADABLE_TIMES = "Not every answer has a time that can be read, so the times do not say which is the last. "
EQUAL_TIMES = "Their times are equal, so they do not say which is the last. "
TIMESTAMP = "timestamp"  # column of the times of answers
POLICIES = ("last", "first", "error", "each", None)


@dataclass(frozen=True)
class LabelRows:
    """Coded labels in the order of the rows, before repeated answers are resolved."""

    reading: Reading
    shape: str  # shape of the table: "long" or "wide"
    tasks: pl.Series
    workers: pl.Series
    classes: pl.Series
    task: Ints  # (N,)
    worker: Ints
    label: Ints
    gold: Ints  # (T,)
    row: Ints  # (N,) of the table
    extras: pl.DataFrame  # other columns of all rows of the table

    def keep(self, mask: Bools) -> LabelRows:
        """Return the answers marked; classes that are neither given nor gold any more are removed."""
        given = np.unique(np.concatenate([self.label[mask], self.gold[self.gold >= 0]]))
        place = np.full(len(self.classes) + 1, -1, np.int32)  # the last entry is for unknown gold, -1
        place[given] = np.arange(len(given))
        return replace(
            self,
            task=self.task[mask],
            worker=self.worker[mask],
            label=place[self.label[mask]],
            classes=self.classes[given],
            gold=place[self.gold],
            row=self.row[mask],
        )


def read_labels(
    reading: Reading,
    given: Mapping[str, str | None],
    gold: Any,
    anonymous: Anonymous,
    missing: Sequence[str],
    wide: bool | None,
) -> LabelRows:
    """Read the labels of a table; `gold` is a table or mapping, unless gold is a column of the table."""
    where, height, melted = reading.where, reading.frame.height, None
    if looks_wide(reading.frame, given) if wide is None else wide:
        melted = melt(reading.frame, given, bool(wide), reading.source)
        reading.set_frame(melted.frame, lambda row: where(row % height))
        reading.notes.append(melted.note)
        given, gold = {role: role for role in LABEL_ROLES.required}, melted.gold if gold is None else gold
    _find(reading, given, anonymous)
    columns = [reading.columns[role] for role in LABEL_ROLES.required]
    ids = id_columns(reading, columns, missing)
    if melted is not None:
        reading.rows_read = int(ids["label"].is_not_null().sum())
    reading.drop_set_aside(columns)
    for role, reason in (("task", "no task"), ("label", "" if melted else "no label")):
        if ids[role].null_count():
            reading.drop(reason, ids[role].is_null().to_numpy(), columns)
    ids["worker"] = _name_workers(reading, ids, anonymous)
    advice = f"Use {option('anonymous', 'each')} to count each as the answer of another worker, or remove them"
    reading.check(ids["worker"], advice, "of them has both a task and a label")
    rows = _code_rows(reading, ids, gold, columns, "wide" if melted else "long")
    if melted is not None:
        reading.columns = melted.columns  # for the record: the columns of the user's table
    return rows


def _find(reading: Reading, given: Mapping[str, str | None], anonymous: Anonymous) -> None:
    """Find the columns; a column of workers is not needed if anonymous answers are allowed."""
    names = reading.frame.columns
    if anonymous == "each" and given.get("worker") is None and LABEL_ROLES.guess("worker", names) is None:
        reading.frame = reading.frame.with_columns(worker=pl.lit(None, pl.String))
    reading.find(LABEL_ROLES, given)
    gold = reading.columns.get("gold")
    if gold is not None and given.get("gold") is None and _are_flags(reading.frame, gold, reading.columns["label"]):
        del reading.columns["gold"]
        reading.columns.setdefault("is_check", gold)
        reading.guessed = tuple(dict.fromkeys("is_check" if role == "gold" else role for role in reading.guessed))


def _are_flags(frame: pl.DataFrame, gold: str, label: str) -> bool:
    """Return whether a column "golden" has true and false, which the labels do not have: not known labels, but which
    answers are checks."""
    if "golden" not in gold.casefold():
        return False
    values, labels = ({str(v).lower() for v in frame[name].drop_nulls().unique().to_list()} for name in (gold, label))
    return bool(values) and values <= FLAGS and not labels & FLAGS


def id_columns(reading: Reading, columns: Sequence[str], missing: Sequence[str]) -> dict[str, pl.Series]:
    """Return task, worker and label of every row; labels listed in `missing` become null."""
    task, worker, label = (reading.frame[name] for name in columns)
    if missing:
        label = _without(label, missing)
    columns_of = (("task", task), ("worker", worker), ("label", label))
    return {role: reading.ids(role, column, keep_coded=True) for role, column in columns_of}


def listed(missing: Sequence[Any]) -> list[str]:
    """Return the labels that mean no answer as texts; one text is one of them."""
    values = [missing] if isinstance(missing, str) else missing
    return to_text(to_series("missing", values)).drop_nulls().to_list()


def _without(label: pl.Series, missing: Sequence[Any]) -> pl.Series:
    """Return labels of which those listed are null. They are compared as text: -1, -1.0 and "-1" are the same."""
    gone = to_text(label).is_in(listed(missing))
    if label.dtype.is_float():
        gone |= label.cast(pl.String).is_in(listed(missing))
    gone = gone.fill_null(value=False)
    if label.dtype != pl.Object:
        return label.set(gone, None)
    kept = [None if mark else value for value, mark in zip(label.to_list(), gone.to_list(), strict=True)]
    return pl.Series(label.name, kept, dtype=pl.Object)


def _name_workers(reading: Reading, ids: Mapping[str, pl.Series], anonymous: Anonymous) -> pl.Series:
    """Return the workers. If anonymous is "each", every answer without a worker gets a worker of its own."""
    worker = ids["worker"]
    if anonymous == "refuse" or not worker.null_count():
        return worker
    # numbered by task and label, so that the order of rows does not matter
    unnamed = worker.is_null() & pl.Series(reading.used)
    order = pl.DataFrame({"task": ids["task"], "label": ids["label"], "row": np.arange(len(worker))})
    rows = order.filter(unnamed).sort("task", "label")["row"].to_numpy()
    named = worker.cast(pl.String)
    stem = "anonymous"
    while named.str.starts_with(stem).any():  # a worker has this name
        stem += "-"
    stem += "" if reading.part is None else f"-{reading.part}"
    names = [f"{stem}-{n:06d}" for n in range(1, len(rows) + 1)]
    return named.scatter(rows, pl.Series(names, dtype=pl.String)) if names else worker


def _code_rows(
    reading: Reading, ids: Mapping[str, pl.Series], gold: Any, columns: Sequence[str], shape: str
) -> LabelRows:
    """Code the ids as integers. A task whose answers were all dropped stays among the tasks."""
    tasks, task = code(ids["task"])
    workers, worker = code(reading.kept(ids["worker"]))
    column = reading.frame[reading.columns["gold"]] if "gold" in reading.columns else None
    known, notes = known_labels(gold, column, ids["task"], ids["label"], reading.source)
    classes, label, added = code_labels(reading.kept(ids["label"]), known)
    if reading.part is None:
        reading.notes += notes
        reading.warnings += [*added, *look_alikes(classes, "label"), *look_alikes(workers, "worker")]
    return LabelRows(
        reading, shape, tasks, workers, classes, task if reading.used.all() else task[reading.used], worker, label,
        gold_codes(known, tasks, classes), reading.rows, reading.others(columns),
    )  # fmt: skip


class Melted(NamedTuple):
    """A wide table as a long one, with columns task, worker and label."""

    frame: pl.DataFrame
    columns: dict[str, str]  # role -> column of the user's table
    gold: pl.DataFrame | None  # task and label
    note: str


def looks_wide(frame: pl.DataFrame, given: Mapping[str, str | None]) -> bool:
    """Whether no column is named like a worker or label column, and the first column has a different id in each row."""
    columns = frame.columns
    if any(given.get(role) for role in ("worker", "label")) or len(columns) < 3 or frame.is_empty():
        return False
    if LABEL_ROLES.guess("worker", columns) or LABEL_ROLES.guess("label", columns):
        return False
    if any(nearest(role, columns) for role in ("worker", "label")):  # a long table with a misspelt column
        return False
    workers, labels = ({*likely(role, columns)} for role in ("worker", "label"))
    if workers - labels and labels - workers:  # a long table with columns of other names
        return False
    if any(dtype.is_nested() or dtype == pl.Object for dtype in frame.dtypes):  # a label is a plain value
        return False
    return frame[:, 0].null_count() == 0 and frame[:, 0].n_unique() == frame.height


def melt(frame: pl.DataFrame, given: Mapping[str, str | None], forced: bool, source: str) -> Melted:
    """Return one row per cell of a wide table, including empty cells; `forced` if the caller set wide=True."""
    for role in ("worker", "label"):
        if given.get(role):
            raise ParameterError(f"{role}={given[role]!r} names a column, but the columns of a wide table are workers")
    if forced and all(LABEL_ROLES.guess(role, frame.columns) for role in ("worker", "label")):
        raise ColumnError(
            f"{source} has columns for worker and label, so it is a long table. Omit {option('wide', True)}"
        )
    key = given.get("task") or frame.columns[0]
    truth = given.get("gold") or LABEL_ROLES.guess("gold", frame.columns, {key})
    for role, name in (("task", key), ("gold", truth)):
        if name is not None and name not in frame.columns:
            raise LABEL_ROLES.missing(role, name, frame.columns, source)
    workers = [name for name in frame.columns if name not in (key, truth)]
    if not forced:
        check_workers(frame.select(workers), source)
    tasks = frame.select(pl.col(key).alias("task"))
    parts = [tasks.with_columns(pl.lit(name).alias("worker"), frame[name].alias("label")) for name in workers]
    return Melted(
        pl.concat(parts, how="vertical_relaxed"),
        {"task": key, "worker": f"the other {len(workers)} columns"} | ({"gold": truth} if truth else {}),
        None if truth is None else frame.select(pl.col(key).alias("task"), pl.col(truth).alias("label")),
        f"wide table: {key!r} names the task, {len(workers)} columns are workers ({_listed(workers)}), empty cells are "
        "not answers",
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:MAX_LISTED])) + (", ..." if len(names) > MAX_LISTED else "")


def check_workers(frame: pl.DataFrame, source: str) -> None:
    """Raise ColumnError if columns of a wide table are hardly workers: by their names, or because none of their values
    occurs in another column."""
    named = [name for name in frame.columns if {*re.findall("[a-z]+", name.casefold())} & NO_WORKERS]
    plain = [name for name, kind in frame.schema.items() if kind not in (pl.Binary, pl.Duration)]
    values = pl.concat([_comparable(frame[name]) for name in plain]) if plain else pl.DataFrame()
    if not values.height:
        return
    values = values.drop_nulls().filter(pl.col("value") != "")
    sizes = values.group_by("column").len()
    shared = (
        values.unique().with_columns(pl.len().over("value").alias("columns")).group_by("column").agg(pl.max("columns"))
    )
    alone = shared.join(sizes, on="column").filter((pl.col("columns") == 1) & (pl.col("len") >= MIN_ALONE))["column"]
    odd = [name for name in frame.columns if name in named or name in set(alone)]
    if odd and len(odd) < frame.width:
        each = phrase(f"ignore={odd!r}", " ".join(flags(ignore=name) for name in odd))
        does = "does" if len(odd) == 1 else "do"
        raise ColumnError(
            f"{source} looks like a table with a column per worker, but {_listed(odd)} {does} not look like labels of "
            f"a worker. Leave out what is no worker: {each}; or count all columns as workers: {option('wide', True)}"
        )


def _comparable(column: pl.Series) -> pl.DataFrame:
    """Return the values of a column of a wide table as text in which 1 and 1.0, yes and " Yes" are the same."""
    number = column.cast(pl.Float64) if column.dtype.is_numeric() else column
    text = number.cast(pl.String).str.strip_chars().str.to_lowercase()
    return pl.DataFrame({"column": pl.Series([column.name]).new_from_index(0, len(text)), "value": text})


def repeated(layout: Layout, order: Ints) -> pl.DataFrame:
    """Return the answers that share worker and task, columns group and answer."""
    worker = layout.row_worker[layout.pair]
    same = np.zeros(layout.n_answers, bool)
    same[1:] = worker[1:] == worker[:-1]
    same[layout.task_ptr[:-1][np.diff(layout.task_ptr) > 0]] = False
    member = same.copy()
    member[:-1] |= same[1:]
    group = np.cumsum(member & ~same, dtype=np.int32)[member]
    return pl.DataFrame({"group": group, "answer": order[member]})


def resolve_repeats(p: LabelRows, groups: pl.DataFrame, policy: Policy | None) -> tuple[LabelRows, list[Dropped]]:
    """Keep one answer of each group of answers of one worker to one task, and return the answers dropped.

    Without a policy, a repeated label is kept once; of different labels the last by time is kept, and without times, or
    if the last ones have the same time, they raise DuplicateError.
    """
    labels = p.label[groups["answer"].to_numpy()]
    groups = groups.with_columns(pl.Series("label", labels))
    differ = groups.group_by("group").agg(pl.col("label").n_unique() > 1).filter("label")["group"]
    clash = groups["group"].is_in(differ.implode()).to_numpy()
    times = answer_times(p.extras.select(pl.col(TIMESTAMP).gather(p.row))) if TIMESTAMP in p.extras.columns else None
    if clash.any() and (policy == "error" or (policy is None and times is None)):
        raise _clash_error(p, groups, clash, policy)
    if times is None and p.reading.exported:
        groups = _by_known_times(p, groups)
    elif times is None or policy == "first":
        groups = groups.with_columns(rank=pl.col("answer"), timed=pl.lit(value=False))
    else:
        groups = groups.with_columns(pl.Series("rank", times[groups["answer"].to_numpy()]), timed=pl.lit(value=True))
    tied = _tied(groups)
    if policy is None and tied.any():
        raise _clash_error(p, groups, tied, policy, equal=True)
    groups = groups.with_columns(pl.Series("tied", tied))
    ranked = groups.sort("group", "rank", "answer")
    by_group = ranked.group_by("group", maintain_order=True)
    kept = by_group.first() if policy == "first" else by_group.last()
    drop = ranked.join(kept.select("answer"), on="answer", how="anti")
    mask = np.ones(len(p.task), bool)
    mask[drop["answer"].to_numpy()] = False
    again = ~drop["group"].is_in(differ.implode()).to_numpy()
    return p.keep(mask), [_dropped(p, reason, answers) for reason, answers in _reasons(drop, again, policy)]


def _reasons(drop: pl.DataFrame, again: Bools, policy: Policy | None) -> Iterator[tuple[str, Ints]]:
    """Yield why answers were dropped, and which; those marked in `again` repeat the label that was kept."""
    word, other = "first" if policy == "first" else "last", "another label by the same worker"
    timed, tied = drop["timed"].to_numpy() & (policy != "first"), drop["tied"].to_numpy()
    for reason, which in (
        ("same label again by the same worker (kept once)", again),
        (f"{other} (kept the {word} by time)", ~again & timed & ~tied),
        (f"{other} (kept the {word})", ~again & ~timed),
        (f"{other} at the same time (kept the {word} in the table)", ~again & timed & tied),
    ):
        if which.any():
            yield reason, drop["answer"].to_numpy()[which]


def _by_known_times(p: LabelRows, groups: pl.DataFrame) -> pl.DataFrame:
    """Rank the answers of a group by time if all of them have one, else by row: of an export, where answers of one
    worker to another task may have none."""
    if TIMESTAMP not in p.extras.columns:
        return groups.with_columns(rank=pl.col("answer"), timed=pl.lit(value=False))
    at = pl.Series(p.row[groups["answer"].to_numpy()])
    timed = groups.with_columns(p.extras[TIMESTAMP].gather(at).cast(pl.Int64).alias("time"))
    whole = (pl.col("time").null_count() == 0).over("group")
    rank = pl.when(whole).then("time").otherwise(pl.col("answer").cast(pl.Int64))
    return timed.with_columns(rank=rank, timed=whole).drop("time")


def _tied(groups: pl.DataFrame) -> Bools:
    """Return the answers of groups whose last answers by time have one time and different labels."""
    last = pl.col("label").filter(pl.col("rank") == pl.col("rank").max())
    found = groups.filter("timed").group_by("group").agg(last.n_unique().alias("labels")).filter(pl.col("labels") > 1)
    return groups["group"].is_in(found["group"].implode()).to_numpy()


def _line(p: LabelRows, answer: int) -> str:
    task, worker = p.tasks[int(p.task[answer])], p.workers[int(p.worker[answer])]
    label = p.classes[int(p.label[answer])]
    return f"{p.reading.where(int(p.row[answer]))}: {task}, {worker}, {label}"


def _dropped(p: LabelRows, reason: str, answers: Ints) -> Dropped:
    first = np.sort(answers)[:MAX_EXAMPLES]
    return Dropped(reason, len(answers), tuple(_line(p, int(answer)) for answer in first))


def answer_times(extras: pl.DataFrame) -> Floats | Ints | None:
    """Return the times of the answers as comparable numbers; None unless every time can be read."""
    if TIMESTAMP not in extras.columns:
        return None
    times = extras[TIMESTAMP]
    number = as_numbers(times)
    if number is None:
        number = as_datetimes(times)
    return None if number is None else number.to_numpy()


NO_NUMPY = (pl.String, pl.Decimal, pl.Int128, pl.UInt128)  # types of numbers that numpy does not have


def as_numbers(times: pl.Series) -> pl.Series | None:
    """Return times that are numbers or texts of numbers; None unless all are."""
    number = times.cast(pl.Float64, strict=False) if times.dtype in NO_NUMPY else times
    if number.dtype.is_float():
        number = number.fill_nan(None)
    return None if number.null_count() or not number.dtype.is_numeric() else number


def as_datetimes(times: pl.Series) -> pl.Series | None:
    """Return times that are dates or texts of dates as numbers; None unless all are. Dates and numbers do not mix."""
    if times.dtype == pl.String:
        if times.cast(pl.Float64, strict=False).null_count() < len(times):
            return None
        times = instants(times)
    return None if times.null_count() or not times.dtype.is_temporal() else times.cast(pl.Int64)


def in_time_order(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """Sort the rows of a table that has no order of its own by a column of times, and rows of equal times by all
    columns. Rows whose times cannot be read are sorted by all columns."""
    times = answer_times(frame.select(pl.col(column).alias(TIMESTAMP)))
    key = pl.Series("", np.zeros(frame.height) if times is None else times)
    return frame.sort(key, *frame.columns)


def _clash_error(
    p: LabelRows, groups: pl.DataFrame, clash: Bools, policy: Policy | None, equal: bool = False
) -> DuplicateError:
    clashing = groups.filter(pl.Series(clash))
    first = clashing.filter(pl.col("group") == clashing["group"][0])["answer"].sort().to_list()
    count = p.reading.counted(clashing["group"].n_unique())
    word = "first" if p.reading.part is None else "for instance"
    times = EQUAL_TIMES if equal else UNREADABLE_TIMES if TIMESTAMP in p.extras.columns else NO_TIMES
    why = "" if policy == "error" else times
    return DuplicateError(
        f"{count} time(s) a worker gave different labels to one task in {p.reading.source}, {word} "
        f"{_line(p, first[0])} and {_line(p, first[1])}. {why}Use "
        f"{option('duplicates', 'last')}, or first or each"
    )
