"""Base class of the models of clicks, and a loop that fits images one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event, Lock
from typing import Any, Protocol, TypeVar

import numpy as np

from ..answers import Points
from ..engine import Model, Progress, Run
from ..engine.loop import interrupted
from ..engine.resources import refuse_if_too_large
from ..engine.run import Arrays, packed, restored
from ..kernels.layout import Floats, Ints
from ..kernels.threads import run as in_threads
from ..result import Objects, PointsResult

BYTES_PER_CLICK = 150  # of arrays with an entry per click


@dataclass(frozen=True, kw_only=True)
class PointsModel(Model[Points, PointsResult]):
    """Base class of models that find objects in clicks."""

    kind = "points"
    answers_type = Points
    result_type = PointsResult
    params_type = Objects

    def need(self, points: Points) -> int:
        """Return the memory of a fit in bytes, without the clicks."""
        return BYTES_PER_CLICK * points.n_clicks

    def check_memory(self, answers: Points) -> None:
        refuse_if_too_large(
            self.need(answers), self.name, f"{answers.n_clicks} clicks on {answers.n_images} images",
            "Allow it more, or fit the images in several parts",
        )  # fmt: skip


class Fitted(Protocol):
    """Fit of one image: a named tuple of arrays and numbers."""

    @property
    def n_objects(self) -> int: ...


T = TypeVar("T", bound=Fitted)


def fit_images(
    name: str, points: Points, run: Run, fit: Callable[[int], T], fit_type: Callable[..., T], *, threads: int = 1,
    done: Mapping[int, T] | None = None,
) -> list[T | None]:  # fmt: skip
    """Fit every image with `fit`; return one fit per image, None for an image without clicks.

    With `run.spread`, `fit` is sent to other machines. `done` holds fits that already exist, by image number.
    `fit_type` rebuilds a fit from its fields. Finished fits stay in the journal, so an interrupted run does not repeat
    them.
    """
    fits: list[T | None] = [(done or {}).get(i) for i in range(points.n_images)]
    for i, fields in _by_image(run.journal.saved("images") or {}).items():
        fits[i] = restored(fit_type, fields, D=points.n_axes)
    run.journal.keep("images", lambda: packed({str(i): each for i, each in enumerate(fits)}))
    clicks, stopped = points.clicks_per_image, Event()

    def one(i: int, _start: int = 0, _stop: int = 0) -> None:
        if fits[i] is not None or not clicks[i] or stopped.is_set():
            return
        if run.stopped:
            stopped.set()
            return
        keep(i, fit(i))

    ready, lock = [each.n_objects for each in fits if each is not None], Lock()
    so_far = [len(ready), sum(ready)]

    def keep(i: int, found: T) -> None:
        with lock:
            fits[i] = found
            so_far[0] += 1
            so_far[1] += found.n_objects
            run.report(Progress("image", so_far[0], points.n_images, None, {"objects": so_far[1]}))

    if run.spread is not None:
        for i, found in run.spread(fit, [i for i in range(points.n_images) if fits[i] is None and clicks[i]]):
            keep(i, found)
    elif threads == 1:
        for i in range(points.n_images):
            one(i)
    else:
        in_threads(one, np.arange(points.n_images + 1), threads)
    if stopped.is_set():
        raise interrupted(name, run, 0)
    return fits


def object_ptr(images: Sequence[T | None]) -> Ints:
    """(I+1,) offset of each image's first object in the concatenated objects of all images."""
    return np.concatenate([[0], np.cumsum([0 if each is None else each.n_objects for each in images])]).astype(np.int64)


def concat(images: Sequence[T | None], field: str, *shape: int) -> Floats:
    """Concatenate one field of the fits of all images; `shape` is the shape of one row."""
    return np.concatenate([np.empty((0, *shape)), *(getattr(each, field) for each in images if each is not None)])


def _by_image(arrays: Arrays) -> dict[int, dict[str, Any]]:
    """Fields of every saved fit, by image number."""
    fits: dict[int, dict[str, Any]] = {}
    for key, value in arrays.items():
        image, field = key.split(".", 1)
        fits.setdefault(int(image), {})[field] = value
    return fits
