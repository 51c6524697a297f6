"""Directions of the features that answers separate: where clusters are not what differs most in the features.

Pairs that are called the same differ by what does not matter, pairs that are called different also by what does; the
directions in which the latter differ most against the former are kept (discriminants of differences). Whether that
helps, and how many directions, is found by the likelihood of answers about items that were held out.

Many raw features, images above all, are embedded first: items are linked to their nearest ones, and the main
eigenvectors of the links, each row made of unit length, are the new features (Ng, Jordan and Weiss 2001). Nothing is
trained and nothing downloaded. A new item goes where its nearest neighbours are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..engine import Run
from ..engine.resources import load, require
from ..engine.run import packed
from ..errors import FeatureError, MissingError
from ..kernels.layout import Bools, Floats, Ints
from .model import Found, PairAnswers

COUNTS = (2, 4, 8, 16)  # of directions that are tried
HELD_OUT = 0.2  # share of items whose answers are held out
MAX_ITEMS = 3000  # that trials are made on
MIN_ANSWERS = 50  # of either kind
NEAR = 10  # neighbours of an item
MAIN = 50  # main directions in which neighbours are sought
MIN_EMBEDDED, MAX_EMBEDDED = 1000, 100_000  # items for which the embedding is the default where features are many


def directions(X: Floats, answers: PairAnswers, count: int) -> Floats:
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


def worth_it(answers: PairAnswers, d: int) -> bool:
    """Whether there is anything to choose from, and enough to choose by."""
    return d > COUNTS[0] and min(int(answers.same.sum()), int((~answers.same).sum())) >= MIN_ANSWERS


def chosen(
    X: Floats, answers: PairAnswers, rng: np.random.Generator, run: Run, fit: Callable[[Floats, PairAnswers], Found]
) -> Floats | None:
    """The directions under which `fit` predicts held-out answers best; None where the features as they are do.

    The scores of finished trials stay in the journal, so that a resumed fit does not repeat them.
    """
    rows, some = _sample(X, answers, rng)
    place = np.full(len(X), -1, np.int64)
    place[rows] = np.arange(len(rows))
    sample = _part(answers, some, place, len(rows))
    held = _held_out(sample, rng)
    learn, test = (_part(sample, part, np.arange(len(rows)), len(rows)) for part in (~held, held))
    if not worth_it(learn, X.shape[1]) or not held.any():
        return None
    saved = run.journal.saved("projection")
    scores: list[float] = [] if saved is None else saved["scores"].tolist()
    run.journal.keep("projection", lambda: packed({"scores": scores}))
    counts = [None, *(k for k in COUNTS if k < X.shape[1])]
    for count in counts[len(scores) :]:
        turn = np.eye(X.shape[1]) if count is None else directions(X[rows], learn, count)
        scores.append(_predicted(fit(X[rows] @ turn, learn), test))
    best = counts[int(np.argmax(scores))]
    return None if best is None else directions(X, answers, best)


def _sample(X: Floats, answers: PairAnswers, rng: np.random.Generator) -> tuple[Ints, Bools]:
    """Some items, those that answers are about first, and which answers are about two of them."""
    asked = np.unique(np.concatenate([answers.left, answers.right]))
    others = np.setdiff1d(np.arange(len(X)), asked)
    most = min(MAX_ITEMS, len(X))
    first = asked if len(asked) <= most else rng.choice(asked, most, replace=False)
    rows = np.sort(np.concatenate([first, rng.choice(others, most - len(first), replace=False)]))
    inside = np.zeros(len(X), bool)
    inside[rows] = True
    return rows, inside[answers.left] & inside[answers.right]


def _held_out(answers: PairAnswers, rng: np.random.Generator) -> Bools:
    """Which answers are held out: those about some items, which features alone must place then."""
    asked = np.unique(np.concatenate([answers.left, answers.right]))
    out = np.zeros(answers.n_items, bool)
    out[asked[rng.random(len(asked)) < HELD_OUT]] = True
    return np.asarray(out[answers.left] | out[answers.right])


def _part(answers: PairAnswers, keep: Bools, place: Ints, n: int) -> PairAnswers:
    parts = {name: getattr(answers, name)[keep] for name in ("worker", "same", "weight")}
    ends = {name: place[getattr(answers, name)[keep]] for name in ("left", "right")}
    return answers._replace(**parts, **ends, n_items=n)


def _predicted(found: Found, test: PairAnswers) -> float:
    """Log-likelihood of held-out answers."""
    P = (found.posterior[test.left] * found.posterior[test.right]).sum(1)
    a, b = (each[:, 0] / each.sum(1) for each in (found.alpha, found.beta))
    same = P * a[test.worker] + (1 - P) * (1 - b[test.worker])
    return float((test.weight * np.log(np.maximum(np.where(test.same, same, 1 - same), 1e-12))).sum())


def usable(X: Floats, dims: int) -> bool:
    """Whether the embedding is worth it, and can be had."""
    if X.shape[1] <= dims or not MIN_EMBEDDED <= len(X) <= MAX_EMBEDDED:
        return False
    try:
        require(("learn",), "")
    except MissingError:
        return False
    return True


def embedded(X: Floats, dims: int, rng: np.random.Generator) -> dict[str, Floats]:
    """What places items: their centre and main directions, where they lie in these, and their embedding (N, dims)."""
    import scipy.sparse as sparse
    from scipy.sparse.linalg import eigsh

    if len(X) < 2 * NEAR:
        raise FeatureError(f"space='graph' needs {2 * NEAR} items or more; there are {len(X)}. Take space='features'")
    centre = X.mean(0, dtype=np.float64)
    middle = np.asarray(X, np.float64) - centre
    values, vectors = np.linalg.eigh(middle.T @ middle)
    main = vectors[:, np.argsort(-values)[: min(MAIN, X.shape[1])]]
    P = middle @ main
    N, near = len(P), min(NEAR, len(P) - 1)
    at = _nearest(P, P, near + 1)
    own = at == np.arange(N)[:, None]
    own[~own.any(1), -1] = True  # equal items may hide oneself
    at = at[~own].reshape(N, near)
    links = sparse.csr_matrix((np.ones(at.size), at.ravel(), np.arange(0, at.size + 1, near)), (N, N))
    links = 0.5 * (links + links.T)
    scale = sparse.diags(1 / np.sqrt(np.asarray(links.sum(1)).ravel()))
    count = min(dims, N - 2)
    _, E = eigsh(scale @ links @ scale, count, which="LA", v0=rng.random(N) + 0.5)
    E = E * np.sign(E[np.abs(E).argmax(0), np.arange(count)])
    E = E / np.maximum(np.linalg.norm(E, axis=1, keepdims=True), 1e-12)
    return {"graph.centre": centre, "graph.main": main, "graph.rows": P, "graph.embedding": E}


def placed(space: dict[str, Any], X: Floats) -> Floats:
    """(n, dims) where new items go: amid their nearest ones."""
    away = np.asarray((X - space["graph.centre"]) @ space["graph.main"])
    at = _nearest(space["graph.rows"], away, min(NEAR, len(space["graph.rows"])))
    return np.asarray(space["graph.embedding"][at].mean(1))


def _nearest(rows: Floats, points: Floats, count: int) -> Ints:
    """(n, count) the rows nearest to points, the nearest first."""
    neighbors = load("sklearn.neighbors", "learn", "an embedding of a graph")
    index = neighbors.NearestNeighbors(n_neighbors=count, algorithm="brute").fit(rows)
    return np.asarray(index.kneighbors(points, return_distance=False))
