"""Models of answers that are labels, one file each. Adding a file that registers a class is all it takes."""

from __future__ import annotations

from typing import Any

from ..answers import Labels
from ..engine import LabelModel, Run, make
from ..result import Result
from .registry import DEFAULT, MODELS, discover, register

discover()


def model(name: str, /, **settings: Any) -> LabelModel:
    """A model by its name, with hyperparameters.

    >>> model("dawid-skene", smoothing=0.1).settings()["smoothing"]
    0.1
    """
    return make(MODELS, name, settings)


def aggregate(answers: Any, name: str = DEFAULT, /, *, run: Run | None = None, **settings: Any) -> Result:
    """Find the truth behind answers: with the default model, or one by name with its hyperparameters.

    `answers` is a `Labels` or anything `Labels` takes; `run` says seed, threads and precision.

    >>> import crowdwise as cw
    >>> frame = {"task": [1, 1, 1, 2, 2], "worker": ["a", "b", "c", "a", "b"], "label": ["x", "x", "y", "y", "y"]}
    >>> cw.aggregate(frame, "majority-vote").labels["label"].to_list()
    ['x', 'y']
    """
    chosen = model(name, **settings)
    return chosen.fit(answers if isinstance(answers, Labels) else Labels(answers), run)


__all__ = ["DEFAULT", "MODELS", "aggregate", "model", "register"]
