"""The command line that makes a result again."""

from __future__ import annotations

import shlex
from typing import Any

from ..report.frame import changed_settings
from ..report.words import SENTENCE, short

REPEATED = ("missing", "same")  # flags that are given once per value; other lists are joined by commas


def verb_of(result: Any) -> str:
    """The command that makes such a result."""
    return {"labels": "aggregate"}.get(result.model.kind, str(result.model.kind))


def command_line(verb: str, result: Any, **further: Any) -> str:
    """`crowdwise VERB FILE --flags ... --out results`; `further` are flags beside those of the recorded reading.

    >>> import crowdwise as cw
    >>> answers = cw.Labels([1, 1], ["a", "b"], ["x", "y"], source="it's.csv", options={"label": "verdict"})
    >>> command_line("aggregate", cw.aggregate(answers, "majority-vote"))
    'crowdwise aggregate \\'it\\'"\\'"\\'s.csv\\' --label verdict --model majority-vote --seed 0 --out results'
    """
    intake = result.answers.intake
    words = ["crowdwise", verb, intake.source]
    for name, value in {**intake.options, **further}.items():
        words += _flag(name, value)
    words += ["--workers" if verb == "learn" else "--model", result.model.name, "--seed", str(result.seed)]
    for name, value in changed_settings(result.model).items():
        words += ["--set", f"{name}={value}"]
    return shlex.join([*(short(word, SENTENCE) for word in words), "--out", "results"])


def _flag(name: str, value: Any) -> list[str]:
    """An option as words: --wide or --long, --axes left,top, --missing NA --missing -1, --label verdict."""
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag] if value else ["--long" if name == "wide" else f"--no-{flag[2:]}"]
    if isinstance(value, list) and name in REPEATED:
        return [word for each in value for word in (flag, str(each))]
    if isinstance(value, list):
        return [flag, ",".join(f"{each:g}" if isinstance(each, float) else str(each) for each in value)]
    return [flag, str(value)]
