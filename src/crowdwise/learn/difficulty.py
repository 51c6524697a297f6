"""Worker sides of the study of difficulty: how a worker turns a truth into an answer, and what makes a task easy.

They are one family (`objective` has its equations) and differ in where the ease of a task comes from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import Run, register
from ..engine.model import COUNT, NOT_NEGATIVE, POSITIVE, YES_NO, setting
from ..engine.run import Arrays
from ..errors import DataError
from ..kernels import TINY, EStepResult, choose, special
from ..kernels.layout import Floats, Ints, RowTable
from ..labels.em import Local
from ..labels.shard import Crowd, Shard
from ..result import LabelsResult, LeftOut
from .base import PriorByClassifier
from .objective import LBFGS_MEMORY, MAX_ODDS, Objective, ease_by_classifier, ease_by_votes, improve_workers, softmax

PASSES = 10  # over the answers for each one of a model of answers alone: compiling pays for smaller tables


class Params(NamedTuple):
    logits: Floats  # (T, K)     of the classifier
    ease: Floats  # (T,)       h
    odds: Floats  # (W, K, K)  of the truth over each label, on the easiest task
    log_kappa: Floats  # ()     sharpness of the classifier as a judge of ease
    log_prior: Floats  # ()     of both sides
    shares: Floats  # (K,)     mean posterior
    votes: Floats  # (T,)      ease by the votes
    start: Floats  # (W, K, K) odds at the start


class Stats(NamedTuple):
    shard: Shard  # the answers, on which both sides are improved together
    Z: Floats  # (T, K)
    shares: Floats  # (K,)
    right: Floats  # (R,)  expected right answers


@dataclass(frozen=True, kw_only=True)
class DifficultySide(PriorByClassifier):
    """Workers with odds for every class, raised to the power of a task's ease."""

    params_type = Params
    classes: ClassVar[int | None] = None  # how many classes it is made for, if not any number
    max_iter: int = setting(100, COUNT, "Iterations at most.")
    ridge: float = setting(0.1, NOT_NEGATIVE, "Strength r that draws a worker's odds to the crowd's.")
    free_sign: bool = setting(False, YES_NO, "Whether a worker may be worse than chance.")

    def ease_at(self, params: Params, logits: Floats, votes: Floats) -> Floats:
        """(T,) ease of tasks by what a classifier predicts of them (T, K), or by their votes (T, K)."""
        return np.ones(len(logits))

    def objective(self, shard: Shard, params: Params | None) -> Objective:
        """What is maximised on these answers."""
        return Objective(shard, ridge=self.ridge, free=self.free_sign, kappa=None, ease=np.ones(shard.layout.n_tasks))

    def _fit(self, answers: Labels, features: Any, run: Run) -> LabelsResult:
        if self.classes is not None and answers.n_classes != self.classes:
            raise DataError(
                f"{self.name} is for {self.classes} classes, and these answers have {answers.n_classes}. "
                "Take workers='confusion'"
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

    def maximise(self, crowd: Crowd, stats: Stats, params: Params | None) -> Params:
        if params is None:
            return self._start(stats)
        objective = self.objective(stats.shard, params)
        theta = objective.pack(params.odds, float(params.log_kappa))
        return self._at(objective, crowd.truth.improve(objective, theta, stats.Z), stats, params)

    def _start(self, stats: Stats) -> Params:
        """From soft votes, never from random weights: a classifier of them, and how each worker agrees with them. Where
        ease comes from the classifier, one iteration as if all tasks were alike comes first: it ends higher."""
        shard, learner = stats.shard, stats.shard.truth
        learner.begin(stats.Z)
        odds, votes, zero = start_odds(shard, stats.Z, self.free_sign), vote_ease(shard), np.zeros(())
        blank = Params(learner.logits(), votes, odds, zero, zero, zero, votes, odds)
        objective = self.objective(shard, blank)
        if objective.given is None:
            alike = Objective(shard, ridge=self.ridge, free=self.free_sign, kappa=None, ease=np.ones(len(votes)))
            here = self._at(alike, alike.pack(odds, 0.0), stats, blank)
            local = Local(stats.Z.copy())
            self.posterior(shard, here, local)
            odds, _ = alike.unpack(learner.warm(alike, alike.pack(odds, 0.0), local.Z))
        return self._at(objective, objective.pack(odds, objective.log_kappa), stats, blank)

    def _at(self, objective: Objective, theta: Floats, stats: Stats, params: Params) -> Params:
        odds, log_kappa = objective.unpack(theta)
        learner = stats.shard.truth
        logits = learner.logits()
        ease, log_prior = objective.ease(logits, log_kappa).h, objective.penalty(odds, log_kappa)[0] + learner.log_prior
        shares = stats.shares / max(stats.shares.sum(), 1)
        return Params(
            logits, ease, odds, np.asarray(log_kappa), np.asarray(log_prior), shares, params.votes, params.start
        )

    def left_out(self, shard: Shard, params: Params, Z: Floats) -> LeftOut:
        shard = compiled(shard)
        parts = (params.odds, params.ease, shard.gold, Z)
        return LeftOut(*shard.kernels.difficulty_left_out(shard.layout, *parts, shard.threads))

    def difficulty(self, params: Params) -> Floats | None:
        """1 - h; None where all tasks are alike."""
        return None if (params.ease == 1).all() else 1 - params.ease

    def easiest(self, params: Params) -> Params:
        return params._replace(ease=np.ones_like(params.ease))

    def emission(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: Ints | None = None) -> Floats:
        """On tasks of the fit by their ease, else on one of mean ease; an unknown worker has the crowd's mean odds."""
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


def compiled(shard: Shard) -> Shard:
    """The same answers with kernels for many passes: an M-step goes over them fifty times, with K x K numbers each."""
    K = shard.layout.n_classes
    return shard._replace(kernels=choose(shard.layout.n_answers * PASSES * K, K))


def start_odds(shard: Shard, Z: Floats, free: bool) -> Floats:
    """(W, K, K) odds of confusion matrices by the shares of votes Z, an answer added to every cell."""
    layout, K = shard.layout, shard.layout.n_classes
    counts = np.ones((layout.n_workers, K, K))
    counts[layout.row_worker, :, layout.row_label] += shard.kernels.confusion_counts(layout, Z, shard.threads)
    odds = np.log(counts[:, np.arange(K), np.arange(K)])[:, :, None] - np.log(counts)
    return np.asarray(np.clip(odds, -MAX_ODDS if free else 0.0, MAX_ODDS))


def vote_ease(shard: Shard) -> Floats:
    """(T,) ease by how much the votes agree: for two classes 4 (share - 1/2)^2."""
    return np.concatenate([ease_by_votes(votes.astype(np.float64)) for _, votes in shard.votes_by_part()])


@register("confusion", "a confusion matrix for every worker; all tasks are alike")
@dataclass(frozen=True, kw_only=True)
class Confusion(DifficultySide):
    """Raykar's model for any number of classes: Dawid-Skene with a classifier in the place of class shares."""


@register("two-coin", "sensitivity and specificity of every worker; all tasks are alike (Raykar et al. 2010)")
@dataclass(frozen=True, kw_only=True)
class TwoCoin(Confusion):
    """Raykar's Original EM: `confusion` with two classes."""

    classes = 2


@register("adaptive", "tasks of which the classifier is unsure are hard for all workers")
@dataclass(frozen=True, kw_only=True)
class Adaptive(DifficultySide):
    """Difficulty from the classifier, as sharp as its probabilities (times `kappa`)."""

    kappa: float = setting(1.0, POSITIVE, "Sharpness of the classifier's probabilities as a judge of ease.")

    def objective(self, shard: Shard, params: Params | None) -> Objective:
        return Objective(shard, ridge=self.ridge, free=self.free_sign, kappa=self.kappa, ease=None)

    def ease_at(self, params: Params, logits: Floats, votes: Floats) -> Floats:
        return ease_by_classifier(logits, float(params.log_kappa)).h


@register("learned", "adaptive, and how strongly the classifier's doubt means difficulty is learnt")
@dataclass(frozen=True, kw_only=True)
class Learned(DifficultySide):
    """Difficulty from the classifier with a kappa that is learnt: log(kappa) ~ Normal(0, 1), from -2 to 2."""

    def objective(self, shard: Shard, params: Params | None) -> Objective:
        return Objective(shard, ridge=self.ridge, free=self.free_sign, kappa=None, ease=None)

    ease_at = Adaptive.ease_at


@register("fixed", "tasks on which votes differ are hard; workers are held near their start")
@dataclass(frozen=True, kw_only=True)
class Fixed(DifficultySide):
    """Difficulty from the votes. Votes explain themselves, so odds fitted freely would run away: a strong ridge keeps
    them near how each worker agrees with the votes."""

    ridge: float = setting(1000.0, NOT_NEGATIVE, "Strength r that draws a worker's odds to their start.")

    def objective(self, shard: Shard, params: Params | None) -> Objective:
        ease, centre = (vote_ease(shard), None) if params is None else (params.votes, params.start)
        made = Objective(shard, ridge=self.ridge, free=self.free_sign, kappa=None, ease=ease)
        made.centre = centre
        return made

    def ease_at(self, params: Params, logits: Floats, votes: Floats) -> Floats:
        return ease_by_votes(votes)


@register("fixed-literal", "fixed as published: votes are the prior, too, and workers are fitted freely")
@dataclass(frozen=True, kw_only=True)
class FixedLiteral(Fixed):
    """Algorithm 3 to the letter: the share of votes stands where the classifier should, so that the classifier learns
    from the posterior and never has a say in it. For study only."""

    asks_classifier = False
    ridge: float = setting(0.0, NOT_NEGATIVE, "Strength r that draws a worker's odds to their start.")


class VoteLearner:
    """A truth side that knows no features: the shares of votes."""

    log_prior = 0.0

    def __init__(self, answers: Labels) -> None:
        with np.errstate(divide="ignore"):
            self.on_rows = np.maximum(np.log(Shard.of(answers, Run(precision="double")).vote_shares()), np.log(TINY))

    def logits(self, X: Any = None) -> Floats:
        return self.on_rows

    def imitate(self, Z: Floats) -> None:
        """Votes do not change."""

    begin = follow = imitate

    def improve(self, objective: Objective, theta: Floats, Z: Floats) -> Floats:
        return improve_workers(objective, self.on_rows, theta, Z)

    warm = improve

    def state(self) -> Arrays:
        return {}

    def restore(self, state: Arrays) -> None:
        """Nothing to restore: votes do not change."""
