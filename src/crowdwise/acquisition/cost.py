"""What more answers would bring: expected accuracy against their number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ..engine import Run
from ..kernels.layout import Bools
from ..rating.skills import Z95
from ..result import LabelsResult
from ..result.base import result_of
from .tasks import AHEAD, expected, worth


@dataclass(frozen=True)
class Check:
    """What the curve predicted from fewer answers, and what was observed."""

    predicted: float
    observed: float
    tasks: int


@dataclass(frozen=True)
class CostCurve:
    """Expected accuracy of the labels for more answers."""

    points: pl.DataFrame  # plan, answers (added), accuracy, low, high
    check: Check | None  # None where it was not done


EVERY, WORST = "every task", "the most uncertain tasks"
PARTS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 4.9)  # answers per task, given where they help most
CHECKED = 200_000  # answers up to which the check is done unasked


def cost_curve(result: LabelsResult, *, check: bool | None = None, seed: int = 0) -> CostCurve:
    """Expected accuracy if every task had 1, 2, ... more answers, or if as many were given where they help most.

    The band holds the chance of the labels themselves and the error of a check: one answer of each task is taken away,
    the model is fitted again, and what the curve then predicts is compared with what is known with the answer back.
    """
    result = result_of(result, "labels", "cost_curve")
    answers = result.answers
    open_ = (answers.gold < 0) & (answers.answers_per_task > 0)
    T = int(open_.sum())
    if T == 0:
        return CostCurve(_points([], 0.0, 0), None)
    V = expected(result)[open_]
    wanted = (answers.n_answers <= CHECKED if check is None else check) and result.model.features == "none"
    checked = _check(result, open_, seed) if wanted else None
    error = abs(checked.observed - checked.predicted) if checked else 0.0
    flat = np.sort(worth(V).ravel())[::-1]
    rows = [(EVERY, m * T, V[:, m]) for m in range(AHEAD + 1)]
    gains = np.concatenate([[0.0], np.cumsum(flat)])
    spots = [0, *dict.fromkeys(int(part * T) for part in PARTS if 0 < int(part * T) < len(gains))]
    base = float(V[:, 0].mean())
    spread = [float((v * (1 - v)).sum()) for _, _, v in rows]
    points = [(plan, n, float(v.mean()), s) for (plan, n, v), s in zip(rows, spread, strict=True)]
    points += [(WORST, n, min(base + gains[n] / T, 1.0), spread[0]) for n in spots]
    return CostCurve(_points(points, error, T), checked)


def _points(points: list[tuple[str, int, float, float]], error: float, T: int) -> pl.DataFrame:
    rows = []
    for plan, n, accuracy, spread in points:
        half = Z95 * np.sqrt(spread) / T + error * min(n / T, AHEAD)
        rows.append((plan, n, accuracy, max(accuracy - half, 0.0), min(accuracy + half, 1.0)))
    kinds = {"plan": pl.String, "answers": pl.Int64, "accuracy": pl.Float64, "low": pl.Float64, "high": pl.Float64}
    return pl.DataFrame(rows, schema=kinds, orient="row")


def _check(result: LabelsResult, open_: Bools, seed: int) -> Check | None:
    """Take an answer away from every task that has two or more, and predict what it brings."""
    answers = result.answers
    several = answers.answers_per_task > 1
    if not (several & open_).any():
        return None
    rng = np.random.default_rng(seed)
    gone = answers.layout.task_ptr[:-1] + (rng.random(answers.n_tasks) * answers.answers_per_task).astype(np.int64)
    keep = np.ones(answers.n_answers, bool)
    keep[gone[several]] = False
    fewer = result.model.fit(answers.take(keep), run=Run(seed=seed))
    at = several & open_
    now = expected(fewer, 1)[at, 1].mean()
    return Check(float(now), float(expected(result, 0)[at, 0].mean()), int(at.sum()))
