"""The judgements in an export, what the caller wants of them, and which of them are votes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

import polars as pl

from ..answers.arguments import items
from ..answers.reading import SET_ASIDE
from ..errors import check_choice
from .formats.base import ASIDE, MODEL, PERSON, STATUSES, Format, Settings
from .personal import PERSONAL

KEEPABLE = (*ASIDE, PERSONAL)
SETS = ("refuse", "split", "joined")
FILE = "source_file"  # column with the number of the file
TEXT_FILES = (".csv", ".tsv", ".tab", ".txt", ".jsonl", ".ndjson", ".manifest")  # whose rows have lines


class Wanted(NamedTuple):
    """What the caller wants of an export."""

    question: str | None = None
    keep: tuple[str, ...] = ()
    sets: str = "refuse"
    key: bytes | None = None  # for digests of workers
    settings: Settings = Settings()
    whole: bool = False  # whether everything in the export is needed, not only the answers to one question

    def check(self) -> None:
        """Raise ParameterError for values that are not allowed."""
        for each in self.keep:
            check_choice("keep", each, KEEPABLE)
        check_choice("sets", self.sets, SETS)


class Export(NamedTuple):
    """The judgements in the files of one platform."""

    frame: pl.DataFrame  # those of the columns of `formats.base.COLUMNS` that have values, and the number of the file
    format: Format
    names: tuple[str, ...]  # of the files
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    hidden: bool = False  # whether names of files are not shown, because they are those of workers

    def where(self, rows: pl.DataFrame) -> Callable[[int], str]:
        """Return a function that describes the place of a row of `rows`, which are from this export."""
        file, row = rows[FILE].to_numpy(), rows["source_row"].to_numpy()
        lined = [name.removesuffix(".gz").endswith(TEXT_FILES) for name in self.names]
        return lambda n: f"{self.names[file[n]]}:{'' if lined[file[n]] else 'record '}{row[n]}"


class Made(NamedTuple):
    """A table for the class of a kind of answers."""

    frame: pl.DataFrame
    rows: pl.DataFrame  # file and place in it of each row of the frame
    options: dict[str, Any]
    notes: list[str]
    warnings: list[str]


def nothing(name: str, kind: Any, count: int) -> pl.Series:
    """Return a column of nulls."""
    return pl.Series(name, [None], kind).new_from_index(0, count)


def check_kept(names: Collection[str] | None) -> tuple[str, ...]:
    """Return the statuses that the caller wants to keep, given as names or as text with commas.

    >>> check_kept("test, rejected"), check_kept(["test"]), check_kept(None)
    (('test', 'rejected'), ('test',), ())
    """
    parts = [] if names is None else items(names)
    return tuple(part.strip() for each in parts for part in str(each).split(",") if part.strip())


def aside_reasons(rows: pl.DataFrame, format: Format, keep: Iterable[str]) -> pl.Series:
    """Return why rows are left out; null for those that count."""
    reasons: list[str | None] = []
    for status in STATUSES:
        words = format.statuses.get(status, status)
        reason = status if words == status else f"{status} ({words})"
        reasons.append(reason if status in ASIDE and status not in keep else None)
    return pl.Series(SET_ASIDE, reasons, pl.Categorical)[rows["status"].to_physical()]


def workers_of(rows: pl.DataFrame) -> pl.Series:
    """Return the workers; a record without an answer may have none."""
    return rows["worker"] if "worker" in rows.columns else nothing("worker", pl.String, rows.height)


def models_among(rows: pl.DataFrame, aside: pl.Series, notes: list[str]) -> list[pl.Series]:
    """Return the column that tells people from models if any model counts, and note how many do."""
    if "worker_kind" not in rows.columns:
        return []
    kinds = rows["worker_kind"].fill_null(PERSON)
    models = rows.filter((kinds == MODEL) & aside.is_null())["worker"].n_unique()
    if not models:
        return []
    notes.append(f"{models} of the workers are models, not people: see the column worker_kind")
    return [kinds.cast(pl.String).alias("worker_kind")]
