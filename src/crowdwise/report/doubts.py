"""The sections on tasks: the most uncertain ones, and what more answers would bring."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..acquisition import EVERY, CostCurve, expected, hull_slopes, open_tasks
from ..kernels.layout import Ints
from ..kernels.special import classes_of
from ..result import LabelsResult
from .summary import doubtful
from .words import LONGEST, count, known, percent, short

TASKS, VOTES = 250, 40  # shown at most: tasks, and answers to one of them


@dataclass(frozen=True)
class Vote:
    """The answer of one worker to a task."""

    worker: str
    label: int
    skill: float | None


@dataclass(frozen=True)
class TaskRow:
    """A task worth another look."""

    task: str
    label: int | None
    probability: float | None
    status: str  # ok, unvoted, no answers, known
    tie: bool
    answers: int
    entropy: float | None  # bits
    vote_entropy: float | None
    disagreement: float | None
    difficulty: float | None
    gain: float | None  # in the chance of being right, by one more answer
    posterior: list[tuple[int, float]]  # class and probability, most probable first
    votes: list[Vote]
    more_votes: int  # that are not listed


@dataclass(frozen=True)
class Tasks:
    """The tasks shown, most uncertain first."""

    says: str
    total: int
    to_review: int
    rows: list[TaskRow]


@dataclass(frozen=True)
class CurvePoint:
    """Expected accuracy after some more answers."""

    plan: str  # "every task", "the most uncertain tasks"
    answers: int  # added
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class Curve:
    says: str
    points: list[CurvePoint]


def tasks_section(result: LabelsResult) -> Tasks:
    open_ = open_tasks(result)
    p = result.labels["probability"].fill_null(1.0).to_numpy().astype(np.float64)
    order = np.lexsort((np.arange(len(p)), p, ~open_))[: min(TASKS, int(open_.sum()))]
    gain = hull_slopes(expected(result, tasks=order))[:, 0]
    found = classes_of(result.posterior, result.prevalence, result.answers.gold)
    rows = [_task_row(result, found, int(i), float(g)) for i, g in zip(order, gain, strict=True)]
    wrong, review = doubtful(p[open_])
    says = (
        f"About {wrong:.0f} of {count(len(p))} labels are expected to be wrong, half of them on {count(review)} tasks"
    )
    if len(rows) < open_.sum():
        says += f"; shown are the {len(rows)} most uncertain tasks"
    return Tasks(says + ".", result.answers.n_tasks, review, rows)


def _task_row(result: LabelsResult, found: Ints, i: int, gain: float) -> TaskRow:
    label, task = result.labels.row(i, named=True), result.tasks.row(i, named=True)
    q = result.posterior[i]
    top = np.argsort(-q, kind="stable")[:10]
    layout = result.answers.layout
    answered = layout.pair[layout.task_ptr[i] : layout.task_ptr[i + 1]]
    votes = [
        Vote(short(w, LONGEST), int(told), known(s))
        for w, told, s in zip(
            result.answers.workers[layout.row_worker[answered]].to_list(), layout.row_label[answered].tolist(),
            result.workers["skill"][layout.row_worker[answered]].to_list(), strict=True,
        )
    ]  # fmt: skip
    votes.sort(key=lambda vote: (-float(q[vote.label]), vote.label, -(vote.skill or 0.0)))
    return TaskRow(
        task=short(label["task"], LONGEST),
        label=int(found[i]),
        probability=known(label["probability"]),
        status=label["status"],
        tie=label["tie"],
        answers=task["answers"],
        **{name: known(task[name], 3) for name in ("entropy", "vote_entropy", "disagreement", "difficulty")},
        gain=known(gain),
        posterior=[(int(k), known(q[k])) for k in top if q[k] >= 0.001],
        votes=votes[:VOTES],
        more_votes=max(len(votes) - VOTES, 0),
    )


def curve_section(found: CostCurve) -> Curve:
    points = [CurvePoint(plan, n, known(a), known(low), known(high)) for plan, n, a, low, high in found.points.rows()]
    if not points:
        return Curve("Nothing is left to ask.", [])
    every = [point for point in points if point.plan == EVERY]
    says = (
        f"One more answer to every task would raise expected accuracy from {percent(every[0].accuracy)} to "
        f"{percent(every[1].accuracy)}; as many given to the most uncertain tasks only, to "
        f"{percent(_at(points, every[1]))}."
    )
    if found.check is None:
        return Curve(f"{says} The curve was not checked on this table.", points)
    says += (
        f" Checked on {count(found.check.tasks)} tasks with an answer taken away: predicted "
        f"{percent(found.check.predicted)}, observed {percent(found.check.observed)}."
    )
    return Curve(says, points)


def _at(points: list[CurvePoint], every: CurvePoint) -> float:
    near = [p.accuracy for p in points if p.plan != EVERY and p.answers <= every.answers]
    return max(near, default=every.accuracy)
