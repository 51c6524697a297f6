"""Features from a file: a table with ids in a column `task` (or the first), or npz with arrays `x` and `task`."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..answers.arguments import checked
from ..answers.coding import to_numbers, to_text
from ..errors import FeatureError, FileError, ParameterError, nearest, option
from ..kernels.layout import Floats
from ..limits import enough_memory
from .opening import DAMAGED, MAX_COLUMNAR_RATIO, check_start, expanded_limit, first_bytes, member_sizes
from .tables import Reading, file_name, read_table, size_of

ID_NAMES = ("task", "item", "image")


class Features(NamedTuple):
    """Features of tasks: one row of numbers per task."""

    tasks: pl.Series
    x: Floats  # (n, d), or (n, ...) from npz


@enough_memory("reading features")
@checked
def read_features(
    path: Any,
    like: pl.Series | None = None,
    *,
    array: str | None = None,
    max_expanded: str | float | None = None,
) -> Features:
    """Read features from a table (Parquet, CSV, ...) or from npz, where `array` names the array (default `x`).

    `like` are the tasks of the answers: if they are text, the ids are converted to text. Empty cells become NaN.
    `max_expanded` ("2GB") allows a compressed file to expand to more than 100 times its size.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "features.csv"
    >>> _ = file.write_text("task,height,width\\n001,1.5,2\\n002,1,4\\n")
    >>> read_features(file).x.tolist()
    [[1.5, 2.0], [1.0, 4.0]]
    """
    file, allowed = file_name(path), size_of("max_expanded", max_expanded)
    tasks, x = _npz(file, array, allowed) if _is_npz(file) else _table(path, array, allowed)
    if like is not None and not isinstance(like, pl.Series):
        raise ParameterError(f"like is a {type(like).__name__}; give the tasks of the answers: answers.tasks")
    if like is not None and like.dtype == pl.String and tasks.dtype != pl.String:
        tasks = tasks.cast(pl.String)
    return Features(tasks.alias("task"), x)


def _is_npz(file: Path) -> bool:
    """Return whether a file is npz: a zip of arrays, or what is named so and is no other known file."""
    if file.suffix == ".npz":
        check_start(first_bytes(file, 512), file.name)
        return True
    if not file.is_file():  # a pipe is read once
        return False
    try:
        with zipfile.ZipFile(file) as archive:
            return any(name.endswith(".npy") for name in archive.namelist())
    except (OSError, *DAMAGED):
        return False


def _table(path: str | Path, array: str | None, allowed: int | None) -> tuple[pl.Series, Floats]:
    if array is not None:
        raise FeatureError(f"{path} is a table and has no array {array!r}; {option('array')} is for npz files")
    frame = read_table(path, Reading(max_expanded=allowed)).frame
    name = Path(path).name
    ids = next((column for column in frame.columns if column.strip().lower() in ID_NAMES), frame.columns[0])
    columns = [column for column in frame.columns if column != ids]
    if not columns:
        raise FeatureError(f"{name} has only one column; it needs a column of tasks and one column per feature")
    if not ids.strip() or ids.startswith("Unnamed"):
        raise FeatureError(
            f"the first column of {name} has no name, so it may hold row numbers. Name the column of tasks 'task', "
            "and remove row numbers"
        )
    if not frame.columns[0].strip() or frame.columns[0].startswith("Unnamed"):
        columns.remove(frame.columns[0])  # row numbers
    numbers = pl.DataFrame({column: to_numbers(frame[column]) for column in columns})
    for column in columns:
        lost = numbers[column].is_null() & frame[column].is_not_null()
        if lost.any():
            lost &= ~to_text(frame[column]).str.strip_chars().is_in(["", "NaN", "nan", "NA"])
        if lost.any():
            value = frame[column].filter(lost)[0]
            raise FeatureError(
                f"{name}: column {column!r} has {int(lost.sum())} value(s) that are not numbers, for instance "
                f"{value!r}. Remove the column, or convert it to numbers"
            )
    return frame[ids], numbers.fill_null(np.nan).to_numpy()


def _npz(path: Path, array: str | None, allowed: int | None) -> tuple[pl.Series, Floats]:
    try:
        member_sizes(path, expanded_limit(path.stat().st_size, allowed, MAX_COLUMNAR_RATIO))  # zeros are many
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = dict(file)
    except (OSError, TypeError, KeyError, MemoryError, SyntaxError, OverflowError, *DAMAGED) as error:
        raise FileError(f"cannot read {path} as npz: {error}. Write it again with plain arrays") from error
    return _arrays(path, arrays, array)


def _arrays(path: Path, found: dict[str, Any], array: str | None) -> tuple[pl.Series, Floats]:
    ids = next((name for name in ID_NAMES if name in found), None)
    others = [name for name in found if name != ids]
    if ids is None:
        raise FeatureError(
            f"{path.name} has no array {' or '.join(ID_NAMES)}, only {', '.join(found)}. Add the ids of the rows"
        )
    wanted = array or ("x" if "x" in found or len(others) != 1 else others[0])
    if wanted not in others:
        raise FeatureError(
            f"{path.name} has no array {wanted!r}; it has {', '.join(others)}. Name one with {option('array')}"
            f".{nearest(wanted, others)}"
        )
    x, tasks = found[wanted], np.atleast_1d(found[ids])
    if x.ndim == 0 or len(x) != len(tasks) or x.dtype.kind not in "fiub":
        raise FeatureError(
            f"{path.name}: {wanted!r} is {x.dtype} of shape {x.shape}; it must hold numbers, one row for each of "
            f"the {len(tasks)} tasks"
        )
    return pl.Series(tasks.tolist()), x if x.ndim > 1 else x[:, None]
