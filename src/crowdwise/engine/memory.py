"""Ask before filling the memory."""

from __future__ import annotations

import os
from pathlib import Path

from ..answers import Labels
from ..errors import MemoryNeedError


def available() -> int:
    """Bytes that can still be taken without swapping."""
    info = Path("/proc/meminfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def refuse_if_too_large(need: int, answers: Labels, name: str) -> None:
    """Refuse a fit that would not fit, before it starts."""
    room = int(0.8 * available())
    if need > room:
        raise MemoryNeedError(
            f"{name} needs about {need / 1e9:.1f} GB for {answers.n_tasks} tasks, {answers.n_workers} workers and "
            f"{answers.n_classes} classes, and {room / 1e9:.1f} GB may be used. Take 'majority-vote' or 'one-coin', "
            "whose tables do not grow with classes squared, or merge rare labels"
        )
