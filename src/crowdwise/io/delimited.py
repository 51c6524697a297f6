"""Reader for CSV and other delimited files. Cells are read as text; a damaged file raises an error with its line."""

from __future__ import annotations

import codecs
import csv
import io
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl

from ..errors import ColumnError, FileError, option
from ..kernels.layout import Bools, Ints
from .opening import GZIP

DELIMITERS = (",", "\t", ";", "|")
QUOTE, NEWLINE = ord('"'), ord("\n")
CHUNK_BYTES, CACHED_BYTES = 1 << 24, 1 << 18
UTF8_NOTE, UTF16_NOTE = "UTF-8 with a byte order mark", "UTF-16, recognised by its byte order mark"


@dataclass(frozen=True)
class Text:
    """The bytes of a delimited file, in UTF-8 and without a byte order mark."""

    name: str
    data: bytes
    delimiter: str
    notes: tuple[str, ...]
    skipped: int = 0  # bytes of the byte order mark
    before: int = 0  # lines of the file before the data, for a file that is read in parts

    @cached_property
    def quoted(self) -> bool:
        return b'"' in self.data

    @cached_property
    def lines(self) -> tuple[Ints, Ints, Ints]:
        """For every logical line: its end, its number of delimiters, and the physical line on which it starts."""
        ends, delimiters, starts = [], [], []
        inside, before, physical = False, 0, 1
        opened = 0
        for at in range(0, len(self.data), CHUNK_BYTES):
            chunk = np.frombuffer(self.data, np.uint8, count=min(CHUNK_BYTES, len(self.data) - at), offset=at)
            parity = np.bitwise_xor.accumulate(chunk == QUOTE) ^ inside
            new = chunk == NEWLINE
            end = np.flatnonzero(new & ~parity)
            count = np.cumsum((chunk == ord(self.delimiter)) & ~parity)
            newlines = np.cumsum(new)
            at_end = count[end] + before
            ends.append(end + at)
            delimiters.append(at_end)
            starts.append(newlines[end] + physical)
            quotes = np.flatnonzero(chunk == QUOTE)
            if len(quotes) and bool(parity[-1]):
                opened = physical + int(newlines[quotes[-1]])
            before, physical, inside = before + int(count[-1]), physical + int(newlines[-1]), bool(parity[-1])
        if inside:
            raise FileError(
                f"{self.name}:{opened + self.before}: a quote is opened here and never closed. Close it, or double it "
                "if it is text"
            )
        ends.append(np.array([len(self.data)]))
        delimiters.append(np.array([before]))
        end_of = np.concatenate(ends)
        per_line = np.diff(np.concatenate(delimiters), prepend=0)
        first = np.concatenate([[1], np.concatenate(starts)]).astype(np.int64)
        return end_of, per_line, first

    def where(self, row: int) -> str:
        """Describe the place of a row."""
        return f"{self.name}:{self.line_of(row)}"

    def light(self) -> Text:
        """Return the text without its bytes, if rows and lines are the same: they are many."""
        if self.quoted or self.has_blank:
            return self
        lines = replace(self, data=b"")
        lines.__dict__.update(quoted=False, has_blank=False)  # which are known
        return lines

    def line_of(self, row: int) -> int:
        """Return the line of the file on which a row of the table starts."""
        if not self.quoted and not self.has_blank:
            return row + 2 + self.before
        return int(self.lines_of(row + 1)[row])

    def lines_of(self, rows: int) -> Ints:
        """Return the lines on which the first rows of the table start."""
        if not self.quoted and not self.has_blank:
            return np.arange(2, rows + 2) + self.before
        end, delimiters, first = self.lines
        return np.asarray(first[~_blank(self.data, end, delimiters)][1 : rows + 1] + self.before)

    @cached_property
    def n_lines(self) -> int:
        return self.counts[0] + (not self.data.endswith(b"\n"))

    @cached_property
    def counts(self) -> tuple[int, int]:
        """Numbers of line breaks and of delimiters, counted in pieces that fit in the cache."""
        data, delimiter = np.frombuffer(self.data, np.uint8), ord(self.delimiter)
        pieces = [data[at : at + CACHED_BYTES] for at in range(0, len(data), CACHED_BYTES)]
        lines = sum(int(np.count_nonzero(each == NEWLINE)) for each in pieces)
        return lines, sum(int(np.count_nonzero(each == delimiter)) for each in pieces)

    @cached_property
    def n_columns(self) -> int:
        """Number of columns of the first line, of a file without quotes."""
        end = self.data.find(b"\n")
        return self.data.count(self.delimiter.encode(), 0, end if end >= 0 else len(self.data)) + 1

    @cached_property
    def even(self) -> bool:
        """Whether there are as many delimiters as lines of the width of the first have. No line is empty then, unless
        another one is too long, which the table library refuses."""
        return not self.quoted and self.counts[1] == self.n_lines * (self.n_columns - 1)

    @cached_property
    def has_blank(self) -> bool:
        return not self.even and (b"\n\n" in self.data or b"\n\r\n" in self.data)

    @cached_property
    def stray(self) -> int | None:
        """Offset of the first quote that neither opens nor closes a field, nor is doubled inside a quoted field.

        If there is none, counting quotes is enough to decide which line breaks end a record.
        """
        data = np.frombuffer(self.data, np.uint8)
        edge = (QUOTE, NEWLINE, ord("\r"), ord(self.delimiter))
        before = 0
        for at in range(0, len(data), CHUNK_BYTES):
            place = np.flatnonzero(data[at : at + CHUNK_BYTES] == QUOTE) + at
            opening = (np.arange(len(place)) + before) % 2 == 0
            beside = np.where(opening, place - 1, place + 1)
            inside = (beside >= 0) & (beside < len(data))
            odd = inside & ~np.isin(data[np.where(inside, beside, 0)], edge)
            if odd.any():
                return int(place[np.argmax(odd)])
            before += len(place)
        return None

    def check_quotes(self, width: int, height: int) -> None:
        """Read the file again with Python's csv reader; a misplaced quote raises FileError with its line."""
        rows = io.StringIO(self.data.decode(errors="replace"), newline="")
        reader, found = csv.reader(rows, delimiter=self.delimiter, strict=True), -1
        inside = "unexpected quote inside a field. Quote the whole field and double the quote"
        try:
            for record in reader:
                found += bool(record)
                if record and len(record) != width:
                    raise FileError(f"{self.name}:{reader.line_num + self.before}: {inside}")
        except csv.Error:
            raise FileError(f"{self.name}:{reader.line_num + self.before}: {inside}") from None
        if found != height:
            line = self.data.count(b"\n", 0, self.stray) + 1 + self.before
            raise FileError(f"{self.name}:{line}: {inside}")

    def check(self, width: int, height: int) -> None:
        """Raise FileError unless every row has the width of the header and all rows were read."""
        if self.quoted and self.stray is not None:
            self.check_quotes(width, height)
        if self.even and self.n_lines == height + 1 and self.n_columns == width:
            return
        end, delimiters, first = self.lines
        full = ~_blank(self.data, end, delimiters)
        odd = np.flatnonzero(full & (delimiters != width - 1))
        if len(odd):
            found = int(delimiters[odd[0]]) + 1
            raise FileError(
                f"{self.name}:{first[odd[0]] + self.before}: {found} field(s), but the header has {width}. Correct the "
                f"line, or quote a field that contains the delimiter {self.delimiter!r}"
            )
        if int(full.sum()) != height + 1:
            raise FileError(
                f"{self.name}: {int(full.sum()) - 1} rows in the file, but {height} were read; the file may be damaged"
            )


def _blank(data: bytes, end: Ints, delimiters: Ints) -> Bools:
    """Return a mask of the empty lines."""
    start = np.concatenate([[0], end[:-1] + 1])
    length = end - start
    blank: Bools = length == 0
    for i in np.flatnonzero((length == 1) & (delimiters == 0)):
        blank[i] = data[start[i] : start[i] + 1] == b"\r"
    return blank


def decode(data: bytes, name: str, encoding: str | None) -> tuple[bytes, tuple[str, ...]]:
    """Return the data in UTF-8, and notes. Other encodings are given, or recognised by a byte order mark."""
    if encoding is not None:
        try:
            return data.decode(encoding).removeprefix("\ufeff").encode(), (f"encoding {encoding}",)
        except UnicodeDecodeError as error:
            raise undecodable(error, name, encoding) from error
    if data.startswith(codecs.BOM_UTF8):
        return data[3:], (UTF8_NOTE,)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return data.decode("utf-16").encode(), (UTF16_NOTE,)
        except UnicodeDecodeError as error:
            raise undecodable(error, name, None) from error
    head = data[: data.find(b"\n") + 1 or len(data)][:2000]
    if data.startswith(GZIP):
        raise FileError(f"{name} holds another compressed file. Unpack it once, and give that")
    if 0 in head:  # a header contains no NUL; labels may
        at = head.index(0)
        raise FileError(
            f"{name} looks like UTF-16 without a byte order mark (byte 0 at {at}). Use "
            f"{option('encoding', 'utf-16-le' if at % 2 else 'utf-16-be')}"
        )
    return data, ()


def undecodable(error: UnicodeDecodeError, name: str, encoding: str | None, before: int = 0) -> FileError:
    """Return the error for a file that is not in the encoding given, or recognised as UTF-16; `before` is the number of
    bytes before the data."""
    at = error.start + before
    if encoding is None:
        return FileError(f"{name} starts as UTF-16 but is invalid at byte {at}")
    byte = error.object[error.start]
    return FileError(f"{name} cannot be read as {encoding}: byte 0x{byte:02X} at offset {at}: {error.reason}")


def delimiter_note(delimiter: str) -> tuple[str, ...]:
    """Return a note about a delimiter other than the comma."""
    return () if delimiter == "," else (f"delimiter {delimiter!r}",)


def not_utf8(data: bytes, name: str, skipped: int = 0, before: int = 0) -> FileError | None:
    """Return an error for the first byte that is not UTF-8, or None; `skipped` bytes were removed before the data, and
    `before` lines are."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1 + before
        return FileError(
            f"{name}:{line}: byte 0x{data[error.start]:02X} at offset {error.start + skipped} is not UTF-8. "
            f"Use {option('encoding', 'latin-1')} (or the right encoding), or convert the file"
        )
    return None


def sniff(data: bytes, name: str) -> str:
    """Return the most frequent delimiter in the header."""
    header = data[: data.find(b"\n") if b"\n" in data else len(data)].decode(errors="replace")
    outside = "".join(header.split('"')[::2])
    best = max(DELIMITERS, key=outside.count)
    if outside.count(best) == 0:
        raise ColumnError(
            f"{name} has only one column, {header.strip()[:80]!r}, if split by comma, tab, semicolon or bar. Use "
            f"{option('delimiter')}"
        )
    return best


class Delimited(NamedTuple):
    """A delimited file as a frame of text columns."""

    frame: pl.DataFrame
    notes: tuple[str, ...]
    text: Text | None  # None for an empty file

    @property
    def lines(self) -> Ints:
        """(n,) the line on which each row starts."""
        return np.zeros(0, np.int64) if self.text is None else self.text.lines_of(self.frame.height)


def read_delimited(
    data: bytes, name: str, delimiter: str | None, encoding: str | None, before: int = 0, skipped: int = 0
) -> Delimited:
    """Read delimited text; `before` and `skipped` are the numbers of lines and bytes of the file before the data."""
    size = len(data)
    data, notes = decode(data, name, encoding)
    skipped += 3 if size == len(data) + 3 else 0
    if not data[:CHUNK_BYTES].strip() and not data.strip():
        return Delimited(pl.DataFrame(), notes, None)
    text = Text(name, data, delimiter or sniff(data, name), notes, skipped, before)
    header = _header(text)
    try:
        frame = pl.read_csv(io.BytesIO(data), separator=text.delimiter, infer_schema=False, glob=False)
    except pl.exceptions.PolarsError as error:
        wrong = not_utf8(data, name, skipped, before)
        if wrong is None:
            text.check(len(header), _rows(text))
        raise wrong or FileError(f"{name} cannot be read: {str(error).splitlines()[0]}") from error
    if text.has_blank:
        end, delimiters, _ = text.lines
        blank = _blank(data, end, delimiters)
        frame = frame.filter(pl.Series(~blank[np.flatnonzero(~blank)[0] + 1 :][: frame.height]))
    text.check(len(header), frame.height)
    notes = (*notes, *delimiter_note(text.delimiter))
    return Delimited(frame.rename(dict(zip(frame.columns, header, strict=True))), notes, text.light())


def _rows(text: Text) -> int:
    end, delimiters, _ = text.lines
    return int((~_blank(text.data, end, delimiters)).sum()) - 1


def _header(text: Text) -> list[str]:
    wrong = not_utf8(text.data[: text.data.find(b"\n") + 1], text.name, text.skipped)
    if wrong is not None:
        raise wrong
    first = io.StringIO(text.data[: 1 << 20].decode(errors="replace"), newline="")
    names = next(csv.reader(first, delimiter=text.delimiter))
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ColumnError(f"{text.name}:1: the header has {twice[0]!r} more than once. Rename one of the columns")
    return names
