"""Running work on blocks of data in plain threads: compiled kernels release the interpreter lock.

A forked process has only the thread that forked. Its pool begins anew, and locks that another thread would hold for
ever are taken before a fork: `LOADING`, and that of numba's compiler.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import FrameType
from typing import Any

from .layout import Ints

MAX_HELPERS = 256  # threads of all fits at the same time, besides those that call `run`
LOADING = threading.RLock()  # held while compiled kernels are imported; it is taken before numba's lock


@functools.cache
def _pool() -> ThreadPoolExecutor:
    """The pool of all fits; it starts a thread only if no other is idle."""
    return ThreadPoolExecutor(MAX_HELPERS, thread_name_prefix="crowdwise")


class _Blocks:
    """The blocks of a call of `run` that are not begun yet. Several threads serve them."""

    def __init__(self, work: Callable[[int, int, int], None], bounds: Ints) -> None:
        self.work, self.failures = work, dict[int, Exception]()
        self.waiting = deque((b, int(bounds[b]), int(bounds[b + 1])) for b in range(len(bounds) - 1))
        self.begun, self.ended = list[bool](), list[bool]()  # one entry for each thread that came to help, and left

    def serve(self) -> None:
        """Work until no block is waiting."""
        while self.waiting:
            with contextlib.suppress(IndexError):  # another thread took the last one
                self._do(*self.waiting.popleft())

    def _do(self, b: int, start: int, stop: int) -> None:
        try:
            self.work(b, start, stop)
        except Exception as error:
            self.failures[b] = error
            self.waiting.clear()

    def help_out(self) -> None:
        self.begun.append(True)
        try:
            self.serve()
        finally:
            self.ended.append(True)

    def end(self) -> None:
        """Begin no more blocks, and wait for those at which other threads work."""
        self.waiting.clear()
        while len(self.ended) < len(self.begun):
            time.sleep(0.001)


def run(work: Callable[[int, int, int], None], bounds: Ints, threads: int) -> None:
    """Call work(block, start, stop) for every block, in this thread and in others.

    If blocks fail, the error of the first one is raised, whatever the number of threads. When this ends, also by an
    interrupt, no other thread is at work on these blocks.
    """
    blocks = _Blocks(work, bounds)
    helpers: list[Future[None]] = []
    try:
        with contextlib.suppress(RuntimeError):  # if no thread can be started, this one does all the work
            count = min(threads, len(blocks.waiting)) - 1
            helpers.extend(_pool().submit(blocks.help_out) for _ in range(count))
        blocks.serve()
        for helper in helpers:
            if not helper.cancel():
                helper.result()
    finally:
        blocks.end()
    if blocks.failures:
        raise blocks.failures[min(blocks.failures)]


@contextlib.contextmanager
def interrupts_later() -> Iterator[None]:
    """Let Ctrl-C wait until the end of the block, in which compiled code is loaded or made: numba and llvmlite would
    keep their locks, or half of their modules, after an interrupt, and later fits would wait for ever."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda _, frame: came.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(signal.SIGINT, came[0])


_taken: list[Any] = []  # locks that the forking thread holds


def _before_fork() -> None:
    """Take the locks that the forked process will need, so that no other thread holds them."""
    LOADING.acquire()
    _taken.append(LOADING)
    compiler = getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None)
    if compiler is not None:
        compiler.acquire()
        _taken.append(compiler)


def _after_fork() -> None:
    while _taken:
        _taken.pop().release()


def _in_child() -> None:
    _after_fork()
    _pool.cache_clear()  # its threads are not here


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
