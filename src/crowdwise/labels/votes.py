"""What votes share: a posterior that is a share of votes, and a crowd that errs evenly.

A vote is no likelihood. So that votes can be explained, scored on hidden answers and compared, their worker side is a
coin: right with the chance that an answer agrees with the shares (of all votes, or of the worker's own), wrong evenly.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..answers import Labels
from ..engine import LabelModel, Run, Work
from ..engine.memory import refuse_if_too_large
from ..engine.model import Coins, even_log, expected_hits
from ..kernels.layout import Floats, Ints, Layout
from ..result import Result


@dataclass(frozen=True, kw_only=True)
class VoteModel(LabelModel):
    """Counts votes, each with a weight."""

    def weights(self, answers: Labels, work: Work) -> Floats:
        """(R,) weight of a worker's vote."""
        return np.ones(work.layout.n_rows)

    def shares(self, work: Work, weight: Floats) -> Floats:
        """(T, K) posterior."""
        Z = work.vote_shares()
        if np.all(weight == 1):
            return Z
        weighed = np.empty_like(Z)
        work.kernels.votes(work.layout, weight, weighed, work.threads)
        total = weighed.sum(1)
        free = (work.gold < 0) & (total > 0)  # votes that all weigh nothing count alike
        Z[free] = weighed[free] / total[free, None]
        return Z

    def fit(self, answers: Labels, run: Run | None = None) -> Result:
        run = run or Run()
        work = Work.on(answers, run)
        refuse_if_too_large(2 * answers.n_tasks * answers.n_classes * work.dtype.itemsize, answers, self.name)
        began = time.perf_counter()
        Z = self.shares(work, self.weights(answers, work))
        hits, total = expected_hits(work, Z)
        crowd = (hits.sum() + 1) / (total.sum() + 2)
        answered = max(int((answers.answers_per_task > 0).sum()), 1)
        return Result(
            answers=answers,
            model=self,
            params=Coins(self.coins(hits, total, crowd), np.array([crowd])),
            posterior=Z,
            prevalence=work.shares(Z) / answered,
            trace=(),
            converged=True,
            seed=int(run.seed),
            seconds=time.perf_counter() - began,
        )

    def coins(self, hits: Floats, total: Floats, crowd: float) -> Floats:
        """(W,) chance of a right answer: the crowd's for all, since an even vote does not tell workers apart."""
        return np.full(len(hits), crowd)

    def emission(self, params: Any, layout: Layout, worker: Ints, label: Ints) -> Floats:
        return even_log(params.of(worker), label, layout.n_classes)

    def class_prior(self, params: Any, n_classes: int) -> Floats:
        return np.full(n_classes, 1 / n_classes)

    def infer(self, params: Any, seen: Layout, work: Work, worker: Ints, label: Ints) -> Floats:
        return self.shares(work, np.ones(work.layout.n_rows))
