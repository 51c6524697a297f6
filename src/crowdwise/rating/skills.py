"""The chance of a right answer, with an honest interval, from leave-one-out posteriors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..answers import Labels
from ..kernels.layout import Floats, Ints, per_worker, weighted_counts

CROWD = 2.0  # pseudo-answers of the crowd's mean that a worker's skill starts from
Z95 = 1.959963984540054


class Skills(NamedTuple):
    skill: Floats  # (W,) chance of a right answer
    low: Floats  # (W,) its 95 % interval
    high: Floats
    share: Floats  # (W,) right answers as they were seen, not drawn to the crowd's
    worth: Floats  # (W,) how many answers with known truth they are worth


def skills(right: Floats, sharpness: Floats, given: Ints, n_classes: int) -> Skills:
    """Let q be a leave-one-out posterior, and the worker be right with chance p. The
    probability that q gives to the label told is then p s + (1 - p) (1 - s) / (K - 1) on average, with s the sum of
    squares of q. Solving the mean over n answers for p leaves no bias towards the worker's own answers; the slope of
    that line says how many answers with known truth these n are worth.
    """
    others = max(n_classes - 1, 1)
    n = np.maximum(given, 1).astype(np.float64)
    s = sharpness / n
    base = (1 - s) / others
    slope = np.maximum(s - base, 1e-6) if n_classes > 1 else np.ones(len(n))
    worth = n * slope**2
    share = np.clip((right / n - base) / slope, 0, 1) if n_classes > 1 else right / n
    half = (1 + 1 / max(n_classes, 1)) / 2  # where nothing is known: between chance and always right
    mean = float(((share * worth).sum() + CROWD * half) / (worth.sum() + CROWD))
    skill = (share * worth + CROWD * mean) / (worth + CROWD)
    low, high = wilson(skill, worth + CROWD)
    return Skills(skill, np.minimum(low, skill), np.maximum(high, skill), share, worth)


def wilson(share: Floats, n: Floats) -> tuple[Floats, Floats]:
    """95 % interval of a share seen in n trials (Wilson 1927)."""
    below = 1 + Z95**2 / n
    centre = (share + Z95**2 / (2 * n)) / below
    half = Z95 * np.sqrt(share * (1 - share) / n + Z95**2 / (4 * n**2)) / below
    low, high = np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)
    return np.minimum(low, share), np.maximum(high, share)  # rounding may leave the share outside


def comparable(answers: Labels) -> Ints:
    """(W,) answers of each worker that can be compared with another's answer or with gold; adds up over pieces."""
    layout = answers.layout
    worker = layout.row_worker[layout.pair]
    first = layout.task_ptr[:-1][np.diff(layout.task_ptr) > 0]
    several = np.zeros(answers.n_tasks, bool)
    if len(worker):
        differs = np.append(False, worker[1:] != worker[:-1])
        differs[first] = False
        several[np.diff(layout.task_ptr) > 0] = np.logical_or.reduceat(differs, first)
    checked = (several | (answers.gold >= 0))[layout.task]
    row = np.repeat(np.arange(layout.n_rows), np.diff(layout.row_ptr))
    return per_worker(layout, weighted_counts(row, checked, layout.n_rows).astype(np.int64))
