"""Published studies, measured again and compared with the published numbers."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..errors import FileError, ParameterError, nearest, option
from ..rating.checks import check_threshold
from .study import Part, Study, StudyOptions

STUDIES = ("lecture", "difficulty", "groups", "clicks", "pairs")  # each is a module with a function of its name


def study(
    name: str,
    *,
    data: Path | None = None,
    out: Path | None = None,
    seed: int = 0,
    watch: Callable[[str], None] = lambda text: None,
    quick: bool = False,
    full: bool = False,
    images: Path | None = None,
    drop_below: float | None = None,
) -> Study:
    """Run a study.

    `data` is the folder of its real data sets and `out` the folder for its files. `watch` is called with the name of
    each step. `quick` measures less, in minutes; `full` uses all images of MNIST in the study of pairs. `images` is
    the folder of all CIFAR-10 images, for the parts of groups and pairs that need them.
    `drop_below` of the lecture also measures without the workers below this score on attention checks.
    """
    if name not in STUDIES:
        raise ParameterError(f"no study {name!r}; there are {', '.join(STUDIES)}.{nearest(name, STUDIES)}")
    if drop_below is not None:
        if name != "lecture":
            raise ParameterError(f"{option('drop_below')} applies to the study lecture, not to {name}. Omit it")
        check_threshold(drop_below)
    if full and name != "pairs":
        raise ParameterError(f"{option('full')} applies to the study pairs, not to {name}. Omit it")
    if full and quick:
        raise ParameterError(f"{option('quick')} and {option('full')} exclude each other. Omit one of them")
    if images is not None and name not in ("groups", "pairs"):
        raise ParameterError(f"{option('images')} applies to the studies groups and pairs, not to {name}. Omit it")
    for setting, folder in (("data", data), ("images", images)):
        if folder is not None and not folder.is_dir():
            raise FileError(f"{folder} is not a folder. {option(setting)} must be the folder of the study's data")
    if out is not None and out.exists() and not out.is_dir():
        raise FileError(f"{out} is a file. {option('out')} must be a folder; it is made if it does not exist")
    run: Callable[[StudyOptions], Study] = getattr(importlib.import_module(f".{name}", __name__), name)
    began = time.process_time()
    found = run(StudyOptions(data, out, seed, watch, quick, full, images, drop_below))
    return replace(found, seconds=found.seconds + time.process_time() - began)


__all__ = ["STUDIES", "Part", "Study", "study"]
