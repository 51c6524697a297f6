"""Limits on the memory of this process.

The libraries end a process in which they get none. So limits that leave no room for them are refused before they are
loaded, and running out of memory later is an error in words.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from .errors import MemoryNeedError


class Limit(NamedTuple):
    """A limit of the system on what a process reserves, and what libraries reserve of it, in bytes."""

    number: int  # of the limit
    name: str
    status: str  # name of what is in use, in /proc/self/status
    libraries: int  # with compiled code, as measured; the memory really in use is a fraction of it
    torch: int

    @property
    def most(self) -> int | None:
        """The limit in bytes, or None without one."""
        most = resource.getrlimit(self.number)[0]
        return None if most == resource.RLIM_INFINITY else most

    def reserved(self, torch: bool = False) -> int:
        """Return the bytes that the libraries reserve."""
        return self.libraries + PER_CORE * (os.cpu_count() or 1) + self.torch * torch

    def room(self, used: int, torch: bool) -> int:
        """Return the bytes that are left when all libraries are loaded; `used` are in use now."""
        return (self.most or 0) - max(used, self.reserved(torch))


BASE = 250_000_000  # bytes of the process itself, with its libraries and compiled code, that are really in use
PER_CORE = 30_000_000  # bytes that the threads of the libraries reserve for each core
LIMITS = (
    Limit(resource.RLIMIT_AS, "address space (ulimit -v)", "VmSize", 2_050_000_000, 500_000_000),
    Limit(resource.RLIMIT_DATA, "data (ulimit -d)", "VmData", 650_000_000, 250_000_000),
)


def refuse_small_limits(torch: bool = False) -> None:
    """Raise MemoryNeedError if a limit of this process has no room for the libraries that are not loaded yet."""
    if ("torch" if torch else "polars") in sys.modules:
        return
    for limit in LIMITS:
        most, need = limit.most, limit.reserved(torch)
        if most is not None and most < need:
            raise MemoryNeedError(
                f"this process may reserve {most / 1e9:.1f} GB of {limit.name}, but the libraries need "
                f"{need / 1e9:.1f} GB before any answer is read. Raise the limit; what is really used is limited "
                "better by a control group (systemd-run -p MemoryMax=2G)"
            )


def lacks_memory(error: Exception) -> bool:
    """Whether an error says that there is too little memory. Those of torch are RuntimeErrors with these words."""
    words = ("not enough memory", "can't allocate memory", "out of memory")
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(w in str(error) for w in words))


@contextmanager
def enough_memory(what: str) -> Iterator[None]:
    """Turn errors of too little memory into MemoryNeedError; `what` needs the memory."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        detail = f" ({error})" if str(error) else ""
        raise MemoryNeedError(
            f"{what} ran out of memory{detail}. Allow it more, or give it fewer answers, for instance a sample of the "
            "tasks"
        ) from None
