"""Reader for CSV and other delimited files. Cells are read as text; a damaged file raises an error with its line."""

from __future__ import annotations

import io
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
import polars as pl

from ..errors import ColumnError, FileError, option
from ..kernels.layout import Ints
from .encodings import decode, not_utf8

DELIMITERS = (",", "\t", ";", "|")
QUOTE, NEWLINE, RETURN = ord('"'), ord("\n"), ord("\r")
BLANK = b" \t\r\x1a"  # what a line without a record may have; DOS ends a file with the last one
BLANK_LINE = re.compile(rb"\n[ \t\r\x1a]*+(?:\n|(?<!\n)\Z)")
DECLARED = re.compile(rb"(?:\xef\xbb\xbf)?sep=([^\r\n\"\0\x80-\xff])\r?\n", re.IGNORECASE)  # how Excel begins a file
CHUNK_BYTES = CACHED_BYTES = 1 << 18
MAX_COLUMNS = 100_000


class Records(NamedTuple):
    """Where the n records of a delimited file are, each with (n,) numbers; the header is the first one."""

    start: Ints
    end: Ints  # of the line break
    delimiters: Ints  # outside quotes
    line: Ints  # on which it begins, from 1


@dataclass(frozen=True)
class Text:
    """The bytes of a delimited file, in UTF-8 and without a byte order mark."""

    name: str
    data: bytes
    delimiter: str
    notes: tuple[str, ...]
    skipped: int = 0  # bytes of the file before the data
    before: int = 0  # lines of the file before the data

    @cached_property
    def quoted(self) -> bool:
        return b'"' in self.data

    @cached_property
    def records(self) -> Records:
        """The records of the file, as the line breaks outside quotes say; blank lines are no records."""
        found: list[Records] = []
        inside, start, line, first, carried = False, 0, 1, 1, 0  # `first` is the line on which the record begins
        for at in range(0, len(self.data), CHUNK_BYTES):
            chunk = np.frombuffer(self.data, np.uint8, count=min(CHUNK_BYTES, len(self.data) - at), offset=at)
            outside = ~(np.bitwise_xor.accumulate(chunk == QUOTE) ^ inside)
            breaks, inside = np.flatnonzero(chunk == NEWLINE), not outside[-1]
            ends, delimiters = breaks[outside[breaks]], np.flatnonzero((chunk == ord(self.delimiter)) & outside)
            if len(ends):
                counts, after = np.searchsorted(delimiters, ends), np.searchsorted(breaks, ends) + line + 1
                widths = np.diff(counts, prepend=0)
                widths[0] += carried
                starts = np.concatenate([[start], ends[:-1] + at + 1])
                found.append(self._filled(starts, ends + at, widths, np.concatenate([[first], after[:-1]])))
                start, first, carried = int(ends[-1]) + at + 1, int(after[-1]), len(delimiters) - int(counts[-1])
            else:
                carried += len(delimiters)
            line += len(breaks)
        if inside:
            line = self.data.count(b"\n", 0, self.data.rfind(b'"')) + 1 + self.before
            raise FileError(
                f"{self.name}:{line}: a quote is opened here and never closed. Close it, or double it if it is text"
            )
        found.append(self._filled(*(np.array([each]) for each in (start, len(self.data), carried, first))))
        return Records(*(np.concatenate(each) for each in zip(*found, strict=True)))

    def _filled(self, start: Ints, end: Ints, delimiters: Ints, line: Ints) -> Records:
        """Return records without those that are blank lines."""
        full, data = end > start, np.frombuffer(self.data, np.uint8)
        alone = np.flatnonzero(full & (delimiters == 0))
        for n in alone[np.isin(data[start[alone]], list(BLANK))].tolist():
            full[n] = bool(self.data[start[n] : end[n]].strip(BLANK))
        return Records(start[full], end[full], delimiters[full], line[full])

    def without_blank(self) -> bytes:
        """Return the data without blank lines."""
        start, end = self.records.start, self.records.end
        gaps = np.flatnonzero(start[1:] != end[:-1] + 1)
        firsts, lasts = np.concatenate([[0], gaps + 1]), np.append(gaps, len(end) - 1)
        whole = memoryview(self.data)
        return b"".join(whole[a:b] for a, b in zip(start[firsts].tolist(), (end[lasts] + 1).tolist(), strict=True))

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
        return np.asarray(self.records.line[1 : rows + 1] + self.before)

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
        """Whether there are as many delimiters as lines of the width of the first have. No line is blank then, unless
        another one is too long, which the table library refuses."""
        return not self.quoted and self.counts[1] == self.n_lines * (self.n_columns - 1)

    @cached_property
    def has_blank(self) -> bool:
        return not self.even and BLANK_LINE.search(self.data) is not None

    @cached_property
    def stray(self) -> int | None:
        """Offset of the first quote that neither opens nor closes a field, nor is doubled inside a quoted field.

        If there is none, counting quotes is enough to decide which line breaks end a record. A carriage return ends a
        record only before a line break.
        """
        data = np.frombuffer(self.data, np.uint8)
        edge = (QUOTE, NEWLINE, ord(self.delimiter))
        before = 0
        for at in range(0, len(data), CHUNK_BYTES):
            place = np.flatnonzero(data[at : at + CHUNK_BYTES] == QUOTE) + at
            opening = (np.arange(len(place)) + before) % 2 == 0
            beside = np.where(opening, place - 1, place + 1)
            inside = (beside >= 0) & (beside < len(data))
            odd = inside & ~np.isin(data[np.where(inside, beside, 0)], edge)
            for n in np.flatnonzero(odd):
                if opening[n] or self.data[beside[n] : beside[n] + 2] not in (b"\r\n", b"\r"):
                    return int(place[n])
            before += len(place)
        return None

    def by_rule(self) -> Text:
        """Return the text with its quotes as RFC 4180 wants them: a field with a quote in it is quoted, and the quote
        is doubled. Raise FileError with the line of the first record that ends elsewhere if its quotes are counted."""
        pieces, done, at, mark = list[bytes](), 0, 0, self.delimiter.encode()
        while (quote := self.data.find(QUOTE, at)) >= 0:
            start = max(at, self.data.rfind(b"\n", at, quote) + 1)
            fields = record(self.data, start, self.delimiter)
            at = fields[-1].end() if fields else start
            if not fields or record_end(self.data[start:at]) != at - start or self.data.count(b'"', start, at) % 2:
                raise self.stray_quote(start)
            for field in fields:
                if field[1] is None and b'"' in field[2]:
                    doubled = field[2].removesuffix(b"" if field[3] == mark else b"\r").replace(b'"', b'""')
                    pieces += [self.data[done : field.start()], b'"', doubled, b'"', field[3]]
                    done = field.end()
        return replace(self, data=b"".join([*pieces, self.data[done:]]))

    def stray_quote(self, at: int) -> FileError:
        line = self.data.count(b"\n", 0, at) + 1 + self.before
        return FileError(
            f"{self.name}:{line}: unexpected quote inside a field. Quote the whole field and double the quote"
        )

    def check(self, frame: pl.DataFrame, width: int) -> None:
        """Raise FileError unless every row has the width of the header and all rows are in the frame."""
        if self.even and self.n_lines == frame.height + 1 and self.n_columns == width:
            return
        self.check_widths(width)
        rows = len(self.records.line) - 1
        if rows != frame.height:
            line = int(self.records.line[min(frame.height + 1, rows)]) + self.before
            raise FileError(
                f"{self.name}:{line}: {rows} rows in the file, but {frame.height} were read. Check the line breaks "
                "near this line"
            )

    def check_unfilled(self, frame: pl.DataFrame, columns: list[int]) -> None:
        """Raise ColumnError if there is a value in one of these columns, which have no name in the header."""
        for column in columns:
            value = frame.to_series(column)
            filled = value.str.strip_chars() != ""
            if filled.any():
                row = int(filled.arg_max() or 0)
                raise ColumnError(
                    f"{self.where(row)}: {value[row]!r:.80} in column {column + 1}, which has no name in the header. "
                    "Name the column, or remove it"
                )

    def check_widths(self, width: int) -> None:
        """Raise FileError unless every record has the width of the header."""
        delimiters = self.records.delimiters
        odd = np.flatnonzero(delimiters != width - 1)
        if len(odd):
            line, found = int(self.records.line[odd[0]]) + self.before, int(delimiters[odd[0]]) + 1
            raise FileError(
                f"{self.name}:{line}: {found} field(s), but the header has {width}. Correct the line, or quote a field "
                f"that contains the delimiter {self.delimiter!r}"
            )


def record(data: bytes, at: int, delimiter: str) -> list[re.Match[bytes]]:
    """Return the fields of the record that begins at an offset, each as its text if it is quoted, else its text, and
    what ends it; none if a quoted field is not as RFC 4180 wants it. In a field that is not quoted, a quote is text."""
    fields, field = list[re.Match[bytes]](), _field(delimiter)
    while (found := field.match(data, at)) is not None:
        fields.append(found)
        at = found.end()
        if found[3] != delimiter.encode():
            return fields
    return []


def declared(data: bytes) -> tuple[str | None, int]:
    """Return the delimiter that the first line declares, such as sep=; which Excel obeys, and the end of this line."""
    found = DECLARED.match(data)
    return (None, 0) if found is None else (found[1].decode(), found.end())


def header_end(data: bytes) -> int:
    """Return the end of the header of a file."""
    start = declared(data)[1]
    return start + record_end(data[start:])


def record_end(data: bytes) -> int:
    """Return the end of the first record, if line breaks after an odd number of quotes are text."""
    at = -1
    while True:
        at = data.find(b"\n", at + 1)
        if at < 0:
            return len(data)
        if data.count(b'"', 0, at) % 2 == 0:
            return at + 1


@cache
def _field(delimiter: str) -> re.Pattern[bytes]:
    """A field, quoted or plain, and what ends it."""
    mark = re.escape(delimiter.encode())
    return re.compile(rb'(?:"((?:[^"]+|"")*+)"|((?!")[^%b\n]*))(%b|\r?\n|\r?\Z)' % (mark, mark))


def delimiter_note(delimiter: str) -> tuple[str, ...]:
    """Return a note about a delimiter other than the comma."""
    return () if delimiter == "," else (f"delimiter {delimiter!r}",)


def _check_first(line: bytes, name: str, before: int = 0) -> None:
    """Raise FileError if there is nothing in the first line, or the one after the lines `before`."""
    if not line.strip():
        which = "this line" if before else "the first line"
        raise FileError(
            f"{name}:{before + 1}: {which} is empty; the names of the columns belong there. Remove the line"
        )


def sniff(data: bytes, name: str) -> str:
    """Return the delimiter that is declared, or the most frequent one in the header."""
    said, _ = declared(data)
    if said is not None:
        return said
    first = data[: data.find(b"\n") if b"\n" in data else len(data)]
    _check_first(first, name)
    header = first.decode(errors="replace")
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
    delimiter, first = delimiter or sniff(data, name), declared(data)[1]
    text = Text(name, data[first:], delimiter, notes, skipped + first, before + (first > 0))
    header = _header(text)
    text = text.by_rule() if text.quoted and text.stray is not None else text
    table = text.without_blank() if text.has_blank else text.data
    try:
        frame = pl.read_csv(io.BytesIO(table), separator=text.delimiter, infer_schema=False, glob=False)
    except pl.exceptions.PolarsError as error:
        wrong = not_utf8(data, name, skipped, before)
        if wrong is None:
            text.check_widths(len(header))
        raise wrong or FileError(f"{name} cannot be read: {str(error).splitlines()[0]}") from error
    text.check(frame, len(header))
    notes = (*notes, *delimiter_note(text.delimiter))
    unnamed = [at for at, each in enumerate(header) if not each.strip()]
    if len(unnamed) > 1:  # of a spreadsheet
        text.check_unfilled(frame, unnamed)
        kept = [at for at in range(len(header)) if at not in unnamed]
        frame, header = frame[:, kept], [header[at] for at in kept]
    return Delimited(frame.rename(dict(zip(frame.columns, header, strict=True))), notes, text.light())


def _header(text: Text) -> list[str]:
    first = text.data[: text.data.find(b"\n") + 1 or len(text.data)]
    _check_first(first, text.name, text.before)
    place = f"{text.name}:{text.before + 1}"
    count = first.count(text.delimiter.encode()) + 1
    if count > MAX_COLUMNS:
        raise ColumnError(
            f"{place}: the header has {count:,} columns; at most {MAX_COLUMNS:,} are read. Check that the lines "
            f"end where they should, and {option('delimiter', text.delimiter)}"
        )
    wrong = not_utf8(text.data[: text.data.find(b"\n") + 1], text.name, text.skipped, text.before)
    if wrong is not None:
        raise wrong
    fields = record(text.data, 0, text.delimiter)
    if not fields:
        text.check_widths(1)  # says where a quote is not closed
        raise text.stray_quote(0)
    if b"\r" in first.rstrip():
        raise FileError(
            f"{place}: lines end with a carriage return alone, or the header has one. Save the file with the "
            "line breaks of Unix or Windows"
        )
    names = [_name(field) for field in fields]
    twice = sorted(name for name, count in Counter(names).items() if count > 1 and name.strip())
    if twice:
        raise ColumnError(f"{place}: the header has {twice[0]!r} more than once. Rename one of the columns")
    return names


def _name(field: re.Match[bytes]) -> str:
    """Return the text of a field of the header."""
    text = field[1].replace(b'""', b'"') if field[1] is not None else field[2].removesuffix(b"\r")
    return text.decode(errors="replace")
