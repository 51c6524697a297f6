"""Full confusion matrices, compiled.

There are two gather passes and no atomics: a task's posterior multiplies the rows of its answers, and a row's counts
sum the posteriors of its tasks.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .. import TINY, EStepResult
from ..layout import Floats, Ints, Layout, RowTable, weighted_counts
from .blocks import PREFETCH_AHEAD, by_answers, by_workers, jit, prefetch, run, run_e_step, stored

LINE_FLOATS = 16  # float32 numbers in a cache line
RESCALE_EVERY = 8  # factors multiplied before the products are rescaled
MIN_RATIO = TINY**RESCALE_EVERY  # smaller classes could underflow before the next rescaling
MAX_CACHED_ANSWERS = 64  # answers of a task whose logarithms are cached


@functools.cache
def _confusion_kernels(K: int) -> tuple[Any, Any]:
    """Compile the kernels for K classes. A constant K makes them twice as fast for up to 10 classes; NaN cannot occur,
    and `nnan` lets the compiler use this."""

    @jit(fastmath={"nnan", "nsz"})
    def posterior(ptr, pair, P, prior, gold, Z, shares, start, stop):
        q, logs, sums = np.empty(K), np.empty(K), np.zeros(K)
        evidence, flips, wide, last = 0.0, 0, 1 if len(prior) > 1 else 0, len(pair) - 1
        for i in range(start, stop):
            first, end = ptr[i], ptr[i + 1]
            for k in range(K):
                q[k] = prior[i * wide, k]
            scale, since, separate = 0.0, 0, False  # separate: each class has its own logarithm in `logs`
            for n in range(first, end):
                ahead = pair[min(n + PREFETCH_AHEAD, last)]
                for k in range(0, K, LINE_FLOATS):
                    prefetch(P, ahead, k)
                if K > 2:  # a row may span two cache lines
                    prefetch(P, ahead, K - 1)
                r = pair[n]
                for k in range(K):
                    q[k] *= P[r, k]
                since += 1
                if since == RESCALE_EVERY:
                    since = 0
                    top, low = 0.0, np.inf
                    for k in range(K):
                        top, low = max(top, q[k]), min(low, q[k])
                    if low > top * MIN_RATIO:
                        for k in range(K):
                            q[k] /= top
                        scale += math.log(top)
                    else:
                        for k in range(K):
                            logs[k] = (logs[k] if separate else 0.0) + math.log(q[k])
                            q[k] = 1.0
                        separate = True
            if separate:
                top = -np.inf
                for k in range(K):
                    logs[k] += math.log(q[k])
                    top = max(top, logs[k] if gold[i] < 0 or k == gold[i] else -np.inf)
                for k in range(K):
                    q[k] = math.exp(logs[k] - top)
                scale += top
            if gold[i] >= 0:
                for k in range(K):
                    q[k] = q[k] if k == gold[i] else 0.0
            total = 0.0
            for k in range(K):
                total += q[k]
            inverse = 1.0 / total
            was, kept, now = Z[i, 0], Z.dtype.type(-1.0), Z.dtype.type(-1.0)
            for k in range(K):
                was = max(was, Z[i, k])
            for k in range(K):  # the label changed if its class is no longer the most probable, as stored
                q[k] *= inverse
                z = stored(q[k], Z)
                kept = max(kept, z if Z[i, k] == was else Z.dtype.type(-1.0))
                now = max(now, z)
                Z[i, k] = z
            if gold[i] >= 0:
                Z[i, gold[i]] = 1.0
            if end > first:
                evidence += scale + math.log(total)
                flips += kept < now
                for k in range(K):
                    sums[k] += Z[i, k]
        shares[:] = sums
        return evidence, flips

    @jit
    def counts(ptr, task, Z, C, start, stop):
        total = np.empty(K)
        last = len(task) - 1
        for r in range(start, stop):
            for k in range(K):
                total[k] = 0.0
            for n in range(ptr[r], ptr[r + 1]):
                ahead = task[min(n + PREFETCH_AHEAD, last)]
                for k in range(0, K, LINE_FLOATS):
                    prefetch(Z, ahead, k)
                if K > 2:
                    prefetch(Z, ahead, K - 1)
                i = task[n]
                for k in range(K):
                    total[k] += Z[i, k]
            for k in range(K):
                C[r, k] = total[k]

    return posterior, counts


def confusion_posterior(layout: Layout, P: Floats, prior: Floats, gold: Ints, Z: Floats, threads: int) -> EStepResult:
    kernel = _confusion_kernels(Z.shape[1])[0]
    return run_e_step(
        layout,
        Z,
        threads,
        lambda shares, a, b: kernel(layout.task_ptr, layout.pair, P, prior, gold, Z, shares, a, b),
    )


def confusion_counts(layout: Layout, Z: Floats, threads: int) -> Floats:
    kernel = _confusion_kernels(Z.shape[1])[1]
    C = np.empty((layout.n_rows, Z.shape[1]))  # double, so that sums over shards are exact
    run(
        lambda b, start, stop: kernel(layout.row_ptr, layout.task, Z, C, start, stop),
        by_answers(layout.row_ptr),
        threads,
    )
    return C


@jit
def _left_out(ptr, task, row_label, P, gold, Z, right, sure, start, stop):
    K = Z.shape[1]
    for r in range(start, stop):
        for n in range(ptr[r], ptr[r + 1]):
            i = task[n]
            total, square, of_label = 0.0, 0.0, 0.0
            for k in range(K):
                q = Z[i, k] if gold[i] >= 0 else Z[i, k] / P[r, k]
                total += q
                square += q * q
                if k == row_label[r]:
                    of_label = q
            right[r] += of_label / total
            sure[r] += square / (total * total)


def confusion_left_out(layout: Layout, P: Floats, gold: Ints, Z: Floats, threads: int) -> tuple[Floats, Floats]:
    right, sure = np.zeros(layout.n_rows), np.zeros(layout.n_rows)
    parts = (layout.row_ptr, layout.task, layout.row_label, P, gold, Z, right, sure)
    run(lambda b, start, stop: _left_out(*parts, start, stop), by_answers(layout.row_ptr), threads)
    return right, sure


@jit
def _cavity(ptr, pair, row_worker, row_label, C, totals, a, above, log_prior, gold, Z, right, sure, start, stop):
    K = Z.shape[1]
    logs, q = np.empty((MAX_CACHED_ANSWERS, K)), np.empty(K)
    for i in range(start, stop):
        first, last = ptr[i], ptr[i + 1]
        keep = last - first <= MAX_CACHED_ANSWERS  # logarithms of small tasks are cached, others are recomputed
        q[:] = log_prior[i if len(log_prior) > 1 else 0]
        for n in range(first, last):
            r = pair[n]
            j, label = row_worker[r], row_label[r]
            for k in range(K):
                z = Z[i, k]
                x = math.log((max(C[r, k] - z, 0.0) + a[k, label]) / (max(totals[j, k] - z, 0.0) + above[k]))
                q[k] += x
                if keep:
                    logs[n - first, k] = x
        for n in range(first, last):
            r = pair[n]
            j, label = row_worker[r], row_label[r]
            top, total, square, of_label = -np.inf, 0.0, 0.0, 0.0
            own = logs[n - first if keep else 0]
            for k in range(K):
                if not keep:
                    z = Z[i, k]
                    own[k] = math.log((max(C[r, k] - z, 0.0) + a[k, label]) / (max(totals[j, k] - z, 0.0) + above[k]))
                top = max(top, q[k] - own[k])
            for k in range(K):
                x = Z[i, k] if gold[i] >= 0 else math.exp(q[k] - own[k] - top)
                total += x
                square += x * x
                if k == label:
                    of_label = x
            right[n], sure[n] = of_label / total, square / (total * total)


def cavity_left_out(
    layout: Layout, counts: Floats, totals: Floats, a: Floats, prior: Floats, gold: Ints, Z: Floats, threads: int
) -> tuple[Floats, Floats]:
    right, sure = np.empty(layout.n_answers, np.float32), np.empty(layout.n_answers, np.float32)
    parts = (
        layout.task_ptr,
        layout.pair,
        layout.row_worker,
        layout.row_label,
        counts,
        totals,
        a,
        a.sum(1),
        np.log(prior),
    )
    work = functools.partial(_cavity, *parts, gold, Z, right, sure)
    run(lambda b, start, stop: work(start, stop), by_answers(layout.task_ptr), threads)
    worker = layout.row_worker[layout.pair]
    return weighted_counts(worker, right, layout.n_workers), weighted_counts(worker, sure, layout.n_workers)


@jit
def _smooth(worker_ptr, C, smoothing, P, totals, start, stop):
    K = C.shape[1]
    inverse = np.empty(K)
    log_prior = 0.0
    for j in range(start, stop):
        first, last = worker_ptr[j], worker_ptr[j + 1]
        for r in range(first, last):
            for k in range(K):
                totals[j, k] += C[r, k]
        unseen, product, since = K - (last - first), 1.0, 0  # one logarithm for RESCALE_EVERY factors
        for k in range(K):
            below = totals[j, k] + K * smoothing
            inverse[k] = 1.0 / below if below > 0 else 0.0
            if smoothing > 0 and unseen > 0:
                product *= smoothing * inverse[k]
                since += 1
                if since == RESCALE_EVERY or k == K - 1:
                    log_prior += unseen * math.log(product)
                    product, since = 1.0, 0
        for r in range(first, last):
            for k in range(K):
                p = max((C[r, k] + smoothing) * inverse[k], TINY) if inverse[k] > 0 else 1.0 / K
                P[r, k] = p
                if smoothing > 0:
                    product *= p
                    since += 1
                    if since == RESCALE_EVERY:
                        log_prior += math.log(product)
                        product, since = 1.0, 0
        log_prior += math.log(product)
    return smoothing * log_prior


def smooth_rows(
    layout: RowTable, counts: Floats, smoothing: float, dtype: DTypeLike, threads: int
) -> tuple[Floats, Floats, float]:
    P, totals = np.empty(counts.shape, dtype), np.zeros((layout.n_workers, counts.shape[1]))
    bounds = by_workers(layout)
    log_prior = np.zeros(len(bounds) - 1)

    def work(b: int, start: int, stop: int) -> None:
        log_prior[b] = _smooth(layout.worker_ptr, counts, float(smoothing), P, totals, start, stop)

    run(work, bounds, threads)
    return P, totals, math.fsum(log_prior) if smoothing > 0 else 0.0
