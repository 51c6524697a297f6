"""Fuzzers of what reads files of answers. Tables of text are made from rows, so that what vanishes is seen."""

from __future__ import annotations

import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from fuzzing import Fuzzer, outcome
from mutations import ODD_VALUES, mutant

import crowdwise as cw
from crowdwise.errors import CrowdwiseError
from crowdwise.io import read_table
from crowdwise.io.chunks import Source

GOLDEN = Path(__file__).parent.parent / "formats" / "golden"
PARTS = ('"', '""', ",", ";", "\t", "\n", "\r", "\r\n", "a", "5", "é", "🙂", " ", "\0", "nail", "\ufeff", "|")
ROWS = [(f"t{n % 5}", f"w{n % 3}", "xyz"[n % 3]) for n in range(12)]
TABLE = pl.DataFrame(ROWS, schema=["task", "worker", "label"], orient="row")


class File(NamedTuple):
    """A file to read, and what must come of it."""

    path: Path
    rows: list[tuple[str, ...]] | None = None  # None: not known, as bytes were changed
    options: Mapping[str, Any] = MappingProxyType({})


# ------------------------------------------------------------------------------------------------------ delimited text


def text_of(rng: random.Random) -> str:
    """Return a text of the parts that confuse parsers."""
    return "".join(rng.choice(PARTS) for _ in range(rng.choice((0, 1, 1, 2, 3, 6))))


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
    written = [delimiter.join(quoted(cell, delimiter, rng) for cell in row) for row in rows]
    lines = [delimiter.join(names), *written]
    blank = rng.random() < 0.3
    text = end.join(line + end * (blank and rng.random() < 0.3) for line in lines) + end * (rng.random() < 0.7)
    data = text.encode(rng.choice(("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-32")))
    path, changed = folder / "answers.csv", rng.random() < 0.35
    path.write_bytes(mutant("a.bin", data, rng.randrange(10**9)) if changed else data)
    return File(path, None if changed else rows, {"delimiter": delimiter})


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
    """Chunks of any size hold the rows of the whole file. Of a damaged file, one way may refuse what the other reads:
    whether quotes inside a field are understood depends on what stands near."""
    wanted, said = whole(file), "refused"
    for size in (16, 64, 1 << 20):
        found: list[tuple[str, ...]] | None = []
        try:
            found = [row for chunk in Source((file.path,)).chunks(size) for row in cells(chunk.frame)]
            said = "answered"
        except CrowdwiseError:
            found = None
        agree = (found or None) == (wanted or None) or (file.rows is None and not (found and wanted))
        assert agree, f"chunks of {size} bytes"
    return said


# -------------------------------------------------------------------------------------------------- answers and others


def json_of(rng: random.Random) -> bytes:
    """Return records of JSON, one in two with an odd value, key or literal."""
    records: list[dict[str, Any]] = [dict(zip(("task", "worker", "label"), row, strict=True)) for row in ROWS]
    for _ in range(rng.choice((0, 1, 3))):
        records[rng.randrange(12)][rng.choice(("task", "worker", "label", "odd", "\0"))] = rng.choice(ODD_VALUES)
    lines = [json.dumps(record, ensure_ascii=rng.random() < 0.5) for record in records]
    if rng.random() < 0.3:
        raw = rng.choice(("NaN", "1e999", "9" * 40, "[" * 3000, '"\\udc00"', '1, "task": 2', "18446744073709551616"))
        lines[rng.randrange(12)] = f'{{"worker": 1, "label": 2, "task": {raw}}}'
    return "\n".join(lines).encode(errors="surrogatepass")


def as_list(lines: bytes) -> bytes:
    return b"[" + lines.replace(b"\n", b",\n") + b"]"


def in_bytes(write: Callable[[io.BytesIO], object]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def zipped(data: bytes) -> bytes:
    def write(buffer: io.BytesIO) -> None:
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("answers.csv", data)

    return in_bytes(write)


@cache
def sample(ending: str) -> bytes:
    """Return a whole file of answers."""
    text = TABLE.write_csv().encode()
    numbers, ids = np.arange(24.0).reshape(12, 2), np.arange(12)
    made: dict[str, Callable[[], bytes]] = {
        "csv": lambda: text,
        "csv.gz": lambda: gzip.compress(text),
        "zip": lambda: zipped(text),
        "parquet": lambda: in_bytes(TABLE.write_parquet),
        "arrow": lambda: in_bytes(TABLE.write_ipc),
        "npz": lambda: in_bytes(lambda buffer: np.savez_compressed(buffer, task=ids, x=numbers)),
    }
    return made[ending]()


def changed(name: str, data: bytes, rng: random.Random, folder: Path) -> Path:
    """Write a copy of a file with changed bytes; one in ten is whole."""
    path = folder / name
    kind = "a.csv" if name.endswith(".csv") else "a.bin"
    path.write_bytes(data if rng.random() < 0.1 else mutant(kind, data, rng.randrange(10**9)))
    return path


def of_samples(*endings: str) -> Callable[[random.Random, Path], Path]:
    """Return what makes damaged files of one of these formats."""

    def make(rng: random.Random, folder: Path) -> Path:
        ending = rng.choice(endings)
        return changed(f"answers.{ending}", sample(ending), rng, folder)

    return make


def damaged_json(rng: random.Random, folder: Path) -> Path:
    lines, lined = json_of(rng), rng.random() < 0.5
    name, data = ("a.jsonl", lines) if lined else ("a.json", as_list(lines))
    return changed(name, data, rng, folder) if rng.random() < 0.5 else _written(folder / name, data)


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def check_answers(answers: Any) -> None:
    """Every row that was read is used, or counted with its reason; no id and no label is empty."""
    assert answers.intake.rows_read == answers.intake.rows_used + sum(each.count for each in answers.intake.dropped)
    frame = answers.frame()
    assert sum(frame.select(frame.columns[:2]).null_count().row(0)) == 0
    if answers.kind == "labels":
        assert frame["label"].null_count() == 0
        assert (frame["label"] != "").all()


def check_read(path: Path) -> str:
    return outcome(lambda: cw.read(path), check_answers)


def check_beside(path: Path) -> str:
    """Read a file as features, as content, as gold and as jobs."""
    clicks = {"image": ["t1"], "worker": ["w1"], "x": [1.0], "y": [2.0]}
    found = [
        outcome(lambda: cw.read_features(path)),
        outcome(lambda: cw.read_content(path)),
        outcome(lambda: cw.Labels(TABLE, gold=read_table(path).frame)),
        outcome(lambda: cw.Points(clicks, jobs=read_table(path).frame)),
    ]
    return "answered" if "answered" in found else "refused"


EXPORTS = [file for file in sorted(GOLDEN.iterdir()) if file.is_file() and file.name != "expected.json"]
ASKED: tuple[dict[str, Any], ...] = (
    {}, {"sets": "joined", "anonymous": "each"}, {"sets": "split", "keep": ["test", "rejected", "prediction", "draft"]},
)  # fmt: skip


def damaged_export(rng: random.Random, folder: Path) -> File:
    """Make a damaged copy of the export of a platform."""
    golden = rng.choice(EXPORTS)
    path = _written(folder / golden.name, mutant(golden.name, golden.read_bytes(), rng.randrange(10**9)))
    return File(path, None, rng.choice(ASKED))


def check_export(file: File) -> str:
    return outcome(lambda: cw.read(file.path, **file.options), check_answers)


FUZZERS = [
    Fuzzer("delimited", delimited, check_delimited, slice=150),
    Fuzzer("chunks", delimited, check_chunks, slice=60),
    Fuzzer("json", damaged_json, check_read, slice=40),
    Fuzzer("columnar", of_samples("parquet"), check_read, slice=40),
    Fuzzer("arrow", of_samples("arrow"), check_read, slice=3),
    Fuzzer("containers", of_samples("csv", "csv.gz", "zip"), check_read, slice=40),
    Fuzzer("beside", of_samples("csv", "csv.gz", "parquet", "npz"), check_beside, slice=40),
    Fuzzer("exports", damaged_export, check_export, slice=40),
]
