"""What a model of labels is: a truth side, a worker side, and the statistics that improve both.

A subclass says how answers arise and inherits the rest. It holds hyperparameters only; what was learnt is a NamedTuple
of arrays that goes in and out of its methods.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..answers import Labels
from ..errors import ParameterError
from ..kernels import Kernels
from ..kernels.layout import Floats, Ints, Layout, vote_parts
from ..result import Grouping, Result
from .run import Run


class Work(NamedTuple):
    """What a sweep works on: the arithmetic, the answers, what is known, and how many threads."""

    kernels: Kernels
    layout: Layout
    gold: Ints  # (T,) or -1
    threads: int
    dtype: Any  # of posteriors and confusion rows
    seed: int = 0  # of what is drawn at the start

    @classmethod
    def on(cls, answers: Labels, run: Run) -> Work:
        dtype = {"auto": answers.kernels.STORAGE, "single": np.float32, "double": np.float64}[run.precision]
        return cls(answers.kernels, answers.layout, answers.gold, run.threads, np.dtype(dtype), int(run.seed))

    def vote_shares(self, weight: Floats | None = None) -> Floats:
        """(T, K) shares of votes, each weighing 1, or `weight` (R,) by row.

        Votes that all weigh nothing count alike, known labels are obeyed, and without answers all classes are alike.
        """
        K = self.layout.n_classes
        Z = np.empty((self.layout.n_tasks, K), self.dtype)
        self.kernels.votes(self.layout, np.ones(self.layout.n_rows) if weight is None else weight, Z, self.threads)
        total = Z.sum(1, keepdims=True)
        np.divide(Z, total, out=Z, where=total > 0)
        void = total[:, 0] == 0
        if void.any():
            Z[void] = 1 / K if weight is None else self.vote_shares()[void]
        return self.obey_gold(Z)

    def obey_gold(self, Z: Floats) -> Floats:
        """Z (T, K) with all probability of tasks that are known on what is known."""
        known = np.flatnonzero(self.gold >= 0)
        Z[known] = 0
        Z[known, self.gold[known]] = 1
        return Z

    def votes_by_part(self) -> Iterator[tuple[slice, Floats]]:
        """Votes (some tasks, K) of all tasks, a run of tasks at a time, so that they need little memory."""
        return vote_parts(self.kernels, self.layout, self.threads)

    def shares(self, Z: Floats) -> Floats:
        """(K,) sum of the posterior over tasks that have answers."""
        answered = np.diff(self.layout.task_ptr) > 0
        return np.asarray((Z if answered.all() else Z[answered]).sum(0, dtype=np.float64))


@dataclass(frozen=True, kw_only=True)
class LabelModel(ABC):
    """Fits answers that are labels, and tells how a worker turns the truth into an answer."""

    name: ClassVar[str]
    about: ClassVar[str]  # one line for `crowdwise models`
    params_type: ClassVar[type]
    needs_features: ClassVar[bool] = False  # whether answers alone are not enough to fit it
    tells_workers_apart: ClassVar[bool] = True  # whether each worker has a confusion matrix of his own
    shares_truth: ClassVar[bool] = True  # whether the answers to a task have one truth
    # By how much the log-odds of accuracy were off the expected ones on 17 of 18 real sets: decision 0011.
    off: ClassVar[tuple[float, float]] = (-7.6, 0.0)

    def __post_init__(self) -> None:
        check({f.name: f.metadata["rule"] for f in fields(self) if "rule" in f.metadata}, self, f"{self.name}: ")

    def settings(self) -> dict[str, Any]:
        """The hyperparameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @abstractmethod
    def fit(self, answers: Labels, run: Run | None = None) -> Result:
        """Learn from answers; everything found is in the Result."""

    @abstractmethod
    def emission(self, params: Any, layout: Layout, worker: Ints, label: Ints, task: Ints | None = None) -> Floats:
        """(M, K) log-probability that worker[m] says label[m] under each true class; worker -1 is an average one.

        `task` (M,) are tasks of the fit, for models that know tasks; without it, a task like any other.
        """

    @abstractmethod
    def class_prior(self, params: Any, n_classes: int, task: int | None = None) -> Floats:
        """(K,) what the posterior of a task starts from, before its answers; without one, a task like any other."""

    def factors(self, params: Any, layout: Layout, worker: Ints, label: Ints, task: int) -> Floats:
        """(M, K) log-factors that answers to this task contributed to its posterior."""
        return self.emission(params, layout, worker, label)

    def pull(self, params: Any, layout: Layout, worker: Ints, label: Ints, task: int) -> Floats:
        """(M, K) how strongly answers draw the task to each class, on the scale that the model adds them up on."""
        return self.factors(params, layout, worker, label, task)

    def infer(self, params: Any, seen: Layout, answers: Labels, worker: Ints) -> Floats:
        """(T, K) posterior of new answers whose rows are given by the workers (R,) of the fit, -1 for others."""
        work = Work.on(answers, Run(threads=1))
        label = work.layout.row_label
        P = np.exp(self.emission(params, seen, worker, label)).astype(work.dtype)
        Z = work.vote_shares()
        prior = self.class_prior(params, seen.n_classes)[None]
        work.kernels.confusion_posterior(work.layout, P, prior, work.gold, Z, work.threads)
        return self.reported(work, params, Z)

    def reported(self, work: Work, params: Any, Z: Floats) -> Floats:
        """The posterior as it is told to users; Z may be overwritten."""
        return Z

    def believed(self, params: Any, answers: Labels, posterior: Floats) -> tuple[Floats, float]:
        """What the reported posterior (T, K) was before it was hedged, and how much it counts in it."""
        return posterior, 1.0

    def task_posterior(self, params: Any, layout: Layout, worker: Ints, label: Ints, task: int) -> Floats:
        """(K,) posterior of a task if just these answers (M,) had been given to it: what `explain` asks."""
        logs = np.log(np.maximum(self.class_prior(params, layout.n_classes, task), 1e-300))
        logs += self.factors(params, layout, worker, label, task).sum(0)
        q = np.exp(logs - logs.max())
        return np.asarray(q / q.sum())

    def answers_needed(self, n_classes: int) -> int:
        """Answers that a worker should have given for the model to tell anything of that worker."""
        return 1

    def named(self, params: Any, layout: Layout, worker: Ints, task: Ints) -> Floats:
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


@dataclass(frozen=True)
class Rule:
    """What a hyperparameter may be."""

    kind: type | tuple[type, ...]
    low: float = -math.inf
    above: float = -math.inf
    high: float = math.inf
    choices: tuple[object, ...] = ()
    may_be_none: bool = False

    def holds(self, value: object) -> bool:
        if self.may_be_none and value is None:
            return True
        if self.choices:
            return value in self.choices
        if isinstance(value, bool) or not isinstance(value, self.kind) or not isinstance(value, (int, float)):
            return False
        return math.isfinite(value) and self.low <= value <= self.high and value > self.above

    @property
    def text(self) -> str:
        if self.choices:
            return " or ".join(map(repr, self.choices))
        word = "a whole number" if self.kind is int else "a number"
        if self.high < math.inf:
            return f"{word} from {self.low:g} to {self.high:g}"
        bound = f" above {self.above:g}" if self.above > -math.inf else ""
        none = " or None" if self.may_be_none else ""
        return word + (f" of at least {self.low:g}" if self.low > -math.inf else bound) + none


COUNT = Rule(int, low=1)
POSITIVE = Rule((int, float), above=0.0)
NOT_NEGATIVE = Rule((int, float), low=0.0)
SHARE = Rule((int, float), low=0.0, high=1.0)


def check(rules: Mapping[str, Rule], holder: object, who: str = "") -> None:
    """Refuse attributes of `holder` that break their rules."""
    for name, rule in rules.items():
        value = getattr(holder, name)
        if not rule.holds(value):
            raise ParameterError(f"{who}{name} is {value!r}; it must be {rule.text}")


def rules(rule: Rule) -> dict[str, Rule]:
    """Field metadata that `LabelModel` checks."""
    return {"rule": rule}


def even_log(hit: Floats, label: Ints, n_classes: int) -> Floats:
    """(M, K) log-probability of saying label[m] when right with probability hit[m] and errors are spread evenly."""
    hit = np.clip(hit, 1e-12, 1 - 1e-12)
    out = np.repeat(np.log((1 - hit) / max(n_classes - 1, 1))[:, None], n_classes, axis=1)
    out[np.arange(len(label)), label] = np.log(hit) if n_classes > 1 else 0.0
    return out
