"""Tables in Arrow files, as datasets of Hugging Face on disk have them, and in Excel workbooks."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from ..errors import EmptyDataError, FileError
from .opening import DAMAGED, expanded_limit, too_expanded

ARROW_FILE = b"ARROW1"
DATASET_FILES = ("dataset_info.json", "dataset_dict.json", "state.json")  # of a dataset on disk


def is_dataset(folder: Path) -> bool:
    """Return whether a folder is a dataset of Hugging Face."""
    return any((folder / name).is_file() for name in DATASET_FILES)


def dataset_files(folder: Path) -> list[Path]:
    """Return the files of a dataset of Hugging Face on disk, those of all splits."""
    found = [file for ending in ("*.arrow", "*.parquet") for file in sorted(folder.rglob(ending))]
    return [file for file in found if not file.name.startswith("cache-")]


def read_arrow(path: Path) -> pl.DataFrame:
    """Read an Arrow file or stream; class numbers of a dataset become the names of the classes."""
    try:
        with path.open("rb") as file:
            whole = file.read(len(ARROW_FILE)) == ARROW_FILE
        about = path.stat()
        _check_arrow(path, whole, about.st_size, about.st_mtime_ns)
        with path.open("rb") as file:  # a name may look like a pattern
            frame = pl.read_ipc(file) if whole else pl.read_ipc_stream(file)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise FileError(
            f"{path.name} is not a complete Arrow file: {str(error).splitlines()[0][:200]}. Write or download it again"
        ) from error
    return with_class_names(frame, path)


@cache
def _check_arrow(path: Path, whole: bool, size: int, changed: int) -> None:
    """Raise FileError for a file on which the reader aborts: a wrong length in it ends the process, so that the file is
    first read in another one, once as long as its size and time stay the same. That process imports nothing from the
    current folder."""
    read = "read_ipc" if whole else "read_ipc_stream"
    code = f"import sys, polars; polars.{read}(open(sys.argv[1], 'rb'))"
    try:
        done = subprocess.run([sys.executable, "-P", "-c", code, str(path)], capture_output=True, check=False)
    except OSError:  # no processes here
        return
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


def read_workbook(path: Path, allowed: int | None = None) -> pl.DataFrame:
    """Read the first sheet of an Excel workbook that has rows, as a table of text."""
    from python_calamine import CalamineError, CalamineWorkbook

    _check_workbook(path, allowed)
    try:
        book = CalamineWorkbook.from_path(str(path))
        for name in book.sheet_names:
            rows = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
            cells = [[_text(cell) for cell in row] for row in rows]
            filled = [n for n, row in enumerate(cells) if any(cell is not None for cell in row)]
            if filled:
                return _table(cells[filled[0] :], path.name, name)
    except (CalamineError, OSError, ValueError, *DAMAGED) as error:
        raise FileError(f"{path.name} is not a complete Excel file: {str(error)[:200]}. Save it again") from error
    raise EmptyDataError(f"no answers in {path.name}: all sheets are empty")


def _check_workbook(path: Path, allowed: int | None) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}. Check the name and the permissions") from error
    except DAMAGED as error:
        raise FileError(f"{path.name} is not a complete Excel file: {error}. Save it again") from error
    limit = expanded_limit(path.stat().st_size, allowed)
    if size > limit:
        raise too_expanded(path.name, limit)


def _table(cells: list[list[str | None]], name: str, sheet: str) -> pl.DataFrame:
    width = max((n + 1 for n, cell in enumerate(cells[0]) if cell is not None), default=0)
    names = [cell or "" for cell in cells[0][:width]]
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice:
        from ..errors import ColumnError

        raise ColumnError(f"{name}: the first row of sheet {sheet!r} has {twice[0]!r} more than once. Rename a column")
    for number, row in enumerate(cells[1:], 2):
        if any(cell is not None for cell in row[width:]):
            raise FileError(
                f"{name}:{number}: sheet {sheet!r} has more cells here than the {width} columns of its header"
            )
    return pl.DataFrame([pl.Series(each, [row[n] for row in cells[1:]], pl.String) for n, each in enumerate(names)])


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
