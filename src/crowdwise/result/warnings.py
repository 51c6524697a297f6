"""What a reader should know before trusting a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import option
from ..rating.checks import no_truth_of_checks
from ..rating.times import unreadable_times

if TYPE_CHECKING:
    from .labels import LabelsResult


def found(result: LabelsResult) -> list[str]:
    """Warnings, worst first."""
    answers = result.answers
    said = []
    if answers.n_workers == 1:
        said.append("one worker only: labels are that worker's answers, and skill cannot be told")
    else:
        parts = int(answers.kernels.components(answers.layout).max(initial=0)) + 1
        if parts > 1 and result.model.tells_workers_apart:
            said.append(
                f"the crowd falls into {parts} parts that share no task: skills can be compared within a part only"
            )
    needed, typical = result.model.answers_needed(answers.n_classes), float(np.median(answers.answers_per_worker))
    if typical < needed:
        said.append(
            f"the typical worker gave {typical:g} answer(s), and {result.model.name} wants {needed} or more to know a "
            "worker: its labels may be worse than a vote. Take 'pooled'"
        )
    if answers.n_classes == 1:
        said.append("one class only: every answer says the same, so nothing can be told of skill")
    if no_truth_of_checks(answers):
        said.append(
            "answers are marked as attention checks, but the truth of none of these tasks is known, so checks are not "
            f"scored. Give it as gold ({option('gold')})"
        )
    if unreadable_times(answers):
        said.append("no time can be read in the columns of times. Give a column of seconds")
    status = result.labels["status"]
    for state, text in (
        ("unvoted", "got a label that nobody gave them"),
        ("no answers", "have no answer and no label"),
    ):
        count = int((status == state).sum())
        if count:
            said.append(f"{count} task(s) {text}")
    ties = int(np.sum(result.labels["tie"].to_numpy()))
    if ties:
        said.append(f"{ties} task(s) are tied: the more prevalent label was taken, and the tie is flagged")
    return said
