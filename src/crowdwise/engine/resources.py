"""What a fit needs of the machine: memory, one thread for linear algebra, optional libraries."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..answers import Labels
from ..errors import MemoryNeedError, MissingError

# Extra -> the modules that it brings, and what to install.
EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    "learn": (("sklearn", "scipy"), "crowdwise[learn]"),
    "deep": (("torch", "sklearn", "scipy"), "crowdwise[deep]"),
    "plot": (("matplotlib",), "crowdwise[plot]"),
    "pandas": (("pandas", "pyarrow"), "crowdwise[pandas]"),
    "metric-learn": (("metric_learn", "sklearn", "scipy"), "metric-learn"),
}
NAMES = {"sklearn": "scikit-learn", "metric_learn": "metric-learn"}


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS, and torch where it is loaded, to one thread."""
    from threadpoolctl import threadpool_limits

    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch is not None else 0
    if torch is not None:
        torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        if torch is not None:
            torch.set_num_threads(before)


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


def require(extras: Sequence[str], what: str) -> None:
    """Refuse where a library of some extras is not installed; `what` needs it."""
    for extra in extras:
        modules, package = EXTRAS[extra]
        for module in modules:
            try:
                importlib.import_module(module)
            except ImportError as error:
                missing = NAMES.get(module, module)
                raise MissingError(
                    f"{what} needs {missing}, which is not installed. Run: pip install '{package}'"
                ) from error


def load(module: str, extra: str, what: str) -> Any:
    """A module of an extra, or an error that says how to install it."""
    require((extra,), what)
    return importlib.import_module(module)
