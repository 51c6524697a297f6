"""Every worker side by its name, the methods that papers compare, and several sides fitted to the same answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import labels  # noqa: F401 - its models register
from ..answers.rows import Rows
from ..engine import Run
from ..engine.registry import MODELS, discover, make
from ..errors import ParameterError, nearest
from ..labels.model import LabelModel
from ..result import LabelsResult

if TYPE_CHECKING:
    from .estimator import CrowdClassifier

discover("crowdwise.learn")

# The comparison of Mena and Nanculef, 2019, with the settings of their runs.
PUBLISHED: dict[str, tuple[str, dict[str, Any]]] = {
    "softMV": ("soft-vote", {}),
    "hardMV": ("majority-vote", {}),
    "DL-DS": ("dawid-skene", {"smoothing": 0.0}),
    "DL-EM": ("dl-em", {"early": 0.03, "max_iter": 50}),
    "CMM": ("cmm", {"groups": 3, "early": 0.03, "max_iter": 50}),
    "Ideal": ("ideal", {}),
}
BASELINES = ("majority-vote", "soft-vote", "confusion")


def by_name(name: str, /, **settings: Any) -> LabelModel:
    """A worker side, a model of answers alone or a published method, with hyperparameters. Where a side and a model
    of answers alone have one name, it is the side."""
    sides, alone = MODELS["learn"], MODELS["labels"]
    if not isinstance(name, str) or name not in {**alone, **sides, **PUBLISHED}:
        names = f"{', '.join(sides)}, of answers alone {', '.join(sorted(alone.keys() - sides))}"
        hint = nearest(str(name), [*alone, *sides, *PUBLISHED])
        raise ParameterError(f"workers is {name!r}; it can be {names}, or as published {', '.join(PUBLISHED)}.{hint}")
    name, usual = PUBLISHED.get(name, (name, {}))
    return make(sides.get(name) or alone[name], {**usual, **settings})  # type: ignore[return-value]


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
    from sklearn.base import clone

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
