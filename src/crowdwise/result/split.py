"""SplitResult: the result of a fit of labels in parts. Its tables of tasks are never in memory as a whole."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl

from ..answers.rules import Table
from ..answers.split import SplitLabels
from ..errors import DataError
from ..kernels.layout import Floats, Ints, weighted_counts
from ..kernels.rules import Real, Whole
from ..rating import COLUMNS
from . import parquet
from .files import digest_of
from .labels import FittedLabels
from .tables import STATES, check_warnings, task_warnings, worker_warnings

TASK_COLUMNS = {
    "labels": ("task", "label", "probability", "votes", "tie", "status"),
    "tasks": ("task", "answers", "entropy", "vote_entropy", "disagreement", "difficulty", "effective_votes"),
}
TASK_TABLES = tuple(TASK_COLUMNS)
TEXTS, OF_ANY_TYPE = ("flags", "reasons", "status"), ("worker", "overuses")  # columns of workers; others are numbers
BINS, BINS_PER_FACTOR = 1000, 25  # classes of probabilities of error, and how many of them for each factor of e


class TaskTables(ABC):
    """The tables of a result with one row per task, in parts."""

    @abstractmethod
    def scan(self, name: str) -> Any:
        """Return a table as a lazy frame."""

    @abstractmethod
    def write(self, name: str, folder: Path) -> Path:
        """Write a table as Parquet files to a folder of its name in `folder`, and return it."""


def count_doubts(wrong: Floats) -> Floats:
    """Return the number and the sum (2, BINS) of probabilities of error in each class of them, the largest first."""
    places = -BINS_PER_FACTOR * np.log(np.clip(wrong, np.exp(-(BINS - 1) / BINS_PER_FACTOR), 1.0))
    bins = np.minimum(places.astype(np.int64), BINS - 1)
    return np.stack([weighted_counts(bins, each, BINS) for each in (np.ones(len(wrong)), wrong)])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SplitResult(FittedLabels):
    """Labels, workers and tasks of a fit of labels in parts.

    `workers` and the confusion matrices are as in `LabelsResult`. `labels` and `tasks` are lazy frames: select what you
    need, then call `.collect()`.
    """

    in_parts = True

    answers: SplitLabels
    rated: Annotated[pl.DataFrame, Table("W")]  # the table of workers
    components: int  # sets of workers that share no task
    states: dict[str, int]  # tasks in each state: ok, unvoted, no answers, known
    ties: int
    checks: Annotated[Ints, Whole("2", dtype="int64")]  # answers marked as checks, and those of them to tasks with gold
    expected: Annotated[Floats, Real("2", 0)]  # of the labels estimated: sum of probabilities p, sum of p (1 - p)
    doubts: Annotated[Floats, Real("2 1000", 0)]  # labels estimated by probability of error, see `count_doubts`
    task_tables: TaskTables

    @property
    def labels(self) -> Any:
        """A lazy frame with one row per task: task, label, probability, votes, tie, status."""
        return self.task_tables.scan("labels")

    @property
    def tasks(self) -> Any:
        """A lazy frame with one row per task: task, answers, entropy and vote_entropy (bits), disagreement, difficulty
        (null if the model has none)."""
        return self.task_tables.scan("tasks")

    @property
    def workers(self) -> pl.DataFrame:
        return self.rated

    def tables(self) -> dict[str, Any]:
        """Return the tables labels, workers and tasks; also groups and members if the model has groups of workers."""
        tables = {"labels": self.labels, "workers": self.workers, "tasks": self.tasks}
        if self.model.grouping(self.params) is not None:
            tables |= {"groups": self.groups, "members": self.members}
        return tables

    def own_warnings(self) -> list[str]:
        of_workers = worker_warnings(self, self.components)
        return [*of_workers, *check_warnings(self.checks), *task_warnings(self.states, self.ties)]

    def save(self, path: str | Path) -> Path:
        """Write this result to a folder: the tables of tasks as Parquet files, and everything else but the answers."""
        from .store import write_split

        return write_split(self, Path(path))

    def report(self, path: str | Path, **options: Any) -> Path:
        raise DataError(
            f"there is no page for a result in parts ({self!r}). Use its tables, or fit a sample of the tasks"
        )

    @property
    def flaw(self) -> str:
        """What contradicts itself in a result that was read from a file, or ""."""
        if tuple(self.states) != STATES or min(*self.states.values(), self.ties, self.components) < 0:
            return "has counts of tasks that cannot be"
        if tuple(self.rated.columns) != tuple(COLUMNS) or not self.rated["worker"].equals(self.answers.workers):
            return "has a table of workers that is not that of its workers"
        odd = [
            name
            for name, kind in self.rated.schema.items()
            if name not in OF_ANY_TYPE and not (kind == pl.String if name in TEXTS else kind.is_numeric())
        ]
        return f"has {self.rated[odd[0]].dtype} in the column {odd[0]!r} of workers" if odd else ""


class SavedTables(TaskTables):
    """Tables in folders of Parquet files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def scan(self, name: str) -> pl.LazyFrame:
        return pl.scan_parquet(sorted((self.folder / name).glob("*.parquet")), glob=False)

    def write(self, name: str, folder: Path) -> Path:
        return Path(shutil.copytree(self.folder / name, folder / name))


def table_sums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of the tables in a folder, by its path in it."""
    files = sorted(path for name in TASK_TABLES for path in (folder / name).glob("*.parquet"))
    return {path.relative_to(folder).as_posix(): digest_of(path) for path in files}


def saved_tables(folder: Path, sums: Mapping[str, str], n_tasks: int) -> SavedTables:
    """Return the tables of a saved result, or raise ValueError for what is wrong with them."""
    if table_sums(folder) != sums:
        raise ValueError(f"the tables of tasks in {folder.name} are not those that were written")
    for name, columns in TASK_COLUMNS.items():
        rows, files = 0, sorted((folder / name).glob("*.parquet"))
        for path in files:
            with path.open("rb") as file:
                data = parquet.FileBytes(file)
                parquet.check(data, n_tasks)
                rows += parquet.claims(data).rows
            if tuple(pl.read_parquet_schema(path)) != columns:
                raise ValueError(f"{path.name} of the table {name} has other columns than {', '.join(columns)}")
        if rows != n_tasks:
            raise ValueError(f"the table {name} has {rows} rows for {n_tasks} tasks")
    return SavedTables(folder)


class SummaryOfLabels(SplitLabels, listed=False):
    """The workers and classes of labels that are not at hand, as a saved result knows them."""

    def executor(self, make: Any) -> Any:
        raise self._absent()

    def parts(self) -> Any:
        raise self._absent()

    def task_tables(self, executor: Any, work: Any, *args: Any) -> Any:
        raise self._absent()

    def _absent(self) -> DataError:
        return DataError(f"the answers of this saved result are not saved with it ({self!r}). Read them again")
