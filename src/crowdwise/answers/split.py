"""Labels in parts that are not in memory together: on disk, or spread over machines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import polars as pl

from ..errors import ColumnError
from ..kernels import Kernels, choose
from ..kernels.layout import Ints, Subset, WorkerRows, sort_answers
from ..kernels.rules import Size
from .base import Answers, Intake
from .columns import Roles
from .labels import Labels
from .parts import Merged
from .rules import Ids


@dataclass(frozen=True, init=False, eq=False, repr=False)
class SplitLabels(Answers, ABC, listed=False):
    """Labels in parts, each with some of the tasks and all their answers. Models fit them as they fit `Labels`."""

    kind: ClassVar[str] = "labels"
    title: ClassVar[str] = Labels.title
    in_parts: ClassVar[bool] = True
    roles: ClassVar[Roles] = Labels.roles

    workers: Annotated[pl.Series, Ids("W")]
    classes: Annotated[pl.Series, Ids("K")]
    rows: WorkerRows
    n_tasks: Annotated[int, Size("T")]
    n_gold: Annotated[int, Size("gold")]  # tasks with gold
    weighted: bool
    intake: Intake

    @classmethod
    def from_merged(cls, merged: Merged, **own: Any) -> Self:
        """Create answers from what their parts have in common, and the fields of the subclass."""
        return cls.of(**merged._asdict(), **own)

    @abstractmethod
    def executor(self, make: Callable[[Labels, Subset], Any]) -> Any:
        """Return an executor over shards, one per part: `make(part, subset)`."""

    @abstractmethod
    def parts(self) -> Any:
        """Yield every part with the classes of the whole table, and its subset of workers and rows."""

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.n_answers} answers, {self.n_tasks} tasks, {self.n_workers} workers, "
            f"{self.n_classes} classes)"
        )

    @property
    def n_answers(self) -> int:
        return self.intake.rows_used

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def tasks_in_memory(self) -> int:
        """How many tasks a fit holds in memory together."""
        return 0

    @property
    def row_table(self) -> WorkerRows:
        return self.rows

    @property
    def answers_per_worker(self) -> Ints:
        return self.rows.per_worker

    @property
    def answers_per_task(self) -> Ints:
        """Number of answers of each task, part by part, in 32 bits each."""
        return np.concatenate([np.diff(part.layout.task_ptr) for part, _ in self.parts()])

    @property
    def kernels(self) -> Kernels:
        """The kernels chosen for the size of this table."""
        return choose(self.n_answers, self.n_classes)

    worker_number = Labels.worker_number

    def check_weights(self) -> None:
        """Raise ColumnError if there is no column of weights; those of parts were checked when they were read."""
        if "weight" not in self.intake.extras:
            raise ColumnError(
                f"the answers have no column 'weight'; other columns are {', '.join(self.intake.extras) or 'none'}"
            )

    @abstractmethod
    def task_tables(self, executor: Any, work: Callable[..., dict[str, pl.DataFrame]], *args: Any) -> Any:
        """Return the tables with one row per task, `work(shard, local, *args)` of every shard: a `TaskTables`."""

    def sample(self, task: Ints, worker: Ints, label: Ints, gold: Ints) -> Labels:
        """Return coded answers (N,) to some tasks, which have numbers as ids, with their gold (T,)."""
        layout, _ = sort_answers(self.kernels, task, worker, label, (len(gold), self.n_workers, self.n_classes))
        return Labels.of(
            tasks=pl.Series("task", np.arange(len(gold))), workers=self.workers, classes=self.classes, layout=layout,
            gold=gold, extras=pl.DataFrame(), intake=self.intake,
        )  # fmt: skip

    def load(self) -> Labels:
        """Return all answers in memory, with tasks sorted by id."""
        tasks, gold, codes, extras = list[pl.Series](), list[Ints](), list[tuple[Ints, ...]](), list[pl.DataFrame]()
        start = 0
        for part, subset in self.parts():
            task, worker, label = part.codes()
            whole = worker if subset.workers is None else subset.workers[worker].astype(np.int32)
            codes.append((task + np.int32(start), whole, label))
            start += part.n_tasks
            tasks.append(part.tasks)
            gold.append(part.gold)
            extras.append(part.extras)
        ids = pl.concat(tasks)
        order = ids.arg_sort().to_numpy()
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        task, worker, label = (np.concatenate(each) for each in zip(*codes, strict=True))
        shape = (len(ids), self.n_workers, self.n_classes)
        layout, answer = sort_answers(self.kernels, place[task], worker, label, shape)
        columns = pl.concat(extras)
        return Labels.of(
            tasks=ids[order], workers=self.workers, classes=self.classes, layout=layout,
            gold=np.concatenate(gold)[order], extras=columns[answer] if columns.width else columns, intake=self.intake,
        )  # fmt: skip
