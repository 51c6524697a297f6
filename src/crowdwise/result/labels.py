"""LabelsResult: everything that a fit of labels has learnt, whatever the model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from ..answers import Labels, places
from ..errors import ParameterError
from ..kernels.layout import Floats, Ints, sort_answers
from ..rating import rate
from .base import BaseResult
from .explain import Explanation, explain
from .groups import Assignment, Grouping, assigned, group_probabilities, group_table, member_table
from .tables import label_table, task_table

if TYPE_CHECKING:
    from ..labels.model import LabelModel


class LeftOut(NamedTuple):
    """How each worker's answers look to leave-one-out posteriors, which have not seen the answer: sums over answers."""

    right: Floats  # (W,) probability of the label given
    sharpness: Floats  # (W,) sum of squares of the posterior: how sure it is


@dataclass(frozen=True)
class Prediction:
    """Labels of new answers by a crowd that is known already."""

    labels: pl.DataFrame
    posterior: Floats  # (T, K)
    unknown_workers: int  # taken as average ones
    ignored_answers: int  # gave a label that the fit did not know


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LabelsResult(BaseResult):
    """Labels, workers and tasks of one fit.

    >>> import crowdwise as cw
    >>> result = cw.aggregate({"task": [1, 1, 2, 2], "worker": ["a", "b"] * 2, "label": ["x", "x", "y", "x"]})
    >>> result.labels.columns
    ['task', 'label', 'probability', 'votes', 'tie', 'status']
    """

    kind = "labels"

    answers: Labels
    model: LabelModel
    posterior: Floats  # (T, K)
    prevalence: Floats  # (K,)
    left_out: LeftOut

    @property
    def counted(self) -> str:
        return f"{self.answers.n_tasks} tasks, {self.answers.n_workers} workers"

    @property
    def classes(self) -> pl.Series:
        """What the columns of `posterior` stand for."""
        return self.answers.classes

    @cached_property
    def labels(self) -> pl.DataFrame:
        """task, label, probability, votes, tie, status."""
        return label_table(self.answers, self.posterior, self.prevalence)

    @cached_property
    def workers(self) -> pl.DataFrame:
        """worker, answers, skill (chance of a right answer) with its 95 % interval low to high, and further ratings and
        flags: `cw.rate` says which."""
        return rate(self)

    @cached_property
    def tasks(self) -> pl.DataFrame:
        """task, answers, entropy and vote_entropy (bits), disagreement, difficulty (null where the model has none)."""
        return task_table(self.answers, self.posterior, self.model.difficulty(self.params))

    def tables(self) -> dict[str, pl.DataFrame]:
        """labels, workers and tasks; groups and members where the model has groups of workers."""
        tables = {"labels": self.labels, "workers": self.workers, "tasks": self.tasks}
        if self.model.grouping(self.params) is not None:
            tables |= {"groups": self.groups, "members": self.members}
        return tables

    @property
    def not_converged(self) -> str:
        return f"{super().not_converged}. Labels, skills or the objective still changed"

    def own_warnings(self) -> list[str]:
        from .tables import found

        return found(self)

    def confusion(self, worker: Any = None) -> pl.DataFrame:
        """A worker's confusion matrix, a row a true class; without a worker, the average worker's."""
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
        """(K, K) confusion matrix of an average worker."""
        return np.asarray(self.confusions(np.array([-1], np.int32))[0])

    def matrices(self, workers: Ints) -> Floats | None:
        """(M, K, K) confusion matrices of workers by number; None where the model does not tell workers apart."""
        return self.confusions(workers) if self.model.distinguishes_workers else None

    def confusions(self, workers: Ints) -> Floats:
        """(M, K, K) confusion matrices of workers by number (-1: an average one), also where all have the same."""
        K, M = self.answers.n_classes, len(workers)
        told = np.tile(np.arange(K, dtype=np.int32), M)
        logs = self.model.emission(self.params, self.answers.layout, np.repeat(workers, K).astype(np.int32), told)
        pi = np.exp(logs).reshape(M, K, K).transpose(0, 2, 1)
        return np.asarray(pi / pi.sum(2, keepdims=True))

    @cached_property
    def grouping(self) -> Grouping:
        """The groups of workers as arrays; an error where the model has none."""
        found = self.model.grouping(self.params)
        if found is None:
            raise ParameterError(f"{self.model.name} has no groups of workers. Fit 'groups'")
        return found

    @property
    def groups(self) -> pl.DataFrame:
        """Groups of workers who err alike, the largest first: group (from 1), share of the crowd, workers (expected),
        similarity of its confusion matrix to the identity (1: never wrong), entropy of a row (bits)."""
        return group_table(self.grouping)

    @property
    def members(self) -> pl.DataFrame:
        """Which group each worker is of: worker, group, probability."""
        return member_table(self.answers.workers, self.grouping.member)

    def group_confusion(self, group: int) -> pl.DataFrame:
        """The confusion matrix of a group, a row a true class."""
        found = self.grouping
        if isinstance(group, bool) or not isinstance(group, (int, np.integer)) or not 1 <= group <= len(found.share):
            raise ParameterError(f"no group {group!r}; they are numbered from 1 to {len(found.share)}")
        return self._matrix_table(found.matrices[group - 1])

    def assign(self, answers: Any, *, prior: Floats | None = None) -> Assignment:
        """Groups of answers that this fit has not seen, and of their workers. A worker not met before is taken from
        the shares of groups; one who was, from where the fit ended. `prior` (T, K) is what is known of their tasks
        before any answer (default: the shares of classes); `CrowdClassifier.assign` has it from features.

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
        if np.shape(prior) != shape:
            raise ParameterError(f"prior has shape {np.shape(prior)}; wanted is {shape}: tasks, classes")
        before = group_probabilities(self.grouping, places(self.answers.workers, new.workers))
        return Assignment(*assigned(self, recoded, np.asarray(prior), before), ignored)

    def explain(self, task: Any) -> Explanation:
        """Each answer's log-odds for the label against its strongest rival, and what would flip it."""
        return explain(self, task)

    def predict(self, answers: Any) -> Prediction:
        """Labels of new answers by the workers of this fit. A worker not met before is taken as an average one; an
        answer with a label not met before is ignored, and counted."""
        new = Labels.from_any(answers)
        self.model.refuse_weights(new)
        worker_of, label_of = places(self.answers.workers, new.workers), places(self.classes, new.classes)
        recoded, ignored = _recode(new, label_of, self.classes)
        worker = worker_of[recoded.layout.row_worker]
        Z = self.model.infer(self.params, self.answers.layout, recoded, worker)
        labels = label_table(recoded, Z, self.prevalence)
        return Prediction(labels, Z, int((worker_of < 0).sum()), ignored)


def _recode(new: Labels, label_of: Ints, classes: pl.Series) -> tuple[Labels, int]:
    """The new answers in the classes of the fit, and how many answers had to be left out."""
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
