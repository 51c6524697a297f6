"""What arrays may hold, declared beside the field: `pair: Annotated[Ints, Whole("N", below="R")]`.

The rules are checked when arrays come from a file, before anything compiled sees them: kernels trust what they are
given. Axes are named by their sizes, `"W K"` or `"T+1"`, or are numbers; one name is one size in a whole file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

ROUNDING = 1e-3  # by which sums of probabilities in single precision may differ from 1
HUGE = 1e100  # larger numbers overflow when they are squared
EXCESS = 1e-6  # by which such a number may be too large


class Sizes(dict[str, int]):
    """Sizes by name, as they were found; of values that belong to an unfinished fit, or to a result."""

    unfinished = False

    def mismatch(self, axes: str, shape: tuple[int, ...]) -> str:
        """Return what is wrong with a shape, or ""; sizes that were not known are noted."""
        names = axes.split()
        if len(names) != len(shape):
            return f"has {len(shape)} axes; it must have {len(names)}"
        for name, length in zip(names, shape, strict=True):
            size, _, more = name.partition("+")
            known = int(size) if size.isdecimal() else self.setdefault(size, length - int(more or 0))
            if length != known + int(more or 0) or known < 0:
                wanted = ", ".join(str(self.get(each, each)) for each in names)
                return f"has the shape {shape}; it must be ({wanted})"
        return ""


@dataclass(frozen=True)
class Real:
    """Numbers from `low` to `high`; with `sums`, those along the last axis sum to 1."""

    axes: str
    low: float = -HUGE
    high: float = HUGE
    sums: bool = False
    infinite: tuple[int, ...] = ()  # places of the last axis that may hold infinity
    optional: bool = False  # whether there may be none at all
    later: bool = False  # whether there are none until the fit is finished

    def shape_flaw(self, array: Any, sizes: Sizes) -> str:
        """Return what is wrong with the type and the shape, or ""."""
        if array.dtype not in (np.float64, np.float32):
            return f"holds {array.dtype}; it must be float32 or float64"
        none = (
            (self.optional or (self.later and sizes.unfinished))
            and array.ndim == len(self.axes.split())
            and not len(array)
        )
        return "" if none else sizes.mismatch(self.axes, array.shape)

    def flaw(self, array: Any, sizes: Sizes) -> str:
        """Return what is wrong with the numbers, or ""; their shape is right."""
        may_be = np.isin(np.arange(array.shape[-1]), self.infinite) if self.infinite else np.False_
        if not (np.isfinite(array) | may_be).all():
            return "has numbers that are not finite"
        low, high = np.float64(self.low), np.float64(self.high + EXCESS)  # single precision would overflow
        bad = ~((array >= low) & ((array <= high) | may_be))  # also where it is no number
        if bad.any():
            return f"has the value {array[bad].flat[0]:g}; it must be from {self.low:g} to {self.high:g}"
        if self.sums and array.size and not (np.abs(array.sum(-1, dtype=np.float64) - 1) <= ROUNDING).all():
            return "has probabilities that do not sum to 1"
        return ""


@dataclass(frozen=True)
class Whole:
    """Whole numbers of at least `low`: numbers of things of which there are `below` (the name of a size), or pointers
    that ascend from 0 to the size `ends`."""

    axes: str
    low: int = 0
    below: str = ""
    ends: str = ""
    dtype: str = "int32"

    def shape_flaw(self, array: Any, sizes: Sizes) -> str:
        """Return what is wrong with the type and the shape, or ""."""
        if array.dtype != self.dtype:
            return f"holds {array.dtype}; it must be {self.dtype}"
        return sizes.mismatch(self.axes, array.shape)

    def flaw(self, array: Any, sizes: Sizes) -> str:
        """Return what is wrong with the numbers, or ""; their shape is right."""
        if self.ends and (array[0] != 0 or array[-1] != sizes[self.ends] or (array[1:] < array[:-1]).any()):
            return f"does not ascend from 0 to {sizes[self.ends]}"
        high = sizes[self.below] - 1 if self.below else np.iinfo(array.dtype).max
        if array.size and not (self.low <= array.min() and array.max() <= high):
            worst = array.min() if array.min() < self.low else array.max()
            return f"has the value {worst}; it must be from {self.low} to {high}"
        return ""


@dataclass(frozen=True)
class Size:
    """A plain number that is a size."""

    name: str

    def shape_flaw(self, value: int, sizes: Sizes) -> str:
        """Return what is wrong with the size, or ""."""
        known = sizes.setdefault(self.name, value)
        return "" if value == known >= 0 else f"is {value}; it must be {max(known, 0)}"

    def flaw(self, value: int, sizes: Sizes) -> str:
        """There is nothing else."""
        return ""


@dataclass(frozen=True)
class Bits:
    """Truth values, or bytes."""

    axes: str
    dtype: str = "bool"

    def shape_flaw(self, array: Any, sizes: Sizes) -> str:
        """Return what is wrong with the type and the shape, or ""."""
        if array.dtype != self.dtype:
            return f"holds {array.dtype}; it must be {self.dtype}"
        return sizes.mismatch(self.axes, array.shape)

    def flaw(self, array: Any, sizes: Sizes) -> str:
        """Every value is right."""
        return ""


@dataclass(frozen=True)
class Numbers:
    """Finite numbers of any type and shape: what is not declared otherwise."""

    def shape_flaw(self, array: Any, sizes: Sizes) -> str:
        """Every shape is right."""
        return "" if array.dtype.kind in "biuf" else f"holds {array.dtype}; it must hold numbers"

    def flaw(self, array: Any, sizes: Sizes) -> str:
        """Return what is wrong with the numbers, or ""."""
        return "" if np.isfinite(array).all() else "has numbers that are not finite"


def ascends(values: Any, ptr: Any, strictly: bool = False) -> bool:
    """Whether values ascend within each part ptr[i]:ptr[i+1].

    >>> ascends(np.array([1, 2, 0, 0]), np.array([0, 2, 4])), ascends(np.array([1, 0]), np.array([0, 2]))
    (True, False)
    """
    if not len(values):
        return True
    falls = values[1:] <= values[:-1] if strictly else values[1:] < values[:-1]
    inside = np.ones(len(values) + 1, bool)
    inside[ptr] = False
    return not (falls & inside[1:-1]).any()
