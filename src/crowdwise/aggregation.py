"""`aggregate` for every kind of answers, and the list of all models."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import polars as pl

from .answers import KINDS, Answers, options_of, recognise
from .answers.arguments import checked
from .answers.frames import to_frame
from .discovery import PACKAGES
from .engine import Model, Run, registry
from .errors import ParameterError, nearest


def _discover() -> None:
    for package in PACKAGES:
        registry.discover(f"{__package__}.{package}")


def model_class(name: str, kind: str | None = None) -> type[Model[Any, Any]]:
    """Return a model class by its name, of one kind or of any."""
    _discover()
    return registry.find(name, kind)


def registered(kind: str) -> list[str]:
    """Return the names of all models of a kind."""
    _discover()
    return sorted(registry.MODELS[kind])


@checked
def model(name: str, /, **settings: Any) -> Any:
    """Return a model by its name, with hyperparameters.

    >>> model("dawid-skene", smoothing=0.1).settings()["smoothing"]
    0.1
    >>> model("click-mixture", objects=4).objects
    4
    """
    return registry.make(model_class(name), settings)


@checked
def models(kind: str | None = None) -> pl.DataFrame:
    """List all models, or those of one kind of answers: name, kind, description, features (none, optional or required),
    extras (optional libraries that it needs) and default (whether it is the default model of its kind).

    >>> models("points")["name"].to_list()
    ['click-mixture', 'dbscan', 'fuzzy-c-means', 'hdbscan', 'k-means']
    """
    _discover()
    if kind is not None and kind not in registry.MODELS:
        known = ", ".join(registry.MODELS)
        raise ParameterError(f"no kind {kind!r}; there are {known}.{nearest(kind, registry.MODELS)}")
    rows = [
        (name, each, found.description, found.features, ", ".join(found.extras), registry.DEFAULTS.get(each) == name)
        for each, known in registry.MODELS.items()
        if kind in (None, each)
        for name, found in sorted(known.items())
    ]
    return pl.DataFrame(rows, ["name", "kind", "description", "features", "extras", "default"], orient="row")


@checked
def aggregate(
    answers: Any,
    model: str | type[Model[Any, Any]] | Model[Any, Any] | None = None,
    /,
    *,
    features: Any = None,
    run: Run | None = None,
    **options: Any,
) -> Any:
    """Estimate the truth from answers, with the default model of their kind or with another.

    `answers` are `Labels`, `Points` or `Pairs`, or a frame with one row per answer, whose kind is that of `model` or
    recognised by its columns. `model` is a name, a class or an instance; `options` are its hyperparameters and, for a
    frame, the options for reading it (`label="verdict"`). `features` of the items of pairs are a tuple of ids and rows.
    `run` sets seed, threads and precision.

    >>> import crowdwise as cw
    >>> frame = {"task": [1, 1, 1, 2, 2], "worker": ["a", "b", "c", "a", "b"], "verdict": ["x", "x", "y", "y", "y"]}
    >>> cw.aggregate(frame, "majority-vote", label="verdict").labels["label"].to_list()
    ['x', 'y']
    """
    ready = isinstance(answers, Answers)
    if not ready and model is None:
        answers = to_frame(answers)  # once: a reader can be read only once
    kind = answers.kind if ready else kind_of(answers.columns, options) if model is None else None
    chosen, reading = chosen_model(kind, model, options, reads=not ready)
    if ready and reading:
        raise ParameterError(
            f"{', '.join(reading)} cannot be used: the answers are read already, and the model has its settings"
        )
    if not ready and reading:
        answers = chosen.answers_type(answers, **reading)  # type: ignore[call-arg]
    return chosen.fit(answers, features=features, run=run)


def chosen_model(
    kind: str | None, model: Any, options: dict[str, Any], *, reads: bool = True
) -> tuple[Model[Any, Any], dict[str, Any]]:
    """Return the model, by default that of the kind, and the options for reading a frame; other options are settings of
    the model, as all are if no frame is read (`reads`)."""
    chosen = _chosen(kind, model)
    if isinstance(chosen, Model):
        return chosen, options
    known = {field.name for field in fields(chosen)}
    reading = {name: v for name, v in options.items() if reads and _reads(chosen, name) and name not in known}
    return registry.make(chosen, {name: value for name, value in options.items() if name not in reading}), reading


def kind_of(columns: Sequence[str], options: Mapping[str, Any]) -> str:
    """Return the kind of answers in a frame, by its columns and by options that only some kinds have."""
    reading = {name: v for name, v in options.items() if any(name in options_of(kind) for kind in KINDS)}
    among = [kind for kind in KINDS if set(reading) <= set(options_of(kind))]
    return recognise(columns, reading, among or list(KINDS))


def _chosen(kind: str | None, model: Any) -> Any:
    """Return the model or model class given; by default that of the kind."""
    if isinstance(model, Model) or (isinstance(model, type) and issubclass(model, Model)):
        return model
    if model is not None and not isinstance(model, str):
        raise ParameterError(f"model is {model!r}; give a name, a model class or a model")
    _discover()
    return registry.find(registry.DEFAULTS[str(kind)] if model is None else model, kind)


def _reads(model: type[Model[Any, Any]], name: str) -> bool:
    """Whether this is an option for reading the answers of a model."""
    parameter = inspect.signature(model.answers_type.__init__).parameters.get(name)
    return parameter is not None and parameter.kind is inspect.Parameter.KEYWORD_ONLY
