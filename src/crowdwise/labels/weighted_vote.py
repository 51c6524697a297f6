"""Weighted vote: better workers count more.

    (1)  q[i, k] ~ sum over answers n of task i that say k of v[worker_n]

Weights v are given as a mapping, or learnt, from gold or from agreement; where the answers have a column `weight`, each
answer counts that many times as much:
    (2)  v[j] = max(0, (p[j] - 1/K) / (1 - 1/K)),   p[j] = (hits[j] + m s) / (n[j] + s)
where hits[j] counts j's answers that are right by gold, or adds, over j's answers, the share of the *other* votes on
the task that agree; n[j] counts what was compared; m is the crowd's mean and s = 2. A worker at chance weighs nothing.
Derivation in docs/maths/weighted_vote.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..answers import Labels
from ..engine import Executor, register
from ..engine.model import one_of, setting
from ..errors import ParameterError, option
from ..kernels.layout import Floats, Ints, per_worker
from .shard import Crowd, Shard
from .votes import VoteModel

STRENGTH = 2.0  # answers of the crowd's mean that every worker starts with


@register("weighted-vote", "votes weighed by what workers are worth: given, or learnt from gold or agreement")
@dataclass(frozen=True, kw_only=True)
class WeightedVote(VoteModel):
    """Votes that count by worker: weights given, or learnt in one step."""

    tells_workers_apart = True
    off = (-0.95, 0.9)
    learn_from: str = setting(
        "agreement",
        one_of("agreement", "gold", "column"),
        "What workers' weights are learnt from; 'column': all workers alike, the column weight alone counts.",
    )
    given: Mapping[Any, float] | None = setting(None, None, "Weight by worker; a worker not named weighs 0.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.given is not None and not isinstance(self.given, Mapping):
            raise ParameterError(f"weighted-vote: given is {self.given!r}; it must map workers to weights")
        for worker, weight in (self.given or {}).items():
            if (
                isinstance(weight, bool)
                or not isinstance(weight, (int, float))
                or not np.isfinite(weight)
                or weight < 0
            ):
                raise ParameterError(f"weighted-vote: the weight of {worker!r} is {weight!r}; weights are at least 0")

    def weights(self, answers: Labels, crowd: Crowd, shards: Executor[Shard]) -> Floats:
        if self.given is not None:
            return self._given(crowd)
        if self.learn_from == "column":
            _ = answers.weights  # refuses a column that is missing, or holds anything but weights
            return np.ones(crowd.rows.n_workers)
        if self.learn_from == "gold" and not (answers.gold >= 0).any():
            raise ParameterError(
                f"weighted-vote cannot learn from gold: these answers carry none. Give {option('gold')} when they are "
                "read, or learn_from='agreement'"
            )
        hits, total = shards.total(_by_gold if self.learn_from == "gold" else _by_agreement)
        return self._learnt(per_worker(crowd.rows, hits), per_worker(crowd.rows, total), crowd.rows.n_classes)

    def _learnt(self, hits: Floats, total: Floats, K: int) -> Floats:  # eq (2)
        mean = hits.sum() / total.sum() if total.sum() > 0 else 1 / K
        right = (hits + STRENGTH * mean) / (total + STRENGTH)
        return np.maximum(0.0, (right - 1 / K) / (1 - 1 / K)) if K > 1 else np.ones(len(hits))

    def _given(self, crowd: Crowd) -> Floats:
        workers, given = crowd.workers.to_list(), self.given or {}
        if not any(worker in given for worker in workers):
            raise ParameterError(
                f"weighted-vote: given names none of the workers; they are {', '.join(map(str, workers[:5]))} ..."
            )
        return np.array([given.get(worker, 0.0) for worker in workers], np.float64)

    def coins(self, hits: Floats, total: Ints, crowd: float) -> Floats:
        return (hits + STRENGTH * crowd) / (total + STRENGTH)


def _by_agreement(shard: Shard, local: Any) -> tuple[Floats, Floats]:
    """(R,) share of the other votes that agree, added up over a row's answers, and how many were compared."""
    layout = shard.layout
    Z = np.empty((layout.n_tasks, layout.n_classes), shard.dtype)
    shard.kernels.votes(layout, np.ones(layout.n_rows), Z, shard.threads)
    others = np.diff(layout.task_ptr)[:, None] - 1
    alone = others[:, 0] == 0
    Z -= 1
    np.divide(Z, np.maximum(others, 1), out=Z)  # share of the other votes that say k, for those who said k
    Z[alone] = 0
    hits = shard.kernels.match_counts(layout, Z, shard.threads)
    Z[:] = ~alone[:, None]
    return hits, shard.kernels.match_counts(layout, Z, shard.threads)


def _by_gold(shard: Shard, local: Any) -> tuple[Floats, Floats]:
    """(R,) right answers of each row by gold, and how many were compared."""
    known = shard.gold >= 0
    Z = np.zeros((shard.layout.n_tasks, shard.layout.n_classes), shard.dtype)
    Z[known, shard.gold[known]] = 1
    hits = shard.kernels.match_counts(shard.layout, Z, shard.threads)
    Z[:] = known[:, None]
    return hits, shard.kernels.match_counts(shard.layout, Z, shard.threads)
