"""Parts on disk that an earlier run left, damaged or crafted: used again if they are sound, else made again."""

from __future__ import annotations

import functools
import io
import json
import random
from contextlib import suppress
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import polars as pl
from fuzz_load import damage_bytes, damage_plain, damage_table
from fuzzing import Fuzzer, outcome

import crowdwise as cw
from crowdwise.io.chunks import Source
from crowdwise.io.large import split_labels
from crowdwise.io.stored import digest_of
from crowdwise.kernels.layout import Layout

CELLS = (-1, 0, 1, 2, 5, 127, 2**31 - 1, -(2**31))
TYPES = ("int8", "int64", "uint32", "float64", "bool", "U3")


@functools.cache
def table() -> bytes:
    answers = cw.simulate.crowd("confusion", tasks=14, workers=5, classes=3, per_task=4, seed=3).answers
    return answers.frame().write_csv().encode()


def read(folder: Path) -> Any:
    """Read the table in parts, again if its parts are there."""
    return split_labels(Source((folder / "answers.csv",), "csv", None, None, None), None, folder / "parts", {}, parts=2)


def damaged(rng: random.Random, folder: Path) -> Path:
    """Write a table and its parts, and damage some files of the parts."""
    (folder / "answers.csv").write_bytes(table())
    read(folder)
    files = sorted(path for path in (folder / "parts").rglob("*") if path.is_file() and path.name != "lock")
    touched = {damage(rng, rng.choice(files)) for _ in range(rng.choice((1, 1, 1, 2, 3)))}
    if rng.random() < 0.7:
        for part in {path.parent for path in touched if path.suffix in (".npy", ".arrow")}:
            make_right(part)
    return folder


def damage(rng: random.Random, path: Path) -> Path:
    """Damage a file by what it holds, or remove it, or put a folder in its place."""
    if not path.is_file():
        return path
    data, what = path.read_bytes(), rng.random()
    if what < 0.05:
        path.unlink()
        if rng.random() < 0.3:
            path.mkdir()
    elif what < 0.3:
        path.write_bytes(damage_bytes(rng, data))
    elif path.suffix == ".npy":
        with suppress(OSError, ValueError, EOFError, TokenError):  # it is damaged already
            np.save(path, damage_array(rng, np.load(path)))
    elif path.suffix == ".json":
        with suppress(ValueError, AttributeError, IndexError):
            values = json.loads(data)
            damage_plain(rng, values)
            path.write_text(json.dumps(values), encoding="utf-8")
    else:
        path.write_bytes(as_arrow(rng, data))
    return path


def damage_array(rng: random.Random, array: Any) -> Any:
    """Change the values, the type or the shape of an array."""
    what, array = rng.random(), np.array(array)
    if what < 0.6 and array.size:
        array.flat[rng.randrange(array.size)] = np.int64(rng.choice(CELLS)).astype(array.dtype)
    elif what < 0.7:
        array = array.astype(rng.choice(TYPES))
    elif what < 0.85:
        array = array[: rng.randrange(len(array) + 1)] if rng.random() < 0.7 else np.append(array, array[:1])
    else:
        array = rng.choice((array[::-1], array[None], np.zeros(0, array.dtype), np.array(3)))
    return array


def as_arrow(rng: random.Random, data: bytes) -> bytes:
    """Change a table, and write it as an Arrow file."""
    parquet, out = io.BytesIO(), io.BytesIO()
    try:
        pl.read_ipc(data).write_parquet(parquet)
        pl.read_parquet(damage_table(rng, parquet.getvalue())).write_ipc(out)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return damage_bytes(rng, data)
    return out.getvalue()


def make_right(part: Path) -> None:
    """Make the digest of a part right, as anyone can."""
    with suppress(OSError, ValueError, TypeError, EOFError, TokenError):
        about = json.loads((part / "part.json").read_text(encoding="utf-8"))
        about["digest"] = digest_of(
            {name: np.load(part / f"{name}.npy") for name in (*Layout._fields[1:], "gold")}, part
        )
        (part / "part.json").write_text(json.dumps(about), encoding="utf-8")


def works(folder: Path) -> str:
    """Read the parts, and fit and save what was read."""

    def used(answers: Any) -> None:
        def fit() -> object:
            result = cw.aggregate(answers, "dawid-skene", max_iter=5)
            tables = [each.collect() for each in (result.labels, result.tasks)]
            assert {each.height for each in tables} == {answers.n_tasks}
            return cw.load(result.save(folder / "out")).workers

        outcome(fit)

    return outcome(lambda: read(folder), used)


FUZZERS = [Fuzzer("parts", damaged, works, slice=6)]
