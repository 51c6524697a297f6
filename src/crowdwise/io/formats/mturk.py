"""Amazon Mechanical Turk: the results of a batch as CSV, with one or several items per HIT."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from ...errors import ColumnError, FileError, nearest, option
from . import register
from .base import (
    EMPTY,
    LABELS,
    OK,
    POINTS,
    STARTED,
    SUBMITTED,
    Answer,
    Head,
    Origin,
    Settings,
    TableFormat,
    as_frame,
    as_label,
    one_or_set,
    parsed,
    split_labels,
    tidy,
    what,
)
from .crowd_elements import element_answers, with_radio_groups

ANSWER, INPUT, ELEMENTS = "Answer.", "Input.", "Answer.taskAnswers"
STATUS = {"approved": OK, "submitted": OK, "": OK, "rejected": "rejected"}  # by AssignmentStatus in lower case
SEPARATORS = "_.- "  # between a name and its number
_DIGITS = re.compile(r"\d+")
_OPTION = re.compile(r"^(.+)\.([^.]+)$")

Family = tuple[str, str]  # what stands before and after the number in names that are alike


class Item(NamedTuple):
    """The item of a HIT that an answer with a number in its name is about."""

    question: str  # the name without the number
    number: str
    shown: tuple[str, ...]  # columns of Input that show the item


class Asked(NamedTuple):
    """A column, or the columns of the options, with the answers to one question about one item of a HIT."""

    question: str
    columns: dict[str, str]  # option -> column of true and false; {"": column} for answers as they are
    item: Item | None  # None if the question is about the whole HIT


class Task(NamedTuple):
    """The column with the tasks, or the columns with those of the items of a HIT."""

    column: str
    of_items: Mapping[str, str]  # number of the item -> column; empty for the task of the HIT and the number

    def of(self, item: Item | None) -> pl.Expr:
        """Return the tasks of an item."""
        if item is None:
            return pl.col(self.column)
        if item.number in self.of_items:
            return pl.col(self.of_items[item.number])
        return pl.col(self.column) + f"#{item.number}"


@register
class MechanicalTurk(TableFormat):
    """One row per assignment."""

    name = "mturk"
    title = "Mechanical Turk"
    files = "batch results CSV: one item per HIT, several items per HIT, Answer.taskAnswers"
    kinds = (LABELS, POINTS)
    statuses = {"rejected": "rejected assignment"}
    fields = {
        "task": "HITId", "worker": "WorkerId", "label": "Answer.*", "timestamp": "SubmitTime", "started": "AcceptTime",
        "seconds": "WorkTimeInSeconds",
    }  # fmt: skip
    unit = "pixels"
    in_parts = False  # columns of options are known by all of their values

    def recognise(self, head: Head) -> bool:
        answered = any(name.startswith(ANSWER) for name in head.columns)
        return answered and head.has("HITId", "WorkerId", "AssignmentStatus")

    def convert(self, frame: pl.DataFrame, origin: Origin, settings: Settings) -> pl.DataFrame:
        inputs = [name.removeprefix(INPUT) for name in frame.columns if name.startswith(INPUT)]
        task = _task(settings.task, frame.columns, inputs, origin.name)
        frame = frame.with_columns(
            pl.col("WorkerId").alias("worker"),
            pl.col("AssignmentId").alias("submission")
            if "AssignmentId" in frame.columns
            else pl.lit(None).alias("submission"),
            _statuses(frame, origin.name),
            *(
                pl.col(name).alias(role) if name in frame.columns else pl.lit(None, pl.String).alias(role)
                for role, name in ((STARTED, "AcceptTime"), (SUBMITTED, "SubmitTime"), ("seconds", "WorkTimeInSeconds"))
            ),
        )
        questions = _questions(frame, inputs)
        forms = _forms(frame, origin.name) if ELEMENTS in frame.columns else []
        items = _items(dict.fromkeys(name for several in forms for form in several for name in form), inputs)
        _check_items(task, [each.item for each in questions if each.item] + [*items.values()], inputs)
        found = [_answers(frame, asked, task) for asked in questions]
        if forms:
            found.append(_elements(frame, forms, items, task, origin.name))
        return pl.concat([tidy(each) for each in found], how="diagonal")

    def finish(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the table with the radio buttons of crowd elements as one question."""
        return with_radio_groups(frame)


ABOUT = ("worker", "submission", "status", STARTED, SUBMITTED, "seconds", "source_row")


def _statuses(frame: pl.DataFrame, name: str) -> pl.Series:
    """Return the statuses of assignments; one that Mechanical Turk does not have is refused."""
    given = frame["AssignmentStatus"].cast(pl.String).fill_null("").str.strip_chars().str.to_lowercase()
    known = given.is_in([*STATUS])
    if not known.all():
        row = int((~known).arg_max() or 0)
        raise FileError(
            f"{name}:{frame['source_row'][row]}: AssignmentStatus is {frame['AssignmentStatus'][row]!r}; it can be "
            "Approved, Submitted or Rejected. Correct or remove the row"
        )
    return given.replace_strict(STATUS, return_dtype=pl.String).alias("status")


def _task(named: str | None, columns: Sequence[str], inputs: Sequence[str], name: str) -> Task:
    """Return the tasks that the caller names: a column, perhaps without "Input.", or numbered columns without their
    number."""
    for column in ("HITId",) if named is None else (named, INPUT + named):
        if column in columns and column != "source_row":
            return Task(column, {})
    wanted = str(named).removeprefix(INPUT)
    for family, numbered in _families(inputs).items():
        if len(numbered) > 1 and wanted in ("".join(family), _base(family), _title(family)):
            return Task("HITId", {number: INPUT + each for number, each in numbered.items()})
    known = [column for column in columns if column != "source_row"]
    raise ColumnError(
        f"no column {named!r} in {name}; columns are {', '.join(known)}. Name another with {option('task', 'COLUMN')}."
        f"{nearest(named, known)}"
    )


def _check_items(task: Task, items: Sequence[Item], inputs: Sequence[str]) -> None:
    """Refuse a task of one item for a HIT of several, and tasks of several items where answers are about none."""
    if task.of_items and not items:
        first, *_ = task.of_items.values()
        raise ColumnError(
            f"{', '.join(task.of_items.values())} are numbered, but no answers are numbered like them. Name one of "
            f"them, for instance {option('task', first)}"
        )
    if any(task.column in item.shown for item in items):
        name = task.column.removeprefix(INPUT)
        families = [family for family, numbered in _families(inputs).items() if name in numbered.values()]
        base = next(_base(family) for family in families if len(_families(inputs)[family]) > 1)
        raise ColumnError(
            f"{task.column} shows one of the items of a HIT, and the answers are about several. Name the columns of "
            f"all items without their number: {option('task', INPUT + base)}"
        )


def _families(names: Iterable[str]) -> dict[Family, dict[str, str]]:
    """Return the names that differ only in a number: what is around it -> number -> name."""
    found: dict[Family, dict[str, str]] = {}
    for name in names:
        for family, number in _numbers(name):
            found.setdefault(family, {})[number] = name
    return found


def _numbers(name: str) -> Iterator[tuple[Family, str]]:
    """Yield the numbers in a name, the last one first, with what stands around each."""
    for match in reversed([*_DIGITS.finditer(name)]):
        family = name[: match.start()], name[match.end() :]
        if _title(family):
            yield family, match[0]


def _base(family: Family) -> str:
    return family[0].rstrip(SEPARATORS) + family[1]


def _title(family: Family) -> str:
    """Return the name of numbered columns, without the number and what separated it."""
    return _base(family).removesuffix(".on").strip(SEPARATORS)


def _items(names: Iterable[str], inputs: Sequence[str]) -> dict[str, Item]:
    """Return the items that answers are about: their names have the same numbers as columns of Input."""
    names = [*names]
    shown, own = _families(inputs), _families(names)
    found = {}
    for name in names:
        for family, number in _numbers(name):
            showing = [each[number] for each in shown.values() if own[family].keys() <= each.keys()]
            if len(own[family]) > 1 and showing:
                found[name] = Item(_title(family), number, tuple(INPUT + each for each in showing))
                break
    return found


def _questions(frame: pl.DataFrame, inputs: Sequence[str]) -> list[Asked]:
    """Return what was asked: columns of true and false belong to one question, numbered ones to items of a HIT."""
    names = [name for name in frame.columns if name.startswith(ANSWER) and name != ELEMENTS]
    options: dict[str, dict[str, str]] = {}
    for name in names:
        found = _OPTION.match(name.removeprefix(ANSWER).removesuffix(".on"))
        if found and _all_ticks(frame[name]):
            options.setdefault(found[1], {})[found[2]] = name
    numbered = [each.keys() for each in _families(inputs).values() if len(each) > 1]
    families = {
        question: columns
        for question, columns in options.items()
        if len(columns) > 1 and not any(columns.keys() <= numbers for numbers in numbered)
    }
    taken = {name for columns in families.values() for name in columns.values()}
    single = {name.removeprefix(ANSWER): {"": name} for name in names if name not in taken}
    asked = families | single
    items = _items(asked, inputs)
    return [
        Asked(items[question].question if question in items else question, columns, items.get(question))
        for question, columns in asked.items()
    ]


def _all_ticks(column: pl.Series) -> bool:
    return bool(column.drop_nulls().str.to_lowercase().is_in(["true", "false", ""]).all())


def _answers(frame: pl.DataFrame, asked: Asked, task: Task) -> pl.DataFrame:
    """Return the answers to one question about one item."""
    own = [task.of(asked.item).alias("task"), *ABOUT, pl.lit(asked.question).alias("question"), _nothing(asked.item)]
    if list(asked.columns) == [""]:
        cells = frame[asked.columns[""]].str.replace_all("&#44;", ",", literal=True)
        boxes = cells.str.contains("|", literal=True)  # several check boxes that are ticked
        labels = split_labels(cells, boxes, lambda cell: cell.split("|"))
    else:
        labels = _ticked(frame, asked)
    found = frame.select(own).with_columns(*labels, pl.lit(LABELS).alias("kind"))
    no_label = pl.col("label").is_null() & pl.col("label_set").is_null()
    empty = pl.when((pl.col("status") == OK) & no_label).then(pl.lit(EMPTY)).otherwise("status").alias("status")
    return found.with_columns(empty).filter(~(pl.col("nothing") & no_label)).drop("nothing")


def _nothing(item: Item | None) -> pl.Expr:
    """Return whether a HIT has no such item: the last HIT of a batch may have fewer. All have a first one."""
    if item is None or item.number.lstrip("0") in ("", "1"):
        return pl.lit(value=False).alias("nothing")
    return pl.all_horizontal((pl.col(name).fill_null("") == "") for name in item.shown).alias("nothing")


def _ticked(frame: pl.DataFrame, asked: Asked) -> list[pl.Series]:
    """Return the options that are true, as one label or a set."""
    ticks = frame.select(pl.col(name).str.to_lowercase() == "true" for name in asked.columns.values())
    chosen = [
        one_or_set(name for name, tick in zip(asked.columns, row, strict=True) if tick) for row in ticks.iter_rows()
    ]
    return [pl.Series(name, [each.get(name) for each in chosen], pl.String) for name in ("label", "label_set")]


def _forms(frame: pl.DataFrame, name: str) -> list[list[Mapping[str, Any]]]:
    """Return the forms in the column of JSON that crowd elements fill, for each assignment."""
    found = []
    for cell, row in frame.select(ELEMENTS, "source_row").iter_rows():
        try:
            forms: Any = parsed(cell) or []
        except (ValueError, RecursionError) as error:
            raise _no_form(f"{name}:{row}", what(error)) from error
        forms = forms if isinstance(forms, list) else [forms]
        if not all(isinstance(form, Mapping) for form in forms):
            raise _no_form(f"{name}:{row}", "it is not a list of objects")
        found.append(forms)
    return found


def _no_form(where: str, why: object) -> FileError:
    return FileError(f"{where}: {ELEMENTS} is not the answer of crowd elements: {why}. Correct the cell")


def _elements(
    frame: pl.DataFrame,
    forms: Sequence[Sequence[Mapping[str, Any]]],
    items: Mapping[str, Item],
    task: Task,
    name: str,
) -> pl.DataFrame:
    """Return the answers in the forms of crowd elements."""
    timed = frame.with_columns(pl.col("seconds").cast(pl.Float64, strict=False))
    of_hits = timed.select(task.of(None).alias("task"), *ABOUT)
    of_items = {each: timed.select(task.of(item).alias("task"), _nothing(item)).rows() for each, item in items.items()}
    found: list[Answer] = []
    rows: list[int] = []
    for place, (record, several) in enumerate(zip(of_hits.iter_rows(named=True), forms, strict=True)):
        row = record.pop("source_row")
        about, before = Answer(**record), len(found)
        try:
            answers = [each for form in several for each in element_answers(form, alone=items)]
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise _no_form(f"{name}:{row}", what(error)) from error
        for question, fields in answers:
            status = about.status if about.status != OK else fields.get("status", OK)
            answer = about._replace(question=as_label(question), **(fields | {"status": status}))
            if question in items:
                item, nothing = of_items[question][place]
                if nothing and fields.get("status") == EMPTY:
                    continue
                answer = answer._replace(task=item, question=items[question].question)
            found.append(answer)
        if len(found) == before:
            found.append(about._replace(status=EMPTY if about.status == OK else about.status))
        rows.extend([row] * (len(found) - before))
    return as_frame(found, rows)
