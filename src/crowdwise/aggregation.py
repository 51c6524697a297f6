"""One verb for every kind of answers."""

from __future__ import annotations

from typing import Any, overload

from .answers import Points
from .engine import Run
from .labels import DEFAULT, MODELS
from .labels import aggregate as of_labels
from .labels import model as label_model
from .points import DEFAULT as POINTS_DEFAULT
from .points import POINT_MODELS, PointsModel, point_model
from .result import PointsResult, Result


def model(name: str, /, **settings: Any) -> Any:
    """A model of labels or of clicks by its name, with hyperparameters.

    >>> model("dawid-skene", smoothing=0.1).settings()["smoothing"]
    0.1
    >>> model("click-mixture", objects=4).objects
    4
    """
    return point_model(name, **settings) if name in POINT_MODELS else label_model(name, **settings)


@overload
def aggregate(answers: Points, name: str = ..., /, *, run: Run | None = ..., **settings: Any) -> PointsResult: ...
@overload
def aggregate(answers: Any, name: str = ..., /, *, run: Run | None = ..., **settings: Any) -> Result: ...
def aggregate(
    answers: Any, name: str | None = None, /, *, run: Run | None = None, **settings: Any
) -> Result | PointsResult:
    """Find the truth behind answers: with the default model of their kind, or one by name with its hyperparameters.

    `answers` is a `Labels`, a `Points`, or anything `Labels` takes; `run` says seed, threads and precision.

    >>> import crowdwise as cw
    >>> frame = {"task": [1, 1, 1, 2, 2], "worker": ["a", "b", "c", "a", "b"], "label": ["x", "x", "y", "y", "y"]}
    >>> cw.aggregate(frame, "majority-vote").labels["label"].to_list()
    ['x', 'y']
    """
    if isinstance(answers, Points):
        return point_model(name or POINTS_DEFAULT, **settings).fit(answers, run)
    if name in POINT_MODELS:
        return point_model(name, **settings).fit(answers, run)  # which says that it wants Points
    return of_labels(answers, name or DEFAULT, run=run, **settings)


__all__ = ["MODELS", "PointsModel", "aggregate", "model"]
