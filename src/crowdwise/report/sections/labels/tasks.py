"""The most uncertain tasks, with their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from ....acquisition import expected, hull_slopes, open_tasks
from ....io import read_content
from ....kernels.layout import Ints
from ....kernels.special import classes_of
from ....result import LabelsResult
from ...parts import has_any
from ...pictures import content_pictures
from ...registry import section
from ...text import MAX_NAME_CHARS, count, many, rounded, short
from .summary import doubtful

MAX_TASKS_SHOWN = 250
MAX_VOTES_SHOWN = 40  # of one task
MAX_CLASSES_SHOWN = 10  # of one posterior
MIN_PROBABILITY = 0.001  # of a class that is shown


class Chance(NamedTuple):
    label: int
    probability: float


@dataclass(frozen=True)
class Vote:
    """The answer of one worker to a task."""

    worker: str
    label: int
    skill: float | None


@dataclass(frozen=True)
class TaskRow:
    """A task to review."""

    task: str
    label: int | None
    probability: float | None
    status: Literal["ok", "unvoted", "no answers", "known"]
    tie: bool
    answers: int
    entropy: float | None  # bits
    vote_entropy: float | None
    disagreement: float | None
    difficulty: float | None
    gain: float | None  # in the probability of being right, by one more answer
    posterior: list[Chance]  # most probable first
    votes: list[Vote]
    more_votes: int  # that are not listed
    text: str | None  # what the task is about
    picture: str | None  # data URI


@dataclass(frozen=True)
class Tasks:
    headline: str
    total: int
    to_review: int
    notes: list[str]  # on tasks without text or picture
    rows: list[TaskRow]  # most uncertain first

    @property
    def terms(self) -> Sequence[str]:
        points = ["points"] if has_any(self.rows, "gain") else []
        return points + [term for term in ("entropy", "disagreement", "difficulty", "gain") if has_any(self.rows, term)]


@section(
    "labels", "tasks", order=30, nav="Tasks", title="Tasks to review",
    intro="The most uncertain tasks first. Answers of better workers count for more.",
    terms=("probability",),
)  # fmt: skip
def tasks(result: LabelsResult, *, content: Any = None) -> Tasks | None:
    """`content` is what `crowdwise.read_content` returns, or a table or mapping that it takes."""
    about = read_content(content)
    about.check(result.answers.tasks.to_list(), "task")
    open_ = open_tasks(result)
    if not open_.any():
        return None
    p = result.labels["probability"].fill_null(1.0).to_numpy().astype(np.float64)
    order = np.lexsort((np.arange(len(p)), p, ~open_))[: min(MAX_TASKS_SHOWN, int(open_.sum()))]
    gain = hull_slopes(expected(result, tasks=order))[:, 0]
    found = classes_of(result.posterior, result.prevalence, result.answers.gold)
    names = result.answers.tasks[order].to_list()
    pictures, notes = content_pictures(about, names, "task")
    rows = [
        _task_row(result, found, int(i), float(g), about.text(name), picture)
        for i, g, name, picture in zip(order, gain, names, pictures, strict=True)
    ]
    texts = sum(row.text is not None for row in rows)
    if about.texts and texts < len(rows):
        notes = [f"{count(texts)} of {many(len(rows), 'task')} are shown with their text.", *notes]
    wrong, review = doubtful(p[open_])
    verb = "is" if round(wrong) == 1 else "are"
    headline = f"About {count(round(wrong))} of {many(len(p), 'label')} {verb} expected to be wrong"
    headline += f", half of them on {many(review, 'task')}" if review and round(wrong) > 1 else ""
    if len(rows) < open_.sum():
        headline += f"; the list holds the {len(rows)} most uncertain tasks"
    return Tasks(headline + ".", result.answers.n_tasks, review, notes, rows)


def _task_row(result: LabelsResult, found: Ints, i: int, gain: float, text: str | None, picture: str | None) -> TaskRow:
    label, task = result.labels.row(i, named=True), result.tasks.row(i, named=True)
    q = result.posterior[i]
    top = np.argsort(-q, kind="stable")[:MAX_CLASSES_SHOWN]
    layout = result.answers.layout
    answered = layout.pair[layout.task_ptr[i] : layout.task_ptr[i + 1]]
    votes = [
        Vote(short(w, MAX_NAME_CHARS), int(given), rounded(s))
        for w, given, s in zip(
            result.answers.workers[layout.row_worker[answered]].to_list(), layout.row_label[answered].tolist(),
            result.workers["skill"][layout.row_worker[answered]].to_list(), strict=True,
        )
    ]  # fmt: skip
    votes.sort(key=lambda vote: (-float(q[vote.label]), vote.label, -(vote.skill or 0.0)))
    return TaskRow(
        task=short(label["task"], MAX_NAME_CHARS),
        label=int(found[i]),
        probability=rounded(label["probability"]),
        status=label["status"],
        tie=label["tie"],
        answers=task["answers"],
        **{name: rounded(task[name], 3) for name in ("entropy", "vote_entropy", "disagreement", "difficulty")},
        gain=rounded(gain),
        posterior=[Chance(int(k), rounded(q[k])) for k in top if q[k] >= MIN_PROBABILITY],
        votes=votes[:MAX_VOTES_SHOWN],
        more_votes=max(len(votes) - MAX_VOTES_SHOWN, 0),
        text=text,
        picture=picture,
    )
