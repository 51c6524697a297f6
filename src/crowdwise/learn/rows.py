"""Rows of features and answers to their tasks, however they are given."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import polars as pl
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, column_or_1d

from ..answers import Answers, Labels
from ..answers.rows import Rows
from ..errors import EmptyDataError, FeatureError


def as_rows(X: Any, answers: Any, tasks: Any) -> Rows:
    """Answers in the order of X; each way of giving them is checked."""
    n = _num_samples(X)
    if isinstance(answers, Rows):
        if tasks is not None:
            raise FeatureError("answers by row know their tasks: leave tasks= out")
        rows = answers
    elif tasks is not None:
        if _num_samples(tasks) != n:
            raise FeatureError(f"X has {n} rows and tasks {_num_samples(tasks)} ids; give the task of every row")
        rows = Labels.from_any(answers).by_row(tasks)
    elif answers is None:
        raise FeatureError("answers are None: requires y to be passed, but the target y is None")
    elif isinstance(answers, (Answers, dict)) or hasattr(answers, "columns"):
        raise FeatureError(
            "which row is which task? Give tasks=, the id of every row of X; or, for a frame with a column per "
            "worker in the order of X, its .to_numpy()"
        )
    else:
        rows = _from_array(answers)
    if len(rows) != n:
        raise FeatureError(f"X has {n} rows and the answers {len(rows)}: inconsistent numbers of samples")
    if not rows.answered.any():
        known, given = rows.answers.tasks, rows.tasks
        raise EmptyDataError(
            f"none of the {n} rows has an answer: tasks of rows are like {given[0]!r}, those of answers like "
            f"{known[0]!r}"
            if len(known) and len(given)
            else "there are no answers"
        )
    return rows


def _from_array(answers: Any) -> Rows:
    """One label per row, or a column per worker with gaps."""
    y = np.asarray(answers, object if isinstance(answers, (list, tuple)) else None)
    if y.ndim == 1 and isinstance(answers, (list, tuple)):
        y = np.asarray(answers)
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: it is taken as one answer per row",
            DataConversionWarning,
            stacklevel=4,
        )
        y = y[:, 0]
    if y.ndim > 2:
        raise FeatureError(f"answers have {y.ndim} dimensions; give one label per row, or a column per worker")
    if y.ndim == 2:
        flat = y.ravel()
        if flat.dtype == object:  # as frames give it: None and NaN among anything
            said = pl.Series([None if value is None or value != value else value for value in flat], strict=False)
        else:
            said = pl.Series(flat, nan_to_null=True)
        there = (said.is_not_null() & (said.cast(pl.String) != "")).to_numpy()
        task, worker = (at.ravel()[there] for at in np.indices(y.shape))
        made = Labels(task, worker, said.filter(pl.Series(there)))
    else:
        if y.dtype == object and any(value is None for value in y):
            raise FeatureError("some rows have no answer (None). To leave gaps, give a column per worker, or tasks=")
        y = column_or_1d(y)
        check_classification_targets(y)
        made = Labels(np.arange(len(y)), np.zeros(len(y), np.int64), y)
    return made.by_row(np.arange(len(y)))
