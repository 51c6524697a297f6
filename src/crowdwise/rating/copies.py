"""Workers whose answers are those of another.

Good workers agree because both are right, so agreement alone says nothing. Suspicious are answers in common that the
rest of the crowd makes improbable. Candidates are pairs with a few such answers in common; for each the chance of what
they share is weighed under "each answers alone" against "one copies nearly all".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..answers import Labels
from ..kernels.layout import Floats, Ints
from .pieces import Piece, chances, parts

ODD = 3  # answers in common that are unlike the label found, from which on a pair is looked at
SHARED = 8  # tasks that a pair must share
SAME = 0.9  # part of the shared tasks on which they must agree
COPIED = 0.98  # chance that a copier copies
GROUP = 30  # a label that so many gave to a task is no oddity
PAIRS = 2_000  # candidates looked at, those first whose odd answers are most of what the lesser of the two gave
DOUBT = 1e-4  # chance of any false pair in the table


class Copies(NamedTuple):
    other: Ints  # (W,) the worker whose answers these are, or -1
    same: Ints  # (W,) answers in common
    shared: Ints  # (W,) tasks in common
    odd: Ints  # (W,) answers in common that are unlike the label found


def copies(pieces: Sequence[Piece], labels: Sequence[Ints]) -> Copies:
    """`labels` (T,) are the labels found, piece by piece."""
    whole = pieces[0].answers
    W, rows = whole.n_workers, sum((piece.layout.rows.per_worker for piece in pieces), np.zeros(whole.n_workers, int))
    found = Copies(*(np.full(W, fill, np.int64) for fill in (-1, 0, 0, 0)))
    first, second, odd = _candidates(pieces, labels, rows)
    if not len(first):
        return found
    by_worker = _Lists(pieces)
    threshold = np.log(max(W * (W - 1) / 2, 1) / DOUBT)
    best = np.zeros(W)
    for j, other, both_odd in zip(first.tolist(), second.tolist(), odd.tolist(), strict=True):
        shared, same, weight = by_worker.compare(j, other)
        if shared >= SHARED and same >= SAME * shared and weight > threshold:
            for who, whom in ((j, other), (other, j)):
                if weight > best[who]:
                    best[who] = weight
                    found.other[who], found.same[who], found.shared[who], found.odd[who] = whom, same, shared, both_odd
    return found


def _candidates(pieces: Sequence[Piece], labels: Sequence[Ints], given: Ints) -> tuple[Ints, Ints, Ints]:
    """Pairs of workers with at least `ODD` odd answers in common, most first; `given` (W,) counts answers."""
    keys = [
        _odd_pairs(piece.answers, part.task, part.worker, part.label, label)
        for piece, label in zip(pieces, labels, strict=True)
        for part in parts(piece)
    ]
    pairs, count = np.unique(np.concatenate([np.zeros(0, np.int64), *keys]), return_counts=True)
    enough = count >= ODD
    pairs, count = pairs[enough], count[enough]
    first, second = pairs // len(given), pairs % len(given)
    order = np.argsort(-count / np.minimum(given[first], given[second]), kind="stable")[:PAIRS]
    return first[order], second[order], count[order]


def _odd_pairs(answers: Labels, task: Ints, worker: Ints, told: Ints, label: Ints) -> Ints:
    """A key a pair and task, of workers who gave the same label that was not found."""
    odd = told != label[task]
    group = task[odd].astype(np.int64) * answers.n_classes + told[odd]
    order = np.lexsort((worker[odd], group))
    group, who = group[order], worker[odd][order].astype(np.int64)
    size = np.unique(group, return_counts=True)[1]
    few = np.repeat(size <= GROUP, size)
    keys = []
    for ahead in range(1, min(GROUP, int(size.max(initial=1)))):
        pair = (group[ahead:] == group[:-ahead]) & few[ahead:] & (who[ahead:] != who[:-ahead])
        keys.append(who[:-ahead][pair] * answers.n_workers + who[ahead:][pair])
    return np.concatenate([np.zeros(0, np.int64), *keys])


class _Lists:
    """The answers of each worker by task."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = pieces
        self.rows = [np.repeat(np.arange(piece.layout.n_rows), np.diff(piece.layout.row_ptr)) for piece in pieces]
        self.kept: dict[int, tuple[Ints, Ints]] = {}

    def of(self, j: int) -> tuple[Ints, Ints]:
        if j not in self.kept:
            lists = [self._sorted(piece, row, j) for piece, row in zip(self.pieces, self.rows, strict=True)]
            self.kept[j] = np.concatenate([task for task, _ in lists]), np.concatenate([label for _, label in lists])
        return self.kept[j]

    def _sorted(self, piece: Piece, row: Ints, j: int) -> tuple[Ints, Ints]:
        layout = piece.layout
        start, stop = layout.row_ptr[layout.worker_ptr[j : j + 2]]
        task, label = layout.task[start:stop], layout.row_label[row[start:stop]]
        order = np.argsort(task, kind="stable")
        return task[order] + piece.start, label[order]

    def compare(self, j: int, other: int) -> tuple[int, int, float]:
        """Tasks in common, equal answers, and the log-odds of copying against answering alone."""
        task, label = self.of(j)
        tasks, labels = self.of(other)
        shared, here, there = np.intersect1d(task, tasks, return_indices=True)
        same = label[here] == labels[there]
        # alone they say what the task seems to be, or what they always say
        K = self.pieces[0].answers.n_classes
        habit = np.maximum(_shares(label, K), _shares(labels, K))
        odds = np.zeros(len(shared))
        for given in (label[here], labels[there]):
            alone = np.clip(np.maximum(chances(self.pieces, shared, given), habit[given]), 0.05, COPIED)
            odds += np.where(same, np.log(COPIED / alone), np.log((1 - COPIED) / (1 - alone))) / 2
        return len(shared), int(same.sum()), float(odds.sum())


def _shares(label: Ints, n_classes: int) -> Floats:
    return np.asarray(np.bincount(label, minlength=n_classes) / max(len(label), 1))
