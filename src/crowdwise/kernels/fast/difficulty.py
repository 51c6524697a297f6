"""Confusion matrices that depend on the ease of the task, compiled.

A task gathers the matrices of its workers, a worker the posteriors of its tasks; each answer costs K x K exponentials.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .. import TINY, EStepResult
from ..layout import Floats, Ints, Layout
from ..threads import run
from .blocks import by_answers, jit, normalise_task, run_e_step


@jit(inline="always")
def _label_probabilities(K, odds, ease, k, P):
    """Fill P (K,) with the probability of each label if k is the true class; return the expected odds."""
    top, total, mean = 0.0, 0.0, 0.0
    for m in range(K):
        top = min(top, ease * odds[k, m])
    for m in range(K):
        P[m] = math.exp(top - ease * odds[k, m])
        total += P[m]
    for m in range(K):
        P[m] /= total
        mean += P[m] * odds[k, m]
    return mean


@functools.cache
def _kernels(K: int) -> tuple[Any, Any, Any]:
    """Compile the kernels for K classes; a constant K lets the compiler unroll the loops over classes."""

    @jit
    def posterior(ptr, pair, row_worker, row_label, odds, ease, prior, gold, Z, slope, shares, start, stop):
        q, falls, P = np.empty(K), np.empty(K), np.empty(K)
        evidence, flips, wide = 0.0, 0, 1 if len(prior) > 1 else 0
        for i in range(start, stop):
            first, end = ptr[i], ptr[i + 1]
            for k in range(K):
                q[k] = math.log(prior[i * wide, k])
                falls[k] = 0.0
            for n in range(first, end):
                j, label = row_worker[pair[n]], row_label[pair[n]]
                for k in range(K):
                    mean = _label_probabilities(K, odds[j], ease[i], k, P)
                    q[k] += math.log(max(P[label], TINY))
                    falls[k] += mean - odds[j, k, label]
            gain, moved = normalise_task(q, first, end, 0.0, gold[i], Z, i, shares)
            evidence += gain
            flips += moved
            slope[i] = 0.0
            for k in range(K):
                slope[i] += q[k] * falls[k]
        return evidence, flips

    @jit
    def slopes(row_ptr, task, worker_ptr, row_label, odds, ease, Z, out, start, stop):
        P = np.empty(K)
        for j in range(start, stop):
            for r in range(worker_ptr[j], worker_ptr[j + 1]):
                for n in range(row_ptr[r], row_ptr[r + 1]):
                    i = task[n]
                    for k in range(K):
                        _label_probabilities(K, odds[j], ease[i], k, P)
                        weight = ease[i] * Z[i, k]
                        for m in range(K):
                            out[j, k, m] += weight * P[m]
                        out[j, k, row_label[r]] -= weight

    @jit
    def left_out(row_ptr, task, worker_ptr, row_label, odds, ease, gold, Z, right, sure, start, stop):
        P, q = np.empty(K), np.empty(K)
        for j in range(start, stop):
            for r in range(worker_ptr[j], worker_ptr[j + 1]):
                for n in range(row_ptr[r], row_ptr[r + 1]):
                    i, total, square = task[n], 0.0, 0.0
                    for k in range(K):
                        _label_probabilities(K, odds[j], ease[i], k, P)
                        q[k] = Z[i, k] if gold[i] >= 0 else Z[i, k] / max(P[row_label[r]], TINY)
                        total += q[k]
                        square += q[k] * q[k]
                    right[j] += q[row_label[r]] / total
                    sure[j] += square / (total * total)

    return posterior, slopes, left_out


def _by_work(layout: Layout) -> Ints:
    """Return bounds of blocks of workers, balanced by answers."""
    return by_answers(layout.row_ptr[layout.worker_ptr], layout.n_classes**2)


def difficulty_posterior(
    layout: Layout, odds: Floats, ease: Floats, prior: Floats, gold: Ints, Z: Floats, slope: Floats, threads: int
) -> EStepResult:
    parts = (layout.task_ptr, layout.pair, layout.row_worker, layout.row_label, odds, ease, prior, gold, Z, slope)
    kernel = functools.partial(_kernels(Z.shape[1])[0], *parts)
    return run_e_step(layout, Z, threads, kernel, layout.n_classes**2)


def difficulty_slopes(layout: Layout, odds: Floats, ease: Floats, Z: Floats, threads: int) -> Floats:
    out = np.zeros(odds.shape)
    parts = (layout.row_ptr, layout.task, layout.worker_ptr, layout.row_label, odds, ease, Z, out)
    kernel = _kernels(Z.shape[1])[1]
    run(lambda b, start, stop: kernel(*parts, start, stop), _by_work(layout), threads)
    return out


def difficulty_left_out(
    layout: Layout, odds: Floats, ease: Floats, gold: Ints, Z: Floats, threads: int
) -> tuple[Floats, Floats]:
    right, sure = np.zeros(layout.n_workers), np.zeros(layout.n_workers)
    parts = (layout.row_ptr, layout.task, layout.worker_ptr, layout.row_label, odds, ease, gold, Z, right, sure)
    kernel = _kernels(Z.shape[1])[2]
    run(lambda b, start, stop: kernel(*parts, start, stop), _by_work(layout), threads)
    return right, sure
