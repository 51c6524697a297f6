"""All labels that a stream holds: the ids, the answers of every task, and gold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..answers import Intake, Labels
from ..answers.coding import sought
from ..answers.frames import FOREIGN
from ..errors import DataError, UnknownIdError, nearest
from ..kernels import choose
from ..kernels.layout import Ints, sort_answers
from .held import Extras, Ids, Pool


class Ordered(NamedTuple):
    """The answers held, with ids in order, and without tasks, workers and classes that have no answers."""

    answers: Labels
    tasks: Ints  # (T,) numbers in the stream
    workers: Ints  # (W,) numbers in the stream
    same_classes: bool  # whether the classes are those of the stream, in the same order


class HeldLabels:
    """Tasks, workers and classes by number, with the answers and gold."""

    def __init__(self) -> None:
        self.tasks, self.workers, self.classes = Ids("task"), Ids("worker"), Ids("class")
        self.pool, self.extras = Pool(), Extras()
        self.gold: Ints = np.zeros(0, np.int32)  # (T,) with spare capacity
        self.waiting: dict[Any, Any] = {}  # gold of tasks that have no answers

    @property
    def roles(self) -> tuple[Ids, Ids, Ids]:
        return self.tasks, self.workers, self.classes

    def number(self, task: Any) -> int:
        """Return the number of a task; -1 if its gold is known, but no answer."""
        task = sought(task)
        try:
            number, waits = self.tasks.number.get(task, -1), task in self.waiting
        except FOREIGN:
            raise DataError(f"{task!r} is not the id of a task; give one plain value") from None
        if number < 0 and not waits:
            raise UnknownIdError(f"no task {task!r} in the stream.{nearest(task, self.tasks.values[:10_000])}")
        return number

    def gold_of(self, task: Any) -> Any:
        """Return the label that is known of a task, or None."""
        number = self.number(task)
        known = number >= 0 and self.gold[number] >= 0
        return self.classes.values[self.gold[number]] if known else self.waiting.get(task)

    def count_of(self, task: Any) -> int:
        """Return the number of answers of a task."""
        number = self.number(task)
        return int(self.pool.sizes(np.array([number]))[0]) if number >= 0 else 0

    def wait_for_answers(self, gold: dict[Any, Any]) -> None:
        """Keep gold of tasks without answers; None removes it."""
        for task, label in gold.items():
            if label is None:
                self.waiting.pop(task, None)
            else:
                self.waiting[task] = label

    def ordered(self) -> Ordered:
        """Return the answers as a table of labels, which does not depend on the order in which they came."""
        T, W, K = map(len, self.roles)
        held = self.pool.of(np.arange(T))
        gold = self.gold[:T]
        live = [
            np.bincount(held.at, minlength=T) > 0,
            np.bincount(held.worker, minlength=W) > 0,
            np.bincount(np.append(held.label, gold[gold >= 0]), minlength=K) > 0,
        ]
        series, order, place = zip(*map(_sorted, self.roles, live), strict=True)
        shape = (len(order[0]), len(order[1]), len(order[2]))
        task, worker, label = (at[each] for at, each in zip(place, held[:3], strict=True))
        layout, rank = sort_answers(choose(len(task), shape[2]), task, worker, label, shape)
        extras = self.extras.rows(held.extra[rank])
        answers = Labels.of(
            tasks=series[0], workers=series[1], classes=series[2], layout=layout, gold=place[2][gold[order[0]]],
            extras=extras, intake=_intake(len(held.at), extras.columns),
        )  # fmt: skip
        return Ordered(answers, order[0], order[1], np.array_equal(order[2], np.arange(K)))

    def adopt(self, answers: Labels) -> None:
        """Hold these answers, with their numbers, in place of all others; gold that waits is kept."""
        self.tasks, self.workers = Ids("task", answers.tasks), Ids("worker", answers.workers)
        self.classes = Ids("class", answers.classes)
        _, worker, label = answers.codes()
        numbers = np.arange(len(worker)) if answers.extras.width else np.full(len(worker), -1)
        self.pool = Pool.filled(answers.answers_per_task, worker, label, numbers)
        self.extras, self.gold = Extras(answers.extras), answers.gold.copy()


def _sorted(ids: Ids, some: Any) -> tuple[pl.Series, Ints, Ints]:
    """Return some of the ids in order, their numbers, and the place in this order of each number, or -1."""
    values, number = ids.series(), np.flatnonzero(some)
    number = number[values.filter(pl.Series(some)).arg_sort().to_numpy()]
    at = np.full(len(ids) + 1, -1, np.int32)  # the last entry is for unknown gold
    at[number] = np.arange(len(number))
    return values[number], number, at


def _intake(n: int, extras: Sequence[str]) -> Intake:
    columns = {role: role for role in ("task", "worker", "label")}
    return Intake("stream", "long", columns, (), tuple(extras), n, n)
