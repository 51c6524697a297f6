"""Directions of the features that answers tell apart: where clusters are not what differs most in the features.

Pairs that are called the same differ by what does not matter, pairs that are called different also by what does; the
directions in which the latter differ most against the former are kept (discriminants of differences). Whether that
helps, and how many directions, is found by the likelihood of answers about items that were held out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..kernels.layout import Bools, Floats, Ints
from .model import Answers, Found

WAYS = (2, 4, 8, 16)  # numbers of directions that are tried
HELD = 0.2  # share of items whose answers are held out
MOST = 3000  # items that are tried on
ENOUGH = 50  # answers of either kind, at least


def directions(X: Floats, answers: Answers, count: int) -> Floats:
    """(d, count) directions, of unit variance among items that are called the same."""
    d, w = X.shape[1], answers.weight
    away = X[answers.left] - X[answers.right]
    total, few = np.cov(X.T).reshape(d, d), 2.0 * d
    total = total + 1e-6 * (np.trace(total) / d + 1e-12) * np.eye(d)
    scatter = []
    for rows in (answers.same, ~answers.same):
        S = 0.5 * (away[rows] * w[rows, None]).T @ away[rows]
        scatter.append((S + few * total) / (w[rows].sum() + few))
    root = np.linalg.inv(np.linalg.cholesky(scatter[0]))
    values, vectors = np.linalg.eigh(root @ scatter[1] @ root.T)
    best = vectors[:, np.argsort(-values)[:count]]
    turn = root.T @ best
    return np.asarray(turn * np.sign(turn[np.abs(turn).argmax(0), np.arange(count)]))


def worth_it(answers: Answers, d: int) -> bool:
    """Whether there is anything to choose from, and enough to choose by."""
    return d > WAYS[0] and min(int(answers.same.sum()), int((~answers.same).sum())) >= ENOUGH


def chosen(
    X: Floats, answers: Answers, rng: np.random.Generator, fit: Callable[[Floats, Answers], Found]
) -> Floats | None:
    """The directions under which `fit` foretells held-out answers best; None where the features as they are do."""
    rows, some = _sample(X, answers, rng)
    place = np.full(len(X), -1, np.int64)
    place[rows] = np.arange(len(rows))
    told = _part(answers, some, place, len(rows))
    held = _held(told, rng)
    learn, test = (_part(told, part, np.arange(len(rows)), len(rows)) for part in (~held, held))
    if not worth_it(learn, X.shape[1]) or not held.any():
        return None
    ways = [None, *(k for k in WAYS if k < X.shape[1])]
    scores = []
    for count in ways:
        turn = np.eye(X.shape[1]) if count is None else directions(X[rows], learn, count)
        scores.append(_foretold(fit(X[rows] @ turn, learn), test))
    best = ways[int(np.argmax(scores))]
    return None if best is None else directions(X, answers, best)


def _sample(X: Floats, answers: Answers, rng: np.random.Generator) -> tuple[Ints, Bools]:
    """Some items, those that answers are about first, and which answers are about two of them."""
    asked = np.unique(np.concatenate([answers.left, answers.right]))
    rest = np.setdiff1d(np.arange(len(X)), asked)
    most = min(MOST, len(X))
    first = asked if len(asked) <= most else rng.choice(asked, most, replace=False)
    rows = np.sort(np.concatenate([first, rng.choice(rest, most - len(first), replace=False)]))
    inside = np.zeros(len(X), bool)
    inside[rows] = True
    return rows, inside[answers.left] & inside[answers.right]


def _held(answers: Answers, rng: np.random.Generator) -> Bools:
    """Which answers are held out: those about some items, which features alone must place then."""
    asked = np.unique(np.concatenate([answers.left, answers.right]))
    out = np.zeros(answers.n_items, bool)
    out[asked[rng.random(len(asked)) < HELD]] = True
    return np.asarray(out[answers.left] | out[answers.right])


def _part(answers: Answers, keep: Bools, place: Ints, n: int) -> Answers:
    parts = {name: getattr(answers, name)[keep] for name in ("worker", "same", "weight")}
    ends = {name: place[getattr(answers, name)[keep]] for name in ("left", "right")}
    return answers._replace(**parts, **ends, n_items=n)


def _foretold(found: Found, test: Answers) -> float:
    """Log-likelihood of held-out answers."""
    P = (found.posterior[test.left] * found.posterior[test.right]).sum(1)
    a, b = (each[:, 0] / each.sum(1) for each in (found.alpha, found.beta))
    same = P * a[test.worker] + (1 - P) * (1 - b[test.worker])
    return float((test.weight * np.log(np.maximum(np.where(test.same, same, 1 - same), 1e-12))).sum())
