"""Exports of annotation platforms as answers: read into one table of judgements, of which one question is answered."""

from __future__ import annotations

import contextlib
import gc
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from ..answers import KINDS, Answers
from ..answers.frames import Handed
from ..answers.times import UNORDERED, instants
from ..errors import EmptyDataError, FileError, ParameterError, option
from .asked import Question, choose
from .formats import find
from .formats.base import ANSWERED, COLUMNS, LABELS, PAIRS, POINTS, STARTED, SUBMITTED, Format, Head, Settings, stem_of
from .judgements import FILE, Export, Made, Wanted
from .opening import Unchanged
from .parts import Part, converted, origin_of, parts_of, plain_name, wrong_format
from .personal import PERSONAL, is_address, pseudonyms
from .tables import Reading

CODED = ("task", "worker", "question", "label", "label_set", "gold_label")  # columns whose values are repeated
PARTS_TOGETHER = 64
WAITING = "__waiting__"  # ending of columns of dates whose order is not known yet
MAX_NAMES = 3  # of files in the name of the source


def read_frame(frame: pl.DataFrame, head: Head, format: Format, wanted: Wanted) -> Export:
    """Return the judgements in a frame."""
    part = _as_text(Part(frame, range(1, frame.height + 1)))
    unread = Unread()
    found = _compact(
        converted(format, part, origin_of(Path(head.name)), wanted.settings), 0, wanted, format.paged, unread
    )
    return Export(_finished(format, [found], unread), format, (head.name,), (format.title,), unread.warnings())


def read_files(files: Sequence[Path], heads: Sequence[Head], format: Format, how: Reading, wanted: Wanted) -> Export:
    """Return the judgements in the files of a platform."""
    if format.named_files and len(files) > 1:
        named = [n for n, file in enumerate(files) if re.search(format.named_files, plain_name(file.name))]
        if named:
            files, heads = [files[n] for n in named], [heads[n] for n in named]
    if wanted.settings.worker is not None and not format.takes_worker:
        raise ParameterError(
            f"the worker in {format.title} is {format.fields.get('worker', 'known')}: omit {option('worker')}"
        )
    for head in heads:
        known = format.recognise(head) if how.format is None else format.insisted(head)
        if head.container not in format.containers or not known:
            raise FileError(wrong_format(head, format, find(head), insisted=how.format is not None))
        if reason := format.refuse(head):
            raise FileError(reason)
    seen, unread = Unchanged(files), Unread()
    found, small = list[pl.DataFrame](), list[pl.DataFrame]()
    with _no_garbage():
        for number, (file, head) in enumerate(zip(files, heads, strict=True)):
            for part in parts_of(file, head, how, format.in_parts):
                text = _as_text(part) if head.container == "table" and head.how != "csv" else part
                rows = converted(format, text, origin_of(file), wanted.settings)
                small.append(_compact(rows, number, wanted, format.paged, unread))
                if len(small) == PARTS_TOGETHER:  # many small parts take twice the memory
                    found.append(pl.concat(small, how="diagonal", rechunk=True))
                    small.clear()
    seen.check()
    found += small
    if not found:
        raise EmptyDataError(f"no answers in {files[0].name}: it has no records")
    note = format.title if len(files) == 1 else f"{format.title}, {len(files)} files"
    names = _names(files, format, wanted)
    hidden = any(name != file.name for name, file in zip(names, files, strict=True))
    return Export(_finished(format, found, unread), format, names, (note,), unread.warnings(), hidden)


def _names(files: Sequence[Path], format: Format, wanted: Wanted) -> tuple[str, ...]:
    """Return the names of the files; those that are names of workers who get digests become numbers."""
    if not format.worker_is_file:
        return tuple(file.name for file in files)
    named = [is_address(stem_of(file)) or is_address(file.resolve().parent.name) for file in files]
    hidden = [wanted.key is not None or (address and PERSONAL not in wanted.keep) for address in named]
    return tuple(
        f"file {n}" if hide else file.name for n, (file, hide) in enumerate(zip(files, hidden, strict=True), 1)
    )


@contextlib.contextmanager
def _no_garbage() -> Iterator[None]:
    """Pause the garbage collector, which would look through all records for cycles that they do not have: reading JSON
    takes a third less time."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _as_text(part: Part) -> Part:
    """Return a part whose columns of plain values are text, as in a file of text."""
    from ..answers.coding import to_text

    plain = [
        column for column in part.content.get_columns() if not (column.dtype.is_nested() or column.dtype == pl.Object)
    ]
    made = [
        column.cast(pl.String) if column.dtype == pl.Boolean or column.dtype.is_temporal() else to_text(column)
        for column in plain
        if column.dtype != pl.String
    ]
    return part._replace(content=part.content.with_columns(made))


class Unread:
    """Times of an export, read part by part, and those that cannot be read. Dates such as 1/2/2026, whose order
    follows from the whole file, stay text until all parts are there."""

    def __init__(self) -> None:
        self.count, self.example = 0, ""

    def read(self, column: pl.Series) -> list[pl.Series]:
        """Return times as instants and, if there are any, dates whose order is not known yet."""
        if column.dtype != pl.String:
            return [instants(column)]
        unordered = column.str.contains(UNORDERED).fill_null(value=False)
        found = instants(column.set(unordered, None))
        self._note(column.filter(found.is_null() & column.is_not_null() & ~unordered))
        if not unordered.any():
            return [found]
        return [found, column.set(~unordered, None).alias(column.name + WAITING)]

    def complete(self, whole: pl.DataFrame) -> pl.DataFrame:
        """Return the table of all parts with the dates whose order is that of the whole file."""
        for name in (STARTED, SUBMITTED):
            if name + WAITING in whole.columns:
                waiting = whole[name + WAITING]
                found = instants(waiting)
                self._note(waiting.filter(found.is_null() & waiting.is_not_null()))
                whole = whole.with_columns(whole[name].zip_with(whole[name].is_not_null(), found).alias(name))
        return whole

    def _note(self, lost: pl.Series) -> None:
        if len(lost):
            self.count, self.example = self.count + len(lost), self.example or str(lost[0])[:40]

    def warnings(self) -> tuple[str, ...]:
        """Return a warning about the times that cannot be read, if there are any."""
        if not self.count:
            return ()
        return (f"{self.count} time(s) cannot be read, for instance {self.example!r}; they are not used",)


def _compact(frame: pl.DataFrame, file: int, wanted: Wanted, paged: bool, unread: Unread) -> pl.DataFrame:
    """Return a part of the judgements in little memory: texts that are repeated are numbered, and submissions are kept
    only where they tell drawings apart, are jobs of pairs, or pages of several tasks."""
    if "worker" in frame.columns and (wanted.key is not None or PERSONAL not in wanted.keep):
        frame = frame.with_columns(pseudonyms(frame["worker"], wanted.key))
    times = [unread.read(frame[name]) for name in (STARTED, SUBMITTED) if name in frame.columns]
    frame = frame.with_columns(column for columns in times for column in columns)
    coded = [pl.col(name).cast(pl.Categorical) for name in CODED if name in frame.columns]
    if "submission" in frame.columns:
        shapes = pl.col("kind").is_null() | pl.col("kind").is_in([POINTS, PAIRS]) if "kind" in frame.columns else True
        with_points = "kind" in frame.columns and (frame["kind"] == POINTS).any()
        needed = wanted.whole or paged or with_points  # a correction may have no shapes at all
        coded.append(pl.when(pl.lit(needed) | shapes).then("submission").cast(pl.Categorical))
    return frame.with_columns(*coded, pl.lit(file, pl.UInt32).alias(FILE))


def _finished(format: Format, parts: Sequence[pl.DataFrame], unread: Unread) -> pl.DataFrame:
    """Return the whole table, with the duration of answers that have a start and an end."""
    whole = unread.complete(pl.concat(parts, how="diagonal"))
    if "task" not in whole.columns:  # no record has one
        whole = whole.with_columns(pl.lit(None, pl.Categorical).alias("task"))
    whole = format.finish(whole)
    if {STARTED, SUBMITTED} <= {*whole.columns}:
        taken = (pl.col(SUBMITTED) - pl.col(STARTED)).dt.total_microseconds() / 1e6
        known = pl.col("seconds").fill_null(taken) if "seconds" in whole.columns else taken
        whole = whole.with_columns(known.alias("seconds"))
    return whole.select(*(name for name in COLUMNS if name in whole.columns), FILE)


def answers_of(
    read: Callable[[], Export],
    wanted: Wanted,
    options: Mapping[str, Any],
    *,
    among: Sequence[str],
    recorded: Mapping[str, Any],
    path: str,
) -> Answers:
    """Return the answers to one question of the export that `read` returns, as answers of its kind; `path` is the file
    as the caller named it."""
    export = read()
    path = "" if export.hidden else path
    asked, label = choose(export, wanted.question, [kind for kind in ANSWERED if kind in among])
    made = answer_table(export, asked, label, wanted, options)
    shown = ", ".join(export.names[:MAX_NAMES]) + (", ..." if len(export.names) > MAX_NAMES else "")
    notes = [*export.notes, f"question {wanted.question or asked.name!r}", *made.notes]
    about = {
        "source": shown,
        "notes": notes,
        "where": export.where(made.rows),
        "options": {**recorded, **_named(asked.kind, wanted.settings)},
    }
    arguments: dict[str, Any] = {**about, **made.options, **options}
    fields, warnings = export.format.fields, [*export.warnings, *made.warnings]
    table = Handed(made.frame)
    del export, made  # a table of millions of answers is not held twice
    found: Answers = KINDS[asked.kind](table, **arguments)  # type: ignore[call-arg]
    named = _named(LABELS, wanted.settings)
    fields = {**fields, **named}
    fields |= {"image": fields.get("task", "task")}  # of points
    columns = {role: field for role, field in fields.items() if role in found.intake.columns}
    own = {"label": asked.name} if asked.kind == LABELS else {"question": asked.name}
    own |= {"class": label} if label is not None else {}
    warned = (*warnings, *found.intake.warnings)
    intake = replace(found.intake, columns=found.intake.columns | columns | own, guessed=(), warnings=warned, path=path)
    return found.replaced(intake=intake)


def _named(kind: str, settings: Settings) -> dict[str, str]:
    """Return the options by which the caller names fields of an export."""
    given = {"image" if kind == POINTS else "task": settings.task, "worker": settings.worker}
    return {name: value for name, value in given.items() if value is not None}


def answer_table(
    export: Export, asked: Question, label: str | None, wanted: Wanted, options: Mapping[str, Any]
) -> Made:
    """Return the table of the answers to a question; `label` is the class of points, if only one is wanted."""
    frame = export.frame
    if asked.kind == LABELS:
        from .exported_labels import label_rows, label_table

        return label_table(export, label_rows(export, asked.name, wanted), asked, wanted)
    own = (pl.col("question") == asked.name) | pl.col("question").is_null()
    mine = own.fill_null(value=False)  # a submission without any answer is about every question
    rows = frame.filter(mine)
    if asked.kind == PAIRS:
        from .exported_pairs import pair_table

        return pair_table(export, rows, wanted)
    from .exported_points import point_table

    return point_table(export, rows, label, wanted, options)
