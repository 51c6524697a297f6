"""One verb for every kind of answers."""

from __future__ import annotations

from typing import Any, overload

from .answers import Pairs, Points
from .engine import Run
from .errors import ParameterError
from .labels import DEFAULT, MODELS
from .labels import aggregate as of_labels
from .labels import model as label_model
from .pairs import DEFAULT as PAIRS_DEFAULT
from .pairs import PAIR_MODELS, PairsModel, pair_model
from .points import DEFAULT as POINTS_DEFAULT
from .points import POINT_MODELS, PointsModel, point_model
from .result import PairsResult, PointsResult, Result


def model(name: str, /, **settings: Any) -> Any:
    """A model of labels, of clicks or of pairs by its name, with hyperparameters.

    >>> model("dawid-skene", smoothing=0.1).settings()["smoothing"]
    0.1
    >>> model("click-mixture", objects=4).objects
    4
    """
    if name in PAIR_MODELS:
        return pair_model(name, **settings)
    return point_model(name, **settings) if name in POINT_MODELS else label_model(name, **settings)


@overload
def aggregate(answers: Points, name: str = ..., /, *, run: Run | None = ..., **settings: Any) -> PointsResult: ...
@overload
def aggregate(
    answers: Pairs, name: str = ..., /, *, features: Any = ..., run: Run | None = ..., **settings: Any
) -> PairsResult: ...
@overload
def aggregate(answers: Any, name: str = ..., /, *, run: Run | None = ..., **settings: Any) -> Result: ...
def aggregate(
    answers: Any, name: str | None = None, /, *, features: Any = None, run: Run | None = None, **settings: Any
) -> Result | PointsResult | PairsResult:
    """Find the truth behind answers: with the default model of their kind, or one by name with its hyperparameters.

    `answers` is a `Labels`, a `Points`, a `Pairs`, or anything `Labels` takes; `run` says seed, threads and precision.
    `features` are those of the items of pairs, a tuple of ids and rows; labels with features go to `CrowdClassifier`.

    >>> import crowdwise as cw
    >>> frame = {"task": [1, 1, 1, 2, 2], "worker": ["a", "b", "c", "a", "b"], "label": ["x", "x", "y", "y", "y"]}
    >>> cw.aggregate(frame, "majority-vote").labels["label"].to_list()
    ['x', 'y']
    """
    if isinstance(answers, Pairs) or name in PAIR_MODELS:
        return pair_model(name or PAIRS_DEFAULT, **settings).fit(answers, features, run)
    if features is not None:
        raise ParameterError("features= goes with pairs; of labels with features learn crowdwise.CrowdClassifier")
    if isinstance(answers, Points):
        return point_model(name or POINTS_DEFAULT, **settings).fit(answers, run)
    if name in POINT_MODELS:
        return point_model(name, **settings).fit(answers, run)  # which says that it wants Points
    return of_labels(answers, name or DEFAULT, run=run, **settings)


__all__ = ["MODELS", "PairsModel", "PointsModel", "aggregate", "model"]
