"""The arithmetic of a sweep, compiled: the same functions as `plain`, for tables that are worth it.

Two gather passes and no atomics: a task's posterior multiplies the rows of its answers, a row's counts add the
posteriors of its tasks. Work is cut into blocks by the data, never by the number of threads, each output row belongs to
one block, and partial sums are added in block order: the bits do not depend on threads. Kernels release the interpreter
lock, so plain threads run them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from . import TINY, LaidOut, Swept
from .intrinsics import prefetch as _prefetch
from .layout import Floats, Ints, Layout

STORAGE = np.dtype(np.float32)
BLOCK = 1 << 16  # answers
CAVITY = 64  # answers of a task whose logarithms are kept
AHEAD = 32  # answers between asking for a row and using it
RENEW = 8  # factors multiplied before the products are scaled back
FAR = TINY**RENEW  # a class this far behind the top one could underflow before the next scaling

prefetch: Any = _prefetch
jit: Any = functools.partial(njit, nogil=True, cache=True, error_model="numpy", boundscheck=False)


def _blocks(ptr: Ints) -> NDArray[np.int64]:
    """Bounds of runs of segments with about BLOCK answers each."""
    edges = np.searchsorted(ptr, np.arange(0, ptr[-1] + 1, BLOCK))
    return np.unique(np.concatenate([[0], edges, [len(ptr) - 1]]))


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="crowdwise")


def _run(work: Callable[[int, int, int], None], bounds: NDArray[np.int64], threads: int) -> None:
    """Call work(block, start, stop) for every block."""
    jobs = [(b, int(bounds[b]), int(bounds[b + 1])) for b in range(len(bounds) - 1)]
    if threads == 1 or len(jobs) == 1:
        for job in jobs:
            work(*job)
    else:
        for done in [_pool(threads).submit(work, *job) for job in jobs]:
            done.result()


# ------------------------------------------------------------------------------------------------------- sorting


@jit
def _cursors(keys, size):
    """Where each key's run starts, and at [size] the end."""
    start = np.zeros(size + 1, np.int32)
    for n in range(len(keys)):
        start[keys[n] + 1] += 1
    for k in range(size):
        start[k + 1] += start[k]
    return start


@jit
def _by_task(task, worker, label, task_ptr, order, worker_at, label_at):
    """Scatter answers into task order."""
    at = task_ptr.copy()
    for n in range(len(task)):
        here = at[task[n]]
        at[task[n]] = here + 1
        order[here] = n
        worker_at[here] = worker[n]
        label_at[here] = label[n]


@jit
def _by_worker(task_ptr, worker_at, label_at, worker_start, where, task, label):
    """Scatter answers from task order into worker order, so that a worker's tasks ascend."""
    at = worker_start.copy()
    for i in range(len(task_ptr) - 1):
        for n in range(task_ptr[i], task_ptr[i + 1]):
            here = at[worker_at[n]]
            at[worker_at[n]] = here + 1
            where[here] = n
            task[here] = i
            label[here] = label_at[n]


@jit
def _rows(worker_start, where, task, label, n_classes, pair, row_task, row_ptr, row_worker, row_label):
    """Group each worker's answers by label: a group is a row. Returns how many rows there are."""
    found = 0
    count = np.zeros(n_classes + 1, np.int32)
    for j in range(len(worker_start) - 1):
        first, last = worker_start[j], worker_start[j + 1]
        size = last - first
        if n_classes <= 64 or n_classes <= 4 * size:
            count[:] = 0
            for n in range(first, last):
                count[label[n] + 1] += 1
            for k in range(n_classes):
                count[k + 1] += count[k]
            ranked = np.empty(size, np.int64)
            for n in range(first, last):
                ranked[count[label[n]]] = n
                count[label[n]] += 1
        else:
            ranked = first + np.argsort(label[first:last], kind="mergesort")
        before = -1
        for m in range(size):
            n = ranked[m]
            if label[n] != before:
                before = label[n]
                row_worker[found], row_label[found], row_ptr[found] = j, before, first + m
                found += 1
            pair[where[n]] = found - 1
            row_task[first + m] = task[n]
    row_ptr[found] = len(task)
    return found


@jit
def _within_tasks(task_ptr, pair, order):
    """Sort the rows within each task, and the order along with them."""
    for i in range(len(task_ptr) - 1):
        first, last = task_ptr[i], task_ptr[i + 1]
        if last - first > 64:
            ranked = np.argsort(pair[first:last], kind="mergesort")
            pair[first:last] = pair[first:last][ranked]
            order[first:last] = order[first:last][ranked]
            continue
        for n in range(first + 1, last):
            row, answer, m = pair[n], order[n], n - 1
            while m >= first and pair[m] > row:
                pair[m + 1], order[m + 1] = pair[m], order[m]
                m -= 1
            pair[m + 1], order[m + 1] = row, answer


def lay_out(task: Ints, worker: Ints, label: Ints, shape: tuple[int, int, int]) -> LaidOut:
    n = len(task)
    task_ptr, worker_start = _cursors(task, shape[0]), _cursors(worker, shape[1])
    order, worker_at, label_at = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    _by_task(task, worker, label, task_ptr, order, worker_at, label_at)
    where, task_of, label_of = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    _by_worker(task_ptr, worker_at, label_at, worker_start, where, task_of, label_of)
    pair, row_task = worker_at, label_at  # no longer needed as what they were
    row_ptr, row_worker, row_label = np.empty(n + 1, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    parts = (pair, row_task, row_ptr, row_worker, row_label)
    rows = _rows(worker_start, where, task_of, label_of, shape[2], *parts)
    _within_tasks(task_ptr, pair, order)
    ends = row_ptr[: rows + 1].copy(), row_worker[:rows].copy(), row_label[:rows].copy()
    return LaidOut(task_ptr, pair, *ends, row_task, order)


@jit
def _number(first, second, table, codes, starts):
    """Number pairs of hashes in order of appearance; a row of the table holds a pair and its number + 1."""
    mask = np.uint64(len(table) - 1)
    found, last = 0, len(first) - 1
    for n in range(len(first)):
        prefetch(table, np.int64(first[min(n + AHEAD, last)] & mask))
        at = first[n] & mask
        while table[at, 2] != 0 and (table[at, 0] != first[n] or table[at, 1] != second[n]):
            at = (at + np.uint64(1)) & mask
        if table[at, 2] == 0:
            if found == len(starts):
                return -1
            starts[found] = n
            found += 1
            table[at, 0], table[at, 1], table[at, 2] = first[n], second[n], found
        codes[n] = table[at, 2] - 1
    return found


def number(first: Ints, second: Ints, likely: int) -> tuple[Ints, Ints, Ints]:
    """Numbers of values known by two 64-bit hashes each, where each number stood first, and the table of them all.

    `likely` says how many differ; where there are more, the table is made larger.
    """
    codes = np.empty(len(first), np.int32)
    for limit in (likely, len(first)):
        table = np.zeros((1 << int(2 * limit + 2).bit_length(), 4), np.uint64)
        starts = np.empty(limit, np.int32)
        found = _number(first, second, table, codes, starts)
        if found >= 0:
            break
    return codes, starts[:found], table


@jit
def numbers_of(first, second, table):
    """The numbers of values that stand in the table."""
    mask = np.uint64(len(table) - 1)
    codes = np.empty(len(first), np.int32)
    for n in range(len(first)):
        at = first[n] & mask
        while table[at, 0] != first[n] or table[at, 1] != second[n] or table[at, 2] == 0:
            at = (at + np.uint64(1)) & mask
        codes[n] = table[at, 2] - 1
    return codes


# ----------------------------------------------------------------------------------------------- whole confusions


@functools.cache
def _confusion_kernels(K: int) -> tuple[Any, Any]:
    """K known to the compiler is worth a factor of 2 for up to 10 classes."""

    @jit
    def posterior(ptr, pair, P, prior, gold, Z, shares, start, stop):
        q, logs = np.empty(K), np.empty(K)
        evidence, flips, wide, last = 0.0, 0, 1 if len(prior) > 1 else 0, len(pair) - 1
        for i in range(start, stop):
            first, end = ptr[i], ptr[i + 1]
            for k in range(K):
                q[k] = prior[i * wide, k]
            scale, since, apart = 0.0, 0, False  # apart: classes keep logarithms of their own in `logs`
            for n in range(first, end):
                prefetch(P, pair[min(n + AHEAD, last)])
                r = pair[n]
                for k in range(K):
                    q[k] *= P[r, k]
                since += 1
                if since == RENEW:
                    since = 0
                    top, low = 0.0, np.inf
                    for k in range(K):
                        top, low = max(top, q[k]), min(low, q[k])
                    if low > top * FAR:
                        for k in range(K):
                            q[k] /= top
                        scale += math.log(top)
                    else:
                        for k in range(K):
                            logs[k] = (logs[k] if apart else 0.0) + math.log(q[k])
                            q[k] = 1.0
                        apart = True
            if apart:
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
            old, new, was, now = 0, 0, -1.0, -1.0
            inverse = 1.0 / total
            for k in range(K):
                if Z[i, k] > was:
                    was, old = Z[i, k], k
                q[k] *= inverse
                Z[i, k] = q[k]
                if Z[i, k] > now:  # as stored: rounding must not look like a change of label
                    now, new = Z[i, k], k
            if gold[i] >= 0:
                Z[i, gold[i]] = q[gold[i]] = 1.0
            if end > first:
                evidence += scale + math.log(total)
                flips += old != new
                for k in range(K):
                    shares[k] += q[k]
        return evidence, flips

    @jit
    def counts(ptr, task, Z, C, start, stop):
        total = np.empty(K)
        last = len(task) - 1
        for r in range(start, stop):
            for k in range(K):
                total[k] = 0.0
            for n in range(ptr[r], ptr[r + 1]):
                prefetch(Z, task[min(n + AHEAD, last)])
                i = task[n]
                for k in range(K):
                    total[k] += Z[i, k]
            for k in range(K):
                C[r, k] = total[k]

    return posterior, counts


def _sweep(layout: Layout, Z: Floats, threads: int, kernel: Callable[[Floats, int, int], tuple[float, int]]) -> Swept:
    bounds = _blocks(layout.task_ptr)
    evidence, flips = np.zeros(len(bounds) - 1), np.zeros(len(bounds) - 1, np.int64)
    shares = np.zeros((len(bounds) - 1, Z.shape[1]))

    def work(b: int, start: int, stop: int) -> None:
        evidence[b], flips[b] = kernel(shares[b], start, stop)

    _run(work, bounds, threads)
    return Swept(math.fsum(evidence), shares.sum(0), int(flips.sum()))


def confusion_posterior(layout: Layout, P: Floats, prior: Floats, gold: Ints, Z: Floats, threads: int) -> Swept:
    kernel = _confusion_kernels(Z.shape[1])[0]
    return _sweep(
        layout,
        Z,
        threads,
        lambda shares, a, b: kernel(layout.task_ptr, layout.pair, P, prior, gold, Z, shares, a, b),
    )


def confusion_counts(layout: Layout, Z: Floats, threads: int) -> Floats:
    kernel = _confusion_kernels(Z.shape[1])[1]
    C = np.empty((layout.n_rows, Z.shape[1]), Z.dtype)
    _run(
        lambda b, start, stop: kernel(layout.row_ptr, layout.task, Z, C, start, stop), _blocks(layout.row_ptr), threads
    )
    return C


@jit
def _left_out(ptr, task, row_label, P, gold, Z, right, sure, start, stop):
    K = Z.shape[1]
    for r in range(start, stop):
        for n in range(ptr[r], ptr[r + 1]):
            i = task[n]
            total, square, told = 0.0, 0.0, 0.0
            for k in range(K):
                q = Z[i, k] if gold[i] >= 0 else Z[i, k] / P[r, k]
                total += q
                square += q * q
                if k == row_label[r]:
                    told = q
            right[r] += told / total
            sure[r] += square / (total * total)


def confusion_left_out(layout: Layout, P: Floats, gold: Ints, Z: Floats, threads: int) -> tuple[Floats, Floats]:
    right, sure = np.zeros(layout.n_rows), np.zeros(layout.n_rows)
    parts = (layout.row_ptr, layout.task, layout.row_label, P, gold, Z, right, sure)
    _run(lambda b, start, stop: _left_out(*parts, start, stop), _blocks(layout.row_ptr), threads)
    return right, sure


@jit
def _cavity(ptr, pair, row_worker, row_label, C, totals, a, above, log_prior, gold, Z, right, sure, start, stop):
    K = Z.shape[1]
    logs, q = np.empty((CAVITY, K)), np.empty(K)
    for i in range(start, stop):
        first, last = ptr[i], ptr[i + 1]
        keep = last - first <= CAVITY  # logarithms of small tasks are kept, of others taken again
        q[:] = log_prior[0]
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
            top, total, square, told = -np.inf, 0.0, 0.0, 0.0
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
                    told = x
            right[n], sure[n] = told / total, square / (total * total)


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
    _run(lambda b, start, stop: work(start, stop), _blocks(layout.task_ptr), threads)
    worker = layout.row_worker[layout.pair]
    return np.bincount(worker, right, layout.n_workers), np.bincount(worker, sure, layout.n_workers)


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
        unseen, product, since = K - (last - first), 1.0, 0  # one logarithm for RENEW factors
        for k in range(K):
            below = totals[j, k] + K * smoothing
            inverse[k] = 1.0 / below if below > 0 else 0.0
            if smoothing > 0 and unseen > 0:
                product *= smoothing * inverse[k]
                since += 1
                if since == RENEW or k == K - 1:
                    log_prior += unseen * math.log(product)
                    product, since = 1.0, 0
        for r in range(first, last):
            for k in range(K):
                p = max((C[r, k] + smoothing) * inverse[k], TINY) if inverse[k] > 0 else 1.0 / K
                P[r, k] = p
                if smoothing > 0:
                    product *= p
                    since += 1
                    if since == RENEW:
                        log_prior += math.log(product)
                        product, since = 1.0, 0
        log_prior += math.log(product)
    return smoothing * log_prior


def smooth_rows(layout: Layout, counts: Floats, smoothing: float, threads: int = 1) -> tuple[Floats, Floats, float]:
    P, totals = np.empty_like(counts), np.zeros((layout.n_workers, counts.shape[1]))
    bounds = _worker_blocks(layout)
    log_prior = np.zeros(len(bounds) - 1)

    def work(b: int, start: int, stop: int) -> None:
        log_prior[b] = _smooth(layout.worker_ptr, counts, float(smoothing), P, totals, start, stop)

    _run(work, bounds, threads)
    return P, totals, math.fsum(log_prior) if smoothing > 0 else 0.0


# -------------------------------------------------------------------------------------- confusions with Dirichlets


@jit(inline="always")
def _digamma_parts(x):
    """psi(x) = log(y) - tail: one division for the shift past 6, then the asymptotic series."""
    y = x + 6.0
    product = x
    slope = 1.0  # of the product: slope / product = sum of 1 / (x + i)
    for i in range(1, 6):
        slope = slope * (x + i) + product
        product *= x + i
    inverse = 1.0 / (y * product)
    one = product * inverse  # 1 / y
    two = one * one
    series = two * (1 / 12 - two * (1 / 120 - two * (1 / 252 - two * (1 / 240 - two / 132))))
    return y, slope * y * inverse + 0.5 * one + series, product, one


@jit
def _psi(x):
    y, tail, _, _ = _digamma_parts(x)
    return math.log(y) - tail


@jit(inline="always")
def _stirling(y, log_y, product, one):
    two = one * one
    series = one * (1 / 12 - two * (1 / 360 - two * (1 / 1260 - two * (1 / 1680 - two / 1188))))
    return (y - 0.5) * log_y - y + 0.9189385332046727 + series - math.log(product)


@jit
def _lgamma(x):
    y, _, product, one = _digamma_parts(x)
    return _stirling(y, math.log(y), product, one)


@jit
def _dirichlet(worker_ptr, row_label, C, a, above, base, P, totals, start, stop):
    """KL and evidence of the workers start:stop; base[k, l] = gammaln(a[k, l])."""
    K = C.shape[1]
    kl, fit = 0.0, 0.0
    for j in range(start, stop):
        for r in range(worker_ptr[j], worker_ptr[j + 1]):
            for k in range(K):
                totals[j, k] += C[r, k]
        for k in range(K):
            y, tail, product, one = _digamma_parts(totals[j, k] + above[k])
            log_total = math.log(y)
            psi_total = log_total - tail
            fit -= _stirling(y, log_total, product, one) - _lgamma(above[k])
            for r in range(worker_ptr[j], worker_ptr[j + 1]):
                c, prior = C[r, k], a[k, row_label[r]]
                y, tail, product, one = _digamma_parts(c + prior)
                log_y = math.log(y)
                elog = log_y - tail - psi_total
                P[r, k] = max(math.exp(elog), TINY)
                kl += c * elog
                fit += _stirling(y, log_y, product, one) - base[k, row_label[r]]
    return kl - fit, fit


def dirichlet_rows(layout: Layout, counts: Floats, a: Floats, threads: int) -> tuple[Floats, Floats, float, float]:
    P, totals = np.empty_like(counts), np.zeros((layout.n_workers, counts.shape[1]))
    base = gammaln(a)
    above = a.sum(1)
    bounds = _worker_blocks(layout)
    kl, fit = np.zeros(len(bounds) - 1), np.zeros(len(bounds) - 1)

    def work(b: int, start: int, stop: int) -> None:
        kl[b], fit[b] = _dirichlet(layout.worker_ptr, layout.row_label, counts, a, above, base, P, totals, start, stop)

    _run(work, bounds, threads)
    return P, totals, math.fsum(kl), math.fsum(fit)


@jit
def _psi_all(x, out):
    for n in range(len(x)):
        out[n] = _psi(x[n])


@jit
def _lgamma_all(x, out):
    for n in range(len(x)):
        out[n] = _lgamma(x[n])


def digamma(x: Floats) -> Floats:
    flat = np.ascontiguousarray(x, np.float64).ravel()
    out = np.empty_like(flat)
    _psi_all(flat, out)
    return out.reshape(np.shape(x))


def gammaln(x: Floats) -> Floats:
    flat = np.ascontiguousarray(x, np.float64).ravel()
    out = np.empty_like(flat)
    _lgamma_all(flat, out)
    return out.reshape(np.shape(x))


@jit
def _slopes(worker_ptr, row_label, C, totals, a, above, base, psi, top, below, start, stop):
    """Adds to top and below; psi[k, l] = digamma(a[k, l]), base[k, l] = gammaln(a[k, l]). Returns the evidence."""
    K = C.shape[1]
    fit = 0.0
    for j in range(start, stop):
        for k in range(K):
            y, tail, product, one = _digamma_parts(totals[j, k] + above[k])
            log_y = math.log(y)
            below[k] += log_y - tail - _psi(above[k])
            fit -= _stirling(y, log_y, product, one) - _lgamma(above[k])
            for r in range(worker_ptr[j], worker_ptr[j + 1]):
                label = row_label[r]
                y, tail, product, one = _digamma_parts(C[r, k] + a[k, label])
                log_y = math.log(y)
                top[k, label] += log_y - tail - psi[k, label]
                fit += _stirling(y, log_y, product, one) - base[k, label]
    return fit


def dirichlet_slopes(
    layout: Layout, counts: Floats, totals: Floats, a: Floats, threads: int
) -> tuple[Floats, Floats, float]:
    K = counts.shape[1]
    bounds = _worker_blocks(layout)
    top, below = np.zeros((len(bounds) - 1, K, K)), np.zeros((len(bounds) - 1, K))
    fit = np.zeros(len(bounds) - 1)
    above, base, psi = a.sum(1), gammaln(a), digamma(a)
    parts = (layout.worker_ptr, layout.row_label, counts, totals, a, above, base, psi)

    def work(b: int, start: int, stop: int) -> None:
        fit[b] = _slopes(*parts, top[b], below[b], start, stop)

    _run(work, bounds, threads)
    return top.sum(0), below.sum(0), math.fsum(fit)


def _worker_blocks(layout: Layout) -> NDArray[np.int64]:
    """Few blocks by workers, fewer where there are many classes: a block may hold K x K sums."""
    count = max(1, min(16, 10_000_000 // layout.n_classes**2))
    return np.unique(np.linspace(0, layout.n_workers, count + 1).astype(np.int64))


# ------------------------------------------------------------------------------------ right or wrong, nothing more


@jit(inline="always")
def _close(q, first, end, base, gold, Z, i, shares):
    """Turn the log-scores q of task i into its posterior; returns its evidence and whether the label moved."""
    K = len(q)
    top = -np.inf
    for k in range(K):
        if gold >= 0 and k != gold:
            q[k] = -np.inf
        top = max(top, q[k])
    total, old, new, was, now = 0.0, 0, 0, -1.0, -1.0
    for k in range(K):
        q[k] = math.exp(q[k] - top)
        total += q[k]
    for k in range(K):
        if Z[i, k] > was:
            was, old = Z[i, k], k
        q[k] /= total
        Z[i, k] = q[k]
        if Z[i, k] > now:
            now, new = Z[i, k], k
    if end == first:
        return 0.0, 0
    for k in range(K):
        shares[k] += q[k]
    return base + top + math.log(total), int(old != new)


@jit
def _match(ptr, pair, row_label, hit, miss, log_prior, gold, Z, shares, start, stop):
    q = np.empty(Z.shape[1])
    evidence, flips, wide = 0.0, 0, 1 if len(log_prior) > 1 else 0
    for i in range(start, stop):
        q[:] = log_prior[i * wide]
        base = 0.0
        for n in range(ptr[i], ptr[i + 1]):
            r = pair[n]
            q[row_label[r]] += hit[r] - miss[r]
            base += miss[r]
        gain, moved = _close(q, ptr[i], ptr[i + 1], base, gold[i], Z, i, shares)
        evidence += gain
        flips += moved
    return evidence, flips


def match_posterior(
    layout: Layout, hit: Floats, miss: Floats, prior: Floats, gold: Ints, Z: Floats, threads: int
) -> Swept:
    logs = np.log(prior)
    return _sweep(
        layout,
        Z,
        threads,
        lambda shares, a, b: _match(
            layout.task_ptr, layout.pair, layout.row_label, hit, miss, logs, gold, Z, shares, a, b
        ),
    )


@jit
def _match_counts(ptr, task, row_label, Z, out, start, stop):
    for r in range(start, stop):
        total, label = 0.0, row_label[r]
        for n in range(ptr[r], ptr[r + 1]):
            total += Z[task[n], label]
        out[r] = total


def match_counts(layout: Layout, Z: Floats, threads: int) -> Floats:
    out = np.empty(layout.n_rows)
    _run(
        lambda b, start, stop: _match_counts(layout.row_ptr, layout.task, layout.row_label, Z, out, start, stop),
        _blocks(layout.row_ptr),
        threads,
    )
    return out


@jit
def _votes(ptr, pair, row_label, weight, Z, start, stop):
    for i in range(start, stop):
        Z[i] = 0.0
        for n in range(ptr[i], ptr[i + 1]):
            Z[i, row_label[pair[n]]] += weight[pair[n]]


def votes(layout: Layout, weight: Floats, Z: Floats, threads: int) -> None:
    _run(
        lambda b, start, stop: _votes(layout.task_ptr, layout.pair, layout.row_label, weight, Z, start, stop),
        _blocks(layout.task_ptr),
        threads,
    )


# -------------------------------------------------------------------------------------------- ability meets ease


@jit(inline="always")
def _softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@jit
def _ability(ptr, pair, row_worker, row_label, ability, ease, log_prior, gold, Z, shares, start, stop):
    q = np.empty(Z.shape[1])
    evidence, flips, wide, others = 0.0, 0, 1 if len(log_prior) > 1 else 0, math.log(max(Z.shape[1] - 1, 1))
    for i in range(start, stop):
        q[:] = log_prior[i * wide]
        base = 0.0
        for n in range(ptr[i], ptr[i + 1]):
            r = pair[n]
            x = ability[row_worker[r]] * ease[i]
            miss = -_softplus(x) - others
            q[row_label[r]] += x + others  # log sigma(x) - log sigma(-x) = x
            base += miss
        gain, moved = _close(q, ptr[i], ptr[i + 1], base, gold[i], Z, i, shares)
        evidence += gain
        flips += moved
    return evidence, flips


def ability_posterior(
    layout: Layout, ability: Floats, ease: Floats, prior: Floats, gold: Ints, Z: Floats, threads: int
) -> Swept:
    logs = np.log(prior)
    return _sweep(
        layout,
        Z,
        threads,
        lambda shares, a, b: _ability(
            layout.task_ptr, layout.pair, layout.row_worker, layout.row_label,
            ability, ease, logs, gold, Z, shares, a, b,
        ),
    )  # fmt: skip


@jit(inline="always")
def _curve(x):
    """tanh(x / 2) / (2 x): the curvature of the bound on log sigma that touches at x."""
    return 0.25 if abs(x) < 1e-4 else math.tanh(0.5 * x) / (2.0 * x)


@jit
def _worker_slopes(worker_ptr, row_ptr, task, row_label, ability, ease, Z, rise, curve, start, stop):
    for j in range(start, stop):
        for r in range(worker_ptr[j], worker_ptr[j + 1]):
            for n in range(row_ptr[r], row_ptr[r + 1]):
                i = task[n]
                rise[j] += (Z[i, row_label[r]] - 0.5) * ease[i]
                curve[j] += _curve(ability[j] * ease[i]) * ease[i] ** 2


@jit
def _task_slopes(task_ptr, pair, row_worker, row_label, ability, ease, Z, rise, curve, start, stop):
    for i in range(start, stop):
        for n in range(task_ptr[i], task_ptr[i + 1]):
            r = pair[n]
            skill = ability[row_worker[r]]
            rise[i] += (Z[i, row_label[r]] - 0.5) * skill
            curve[i] += _curve(skill * ease[i]) * skill**2


def ability_slopes(
    layout: Layout, ability: Floats, ease: Floats, Z: Floats, of_workers: bool, threads: int
) -> tuple[Floats, Floats]:
    size = layout.n_workers if of_workers else layout.n_tasks
    rise, curve = np.zeros(size), np.zeros(size)
    if of_workers:
        parts = (layout.worker_ptr, layout.row_ptr, layout.task, layout.row_label, ability, ease, Z, rise, curve)
        _run(lambda b, start, stop: _worker_slopes(*parts, start, stop), _worker_blocks(layout), threads)
    else:
        parts = (layout.task_ptr, layout.pair, layout.row_worker, layout.row_label, ability, ease, Z, rise, curve)
        _run(lambda b, start, stop: _task_slopes(*parts, start, stop), _blocks(layout.task_ptr), threads)
    return rise, curve


# ------------------------------------------------------------------------------------------------ parts of a crowd


@jit
def _join(ptr, pair, row_worker, parent):
    """Workers who share a task get a common root; paths are halved on the way."""
    for i in range(len(ptr) - 1):
        if ptr[i] == ptr[i + 1]:
            continue
        a = row_worker[pair[ptr[i]]]
        for n in range(ptr[i], ptr[i + 1]):
            b = row_worker[pair[n]]
            while parent[a] != a:
                parent[a] = parent[parent[a]]
                a = parent[a]
            while parent[b] != b:
                parent[b] = parent[parent[b]]
                b = parent[b]
            if a < b:
                parent[b] = a
            else:
                parent[a] = b
                a = b
    for j in range(len(parent)):  # roots are the smallest of their part, so one pass in order is enough
        parent[j] = parent[parent[j]]


def components(layout: Layout) -> Ints:
    parent = np.arange(layout.n_workers, dtype=np.int32)
    _join(layout.task_ptr, layout.pair, layout.row_worker, parent)
    root = parent == np.arange(len(parent))
    return (np.cumsum(root, dtype=np.int32) - np.int32(1))[parent]
