"""What votes share: a posterior that is a share of weighed votes, and a crowd that errs evenly.

A vote is no likelihood. So that votes can be explained, scored on hidden answers and compared, their worker side is a
coin: right with the chance that an answer agrees with the shares (of all votes, or of the worker's own), wrong evenly.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import LabelModel, Run, Work
from ..engine.memory import refuse_if_too_large
from ..engine.model import even_log
from ..kernels.layout import Floats, Ints, Layout, per_worker, worker_answers
from ..rating.left_out import left_to_others
from ..result import Result


class Params(NamedTuple):
    weight: Floats  # (W,)  what a worker's vote counts
    hit: Floats  # (W,)  chance of a right answer
    crowd: Floats  # (2,)  weight and chance of an average worker


@dataclass(frozen=True, kw_only=True)
class VoteModel(LabelModel):
    """Counts votes, each with a weight."""

    params_type = Params
    tells_workers_apart = False

    def weights(self, answers: Labels, work: Work) -> Floats:
        """(W,) what each worker's vote counts."""
        return np.ones(answers.n_workers)

    def coins(self, hits: Floats, total: Floats, crowd: float) -> Floats:
        """(W,) chance of a right answer: the crowd's for all, since an even vote does not tell workers apart."""
        return np.full(len(hits), crowd)

    def decided(self, shares: Floats) -> Floats:
        """(T, K) posterior from shares of votes."""
        return shares

    def fit(self, answers: Labels, run: Run | None = None) -> Result:
        run = run or Run()
        work = Work.on(answers, run)
        refuse_if_too_large(2 * answers.n_tasks * answers.n_classes * work.dtype.itemsize, answers, self.name)
        began = time.perf_counter()
        weight = self.weights(answers, work)
        right, sure = left_to_others(work.kernels, work.layout, work.gold, work.dtype, work.threads)
        Z = self.decided(work.vote_shares(weight[work.layout.row_worker]))
        by_row = work.kernels.match_counts(work.layout, Z, work.threads)
        hits, total = per_worker(work.layout, by_row), worker_answers(work.layout)
        crowd = (hits.sum() + 1) / (total.sum() + 2)
        answered = max(int((answers.answers_per_task > 0).sum()), 1)
        return Result(
            answers=answers,
            model=self,
            params=Params(weight, self.coins(hits, total, crowd), np.array([weight.mean(), crowd])),
            posterior=Z,
            prevalence=work.shares(Z) / answered,
            right=right,
            sure=sure,
            trace=(),
            converged=True,
            seed=int(run.seed),
            seconds=time.perf_counter() - began,
        )

    def class_prior(self, params: Params, n_classes: int, task: int | None = None) -> Floats:
        return np.full(n_classes, 1 / n_classes)

    def emission(self, params: Params, layout: Layout, worker: Ints, label: Ints, task: Ints | None = None) -> Floats:
        return even_log(np.where(worker >= 0, params.hit[worker], params.crowd[1]), label, layout.n_classes)

    def pull(self, params: Params, layout: Layout, worker: Ints, label: Ints, task: int) -> Floats:
        out = np.zeros((len(label), layout.n_classes))
        out[np.arange(len(label)), label] = _worth(params, worker)
        return out

    def infer(self, params: Params, seen: Layout, answers: Labels, worker: Ints) -> Floats:
        return self.decided(Work.on(answers, Run(threads=1)).vote_shares(_worth(params, worker)))

    def task_posterior(self, params: Params, layout: Layout, worker: Ints, label: Ints, task: int) -> Floats:
        votes = np.bincount(label, _worth(params, worker), minlength=layout.n_classes)
        if votes.sum() == 0:
            votes = np.bincount(label, minlength=layout.n_classes) + (0 if len(label) else 1)
        return np.asarray(self.decided(votes[None] / votes.sum())[0])


def _worth(params: Params, worker: Ints) -> Floats:
    return np.where(worker >= 0, params.weight[worker], params.crowd[0])
