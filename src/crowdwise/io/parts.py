"""Files of any format as parts: how one begins, and its tables or records, with memory bounded by a part."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ..answers.columns import NONE_GIVEN
from ..errors import ColumnError, CrowdwiseError, FileError, ParameterError, nearest, option
from .chunks import Source
from .delimited import declared, sniff
from .encodings import decode
from .formats import all_formats, find
from .formats.base import Format, Head, Origin, stem_of
from .json_files import HEAD_RECORDS, json_head, json_object, json_records
from .opening import disk_error, first_bytes, open_bytes
from .other_tables import check_parquet, read_arrow
from .tables import FORMATS as FILE_FORMATS
from .tables import Reading, format_of
from .workbooks import read_workbook
from .xml_files import cvat_records, xml_root

HEAD_BYTES = 1 << 18
POLARS_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException)  # a panic is no Exception
MAX_FIELDS = 5_000  # of an export
PART_BYTES, PART_RECORDS = 1 << 24, 1_000
MAX_TEXT_BYTES = 1 << 28  # of a matrix of numbers, which is read as a whole


class Part(NamedTuple):
    """Some consecutive records of a file."""

    content: Any  # a frame of text, or a list of records
    rows: Sequence[int]  # line or number of each


def head_of(path: Path, how: Reading) -> Head:
    """Return how a file begins. One that cannot be read gets an empty head: reading it says what is wrong. So does one
    with more fields than exports of platforms have."""
    found = _head(path, how)
    return found if len(found.columns) <= MAX_FIELDS else Head(path.name, "", "")


def _head(path: Path, how: Reading) -> Head:
    nothing = Head(path.name, "", "")
    try:
        kind = _kind(path, how)
        if kind == "xml":
            root = xml_root(path, how.max_expanded)
            return nothing if root is None else Head(path.name, "xml", kind, (root,))
        if kind in ("json", "object"):
            return _json_head(path, how)
        if kind == "jsonl":
            return _records_head(path.name, kind, _first_lines(path, how))
        return _table_head(path, kind, how)
    except (CrowdwiseError, OSError, ValueError, csv.Error, RecursionError, *POLARS_ERRORS) as error:
        if disk_error(error):
            raise
        return nothing


def _kind(path: Path, how: Reading) -> str:
    """Return the format of the file itself, by its content before its name."""
    data = first_bytes(path, HEAD_BYTES, how.max_expanded)
    text = data.removeprefix(codecs.BOM_UTF8).lstrip()
    if text.startswith(b"<"):
        return "xml"
    if text.startswith(b"[") and b"{" in text[:4096]:
        return "json"
    if text.startswith(b"{"):
        lines = [line for line in text.split(b"\n") if line.strip()]
        whole = _is_object(lines[0])
        several = len(lines) > 1 and whole and lines[1].lstrip().startswith(b"{")
        lined = path.name.removesuffix(".gz").endswith((".jsonl", ".ndjson", ".manifest"))
        return "jsonl" if several or (lined and (whole or len(lines) == 1)) else "object"
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    given = how.format if how.format in FILE_FORMATS.values() else None
    return format_of(ending, data, given)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _json_head(path: Path, how: Reading) -> Head:
    value = json_head(path, how.max_expanded)
    if isinstance(value, list):
        return _records_head(path.name, "json", value)
    if not isinstance(value, Mapping):
        return Head(path.name, "", "")
    first = dict(itertools.islice(value.items(), HEAD_RECORDS))
    return Head(path.name, "object", "object", tuple(value), (first,))


def _records_head(name: str, kind: str, records: Sequence[Any]) -> Head:
    records = [record for record in records if isinstance(record, Mapping)]  # reading refuses the others
    if not records:
        return Head(name, "", "")
    columns = tuple(dict.fromkeys(key for record in records for key in record))
    return Head(name, "records", kind, columns, tuple(records))


def _first_lines(path: Path, how: Reading) -> list[Any]:
    lines = first_bytes(path, HEAD_BYTES * 16, how.max_expanded).removeprefix(codecs.BOM_UTF8).split(b"\n")
    found = []
    for line in lines[:HEAD_RECORDS]:
        if line.strip():
            try:
                found.append(json.loads(line))
            except ValueError:  # cut off, or damaged: reading the file tells
                break
    return found


def _table_head(path: Path, kind: str, how: Reading) -> Head:
    if kind == "parquet":
        check_parquet(path, how.max_expanded)
        frame = pl.scan_parquet(path, glob=False).head(HEAD_RECORDS).collect()
        return Head(path.name, "table", kind, tuple(frame.columns), tuple(frame.to_dicts()))
    if kind in ("arrow", "xlsx"):
        most = how.max_expanded
        frame = read_arrow(path, most) if kind == "arrow" else read_workbook(path, most, how.sheet).frame
        return Head(path.name, "table", kind, tuple(frame.columns), tuple(frame.head(HEAD_RECORDS).to_dicts()))
    data = _decoded(path, how)
    text = data.decode(errors="replace")
    try:
        delimiter = how.delimiter or sniff(data, path.name)
    except ColumnError:
        lines = [line for line in text.splitlines()[:HEAD_RECORDS] if line.strip()]
        if not lines:
            return Head(path.name, "", "")
        return Head(path.name, "lines", "csv", ("line",), tuple({"line": line} for line in lines))
    text = text[declared(data)[1] :]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    columns = next(reader, [])
    rows: list[dict[str, Any]] = []
    with contextlib.suppress(csv.Error):  # a cell that is longer than what was read
        rows.extend(dict(zip(columns, cells, strict=False)) for cells in itertools.islice(reader, HEAD_RECORDS))
    complete = rows if len(data) < HEAD_BYTES // 2 else rows[:-1]
    return Head(path.name, "table", "csv", tuple(columns), tuple(complete))


def _decoded(path: Path, how: Reading) -> bytes:
    """Return the beginning of a text file in UTF-8."""
    data = first_bytes(path, HEAD_BYTES, how.max_expanded)
    if how.encoding is not None:
        return data.decode(how.encoding, errors="replace").removeprefix("\ufeff").encode()
    return decode(data, path.name, None)[0]


def format_for(heads: Sequence[Head], given: str | None, options: Mapping[str, object] = NONE_GIVEN) -> Format | None:
    """Return the format of files that begin like these: the one given, or the one recognised; None for plain tables.
    `options` are those of the answers, which may name columns."""
    wanted = family(given) if given is not None else list(all_formats().values())
    if not wanted:
        return None
    known = [(each, head.name) for head in heads if (each := find(head, options)) is not None]
    found = next(
        (each for each, name in known if each.named_files and re.search(each.named_files, plain_name(name))), None
    )
    found = found or next((each for each, _ in known), None)
    if given is None or found in wanted:
        return found
    insisted = (
        each for each in wanted if any(head.container in each.containers and each.insisted(head) for head in heads)
    )
    chosen = next(insisted, None)
    if chosen is None:
        raise FileError(wrong_format(heads[0], wanted[0], found))
    return chosen


def platform(format: Format) -> list[Format]:
    """Return the formats of the same platform."""
    return [each for each in all_formats().values() if type(each).__module__ == type(format).__module__]


def family(given: str) -> list[Format]:
    """Return the formats of a platform: "argilla" is both of its forms."""
    return [each for name, each in all_formats().items() if name == given or name.startswith(f"{given}-")]


def wrong_format(head: Head, wanted: Format, found: Format | None, insisted: bool = True) -> str:
    """Describe a file that does not have the format that was given, or that other files have."""
    shown = ", ".join(head.columns[:12])
    has = f" It has {'the columns' if head.container == 'table' else 'the fields'} {shown}." if shown else ""
    if found is not None:
        looks = f"It looks like {found.title}"
        advice = f"{looks}: use {option('format', found.name)}, or omit the option" if insisted else looks
    else:
        looks = "It looks like a plain table" if head.columns else "It cannot be read as any known format"
        advice = f"{looks}: omit {option('format')}" if insisted and head.columns else looks
    if insisted:
        return f"{head.name} is not {wanted.title} ({wanted.files}).{has} {advice}"
    return f"{head.name} is not {wanted.title}, as other files are.{has} {advice}. Give files of one format"


def check_format(given: str | None) -> None:
    """Raise ParameterError for a name that is no format."""
    known = (*sorted({*FILE_FORMATS.values()} - {"xml"}), "cifar10h", *all_formats())
    if given is not None and given not in known and not family(given):
        raise ParameterError(f"format is {given!r}; it can be {', '.join(map(repr, known))}.{nearest(given, known)}")


def plain_name(name: str) -> str:
    """Return the name of a file without the ending of its compression."""
    return name.removesuffix(".gz")


def origin_of(path: Path) -> Origin:
    """Return the names of a file that formats use."""
    return Origin(path.name, stem_of(path), path.resolve().parent.name)


def parts_of(path: Path, head: Head, how: Reading, in_parts: bool = True) -> Iterator[Part]:
    """Yield the content of a file in parts."""
    if head.container == "table":
        yield from _tables(path, head, how, in_parts)
        return
    records: Iterator[Any]
    if head.how == "json":
        records = json_records(path, how.max_expanded)
    elif head.how == "jsonl":
        yield from _lines(path, how)
        return
    elif head.how == "object":
        records = iter([json_object(path, how.max_expanded)])
    elif head.how == "xml":
        records = cvat_records(path, how.max_expanded)
    else:
        records = _text_lines(path, how)
    count = 0
    while batch := list(itertools.islice(records, PART_RECORDS)):
        yield Part(_objects(batch, path.name, count), range(count + 1, count + 1 + len(batch)))
        count += len(batch)


def _objects(records: list[Any], name: str, before: int) -> list[Any]:
    for number, record in enumerate(records, before + 1):
        if not isinstance(record, Mapping):
            raise FileError(f"{name}: record {number} is {type(record).__name__}, not an object. Correct or remove it")
    return records


def _lines(path: Path, how: Reading) -> Iterator[Part]:
    from .chunks import records_of

    for records, lines, _ in records_of(path, PART_BYTES, how.max_expanded):
        for record, line in zip(records, lines, strict=True):
            if not isinstance(record, Mapping):
                raise FileError(f"{path.name}:{line}: not an object of JSON. Correct or remove the line")
        yield Part(records, lines)


def _tables(path: Path, head: Head, how: Reading, in_parts: bool) -> Iterator[Part]:
    if head.how == "arrow":
        frame = read_arrow(path, how.max_expanded)
        yield Part(frame, range(1, frame.height + 1))
        return
    if head.how == "xlsx":
        book = read_workbook(path, how.max_expanded, how.sheet)
        yield Part(book.frame, range(book.row, book.row + book.frame.height))
        return
    source = Source((path,), head.how, how.delimiter, how.encoding, how.max_expanded)
    parts = (Part(chunk.frame, chunk.line.tolist()) for chunk in source.raw_chunks(PART_BYTES))
    if in_parts:
        yield from parts
    elif found := list(parts):
        whole = pl.concat([part.content for part in found], how="vertical_relaxed")
        yield Part(whole, [row for part in found for row in part.rows])


def _text_lines(path: Path, how: Reading) -> Iterator[dict[str, Any]]:
    """Yield the lines of a text file, with their numbers and the number of cells of the first."""
    with open_bytes(path, how.max_expanded) as file:
        data = file.read(MAX_TEXT_BYTES + 1)
    if len(data) > MAX_TEXT_BYTES:
        limit = MAX_TEXT_BYTES // 10**6
        raise FileError(f"{path.name} has more than {limit} MB of text without columns. Write a table")
    width, number = 0, 0
    for line in data.decode(how.encoding or "utf-8", errors="replace").splitlines():
        if line.strip():
            width = width or len(line.split())
            yield {"line": line, "number": number, "width": width}
            number += 1


def converted(format: Format, part: Part, origin: Origin, settings: Any) -> pl.DataFrame:
    """Return the judgements in a part. A record that is not among them would be lost: it raises FileError."""
    frame = format.read(part.content, part.rows, origin, settings)
    lost = set(part.rows) - set(frame["source_row"].to_list()) if len(part.rows) else set()
    if lost:
        raise FileError(
            f"{origin.name}:{min(lost)}: this record and {len(lost) - 1} other(s) were not understood as "
            f"{format.title}. Correct them, or name the columns with {option('format', 'csv')}"
        )
    return frame
