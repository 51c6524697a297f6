"""Signals while a fit runs: the first asks it to stop after its sweep, a second stops at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """Whether a signal has come, and which."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __call__(self) -> bool:
        return self.signal is not None

    @property
    def exit_status(self) -> int:
        return 128 + (self.signal or signal.SIGINT)

    def note(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Within the block, SIGINT and SIGTERM are noted instead of obeyed."""
    stop = Stop()
    before = {number: signal.signal(number, stop.note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
