"""The line of Python that makes a result again."""

from __future__ import annotations

import json
from typing import Any

from .text import MAX_SENTENCE_CHARS, short

READERS = {"labels": "read", "points": "read_points", "pairs": "read_pairs"}


def changed_settings(model: Any) -> dict[str, Any]:
    """Return the hyperparameters that differ from their defaults, if they are numbers or text."""
    defaults = type(model)().settings()
    return {
        name: value
        for name, value in model.settings().items()
        if value != defaults.get(name) and isinstance(value, (int, float, str))
    }


def python_line(result: Any) -> str:
    """Return the line of Python that makes a result again; `answers` stands for a table that came from no file."""
    model, intake = result.model, result.answers.intake
    options = {"gold" if name == "gold_column" else name: value for name, value in intake.options.items()}
    reader = f"crowdwise.{READERS.get(result.kind, 'read')}"
    table = f"{reader}({_arguments([intake.path], options)})" if intake.path else "answers"
    if model.kind == "learn":
        own = {"workers": model.name, "random_state": result.seed}
        return f"crowdwise.CrowdClassifier({_arguments([], own)}).fit(X, {table}, tasks)"
    more = ", features=features" if getattr(result, "space", None) else ""
    settings = _arguments([model.name], changed_settings(model))
    return f"crowdwise.aggregate({table}, {settings}{more}, run=crowdwise.Run(seed={result.seed}))"


def _arguments(values: list[Any], named: dict[str, Any]) -> str:
    return ", ".join([*map(_literal, values), *(f"{name}={_literal(value)}" for name, value in named.items())])


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return json.dumps(short(value, MAX_SENTENCE_CHARS), ensure_ascii=False) if isinstance(value, str) else repr(value)
