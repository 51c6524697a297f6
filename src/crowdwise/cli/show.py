"""Answers and results printed for people, or as JSON for programs."""

from __future__ import annotations

import sys
from typing import Any

import polars as pl

from ..acquisition import AnswerPlan
from ..answers import Answers
from ..inspection import Inspection
from ..reproduce import Study
from ..result import BaseResult
from .options import ListOptions
from .say import clean, duration, say_json, table, words

MAX_VALUES_SHOWN = 20
NAMED = ("task", "worker", "label", "image", "left", "right", "answer")  # roles of columns that options name
# By kind of answers: columns of workers that are shown, where they have values. Other kinds show all.
WORKERS = {
    "labels": (
        "spam_score", "trace", "checks", "check_score", "seconds", "agreement", "overuses",
    ),
    "points": ("images", "hit_rate", "spread"),
    "pairs": ("sensitivity", "specificity", "weight"),
}  # fmt: skip
# By kind of answers: what the columns mean.
SKILL = {
    "labels": "skill: probability of a right answer, low to high: its 95 % interval; spam_score: 0 for answers that do "
    "not depend on the truth, 1 for perfect ones; trace: mean of the diagonal of the confusion matrix",
    "points": "skill: share of the worker's clicks that are on objects, low to high: its 95 % interval; hit_rate: "
    "share of the objects that the worker clicked; spread: noise of the clicks, 1 is average",
    "pairs": "skill: mean of sensitivity and specificity, low to high: its 95 % interval; weight: log-odds that an "
    "answer adds",
}
REVIEW = {
    "labels": "gain: what one more answer is expected to add to the probability that the label is right; entropy: "
    "uncertainty in bits, of the posterior and of the votes; others: labels of other models where they differ",
    "points": "probability: that the object is real; gain: what one more worker is expected to add to the probability "
    "of deciding that rightly",
    "pairs": "second: the next likely cluster; entropy: uncertainty of the cluster in bits",
}
NEXT = {
    "labels": "{n} answers to {rows} tasks; expected to make {gain:.1f} more labels right",
    "points": "{n} looks at {rows} images; expected to classify {gain:.1f} more objects correctly",
    "pairs": "{n} pairs; expected to bring {gain:.1f} bits of information",
}


def question_list(questions: pl.DataFrame, file: str, as_json: bool) -> None:
    """Print the questions of an export, of which one has to be chosen."""
    rows = questions.to_dicts()
    if as_json:
        say_json(rows)
        return
    print(clean(f"{file}: choose a question with --question"))
    shown = [[row["question"], row["kind"], row["answers"], row["sets"], ", ".join(row["classes"])] for row in rows]
    table(["question", "kind", "answers", "with several labels", "classes"], shown)


def inspection(found: Inspection) -> None:
    """Print what was read from a table."""
    intake = found.intake
    print(clean(f"{intake.source}: {intake.rows_read} rows read, {intake.rows_used} used"))
    print(clean(f"kind: {found.kind}"))
    columns = ", ".join(f"{role} = {column!r}" for role, column in intake.columns.items())
    print(clean(f"columns: {columns}"))
    guessed = [role for role in intake.guessed if role in intake.columns]
    if guessed:
        named = next((f"; options such as --{role} name other columns" for role in guessed if role in NAMED), "")
        print(clean(f"recognised by name: {', '.join(guessed)}{named}"))
    for note in intake.notes:
        print(clean(note))
    if intake.extras:
        print(clean(f"other columns kept: {', '.join(intake.extras)}"))
    print(", ".join(f"{count} {name}" for name, count in found.counts.items() if count))
    for name, spread in found.spreads.items():
        print(f"{name}: {spread.low} to {spread.high}, median {spread.median:g}")
    if found.values:
        table([found.value, "answers"], found.values[:MAX_VALUES_SHOWN])
        if len(found.values) > MAX_VALUES_SHOWN:
            print(f"... and {len(found.values) - MAX_VALUES_SHOWN} more {found.value}s")
    for dropped in intake.dropped:
        print(clean(f"dropped {dropped.count}: {dropped.reason}"))
        for row in dropped.examples:
            print(clean(f"    {row}"))
    if not intake.dropped:
        print("nothing was dropped")
    for warning in intake.warnings:
        print(clean(f"warning: {warning}"))


def rated(result: BaseResult, flagged: bool, options: ListOptions) -> None:
    """Print workers, best first, and flags with their reasons."""
    rows = result.workers.sort("rank", nulls_last=True)
    rows = rows.filter(pl.col("flags") != "") if flagged else rows
    first = ("rank", "worker", "answers", "skill", "low", "high")
    more = WORKERS.get(result.kind, tuple(c for c in rows.columns if c not in (*first, "flags", "reasons")))
    known = [c for c in (*first, *more) if rows[c].null_count() < rows.height]
    shown = [*(c for c in known if c != "checks" or rows["checks"].sum() > 0), "flags"]
    if not _listed(rows, shown, options, "workers", rows.height, result.answers):
        return
    why, most = rows.filter(pl.col("flags") != "").select("worker", "reasons"), max(options.top, 20)
    for worker, reasons in why.head(most).rows():
        print(f"{clean(worker)[:60]}: {clean(reasons)}")
    _and_more(why.height - most, "flagged workers")
    words(*([SKILL[result.kind]] if result.kind in SKILL else []))


def queued(rows: pl.DataFrame, result: BaseResult, options: ListOptions) -> None:
    """Print what to review."""
    shown = [c for c in rows.columns if rows[c].null_count() < rows.height and c not in ("status", "models_disagree")]
    total = next(iter(result.tables().values())).height
    if _listed(
        rows,
        shown,
        options,
        f"{rows.columns[1] if result.kind == 'points' else rows.columns[0]}s",
        total,
        result.answers,
    ):
        words(*([REVIEW[result.kind]] if result.kind in REVIEW else []))


def _listed(
    rows: pl.DataFrame, shown: list[str], options: ListOptions, what: str, total: int, answers: Answers | None
) -> bool:
    """Write rows to --out; print them as JSON, or the first of them as a table. Return whether a table was printed."""
    options.write(rows)
    if options.as_json:
        say_json(rows.to_dicts())
        return False
    if answers is not None:
        print(_sizes(answers))
    table(shown, rows.select(shown).head(options.top).rows())
    _and_more(total - options.top, what)
    return True


def agreed(rows: pl.DataFrame, answers: Answers) -> None:
    """Print measures of agreement."""
    print(_sizes(answers))
    table(["measure", "value", "low", "high"], rows.select("measure", "value", "low", "high").rows())
    for measure, note in rows.filter(pl.col("note") != "").select("measure", "note").rows():
        print(clean(f"{measure}: {note}"))
    plain = "f1" if answers.kind == "points" else "percent"
    words(
        f"1: full agreement, 0: agreement by chance ({plain} is not corrected for chance); low to high: 95 % interval"
    )


def asked(rows: pl.DataFrame, result: BaseResult, budget: int, options: ListOptions) -> None:
    """Print what to ask next."""
    now = int(rows["ask"].sum()) if "ask" in rows.columns else rows.height
    what = {"labels": "tasks", "points": "images"}.get(result.kind, result.kind)
    if options.as_json:
        options.write(rows)
        say_json({"asked": now, "left": budget - now, what: rows.to_dicts()})
        return
    shown = [c for c in rows.columns if rows[c].null_count() < rows.height or c == rows.columns[0]]
    _listed(rows, shown, options, what, rows.height, None)
    line = NEXT.get(result.kind, "{n} answer(s)")
    words(line.format(n=now, rows=rows.height, gain=rows["gain"].sum() if "gain" in rows.columns else 0.0))
    if budget > now:
        words(f"Ask these, add the answers to the file and run again: {budget - now} answers of the budget are left")


def planned_answers(found: AnswerPlan, tasks: int | None, price: float | None, as_json: bool) -> None:
    """Print how many answers per task a target accuracy needs."""
    totals = {} if tasks is None else _totals(found.answers, tasks, price)
    if as_json:
        say_json(found.as_dict() | totals)
        return
    needed = {n for n in (found.answers, found.at_best, found.at_worst) if n is not None}
    first, most = int(found.points["answers"][0]), int(found.points["answers"][-1])
    rows = [row for row in found.points.rows() if row[0] in needed or row[0] - first < 6 or row[0] == most]
    table(["answers", "accuracy", "low", "high"], rows, 3)
    total = ""
    if totals and found.answers is not None:
        cost = f", which cost {totals['cost']:,.2f}" if "cost" in totals else ""
        total = f": {totals['total_answers']:,} answers for {tasks:,} tasks{cost}"
    fewest = first if found.pilot else 0
    print(f"For {100 * found.target:g} % right labels, ask {_answers(found.answers, most, fewest)} per task{total}")
    best, worst = (
        ("at the high end of the range", "at the low end")
        if found.pilot
        else ("if workers share few errors", "if they share many")
    )
    if found.at_best != found.at_worst:
        ends = (_answers(each, most, fewest) for each in (found.at_best, found.at_worst))
        print(f"{next(ends)} {best}, {next(ends)} {worst}")
    if found.answers is None:
        words("A clearer question, fewer classes or better workers may help where more answers do not.")
    if found.answers == fewest:
        words(f"The pilot has {first} answers per task; it does not show what fewer would do.")
    words(
        "answers: per task; low to high: the 90 % range of the accuracy"
        if found.pilot
        else "answers: per task; accuracy: of votes; low: if workers share many errors; high: if they share few. A "
        "pilot of 50 to 100 tasks with three answers each says more: crowdwise plan FILE"
    )


def _totals(answers: int | None, tasks: int, price: float | None) -> dict[str, float | None]:
    count = None if answers is None else answers * tasks
    total: dict[str, float | None] = {"total_answers": count}
    return total if price is None else total | {"cost": None if count is None else round(count * price, 2)}


def _answers(count: int | None, most: int, fewest: int) -> str:
    if count is None:
        return f"more than {most} answers"
    return f"{'at most ' * (count == fewest)}{count} answer{'s' * (count != 1)}"


def _and_more(count: int, what: str) -> None:
    if count > 0:
        print(f"... and {count} more {what}; --top shows more, --out writes all")


def reproduced(found: Study, as_json: bool) -> None:
    """Print a study's tables."""
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
    words(f"{duration(found.seconds)} of processor time, with that of earlier runs whose measurements are used")


def watch_models() -> Any:
    """Return a function that prints which model is being fitted, or None if stderr is not a terminal."""
    return (lambda name: words(f"fitting {name}")) if sys.stderr.isatty() else None


def compared(rows: pl.DataFrame, answers: Answers) -> None:
    """Print the comparison as a table."""
    print(_sizes(answers))
    columns = [name for name in rows.columns if rows[name].null_count() < rows.height]
    table(columns, rows.select(columns).rows())
    thing = {"labels": "labels", "points": "objects"}.get(answers.kind, "pairs")
    words(f"differs: {thing} that differ from those of the default model")
    if "held_out" in columns:
        words("held_out: mean log-likelihood of held-out answers; higher is better")
    if "log_loss" in columns:
        words("accuracy: ties count fractionally; log_loss: of the true label; lower is better")


def _sizes(answers: Any) -> str:
    """The counts of a table of answers: "1800 answers, 300 tasks, 30 workers, 3 classes"."""
    return repr(answers).partition("(")[2].removesuffix(")")
