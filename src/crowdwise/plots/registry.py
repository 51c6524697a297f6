"""Every chart by kind of answers and name. A chart registers itself; `result.plot(name)` finds it here."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..answers.arguments import brief
from ..engine.resources import require
from ..errors import ParameterError, nearest
from ..result import BaseResult

if TYPE_CHECKING:
    from .chart import Chart

Build = TypeVar("Build", bound="Callable[..., Chart]")

EVERY_KIND = "every kind"  # of answers, also those that are added from outside
CHARTS: dict[str, dict[str, Callable[..., Chart]]] = {}  # kind -> name -> function
OWN = {EVERY_KIND: "workers", "labels": "labels", "points": "points", "pairs": "pairs"}  # kind -> module in here


def chart(kind: str, name: str) -> Callable[[Build], Build]:
    """Make a function the chart of this name for a kind of answers. Its keyword arguments are the options of the chart;
    a chart of a kind goes before one of the same name for `EVERY_KIND`."""

    def keep(build: Build) -> Build:
        CHARTS.setdefault(kind, {})[name] = build
        return build

    return keep


def charts(kind: str) -> dict[str, Callable[..., Chart]]:
    """The charts of a kind of answers by name."""
    for each in (EVERY_KIND, kind):
        if each in OWN:
            importlib.import_module(f".{OWN[each]}", __package__)
    return CHARTS[EVERY_KIND] | CHARTS.get(kind, {})


def plot(result: BaseResult, name: str, **options: Any) -> Chart:
    """The chart of this name; a name or an option that does not exist is refused with a suggestion."""
    require(("plot",), "plot")
    from .style import house_style, lay_out

    known = charts(result.kind)
    if not isinstance(name, str) or name not in known:
        raise ParameterError(f"{_no_chart(name, result.kind)} {_listed(known)}{nearest(name, known)}")
    build = known[name]
    takes = list(inspect.signature(build).parameters)[1:]
    for option in options:
        if option not in takes:
            listed = f"it has {', '.join(takes)}" if takes else "it has none"
            raise ParameterError(
                f"the chart {name!r} of {result.kind} has no option {option!r}; {listed}.{nearest(option, takes)}"
            )
    with house_style():
        made = build(result, **options)
        lay_out(made.figure)
    return made


def _no_chart(name: object, kind: str) -> str:
    kinds = [other for other in OWN if other not in (EVERY_KIND, kind)] if isinstance(name, str) else []
    others = [other for other in kinds if name in charts(other)]
    where = f"; it is a chart of {' and '.join(others)}" if others else ""
    return f"no chart {brief(name)} for results of {kind}{where}."


def _listed(known: dict[str, Callable[..., Chart]]) -> str:
    return f"There are {', '.join(sorted(known))}."
