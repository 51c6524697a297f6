"""The tables of labels and tasks. Every model gives the same columns; workers are rated in `rating`."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..answers import Labels
from ..kernels.decide import decide
from ..kernels.layout import Floats, vote_parts


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
