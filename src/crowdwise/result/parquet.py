"""How large a Parquet file becomes when it is read, from its own headers, before anything is unpacked.

A few bytes can stand for billions of equal rows, and a page of some kilobytes can unpack to gigabytes. The headers of
the file and of its pages, in the compact protocol of Thrift, say both; what they say wrongly, the reader refuses.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

MAGIC = b"PAR1"
MAX_RATIO = 100  # unpacked bytes per byte of the file
MAX_UNPACKED = 1 << 28  # bytes that are allowed whatever the ratio
BLOCK = 1 << 12  # bytes of a file that are read at once
MAX_DEPTH = 16  # of structures within structures
TRUE, FALSE, BYTE, SHORT, INT, LONG, DOUBLE, TEXT, LIST, SET, MAP, STRUCT = range(1, 13)  # types of fields


class Claims(NamedTuple):
    """What the headers of a file say."""

    rows: int
    unpacked: int  # bytes
    values: int  # of all columns


class FileBytes:
    """The bytes of a file, read in blocks. Unlike a map of it, a file that is truncated meanwhile is an error, and not
    the end of the process."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.size = file, os.fstat(file.fileno()).st_size
        self.start, self.block = 0, b""

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            start, stop, _ = at.indices(self.size)
            return os.pread(self.file.fileno(), stop - start, start)
        if not self.start <= at < self.start + len(self.block):
            self.start, self.block = at, os.pread(self.file.fileno(), BLOCK, at)
        if not self.block:
            raise ValueError("it was truncated while it was read")
        return self.block[at - self.start]


def check(data: Any, most_rows: int) -> None:
    """Raise ValueError if a file has more rows than `most_rows`, or unpacks to much more than its size."""
    found = claims(data)
    if found.rows > most_rows:
        raise ValueError(f"it claims {found.rows:,} rows, more than there can be")
    if found.unpacked > most_unpacked(data):
        raise ValueError(f"its {len(data):,} bytes unpack to {found.unpacked:,}")


def most_unpacked(data: Any) -> int:
    """Return how many bytes a file may unpack to."""
    return max(MAX_UNPACKED, MAX_RATIO * len(data))


def claims(data: Any) -> Claims:
    """Read the headers of a file, given as bytes or as `FileBytes`; ValueError if they make no sense."""
    if len(data) < 12 or data[:4] != MAGIC or data[-4:] != MAGIC:
        raise ValueError("it is no Parquet file")
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    if footer < 4:
        raise ValueError("its footer is larger than the file")
    try:
        about = _Reader(data, footer).struct()
        groups = about.get(4, [])
        pages = [_pages(data, column[3], group[3]) for group in groups for column in group[1]]
        rows = int(about[3])
        sound = rows == sum(int(group[3]) for group in groups) and all(group[3] >= 0 for group in groups)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError("its headers are damaged") from error
    if not sound:
        raise ValueError("its headers contradict each other")
    return Claims(rows, sum(unpacked for unpacked, _ in pages), sum(values for _, values in pages))


def _pages(data: Any, column: dict[int, Any], rows: int) -> tuple[int, int]:
    """Return the unpacked bytes, and the number of values, of the pages of a column in a group of rows."""
    at = min((start for start in (column.get(11), column[9]) if start), default=0)  # no pages, if there are no rows
    end, unpacked, values = at + column[7], 0, 0
    while at < end:
        reader = _Reader(data, at)
        page = reader.struct()
        if page[2] < 0 or page[3] < 0:
            raise ValueError("its headers are damaged")
        unpacked, at = unpacked + page[2], reader.at + page[3]
        values += page.get(5, page.get(8, {1: 0}))[1]
    if len(column[3]) == 1 and values != rows:
        raise ValueError("its headers contradict each other")
    return unpacked, values


class _Reader:
    """Reads structures at a place of a file: fields by number."""

    def __init__(self, data: Any, at: int) -> None:
        self.data, self.at = data, at

    def byte(self) -> int:
        if not 0 <= self.at < len(self.data):
            raise ValueError("its headers are cut off")
        self.at += 1
        return int(self.data[self.at - 1])

    def number(self) -> int:
        """Read a number of seven bits per byte."""
        found = shift = 0
        while True:
            byte = self.byte()
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found
            if shift > 63:
                raise ValueError("its headers are damaged")

    def signed(self) -> int:
        found = self.number()
        return (found >> 1) ^ -(found & 1)

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Read a structure."""
        found: dict[int, Any] = {}
        field = 0
        while byte := self.byte():
            field = field + (byte >> 4) if byte >> 4 else self.signed()
            found[field] = self.value(byte & 15, depth + 1, inside=True)
        return found

    def value(self, kind: int, depth: int, *, inside: bool = False) -> Any:
        """Read a value; truth values of fields are in their types."""
        if depth > MAX_DEPTH:
            raise ValueError("its headers are damaged")
        if kind in (TRUE, FALSE):
            return kind == TRUE if inside else self.byte() == TRUE
        if kind in (SHORT, INT, LONG):
            return self.signed()
        if kind in (LIST, SET):
            return list(self.values(depth))
        if kind == STRUCT:
            return self.struct(depth)
        if kind not in (BYTE, DOUBLE, TEXT):
            raise ValueError("its headers are damaged")
        length = {BYTE: 1, DOUBLE: 8}.get(kind) or self.number()
        self.at += length
        return None

    def values(self, depth: int) -> Iterator[Any]:
        """Read the values of a list."""
        head = self.byte()
        for _ in range(head >> 4 if head >> 4 < 15 else self.number()):
            yield self.value(head & 15, depth + 1)
