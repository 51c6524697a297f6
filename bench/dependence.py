"""Copies, shared errors and chance in simulated crowds: what the default finds, and what that does to its labels.

python bench/dependence.py [--seeds N]

Per kind of crowd, means over seeds: share of right labels by the vote, by the free fit (`anchor=0`, no search for
copies) and by the default; what the default reports; its calibration error; workers flagged as copies, rightly and
wrongly; the evidence for shared errors.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from quality import calibration_error

import crowdwise as cw

Rng: TypeAlias = np.random.Generator
Crowd: TypeAlias = tuple[cw.Labels, Any, set[str]]  # answers, truth (T,), workers who are copies


def answer(truth: Any, matrices: Any, rng: Rng) -> Any:
    """(T, W) labels by confusion matrices (W, K, K)."""
    edges = np.cumsum(matrices[:, truth], axis=2)  # (W, T, K)
    return (rng.random(edges.shape[:2])[:, :, None] > edges).sum(2).T.clip(max=matrices.shape[1] - 1)


def even(accuracy: Any, K: int) -> Any:
    """Confusion matrices (W, K, K) of workers whose errors are equally likely."""
    p = np.asarray(accuracy, float)[:, None, None]
    return np.where(np.eye(K, dtype=bool), p, (1 - p) / (K - 1))


def table(columns: Any, per_task: int, truth: Any, rng: Rng, copies: int = 0) -> Crowd:
    """Answers of `per_task` workers to every task; the last `copies` workers are copies."""
    T, W = columns.shape
    task, worker = np.nonzero(np.argsort(rng.random((T, W)), axis=1) < per_task)
    names = [f"w{j:02d}" for j in range(W)]
    found = cw.Labels([f"t{i:04d}" for i in task], [names[j] for j in worker], columns[task, worker])
    return found, truth, set(names[W - copies :])


def independent(matrices: Callable[[Rng], Any], T: int, per_task: int, prior: Any = None) -> Callable[[Rng], Crowd]:
    def make(rng: Rng) -> Crowd:
        pi = matrices(rng)
        truth = rng.choice(pi.shape[1], T, p=prior)
        return table(answer(truth, pi, rng), per_task, truth, rng)

    return make


def copied(K: int, accuracy: float, copies: int, noise: float = 0.0, T: int = 200) -> Callable[[Rng], Crowd]:
    """7 honest workers of accuracy 0.75, and copies of one worker; every task is answered by all."""

    def make(rng: Rng) -> Crowd:
        truth = rng.integers(0, K, T)
        source = answer(truth, even([accuracy], K), rng)
        repeated = np.where(rng.random((T, copies)) < noise, rng.integers(0, K, (T, copies)), source)
        columns = np.hstack([answer(truth, even([0.75] * 7, K), rng), repeated])
        return table(columns, 7 + copies, truth, rng, copies)

    return make


def ring(K: int) -> Callable[[Rng], Crowd]:
    """60 workers, 5 answers per task; 18 give the answers of one coin."""

    def make(rng: Rng) -> Crowd:
        truth = rng.integers(0, K, 600)
        columns = np.hstack([answer(truth, even([0.75] * 42, K), rng), np.repeat(rng.integers(0, K, (600, 1)), 18, 1)])
        return table(columns, 5, truth, rng, 18)

    return make


def confusion(rng: Rng) -> Any:
    draws = rng.standard_gamma(10 * even([0.7], 4)[0], size=(50, 4, 4))
    return draws / draws.sum(2, keepdims=True)


def lopsided(rng: Rng) -> Any:
    """The first class is nearly always recognised, the second by 35 to 75 %."""
    p = rng.uniform(0.35, 0.75, 40)
    return np.stack([np.stack([[0.95, 0.05], [1 - each, each]]) for each in p])


def constant(rng: Rng) -> Any:
    pi = even([0.8] * 40, 3)
    pi[:20] = [1.0, 0.0, 0.0]
    return pi


def spammers(share: float, K: int) -> Callable[[Rng], Any]:
    return lambda rng: even(np.where(np.arange(50) < share * 50, 1 / K, 0.9), K)


KINDS: dict[str, Callable[[Rng], Crowd]] = {
    "3 copies of a worker of 0.7": copied(2, 0.7, 3),
    "3 copies of a coin": copied(2, 0.5, 3),
    "3 copies of a coin, 10 % noise": copied(2, 0.5, 3, 0.1),
    "3 copies of a coin, 60 tasks": copied(2, 0.5, 3, T=60),
    "5 copies of a coin, K = 4": copied(4, 0.25, 5),
    "5 copies of a coin, K = 4, 10 % noise": copied(4, 0.25, 5, 0.1),
    "ring of 18 of 60, K = 2": ring(2),
    "ring of 18 of 60, K = 4": ring(4),
    "Dawid-Skene, 10 answers": independent(confusion, 500, 10),
    "Dawid-Skene, 5 answers": independent(confusion, 500, 5),
    "Dawid-Skene, 3 answers": independent(confusion, 500, 3),
    "lopsided errors, 5 answers": independent(lopsided, 500, 5),
    "half random spammers, 5 answers": independent(spammers(0.5, 4), 500, 5),
    "half random spammers, 10 answers": independent(spammers(0.5, 4), 500, 10),
    "80 % random spammers, 10 answers": independent(spammers(0.8, 2), 500, 10),
    "half constant spammers, 5 answers": independent(constant, 500, 5),
    "a class of 10 %, 5 answers": independent(lambda rng: even(rng.beta(7.5, 2.5, 40), 2), 600, 5, [0.1, 0.9]),
    "a class of 10 %, 10 answers": independent(lambda rng: even(rng.beta(7.5, 2.5, 40), 2), 600, 10, [0.1, 0.9]),
    "7 honest workers": independent(lambda rng: even([0.75] * 7, 2), 200, 7),
    "3 experts among 12": independent(lambda rng: even([0.97] * 3 + [0.6] * 9, 2), 200, 12),
    "coin flips": independent(lambda rng: even([0.5] * 30, 2), 300, 5),
    "coin flips, K = 4": independent(lambda rng: even([0.25] * 30, 4), 300, 5),
    "one answer per task": independent(lambda rng: even(rng.uniform(0.5, 0.9, 20), 2), 400, 1),
}


def measured(crowd: Crowd) -> list[float]:
    answers, truth, copies = crowd
    fits = [
        cw.aggregate(answers, "soft-vote"),
        cw.aggregate(answers, anchor=0.0, copying=1.0, calibrate=False),
        cw.aggregate(answers),
    ]
    correct = [
        (fit.classes.to_numpy()[fit.posterior.argmax(1)] == truth[[int(task[1:]) for task in answers.tasks]])
        for fit in fits
    ]
    top = fits[2].posterior.max(1).astype(float)
    flagged = set(fits[2].workers.filter(pl.col("flags").str.contains("copies"))["worker"])
    return [
        *(100 * float(each.mean()) for each in correct),
        100 * float(top.mean()),
        100 * calibration_error(top, correct[2].astype(float)),
        len(flagged & copies) / max(len(copies), 1),
        len(flagged - copies),
        float(fits[2].params.found[1]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6)
    seeds = parser.parse_args().seeds
    names = ("vote", "free", "default", "reported", "ECE", "found", "wrong", "shared")
    print(f"{'crowd':40}" + "".join(f"{name:>9}" for name in names))
    for kind, make in KINDS.items():
        mean = np.mean([measured(make(np.random.default_rng(seed))) for seed in range(seeds)], axis=0)
        print(f"{kind:40}" + "".join(f"{value:>9.1f}" for value in mean[:5]) + "".join(f"{v:>9.2f}" for v in mean[5:]))


if __name__ == "__main__":
    main()
