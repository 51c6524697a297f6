"""Components joined to clusters by the answers between them: the start of the mixture."""

from __future__ import annotations

import numpy as np

from ..kernels.layout import Floats, Ints

JOIN_PRIOR = 3.0  # answers without a verdict that every join starts with


def joined(S: Floats, n: Floats) -> Ints:
    """(K,) group of each component, from log-odds S (K, K) of the same and counts n (K, K) of answers between them:
    the two with the highest odds per answer are joined while the odds are in favour."""
    K = len(S)
    S, n, group = S.copy(), n.copy(), np.arange(K)
    alive = np.ones(K, bool)
    while alive.sum() > 1:
        score = S / (n + JOIN_PRIOR)
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


def between(left: Ints, right: Ints, odds: Floats, weight: Floats, which: Ints, K: int) -> tuple[Floats, Floats]:
    """(K, K) sums of log-odds and of counts of the answers between components; `which` (N,) is that of each item."""
    a, b = which[left], which[right]
    tables: list[Floats] = []
    for values in (odds, weight):
        flat = np.bincount(a * K + b, values, minlength=K * K).reshape(K, K)
        tables.append(np.asarray(flat + flat.T, np.float64))
    return tables[0], tables[1]


def adopted(group: Ints, asked: Ints, centres: Floats) -> Ints:
    """Groups in which nobody was asked go to the group of the nearest component in which somebody was."""
    known = np.isin(group, group[asked > 0])
    if known.all() or not known.any():
        return group
    away = ((centres[~known][:, None] - centres[known][None]) ** 2).sum(2)
    out = group.copy()
    out[~known] = group[known][away.argmin(1)]
    return out
