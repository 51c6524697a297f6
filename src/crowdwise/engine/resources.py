"""Resources of a fit: memory, threads of linear algebra, optional libraries."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..answers.arguments import MAX_WHOLE, is_number
from ..errors import MemoryNeedError, MissingError, ParameterError, option
from ..limits import BASE, LIMITS, refuse_small_limits

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
def limit_threads(threads: int = 1) -> Iterator[None]:
    """Limit BLAS, and torch if it is loaded, to a fixed number of threads."""
    from threadpoolctl import threadpool_limits

    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch is not None else 0
    if torch is not None:
        torch.set_num_threads(threads)
    try:
        with threadpool_limits(threads):
            yield
    finally:
        if torch is not None:
            torch.set_num_threads(before)


UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def memory_size(value: Any, name: str = "memory") -> int:
    """Return a number of bytes, given as a number or as text; `name` is that of the option.

    >>> memory_size("2GB"), memory_size("512 MiB"), memory_size(1e9)
    (2000000000, 536870912, 1000000000)
    """
    if is_number(value) and 0 < value < MAX_WHOLE:
        return int(value)
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]?i?)b?\s*", value, re.I) if isinstance(value, str) else None
    unit = UNITS.get(found[2].lower()) if found else None
    if found is None or unit is None or not 0 < float(found[1]) * unit < MAX_WHOLE:
        raise ParameterError(f"{option(name, value)} is not a size; give one, for instance {option(name, '2GB')}")
    return int(float(found[1]) * unit)


def available() -> int:
    """Return the memory in bytes that this process may use besides its libraries, whether they are loaded or not: of
    the machine without swapping, of its control group, and under its resource limits."""
    used, torch = _status(), "torch" in sys.modules
    to_load = max(BASE - used.get("VmRSS", 0), 0)
    room = [each - to_load for each in (_machine(), *_control_group(Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")))]
    room += [each.room(used.get(each.status, 0), torch) for each in LIMITS if each.most is not None]
    return max(min(room), 0)


def _machine() -> int:
    info = _table(Path("/proc/meminfo"))
    return info.get("MemAvailable", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _status() -> dict[str, int]:
    return _table(Path("/proc/self/status"))


def _table(file: Path) -> dict[str, int]:
    """Return the lines `name: number kB` of a file of the system, in bytes."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return {}
    found = (re.fullmatch(r"(\w+):\s+(\d+) kB", line) for line in lines)
    return {each[1]: int(each[2]) * 1024 for each in found if each}


def _control_group(root: Path, own: Path) -> list[int]:
    """Return how much memory the control group of this process, and every group that holds it, may still use. File
    pages that can be given up do not count as used."""
    rooms = []
    for group, most, used, unused in _groups(root, own):
        try:
            limit, now = (group / most).read_text().strip(), int((group / used).read_text())
            statistics = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            if limit != "max" and int(limit) < 1 << 60:  # version 1 writes a huge number for no limit
                rooms.append(int(limit) - now + int(statistics.get(unused, 0)))
        except (OSError, ValueError):
            continue
    return rooms


def _groups(root: Path, own: Path) -> Iterator[tuple[Path, str, str, str]]:
    """Yield the folders of the control groups of this process, and the names of their files."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        version2 = ("memory.max", "memory.current", "inactive_file")
        version1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        names, base = (version2, root) if controllers == "" else (version1, root / "memory")
        place = base / path.strip("/")
        for group in (place, *place.parents):
            yield group, *names
            if group == base:
                break


def refuse_if_too_large(need: int, name: str, size: str, advice: str) -> None:
    """Raise MemoryNeedError if a fit of something of this size needs more memory than is available."""
    room = int(0.8 * available())
    if need > room:
        raise MemoryNeedError(
            f"{name} needs about {need / 1e9:.1f} GB for {size}, but {room / 1e9:.1f} GB may be used. {advice}"
        )


def require(extras: Sequence[str], what: str) -> None:
    """Raise MissingError if a library of the extras, which `what` needs, is not installed."""
    if "deep" in extras:
        refuse_small_limits(torch=True)
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
