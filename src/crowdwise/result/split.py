"""SplitResult: the result of a fit of labels in parts. Its tables of tasks are never in memory as a whole."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..answers.split import SplitLabels
from ..errors import DataError
from ..kernels.layout import Floats, Ints, weighted_counts
from .labels import FittedLabels
from .tables import check_warnings, task_warnings, worker_warnings

TASK_TABLES = ("labels", "tasks")
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
    rated: pl.DataFrame  # the table of workers
    components: int  # sets of workers that share no task
    states: dict[str, int]  # tasks in each state: ok, unvoted, no answers, known
    ties: int
    checks: Ints  # (2,) answers marked as attention checks, and those of them to tasks with gold
    expected: Floats  # (2,) of the labels estimated: sum of probabilities p, sum of p (1 - p)
    doubts: Floats  # (2, BINS) labels estimated by probability of error, see `count_doubts`
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


class SavedTables(TaskTables):
    """Tables in folders of Parquet files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def scan(self, name: str) -> pl.LazyFrame:
        return pl.scan_parquet(sorted((self.folder / name).glob("*.parquet")), glob=False)

    def write(self, name: str, folder: Path) -> Path:
        return Path(shutil.copytree(self.folder / name, folder / name))


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
