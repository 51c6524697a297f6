"""The sections on classes: how often each is told and seems true, and which get mixed up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels.layout import Floats
from ..result import LabelsResult
from .words import percent, quoted, rounded

CLASSES = 1000  # up to which classes are set against each other


@dataclass(frozen=True)
class ClassShare:
    """How often a class is told, and how often it seems true."""

    label: int
    votes: float
    truth: float


@dataclass(frozen=True)
class MixUp:
    """A class told in place of another."""

    truth: int
    said: int
    answers: float  # expected
    share: float  # of the answers to tasks of this truth


@dataclass(frozen=True)
class MixUps:
    says: str
    rows: list[MixUp]


def _votes_by_class(result: LabelsResult) -> Floats:
    layout = result.answers.layout
    votes = np.bincount(layout.row_label, np.diff(layout.row_ptr), minlength=layout.n_classes)
    return np.asarray(votes / max(votes.sum(), 1))


def prevalence(result: LabelsResult) -> list[ClassShare]:
    votes = _votes_by_class(result)
    order = np.argsort(-result.prevalence, kind="stable")
    rows = [ClassShare(int(k), rounded(votes[k]), rounded(result.prevalence[k])) for k in order[:100].tolist()]
    return rows


def prevalence_says(result: LabelsResult) -> str:
    votes, names = _votes_by_class(result), result.classes
    gap = votes - result.prevalence
    if len(names) < 2:
        return "There is one class only."
    over, under = int(gap.argmax()), int(gap.argmin())
    if gap[over] < 0.005:
        return "Every class is told about as often as it seems true."
    return (
        f"{quoted(names[over])} is told more often than it seems true ({percent(votes[over])} against "
        f"{percent(result.prevalence[over])}), {quoted(names[under])} less often ({percent(votes[under])} against "
        f"{percent(result.prevalence[under])})."
    )


def class_counts(result: LabelsResult) -> Floats | None:
    """(K, K) expected answers by true class and label told; None with very many classes."""
    layout, K = result.answers.layout, result.answers.n_classes
    if K > CLASSES:
        return None
    counts = result.answers.kernels.confusion_counts(layout, result.posterior, 1)
    return np.stack([np.bincount(layout.row_label, counts[:, k], minlength=K) for k in range(K)])


def mixups(counts: Floats | None, result: LabelsResult) -> MixUps:
    if counts is None:
        return MixUps(f"There are too many classes ({result.answers.n_classes}) to set against each other.", [])
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    total = counts.sum(1)
    pairs = np.argsort(-wrong, axis=None, kind="stable")[:15]
    rows = [
        MixUp(int(k), int(told), rounded(wrong[k, told], 1), rounded(wrong[k, told] / max(total[k], 1e-9)))
        for k, told in zip(*np.unravel_index(pairs, wrong.shape), strict=True)
        if wrong[k, told] >= 0.5
    ]
    if not rows:
        return MixUps("Hardly any class is told in place of another.", [])
    first, names = rows[0], result.classes
    said, truth = quoted(names[first.said]), quoted(names[first.truth])
    says = (
        f"Most often {said} is told where the truth seems to be {truth}: "
        f"about {first.answers:.0f} answers, {percent(first.share, 0)} of those to such tasks."
    )
    return MixUps(says, rows)
