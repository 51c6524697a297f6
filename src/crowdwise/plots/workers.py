"""Workers by skill, for every kind of answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from ..result import BaseResult
from .chart import Chart
from .options import check_top, places_of
from .registry import EVERY_KIND, chart
from .style import (
    BLUE,
    DIAMONDS,
    INK,
    MAX_NAMED,
    MUTED,
    PALE,
    WIDTH,
    canvas,
    legend,
    nothing_to_show,
    percent_axis,
    room_for,
    rows_height,
)
from .text import count, many, percent, shown

TOP = 30  # workers drawn unless asked otherwise
AXIS_STARTS = (0.0, 0.4, 0.8)  # of skill: the highest that leaves nothing out
LONGEST_FLAGS = 40  # characters of the flags of a worker that are drawn
COLUMNS = ("worker", "answers", "skill", "low", "high", "flags")


@chart(EVERY_KIND, "workers")
def workers_chart(result: BaseResult, *, top: int = TOP, workers: Any = None) -> Chart:
    """Skill with its 95 % interval, best first; `top` workers, or those of a list `workers`."""
    return skill_chart(result, top, workers, word="skill", axis="skill: chance of a right answer", guessing=None)


def skill_chart(
    result: BaseResult,
    top: int,
    workers: Any,
    *,
    word: str,
    axis: str,
    guessing: float | None,
    answers: str = "answers",
) -> Chart:
    """The same in the words of a kind: what it calls skill (`word`, and `axis` in full) and answers, and which skill
    guessing gives, where that can be said."""
    known = result.workers.filter(pl.col("skill").is_not_null()).sort("rank")
    data = (known.head(check_top(top)) if workers is None else _asked(result.workers, workers)).select(COLUMNS)
    title, note = _heading(word, data, known, result.workers.height, workers is None)
    figure, axes = canvas(rows_height(data.height), title, note, width=max(WIDTH, 5.4 + _room(data)))
    if data["skill"].drop_nulls().is_empty():
        nothing_to_show(axes, f"The {word} of none of these workers is known.")
        return Chart(title, f"{title}. None is known.", data, figure)
    _draw(axes, data)
    middle = float(np.median(known["skill"].to_numpy()))
    axes.axvline(middle, color=INK, lw=1, ls="--", zorder=2.5, label=f"median of all, {percent(middle, 0)}")
    if guessing is not None:
        axes.axvline(guessing, color=INK, lw=1.2, ls=":", zorder=2.5, label=f"guessing, {percent(guessing, 0)}")
    axes.set_xlabel(axis)
    _scale(axes, data, middle if guessing is None else min(middle, guessing))
    if data.height <= MAX_NAMED:
        _names(axes, data, answers)
    else:
        axes.set_ylabel("workers, best first")
        axes.set_yticks([])
    legend(axes, above=1.4 if data.height <= MAX_NAMED else 0.3, columns=5 if _room(data) < 1.5 else 3)
    return Chart(title, _description(title, data, middle), data, figure)


def _room(data: pl.DataFrame) -> float:
    """Inches for names and flags."""
    if data.height > MAX_NAMED:
        return 0.0
    names = (shown(name) for name in data["worker"].to_list())
    return room_for(names) + room_for((shown(flags, LONGEST_FLAGS) for flags in data["flags"] if flags), 0.075)


def _asked(table: pl.DataFrame, workers: Any) -> pl.DataFrame:
    return table[places_of(table["worker"], workers, "worker")].sort("rank", nulls_last=True)


def _heading(word: str, data: pl.DataFrame, known: pl.DataFrame, total: int, best: bool) -> tuple[str, str]:
    some = data.height < (known.height if best else total)
    chosen = "the best " if best else ""
    which = f"{chosen}{count(data.height)} of {many(total, 'worker')}" if some else many(data.height, "worker")
    title = f"{word.capitalize()} of {which}, best first"
    unknown = total - known.height
    notes = ["Ranked by the lower end of the 95\u202f% interval."]
    if best and unknown:
        notes.append(f"{many(unknown, 'worker')} whose {word} cannot be estimated {_are(unknown)} not shown.")
    flagged = int((known["flags"] != "").sum())
    if flagged:
        notes.append(f"{count(flagged)} of all workers {_are(flagged)} flagged: a reason to look, never a verdict.")
    return title, " ".join(notes)


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _draw(axes: Axes, data: pl.DataFrame) -> None:
    """One row per worker: a bar from low to high, and a mark at the skill that says whether there is a flag."""
    y = np.arange(data.height)
    skill, low, high = (data[name].cast(pl.Float64).to_numpy() for name in ("skill", "low", "high"))
    flagged = (data["flags"] != "").to_numpy()
    close = data.height > MAX_NAMED
    size = 7 if close else 26
    lines: dict[str, Any] = {"color": PALE, "lw": 0.6} if close else {"color": MUTED, "lw": 1.3}
    axes.hlines(y, low, high, zorder=2, label="95\u202f% interval", **lines)
    if not flagged.all():
        axes.scatter(skill[~flagged], y[~flagged], s=size, color=BLUE, zorder=3, label="not flagged")
    if flagged.any():
        axes.scatter(skill[flagged], y[flagged], s=size, zorder=4, label="flagged", **DIAMONDS)
    axes.set_ylim(data.height - 0.4, -0.6)
    axes.grid(axis="x")


def _scale(axes: Axes, data: pl.DataFrame, line: float) -> None:
    """Shares go from 0 to 100 %, or the upper part of it where all intervals and lines are there."""
    ends = np.array([line, *data["low"].drop_nulls(), *data["high"].drop_nulls()], np.float64)
    if ends.min() >= 0 and ends.max() <= 1:
        start = max(start for start in AXIS_STARTS if start <= ends.min())
        spare = 0.015 * (1 - start)
        axes.set_xlim(start - spare, 1 + spare)
        percent_axis(axes.xaxis)


def _names(axes: Axes, data: pl.DataFrame, answers: str) -> None:
    """Names on the left, how many answers and which flags on the right."""
    axes.set_yticks(range(data.height), [shown(name) for name in data["worker"].to_list()])
    axes.tick_params(axis="y", length=0)
    place: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "va": "center", "annotation_clip": False}
    small: dict[str, Any] = {"fontsize": 8, "color": MUTED}
    axes.annotate(answers, (1.1, -1), ha="right", **place, **small)
    for y, (number, skill, flags) in enumerate(data.select("answers", "skill", "flags").rows()):
        axes.annotate(count(number), (1.1, y), ha="right", **place, **small)
        if flags:
            axes.annotate(shown(flags, LONGEST_FLAGS), (1.13, y), ha="left", **place, fontsize=8, color=INK)
        if skill is None:
            axes.annotate("not known", (0.5, y), ha="center", **place, **small)


def _description(title: str, data: pl.DataFrame, middle: float) -> str:
    rows = data.filter(pl.col("skill").is_not_null()).select("worker", "skill").rows()
    ends = f"from {shown(rows[0][0])} ({percent(rows[0][1], 0)}) to {shown(rows[-1][0])} ({percent(rows[-1][1], 0)})"
    flagged = int((data["flags"] != "").sum())
    return f"{title}: {ends}; the median of all is {percent(middle, 0)}. {flagged or 'None'} of those shown flagged."
