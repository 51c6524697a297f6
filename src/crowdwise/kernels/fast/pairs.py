"""Agreement of pairs of workers on the tasks they share, compiled."""

from __future__ import annotations

import numpy as np

from ..layout import Floats, Ints, Layout
from .blocks import jit


@jit
def _present(start, stop, pair, row_worker, row_label, place, at, label):
    """Return how many chosen workers answered a task, their places and their labels; the arrays grow as needed."""
    m = 0
    for n in range(start, stop):
        if place[row_worker[pair[n]]] >= 0:
            if m == len(at):
                at, label = np.append(at, at), np.append(label, label)
            at[m], label[m] = place[row_worker[pair[n]]], row_label[pair[n]]
            m += 1
    return m, at, label


@jit
def _counts(ptr, pair, row_worker, row_label, place, same, given):
    at, label = np.empty(16, np.int32), np.empty(16, np.int32)
    for i in range(len(ptr) - 1):
        m, at, label = _present(ptr[i], ptr[i + 1], pair, row_worker, row_label, place, at, label)
        for a in range(m):
            for b in range(a):
                if at[a] != at[b]:
                    same[at[a], at[b]] += label[a] == label[b]
                    same[at[b], at[a]] += label[a] == label[b]
                    given[at[a], label[a], at[b]] += 1
                    given[at[b], label[b], at[a]] += 1


@jit
def _influence(ptr, pair, row_worker, row_label, place, given, of_same, of_pair, of_chance, out):
    at, label = np.empty(16, np.int32), np.empty(16, np.int32)
    for i in range(len(ptr) - 1):
        m, at, label = _present(ptr[i], ptr[i + 1], pair, row_worker, row_label, place, at, label)
        total = 0.0
        for a in range(m):
            for b in range(a):
                p, r = at[a], at[b]
                if p != r:
                    chance = given[r, label[a], p] + given[p, label[b], r]
                    total += of_pair[p, r] + of_chance[p, r] * chance
                    if label[a] == label[b]:
                        total += of_same[p, r]
        out[i] = total


def pair_counts(layout: Layout, place: Ints, size: int) -> tuple[Ints, Ints]:
    same = np.zeros((size, size), np.int64)
    given = np.zeros((size, layout.n_classes, size), np.int64)
    _counts(layout.task_ptr, layout.pair, layout.row_worker, layout.row_label, place, same, given)
    return same, given


def pair_influence(
    layout: Layout, place: Ints, given: Ints, of_same: Floats, of_pair: Floats, of_chance: Floats
) -> Floats:
    out = np.zeros(layout.n_tasks)
    parts = (layout.task_ptr, layout.pair, layout.row_worker, layout.row_label)
    _influence(*parts, place, given, of_same, of_pair, of_chance, out)
    return out
