"""The tables of a result: labels, workers, tasks. Every model gives the same columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..answers import Labels
from ..kernels.layout import Floats, Ints, per_worker, vote_parts, worker_answers

TIE = 1e-6  # probabilities closer than this are tied
CROWD = 2.0  # pseudo-answers of the crowd's mean that a worker's skill starts from
Z95 = 1.959963984540054


def decide(posterior: Floats, prevalence: Floats) -> tuple[Ints, Floats, Floats]:
    """Most probable class of each task, its probability, and whether it is tied.

    Among tied classes the more prevalent one is taken, then the first in class order: neither depends on row order.
    """
    T, K = posterior.shape
    if T == 0 or K == 0:
        return np.zeros(T, np.int32), np.zeros(T), np.zeros(T, bool)
    top = posterior.max(1)
    label = posterior.argmax(1).astype(np.int32)
    near = posterior >= top[:, None] - TIE
    tie = np.count_nonzero(near, axis=1) > 1
    if tie.any():
        by_share = np.argsort(-prevalence, kind="stable")
        label[tie] = by_share[near[tie][:, by_share].argmax(1)]
    return label, top.astype(np.float64), tie


def label_table(answers: Labels, posterior: Floats, prevalence: Floats) -> pl.DataFrame:
    """task, label, probability, votes, tie, status."""
    label, probability, tie = decide(posterior, prevalence)
    votes = answers.answers_per_task
    known = answers.gold >= 0
    label = np.where(known, answers.gold, label)
    votes_for = np.zeros(len(label))
    for part, counts in vote_parts(answers.kernels, answers.layout, 1):
        votes_for[part] = np.take_along_axis(counts, label[part, None], 1)[:, 0]
    status = np.where(votes_for == 0, 1, 0)
    status[votes == 0] = 2
    status[known] = 3
    silent = pl.Series((votes == 0) & ~known)
    named = answers.classes[label].alias("label")
    return pl.DataFrame(
        {
            "task": answers.tasks,
            "label": named.set(silent, None) if silent.any() else named,
            "probability": pl.Series(probability).set(silent, None) if silent.any() else probability,
            "votes": votes,
            "tie": tie & ~known & (votes > 0),
            "status": pl.Series(["ok", "unvoted", "no answers", "known"])[status],
        }
    )


def worker_table(answers: Labels, right: Floats, sure: Floats) -> pl.DataFrame:
    """worker, answers, skill, low, high, status; `right` and `sure` (W,) are those of `skills`."""
    skill, low, high = skills(right, sure, worker_answers(answers.layout), answers.n_classes)
    alone = pl.Series(~_identifiable(answers))

    def shown(values: Floats) -> pl.Series:
        return pl.Series(values).set(alone, None)

    return pl.DataFrame(
        {
            "worker": answers.workers,
            "answers": worker_answers(answers.layout),
            "skill": shown(skill),
            "low": shown(low),
            "high": shown(high),
            "status": pl.Series(["ok", "not identifiable"])[alone.cast(pl.UInt32)],
        }
    )


def skills(right: Floats, sure: Floats, n: Floats, n_classes: int) -> tuple[Floats, Floats, Floats]:
    """(W,) chance of a right answer, with its 95 % interval, from posteriors that have not seen the answer.

    Let q be such a posterior of a task, and the worker be right with chance p. The probability that q gives to the
    label told is then p s + (1 - p) (1 - s) / (K - 1) on average, with s the sum of squares of q. Solving the mean over
    n answers for p leaves no bias towards the worker's own answers; the slope of that line says how many answers with
    known truth these n are worth.
    """
    others = max(n_classes - 1, 1)
    n = np.maximum(n, 1).astype(np.float64)
    s = sure / n
    base = (1 - s) / others
    slope = np.maximum(s - base, 1e-6) if n_classes > 1 else np.ones(len(n))
    worth = n * slope**2
    share = np.clip((right / n - base) / slope, 0, 1) if n_classes > 1 else right / n
    half = (1 + 1 / max(n_classes, 1)) / 2  # where nothing is known: between chance and always right
    mean = float(((share * worth).sum() + CROWD * half) / (worth.sum() + CROWD))
    skill = (share * worth + CROWD * mean) / (worth + CROWD)
    low, high = wilson(skill, worth + CROWD)
    return skill, np.minimum(low, skill), np.maximum(high, skill)


def wilson(share: Floats, n: Floats) -> tuple[Floats, Floats]:
    """95 % interval of a share seen in n trials (Wilson 1927)."""
    below = 1 + Z95**2 / n
    centre = (share + Z95**2 / (2 * n)) / below
    half = Z95 * np.sqrt(share * (1 - share) / n + Z95**2 / (4 * n**2)) / below
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


def _identifiable(answers: Labels) -> Floats:
    """(W,) whether a worker's answers can be held against anything: another's answer, or gold."""
    layout = answers.layout
    worker = layout.row_worker[layout.pair]
    first = layout.task_ptr[:-1][np.diff(layout.task_ptr) > 0]
    several = np.zeros(answers.n_tasks, bool)
    if len(worker):
        differs = np.append(False, worker[1:] != worker[:-1])
        differs[first] = False
        several[np.diff(layout.task_ptr) > 0] = np.logical_or.reduceat(differs, first)
    checked = (several | (answers.gold >= 0))[layout.task]
    by_row = np.add.reduceat(checked.astype(np.int64), layout.row_ptr[:-1]) if layout.n_rows else np.zeros(0, np.int64)
    return per_worker(layout, by_row) > 0


def task_table(answers: Labels, posterior: Floats, difficulty: Floats | None) -> pl.DataFrame:
    """task, answers, entropy (bits), disagreement (share of answers outside the most frequent label), difficulty."""
    n = answers.answers_per_task
    most_votes = np.zeros(len(n))
    for part, counts in vote_parts(answers.kernels, answers.layout, 1):
        most_votes[part] = counts.max(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log2(posterior, where=posterior > 0, out=np.zeros_like(posterior))
        entropy = -(posterior * logs).sum(1, dtype=np.float64)
        disagreement = 1 - most_votes / n
    silent = pl.Series(n == 0)
    hard: Any = pl.Series(np.full(len(n), np.nan) if difficulty is None else difficulty, nan_to_null=True)
    return pl.DataFrame(
        {
            "task": answers.tasks,
            "answers": n,
            "entropy": pl.Series(np.maximum(entropy, 0.0)).set(silent, None),
            "disagreement": pl.Series(disagreement).set(silent, None),
            "difficulty": hard,
        }
    )
