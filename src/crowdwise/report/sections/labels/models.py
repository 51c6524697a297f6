"""Other models on the same answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from ....answers.arguments import check_given
from ....errors import ParameterError
from ....result import LabelsResult
from ...registry import section
from ...text import count, many, rounded


@dataclass(frozen=True)
class ModelRow:
    model: str
    differs: int  # labels that differ from those of this result
    accuracy: float | None
    log_loss: float | None
    iterations: int
    converged: bool
    seconds: float


@dataclass(frozen=True)
class Models:
    headline: str
    rows: list[ModelRow]  # this result first

    @property
    def terms(self) -> Sequence[str]:
        return ("gold",) if any(row.accuracy is not None for row in self.rows) else ()


COMPARED = ("model", "differs", "accuracy", "log_loss", "iterations", "converged", "seconds")


@section(
    "labels", "models", order=120, title="Models compared", nav="Models",
    intro="How labels and fit differ between models.",
    terms=("iteration",),
)  # fmt: skip
def models(result: LabelsResult, *, comparison: pl.DataFrame | None = None) -> Models | None:
    """`comparison` is the frame of `crowdwise.compare(answers, models, folds=0, against=result)`."""
    check_given("comparison", comparison, pl.DataFrame, "the frame of crowdwise.compare(answers, models)")
    if comparison is None or comparison.is_empty():
        return None
    lost = [name for name in COMPARED if name not in comparison.columns]
    if lost:
        raise ParameterError(f"comparison has no column {lost[0]!r}; give the frame of crowdwise.compare")
    others = [
        ModelRow(
            row["model"], row["differs"], rounded(row["accuracy"]), rounded(row["log_loss"]), row["iterations"],
            row["converged"], rounded(row["seconds"], 3),
        )
        for row in comparison.iter_rows(named=True)
        if row["model"] != result.model.name
    ]  # fmt: skip
    if not others:
        return None
    seconds = rounded(result.seconds, 3)
    own = ModelRow(result.model.name, 0, None, None, result.trace.height, result.converged, seconds)
    most = max(others, key=lambda row: row.differs)
    headline = f"The labels of {most.model} differ on {count(most.differs)} of {many(result.answers.n_tasks, 'task')}"
    headline += "; no other model differs on more." if len(others) > 1 else "."
    if (result.answers.gold >= 0).any():
        headline += " The other models were fitted without gold and are scored on it."
    return Models(headline, [own, *others])
