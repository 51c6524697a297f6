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
from ..engine.model import even_log, match_left_out
from ..kernels.layout import Floats, Ints, Layout, per_worker, worker_answers
from ..result import Result


class Params(NamedTuple):
    weight: Floats  # (W,)  what a worker's vote counts
    hit: Floats  # (W,)  chance of a right answer
    crowd: Floats  # (2,)  weight and chance of an average worker


@dataclass(frozen=True, kw_only=True)
class VoteModel(LabelModel):
    """Counts votes, each with a weight."""

    params_type = Params

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
        right, sure = _others(work)
        Z = self.decided(_shares(work, weight[work.layout.row_worker]))
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

    def class_prior(self, params: Params, n_classes: int) -> Floats:
        return np.full(n_classes, 1 / n_classes)

    def emission(self, params: Params, layout: Layout, worker: Ints, label: Ints) -> Floats:
        return even_log(np.where(worker >= 0, params.hit[worker], params.crowd[1]), label, layout.n_classes)

    def infer(self, params: Params, seen: Layout, answers: Labels, worker: Ints) -> Floats:
        return self.decided(_shares(Work.on(answers, Run(threads=1)), _worth(params, worker)))

    def task_posterior(self, params: Params, layout: Layout, worker: Ints, label: Ints, task: int) -> Floats:
        votes = np.bincount(label, _worth(params, worker), minlength=layout.n_classes)
        if votes.sum() == 0:
            votes = np.bincount(label, minlength=layout.n_classes) + (0 if len(label) else 1)
        return np.asarray(self.decided(votes[None] / votes.sum())[0])


def _worth(params: Params, worker: Ints) -> Floats:
    return np.where(worker >= 0, params.weight[worker], params.crowd[0])


def _shares(work: Work, weight: Floats) -> Floats:
    """(T, K) shares of votes, weighed by row (R,); where all votes weigh nothing they count alike."""
    Z = work.vote_shares()
    if np.all(weight == 1):
        return Z
    weighed = np.empty_like(Z)
    work.kernels.votes(work.layout, weight, weighed, work.threads)
    total = weighed.sum(1)
    free = (work.gold < 0) & (total > 0)
    Z[free] = weighed[free] / total[free, None]
    return Z


def _others(work: Work) -> tuple[Floats, Floats]:
    """(W,) sums over a worker's answers of the share of the *other* votes that agree, and of squares of their shares.

    Leaving one of n votes out leaves (n s - 1) / (n - 1) of a share s: the match kernel's own label, weighed down.
    """
    Z = work.vote_shares()
    n = np.diff(work.layout.task_ptr)

    def odds(part: slice) -> Floats:
        task = work.layout.task[part]
        row = np.searchsorted(work.layout.row_ptr, np.arange(part.start, part.start + len(task)), side="right") - 1
        count = Z[task, work.layout.row_label[row]] * n[task]
        return np.asarray(count / np.maximum(count - 1, 1e-12))

    return match_left_out(work, Z, odds)
