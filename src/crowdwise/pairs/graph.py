"""An embedding of many raw features, images above all: directions along which neighbours are alike.

Items are linked to their nearest ones, and the main eigenvectors of the links, each row made of unit length, are the
new features (Ng, Jordan and Weiss 2001). Nothing is trained and nothing downloaded. A new item goes where its nearest
neighbours are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.extras import load, require
from ..errors import FeatureError, MissingError
from ..kernels.layout import Floats, Ints

NEAR = 10  # neighbours of an item
MAIN = 50  # main directions in which neighbours are sought
MIN_ITEMS, MAX_ITEMS = 1000, 100_000  # for which it is the default where features are many


def usable(X: Floats, dims: int) -> bool:
    """Whether the embedding is worth it, and can be had."""
    if X.shape[1] <= dims or not MIN_ITEMS <= len(X) <= MAX_ITEMS:
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
