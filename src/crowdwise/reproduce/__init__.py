"""Published studies, measured anew beside their figures."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

from ..errors import ParameterError, nearest
from .study import Asked, Part, Study

STUDIES = ("lecture", "difficulty", "groups", "clicks", "pairs")  # each a module with a function of its name


def study(
    name: str,
    *,
    data: Path | None = None,
    out: Path | None = None,
    seed: int = 0,
    watch: Callable[[str], None] = lambda text: None,
    quick: bool = False,
    full: bool = False,
) -> Study:
    """Run a study; `data` is the folder of its real set, `out` the folder for its files; `watch` is told of
    each step; `quick` measures less, in minutes, where a study is long; `full` measures more, where it can."""
    if name not in STUDIES:
        raise ParameterError(f"no study {name!r}; there are {', '.join(STUDIES)}.{nearest(name, STUDIES)}")
    run: Callable[[Asked], Study] = getattr(importlib.import_module(f".{name}", __name__), name)
    return run(Asked(data, out, seed, watch, quick, full))


__all__ = ["STUDIES", "Part", "Study", "study"]
