"""Groups of annotators: time, memory and accuracy by number of workers.

python bench/groups.py [--only growth,million,images] [--json FILE]

growth   1 million answers, 3 classes, 100 to 1,000,000 workers: seconds per iteration, peak memory above the answers,
         accuracy of the labels and of the groups, for `tied`, `groups`, `dawid-skene` and `pooled`, and for `cmm` with
         two features and a logistic classifier
million  10 million answers from 1 million workers, 5 classes: `groups` from codes to labels (target: below 3 GB)
images   50,000 x 128 features, 10 classes, 150,000 answers from 10,000 workers, a network: `dl-em`, `groups`, `tied`
         and `cmm` (target: below 4 GB)
quality.py measures the accuracy of `groups` and `tied` on real sets.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import crowdwise as cw
from crowdwise.kernels.special import classes_of
from crowdwise.learn.sides import by_name

KINDS = np.array(cw.simulate.LEVELS) / np.sum(cw.simulate.LEVELS, 2, keepdims=True)


def crowd(answers: int, workers: int, matrices: Any, seed: int = 0) -> tuple[cw.Labels, Any, Any]:
    """Simulate five answers per task from workers of three levels; returns answers, true classes and levels."""
    rng = np.random.default_rng(seed)
    K, tasks = matrices.shape[1], answers // 5
    truth = rng.integers(0, K, tasks).astype(np.int32)
    level = rng.choice(len(matrices), workers, p=cw.simulate.SHARES)
    task, worker = (each.astype(np.int32) for each in cw.simulate.assign_workers(tasks, workers, 5, rng=rng))
    edges = matrices.cumsum(2)
    label = np.empty(len(task), np.int8)
    for start in range(0, len(task), 1_000_000):
        part = slice(start, start + 1_000_000)
        draw = rng.random(len(task[part]))[:, None]
        label[part] = (draw > edges[level[worker[part]], truth[task[part]]]).sum(1).clip(max=K - 1)
    return cw.Labels(task, worker, label), truth, level


def five_classes() -> Any:
    """Confusion matrices (3, 5, 5) of three levels: accurate, confusing neighbours, nearly always the first label."""
    good = 0.85 * np.eye(5) + 0.15 * (1 - np.eye(5)) / 4
    near = 0.55 * np.eye(5) + 0.45 * np.roll(np.eye(5), 1, axis=1)
    return np.stack([good, near, np.tile([0.9, 0.025, 0.025, 0.025, 0.025], (5, 1))])


def accuracy(result: cw.LabelsResult, truth: Any) -> float:
    """Share of tasks whose estimated class is the true one."""
    estimated = classes_of(result.posterior, result.prevalence, result.answers.gold)
    return float((estimated == truth).mean())


def peak() -> float:
    """Peak memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def in_own_process(work: Any, *args: Any) -> dict[str, Any]:
    """Run `work` in a separate process, so that peak memory is measured for it alone."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return dict(pool.submit(work, *args).result())


def _growth(name: str, workers: int) -> dict[str, Any]:
    answers, truth, level = crowd(1_000_000, workers, KINDS)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(len(truth), 2)) + 1.5 * np.array([[0, 1], [0, -1], [1, 0]])[truth]
    fits = []
    before = peak()
    for iterations in (1, 3, 13):  # the first compiles
        began = time.process_time()
        if name == "cmm":
            side = cw.learn.CMM(max_iter=iterations, tol=0.0)
            result = cw.CrowdClassifier("logistic", side, n_jobs=1).fit(X, answers, tasks=np.arange(len(X))).result_
        else:
            result = cw.aggregate(answers, name, run=cw.Run(threads=1), max_iter=iterations, tol=0.0)
        fits.append(time.process_time() - began)
    seen = answers.workers.to_numpy()
    grouped = result.model.grouping(result.params)
    ari = (
        cw.rand_index(result, dict(zip(seen.tolist(), level[seen].tolist(), strict=True))) if name == "groups" else None
    )
    return {
        "model": name,
        "workers": workers,
        "s per iteration": (fits[2] - fits[1]) / 10,
        "MB above answers": 1000 * (peak() - before),
        "truth": accuracy(result, truth),
        "groups": None if grouped is None else len(grouped.share),
        "ARI": ari,
    }


def growth() -> list[dict[str, Any]]:
    names = ("tied", "groups", "cmm", "pooled", "dawid-skene")
    return [in_own_process(_growth, name, workers) for name in names for workers in (100, 10_000, 1_000_000)]


def _million() -> dict[str, Any]:
    answers, truth, level = crowd(10_000_000, 1_000_000, five_classes())
    made, began = peak(), time.perf_counter()
    result = cw.aggregate(answers, "groups")
    seconds = time.perf_counter() - began
    seen = answers.workers.to_numpy()
    ari = cw.rand_index(result, dict(zip(seen.tolist(), level[seen].tolist(), strict=True)))
    return {
        "answers": answers.n_answers,
        "workers": answers.n_workers,
        "seconds": seconds,
        "iterations": result.trace.height,
        "peak GB, making the answers": made,
        "peak GB": peak(),
        "truth": accuracy(result, truth),
        "vote": accuracy(cw.aggregate(answers, "majority-vote"), truth),
        "groups": len(result.grouping.share),
        "ARI": ari,
    }


def million() -> list[dict[str, Any]]:
    return [in_own_process(_million)]


def _images(name: str) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 10, 50_000)
    X = (rng.normal(size=(50_000, 128)) + 0.35 * rng.normal(size=(10, 128))[truth]).astype(np.float32)
    levels = np.stack([a * np.eye(10) + (1 - a) / 10 for a in (0.9, 0.6, 0.3, 0.0)])
    shares = (0.2, 0.45, 0.15, 0.2)
    sim = cw.simulate.levels(truth, levels, shares, workers=10_000, per_task=3, features=X, seed=1)
    before, began = peak(), time.perf_counter()
    network = cw.learn.Network(hidden=128, dropout=0.5, batch_size=256, weight_decay=0.0, holdout=0.0)
    model = cw.CrowdClassifier(network, by_name(name, max_iter=10)).fit(X, sim.answers, tasks=sim.answers.tasks)
    return {
        "side": name,
        "seconds, 10 iterations": time.perf_counter() - began,
        "peak GB": peak(),
        "GB above data": peak() - before,
        "truth": accuracy(model.result_, truth),
    }


def images() -> list[dict[str, Any]]:
    return [in_own_process(_images, name) for name in ("dl-em", "groups", "tied", "cmm")]


SECTIONS = {"growth": growth, "million": million, "images": images}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(SECTIONS))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    out = {}
    for name in given.only.split(","):
        out[name] = SECTIONS[name]()
        print(name)
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
            print(pl.DataFrame(out[name], infer_schema_length=None), flush=True)
    if given.json:
        given.json.write_text(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
