"""Result: everything that a fit says, whatever the model."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from ..answers import Labels
from ..kernels.layout import Floats, Ints, Layout, per_worker
from .explain import Explanation, additions_to_flip, removals_to_flip
from .tables import label_table, task_table, worker_table


class Model(Protocol):
    """What a result asks of the model that made it."""

    @property
    def name(self) -> str: ...
    def settings(self) -> dict[str, Any]: ...
    def emission(self, params: Any, layout: Layout, worker: Ints, label: Ints) -> Floats: ...
    def factors(self, params: Any, layout: Layout, worker: Ints, label: Ints, task: int) -> Floats: ...
    def infer(self, params: Any, seen: Layout, work: Any, worker: Ints, label: Ints) -> Floats: ...
    def class_prior(self, params: Any, n_classes: int) -> Floats: ...
    def difficulty(self, params: Any) -> Floats | None: ...


class _Predicting:
    """The part of a sweep that prediction needs; models see it as their `Work`."""

    def __init__(self, answers: Labels) -> None:
        self.kernels, self.layout, self.gold, self.threads = answers.kernels, answers.layout, answers.gold, 1
        self.dtype = answers.kernels.STORAGE


@dataclass(frozen=True)
class Prediction:
    """Labels of new answers by a crowd that is known already."""

    labels: pl.DataFrame
    posterior: Floats  # (T, K)
    unknown_workers: int  # taken as average ones
    ignored_answers: int  # gave a label that the fit did not know


def versions() -> dict[str, str]:
    """What made this result."""
    found = {"python": platform.python_version()}
    for package in ("crowdwise", "numpy", "numba", "polars"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Labels, workers, tasks and doubts of one fit.

    >>> import crowdwise as cw
    >>> result = cw.aggregate({"task": [1, 1, 2, 2], "worker": ["a", "b"] * 2, "label": ["x", "x", "y", "x"]})
    >>> result.labels.columns
    ['task', 'label', 'probability', 'votes', 'tie', 'status']
    """

    answers: Labels
    model: Model
    params: Any
    posterior: Floats  # (T, K)
    prevalence: Floats  # (K,)
    trace: tuple[float, ...]  # the objective after every sweep
    converged: bool
    seed: int
    seconds: float
    versions: dict[str, str] = field(default_factory=versions)

    def __repr__(self) -> str:
        state = "converged" if self.converged else "NOT CONVERGED"
        sweeps = f", {len(self.trace)} sweeps, {state}" if self.trace else ""
        return f"Result({self.model.name}: {self.answers.n_tasks} tasks, {self.answers.n_workers} workers{sweeps})"

    @property
    def classes(self) -> pl.Series:
        """What the columns of `posterior` stand for."""
        return self.answers.classes

    @cached_property
    def _votes(self) -> Floats:
        Z = np.empty(self.posterior.shape, np.float32)
        layout = self.answers.layout
        self.answers.kernels.votes(layout, np.ones(layout.n_rows), Z, 1)
        return Z

    @cached_property
    def labels(self) -> pl.DataFrame:
        """task, label, probability, votes, tie, status."""
        return _labels(self.answers, self.posterior, self.prevalence, self._votes)

    @cached_property
    def workers(self) -> pl.DataFrame:
        """worker, answers, skill (chance of a right answer) with its 95 % interval low to high, status."""
        by_row = self.answers.kernels.match_counts(self.answers.layout, self.posterior, 1)
        return worker_table(self.answers, per_worker(self.answers.layout, by_row))

    @cached_property
    def tasks(self) -> pl.DataFrame:
        """task, answers, entropy (bits), disagreement, difficulty (null where the model has none)."""
        most = self._votes.max(1) if self._votes.size else np.zeros(0)
        return task_table(self.answers, self.posterior, self.model.difficulty(self.params), most)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know before trusting the labels, worst first."""
        from .warnings import found

        return found(self)

    def confusion(self, worker: Any = None) -> pl.DataFrame:
        """A worker's confusion matrix, a row a true class; without a worker, the average worker's."""
        K = self.answers.n_classes
        number = -1 if worker is None else self.answers.worker_number(worker)
        told = np.arange(K, dtype=np.int32)
        logs = self.model.emission(self.params, self.answers.layout, np.full(K, number, np.int32), told)
        matrix = np.exp(logs).T
        matrix /= matrix.sum(1, keepdims=True)
        names = [str(name) for name in self.classes.to_list()]
        return pl.DataFrame([self.classes.alias("truth"), *(pl.Series(n, matrix[:, i]) for i, n in enumerate(names))])

    def explain(self, task: Any) -> Explanation:
        """Each answer's log-odds for the label against its strongest rival, and what would flip it."""
        i = self.answers.task_number(task)
        layout, K = self.answers.layout, self.answers.n_classes
        rows = layout.pair[layout.task_ptr[i] : layout.task_ptr[i + 1]]
        worker, label = layout.row_worker[rows], layout.row_label[rows]
        named = self.labels[i, "label"]
        first = int(self.posterior[i].argmax()) if named is None else self.classes.to_list().index(named)
        others = np.delete(np.arange(K), first)
        who, said = self.answers.workers[worker].alias("worker"), self.classes[label].alias("label")
        if K == 1:
            table = pl.DataFrame([who, said, pl.Series("log_odds", np.zeros(len(rows)))])
            return Explanation(task, named, None, float(self.posterior[i, 0]), 0.0, table, 0.0, None, None)
        factors = self.model.factors(self.params, layout, worker, label, i)
        prior = np.log(np.maximum(self.model.class_prior(self.params, K), 1e-300))
        scores = factors.sum(0) + prior
        second = int(others[scores[others].argmax()])
        odds = factors[:, first] - factors[:, second]
        before = float(prior[first] - prior[second])
        total = before + float(odds.sum())
        stranger = self.model.emission(self.params, layout, np.array([-1], np.int32), np.array([second], np.int32))
        return Explanation(
            task=task,
            label=named,
            rival=self.classes[second],
            probability=float(self.posterior[i, first]),
            prior=before,
            answers=pl.DataFrame([who, said, pl.Series("log_odds", odds)]).sort("log_odds", descending=True),
            total=total,
            removals=removals_to_flip(total, odds),
            additions=additions_to_flip(total, float(stranger[0, first] - stranger[0, second])),
        )

    def predict(self, answers: Any) -> Prediction:
        """Labels of new answers by the workers of this fit. A worker not met before is taken as an average one; an
        answer with a label not met before is ignored, and counted."""
        new = answers if isinstance(answers, Labels) else Labels(answers)
        known = {worker: j for j, worker in enumerate(self.answers.workers.to_list())}
        places = {label: k for k, label in enumerate(self.classes.to_list())}
        worker_of = np.array([known.get(w, -1) for w in new.workers.to_list()], np.int32)
        label_of = np.array([places.get(x, -1) for x in new.classes.to_list()], np.int32)
        recoded, ignored = _recode(new, label_of, self.classes)
        work = _Predicting(recoded)
        worker = worker_of[recoded.layout.row_worker]
        Z = self.model.infer(self.params, self.answers.layout, work, worker, recoded.layout.row_label)
        votes = np.empty(Z.shape, np.float32)
        recoded.kernels.votes(recoded.layout, np.ones(recoded.layout.n_rows), votes, 1)
        strangers = int((worker_of < 0).sum())
        return Prediction(_labels(recoded, Z, self.prevalence, votes), Z, strangers, ignored)

    def save(self, path: str | Path) -> Path:
        """Write this result to a folder (or a file ending in .crowdwise), whole or not at all."""
        from .store import write

        return write(self, Path(path))


def _labels(answers: Labels, posterior: Floats, prevalence: Floats, votes: Floats) -> pl.DataFrame:
    from .tables import decide

    label = np.where(answers.gold >= 0, answers.gold, decide(posterior, prevalence)[0])
    return label_table(answers, posterior, prevalence, votes[np.arange(len(label)), label] if votes.size else votes)


def _recode(new: Labels, label_of: Ints, classes: pl.Series) -> tuple[Labels, int]:
    """The new answers in the classes of the fit, and how many answers had to be left out."""
    from ..kernels.layout import sort_answers

    task, worker, label = new.codes()
    label = label_of[label]
    keep = label >= 0
    shape = (new.n_tasks, new.n_workers, len(classes))
    layout, _ = sort_answers(new.kernels, task[keep], worker[keep], label[keep], shape)
    gold = np.full(new.n_tasks, -1, np.int32)
    known = new.gold >= 0
    gold[known] = label_of[new.gold[known]]
    fields = {
        "tasks": new.tasks, "workers": new.workers, "classes": classes, "layout": layout, "gold": gold,
        "extras": pl.DataFrame(), "intake": new.intake,
    }  # fmt: skip
    return Labels.of(**fields), int((~keep).sum())
