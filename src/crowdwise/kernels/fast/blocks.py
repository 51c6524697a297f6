"""How compiled kernels are run: cut into blocks by the data, in plain threads.

Each output row belongs to one block, and partial sums are added in block order: the bits do not depend on threads.
Kernels release the interpreter lock, so plain threads run them. numba keeps what it compiled by the file of the caller:
after a change to `close`, which other files inline, `make clean` throws the kept code away.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

from .. import EStepResult
from ..layout import Floats, Ints, Layout, RowTable

BLOCK = 1 << 16  # answers
AHEAD = 32  # answers between asking for a row and using it

jit: Any = functools.partial(njit, nogil=True, cache=True, error_model="numpy", boundscheck=False)


@intrinsic
def _prefetch(typingctx, table, row, column):
    """Start loading the cache line of an element of a C-ordered 2-d array, some time before it is used."""

    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        index = context.cast(builder, args[1], signature.args[1], types.intp)
        place = context.cast(builder, args[2], signature.args[2], types.intp)
        at = cgutils.get_item_pointer(context, builder, signature.args[0], array, [index, place])
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # to read, to be kept in all cache levels, data
        builder.call(fetch, [builder.bitcast(at, byte), word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(table, row, column), codegen


prefetch: Any = _prefetch


@jit(inline="always")
def close(q, first, end, base, gold, Z, i, shares):
    """Turn the log-scores q of task i into its posterior; returns its evidence and whether the label moved."""
    K = len(q)
    top = -np.inf
    for k in range(K):
        if gold >= 0 and k != gold:
            q[k] = -np.inf
        top = max(top, q[k])
    total, was, kept, now = 0.0, -1.0, -1.0, -1.0
    for k in range(K):
        q[k] = math.exp(q[k] - top)
        total += q[k]
        was = max(was, Z[i, k])
    for k in range(K):  # the label changed if what was on top is not any more, as stored
        before = Z[i, k]
        q[k] /= total
        Z[i, k] = q[k]
        now = max(now, Z[i, k])
        if before == was:
            kept = max(kept, Z[i, k])
    if end == first:
        return 0.0, 0
    for k in range(K):
        shares[k] += q[k]
    return base + top + math.log(total), int(kept < now)


def by_answers(ptr: Ints, work: int = 1) -> Ints:
    """Bounds of runs of segments with about BLOCK answers each, fewer where an answer is more work."""
    edges = np.searchsorted(ptr, np.arange(0, ptr[-1] + 1, max(1, BLOCK // work)))
    return np.unique(np.concatenate([[0], edges, [len(ptr) - 1]]))


def by_workers(layout: RowTable) -> Ints:
    """Few blocks by workers, fewer where there are many classes: a block may hold K x K sums."""
    count = max(1, min(16, 10_000_000 // layout.n_classes**2))
    return np.unique(np.linspace(0, layout.n_workers, count + 1).astype(np.int64))


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="crowdwise")


os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked child inherits the pool, but not its threads


def run(work: Callable[[int, int, int], None], bounds: Ints, threads: int) -> None:
    """Call work(block, start, stop) for every block."""
    jobs = [(b, int(bounds[b]), int(bounds[b + 1])) for b in range(len(bounds) - 1)]
    if threads == 1 or len(jobs) == 1:
        for job in jobs:
            work(*job)
    else:
        for done in [_pool(threads).submit(work, *job) for job in jobs]:
            done.result()


def sweep(
    layout: Layout, Z: Floats, threads: int, kernel: Callable[[Floats, int, int], tuple[float, int]], work: int = 1
) -> EStepResult:
    bounds = by_answers(layout.task_ptr, work)
    evidence, flips = np.zeros(len(bounds) - 1), np.zeros(len(bounds) - 1, np.int64)
    shares = np.zeros((len(bounds) - 1, Z.shape[1]))

    def block(b: int, start: int, stop: int) -> None:
        evidence[b], flips[b] = kernel(shares[b], start, stop)

    run(block, bounds, threads)
    return EStepResult(math.fsum(evidence), shares.sum(0), int(flips.sum()))
