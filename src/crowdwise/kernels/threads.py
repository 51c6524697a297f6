"""Running work on blocks of data in plain threads: compiled kernels release the interpreter lock."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from .layout import Ints


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="crowdwise")


os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked child inherits the pool but not its threads


def run(work: Callable[[int, int, int], None], bounds: Ints, threads: int) -> None:
    """Call work(block, start, stop) for every block."""
    jobs = [(b, int(bounds[b]), int(bounds[b + 1])) for b in range(len(bounds) - 1)]
    if threads == 1 or len(jobs) == 1:
        for job in jobs:
            work(*job)
    else:
        for done in [_pool(threads).submit(work, *job) for job in jobs]:
            done.result()
