"""Tables in Arrow files, as datasets of Hugging Face on disk have them, and in Excel workbooks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

import polars as pl

from ..answers.columns import LABEL_ROLES
from ..errors import ColumnError, CrowdwiseError, EmptyDataError, FileError, ParameterError, nearest
from .opening import COPY_BYTES, DAMAGED, MAX_COLUMNAR_RATIO, expanded_limit, member_sizes, too_expanded

ARROW_FILE = b"ARROW1"
CELL = re.compile(rb'<c [^>]*?\br="([A-Z]{1,3})([0-9]{1,7})"')  # of a sheet in an Excel workbook
BYTES_PER_CELL = 8  # of a table in memory, at least
SPARE_BYTES = 1 << 30  # address space of a process beyond what it reads
READ_APART = """
import resource, sys, polars
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
most = used + {spare} + 2 * int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (most, most))
if polars.{read}(open(sys.argv[1], "rb")).estimated_size() > int(sys.argv[2]):
    raise MemoryError
"""
FREE_CELLS, MAX_SPARSE = 5_000_000, 50  # area of a sheet that is always read, else at most so much per cell
MAX_TITLES, MAX_IN_TITLE = 10, 2  # rows above the header of a sheet, and cells in each
DATASET_FILES = ("dataset_info.json", "dataset_dict.json", "state.json")  # of a dataset on disk


def is_dataset(folder: Path) -> bool:
    """Return whether a folder is a dataset of Hugging Face."""
    return any((folder / name).is_file() for name in DATASET_FILES)


def dataset_files(folder: Path) -> list[Path]:
    """Return the files of a dataset of Hugging Face on disk, those of all splits."""
    found = [file for ending in ("*.arrow", "*.parquet") for file in sorted(folder.rglob(ending))]
    return [file for file in found if not file.name.startswith("cache-")]


def parquet_rows(lazy: pl.LazyFrame, size: int, name: str, allowed: int | None) -> int:
    """Return the number of rows by the metadata of a Parquet file; `size` is that of the file. Raise FileError for
    more than such a file holds, before any of them is read."""
    rows = int(lazy.select(pl.len()).collect().item())
    limit = expanded_limit(size, allowed, MAX_COLUMNAR_RATIO)
    if rows * len(lazy.collect_schema()) * BYTES_PER_CELL > limit:
        raise too_expanded(name, limit, packed=False)
    return rows


def read_arrow(path: Path, allowed: int | None = None) -> pl.DataFrame:
    """Read an Arrow file or stream; class numbers of a dataset become the names of the classes."""
    try:
        with path.open("rb") as file:
            whole = file.read(len(ARROW_FILE)) == ARROW_FILE
        about = path.stat()
        limit = expanded_limit(about.st_size, allowed, MAX_COLUMNAR_RATIO)
        _check_arrow(path, whole, about.st_size, about.st_mtime_ns, limit)
        with path.open("rb") as file:  # a name may look like a pattern
            frame = pl.read_ipc(file) if whole else pl.read_ipc_stream(file)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise FileError(
            f"{path.name} is not a complete Arrow file: {str(error).splitlines()[0][:200]}. Write or download it again"
        ) from error
    return with_class_names(frame, path)


@cache
def _check_arrow(path: Path, whole: bool, size: int, changed: int, limit: int) -> None:
    """Raise FileError for a file on which the reader aborts: a wrong length in it ends the process, so that the file is
    first read in another one, once as long as its size and time stay the same. That process imports nothing from the
    current folder, and has no more memory than the limit allows."""
    read = "read_ipc" if whole else "read_ipc_stream"
    code = READ_APART.format(read=read, spare=SPARE_BYTES)
    command = [sys.executable, "-P", "-c", code, str(path), str(limit)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:  # no processes here
        return
    if done.returncode and re.search(b"memory allocation|MemoryError|out of memory|capacity overflow", done.stderr):
        raise too_expanded(path.name, limit, packed=False)
    if done.returncode < 0:
        raise FileError(f"{path.name} is not a complete Arrow file: reading it fails. Write or download it again")


def with_class_names(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Replace the numbers of classes by their names, which stand beside the file of a dataset."""
    named = {name: names for name, names in _class_names(path).items() if name in frame.columns}
    return frame.with_columns(
        frame[name]
        .cast(pl.Int64, strict=False)
        .replace_strict(dict(enumerate(names)), default=None, return_dtype=pl.String)
        for name, names in named.items()
        if frame[name].dtype.is_integer()
    )


def _class_names(path: Path) -> dict[str, list[str]]:
    """Return the names of the classes by column, from the description of a dataset."""
    for folder in (path.parent, path.parent.parent):
        file = folder / "dataset_info.json"
        if file.is_file():
            try:
                features = json.loads(file.read_text("utf-8")).get("features") or {}
                return {
                    name: [str(each) for each in feature["names"]]
                    for name, feature in features.items()
                    if isinstance(feature, Mapping) and isinstance(feature.get("names"), list)
                }
            except (OSError, ValueError, AttributeError, RecursionError):
                return {}
    return {}


class Workbook(NamedTuple):
    """A sheet of an Excel workbook as a table of text."""

    frame: pl.DataFrame
    row: int  # of the sheet, of the first row of the table
    notes: tuple[str, ...]


def read_workbook(path: Path, allowed: int | None = None, sheet: str | None = None) -> Workbook:
    """Read a sheet of an Excel workbook: the one named, or the first that has rows."""
    from python_calamine import CalamineError, CalamineWorkbook

    _check_workbook(path, allowed)
    try:
        with path.open("rb") as file:  # by its content, whatever its name
            book = CalamineWorkbook.from_filelike(file)
        names = book.sheet_names
        if sheet is not None and sheet not in names:
            raise ParameterError(
                f"{path.name} has no sheet {sheet!r}; sheets are {', '.join(map(repr, names))}.{nearest(sheet, names)}"
            )
        for name in names if sheet is None else [sheet]:
            rows = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
            cells = [[_text(cell) for cell in row] for row in rows]
            if any(cell is not None for row in cells for cell in row):
                others = [] if sheet is not None else [repr(each) for each in names if each != name]
                notes = [f"sheet {name!r}; not read: {', '.join(others)} (choose with sheet)"] if others else []
                return _table(cells, path.name, name, notes)
    except CrowdwiseError:
        raise
    except (CalamineError, OSError, *DAMAGED) as error:
        raise FileError(f"{path.name} is not a complete Excel file: {str(error)[:200]}. Save it again") from error
    where = "all sheets are" if sheet is None else f"sheet {sheet!r} is"
    raise EmptyDataError(f"no answers in {path.name}: {where} empty")


def _check_workbook(path: Path, allowed: int | None) -> None:
    """Raise FileError for a file that expands too much, or whose cells are far apart: all cells in between would be
    held in memory."""
    try:
        with zipfile.ZipFile(path) as archive:
            member_sizes(path, expanded_limit(path.stat().st_size, allowed))
            for member in archive.infolist():
                if member.filename.startswith("xl/worksheets/") and member.filename.endswith(".xml"):
                    with archive.open(member) as file:
                        _check_extent(file, path.name)
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}. Check the name and the permissions") from error
    except DAMAGED as error:
        raise FileError(f"{path.name} is not a complete Excel file: {error}. Save it again") from error


def _check_extent(file: IO[bytes], name: str) -> None:
    """Raise FileError if the cells of a sheet cover a much larger area than they fill."""
    count, columns, rows, rest = 0, set[bytes](), set[bytes](), b""
    while data := file.read(COPY_BYTES):
        text = rest + data
        cut = text.rfind(b"<")
        rest, text = text[cut:], text[:cut]
        found = CELL.findall(text)
        count += len(found)
        columns |= {column for column, _ in found}
        rows |= {row for _, row in found[:: max(1, len(found) - 1)]}  # rows ascend: the first and the last one will do
    if not count:
        return
    width = max(_column_number(each) for each in columns) - min(_column_number(each) for each in columns) + 1
    height = max(map(int, rows)) - min(map(int, rows)) + 1
    if width * height > max(FREE_CELLS, MAX_SPARSE * count):
        raise FileError(
            f"{name} has a sheet whose {count} cells are spread over {height:,} rows and {width:,} columns. Delete the "
            "cells far outside the table, and save it again"
        )


def _column_number(letters: bytes) -> int:
    """Return the number of a column: 1 for A, 27 for AA."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


def _table(cells: list[list[str | None]], name: str, sheet: str, notes: list[str]) -> Workbook:
    """Return the rows of a sheet below its header: the first row that is no title."""
    filled = [sum(cell is not None for cell in row) for row in cells]
    title = min(MAX_IN_TITLE, 0.6 * max(filled))  # cells of a title are fewer than columns of the table
    first = next(n for n, count in enumerate(filled) if count)
    known = (count > title or _has_names(cells[n]) for n, count in enumerate(filled[: first + MAX_TITLES]))
    first = next((n for n, header in enumerate(known) if header), first)
    above = sum(count > 0 for count in filled[:first])
    if above:
        notes.append(f"{above} row(s) above the header in row {first + 1} are not read")
    width = max(n + 1 for n, cell in enumerate(cells[first]) if cell is not None)
    names = [cell or "" for cell in cells[first][:width]]
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice:
        raise ColumnError(
            f"{name}:{first + 1}: the header of sheet {sheet!r} has {twice[0]!r} more than once. Rename a column"
        )
    for number, row in enumerate(cells[first + 1 :], first + 2):
        if any(cell is not None for cell in row[width:]):
            raise FileError(
                f"{name}:{number}: sheet {sheet!r} has more cells here than row {first + 1}, which was taken as the "
                f"header ({', '.join(map(repr, names[:5]))}). Remove what is above or beside the table"
            )
    rows = cells[first + 1 :]
    frame = pl.DataFrame([pl.Series(each, [row[n] for row in rows], pl.String) for n, each in enumerate(names)])
    return Workbook(frame, first + 2, tuple(notes))


def _has_names(row: list[str | None]) -> bool:
    """Return whether a row has a common name of a column."""
    cells = [cell for cell in row if cell is not None]
    return any(LABEL_ROLES.guess(role, cells) for role in LABEL_ROLES.names)


def _text(cell: Any) -> str | None:
    """Return a cell as text: whole numbers without decimals, times in ISO 8601; None for an empty cell."""
    if cell is None or cell == "":
        return None
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, (datetime, date, time)):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return str(cell.total_seconds())
    return str(cell)
