"""Resources of a fit: memory, threads of linear algebra, optional libraries."""

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

# Extra -> its modules, and the package to install.
EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    "learn": (("sklearn", "scipy"), "crowdwise[learn]"),
    "deep": (("torch", "sklearn", "scipy"), "crowdwise[deep]"),
    "plot": (("matplotlib",), "crowdwise[plot]"),
    "pandas": (("pandas", "pyarrow"), "crowdwise[pandas]"),
    "spark": (("pyspark", "pyarrow", "pandas"), "crowdwise[spark]"),
    "metric-learn": (("metric_learn", "sklearn", "scipy"), "metric-learn"),
}
NAMES = {"sklearn": "scikit-learn", "metric_learn": "metric-learn"}


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS, and torch if it is loaded, to one thread."""
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
    """Return the available memory in bytes, without swapping."""
    info = Path("/proc/meminfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def refuse_if_too_large(need: int, answers: Labels, name: str) -> None:
    """Raise MemoryNeedError if a fit needs more memory than is available."""
    room = int(0.8 * available())
    if need > room:
        raise MemoryNeedError(
            f"{name} needs about {need / 1e9:.1f} GB for {answers.n_tasks} tasks, {answers.n_workers} workers and "
            f"{answers.n_classes} classes, but {room / 1e9:.1f} GB may be used. Use 'majority-vote' or 'one-coin', "
            "whose memory does not grow with the square of the number of classes, or merge rare labels"
        )


def require(extras: Sequence[str], what: str) -> None:
    """Raise MissingError if a library of the extras, which `what` needs, is not installed."""
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
    """Return a module of an extra, or raise an error that says how to install it."""
    require((extra,), what)
    return importlib.import_module(module)
