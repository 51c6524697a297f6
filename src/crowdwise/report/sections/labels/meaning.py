"""What the probabilities mean: what they are made of, and how often they come true where labels are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ....acquisition import open_tasks
from ....acquisition.known import (
    COVERAGE,
    MAX_QUICK_ANSWERS,
    Judged,
    judged,
    known_needed,
    label_sets,
    n_known,
    reliability,
)
from ....result import LabelsResult
from ...registry import section
from ...text import many, percent, rounded

MIN_KNOWN = 20  # known tasks from which the diagram is drawn
VOTES = "Effective votes"
MANY_SHARED, FEW_SHARED = 0.75, 0.25  # evidence for shared errors


@dataclass(frozen=True)
class Fact:
    name: str
    text: str


class ReliabilityBin(NamedTuple):
    """Known tasks whose labels have similar probabilities."""

    probability: float  # mean
    right: float  # share that is right
    low: float  # its 90 % interval
    high: float
    tasks: int


@dataclass(frozen=True)
class Meaning:
    headline: str
    facts: list[Fact]
    bins_headline: str
    bins: list[ReliabilityBin]  # where labels are known

    @property
    def terms(self) -> Sequence[str]:
        votes = ("effective votes",) if any(fact.name == VOTES for fact in self.facts) else ()
        return (*votes, *(("gold",) if self.bins else ()))


@section(
    "labels", "meaning", order=35, nav="Probabilities", title="What the probabilities mean",
    intro="What a probability promises, why it has its value and, where labels are known, how often it comes true.",
    terms=("probability",),
)  # fmt: skip
def meaning(result: LabelsResult, *, coverage: float | None = None) -> Meaning | None:
    quick = coverage is not None or result.answers.n_answers <= MAX_QUICK_ANSWERS
    known = n_known(result) if quick else 0
    if result.answers.n_classes < 2 or not (open_tasks(result).any() or known >= MIN_KNOWN):
        return None
    calibrated = result.model.calibrate
    headline = (
        "Of the labels with a probability near 80\u202f%, about 80 in 100 should be right."
        if calibrated
        else "These are the probabilities of the model. On real data they are often too certain."
    )
    drawn = judged(result) if known >= MIN_KNOWN else None
    facts = [*_promise(result), *_reasons(result), *_sets(result, known, coverage or COVERAGE)]
    bins = [] if drawn is None else reliability(drawn)
    rows = [
        ReliabilityBin(rounded(b.probability), rounded(b.right), rounded(b.right_low), rounded(b.right_high), b.tasks)
        for b in bins
    ]
    return Meaning(headline, facts, "" if drawn is None else _checked(drawn), rows)


def _checked(found: Judged) -> str:
    p, right = float(found.probability.mean()), float(found.right.mean())
    return (
        f"Checked on {many(len(found.tasks), 'known task')}, judged as if their labels were not known: the mean "
        f"probability is {percent(p, 0)}, and {percent(right, 0)} of the labels are right."
    )


def _promise(result: LabelsResult) -> list[Fact]:
    if not result.model.calibrate:
        text = (
            "The posterior of the model, as in textbooks. The setting calibrate=True reports calibrated probabilities."
        )
        return [Fact("What is reported", text)]
    text = (
        "Probabilities are calibrated as on 18 real datasets whose truth is known. There, those of the default model "
        "were off by about 6 points on average. Errors that everybody makes cannot be seen."
    )
    return [Fact("What is reported", text)]


def _reasons(result: LabelsResult) -> list[Fact]:
    """Why these probabilities: shared errors, the weight of the vote, effective votes, copies."""
    facts, found = [], result.model.dependence(result.params)
    if found is not None:
        facts += [
            Fact("Shared errors", shared_errors(found.shared, found.seen)),
            Fact("Vote and model", _vote_and_model(found.anchor, found.vote)),
        ]
    if result.model.calibrate:
        effective, n = result.tasks["effective_votes"], result.answers.answers_per_task
        answered = n > 0
        if answered.any() and effective.null_count() < len(effective):
            worth = float(effective.to_numpy()[answered].mean())
            mean = float(n[answered].mean())
            facts.append(
                Fact(
                    VOTES,
                    f"A task has {mean:.1f} answers on average. They count as {worth:.1f} independent votes, since "
                    "workers tend to share errors" + (", and some copy each other." if _copies(result) else "."),
                )
            )
    if found is not None:
        facts.append(Fact("Copies", _copied(result)))
    return facts


def shared_errors(shared: float | None, seen: bool) -> str:
    """Return what the answers show about shared errors."""
    if shared is None:
        return (
            "Too few tasks have four answers to show whether workers share errors. The probabilities assume that they "
            "do, as real crowds do."
        )
    if seen and shared >= MANY_SHARED:
        return (
            "Disagreement gathers on some tasks, as it does if these mislead many workers: more answers from the same "
            "people will help less than they seem to."
        )
    if shared <= FEW_SHARED:
        return (
            "Disagreement is spread evenly over tasks, as if workers erred independently: the true figures may be "
            "better than shown."
        )
    if seen:
        return "Disagreement gathers on some tasks a little more than it would if workers erred independently."
    return "The answers do not show clearly whether workers share errors, so the probabilities are cautious."


def _vote_and_model(anchor: float, vote: tuple[float, float]) -> str:
    first = (
        f"While the model is fitted, the votes count for {percent(anchor, 0)} and the model's own estimates for "
        "the rest: the more errors are shared, the more the votes count."
        if anchor >= 0.005
        else "The model is fitted without regard to the votes."
    )
    low, high = vote
    if high == 0:
        return first
    share = percent(low, 0) if round(100 * low) == round(100 * high) else f"{percent(low, 0)} to {percent(high, 0)}"
    return f"{first} A reported probability is the model's, mixed with the share of votes, which counts for {share}."


def _copies(result: LabelsResult) -> bool:
    return len(result.model.clusters(result.params, result.answers.n_workers).rate) > 0


def _copied(result: LabelsResult) -> str:
    found = result.model.clusters(result.params, result.answers.n_workers)
    if not len(found.rate):
        return "No workers seem to copy each other."
    workers = int((np.asarray(found.of) >= 0).sum())
    groups = many(len(found.rate), "group")
    return f"{many(workers, 'worker')} in {groups} give the same answers as if copied. Each group shares one vote."


def _sets(result: LabelsResult, known: int, coverage: float) -> list[Fact]:
    if known < known_needed(coverage):
        return []
    free = result.answers.gold < 0
    sizes = label_sets(result, coverage).unique("task", maintain_order=True)["size"].to_numpy()[free]
    if not len(sizes):
        return []
    one = float((sizes == 1).mean())
    more = f", the others {sizes[sizes > 1].mean():.1f} on average" if one < 1 else ""
    text = (
        f"For sets that contain the true label of about {percent(coverage, 0)} of the tasks, {percent(one, 0)} of the "
        f"tasks have one possible label{more}. crowdwise.label_sets lists them; crowdwise aggregate writes sets.csv."
    )
    return [Fact("Label sets", text)]
