"""How often each worker recognises each class, by method, beside the truth where it is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ....answers.arguments import check_given
from ....metrics import Evaluation
from ....result import LabelsResult
from ...registry import section
from ...text import MAX_NAME_CHARS, percent, rounded, short

MAX_WORKERS_COMPARED = 300
MAX_CLASSES_DRAWN = 30
TRUTH = "truth"  # the method that is no estimate


@dataclass(frozen=True)
class Expert:
    """How often a worker gives a class when it is true."""

    worker: str
    label: int
    method: str  # a method, or TRUTH
    share: float


@dataclass(frozen=True)
class Expertise:
    headline: str
    methods: list[str]  # in the order to show; TRUTH comes first where it is known
    labels: list[int]  # classes that are drawn if they do not fit into one chart: the most frequent
    rows: list[Expert]


@section(
    "labels", "expertise", order=80, title="Workers by class", nav="Expertise",
    intro="How often each worker gives a class when it is true: estimated by each method, and counted where the truth "
          "is known.",
)  # fmt: skip
def expertise(result: LabelsResult, *, judged: Evaluation | None = None) -> Expertise | None:
    check_given("judged", judged, Evaluation, "methods compared by crowdwise.metrics.evaluate")
    if judged is None or not judged.skills:
        return None
    busiest = result.workers.sort("answers", descending=True, maintain_order=True)["worker"]
    place = {name: n for n, name in enumerate(busiest.head(MAX_WORKERS_COMPARED).to_list())}
    class_of = {name: k for k, name in enumerate(result.classes.to_list())}
    rows: list[Expert] = []
    first = next(iter(judged.skills.values()))
    with_truth = "true" in first.columns
    columns = [(TRUTH, "true")] * with_truth + [(name, "estimated") for name in judged.skills]
    for method, column in columns:
        table = judged.skills.get(method, first).filter(pl.col("worker").is_in(list(place))).drop_nulls(column)
        order = sorted(table.select("worker", "label", column).rows(), key=lambda row: place[row[0]])
        rows += [Expert(short(w, MAX_NAME_CHARS), class_of[label], method, rounded(share)) for w, label, share in order]
    if not rows:
        return None
    headline = f"The mean over workers and classes is {percent(float(np.mean([row.share for row in rows])))}."
    if with_truth:
        error = {name: _mean_error(table) for name, table in judged.skills.items()}
        best = min(error, key=lambda name: error[name])
        headline = f"The closest method, {best}, is off by {100 * error[best]:.1f} points on average."
    frequent = np.argsort(-result.prevalence, kind="stable")[:MAX_CLASSES_DRAWN]
    return Expertise(headline, [method for method, _ in columns], np.sort(frequent).tolist(), rows)


def _mean_error(table: pl.DataFrame) -> float:
    """Return the mean error of the estimates, weighted by answers."""
    both = table.drop_nulls("true")
    error = (both["estimated"] - both["true"]).abs().to_numpy()
    return float(np.average(error, weights=both["answers"].to_numpy())) if len(error) else 0.0
