"""The same worker twice on a task: never settled in silence."""

from __future__ import annotations

import numpy as np
import polars as pl

from ..errors import DuplicateError, ParameterError, option
from ..kernels.layout import Bools, Floats, Ints, Layout
from .base import EXAMPLES, Dropped
from .label_rows import LabelRows, Policy

POLICIES = ("last", "first", "error", "each")


def check_policy(policy: str | None) -> None:
    """Refuse a rule that is not known, before anything is read."""
    if policy is not None and policy not in POLICIES:
        raise ParameterError(f"duplicates is {policy!r}; it can be {', '.join(POLICIES)}")


def settle_repeats(p: LabelRows, layout: Layout, order: Ints, policy: Policy | None) -> tuple[LabelRows, list[Dropped]]:
    """Keep one answer of a worker to a task, by the policy, and count the rest.

    Without a policy: the same label again is kept once; of different labels the last by time, or, where there is no
    time, it is an error. "each" keeps every answer as one of its own.
    """
    worker = layout.row_worker[layout.pair]
    same = np.zeros(layout.n_answers, bool)
    same[1:] = worker[1:] == worker[:-1]
    same[layout.task_ptr[:-1][np.diff(layout.task_ptr) > 0]] = False
    if policy == "each" or not same.any():
        return p, []
    groups = _groups(same, order)
    labels = p.label[groups["answer"].to_numpy()]
    groups = groups.with_columns(pl.Series("label", labels))
    differ = groups.group_by("group").agg(pl.col("label").n_unique() > 1).filter("label")["group"]
    clash = groups["group"].is_in(differ.implode()).to_numpy()
    times = _times(p)
    if clash.any() and (policy == "error" or (policy is None and times is None)):
        raise _clash_error(p, groups, clash)
    rank = groups["answer"].to_numpy() if times is None or policy == "first" else times[groups["answer"].to_numpy()]
    ranked = groups.with_columns(pl.Series("rank", rank)).sort("group", "rank", "answer")
    by_group = ranked.group_by("group", maintain_order=True)
    kept = by_group.first() if policy == "first" else by_group.last()
    drop = ranked.join(kept.select("answer"), on="answer", how="anti")
    mask = np.ones(len(p.task), bool)
    mask[drop["answer"].to_numpy()] = False
    again = ~drop["group"].is_in(differ.implode()).to_numpy()
    word = "first" if policy == "first" else "last"
    by = " by time" if times is not None and policy != "first" else ""
    told = (
        ("same worker, same task, same label again (kept once)", drop["answer"].to_numpy()[again]),
        (f"same worker, same task, another label (kept the {word}{by})", drop["answer"].to_numpy()[~again]),
    )
    return p.keep(mask), [_left_out(p, reason, answers) for reason, answers in told if len(answers)]


def _groups(same: Bools, order: Ints) -> pl.DataFrame:
    """Answers that share worker and task, with the number of their group."""
    member = same.copy()
    member[:-1] |= same[1:]
    group = np.cumsum(member & ~same)[member]
    return pl.DataFrame({"group": group, "answer": order[member]})


def _line(p: LabelRows, answer: int) -> str:
    task, worker = p.tasks[int(p.task[answer])], p.workers[int(p.worker[answer])]
    label = p.classes[int(p.label[answer])]
    return f"{p.reading.where(int(p.reading.rows[answer]))}: {task}, {worker}, {label}"


def _left_out(p: LabelRows, reason: str, answers: Ints) -> Dropped:
    first = np.sort(answers)[:EXAMPLES]
    return Dropped(reason, len(answers), tuple(_line(p, int(answer)) for answer in first))


def _times(p: LabelRows) -> Floats | Ints | None:
    """When answers were given, as numbers that can be compared; None where not every one can be read."""
    if "timestamp" not in p.extras.columns:
        return None
    times = p.extras["timestamp"]
    if times.dtype == pl.String:
        number = times.cast(pl.Float64, strict=False)
        if number.null_count():
            number = times.str.to_datetime(strict=False, time_unit="us", time_zone="UTC").cast(pl.Int64)
        times = number
    elif times.dtype.is_temporal():
        times = times.cast(pl.Int64, strict=False)
    return None if times.null_count() or not times.dtype.is_numeric() else times.to_numpy()


def _clash_error(p: LabelRows, groups: pl.DataFrame, clash: Bools) -> DuplicateError:
    clashing = groups.filter(pl.Series(clash))
    first = clashing.filter(pl.col("group") == clashing["group"][0])["answer"].sort().to_list()
    return DuplicateError(
        f"{clashing['group'].n_unique()} time(s) a worker gave one task different labels in {p.reading.source}, first "
        f"{_line(p, first[0])} and {_line(p, first[1])}. No column of times tells which came last. "
        f"Say {option('duplicates', 'last')}, or first or each"
    )
