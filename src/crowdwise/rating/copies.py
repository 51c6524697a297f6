"""Workers who may have copied the answers of another worker.

Good workers agree because both are correct, so agreement alone is no evidence. Shared answers that are improbable given
the other answers are suspicious. Candidates are pairs of workers with several such answers in common. For each pair, a
likelihood ratio compares "one copies nearly all answers" with "both answer independently".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..answers import Labels
from ..kernels.layout import Floats, Ints
from .pieces import Piece, chances, parts

MIN_ODD = 3  # shared answers that differ from the estimated label, for a pair to be a candidate
MIN_SHARED = 8  # tasks that a pair must share
MIN_SAME = 0.9  # share of these tasks on which they must agree
COPY_RATE = 0.98  # probability that a copier copies an answer
MAX_WORKERS = 30  # a label that more workers gave to a task is not counted as odd
MAX_PAIRS = 2_000  # candidates compared, by the share of odd answers among those of the less active worker
FALSE_ALARM = 1e-4  # probability of any false pair in the table


class Copies(NamedTuple):
    other: Ints  # (W,) the worker with the same answers, or -1
    same: Ints  # (W,) answers in common
    shared: Ints  # (W,) tasks in common
    odd: Ints  # (W,) answers in common that differ from the estimated label


def copies(pieces: Sequence[Piece], labels: Sequence[Ints]) -> Copies:
    """Return suspected copies; `labels` are the estimated labels (T,) of each piece."""
    whole = pieces[0].answers
    W, rows = whole.n_workers, sum((piece.layout.rows.per_worker for piece in pieces), np.zeros(whole.n_workers, int))
    found = Copies(*(np.full(W, fill, np.int64) for fill in (-1, 0, 0, 0)))
    first, second, odd = _candidates(pieces, labels, rows)
    if not len(first):
        return found
    by_worker = _Lists(pieces)
    threshold = np.log(max(W * (W - 1) / 2, 1) / FALSE_ALARM)
    best = np.zeros(W)
    for j, other, both_odd in zip(first.tolist(), second.tolist(), odd.tolist(), strict=True):
        shared, same, log_odds = by_worker.compare(j, other)
        if shared >= MIN_SHARED and same >= MIN_SAME * shared and log_odds > threshold:
            for a, b in ((j, other), (other, j)):
                if log_odds > best[a]:
                    best[a] = log_odds
                    found.other[a], found.same[a], found.shared[a], found.odd[a] = b, same, shared, both_odd
    return found


def _candidates(pieces: Sequence[Piece], labels: Sequence[Ints], given: Ints) -> tuple[Ints, Ints, Ints]:
    """Return pairs of workers with at least `MIN_ODD` odd answers in common, and how many they have. Pairs with the
    largest share of odd answers come first; `given` (W,) are numbers of answers."""
    keys = [
        _odd_pairs(piece.answers, part.task, part.worker, part.label, label)
        for piece, label in zip(pieces, labels, strict=True)
        for part in parts(piece)
    ]
    pairs, count = np.unique(np.concatenate([np.zeros(0, np.int64), *keys]), return_counts=True)
    enough = count >= MIN_ODD
    pairs, count = pairs[enough], count[enough]
    first, second = pairs // len(given), pairs % len(given)
    order = np.argsort(-count / np.minimum(given[first], given[second]), kind="stable")[:MAX_PAIRS]
    return first[order], second[order], count[order]


def _odd_pairs(answers: Labels, task: Ints, worker: Ints, given: Ints, label: Ints) -> Ints:
    """Return one key per task and pair of workers who gave the same label other than the estimated one."""
    odd = given != label[task]
    group = task[odd].astype(np.int64) * answers.n_classes + given[odd]
    order = np.lexsort((worker[odd], group))
    group, by = group[order], worker[odd][order].astype(np.int64)
    size = np.unique(group, return_counts=True)[1]
    few = np.repeat(size <= MAX_WORKERS, size)
    keys = []
    for ahead in range(1, min(MAX_WORKERS, int(size.max(initial=1)))):
        pair = (group[ahead:] == group[:-ahead]) & few[ahead:] & (by[ahead:] != by[:-ahead])
        keys.append(by[:-ahead][pair] * answers.n_workers + by[ahead:][pair])
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
        """Return tasks in common, equal answers, and the log-odds of copying against answering independently."""
        task, label = self.of(j)
        tasks, labels = self.of(other)
        shared, here, there = np.intersect1d(task, tasks, return_indices=True)
        same = label[here] == labels[there]
        # independent workers give a probable label of the task, or one that they often give
        K = self.pieces[0].answers.n_classes
        usual = np.maximum(_shares(label, K), _shares(labels, K))
        odds = np.zeros(len(shared))
        for given in (label[here], labels[there]):
            alone = np.clip(np.maximum(chances(self.pieces, shared, given), usual[given]), 0.05, COPY_RATE)
            odds += np.where(same, np.log(COPY_RATE / alone), np.log((1 - COPY_RATE) / (1 - alone))) / 2
        return len(shared), int(same.sum()), float(odds.sum())


def _shares(label: Ints, n_classes: int) -> Floats:
    return np.asarray(np.bincount(label, minlength=n_classes) / max(len(label), 1))
