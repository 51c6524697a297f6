"""Fits of images by the executors of Spark. An image is fitted on its own, so that any of them can do it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .executor import FOUND, answer, answers_of
from .session import map_in_arrow


@dataclass(frozen=True)
class OverImages:
    """Spreads the fits of images over the executors of a session; a value for `Run.spread`."""

    session: Any
    partitions: int | None = None

    def __call__(self, fit: Callable[[int], Any], images: list[int]) -> Iterator[tuple[int, Any]]:
        if not images:
            return
        count = min(len(images), self.partitions or 4 * self.session.sparkContext.defaultParallelism)
        numbers = self.session.range(len(images), numPartitions=count)
        for at, found in answers_of(map_in_arrow(numbers, FitImages(fit, tuple(images)), FOUND)):
            yield images[at], found


@dataclass(frozen=True)
class FitImages:
    """Fits the images of a partition, on an executor of Spark."""

    fit: Callable[[int], Any]
    images: tuple[int, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for at in batch.column(0).to_pylist():
                yield answer(at, self.fit, self.images[at])
