"""Worker sides of the study of difficulty: how a person turns a truth into an answer, and what makes a task easy.

They are one family (`objective` has its equations) and differ in where the ease of a task comes from. Each is a model
like those of `labels`, and makes the same Result; what it has besides is a learner, the truth side.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import ClimbingModel, Run, Work
from ..engine.model import NOT_NEGATIVE, POSITIVE, Rule, rules
from ..errors import DataError
from ..kernels import TINY, Swept, choose
from ..kernels.layout import Floats, Ints, Layout, per_worker
from ..result import Result
from .beside import Beside, side
from .objective import BOUND, MEMORY, Objective, climb_workers, ease_by_classifier, ease_by_votes, softmax

OFTEN = 10  # how much sooner compiling pays than for a model of answers alone


class Params(NamedTuple):
    logits: Floats  # (T, K)     of the classifier
    ease: Floats  # (T,)       h
    odds: Floats  # (W, K, K)  of the truth over each label, on the easiest task
    log_kappa: Floats  # ()     sharpness of the classifier as a judge of ease
    log_prior: Floats  # ()     of both sides
    shares: Floats  # (K,)     mean posterior
    votes: Floats  # (T,)      ease by the votes, or nothing
    start: Floats  # (W, K, K) odds at the start, or nothing


class Stats(NamedTuple):
    Z: Floats  # (T, K)  posteriors: classifiers are improved where they lie
    shares: Floats  # (K,)
    right: Floats  # (R,)  expected right answers


@dataclass(frozen=True, kw_only=True)
class CrowdSide(Beside):
    """Workers with odds for every class, met by the ease of a task."""

    params_type = Params
    classes: ClassVar[int | None] = None  # how many classes it is made for, if not any number
    max_iter: int = field(default=100, metadata=ClimbingModel.__dataclass_fields__["max_iter"].metadata)
    ridge: float = field(default=0.1, metadata=rules(NOT_NEGATIVE))  # r: draws odds to the crowd's
    free_sign: bool = field(default=False, metadata=rules(Rule(bool, choices=(True, False))))  # may be below chance

    def ease_at(self, params: Params, logits: Floats, votes: Floats) -> Floats:
        """(T,) ease of tasks by what a classifier says of them (T, K), or by their votes (T, K)."""
        return np.ones(len(logits))

    def objective(self, work: Work, params: Params | None) -> Objective:
        """What is climbed on these answers."""
        return Objective(work, ridge=self.ridge, free=self.free_sign, kappa=None, ease=np.ones(work.layout.n_tasks))

    def fit(self, answers: Labels, run: Run | None = None) -> Result:
        if self.classes is not None and answers.n_classes != self.classes:
            raise DataError(
                f"{self.name} is for {self.classes} classes, and these answers have {answers.n_classes}. "
                "Take workers='confusion'"
            )
        return super().fit(answers, replace(run or Run(), precision="double"))

    def need(self, answers: Labels, dtype: np.dtype[Any]) -> int:
        odds = 8 * answers.n_workers * answers.n_classes**2
        return (2 * MEMORY + 10) * odds + 64 * answers.n_tasks * answers.n_classes

    def work_on(self, answers: Labels, run: Run) -> Work:
        """A step sweeps the answers fifty times, with K x K numbers each: compiling pays for smaller tables."""
        work = super().work_on(answers, run)
        return work._replace(kernels=choose(answers.n_answers * OFTEN * answers.n_classes, answers.n_classes))

    def posterior(self, work: Work, params: Params, Z: Floats) -> Swept:
        prior, slope = softmax(params.logits), np.empty(len(Z))
        return work.kernels.eased_posterior(
            work.layout, params.odds, params.ease, prior, work.gold, Z, slope, work.threads
        )

    def statistics(self, work: Work, Z: Floats, shares: Floats, params: Params | None) -> Stats:
        return Stats(Z, shares, work.kernels.match_counts(work.layout, Z, work.threads))

    def maximise(self, work: Work, stats: Stats, params: Params | None) -> Params:
        if params is None:
            return self._start(work, stats)
        objective = self.objective(work, params)
        theta = objective.pack(params.odds, float(params.log_kappa))
        return self._at(objective, self.learner.improve(objective, theta, stats.Z), stats, params)

    def _start(self, work: Work, stats: Stats) -> Params:
        """From soft votes, never from random weights: a classifier of them, and how each worker agrees with them. Where
        the classifier tells ease, one sweep as if all tasks were alike comes first: it ends on higher tops."""
        self.learner.begin(stats.Z)
        odds = start_odds(work, stats.Z, self.free_sign)
        votes = vote_ease(work)
        zero = np.zeros(())
        blank = Params(self.learner.logits(), votes, odds, zero, zero, zero, votes, odds)
        objective = self.objective(work, blank)
        if objective.given is None:
            alike = Objective(work, ridge=self.ridge, free=self.free_sign, kappa=None, ease=np.ones(len(votes)))
            here = self._at(alike, alike.pack(odds, 0.0), stats, blank)
            Z = stats.Z.copy()
            self.posterior(work, here, Z)
            odds, _ = alike.unpack(self.learner.warm(alike, alike.pack(odds, 0.0), Z))
        return self._at(objective, objective.pack(odds, objective.log_kappa), stats, blank)

    def _at(self, objective: Objective, theta: Floats, stats: Stats, params: Params) -> Params:
        odds, log_kappa = objective.unpack(theta)
        logits = self.learner.logits()
        return params._replace(
            logits=logits,
            ease=objective.ease(logits, log_kappa).h,
            odds=odds,
            log_kappa=np.asarray(log_kappa),
            log_prior=np.asarray(objective.penalty(odds, log_kappa)[0] + self.learner.log_prior),
            shares=stats.shares / max(stats.shares.sum(), 1),
        )

    def penalty(self, params: Params) -> float:
        return float(params.log_prior)

    def hits(self, work: Work, stats: Stats) -> Floats:
        return per_worker(work.layout, stats.right)

    def left_out(self, work: Work, params: Params, Z: Floats) -> tuple[Floats, Floats]:
        return work.kernels.eased_left_out(work.layout, params.odds, params.ease, work.gold, Z, work.threads)

    def prevalence(self, params: Params) -> Floats:
        return params.shares

    def difficulty(self, params: Params) -> Floats | None:
        """1 - h; None where all tasks are alike."""
        return None if (params.ease == 1).all() else 1 - params.ease

    def easiest(self, params: Params) -> Params:
        return params._replace(ease=np.ones_like(params.ease))

    def class_prior(self, params: Params, n_classes: int, task: int | None = None) -> Floats:
        return params.shares if task is None else softmax(params.logits[[task]])[0]

    def emission(self, params: Params, layout: Layout, worker: Ints, label: Ints, task: Ints | None = None) -> Floats:
        """On tasks of the fit by their ease, else on one of mean ease; an unknown worker has the crowd's mean odds."""
        ease = np.full(len(worker), params.ease.mean()) if task is None else params.ease[task]
        odds = np.where((worker >= 0)[:, None, None], params.odds[worker], params.odds.mean(0))
        logs = -ease[:, None, None] * odds
        logs -= logs.max(2, keepdims=True)
        logs -= np.log(np.exp(logs).sum(2, keepdims=True))
        return np.asarray(np.maximum(logs[np.arange(len(label)), :, label], np.log(TINY)))

    def named(self, params: Params, layout: Layout, worker: Ints, task: Ints) -> Floats:
        ease, every = params.ease[task], np.arange(layout.n_classes)
        logs = -ease[:, None, None] * params.odds[worker]
        logs -= logs.max(2, keepdims=True)
        return np.asarray(np.exp(logs[:, every, every]) / np.exp(logs).sum(2))

    def factors(self, params: Params, layout: Layout, worker: Ints, label: Ints, task: int) -> Floats:
        return self.emission(params, layout, worker, label, np.full(len(worker), task))


def start_odds(work: Work, Z: Floats, free: bool) -> Floats:
    """(W, K, K) odds of confusion matrices by the shares of votes Z, an answer added to every cell."""
    layout, K = work.layout, work.layout.n_classes
    counts = np.ones((layout.n_workers, K, K))
    counts[layout.row_worker, :, layout.row_label] += work.kernels.confusion_counts(layout, Z, work.threads)
    odds = np.log(counts[:, np.arange(K), np.arange(K)])[:, :, None] - np.log(counts)
    return np.asarray(np.clip(odds, -BOUND if free else 0.0, BOUND))


def vote_ease(work: Work) -> Floats:
    """(T,) ease by how much the votes agree: for two classes 4 (share - 1/2)^2."""
    return np.concatenate([ease_by_votes(votes.astype(np.float64)) for _, votes in work.votes_by_part()])


@side("confusion", "a confusion matrix for every worker; all tasks are alike")
@dataclass(frozen=True, kw_only=True)
class Confusion(CrowdSide):
    """Raykar's model for any number of classes: Dawid-Skene with a classifier in the place of class shares."""


@side("two-coin", "sensitivity and specificity of every worker; all tasks are alike (Raykar et al. 2010)")
@dataclass(frozen=True, kw_only=True)
class TwoCoin(Confusion):
    """Raykar's Original EM: `confusion` with two classes."""

    classes = 2


@side("adaptive", "tasks that the classifier doubts are hard for all workers")
@dataclass(frozen=True, kw_only=True)
class Adaptive(CrowdSide):
    """Difficulty from the classifier, as sharp as its probabilities (times `kappa`)."""

    kappa: float = field(default=1.0, metadata=rules(POSITIVE))

    def objective(self, work: Work, params: Params | None) -> Objective:
        return Objective(work, ridge=self.ridge, free=self.free_sign, kappa=self.kappa, ease=None)

    def ease_at(self, params: Params, logits: Floats, votes: Floats) -> Floats:
        return ease_by_classifier(logits, float(params.log_kappa)).h


@side("learned", "the same, and how sharply the classifier's doubt tells difficulty is learnt")
@dataclass(frozen=True, kw_only=True)
class Learned(CrowdSide):
    """Difficulty from the classifier with a kappa that is learnt: log(kappa) ~ Normal(0, 1), from -2 to 2."""

    def objective(self, work: Work, params: Params | None) -> Objective:
        return Objective(work, ridge=self.ridge, free=self.free_sign, kappa=None, ease=None)

    ease_at = Adaptive.ease_at


@side("fixed", "tasks on which votes differ are hard; workers are held near their start")
@dataclass(frozen=True, kw_only=True)
class Fixed(CrowdSide):
    """Difficulty from the votes. Votes explain themselves, so odds fitted freely would run away: a strong ridge keeps
    them near how each worker agrees with the votes."""

    ridge: float = field(default=1000.0, metadata=rules(NOT_NEGATIVE))  # draws odds to their start

    def objective(self, work: Work, params: Params | None) -> Objective:
        given = vote_ease(work) if params is None else params.votes
        made = Objective(work, ridge=self.ridge, free=self.free_sign, kappa=None, ease=given)
        made.centre = None if params is None else params.start
        return made

    def ease_at(self, params: Params, logits: Floats, votes: Floats) -> Floats:
        return ease_by_votes(votes)


@side("fixed-literal", "the same as published: votes are the prior, too, and workers are fitted freely")
@dataclass(frozen=True, kw_only=True)
class FixedLiteral(Fixed):
    """Algorithm 3 to the letter: the share of votes stands where the classifier should, so that the classifier learns
    from the posterior and never has a say in it. For study only."""

    asks_classifier = False
    ridge: float = field(default=0.0, metadata=rules(NOT_NEGATIVE))


class VoteLearner:
    """A truth side that knows no features: the shares of votes."""

    log_prior = 0.0

    def __init__(self, answers: Labels) -> None:
        with np.errstate(divide="ignore"):
            self.on_rows = np.maximum(np.log(Work.on(answers, Run(precision="double")).vote_shares()), np.log(TINY))

    def logits(self, X: Floats | None = None) -> Floats:
        return self.on_rows

    def imitate(self, Z: Floats) -> None:
        """Votes are what they are."""

    begin = follow = imitate

    def improve(self, objective: Objective, theta: Floats, Z: Floats) -> Floats:
        return climb_workers(objective, self.on_rows, theta, Z)

    warm = improve
