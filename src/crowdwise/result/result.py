"""Result: everything that a fit says, whatever the model."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from ..answers import Labels, places
from ..errors import ParameterError
from ..kernels.layout import Floats, Ints, Layout, sort_answers
from ..rating import rate
from .explain import Explanation, explain
from .groups import Assignment, Grouping, assigned, group_table, member_table, so_far
from .tables import decide, label_table, task_table


class Model(Protocol):
    """What a result asks of the model that made it."""

    @property
    def name(self) -> str: ...
    @property
    def needs_features(self) -> bool: ...
    @property
    def tells_workers_apart(self) -> bool: ...
    @property
    def shares_truth(self) -> bool: ...
    @property
    def off(self) -> tuple[float, float]: ...
    def settings(self) -> dict[str, Any]: ...
    def emission(self, params: Any, layout: Layout, worker: Ints, label: Ints, task: Ints | None = None) -> Floats: ...
    def factors(self, params: Any, layout: Layout, worker: Ints, label: Ints, task: int) -> Floats: ...
    def pull(self, params: Any, layout: Layout, worker: Ints, label: Ints, task: int) -> Floats: ...
    def infer(self, params: Any, seen: Layout, answers: Labels, worker: Ints) -> Floats: ...
    def task_posterior(self, params: Any, layout: Layout, worker: Ints, label: Ints, task: int) -> Floats: ...
    def class_prior(self, params: Any, n_classes: int, task: int | None = None) -> Floats: ...
    def named(self, params: Any, layout: Layout, worker: Ints, task: Ints) -> Floats: ...
    def easiest(self, params: Any) -> Any: ...
    def difficulty(self, params: Any) -> Floats | None: ...
    def grouping(self, params: Any) -> Grouping | None: ...
    def answers_needed(self, n_classes: int) -> int: ...
    def fit(self, answers: Labels, run: Any = None) -> Any: ...
    def believed(self, params: Any, answers: Labels, posterior: Floats) -> tuple[Floats, float]: ...


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
    right: Floats  # (W,) a worker's answers by posteriors that have not seen them: sum of probabilities
    sure: Floats  # (W,) and of sums of squares: how sure those posteriors were
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
    def labels(self) -> pl.DataFrame:
        """task, label, probability, votes, tie, status."""
        return label_table(self.answers, self.posterior, self.prevalence)

    @cached_property
    def found(self) -> Ints:
        """(T,) number of the class found for each task; the most prevalent one where nothing is known."""
        label = decide(self.posterior, self.prevalence)[0]
        return np.where(self.answers.gold >= 0, self.answers.gold, label)

    @cached_property
    def workers(self) -> pl.DataFrame:
        """worker, answers, skill (chance of a right answer) with its 95 % interval low to high, and further ratings and
        flags: `cw.rate` says which."""
        return rate(self.answers, self)

    @cached_property
    def tasks(self) -> pl.DataFrame:
        """task, answers, entropy and vote_entropy (bits), disagreement, difficulty (null where the model has none)."""
        return task_table(self.answers, self.posterior, self.model.difficulty(self.params))

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know before trusting the labels, worst first."""
        from .warnings import found

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
    def believed(self) -> tuple[Floats, float]:
        """(T, K) the posterior before any hedge, and how much it counts in the one reported."""
        return self.model.believed(self.params, self.answers, self.posterior)

    @cached_property
    def average_confusion(self) -> Floats:
        """(K, K) confusion matrix of an average worker."""
        return np.asarray(self.confusions(np.array([-1], np.int32))[0])

    def matrices(self, workers: Ints) -> Floats | None:
        """(M, K, K) confusion matrices of workers by number; None where the model does not tell workers apart."""
        return self.confusions(workers) if self.model.tells_workers_apart else None

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
        similarity of its confusion matrix to the identity (1: never wrong), entropy of a row (nats)."""
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
        the shares of groups; one who was, from where the fit left him. `prior` (T, K) is what is known of their tasks
        before any answer (default: the shares of classes); `CrowdClassifier.assign` has it from features.

        >>> import crowdwise as cw
        >>> sim = cw.simulate.crowd("groups", tasks=200, workers=30, classes=3, seed=1)
        >>> result = cw.aggregate(sim.answers, "groups")
        >>> result.assign({"task": [1, 2], "worker": ["new", "new"], "label": ["c1", "c2"]}).workers.columns
        ['worker', 'group', 'probability']
        """
        new = answers if isinstance(answers, Labels) else Labels(answers)
        recoded, ignored = _recode(new, places(self.classes, new.classes), self.classes)
        shape = (new.n_tasks, len(self.classes))
        if prior is None:
            prior = np.broadcast_to(self.model.class_prior(self.params, shape[1]), shape)
        if np.shape(prior) != shape:
            raise ParameterError(f"prior has shape {np.shape(prior)}; wanted is {shape}: tasks, classes")
        before = so_far(self.grouping, places(self.answers.workers, new.workers))
        return Assignment(*assigned(self, recoded, np.asarray(prior), before), ignored)

    def explain(self, task: Any) -> Explanation:
        """Each answer's log-odds for the label against its strongest rival, and what would flip it."""
        return explain(self, task)

    def predict(self, answers: Any) -> Prediction:
        """Labels of new answers by the workers of this fit. A worker not met before is taken as an average one; an
        answer with a label not met before is ignored, and counted."""
        new = answers if isinstance(answers, Labels) else Labels(answers)
        worker_of, label_of = places(self.answers.workers, new.workers), places(self.classes, new.classes)
        recoded, ignored = _recode(new, label_of, self.classes)
        worker = worker_of[recoded.layout.row_worker]
        Z = self.model.infer(self.params, self.answers.layout, recoded, worker)
        labels = label_table(recoded, Z, self.prevalence)
        return Prediction(labels, Z, int((worker_of < 0).sum()), ignored)

    def report(self, path: str | Path, *, models: Sequence[str] | None = None, check: bool | None = None) -> Path:
        """Write one self-contained HTML page about this result, and return its path.

        `models` are those to compare with (default: all for small tables, none for large; () for none); `check` says
        whether the cost curve is checked by one more fit.
        """
        from ..report import write_report

        return write_report(self, path, models=models, check=check)

    def _repr_html_(self) -> str:
        """What a notebook shows: header, tiles and the best workers."""
        from ..report import notebook

        return notebook(self)

    def save(self, path: str | Path) -> Path:
        """Write this result to a folder (or a file ending in .crowdwise), whole or not at all."""
        from .store import write

        return write(self, Path(path))


def _recode(new: Labels, label_of: Ints, classes: pl.Series) -> tuple[Labels, int]:
    """The new answers in the classes of the fit, and how many answers had to be left out."""
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
