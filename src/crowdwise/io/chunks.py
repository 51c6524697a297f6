"""Tables read in chunks: CSV, JSON lines and Parquet, one file, several files or a folder of them.

A chunk is read by the same code as a whole file, so the rules about quotes, encodings and damaged lines are the same.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from ..answers.coding import to_text
from ..answers.frames import to_frame
from ..errors import EmptyDataError, FileError
from ..kernels.layout import Ints
from ..limits import BASE
from .blocks import HEAD, Recoded, blocks, gunzipped_head, is_gzip, last_record_end, stream_of
from .cifar10h import NOTE, cifar10h, looks_like_cifar10h
from .delimited import declared, delimiter_note, header_end, read_delimited, sniff
from .encodings import decode
from .opening import GZIP, check_start, marked, unreadable
from .other_tables import check_parquet
from .tables import check_columns, check_rows, concatenated, format_of, not_records, parse_records, source_name

IN_MEMORY = 4.5  # memory for reading and fitting a table, compared with its text or frame
USABLE = 0.8  # share of the available memory that a table may take
GZIP_RATIO = 8  # size of text compared with its gzip file, at most as a rule
SMALL = 1 << 20  # bytes of a file that is never too large
SAMPLE_PLACES, SAMPLE_ROWS = 64, 1000  # places in a table, and rows of each, for a sample of a column
MIN_CHUNK = 16  # bytes


class Chunk(NamedTuple):
    """Some consecutive rows of a file."""

    frame: pl.DataFrame
    line: Ints  # (n,) line (of text) or row (of Parquet) of each row in its file, from 1
    file: int  # number of the file
    done: float  # share of all bytes that is read


Types: TypeAlias = dict[str, dict[type, Any]]  # by key of JSON records: the types of its values, and a value of each


@dataclass(frozen=True)
class Source:
    """Files to read in chunks, and how."""

    files: tuple[Path, ...]
    format: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    max_expanded: int | None = None  # bytes that a compressed file may expand to
    _types: dict[Path, Types] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The file, or the folder of several files, as it is named in messages."""
        return source_name(self.files)

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
            rows, lazy = check_parquet(path, self.max_expanded), pl.scan_parquet(path, glob=False)
            sample = _checked(path, lazy.head(SAMPLE_ROWS).collect)
            return int(rows * sample.estimated_size() / max(sample.height, 1))
        return size * GZIP_RATIO if is_gzip(path) else size

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        first = next(self.chunks(HEAD), None)
        if first is None:
            raise EmptyDataError(f"no answers in {self.name}: it has no rows. Give a table with rows")
        return first.frame.columns

    def notes(self) -> list[str]:
        """Return notes about compression, encodings and delimiters."""
        found: list[str] = []
        for number, path in enumerate(self.files):
            found += ["gzip"] if is_gzip(path) else []
            if self.kind(number) == "csv":
                with stream_of(path, self.encoding, self.max_expanded) as stream:
                    head = stream.file.read(HEAD).removeprefix(codecs.BOM_UTF8)
                    found += [stream.note] if stream.note else []
                found += delimiter_note(self.delimiter or sniff(head, path.name))
                found += [NOTE] if self._is_cifar10h(self.columns()) else []
        return list(dict.fromkeys(found))

    def where(self, file: int, line: int) -> str:
        """Describe the place of a row."""
        name = self.files[file].name
        if self.kind(file) == "parquet":
            return f"row {line}" if len(self.files) == 1 else f"{name}:row {line}"
        return f"{name}:{line}"

    def order(self, quoted: str) -> tuple[int, int]:
        """Return the file and the line of a row that is quoted after its place, for sorting."""
        names = [file.name for file in self.files]
        file = next((n for n, name in enumerate(names) if quoted.startswith(f"{name}:")), 0)
        place = quoted.removeprefix(f"{names[file]}:").removeprefix("row ")
        return file, int(place.partition(":")[0])

    def kind(self, file: int) -> str:
        """Return the format of a file."""
        path = self.files[file]
        try:
            with path.open("rb") as opened:
                head = opened.read(HEAD)
        except OSError as error:
            raise unreadable(path, error) from error
        zipped = head[:2] == GZIP
        ending = Path(path.stem).suffix if zipped else path.suffix
        given = None if self.format == "cifar10h" else self.format
        head = gunzipped_head(path) if zipped else head
        check_start(head, path.name)
        return format_of(ending.lower(), head, given)

    def chunks(self, size: int) -> Iterator[Chunk]:
        """Yield all rows in chunks of about `size` bytes."""
        before, total = 0, max(self.size, 1)
        columns: list[str] | None = None
        schema = self.schema()
        for number, path in enumerate(self.files):
            kind, whole = self.kind(number), path.stat().st_size
            read = self._read(kind)
            if read is None:
                raise FileError(
                    f"{path.name} is {kind}, which can only be read as a whole. Write one record per line, or Parquet"
                )
            for frame, line, share in read(path, max(size, MIN_CHUNK)):
                frame = cifar10h(frame, path.name) if self._is_cifar10h(frame.columns) else frame
                columns = columns or frame.columns
                check_columns(frame.columns, columns, path.name, self.files[0].name)
                typed = frame.select(columns).cast({name: schema[name] for name in columns if name in schema})
                yield Chunk(typed, line, number, (before + share * whole) / total)
            before += whole

    def raw_chunks(self, size: int) -> Iterator[Chunk]:
        """Yield the rows of the files as they are, each file with its own columns, in chunks of about `size` bytes."""
        for number, path in enumerate(self.files):
            for frame, line, share in self._read(self.kind(number))(path, max(size, MIN_CHUNK)):
                yield Chunk(frame, line, number, share)

    def _is_cifar10h(self, columns: list[str]) -> bool:
        return self.format == "cifar10h" or (self.format is None and looks_like_cifar10h(columns))

    def schema(self) -> dict[str, Any]:
        """Return the types of columns that have different types in parts of the files: one that holds all values."""
        found: list[pl.DataFrame] = []
        kinds = [self.kind(number) for number in range(len(self.files))]
        if kinds == ["parquet"]:
            return {}
        for path, kind in zip(self.files, kinds, strict=True):
            if kind == "parquet":
                found.append(_checked(path, pl.scan_parquet(path, glob=False).head(0).collect))
            elif kind == "jsonl":
                types = self.types(path)
                found.append(pl.DataFrame([_column(name, [], types) for name in types]))
        names = [path.name for path, kind in zip(self.files, kinds, strict=True) if kind in ("parquet", "jsonl")]
        return dict(concatenated(found, names).schema) if found else {}

    def sample(self, column: str) -> Iterator[pl.Series]:
        """Yield values of a column from places all over the files."""
        places = max(1, SAMPLE_PLACES // len(self.files))
        for number, path in enumerate(self.files):
            kind = self.kind(number)
            if kind == "parquet":
                lazy = pl.scan_parquet(path, glob=False).select(column)
                rows = int(lazy.select(pl.len()).collect().item())
                for start in np.linspace(0, max(rows - SAMPLE_ROWS, 0), places).astype(int).tolist():
                    yield lazy.slice(start, SAMPLE_ROWS).collect().to_series()
            elif kind in ("csv", "jsonl") and not is_gzip(path) and self._encoding(path) is None:
                yield from self._sampled_lines(path, column, places, kind == "jsonl")
            else:
                yield from (frame[column].gather_every(20) for frame, *_ in self._read(kind)(path, 1 << 24))

    def _sampled_lines(self, path: Path, column: str, places: int, records: bool) -> Iterator[pl.Series]:
        """Read pieces of a file of text, from the first to the last line break in them. A piece that begins inside
        quotes may be read wrongly or not at all, which makes the sample less even and nothing worse."""
        with path.open("rb") as file:
            start = file.read(HEAD)
            begin = 0 if records else header_end(start)
            header = start[declared(start)[1] : begin].removeprefix(codecs.BOM_UTF8)
            for at in np.linspace(begin, max(path.stat().st_size - HEAD, 0), places).astype(int).tolist():
                file.seek(at)
                piece = file.read(HEAD)
                body = piece[piece.find(b"\n") + 1 : piece.rfind(b"\n") + 1]
                if records:
                    types = self.types(path)  # which refuses a damaged line by its number
                    yield _column(column, parse_records(body, path.name)[0], types)
                    continue
                try:
                    frame = pl.read_csv(
                        header + body, separator=self.delimiter or sniff(start, path.name), infer_schema=False,
                        truncate_ragged_lines=True,
                    )  # fmt: skip
                except pl.exceptions.PolarsError:
                    continue
                if column in frame.columns:
                    yield frame[column]

    def _encoding(self, path: Path) -> str | None:
        """Return the encoding of a file of text; None for UTF-8."""
        if self.encoding is None or codecs.lookup(self.encoding).name == "utf-8":
            with path.open("rb") as file:
                return marked(file.read(4))
        return self.encoding

    def _read(self, kind: str) -> Any:
        """Return the function that reads files of a format in chunks, or None."""
        return {"csv": self._delimited, "jsonl": self._json_lines, "parquet": self._parquet}.get(kind)

    def _delimited(self, path: Path, size: int) -> Iterator[tuple[pl.DataFrame, Ints, float]]:
        with stream_of(path, self.encoding, self.max_expanded) as stream:
            header, begun, delimiter = b"", b"", self.delimiter
            encoding = "utf-8" if isinstance(stream.file, Recoded) else None  # a NUL says nothing in what is decoded
            for block, line, at in blocks(stream.file, size, path.name, last_record_end):
                data, before, skipped = begun + block, 0, 0
                if header:
                    data, before, skipped = header + block, line - header.count(b"\n") - 1, at - len(header)
                else:
                    if encoding is None:
                        decode(data[:HEAD], path.name, None)  # refuses UTF-16 without a byte order mark
                    start = data.removeprefix(codecs.BOM_UTF8)
                    if 0 < len(start) == declared(start)[1]:
                        begun = data  # which has no names of columns yet
                        continue
                    delimiter = delimiter or sniff(start[:HEAD], path.name)
                    header = start[: header_end(start)]
                found = read_delimited(data, path.name, delimiter, encoding, before, skipped)
                if found.frame.height:
                    yield found.frame, found.lines, stream.share()
            if not header:
                raise EmptyDataError(f"no answers in {path.name}: the file is empty")

    def _json_lines(self, path: Path, size: int) -> Iterator[tuple[pl.DataFrame, Ints, float]]:
        types = self.types(path)
        for records, lines, share in records_of(path, size, self.max_expanded):
            columns = [_column(name, records, types) for name in types]
            yield to_frame(dict(zip(types, columns, strict=True))), np.asarray(lines), share

    def _parquet(self, path: Path, size: int) -> Iterator[tuple[pl.DataFrame, Ints, float]]:
        rows, lazy = check_parquet(path, self.max_expanded), pl.scan_parquet(path, glob=False)
        sample = _checked(path, lazy.head(SAMPLE_ROWS).collect)
        each = max(SAMPLE_ROWS, int(size / max(sample.estimated_size() / max(sample.height, 1), 1)))
        for start in range(0, rows, each):
            frame = _checked(path, lazy.slice(start, each).collect)
            check_rows(frame.height, min(each, rows - start), path.name, f"its metadata from row {start + 1} on")
            yield frame, np.arange(start + 1, start + 1 + frame.height), min((start + each) / rows, 1.0)

    def types(self, path: Path) -> Types:
        """Return the types of all values in a file of JSON lines: any line may have other keys and types."""
        if path not in self._types:
            types: Types = {}
            for records, *_ in records_of(path, 1 << 24, self.max_expanded):
                if not all(isinstance(record, dict) for record in records):
                    raise not_records(path.name)
                for record in records:
                    for name, value in record.items():
                        known = types.setdefault(name, {})
                        if value is not None and type(value) not in known:
                            known[type(value)] = value
            self._types[path] = types
        return self._types[path]

    def mixed(self) -> dict[str, list[Any]]:
        """Return the columns of JSON lines that mix types, which are read as text, and a value of each type."""
        found: dict[str, list[Any]] = {}
        for types in self._types.values():
            found |= {name: list(known.values()) for name, known in types.items() if len(known) > 1}
        return found


def too_large(source: Source, limit: int | None) -> bool:
    """Return whether a table would need more memory than the limit in bytes leaves, or without one than may be used."""
    size = source.unpacked_size()
    if size < len(source.files) * SMALL:
        return False
    return IN_MEMORY * size > memory_for_table(limit)


def memory_for_table(limit: int | None) -> int:
    """Return the bytes that a table may take, of `limit` bytes for the process or of what it may use."""
    from ..engine.resources import available  # loads the engine, which small tables need later or not at all

    return limit - BASE if limit else int(USABLE * available())


def records_of(path: Path, size: int, allowed: int | None = None) -> Iterator[tuple[list[Any], list[int], float]]:
    """Yield the records of JSON lines in chunks, with the line of each, and the share of the file that is read."""
    with stream_of(path, None, allowed) as stream:
        for block, line, at in blocks(stream.file, size, path.name, lambda data: data.rfind(b"\n") + 1):
            records, lines = parse_records(block, path.name, line - 1, at)
            if records:
                yield records, lines, stream.share()


def _column(name: str, records: Sequence[Mapping[str, Any]], types: Types) -> pl.Series:
    """Return a column of JSON records; a column with values of several types in the file is text."""
    values, known = [record.get(name) for record in records], types[name]
    if any(issubclass(kind, (list, dict)) for kind in known):
        return pl.Series(name, values, dtype=pl.Object)
    if len(known) > 1:
        return to_text(pl.Series(name, values, dtype=pl.Object))
    return pl.Series(name, values or list(known.values())).head(len(values))


def _checked(path: Path, read: Callable[[], Any]) -> Any:
    """Read from a Parquet file; a damaged one raises FileError."""
    try:
        return read()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise FileError(
            f"{path.name} is not a complete Parquet file: {str(error).splitlines()[0][:200]}. Write or download it "
            "again"
        ) from error
