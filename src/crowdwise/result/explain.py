"""Why a task got its label, and what would flip it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ..answers.coding import place_of
from ..errors import DataError
from ..kernels.layout import Floats, Ints

if TYPE_CHECKING:
    from .labels import LabelsResult

MAX_ADDITIONS = 100  # additional answers tried to flip a label


@dataclass(frozen=True)
class Mixture:
    """What a calibrated probability is made of."""

    answers: int
    effective_votes: float  # independent votes that the answers are worth
    power: float  # of the model's probabilities: effective votes per vote
    model_weight: float
    model_probability: float  # of the label, by the model, after `power`
    vote_weight: float
    vote_share: float  # of the label, with one more vote for all classes together
    chance_weight: float  # weight of equal probabilities; 0 unless the crowd is hardly better than chance
    chance: float

    def __str__(self) -> str:
        parts = (
            (self.model_weight, self.model_probability, "model"),
            (self.vote_weight, self.vote_share, "vote"),
            (self.chance_weight, self.chance, "chance"),
        )
        terms = [f"{weight:.2f} x {value:.4f} ({of})" for weight, value, of in parts if weight >= 0.005]
        made = f"probability = {' + '.join(terms)}"
        if not self.model_weight:
            return made
        many = f"{self.answers} answer{'s' * (self.answers != 1)}"
        return (
            f"{many} count as {self.effective_votes:.1f} independent votes: log-odds of the model are multiplied by "
            f"{self.power:.2f}\n{made}"
        )


@dataclass(frozen=True)
class Explanation:
    """The log-odds of a task's label against the next most probable class, as a sum over answers."""

    task: Any
    label: Any
    rival: Any  # next most probable class; None if there is only one class
    probability: float
    prior: float  # log-odds before any answer
    answers: pl.DataFrame  # worker, label, log_odds: positive supports the label
    total: float  # prior plus all answers
    removals: list[Any] | None  # smallest set of workers whose answers must be removed to flip the label, if any
    additions: int | None  # additional answers of average workers for the rival that flip it, if any number does
    mixture: Mixture | None = None  # how model and vote make up the probability, if it is calibrated
    known: bool = False  # whether the label is gold

    @property
    def flip(self) -> str:
        """What would flip the label, as text."""
        if self.rival is None:
            return "there is only one class, so nothing can flip the label"
        if self.known:
            return "the label is known (gold), whatever the answers say"
        changes = []
        if self.removals is not None:
            answers = f"the answer{'s' * (len(self.removals) != 1)} of {', '.join(map(str, self.removals))}"
            changes.append(f"without {answers} the label would be different")
        if self.additions is not None:
            more = f"{self.additions} more answer{'s' * (self.additions != 1)} {self.rival!r}"
            changes.append(f"{more} from average workers would change it")
        return "; ".join(changes) if changes else f"no answers from average workers would change it to {self.rival}"

    def __str__(self) -> str:
        head = f"task {self.task}: {self.label}, probability {self.probability:.4f}"
        if self.rival is None:
            return f"{head}\n{self.flip}"
        made = "" if self.mixture is None else f"{self.mixture}\n"
        rows = "\n".join(f"  {row[0]!s:<20} {row[1]!s:<16} {row[2]:+8.2f}" for row in self.answers.iter_rows())
        return (
            f"{head}\nlog-odds for {self.label} against {self.rival}:\n"
            f"  {'before any answer':<37} {self.prior:+8.2f}\n{rows}\n"
            f"  {'sum':<37} {self.total:+8.2f}\n{made}{self.flip}"
        )


def explain(result: LabelsResult, task: Any) -> Explanation:
    """Return each answer's log-odds for the label against the next most probable class, and what would flip it."""
    answers, layout = result.answers, result.answers.layout
    i, K = answers.task_number(task), answers.n_classes
    rows = layout.pair[layout.task_ptr[i] : layout.task_ptr[i + 1]]
    worker, label = layout.row_worker[rows], layout.row_label[rows]
    named = [answers.workers[worker].alias("worker"), answers.classes[label].alias("label")]
    if answers.weighted:
        raise DataError("explain does not support answers with weights, which this fit used")
    q, name = result.posterior[i].astype(np.float64), result.labels[i, "label"]
    first = int(q.argmax()) if name is None else place_of(answers.classes, name) or 0
    if K == 1:
        table = pl.DataFrame([*named, pl.Series("log_odds", np.zeros(len(rows)))])
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

    def label_of(workers: Ints, labels: Ints) -> int:
        return int(result.model.task_posterior(result.params, layout, workers, labels, i).argmax())

    removed = None if known else _removals(label_of, worker, label, pull, first)
    return Explanation(
        task=task,
        label=name,
        rival=answers.classes[second],
        probability=float(q[first]),
        prior=before,
        answers=pl.DataFrame([*named, pl.Series("log_odds", odds)]).sort(
            "log_odds", "worker", descending=[True, False]
        ),
        total=before + float(odds.sum()),
        removals=None if removed is None else answers.workers[worker[removed]].to_list(),
        additions=None if known else _additions(label_of, worker, label, second),
        mixture=None if known or not len(rows) else _mixture(result, worker, label, i, first),
        known=known,
    )


def _mixture(result: LabelsResult, worker: Ints, label: Ints, i: int, first: int) -> Mixture | None:
    if not result.model.calibrate:
        return None
    parts = result.model.task_parts(result.params, result.answers.layout, worker, label, i)
    return Mixture(
        answers=len(label),
        effective_votes=parts.effective_votes,
        power=parts.power,
        model_weight=parts.model,
        model_probability=float(parts.posterior[first]),
        vote_weight=parts.vote,
        vote_share=float(parts.shares[first]),
        chance_weight=max(0.0, 1 - parts.model - parts.vote),
        chance=1 / len(parts.shares),
    )


def _removals(
    label_of: Callable[[Ints, Ints], int], worker: Ints, label: Ints, pull: Floats, first: int
) -> Ints | None:
    """Return the fewest answers whose removal changes the label. For each rival class, the answers that oppose it most
    are removed first."""
    fewest: Ints | None = None
    for rival in range(pull.shape[1]):
        strongest = np.argsort(pull[:, rival] - pull[:, first], kind="stable")
        for count in range(1, len(label) if fewest is None else len(fewest)):
            kept = np.sort(strongest[count:])
            if rival != first and label_of(worker[kept], label[kept]) != first:
                fewest = np.sort(strongest[:count])
                break
    return fewest


def _additions(label_of: Callable[[Ints, Ints], int], worker: Ints, label: Ints, second: int) -> int | None:
    """Return how many additional answers of average workers make the second class the label."""
    for count in range(1, MAX_ADDITIONS + 1):
        average = np.full(count, -1, np.int32)
        if label_of(np.append(worker, average), np.append(label, np.full(count, second, np.int32))) == second:
            return count
    return None
