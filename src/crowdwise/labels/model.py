"""The base class of label models: it fits answers and gives the probability of a worker's label given the truth."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import Executor, Model, Run, Trace
from ..engine.model import YES_NO, one_of, setting
from ..engine.resources import refuse_if_too_large
from ..errors import DataError
from ..kernels.layout import Floats, Ints, RowTable, weighted_counts
from ..kernels.memory import reused
from ..kernels.special import softmax
from ..rating.workers import Clusters
from ..result import Grouping, LabelsResult, LeftOut, SplitResult
from .calibration import (
    Calibration,
    Dependence,
    TaskParts,
    calibrated,
    effective_votes,
    smoothed_votes,
    uncalibrated,
    weights,
)
from .shard import Crowd, Shard, spread
from .split import split_fields

PREVALENCE_RULE = one_of("learnt", "uniform")
PREVALENCE_HELP = "Class shares: 'learnt' from the answers, or 'uniform'."


class Learnt(NamedTuple):
    """The outcome of a fit, before the result is built."""

    params: Any
    prevalence: Floats  # (K,)
    trace: Trace
    converged: bool


@dataclass(frozen=True, kw_only=True)
class LabelModel(Model[Labels, LabelsResult]):
    """A model of labels."""

    kind = "labels"
    answers_type = Labels
    result_type = LabelsResult
    with_features: ClassVar[str] = "To fit labels with features, use crowdwise.CrowdClassifier"
    criterion: ClassVar[str] = ""  # name of the objective
    distinguishes_workers: ClassVar[bool] = True  # whether each worker has their own confusion matrix
    shares_truth: ClassVar[bool] = True  # whether all answers to a task have the same truth
    uses_weights: ClassVar[bool] = False  # whether answers may have weights
    # Range of (observed minus expected) log-odds of accuracy on 17 of 18 real data sets, if the posterior is not
    # calibrated: decision 0011.
    calibration_offset: ClassVar[tuple[float, float]] = (-7.6, 0.0)
    calibrated_range: ClassVar[tuple[float, float]] = (2.0, 1.0)  # how far below and above, if it is calibrated

    calibrate: bool = setting(False, YES_NO, "Report calibrated probabilities; otherwise the posterior of the model.")

    def _fit(self, answers: Labels, features: Any, run: Run) -> LabelsResult:
        crowd, shards = self.prepared(answers, run, features)
        with nullcontext() if answers.in_parts else reused():  # parts differ in size
            learnt = self.learn(answers, crowd, shards, run)
        return self.built(answers, crowd, shards, learnt, run)

    def prepared(self, answers: Labels, run: Run, features: Any = None) -> tuple[Crowd, Executor[Shard]]:
        """Return the crowd and the shards of answers that the model can fit."""
        self.refuse_weights(answers)
        crowd, shards = spread(answers, run, features)
        refuse_if_too_large(
            self.need(answers, crowd.dtype), self.name,
            f"{answers.n_tasks} tasks, {answers.n_workers} workers and {answers.n_classes} classes",
            "Use 'majority-vote' or 'one-coin', whose memory does not grow with the square of the number of classes, "
            "or merge rare labels",
        )  # fmt: skip
        return crowd, shards

    def built(self, answers: Any, crowd: Crowd, shards: Executor[Shard], learnt: Learnt, run: Run) -> LabelsResult:
        """Return the result of a fit. The posteriors in the shards may be overwritten."""
        if answers.in_parts:
            parts = split_fields(self, answers, crowd, shards, learnt)
            return self.make_result(answers, run, learnt.trace, self.criterion, result_type=SplitResult, **parts)
        own: dict[str, Any] = {"prevalence": learnt.prevalence, "converged": learnt.converged}
        finished = self.finish(crowd, learnt.params, shards)
        own["params"] = self.with_tasks(finished, list(shards.each(_local)))
        own["left_out"] = shards.total(self._left_out, learnt.params)
        own["posterior"] = _joined(list(shards.each(self._reported, learnt.params)))  # may overwrite the fit's own
        return self.make_result(answers, run, learnt.trace, self.criterion, **own)

    @property
    def error_range(self) -> tuple[float, float]:
        """How far the log-odds of the accuracy may be below and above those of the mean probability, as two numbers of
        at least 0: a 90 % range."""
        low, high = self.calibration_offset
        return self.calibrated_range if self.calibrate else (-low, high)

    def level_shift(self, params: Any, answers_per_task: float) -> float:
        """Return by how much the log-odds of the accuracy are expected to differ from those of the mean probability."""
        return 0.0

    def refuse_weights(self, answers: Labels) -> None:
        """Refuse answers with weights if the model does not use them."""
        if answers.weighted and not self.uses_weights:
            raise DataError(
                f"these answers have weights (column 'weight'), which {self.name} does not use. Use 'majority-vote', "
                f"'soft-vote' or 'weighted-vote', or drop the column"
            )

    def accept(self, answers: Any) -> Any:
        return answers if getattr(answers, "in_parts", False) and answers.kind == self.kind else super().accept(answers)

    @abstractmethod
    def learn(self, answers: Labels, crowd: Crowd, shards: Executor[Shard], run: Run) -> Learnt:
        """Fit the model. Posteriors stay in the shards, as the attribute `Z` of their local state."""

    def finish(self, crowd: Crowd, params: Any, shards: Executor[Shard]) -> Any:
        """Add the parameters needed only in the result."""
        return params

    def with_tasks(self, params: Any, local: Sequence[Any]) -> Any:
        """Add the parameters of tasks from the local states of shards, for models that have any."""
        return params

    @abstractmethod
    def left_out(self, shard: Shard, params: Any, Z: Floats) -> LeftOut:
        """Return sums over each worker's answers under leave-one-out posteriors."""

    def _left_out(self, shard: Shard, local: Any, params: Any) -> LeftOut:
        return self.left_out(shard, self.with_tasks(params, [local]), local.Z)

    def _reported(self, shard: Shard, local: Any, params: Any) -> Floats:
        return self.reported(shard, params, local.Z)

    def need(self, answers: Labels, dtype: np.dtype[Any]) -> int:
        """Return the memory of a fit in bytes, without the answers."""
        return answers.tasks_in_memory * answers.n_classes * dtype.itemsize + 64 * answers.row_table.n_rows

    @abstractmethod
    def emission(self, params: Any, layout: RowTable, worker: Ints, label: Ints, task: Ints | None = None) -> Floats:
        """Return the log-probability (M, K) that worker[m] gives label[m] under each true class.

        Worker -1 is an average worker. `task` (M,) are tasks of the fit, for models with per-task parameters; without
        it, the tasks are average ones.
        """

    @abstractmethod
    def class_prior(self, params: Any, n_classes: int, task: int | None = None) -> Floats:
        """Return the prior (K,) of the class of a task of the fit; without `task`, of an average one."""

    def factors(self, params: Any, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        """Return the log-factors (M, K) of answers in the posterior of this task."""
        return self.emission(params, layout, worker, label)

    def pull(self, params: Any, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        """Return how strongly each answer supports each class (M, K), on the scale on which the model adds them."""
        return self.factors(params, layout, worker, label, task)

    def infer(self, params: Any, seen: RowTable, answers: Labels, worker: Ints) -> Floats:
        """Return the posterior (T, K) of new answers. `worker` (R,) numbers the workers of their rows in the fit; -1
        stands for an unknown worker."""
        shard = Shard.of(answers, Run(threads=1))
        label = shard.layout.row_label
        P = np.exp(self.emission(params, seen, worker, label)).astype(shard.dtype)
        Z = shard.vote_shares()
        prior = self.class_prior(params, seen.n_classes)[None]
        shard = self.weighted(shard, params, worker)
        shard.kernels.confusion_posterior(shard.layout, P, prior, shard.gold, Z, shard.threads, shard.weight)
        return self._calibrated(shard, params, Z) if self.calibrate else Z

    def reported(self, shard: Shard, params: Any, Z: Floats) -> Floats:
        """Return the posterior reported to users; Z may be overwritten."""
        if not self.calibrate:
            return Z
        return self._calibrated(self.weighted(shard, params), params, self.leave_one_out(shard, params, Z, shard.gold))

    def leave_one_out(self, shard: Shard, params: Any, Z: Floats, gold: Ints) -> Floats:
        """Return the posterior (T, K) of each task without `gold` (T,), by parameters to which the task did not
        contribute; Z may be overwritten. By default Z, for models in which one task hardly matters to the parameters.
        """
        return Z

    @property
    def judges_known(self) -> bool:
        """Whether a task with a known label can be judged as if it were not known."""
        return self.kind == "labels" or type(self).leave_one_out is not LabelModel.leave_one_out

    @property
    def needs_gold(self) -> bool:
        """Whether the model cannot be fitted without known labels."""
        return False

    def without_gold(self, params: Any, answers: Labels, tasks: Ints) -> Floats:
        """Return the posteriors (G, K) of tasks with known labels, as they would be if these were not known."""
        free = answers.with_gold(None)
        if type(self).leave_one_out is LabelModel.leave_one_out:
            some = free.only(tasks)
            return self.infer(params, answers.row_table, some, some.layout.row_worker)
        shard = self.shard_of(answers)
        Z = self.leave_one_out(shard, params, shard.vote_shares(), free.gold)
        return (self._calibrated(self.weighted(self.shard_of(free), params), params, Z) if self.calibrate else Z)[tasks]

    def calibration(self, params: Any) -> Calibration:
        """Return what the calibration of this model depends on."""
        return Calibration()

    def weighted(self, shard: Shard, params: Any, worker: Ints | None = None) -> Shard:
        """Return the shard with the weights of its answers. `worker` (R,) numbers the workers of its rows in the fit,
        if they are not those of the shard."""
        return shard

    def answer_weights(self, params: Any, worker: Ints) -> Floats:
        """Return the weights (M,) of the answers of these workers to one task."""
        return np.ones(len(worker))

    def _calibrated(self, shard: Shard, params: Any, Z: Floats) -> Floats:
        how, mean = self.calibration(params), self.vote_mean(params, shard.layout.n_classes)
        for part, votes in shard.votes_by_part():
            free = shard.gold[part] < 0
            Z[part] = np.where(free[:, None], calibrated(Z[part], votes, mean, how), Z[part])
        return Z

    def shard_of(self, answers: Labels) -> Shard:
        """Return answers as one shard."""
        return Shard.of(answers, Run(threads=1))

    def effective_votes(self, shard: Shard, params: Any) -> Floats | None:
        """Return how many independent votes the votes of each task (T,) are worth, or None without calibration."""
        if not self.calibrate:
            return None
        how, shard = self.calibration(params), self.weighted(shard, params)
        parts = [effective_votes(votes.sum(1, dtype=np.float64), how) for _, votes in shard.votes_by_part()]
        return np.concatenate([np.zeros(0), *parts])

    def dependence(self, params: Any) -> Dependence | None:
        """Return how far answers depend on each other, if the model estimates that."""
        return None

    def clusters(self, params: Any, n_workers: int) -> Clusters:
        """Return workers who copy each other, if the model looks for them."""
        return Clusters(np.full(n_workers, -1), np.zeros(0))

    def groups_found(self, params: Any, n_workers: int) -> tuple[Clusters, Clusters]:
        """Return workers who copy each other, and groups that agree beyond the crowd but whose answers count fully."""
        none = Clusters(np.full(n_workers, -1), np.zeros(0))
        return self.clusters(params, n_workers), none

    def guard_warnings(self, params: Any, workers: Any) -> list[str]:
        """Return warnings about answers on which the model is not to be trusted; `workers` are ids."""
        return []

    def vote_mean(self, params: Any, n_classes: int) -> Floats:
        """Return the label shares (K,) that smooth votes."""
        return np.asarray(getattr(params, "mean", np.full(n_classes, 1 / n_classes)))

    def without_vote(self, params: Any, posterior: Floats, votes: Floats) -> tuple[Floats, Floats]:
        """Return the tempered posterior (T, K) without the vote, and its weight (T,) in the reported posterior, given
        the votes (T, K)."""
        if not self.calibrate:
            return posterior, np.ones(len(posterior))
        return uncalibrated(posterior, votes, self.vote_mean(params, votes.shape[1]), self.calibration(params))

    def all_without_vote(self, params: Any, answers: Labels, posterior: Floats) -> tuple[Floats, Floats]:
        """Return the same of all tasks of a fit; tasks with gold have weight 1."""
        Z, own = posterior.astype(np.float64), np.ones(len(posterior))
        if not self.calibrate:
            return Z, own
        shard = self.weighted(self.shard_of(answers), params)
        for part, votes in shard.votes_by_part():
            found, weight = self.without_vote(params, Z[part], votes)
            free = answers.gold[part] < 0
            Z[part], own[part] = np.where(free[:, None], found, Z[part]), np.where(free, weight, 1.0)
        return Z, own

    def task_posterior(self, params: Any, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        """Return the posterior (K,) of a task if it had exactly these answers (M,); `explain` uses it."""
        if not self.calibrate:
            return softmax(self._scores(params, layout, worker, label, task))
        parts = self.task_parts(params, layout, worker, label, task)
        rest = (1 - parts.model - parts.vote) / layout.n_classes
        return parts.model * parts.posterior + parts.vote * parts.shares + rest

    def _scores(self, params: Any, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        """Return the log-posterior (K,) of a task if it had exactly these answers, up to a constant."""
        logs = np.log(np.maximum(self.class_prior(params, layout.n_classes, task), 1e-300))
        return np.asarray(logs + self.factors(params, layout, worker, label, task).sum(0))

    def task_parts(self, params: Any, layout: RowTable, worker: Ints, label: Ints, task: int) -> TaskParts:
        """Return what the calibrated probabilities of a task with these answers (M,) are made of."""
        K, scores = layout.n_classes, self._scores(params, layout, worker, label, task)
        votes = weighted_counts(label, self.answer_weights(params, worker), K)
        found = weights(np.array([votes.sum()]), self.calibration(params))
        power, model, vote = (float(each[0]) for each in found)
        shares = smoothed_votes(votes[None], self.vote_mean(params, K))[0]
        return TaskParts(power, power * float(votes.sum()), model, softmax(power * scores), vote, shares)

    def answers_needed(self, n_classes: int) -> int:
        """Return how many answers per worker the model needs to estimate a worker's parameters."""
        return 1

    def class_accuracy(self, params: Any, layout: RowTable, worker: Ints, task: Ints) -> Floats:
        """Return the probability (M, K) that worker[m] gives the correct label under each true class, on tasks of the
        fit."""
        every = range(layout.n_classes)
        label = [np.full(len(worker), k, np.int32) for k in every]
        return np.stack([np.exp(self.emission(params, layout, worker, label[k], task)[:, k]) for k in every], axis=1)

    def easiest(self, params: Any) -> Any:
        """Return the parameters with every task at its lowest difficulty."""
        return params

    def difficulty(self, params: Any) -> Floats | None:
        """Return the difficulty of each task (T,), or None if the model has none."""
        return None

    def grouping(self, params: Any) -> Grouping | None:
        """Return the groups of workers, or None if the model has none."""
        return None

    @property
    def table_names(self) -> tuple[str, ...]:
        has_groups = type(self).grouping is not LabelModel.grouping
        return (*super().table_names, *(("groups", "members") if has_groups else ()))


def _local(shard: Shard, local: Any) -> Any:
    return local


def _joined(parts: list[Floats]) -> Floats:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def even_log(hit: Floats, label: Ints, n_classes: int) -> Floats:
    """Return the log-probability (M, K) of label[m] for a worker who is correct with probability hit[m] and whose
    errors are uniform."""
    hit = np.clip(hit, 1e-12, 1 - 1e-12)
    out = np.repeat(np.log((1 - hit) / max(n_classes - 1, 1))[:, None], n_classes, axis=1)
    out[np.arange(len(label)), label] = np.log(hit) if n_classes > 1 else 0.0
    return out


def class_shares(mode: str, shares: Floats) -> Floats:
    """Return the prior (K,) of the classes: their mode under a Dirichlet(2) prior, or uniform."""
    K = len(shares)
    return (shares + 1) / (shares.sum() + K) if mode == "learnt" else np.full(K, 1 / K)


def class_log_prior(mode: str, rho: Floats) -> float:
    """Return the log-prior of the class shares, up to a constant."""
    return float(np.log(rho).sum()) if mode == "learnt" else 0.0
