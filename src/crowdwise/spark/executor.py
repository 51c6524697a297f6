"""The executor over shards that are rows of a Spark frame.

The frame has one row per shard: its number, and the arrays of its answers as bytes. A function runs on all of them by
`mapInArrow`. Parameters go to the machines as broadcast variables, and statistics of the rows and workers of a shard
come back as bytes; if driver and executors are one machine, both are handed over in files. The driver adds statistics
in the order of the shards, so the sums have the same bits wherever and however often a task ran. Every job reads the
same cached frame: its lineage does not grow with the iterations.
"""

from __future__ import annotations

import contextlib
import pickle
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..engine import Executor
from ..errors import CrowdwiseError
from ..kernels.layout import Subset, add_shard, narrow
from .session import collect, map_in_arrow
from .state import Files, Shared, States, Update, remove

FOUND = "number int, failed boolean, found binary"  # what a function returned, or the error that it met
LARGE = 1 << 20  # bytes of an answer that is handed over in a file
ABSENT = "absent"  # the answer of a machine that has no file of the shard
ENDED: list[str] = []  # fits and shards whose files are not needed any more


@dataclass(frozen=True)
class Calls:
    """Runs a function on the shards of a partition, on an executor of Spark."""

    near: str | None  # folder in which large answers are handed over, if driver and executors are one machine
    key: str  # of the shards
    make: Callable[[Any, Subset], Any]
    fit: str
    updates: tuple[Update, ...]  # from which the local state follows
    ended: tuple[str, ...]

    def shards(self, batches: Iterator[Any]) -> Iterator[tuple[int, Any]]:
        """Yield the number of every shard, and the shard: None if it is neither among the columns nor on file."""
        remove(self.ended)
        files = Files(self.key)
        for batch in batches:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            for at, number in enumerate(columns["number"].to_pylist()):
                if "shard" in columns:
                    held = columns["shard"][at].as_buffer()
                    files.write(str(number), held)
                else:
                    held = files.read(str(number))
                if held is None:
                    yield number, None
                    continue
                part, subset = pickle.loads(held)
                if "tasks" in columns:
                    part = part.replaced(tasks=pickle.loads(columns["tasks"][at].as_buffer()))
                yield number, self.make(part, subset)

    def state(self, number: int, shard: Any) -> Any:
        return States(self.fit).rebuild(self.updates, number, shard)


@dataclass(frozen=True)
class Updating(Calls):
    """Changes local states, and returns statistics and whether the new state follows from this update alone."""

    update: Update

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for number, shard in self.shards(batches):
            yield answer(number, self._updated, number, shard, near=self.near)

    def _updated(self, number: int, shard: Any) -> Any:
        if shard is None:
            return ABSENT
        states = States(self.fit)
        local, statistics = self.update(number, shard, self.state(number, shard))
        states.keep(number, self.update.version, local)
        states.forget(number, self.updates[-1].version if self.updates else 0)
        return statistics, bool(getattr(local, "renewed", False))


@dataclass(frozen=True)
class Asking(Calls):
    """Returns what a function says of every shard."""

    work: Callable[..., Any]
    args: Any

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for number, shard in self.shards(batches):
            yield answer(number, self.asked, number, shard, near=self.near)

    def asked(self, number: int, shard: Any) -> Any:
        if shard is None:
            return ABSENT
        return self.work(shard, self.state(number, shard), *narrow(self.args.value, shard.subset))


def answer(number: int, work: Callable[..., Any], *args: Any, near: str | None = None) -> Any:
    """Return a row with what work(*args) returned, or with its file in the folder `near` if it is large. An error of
    Crowdwise is an answer, too: it would come again."""
    import pyarrow as pa

    try:
        failed, found = False, work(*args)
    except CrowdwiseError as error:
        failed, found = True, error
    data = pickle.dumps(found, protocol=5)
    if near is not None and len(data) > LARGE:
        with contextlib.suppress(OSError):
            data = pickle.dumps(Shared.of(found, near))
    values = ([number], [failed], [data])
    arrays = [pa.array(v, kind) for v, kind in zip(values, (pa.int32(), pa.bool_(), pa.binary()), strict=True)]
    return pa.RecordBatch.from_arrays(arrays, ["number", "failed", "found"])


def answers_of(frame: Any) -> Iterator[tuple[int, Any]]:
    """Collect the answers of all shards, in order; the first error among them is raised."""
    table = collect(frame)
    numbers, failed = table["number"].to_pylist(), table["failed"].to_pylist()
    for at in sorted(range(len(numbers)), key=numbers.__getitem__):
        found = pickle.loads(table["found"][at].as_buffer())
        if failed[at]:
            raise found
        if isinstance(found, Shared):
            file, found = found, found.value
            file.destroy()
        yield numbers[at], found


class SparkExecutor(Executor[Any]):
    """Shards that are rows of a Spark frame."""

    def __init__(self, frame: Any, key: str, subsets: Sequence[Subset], make: Callable[[Any, Subset], Any]) -> None:
        self.frame, self.key, self.subsets, self.make = frame, key, subsets, make
        self.context = frame.sparkSession.sparkContext
        self.near: str | None = None
        if self.context.master.startswith("local"):
            self.near = tempfile.mkdtemp(prefix="crowdwise-")
            weakref.finalize(self, shutil.rmtree, self.near, ignore_errors=True)
        self.fit = uuid.uuid4().hex
        self.updates: tuple[Update, ...] = ()
        self.version, self.sent = 0, False
        weakref.finalize(self, ENDED.append, self.fit).atexit = False

    def update(self, work: Callable[..., tuple[Any, Any]], *args: Any, each: Sequence[Any] | None = None) -> Any:
        self.version += 1
        own = None if each is None else self._share(list(each))
        update = Update(self.version, work, self._share(args), own)
        total, renewed = None, True
        call = Updating(self.near, self.key, self.make, self.fit, self.updates, tuple(ENDED), update)
        for number, (statistics, alone) in self._run(call):
            total = add_shard(total, statistics, self.subsets[number])
            renewed = renewed and alone
        self._keep(update, renewed)
        return total

    def _keep(self, update: Update, renewed: bool) -> None:
        """Keep the updates from which the local states follow: the first, and the last or all since then."""
        kept = (*self.updates[:1], update) if renewed else (*self.updates, update)
        for old in self.updates:
            if all(old is not one for one in kept):
                old.destroy()
        self.updates = kept

    def each(self, work: Callable[..., Any], *args: Any) -> Iterator[Any]:
        for _, found in self._asked(work, args):
            yield found

    def total(self, work: Callable[..., Any], *args: Any) -> Any:
        total = None
        for number, found in self._asked(work, args):
            total = add_shard(total, found, self.subsets[number])
        return total

    def _asked(self, work: Callable[..., Any], args: tuple[Any, ...]) -> Iterator[tuple[int, Any]]:
        shared = self._share(args)
        yield from self._run(Asking(self.near, self.key, self.make, self.fit, self.updates, tuple(ENDED), work, shared))
        shared.destroy()

    def _share(self, value: Any) -> Any:
        """Return a value that executors can read, as a broadcast variable or a file."""
        with contextlib.suppress(OSError):
            if self.near is not None:
                return Shared.of(value, self.near)
        return self.context.broadcast(value)

    def _run(self, call: Any) -> Iterator[tuple[int, Any]]:
        """Run a job on the shards that machines have on file, and then one that sends them the others; the first job of
        a fit sends all."""
        ended = len(call.ended)
        columns, self.sent = ("number",) if self.sent else ("number", "shard"), True
        found = dict(answers_of(map_in_arrow(self.frame.select(*columns), call, FOUND)))
        absent = [number for number, each in found.items() if isinstance(each, str) and each == ABSENT]
        if absent:
            rest = self.frame.where(self.frame["number"].isin(absent)).select("number", "shard")
            found |= dict(answers_of(map_in_arrow(rest, call, FOUND)))
        del ENDED[:ended]
        yield from sorted(found.items(), key=lambda each: each[0])
