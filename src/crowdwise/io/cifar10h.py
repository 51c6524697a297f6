"""The raw answers of CIFAR-10H as published: one row per trial, including attention checks.

Columns: annotator_id, trial_index, is_attn_check, true_category, chosen_category, true_label, chosen_label,
correct_guess, cifar10_test_test_idx (-99999 for attention checks), image_filename, subcategory, reaction_time and
time_elapsed (milliseconds).
"""

from __future__ import annotations

import polars as pl

from ..errors import ColumnError
from ..rating.checks import as_marks

NOTE = "raw CIFAR-10H: attention checks are used as gold"
REQUIRED_COLUMNS = (
    "annotator_id", "is_attn_check", "true_category", "chosen_category", "image_filename", "reaction_time",
)  # fmt: skip


def looks_like_cifar10h(columns: list[str]) -> bool:
    """Whether these columns include those of the published file."""
    return set(REQUIRED_COLUMNS) <= set(columns)


def cifar10h(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    """Return the columns task, worker, label, gold (of attention checks only), seconds, is_check and timestamp.

    The task is the index of the image in CIFAR-10's test set, or the file name of an attention check. The timestamp is
    the number of the trial.
    """
    missing = [name for name in REQUIRED_COLUMNS if name not in frame.columns]
    if missing:
        found = ", ".join(frame.columns)
        raise ColumnError(f"{source} is not a raw CIFAR-10H file: no column {missing[0]!r}; columns are {found}")
    check = pl.lit(as_marks(frame["is_attn_check"]))
    number = pl.col("cifar10_test_test_idx") if "cifar10_test_test_idx" in frame.columns else pl.col("image_filename")
    columns = [
        pl.when(check).then(pl.col("image_filename")).otherwise(number.cast(pl.String)).alias("task"),
        pl.col("annotator_id").alias("worker"),
        pl.col("chosen_category").alias("label"),
        pl.when(check).then(pl.col("true_category")).alias("gold"),
        (pl.col("reaction_time").cast(pl.Float64, strict=False) / 1000).alias("seconds"),
        check.alias("is_check"),
    ]
    if "trial_index" in frame.columns:
        columns.append(pl.col("trial_index").cast(pl.Int64, strict=False).alias("timestamp"))
    return frame.select(columns)
