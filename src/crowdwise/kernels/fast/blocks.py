"""Running compiled kernels: the data are split into blocks, which run in plain threads.

Each output row belongs to one block, and partial sums are added in block order, so results do not depend on the number
of threads. Kernels release the interpreter lock, so plain threads suffice. numba caches compiled code by the file of
the caller: after a change to `normalise_task` or `stored`, which other files inline, or to a constant that another file
imports, run `make clean` to delete the cache.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, event, types
from numba.extending import intrinsic

from .. import EStepResult
from ..layout import GRID, Floats, Ints, Layout, RowTable
from ..threads import interrupts_later, run

BLOCK_ANSWERS = 1 << 16  # answers in a block
COMPILING = "crowdwise: compiling, once per installation; this takes some seconds"
PREFETCH_AHEAD = 64  # answers between prefetching a row and using it

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "error_model": "numpy",
    "boundscheck": False,
    "no_cfunc_wrapper": True,
}


def jit(function: Any = None, **options: Any) -> Any:
    """Compile a function when it is first called; an interrupt waits until that is done."""
    if function is None:
        return functools.partial(jit, **options)
    compiled: Any = njit(function, **OPTIONS, **options)
    compile_for = compiled._compile_for_args

    def shielded(*arguments: Any, **named: Any) -> Any:
        with interrupts_later():
            return compile_for(*arguments, **named)

    compiled._compile_for_args = shielded
    return compiled


class _CompileNotice(event.Listener):
    """Prints a line at a terminal or in a notebook when the first kernel is compiled. The progress bar of the command
    line has such a line of its own."""

    printed = False

    def on_start(self, event: Any) -> None:
        ours = event.data["dispatcher"].py_func.__module__.startswith("crowdwise.")
        shown = sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)
        if ours and shown and not self.printed and "crowdwise.cli" not in sys.modules:
            print(COMPILING, file=sys.stderr)
            self.printed = True

    def on_end(self, event: Any) -> None:
        """Print nothing."""


event.register("numba:compile", _CompileNotice())


def _prefetching(caches: int) -> Any:
    """Return an intrinsic that prefetches the cache line of an element of a C-ordered 2-d array: prefetch(table, row,
    column). `caches` is 3 for all caches, 2 for all but the nearest one, which has room for fewer outstanding loads."""

    @intrinsic
    def prefetch(typingctx, table, row, column):
        def codegen(context, builder, signature, args):
            array = context.make_array(signature.args[0])(context, builder, args[0])
            index = context.cast(builder, args[1], signature.args[1], types.intp)
            place = context.cast(builder, args[2], signature.args[2], types.intp)
            at = cgutils.get_item_pointer(context, builder, signature.args[0], array, [index, place])
            byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
            fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            builder.call(fetch, [builder.bitcast(at, byte), word(0), word(caches), word(1)])  # for reading data
            return context.get_dummy_value()

        return types.void(table, row, column), codegen

    return prefetch


prefetch: Any = _prefetching(3)
prefetch_far: Any = _prefetching(2)


@intrinsic
def _at(typingctx, array, index):
    """Return array[index] of a 1-d array for an index that is not negative: numba tests the sign of other indices.
    Under NUMBA_BOUNDSCHECK it is checked, as all others."""

    def codegen(context, builder, signature, args):
        view = context.make_array(signature.args[0])(context, builder, args[0])
        place = context.cast(builder, args[1], signature.args[1], types.intp)
        checked = context.enable_boundscheck
        return builder.load(
            cgutils.get_item_pointer(context, builder, signature.args[0], view, [place], False, checked)
        )

    return array.dtype(array, index), codegen


at: Any = _at


@jit(inline="always")
def stored(value, Z):
    """Return a probability as Z stores it: in single precision, rounded to the grid."""
    z = Z.dtype.type(value)
    return Z.dtype.type((np.float64(z) + GRID) - GRID) if Z.itemsize == 4 else z


@jit(inline="always")
def normalise_task(q, first, end, base, gold, Z, i, shares):
    """Turn the log-scores q of task i into its posterior; return its evidence and whether the label changed."""
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
    for k in range(K):  # the label changed if its class is no longer the most probable, as stored
        before = Z[i, k]
        q[k] /= total
        Z[i, k] = stored(q[k], Z)
        now = max(now, Z[i, k])
        if before == was:
            kept = max(kept, Z[i, k])
    if end == first:
        return 0.0, 0
    for k in range(K):
        shares[k] += Z[i, k]
    return base + top + math.log(total), int(kept < now)


def by_answers(ptr: Ints, work: int = 1) -> Ints:
    """Return bounds of blocks of segments with about BLOCK_ANSWERS / work answers; `work` is the cost per answer."""
    edges = np.searchsorted(ptr, np.arange(0, ptr[-1] + 1, max(1, BLOCK_ANSWERS // work)))
    return np.unique(np.concatenate([[0], edges, [len(ptr) - 1]]))


def by_workers(layout: RowTable) -> Ints:
    """Return bounds of blocks of workers. There are few blocks if there are many classes, since a block may need K x K
    sums."""
    count = max(1, min(16, 10_000_000 // layout.n_classes**2))
    return np.unique(np.linspace(0, layout.n_workers, count + 1).astype(np.int64))


def run_e_step(
    layout: Layout, Z: Floats, threads: int, kernel: Callable[[Floats, int, int], tuple[float, int]], work: int = 1
) -> EStepResult:
    """Run an E-step kernel on all blocks of tasks and sum its results in block order."""
    bounds = by_answers(layout.task_ptr, work)
    evidence, flips = np.zeros(len(bounds) - 1), np.zeros(len(bounds) - 1, np.int64)
    shares = np.zeros((len(bounds) - 1, Z.shape[1]))

    def block(b: int, start: int, stop: int) -> None:
        evidence[b], flips[b] = kernel(shares[b], start, stop)

    run(block, bounds, threads)
    return EStepResult(math.fsum(evidence), shares.sum(0), int(flips.sum()))
