"""The one loop: infer the truth given both sides, add up statistics, improve both sides, until nothing moves.

The objective is the log-likelihood of the answers plus the log-prior (EM), or a lower bound on their evidence (VB). It
is recorded after every sweep and never falls beyond rounding. The climb stops when what a user sees has stopped moving:
no label changed in the last `PATIENCE` sweeps, no worker's skill moved more than `tol` in the last one, and the
objective rose no more than `tol` / 100 an answer and sweep in those, so that what lies behind labels and skills is at
rest, too.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from ..answers import Labels
from ..errors import Interrupted
from ..kernels import Swept
from ..kernels.layout import Floats, worker_answers
from ..rating.skills import CROWD
from ..result import Result
from .memory import refuse_if_too_large
from .model import COUNT, NOT_NEGATIVE, LabelModel, Work, rules
from .run import Checkpoint, Run, Step

P = TypeVar("P", bound=tuple[Any, ...])
S = TypeVar("S", bound=tuple[Any, ...])

PATIENCE = 5
GAIN = 0.01  # of tol: what the objective may still rise an answer and sweep


@dataclass(frozen=True, kw_only=True)
class ClimbingModel(LabelModel, Generic[P, S]):
    """A model fitted by EM or variational Bayes. A subclass gives the sweep and the step."""

    max_iter: int = field(default=1000, metadata=rules(COUNT))  # sweeps at most
    tol: float = field(default=1e-4, metadata=rules(NOT_NEGATIVE))  # largest move of a skill that counts as rest

    @abstractmethod
    def posterior(self, work: Work, params: P, Z: Floats) -> Swept:
        """E-step: overwrite Z (T, K) with the posterior of the truth, given the parameters."""

    @abstractmethod
    def statistics(self, work: Work, Z: Floats, shares: Floats, params: P | None) -> S:
        """What the M-step needs; adds up over disjoint sets of tasks."""

    @abstractmethod
    def maximise(self, work: Work, stats: S, params: P | None) -> P:
        """M-step: better parameters. `params` are the former ones, None at the start."""

    @abstractmethod
    def penalty(self, params: P) -> float:
        """Log-prior of the parameters, or minus their divergence from the prior."""

    def prior(self, work: Work, params: P) -> Floats:
        """(1, K) or (T, K): what the posterior of tasks starts from, before their answers."""
        return self.class_prior(params, work.layout.n_classes)[None]

    @abstractmethod
    def hits(self, work: Work, stats: S) -> Floats:
        """(W,) expected number of right answers of each worker."""

    @abstractmethod
    def left_out(self, work: Work, params: P, Z: Floats) -> tuple[Floats, Floats]:
        """(W,) how a worker's answers look to posteriors q that have not seen them: added up over the answers, the
        probability of the label given, and the sum of squares of q (how sure q is)."""

    @abstractmethod
    def prevalence(self, params: P) -> Floats:
        """(K,) share of each class."""

    def enough(self, before: P, after: P, trace: list[float]) -> bool:
        """Whether to stop, whatever still moves."""
        return False

    def finish(self, work: Work, params: P) -> P:
        """The last touch to parameters: what only a result needs."""
        return params

    def begin(self, work: Work) -> Floats:
        """(T, K) posterior to start from: soft votes."""
        return work.vote_shares()

    def add(self, first: S, second: S) -> S:
        """Statistics of two disjoint sets of tasks together."""
        return type(first)(*(a + b for a, b in zip(first, second, strict=True)))

    def work_on(self, answers: Labels, run: Run) -> Work:
        """What the sweeps of a fit work on."""
        return Work.on(answers, run)

    def need(self, answers: Labels, dtype: np.dtype[Any]) -> int:
        """Bytes that a fit takes above its answers."""
        return answers.n_tasks * answers.n_classes * dtype.itemsize + 64 * answers.layout.n_rows

    def fit(self, answers: Labels, run: Run | None = None) -> Result:
        """Learn from answers; everything found is in the Result.

        >>> import crowdwise as cw
        >>> answers = cw.Labels([1, 1, 1, 2, 2, 2], ["a", "b", "c"] * 2, ["x", "x", "y", "y", "y", "y"])
        >>> cw.DawidSkene().fit(answers).labels["label"].to_list()
        ['x', 'y']
        """
        run = run or Run()
        work = self.work_on(answers, run)
        refuse_if_too_large(self.need(answers, work.dtype), answers, self.name)
        began = time.perf_counter()
        climb = _climb(self, work, run)
        params = self.finish(work, climb.params)
        right, sure = self.left_out(work, climb.params, climb.Z)
        return Result(
            answers=answers,
            model=self,
            params=params,
            posterior=self.reported(work, climb.params, climb.Z),
            prevalence=self.prevalence(climb.params),
            right=right,
            sure=sure,
            trace=tuple(climb.trace),
            converged=climb.converged,
            seed=int(run.seed),
            seconds=time.perf_counter() - began,
        )


@dataclass
class _Climb:
    """Where a climb stands."""

    Z: Floats
    params: Any
    trace: list[float]
    hits: Floats
    still: int = 0
    converged: bool = False
    before: Any = None  # the parameters of the last sweep


def _climb(model: ClimbingModel[Any, Any], work: Work, run: Run) -> _Climb:
    here = _begin(model, work, run)
    answers = worker_answers(work.layout) + CROWD  # skills are shown as if the crowd had answered that often, too
    while len(here.trace) < model.max_iter:
        if run.stop is not None and run.stop():
            reached = Checkpoint(here.params._asdict(), here.trace, here.still, here.hits, here.Z.argmax(1))
            raise Interrupted(f"{model.name} was stopped after {len(here.trace)} sweeps", reached)
        swept = model.posterior(work, here.params, here.Z)
        here.trace.append(swept.evidence + model.penalty(here.params))
        stats = model.statistics(work, here.Z, swept.shares, here.params)
        hits = model.hits(work, stats)
        moved = float(np.max(np.abs(hits - here.hits) / answers, initial=0.0))
        here.hits = hits
        here.still = here.still + 1 if swept.flips == 0 else 0
        if run.watch is not None:
            run.watch(Step(len(here.trace), model.max_iter, here.trace[-1], swept.flips, moved))
        here.converged = here.still >= PATIENCE and moved <= model.tol and _rise(here, work) <= GAIN * model.tol
        if here.before is not None and not here.converged:
            here.converged = model.enough(here.before, here.params, here.trace)
        if here.converged or len(here.trace) == model.max_iter:
            break
        here.before, here.params = here.params, model.maximise(work, stats, here.params)
    return here


def _rise(here: _Climb, work: Work) -> float:
    """How much the objective rose for an answer and sweep, over the last `PATIENCE` of them."""
    before = here.trace[-1 - PATIENCE] if len(here.trace) > PATIENCE else -np.inf
    return (here.trace[-1] - before) / PATIENCE / max(work.layout.n_answers, 1)


def _begin(model: ClimbingModel[Any, Any], work: Work, run: Run) -> _Climb:
    Z = model.begin(work)
    if run.resume is not None:
        saved = run.resume
        Z[:] = 0
        Z[np.arange(len(Z)), saved.labels] = 1  # of the former posterior only the labels are looked at again
        return _Climb(Z, model.params_type(**saved.params), list(saved.trace), saved.hits, saved.still)
    stats = model.statistics(work, Z, work.shares(Z), None)
    return _Climb(Z, model.maximise(work, stats, None), [], model.hits(work, stats))
