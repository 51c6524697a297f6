"""The table of formats in docs/formats/README.md, from what every format says of itself.

It stands between two comments, and has a line per format: its name and page, its files, the kinds of answers, the
statuses of rows that are not votes in the platform's own words, the unit of points, and the commands that write it.

    python scripts/formats.py  # fill the table
"""

from __future__ import annotations

import re
from pathlib import Path

from crowdwise.io.formats import all_formats
from crowdwise.io.formats.base import LABELS, PAIRS, POINTS, Format

PAGES = Path(__file__).resolve().parents[1] / "docs" / "formats"
INDEX = PAGES / "README.md"
BLOCK = re.compile(r"(<!-- matrix -->\n\n).*?(<!-- end of matrix -->)", re.DOTALL)
HEADINGS = ("`--format`", "platform", "files", "answers", "left out as", "unit of points", "written by")
KINDS = {LABELS: "labels", POINTS: "clicks", PAIRS: "pairs"}  # as the documentation calls them


def page(format: Format) -> Path:
    """Return the page about a format: that with its name, or the beginning of its name, else that of its module."""
    words = format.name.split("-")
    names = ["-".join(words[:count]) for count in range(len(words), 0, -1)]
    module = type(format).__module__.rpartition(".")[2].replace("_", "-")
    return next((file for name in names if (file := PAGES / f"{name}.md").exists()), PAGES / f"{module}.md")


def matrix() -> str:
    """Return the table, with a line per format."""
    lines = [HEADINGS, ("---",) * len(HEADINGS), *map(_line, all_formats().values())]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _line(format: Format) -> tuple[str, ...]:
    aside = [f"{status} ({words})" if words != status else status for status, words in format.statuses.items()]
    kinds = ", ".join(KINDS[kind] for kind in format.kinds)
    written = [name for name, ending in (("convert", format.converted), ("export", format.returned)) if ending]
    about = (f"[{format.name}]({page(format).name})", format.title, format.files)
    return tuple(
        cell.replace("|", r"\|")
        for cell in (*about, kinds, "; ".join(aside), format.unit, ", ".join(f"`{each}`" for each in written))
    )


def filled(text: str) -> str:
    """Return the text with the table of now."""
    out, count = BLOCK.subn(lambda found: f"{found[1]}{matrix()}\n{found[2]}", text)
    assert count == 1, "the text has not one place for the table"
    return out


if __name__ == "__main__":
    INDEX.write_text(filled(INDEX.read_text()))
