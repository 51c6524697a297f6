"""Pieces of the answers with their posterior; ratings are sums over pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..answers import Labels
from ..kernels import Kernels
from ..kernels.layout import Floats, Ints, Layout, vote_parts


class Piece(NamedTuple):
    """Consecutive tasks with their answers; workers, labels and rows are those of the whole table."""

    answers: Labels
    posterior: Floats  # (T, K) of these tasks
    start: int  # number of the first task
    kernels: Kernels  # of the whole table
    threads: int = 1

    @property
    def layout(self) -> Layout:
        return self.answers.layout

    @property
    def gold(self) -> Ints:
        return self.answers.gold

    @property
    def dtype(self) -> Any:
        return self.posterior.dtype


def pieces_of(answers: Labels, posterior: Floats, count: int = 1) -> list[Piece]:
    """Split the answers into `count` pieces of consecutive tasks."""
    parts = [answers] if count == 1 else list(answers.shards(count))
    starts = np.cumsum([0, *(part.n_tasks for part in parts)])
    return [
        Piece(part, posterior[start : start + part.n_tasks], int(start), answers.kernels)
        for part, start in zip(parts, starts[:-1], strict=True)
    ]


def chances(pieces: Sequence[Piece], task: Ints, label: Ints) -> Floats:
    """Return the posterior (M,) of labels (M,) on tasks (M,), given by number."""
    out = np.empty(len(task))
    for piece in pieces:
        inside = (task >= piece.start) & (task < piece.start + piece.answers.n_tasks)
        out[inside] = piece.posterior[task[inside] - piece.start, label[inside]]
    return out


class Part(NamedTuple):
    """Consecutive tasks within a piece, with one entry per answer."""

    answers: slice  # in task order
    task: Ints  # (M,) numbered from the start of the piece
    worker: Ints  # (M,)
    label: Ints  # (M,)
    votes: Floats  # (M,) votes for the label on this task, including this answer
    cast: Floats  # (M,) all votes on this task


def parts(piece: Piece) -> Iterator[Part]:
    """Yield all answers of a piece, in chunks of tasks."""
    layout = piece.layout
    for tasks, votes in vote_parts(piece.kernels, layout, 1):
        inside = slice(int(layout.task_ptr[tasks.start]), int(layout.task_ptr[tasks.stop]))
        rows = layout.pair[inside]
        sizes = np.diff(layout.task_ptr[tasks.start : tasks.stop + 1])
        local = np.repeat(np.arange(len(sizes)), sizes)
        label = layout.row_label[rows]
        yield Part(inside, local + tasks.start, layout.row_worker[rows], label, votes[local, label], sizes[local])
