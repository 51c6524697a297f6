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
from ..answers.gold import GoldCounts, gold_table
from ..answers.label_rows import as_datetimes, as_numbers, check_workers, listed, looks_wide
from ..answers.times import instants, slash_orders
from ..engine import Progress
from ..errors import EmptyDataError, MemoryNeedError, ParameterError, option
from ..limits import BASE
from ..result.store import fingerprint
from ..result.stored import conforms, kinds_of
from .chunks import Chunk, Source, memory_for_table
from .opening import Unchanged
from .stored import Folder, StoredLabels, disk_errors, is_sound, read_arrow, write_part
from .tables import check_rows

CHUNK_SHARE, BUFFER_SHARE, PART_SHARE = 1 / 30, 1 / 10, 1 / 2  # of the memory for the table
PART_FACTOR = 5  # memory for reading a part, compared with its frame
MIN_TABLE_MEMORY = 150_000_000  # bytes, besides the libraries
MAX_OVERSIZE = 2  # memory for which parts in a folder were made, compared with the present limit
DONE, ROWS = "parts.json", "rows"
LINE, FILE = "__line__", "__file__"  # columns of the rows on disk: their place in the source
USED_ROLES = ("task", "worker", "label", "gold", "timestamp", "weight", "is_check")


class Plan(NamedTuple):
    """How a table is split."""

    bounds: pl.Series  # tasks at which parts begin, ascending, without the first
    task: str  # column of tasks
    columns: list[str]  # columns that are kept
    wide: bool
    roles: dict[str, str]  # role -> column


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
    memory = memory_for_table(limit)
    if memory < MIN_TABLE_MEMORY:
        if limit:
            size, least = f"{limit // 10**6} MB", (BASE + MIN_TABLE_MEMORY) // 10**6
            raise ParameterError(f"{option('memory', size)} is too little; at least {least} MB are needed")
        raise MemoryNeedError(
            f"only {memory // 10**6} MB of memory may be used for {source.name}; at least {MIN_TABLE_MEMORY // 10**6} "
            "MB are needed to read it in parts"
        )
    options, about = dict(options), dict(about or {})
    gold = options.get("gold")
    if gold is not None and not isinstance(gold, str):
        options["gold"] = gold_table(gold, source.name)
    home, mark, seen = Folder(folder), _mark(source, options), Unchanged(source.files)
    found = _found(home, mark, memory)
    if found is None:
        home.clear()
        try:
            found = _split(source, memory, options | {"options": about.pop("options", {})}, home, watch, parts)
            seen.check()
        except BaseException:
            home.remove()
            raise
        with disk_errors(home.path):
            text = json.dumps({"mark": mark, "memory": memory, **found._asdict()})
            (home.path / DONE).write_text(text, encoding="utf-8")
    joined = StoredLabels.join(home, found.parts, None if found.gold is None else GoldCounts(*found.gold), source.order)
    read = joined.intake
    recorded = {name: value for name, value in read.options.items() if name != "wide" or name in options}
    return joined.replaced(
        intake=replace(
            read, notes=(*found.notes, *read.notes), warnings=(*found.warnings, *read.warnings), options=recorded,
            path=about.get("path", ""),
        )
    )  # fmt: skip


class Parts(NamedTuple):
    """Parts in a folder, and what can be said of the whole table only."""

    parts: int
    gold: tuple[int, int] | None  # fields of GoldCounts
    notes: list[str]
    warnings: list[str]


def _split(
    source: Source, memory: int, options: Mapping[str, Any], home: Folder, watch: Callable[[Progress], None] | None,
    parts: int | None,
) -> Parts:  # fmt: skip
    rows, chunk = home.path / ROWS, int(memory * CHUNK_SHARE)
    plan = _planned(source, memory, chunk, options, parts)
    seen = Seen(plan, options)
    _spill(source, chunk, int(memory * BUFFER_SHARE), plan, seen, rows, watch)
    count = _write_parts(source, plan, seen, home, options, watch)
    gold = options.get("gold")
    given: tuple[int, int] | None = None
    if isinstance(gold, pl.DataFrame):
        given = GoldCounts.of(gold)
    elif plan.wide and "gold" in plan.roles:
        given = seen.wide_gold
    mixed = source.mixed()
    warnings = [
        warning
        for role in ("task", "worker", "label")
        if (name := plan.roles.get(role)) in mixed
        for warning in normalise_ids(pl.Series(name, mixed[name], dtype=pl.Object), role, source.name)[1]
    ]
    return Parts(count, given, source.notes(), warnings)


class Seen:
    """What is noticed while the rows of a table are read once."""

    def __init__(self, plan: Plan, options: Mapping[str, Any]) -> None:
        self.plan, self.missing = plan, listed(options.get("missing") or ())
        timed = "timestamp" in plan.roles and options.get("duplicates") in (None, "last")
        self.numbers, self.datetimes = timed, timed  # whether all times so far are numbers, or dates
        self.slash_orders = set[bool]()  # whether dates such as 1/2/2026 have the day first
        self.wide_gold = GoldCounts(0, 0)
        self.rows = 0

    def add(self, frame: pl.DataFrame) -> None:
        self.rows += frame.height
        names = self.plan.roles
        if self.plan.wide and "gold" in names:
            gold = normalise_ids(frame[names["gold"]], "gold", "")[0]
            self.wide_gold = GoldCounts(0, self.wide_gold.empty + gold.null_count())
        if self.numbers or self.datetimes:
            self._add_times(frame)

    def _add_times(self, frame: pl.DataFrame) -> None:
        names = self.plan.roles
        label = normalise_ids(frame[names["label"]], "label", "")[0]
        used = label.is_not_null() & frame[names["task"]].is_not_null()
        if self.missing:
            used &= ~label.cast(pl.String).is_in(self.missing).fill_null(value=False)
        times = frame[names["timestamp"]].filter(used)
        self.slash_orders |= slash_orders(times)
        numbers = as_numbers(times) is not None
        self.numbers = self.numbers and (numbers or not len(times))
        self.datetimes = self.datetimes and ((not numbers and as_datetimes(times) is not None) or not len(times))

    @property
    def unreadable(self) -> list[str]:
        """The column of times, if it does not decide between repeated answers."""
        if "timestamp" not in self.plan.roles:
            return []
        readable = self.numbers or (self.datetimes and len(self.slash_orders) < 2)
        return [] if readable else [self.plan.roles["timestamp"]]

    def with_times(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return a part with times that are read as those of the whole table."""
        frame = frame.with_columns(pl.lit(None, frame[name].dtype).alias(name) for name in self.unreadable)
        if len(self.slash_orders) != 1 or self.unreadable:
            return frame
        times = instants(frame[self.plan.roles["timestamp"]], day_first=True in self.slash_orders)
        return frame.with_columns(times)


def _mark(source: Source, options: Mapping[str, Any]) -> str:
    """Return a digest of the files and of how they are read."""
    files = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in source.files]
    plain = {name: value for name, value in options.items() if not isinstance(value, pl.DataFrame)}
    tables = [value for value in options.values() if isinstance(value, pl.DataFrame)]
    how = (source.format, source.delimiter, source.encoding, sorted(plain.items(), key=repr))
    return fingerprint(repr((files, how)), *tables)


def _found(home: Folder, mark: str, memory: int) -> Parts | None:
    """Return the parts that are in a folder already, unless they are damaged or too large for this memory."""
    try:
        about = json.loads((home.path / DONE).read_text(encoding="utf-8"))
        if about["mark"] != mark or about["memory"] > MAX_OVERSIZE * memory:
            return None
        found = Parts(*(about[name] for name in Parts._fields))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    kinds = kinds_of(Parts)
    right = all(conforms(value, kinds[name]) for name, value in found._asdict().items()) and found.parts > 0
    right = right and (found.gold is None or len(found.gold) == len(GoldCounts._fields))
    return found if right and all(is_sound(home.part(number)) for number in range(found.parts)) else None


def _planned(source: Source, memory: int, chunk: int, options: Mapping[str, Any], parts: int | None) -> Plan:
    """Read the first chunk and a sample of the others, and return the bounds of the parts."""
    first = next(source.chunks(chunk), None)
    if first is None:
        raise EmptyDataError(f"no answers in {source.name}: it has no rows. Give a table with rows")
    frame = first.frame.drop(options.get("ignore") or (), strict=False)
    names = {role: options.get(role) for role in ("task", "worker", "label")}
    gold = options.get("gold")
    names["gold"] = gold if isinstance(gold, str) else None
    wide = options.get("wide")
    roles: dict[str, str] = {}
    if looks_wide(frame, names) if wide is None else wide:
        task, columns, wide = names["task"] or frame.columns[0], frame.columns, True
        truth = names["gold"] or LABEL_ROLES.guess("gold", columns, {task})
        roles |= {"gold": truth} if truth in columns else {}
        if not options.get("wide"):
            check_workers(frame.select(name for name in columns if name not in (task, truth)), source.name)
    else:
        needed = ("task", "label") if options.get("anonymous") == "each" else LABEL_ROLES.required
        roles, _ = LABEL_ROLES.find(frame.columns, names, source.name, needed)
        task, columns, wide = roles["task"], [roles[role] for role in USED_ROLES if role in roles], False
    if task not in columns:
        raise LABEL_ROLES.missing("task", task, columns, source.name)
    kept = frame.select(columns)
    of_file = frame.estimated_size() / max(first.done, 1e-9) * kept.estimated_size() / max(frame.estimated_size(), 1)
    parts = parts or max(1, int(np.ceil(of_file * PART_FACTOR / (memory * PART_SHARE))))
    places = [] if first.done >= 1 else list(source.sample(task))
    typed = [place.cast(frame[task].dtype) for place in places] or [frame[task]]
    sample = _task_ids(pl.concat(typed), source).drop_nulls().sort()
    at = np.linspace(0, len(sample), parts + 1)[1:-1].astype(int)
    bounds = sample[at].unique().sort() if len(at) else sample.head(0)
    return Plan(bounds, task, columns, wide, roles)


def _task_ids(column: pl.Series, source: Source) -> pl.Series:
    return normalise_ids(column, "task", source.name)[0]


def _spill(
    source: Source, chunk: int, buffer: int, plan: Plan, seen: Seen, folder: Path,
    watch: Callable[[Progress], None] | None,
) -> None:  # fmt: skip
    """Write the rows of every part to a folder of its own."""
    held: dict[int, list[pl.DataFrame]] = {}
    size, flushed = 0.0, 0
    for each in source.chunks(chunk):
        frame = _plain(each, plan, source)
        seen.add(frame)
        kept = frame.select(plan.columns).with_columns(
            pl.Series(LINE, each.line), pl.lit(each.file, pl.UInt32).alias(FILE)
        )
        tasks = _task_ids(frame[plan.task], source)
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


def _plain(chunk: Chunk, plan: Plan, source: Source) -> pl.DataFrame:
    """Return the rows of a chunk, after a check of columns that are not text: ids with their types, others as they are.
    Values that are refused are refused with the number of their row."""
    frame, before = chunk.frame, int(chunk.line[0]) - 1
    roles = {name: role for role, name in plan.roles.items() if role in LABEL_ROLES.required}
    roles |= dict.fromkeys(plan.columns, "label") | {plan.task: "task"} if plan.wide else {}
    odd = {name: role for name, role in roles.items() if frame[name].dtype != pl.String}
    return frame.with_columns(normalise_ids(frame[name], role, source.name, before)[0] for name, role in odd.items())


def _flush(held: Mapping[int, Sequence[pl.DataFrame]], folder: Path, number: int) -> None:
    for part, frames in held.items():
        place = folder / f"{part:05d}"
        with disk_errors(folder):
            place.mkdir(parents=True, exist_ok=True)
            pl.concat(frames).write_ipc(place / f"{number:05d}.arrow", compression="lz4")


def _write_parts(
    source: Source, plan: Plan, seen: Seen, home: Folder, options: Mapping[str, Any],
    watch: Callable[[Progress], None] | None,
) -> int:  # fmt: skip
    """Read every part, write its arrays, and return their number."""
    folders, rows = sorted((home.path / ROWS).iterdir()), 0
    for number, folder in enumerate(folders):
        frame = pl.concat([read_arrow(file) for file in sorted(folder.iterdir())])
        rows += frame.height
        frame = seen.with_times(frame)
        shutil.rmtree(folder)
        line, file = frame[LINE].to_numpy(), frame[FILE].to_numpy()

        def where(row: int, line: Any = line, file: Any = file) -> str:
            return source.where(int(file[row]), int(line[row]))

        own = dict(options) | {"wide": plan.wide or None, "part": number, "where": where}
        part = Labels(frame.drop(LINE, FILE), source=source.name, **own)
        write_part(home.part(number), part)
        _report(watch, "sorting", (number + 1) / len(folders))
    shutil.rmtree(home.path / ROWS)
    check_rows(rows, seen.rows, source.name, "a count while it was split")
    return len(folders)


def _report(watch: Callable[[Progress], None] | None, stage: str, done: float) -> None:
    if watch is not None:
        watch(Progress(stage, round(100 * done), 100, None, {}))
