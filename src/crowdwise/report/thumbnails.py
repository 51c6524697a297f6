"""Small pictures of items, from arrays: scaled down, and kept inside the page as PNG."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ParameterError

Bytes = npt.NDArray[np.uint8]
Pixels = npt.NDArray[Any]  # (height, width), or with a third axis for colours

MAX_PICTURES = 600  # of different items in a page
MAX_SIDE = 48  # pixels of a picture
GAP = 2  # pixels between pictures in a row


def checked(pictures: Any, items: int) -> Pixels | None:
    """Return the pictures as an array, one per item, or None if there are none."""
    if pictures is None:
        return None
    try:
        array = np.asarray(pictures)
    except ValueError:
        array = np.zeros(0)
    if not (_drawn(array.shape[1:]) and len(array) == items and array.dtype.kind in "buif"):
        raise ParameterError(
            f"pictures is an array of shape {array.shape} and type {array.dtype}; it must hold numbers in the shape "
            f"(items, height, width), with one picture for each of the {items} items in the order of result.clusters"
        )
    return array


def _drawn(shape: tuple[int, ...]) -> bool:
    """Return whether this is the shape of a picture: grey, or in three colours."""
    return len(shape) in (2, 3) and min(shape) > 0 and shape[2:] in ((), (1,), (3,))


def album(pictures: Pixels, wanted: Iterable[int]) -> dict[int, str]:
    """Return the pictures of the first `MAX_PICTURES` items as data URIs."""
    found: dict[int, str] = {}
    white = _white(pictures)
    for item in wanted:
        if len(found) == MAX_PICTURES:
            break
        if item not in found:
            found[item] = uri(small(_bytes(pictures[item], white)))
    return found


def strip(samples: Any) -> str | None:
    """Return pictures (n, height, width) side by side, as a data URI; None if they are no pictures."""
    array = np.asarray(samples)
    if not len(array) or not _drawn(array.shape[1:]):
        return None
    each = [small(_bytes(pixels, 255.0)) for pixels in array]
    gap = np.full((each[0].shape[0], GAP, *each[0].shape[2:]), 128, np.uint8)
    return uri(np.concatenate([part for pixels in each for part in (pixels, gap)][:-1], axis=1))


def _white(pictures: Pixels) -> float:
    """Return the value of white: 255, or 1 if values are shares or booleans."""
    if pictures.dtype.kind == "b":
        return 1.0
    return 1.0 if pictures.dtype.kind == "f" and float(np.nanmax(pictures, initial=0.0)) <= 1 else 255.0


def _bytes(pixels: Pixels, white: float) -> Bytes:
    values = np.nan_to_num(np.asarray(pixels, np.float64)) * (255.0 / white)
    values = values[:, :, 0] if values.shape[2:] == (1,) else values
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def small(pixels: Bytes, side: int = MAX_SIDE) -> Bytes:
    """Return the picture with at most `side` pixels per side, by means over blocks."""
    high, wide = pixels.shape[:2]
    step = -(-max(high, wide) // side)
    if step == 1:
        return pixels
    edge = [(0, -extent % step) for extent in (high, wide)] + [(0, 0)] * (pixels.ndim - 2)
    whole = np.pad(pixels, edge, mode="edge")
    blocks = whole.reshape(whole.shape[0] // step, step, whole.shape[1] // step, step, *pixels.shape[2:])
    return np.asarray(np.rint(blocks.mean((1, 3))), np.uint8)


def uri(pixels: Bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png(pixels)).decode()}"


def png(pixels: Bytes) -> bytes:
    """Return (height, width) greys or (height, width, 3) colours as a PNG."""
    high, wide = pixels.shape[:2]
    head = struct.pack(">IIBBBBB", wide, high, 8, 0 if pixels.ndim == 2 else 2, 0, 0, 0)
    rows = np.concatenate([np.zeros((high, 1), np.uint8), pixels.reshape(high, -1)], axis=1)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
