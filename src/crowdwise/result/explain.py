"""Why a task got its label, and what would flip it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ..errors import DataError
from ..kernels.layout import Floats, Ints

if TYPE_CHECKING:
    from .labels import LabelsResult

MOST = 100  # answers that are tried before saying that none would do


@dataclass(frozen=True)
class Explanation:
    """A task's label against its strongest rival, as a sum of log-odds."""

    task: Any
    label: Any
    rival: Any  # None when there is one class only
    probability: float
    prior: float  # log-odds before any answer
    answers: pl.DataFrame  # worker, label, log_odds: positive speaks for the label
    total: float  # prior plus all answers
    removals: list[Any] | None  # workers whose answers, taken away, flip the label: as few as can be; None: none do
    additions: int | None  # answers of average workers for the rival that flip it; None: none would

    @property
    def flip(self) -> str:
        """What would flip the label, in words."""
        if self.rival is None:
            return "there is only one class, so nothing can flip the label"
        said = []
        if self.removals is not None:
            said.append(f"without the answer(s) of {', '.join(map(str, self.removals))} the label would be another")
        if self.additions is not None:
            said.append(f"{self.additions} more answer(s) {self.rival} by average workers would flip it")
        return "; ".join(said) if said else f"no answers by average workers would make it {self.rival}"

    def __str__(self) -> str:
        head = f"task {self.task}: {self.label}, probability {self.probability:.4f}"
        if self.rival is None:
            return f"{head}\n{self.flip}"
        rows = "\n".join(f"  {row[0]!s:<20} {row[1]!s:<16} {row[2]:+8.2f}" for row in self.answers.iter_rows())
        return (
            f"{head}\nlog-odds for {self.label} against {self.rival}:\n"
            f"  {'before any answer':<37} {self.prior:+8.2f}\n{rows}\n"
            f"  {'sum':<37} {self.total:+8.2f}\n{self.flip}"
        )


def explain(result: LabelsResult, task: Any) -> Explanation:
    """Each answer's log-odds for the label against its strongest rival, and what would flip it."""
    answers, layout = result.answers, result.answers.layout
    i, K = answers.task_number(task), answers.n_classes
    rows = layout.pair[layout.task_ptr[i] : layout.task_ptr[i + 1]]
    worker, label = layout.row_worker[rows], layout.row_label[rows]
    who, said = answers.workers[worker].alias("worker"), answers.classes[label].alias("label")
    if answers.weighted:
        raise DataError("explain does not know the weights of answers, which this fit has counted")
    q, name = result.posterior[i].astype(np.float64), result.labels[i, "label"]
    first = int(q.argmax()) if name is None else int(answers.classes.index_of(name) or 0)
    if K == 1:
        table = pl.DataFrame([who, said, pl.Series("log_odds", np.zeros(len(rows)))])
        return Explanation(task, name, None, float(q[0]), 0.0, table, 0.0, None, None)
    factors = result.model.factors(result.params, layout, worker, label, i)
    prior = np.log(np.maximum(result.model.class_prior(result.params, K, i), 1e-300))
    scores = factors.sum(0) + prior
    scores[first] = -np.inf
    second = int(scores.argmax())
    odds = factors[:, first] - factors[:, second]
    before = float(prior[first] - prior[second])
    known = bool(answers.gold[i] >= 0)
    pull = result.model.pull(result.params, layout, worker, label, i)

    def label_of(who: Ints, what: Ints) -> int:
        return int(result.model.task_posterior(result.params, layout, who, what, i).argmax())

    gone = None if known else _removals(label_of, worker, label, pull, first)
    return Explanation(
        task=task,
        label=name,
        rival=answers.classes[second],
        probability=float(q[first]),
        prior=before,
        answers=pl.DataFrame([who, said, pl.Series("log_odds", odds)]).sort(
            "log_odds", "worker", descending=[True, False]
        ),
        total=before + float(odds.sum()),
        removals=None if gone is None else answers.workers[worker[gone]].to_list(),
        additions=None if known else _additions(label_of, worker, label, second),
    )


def _removals(
    label_of: Callable[[Ints, Ints], int], worker: Ints, label: Ints, pull: Floats, first: int
) -> Ints | None:
    """The fewest answers that must go until the label is another: against each rival, its strongest opponents first."""
    fewest: Ints | None = None
    for rival in range(pull.shape[1]):
        strongest = np.argsort(pull[:, rival] - pull[:, first], kind="stable")
        for gone in range(1, len(label) if fewest is None else len(fewest)):
            kept = np.sort(strongest[gone:])
            if rival != first and label_of(worker[kept], label[kept]) != first:
                fewest = np.sort(strongest[:gone])
                break
    return fewest


def _additions(label_of: Callable[[Ints, Ints], int], worker: Ints, label: Ints, second: int) -> int | None:
    """How many answers of average workers for the rival make it the label."""
    for more in range(1, MOST + 1):
        strangers = np.full(more, -1, np.int32)
        if label_of(np.append(worker, strangers), np.append(label, np.full(more, second, np.int32))) == second:
            return more
    return None
