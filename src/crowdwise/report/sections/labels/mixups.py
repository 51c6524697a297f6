"""Pairs of classes that are mixed up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....kernels.layout import Floats
from ....result import LabelsResult
from ...registry import once_per_result, section
from ...text import many, percent, quoted, rounded

MAX_CLASSES_COMPARED = 1000
MAX_PAIRS_SHOWN = 15
MIN_ANSWERS = 0.5  # expected, of a pair or a cell that is shown


@dataclass(frozen=True)
class MixUp:
    """A class that is labelled as another."""

    truth: int
    given: int
    answers: float  # expected
    share: float  # of the answers to tasks of this true class


@dataclass(frozen=True)
class MixUps:
    headline: str
    rows: list[MixUp]


@once_per_result
def class_counts(result: LabelsResult) -> Floats | None:
    """(K, K) expected answers by true class and label given; None with very many classes."""
    layout, K = result.answers.layout, result.answers.n_classes
    if K > MAX_CLASSES_COMPARED:
        return None
    counts = result.answers.kernels.confusion_counts(layout, result.posterior, 1)
    return np.stack([np.bincount(layout.row_label, counts[:, k], minlength=K) for k in range(K)])


@section(
    "labels", "mixups", order=40, nav="Mix-ups", title="Classes that are mixed up",
    intro="The estimated true class, and the label given in its place. The pairs at the top need a clearer "
          "instruction.",
)  # fmt: skip
def mixups(result: LabelsResult) -> MixUps | None:
    counts = class_counts(result)
    if counts is None:
        return None
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    total = counts.sum(1)
    pairs = np.argsort(-wrong, axis=None, kind="stable")[:MAX_PAIRS_SHOWN]
    rows = [
        MixUp(int(k), int(given), rounded(wrong[k, given], 1), rounded(wrong[k, given] / max(total[k], 1e-9)))
        for k, given in zip(*np.unravel_index(pairs, wrong.shape), strict=True)
        if wrong[k, given] >= MIN_ANSWERS
    ]
    if not rows:
        return None
    first, names = rows[0], result.classes
    answers = many(round(first.answers), "answer")
    headline = (
        f"The most frequent mix-up: tasks of class {quoted(names[first.truth])} labelled as "
        f"{quoted(names[first.given])} (about {answers}, {percent(first.share, 0)} of the answers to such tasks)."
    )
    return MixUps(headline, rows)
