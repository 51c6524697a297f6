"""Match answers with rows of features, and predict from both together."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import polars as pl
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, column_or_1d

from ..answers import Answers, Labels, places
from ..answers.rows import Rows
from ..errors import EmptyDataError, FeatureError
from ..kernels.layout import Floats, Ints
from ..result import LabelsResult
from .difficulty import Fixed, OddsSide
from .objective import softmax

MAX_CELLS = 1 << 22  # values in a chunk of the table of log-probabilities


def as_rows(X: Any, answers: Any, tasks: Any) -> Rows:
    """Check answers in any accepted form, and return them in the order of the rows of X."""
    n = _num_samples(X)
    if isinstance(answers, Rows):
        if tasks is not None:
            raise FeatureError("answers by row already contain their tasks. Omit tasks=")
        rows = answers
    elif tasks is not None:
        if _num_samples(tasks) != n:
            raise FeatureError(f"X has {n} rows, but tasks has {_num_samples(tasks)} ids. Give one task id per row")
        rows = Labels.from_any(answers).by_row(tasks)
    elif answers is None:
        raise FeatureError(
            "answers are None: requires y to be passed, but the target y is None"
        )  # scikit-learn's words
    elif isinstance(answers, (Answers, dict)) or hasattr(answers, "columns"):
        raise FeatureError(
            "it is unknown which row of X belongs to which task. Give tasks=, the task id of every row; or, for a "
            "frame with one column per worker in the order of X, its .to_numpy()"
        )
    else:
        rows = _from_array(answers)
    if len(rows) != n:
        raise FeatureError(f"X has {n} rows, but the answers have {len(rows)}: inconsistent numbers of samples")
    if not rows.answered.any():
        known, given = rows.answers.tasks, rows.tasks
        raise EmptyDataError(
            f"none of the {n} rows has an answer. A task id of the rows is {given[0]!r}; one of the answers is "
            f"{known[0]!r}"
            if len(known) and len(given)
            else "there are no answers"
        )
    return rows


def _from_array(answers: Any) -> Rows:
    """Read an array with one label per row, or with one column per worker and gaps."""
    y = np.asarray(answers, object if isinstance(answers, (list, tuple)) else None)
    if y.ndim == 1 and isinstance(answers, (list, tuple)):
        y = np.asarray(answers)
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: it is used as one answer per row",
            DataConversionWarning,
            stacklevel=4,
        )
        y = y[:, 0]
    if y.ndim > 2:
        raise FeatureError(f"answers have {y.ndim} dimensions. Give one label per row, or one column per worker")
    if y.ndim == 2:
        flat = y.ravel()
        if flat.dtype == object:  # from a frame: None and NaN among values of any type
            labels = pl.Series([None if value is None or value != value else value for value in flat], strict=False)
        else:
            labels = pl.Series(flat, nan_to_null=True)
        present = (labels.is_not_null() & (labels.cast(pl.String) != "")).to_numpy()
        task, worker = (at.ravel()[present] for at in np.indices(y.shape))
        made = Labels(task, worker, labels.filter(pl.Series(present)))
    else:
        if y.dtype == object and any(value is None for value in y):
            raise FeatureError("some rows have no answer (None). For gaps, give one column per worker, or tasks=")
        y = column_or_1d(y)
        check_classification_targets(y)
        made = Labels(np.arange(len(y)), np.zeros(len(y), np.int64), y)
    return made.by_row(np.arange(len(y)))


def predict_with_answers(
    result: LabelsResult, logits: Floats, rows: Rows, *, blind: bool = False
) -> tuple[Floats, float]:
    """(n, K) posterior of rows from the classifier's logits (n, K) and their answers, and the mean log-likelihood.

    A new worker is treated as an average one; an answer with a new label is ignored. With `blind`, the ease of a task
    does not depend on the answers whose likelihood is computed: if it would, the mean ease is used.
    """
    answers = rows.labels()
    at = rows.in_order()  # row of each task of `answers`
    worker_of, label_of = places(result.answers.workers, answers.workers), places(result.classes, answers.classes)
    task, worker, label = answers.codes()
    known = label_of[label] >= 0
    if not known.all() or (len(worker) and (worker_of[worker] < 0).all()):
        ignored = f"{int((~known).sum())} of {len(known)} answers have a label unknown to the model and are ignored"
        warnings.warn(
            ignored if not known.all() else "all workers of these answers are unknown to the model", stacklevel=3
        )
    task, worker, label = task[known], worker_of[worker[known]], label_of[label[known]]
    if blind and not len(task):
        raise EmptyDataError("these rows have no answers, so there is no likelihood. Give rows with answers")
    if not result.model.shares_truth:
        return _predict_each(result, logits, at[task], label)
    logs = np.log(softmax(logits))
    log_emissions = _log_emissions(result, logits[at], (task, worker, label), blind)
    for k in range(logs.shape[1]):
        logs[at, k] += np.bincount(task, log_emissions[:, k], minlength=len(at))
    top = logs.max(1, keepdims=True)
    evidence = (top + np.log(np.exp(logs - top).sum(1, keepdims=True)))[at].sum()
    return softmax(logs), float(evidence) / max(len(task), 1)


def _predict_each(result: LabelsResult, logits: Floats, row: Ints, label: Ints) -> tuple[Floats, float]:
    """As `predict_with_answers`, for models in which each answer has its own true class; a row gets their mean."""
    prior = softmax(logits)
    joint = prior[row] * np.exp(
        result.model.emission(result.params, result.answers.layout, np.full(len(row), -1), label)
    )
    chance = joint.sum(1, keepdims=True)
    joint /= chance
    count = np.bincount(row, minlength=len(prior))[:, None]
    mean = np.stack([np.bincount(row, joint[:, k], minlength=len(prior)) for k in range(prior.shape[1])], axis=1)
    return np.where(count > 0, mean / np.maximum(count, 1), prior), float(np.log(chance).sum()) / max(len(row), 1)


def _log_emissions(result: LabelsResult, logits: Floats, codes: tuple[Ints, Ints, Ints], blind: bool) -> Floats:
    """(N, K) log-probability of each answer under each class."""
    task, worker, label = codes
    model, params, layout = result.model, result.params, result.answers.layout
    if isinstance(model, OddsSide):
        votes = np.bincount(task * logits.shape[1] + label, minlength=logits.size).reshape(logits.shape)
        ease = model.ease_at(params, logits, votes.astype(np.float64))
        if blind and isinstance(model, Fixed):
            ease = np.full(len(ease), params.ease.mean())
        params = params._replace(ease=ease)
    parts = []
    size = max(1, MAX_CELLS // logits.shape[1] ** 2)
    for start in range(0, len(task), size):
        part = slice(start, start + size)
        at = task[part] if isinstance(model, OddsSide) else None  # other models have no ease of new tasks
        parts.append(model.emission(params, layout, worker[part], label[part], at))
    return np.concatenate(parts) if parts else np.zeros((0, result.answers.n_classes))
