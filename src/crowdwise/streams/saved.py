"""What a file has of a stream of labels, and whether it can be true."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import polars as pl

from ..answers import rules
from ..answers.changes import REPEATS
from ..engine import Run
from ..kernels.layout import Floats, Ints, WorkerRows, add_shard, find_rows, narrow
from ..kernels.rules import Real, Whole, ascends
from ..labels.em import EMModel, Local
from ..labels.incremental import Computing, Learned, small_shard
from ..result.stored import Parts, conforms
from .held import Extras, Ids, Pool
from .held_labels import HeldLabels

SAVED_STREAM = {  # what a file has of a stream, apart from what was learned
    "columns": dict[str, str | None],
    "reading": dict[str, Any],
    "ignored": int,
    "fitted": int,
    "refit": bool,
    "turn": int,
    "known": bool,
    "task": Annotated[pl.Series, rules.Ids("T")],
    "worker": Annotated[pl.Series, rules.Ids("W")],
    "class": Annotated[pl.Series, rules.Ids("K")],
    "size": Annotated[Ints, Whole("T", dtype="int64")],
    "answers": Annotated[Ints, Whole("N 3", -1)],
    "waiting": Annotated[pl.DataFrame, rules.Table("waiting", ("task", "gold"))],
    "extras": Annotated[pl.DataFrame, rules.Table("extras", optional=True)],
    "gold": Annotated[Ints, Whole("T", -1, below="K")],
    "Z": Annotated[Floats, Real("T K", 0, 1)],
}


def store(parts: Parts, held: HeldLabels) -> None:
    """Add all that is held to the parts of a file."""
    tasks = np.arange(len(held.tasks))
    for ids in held.roles:
        parts.add(ids.role, ids.series())
    cells = np.stack(held.pool.of(tasks)[1:], axis=1)
    for name, each in (("size", held.pool.sizes(tasks)), ("answers", cells)):
        parts.add(name, np.ascontiguousarray(each))
    kinds = {"task": held.tasks.type or pl.Null, "gold": held.classes.type or pl.Null}
    waiting = {"task": list(held.waiting), "gold": list(held.waiting.values())}
    parts.add("waiting", pl.DataFrame(waiting, schema=kinds))
    parts.add("extras", held.extras.rows(np.arange(held.extras.height)))
    parts.add("gold", held.gold[: len(tasks)])


def restore(values: dict[str, Any]) -> HeldLabels:
    """Invert `store`, given sound values."""
    held = HeldLabels()
    held.tasks, held.workers, held.classes = (Ids(role, values[role]) for role in ("task", "worker", "class"))
    held.waiting, held.extras = dict(values["waiting"].iter_rows()), Extras(values["extras"])
    held.pool = Pool.filled(values["size"], *values["answers"].T)
    held.gold = values["gold"]
    return held


def relearned(em: EMModel[Any, Any], held: HeldLabels, Z: Floats, rows: WorkerRows, params: Any) -> Learned:
    """Return what was learned; its sums over tasks are not in the file, as they follow from the posteriors."""
    how = Computing(len(held.classes), held.pool.count, Run().threads, 0)
    shard = small_shard(held.pool.of(np.arange(len(held.tasks))), held.gold, rows, how)
    part = em.statistics(shard, Local(Z), shard.shares(Z), narrow(params, shard.subset))
    return Learned(rows, add_shard(None, part, shard.subset), params)


def contradiction(values: dict[str, Any], columns: set[str], options: set[str]) -> str:
    """What contradicts itself in a stream that was read from a file, or "". `columns` can be named by the caller, and
    `options` say how tables are read."""
    return _flaw_of_answers(values) or _flaw_of_reading(values, columns, options)


def _flaw_of_answers(values: dict[str, Any]) -> str:
    size, (worker, label, extra) = values["size"], values["answers"].T
    if size.max(initial=0) > len(worker) or size.sum() != len(worker):
        return "its tasks have other answers than there are"
    sizes = (worker, len(values["worker"])), (label, len(values["class"])), (extra, Extras(values["extras"]).height)
    if (
        any(each.max(initial=-1) >= count for each, count in sizes)
        or min(worker.min(initial=0), label.min(initial=0)) < 0
    ):
        return "its answers are by workers, or of classes, that there are not"
    types = [values[name].dtype for name in ("task", "class")]
    if values["waiting"].dtypes != types or None in [each for row in values["waiting"].iter_rows() for each in row]:
        return "its gold that waits for answers is of other types than its tasks and classes"
    if not ascends(worker, np.append(0, np.cumsum(size)), strictly=True):
        return "its answers are not in the order of their workers"
    if values["known"]:
        rows = values["rows"]
        number, found = find_rows(rows, worker, label)
        if not found.all() or not np.array_equal(np.bincount(number, minlength=rows.n_rows), rows.answers):
            return "what was learned does not belong to its answers"
    return ""


def _flaw_of_reading(values: dict[str, Any], columns: set[str], options: set[str]) -> str:
    reading = values["reading"]
    named = {*values["columns"]} <= columns and {*reading} == options
    kinds = conforms(tuple(reading.values()), tuple[list[str] | bool | str | None, ...])
    counts = min(values[name] for name in ("turn", "fitted", "ignored")) >= 0
    sound = named and kinds and counts and reading["repeats"] in REPEATS
    return "" if sound else "it does not say how tables are read"
