"""Full confusion matrices, compiled.

There are two gather passes and no atomics: a task's posterior multiplies the rows of its answers, and a row's counts
sum the posteriors of its tasks.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from .. import TINY, EStepResult
from ..layout import GRID, Floats, Ints, Layout, RowTable, in_row_order, weighted_counts
from ..memory import empty
from ..threads import run
from .blocks import (
    BLOCK_ANSWERS,
    PREFETCH_AHEAD,
    at,
    by_answers,
    jit,
    normalise_task,
    prefetch,
    prefetch_far,
    run_e_step,
    stored,
)
from .vectors import (
    exponent,
    filled,
    larger,
    largest,
    load,
    mantissa,
    meet,
    minus,
    plus,
    power,
    single,
    store,
    times,
    total,
)

LINE_FLOATS = 16  # float32 numbers in a cache line
MAX_IN_REGISTERS = 16  # classes up to which a row of numbers is kept in registers
STRIPS = (16, 20, 24, 12)  # classes handled at a time if there are more
RESCALE_EVERY = 8  # factors multiplied before the products are rescaled: TINY**8 times itself does not underflow
LOG_2 = math.log(2.0)
LEAST_POWER = -1000.0  # smallest power of two of a class, relative to the most probable one
MIN_PRODUCT, MAX_PRODUCT = 1e-100, 1e100  # two factors within these bounds neither underflow nor overflow
CACHED_CELLS = 1 << 16  # counts of a block of rows, which stay in a cache
MAX_CACHED_ANSWERS = 32  # answers of a task whose factors are cached and multiplied; their product does not underflow


class _Compiled(NamedTuple):
    posterior: Any
    counts: Any
    smooth: Any


@functools.cache
def _for_classes(K: int) -> _Compiled:
    """Compile the kernels for K classes, with all numbers of a row in registers. They are two to three times as fast as
    `_in_strips`. NaN cannot occur, and `nnan` lets the compiler use this."""

    @jit(fastmath={"nnan", "nsz"})
    def posterior(ptr, pair, P, prior, gold, Z, shares, start, stop):
        memory, sums, zeros, grid = np.empty((2, K)), filled(0.0, K), filled(0.0, K), filled(GRID, K)
        evidence, product, flips, wide, last = 0.0, 1.0, 0, 1 if len(prior) > 1 else 0, len(pair) - 1
        for i in range(start, stop):
            first, end, known = at(ptr, i), at(ptr, i + 1), at(gold, i)
            q, powers = load(prior, i * wide, 0, K), zeros  # the scores are q * 2**powers
            rescale_at = first + RESCALE_EVERY
            for n in range(first, end):
                ahead = at(pair, min(n + PREFETCH_AHEAD, last))
                prefetch(P, ahead, 0)
                if K > 2:  # a row may span two cache lines
                    prefetch(P, ahead, K - 1)
                q = times(q, load(P, at(pair, n), 0, K))
                if n + 1 == rescale_at:
                    powers, q = plus(powers, exponent(q)), mantissa(q)
                    rescale_at += RESCALE_EVERY
            power_of_all = 0.0
            if known >= 0:
                store(memory, 0, 0, q)
                store(memory, 1, 0, powers)
                score, power_of_all = memory[0, known], memory[1, known]
                memory[0] = 0.0
                memory[0, known] = 1.0
                z = load(memory, 0, 0, K)
            else:
                if end - first >= RESCALE_EVERY:
                    power_of_all = largest(powers)
                    below = minus(powers, filled(power_of_all, K))
                    q = times(q, power(larger(below, filled(LEAST_POWER, K))))
                score = total(q)
                z = times(q, filled(1.0 / score, K))
                if Z.itemsize == 4:  # as `stored`
                    z = minus(plus(single(z), grid), grid)
            before = load(Z, i, 0, K)
            kept = meet(before, largest(before), z, largest(z))  # a class that was the most probable one still is
            store(Z, i, 0, z)
            if end > first:
                sums = plus(sums, z)
                flips += not kept
                evidence += LOG_2 * power_of_all
                if score > MIN_PRODUCT:  # one logarithm for many tasks
                    product *= score
                    if product < MIN_PRODUCT or product > MAX_PRODUCT:
                        evidence += math.log(product)
                        product = 1.0
                else:
                    evidence += math.log(score)
        store(shares, 0, 0, sums)
        return evidence + math.log(product), flips

    @jit
    def counts(ptr, task, Z, C, start, stop):
        last = len(task) - 1
        for r in range(start, stop):
            sums = filled(0.0, K)
            for n in range(at(ptr, r), at(ptr, r + 1)):
                ahead = at(task, min(n + PREFETCH_AHEAD, last))
                if K > 2:
                    prefetch_far(Z, ahead, 0)
                    prefetch_far(Z, ahead, K - 1)
                else:
                    prefetch(Z, ahead, 0)
                sums = plus(sums, load(Z, at(task, n), 0, K))
            store(C, r - start, 0, sums)

    @jit(fastmath={"nnan", "nsz"})
    def smooth(worker_ptr, C, smoothing, P, totals, start, stop):
        factors = np.empty((2, K))  # a row is counts * factors[0] + factors[1]
        tiny, product, powers, since = filled(TINY, K), filled(1.0, K), filled(0.0, K), 0
        log_prior, base = 0.0, worker_ptr[start]  # the row of C[0]
        for j in range(start, stop):
            first, last = worker_ptr[j], worker_ptr[j + 1]
            sums = filled(0.0, K)
            for r in range(first, last):
                sums = plus(sums, load(C, r - base, 0, K))
            store(totals, j, 0, sums)
            log_prior += _row_factors(totals[j], smoothing, K - (last - first), factors)
            scale, shift = load(factors, 0, 0, K), load(factors, 1, 0, K)
            for r in range(first, last):
                p = larger(plus(times(load(C, r - base, 0, K), scale), shift), tiny)
                store(P, r, 0, p)
                product = times(product, p)
                since += 1
                if since == RESCALE_EVERY:
                    powers, product, since = plus(powers, exponent(product)), mantissa(product), 0
        store(factors, 0, 0, product)
        for k in range(K):
            log_prior += math.log(factors[0, k])
        return smoothing * (log_prior + LOG_2 * total(powers))

    return _Compiled(posterior, counts, smooth)


@jit(fastmath={"nnan", "nsz"})
def _row_factors(totals, smoothing, unseen, factors):
    """Set the factors of a worker's confusion rows: the row of a label is counts * factors[0] + factors[1]. Return the
    log-probability of the labels that the worker never gave."""
    K = len(totals)
    log_unseen, product, since = 0.0, 1.0, 0  # one logarithm for RESCALE_EVERY factors
    for k in range(K):
        below = totals[k] + K * smoothing
        factors[0, k] = 1.0 / below if below > 0 else 0.0
        factors[1, k] = smoothing * factors[0, k] if below > 0 else 1.0 / K
    if smoothing > 0 and unseen > 0:
        for k in range(K):
            product *= factors[1, k]
            since += 1
            if since == RESCALE_EVERY or k == K - 1:
                log_unseen += unseen * math.log(product)
                product, since = 1.0, 0
    return log_unseen


@jit(fastmath={"nnan", "nsz"})
def _scaled(q, powers, known):
    """Turn q * 2**powers into q * 2**top, in place, and return top. A known class excludes the others."""
    top = -np.inf
    for k in range(len(q)):
        if known >= 0 and k != known:
            q[k] = 0.0
        if q[k] > 0 or k == known:
            top = max(top, powers[k])
    for k in range(len(q)):
        if q[k] > 0:
            q[k] = math.ldexp(q[k], int(max(powers[k] - top, LEAST_POWER)))
    return top


@jit
def _prefetch_rows(table, index, start, stop):
    """Prefetch the rows of a table that `index` names PREFETCH_AHEAD entries after start:stop."""
    K, last = table.shape[1], len(index) - 1
    for n in range(start, stop):
        ahead = index[min(n + PREFETCH_AHEAD, last)]
        for k in range(0, K, LINE_FLOATS):
            prefetch(table, ahead, k)
        prefetch(table, ahead, K - 1)


@functools.cache
def _in_strips(strip: int) -> _Compiled:
    """Compile the kernels for more classes than the registers hold: `strip` classes at a time, the rest one by one."""

    @jit(fastmath={"nnan", "nsz"})
    def posterior(ptr, pair, P, prior, gold, Z, shares, start, stop):
        K, wide = Z.shape[1], 1 if len(prior) > 1 else 0
        even, q, powers = K - K % strip, np.empty((1, K)), np.empty(K)  # the scores are q * 2**powers
        evidence, flips = 0.0, 0
        shares[:] = 0.0
        for i in range(start, stop):
            first, end, known = ptr[i], ptr[i + 1], gold[i]
            for k in range(K):
                q[0, k], powers[k] = prior[i * wide, k], 0.0
            for begin in range(first, end, RESCALE_EVERY):
                stop_at = min(begin + RESCALE_EVERY, end)
                _prefetch_rows(P, pair, begin, stop_at)
                for k in range(0, even, strip):
                    product = load(q, 0, k, strip)
                    for n in range(begin, stop_at):
                        product = times(product, load(P, pair[n], k, strip))
                    store(q, 0, k, product)
                for k in range(even, K):
                    for n in range(begin, stop_at):
                        q[0, k] *= P[pair[n], k]
                if stop_at - begin == RESCALE_EVERY:
                    for k in range(K):
                        q[0, k], more = math.frexp(q[0, k])
                        powers[k] += more
            power_of_all = 0.0
            if known >= 0 or end - first >= RESCALE_EVERY:
                power_of_all = _scaled(q[0], powers, known)
            sums = filled(0.0, strip)
            for k in range(0, even, strip):
                sums = plus(sums, load(q, 0, k, strip))
            score = total(sums)
            for k in range(even, K):
                score += q[0, k]
            was, now, kept, inverse = -1.0, -1.0, False, 1.0 / score
            for k in range(0, even, strip):
                z = times(load(q, 0, k, strip), filled(inverse, strip))
                if Z.itemsize == 4:  # as `stored`
                    z = minus(plus(single(z), filled(GRID, strip)), filled(GRID, strip))
                store(q, 0, k, z)
                was, now = max(was, largest(load(Z, i, k, strip))), max(now, largest(z))
            for k in range(even, K):
                q[0, k] = stored(q[0, k] * inverse, Z)
                was, now = max(was, Z[i, k]), max(now, q[0, k])
            for k in range(0, even, strip):
                z = load(q, 0, k, strip)
                kept |= meet(load(Z, i, k, strip), was, z, now)  # a class that was the most probable one still is
                store(Z, i, k, z)
                if end > first:
                    store(shares, 0, k, plus(load(shares, 0, k, strip), z))
            for k in range(even, K):
                kept |= (Z[i, k] == was) & (q[0, k] == now)
                Z[i, k] = q[0, k]
                shares[0, k] += q[0, k] if end > first else 0.0
            if end > first:
                evidence += LOG_2 * power_of_all + math.log(score)
                flips += not kept
        return evidence, flips

    @jit
    def counts(ptr, task, Z, C, start, stop):
        K = Z.shape[1]
        even = K - K % strip
        for r in range(start, stop):
            first, end = ptr[r], ptr[r + 1]
            _prefetch_rows(Z, task, first, end)
            for k in range(0, even, strip):
                sums = filled(0.0, strip)
                for n in range(first, end):
                    sums = plus(sums, load(Z, task[n], k, strip))
                store(C, r - start, k, sums)
            for k in range(even, K):
                sum_of_class = 0.0
                for n in range(first, end):
                    sum_of_class += Z[task[n], k]
                C[r - start, k] = sum_of_class

    @jit(fastmath={"nnan", "nsz"})
    def smooth(worker_ptr, C, smoothing, P, totals, start, stop):
        K = C.shape[1]
        factors, product, powers, since = np.empty((2, K)), np.ones((1, K)), np.zeros((1, K)), 0
        even, log_prior, base = K - K % strip, 0.0, worker_ptr[start]  # the row of C[0]
        tiny = filled(TINY, strip)
        for j in range(start, stop):
            first, last = worker_ptr[j], worker_ptr[j + 1]
            for r in range(first, last):
                for k in range(K):
                    totals[j, k] += C[r - base, k]
            log_prior += _row_factors(totals[j], smoothing, K - (last - first), factors)
            for r in range(first, last):
                since += 1
                for k in range(0, even, strip):
                    scale, shift = load(factors, 0, k, strip), load(factors, 1, k, strip)
                    p = larger(plus(times(load(C, r - base, k, strip), scale), shift), tiny)
                    store(P, r, k, p)
                    p = times(p, load(product, 0, k, strip))
                    if since == RESCALE_EVERY:
                        store(powers, 0, k, plus(load(powers, 0, k, strip), exponent(p)))
                        p = mantissa(p)
                    store(product, 0, k, p)
                for k in range(even, K):
                    p = max(C[r - base, k] * factors[0, k] + factors[1, k], TINY)
                    P[r, k] = p
                    product[0, k] *= p
                    if since == RESCALE_EVERY:
                        powers[0, k] += math.log(product[0, k]) / LOG_2
                        product[0, k] = 1.0
                if since == RESCALE_EVERY:
                    since = 0
        for k in range(K):
            log_prior += math.log(product[0, k]) + LOG_2 * powers[0, k]
        return smoothing * log_prior

    return _Compiled(posterior, counts, smooth)


def confusion_posterior(
    layout: Layout, P: Floats, prior: Floats, gold: Ints, Z: Floats, threads: int, weight: Floats | None = None
) -> EStepResult:
    P, prior = np.ascontiguousarray(P), np.ascontiguousarray(prior)
    if weight is not None:
        parts = (layout.task_ptr, layout.pair, P, np.log(prior), gold, np.ascontiguousarray(weight), Z)
        return run_e_step(layout, Z, threads, lambda shares, a, b: _weighted_posterior(*parts, shares, a, b))
    kernel = _compiled(Z.shape[1]).posterior
    return run_e_step(
        layout,
        Z,
        threads,
        lambda shares, a, b: kernel(layout.task_ptr, layout.pair, P, prior, gold, Z, shares[None], a, b),
    )


@jit
def _weighted_posterior(ptr, pair, P, log_prior, gold, weight, Z, shares, start, stop):
    K = Z.shape[1]
    q, evidence, flips = np.empty(K), 0.0, 0
    for i in range(start, stop):
        q[:] = log_prior[i if len(log_prior) > 1 else 0]
        for n in range(ptr[i], ptr[i + 1]):
            for k in range(K):
                q[k] += weight[n] * math.log(P[pair[n], k])
        found, flipped = normalise_task(q, ptr[i], ptr[i + 1], 0.0, gold[i], Z, i, shares)
        evidence += found
        flips += flipped
    return evidence, flips


def confusion_counts(layout: Layout, Z: Floats, threads: int, weight: Floats | None = None) -> Floats:
    Z = np.ascontiguousarray(Z)
    C = empty((layout.n_rows, Z.shape[1]), np.float64)  # double, so that sums over shards are exact
    if weight is None:
        kernel = _compiled(Z.shape[1]).counts
        work = functools.partial(kernel, layout.row_ptr, layout.task, Z)
    else:
        work = functools.partial(_weighted_counts, layout.row_ptr, layout.task, Z, weight[in_row_order(layout)])
    run(lambda b, start, stop: work(C[start:stop], start, stop), by_answers(layout.row_ptr), threads)
    return C


@jit
def _weighted_counts(ptr, task, Z, weight, C, start, stop):
    C[:] = 0.0
    for r in range(start, stop):
        for n in range(ptr[r], ptr[r + 1]):
            for k in range(Z.shape[1]):
                C[r - start, k] += weight[n] * Z[task[n], k]


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


@jit(inline="always")
def _cavity_factor(C, totals, a, above, weight, Z, i, n, r, j, label, k):  # a is by label and class
    own = Z[i, k] * (weight[n] if len(weight) else 1.0)
    factor = (max(C[r, k] - own, 0.0) + a[label, k]) / (max(totals[j, k] - own, 0.0) + above[k])
    return factor ** weight[n] if len(weight) else factor


@jit(inline="always")
def _cavity_scores(C, totals, a, above, weight, prior, Z, i, first, last, pair, row_worker, row_label, factors, q):
    """Set q to the scores of task i, up to a factor, and the first rows of `factors` to those of its answers. Products
    of a few factors cannot underflow; those of many are summed as logarithms."""
    K = len(q)
    few = last - first <= MAX_CACHED_ANSWERS
    for n in range(first, last):  # all rows of a task are fetched at once
        prefetch(C, pair[n], 0)
        prefetch(totals, row_worker[pair[n]], 0)
    for k in range(K):
        q[k] = prior[i if len(prior) > 1 else 0, k]
        if not few:
            q[k] = math.log(q[k])
    for n in range(first, last):
        r = pair[n]
        for k in range(K):
            x = _cavity_factor(C, totals, a, above, weight, Z, i, n, r, row_worker[r], row_label[r], k)
            if few:
                factors[n - first, k] = x
                q[k] *= x
            else:
                q[k] += math.log(x)
        if few and (n - first) % RESCALE_EVERY == RESCALE_EVERY - 1:
            top = q.max()
            for k in range(K):
                q[k] /= top
    return few


@jit
def _cavity(ptr, pair, row_worker, row_label, C, totals, a, above, weight, prior, gold, Z, right, sure, start, stop):
    K = Z.shape[1]
    factors, q = np.empty((MAX_CACHED_ANSWERS, K)), np.empty(K)
    for i in range(start, stop):
        first, last = ptr[i], ptr[i + 1]
        few = _cavity_scores(
            C, totals, a, above, weight, prior, Z, i, first, last, pair, row_worker, row_label, factors, q
        )
        own = factors[0]
        for n in range(first, last):
            r = pair[n]
            label = row_label[r]
            total, square, of_label, top = 0.0, 0.0, 0.0, -np.inf
            if few:
                own = factors[n - first]
            else:
                for k in range(K):
                    x = _cavity_factor(C, totals, a, above, weight, Z, i, n, r, row_worker[r], label, k)
                    own[k] = q[k] - math.log(x)
                    top = max(top, own[k])
            for k in range(K):
                x = np.float64(Z[i, k])
                if gold[i] < 0:
                    x = q[k] / own[k] if few else math.exp(own[k] - top)
                total += x
                square += x * x
                if k == label:
                    of_label = x
            right[n], sure[n] = of_label / total, square / (total * total)


def cavity_left_out(
    layout: Layout, counts: Floats, totals: Floats, a: Floats, prior: Floats, gold: Ints, Z: Floats, threads: int,
    weight: Floats | None = None,
) -> tuple[Floats, Floats]:  # fmt: skip
    right, sure = np.empty(layout.n_answers, np.float32), np.empty(layout.n_answers, np.float32)
    work = functools.partial(_cavity, *_cavity_parts(layout, counts, totals, a, prior, weight), gold, Z, right, sure)
    run(lambda b, start, stop: work(start, stop), by_answers(layout.task_ptr), threads)
    worker = layout.row_worker[layout.pair]
    return weighted_counts(worker, right, layout.n_workers), weighted_counts(worker, sure, layout.n_workers)


@jit
def _cavity_posterior(ptr, pair, row_worker, row_label, C, totals, a, above, weight, prior, gold, Z, start, stop):
    K = Z.shape[1]
    factors, q = np.empty((MAX_CACHED_ANSWERS, K)), np.empty(K)
    for i in range(start, stop):
        first, last = ptr[i], ptr[i + 1]
        few = _cavity_scores(
            C, totals, a, above, weight, prior, Z, i, first, last, pair, row_worker, row_label, factors, q
        )
        top, total = q.max(), 0.0
        for k in range(K):
            if gold[i] >= 0:
                q[k] = 1.0 if k == gold[i] else 0.0
            elif not few:
                q[k] = math.exp(q[k] - top)
            total += q[k]
        for k in range(K):
            Z[i, k] = q[k] / total


def cavity_posterior(
    layout: Layout, counts: Floats, totals: Floats, a: Floats, prior: Floats, gold: Ints, Z: Floats, threads: int,
    weight: Floats | None = None,
) -> None:  # fmt: skip
    work = functools.partial(_cavity_posterior, *_cavity_parts(layout, counts, totals, a, prior, weight), gold, Z)
    run(lambda b, start, stop: work(start, stop), by_answers(layout.task_ptr), threads)


def _cavity_parts(
    layout: Layout, counts: Floats, totals: Floats, a: Floats, prior: Floats, weight: Floats | None
) -> tuple[Any, ...]:
    powers = np.zeros(0) if weight is None else np.asarray(weight, np.float64)
    rows = (layout.task_ptr, layout.pair, layout.row_worker, layout.row_label)
    return *rows, counts, totals, np.ascontiguousarray(a.T), a.sum(1), powers, prior


def _compiled(K: int) -> _Compiled:
    return _for_classes(K) if K <= MAX_IN_REGISTERS else _in_strips(min(STRIPS, key=lambda strip: K % strip))


def smooth_rows(
    layout: RowTable, counts: Floats, smoothing: float, dtype: DTypeLike, threads: int
) -> tuple[Floats, Floats, float]:
    counts = np.ascontiguousarray(counts)
    return _smoothed(layout, lambda first, last: counts[first:last], smoothing, dtype, threads)


def smooth_posterior(
    layout: Layout, Z: Floats, smoothing: float, dtype: DTypeLike, threads: int
) -> tuple[Floats, Floats, float, Floats]:
    K, kernel, Z = Z.shape[1], _compiled(Z.shape[1]).counts, np.ascontiguousarray(Z)
    right = np.empty(layout.n_rows)

    def counted(first: int, last: int) -> Floats:
        C = np.empty((last - first, K))
        kernel(layout.row_ptr, layout.task, Z, C, first, last)
        right[first:last] = C.take(np.arange(0, C.size, K) + layout.row_label[first:last])
        return C

    return *_smoothed(layout, counted, smoothing, dtype, threads), right


def _smoothed(
    layout: RowTable, counted: Callable[[int, int], Floats], smoothing: float, dtype: DTypeLike, threads: int
) -> tuple[Floats, Floats, float]:
    """`smooth_rows` with the counts of the rows first:last from counted(first, last), in blocks that fit a cache."""
    K, ptr = layout.n_classes, layout.worker_ptr
    P, totals = empty((layout.n_rows, K), dtype), np.zeros((layout.n_workers, K))
    bounds, kernel = by_answers(ptr, max(1, BLOCK_ANSWERS * K // CACHED_CELLS)), _compiled(K).smooth
    log_prior = np.zeros(len(bounds) - 1)

    def work(b: int, start: int, stop: int) -> None:
        counts = counted(int(ptr[start]), int(ptr[stop]))
        log_prior[b] = kernel(ptr, counts, float(smoothing), P, totals, start, stop)

    run(work, bounds, threads)
    return P, totals, math.fsum(log_prior) if smoothing > 0 else 0.0
