"""Pair answers sorted by item, and mini-batches of items and answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...kernels.layout import Ints
from ..model import PairAnswers


class Batch(NamedTuple):
    """Some items and the answers about them. An answer is listed once for each of its two items in the batch."""

    items: Tensor  # (B,)
    scale: Tensor  # (B,) number of items of the whole data that each item represents
    row: Tensor  # (E,) row in `items` of this end of the answer
    other: Tensor  # (E,) item at the other end
    worker: Tensor  # (E,)
    same: Tensor  # (E,)
    weight: Tensor  # (E,)
    share: Tensor  # (E,) number of answers of the whole data that each end represents


class Relations:
    """The answers sorted by item."""

    def __init__(self, answers: PairAnswers, items: int) -> None:
        self.items, self.n_workers, self.count = items, answers.n_workers, len(answers.left)
        end = np.concatenate([answers.left, answers.right])
        order = np.argsort(end, kind="stable")
        self.end = end[order]
        self.other = np.concatenate([answers.right, answers.left])[order]
        self.answer = np.tile(np.arange(self.count), 2)[order]
        self.begin = np.searchsorted(self.end, np.arange(items + 1))
        self.left, self.right = answers.left, answers.right
        self.worker = torch.as_tensor(np.asarray(answers.worker, dtype=np.int64))
        self.same = torch.as_tensor(np.asarray(answers.same, dtype=np.bool_))
        self.weight = torch.as_tensor(np.asarray(answers.weight, dtype=np.float32))
        self.annotated = np.unique(end)
        self.plain = np.setdiff1d(np.arange(items), self.annotated)
        self._whole: Batch | None = None

    def full_batch(self) -> Batch:
        """Return all items and all answers."""
        if self._whole is None:
            self._whole = self.touching(np.arange(self.items))
        return self._whole

    def touching(self, items: Ints) -> Batch:
        """Return the items and all answers about them; an answer counts one half at each of its items."""
        number = self.begin[items + 1] - self.begin[items]
        row = np.repeat(np.arange(len(items)), number)
        jump = np.repeat(self.begin[items] - np.concatenate([[0], np.cumsum(number)[:-1]]), number)
        edge = np.arange(number.sum()) + jump
        scale = torch.full((len(items),), self.items / len(items))
        return self._batch(items, scale, row, self.other[edge], self.answer[edge], 0.5 * self.items / len(items))

    def sampled(self, plain: Ints, chosen: Ints) -> Batch:
        """Return items without answers, and the items of the chosen answers with only these answers."""
        ends, row = np.unique(np.concatenate([self.left[chosen], self.right[chosen]]), return_inverse=True)
        other = np.concatenate([self.right[chosen], self.left[chosen]])
        parts = (ends, len(self.annotated)), (plain, len(self.plain))
        scale = torch.cat([torch.full((len(some),), whole / max(len(some), 1)) for some, whole in parts])
        items = np.concatenate([ends, plain])
        share = 0.5 * self.count / max(len(chosen), 1)
        return self._batch(items, scale, row.ravel(), other, np.tile(chosen, 2), share)

    def _batch(self, items: Ints, scale: Tensor, row: Ints, other: Ints, answer: Ints, share: float) -> Batch:
        at = torch.as_tensor(answer)
        rows = torch.as_tensor(items), scale, torch.as_tensor(row), torch.as_tensor(other)
        return Batch(*rows, self.worker[at], self.same[at], self.weight[at], torch.full((len(at),), share))

    def batches(self, size: int | None, how: str) -> Iterator[Batch]:
        """Yield the batches of an epoch: one full batch, or shuffled mini-batches with all or with sampled answers."""
        if size is None or size >= self.items:
            yield self.full_batch()
        elif how == "all" or not self.count:
            for part in torch.split(torch.randperm(self.items), size):
                yield self.touching(part.numpy())
        else:
            steps = -(-self.items // size)
            plain = np.array_split(self.plain[torch.randperm(len(self.plain)).numpy()], steps)
            half = max(1, size // 2)
            for some in plain:
                yield self.sampled(some, torch.randint(self.count, (half,)).numpy())
