"""Tables in Excel workbooks. What is read of a sheet is counted in its XML as well."""

from __future__ import annotations

import contextlib
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import IO, Any, NamedTuple

import polars as pl

from ..answers.columns import LABEL_ROLES
from ..errors import ColumnError, CrowdwiseError, EmptyDataError, FileError, ParameterError, nearest
from .opening import DAMAGED, disk_error, expanded_limit, member_sizes

PLACE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")  # of a cell
FREE_CELLS, MAX_SPARSE = 5_000_000, 50  # area of a sheet that is always read, else at most so much per cell
MAX_TITLES, MAX_IN_TITLE = 10, 2  # rows above the header of a sheet, and cells in each


class Workbook(NamedTuple):
    """A sheet of an Excel workbook as a table of text."""

    frame: pl.DataFrame
    row: int  # of the sheet, of the first row of the table
    notes: tuple[str, ...]


def read_workbook(path: Path, allowed: int | None = None, sheet: str | None = None) -> Workbook:
    """Read a sheet of an Excel workbook: the one named, or the first that has rows."""
    from python_calamine import CalamineWorkbook

    with _whole(path):
        member_sizes(path, expanded_limit(path.stat().st_size, allowed))
        with path.open("rb") as file:  # by its content, whatever its name
            book = CalamineWorkbook.from_filelike(file)
        names = book.sheet_names
        if sheet is not None and sheet not in names:
            raise ParameterError(
                f"{path.name} has no sheet {sheet!r}; sheets are {', '.join(map(repr, names))}.{nearest(sheet, names)}"
            )
        for name in names if sheet is None else [sheet]:
            if cells := _cells(path, book, name):
                others = [] if sheet is not None else [repr(each) for each in names if each != name]
                notes = [f"sheet {name!r}; not read: {', '.join(others)} (choose with sheet)"] if others else []
                return _table(cells, path.name, name, notes)
    where = "all sheets are" if sheet is None else f"sheet {sheet!r} is"
    raise EmptyDataError(f"no answers in {path.name}: {where} empty")


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[None]:
    """Turn errors about a damaged workbook into FileError."""
    from defusedxml.common import DefusedXmlException
    from python_calamine import CalamineError

    try:
        yield
    except CrowdwiseError:
        raise
    except DefusedXmlException as error:
        raise FileError(
            f"{path.name} is not a complete Excel file: it declares an entity or a document type, which may be an "
            "attack. It was not read"
        ) from error
    except (CalamineError, OSError, SyntaxError, LookupError, StopIteration, *DAMAGED) as error:
        if failure := disk_error(error):
            raise failure from None
        raise FileError(f"{path.name} is not a complete Excel file: {str(error)[:200]}. Save it again") from error


def _cells(path: Path, book: Any, sheet: str) -> list[list[str | None]]:
    """Return the cells of a sheet as text; none of a sheet that holds nothing. Raise FileError unless they are as many
    as there are in its XML."""
    area = _area(path, sheet)
    rows = book.get_sheet_by_name(sheet).to_python(skip_empty_area=False)
    cells = [[_text(cell) for cell in row] for row in rows]
    filled = [sum(cell is not None for cell in row) for row in cells]
    found = sum(count > 0 for count in filled), sum(filled)
    if found != (area.rows, area.cells):
        raise FileError(
            f"{path.name}: sheet {sheet!r} has {area.rows} rows with {area.cells} cells by its XML, but {found[0]} "
            f"with {found[1]} were read. Save it again"
        )
    return cells if area.cells else []


class Area(NamedTuple):
    """What a sheet holds, by its XML."""

    rows: int  # that hold something
    cells: int  # that hold something
    height: int  # of the area from the first cell of the sheet to the last
    width: int


def _area(path: Path, sheet: str) -> Area:
    """Count what a sheet holds. Raise FileError if its cells are far apart: all in between would be in memory."""
    with zipfile.ZipFile(path) as archive:
        parts = {name.lower(): name for name in archive.namelist()}
        with archive.open(parts[_part(archive, parts, sheet).lower()]) as file:
            found = _counted(file, _shared(archive, parts))
    if found.height * found.width > max(FREE_CELLS, MAX_SPARSE * found.cells):
        raise FileError(
            f"{path.name} has a sheet whose {found.cells} cells are spread over {found.height:,} rows and "
            f"{found.width:,} columns. Delete the cells far outside the table, and save it again"
        )
    return found


def _elements(file: IO[bytes], name: str) -> Iterator[Any]:
    """Yield the elements with a name, whatever their namespace, each as soon as it is whole."""
    from defusedxml.ElementTree import iterparse

    for _, element in iterparse(file, events=("end",), forbid_dtd=True):
        if _local(element) == name:
            yield element
            element.clear()


def _local(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _part(archive: zipfile.ZipFile, parts: Mapping[str, str], sheet: str) -> str:
    """Return the name of the file of a sheet."""
    with archive.open(parts["xl/workbook.xml"]) as file:
        known = [dict(each.attrib) for each in _elements(file, "sheet") if each.get("name") == sheet]
    link = next(value for key, value in known[0].items() if key.rpartition("}")[2] == "id")
    with archive.open(parts["xl/_rels/workbook.xml.rels"]) as file:
        target = next(str(each.get("Target")) for each in _elements(file, "Relationship") if each.get("Id") == link)
    target = target.replace("\\", "/").removeprefix("/")
    return target if target.startswith("xl/") else f"xl/{target}"


def _shared(archive: zipfile.ZipFile, parts: Mapping[str, str]) -> list[bool]:
    """Return whether each of the texts that cells share holds something."""
    if "xl/sharedstrings.xml" not in parts:
        return []
    with archive.open(parts["xl/sharedstrings.xml"]) as file:
        return [_has_text(each) for each in _elements(file, "si")]


def _has_text(element: Any) -> bool:
    """Return whether there is text in an element, other than how to pronounce it."""
    return any(
        bool(each.text) if _local(each) == "t" else _local(each) != "rPh" and _has_text(each) for each in element
    )


def _counted(file: IO[bytes], shared: Sequence[bool]) -> Area:
    rows = cells = height = width = row = 0
    for element in _elements(file, "row"):
        row, column, held = int(element.get("r") or row + 1), 0, cells
        for cell in element:
            place = PLACE.fullmatch(cell.get("r") or "")
            column = _column_number(place[1]) if place else column + 1
            height, width = max(height, int(place[2]) if place else row), max(width, column)
            cells += _holds(cell, shared)
        rows += cells > held
    return Area(rows, cells, height, width)


def _holds(cell: Any, shared: Sequence[bool]) -> bool:
    """Return whether a cell holds a value."""
    value = next((each.text for each in cell if _local(each) == "v" and each.text), None)
    if value is not None and cell.get("t") == "s":
        return shared[int(value)]
    return value is not None or any(_local(each) == "is" and _has_text(each) for each in cell)


def _column_number(letters: str) -> int:
    """Return the number of a column: 1 for A, 27 for AA."""
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
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
