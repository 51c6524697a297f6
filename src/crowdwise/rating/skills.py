"""Worker skill: the probability of a correct answer with its interval, from leave-one-out posteriors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..answers import Labels
from ..kernels import Kernels
from ..kernels.layout import Floats, Ints, Layout, per_worker, weighted_counts

SKILL_PRIOR_ANSWERS = 2.0  # pseudo-answers with the crowd's mean in each worker's skill
Z95 = 1.959963984540054  # 97.5 % quantile of the standard normal distribution
CHUNK_ANSWERS = 1 << 20  # answers in a chunk


class Skills(NamedTuple):
    skill: Floats  # (W,) probability of a correct answer
    low: Floats  # (W,) its 95 % interval
    high: Floats
    share: Floats  # (W,) estimated share of correct answers, without shrinkage to the crowd's mean
    worth: Floats  # (W,) equivalent number of answers to tasks with known truth


def skills(right: Floats, sharpness: Floats, given: Ints, n_classes: int) -> Skills:
    """Return the skill of each worker from the sums of `LeftOut` and the number of answers given (W,).

    Let q be a leave-one-out posterior, and let the worker be correct with probability p. The expected probability under
    q of the label given is p s + (1 - p) (1 - s) / (K - 1), where s is the sum of squares of q. Solving the mean over n
    answers for p gives an estimate that is not biased towards the worker's own answers. The slope of this line gives
    the equivalent number of answers to tasks with known truth.
    """
    others = max(n_classes - 1, 1)
    n = np.maximum(given, 1).astype(np.float64)
    s = sharpness / n
    base = (1 - s) / others
    slope = np.maximum(s - base, 1e-6) if n_classes > 1 else np.ones(len(n))
    worth = n * slope**2
    share = np.clip((right / n - base) / slope, 0, 1) if n_classes > 1 else right / n
    half = (1 + 1 / max(n_classes, 1)) / 2  # without data: halfway between chance and always correct
    mean = float(((share * worth).sum() + SKILL_PRIOR_ANSWERS * half) / (worth.sum() + SKILL_PRIOR_ANSWERS))
    skill = (share * worth + SKILL_PRIOR_ANSWERS * mean) / (worth + SKILL_PRIOR_ANSWERS)
    low, high = wilson(skill, worth + SKILL_PRIOR_ANSWERS)
    return Skills(skill, np.minimum(low, skill), np.maximum(high, skill), share, worth)


def wilson(share: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Return the 95 % interval of a share observed in n trials (Wilson 1927)."""
    below = 1 + Z95**2 / n
    centre = (share + Z95**2 / (2 * n)) / below
    half = Z95 * np.sqrt(share * (1 - share) / n + Z95**2 / (4 * n**2)) / below
    low, high = np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)
    return np.minimum(low, share), np.maximum(high, share)  # rounding could leave the share outside


def comparable(answers: Labels) -> Ints:
    """Return how many answers of each worker (W,) can be compared with another worker's answer or with gold; adds up
    over pieces."""
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


def match_left_out(layout: Layout, gold: Ints, Z: Floats, odds: Callable[[slice], Floats]) -> tuple[Floats, Floats]:
    """Return sums (W,) over each worker's answers under leave-one-out posteriors: the probability of the label given,
    and the sum of squares of the posterior.

    `odds` returns, for a slice of answers in row order, the likelihood ratio of each answer's label against any other.
    The cost per answer does not depend on the number of classes.
    """
    row = np.repeat(np.arange(layout.n_rows, dtype=np.int32), np.diff(layout.row_ptr))
    squares = np.einsum("ik,ik->i", Z, Z, dtype=np.float64)
    right, sure = np.zeros(layout.n_workers), np.zeros(layout.n_workers)
    for start in range(0, layout.n_answers, CHUNK_ANSWERS):
        part = slice(start, start + CHUNK_ANSWERS)
        task, worker = layout.task[part], layout.row_worker[row[part]]
        own = Z[task, layout.row_label[row[part]]].astype(np.float64)
        with np.errstate(invalid="ignore"):  # 0 / 0 where gold is used instead
            left = np.where(gold[task] >= 0, own, own / odds(part))
        total = 1 - own + left
        empty = total < 1e-9  # no other vote: the posterior is uniform
        total[empty] = 1
        agrees = np.where(empty, 1 / Z.shape[1], left / total)
        square = np.where(empty, 1 / Z.shape[1], (squares[task] - own**2 + left**2) / total**2)
        right += weighted_counts(worker, agrees, layout.n_workers)
        sure += weighted_counts(worker, square, layout.n_workers)
    return right, sure


class Votes(Protocol):
    """Tasks with their answers, such as a shard or a piece."""

    @property
    def kernels(self) -> Kernels: ...
    @property
    def layout(self) -> Layout: ...
    @property
    def gold(self) -> Ints: ...
    @property
    def threads(self) -> int: ...
    @property
    def dtype(self) -> Any: ...


def vote_agreement(part: Votes) -> Floats:
    """Return the number of pairs of answers to one task that agree, and of all pairs, shape (2,); adds up over disjoint
    sets of tasks."""
    votes = _votes(part)
    n = np.diff(part.layout.task_ptr).astype(np.float64)
    alike = float(np.einsum("ik,ik->", votes, votes, dtype=np.float64) - n.sum())
    return np.array([alike, float((n * (n - 1)).sum())])


def vote_odds(agree: Floats, n_classes: int) -> float:
    """Return the log-odds of a vote if all workers were correct with the same probability p and had uniform errors; p
    is estimated from how often two workers agree."""
    K, alike = n_classes, float(agree[0]) / max(float(agree[1]), 1.0)
    excess = np.clip((alike - 1 / K) / (1 - 1 / K), 0, 1) if K > 1 else 0.0
    p = np.clip(1 / K + (1 - 1 / K) * np.sqrt(excess), 1 / K, 0.999)
    return float(np.log(p * max(K - 1, 1) / (1 - p))) if K > 1 else 0.0


def vote_left_out(part: Votes, odds: float) -> tuple[Floats, Floats]:
    """Return the sums of `match_left_out` under posteriors from the *other* votes alone, without a model. Each vote
    contributes the log-odds `odds`."""
    votes = _votes(part)
    votes *= odds
    votes -= votes.max(1, keepdims=True)
    Z = np.exp(votes, out=votes)
    Z /= Z.sum(1, keepdims=True)
    known = np.flatnonzero(part.gold >= 0)
    Z[known] = 0
    Z[known, part.gold[known]] = 1
    layout = part.layout
    return match_left_out(layout, part.gold, Z, lambda some: np.full(len(layout.task[some]), np.exp(odds)))


def _votes(part: Votes) -> Floats:
    votes = np.empty((part.layout.n_tasks, part.layout.n_classes), part.dtype)
    part.kernels.votes(part.layout, np.ones(part.layout.n_rows), votes, part.threads)
    return votes
