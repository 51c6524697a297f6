"""Weighted vote: the votes of better workers count more.

    (1)  q[i, k] ~ sum over answers n of task i with label k of v[worker_n]

The weights v are given as a mapping, or learnt from gold or from agreement:
    (2)  v[j] = max(0, (p[j] - 1/K) / (1 - 1/K)),   p[j] = (hits[j] + m s) / (n[j] + s)
With gold, hits[j] is the number of j's correct answers; with agreement, it is the sum over j's answers of the share of
the *other* votes on the task that agree. n[j] is the number of answers compared, m the crowd's mean, and s = 2. A
worker at chance has weight 0. If the answers have a column `weight`, each vote is multiplied by it. Derivation in
docs/maths/weighted_vote.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..answers import Labels
from ..answers.arguments import brief, is_number
from ..answers.coding import sought
from ..engine import Executor, register
from ..engine.model import one_of, setting
from ..errors import ParameterError, option
from ..kernels.layout import Floats, PerRow, per_worker
from .shard import Crowd, Shard
from .votes import VoteModel

ACCURACY_PRIOR_ANSWERS = 2.0  # s: pseudo-answers with the crowd's mean in each worker's accuracy


@register("weighted-vote", "votes weighted by worker: weights given, or learnt from gold or agreement")
@dataclass(frozen=True, kw_only=True)
class WeightedVote(VoteModel):
    """A vote with a weight for each worker, given or learnt in one step."""

    distinguishes_workers = True
    calibration_offset = (-0.95, 0.9)
    learn_from: str = setting(
        "agreement",
        one_of("agreement", "gold", "column"),
        "What the worker weights are learnt from; 'column': equal worker weights, only the column weight counts.",
    )
    given: Mapping[Any, float] | None = setting(
        None, None, "Weight by worker, instead of learnt weights; workers not named have weight 0."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.given is not None and not isinstance(self.given, Mapping):
            raise ParameterError(f"weighted-vote: given is {self.given!r}; it must be a mapping from worker to weight")
        for worker, weight in (self.given or {}).items():
            if isinstance(worker, tuple):
                raise ParameterError(f"weighted-vote: given has the worker {brief(worker)}; name it by one value")
            if not is_number(weight) or not 0 <= weight < np.inf:
                raise ParameterError(
                    f"weighted-vote: the weight of {worker!r} is {weight!r}; it must be a number of at least 0"
                )
        if self.given is not None:
            object.__setattr__(self, "given", {sought(worker): weight for worker, weight in self.given.items()})

    @property
    def needs_gold(self) -> bool:
        return self.learn_from == "gold"

    def weights(self, answers: Labels, crowd: Crowd, shards: Executor[Shard]) -> Floats:
        if self.given is not None:
            return self._given(crowd)
        if self.learn_from == "column":
            answers.check_weights()
            return np.ones(crowd.rows.n_workers)
        if self.learn_from == "gold" and not answers.n_gold:
            raise ParameterError(
                f"weighted-vote cannot learn from gold: these answers have none. Give {option('gold')} when reading "
                "them, or use learn_from='agreement'"
            )
        hits, total = shards.total(_by_gold if self.learn_from == "gold" else _by_agreement)
        return self._learnt(per_worker(crowd.rows, hits), per_worker(crowd.rows, total), crowd.rows.n_classes)

    def _learnt(self, hits: Floats, total: Floats, K: int) -> Floats:  # eq (2)
        mean = hits.sum() / total.sum() if total.sum() > 0 else 1 / K
        accuracy = self.accuracies(hits, total, mean)
        return np.maximum(0.0, (accuracy - 1 / K) / (1 - 1 / K)) if K > 1 else np.ones(len(hits))

    def _given(self, crowd: Crowd) -> Floats:
        workers, given = crowd.workers.to_list(), self.given or {}
        if not any(worker in given for worker in workers):
            raise ParameterError(
                f"weighted-vote: given has weights for none of the workers. They are "
                f"{', '.join(map(str, workers[:5]))} ..."
            )
        return np.array([given.get(worker, 0.0) for worker in workers], np.float64)

    def accuracies(self, hits: Floats, total: Any, crowd: float) -> Floats:
        return np.asarray((hits + ACCURACY_PRIOR_ANSWERS * crowd) / (total + ACCURACY_PRIOR_ANSWERS))


class Compared(NamedTuple):
    hits: PerRow  # (R,)
    total: PerRow  # (R,)


def _by_agreement(shard: Shard, local: Any) -> Compared:
    """Return, summed over each row's answers (R,), the share of the other votes that agree, and how many answers were
    compared."""
    layout = shard.layout
    Z = np.empty((layout.n_tasks, layout.n_classes), shard.dtype)
    shard.kernels.votes(layout, np.ones(layout.n_rows), Z, shard.threads)
    others = np.diff(layout.task_ptr)[:, None] - 1
    alone = others[:, 0] == 0
    Z -= 1
    np.divide(Z, np.maximum(others, 1), out=Z)  # share of the other votes for k, for an answer with label k
    Z[alone] = 0
    hits = shard.kernels.match_counts(layout, Z, shard.threads)
    Z[:] = ~alone[:, None]
    return Compared(hits, shard.kernels.match_counts(layout, Z, shard.threads))


def _by_gold(shard: Shard, local: Any) -> Compared:
    """Return the number of each row's answers (R,) that are correct by gold, and how many have gold."""
    known = shard.gold >= 0
    Z = np.zeros((shard.layout.n_tasks, shard.layout.n_classes), shard.dtype)
    Z[known, shard.gold[known]] = 1
    hits = shard.kernels.match_counts(shard.layout, Z, shard.threads)
    Z[:] = known[:, None]
    return Compared(hits, shard.kernels.match_counts(shard.layout, Z, shard.threads))
