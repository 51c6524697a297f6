"""F6: small files that expand to much. They are refused before memory is filled, by their name and with a way out."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import json
import lzma
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crowdwise as cw
from crowdwise.errors import CrowdwiseError, FileError, ParameterError
from crowdwise.io import read_table
from crowdwise.io.chunks import Source

MAX_PEAK = 400_000_000  # bytes that a refusal may take, beside what the libraries take
HEADER = b"task,worker,label\n"
READ = """
import json, resource, sys
import crowdwise as cw, crowdwise.io, polars
from crowdwise.errors import CrowdwiseError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    getattr(cw, sys.argv[1])(sys.argv[2])
    said = "read"
except CrowdwiseError as error:
    said = str(error)
print(json.dumps([said, 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)]))
"""


def refused(path: Path, function: str = "read") -> tuple[str, int]:
    """Return what a process says that reads a file, and the memory it takes for it."""
    done = subprocess.run(
        [sys.executable, "-c", READ, function, str(path)], capture_output=True, text=True, check=True, timeout=100
    )
    said, peak = json.loads(done.stdout)
    return said, peak


def test_f6_a_gz_of_204_kb_is_refused_in_little_memory(table: Any) -> None:
    path = table(gzip.compress(HEADER + b"a,b,c\n" * 35_000_000, 9), "bomb.csv.gz")
    assert 190_000 < path.stat().st_size < 330_000
    said, peak = refused(path)
    assert said.startswith("bomb.csv.gz expands to more than")
    assert "unpack it, or allow more: max_expanded='20GB'" in said
    assert peak < MAX_PEAK


def npz(shape: tuple[int, ...]) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, task=np.arange(2), x=np.zeros(shape))
    return buffer.getvalue()


def parquet(rows: int = 1, label: pl.Expr | None = None) -> bytes:
    buffer = io.BytesIO()
    label = pl.repeat("x", rows) if label is None else label
    frame = pl.select(task=pl.repeat("t", rows), worker=pl.repeat("w", rows), label=label)
    frame.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


def arrow(rows: int) -> bytes:
    buffer = io.BytesIO()
    pl.select(task=pl.repeat(1, rows), worker=pl.repeat(2, rows), label=pl.repeat(0, rows)).write_ipc(
        buffer, compression="zstd"
    )
    return buffer.getvalue()


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "rows.parquet": ("read", lambda: parquet(20_000_000)),
    "page.parquet": ("read", lambda: parquet(label=pl.lit("x" * 100_000_000))),
    "values.parquet": ("read", lambda: parquet(label=pl.repeat(0, 5_000_000).implode())),
    "rows.arrow": ("read", lambda: arrow(20_000_000)),
    "x.npz": ("read_features", lambda: npz((2, 10_000_000))),
    "features.csv.gz": ("read_features", lambda: gzip.compress(b"task,x\n" + b"1,2\n" * 10_000_000)),
    "content.csv.gz": ("read_content", lambda: gzip.compress(b"task,text\n" + b"1,2\n" * 10_000_000)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_f6_every_kind_of_file_has_a_limit(name: str, table: Any) -> None:
    function, make = BOMBS[name]
    said, peak = refused(table(make(), name), function)
    assert said.startswith(f"{name} expands to more than")
    assert ("unpack it" in said) == (Path(name).suffix == ".gz")  # the others are no archives
    assert peak < MAX_PEAK


@pytest.mark.parametrize("name", ["x.npz", "features.csv.gz", "content.csv.gz"])
def test_f6_the_limit_of_every_reader_can_be_raised(name: str, table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdwise.io.opening.FREE_BYTES", 1000)
    text = b"task,text,x\n" + b"\n" * 50_000 + b"1,2,3\n"
    path = table(npz((2, 3_000_000)) if name == "x.npz" else gzip.compress(text), name)
    read: Any = cw.read_content if name == "content.csv.gz" else cw.read_features
    with pytest.raises(FileError, match="expands to more than"):
        read(path)
    assert read(path, max_expanded="60MB")
    with pytest.raises(
        ParameterError, match="max_expanded='much' is not a size; give one, for instance max_expanded='2GB'"
    ):
        read(path, max_expanded="much")


def test_f6_the_limit_of_every_file_of_a_command_can_be_raised(
    table: Any, command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crowdwise.io.opening.FREE_BYTES", 1000)
    votes = table("task,worker,label\nt1,ann,x\nt2,ann,y\n", "votes.csv")
    pairs = table("left,right,worker,answer\nt1,t2,ann,1\n", "pairs.csv")
    about = table(gzip.compress(b"task,who,label,text\nt1,u,x,1\nt2,u,y,1\n" + b"\n" * 50_000), "about.csv.gz")
    features = table(gzip.compress(b"item,x\nt1,1\nt2,2\n" + b"\n" * 50_000), "features.csv.gz")
    (tmp_path / "new").mkdir()
    shutil.copy(about, tmp_path / "new" / "votes.csv.gz")
    for line in (
        ("aggregate", votes, "--truth", about),
        ("aggregate", votes, "--content", about, "--out", tmp_path / "out"),
        ("report", votes, "--content", about, "--out", tmp_path / "page.html"),
        ("compare", votes, "--truth", about, "--model", "majority-vote"),
        ("pairs", pairs, "--features", features, "--model", "k-means-items", "--set", "clusters=2"),
        ("watch", tmp_path / "new", "--worker", "who", "--out", tmp_path / "followed", "--once"),
    ):
        _, out, err = command(*line)
        assert "csv.gz expands" in out + err
        assert "--max-expanded 20GB" in out + err
        status, out, err = command(*line, "--max-expanded", "60KB")
        assert (status, "expands" in out + err) == (0, False), out + err


def test_f6_gold_expands_as_far_as_answers_may(table: Any, command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdwise.io.opening.FREE_BYTES", 1000)
    votes = table("task,worker,label\nt1,ann,x\n", "votes.csv")
    gold = table(gzip.compress(b"task,label\nt1,x\n" + b"\n" * 50_000), "gold.csv.gz")
    with pytest.raises(FileError, match=r"gold\.csv\.gz expands to more than"):
        cw.read(votes, gold=gold)
    assert cw.read(votes, gold=gold, max_expanded=60_000).n_gold == 1
    status, _, err = command("inspect", votes, "--gold", gold)
    assert (status, "--max-expanded 20GB" in err) == (1, True)
    assert command("inspect", votes, "--gold", gold, "--max-expanded", "60KB")[0] == 0


def padded(text: str) -> bytes:
    """Return a gzip file that expands to 50 kB more than its text."""
    return gzip.compress(text.encode() + b"\n" * 50_000)


VOTES = "task,worker,label\nt1,ann,x\nt1,bob,x\nt2,ann,y\nt2,bob,y\nt3,ann,x\nt3,bob,y\n"
PAIRS = "left,right,worker,answer\na,b,ann,same\nb,c,ann,different\na,c,bob,different\n"
FILES = {  # commands, and the file that is padded
    "content": ("report {votes} --content {file} --out {out}/page.html", "task,text\nt1,a cat\n"),
    "truth": ("compare {votes} --truth {file}", "task,label\nt1,x\nt2,y\n"),
    "features": ("learn {votes} --features {file} --out {out}", "task,a,b\nt1,1,2\nt2,3,1\nt3,1,3\n"),
    "features of pairs": ("pairs {pairs} --features {file} --out {out}", "item,a\na,1\nb,2\nc,5\n"),
    "convert": ("convert {file} --out {out}/table.csv", VOTES),
    "gold of a watched folder": ("watch {plain} --gold {file} --once --out {out}", "task,label\nt1,x\n"),
    "watched folder": ("watch {folder} --once --out {out}", VOTES),
}


@pytest.mark.parametrize("what", FILES)
def test_f6_every_command_can_raise_the_limit_of_every_file(
    what: str, table: Any, command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crowdwise.io.opening.FREE_BYTES", 1000)
    line, text = FILES[what]
    named = {"votes": table(VOTES, "votes.csv"), "pairs": table(PAIRS, "pairs.csv"), "out": tmp_path / "out"}
    named |= {name: tmp_path / name for name in ("plain", "folder", "again")}
    for name in ("plain", "folder", "out", "again"):
        named[name].mkdir()
    (named["plain"] / "votes.csv").write_text(VOTES)
    named["file"] = named["folder"] / "file.csv.gz"
    named["file"].write_bytes(padded(text))
    _, _, err = command(*line.format(**named).split())
    assert "file.csv.gz" in err
    assert "or allow more: --max-expanded 20GB" in err
    line = f"{line.format(**named | {'out': named['again']})} --max-expanded 60KB"
    status, _, err = command(*line.split())
    assert status in (0, 3), err  # 3: not converged
    assert "expands to more" not in err


def test_f6_parquet_of_other_writers_is_within_the_limit(table: Any) -> None:
    """Pages of both versions, dictionaries of nothing, lists, and files without rows."""
    whole = pa.table({"task": ["a", "b"] * 9, "none": [None] * 18, "list": [[1, 2], None, []] * 6, "x": range(18)})
    for version, packed, rows in itertools.product(("1.0", "2.0"), ("none", "snappy", "brotli"), (18, 0)):
        buffer = io.BytesIO()
        pq.write_table(whole[:rows], buffer, data_page_version=version, compression=packed, row_group_size=5)
        path = table(buffer.getvalue(), "a.parquet")
        assert read_table(path).frame.height == sum(chunk.frame.height for chunk in Source((path,)).chunks(99)) == rows


def test_f5_parquet_whose_pages_contradict_its_metadata_is_refused(table: Any) -> None:
    data = parquet(1000)
    damaged = table(data[:4] + b"\x15\x00\x15\x03" + data[8:], "a.parquet")
    for read in (cw.read, read_table, lambda path: list(Source((path,)).chunks(99))):
        with pytest.raises(
            FileError, match=r"a\.parquet is not a complete Parquet file: its headers .*Write or download"
        ):
            read(damaged)
    (damaged.parent / "b.parquet").write_bytes(b"")
    with pytest.raises(FileError, match=r"b\.parquet is not a complete Parquet file: it is no Parquet file"):
        list(Source((damaged.parent / "b.parquet",)).chunks(99))


def lying(data: bytes, name: str) -> bytes:
    """Return a zip in which a file is said to have 10 bytes, with the checksum of these."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
        info = archive.getinfo(name)
        info.file_size, info.CRC = 10, zipfile.crc32(data[:10])  # type: ignore[attr-defined]
    return buffer.getvalue()


def test_f6_a_zip_that_says_a_wrong_size_is_refused(table: Any) -> None:
    path = table(lying(b"0" * 50_000_000, "x.npy"), "x.npz")
    with pytest.raises(FileError, match=r"'x\.npy' is larger than the archive says"):
        cw.read_features(path)
    with pytest.raises(FileError, match=r"'xl/workbook\.xml' is larger than the archive says"):
        cw.read(table(lying(b"0" * 50_000_000, "xl/workbook.xml"), "a.xlsx"))


def test_f6_an_array_of_a_wrong_shape_is_refused(table: Any) -> None:
    with zipfile.ZipFile(table(b"", "x.npz"), "w") as archive:
        for name, shape in (("task", (1 << 60,)), ("x", (1 << 60, 3))):
            head = io.BytesIO()
            np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": shape})
            archive.writestr(f"{name}.npy", head.getvalue() + b"\0" * 80)
        path = Path(str(archive.filename))
    with pytest.raises(FileError, match=r"cannot read .*x\.npz as npz"):
        cw.read_features(path)


PACKED = {
    "a.bz2": (bz2.compress(HEADER), "compressed by bzip2. Unpack it"),
    "a.xz": (lzma.compress(HEADER), "compressed by xz. Unpack it"),
    "a.zst": (b"\x28\xb5\x2f\xfd0000", "compressed by zstd. Unpack it"),
    "a.7z": (b"7z\xbc\xaf\x27\x1c00", "a 7z archive. Unpack it"),
    "a.npy": (b"\x93NUMPY\x01\x00", "a NumPy array without ids. Save it with ids as npz, or as a table"),
    "a.pickle": (b"\x80\x04\x95abc", "a pickle, which can run code. Save a table"),
    "a.sqlite": (b"SQLite format 3\0", "a SQLite database. Export a table"),
    "a.pdf": (b"%PDF-1.4 abc", "a PDF. Export a table"),
}
READERS: dict[str, Callable[[Path], Any]] = {
    "answers": cw.read,
    "a table": read_table,
    "gold": lambda path: cw.read({"task": ["1"], "worker": ["a"], "label": ["x"]}, gold=read_table(path).frame),
    "features": cw.read_features,
    "content": cw.read_content,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("ending", ["csv", "parquet", "npz", "csv.gz"])
def test_f6_a_file_is_named_for_what_it_is_whatever_its_ending(kind: str, ending: str, reader: str, table: Any) -> None:
    data, what = PACKED[kind]
    path = table(gzip.compress(data) if ending == "csv.gz" else data, f"a.{ending}")
    with pytest.raises(FileError) as caught:
        READERS[reader](path)
    assert str(caught.value) == f"a.{ending} is {what}, and give that"


@pytest.mark.parametrize("reader", ["a table", "features", "content"])
def test_f6_a_zip_is_named_where_one_table_is_wanted(reader: str, table: Any) -> None:
    with zipfile.ZipFile(table(b"", "a.csv"), "w") as archive:
        archive.writestr("a.csv", HEADER)
    with pytest.raises(FileError, match=r"a\.csv is a zip file\. Unpack it, and give the table in it"):
        READERS[reader](Path(str(archive.filename)))


def test_f6_npz_is_known_by_its_content(table: Any) -> None:
    assert cw.read_features(table(npz((2, 3)), "features.bin")).x.shape == (2, 3)
    with pytest.raises(CrowdwiseError, match=r"features\.npz"):
        cw.read_features(table(b"task,x\n1,2\n", "features.npz"))


def test_f6_a_file_without_a_name_in_a_zip_is_left_out(tmp_path: Path) -> None:
    path, unnamed = tmp_path / "answers.zip", zipfile.ZipInfo("b.csv")
    unnamed.filename = "\0b.csv"  # a name ends at a NUL
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(unnamed, "task,worker,label\n1,b,y\n")
        archive.writestr("a.csv", "task,worker,label\n1,a,x\n")
    assert cw.read(path).frame().rows() == [("1", "a", "x")]
