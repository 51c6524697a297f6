"""Results for people and programs."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from ..answers import Labels
from ..report import inspect, summarise
from ..result import Result
from .say import clean, say_json, table, words


def inspected(answers: Labels) -> None:
    """What was understood, for a person."""
    intake, said = answers.intake, inspect(answers)
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
    print(_sizes(answers))
    for what, spread in (("task", said.answers_per_task), ("worker", said.answers_per_worker)):
        print(f"answers a {what}: {spread.low} to {spread.high}, median {spread.median:g}")
    table(["label", "answers"], said.labels[:20])
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


def aggregated(result: Result, out: Path | None, as_json: bool) -> None:
    """What came of a fit: JSON, or words and, without a folder, the labels themselves."""
    summary = summarise(result)
    if as_json:
        rest = {"labels": result.labels.to_dicts()} if out is None else {"out": str(out)}
        say_json({**summary.as_dict(), **rest})
        return
    words(*summary.lines())
    if out is None:
        sys.stdout.buffer.write(result.labels.write_csv().encode())
        sys.stdout.flush()
    else:
        words(f"results are in {out}: labels.csv, workers.csv, tasks.csv, result.crowdwise")


def compared(rows: pl.DataFrame, answers: Labels) -> None:
    """The comparison as a table."""
    print(_sizes(answers))
    known = rows["accuracy"].null_count() < rows.height
    columns = [c for c in rows.columns if known or c not in ("accuracy", "log_loss")]
    table(columns, rows.select(columns).rows())
    words("differs: labels unlike the default model's; held_out: mean log-likelihood of hidden answers, more is better")
    if known:
        words("accuracy: a tie counts its share; log_loss: of the true label, less is better")


def _sizes(answers: Labels) -> str:
    counts = f"{answers.n_answers} answers, {answers.n_tasks} tasks, {answers.n_workers} workers"
    return f"{counts}, {answers.n_classes} classes"
