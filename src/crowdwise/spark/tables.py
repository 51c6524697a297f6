"""Tables with one row per task, as Spark frames that the executors compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ..result.split import TaskTables
from .executor import FOUND, Asking, SparkExecutor, answers_of
from .session import job, map_in_arrow


class SparkTables(TaskTables):
    """Tables that are computed part by part when they are used; nothing is gathered."""

    def __init__(self, executor: SparkExecutor, work: Callable[..., dict[str, pl.DataFrame]], args: Any) -> None:
        self.executor, self.work = executor, work
        self.args = executor.context.broadcast(args)
        self.updates = tuple(update.broadcast(executor.context) for update in executor.updates)
        first = map_in_arrow(executor.frame.where("number = 0"), self._call(Shaping), FOUND)
        self.schemas = {name: _plain(frame) for _, frames in answers_of(first) for name, frame in frames.items()}

    def scan(self, name: str) -> Any:
        """Return a table as a Spark frame."""
        from pyspark.sql.pandas.types import from_arrow_schema

        schema = self.schemas[name]
        return map_in_arrow(self.executor.frame, self._call(Making, name, schema), from_arrow_schema(schema))

    def _call(self, kind: Any, *more: Any) -> Any:
        executor = self.executor
        return kind(None, executor.key, executor.make, executor.fit, self.updates, (), self.work, self.args, *more)

    def write(self, name: str, folder: Path) -> Path:
        self.write_to(name, str(folder / name))
        return folder / name

    def write_to(self, name: str, path: str) -> None:
        """Let the executors write a table as Parquet files; `path` may be a URI."""
        with job():
            self.scan(name).write.mode("overwrite").parquet(path)


@dataclass(frozen=True)
class Making(Asking):
    """Makes a table of the tasks of a partition, on an executor of Spark."""

    name: str
    schema: Any

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for number, shard in self.shards(batches):
            yield from _arrow(self.asked(number, shard)[self.name]).cast(self.schema).to_batches()


class Shaping(Asking):
    """Returns the columns of the tables, without rows."""

    def asked(self, number: int, shard: Any) -> Any:
        return {name: frame.head(0) for name, frame in super().asked(number, shard).items()}


def _arrow(frame: pl.DataFrame) -> Any:
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def _plain(frame: pl.DataFrame) -> Any:
    """Return the Arrow schema of a table, with the types that Spark has."""
    import pyarrow as pa

    plain = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    return pa.schema([(field.name, plain.get(field.type, field.type)) for field in _arrow(frame).schema])
