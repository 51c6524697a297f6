"""One task of a stream: what is known about it, how many more answers it needs, and whom to ask."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..kernels import choose
from ..kernels.ahead import expected_right, information, with_other
from ..kernels.layout import Floats, Ints, narrow
from ..kernels.special import decide as most_probable
from ..labels.em import EMModel
from ..labels.incremental import Computing, Learned, TaskAnswers, small_shard
from ..labels.shard import Crowd

MAX_CANDIDATES = 2_000  # workers with the most correct answers, who are compared for a task
MAX_WORKERS_NAMED = 20  # workers worth asking who are named
MIN_INFORMATION_RATIO = 0.5  # a worker is worth asking if their information is this many times the average worker's


class TaskView(NamedTuple):
    """A task, by what was learned so far."""

    answers: TaskAnswers
    posterior: Floats  # (K,) as it is reported
    own: Floats  # (K,) without the vote
    weight: float  # of `own` in the reported posterior
    label: int  # the most probable class

    @property
    def probability(self) -> float:
        return float(self.posterior[self.label])

    def rivals(self) -> tuple[Ints, Floats]:
        """Return the label and the most probable other class, and their probabilities without the vote (2,)."""
        others = self.own.copy()
        others[self.label] = -1
        rival = int(others.argmax())
        return np.array([self.label, rival], np.int32), np.maximum([self.own[self.label], others[rival]], 0)


class Asking:
    """What is asked of single tasks, by a model and what it has learned."""

    def __init__(self, em: EMModel[Any, Any], known: Learned) -> None:
        self.em, self.known = em, known

    def view(self, answers: TaskAnswers, gold: Ints, Z: Floats, n_answers: int) -> TaskView:
        """Return a task by its answers, its gold (1,) and its posterior (1, K)."""
        how = Computing(Z.shape[1], n_answers, 1, 0)
        shard = small_shard(answers, gold, self.known.rows, how)
        params = narrow(self.known.params, shard.subset)
        posterior = self.em.reported(shard, params, Z.copy())
        votes = next(self.em.weighted(shard, params).votes_by_part())[1]
        own, weight = self.em.without_vote(params, posterior, votes)
        label = most_probable(posterior, self.em.prevalence(self.known.params))[0]
        return TaskView(answers, posterior[0], own[0], float(weight[0]), int(label[0]))

    def missing(self, task: TaskView, probability: float, most: int) -> int:
        """Return the smallest number of answers of average workers after which the expected probability is reached."""
        if len(task.posterior) < 2:
            return most
        pair, q = task.rivals()
        known = self.known
        given = np.exp(self.em.emission(known.params, known.rows, np.array([-1, -1], np.int32), pair))[:, pair]
        V = expected_right(q[None], with_other(given[0], given[1])[None], most)[0]
        reached = np.flatnonzero(task.probability + task.weight * (V - V[0]) >= probability)
        return int(reached[0]) if len(reached) else most

    def worth_asking(self, task: TaskView) -> Ints:
        """Return the workers who best tell the label from its rival, if the model distinguishes workers."""
        if len(task.posterior) < 2 or not self.em.distinguishes_workers:
            return np.zeros(0, np.int64)
        pair, _ = task.rivals()
        hits, total = self.em.hits(_rows_only(self.known), self.known.stats), self.known.rows.per_worker
        score = np.where(total > 0, (hits + 1) / (total + 2), -1.0)
        score[task.answers.worker] = -1
        best = np.argsort(-score, kind="stable")[:MAX_CANDIDATES]
        best = best[score[best] >= 0]
        own = self._information(best, pair)
        crowd = self._information(np.array([-1]), pair)[0]
        order = np.argsort(-own, kind="stable")
        order = order[own[order] > MIN_INFORMATION_RATIO * crowd][:MAX_WORKERS_NAMED]
        named: Ints = best[order]
        return named

    def _information(self, worker: Ints, pair: Ints) -> Floats:
        """Return how well workers tell two classes apart by giving one, the other or a third label."""
        params, rows, each = self.known.params, self.known.rows, worker.astype(np.int32)
        by_label = [np.exp(self.em.emission(params, rows, each, np.full(len(each), k, np.int32))) for k in pair]
        first, second = (with_other(by_label[0][:, k], by_label[1][:, k]) for k in pair)
        return information(first, second)


def _rows_only(known: Learned) -> Any:
    """Return a crowd of which only the rows are used."""
    return Crowd(choose(0, 1), known.rows, 1, np.dtype(np.float64), 0, None)
