"""Label models that are fitted by EM or by variational Bayes.

Each iteration infers the truth given the parameters, sums statistics over shards, and updates the parameters. The
objective is the log-likelihood of the answers plus the log-prior (EM), or a lower bound on their evidence (VB). It
never decreases beyond rounding. The fit has converged when the results have stopped changing: over the last `PATIENCE`
iterations no label changed and the objective rose by at most `tol` / 100 per answer and iteration, and in the last
iteration no worker's skill changed by more than `tol`.
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
from ..engine.run import Arrays, packed, restored, sound, under
from ..kernels import EStepResult
from ..kernels.layout import ByRow, Floats, Subset, per_worker
from ..kernels.rules import Real
from ..rating.skills import SKILL_PRIOR_ANSWERS
from .model import LabelModel, Learnt
from .shard import Crowd, Shard

P = TypeVar("P", bound=tuple[Any, ...])
S = TypeVar("S", bound=tuple[Any, ...])

PATIENCE = 5  # iterations without a changed label
GAIN = 0.01  # largest rise of the objective per answer and iteration at convergence, in units of tol
STAGE = "iteration"


@dataclass
class Local:
    """State kept in a shard: the posterior of its tasks, and any other per-task parameters of the model."""

    Z: Floats  # (T, K)
    own: dict[str, Floats] = field(default_factory=dict)  # (T,) each

    @property
    def renewed(self) -> bool:
        """Whether an E-step rebuilds this state from the parameters alone: it holds nothing but the posterior."""
        return not self.own

    def arrays(self) -> Arrays:
        """Return the state as arrays, to be kept outside the memory of this process."""
        return {"Z": self.Z} | self.own

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Local:
        return cls(arrays["Z"], {name: array for name, array in arrays.items() if name != "Z"})


class Summed(NamedTuple):
    """Sums over shards after one E-step."""

    evidence: float
    changed: int  # labels
    stats: Any


@dataclass(frozen=True, kw_only=True)
class EMModel(LabelModel, Generic[P, S]):
    """A model fitted by EM or variational Bayes. A subclass defines the E-step, its statistics, and the M-step."""

    criterion: ClassVar[str] = "log-likelihood plus log-prior"
    max_changed: ClassVar[float] = 0.0  # share of labels that may change in an iteration at convergence
    can_stream: ClassVar[bool] = True  # whether `renewed` makes the statistics of an answer independent of when it came

    max_iter: int = setting(1000, COUNT, "Maximum number of iterations.")
    tol: float = setting(1e-4, NOT_NEGATIVE, "Convergence tolerance on worker skill.")

    @abstractmethod
    def posterior(self, shard: Shard, params: P, local: Local) -> EStepResult:
        """E-step: overwrite local.Z (T, K) with the posterior of the truth, given the parameters."""

    @abstractmethod
    def statistics(self, shard: Shard, local: Local, shares: Floats, params: P | None) -> S:
        """Return the statistics for the M-step. They add up over disjoint sets of tasks."""

    def sums(self, shard: Shard, local: Local, shares: Floats, params: P | None) -> Any:
        """Return the statistics, or, if this is the only shard, anything else that `maximise` and `hits` take."""
        return self.statistics(shard, local, shares, params)

    @abstractmethod
    def maximise(self, crowd: Crowd, stats: S, params: P | None) -> P:
        """M-step: return updated parameters. `params` are the previous ones, None at the start."""

    @abstractmethod
    def penalty(self, params: P) -> float:
        """Log-prior of the parameters, or minus their divergence from the prior."""

    def total_objective(self, evidence: float, params: P) -> float:
        """Return the objective, given the sum over tasks of the log-evidence of their answers."""
        return evidence + self.penalty(params)

    def hits(self, crowd: Crowd, stats: Any) -> Floats:
        """Return the expected number of correct answers of each worker (W,). Default: sums of `stats.right` (R,)."""
        return per_worker(crowd.rows, stats.right)

    def prevalence(self, params: Any) -> Floats:
        """Return the share of each class (K,). Default: `params.shares`."""
        return np.asarray(params.shares)

    def class_prior(self, params: Any, n_classes: int, task: int | None = None) -> Floats:
        return np.asarray(params.rho)

    def prior(self, shard: Shard, params: P) -> Floats:
        """Return the prior of the tasks' classes, shape (1, K) or (T, K)."""
        return self.class_prior(params, shard.layout.n_classes)[None]

    def stop_early(self, before: P, after: P, objectives: Sequence[float]) -> bool:
        """Return whether to stop before convergence."""
        return False

    def finished(self, iterations: int) -> bool | None:
        """Return whether the fit has ended, for a model with a fixed number of iterations. None: when it converges."""
        return None

    def renewed(self, stats: S, params: P) -> S:
        """Return statistics for the present parameters, where they depend on the parameters of an earlier E-step."""
        return stats

    def begin(self, crowd: Crowd, shards: Executor[Shard]) -> S:
        """Initialise the posterior of every shard with soft votes, and return its statistics."""
        return self.from_votes(shards)

    def from_votes(self, shards: Executor[Shard], weight: Floats | None = None) -> S:
        """Initialise the posteriors with votes, weighted by row (R,) if weights are given."""
        return shards.update(self._voted, None if weight is None else ByRow(weight)).stats  # type: ignore[no-any-return]

    def _voted(self, shard: Shard, local: Any, weight: ByRow | None) -> tuple[Local, Summed]:
        new = Local(shard.vote_shares(None if weight is None else weight.values))
        return new, Summed(0.0, 0, self.sums(shard, new, shard.shares(new.Z), None))

    def e_step(self, shard: Shard, local: Local, params: P) -> tuple[Local, Summed]:
        """E-step and statistics of one shard."""
        found = self.posterior(shard, params, local)
        return local, Summed(found.evidence, found.flips, self.sums(shard, local, found.shares, params))

    def warm(self, shard: Shard, local: Local, params: Any) -> tuple[Local, Summed]:
        """E-step before the first iteration: the statistics are those of an initial posterior."""
        self.posterior(shard, params, local)
        return local, Summed(0.0, 0, self.statistics(shard, local, shard.shares(local.Z), None))

    def place(self, shards: Executor[Shard], Z: Floats) -> None:
        """Set the posteriors (T, K) of all shards."""
        ends = np.cumsum(list(shards.each(_size)))
        shards.update(_placed, each=np.split(Z, ends[:-1]))

    def moved(self, params: P, place: Subset, before: Shard, after: Shard) -> P:
        """Return the parameters after some tasks have changed, where they depend on answers other than by statistics.
        `place` are the rows and workers that were known before."""
        return params

    def learn(self, answers: Labels, crowd: Crowd, shards: Executor[Shard], run: Run) -> Learnt:
        fit, trace = _EM(self, crowd, shards, run), Trace(labels_changed=int, skill_change=float)
        converged = iterate(fit, run, trace, STAGE)
        return Learnt(fit.params, self.prevalence(fit.params), trace, converged)


class _EM(Problem):
    """The fit of a label model to its shards."""

    def __init__(self, model: EMModel[Any, Any], crowd: Crowd, shards: Executor[Shard], run: Run) -> None:
        self.name, self.max_iter = model.name, model.max_iter
        self.model, self.crowd, self.shards = model, crowd, shards
        self.n_answers = max(crowd.rows.n_answers, 1)
        self.answers = crowd.rows.per_worker + SKILL_PRIOR_ANSWERS  # reported skills include this prior
        self.unchanged, self.before, self.moved = 0, None, np.inf
        self.stats: Any = None
        if not run.journal.resumes(STAGE):
            stats = model.begin(crowd, shards)
            self.params, self.hits = model.maximise(crowd, stats, None), model.hits(crowd, stats)

    def step(self) -> Step:
        summed: Summed = self.shards.update(self.model.e_step, self.params)
        self.stats = summed.stats
        hits = self.model.hits(self.crowd, summed.stats)
        self.moved = float(np.max(np.abs(hits - self.hits) / self.answers, initial=0.0))
        self.hits = hits
        few = self.model.max_changed * summed.stats.shares.sum() if self.model.max_changed else 0
        self.unchanged = self.unchanged + 1 if summed.changed <= few else 0
        objective = self.model.total_objective(summed.evidence, self.params)
        return Step(objective, {"labels_changed": summed.changed, "skill_change": self.moved})

    def converged(self, objectives: Sequence[float]) -> bool:
        model = self.model
        finished = model.finished(len(objectives))
        if finished is not None:
            return finished
        before = objectives[-1 - PATIENCE] if len(objectives) > PATIENCE else -np.inf
        rise = (objectives[-1] - before) / PATIENCE / self.n_answers
        if self.unchanged >= PATIENCE and self.moved <= model.tol and rise <= GAIN * model.tol:
            return True
        return self.before is not None and model.stop_early(self.before, self.params, objectives)

    def improve(self) -> None:
        stats, self.stats = self.stats, None  # not needed in the next E-step, which allocates its own
        if type(self.model).stop_early is not EMModel.stop_early:  # nothing else needs the parameters before
            self.before = self.params
        self.params = self.model.maximise(self.crowd, stats, self.params)

    def state(self) -> Arrays:
        """Return the state for a checkpoint. Of the posteriors, only the most probable classes are needed."""
        values: dict[str, Any] = {"params": self.params, "hits": self.hits, "unchanged": self.unchanged}
        if self.before is not None:
            values["before"] = self.before
        for number, (tops, own) in enumerate(self.shards.each(_kept)):
            values[f"shard{number}"] = {"tops": tops, "own": own}
        if self.crowd.truth is not None:
            values["truth"] = self.crowd.truth.state()
        return packed(values)

    def restore(self, state: Arrays) -> None:
        rows = self.crowd.rows
        sizes = {"W": rows.n_workers, "K": rows.n_classes, "R": rows.n_rows}
        kind = self.model.params_type
        self.params = restored(kind, state, "params.", **sizes)
        self.before = restored(kind, state, "before.", **sizes) if under(state, "before.") else None
        self.hits, self.unchanged = sound(state, "hits", Real("W"), **sizes), int(state["unchanged"])
        count = len({name.split(".")[0] for name in state if name.startswith("shard")})
        self.shards.update(_put_back, each=[under(state, f"shard{number}.") for number in range(count)])
        if self.crowd.truth is not None:
            self.crowd.truth.restore(under(state, "truth."))


def _size(shard: Shard, local: Any) -> int:
    return shard.layout.n_tasks


def _placed(shard: Shard, local: Any, Z: Floats) -> tuple[Local, int]:
    return Local(Z.astype(shard.dtype)), 0


def _kept(shard: Shard, local: Local) -> tuple[Any, dict[str, Floats]]:
    tops = local.Z.max(1, keepdims=True) == local.Z
    return np.packbits(tops, axis=None), local.own


def _put_back(shard: Shard, local: Any, part: Arrays) -> tuple[Local, int]:
    """Restore a posterior with the same most probable classes."""
    shape = (shard.layout.n_tasks, shard.layout.n_classes)
    tops = np.unpackbits(part["tops"], count=shape[0] * shape[1]).reshape(shape)
    own = {name: sound(part, f"own.{name}", Real("T"), T=shape[0]) for name in under(part, "own.")}
    return Local(tops.astype(shard.dtype), own), 0
