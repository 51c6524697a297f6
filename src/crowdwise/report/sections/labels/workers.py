"""The workers, with what is shown when one is selected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ....kernels.layout import Ints
from ....kernels.special import classes_of
from ....result import LabelsResult
from ...parts import MAX_WORKERS_SHOWN, MatrixCell, has_any
from ...registry import section
from ...text import MAX_NAME_CHARS, count, many, rounded, short

MAX_CELLS_SHOWN = 225  # of a confusion matrix
MAX_SURPRISES_SHOWN = 5  # answers of a worker
MAX_SURPRISE = 0.3  # probability of a label below which giving it is a surprise
COLUMN_TERMS = {"spam score": "spam_score", "trace": "trace", "checks": "check_score", "agreement": "agreement"}


@dataclass(frozen=True)
class Surprise:
    """An answer that is improbable given the other answers."""

    task: str
    given: int
    label: int  # the estimated true class
    probability: float  # of that class


@dataclass(frozen=True)
class WorkerRow:
    """A worker, as in `LabelsResult.workers`, with what is shown when that worker is selected."""

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
    overused: float | None  # its share of the worker's answers
    overuse: float | None  # that share minus the expected one
    flags: list[str]
    reasons: list[str]  # one for each flag
    status: str
    confusion: list[MatrixCell]
    surprises: list[Surprise]


@dataclass(frozen=True)
class Workers:
    """All workers, or the flagged, the best and the worst of many."""

    headline: str
    total: int
    guessing: float | None  # skill of giving all classes equally often; None with one class
    rows: list[WorkerRow]

    @property
    def terms(self) -> Sequence[str]:
        """Words that only some tables of workers use: optional columns, and flags."""
        columns = [term for term, field in COLUMN_TERMS.items() if has_any(self.rows, field)]
        guessing = ["guessing"] if self.guessing is not None and has_any(self.rows, "skill") else []
        return [*columns, *guessing, *{flag for row in self.rows for flag in row.flags}]


@section(
    "labels", "workers", order=20, title="Workers",
    intro="Skill is the probability of a right answer; the line around the dot is its 95 % interval. Select a worker "
          "to see their confusion matrix and their most surprising answers.",
    terms=("skill", "interval", "confusion matrix"),
)  # fmt: skip
def workers(result: LabelsResult) -> Workers:
    table = result.workers.with_row_index("number").sort("rank", nulls_last=True)
    shown = _shown(table)
    label = {name: k for k, name in enumerate(result.classes.to_list())}
    found = classes_of(result.posterior, result.prevalence, result.answers.gold)
    rows = [_worker_row(result, found, row, label) for row in shown.iter_rows(named=True)]
    headline = f"{many(table.height, 'worker')}, {count(int((table['flags'] != '').sum()))} of them flagged"
    if shown.height < table.height:
        headline += f"; the table shows {shown.height}: the flagged, the best and the worst"
    K = len(result.classes)
    return Workers(headline + ".", table.height, 1 / K if K > 1 else None, rows)


def _shown(table: pl.DataFrame) -> pl.DataFrame:
    """Return all workers, or the flagged, the best and the worst of many, by rank."""
    if table.height <= MAX_WORKERS_SHOWN:
        return table
    part = MAX_WORKERS_SHOWN // 4
    flagged = table.filter(pl.col("flags") != "").head(MAX_WORKERS_SHOWN - 2 * part)
    return pl.concat([table.head(part), flagged, table.tail(part)]).unique("number").sort("rank", nulls_last=True)


def _worker_row(result: LabelsResult, found: Ints, row: dict[str, Any], label: dict[Any, int]) -> WorkerRow:
    j = row["number"]
    numbers = {
        name: rounded(row[name]) for name in ("skill", "low", "high", "spam_score", "trace", "agreement", "overuse")
    }
    overuses = None if row["overuses"] is None else label[row["overuses"]]
    flags = row["flags"].split("; ") if row["flags"] else []
    return WorkerRow(
        worker=short(row["worker"], MAX_NAME_CHARS),
        rank=row["rank"],
        answers=row["answers"],
        check_score=rounded(row["check_score"]),
        checks=row["checks"],
        seconds=rounded(row["seconds"], 2),
        overuses=overuses,
        overused=None if overuses is None else rounded(_share_given(result, j, overuses)),
        flags=flags,
        reasons=row["reasons"].replace(" %", "\u202f%").split("; ") if flags else [],
        status=row["status"],
        confusion=worker_cells(result, j),
        surprises=_surprises(result, found, j),
        **numbers,
    )


def _share_given(result: LabelsResult, j: int, label: int) -> float:
    """Return the share of a worker's answers that are this label."""
    layout = result.answers.layout
    rows = slice(int(layout.worker_ptr[j]), int(layout.worker_ptr[j + 1]))
    answers = np.diff(layout.row_ptr[rows.start : rows.stop + 1])
    return float(answers[layout.row_label[rows] == label].sum() / max(answers.sum(), 1))


def worker_cells(result: LabelsResult, j: int) -> list[MatrixCell]:
    """Return the expected answers of a worker by true class and label given."""
    layout = result.answers.layout
    cells: list[MatrixCell] = []
    for r in range(int(layout.worker_ptr[j]), int(layout.worker_ptr[j + 1])):
        tasks = layout.task[layout.row_ptr[r] : layout.row_ptr[r + 1]]
        by_class = result.posterior[tasks].sum(0, dtype=np.float64)
        given = int(layout.row_label[r])
        cells += [MatrixCell(int(k), given, round(float(by_class[k]), 1)) for k in np.flatnonzero(by_class >= 0.05)]
    return sorted(cells, key=lambda cell: -cell.value)[:MAX_CELLS_SHOWN]


def _surprises(result: LabelsResult, found: Ints, j: int) -> list[Surprise]:
    """Return the worker's least probable answers."""
    layout = result.answers.layout
    rows = slice(int(layout.worker_ptr[j]), int(layout.worker_ptr[j + 1]))
    inside = slice(int(layout.row_ptr[rows.start]), int(layout.row_ptr[rows.stop]))
    tasks = layout.task[inside]
    given = np.repeat(layout.row_label[rows], np.diff(layout.row_ptr[rows.start : rows.stop + 1]))
    own = result.posterior[tasks, given]
    odd = np.lexsort((tasks, own))[:MAX_SURPRISES_SHOWN]
    return [
        Surprise(
            short(result.answers.tasks[int(tasks[n])], MAX_NAME_CHARS), int(given[n]), int(found[tasks[n]]),
            rounded(result.posterior[tasks[n], found[tasks[n]]]),
        )
        for n in odd
        if own[n] < MAX_SURPRISE
    ]  # fmt: skip
