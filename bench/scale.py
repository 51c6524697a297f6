"""Fits beyond memory: a simulated table straight to Parquet, read and fitted under a memory limit, against the sweep in
memory.

python bench/scale.py [--answers 100000000] [--memory 2GB] [--models dawid-skene,pooled] [--folder DIR] [--json FILE]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl

CHUNK = 5_000_000  # answers in a file


def mixed(values: np.ndarray, seed: int) -> np.ndarray:
    """Return pseudo-random 64-bit numbers, a function of the values (splitmix64)."""
    x = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15 * (seed + 1) % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def uniform(values: np.ndarray, seed: int) -> np.ndarray:
    return (mixed(values, seed) >> np.uint64(11)).astype(np.float64) / 2**53


def answers(index: np.ndarray, n: int, tasks: int, workers: int, classes: int) -> pl.DataFrame:
    """Return answers in the order of a log: every task has n / tasks answers by different workers, in random order."""
    step = next(s for s in range(int(0.618 * n) | 1, n * 2, 2) if np.gcd(s, n) == 1)
    place = (index.astype(object) * step % n).astype(np.int64) if n > 2**31 else index * step % n
    per_task = n // tasks
    task, slot = place // per_task, place % per_task
    stride = 1 + (mixed(task, 1) % np.uint64(max(workers // per_task - 1, 1))).astype(np.int64)
    worker = ((mixed(task, 2) % np.uint64(workers)).astype(np.int64) + slot * stride) % workers
    truth = (mixed(task, 3) % np.uint64(classes)).astype(np.int64)
    skill = 0.5 + 0.45 * uniform(worker, 4)
    wrong = (truth + 1 + (mixed(place, 5) % np.uint64(classes - 1)).astype(np.int64)) % classes
    label = np.where(uniform(place, 6) < skill, truth, wrong)
    names = pl.DataFrame({"task": task, "worker": worker, "label": label})
    return names.select(
        pl.format("task-{}", pl.col("task").cast(pl.String).str.zfill(9)).alias("task"),
        pl.format("w{}", pl.col("worker")).alias("worker"),
        pl.format("class {}", pl.col("label")).alias("label"),
    )


def simulate(folder: Path, n: int, tasks: int, workers: int, classes: int) -> None:
    """Write the table as Parquet files, each in one go."""
    folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, n, CHUNK):
        path = folder / f"answers-{start // CHUNK:04d}.parquet"
        if not path.exists():
            frame = answers(np.arange(start, min(start + CHUNK, n)), n, tasks, workers, classes)
            frame.write_parquet(path.with_suffix(".new"))
            path.with_suffix(".new").rename(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=100_000_000)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/crowdwise-scale"))
    given = parser.parse_args()
    n = given.answers
    simulate(given.folder, n, n // 10, max(n // 200, 20), 5)
