"""The tables of labels and tasks, the same for every model, and the warnings of a result of labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from ..answers import Labels
from ..errors import option
from ..kernels.layout import Bools, Floats, Ints, vote_parts
from ..kernels.special import decide
from ..rating.checks import marked_checks
from ..rating.times import negative_times, unreadable_times

if TYPE_CHECKING:
    from .labels import FittedLabels, LabelsResult


STATES = ("ok", "unvoted", "no answers", "known")


class Decided(NamedTuple):
    """The labels of tasks (T,) as numbers."""

    label: Ints
    probability: Floats
    tie: Bools
    state: Ints  # in STATES


def decided(answers: Labels, posterior: Floats, prevalence: Floats) -> Decided:
    """Return the most probable label of every task, or its known label."""
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
    return Decided(label, probability, tie & ~known & (votes > 0), status)


def label_table(answers: Labels, posterior: Floats, prevalence: Floats) -> pl.DataFrame:
    """Return a table with task, label, probability, votes, tie, status."""
    label, probability, tie, state = decided(answers, posterior, prevalence)
    unanswered = pl.Series(state == STATES.index("no answers"))
    named = answers.classes[label].alias("label")
    return pl.DataFrame(
        {
            "task": answers.tasks,
            "label": named.set(unanswered, None) if unanswered.any() else named,
            "probability": pl.Series(probability).set(unanswered, None) if unanswered.any() else probability,
            "votes": answers.answers_per_task,
            "tie": tie,
            "status": pl.Series(STATES)[state],
        }
    )


def task_table(
    answers: Labels, posterior: Floats, difficulty: Floats | None, effective: Floats | None = None
) -> pl.DataFrame:
    """Return a table with task, answers, entropy of the posterior and of the votes (bits), disagreement (share of
    answers other than the most frequent label), difficulty, effective_votes."""
    n = answers.answers_per_task
    most_votes, of_votes = np.zeros(len(n)), np.zeros(len(n))
    for part, counts in vote_parts(answers.kernels, answers.layout, 1):
        most_votes[part] = counts.max(1)
        of_votes[part] = bits(counts / np.maximum(n[part], 1)[:, None])
    with np.errstate(invalid="ignore", divide="ignore"):
        disagreement = 1 - most_votes / n
    unanswered = pl.Series(n == 0)
    hard: Any = pl.Series(np.full(len(n), np.nan) if difficulty is None else difficulty, nan_to_null=True)
    return pl.DataFrame(
        {
            "task": answers.tasks,
            "answers": n,
            "entropy": pl.Series(bits(posterior)).set(unanswered, None),
            "vote_entropy": pl.Series(of_votes).set(unanswered, None),
            "disagreement": pl.Series(disagreement).set(unanswered, None),
            "difficulty": hard,
            "effective_votes": pl.Series(np.full(len(n), np.nan) if effective is None else effective, nan_to_null=True),
        }
    )


def bits(shares: Floats) -> Floats:
    """Return the entropy (T,) of the rows of shares (T, K), in bits."""
    logs = np.log2(shares, where=shares > 0, out=np.zeros_like(shares))
    return np.asarray(np.maximum(-(shares * logs).sum(1, dtype=np.float64), 0.0))


def label_warnings(result: LabelsResult) -> list[str]:
    """Return the warnings of a result of labels, the most serious first."""
    answers = result.answers
    parts = int(answers.kernels.components(answers.layout).max(initial=0)) + 1
    warnings = worker_warnings(result, parts)
    warnings += check_warnings(marked_checks(answers))
    if negative := negative_times(answers):
        warnings.append(f"{negative} answer(s) end before they start; their duration is not used")
    elif unreadable_times(answers):
        warnings.append("the columns of times contain no readable time. Give a column of seconds")
    states = result.labels["status"]
    counts = {state: int((states == state).sum()) for state in STATES}
    return [*warnings, *task_warnings(counts, int(np.sum(result.labels["tie"].to_numpy())))]


def worker_warnings(result: FittedLabels, parts: int) -> list[str]:
    """Return warnings about workers and classes; the workers form `parts` sets that share no task."""
    answers, warnings = result.answers, []
    if answers.n_workers == 1:
        warnings.append("there is only one worker: the labels are that worker's answers, and skill cannot be estimated")
    elif parts > 1 and result.model.distinguishes_workers:
        warnings.append(f"the workers form {parts} sets that share no task: skills can be compared only within a set")
    needed, typical = result.model.answers_needed(answers.n_classes), float(np.median(answers.answers_per_worker))
    if typical < needed:
        warnings.append(
            f"the median worker gave {typical:g} answer(s), but {result.model.name} needs {needed} or more per worker: "
            "its labels may be worse than a vote. Use 'pooled'"
        )
    warnings += result.model.guard_warnings(result.params, answers.workers)
    if answers.n_classes == 1:
        warnings.append("there is only one class: all answers are the same, so skill cannot be estimated")
    return warnings


def check_warnings(checks: Ints) -> list[str]:
    """Return a warning if answers are marked as checks, but none of them is to a task with gold."""
    marked, known = checks.tolist()
    if not marked or known:
        return []
    return [
        "some answers are marked as attention checks, but none of these tasks has a known label, so checks are not "
        f"scored. Give the labels as gold ({option('gold')})"
    ]


def task_warnings(counts: Mapping[str, int], ties: int) -> list[str]:
    """Return warnings about tasks, from the number of tasks in each state and of ties."""
    warnings = [
        f"{counts[state]} task(s) {text}"
        for state, text in (
            ("unvoted", "have a label that no worker gave"),
            ("no answers", "have no answer and no label"),
        )
        if counts[state]
    ]
    if ties:
        warnings.append(f"{ties} task(s) are tied: the more prevalent label was used, and the tie is flagged")
    return warnings
