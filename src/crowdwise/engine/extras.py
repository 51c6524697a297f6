"""Optional libraries: what is missing is said before any work begins, with the command that installs it."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from ..errors import MissingError

# Extra -> the modules that it brings, and what to install.
EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    "learn": (("sklearn", "scipy"), "crowdwise[learn]"),
    "deep": (("torch", "sklearn", "scipy"), "crowdwise[deep]"),
    "pandas": (("pandas", "pyarrow"), "crowdwise[pandas]"),
    "metric-learn": (("metric_learn", "sklearn", "scipy"), "metric-learn"),
}
NAMES = {"sklearn": "scikit-learn", "metric_learn": "metric-learn"}


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
