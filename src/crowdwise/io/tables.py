"""Reader for all file formats, recognised by the file extension, else by the first bytes."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..answers.frames import to_frame
from ..errors import EmptyDataError, FileError, ParameterError, check_choice, option
from .cifar10h import cifar10h, looks_like_cifar10h
from .delimited import not_utf8, read_delimited

FORMATS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".tab": "csv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
FORMAT_NAMES = (*sorted(set(FORMATS.values())), "cifar10h")


class Table(NamedTuple):
    """A file as a frame, and how it was read."""

    frame: pl.DataFrame
    name: str
    notes: tuple[str, ...]
    where: Callable[[int], str] | None  # describes the place of a row


def file_name(path: Any) -> Path:
    """Return a file name as a Path; anything else raises ParameterError."""
    if not isinstance(path, (str, Path)):
        raise ParameterError(
            f"expected a file name, got {type(path).__name__}. Give a table to crowdwise.Labels, Points or Pairs"
        )
    return Path(path)


def read_table(path: str | Path, format: str | None, delimiter: str | None, encoding: str | None) -> Table:
    """Read a file; '-' is standard input. A raw CIFAR-10H file is converted to task, worker, label."""
    if format is not None:
        check_choice("format", format, FORMAT_NAMES)
    table = _read(path, None if format == "cifar10h" else format, delimiter, encoding)
    if format == "cifar10h" or (format is None and looks_like_cifar10h(table.frame.columns)):
        notes = (*table.notes, "raw CIFAR-10H: attention checks are used as gold")
        return table._replace(frame=cifar10h(table.frame, table.name), notes=notes)
    return table


def read_tables(path: str | Path, format: str | None, delimiter: str | None, encoding: str | None) -> Table:
    """Read a file, all files of a folder, or all that match a pattern."""
    files = (path,) if str(path) == "-" else files_of(path)
    if len(files) == 1:
        return read_table(files[0], format, delimiter, encoding)
    tables = [read_table(file, format, delimiter, encoding) for file in files]
    names, starts = [table.name for table in tables], np.cumsum([0, *(table.frame.height for table in tables)])

    def where(row: int) -> str:
        at = int(np.searchsorted(starts, row, side="right")) - 1
        inside, place = int(row - starts[at]), tables[at].where
        return f"{names[at]}:row {inside + 1}" if place is None else place(inside)

    notes = dict.fromkeys(note for table in tables for note in table.notes)
    return Table(concatenated([table.frame for table in tables], names), f"{len(files)} files", tuple(notes), where)


def files_of(path: str | Path) -> tuple[Path, ...]:
    """Return the files that a path names: one file, all files of a folder, or all that match a pattern."""
    place = file_name(path)
    if place.is_dir():
        found = [file for file in sorted(place.rglob("*")) if file.is_file() and _is_table(file.relative_to(place))]
        if not found:
            known = ", ".join(sorted(FORMATS))
            raise FileError(f"the folder {path} holds no table ({known}, or these with .gz). Give a file or a folder")
        return tuple(found)
    if not place.exists() and any(letter in str(path) for letter in "*?["):
        base = Path(place.anchor) if place.is_absolute() else Path()
        found = sorted(file for file in base.glob(str(place.relative_to(base))) if file.is_file())
        if not found:
            raise FileError(f"no file matches {path}. Check the pattern")
        return tuple(found)
    return (place,)


def _is_table(file: Path) -> bool:
    name = Path(file.stem).suffix if file.suffix.lower() == ".gz" else file.suffix
    return name.lower() in FORMATS and not any(part.startswith((".", "_")) for part in file.parts)


def concatenated(frames: Sequence[pl.DataFrame], names: Sequence[str]) -> pl.DataFrame:
    """Return the rows of several files with the same columns."""
    for frame, name in zip(frames, names, strict=True):
        check_columns(frame.columns, frames[0].columns, name, names[0])
    return pl.concat([frame.select(frames[0].columns) for frame in frames], how="vertical_relaxed")


def check_columns(columns: Sequence[str], wanted: Sequence[str], name: str, first: str) -> None:
    """Raise FileError unless a file has the columns of the first one."""
    odd = sorted(set(columns) ^ set(wanted))
    if odd:
        raise FileError(
            f"{name} does not have the columns of {first}: {', '.join(odd)} only in one. Give files with the same "
            "columns"
        )


def _read(path: str | Path, format: str | None, delimiter: str | None, encoding: str | None) -> Table:
    if delimiter is not None and len(delimiter.encode()) != 1:
        raise ParameterError(f"delimiter is {delimiter!r}; it must be one character, for instance ';' or a tab")
    if encoding is not None:
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise ParameterError(
                f"encoding is {encoding!r}, which Python does not know; try utf-8 or latin-1"
            ) from None
    name, data = _bytes(path)
    notes: tuple[str, ...] = ()
    ending = Path(name).suffix.lower()
    if data[:2] == b"\x1f\x8b":
        data, notes = _unzipped(data, name), ("gzip",)
        ending = Path(Path(name).stem).suffix.lower()
    if not data:
        raise EmptyDataError(f"no answers in {name}: the file is empty")
    kind = format_of(ending, data, format)
    if kind == "csv":
        read = read_delimited(data, name, delimiter, encoding)
        if read.frame.height == 0:
            raise EmptyDataError(f"no answers in {name}: it has a header and no rows. Give a table with rows")
        return Table(read.frame, name, (*notes, *read.notes), read.where)
    if kind == "parquet":
        return Table(_parquet(data, name), name, notes, None)
    return Table(_json(data, name, kind == "jsonl"), name, notes, None)


def _bytes(path: str | Path) -> tuple[str, bytes]:
    if str(path) == "-":
        return "standard input", sys.stdin.buffer.read()
    file = file_name(path)
    try:
        return file.name, file.read_bytes()
    except IsADirectoryError:
        raise FileError(f"{path} is a folder. Give the file in it") from None
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}. Check the name and the permissions") from error


def _unzipped(data: bytes, name: str) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(f"{name} is not a complete gzip file: {error}. Write or download it again") from error


def format_of(ending: str, data: bytes, format: str | None) -> str:
    """Return the format of a file: given, or recognised by its first bytes and the ending of its name."""
    return format or ("parquet" if data[:4] == b"PAR1" else FORMATS.get(ending) or _by_first_byte(data))


def _by_first_byte(data: bytes) -> str:
    first = data.lstrip()[:1]
    if first == b"[":
        return "json"
    return "jsonl" if first == b"{" else "csv"


def _parquet(data: bytes, name: str) -> pl.DataFrame:
    try:
        return pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise FileError(
            f"{name} is not a complete Parquet file: {str(error).splitlines()[0][:200]}. Write or download it again"
        ) from error


def _json(data: bytes, name: str, lines: bool) -> pl.DataFrame:
    """Read records; values keep their JSON types."""
    records = parse_records(data, name)[0] if lines else _parsed(data, name)
    if isinstance(records, dict) and all(isinstance(v, dict) for v in records.values()):  # {task: {worker: label}}
        records = [{"task": t, "worker": w, "label": v} for t, labels in records.items() for w, v in labels.items()]
    if not isinstance(records, list) or not all(isinstance(r, dict) for r in records):
        raise FileError(
            f'{name} is not a list of records. Write [{{"task": ..., "worker": ..., "label": ...}}, ...], or one '
            f"record per line ({option('format', 'jsonl')})"
        )
    if not records:
        raise EmptyDataError(f"no answers in {name}: the list is empty")
    return to_frame(records)


def _parsed(data: bytes, name: str) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise FileError(
            f"{name}:{error.lineno}: invalid JSON: {error.msg}. One record per line? Use {option('format', 'jsonl')}"
        ) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise FileError(f"{name}: invalid JSON: {error}") from error


def parse_records(data: bytes, name: str, before: int = 0) -> tuple[list[Any], list[int]]:
    """Return the records of JSON lines, and the line of each; `before` is the number of lines before the data."""
    wrong = not_utf8(data, name, before=before)
    if wrong is not None:
        raise wrong
    records, lines = [], []
    for number, line in enumerate(data.decode("utf-8-sig").split("\n"), before + 1):
        if line.strip():
            try:
                records.append(json.loads(line))
            except (json.JSONDecodeError, RecursionError) as error:
                raise FileError(f"{name}:{number}: invalid JSON record: {error}. Correct or remove the line") from error
            lines.append(number)
    return records, lines
