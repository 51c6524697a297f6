"""Compare the speed of two versions of this package: ratios of processor time, new over old.

python bench/versions.py OLD NEW [--rounds 5] [--only labels,clicks,...]

OLD and NEW are checkouts. Each job runs in its own process, old and new in turns, so that other load on the machine
affects both alike. The first round compiles the kernels and does not count. An iteration costs (time of n + m
iterations - time of n) / m, so that the set-up cancels. One thread.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MAX_RATIO = 1.05  # above this, a job is marked as slower
SHORT_ITERATIONS, EXTRA_ITERATIONS = 5, 40  # of the short fit, and what the long fit adds
LABELS = ("dawid-skene", "pooled", "one-coin", "mace", "glad", "groups")


def crowd(cw: Any, n_answers: int = 500_000) -> Any:
    """Return a function that builds answers of 5,000 workers to tasks of 4 classes, in random order."""
    rng = np.random.default_rng(0)
    task = rng.permutation(np.repeat(np.arange(n_answers // 5), 5))
    worker, truth = rng.integers(0, 5_000, n_answers), rng.integers(0, 4, n_answers // 5)
    right = rng.random(n_answers) < rng.beta(6, 2, 5_000)[worker]
    label = np.where(right, truth[task], (truth[task] + rng.integers(1, 4, n_answers)) % 4)
    return lambda: cw.Labels(task, worker, label, duplicates="each")


def per_iteration(fit: Callable[[int], Any]) -> float:
    """Seconds per iteration; the first fit only compiles."""
    fit(2)
    seconds = []
    for iterations in (SHORT_ITERATIONS, SHORT_ITERATIONS + EXTRA_ITERATIONS):
        began = time.process_time()
        fit(iterations)
        seconds.append(time.process_time() - began)
    return (seconds[1] - seconds[0]) / EXTRA_ITERATIONS


def labels(cw: Any) -> dict[str, float]:
    make, run = crowd(cw), cw.Run(threads=1)
    began = time.process_time()
    answers = make()
    found = {"sorting of answers": time.process_time() - began}
    for name in LABELS:
        found[name] = per_iteration(lambda n, name=name: cw.model(name, max_iter=n, tol=0).fit(answers, run=run))
    began = time.process_time()
    result = cw.model("pooled", max_iter=30).fit(answers, run=run)
    tables = result.labels, result.workers, result.tasks
    return found | {f"fit with {len(tables)} tables": time.process_time() - began}


def clicks(cw: Any) -> dict[str, float]:
    points, run = cw.simulate.clicks("E", workers=400, total=20_000, seed=1).points, cw.Run(threads=1)
    paper = per_iteration(
        lambda n: cw.ClickMixture(method="paper", max_iter=n, start=20, objects=20).fit(points, run=run)
    )
    small = cw.simulate.clicks("E", seed=1).points
    cw.ClickMixture().fit(small, run=run)
    began = time.process_time()
    for _ in range(5):
        cw.ClickMixture().fit(small, run=run)
    return {"click-mixture, paper": paper, "click-mixture, merge, whole fit": (time.process_time() - began) / 5}


def pairs(cw: Any) -> dict[str, float]:
    sim, run = cw.simulate.pinwheel(per_cluster=2_000, asked=2_000, workers=200, seed=1), cw.Run(threads=1)
    fit = per_iteration(
        lambda n: cw.PairMixture(max_iter=n, restarts=1, turn=False).fit(sim.pairs, features=sim.features, run=run)
    )
    return {"pair-mixture": fit}


def classifiers(cw: Any) -> dict[str, float]:
    sim = cw.simulate.experts(tasks=2_000, seed=1)
    ids = sim.truth["task"]
    began = time.process_time()
    for side in ("confusion", "learned", "groups"):
        cw.CrowdClassifier(workers=side, n_jobs=1).fit(sim.features, sim.answers, tasks=ids)
    return {"three classifiers": time.process_time() - began}


def start(cw: Any) -> dict[str, float]:
    began = time.perf_counter()
    for _ in range(5):
        subprocess.run([sys.executable, "-m", "crowdwise", "--help"], check=True, capture_output=True)
    return {"--help from the shell": (time.perf_counter() - began) / 5}


JOBS: dict[str, Callable[[Any], dict[str, float]]] = {
    "labels": labels, "clicks": clicks, "pairs": pairs, "classifiers": classifiers, "start": start,
}  # fmt: skip


def measure(checkout: Path, job: str) -> dict[str, float]:
    """Run one job in a process that imports the package from a checkout."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(checkout / "src"),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, __file__, "--job", job]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, cwd=checkout)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", type=Path, help="OLD NEW")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(JOBS))
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        import crowdwise

        print(json.dumps(JOBS[given.job](crowdwise)))
        return
    old, new = (tree.resolve() for tree in given.trees)
    for job in given.only.split(","):
        rounds = [(measure(old, job), measure(new, job)) for _ in range(given.rounds + 1)][1:]
        for name in rounds[0][0]:
            ratio = statistics.median(after[name] / before[name] for before, after in rounds)
            seconds = statistics.median(after[name] for _, after in rounds)
            print(
                f"{name:34} {ratio:6.3f} times   {1e3 * seconds:9.2f} ms   {'slower' if ratio > MAX_RATIO else ''}",
                flush=True,
            )


if __name__ == "__main__":
    main()
