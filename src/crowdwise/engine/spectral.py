"""A spectral embedding of raw features such as images.

Its coordinates are the leading eigenvectors of the graph of nearest neighbours, with rows normalised to unit length
(Ng, Jordan and Weiss 2001). A new item gets the mean of its nearest neighbours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.layout import Floats, Ints
from .resources import load

N_NEIGHBOURS = 10  # neighbours of an item in the graph
NEIGHBOUR_DIMS = 50  # principal components in which neighbours are found
MIN_ITEMS = 2 * N_NEIGHBOURS


def embed(X: Floats, dims: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Return the spectral embedding (N, dims), and the centre, principal axes and scores that place new items.

    It needs at least MIN_ITEMS rows.
    """
    import scipy.sparse as sparse
    from scipy.sparse.linalg import eigsh

    centre = X.mean(0, dtype=np.float64)
    middle = np.asarray(X, np.float64) - centre
    values, vectors = np.linalg.eigh(middle.T @ middle)
    main = vectors[:, np.argsort(-values)[: min(NEIGHBOUR_DIMS, X.shape[1])]]
    P = middle @ main
    N, near = len(P), min(N_NEIGHBOURS, len(P) - 1)
    at = _nearest(P, P, near + 1)
    own = at == np.arange(N)[:, None]
    own[~own.any(1), -1] = True  # among many equal items, an item may not be its own neighbour
    at = at[~own].reshape(N, near)
    links = sparse.csr_matrix((np.ones(at.size), at.ravel(), np.arange(0, at.size + 1, near)), (N, N))
    links = 0.5 * (links + links.T)
    scale = sparse.diags(1 / np.sqrt(np.asarray(links.sum(1)).ravel()))
    count = min(dims, N - 2)
    _, E = eigsh(scale @ links @ scale, count, which="LA", v0=rng.random(N) + 0.5)
    E = E * np.sign(E[np.abs(E).argmax(0), np.arange(count)])
    E = E / np.maximum(np.linalg.norm(E, axis=1, keepdims=True), 1e-12)
    return {"graph.centre": centre, "graph.main": main, "graph.rows": P, "graph.embedding": E}


def embed_new(space: dict[str, Any], X: Floats) -> Floats:
    """(n, dims) embedding of new items: the mean of their nearest neighbours."""
    away = np.asarray((X - space["graph.centre"]) @ space["graph.main"])
    at = _nearest(space["graph.rows"], away, min(N_NEIGHBOURS, len(space["graph.rows"])))
    return np.asarray(space["graph.embedding"][at].mean(1))


def _nearest(rows: Floats, points: Floats, count: int) -> Ints:
    """(n, count) rows nearest to each point, the nearest first."""
    neighbors = load("sklearn.neighbors", "learn", "the embedding of nearest neighbours")
    index = neighbors.NearestNeighbors(n_neighbors=count, algorithm="brute").fit(rows)
    return np.asarray(index.kneighbors(points, return_distance=False))
