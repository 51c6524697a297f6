"""What a model of labels is: it fits answers, and tells how a worker turns the truth into an answer."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import Executor, Model, Run, Trace
from ..engine.model import one_of
from ..engine.resources import refuse_if_too_large
from ..errors import DataError
from ..kernels.layout import Floats, Ints, RowTable
from ..kernels.special import softmax
from ..result import Grouping, LabelsResult, LeftOut
from .shard import Crowd, Shard, spread

PREVALENCE = one_of("learnt", "uniform")
PREVALENCE_IS = "Class shares: learnt from the answers, or uniform."


class Learnt(NamedTuple):
    """What a fit comes to, before results are made of it."""

    params: Any
    prevalence: Floats  # (K,)
    trace: Trace
    converged: bool


@dataclass(frozen=True, kw_only=True)
class LabelModel(Model[Labels, LabelsResult]):
    """A model of answers that are labels."""

    kind = "labels"
    answers_type = Labels
    result_type = LabelsResult
    with_features: ClassVar[str] = "Labels with features are fitted by crowdwise.CrowdClassifier"
    criterion: ClassVar[str] = ""  # what the objective is
    tells_workers_apart: ClassVar[bool] = True  # whether each worker has a confusion matrix of their own
    shares_truth: ClassVar[bool] = True  # whether the answers to a task have one truth
    uses_weights: ClassVar[bool] = False  # whether answers may carry weights
    # By how much the log-odds of accuracy were off the expected ones on 17 of 18 real sets: decision 0011.
    off: ClassVar[tuple[float, float]] = (-7.6, 0.0)

    def _fit(self, answers: Labels, features: Any, run: Run) -> LabelsResult:
        self.refuse_weights(answers)
        crowd, shards = spread(answers, run, features)
        refuse_if_too_large(self.need(answers, crowd.dtype), answers, self.name)
        learnt = self.learn(answers, crowd, shards, run)
        own = {"prevalence": learnt.prevalence, "converged": learnt.converged}
        own["params"] = self.finish(crowd, learnt.params, shards)
        own["left_out"] = shards.total(self._left_out, learnt.params)
        own["posterior"] = _joined(list(shards.each(self._reported, learnt.params)))  # may overwrite that of the fit
        return self.made(answers, run, learnt.trace, self.criterion, **own)

    def refuse_weights(self, answers: Labels) -> None:
        """Refuse answers with weights, where the model does not use them."""
        if answers.weighted and not self.uses_weights:
            raise DataError(
                f"these answers have weights (column 'weight'), which {self.name} does not use. Take 'majority-vote', "
                f"'soft-vote' or 'weighted-vote', which count them, or leave the column out"
            )

    @abstractmethod
    def learn(self, answers: Labels, crowd: Crowd, shards: Executor[Shard], run: Run) -> Learnt:
        """The fit itself; posteriors stay in the shards, as the attribute `Z` of their local state."""

    def finish(self, crowd: Crowd, params: Any, shards: Executor[Shard]) -> Any:
        """Parameters needed only in the result."""
        return params

    @abstractmethod
    def left_out(self, shard: Shard, params: Any, Z: Floats) -> LeftOut:
        """Sums over each worker's answers, by leave-one-out posteriors."""

    def _left_out(self, shard: Shard, local: Any, params: Any) -> LeftOut:
        return self.left_out(shard, params, local.Z)

    def _reported(self, shard: Shard, local: Any, params: Any) -> Floats:
        return self.reported(shard, params, local.Z)

    def need(self, answers: Labels, dtype: np.dtype[Any]) -> int:
        """Bytes that a fit takes in addition to its answers."""
        return answers.n_tasks * answers.n_classes * dtype.itemsize + 64 * answers.layout.n_rows

    @abstractmethod
    def emission(self, params: Any, layout: RowTable, worker: Ints, label: Ints, task: Ints | None = None) -> Floats:
        """(M, K) log-probability that worker[m] says label[m] under each true class; worker -1 is an average one.

        `task` (M,) are tasks of the fit, for models that know tasks; without it, a task like any other.
        """

    @abstractmethod
    def class_prior(self, params: Any, n_classes: int, task: int | None = None) -> Floats:
        """(K,) what the posterior of a task starts from, before its answers; without one, a task like any other."""

    def factors(self, params: Any, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        """(M, K) log-factors that answers to this task contributed to its posterior."""
        return self.emission(params, layout, worker, label)

    def pull(self, params: Any, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        """(M, K) how strongly answers draw the task to each class, on the scale on which the model adds them up."""
        return self.factors(params, layout, worker, label, task)

    def infer(self, params: Any, seen: RowTable, answers: Labels, worker: Ints) -> Floats:
        """(T, K) posterior of new answers whose rows are given by the workers (R,) of the fit, -1 for others."""
        shard = Shard.of(answers, Run(threads=1))
        label = shard.layout.row_label
        P = np.exp(self.emission(params, seen, worker, label)).astype(shard.dtype)
        Z = shard.vote_shares()
        prior = self.class_prior(params, seen.n_classes)[None]
        shard.kernels.confusion_posterior(shard.layout, P, prior, shard.gold, Z, shard.threads)
        return self.reported(shard, params, Z)

    def reported(self, shard: Shard, params: Any, Z: Floats) -> Floats:
        """The posterior as it is reported to users; Z may be overwritten."""
        return Z

    def unhedged(self, params: Any, answers: Labels, posterior: Floats) -> tuple[Floats, float]:
        """What the reported posterior (T, K) was before it was hedged, and how much it counts in it."""
        return posterior, 1.0

    def task_posterior(self, params: Any, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        """(K,) posterior of a task if just these answers (M,) had been given to it: what `explain` asks."""
        logs = np.log(np.maximum(self.class_prior(params, layout.n_classes, task), 1e-300))
        logs += self.factors(params, layout, worker, label, task).sum(0)
        return softmax(logs)

    def answers_needed(self, n_classes: int) -> int:
        """Answers that a worker should have given for the model to learn anything about that worker."""
        return 1

    def named(self, params: Any, layout: RowTable, worker: Ints, task: Ints) -> Floats:
        """(M, K) chance that worker[m] names each class where it is true, on tasks of the fit."""
        every = range(layout.n_classes)
        said = [np.full(len(worker), k, np.int32) for k in every]
        return np.stack([np.exp(self.emission(params, layout, worker, said[k], task)[:, k]) for k in every], axis=1)

    def easiest(self, params: Any) -> Any:
        """The parameters as if every task were as easy as can be."""
        return params

    def difficulty(self, params: Any) -> Floats | None:
        """(T,) how hard each task is, where the model knows."""
        return None

    def grouping(self, params: Any) -> Grouping | None:
        """Groups of workers who err alike, where the model has them."""
        return None


def _joined(parts: list[Floats]) -> Floats:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def even_log(hit: Floats, label: Ints, n_classes: int) -> Floats:
    """(M, K) log-probability of saying label[m] when right with probability hit[m] and errors are spread evenly."""
    hit = np.clip(hit, 1e-12, 1 - 1e-12)
    out = np.repeat(np.log((1 - hit) / max(n_classes - 1, 1))[:, None], n_classes, axis=1)
    out[np.arange(len(label)), label] = np.log(hit) if n_classes > 1 else 0.0
    return out


def class_shares(mode: str, shares: Floats) -> Floats:
    """(K,) prior of the classes: Dirichlet(2) around the expected shares, or all alike."""
    K = len(shares)
    return (shares + 1) / (shares.sum() + K) if mode == "learnt" else np.full(K, 1 / K)


def class_log_prior(mode: str, rho: Floats) -> float:
    """What `class_shares` adds to the objective."""
    return float(np.log(rho).sum()) if mode == "learnt" else 0.0
