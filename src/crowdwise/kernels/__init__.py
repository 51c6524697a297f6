"""Compiled arithmetic: arrays in, arrays out. `choose` gives the numpy twin to small tables, the compiled to others."""

from __future__ import annotations

import importlib
import os
from typing import Any

SMALL = 1_000_000  # answers x classes: below, numpy is done before numba is loaded


def choose(n_answers: int, n_classes: int) -> Any:
    """The kernel module for a table of this size; it depends on the data alone, so the bits of a fit do."""
    name = "plain" if n_answers * n_classes <= SMALL else "fast"
    return importlib.import_module(f"{__name__}.{name}")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
