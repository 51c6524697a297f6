"""Shared coin: all workers are right with one chance p and err evenly. A model in one file, for test_one_file.py.

    (1)  q[i, k] ~ product over answers n of task i of (p if label_n = k else (1 - p) / (K - 1))
    (2)  p = (u + sum over answers n of q[task_n, label_n]) / (u + 1 + number of answers)
with a Beta(1 + u, 2) prior, so that EM maximises log p(labels | p) + u log p + log(1 - p).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..engine import register
from ..engine.model import POSITIVE, setting
from ..kernels.layout import PerRow
from ..rating.skills import match_left_out
from ..result import LeftOut
from .em import EMModel
from .model import even_log


class Params(NamedTuple):
    rho: Any  # (K,)  even
    hit: Any  # ()    p: chance of a right answer
    shares: Any  # (K,) mean posterior


class Stats(NamedTuple):
    shares: Any  # (K,)
    right: PerRow  # (R,)  expected right answers


@register("shared-coin", "one chance of being right for all workers, by EM")
@dataclass(frozen=True, kw_only=True)
class SharedCoin(EMModel[Params, Stats]):
    """One number for the whole crowd."""

    params_type = Params
    right: float = setting(2.0, POSITIVE, "Right answers u that the crowd starts with.")

    def posterior(self, shard: Any, params: Any, local: Any) -> Any:  # eq (1)
        rows, others = shard.layout.n_rows, max(shard.layout.n_classes - 1, 1)
        hit, miss = np.full(rows, np.log(params.hit)), np.full(rows, np.log((1 - params.hit) / others))
        match = shard.kernels.match_posterior
        return match(shard.layout, hit, miss, params.rho[None], shard.gold, local.Z, shard.threads)

    def statistics(self, shard: Any, local: Any, shares: Any, params: Any) -> Stats:
        return Stats(shares, shard.kernels.match_counts(shard.layout, local.Z, shard.threads))

    def maximise(self, crowd: Any, stats: Any, params: Any) -> Params:  # eq (2)
        K, total = len(stats.shares), crowd.rows.per_worker.sum()
        hit = (stats.right.sum(dtype=np.float64) + self.right) / (total + self.right + 1)
        return Params(np.full(K, 1 / K), np.asarray(hit), stats.shares / max(stats.shares.sum(), 1))

    def penalty(self, params: Any) -> float:
        return float(self.right * np.log(params.hit) + np.log1p(-params.hit))

    def left_out(self, shard: Any, params: Any, Z: Any) -> LeftOut:
        odds = np.full(len(shard.layout.task), params.hit / (1 - params.hit) * max(shard.layout.n_classes - 1, 1))
        return LeftOut(*match_left_out(shard.layout, shard.gold, Z, odds.__getitem__))

    def emission(self, params: Any, layout: Any, worker: Any, label: Any, task: Any = None) -> Any:
        return even_log(np.full(len(label), float(params.hit)), label, layout.n_classes)
