"""Memory for large arrays that is used again and again during a fit.

Each iteration allocates tables of the same sizes. The system clears memory before it hands it out, which takes longer
than to fill such a table, so within `reused` the memory of an array that no longer exists goes to the next one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

MIN_BYTES = 1 << 20  # smaller arrays are cheap to allocate
UNUSED = 2  # references to a block without arrays: the list, and the argument of getrefcount

_blocks: ContextVar[list[NDArray[np.uint8]] | None] = ContextVar("blocks", default=None)


@contextmanager
def reused() -> Iterator[None]:
    """Let `empty` use memory again until the end of the block. Arrays that exist then stay valid."""
    token = _blocks.set([])
    try:
        yield
    finally:
        _blocks.reset(token)


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array with undefined values, as np.empty does."""
    size, blocks = math.prod(shape) * np.dtype(dtype).itemsize, _blocks.get()
    if blocks is None or size < MIN_BYTES:
        return np.empty(shape, dtype)
    for n in range(len(blocks)):
        if blocks[n].nbytes == size and sys.getrefcount(blocks[n]) == UNUSED:  # an array refers to its block
            return blocks[n].view(dtype).reshape(shape)
    blocks.append(np.empty(size, np.uint8))
    return blocks[-1].view(dtype).reshape(shape)
