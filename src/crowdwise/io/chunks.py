"""Tables read in chunks: CSV, JSON lines and Parquet, one file, several files or a folder of them.

A chunk is read by the same code as a whole file, so the rules about quotes, encodings and damaged lines are the same.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import polars as pl

from ..answers.frames import to_frame
from ..errors import EmptyDataError, FileError
from ..kernels.layout import Ints
from .delimited import QUOTE, decode, read_delimited, sniff
from .tables import check_columns, format_of, parse_records

BASE = 250_000_000  # bytes of the process itself, with its libraries and compiled code
IN_MEMORY = 4.5  # memory for reading and fitting a table, compared with its text or frame
USABLE = 0.8  # share of the available memory that a table may take
GZIP_RATIO = 8  # size of text compared with its gzip file, at most as a rule
SMALL = 1 << 20  # bytes of a file that is never too large
HEAD = 1 << 16  # bytes at the start of a file by which its format is recognised
SAMPLE_PLACES, SAMPLE_ROWS = 64, 1000  # places in a table, and rows of each, for a sample of a column
MAX_RECORD = 4  # size of the longest record, in chunks


class Chunk(NamedTuple):
    """Some consecutive rows of a file."""

    frame: pl.DataFrame
    line: Ints  # (n,) line (of text) or row (of Parquet) of each row in its file, from 1
    file: int  # number of the file
    done: float  # share of all bytes that is read


class Source(NamedTuple):
    """Files to read in chunks, and how."""

    files: tuple[Path, ...]
    format: str | None = None
    delimiter: str | None = None
    encoding: str | None = None

    @property
    def name(self) -> str:
        """The file, or the folder of several files, as it is named in messages."""
        first = self.files[0]
        return first.name if len(self.files) == 1 else f"{len(self.files)} files in {first.parent.name or first.parent}"

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.stat().st_size for file in self.files)

    def unpacked_size(self) -> int:
        """Estimate the bytes of all files as text, or as a frame."""
        return sum(map(self._unpacked_size, range(len(self.files))))

    def _unpacked_size(self, file: int) -> int:
        path = self.files[file]
        if not path.is_file():
            return 0
        size = path.stat().st_size
        if size < SMALL:
            return size
        if self.kind(file) == "parquet":
            lazy = pl.scan_parquet(path, glob=False)
            sample = lazy.head(SAMPLE_ROWS).collect()
            rows = int(lazy.select(pl.len()).collect().item())
            return int(rows * sample.estimated_size() / max(sample.height, 1))
        return size * GZIP_RATIO if path.suffix.lower() == ".gz" else size

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        return next(iter(self.chunks(HEAD))).frame.columns

    def where(self, file: int, line: int) -> str:
        """Describe the place of a row."""
        kind = "row " if self.kind(file) == "parquet" else ""
        return f"{self.files[file].name}:{kind}{line}"

    def kind(self, file: int) -> str:
        """Return the format of a file."""
        path = self.files[file]
        try:
            with path.open("rb") as opened:
                head = opened.read(HEAD)
        except OSError as error:
            raise FileError(
                f"cannot read {path}: {error.strerror or error}. Check the name and the permissions"
            ) from error
        zipped = head[:2] == b"\x1f\x8b"
        ending = Path(path.stem).suffix if zipped else path.suffix
        return format_of(ending.lower(), _gunzipped_head(path) if zipped else head, self.format)

    def chunks(self, size: int) -> Iterator[Chunk]:
        """Yield all rows in chunks of about `size` bytes."""
        before, total = 0, max(self.size, 1)
        columns: list[str] | None = None
        for number, path in enumerate(self.files):
            kind, whole = self.kind(number), path.stat().st_size
            read = self._read(kind)
            if read is None:
                raise FileError(
                    f"{path.name} is {kind}, which can only be read as a whole. Write one record per line, or Parquet"
                )
            for frame, line, share in read(path, size):
                columns = columns or frame.columns
                check_columns(frame.columns, columns, path.name, self.files[0].name)
                yield Chunk(frame.select(columns), line, number, (before + share * whole) / total)
            before += whole

    def sample(self, column: str) -> Iterator[pl.Series]:
        """Yield values of a column from places all over the files."""
        places = max(1, SAMPLE_PLACES // len(self.files))
        for number, path in enumerate(self.files):
            kind = self.kind(number)
            zipped = path.suffix.lower() == ".gz"
            if kind == "parquet":
                lazy = pl.scan_parquet(path, glob=False).select(column)
                rows = int(lazy.select(pl.len()).collect().item())
                for start in np.linspace(0, max(rows - SAMPLE_ROWS, 0), places).astype(int).tolist():
                    yield lazy.slice(start, SAMPLE_ROWS).collect().to_series()
            elif kind == "csv" and not zipped and self.encoding is None:
                yield from self._sampled_text(path, column, places)
            else:
                yield from (frame[column].gather_every(20) for frame, *_ in self._read(kind)(path, 1 << 24))

    def _sampled_text(self, path: Path, column: str, places: int) -> Iterator[pl.Series]:
        """Read pieces of a file of text, from the first to the last line break in them. A piece that begins inside
        quotes may be read wrongly or not at all, which makes the sample less even and nothing worse."""
        with path.open("rb") as file:
            start = file.read(HEAD)
            header = start[: _record_end(start)].removeprefix(codecs.BOM_UTF8)
            delimiter = self.delimiter or sniff(header, path.name)
            for at in np.linspace(len(header), max(path.stat().st_size - HEAD, 0), places).astype(int).tolist():
                file.seek(at)
                piece = file.read(HEAD)
                body = piece[piece.find(b"\n") + 1 : piece.rfind(b"\n") + 1]
                try:
                    frame = pl.read_csv(
                        header + body, separator=delimiter, infer_schema=False, truncate_ragged_lines=True
                    )
                except pl.exceptions.PolarsError:
                    continue
                if column in frame.columns:
                    yield frame[column]

    def _read(self, kind: str) -> Any:
        """Return the function that reads files of a format in chunks, or None."""
        return {"csv": self._delimited, "jsonl": _json_lines, "parquet": _parquet}.get(kind)

    def _delimited(self, path: Path, size: int) -> Iterator[tuple[pl.DataFrame, Ints, float]]:
        with _opened(path, self.encoding) as stream:
            header, delimiter, line = b"", self.delimiter, 1
            for block in _blocks(stream.file, size, path.name):
                if not header:
                    decode(block[:HEAD], path.name, None)  # refuses UTF-16 without a byte order mark
                    block = block.removeprefix(codecs.BOM_UTF8)
                    delimiter = delimiter or sniff(block[:HEAD], path.name)
                    header = block[: _record_end(block)]
                    data, offset = block, 0
                else:
                    data, offset = header + block, line - header.count(b"\n") - 1
                found = read_delimited(data, path.name, delimiter, None, offset)
                if found.frame.height:
                    yield found.frame, found.lines, stream.share()
                line += block.count(b"\n")
            if not header:
                raise EmptyDataError(f"no answers in {path.name}: the file is empty")


def too_large(source: Source, limit: int | None) -> bool:
    """Return whether a table would need more memory than the limit in bytes, or without one than may be used."""
    size = source.unpacked_size()
    if size < len(source.files) * SMALL:
        return False
    from ..engine.resources import available  # loads the engine, which small tables need later or not at all

    need = BASE + IN_MEMORY * size
    return need > (limit or BASE + USABLE * available())


class _Stream(NamedTuple):
    """A file open for reading as UTF-8, and the file underneath."""

    file: IO[bytes]
    raw: IO[bytes]
    size: int

    def share(self) -> float:
        return min(self.raw.tell() / self.size, 1.0) if self.size else 1.0

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()
        self.raw.close()


def _opened(path: Path, encoding: str | None) -> Any:
    raw = path.open("rb")
    head = raw.read(4)
    raw.seek(0)
    file: Any = raw
    if head[:2] == b"\x1f\x8b":
        file = gzip.GzipFile(fileobj=raw)
        head = _gunzipped_head(path)[:4]
    if encoding is None and head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    if encoding is not None and codecs.lookup(encoding).name != "utf-8":
        file = codecs.EncodedFile(file, "utf-8", encoding)
    return _Stream(file, raw, path.stat().st_size)


def _gunzipped_head(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            return file.read(HEAD)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(f"{path.name} is not a complete gzip file: {error}. Write or download it again") from error


def _blocks(file: IO[bytes], size: int, name: str) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks of whole records."""
    rest = b""
    while True:
        try:
            read = file.read(size)
        except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
            raise FileError(f"{name} cannot be read to its end: {error}. Write or download it again") from error
        data = rest + read
        if not read:
            if data:
                yield data
            return
        if len(data) > MAX_RECORD * size:
            raise FileError(f"{name}: no line ends within {len(data)} bytes; a quote may be opened and never closed")
        end = _last_record_end(data)
        if end:
            yield data[:end]
        rest = data[end:]


def _last_record_end(data: bytes) -> int:
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


def _record_end(data: bytes) -> int:
    """Return the end of the first record."""
    at = -1
    while True:
        at = data.find(b"\n", at + 1)
        if at < 0:
            return len(data)
        if data.count(b'"', 0, at) % 2 == 0:
            return at + 1


def _json_lines(path: Path, size: int) -> Iterator[tuple[pl.DataFrame, Ints, float]]:
    before, rest, ended = 0, b"", False
    with _opened(path, None) as stream:
        while not ended:
            read = stream.file.read(size)
            ended, data = not read, rest + read
            end = len(data) if ended else data.rfind(b"\n") + 1
            records, lines = parse_records(data[:end], path.name, before)
            if records:
                yield to_frame(records), np.asarray(lines), stream.share()
            before, rest = before + data.count(b"\n", 0, end), data[end:]


def _parquet(path: Path, size: int) -> Iterator[tuple[pl.DataFrame, Ints, float]]:
    try:
        lazy = pl.scan_parquet(path, glob=False)
        rows = int(lazy.select(pl.len()).collect().item())
        sample = lazy.head(1000).collect()
        each = max(1000, int(size / max(sample.estimated_size() / max(sample.height, 1), 1)))
        for start in range(0, rows, each):
            frame = lazy.slice(start, each).collect()
            yield frame, np.arange(start + 1, start + 1 + frame.height), min((start + each) / rows, 1.0)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise FileError(
            f"{path.name} is not a complete Parquet file: {str(error).splitlines()[0][:200]}. Write or download it "
            "again"
        ) from error
