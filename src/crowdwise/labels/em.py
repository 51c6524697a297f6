"""Label models that are fitted iteration by iteration: by EM, or by variational Bayes.

Each iteration infers the truth given the parameters, adds up statistics over shards, and improves the parameters. The
objective is the log-likelihood of the answers plus the log-prior (EM), or a lower bound on their evidence (VB); it
never decreases beyond rounding. The fit has converged when what a user sees has stopped changing: no label changed in
the last `PATIENCE` iterations, no worker's skill changed by more than `tol` in the last one, and the objective rose by
no more than `tol` / 100 per answer and iteration in those.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from ..answers import Labels
from ..engine import Executor, Problem, Run, Step, Trace, iterate
from ..engine.model import COUNT, NOT_NEGATIVE, setting
from ..engine.run import Arrays, packed, under
from ..kernels import Swept
from ..kernels.layout import Floats, per_worker
from ..rating.skills import CROWD
from .model import LabelModel, Learnt
from .shard import Crowd, Shard

P = TypeVar("P", bound=tuple[Any, ...])
S = TypeVar("S", bound=tuple[Any, ...])

PATIENCE = 5  # iterations without a changed label
GAIN = 0.01  # of tol: what the objective may still rise per answer and iteration
STAGE = "iteration"


@dataclass
class Local:
    """What stays in a shard: the posterior of its tasks, and further numbers of tasks where a model has them."""

    Z: Floats  # (T, K)
    own: dict[str, Floats] = field(default_factory=dict)  # (T,) each


class Summed(NamedTuple):
    """What a sweep over shards adds up to."""

    evidence: float
    changed: int  # labels
    stats: Any


@dataclass(frozen=True, kw_only=True)
class EMModel(LabelModel, Generic[P, S]):
    """A model fitted by EM or variational Bayes. A subclass gives the E-step, its statistics, and the M-step."""

    criterion: ClassVar[str] = "log-likelihood plus log-prior"

    max_iter: int = setting(1000, COUNT, "Iterations at most.")
    tol: float = setting(1e-4, NOT_NEGATIVE, "Convergence tolerance on worker skill.")

    @abstractmethod
    def posterior(self, shard: Shard, params: P, local: Local) -> Swept:
        """E-step: overwrite local.Z (T, K) with the posterior of the truth, given the parameters."""

    @abstractmethod
    def statistics(self, shard: Shard, local: Local, shares: Floats, params: P | None) -> S:
        """What the M-step needs; adds up over disjoint sets of tasks."""

    @abstractmethod
    def maximise(self, crowd: Crowd, stats: S, params: P | None) -> P:
        """M-step: better parameters. `params` are the former ones, None at the start."""

    @abstractmethod
    def penalty(self, params: P) -> float:
        """Log-prior of the parameters, or minus their divergence from the prior."""

    def hits(self, crowd: Crowd, stats: Any) -> Floats:
        """(W,) expected number of right answers of each worker; from `right` (R,), where statistics have it."""
        return per_worker(crowd.rows, stats.right)

    def prevalence(self, params: Any) -> Floats:
        """(K,) share of each class; `shares`, where parameters have it."""
        return np.asarray(params.shares)

    def class_prior(self, params: Any, n_classes: int, task: int | None = None) -> Floats:
        return np.asarray(params.rho)

    def prior(self, shard: Shard, params: P) -> Floats:
        """(1, K) or (T, K): what the posterior of tasks starts from, before their answers."""
        return self.class_prior(params, shard.layout.n_classes)[None]

    def enough(self, before: P, after: P, objectives: Sequence[float]) -> bool:
        """Whether to stop, whatever still changes."""
        return False

    def begin(self, crowd: Crowd, shards: Executor[Shard]) -> S:
        """Set the posterior of every shard to where the fit starts, soft votes, and return its statistics."""
        return self.from_votes(shards)

    def from_votes(self, shards: Executor[Shard], weight: Floats | None = None) -> S:
        """Start from votes, weighed by row (R,) where weights are given."""
        return shards.update(self._voted, weight).stats  # type: ignore[no-any-return]

    def _voted(self, shard: Shard, local: Any, weight: Floats | None) -> tuple[Local, Summed]:
        new = Local(shard.vote_shares(weight))
        return new, Summed(0.0, 0, self.statistics(shard, new, shard.shares(new.Z), None))

    def sweep(self, shard: Shard, local: Local, params: P) -> tuple[Local, Summed]:
        """E-step and statistics of one shard."""
        swept = self.posterior(shard, params, local)
        return local, Summed(swept.evidence, swept.flips, self.statistics(shard, local, swept.shares, params))

    def warm(self, shard: Shard, local: Local, params: Any) -> tuple[Local, Summed]:
        """The same before the first iteration: statistics as at the start of a fit."""
        self.posterior(shard, params, local)
        return local, Summed(0.0, 0, self.statistics(shard, local, shard.shares(local.Z), None))

    def learn(self, answers: Labels, crowd: Crowd, shards: Executor[Shard], run: Run) -> Learnt:
        fit, trace = _EM(self, crowd, shards, run), Trace(labels_changed=int, skill_change=float)
        converged = iterate(fit, run, trace, STAGE)
        return Learnt(fit.params, self.prevalence(fit.params), trace, converged)


class _EM(Problem):
    """A label model on its shards."""

    def __init__(self, model: EMModel[Any, Any], crowd: Crowd, shards: Executor[Shard], run: Run) -> None:
        self.name, self.max_iter = model.name, model.max_iter
        self.model, self.crowd, self.shards = model, crowd, shards
        self.n_answers = max(crowd.rows.n_answers, 1)
        self.answers = crowd.rows.per_worker + CROWD  # skills are shown as if the crowd had answered that often, too
        self.unchanged, self.before, self.moved = 0, None, np.inf
        self.stats: Any = None
        if not run.journal.resumes(STAGE):
            stats = model.begin(crowd, shards)
            self.params, self.hits = model.maximise(crowd, stats, None), model.hits(crowd, stats)

    def step(self) -> Step:
        summed: Summed = self.shards.update(self.model.sweep, self.params)
        self.stats = summed.stats
        hits = self.model.hits(self.crowd, summed.stats)
        self.moved = float(np.max(np.abs(hits - self.hits) / self.answers, initial=0.0))
        self.hits = hits
        self.unchanged = self.unchanged + 1 if summed.changed == 0 else 0
        objective = summed.evidence + self.model.penalty(self.params)
        return Step(objective, {"labels_changed": summed.changed, "skill_change": self.moved})

    def converged(self, objectives: Sequence[float]) -> bool:
        model = self.model
        before = objectives[-1 - PATIENCE] if len(objectives) > PATIENCE else -np.inf
        rise = (objectives[-1] - before) / PATIENCE / self.n_answers
        if self.unchanged >= PATIENCE and self.moved <= model.tol and rise <= GAIN * model.tol:
            return True
        return self.before is not None and model.enough(self.before, self.params, objectives)

    def improve(self) -> None:
        self.before, self.params = self.params, self.model.maximise(self.crowd, self.stats, self.params)

    def state(self) -> Arrays:
        """Of posteriors only which classes are on top is looked at again."""
        values: dict[str, Any] = {"params": self.params, "hits": self.hits, "unchanged": self.unchanged}
        if self.before is not None:
            values["before"] = self.before
        for number, (tops, own) in enumerate(self.shards.each(_kept)):
            values[f"shard{number}"] = {"tops": tops, "own": own}
        if self.crowd.truth is not None:
            values["truth"] = self.crowd.truth.state()
        return packed(values)

    def restore(self, state: Arrays) -> None:
        kind = self.model.params_type
        self.params = kind(**under(state, "params."))
        before = under(state, "before.")
        self.before = kind(**before) if before else None
        self.hits, self.unchanged = state["hits"], int(state["unchanged"])
        parts = (under(state, f"shard{number}.") for number in range(len(state)))
        self.shards.update(_put_back, parts)
        if self.crowd.truth is not None:
            self.crowd.truth.restore(under(state, "truth."))


def _kept(shard: Shard, local: Local) -> tuple[Any, dict[str, Floats]]:
    tops = local.Z.max(1, keepdims=True) == local.Z
    return np.packbits(tops, axis=None), local.own


def _put_back(shard: Shard, local: Any, parts: Any) -> tuple[Local, int]:
    """A posterior with the same classes on top."""
    part, shape = next(parts), (shard.layout.n_tasks, shard.layout.n_classes)
    tops = np.unpackbits(part["tops"], count=shape[0] * shape[1]).reshape(shape)
    return Local(tops.astype(shard.dtype), under(part, "own.")), 0
