"""Labels in a Spark frame: every partition holds some tasks with all their answers, and becomes one row of bytes.

Rows are partitioned by the hash of their task. Every partition is read by the same rules as a table in memory
(`Labels(frame, part=n)`), and says which workers and classes it has; the driver joins these, and every partition then
gets the classes of the whole table and the numbers of its workers. This is done once: fits read the cached rows.
"""

from __future__ import annotations

import hashlib
import pickle
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import polars as pl

from .. import __version__
from ..answers import Labels, SplitLabels
from ..answers.columns import LABEL_ROLES
from ..answers.gold import GoldCounts, gold_table
from ..answers.label_rows import in_time_order
from ..answers.parts import Merged, PartIndex, in_whole
from ..errors import DataError, DuplicateError, EmptyDataError, ParameterError, option
from ..io.large import USED_ROLES
from ..io.stored import KEPT_COLUMNS, MOST_ROWS
from ..kernels.layout import Subset, spread_out
from .executor import ENDED, SparkExecutor, answer, answers_of
from .session import job, map_in_arrow
from .tables import SparkTables

READ = "number int, failed boolean, found binary, shard binary, tasks binary"
PLACED = "number int, shard binary, tasks binary"
PARTITION_BYTES = 512 << 20  # of the table, as Spark estimates it, in a partition
MAX_ESTIMATE = 1 << 50  # a larger estimate means that Spark does not know
NO_ORDER = "rows of a Spark frame have no order"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class SparkLabels(SplitLabels, listed=False):
    """Labels in a Spark frame, one row per part."""

    frame: Any  # columns of PLACED
    subsets: tuple[Subset, ...]
    digest: str  # of all parts
    key: str  # of their files on executors

    def identity(self) -> list[Any]:
        return [self.workers, self.classes, self.rows, self.digest]

    def executor(self, make: Any) -> SparkExecutor:
        make = replace(make, threads=task_cores(self.frame.sparkSession))
        return SparkExecutor(self.frame, self.key, self.subsets, make)

    def parts(self) -> Iterator[tuple[Labels, Subset]]:
        with job():
            for row in self.frame.toLocalIterator():
                part, subset = pickle.loads(row["shard"])
                yield part.replaced(tasks=pickle.loads(row["tasks"])), subset

    def task_tables(
        self, executor: SparkExecutor, work: Callable[..., dict[str, pl.DataFrame]], *args: Any
    ) -> SparkTables:
        return SparkTables(executor, work, args)


class Given(NamedTuple):
    """How the rows of a frame are read."""

    source: str
    options: Mapping[str, Any]  # of `Labels`
    time: str | None  # column by which repeated answers are ordered


def read_labels(
    frame: Any, options: Mapping[str, Any], *, source: str = "frame", partitions: int | None = None,
    scratch: str | None = None,
) -> SparkLabels:  # fmt: skip
    """Read labels from a Spark frame; `options` are those of `Labels`. The parts are cached by Spark, or written to
    `scratch`, a folder that all machines see."""
    options = dict(options)
    if options.get("gold") is not None and not isinstance(options["gold"], str):
        options["gold"] = gold_table(options["gold"], source)
    task, columns, time = _columns(frame, options, source)
    count = partitions or _partitions(frame)
    given = Given(source, {**options, "wide": bool(options.get("wide"))}, time)
    rows = frame.select(*(f"`{name}`" for name in columns)).repartition(count, f"`{task}`")
    read = _cached(map_in_arrow(rows, Reader(given, __version__), READ))
    try:
        found = list(answers_of(read.select("number", "failed", "found")))
        return _placed(read, found, options.get("gold"), source, scratch)
    finally:
        read.unpersist()


def _placed(read: Any, found: list[Any], gold: Any, source: str, scratch: str | None) -> SparkLabels:
    """Give every part its place in the whole table."""
    if not found:
        raise EmptyDataError(f"no answers in {source}: it has no rows. Give a table with rows")
    indexes = [index for _, (index, _) in found]
    known = None if gold is None or isinstance(gold, str) else GoldCounts.of(gold)
    merged = Merged.of(indexes, known)
    numbers = {partition: number for number, (partition, _) in enumerate(found)}
    whole = read.sparkSession.sparkContext.broadcast((merged, numbers))
    placed = map_in_arrow(read.select("number", "shard", "tasks"), Placer(whole), PLACED)
    if scratch is None:
        placed = _cached(placed)
        with job():
            placed.count()
    else:
        with job():
            placed.write.mode("overwrite").parquet(scratch)
        placed = read.sparkSession.read.parquet(scratch)
    own = {
        "frame": placed,
        "subsets": tuple(_subset(merged.place(index).subset) for index in indexes),
        "digest": "".join(each for _, (_, each) in found),
        "key": uuid.uuid4().hex,
    }
    answers = SparkLabels.from_merged(merged, **own)
    weakref.finalize(answers, _released, placed, own["key"]).atexit = False
    return answers


def _subset(found: Subset) -> Subset:
    """Return the subset of a part. A part with most rows of the table gets all of them, since finding and adding up
    some of them would take longer."""
    whole = found.rows is not None and len(found.rows) > MOST_ROWS * found.n_rows
    return found._replace(rows=None, workers=None) if whole else found


def _released(frame: Any, key: str) -> None:
    """Let Spark forget cached parts; frames that were made of them can still be computed."""
    ENDED.append(key)
    if frame.sparkSession.sparkContext._jsc is not None:  # the session may have ended
        frame.unpersist()


def _cached(frame: Any) -> Any:
    from pyspark import StorageLevel

    return frame.persist(StorageLevel.MEMORY_AND_DISK)


def _columns(frame: Any, options: Mapping[str, Any], source: str) -> tuple[str, list[str], str | None]:
    """Return the column of the task, the columns that are used, and the column of times."""
    gold, names = options.get("gold"), {role: options.get(role) for role in ("task", "worker", "label")}
    names["gold"] = gold if isinstance(gold, str) else None
    if options.get("wide"):
        return names["task"] or frame.columns[0], frame.columns, None
    needed = ("task", "label") if options.get("anonymous") == "each" else LABEL_ROLES.required
    roles, _ = LABEL_ROLES.find(frame.columns, names, source, needed)
    if options.get("duplicates") in ("first", "last") and "timestamp" not in roles:
        raise ParameterError(
            f"{option('duplicates', options['duplicates'])} needs a column of times: {NO_ORDER}. Add a column "
            f"'timestamp', or use {option('duplicates', 'each')}, or 'error'"
        )
    return roles["task"], [roles[role] for role in USED_ROLES if role in roles], roles.get("timestamp")


def _partitions(frame: Any) -> int:
    """Return the number of partitions: as many as Spark runs at once, more if the table is large. A worker's answers
    are spread over all of them, so that more partitions mean more statistics to add."""
    size = int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    at_once = int(frame.sparkSession.sparkContext.defaultParallelism) // task_cores(frame.sparkSession)
    return max(at_once, 1, -(-size // PARTITION_BYTES) if size < MAX_ESTIMATE else 0)


def task_cores(session: Any) -> int:
    """Return the number of cores that Spark gives to a task: `spark.task.cpus`."""
    return int(session.sparkContext.getConf().get("spark.task.cpus", "1"))


@dataclass(frozen=True)
class Reader:
    """Reads the rows of a partition as a part of the table, on an executor of Spark."""

    given: Given
    version: str  # of crowdwise on the driver

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        tables = [batch for batch in batches if batch.num_rows]
        if not tables:
            return
        held: dict[str, bytes] = {}
        row = answer(number, self._read, pa.Table.from_batches(tables), number, held)
        values = [pa.array([held.get(name)], pa.binary()) for name in ("shard", "tasks")]
        names = [*row.schema.names, "shard", "tasks"]
        yield pa.RecordBatch.from_arrays([*row.columns, *values], names)

    def _read(self, table: Any, number: int, held: dict[str, bytes]) -> tuple[PartIndex, str]:
        if __version__ != self.version:
            raise DataError(
                f"crowdwise has version {__version__} on an executor and {self.version} on the driver. Install the "
                "same version everywhere"
            )
        frame: Any = pl.from_arrow(table)
        frame = frame if self.given.time is None else in_time_order(frame, self.given.time)
        try:
            part = Labels(
                frame, source=self.given.source, part=number, where=lambda row: f"partition {number}",
                **self.given.options,
            )  # fmt: skip
        except DuplicateError as error:
            found, each = str(error).split(". ")[0], option("duplicates", "each")
            raise DuplicateError(f"{found}, and {NO_ORDER}. Add a column of times, or use {each}") from error
        kept = part.extras.select(name for name in KEPT_COLUMNS if name in part.extras.columns)
        index = PartIndex.of(part)
        held["tasks"] = pickle.dumps(part.tasks, protocol=5)
        held["shard"] = pickle.dumps(part.replaced(tasks=part.task_keys, extras=kept), protocol=5)
        digest = hashlib.blake2b(digest_size=16)
        for array in (*part.layout[1:], part.gold):
            digest.update(array.tobytes())
        return index, digest.hexdigest()


@dataclass(frozen=True)
class Placer:
    """Gives the parts of a partition their place in the whole table, on an executor of Spark."""

    whole: Any  # broadcast: what the parts have in common, and the number of the part of each partition

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        merged, numbers = self.whole.value
        for batch in batches:
            for at, partition in enumerate(batch.column(0).to_pylist()):
                part = pickle.loads(batch.column(1)[at].as_buffer())
                place = merged.place(PartIndex.of(part))
                part, subset = in_whole(part, place, merged.classes), _subset(place.subset)
                if subset.rows is None:
                    layout = spread_out(part.layout, place.subset, merged.rows)
                    part = part.replaced(workers=merged.workers, layout=layout)
                shard = pickle.dumps((part, subset), protocol=5)
                number = pa.array([numbers[partition]], pa.int32())
                columns = [number, pa.array([shard], pa.binary()), batch.column(2).slice(at, 1)]
                yield pa.RecordBatch.from_arrays(columns, ["number", "shard", "tasks"])
