"""The records of an original export, to which estimates are added on the way back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ...errors import CrowdwiseError, FileError
from .base import ODD, Original, what

T = TypeVar("T")


def each_of(original: Original, title: str, made: Callable[[Mapping[str, Any]], T | None]) -> Iterator[T]:
    """Yield what is made of each record, unless it is None. A record that is not as the platform writes it raises
    FileError with its number."""
    for number, record in enumerate(original(), 1):
        try:
            found = made(record)
        except CrowdwiseError:
            raise
        except ODD as error:
            raise FileError(
                f"record {number} of the original export is not as {title} writes it: {what(error)}. Correct or "
                "remove it"
            ) from error
        if found is not None:
            yield found
