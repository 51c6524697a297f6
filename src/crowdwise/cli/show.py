"""Results for people and programs."""

from __future__ import annotations

import sys
from typing import Any

import polars as pl

from ..answers import Labels
from ..report import inspect
from ..reproduce import Study
from ..result import LabelsResult
from .options import ListOptions
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


RATINGS = ("rank", "worker", "answers", "skill", "low", "high", "spam_score", "trace", "checks", "check_score")


def rated(result: LabelsResult, flagged: bool, options: ListOptions) -> None:
    """Workers, best first; flags with their reasons."""
    rows = result.workers.sort("rank", nulls_last=True)
    rows = rows.filter(pl.col("flags") != "") if flagged else rows
    known = [c for c in (*RATINGS, "seconds", "agreement", "overuses") if rows[c].null_count() < rows.height]
    shown = [*(c for c in known if c != "checks" or rows["checks"].sum() > 0), "flags"]
    if not _listed(rows, shown, options, "workers", rows.height, result.answers):
        return
    why, most = rows.filter(pl.col("flags") != "").select("worker", "reasons"), max(options.top, 20)
    for worker, reasons in why.head(most).rows():
        print(f"{clean(worker)[:60]}: {clean(reasons)}")
    _and_more(why.height - most, "flagged workers")
    words(
        "skill: chance of a right answer, low to high its 95 % interval; spam_score: 0 a spammer, 1 perfect; "
        "trace: mean of the confusion matrix's diagonal"
    )


def queued(rows: pl.DataFrame, result: LabelsResult, options: ListOptions) -> None:
    """Tasks worth another look."""
    shown = [c for c in rows.columns if rows[c].null_count() < rows.height and c not in ("status", "models_disagree")]
    if _listed(rows, shown, options, "tasks", result.answers.n_tasks, result.answers):
        words(
            "gain: what a further answer is expected to add to the chance of being right; entropy: doubt in bits, of "
            "the posterior and of the votes; others: labels of other models where they differ"
        )


def _listed(
    rows: pl.DataFrame, shown: list[str], options: ListOptions, what: str, total: int, answers: Labels | None
) -> bool:
    """Write rows where asked for; print them as JSON, or the first of them as a table. Whether a person is reading."""
    options.write(rows)
    if options.as_json:
        say_json(rows.to_dicts())
        return False
    if answers is not None:
        print(_sizes(answers))
    table(shown, rows.select(shown).head(options.top).rows())
    _and_more(total - options.top, what)
    return True


def agreed(rows: pl.DataFrame, answers: Labels) -> None:
    """Measures of agreement."""
    print(_sizes(answers))
    table(["measure", "value", "low", "high"], rows.select("measure", "value", "low", "high").rows())
    for measure, note in rows.filter(pl.col("note") != "").select("measure", "note").rows():
        print(clean(f"{measure}: {note}"))
    words("1 is full agreement, 0 what chance gives (percent is not held against chance); low to high: 95 % interval")


def asked(rows: pl.DataFrame, budget: int, options: ListOptions) -> None:
    """What to ask next."""
    now = int(rows["ask"].sum())
    if options.as_json:
        options.write(rows)
        say_json({"asked": now, "left": budget - now, "tasks": rows.to_dicts()})
        return
    shown = [c for c in rows.columns if rows[c].null_count() < rows.height or c == "task"]
    _listed(rows, shown, options, "tasks", rows.height, None)
    words(f"{now} answer(s) to {rows.height} task(s), expected to make {rows['gain'].sum():.1f} more labels right")
    if budget > now:
        words(f"{budget - now} answers of the budget are left: ask these, add what comes to the file, and run again")


def _and_more(count: int, what: str) -> None:
    if count > 0:
        print(f"... and {count} more {what}; --top shows more, --out writes all")


def reproduced(found: Study, as_json: bool) -> None:
    """A study's tables, one after another."""
    if as_json:
        say_json(found.as_dict())
        return
    for part in found.parts:
        print(clean(part.title))
        table(part.rows.columns, part.rows.rows(), part.digits)
        for line in part.notes:
            print(clean(f"  {line}"))
        print()
    for file in found.files:
        words(f"wrote {file}")


def watch_models() -> Any:
    """What tells a person which model is being fitted; None when nobody looks."""
    return (lambda name: words(f"fitting {name}")) if sys.stderr.isatty() else None


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
