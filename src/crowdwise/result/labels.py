"""LabelsResult: the result of a fit of labels, the same for every model."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import polars as pl

from ..answers import Labels, places
from ..answers.arguments import check_array
from ..errors import ParameterError
from ..kernels.layout import Floats, Ints, PerWorker, RowTable, sort_answers
from ..kernels.rules import Real
from ..rating import rate
from .base import BaseResult
from .explain import Explanation, explain
from .groups import Assignment, Grouping, assigned, group_probabilities, group_table, member_table
from .tables import label_table, task_table

if TYPE_CHECKING:
    from ..labels.model import LabelModel


class LeftOut(NamedTuple):
    """Sums over each worker's answers under leave-one-out posteriors, computed without the answer itself."""

    right: Annotated[PerWorker, Real("W", 0)]  # probability of the label given
    sharpness: Annotated[PerWorker, Real("W", 0)]  # sum of squares of the posterior: larger if it is more certain


@dataclass(frozen=True)
class Prediction:
    """Labels of new answers, given the workers of a fit."""

    labels: pl.DataFrame
    posterior: Floats  # (T, K)
    unknown_workers: int  # workers not in the fit, treated as average workers
    ignored_answers: int  # answers with a label that does not occur in the fit


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedLabels(BaseResult):
    """What a fit of labels found about workers and classes; it does not need the answers or posteriors."""

    kind = "labels"
    table_names = ("labels", "workers", "tasks")

    answers: Any
    model: LabelModel
    prevalence: Annotated[Floats, Real("K", 0, 1)]
    left_out: LeftOut

    @property
    def counted(self) -> str:
        return f"{self.answers.n_tasks} tasks, {self.answers.n_workers} workers"

    @property
    def classes(self) -> pl.Series:
        """The classes, in the order of the columns of `posterior`."""
        return self.answers.classes  # type: ignore[no-any-return]

    @property
    def not_converged(self) -> str:
        return f"{super().not_converged}. Labels, skills or the objective were still changing"

    def confusion(self, worker: Any = None) -> pl.DataFrame:
        """Return a worker's confusion matrix, one row per true class; without a worker, that of an average worker."""
        number = -1 if worker is None else self.answers.worker_number(worker)
        return self._matrix_table(self.confusions(np.array([number], np.int32))[0])

    def _matrix_table(self, matrix: Floats) -> pl.DataFrame:
        names = [str(name) for name in self.classes.to_list()]
        head = "truth"
        while head in names:
            head += "_"
        return pl.DataFrame([self.classes.alias(head), *(pl.Series(n, matrix[:, i]) for i, n in enumerate(names))])

    @cached_property
    def average_confusion(self) -> Floats:
        """Confusion matrix of an average worker, shape (K, K)."""
        return np.asarray(self.confusions(np.array([-1], np.int32))[0])

    def matrices(self, workers: Ints) -> Floats | None:
        """Return confusion matrices (M, K, K) of workers by number, or None if the model has no matrix per worker."""
        return self.confusions(workers) if self.model.distinguishes_workers else None

    def confusions(self, workers: Ints) -> Floats:
        """Return confusion matrices (M, K, K) of workers by number (-1: an average worker), for any model."""
        return confusion_matrices(self.model, self.params, self.answers.row_table, workers)

    @cached_property
    def grouping(self) -> Grouping:
        """The groups of workers as arrays; an error if the model has none."""
        found = self.model.grouping(self.params)
        if found is None:
            raise ParameterError(f"{self.model.name} has no groups of workers. Fit the model 'groups'")
        return found

    @property
    def groups(self) -> pl.DataFrame:
        """One row per group of workers, the largest first: group (from 1), share of the crowd, workers (expected
        number), similarity of its confusion matrix to the identity (1: never wrong), mean entropy of its rows (bits).
        """
        return group_table(self.grouping)

    @property
    def members(self) -> pl.DataFrame:
        """One row per worker: worker, most probable group, and its probability."""
        return member_table(self.answers.workers, self.grouping.member)

    def group_confusion(self, group: int) -> pl.DataFrame:
        """Return the confusion matrix of a group, one row per true class."""
        found = self.grouping
        if isinstance(group, bool) or not isinstance(group, (int, np.integer)) or not 1 <= group <= len(found.share):
            raise ParameterError(f"no group {group!r}; groups are numbered from 1 to {len(found.share)}")
        return self._matrix_table(found.matrices[group - 1])

    def assign(self, answers: Any, *, prior: Floats | None = None) -> Assignment:
        """Return the groups of new answers and of their workers, without a new fit.

        A worker of the fit starts from the group probabilities of the fit, a new worker from the shares of the groups.
        `prior` (T, K) is the prior of the tasks' classes, by default the class shares; `CrowdClassifier.assign`
        predicts it from features.

        >>> import crowdwise as cw
        >>> sim = cw.simulate.crowd("groups", tasks=200, workers=30, classes=3, seed=1)
        >>> result = cw.aggregate(sim.answers, "groups")
        >>> result.assign({"task": [1, 2], "worker": ["new", "new"], "label": ["c1", "c2"]}).workers.columns
        ['worker', 'group', 'probability']
        """
        new = Labels.from_any(answers)
        self.model.refuse_weights(new)
        recoded, ignored = _recode(new, places(self.classes, new.classes), self.classes)
        shape = (new.n_tasks, len(self.classes))
        if prior is None:
            prior = np.broadcast_to(self.model.class_prior(self.params, shape[1]), shape)
        prior = check_array("prior", prior, "probabilities (tasks, classes)")
        if prior.shape != shape:
            raise ParameterError(f"prior has shape {prior.shape}; it must be {shape}: tasks, classes")
        before = group_probabilities(self.grouping, places(self.answers.workers, new.workers))
        return Assignment(*assigned(self, recoded, prior, before), ignored)

    def predict(self, answers: Any) -> Prediction:
        """Predict the labels of new answers, given the workers of this fit.

        A worker not in the fit counts as an average worker. Answers with a label not in the fit are ignored, and their
        number is reported.
        """
        new = Labels.from_any(answers)
        self.model.refuse_weights(new)
        worker_of, label_of = places(self.answers.workers, new.workers), places(self.classes, new.classes)
        recoded, ignored = _recode(new, label_of, self.classes)
        worker = worker_of[recoded.layout.row_worker]
        Z = self.model.infer(self.params, self.answers.row_table, recoded, worker)
        labels = label_table(recoded, Z, self.prevalence)
        return Prediction(labels, Z, int((worker_of < 0).sum()), ignored)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LabelsResult(FittedLabels):
    """Labels, workers and tasks of one fit.

    >>> import crowdwise as cw
    >>> result = cw.aggregate({"task": [1, 1, 2, 2], "worker": ["a", "b"] * 2, "label": ["x", "x", "y", "x"]})
    >>> result.labels.columns
    ['task', 'label', 'probability', 'votes', 'tie', 'status']
    """

    answers: Labels
    posterior: Annotated[Floats, Real("T K", 0, 1, sums=True)]

    @property
    def flaw(self) -> str:
        """What contradicts itself in a result that was read from a file, or ""."""
        hard = self.model.difficulty(self.params)
        return "" if hard is None or len(hard) == self.answers.n_tasks else "has the difficulty of other tasks"

    @cached_property
    def labels(self) -> pl.DataFrame:
        """One row per task: task, label, probability, votes, tie, status."""
        return label_table(self.answers, self.posterior, self.prevalence)

    @cached_property
    def workers(self) -> pl.DataFrame:
        """One row per worker: worker, answers, skill (probability of a correct answer) with its 95 % interval low to
        high, and further ratings and flags, described in `cw.rate`."""
        return rate(self)

    @cached_property
    def tasks(self) -> pl.DataFrame:
        """One row per task: task, answers, entropy and vote_entropy (bits), disagreement, difficulty (null if the model
        has none), effective_votes (number of independent votes worth as much; null without calibration)."""
        effective = self.model.effective_votes(self.model.shard_of(self.answers), self.params)
        return task_table(self.answers, self.posterior, self.model.difficulty(self.params), effective)

    def tables(self) -> dict[str, pl.DataFrame]:
        """Return the tables labels, workers and tasks; also groups and members if the model has groups of workers."""
        with ThreadPoolExecutor(1) as pool:  # numpy and polars leave the interpreter free for the other thread
            of_tasks = pool.submit(lambda: (self.labels, self.tasks))
            workers = self.workers
            tables = {"labels": of_tasks.result()[0], "workers": workers, "tasks": of_tasks.result()[1]}
        if self.model.grouping(self.params) is not None:
            tables |= {"groups": self.groups, "members": self.members}
        return tables

    def own_warnings(self) -> list[str]:
        from .tables import label_warnings

        return label_warnings(self)

    def explain(self, task: Any) -> Explanation:
        """Return each answer's log-odds for the label against the next most probable class, and what would flip it."""
        return explain(self, task)


def confusion_matrices(model: LabelModel, params: Any, rows: RowTable, workers: Ints) -> Floats:
    """Return the confusion matrices (M, K, K) of workers by number (-1: an average worker)."""
    K, M = rows.n_classes, len(workers)
    labels = np.tile(np.arange(K, dtype=np.int32), M)
    logs = model.emission(params, rows, np.repeat(workers, K).astype(np.int32), labels)
    pi = np.exp(logs).reshape(M, K, K).transpose(0, 2, 1)
    return np.asarray(pi / pi.sum(2, keepdims=True))


def _recode(new: Labels, label_of: Ints, classes: pl.Series) -> tuple[Labels, int]:
    """Return the new answers coded with the classes of the fit, and how many answers were dropped."""
    task, worker, label = new.codes()
    label = label_of[label]
    keep = label >= 0
    shape = (new.n_tasks, new.n_workers, len(classes))
    layout, order = sort_answers(new.kernels, task[keep], worker[keep], label[keep], shape)
    gold = np.full(new.n_tasks, -1, np.int32)
    known = new.gold >= 0
    gold[known] = label_of[new.gold[known]]
    weights = new.extras.select("weight").filter(pl.Series(keep))[order] if new.weighted else pl.DataFrame()
    fields = {
        "tasks": new.tasks, "workers": new.workers, "classes": classes, "layout": layout, "gold": gold,
        "extras": weights, "intake": new.intake,
    }  # fmt: skip
    return Labels.of(**fields), int((~keep).sum())
