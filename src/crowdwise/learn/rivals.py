"""One classifier with several worker sides, on answers whose truth is known and not shown to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sklearn.base import clone

from ..answers.rows import Rows
from ..engine import Run
from ..result import LabelsResult
from .estimator import CrowdClassifier

BASELINES = ("majority-vote", "soft-vote", "confusion")


def rivals(
    model: CrowdClassifier,
    X: Any,
    rows: Rows,
    others: Sequence[str] = BASELINES,
    *,
    run: Run | None = None,
    watch: Callable[[str], None] | None = None,
) -> dict[str, LabelsResult]:
    """Results by the name of their worker side, that of `model` first; none has seen a known label."""
    open_ = Rows(rows.answers.with_gold(None), rows.tasks, rows.number, rows.whole)
    found = {}
    for each in (model.workers, *others):
        made = clone(model).set_params(workers=each)
        name = each if isinstance(each, str) else each.name
        if name not in found:  # the first is the model itself
            if watch is not None:
                watch(name)
            found[name] = made.fit(X, open_, run=run).result_
    return found
