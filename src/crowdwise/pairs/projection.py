"""Projection of the features onto directions learnt from the answers.

Directions: pairs called the same differ only in irrelevant directions, pairs called different also in relevant ones. A
discriminant analysis of the differences keeps the directions with the largest ratio of the two variances. The number of
directions, and whether to project at all, is chosen by the likelihood of answers about held-out items.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..engine import Run
from ..engine.resources import require
from ..engine.run import packed
from ..errors import MissingError
from ..kernels.layout import Bools, Floats, Ints
from .model import FeatureFit, PairAnswers

DIRECTION_COUNTS = (2, 4, 8, 16)  # candidate numbers of directions
HELD_OUT_SHARE = 0.2  # share of items whose answers are held out
MAX_TRIAL_ITEMS = 3000  # items on which candidates are compared
MIN_ANSWERS_PER_KIND = 50  # answers "same", and answers "different", that a comparison needs
MIN_EMBEDDED_ITEMS, MAX_EMBEDDED_ITEMS = 1000, 100_000  # items for which the embedding is a default


def directions(X: Floats, answers: PairAnswers, count: int) -> Floats:
    """(d, count) discriminant directions, with unit variance between items called the same."""
    d, w = X.shape[1], answers.weight
    away = X[answers.left] - X[answers.right]
    total, prior = np.cov(X.T).reshape(d, d), 2.0 * d
    total = total + 1e-6 * (np.trace(total) / d + 1e-12) * np.eye(d)
    scatter = []
    for rows in (answers.same, ~answers.same):
        S = 0.5 * (away[rows] * w[rows, None]).T @ away[rows]
        scatter.append((S + prior * total) / (w[rows].sum() + prior))
    root = np.linalg.inv(np.linalg.cholesky(scatter[0]))
    values, vectors = np.linalg.eigh(root @ scatter[1] @ root.T)
    best = vectors[:, np.argsort(-values)[:count]]
    turn = root.T @ best
    return np.asarray(turn * np.sign(turn[np.abs(turn).argmax(0), np.arange(count)]))


def can_project(answers: PairAnswers, d: int) -> bool:
    """Whether there are enough dimensions d and enough answers to choose a projection."""
    return d > DIRECTION_COUNTS[0] and min(int(answers.same.sum()), int((~answers.same).sum())) >= MIN_ANSWERS_PER_KIND


def choose_directions(
    X: Floats,
    answers: PairAnswers,
    rng: np.random.Generator,
    run: Run,
    fit: Callable[[Floats, PairAnswers], FeatureFit],
) -> Floats | None:
    """Return the directions with which `fit` predicts held-out answers best, or None if no projection is better.

    The scores of finished trials stay in the journal, so a resumed fit does not repeat them.
    """
    rows, some = _sample(X, answers, rng)
    place = np.full(len(X), -1, np.int64)
    place[rows] = np.arange(len(rows))
    sample = _subset(answers, some, place, len(rows))
    held = _held_out(sample, rng)
    learn, test = (_subset(sample, part, np.arange(len(rows)), len(rows)) for part in (~held, held))
    if not can_project(learn, X.shape[1]) or not held.any():
        return None
    saved = run.journal.saved("projection")
    scores: list[float] = [] if saved is None else saved["scores"].tolist()
    run.journal.keep("projection", lambda: packed({"scores": scores}))
    counts = [None, *(k for k in DIRECTION_COUNTS if k < X.shape[1])]
    for count in counts[len(scores) :]:
        turn = np.eye(X.shape[1]) if count is None else directions(X[rows], learn, count)
        scores.append(_held_out_likelihood(fit(X[rows] @ turn, learn), test))
    best = counts[int(np.argmax(scores))]
    return None if best is None else directions(X, answers, best)


def _sample(X: Floats, answers: PairAnswers, rng: np.random.Generator) -> tuple[Ints, Bools]:
    """Sample items, preferring those with answers; return them and a mask of the answers about two sampled items."""
    asked = np.unique(np.concatenate([answers.left, answers.right]))
    others = np.setdiff1d(np.arange(len(X)), asked)
    most = min(MAX_TRIAL_ITEMS, len(X))
    first = asked if len(asked) <= most else rng.choice(asked, most, replace=False)
    rows = np.sort(np.concatenate([first, rng.choice(others, most - len(first), replace=False)]))
    inside = np.zeros(len(X), bool)
    inside[rows] = True
    return rows, inside[answers.left] & inside[answers.right]


def _held_out(answers: PairAnswers, rng: np.random.Generator) -> Bools:
    """Mask of the held-out answers: all answers about a random set of items, placed by their features alone."""
    asked = np.unique(np.concatenate([answers.left, answers.right]))
    out = np.zeros(answers.n_items, bool)
    out[asked[rng.random(len(asked)) < HELD_OUT_SHARE]] = True
    return np.asarray(out[answers.left] | out[answers.right])


def _subset(answers: PairAnswers, keep: Bools, place: Ints, n: int) -> PairAnswers:
    parts = {name: getattr(answers, name)[keep] for name in ("worker", "same", "weight")}
    ends = {name: place[getattr(answers, name)[keep]] for name in ("left", "right")}
    return answers._replace(**parts, **ends, n_items=n)


def _held_out_likelihood(found: FeatureFit, test: PairAnswers) -> float:
    """Log-likelihood of held-out answers."""
    P = (found.posterior[test.left] * found.posterior[test.right]).sum(1)
    a, b = (each[:, 0] / each.sum(1) for each in (found.alpha, found.beta))
    same = P * a[test.worker] + (1 - P) * (1 - b[test.worker])
    return float((test.weight * np.log(np.maximum(np.where(test.same, same, 1 - same), 1e-12))).sum())


def can_embed(X: Floats, dims: int) -> bool:
    """Whether the embedding is the default for these features, and its libraries are installed."""
    if X.shape[1] <= dims or not MIN_EMBEDDED_ITEMS <= len(X) <= MAX_EMBEDDED_ITEMS:
        return False
    try:
        require(("learn",), "")
    except MissingError:
        return False
    return True
