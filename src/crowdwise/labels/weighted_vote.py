"""Weighted vote: better workers count more.

    (1)  q[i, k] ~ sum over answers n of task i that say k of v[worker_n]

Weights v are given (a mapping, or the column `weight` of the answers), or learnt, from gold or from agreement:
    (2)  v[j] = max(0, (p[j] - 1/K) / (1 - 1/K)),   p[j] = (hits[j] + m s) / (n[j] + s)
where hits[j] counts j's answers that are right by gold, or adds, over j's answers, the share of the *other* votes on
the task that agree; n[j] counts what was compared; m is the crowd's mean and s = 2. A worker at chance weighs nothing.
Derivation in docs/maths/weighted_vote.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..answers import Labels
from ..engine import Work
from ..engine.model import Rule, rules
from ..errors import ParameterError
from ..kernels.layout import Floats, per_worker
from .registry import register
from .votes import VoteModel

STRENGTH = 2.0


@register("weighted-vote", "votes weighed by what workers are worth: given, or learnt from gold or agreement")
@dataclass(frozen=True, kw_only=True)
class WeightedVote(VoteModel):
    """Votes that count by worker: weights given, or learnt in one step."""

    tells_workers_apart = True
    off = (-0.95, 0.9)
    learn_from: str = field(default="agreement", metadata=rules(Rule(str, choices=("agreement", "gold", "column"))))
    given: Mapping[Any, float] | None = None  # worker -> weight; a worker not named weighs 0

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

    def weights(self, answers: Labels, work: Work) -> Floats:
        if self.given is not None:
            return self._given(answers)
        if self.learn_from == "column":
            return self._column(answers)
        hits, total = self._gold(answers, work) if self.learn_from == "gold" else self._agreement(work)
        return self._learnt(hits, total, answers.n_classes)

    def _learnt(self, hits: Floats, total: Floats, K: int) -> Floats:  # eq (2)
        mean = hits.sum() / total.sum() if total.sum() > 0 else 1 / K
        right = (hits + STRENGTH * mean) / (total + STRENGTH)
        return np.maximum(0.0, (right - 1 / K) / (1 - 1 / K)) if K > 1 else np.ones(len(hits))

    def _agreement(self, work: Work) -> tuple[Floats, Floats]:
        layout = work.layout
        Z = np.empty((layout.n_tasks, layout.n_classes), work.dtype)
        work.kernels.votes(layout, np.ones(layout.n_rows), Z, work.threads)
        others = np.diff(layout.task_ptr)[:, None] - 1
        alone = others[:, 0] == 0
        Z -= 1
        np.divide(Z, np.maximum(others, 1), out=Z)  # share of the other votes that say k, for those who said k
        Z[alone] = 0
        hits = per_worker(layout, work.kernels.match_counts(layout, Z, work.threads))
        Z[:] = ~alone[:, None]
        return hits, per_worker(layout, work.kernels.match_counts(layout, Z, work.threads))

    def _gold(self, answers: Labels, work: Work) -> tuple[Floats, Floats]:
        known = answers.gold >= 0
        if not known.any():
            raise ParameterError(
                "weighted-vote cannot learn from gold: these answers carry none. Give gold (--gold FILE), or "
                "learn_from='agreement'"
            )
        Z = np.zeros((answers.n_tasks, answers.n_classes), work.dtype)
        Z[known, answers.gold[known]] = 1
        hits = per_worker(work.layout, work.kernels.match_counts(work.layout, Z, work.threads))
        Z[:] = known[:, None]
        return hits, per_worker(work.layout, work.kernels.match_counts(work.layout, Z, work.threads))

    def _given(self, answers: Labels) -> Floats:
        assert self.given is not None
        workers = answers.workers.to_list()
        if not any(worker in self.given for worker in workers):
            raise ParameterError(
                f"weighted-vote: given names none of the workers; they are {', '.join(map(str, workers[:5]))} ..."
            )
        return np.array([self.given.get(worker, 0.0) for worker in workers], np.float64)

    def _column(self, answers: Labels) -> Floats:
        """A worker's weight is the mean of the column `weight` over that worker's answers."""
        _, worker, _ = answers.codes()
        size = answers.n_workers
        total = np.bincount(worker, answers.numbers("weight"), minlength=size)
        return _checked(total / np.maximum(np.bincount(worker, minlength=size), 1), answers)

    def coins(self, hits: Floats, total: Floats, crowd: float) -> Floats:
        return (hits + STRENGTH * crowd) / (total + STRENGTH)


def _checked(weight: Floats, answers: Labels) -> Floats:
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        worker = answers.workers[int(bad[0])]
        raise ParameterError(
            f"weighted-vote: the weight of worker {worker!r} is {weight[bad[0]]}; weights are at least 0"
        )
    return weight
