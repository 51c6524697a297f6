"""Fuzzers of what reads files of answers: records of JSON, Parquet, Arrow, compressed files and features."""

from __future__ import annotations

import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from fuzz_text import File, written
from fuzzing import Fuzzer, outcome
from mutations import ODD_VALUES, mutant

import crowdwise as cw
from crowdwise.io import read_table

ROWS = [(f"t{n % 5}", f"w{n % 3}", "xyz"[n % 3]) for n in range(12)]
TABLE = pl.DataFrame(ROWS, schema=["task", "worker", "label"], orient="row")


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


# Values that a column of ids or labels may have, of one type.
VALUES: tuple[tuple[Any, ...], ...] = (
    ("a", "b", "A", "a ", "é", "🙂", "NA", "1", "01", 'x "y", z'), (1, 2, 3, -(2**40)), (0.5, 1.0, 2.25), (True, False),
    (date(2024, 5, 13), date(1, 1, 1)), (datetime(2024, 5, 13, 21, 3), datetime(9999, 12, 31)),
    (timedelta(seconds=1), timedelta(0)), (Decimal("0.10"), Decimal("2")), (b"a", b"b"), (b"\xff", b"a"),
    (None,), (["a"], ["a", "b"]), ({"a": 1},),
)  # fmt: skip


def table_of(rng: random.Random) -> pl.DataFrame:
    """Return a table of answers, one in two with columns of other types, gaps and further columns."""
    if rng.random() < 0.5:
        return TABLE
    columns: dict[str, Any] = {name: TABLE[name] for name in TABLE.columns}
    for name in rng.sample(["task", "worker", "label", "extra", "timestamp", "é"], rng.choice((1, 1, 2))):
        values = rng.choice(VALUES if rng.random() < 0.3 else VALUES[:6])
        gap = 0.2 if rng.random() < 0.2 else 0.0
        columns[name] = [None if rng.random() < gap else rng.choice(values) for _ in range(12)]
    if rng.random() < 0.2:
        columns["worker"] = TABLE["worker"].cast(pl.Categorical)
    return pl.DataFrame(columns)


def sample(ending: str, table: pl.DataFrame) -> bytes:
    """Return a whole file of answers."""
    plain = pl.DataFrame([[str(cell) for cell in row] for row in table.rows()], table.columns, orient="row")
    text = plain.write_csv().encode()
    numbers, ids = np.arange(24.0).reshape(12, 2), np.arange(12)
    made: dict[str, Callable[[], bytes]] = {
        "csv": lambda: text,
        "csv.gz": lambda: gzip.compress(text),
        "zip": lambda: zipped(text),
        "parquet": lambda: in_bytes(table.write_parquet),
        "arrow": lambda: in_bytes(table.write_ipc),
        "npz": lambda: in_bytes(lambda buffer: np.savez_compressed(buffer, task=ids, x=numbers)),
    }
    return made[ending]()


def changed(name: str, data: bytes, rng: random.Random, folder: Path) -> Path:
    """Write a copy of a file, half of the time with changed bytes."""
    path = folder / name
    kind = "a.csv" if name.endswith(".csv") else "a.bin"
    path.write_bytes(data if rng.random() < 0.5 else mutant(kind, data, rng.randrange(10**9)))
    return path


def of_samples(*endings: str) -> Callable[[random.Random, Path], Path]:
    """Return what makes damaged files of one of these formats."""

    def make(rng: random.Random, folder: Path) -> Path:
        ending = rng.choice(endings)
        return changed(f"answers.{ending}", sample(ending, table_of(rng)), rng, folder)

    return make


def damaged_json(rng: random.Random, folder: Path) -> Path:
    lines, lined = json_of(rng), rng.random() < 0.5
    name, data = ("a.jsonl", lines) if lined else ("a.json", as_list(lines))
    return changed(name, data, rng, folder) if rng.random() < 0.5 else written(folder / name, data)


def check_answers(answers: Any) -> None:
    """Every row that was read is used, or counted with its reason; no id and no label is empty."""
    assert answers.intake.rows_read == answers.intake.rows_used + sum(each.count for each in answers.intake.dropped)
    frame = answers.frame()
    assert sum(frame.select(frame.columns[:2]).null_count().row(0)) == 0
    if answers.kind == "labels":
        assert frame["label"].null_count() == 0
        assert "" not in frame["label"].to_list()
    elif answers.kind == "points":
        assert frame.select(pl.all_horizontal(pl.col("x", "y").is_finite().all())).item()


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


def check_options(file: File) -> str:
    return outcome(lambda: cw.read(file.path, **file.options), check_answers)


NAMES = ("task", "worker", "label", "answer", "item", "text", "verdict", "gold", "label_other", "Label", " label", "")


def other_columns(rng: random.Random, folder: Path) -> File:
    """Make a table whose columns are named at random, and name some of them as tasks, workers and labels."""
    names = rng.sample(NAMES, rng.randint(3, 6))
    if rng.random() < 0.6:  # in another order, beside others
        names = list(
            {"task": 0, "worker": 0, rng.choice(("label", "answer", "verdict")): 0} | dict.fromkeys(names[:3], 0)
        )
        rng.shuffle(names)
    rows = [[rng.choice("ab1") for _ in names] for _ in range(6)]
    path = written(folder / "answers.csv", "\n".join(",".join(row) for row in [names, *rows]).encode())
    roles = rng.sample(("task", "worker", "label", "gold"), rng.choice((0, 0, 1, 3)))
    columns = rng.sample(names, len(roles)) if rng.random() < 0.8 else rng.choices(names, k=len(roles))
    return File(path, None, dict(zip(roles, columns, strict=True)) | {"duplicates": "first"})


def failed_columns(folder: Path) -> Iterator[tuple[str, File]]:
    data = b"task,worker,verdict,label\nt1,ann,cat,x\n"
    yield "a column called label beside the labels", File(written(folder / "a.csv", data), None, {"label": "verdict"})
    data = b"item,label_other,Label,label,text,worker\na,a,a,b,a,1\n"
    yield "a column called label_other as well", File(written(folder / "b.csv", data))


FUZZERS = [
    Fuzzer("json", damaged_json, check_read, slice=40),
    Fuzzer("columnar", of_samples("parquet"), check_read, slice=40),
    Fuzzer("arrow", of_samples("arrow"), check_read, slice=3),
    Fuzzer("containers", of_samples("csv", "csv.gz", "zip"), check_read, slice=40),
    Fuzzer("columns", other_columns, check_options, failed_columns, slice=30),
    Fuzzer("beside", of_samples("csv", "csv.gz", "parquet", "npz"), check_beside, slice=40),
]
