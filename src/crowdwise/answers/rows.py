"""Answers aligned with the rows of a feature table, so that both can be indexed alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..errors import FeatureError
from ..kernels.layout import Bools, Ints
from .coding import normalise_ids
from .frames import to_series

if TYPE_CHECKING:
    from .labels import Labels


class Rows(Sequence[Any]):
    """The answers to the task of each row of a feature table. It has the length of the table and is indexed like an
    array, so that it can be the target in cross-validation.

    >>> import crowdwise as cw
    >>> answers = cw.Labels(["t1", "t1", "t2"], ["ann", "bob", "ann"], ["cat", "dog", "cat"])
    >>> rows = answers.by_row(["t2", "t3", "t1"])
    >>> rows, rows[[0, 2]].labels()
    (Rows(3 rows, 2 with answers), Labels(3 answers, 2 tasks, 2 workers, 2 classes))
    """

    ndim = 1

    def __init__(self, answers: Labels, tasks: pl.Series, number: Ints, whole: bool = True) -> None:
        self.answers, self.tasks, self.number = answers, tasks, number  # number: (n,) index in answers.tasks, or -1
        self.whole = whole  # False for a selection of rows

    @classmethod
    def of(cls, answers: Labels, tasks: Any) -> Rows:
        """Align answers with rows; `tasks` are the ids of the rows, all different."""
        ids, _ = normalise_ids(to_series("task", tasks), "task", "the rows")
        if ids.is_duplicated().any():
            twice = ids.filter(ids.is_duplicated())
            raise FeatureError(
                f"{len(twice)} rows share a task with another row, for instance {twice[0]!r}. Give one row per task"
            )
        keys, known = ids, answers.tasks.alias("task")
        if ids.dtype.is_integer() and known.dtype.is_integer():
            keys, known = (series.cast(pl.Int64, strict=False) for series in (ids, known))
        elif ids.dtype != known.dtype and not len(ids):
            keys = ids.cast(known.dtype)
        elif ids.dtype != known.dtype and len(known):
            raise FeatureError(
                f"tasks of the rows are {ids.dtype} (for instance {ids[0]!r}), those of the answers {known.dtype} "
                f"({known[0]!r}), so they cannot be matched. Give both in the same type"
            )
        places = pl.DataFrame([known]).with_row_index("number")
        number = pl.DataFrame([keys]).join(places, on="task", how="left", maintain_order="left")["number"]
        return cls(answers, ids, number.cast(pl.Int64).fill_null(-1).to_numpy())

    @property
    def shape(self) -> tuple[int]:
        return (len(self.number),)

    @property
    def answered(self) -> Bools:
        """(n,) whether a row has answers."""
        some = self.answers.answers_per_task > 0
        return np.asarray((self.number >= 0) & np.append(some, False)[self.number])

    def in_order(self) -> Ints:
        """Return the rows with answers, sorted by task, so that the order of rows does not matter."""
        at = np.flatnonzero(self.answered)
        return np.asarray(at[np.argsort(self.number[at])])

    def labels(self) -> Labels:
        """Return the answers to these rows, with tasks sorted; all workers and classes are kept."""
        tasks = np.sort(self.number[self.answered])
        if (np.diff(tasks) == 0).any():
            repeated = self.answers.tasks[tasks[1:][np.diff(tasks) == 0]]
            raise FeatureError(f"task {repeated[0]!r} is in several rows. Draw rows without replacement")
        return self.answers.only(tasks)

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, which: Any) -> Rows:
        at = np.atleast_1d(np.arange(len(self))[np.asarray(which) if isinstance(which, list) else which])
        return Rows(self.answers, self.tasks[at], self.number[at], whole=False)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.object_]:
        """Return the indices of the tasks as objects, so that scikit-learn does not stratify by them."""
        return self.number.astype(object)

    def __repr__(self) -> str:
        return f"Rows({len(self)} rows, {int(self.answered.sum())} with answers)"
