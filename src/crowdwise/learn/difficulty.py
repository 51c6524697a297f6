"""Worker sides with task difficulty: confusion matrices whose log-odds are scaled by the ease of the task.

They share the equations in `objective` and differ in how the ease of a task is determined.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import Run, register
from ..engine.model import COUNT, NOT_NEGATIVE, POSITIVE, YES_NO, setting
from ..engine.run import Arrays
from ..errors import DataError, option
from ..kernels import TINY, EStepResult, choose, special
from ..kernels.layout import Floats, Ints, RowTable
from ..kernels.rules import Real
from ..labels.em import Local
from ..labels.shard import Crowd, Shard
from ..result import LabelsResult, LeftOut
from .base import PriorByClassifier
from .objective import (
    LBFGS_MEMORY,
    MAX_ODDS,
    Evidence,
    Objective,
    Relation,
    ease_by_classifier,
    ease_by_votes,
    improve_workers,
    softmax,
)

RELATIVE_PASSES = 10  # passes over the answers per pass of a model without features; decides when compiling pays off
MIN_GAIN = 2.0  # evidence, in nats, that a relation between ease and classifier must add
COMPLEXITY_FACTOR = 1.3  # factor on the complexity that it adds, which is known only to about this precision


class Params(NamedTuple):
    logits: Annotated[Floats, Real("T K")]  # of the classifier
    ease: Annotated[Floats, Real("T", 0)]  # h
    odds: Annotated[Floats, Real("W K K")]  # log-odds of the true class over each label, on the easiest task
    log_kappa: Annotated[Floats, Real("")]  # sharpness of the ease as a function of the classifier's logits
    floor: Annotated[Floats, Real("")]  # ease of a task on which the classifier is undecided
    log_prior: Annotated[Floats, Real("")]  # of both sides
    shares: Annotated[Floats, Real("K", 0, 1, sums=True)]  # mean posterior
    votes: Annotated[Floats, Real("T", 0)]  # ease computed from the votes
    start: Annotated[Floats, Real("W K K", optional=True)]  # initial log-odds


def relation_of(params: Params) -> Relation:
    return Relation(float(params.log_kappa), float(params.floor))


class Stats(NamedTuple):
    shard: Shard  # the answers, on which both sides are updated together
    Z: Floats  # (T, K)
    shares: Floats  # (K,)
    right: Floats  # (R,)  expected right answers


@dataclass(frozen=True, kw_only=True)
class OddsSide(PriorByClassifier):
    """Base class: each worker has log-odds for every class, which are multiplied by the ease of the task."""

    params_type = Params
    classes: ClassVar[int | None] = None  # required number of classes; None: any number

    def ease_at(self, params: Params, logits: Floats, votes: Floats) -> Floats:
        """(T,) ease of tasks, from the classifier's logits (T, K) or from their votes (T, K)."""
        return np.ones(len(logits))

    def _fit(self, answers: Labels, features: Any, run: Run) -> LabelsResult:
        if self.classes is not None and answers.n_classes != self.classes:
            raise DataError(
                f"{self.name} needs {self.classes} classes, but these answers have {answers.n_classes}. Use "
                f"{option('workers', 'confusion')}"
            )
        return super()._fit(answers, features, replace(run, precision="double"))

    def need(self, answers: Labels, dtype: np.dtype[Any]) -> int:
        odds = 8 * answers.n_workers * answers.n_classes**2
        return (2 * LBFGS_MEMORY + 10) * odds + 64 * answers.n_tasks * answers.n_classes

    def posterior(self, shard: Shard, params: Params, local: Local) -> EStepResult:
        shard, prior, slope = compiled(shard), softmax(params.logits), np.empty(len(local.Z))
        return shard.kernels.difficulty_posterior(
            shard.layout, params.odds, params.ease, prior, shard.gold, local.Z, slope, shard.threads
        )

    def statistics(self, shard: Shard, local: Local, shares: Floats, params: Params | None) -> Stats:
        shard = compiled(shard)
        return Stats(shard, local.Z, shares, shard.kernels.match_counts(shard.layout, local.Z, shard.threads))

    def left_out(self, shard: Shard, params: Params, Z: Floats) -> LeftOut:
        shard = compiled(shard)
        parts = (params.odds, params.ease, shard.gold, Z)
        return LeftOut(*shard.kernels.difficulty_left_out(shard.layout, *parts, shard.threads))

    def difficulty(self, params: Params) -> Floats | None:
        """(T,) 1 - h, or None if all tasks are equally easy."""
        return None if (params.ease == 1).all() else 1 - params.ease

    def easiest(self, params: Params) -> Params:
        return params._replace(ease=np.ones_like(params.ease))

    def emission(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: Ints | None = None) -> Floats:
        """Use the ease of a task of the fit, or the mean ease for other tasks; unknown workers have the mean odds."""
        ease = np.full(len(worker), params.ease.mean()) if task is None else params.ease[task]
        odds = np.where((worker >= 0)[:, None, None], params.odds[worker], params.odds.mean(0))
        logs = -ease[:, None, None] * odds
        logs -= logs.max(2, keepdims=True)
        logs -= np.log(np.exp(logs).sum(2, keepdims=True))
        return np.asarray(np.maximum(logs[np.arange(len(label)), :, label], np.log(TINY)))

    def class_accuracy(self, params: Params, layout: RowTable, worker: Ints, task: Ints) -> Floats:
        ease, every = params.ease[task], np.arange(layout.n_classes)
        return special.softmax(-ease[:, None, None] * params.odds[worker])[:, every, every]

    def factors(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        return self.emission(params, layout, worker, label, np.full(len(worker), task))


@dataclass(frozen=True, kw_only=True)
class DifficultySide(OddsSide):
    """Base class of sides that maximise `Objective`."""

    max_iter: int = setting(100, COUNT, "Maximum number of iterations.")
    ridge: float = setting(1.0, NOT_NEGATIVE, "Strength r of the shrinkage of a worker's odds towards the crowd's.")
    free_sign: bool = setting(False, YES_NO, "Whether a worker may be worse than chance.")

    def objective(self, shard: Shard, params: Params | None) -> Objective:
        """Return the objective that is maximised on these answers."""
        return self.equal_ease(shard)

    def equal_ease(self, shard: Shard) -> Objective:
        """Return the objective with equally easy tasks, with which the fit starts."""
        return Objective(shard, ridge=self.ridge, free=self.free_sign, kappa=None, ease=np.ones(shard.layout.n_tasks))

    def maximise(self, crowd: Crowd, stats: Stats, params: Params | None) -> Params:
        if params is None:
            return self._start(stats)
        objective = self.objective(stats.shard, params)
        theta = objective.pack(params.odds, relation_of(params))
        return self._params_at(objective, crowd.truth.improve(objective, theta, stats.Z), stats, params)

    def _start(self, stats: Stats) -> Params:
        """Start from soft votes: train the classifier on them and compare each worker with them.

        If the ease depends on the classifier, a first iteration treats all tasks as equally easy; this leads to a
        higher objective. If that relation is learnt, a second iteration decides whether there is one.
        """
        shard, learner = stats.shard, stats.shard.truth
        odds, votes, zero = start_odds(shard, stats.Z, self.free_sign), vote_ease(shard), np.zeros(())
        equal = self.equal_ease(shard)
        theta = equal.pack(odds, Relation())
        learner.begin(stats.Z, equal, theta)
        blank = Params(learner.logits(), votes, odds, zero, zero, zero, zero, votes, odds)
        objective = self.objective(shard, blank)
        if objective.given_ease is None:
            Z = self._posterior_at(equal, theta, stats, blank)
            theta = learner.warm(equal, theta, Z)
            odds = equal.unpack(theta)[0]
            if objective.learns_relation:
                return self._choose_relation(equal, objective, theta, stats, blank)
        return self._params_at(objective, objective.pack(odds, objective.relation), stats, blank)

    def _choose_relation(
        self, equal: Objective, related: Objective, theta: Floats, stats: Stats, blank: Params
    ) -> Params:
        """Return the start with the higher evidence: all tasks equally easy, or ease related to the classifier."""
        learner, start, found = stats.shard.truth, stats.shard.truth.state(), []
        odds = equal.unpack(theta)[0]
        for objective, relation in ((equal, Relation(floor=1.0)), (related, related.relation)):
            learner.restore(start)
            here = objective.pack(odds, relation)
            here = learner.improve(objective, here, self._posterior_at(objective, here, stats, blank))
            found.append((learner.evidence(objective, here), learner.state(), here))
        without, with_relation = found[0][0], found[1][0]
        needed = MIN_GAIN + COMPLEXITY_FACTOR * (with_relation.complexity - without.complexity)
        useful = with_relation.fit - without.fit > needed
        objective, (_, state, here) = (related, found[1]) if useful else (equal, found[0])
        learner.restore(state)
        return self._params_at(objective, here, stats, blank)

    def _posterior_at(self, objective: Objective, theta: Floats, stats: Stats, blank: Params) -> Floats:
        """(T, K) posterior at the parameters `theta`."""
        local = Local(stats.Z.copy())
        self.posterior(stats.shard, self._params_at(objective, theta, stats, blank), local)
        return local.Z

    def _params_at(self, objective: Objective, theta: Floats, stats: Stats, params: Params) -> Params:
        odds, relation = objective.unpack(theta)
        learner = stats.shard.truth
        logits = learner.logits()
        ease, log_prior = objective.ease(logits, relation).h, objective.penalty(odds, relation)[0] + learner.log_prior
        shares = stats.shares / max(stats.shares.sum(), 1)
        log_kappa, floor = map(np.asarray, relation)
        return Params(logits, ease, odds, log_kappa, floor, np.asarray(log_prior), shares, params.votes, params.start)


def compiled(shard: Shard) -> Shard:
    """Return the shard with kernels chosen for many passes: an M-step makes fifty, with K x K values per answer."""
    K = shard.layout.n_classes
    return shard._replace(kernels=choose(shard.layout.n_answers * RELATIVE_PASSES * K, K))


def start_odds(shard: Shard, Z: Floats, free: bool) -> Floats:
    """(W, K, K) log-odds of confusion matrices against the vote shares Z, with a pseudo-count of 1 in every cell."""
    layout, K = shard.layout, shard.layout.n_classes
    counts = np.ones((layout.n_workers, K, K))
    counts[layout.row_worker, :, layout.row_label] += shard.kernels.confusion_counts(layout, Z, shard.threads)
    odds = np.log(counts[:, np.arange(K), np.arange(K)])[:, :, None] - np.log(counts)
    return np.asarray(np.clip(odds, -MAX_ODDS if free else 0.0, MAX_ODDS))


def vote_ease(shard: Shard) -> Floats:
    """(T,) ease from the agreement of the votes: for two classes 4 (share - 1/2)^2."""
    return np.concatenate([ease_by_votes(votes.astype(np.float64)) for _, votes in shard.votes_by_part()])


@register("confusion", "one confusion matrix per worker; all tasks are equally easy")
@dataclass(frozen=True, kw_only=True)
class Confusion(DifficultySide):
    """Raykar's model for any number of classes: Dawid-Skene with a classifier as class prior."""


@register("two-coin", "sensitivity and specificity per worker; all tasks are equally easy (Raykar et al. 2010)")
@dataclass(frozen=True, kw_only=True)
class TwoCoin(Confusion):
    """Raykar's Original EM: `confusion` with two classes."""

    classes = 2


@register("adaptive", "tasks on which the classifier is uncertain are hard for all workers")
@dataclass(frozen=True, kw_only=True)
class Adaptive(DifficultySide):
    """Task difficulty from the uncertainty of the classifier."""

    kappa: float = setting(1.0, POSITIVE, "Factor on the classifier's logits in the computation of the ease.")

    def objective(self, shard: Shard, params: Params | None) -> Objective:
        return Objective(shard, ridge=self.ridge, free=self.free_sign, kappa=self.kappa, ease=None)

    def ease_at(self, params: Params, logits: Floats, votes: Floats) -> Floats:
        return ease_by_classifier(logits, relation_of(params)).h


@register("learned", "as adaptive or as confusion, whichever the answers support; the relation is learnt")
@dataclass(frozen=True, kw_only=True)
class Learned(DifficultySide):
    """Task difficulty from the uncertainty of the classifier, as far as the answers support it.

    Sharpness kappa and floor of the ease are learnt. If they do not add evidence, all tasks are equally easy, as with
    `confusion`.
    """

    def objective(self, shard: Shard, params: Params | None) -> Objective:
        if params is not None and float(params.floor) == 1:
            return self.equal_ease(shard)
        return Objective(shard, ridge=self.ridge, free=self.free_sign, kappa=None, ease=None)

    ease_at = Adaptive.ease_at


@register("fixed", "tasks on which votes disagree are hard; workers are kept near their start")
@dataclass(frozen=True, kw_only=True)
class Fixed(DifficultySide):
    """Task difficulty from the disagreement of the votes.

    The votes determine both difficulty and truth, so unconstrained odds would diverge. A strong ridge keeps them near
    their start, the agreement of each worker with the votes.
    """

    ridge: float = setting(1000.0, NOT_NEGATIVE, "Strength r of the shrinkage of a worker's odds towards their start.")

    def equal_ease(self, shard: Shard) -> Objective:
        """Use the usual ridge: this one is meant for odds near their start."""
        return Confusion(free_sign=self.free_sign).equal_ease(shard)

    def objective(self, shard: Shard, params: Params | None) -> Objective:
        ease, centre = (vote_ease(shard), None) if params is None else (params.votes, params.start)
        made = Objective(shard, ridge=self.ridge, free=self.free_sign, kappa=None, ease=ease)
        made.centre = centre
        return made

    def ease_at(self, params: Params, logits: Floats, votes: Floats) -> Floats:
        return ease_by_votes(votes)


@register("fixed-literal", "fixed as published: votes are also the class prior, and workers are unconstrained")
@dataclass(frozen=True, kw_only=True)
class FixedLiteral(Fixed):
    """Algorithm 3 as published, for study only.

    The shares of votes are the class prior instead of the classifier, which is trained on the posterior but does not
    influence it.
    """

    asks_classifier = False
    ridge: float = setting(0.0, NOT_NEGATIVE, "Strength r of the shrinkage of a worker's odds towards their start.")


class VoteLearner:
    """A truth side without features: the shares of votes."""

    log_prior = 0.0

    def __init__(self, answers: Labels) -> None:
        with np.errstate(divide="ignore"):
            self.on_rows = np.maximum(np.log(Shard.of(answers, Run(precision="double")).vote_shares()), np.log(TINY))

    def logits(self, X: Any = None) -> Floats:
        return self.on_rows

    def inputs(self) -> Floats:
        return self.on_rows

    def imitate(self, Z: Floats) -> None:
        """Do nothing: votes do not change."""

    follow = imitate

    def begin(self, Z: Floats, objective: Objective, theta: Floats) -> None:
        """Do nothing: votes do not change."""

    def improve(self, objective: Objective, theta: Floats, Z: Floats) -> Floats:
        return improve_workers(objective, self.on_rows, theta, Z)

    def evidence(self, objective: Objective, theta: Floats) -> Evidence:
        return Evidence(objective(self.on_rows, theta).total)

    warm = improve

    def state(self) -> Arrays:
        return {}

    def restore(self, state: Arrays) -> None:
        """Do nothing: votes do not change."""
