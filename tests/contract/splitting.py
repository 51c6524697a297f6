"""Answers in parts on disk for tests: any number of parts, chunks of any size, comparison with answers in memory."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.io.large import USED_ROLES, split_labels
from crowdwise.io.stored import KEPT_COLUMNS, StoredLabels
from crowdwise.limits import BASE

MEMORY = 450_000_000
TOLERANCE = 1e-9


def read_in_parts(path: Any, parts: int = 3, size: int = 1 << 16, **options: Any) -> StoredLabels:
    """Read a file with `crowdwise.read` as if it were too large, in chunks of `size` bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("crowdwise.io.too_large", lambda *_: True)
        patch.setattr("crowdwise.io.large.split_labels", partial(split_labels, parts=parts))
        patch.setattr("crowdwise.io.large.CHUNK_SHARE", size / (MEMORY - BASE))
        patch.setattr("crowdwise.io.large.BUFFER_SHARE", 3 * size / (MEMORY - BASE))
        patch.setattr("crowdwise.io.chunks.SAMPLE_PLACES", 5)
        patch.setattr("crowdwise.io.chunks.SAMPLE_ROWS", max(1, size // 20))
        found = cw.read(path, memory=MEMORY, **options)
    assert isinstance(found, StoredLabels)
    return found


def frame_in_parts(frame: pl.DataFrame, folder: Path, parts: int, **options: Any) -> StoredLabels:
    """Write a frame as Parquet and read it in parts."""
    frame.write_parquet(folder / "answers.parquet")
    return read_in_parts(folder / "answers.parquet", parts, **options)


def assert_same_answers(whole: cw.Labels, split: StoredLabels) -> None:
    """Compare answers in memory with answers in parts: ids, codes, gold, kept columns, and the record of reading."""
    loaded = split.load()
    for name in ("tasks", "workers", "classes"):
        one, two = getattr(whole, name), getattr(loaded, name)
        assert one.dtype == two.dtype, name
        assert one.to_list() == two.to_list(), name
    kept = [name for name in whole.extras.columns if name in KEPT_COLUMNS]
    assert loaded.frame().equals(whole.frame().select("task", "worker", "label", *kept))
    assert all(np.array_equal(one, two) for one, two in zip(whole.layout, loaded.layout, strict=True))
    assert np.array_equal(whole.gold, loaded.gold)
    assert (split.n_tasks, split.n_gold) == (whole.n_tasks, int((whole.gold >= 0).sum()))
    assert_same_record(whole, split, kept)


def assert_same_record(whole: cw.Labels, split: StoredLabels, kept: list[str]) -> None:
    one, two = whole.intake, split.intake
    for name in ("source", "shape", "rows_read", "rows_used", "dropped", "notes", "warnings", "options", "path"):
        assert getattr(one, name) == getattr(two, name), name
    assert {role: name for role, name in one.columns.items() if role in USED_ROLES} == two.columns
    assert [role for role in one.guessed if role in USED_ROLES] == list(two.guessed)
    assert sorted(two.extras) == sorted(kept)


def assert_same_results(one: Any, other: Any) -> None:
    """Compare two results of one model on the same answers: numbers up to 1e-9, everything else exactly."""
    for name in one.tables():
        assert_same_tables(one.tables()[name], other.tables()[name], name)
    assert one.trace.columns == other.trace.columns
    assert one.trace.height == other.trace.height
    assert np.allclose(one.trace["objective"], other.trace["objective"], rtol=TOLERANCE, atol=0)
    assert np.allclose(one.prevalence, other.prevalence, rtol=0, atol=TOLERANCE)
    every = np.arange(-1, one.answers.n_workers, dtype=np.int32)
    assert np.allclose(one.confusions(every), other.confusions(every), rtol=0, atol=TOLERANCE)
    assert one.converged == other.converged
    assert one.warnings == other.warnings
    if hasattr(one, "posterior") and hasattr(other, "posterior"):
        assert np.abs(one.posterior - other.posterior).max() <= TOLERANCE


def assert_same_tables(one: Any, other: Any, name: str) -> None:
    one, other = one.lazy().collect(), other.lazy().collect()
    assert one.schema == other.schema, name
    for column in one.columns:
        if one[column].dtype.is_float():
            assert one[column].is_null().equals(other[column].is_null()), (name, column)
            assert ((one[column] - other[column]).abs().max() or 0.0) <= TOLERANCE, (name, column)
        else:
            assert one[column].to_list() == other[column].to_list(), (name, column)
