"""What a model of labels is: a truth side, a worker side, and the statistics that improve both.

A subclass says how answers arise and inherits the rest. It holds hyperparameters only; what was learnt is a NamedTuple
of arrays that goes in and out of its methods.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..answers import Labels
from ..errors import ParameterError
from ..kernels import Kernels
from ..kernels.layout import Floats, Ints, Layout, per_worker, worker_answers
from ..result import Result
from .run import Run


class Work(NamedTuple):
    """What a sweep works on: the arithmetic, the answers, what is known, and how many threads."""

    kernels: Kernels
    layout: Layout
    gold: Ints  # (T,) or -1
    threads: int
    dtype: Any  # of posteriors and confusion rows

    @classmethod
    def on(cls, answers: Labels, run: Run) -> Work:
        dtype = {"auto": answers.kernels.STORAGE, "single": np.float32, "double": np.float64}[run.precision]
        return cls(answers.kernels, answers.layout, answers.gold, run.threads, np.dtype(dtype))

    def vote_shares(self) -> Floats:
        """(T, K) soft votes: where every climb starts. Known labels are obeyed; no answers: all classes alike."""
        K = self.layout.n_classes
        Z = np.empty((self.layout.n_tasks, K), self.dtype)
        self.kernels.votes(self.layout, np.ones(self.layout.n_rows), Z, self.threads)
        total = Z.sum(1, keepdims=True)
        np.divide(Z, total, out=Z, where=total > 0)
        Z[total[:, 0] == 0] = 1 / K
        known = np.flatnonzero(self.gold >= 0)
        Z[known] = 0
        Z[known, self.gold[known]] = 1
        return Z

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

    def __post_init__(self) -> None:
        for field in fields(self):
            rule = field.metadata.get("rule")
            value = getattr(self, field.name)
            if rule is not None and not rule.holds(value):
                raise ParameterError(f"{self.name}: {field.name} is {value!r}; it must be {rule.text}")

    def settings(self) -> dict[str, Any]:
        """The hyperparameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @abstractmethod
    def fit(self, answers: Labels, run: Run | None = None) -> Result:
        """Learn from answers; everything found is in the Result."""

    @abstractmethod
    def emission(self, params: Any, layout: Layout, worker: Ints, label: Ints) -> Floats:
        """(M, K) log-probability that worker[m] says label[m] under each true class; worker -1 is an average one."""

    @abstractmethod
    def class_prior(self, params: Any, n_classes: int) -> Floats:
        """(K,) what the posterior of a task starts from, before its answers."""

    def factors(self, params: Any, layout: Layout, worker: Ints, label: Ints, task: int) -> Floats:
        """(M, K) log-factors that answers to this task contributed to its posterior."""
        return self.emission(params, layout, worker, label)

    def infer(self, params: Any, seen: Layout, work: Work, worker: Ints, label: Ints) -> Floats:
        """(T, K) posterior of new answers; worker and label (R,) give the rows of `work` in the numbers of the fit."""
        P = np.exp(self.emission(params, seen, worker, label)).astype(work.dtype)
        Z = work.vote_shares()
        prior = self.class_prior(params, seen.n_classes)[None]
        work.kernels.confusion_posterior(work.layout, P, prior, work.gold, Z, work.threads)
        return Z

    def difficulty(self, params: Any) -> Floats | None:
        """(T,) how hard each task is, where the model knows."""
        return None


@dataclass(frozen=True)
class Rule:
    """What a hyperparameter may be."""

    kind: type | tuple[type, ...]
    low: float = -math.inf
    above: float = -math.inf
    choices: tuple[str, ...] = ()

    def holds(self, value: object) -> bool:
        if self.choices:
            return value in self.choices
        if isinstance(value, bool) or not isinstance(value, self.kind) or not isinstance(value, (int, float)):
            return False
        return math.isfinite(value) and value >= self.low and value > self.above

    @property
    def text(self) -> str:
        if self.choices:
            return " or ".join(map(repr, self.choices))
        word = "a whole number" if self.kind is int else "a number"
        bound = f" above {self.above:g}" if self.above > -math.inf else ""
        return word + (f" of at least {self.low:g}" if self.low > -math.inf else bound)


COUNT = Rule(int, low=1)
POSITIVE = Rule((int, float), above=0.0)
NOT_NEGATIVE = Rule((int, float), low=0.0)


def rules(rule: Rule) -> dict[str, Rule]:
    """Field metadata that `LabelModel` checks."""
    return {"rule": rule}


def even_log(hit: Floats, label: Ints, n_classes: int) -> Floats:
    """(M, K) log-probability of saying label[m] when right with probability hit[m] and errors are spread evenly."""
    hit = np.clip(hit, 1e-12, 1 - 1e-12)
    out = np.repeat(np.log((1 - hit) / max(n_classes - 1, 1))[:, None], n_classes, axis=1)
    out[np.arange(len(label)), label] = np.log(hit) if n_classes > 1 else 0.0
    return out


class Coins(NamedTuple):
    """What models know of workers who are right with some chance, whatever the truth."""

    hit: Floats  # (W,) chance of a right answer
    crowd: Floats  # (1,) of an average worker

    def of(self, worker: Ints) -> Floats:
        return np.where(worker >= 0, self.hit[worker], self.crowd[0])


def expected_hits(work: Work, Z: Floats) -> tuple[Floats, Floats]:
    """(W,) expected number of right answers, and of all answers."""
    by_row = work.kernels.match_counts(work.layout, Z, work.threads)
    return per_worker(work.layout, by_row), worker_answers(work.layout).astype(np.float64)
