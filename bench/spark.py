"""An iteration on Spark compared with one in memory and with crowd-kit's, on the cores of this machine.

python bench/spark.py [--small] [--cores 2] [--task-cores 1] [--partitions N] [--broadcast]

All sides get the same answers (see speed.py: K = 10, 5 answers per task, 100 per worker) and do Dawid-Skene. An
iteration costs (time of n + m iterations - time of n) / m by the wall clock, because Spark works in other processes.
Sides take turns. On one machine parameters and statistics are handed over in files; with --broadcast they go through
Spark, as they do on a cluster. The targets: at most 12 times an iteration in memory on the same cores, and at least 5
times faster than crowd-kit.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from speed import Figure, Target, short, simulate

import crowdwise as cw

CLASSES = 10
FEW, MORE = 2, 8  # iterations
MAX_PEER_ANSWERS = 10_000_000


def session(cores: int, memory: str, task_cores: int) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.driver.memory": memory,
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.maxResultSize": "0",
        "spark.task.cpus": str(task_cores), "spark.python.unix.domain.socket.enabled": "true",
    }  # fmt: skip
    builder = SparkSession.builder.master(f"local[{cores}]").appName("bench")
    for name, value in settings.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    return found


def per_iteration(fit: Callable[[int], Any], few: int = FEW, more: int = MORE) -> float:
    took = []
    for count in (few, few + more):
        began = time.perf_counter()
        fit(count)
        took.append(time.perf_counter() - began)
    return (took[1] - took[0]) / more


def crowdkit_fit(answers: Any) -> Callable[[int], Any]:
    from crowdkit.aggregation import DawidSkene

    frame = answers.pandas()

    def fit(iterations: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return DawidSkene(n_iter=iterations, tol=-1.0).fit(frame)

    return fit


def send_through_spark(kind: Any) -> None:
    """Let executors of these answers use no files to hand over numbers."""
    make = kind.executor

    def executor(self: Any, shard: Any) -> Any:
        found = make(self, shard)
        found.near = None
        return found

    kind.executor = executor


def measure(
    n_answers: int, cores: int, task_cores: int, partitions: int | None, memory: str, repeats: int, broadcast: bool
) -> list[Figure]:
    from crowdwise.spark.labels import read_labels

    answers = simulate(n_answers, CLASSES)
    spark = session(cores, memory, task_cores)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "answers.parquet")
        import polars as pl

        pl.DataFrame(answers._asdict()).write_parquet(path, row_group_size=max(n_answers // 16, 1))
        began = time.perf_counter()
        split = read_labels(spark.read.parquet(path), {}, partitions=partitions)
        reading = time.perf_counter() - began
        if broadcast:
            send_through_spark(type(split))
        whole = answers.labels()
        run = cw.Run(threads=cores)

        def fit(on: Any) -> Callable[[int], Any]:
            return lambda count: cw.DawidSkene(max_iter=count, tol=0.0).fit(on, run=run)

        sides = {"memory": fit(whole), "spark": fit(split)}
        for each in sides.values():
            each(1)
        times: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(repeats):
            for name, each in sides.items():
                times[name].append(per_iteration(each))
        took = {name: statistics.median(seen) for name, seen in times.items()}
        if n_answers <= MAX_PEER_ANSWERS:
            took["crowd-kit"] = per_iteration(crowdkit_fit(answers), 1, 4)
    details = {f"{name} s": seconds for name, seconds in took.items()}
    how = ", one task" * (task_cores == cores) + ", broadcast" * broadcast
    size = f"{short(n_answers)} answers, K = {CLASSES}, {cores} cores{how}"
    figures = [
        Figure("spark", f"reading, {size}", reading, "s"),
        Figure(
            "spark", f"iteration / in memory, {size}", took["spark"] / took["memory"], "x", Target("<=", 12), details
        ),
    ]
    if "crowd-kit" in took:
        figures.append(
            Figure("spark", f"crowd-kit / iteration, {size}", took["crowd-kit"] / took["spark"], "x", Target(">=", 5))
        )
    spark.stop()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="100,000 answers instead of 10 million")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--task-cores", type=int, default=1, help="cores of a task: spark.task.cpus")
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--memory", default="4g", help="of Spark's Java process")
    parser.add_argument("--broadcast", action="store_true", help="send all numbers through Spark, as on a cluster")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    count = 100_000 if given.small else 10_000_000
    figures = measure(
        count, given.cores, given.task_cores, given.partitions, given.memory, given.repeats, given.broadcast
    )
    for figure in figures:
        print(figure)
    if given.json:
        given.json.write_text(json.dumps([figure._asdict() | {"details": dict(figure.details)} for figure in figures]))


if __name__ == "__main__":
    main()
