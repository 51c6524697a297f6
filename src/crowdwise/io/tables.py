"""Reader for all file formats, recognised by the file extension, else by the first bytes."""

from __future__ import annotations

import codecs
import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import polars as pl

from ..answers.arguments import check_path
from ..answers.frames import to_frame
from ..errors import EmptyDataError, FileError, ParameterError, check_choice, option
from ..forks import refuse_lost_threads
from .cifar10h import NOTE, cifar10h, looks_like_cifar10h
from .delimited import read_delimited
from .encodings import UTF8_NOTE, check_encoding, decode, not_utf8
from .formats.base import STDIN_NAME, stem_of
from .json_files import decoded, explained, refused_line
from .opening import (
    GZIP,
    ZIP,
    Unchanged,
    check_device,
    check_start,
    gunzipped,
    is_workbook,
    pieces,
    reading,
    unreadable,
    zips_of,
)  # fmt: skip
from .other_tables import dataset_files, is_dataset, parquet_rows, read_arrow, with_class_names
from .workbooks import read_workbook

FORMATS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".tab": "csv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".xlsx": "xlsx", ".xml": "xml",
    ".manifest": "jsonl",
}  # fmt: skip
MAX_MEMORY_SHARE = 0.4  # of the available memory, for what comes through a pipe: its pieces are joined
FORMAT_NAMES = (*sorted(set(FORMATS.values())), "cifar10h")


class Reading(NamedTuple):
    """How a file is read: what the caller says, or None for what is recognised."""

    format: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    max_expanded: int | None = None  # bytes to which a compressed file may expand
    sheet: str | None = None  # of an Excel workbook


AS_RECOGNISED = Reading()


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
    return check_device(check_path("path", path))


def size_of(name: str, value: str | float | None) -> int | None:
    """Return an option such as max_expanded="2GB" in bytes."""
    if value is None:
        return None
    from ..engine.resources import memory_size  # loads the engine

    return memory_size(value, name)


def read_table(path: str | Path, how: Reading = AS_RECOGNISED, needs_rows: bool = True) -> Table:
    """Read a file; '-' is standard input. A raw CIFAR-10H file is converted to task, worker, label."""
    refuse_lost_threads()
    if how.format is not None:
        check_choice("format", how.format, FORMAT_NAMES)
    with reading(path):
        seen = Unchanged([] if str(path) == "-" else [file_name(path)])
        table = _read(path, how._replace(format=None) if how.format == "cifar10h" else how, needs_rows)
        seen.check()
    if how.format == "cifar10h" or (how.format is None and looks_like_cifar10h(table.frame.columns)):
        return table._replace(frame=cifar10h(table.frame, table.name), notes=(*table.notes, NOTE))
    return table


def read_tables(path: str | Path, how: Reading = AS_RECOGNISED, named: str | None = None) -> Table:
    """Read a file, all files of a folder, or all that match a pattern. `named` is a column with the name of the file
    that a row is from, without its endings; it is added unless the file has it."""
    files = (path,) if str(path) == "-" else files_of(path)
    tables = [read_table(file, how, len(files) == 1) for file in files]
    if named is not None:
        stems = [stem_of(Path(table.name)) for table in tables]
        tables = [
            table
            if named in table.frame.columns
            else table._replace(frame=table.frame.with_columns(pl.lit(stem).alias(named)))
            for table, stem in zip(tables, stems, strict=True)
        ]
    if len(files) == 1:
        return tables[0]
    names, starts = [table.name for table in tables], np.cumsum([0, *(table.frame.height for table in tables)])

    def where(row: int) -> str:
        at = int(np.searchsorted(starts, row, side="right")) - 1
        inside, place = int(row - starts[at]), tables[at].where
        return f"{names[at]}:row {inside + 1}" if place is None else place(inside)

    notes = dict.fromkeys(note for table in tables for note in table.notes)
    return Table(concatenated([table.frame for table in tables], names), source_name(files), tuple(notes), where)


def source_name(files: Sequence[Path]) -> str:
    """Return the name of a file, or of the folder of several files, for messages."""
    first = files[0]
    return first.name if len(files) == 1 else f"{len(files)} files in {first.parent.name or first.parent}"


def files_of(path: str | Path) -> tuple[Path, ...]:
    """Return the files that a path names: one file, all files of a folder, or all that match a pattern."""
    place = file_name(path)
    if place.is_dir():
        found = dataset_files(place) if is_dataset(place) else _tables_in(place)
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


def is_folder_of_tables(folder: Path) -> bool:
    """Return whether a folder holds tables or exports, or zips of them."""
    return bool(_tables_in(folder)) or bool(zips_of(folder))


def _tables_in(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.rglob("*")) if file.is_file() and _is_table(file.relative_to(folder))]


def _is_table(file: Path) -> bool:
    from ..result.outputs import LISTED  # loads results

    name = Path(file.stem).suffix if file.suffix.lower() == ".gz" else file.suffix
    return (
        name.lower() in FORMATS and file.name != LISTED and not any(part.startswith((".", "_")) for part in file.parts)
    )


def concatenated(frames: Sequence[pl.DataFrame], names: Sequence[str]) -> pl.DataFrame:
    """Return the rows of several files with the same columns."""
    for frame, name in zip(frames, names, strict=True):
        check_columns(frame.columns, frames[0].columns, name, names[0])
    try:
        return pl.concat([frame.select(frames[0].columns) for frame in frames], how="vertical_relaxed")
    except pl.exceptions.SchemaError as error:
        raise FileError(f"columns of {names[0]} and of other files differ in type: {error}. Write one type") from error


def check_columns(columns: Sequence[str], wanted: Sequence[str], name: str, first: str) -> None:
    """Raise FileError unless a file has the columns of the first one."""
    odd = sorted(set(columns) ^ set(wanted))
    if odd:
        raise FileError(
            f"{name} does not have the columns of {first}: {', '.join(odd)} only in one. Give files with the same "
            "columns"
        )


def _read(path: str | Path, how: Reading, needs_rows: bool) -> Table:
    check_text_options(how.delimiter, how.encoding)
    name, data = _bytes(path, how.max_expanded)
    notes: tuple[str, ...] = ()
    ending = Path(name).suffix.lower()
    if data[:2] == GZIP:
        data, notes = gunzipped(data, name, how.max_expanded), ("gzip",)
        ending = Path(Path(name).stem).suffix.lower()
    if not data:
        raise EmptyDataError(f"no answers in {name}: the file is empty")
    check_start(data[:512], name)
    kind = format_of(ending, data, how.format)
    if kind == "arrow":
        return Table(read_arrow(Path(path), how.max_expanded), name, notes, None)
    if kind == "xlsx" or data[:4] == ZIP:
        return _workbook(Path(path), kind, how)
    if how.sheet is not None:
        raise ParameterError(f"{option('sheet', how.sheet)} is for Excel workbooks; {name} is {kind}. Omit it")
    if kind == "xml":
        raise FileError(f"{name} is XML, but not as CVAT writes it. Export the answers as a table or as JSON")
    if kind == "csv":
        read = read_delimited(data, name, how.delimiter, how.encoding)
        if read.frame.height == 0 and needs_rows:
            raise EmptyDataError(f"no answers in {name}: it has a header and no rows. Give a table with rows")
        return Table(read.frame, name, (*notes, *read.notes), None if read.text is None else read.text.where)
    if kind == "parquet":
        frame = _parquet(data, name, how.max_expanded)
        return Table(with_class_names(frame, Path(path)) if str(path) != "-" else frame, name, notes, None)
    if kind in ("json", "jsonl"):
        data, more = decode(data, name, how.encoding)
        notes += tuple(note for note in more if note != UTF8_NOTE)
    if kind == "json":
        return Table(_frame(_parsed(data, name), name), name, notes, None)
    records, lines = parse_records(data, name)
    return Table(_frame(records, name), name, notes, lambda row: f"{name}:{lines[row]}")


def _workbook(path: Path, kind: str, how: Reading) -> Table:
    """Read an Excel workbook; other archives raise FileError."""
    if kind != "xlsx" and not is_workbook(path):
        raise FileError(f"{path.name} is a zip file. Unpack it, and give the table in it")
    book = read_workbook(path, how.max_expanded, how.sheet)
    return Table(book.frame, path.name, book.notes, lambda row: f"{path.name}:{book.row + row}")


def check_text_options(delimiter: str | None, encoding: str | None) -> None:
    """Raise ParameterError for a delimiter or an encoding that cannot be used."""
    one = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii() and delimiter not in '"\r\n\0'
    if delimiter is not None and not one:
        raise ParameterError(
            f"delimiter is {delimiter!r}; it must be one ASCII character, for instance ';' or a tab, and no quote"
        )
    if encoding is not None:
        check_encoding(encoding)


def _bytes(path: str | Path, allowed: int | None) -> tuple[str, bytes]:
    if str(path) == "-":
        return STDIN_NAME, _piped(sys.stdin.buffer, STDIN_NAME, allowed)
    file = file_name(path)
    try:
        if file.is_file():
            return file.name, file.read_bytes()
        with file.open("rb") as pipe:
            return file.name, _piped(pipe, file.name, allowed)
    except IsADirectoryError:
        raise FileError(f"{path} is a folder. Give the file in it") from None
    except OSError as error:
        raise unreadable(path, error) from error


def _piped(pipe: IO[bytes], name: str, allowed: int | None) -> bytes:
    """Return what comes through a pipe, if there is memory for it."""
    from ..engine.resources import available  # loads the engine

    return b"".join(pieces(pipe, name, allowed, MAX_MEMORY_SHARE * available(), "the memory"))


def format_of(ending: str, data: bytes, format: str | None) -> str:
    """Return the format of a file: given, or recognised by its first bytes and the ending of its name."""
    return format or ("parquet" if data[:4] == b"PAR1" else FORMATS.get(ending) or _by_first_byte(data))


def _by_first_byte(data: bytes) -> str:
    first = data.lstrip()[:1]
    if first == b"[":
        return "json"
    return "jsonl" if first == b"{" else "csv"


def check_rows(found: int, wanted: int, name: str, where: str) -> None:
    """Raise FileError unless as many rows were read as the file has, by a count of its own."""
    if found != wanted:
        raise FileError(f"{name} has {wanted} rows by {where}, but {found} were read. Write or download it again")


def _parquet(data: bytes, name: str, allowed: int | None) -> pl.DataFrame:
    try:
        rows = parquet_rows(data, name, allowed)
        frame = pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise FileError(
            f"{name} is not a complete Parquet file: {str(error).splitlines()[0][:200]}. Write or download it again"
        ) from error
    check_rows(frame.height, rows, name, "its metadata")
    return frame


def _frame(records: Any, name: str) -> pl.DataFrame:
    """Return JSON records as a frame; values keep their types."""
    if isinstance(records, dict) and all(isinstance(v, dict) for v in records.values()):  # {task: {worker: label}}
        records = [{"task": t, "worker": w, "label": v} for t, labels in records.items() for w, v in labels.items()]
    if not isinstance(records, list) or not all(isinstance(r, dict) for r in records):
        raise not_records(name)
    if not records:
        raise EmptyDataError(f"no answers in {name}: the list is empty")
    frame = to_frame(records)
    check_rows(frame.height if frame.width else len(records), len(records), name, "its records")
    return frame


def not_records(name: str) -> FileError:
    """Return the error for JSON other than records."""
    return FileError(
        f'{name} is not a list of records. Write [{{"task": ..., "worker": ..., "label": ...}}, ...], or one '
        f"record per line ({option('format', 'jsonl')})"
    )


def _parsed(data: bytes, name: str) -> Any:
    if not data.removeprefix(codecs.BOM_UTF8).strip():
        raise EmptyDataError(f"no answers in {name}: the file is empty")
    try:
        return decoded(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        advice = "Write or download it again"
        if data.lstrip()[:1] == b"{":
            advice = f"One record per line? Use {option('format', 'jsonl')}"
        raise FileError(f"{name}:{error.lineno}: invalid JSON: {error.msg}. {advice}") from error
    except (ValueError, RecursionError) as error:
        line = refused_line(data)
        raise FileError(f"{name}{f':{line}' if line else ''}: invalid JSON: {explained(error)}") from error


def parse_records(data: bytes, name: str, before: int = 0, skipped: int = 0) -> tuple[list[Any], list[int]]:
    """Return the records of JSON lines, and the line of each; `before` and `skipped` are the numbers of lines and bytes
    before the data."""
    wrong = not_utf8(data, name, skipped, before)
    if wrong is not None:
        raise wrong
    records, lines = [], []
    for number, line in enumerate(io.BytesIO(data.removeprefix(codecs.BOM_UTF8)), before + 1):
        if line.strip():
            try:
                records.append(decoded(line.decode().rstrip()))
            except (ValueError, RecursionError) as error:
                why = explained(error, _line_advice(data, line))
                raise FileError(f"{name}:{number}: invalid JSON record: {why}") from error
            lines.append(number)
    return records, lines


def _line_advice(data: bytes, line: bytes) -> str:
    """Return what to do about a line that is no JSON record."""
    if line.strip() not in (b"[", b"{"):  # as a record over several lines begins
        return "Correct or remove the line"
    try:
        decoded(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return "Write each record on one line"
    return f"The whole file is one value in JSON: use {option('format', 'json')}"
