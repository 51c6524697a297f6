"""How fast agreement and ratings are: against `krippendorff` on a table it can hold, then at 10 million answers.

The peer wants a dense matrix of workers and tasks; the ratio is measured on the same answers in one run. At 10 million
answers such a matrix would have 20 billion cells, so only our own time is reported there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import krippendorff
import numpy as np

import crowdwise as cw


def seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def against_krippendorff() -> None:
    answers = cw.simulate.crowd("one-coin", tasks=50_000, workers=100, classes=5, per_task=5, seed=1).answers
    task, worker, label = answers.codes()
    dense = np.full((answers.n_workers, answers.n_tasks), np.nan)
    dense[worker, task] = label
    cw.agreement(answers)
    theirs = seconds(lambda: krippendorff.alpha(dense, level_of_measurement="nominal"))
    ours = seconds(lambda: cw.agreement(answers))
    print(f"250,000 answers: krippendorff {theirs:.2f} s (alpha), crowdwise {ours:.2f} s (five measures, intervals)")
    print(f"ratio {theirs / ours:.1f}")


def ten_million(workers: int, per_task: int) -> None:
    tasks = 10_000_000 // per_task
    answers = cw.simulate.crowd("one-coin", tasks=tasks, workers=workers, classes=10, per_task=per_task, seed=1).answers
    took = seconds(lambda: cw.agreement(answers))
    print(f"10 million answers, {workers} workers, {per_task} answers per task: agreement {took:.1f} s")
    result = cw.aggregate(answers, "majority-vote")
    print(f"    ratings of workers {seconds(lambda: result.workers):.1f} s")


if __name__ == "__main__":
    against_krippendorff()
    ten_million(20_000, 10)
    ten_million(100, 50)
