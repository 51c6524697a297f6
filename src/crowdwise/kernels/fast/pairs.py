"""How pairs of workers answered the tasks they share, compiled."""

from __future__ import annotations

import numpy as np

from ..layout import Floats, Ints, Layout
from .blocks import jit


@jit
def _present(start, stop, pair, row_worker, row_label, place, who, said):
    """How many chosen workers answered a task, their places and labels; the two arrays grow where they must."""
    m = 0
    for n in range(start, stop):
        if place[row_worker[pair[n]]] >= 0:
            if m == len(who):
                who, said = np.append(who, who), np.append(said, said)
            who[m], said[m] = place[row_worker[pair[n]]], row_label[pair[n]]
            m += 1
    return m, who, said


@jit
def _counts(ptr, pair, row_worker, row_label, place, same, told):
    who, said = np.empty(16, np.int32), np.empty(16, np.int32)
    for i in range(len(ptr) - 1):
        m, who, said = _present(ptr[i], ptr[i + 1], pair, row_worker, row_label, place, who, said)
        for a in range(m):
            for b in range(a):
                if who[a] != who[b]:
                    same[who[a], who[b]] += said[a] == said[b]
                    same[who[b], who[a]] += said[a] == said[b]
                    told[who[a], said[a], who[b]] += 1
                    told[who[b], said[b], who[a]] += 1


@jit
def _influence(ptr, pair, row_worker, row_label, place, told, of_same, of_pair, of_chance, out):
    who, said = np.empty(16, np.int32), np.empty(16, np.int32)
    for i in range(len(ptr) - 1):
        m, who, said = _present(ptr[i], ptr[i + 1], pair, row_worker, row_label, place, who, said)
        total = 0.0
        for a in range(m):
            for b in range(a):
                p, r = who[a], who[b]
                if p != r:
                    chance = told[r, said[a], p] + told[p, said[b], r]
                    total += of_pair[p, r] + of_chance[p, r] * chance
                    if said[a] == said[b]:
                        total += of_same[p, r]
        out[i] = total


def pair_counts(layout: Layout, place: Ints, size: int) -> tuple[Ints, Ints]:
    same = np.zeros((size, size), np.int64)
    told = np.zeros((size, layout.n_classes, size), np.int64)
    _counts(layout.task_ptr, layout.pair, layout.row_worker, layout.row_label, place, same, told)
    return same, told


def pair_influence(
    layout: Layout, place: Ints, told: Ints, of_same: Floats, of_pair: Floats, of_chance: Floats
) -> Floats:
    out = np.zeros(layout.n_tasks)
    parts = (layout.task_ptr, layout.pair, layout.row_worker, layout.row_label)
    _influence(*parts, place, told, of_same, of_pair, of_chance, out)
    return out
