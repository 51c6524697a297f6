"""Predictions for tasks that a fit has not seen, from their features and answers together."""

from __future__ import annotations

import warnings

import numpy as np

from ..answers import places
from ..answers.rows import Rows
from ..errors import EmptyDataError
from ..kernels.layout import Floats, Ints
from ..result import LabelsResult
from .difficulty import DifficultySide, Fixed
from .objective import softmax

MAX_CELLS = 1 << 22  # numbers in the tables of answers handled at a time


def predict_with_answers(
    result: LabelsResult, logits: Floats, rows: Rows, *, blind: bool = False
) -> tuple[Floats, float]:
    """(n, K) posterior of rows whose classifier gives logits (n, K), and the mean log-likelihood of their answers.

    A worker not met before is taken as an average one; an answer with a label not met before says nothing. `blind`: the
    ease of a task must not come from the very answers whose likelihood is asked, and is the mean where it would.
    """
    answers = rows.labels()
    at = rows.in_order()  # row of each task of `answers`
    worker_of, label_of = places(result.answers.workers, answers.workers), places(result.classes, answers.classes)
    task, worker, label = answers.codes()
    known = label_of[label] >= 0
    if not known.all() or (len(worker) and (worker_of[worker] < 0).all()):
        strange = f"{int((~known).sum())} of {len(known)} answers give a label that was not met before"
        warnings.warn(strange if not known.all() else "no worker of these answers was met before", stacklevel=3)
    task, worker, label = task[known], worker_of[worker[known]], label_of[label[known]]
    if blind and not len(task):
        raise EmptyDataError("these rows have no answers whose likelihood could be computed. Give rows that have some")
    if not result.model.shares_truth:
        return _predict_each(result, logits, at[task], label)
    logs = np.log(softmax(logits))
    emitted = _emitted(result, logits[at], (task, worker, label), blind)
    for k in range(logs.shape[1]):
        logs[at, k] += np.bincount(task, emitted[:, k], minlength=len(at))
    top = logs.max(1, keepdims=True)
    evidence = (top + np.log(np.exp(logs - top).sum(1, keepdims=True)))[at].sum()
    return softmax(logs), float(evidence) / max(len(task), 1)


def _predict_each(result: LabelsResult, logits: Floats, row: Ints, label: Ints) -> tuple[Floats, float]:
    """The same where every answer has a truth of its own: a row's is the mean of its answers'."""
    prior = softmax(logits)
    joint = prior[row] * np.exp(
        result.model.emission(result.params, result.answers.layout, np.full(len(row), -1), label)
    )
    chance = joint.sum(1, keepdims=True)
    joint /= chance
    count = np.bincount(row, minlength=len(prior))[:, None]
    mean = np.stack([np.bincount(row, joint[:, k], minlength=len(prior)) for k in range(prior.shape[1])], axis=1)
    return np.where(count > 0, mean / np.maximum(count, 1), prior), float(np.log(chance).sum()) / max(len(row), 1)


def _emitted(result: LabelsResult, logits: Floats, codes: tuple[Ints, Ints, Ints], blind: bool) -> Floats:
    """(N, K) log-probability of each answer under each class."""
    task, worker, label = codes
    model, params, layout = result.model, result.params, result.answers.layout
    if isinstance(model, DifficultySide):
        votes = np.bincount(task * logits.shape[1] + label, minlength=logits.size).reshape(logits.shape)
        ease = model.ease_at(params, logits, votes.astype(np.float64))
        if blind and isinstance(model, Fixed):
            ease = np.full(len(ease), params.ease.mean())
        params = params._replace(ease=ease)
    parts = []
    size = max(1, MAX_CELLS // logits.shape[1] ** 2)
    for start in range(0, len(task), size):
        part = slice(start, start + size)
        at = task[part] if isinstance(model, DifficultySide) else None  # of others, tasks are those of the fit
        parts.append(model.emission(params, layout, worker[part], label[part], at))
    return np.concatenate(parts) if parts else np.zeros((0, result.answers.n_classes))
