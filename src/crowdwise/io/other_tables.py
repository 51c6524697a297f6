"""Tables in Arrow files, as datasets of Hugging Face on disk have them, and the size of those in Parquet."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from ..errors import FileError
from .opening import MAX_COLUMNAR_RATIO, expanded_limit, too_expanded

ARROW_FILE = b"ARROW1"
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
DATASET_FILES = ("dataset_info.json", "dataset_dict.json", "state.json")  # of a dataset on disk


def is_dataset(folder: Path) -> bool:
    """Return whether a folder is a dataset of Hugging Face."""
    return any((folder / name).is_file() for name in DATASET_FILES)


def dataset_files(folder: Path) -> list[Path]:
    """Return the files of a dataset of Hugging Face on disk, those of all splits."""
    found = [file for ending in ("*.arrow", "*.parquet") for file in sorted(folder.rglob(ending))]
    return [file for file in found if not file.name.startswith("cache-")]


def parquet_rows(data: Any, name: str, allowed: int | None) -> int:
    """Return the number of rows by the headers of a Parquet file, given as bytes or as `FileBytes`. Raise FileError
    if they claim more than such a file holds, before any page is unpacked; what they claim, the reader holds to."""
    from ..result import parquet  # loads results

    try:
        claims = parquet.claims(data)
    except ValueError as error:
        raise FileError(f"{name} is not a complete Parquet file: {error}. Write or download it again") from error
    limit = expanded_limit(len(data), allowed, MAX_COLUMNAR_RATIO)
    if max(claims.unpacked, claims.values * BYTES_PER_CELL) > limit:
        raise too_expanded(name, limit, packed=False)
    return claims.rows


def check_parquet(path: Path, allowed: int | None) -> int:
    """Return the number of rows by the headers of a Parquet file on disk, as `parquet_rows` does."""
    about = path.stat()
    return _check_parquet(path, allowed, about.st_size, about.st_mtime_ns)


@cache
def _check_parquet(path: Path, allowed: int | None, size: int, changed: int) -> int:
    from ..result import parquet  # loads results

    with path.open("rb") as file:
        return parquet_rows(parquet.FileBytes(file), path.name, allowed)


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
