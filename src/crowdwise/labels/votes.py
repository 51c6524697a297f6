"""The base class of votes: the posterior is the share of weighted votes.

A vote has no likelihood. To explain votes, score them on held-out answers and compare them, their workers follow the
one-coin model: an answer is correct with the probability that it agrees with the vote shares (the mean over all
answers, or over the worker's own), and errors are uniform.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import Executor, Run, Trace
from ..kernels.layout import ByRow, Floats, Ints, PerRow, PerWorker, RowTable, per_worker, weighted_counts
from ..kernels.rules import Real
from ..rating.skills import vote_agreement, vote_left_out, vote_odds
from ..result import LeftOut
from .calibration import TaskParts, smoothed_votes
from .em import Local
from .model import LabelModel, Learnt, even_log
from .shard import Crowd, Shard


class Params(NamedTuple):
    weight: Annotated[PerWorker, Real("W", 0)]  # weight of a worker's vote
    hit: Annotated[PerWorker, Real("W", 0, 1)]  # probability of a correct answer
    crowd: Annotated[Floats, Real("2", 0)]  # both of an average worker


class Counted(NamedTuple):
    """Sums over all votes."""

    right: PerRow  # (R,) expected correct answers
    shares: Floats  # (K,)
    answered: int  # tasks with answers
    agree: Floats  # (2,) pairs of votes that agree, and all pairs


@dataclass(frozen=True, kw_only=True)
class VoteModel(LabelModel):
    """A weighted vote."""

    params_type = Params
    distinguishes_workers = False
    uses_weights = True
    calibrated_range = (0.9, 1.7)  # shares of votes promise less than comes true

    def weights(self, answers: Labels, crowd: Crowd, shards: Executor[Shard]) -> Floats:
        """Return the weight (W,) of each worker's vote."""
        return np.ones(crowd.rows.n_workers)

    def accuracies(self, hits: Floats, total: Ints, crowd: float) -> Floats:
        """Return the probability (W,) of a correct answer: the crowd's, since an unweighted vote has no skills."""
        return np.full(len(hits), crowd)

    def decided(self, shares: Floats) -> Floats:
        """Return the posterior (T, K) from vote shares (T, K)."""
        return shares

    def _decided(self, shard: Shard, shares: Floats) -> Floats:
        """Return the posterior (T, K); tasks without answers, and without a known label, keep equal shares."""
        blank = (np.diff(shard.layout.task_ptr) == 0) & (shard.gold < 0)
        kept = shares[blank]
        Z = self.decided(shares)
        Z[blank] = kept
        return Z

    def learn(self, answers: Labels, crowd: Crowd, shards: Executor[Shard], run: Run) -> Learnt:
        weight = self.weights(answers, crowd, shards)
        counted: Counted = shards.update(self._count, ByRow(weight[crowd.rows.row_worker]))
        hits, total = per_worker(crowd.rows, counted.right), crowd.rows.per_worker
        chance = (hits.sum() + 1) / (total.sum() + 2)
        odds = vote_odds(counted.agree, crowd.rows.n_classes)
        params = Params(weight, self.accuracies(hits, total, chance), np.array([weight.mean(), chance]))
        prevalence = counted.shares / max(counted.answered, 1)
        return Learnt((params, odds), prevalence, Trace(), True)

    def _count(self, shard: Shard, local: Any, weight: ByRow) -> tuple[Local, Counted]:
        Z = self._decided(shard, shard.vote_shares(weight.values))
        right = shard.kernels.match_counts(shard.layout, Z, shard.threads)
        answered = int((np.diff(shard.layout.task_ptr) > 0).sum())
        return Local(Z), Counted(right, shard.shares(Z), answered, vote_agreement(shard))

    def finish(self, crowd: Crowd, params: Any, shards: Executor[Shard]) -> Params:
        return params[0]  # type: ignore[no-any-return]

    def left_out(self, shard: Shard, params: Any, Z: Floats) -> LeftOut:
        """Use the other workers' votes alone."""
        return LeftOut(*vote_left_out(shard, params[1]))

    def need(self, answers: Labels, dtype: np.dtype[Any]) -> int:
        return 2 * answers.tasks_in_memory * answers.n_classes * dtype.itemsize

    def class_prior(self, params: Params, n_classes: int, task: int | None = None) -> Floats:
        return np.full(n_classes, 1 / n_classes)

    def emission(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: Ints | None = None) -> Floats:
        return even_log(np.where(worker >= 0, params.hit[worker], params.crowd[1]), label, layout.n_classes)

    def pull(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        out = np.zeros((len(label), layout.n_classes))
        out[np.arange(len(label)), label] = _weight(params, worker)
        return out

    def infer(self, params: Params, seen: RowTable, answers: Labels, worker: Ints) -> Floats:
        shard, weight = Shard.of(answers, Run(threads=1)), _weight(params, worker)
        return (
            self._smoothed(shard, params, weight) if self.calibrate else self._decided(shard, shard.vote_shares(weight))
        )

    def reported(self, shard: Shard, params: Any, Z: Floats) -> Floats:
        """Calibrated votes are shares of votes, with one more vote for all classes together: a vote has no posterior
        that could be tempered."""
        own: Params = params if isinstance(params, Params) else params[0]
        return self._smoothed(shard, own, own.weight[shard.layout.row_worker]) if self.calibrate else Z

    def _smoothed(self, shard: Shard, params: Params, weight: Floats) -> Floats:
        K = shard.layout.n_classes
        return shard.smoothed_votes(weight / max(float(params.crowd[0]), 1e-300), np.full(K, 1 / K))

    def without_vote(self, params: Any, posterior: Floats, votes: Floats) -> tuple[Floats, Floats]:
        return posterior, np.ones(len(posterior))

    def task_parts(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: int) -> TaskParts:
        K = layout.n_classes
        votes = weighted_counts(label, _weight(params, worker), K) / max(float(params.crowd[0]), 1e-300)
        shares = smoothed_votes(votes[None], np.full(K, 1 / K))[0]
        return TaskParts(1.0, float(votes.sum()), 0.0, shares, 1.0, shares)

    def task_posterior(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        if self.calibrate:
            return super().task_posterior(params, layout, worker, label, task)
        votes = weighted_counts(label, _weight(params, worker), layout.n_classes)
        if not len(label):
            return np.full(layout.n_classes, 1 / layout.n_classes)
        if votes.sum() == 0:
            votes = np.bincount(label, minlength=layout.n_classes).astype(np.float64)
        return np.asarray(self.decided(votes[None] / votes.sum())[0])


def _weight(params: Params, worker: Ints) -> Floats:
    return np.where(worker >= 0, params.weight[worker], params.crowd[0])
