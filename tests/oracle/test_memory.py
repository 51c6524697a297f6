"""Memory that is used again never belongs to two arrays."""

from __future__ import annotations

import numpy as np

from crowdwise.kernels.memory import MIN_BYTES, empty, reused

SHAPE = (MIN_BYTES // 8, 4)


def block_of(array: np.ndarray) -> int:
    return id(array.base)


def test_memory_of_an_array_that_is_gone_is_used_again() -> None:
    with reused():
        first = empty(SHAPE, np.float64)
        second = empty(SHAPE, np.float64)
        assert not np.shares_memory(first, second)
        block = block_of(first)
        del first
        assert block_of(empty(SHAPE, np.float64)) == block


def test_memory_of_a_view_is_not_used_again() -> None:
    with reused():
        whole = empty(SHAPE, np.float64)
        part = whole[10:20].T
        part[:] = 3.0
        del whole
        other = empty(SHAPE, np.float64)
        other[:] = 4.0
        assert (part == 3.0).all()


def test_arrays_outlive_the_block_and_small_ones_are_ordinary() -> None:
    with reused():
        large, small = empty(SHAPE, np.float32), empty((3, 2), np.float32)
        large[:] = 1.0
    assert large.dtype == np.float32
    assert large.shape == SHAPE
    assert small.base is None
    assert not np.shares_memory(large, empty(SHAPE, np.float32))
    assert (large == 1.0).all()
