"""Join components to clusters by the answers between them, as a start of the mixture."""

from __future__ import annotations

import numpy as np

from ..kernels.layout import Floats, Ints

JOIN_PRIOR_ANSWERS = 3.0  # pseudo-answers with log-odds 0 between every two components


def join_components(S: Floats, n: Floats) -> Ints:
    """(K,) group of each component, by agglomerative clustering.

    S (K, K) are the log-odds of "same" between components, n (K, K) the numbers of answers. The two groups with the
    highest log-odds per answer are joined while these are positive.
    """
    K = len(S)
    S, n, group = S.copy(), n.copy(), np.arange(K)
    alive = np.ones(K, bool)
    while alive.sum() > 1:
        score = S / (n + JOIN_PRIOR_ANSWERS)
        np.fill_diagonal(score, -np.inf)
        score[~alive] = -np.inf
        score[:, ~alive] = -np.inf
        a, b = divmod(int(score.argmax()), K)
        if not score[a, b] > 0:
            break
        a, b = min(a, b), max(a, b)
        for table in (S, n):
            table[a] += table[b]
            table[:, a] += table[:, b]
        alive[b] = False
        group[group == b] = a
    return np.unique(group, return_inverse=True)[1]


def answers_between(
    left: Ints, right: Ints, odds: Floats, weight: Floats, which: Ints, K: int
) -> tuple[Floats, Floats]:
    """(K, K) sums of the log-odds and of the weights of answers; `which` (N,) is the component of each item."""
    a, b = which[left], which[right]
    tables: list[Floats] = []
    for values in (odds, weight):
        flat = np.bincount(a * K + b, values, minlength=K * K).reshape(K, K)
        tables.append(np.asarray(flat + flat.T, np.float64))
    return tables[0], tables[1]


def assign_unasked(group: Ints, asked: Ints, centres: Floats) -> Ints:
    """Assign groups without answers to the group of the nearest component with answers; `asked` (K,) counts them."""
    known = np.isin(group, group[asked > 0])
    if known.all() or not known.any():
        return group
    away = ((centres[~known][:, None] - centres[known][None]) ** 2).sum(2)
    out = group.copy()
    out[~known] = group[known][away.argmin(1)]
    return out
