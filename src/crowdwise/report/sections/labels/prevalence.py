"""How often each class is given, and how often it is estimated to be true."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....result import LabelsResult
from ...registry import section
from ...text import percent, quoted, rounded

MAX_CLASSES_LISTED = 100
MIN_GAP = 0.005  # between the two shares of a class that is worth a sentence


@dataclass(frozen=True)
class ClassShare:
    """The share of a class in the answers, and in the estimated truth."""

    label: int
    votes: float
    truth: float


@dataclass(frozen=True)
class Prevalence:
    headline: str
    rows: list[ClassShare]  # most frequent first


@section(
    "labels", "prevalence", order=10, nav="Classes", title="Class frequencies: answers and estimated truth",
    intro="How often workers give each class, and how often it is estimated to be true. A gap means that workers "
          "overuse a class.",
    terms=("answer",),
)  # fmt: skip
def prevalence(result: LabelsResult) -> Prevalence | None:
    if len(result.classes) < 2:
        return None
    layout = result.answers.layout
    votes = np.bincount(layout.row_label, np.diff(layout.row_ptr), minlength=layout.n_classes)
    votes = votes / max(votes.sum(), 1)
    order = np.argsort(-result.prevalence, kind="stable")[:MAX_CLASSES_LISTED].tolist()
    rows = [ClassShare(k, rounded(votes[k]), rounded(result.prevalence[k])) for k in order]
    gap = votes - result.prevalence
    if gap.max() < MIN_GAP:
        return Prevalence("Every class is given about as often as it is estimated to be true.", rows)
    over, under = (
        f"{quoted(result.classes[k])} {how} ({percent(votes[k])} of the answers, {percent(result.prevalence[k])} "
        "of the tasks)"
        for k, how in ((int(gap.argmax()), "is overused"), (int(gap.argmin()), "is underused"))
    )
    return Prevalence(f"{over}; {under}.", rows)
