"""Tables of labels that are larger than memory: split by task into parts on disk, each read like a whole table.

The ids of a sample of tasks give the bounds of the parts. One pass over the files writes every row to the part of its
task; then each part is read, coded and sorted in memory, and written as arrays.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..answers import Labels
from ..answers.coding import normalise_ids
from ..answers.columns import LABEL_ROLES
from ..answers.gold import gold_columns
from ..answers.label_rows import looks_wide
from ..engine import Progress
from ..engine.resources import available
from ..errors import EmptyDataError, ParameterError
from ..result.store import fingerprint
from .chunks import BASE, USABLE, Source
from .stored import Folder, StoredLabels, disk_errors, write_part

CHUNK_SHARE, BUFFER_SHARE, PART_SHARE = 1 / 30, 1 / 10, 1 / 2  # of the memory limit without BASE
PART_FACTOR = 4  # memory for reading a part, compared with its frame
MIN_MEMORY = 400_000_000
LINE, FILE = "__line__", "__file__"  # columns of the rows on disk: their place in the source
USED_ROLES = ("task", "worker", "label", "gold", "timestamp", "weight", "is_check")


class Plan(NamedTuple):
    """How a table is split."""

    bounds: pl.Series  # tasks at which parts begin, ascending, without the first
    task: str  # column of tasks
    columns: list[str]  # columns that are kept
    wide: bool


def split_labels(
    source: Source,
    limit: int | None,
    folder: Path | None,
    options: Mapping[str, Any],
    watch: Callable[[Progress], None] | None = None,
    about: Mapping[str, Any] | None = None,
    parts: int | None = None,
) -> StoredLabels:
    """Split a table of labels into parts on disk; `limit` is the memory to use in bytes, by default what this process
    may use. The number of parts follows from it, unless it is given.

    `options` are those of `Labels`; `about` are fields of the record of how the table was read. Parts that an earlier
    call left in the folder for the same files and options are used again.
    """
    memory = limit or BASE + int(USABLE * available())
    if memory < MIN_MEMORY:
        raise ParameterError(f"memory is {memory} bytes; at least {MIN_MEMORY // 10**6} MB are needed")
    memory -= BASE
    home, chunk = Folder(folder), int(memory * CHUNK_SHARE)
    gold = options.get("gold")
    known = None if gold is None or isinstance(gold, str) else len(_known_tasks(gold))
    done, mark = home.path / "parts.json", _mark(source, memory, options)
    count = _found(done, mark)
    if not count:
        rows = home.path / "rows"
        shutil.rmtree(rows, ignore_errors=True)
        try:
            plan = _planned(source, memory, chunk, options, parts)
            _spill(source, chunk, int(memory * BUFFER_SHARE), plan, rows, watch)
            count = _write_parts(source, plan, rows, home, options, watch)
        finally:
            shutil.rmtree(rows, ignore_errors=True)
        with disk_errors(home.path):
            done.write_text(json.dumps({"mark": mark, "parts": count}), encoding="utf-8")
    joined = StoredLabels.join(home, count, known)
    return joined.replaced(intake=replace(joined.intake, **(about or {})))


def _mark(source: Source, memory: int, options: Mapping[str, Any]) -> str:
    """Return a digest of the files and of how they are read."""
    files = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in source.files]
    plain = {name: value for name, value in options.items() if not isinstance(value, pl.DataFrame)}
    tables = [value for value in options.values() if isinstance(value, pl.DataFrame)]
    return fingerprint(repr((files, source[1:], memory, sorted(plain.items(), key=repr))), *tables)


def _found(done: Path, mark: str) -> int:
    """Return the number of parts that are in a folder already, or 0."""
    try:
        about = json.loads(done.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0
    return int(about["parts"]) if about.get("mark") == mark else 0


def _planned(source: Source, memory: int, chunk: int, options: Mapping[str, Any], parts: int | None) -> Plan:
    """Read the first chunk and a sample of the others, and return the bounds of the parts."""
    first = next(source.chunks(chunk), None)
    if first is None:
        raise EmptyDataError(f"no answers in {source.files[0].name}: it has no rows. Give a table with rows")
    frame, names = first.frame, {role: options.get(role) for role in ("task", "worker", "label")}
    gold = options.get("gold")
    names["gold"] = gold if isinstance(gold, str) else None
    wide = options.get("wide")
    if looks_wide(frame, names) if wide is None else wide:
        task, columns, wide = names["task"] or frame.columns[0], frame.columns, True
    else:
        needed = ("task", "label") if options.get("anonymous") == "each" else LABEL_ROLES.required
        roles, _ = LABEL_ROLES.find(frame.columns, names, source.files[0].name, needed)
        task, columns, wide = roles["task"], [roles[role] for role in USED_ROLES if role in roles], False
    kept = frame.select(columns)
    of_file = frame.estimated_size() / max(first.done, 1e-9) * kept.estimated_size() / max(frame.estimated_size(), 1)
    parts = parts or max(1, int(np.ceil(of_file * PART_FACTOR / (memory * PART_SHARE))))
    places = [frame[task]] if first.done >= 1 else list(source.sample(task))
    sample = _task_ids(pl.concat(places), source).drop_nulls().sort()
    at = np.linspace(0, len(sample), parts + 1)[1:-1].astype(int)
    bounds = sample[at].unique().sort() if len(at) else sample.head(0)
    return Plan(bounds, task, columns, wide)


def _task_ids(column: pl.Series, source: Source) -> pl.Series:
    return normalise_ids(column, "task", source.files[0].name)[0]


def _spill(
    source: Source, chunk: int, buffer: int, plan: Plan, folder: Path, watch: Callable[[Progress], None] | None
) -> None:
    """Write the rows of every part to a folder of its own."""
    held: dict[int, list[pl.DataFrame]] = {}
    size, flushed = 0.0, 0
    for each in source.chunks(chunk):
        kept = each.frame.select(plan.columns).with_columns(
            pl.Series(LINE, each.line), pl.lit(each.file, pl.UInt32).alias(FILE)
        )
        tasks = _task_ids(each.frame[plan.task], source)
        part = plan.bounds.search_sorted(tasks, side="right") if len(plan.bounds) else np.zeros(len(tasks), np.uint32)
        numbered = kept.with_columns(pl.Series("__part__", part).set(tasks.is_null(), 0))
        for (number,), rows in numbered.partition_by("__part__", as_dict=True, include_key=False).items():
            held.setdefault(int(number), []).append(rows)
        size += kept.estimated_size()
        if size > buffer:
            _flush(held, folder, flushed)
            held, size, flushed = {}, 0.0, flushed + 1
        _report(watch, "reading", each.done)
    _flush(held, folder, flushed)


def _flush(held: Mapping[int, Sequence[pl.DataFrame]], folder: Path, number: int) -> None:
    for part, frames in held.items():
        place = folder / f"{part:05d}"
        with disk_errors(folder):
            place.mkdir(parents=True, exist_ok=True)
            pl.concat(frames).write_ipc(place / f"{number:05d}.arrow", compression="lz4")


def _write_parts(
    source: Source, plan: Plan, rows: Path, home: Folder, options: Mapping[str, Any],
    watch: Callable[[Progress], None] | None,
) -> int:  # fmt: skip
    """Read every part, write its arrays, and return their number."""
    folders = sorted(rows.iterdir())
    for number, folder in enumerate(folders):
        frame = pl.concat([pl.read_ipc(file) for file in sorted(folder.iterdir())])
        shutil.rmtree(folder)
        line, file = frame[LINE].to_numpy(), frame[FILE].to_numpy()

        def where(row: int, line: Any = line, file: Any = file) -> str:
            return source.where(int(file[row]), int(line[row]))

        own = dict(options) | {"wide": plan.wide or None, "part": number, "where": where}
        part = Labels(frame.drop(LINE, FILE), source=source.name, **own)
        write_part(home.part(number), part)
        _report(watch, "sorting", (number + 1) / len(folders))
    return len(folders)


def _known_tasks(gold: Any) -> pl.Series:
    task, label = gold_columns(gold)
    return task.filter(label.is_not_null()).drop_nulls().unique()


def _report(watch: Callable[[Progress], None] | None, stage: str, done: float) -> None:
    if watch is not None:
        watch(Progress(stage, round(100 * done), 100, None, {}))
