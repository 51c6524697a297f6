"""Scores on attention checks: answers to tasks with a known label."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from ..answers import Labels
from ..errors import EmptyDataError, ParameterError, flags, option, phrase
from ..kernels.layout import Bools, Floats, Ints, PerWorker, weighted_counts
from .pieces import Piece, parts
from .skills import wilson

YES = ("1", "true", "yes", "y", "t", "1.0")


class Checks(NamedTuple):
    asked: Ints  # (W,) answers to checks
    score: Floats  # (W,) share of them that is correct; NaN without any
    low: Floats
    high: Floats


class CheckSums(NamedTuple):
    asked: PerWorker  # (W,)
    right: PerWorker  # (W,)


def check_sums(piece: Piece) -> CheckSums:
    """Count each worker's checks: answers marked in a column `is_check`, or else all answers to tasks with gold."""
    answers = piece.answers
    W, marked = answers.n_workers, check_marks(answers)
    asked, right = np.zeros(W, np.int64), np.zeros(W)
    if (answers.gold >= 0).any():
        for part in parts(piece):
            gold = answers.gold[part.task]
            counts = (gold >= 0) if marked is None else (gold >= 0) & marked[part.answers]
            asked += weighted_counts(part.worker, counts, W).astype(np.int64)
            right += weighted_counts(part.worker, counts & (gold == part.label), W)
    return CheckSums(asked, right)


def checks(sums: CheckSums) -> Checks:
    """Return scores on attention checks with 95 % intervals."""
    with np.errstate(invalid="ignore", divide="ignore"):
        score = np.where(sums.asked > 0, sums.right / sums.asked, np.nan)
        low, high = wilson(score, sums.asked.astype(np.float64))
    return Checks(sums.asked, score, low, high)


def check_threshold(threshold: float) -> None:
    """Raise ParameterError if this is not a score on attention checks."""
    if not 0 <= threshold <= 1:
        raise ParameterError(
            f"{option('drop_below', threshold)}: the threshold is a share of correct answers, from 0 to 1; for "
            f"instance {option('drop_below', 0.75)}"
        )


def drop_below(answers: Labels, threshold: float) -> Labels:
    """Return the answers without those of workers whose score on attention checks is below the threshold.

    Workers without checks are kept, and a note in the record of the reading counts them.
    """
    check_threshold(threshold)
    found = checks(check_sums(Piece(answers, np.empty((answers.n_tasks, 0)), 0, answers.kernels)))  # no posterior
    if not found.asked.any():
        known = phrase("gold=...", f"{flags(gold='FILE')} or {flags(gold_column='COL')}")
        raise ParameterError(
            f"{option('drop_below', threshold)} needs attention checks: answers to tasks with a known label, and "
            f"{answers.intake.source} has none. Give the known labels with {known}"
        )
    low = answers.workers.filter(pl.Series(found.score < threshold))
    if len(low) == answers.n_workers:
        raise EmptyDataError(
            f"all {len(low)} workers are below {threshold:g} on attention checks, so no answers are left. Give a lower "
            f"threshold with {option('drop_below')}"
        )
    gone = "1 worker" if len(low) == 1 else f"{len(low)} workers"
    kept = answers.without(low, f"answers of {gone} below {threshold:g} on attention checks")
    unchecked = int((found.asked == 0).sum())
    if not unchecked:
        return kept
    note = f"kept although without attention checks: {unchecked} of {answers.n_workers} workers"
    return kept.replaced(intake=replace(kept.intake, notes=(*kept.intake.notes, note)))


def check_marks(answers: Labels) -> Bools | None:
    """Return which answers (N,) are marked as checks, in task order, or None without such a column."""
    if "is_check" not in answers.extras.columns:
        return None
    marks = as_marks(answers.extras["is_check"])
    return None if marks is None else marks.to_numpy()


def as_marks(column: pl.Series) -> pl.Series | None:
    """Return a column as booleans; texts and numbers are true if they are in `YES`. None for other types."""
    if column.dtype == pl.String or column.dtype.is_numeric():
        column = column.cast(pl.String).str.strip_chars().str.to_lowercase().is_in(list(YES))
    return column.fill_null(value=False) if column.dtype == pl.Boolean else None


def marked_checks(answers: Labels) -> Ints:
    """Return how many answers are marked as checks, and how many of them are to tasks with gold."""
    marks = check_marks(answers)
    if marks is None or not marks.any():
        return np.zeros(2, np.int64)
    task = np.repeat(np.arange(answers.n_tasks), answers.answers_per_task)
    return np.array([marks.sum(), (answers.gold[task[marks]] >= 0).sum()])
