"""The tables of labels and tasks, the same for every model, and what a reader should know before trusting them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ..answers import Labels
from ..errors import option
from ..kernels.layout import Floats, vote_parts
from ..kernels.special import decide
from ..rating.checks import no_truth_of_checks
from ..rating.times import unreadable_times

if TYPE_CHECKING:
    from .labels import LabelsResult


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


def task_table(answers: Labels, posterior: Floats, difficulty: Floats | None) -> pl.DataFrame:
    """task, answers, entropy of the posterior and of the votes (bits), disagreement (share of answers outside the most
    frequent label), difficulty."""
    n = answers.answers_per_task
    most_votes, of_votes = np.zeros(len(n)), np.zeros(len(n))
    for part, counts in vote_parts(answers.kernels, answers.layout, 1):
        most_votes[part] = counts.max(1)
        of_votes[part] = bits(counts / np.maximum(n[part], 1)[:, None])
    with np.errstate(invalid="ignore", divide="ignore"):
        disagreement = 1 - most_votes / n
    silent = pl.Series(n == 0)
    hard: Any = pl.Series(np.full(len(n), np.nan) if difficulty is None else difficulty, nan_to_null=True)
    return pl.DataFrame(
        {
            "task": answers.tasks,
            "answers": n,
            "entropy": pl.Series(bits(posterior)).set(silent, None),
            "vote_entropy": pl.Series(of_votes).set(silent, None),
            "disagreement": pl.Series(disagreement).set(silent, None),
            "difficulty": hard,
        }
    )


def bits(shares: Floats) -> Floats:
    """(T,) entropy of the rows of shares (T, K)."""
    logs = np.log2(shares, where=shares > 0, out=np.zeros_like(shares))
    return np.asarray(np.maximum(-(shares * logs).sum(1, dtype=np.float64), 0.0))


def found(result: LabelsResult) -> list[str]:
    """Warnings, worst first."""
    answers = result.answers
    said = []
    if answers.n_workers == 1:
        said.append("one worker only: labels are that worker's answers, and skill cannot be told")
    else:
        parts = int(answers.kernels.components(answers.layout).max(initial=0)) + 1
        if parts > 1 and result.model.distinguishes_workers:
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
