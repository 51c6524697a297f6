"""What a format of an annotation platform is: how its files are recognised, and how one becomes rows of one table.

The table has one row per judgement, whatever the platform, with the columns of `COLUMNS`. Ids and labels are text.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import polars as pl

from ...answers.times import INSTANT
from ...errors import ColumnError, CrowdwiseError, DataError, FileError, option

if TYPE_CHECKING:
    from ..estimates import Estimates

OK, EMPTY = "ok", "empty"
# What else a row can be: not a vote. Rows of these statuses are left out, unless the caller asks for them.
ASIDE = ("skipped", "rejected", "draft", "expired", "test", "gold", "prediction")
STATUSES = (OK, EMPTY, *ASIDE)
LABELS, POINTS, PAIRS, TEXT = "labels", "points", "pairs", "text"
STDIN_NAME = "standard input"
ANSWERED = (LABELS, POINTS, PAIRS)  # kinds of questions that can be aggregated
KINDS = (*ANSWERED, TEXT)
NOTHING = "[]"  # as a set of labels: the worker chose nothing, which is an answer where sets are split
PERSON, MODEL = "person", "model"
MODEL_PREFIX = "model:"  # of workers that are models whose answers stand beside those of people
SUBMITTED, STARTED = "submitted_at", "started_at"
COLUMNS: Mapping[str, Any] = MappingProxyType(
    {
        "task": pl.String,
        "worker": pl.String,
        "worker_kind": pl.Enum((PERSON, MODEL)),
        "question": pl.String,
        "kind": pl.Enum(KINDS),
        "label": pl.String,
        "label_set": pl.String,  # several labels, as a JSON list
        "value": pl.Float64,  # of an answer that is a number
        "x": pl.Float64,
        "y": pl.Float64,
        "width": pl.Float64,  # of a box, of which x and y are the centre
        "height": pl.Float64,
        "rotation": pl.Float64,
        "percent": pl.Boolean,  # whether coordinates are percent of an image whose size is not known
        "image_width": pl.Float64,
        "image_height": pl.Float64,
        "left": pl.String,
        "right": pl.String,
        "winner": pl.String,
        "probabilities": pl.String,  # of the labels, as a JSON object
        "weight": pl.Float64,  # how much the answer counts
        STARTED: INSTANT,
        SUBMITTED: INSTANT,
        "seconds": pl.Float64,
        "status": pl.Enum(STATUSES),
        "gold_label": pl.String,
        "submission": pl.String,  # id of the annotation, assignment or classification that the row belongs to
        "source_row": pl.UInt32,  # line or record of the file
    }
)


class Answer(NamedTuple):
    """One judgement, as plain values; None where a platform does not say."""

    task: str | None = None
    worker: str | None = None
    question: str | None = None
    kind: str | None = None
    label: str | None = None
    label_set: str | None = None
    value: float | None = None
    x: float | None = None
    y: float | None = None
    width: float | None = None
    height: float | None = None
    rotation: float | None = None
    percent: bool | None = None
    image_width: float | None = None
    image_height: float | None = None
    left: str | None = None
    right: str | None = None
    winner: str | None = None
    probabilities: str | None = None
    started_at: Any = None
    submitted_at: Any = None
    seconds: float | None = None
    status: str = OK
    gold_label: str | None = None
    submission: str | None = None
    worker_kind: str | None = None


Original = Callable[[], Iterator[Mapping[str, Any]]]  # returns the records of an export, from the first one


class Head(NamedTuple):
    """The beginning of a file, by which its format is recognised."""

    name: str
    container: str  # "table", "records" (JSON), "object" (JSON), "xml", or "" if it cannot be read as any
    how: str  # format of the file itself: csv, json, jsonl, parquet, arrow, xlsx, xml
    columns: tuple[str, ...] = ()  # of a table; keys of records or of an object; the root of XML
    rows: tuple[Mapping[str, Any], ...] = ()  # the first rows or records

    def has(self, *names: str) -> bool:
        """Return whether all of these are columns."""
        return set(names) <= set(self.columns)


class Settings(NamedTuple):
    """What the caller says about how a format is read."""

    task: str | None = None  # field that names the task, in place of the usual one
    worker: str | None = None
    anonymous: bool = False  # whether answers may have no worker


class Origin(NamedTuple):
    """The file that a part comes from."""

    name: str
    stem: str  # the name without its endings
    folder: str  # name of the folder

    def worker(self, usual: str) -> str:
        """Return the worker whose work is the file: its name or, if that is the usual one, the name of the folder.
        Standard input has no name, so it raises FileError."""
        if self.stem == STDIN_NAME:
            raise FileError(
                "the worker is the name of the file, and standard input has none. Give a file named like the worker"
            )
        return self.folder if self.stem == usual and self.folder else self.stem


class Format(ABC):
    """A format. A subclass is one file of this package; `read` gets the content of a file in parts."""

    name: ClassVar[str]  # of --format
    title: ClassVar[str]  # "Label Studio"
    files: ClassVar[str]  # the files that are read, in words: "JSON, JSON_MIN and CSV"
    containers: ClassVar[tuple[str, ...]]  # kinds of files: "table", "records", "object", "xml"
    kinds: ClassVar[tuple[str, ...]] = (LABELS,)  # kinds of questions that can be aggregated
    statuses: ClassVar[Mapping[str, str]] = MappingProxyType({})  # status -> what the platform calls it
    fields: ClassVar[Mapping[str, str]] = MappingProxyType(
        {}
    )  # role -> field of the file, for the record of the reading
    unit: ClassVar[str] = ""  # of points in the file
    shown_to_all: ClassVar[bool] = False  # whether every submission was asked all questions about points
    paged: ClassVar[bool] = False  # whether a submission has several tasks, which `finish` needs
    kept: ClassVar[tuple[str, ...]] = ()  # columns besides labels and times that are kept with the answers
    in_parts: ClassVar[bool] = True  # whether a table can be read in parts
    specific: ClassVar[bool] = (
        True  # whether only this platform writes such fields; columns that a caller names win else
    )
    takes_worker: ClassVar[bool] = False  # whether the caller may name the field of the worker
    worker_is_file: ClassVar[bool] = False  # whether the name of a file is that of a worker
    written_kinds: ClassVar[tuple[str, ...]] = (LABELS,)  # kinds of questions that are written
    needs_question: ClassVar[bool] = False  # whether what is written has no place for a submission without any answer
    named_files: ClassVar[str] = ""  # pattern of the names of the files that matter in a folder; "" for all
    converted: ClassVar[str] = ""  # ending of the file that `records` fills: ".json", ".jsonl", ".csv"; "" for none
    returned: ClassVar[str] = ""  # ending of the file that `give_back` fills

    @abstractmethod
    def recognise(self, head: Head) -> bool:
        """Return whether a file that begins like this has this format."""

    def insisted(self, head: Head) -> bool:
        """Return whether a file that begins like this can have this format, if the caller says that it has."""
        return self.recognise(head)

    @abstractmethod
    def read(self, part: Any, rows: Sequence[int], origin: Origin, settings: Settings) -> pl.DataFrame:
        """Return the judgements in a part of a file; `rows` are the lines or numbers of its records."""

    def finish(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the table of all parts, after changes that need all of them."""
        return frame

    def refuse(self, head: Head) -> str:
        """Return why a file of this platform cannot be aggregated; "" if it can."""
        return ""

    def records(self, rows: pl.DataFrame) -> Iterator[Mapping[str, Any]]:
        """Yield judgements, sorted by task, as the records of a file of this platform."""
        raise NotImplementedError

    def give_back(self, estimates: Estimates, original: Original | None) -> Iterator[Mapping[str, Any]]:
        """Yield estimates as the records of a file that the platform reads; `original` is the platform's export."""
        raise NotImplementedError


class RecordFormat(Format):
    """A format whose records are read one at a time. A record without any answer becomes one empty row."""

    @abstractmethod
    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        """Yield the judgements in a record."""

    def read(self, part: Any, rows: Sequence[int], origin: Origin, settings: Settings) -> pl.DataFrame:
        records = part.iter_rows(named=True) if isinstance(part, pl.DataFrame) else part
        found: list[Answer] = []
        places: list[int] = []
        for record, row in zip(records, rows, strict=True):
            before = len(found)
            try:
                found.extend(self.answers(record, origin, settings))
            except CrowdwiseError:
                raise
            except ODD as error:
                raise FileError(
                    f"{origin.name}:{row}: this record is not as {self.title} writes it: {what(error)}. Correct or "
                    "remove it"
                ) from error
            if len(found) == before:
                found.append(Answer(status=EMPTY))
            places.extend([row] * (len(found) - before))
        try:
            return as_frame(found, places)
        except UnicodeEncodeError as error:
            row = next(row for answer, row in zip(found, places, strict=True) if not _is_unicode(answer))
            raise FileError(
                f"{origin.name}:{row}: a text has a lone surrogate, which is not Unicode. Correct or remove it"
            ) from error


ADDRESS = re.compile(r"[^@\s'\"]+@[^@\s'\"]+|\b\d{1,3}(?:\.\d{1,3}){3}\b")  # e-mail and IP addresses
ODD = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError, ArithmeticError)


def _is_unicode(answer: Answer) -> bool:
    return not any(isinstance(value, str) and re.search("[\ud800-\udfff]", value) for value in answer)


def what(error: Exception) -> str:
    """Describe an error that odd values have caused."""
    if isinstance(error, KeyError):
        return f"it has no {error.args[0]!r}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    text = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    return ADDRESS.sub("(an address)", text)


class TableFormat(Format):
    """A format whose tables are converted by columns."""

    containers: ClassVar[tuple[str, ...]] = ("table",)

    @abstractmethod
    def convert(self, frame: pl.DataFrame, origin: Origin, settings: Settings) -> pl.DataFrame:
        """Return the judgements in a table of text, which has a column `source_row`."""

    def read(self, part: Any, rows: Sequence[int], origin: Origin, settings: Settings) -> pl.DataFrame:
        frame = part if isinstance(part, pl.DataFrame) else _table(part, origin.name)
        numbered = frame.with_columns(pl.Series("source_row", rows, dtype=pl.UInt32))
        return tidy(self.convert(numbered, origin, settings))


def _table(records: Sequence[Mapping[str, Any]], name: str) -> pl.DataFrame:
    """Return records as a table."""
    columns = dict.fromkeys(key for record in records for key in record)
    made = []
    for column in columns:
        values = [record.get(column) for record in records]
        try:
            made.append(pl.Series(column, [float(v) if isinstance(v, Decimal) else v for v in values]))
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
            raise FileError(f"{name}: the values of {column!r} have different types. Write text or numbers") from error
    return pl.DataFrame(made)


def as_frame(answers: Sequence[Answer], rows: Sequence[int]) -> pl.DataFrame:
    """Return judgements as a table, without columns that have no values."""
    columns = dict(zip(Answer._fields, zip(*answers, strict=True), strict=True)) if answers else {}
    made = [
        pl.Series(name, _as_text(values), dtype=pl.String)
        if COLUMNS[name] == INSTANT
        else pl.Series(name, values, dtype=COLUMNS[name], strict=False)
        for name, values in columns.items()
        if any(value is not None for value in values)
    ]
    return tidy(pl.DataFrame([*made, pl.Series("source_row", rows, dtype=pl.UInt32)]))


def _as_text(values: Sequence[Any]) -> list[str | None]:
    return [value if value is None or isinstance(value, str) else str(value) for value in values]


def tidy(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table with its columns in order and of their types; empty text becomes null. Times stay as they are:
    `exported` reads them, and counts those that cannot be read."""
    made = []
    for name, kind in COLUMNS.items():
        if name not in frame.columns:
            continue
        column = frame[name]
        if kind in (INSTANT, pl.String) and column.dtype == pl.String and name != "label_set":
            column = column.set(column.str.len_bytes() == 0, None) if (column == "").any() else column
        elif column.dtype != kind and kind != INSTANT:
            column = column.cast(kind, strict=False)
            if kind == pl.Float64:
                column = column.set((~column.is_finite()).fill_null(value=False), None)
        made.append(column)
    table = pl.DataFrame(made)
    if "label_set" not in table.columns:
        return table
    nothing = (pl.col("label_set") == NOTHING) & (pl.col("status") == OK)
    return table.with_columns(
        pl.when(nothing).then(pl.lit(EMPTY)).otherwise("status").cast(COLUMNS["status"]).alias("status")
    )


def as_label(value: Any) -> str | None:
    """Return a value as the text of a label or an id: numbers with their digits, true and false in lower case."""
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, datetime.date, datetime.time)):
        return str(value)
    if isinstance(value, (float, Decimal)):
        if math.isnan(value):
            return None
        if math.isinf(value):
            raise ValueError("an infinite number is neither a label nor an id")
        return str(int(value)) if value == int(value) else str(value)
    raise ValueError(f"{json.dumps(value, default=str)[:80]} is neither text nor a number")


def as_id(text: str | None) -> int | str | None:
    """Return an id as platforms write it: a number if its text is one.

    >>> as_id("7"), as_id("-7"), as_id("007"), as_id("ann")
    (7, -7, '007', 'ann')
    """
    return int(text) if text is not None and re.fullmatch(r"0|-?[1-9][0-9]{0,17}", text) else text


def number(value: Any) -> float | None:
    """Return a number; None for nothing."""
    if value is None or value == "":
        return None
    found = float(value)
    if not math.isfinite(found):
        raise ValueError(f"{value!r} is not a finite number")
    return found


def one_or_set(values: Iterable[Any]) -> dict[str, Any]:
    """Return the fields of an answer with these labels: one label, a set of several, or an empty set."""
    labels = list(dict.fromkeys(text for value in values if (text := as_label(value)) is not None))
    if len(labels) == 1:
        return {"kind": LABELS, "label": labels[0]}
    if not labels:
        return {"kind": LABELS, "label_set": NOTHING, "status": EMPTY}
    return {"kind": LABELS, "label_set": json.dumps(sorted(labels), ensure_ascii=False)}


def split_labels(column: pl.Series, several: pl.Series, split: Callable[[str], Iterable[Any]]) -> list[pl.Series]:
    """Return the columns `label` and `label_set` for cells of text; those marked in `several` are split into labels."""
    text = column.set((column.str.len_bytes() == 0).fill_null(value=False), None)
    several = several.fill_null(value=False)
    if not several.any():
        return [text.alias("label"), pl.Series("label_set", [None], pl.String).new_from_index(0, len(text))]
    parts = [one_or_set(split(cell)) if many else {"label": cell} for cell, many in zip(text, several, strict=True)]
    return [pl.Series(name, [part.get(name) for part in parts], pl.String) for name in ("label", "label_set")]


def parsed(text: Any) -> Any:
    """Return the value of a cell of JSON; None for an empty cell."""
    if text is None or text == "":
        return None
    return json.loads(text) if isinstance(text, str) else text


def stem_of(path: Path) -> str:
    """Return the name of a file without its endings of formats: "ann" for ann.jsonl and ann.jsonl.gz."""
    name = path.name.removesuffix(".gz")
    return name[: -len(Path(name).suffix)] if Path(name).suffix else name


def check_one_question(rows: pl.DataFrame, title: str) -> None:
    """Raise DataError for judgements of several questions, where a file holds those of one."""
    names = rows["question"].drop_nulls().unique().sort().to_list() if "question" in rows.columns else []
    if len(names) > 1:
        raise DataError(
            f"a file of {title} holds the answers to one question; there are {len(names)}: "
            f"{', '.join(map(repr, names[:8]))}. Choose one with {option('question', names[0])}"
        )


def chosen_field(settings_field: str | None, usual: str, columns: Sequence[str], name: str, role: str) -> str:
    """Return the column for a role: the one that the caller names, else the usual one."""
    if settings_field is None:
        return usual
    if settings_field not in columns:
        raise ColumnError(
            f"no column {settings_field!r} in {name}; columns are {', '.join(columns)}. Name another with "
            f"{option(role, 'COLUMN')}"
        )
    return settings_field
