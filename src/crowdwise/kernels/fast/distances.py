"""Distances between the clicks of two jobs on one image, compiled."""

from __future__ import annotations

import numpy as np

from ..layout import Floats, Ints
from .blocks import jit


@jit
def _nearest(X, ptr, first, second, out):
    n = 0
    for p in range(len(first)):
        for a in range(ptr[first[p]], ptr[first[p] + 1]):
            best = np.inf
            for b in range(ptr[second[p]], ptr[second[p] + 1]):
                d = 0.0
                for axis in range(X.shape[1]):
                    d += (X[a, axis] - X[b, axis]) ** 2
                best = min(best, d)
            if best < np.inf:
                out[n] = np.sqrt(best)
                n += 1
    return n


def nearest_distances(X: Floats, ptr: Ints, first: Ints, second: Ints) -> Floats:
    """Distances from every click of jobs `first` to the nearest click of the job `second` of the same pair; clicks of
    pairs whose second job has no click are left out."""
    out = np.empty(int(np.diff(ptr)[first].sum()))
    return out[: _nearest(X, ptr, first, second, out)]


@jit
def _matches(X, Y, ptr, first, second, radius, out):
    for p in range(len(first)):
        i, j = ptr[first[p]], ptr[second[p]]
        n, m = ptr[first[p] + 1] - i, ptr[second[p] + 1] - j
        near = np.empty(n * m)
        for a in range(n):
            for b in range(m):
                d = 0.0
                for axis in range(X.shape[1]):
                    d += (X[i + a, axis] - Y[j + b, axis]) ** 2
                near[a * m + b] = d
        order = np.argsort(near)
        free_a, free_b = np.ones(n, np.bool_), np.ones(m, np.bool_)
        count = 0
        for k in range(n * m):
            if near[order[k]] > radius * radius:
                break
            a, b = order[k] // m, order[k] % m
            if free_a[a] and free_b[b]:
                free_a[a], free_b[b] = False, False
                count += 1
        out[p] = count


def matches(X: Floats, Y: Floats, ptr: Ints, first: Ints, second: Ints, radius: float) -> Floats:
    """(P,) number of clicks of jobs `first` (at X) that are matched one to one with clicks of jobs `second` (at Y) at
    most `radius` apart, by increasing distance."""
    out = np.zeros(len(first))
    _matches(X, Y, ptr, first, second, radius, out)
    return out
