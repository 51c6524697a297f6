"""Files of text in blocks of whole records, as UTF-8."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from ..errors import FileError
from .delimited import QUOTE
from .encodings import UTF8_NOTE, mark_note, undecodable
from .opening import GZIP, marked, open_bytes

HEAD = 1 << 16  # bytes at the start of a file by which its format is recognised
MAX_RECORD = 4  # size of the longest record, in chunks, if that is more than HEAD


class Stream(NamedTuple):
    """A file open for reading as UTF-8, and the file underneath."""

    file: Any
    raw: IO[bytes]
    size: int
    note: str | None  # about the encoding

    def share(self) -> float:
        return min(self.raw.tell() / self.size, 1.0) if self.size else 1.0

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()
        self.raw.close()


class Recoded:
    """A file in another encoding, given or recognised by its mark (`wide`), read as UTF-8."""

    def __init__(self, file: Any, name: str, encoding: str | None, wide: str | None) -> None:
        self.file, self.name, self.encoding, self.wide, self.before = file, name, encoding, wide, 0
        self.decoder = codecs.getincrementaldecoder(encoding or wide or "")()

    def read(self, size: int) -> bytes:
        while True:
            data = self.file.read(size)
            held = len(self.decoder.getstate()[0])
            try:
                text = self.decoder.decode(data, final=not data).encode()
            except UnicodeError as error:
                raise undecodable(error, self.name, self.encoding, self.wide, self.before - held) from error
            self.before += len(data)
            if text or not data:
                return text

    def close(self) -> None:
        self.file.close()


def stream_of(path: Path, encoding: str | None, allowed: int | None) -> Stream:
    """Open a file of text, which may be a gzip file and in another encoding, as UTF-8."""
    raw = path.open("rb")
    head = gunzipped_head(path)[:4] if is_gzip(path) else raw.read(4)
    raw.close()
    file = open_bytes(path, allowed)
    raw = getattr(getattr(file, "file", None), "fileobj", file)
    note = f"encoding {encoding}" if encoding else UTF8_NOTE if head.startswith(codecs.BOM_UTF8) else None
    wide = marked(head) if encoding is None else None
    if wide or (encoding is not None and codecs.lookup(encoding).name != "utf-8"):
        file = Recoded(file, path.name, encoding, wide)
    return Stream(file, raw, path.stat().st_size, mark_note(wide) if wide else note)


def is_gzip(path: Path) -> bool:
    """Return whether a file is a gzip file."""
    with path.open("rb") as file:
        return file.read(2) == GZIP


def gunzipped_head(path: Path) -> bytes:
    """Return the beginning of the content of a gzip file."""
    with open_bytes(path) as file:
        return bytes(file.read(HEAD))


def blocks(file: Any, size: int, name: str, last_end: Callable[[bytes], int]) -> Iterator[tuple[bytes, int, int]]:
    """Yield the bytes of a file in blocks of whole records, with the line, from 1, and the offset of their beginning;
    `last_end` finds the end of the last record in some bytes."""
    rest, line, at = b"", 1, 0
    while True:
        try:
            read = file.read(size)
        except OSError as error:
            raise FileError(f"{name} cannot be read to its end: {error.strerror or error}") from error
        data = rest + read
        end = last_end(data) if read else len(data)
        if end == 0 and len(data) > max(MAX_RECORD * size, HEAD):
            if data.count(b'"') % 2 == 0:
                raise FileError(f"{name}:{line}: no line ends within {len(data)} bytes. Write one record per line")
            end = len(data)  # a quote is open: reading this block says where
        if end:
            yield data[:end], line, at
        line, at, rest = line + data.count(b"\n", 0, end), at + end, data[end:]
        if not read:
            return


def last_record_end(data: bytes) -> int:
    """Return the end of the last record that is complete: a line break outside quotes; 0 without any."""
    if b'"' not in data:
        return data.rfind(b"\n") + 1
    quotes = np.flatnonzero(np.frombuffer(data, np.uint8) == QUOTE)
    end = len(data)
    while end > 0:
        end = data.rfind(b"\n", 0, end)
        if end < 0:
            return 0
        inside = np.searchsorted(quotes, end) % 2
        if not inside:
            return end + 1
        end = int(quotes[np.searchsorted(quotes, end) - 1])  # before the quote that is open here
    return 0
