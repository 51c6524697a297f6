"""Results for people and programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..answers import Labels
from ..report import summarise
from ..result import Result
from .say import clean, table, words


def inspected_dict(answers: Labels) -> dict[str, Any]:
    """What was understood, as plain values."""
    labels = _label_counts(answers)
    return {
        **answers.intake.as_dict(),
        "answers": answers.n_answers,
        "tasks": answers.n_tasks,
        "workers": answers.n_workers,
        "labels": [{"label": name, "answers": count} for name, count in labels],
        "answers_per_task": _spread(answers.answers_per_task),
        "answers_per_worker": _spread(answers.answers_per_worker),
        "gold": int((answers.gold >= 0).sum()),
    }


def inspected(answers: Labels) -> None:
    """What was understood, for a person."""
    intake, said = answers.intake, inspected_dict(answers)
    roles = ", ".join(f"{role} = {column!r}" for role, column in intake.columns.items())
    print(clean(f"{intake.source}: {intake.shape} table, {intake.rows_read} rows read, {intake.rows_used} used"))
    print(
        clean(
            f"columns: {roles}{' (guessed by name; say --task, --worker, --label otherwise)' if intake.guessed else ''}"
        )
    )
    for note in intake.notes:
        print(clean(note))
    if intake.extras:
        print(clean(f"further columns kept: {', '.join(intake.extras)}"))
    print(
        f"{answers.n_answers} answers, {answers.n_tasks} tasks, {answers.n_workers} workers, {answers.n_classes} labels"
    )
    for what in ("task", "worker"):
        low, middle, high = said[f"answers_per_{what}"].values()
        print(f"answers a {what}: {low} to {high}, median {middle:g}")
    table(["label", "answers"], _label_counts(answers)[:20])
    if answers.n_classes > 20:
        print(f"... and {answers.n_classes - 20} more labels")
    for dropped in intake.dropped:
        print(clean(f"dropped {dropped.count}: {dropped.reason}"))
        for row in dropped.examples:
            print(clean(f"    {row}"))
    if not intake.dropped:
        print("nothing was dropped")
    for warning in intake.warnings:
        print(clean(f"warning: {warning}"))


def _label_counts(answers: Labels) -> list[tuple[Any, int]]:
    counts = np.bincount(answers.layout.row_label, np.diff(answers.layout.row_ptr), minlength=answers.n_classes)
    return sorted(zip(answers.classes.to_list(), map(int, counts), strict=True), key=lambda pair: -pair[1])


def _spread(counts: Any) -> dict[str, float]:
    return {"low": int(counts.min()), "median": float(np.median(counts)), "high": int(counts.max())}


def aggregated(result: Result, out: Path | None, as_json: bool) -> None:
    """What came of a fit: JSON, or words and, without a folder, the labels themselves."""
    summary = summarise(result)
    if as_json:
        files = {} if out is None else {"out": str(out)}
        print(json.dumps({**summary.as_dict(), **files}, indent=2, default=str, ensure_ascii=False))
        return
    words(*summary.lines())
    if out is None:
        sys.stdout.buffer.write(result.labels.write_csv().encode())
        sys.stdout.flush()
    else:
        words(f"results are in {out}: labels.csv, workers.csv, tasks.csv, result.crowdwise")


def compared(rows: pl.DataFrame, answers: Labels) -> None:
    """The comparison as a table."""
    print(clean(repr(answers)))
    known = rows["accuracy"].null_count() < rows.height
    columns = [c for c in rows.columns if known or c not in ("accuracy", "log_loss")]
    table(columns, rows.select(columns).rows())
    words(
        "differs: labels unlike the default model's; held_out: mean log-likelihood of hidden answers, higher is better"
    )
