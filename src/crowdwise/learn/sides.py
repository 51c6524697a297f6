"""Find a worker side by name, the published methods, and fits of several sides to the same answers."""

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

# The methods compared by Mena and Nanculef (2019), with their hyperparameters.
PUBLISHED: dict[str, tuple[str, dict[str, Any]]] = {
    "softMV": ("soft-vote", {}),
    "hardMV": ("majority-vote", {"ties": "first"}),  # the rule of the authors' code
    "DL-DS": ("dawid-skene", {"smoothing": 0.0}),
    "DL-EM": ("dl-em", {"early": 0.03, "max_iter": 50}),
    "CMM": ("cmm", {"groups": 3, "early": 0.03, "max_iter": 50}),
    "Ideal": ("ideal", {}),
}
BASELINES = ("majority-vote", "soft-vote", "confusion")


def by_name(name: str, /, **settings: Any) -> LabelModel:
    """Return a worker side, a model of labels or a published method with the given hyperparameters.

    If a worker side and a model of labels have the same name, the worker side is returned.
    """
    sides, labels_only = MODELS["learn"], MODELS["labels"]
    if not isinstance(name, str) or name not in {**labels_only, **sides, **PUBLISHED}:
        names = (
            f"a worker side ({', '.join(sides)}), a model of labels ({', '.join(sorted(labels_only.keys() - sides))})"
        )
        hint = nearest(name, [*labels_only, *sides, *PUBLISHED])
        raise ParameterError(
            f"workers is {name!r}; it can be {names} or a published method ({', '.join(PUBLISHED)}).{hint}"
        )
    name, defaults = PUBLISHED.get(name, (name, {}))
    return make(sides.get(name) or labels_only[name], {**defaults, **settings})  # type: ignore[return-value]


def rivals(
    model: CrowdClassifier,
    X: Any,
    rows: Rows,
    others: Sequence[str] = BASELINES,
    *,
    run: Run | None = None,
    watch: Callable[[str], None] | None = None,
) -> dict[str, LabelsResult]:
    """Fit `model` and the worker sides `others` without known labels; return the results by name, `model` first."""
    from sklearn.base import clone

    without_gold = Rows(rows.answers.with_gold(None), rows.tasks, rows.number, rows.whole)
    found = {}
    for each in (model.workers, *others):
        made = clone(model).set_params(workers=each)
        name = each if isinstance(each, str) else each.name
        if name not in found:  # the first is the model itself
            if watch is not None:
                watch(name)
            found[name] = made.fit(X, without_gold, run=run).result_
    return found
