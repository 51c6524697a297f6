"""Fuzzers of what reads delimited text. Tables are made from rows, so that what vanishes is seen."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl
from fuzzing import Fuzzer, outcome
from mutations import mutant

from crowdwise.errors import CrowdwiseError
from crowdwise.io import read_table
from crowdwise.io.chunks import Source

PARTS = ('"', '""', ",", ";", "\t", "\n", "\r", "\r\n", "a", "5", "é", "🙂", " ", "\0", "nail", "\ufeff", "|", "\x1a")
UNRULY = ('"', '"', '""', "a", "5", " ", ",", "\n", "\r\n", "\r")


class File(NamedTuple):
    """A file to read, and what must come of it."""

    path: Path
    rows: list[tuple[str, ...]] | None = None  # None: not known, as bytes were changed
    options: Mapping[str, Any] = MappingProxyType({})


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def text_of(rng: random.Random, parts: Sequence[str] = PARTS) -> str:
    """Return a text of the parts that confuse parsers."""
    return "".join(rng.choice(parts) for _ in range(rng.choice((0, 1, 1, 2, 3, 6))))


def quoted(cell: str, delimiter: str, rng: random.Random) -> str:
    """Return a cell as a writer of CSV may write it, by the rules of RFC 4180."""
    needs = any(mark in cell for mark in ('"', "\n", "\r", delimiter))
    return '"' + cell.replace('"', '""') + '"' if needs or rng.random() < 0.2 else cell


def delimited(rng: random.Random, folder: Path) -> File:
    """Make a table as a file of text, and in one case of three change some of its bytes."""
    delimiter, end = rng.choice((",", ",", ";", "\t", "|")), rng.choice(("\n", "\n", "\r\n"))
    width = rng.randint(2, 4)
    names = [f"c{n}" for n in range(width)]
    rows = [tuple(text_of(rng) for _ in names) for _ in range(rng.randint(1, 12))]
    rows = [("x", *row[1:]) if not row[0].strip() else row for row in rows]
    made = [delimiter.join(quoted(cell, delimiter, rng) for cell in row) for row in rows]
    lines = [delimiter.join(names), *made]
    blank = rng.random() < 0.3
    text = end.join(line + end * (blank and rng.random() < 0.3) for line in lines) + end * (rng.random() < 0.7)
    data = text.encode(rng.choice(("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-32")))
    changed = rng.random() < 0.35
    path = written(folder / "answers.csv", mutant("a.bin", data, rng.randrange(10**9)) if changed else data)
    return File(path, None if changed else rows, {"delimiter": delimiter})


def unruly(rng: random.Random, folder: Path) -> File:
    """Make a table in which quotes stand anywhere."""
    rows = [
        ",".join(rng.choice(("x", "x", "x", f'"{text_of(rng, UNRULY)}"', text_of(rng, UNRULY))) for _ in range(3))
        for _ in range(rng.randint(1, 8))
    ]
    return File(written(folder / "answers.csv", "\n".join(["a,b,c", *rows]).encode()))


def cells(frame: pl.DataFrame) -> list[tuple[str, ...]]:
    return [tuple(cell or "" for cell in row) for row in frame.rows()]


def whole(file: File) -> list[tuple[str, ...]] | None:
    """Return the rows of a file that is read as a whole; None if it is refused."""
    try:
        return cells(read_table(file.path).frame)
    except CrowdwiseError:
        return None


def check_delimited(file: File) -> str:
    """A table that is written by the rules is read exactly; a damaged one is read or refused."""
    said = outcome(lambda: read_table(file.path))
    if file.rows is not None:
        assert whole(file) == file.rows
    return said


def check_chunks(file: File) -> str:
    """Chunks of any size hold the rows of the whole file, or both are refused."""
    wanted = whole(file) or None
    for size in (16, 64, 1 << 20):
        found: list[tuple[str, ...]] | None = None
        with contextlib.suppress(CrowdwiseError):
            found = [row for chunk in Source((file.path,)).chunks(size) for row in cells(chunk.frame)]
        assert (found or None) == wanted, f"chunks of {size} bytes"
    return "answered" if wanted else "refused"


FAILED = {
    "quotes that the table library understood in a short piece only": b'a,b,c\nx,""5,x\nx,"a\nb",5"" 6\nx,6"" 7"",x\n',
    "an even number of quotes that ends in another line": b'a,b,c\nx,5",x\nx,6",x\n"y",y,y\n',
    "a quoted line break after a quote inside a field": b'a,b,c\nx,a"b,"x\ny",c"d\n',
    "a record of more than four chunks": b'a,b\n"' + 60 * b"long, " + b'",x\ny,z\n',
    "a NUL in the header": "a\0b,c\nx,y\n".encode("utf-16"),
}


def failed(folder: Path) -> Iterator[tuple[str, File]]:
    for number, (name, data) in enumerate(FAILED.items()):
        yield name, File(written(folder / f"{number}.csv", data))


FUZZERS = [
    Fuzzer("delimited", delimited, check_delimited, failed, slice=150),
    Fuzzer("chunks", delimited, check_chunks, failed, slice=60),
    Fuzzer("quotes", unruly, check_chunks, slice=100),
]
