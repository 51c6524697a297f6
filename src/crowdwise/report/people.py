"""The sections on workers: the table, what is shown of one who is chosen, and time against skill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..inter_rater import rank_correlation
from ..kernels.layout import Ints
from ..kernels.special import classes_of
from ..result import LabelsResult
from .frame import Cells
from .words import LONGEST, count, known, short

WORKERS, CELLS, SURPRISES, DOTS = 400, 225, 5, 800  # shown at most: workers, cells of a matrix, odd answers, marks
ODD = 0.3  # probability of a label below which giving it is a surprise


@dataclass(frozen=True)
class Surprise:
    """An answer of a worker that the others make improbable."""

    task: str
    said: int
    label: int  # what the task seems to be
    probability: float  # of that


@dataclass(frozen=True)
class WorkerRow:
    """A worker, as in `LabelsResult.workers`, with what is shown when that worker is chosen."""

    worker: str
    rank: int | None
    answers: int
    skill: float | None
    low: float | None
    high: float | None
    spam_score: float | None
    trace: float | None
    agreement: float | None
    check_score: float | None
    checks: int
    seconds: float | None
    overuses: int | None  # class
    overuse: float | None  # share of the answers told, less the share that seems true
    flags: list[str]
    reasons: list[str]  # one for each flag
    status: str
    confusion: Cells
    surprises: list[Surprise]


@dataclass(frozen=True)
class Workers:
    """The workers shown: all of them, or the flagged, the best and the worst of many."""

    says: str
    total: int
    rows: list[WorkerRow]


@dataclass(frozen=True)
class Times:
    """Seconds against skill, a dot a worker; None where answers carry no times."""

    says: str
    rows: list[tuple[str, float, float, bool]]  # worker, median seconds, skill, flagged


def workers_section(result: LabelsResult) -> Workers:
    table = result.workers.with_row_index("number").sort("rank", nulls_last=True)
    shown = _shown(table)
    label = {name: k for k, name in enumerate(result.classes.to_list())}
    found = classes_of(result.posterior, result.prevalence, result.answers.gold)
    rows = [_worker_row(result, found, row, label) for row in shown.iter_rows(named=True)]
    flagged = int((table["flags"] != "").sum())
    says = f"{count(table.height)} workers, {count(flagged)} of them flagged"
    if shown.height < table.height:
        says += f"; shown are {shown.height}: the flagged, the best and the worst"
    return Workers(says + ".", table.height, rows)


def _shown(table: pl.DataFrame) -> pl.DataFrame:
    """All workers, or the flagged, the best and the worst of many, in the order of ranks."""
    if table.height <= WORKERS:
        return table
    part = WORKERS // 4
    flagged = table.filter(pl.col("flags") != "").head(WORKERS - 2 * part)
    return pl.concat([table.head(part), flagged, table.tail(part)]).unique("number").sort("rank", nulls_last=True)


def _worker_row(result: LabelsResult, found: Ints, row: dict[str, Any], label: dict[Any, int]) -> WorkerRow:
    j = row["number"]
    kept = {name: known(row[name]) for name in ("skill", "low", "high", "spam_score", "trace", "agreement", "overuse")}
    flags = row["flags"].split("; ") if row["flags"] else []
    return WorkerRow(
        worker=short(row["worker"], LONGEST),
        rank=row["rank"],
        answers=row["answers"],
        check_score=known(row["check_score"]),
        checks=row["checks"],
        seconds=known(row["seconds"], 2),
        overuses=None if row["overuses"] is None else label[row["overuses"]],
        flags=flags,
        reasons=row["reasons"].split("; ") if flags else [],
        status=row["status"],
        confusion=worker_cells(result, j),
        surprises=_surprises(result, found, j),
        **kept,
    )


def worker_cells(result: LabelsResult, j: int) -> Cells:
    """Expected answers of a worker by true class and label told."""
    layout = result.answers.layout
    cells: Cells = []
    for r in range(int(layout.worker_ptr[j]), int(layout.worker_ptr[j + 1])):
        tasks = layout.task[layout.row_ptr[r] : layout.row_ptr[r + 1]]
        by_class = result.posterior[tasks].sum(0, dtype=np.float64)
        told = int(layout.row_label[r])
        cells += [(int(k), told, round(float(by_class[k]), 1)) for k in np.flatnonzero(by_class >= 0.05)]
    return sorted(cells, key=lambda cell: -cell[2])[:CELLS]


def _surprises(result: LabelsResult, found: Ints, j: int) -> list[Surprise]:
    """The worker's answers that the posterior makes least probable."""
    layout = result.answers.layout
    rows = slice(int(layout.worker_ptr[j]), int(layout.worker_ptr[j + 1]))
    inside = slice(int(layout.row_ptr[rows.start]), int(layout.row_ptr[rows.stop]))
    tasks = layout.task[inside]
    told = np.repeat(layout.row_label[rows], np.diff(layout.row_ptr[rows.start : rows.stop + 1]))
    own = result.posterior[tasks, told]
    odd = np.lexsort((tasks, own))[:SURPRISES]
    return [
        Surprise(
            short(result.answers.tasks[int(tasks[n])], LONGEST), int(told[n]), int(found[tasks[n]]),
            known(result.posterior[tasks[n], found[tasks[n]]]),
        )
        for n in odd
        if own[n] < ODD
    ]  # fmt: skip


def times_section(result: LabelsResult) -> Times | None:
    table = result.workers.filter(pl.col("seconds").is_not_null() & pl.col("skill").is_not_null())
    if table.is_empty():
        return None
    flagged = (table["flags"] != "").to_numpy()
    shown = table.with_columns(pl.Series("flagged", flagged)).sort("flagged", "answers", descending=True).head(DOTS)
    rows = [
        (short(w, LONGEST), known(s, 2), known(k), f)
        for w, s, k, f in shown.select("worker", "seconds", "skill", "flagged").rows()
    ]
    if table.height < 3:
        return Times("Too few workers have times to compare them.", rows)
    link = rank_correlation(table["seconds"].to_numpy(), table["skill"].to_numpy())
    word = "slower workers tend to be better" if link > 0.2 else "faster workers tend to be better"
    if abs(link) <= 0.2:
        word = "time says little of skill"
    middle = float(np.median(table["seconds"].to_numpy()))
    return Times(f"The typical worker takes {middle:.3g} s a task; {word} (rank correlation {link:+.2f}).", rows)
