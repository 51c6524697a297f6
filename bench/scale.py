"""Fits beyond memory: a simulated table straight to Parquet, read and fitted under a memory limit, against the sweep in
memory.

python bench/scale.py [--answers 100000000] [--memory 2GB] [--models dawid-skene,pooled] [--folder DIR] [--json FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import crowdwise as cw

CHUNK = 5_000_000  # answers in a file


def mixed(values: np.ndarray, seed: int) -> np.ndarray:
    """Return pseudo-random 64-bit numbers, a function of the values (splitmix64)."""
    x = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15 * (seed + 1) % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def uniform(values: np.ndarray, seed: int) -> np.ndarray:
    return (mixed(values, seed) >> np.uint64(11)).astype(np.float64) / 2**53


def shape(n: int) -> tuple[int, int, int]:
    """Return the numbers of tasks, workers and classes: 10 answers per task, 200 per worker."""
    return n // 10, max(n // 200, 20), 5


def codes(index: np.ndarray, tasks: int, workers: int, classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return answers in the order of a log: every task has the same number of answers by different workers, in random
    order."""
    n = tasks * 10
    step = next(s for s in range(int(0.618 * n) | 1, n * 2, 2) if np.gcd(s, n) == 1)
    place = (index.astype(object) * step % n).astype(np.int64) if n > 2**31 else index * step % n
    per_task = n // tasks
    task, slot = place // per_task, place % per_task
    stride = 1 + (mixed(task, 1) % np.uint64(max(workers // per_task - 1, 1))).astype(np.int64)
    worker = ((mixed(task, 2) % np.uint64(workers)).astype(np.int64) + slot * stride) % workers
    truth = (mixed(task, 3) % np.uint64(classes)).astype(np.int64)
    skill = 0.5 + 0.45 * uniform(worker, 4)
    wrong = (truth + 1 + (mixed(place, 5) % np.uint64(classes - 1)).astype(np.int64)) % classes
    return task, worker, np.where(uniform(place, 6) < skill, truth, wrong)


def answers(index: np.ndarray, tasks: int, workers: int, classes: int) -> pl.DataFrame:
    """Return answers with names like those in exports of platforms."""
    names = pl.DataFrame(dict(zip(("task", "worker", "label"), codes(index, tasks, workers, classes), strict=True)))
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
            frame = answers(np.arange(start, min(start + CHUNK, n)), tasks, workers, classes)
            frame.write_parquet(path.with_suffix(".new"))
            path.with_suffix(".new").rename(path)


# --------------------------------------------------------------------------------------------------- measurements


def peak() -> float:
    """Peak resident memory of this process in GB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1e6
    raise RuntimeError("/proc/self/status has no VmHWM")


def fitted(labels: Any, model: str, iterations: int) -> tuple[Any, dict[str, float]]:
    """Fit, and return the result with seconds per iteration (the median, without the first) and in total."""
    times = [time.perf_counter()]
    run = cw.Run(watch=lambda step: times.append(time.perf_counter()))
    result = cw.model(model, max_iter=iterations, tol=0.0).fit(labels, run=run)
    each = statistics.median(b - a for a, b in pairwise(times[1:]))
    return result, {"iteration s": each, "fit s": time.perf_counter() - times[0]}


def child_disk(folder: str, memory: str, model: str, iterations: str) -> dict[str, float]:
    began = time.perf_counter()
    labels = cw.read(folder, memory=memory)
    spent = time.perf_counter() - began
    read = peak()
    result, times = fitted(labels, model, int(iterations))
    with tempfile.TemporaryDirectory(dir=Path(folder).parent) as out:
        result.save(out)
    parts = float(getattr(labels, "n_parts", 1))
    return {"read s": spent, "read GB": read, "parts": parts, **times, "peak GB": peak()}


def child_memory(n: str, model: str, iterations: str) -> dict[str, float]:
    size = int(n)
    columns = codes(np.arange(size), *shape(size))
    labels = cw.Labels(*columns)
    del columns
    return fitted(labels, model, int(iterations))[1] | {"peak GB": peak()}


def child(name: str, *values: object) -> dict[str, float]:
    """Run a measurement in a process of its own."""
    words = [sys.executable, __file__, "--child", name, *map(str, values)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


CHILDREN = {"disk": child_disk, "memory": child_memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=100_000_000)
    parser.add_argument("--in-memory", type=int, help="answers of the fit in memory, default the same")
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--models", default="dawid-skene,pooled")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="folder for the table; kept for the next run")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(CHILDREN[given.child[0]](*given.child[1:])))
        return
    n, small = given.answers, given.in_memory or given.answers
    figures = {}
    with contextlib.ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "answers"
        simulate(folder, n, *shape(n))
        for model in given.models.split(","):
            disk = child("disk", folder, given.memory, model, given.iterations)
            memory = child("memory", small, model, 6)
            ratio = (disk["iteration s"] / n) / (memory["iteration s"] / small)
            figures[model] = {"disk": disk, "memory": memory, "ratio": ratio}
            print(f"{model}: {n} answers, peak {disk['peak GB']:.2f} GB under {given.memory}", disk)
            print(f"{model}: {small} answers in memory", memory)
            print(f"{model}: an iteration per answer on disk over in memory: {ratio:.2f} (target <= 1.6)", flush=True)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
