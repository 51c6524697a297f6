"""What every model of clicks shares: its kind, and fits of images one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, Protocol, TypeVar

import numpy as np

from ..answers import Points
from ..engine import Model, Progress, Run
from ..engine.loop import interrupted
from ..engine.run import Arrays, packed, unpacked
from ..kernels.layout import Floats, Ints
from ..result import Objects, PointsResult


@dataclass(frozen=True, kw_only=True)
class PointsModel(Model[Points, PointsResult]):
    """Finds objects in clicks."""

    kind = "points"
    answers_type = Points
    result_type = PointsResult
    params_type = Objects


class Fitted(Protocol):
    """The fit of one image: a named tuple of arrays and numbers."""

    @property
    def n_objects(self) -> int: ...


T = TypeVar("T", bound=Fitted)


def each_image(
    name: str, points: Points, run: Run, fit: Callable[[int], T], kind: Callable[..., T], *, threads: int = 1,
    done: Mapping[int, T] | None = None,
) -> list[T | None]:  # fmt: skip
    """The fit of every image, None for one without clicks; those in `done`, by the number of the image, are not made
    again. An interruption keeps all fits made so far, also in later stages; `kind` makes a fit from its fields."""
    fits: list[T | None] = [(done or {}).get(i) for i in range(points.n_images)]
    for i, fields in _by_image(run.journal.saved("images") or {}).items():
        fits[i] = kind(**fields)
    run.journal.keep("images", lambda: packed({str(i): each for i, each in enumerate(fits)}))
    clicks, stopped = points.clicks_per_image, Event()

    def one(i: int, _start: int = 0, _stop: int = 0) -> None:
        if fits[i] is not None or not clicks[i] or stopped.is_set():
            return
        if run.stopped:
            stopped.set()
            return
        fits[i] = fit(i)
        so_far = [each.n_objects for each in fits if each is not None]
        run.report(Progress("image", len(so_far), points.n_images, None, {"objects": sum(so_far)}))

    if threads == 1:
        for i in range(points.n_images):
            one(i)
    else:
        from ..kernels.fast.blocks import run as in_threads

        in_threads(one, np.arange(points.n_images + 1), threads)
    if stopped.is_set():
        raise interrupted(name, run, 0)
    return fits


def pointers(images: Sequence[T | None]) -> Ints:
    """(I+1,) where the objects of each image begin when those of all images stand one after another."""
    return np.concatenate([[0], np.cumsum([0 if each is None else each.n_objects for each in images])]).astype(np.int64)


def joined(images: Sequence[T | None], field: str, *shape: int) -> Floats:
    """One field of all images, one after another; `shape` is that of a row."""
    return np.concatenate([np.empty((0, *shape)), *(getattr(each, field) for each in images if each is not None)])


def _by_image(arrays: Arrays) -> dict[int, dict[str, Any]]:
    """The fields of every fit that was kept."""
    fits: dict[int, dict[str, Any]] = {}
    for key, value in unpacked(arrays, "").items():
        image, field = key.split(".", 1)
        fits.setdefault(int(image), {})[field] = value
    return fits
