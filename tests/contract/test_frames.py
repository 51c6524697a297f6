"""Frames of other engines: DuckDB relations, arrow tables, datasets and readers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import crowdwise as cw

FRAME = pl.DataFrame(
    {
        "task": [n // 4 for n in range(40)],
        "worker": [f"w{n % 5}" for n in range(40)],
        "label": [None if n == 7 else "ab"[n * n % 3 % 2] for n in range(40)],
    }
)


def duckdb_relation(folder: Path) -> Any:
    duckdb = pytest.importorskip("duckdb")
    FRAME.write_parquet(folder / "answers.parquet")
    return duckdb.connect().sql(f"select * from '{folder}/answers.parquet'")


def arrow_table(folder: Path) -> Any:
    pytest.importorskip("pyarrow")
    return FRAME.to_arrow()


def arrow_reader(folder: Path) -> Any:
    return arrow_table(folder).to_reader(max_chunksize=7)


def arrow_dataset(folder: Path) -> Any:
    dataset = pytest.importorskip("pyarrow.dataset")
    for number in range(2):
        FRAME[20 * number : 20 * (number + 1)].write_parquet(folder / f"{number}.parquet")
    return dataset.dataset(folder, format="parquet")


def lazy_frame(folder: Path) -> Any:
    return FRAME.lazy()


MAKE = [duckdb_relation, arrow_table, arrow_reader, arrow_dataset, lazy_frame]


@pytest.mark.parametrize("make", MAKE)
def test_frames_of_other_engines_are_answers(make: Callable[[Path], Any], tmp_path: Path) -> None:
    expected = cw.Labels(FRAME)
    assert cw.Labels(make(tmp_path)).frame().equals(expected.frame())
    read = cw.read(make(tmp_path))
    assert read.frame().equals(expected.frame())
    assert (read.intake.rows_read, [each.count for each in read.intake.dropped]) == (40, [1])
    named = cw.read(make(tmp_path), gold={3: "a"}, missing=["b"])
    assert named.classes.to_list() == ["a"]
    assert int((named.gold >= 0).sum()) == 1


@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize("options", [{}, {"gold": {3: "a"}}], ids=["plain", "gold"])
def test_frames_of_other_engines_are_aggregated(
    make: Callable[[Path], Any], options: dict[str, Any], tmp_path: Path
) -> None:
    result = cw.aggregate(make(tmp_path), **options)
    assert result.labels.equals(cw.aggregate(FRAME, **options).labels)
