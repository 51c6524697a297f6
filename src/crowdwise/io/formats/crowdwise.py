"""Crowdwise's own table of judgements, as `crowdwise convert` writes it: CSV, JSONL or Parquet."""

from __future__ import annotations

import polars as pl

from . import register
from .base import ANSWERED, COLUMNS, Head, Origin, Settings, TableFormat


@register
class Judgements(TableFormat):
    """One row per judgement, whatever the platform it came from."""

    name = "crowdwise"
    title = "Crowdwise (converted)"
    files = "CSV, JSONL and Parquet of crowdwise convert"
    containers = ("table", "records")
    kinds = ANSWERED
    statuses = {
        "skipped": "skipped", "rejected": "rejected", "draft": "draft", "expired": "expired", "test": "test question",
        "gold": "known answer", "prediction": "prediction",
    }  # fmt: skip
    fields = {"task": "task", "worker": "worker", "label": "label"}
    unit = "pixels"
    kept = ("probabilities",)

    def recognise(self, head: Head) -> bool:
        return head.has("task", "worker", "question", "status", "source_row")

    def convert(self, frame: pl.DataFrame, origin: Origin, settings: Settings) -> pl.DataFrame:
        return frame.select(name for name in COLUMNS if name in frame.columns)
