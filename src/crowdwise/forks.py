"""Tables in a forked process: polars would wait for ever for threads that a fork does not copy, so they are refused.

`import crowdwise` loads this module, which imports almost nothing.
"""

from __future__ import annotations

import os
import sys

THREADS = "/proc/self/task"  # a folder for each thread of this process


class _Fork:
    """What is known of the forks that led to this process."""

    polars_ran = False  # whether polars had threads in the process that forks
    lost = False  # whether it had them in a process that this one was forked from

    @classmethod
    def before(cls) -> None:
        cls.polars_ran = "polars" in sys.modules and _has_threads("polars")

    @classmethod
    def in_child(cls) -> None:
        cls.lost |= cls.polars_ran


os.register_at_fork(before=_Fork.before, after_in_child=_Fork.in_child)


def _has_threads(name: str) -> bool:
    """Whether this process has a thread of this name with a number. If the system does not list them, assume so."""
    if not os.path.isdir(THREADS):
        return True
    return any(_is_thread(f"{THREADS}/{thread}/comm", name) for thread in os.listdir(THREADS))


def _is_thread(path: str, name: str) -> bool:
    try:
        with open(path) as file:
            before, _, number = file.read().strip().rpartition("-")
    except OSError:  # it has ended meanwhile
        return False
    return before == name and number.isdigit()


def refuse_lost_threads() -> None:
    """Raise ForkError if polars cannot work in this process. Called where tables are read, made or written."""
    if _Fork.lost:
        from .errors import ForkError

        raise ForkError(
            f"process {os.getpid()} was forked from one in which polars was at work, and polars, which holds all "
            "tables, would wait here for ever. Start processes with multiprocessing.get_context('spawn') or joblib; "
            "or read the answers before the fork, only fit in this process, and return the result"
        )
