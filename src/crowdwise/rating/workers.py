"""The table of workers: every rating a column, null where it cannot be had, and flags with their reasons in words."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl

from ..answers import Labels
from ..errors import DataError
from ..kernels.layout import Bools, Floats, Ints, worker_answers
from .chance import Evidence, Verdict, verdicts
from .checks import Checks, checks
from .copies import Copies, copies
from .habits import Habits, habits, seeming_classes
from .left_out import left_to_others
from .skills import Skills, identifiable, skills
from .spam import spam_and_trace
from .times import Times, times

CROWD = 10.0  # answers of the whole crowd's mix of classes that a worker's tasks are taken to start from
SHOWN = 40  # characters of a name in a reason
PASSED = 0.75  # lower end of a score on checks from which on giving one label does no harm

COLUMNS = {
    "worker": "the worker",
    "answers": "how many answers were used",
    "skill": "chance of a right answer",
    "low": "lower end of the 95 % interval of skill",
    "high": "upper end of it",
    "status": "ok, or not identifiable: nobody else answered these tasks, and no gold is known",
    "rank": "1 for the highest lower end of skill",
    "spam_score": "0 answers whatever the truth is, 1 gives the truth away: spam_distance / (classes - 1)",
    "spam_distance": "squared distance of the confusion matrix to the nearest one of equal rows",
    "trace": "mean of the diagonal of the confusion matrix",
    "checks": "answers to attention checks",
    "check_score": "share of them that is right",
    "check_low": "lower end of its 95 % interval",
    "check_high": "upper end of it",
    "seconds": "median time of an answer",
    "agreement": "share of the other answers to a task that say the same, mean over the worker's tasks",
    "overuses": "the label given much more often than it seems true",
    "overuse": "by how much of the worker's answers",
    "flags": "why somebody should look at this worker, short; empty for nothing",
    "reasons": "the same in words",
}


class Fit(Protocol):
    """What is known after a fit; a Result is one."""

    @property
    def answers(self) -> Labels: ...
    @property
    def posterior(self) -> Floats: ...
    @property
    def prevalence(self) -> Floats: ...
    @property
    def right(self) -> Floats: ...
    @property
    def sure(self) -> Floats: ...
    @property
    def found(self) -> Ints: ...
    def matrices(self, workers: Ints) -> Floats | None: ...


class Ratings(NamedTuple):
    """Everything that the columns and flags are made of."""

    skills: Skills
    known: Bools  # (W,) whether skill can be told
    chance: Floats  # (W,) what answering at random would give
    spam: Verdict
    habits: Habits
    checks: Checks
    times: Times
    copies: Copies


def rate(answers: Labels, result: Fit) -> pl.DataFrame:
    """Every rating of every worker, a row a worker: `COLUMNS`. `answers` are those of the result; they may carry other
    gold, times or marks of checks than those it was fitted to.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.crowd("hammer-spammer", tasks=200, workers=10, classes=3, per_task=5, seed=4)
    >>> cw.rate(sim.answers, cw.aggregate(sim.answers)).filter(flags="at chance").height
    2
    """
    _same_answers(answers, result.answers)
    layout, n = answers.layout, worker_answers(answers.layout)
    totals = seeming_classes(answers, result.posterior)
    seen, chance = (
        skills(result.right, result.sure, n, answers.n_classes),
        _at_random(answers, totals, result.prevalence),
    )
    votes = left_to_others(answers.kernels, layout, answers.gold, result.posterior.dtype, 1)
    voted = skills(*votes, n, answers.n_classes)
    ratings = Ratings(
        skills=seen,
        known=identifiable(answers),
        chance=chance,
        spam=verdicts(Evidence(seen.share, seen.worth), Evidence(voted.share, voted.worth), chance),
        habits=habits(answers, result.posterior, totals),
        checks=checks(answers),
        times=times(answers),
        copies=copies(answers, result.posterior, result.found),
    )
    one = np.arange(min(1, answers.n_workers), dtype=np.int32)
    matrices = None if result.matrices(one) is None else result.matrices
    distance, trace = spam_and_trace(matrices, answers.n_workers, answers.n_classes)  # type: ignore[arg-type]
    return _table(answers, n, ratings, distance, trace)


def _same_answers(answers: Labels, fitted: Labels) -> None:
    if answers is fitted:
        return
    same = all(np.array_equal(a, b) for a, b in zip(answers.layout[1:], fitted.layout[1:], strict=True))
    names = all(getattr(answers, of).equals(getattr(fitted, of)) for of in ("tasks", "workers", "classes"))
    if not (same and names):
        raise DataError(
            f"these answers ({answers!r}) are not those of the result ({fitted!r}). "
            "Rate the answers that the result was fitted to, or fit these with aggregate first"
        )


def _at_random(answers: Labels, totals: Floats, prevalence: Floats) -> Floats:
    """(W,) chance of a right answer by who mixes labels as this worker does, whatever the truth is."""
    layout = answers.layout
    n = worker_answers(layout).astype(np.float64)
    truth = (totals + CROWD * prevalence) / (n + CROWD)[:, None]
    told = np.diff(layout.row_ptr) / np.maximum(n, 1)[layout.row_worker]
    return np.bincount(layout.row_worker, told * truth[layout.row_worker, layout.row_label], minlength=len(n))


def _table(answers: Labels, n: Ints, r: Ratings, distance: Floats, trace: Floats) -> pl.DataFrame:
    unknown = pl.Series(~r.known)
    flags, reasons = _flags(answers, n, r)

    def shown(values: Floats) -> pl.Series:
        return pl.Series(values, dtype=pl.Float64, nan_to_null=True)

    def told(values: Floats) -> pl.Series:
        return shown(values).set(unknown, None)

    label = pl.Series(r.habits.overuses)
    columns: dict[str, Any] = {
        "worker": answers.workers,
        "answers": n,
        "skill": told(r.skills.skill),
        "low": told(r.skills.low),
        "high": told(r.skills.high),
        "status": pl.Series(["ok", "not identifiable"])[unknown.cast(pl.UInt32)],
        "rank": _ranks(r.skills.low, r.skills.skill, r.known),
        "spam_score": shown(distance / max(answers.n_classes - 1, 1)),
        "spam_distance": shown(distance),
        "trace": shown(trace),
        "checks": r.checks.asked,
        "check_score": shown(r.checks.score),
        "check_low": shown(r.checks.low),
        "check_high": shown(r.checks.high),
        "seconds": shown(r.times.median),
        "agreement": shown(r.habits.agreement),
        "overuses": answers.classes[label.clip(0)].set(label < 0, None) if answers.n_classes else None,
        "overuse": shown(r.habits.overuse),
        "flags": flags,
        "reasons": reasons,
    }
    if answers.n_classes == 1:  # nothing can be told apart
        columns |= dict.fromkeys(("spam_score", "spam_distance"), shown(np.full(len(n), np.nan)))
    return pl.DataFrame({name: columns[name] for name in COLUMNS})


def _ranks(low: Floats, skill: Floats, known: Bools) -> pl.Series:
    """(W,) 1 for the highest lower end; equals by skill, then in the order of workers; null for who is not known."""
    order = np.lexsort((np.arange(len(low)), -skill, -low, ~known))
    rank = np.empty(len(low), np.int64)
    rank[order] = np.arange(1, len(low) + 1)
    return pl.Series(rank).set(pl.Series(~known), None)


def _flags(answers: Labels, n: Ints, r: Ratings) -> tuple[list[str], list[str]]:
    """Flags, and their reasons, of every worker."""
    told = r.known & (answers.n_classes > 1)
    flagged = {
        "at chance": r.spam.at_chance & told,
        "one label": (r.habits.only >= 0) & told & ~(r.checks.low >= PASSED),
        "inverted": r.spam.inverted & told,
        "copies": r.copies.other >= 0,
        "too fast": r.times.too_fast,
    }
    flags, reasons = [""] * len(n), [""] * len(n)
    for j in np.flatnonzero(np.logical_or.reduce(list(flagged.values()))).tolist():
        names = [name for name, mask in flagged.items() if mask[j]]
        flags[j] = "; ".join(names)
        reasons[j] = "; ".join(_reason(answers, name, j, int(n[j]), r) for name in names)
    return flags, reasons


def _reason(answers: Labels, name: str, j: int, n: int, r: Ratings) -> str:
    s = r.skills
    if name in ("at chance", "inverted"):
        seen = f"right {s.skill[j]:.0%} of the time ({s.low[j]:.0%} to {s.high[j]:.0%})"
        end = "" if name == "at chance" else ": the labels may be swapped"
        return f"{seen}, where answering at random would give {r.chance[j]:.0%}{end}"
    if name == "one label":
        label = _short(answers.classes[int(r.habits.only[j])])
        wrong = f"{r.habits.elsewhere[j]:.0%} of them seem wrong"
        return f"nearly all of {n} answers say \u201c{label}\u201d, and {wrong}"
    if name == "copies":
        other = _short(answers.workers[int(r.copies.other[j])])
        same = f"{r.copies.same[j]} of {r.copies.shared[j]} answers are the same as those of {other}"
        return f"{same}, {r.copies.odd[j]} of them unlike the label found: one may copy the other"
    return f"takes {r.times.median[j]:.3g} s a task, where the typical worker takes {r.times.typical:.3g} s"


def _short(name: object) -> str:
    text = str(name).replace("; ", ", ")  # which sets reasons apart
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
