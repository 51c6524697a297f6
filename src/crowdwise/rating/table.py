"""The columns that the tables of workers of all kinds of answers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from ..kernels.layout import Bools, Floats

WORKER_COLUMNS = {
    "worker": "id of the worker",
    "answers": "number of answers used",
    "skill": "probability of a correct answer; for clicks, the share of clicks on objects",
    "low": "lower end of the 95 % interval of skill",
    "high": "upper end of the 95 % interval of skill",
    "rank": "rank by the lower end of skill, for clicks together with that of the hit rate; 1 is the best",
    "flags": "short reasons to look at this worker; empty if there are none",
    "reasons": "the reasons for the flags, as sentences",
}


def worker_table(
    workers: pl.Series, answers: Any, skill: Floats, low: Floats, high: Floats, **more: Any
) -> pl.DataFrame:
    """Return a table with `WORKER_COLUMNS`, then the columns of its kind. `flags` and `reasons` are lists of texts;
    workers for whom `known` (W,) is False have no skill. Ranks are by `low` and `skill`, or by the two arrays of
    `rank_by`."""
    known: Bools = more.pop("known", np.ones(len(workers), bool))
    flags, reasons = more.pop("flags", [""] * len(workers)), more.pop("reasons", [""] * len(workers))
    by_low, by_skill = more.pop("rank_by", (low, skill))
    rank = ranks(by_low, by_skill, known)
    unknown = pl.Series(~known)

    def shown(values: Floats) -> pl.Series:
        return pl.Series(values, dtype=pl.Float64, nan_to_null=True).set(unknown, None)

    columns = {
        "worker": workers, "answers": pl.Series(answers).cast(pl.Int64), "skill": shown(skill), "low": shown(low),
        "high": shown(high), "rank": rank, "flags": flags, "reasons": reasons,
    }  # fmt: skip
    kinds = {"flags": pl.String, "reasons": pl.String}
    return pl.DataFrame(columns | more, schema_overrides=kinds)


def ranks(low: Floats, skill: Floats, known: Bools) -> pl.Series:
    """Return ranks (W,) by the lower end of skill, then by skill, then in the order of workers; null if not known."""
    order = np.lexsort((np.arange(len(low)), -skill, -low, ~known))
    rank = np.empty(len(low), np.int64)
    rank[order] = np.arange(1, len(low) + 1)
    return pl.Series(rank).set(pl.Series(~known), None)


def share_correct(share: float, low: float, high: float, chance: float) -> str:
    """Return a reason: how often a worker is correct, and how often random answers would be."""
    interval = f"95 % interval {100 * low:.0f} to {100 * high:.0f} %"
    return f"{100 * share:.0f} % correct ({interval}), while random answers would be {100 * chance:.0f} % correct"


def flagged(flags: Mapping[str, tuple[Bools, Callable[[int], str]]]) -> dict[str, list[str]]:
    """Return the flags and reasons of all workers. `flags` maps the name of a flag to a mask (W,) and a function from
    the number of a worker to the reason."""
    masks = [mask for mask, _ in flags.values()]
    names, reasons = [""] * len(masks[0]), [""] * len(masks[0])
    for j in np.flatnonzero(np.logical_or.reduce(masks)).tolist():
        raised = [name for name, (mask, _) in flags.items() if mask[j]]
        names[j] = "; ".join(raised)
        reasons[j] = "; ".join(flags[name][1](j) for name in raised)
    return {"flags": names, "reasons": reasons}
