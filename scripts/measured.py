"""Tables of the guide from what the studies measured.

docs/measured/NAME.json holds the parts of a study, as `crowdwise reproduce NAME --json` prints them. In
docs/guide/reproducing.md, a comment before each table says where its numbers come from. Most tables show a part:

    <!-- measured: difficulty | Table 2 | method = workers; paper = paper's accuracy:1; ours = mean ± spread:1 -->

study, beginning of the title of a part, and columns: heading = column, or column ± column, with the number of decimals.
A table that compares a paper with its study has a line per row, with single numbers in braces:

    <!-- compared: difficulty
    Table 1, accuracy of Original EM | 94.0 | {Table 1: the authors' / two-coin / test accuracy:1} | the same data
    -->

what, the paper's figure, ours, and why they differ. In braces stand the beginning of the title of a part, texts that
together are in one of its rows alone, and a column.

    python scripts/measured.py                      # fill all tables
    python scripts/measured.py difficulty out.json  # take over a new measurement, and fill all tables
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
GUIDE, MEASURED = DOCS / "guide" / "reproducing.md", DOCS / "measured"
BLOCK = re.compile(r"^(<!-- (measured|compared): ((?:(?!-->)[\s\S])*?)\s-->)\n\n(?:\|.*\n)+", re.MULTILINE)
COMPARED = ("", "paper", "ours", "why they differ")
DIGITS = 6  # significant digits that are kept


def take_over(name: str, printed: Path) -> None:
    """Keep the parts of a study, without the files that it wrote."""
    parts = json.loads(printed.read_text())["parts"]
    for part in parts:
        part["rows"] = [{key: _rounded(value) for key, value in row.items()} for row in part["rows"]]
    text = json.dumps({"study": name, "parts": parts}, indent=1, ensure_ascii=False)
    (MEASURED / f"{name}.json").write_text(f"{text}\n")


def _rounded(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def filled(text: str) -> str:
    """Return the text with all tables filled."""
    make = {"measured": measured, "compared": compared}
    out, count = BLOCK.subn(lambda found: f"{found[1]}\n\n{make[found[2]](found[3])}", text)
    assert count == len(re.findall("<!-- (measured|compared): ", text)), "a comment has no table below it"
    return out


def measured(source: str) -> str:
    """Return the table of a part that a comment describes."""
    study, title, columns = (part.strip() for part in source.split("|"))
    headings, cells = zip(*(column.split(" = ", 1) for column in columns.split("; ")), strict=True)
    return _table(headings, [[_cell(row, each) for each in cells] for row in _rows(study, title)])


def compared(source: str) -> str:
    """Return the table of a paper and its study that a comment describes."""
    study, *lines = (line.strip() for line in source.splitlines())

    def number(found: re.Match[str]) -> str:
        title, *texts, column = found[1].split(" / ")
        values = [row for row in _rows(study, title) if set(texts) <= {str(value) for value in row.values()}]
        assert len(values) == 1, f"{len(values)} rows of {title!r} have {texts}"
        return _cell(values[0], column) or "-"

    rows = [[re.sub(r"\{(.*?)\}", number, cell.strip()) for cell in line.split("|")] for line in lines]
    assert all(len(row) == len(COMPARED) for row in rows), rows
    return _table(COMPARED, rows)


def _rows(study: str, title: str) -> list[dict[str, Any]]:
    """Return the rows of the only part whose title begins with a text."""
    parts = json.loads((MEASURED / f"{study}.json").read_text())["parts"]
    (rows,) = [part["rows"] for part in parts if part["title"].startswith(title)]
    found: list[dict[str, Any]] = rows
    return found


def _table(headings: Any, rows: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in [headings, ["---"] * len(headings), *rows])


def _cell(row: dict[str, Any], source: str) -> str:
    """Return one cell: a text, or numbers with as many decimals as the source says."""
    names, _, digits = source.partition(":")
    values = [row[name] for name in names.split(" ± ")]
    if values[0] is None:
        return ""
    shown = [
        f"{value:,.{int(digits or 0)}f}" if isinstance(value, float | int) else value
        for value in values
        if value is not None
    ]
    return " ± ".join(shown)


if __name__ == "__main__":
    if sys.argv[1:]:
        take_over(sys.argv[1], Path(sys.argv[2]))
    GUIDE.write_text(filled(GUIDE.read_text()))
