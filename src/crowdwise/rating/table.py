"""What the tables of workers of all kinds of answers have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from ..kernels.layout import Bools, Floats

WORKER_COLUMNS = {
    "worker": "the worker",
    "answers": "how many answers were used",
    "skill": "chance of a right answer; of clicks, the share that is on objects",
    "low": "lower end of the 95 % interval of skill",
    "high": "upper end of it",
    "rank": "1 for the highest lower end of skill",
    "flags": "why somebody should look at this worker, short; empty for nothing",
    "reasons": "the same in words",
}


def worker_table(
    workers: pl.Series, answers: Any, skill: Floats, low: Floats, high: Floats, **more: Any
) -> pl.DataFrame:
    """The columns that every table of workers starts with, then those of its kind. `flags` and `reasons` are lists of
    texts; `known` (W,) says whose skill is known, the others have none."""
    known: Bools = more.pop("known", np.ones(len(workers), bool))
    flags, reasons = more.pop("flags", [""] * len(workers)), more.pop("reasons", [""] * len(workers))
    unknown = pl.Series(~known)

    def shown(values: Floats) -> pl.Series:
        return pl.Series(values, dtype=pl.Float64, nan_to_null=True).set(unknown, None)

    columns = {
        "worker": workers, "answers": pl.Series(answers).cast(pl.Int64), "skill": shown(skill), "low": shown(low),
        "high": shown(high), "rank": ranks(low, skill, known), "flags": flags, "reasons": reasons,
    }  # fmt: skip
    kinds = {"flags": pl.String, "reasons": pl.String}
    return pl.DataFrame(columns | more, schema_overrides=kinds)


def ranks(low: Floats, skill: Floats, known: Bools) -> pl.Series:
    """(W,) 1 for the highest lower end; equals by skill, then in the order of workers; null for who is not known."""
    order = np.lexsort((np.arange(len(low)), -skill, -low, ~known))
    rank = np.empty(len(low), np.int64)
    rank[order] = np.arange(1, len(low) + 1)
    return pl.Series(rank).set(pl.Series(~known), None)


def flagged(flags: Mapping[str, tuple[Bools, Callable[[int], str]]]) -> dict[str, list[str]]:
    """Flags and reasons of all workers: by the name of a flag, who has it (W,), and a function from the number of a
    worker to the reason."""
    masks = [mask for mask, _ in flags.values()]
    names, reasons = [""] * len(masks[0]), [""] * len(masks[0])
    for j in np.flatnonzero(np.logical_or.reduce(masks)).tolist():
        mine = [name for name, (mask, _) in flags.items() if mask[j]]
        names[j] = "; ".join(mine)
        reasons[j] = "; ".join(flags[name][1](j) for name in mine)
    return {"flags": names, "reasons": reasons}
