"""The table of workers: one column per rating, null if unknown, and flags with their reasons."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from ..answers import Labels
from ..answers.arguments import brief, is_whole
from ..errors import DataError, ParameterError
from ..forks import refuse_lost_threads
from ..kernels.layout import Bools, Floats, Ints, PerWorker, WorkerRows, summed, weighted_counts
from ..kernels.special import classes_of
from .checks import Checks, CheckSums, check_sums, checks
from .copies import Copies, copies
from .habits import Habits, HabitSums, expected_class_counts, habit_sums, habits
from .pieces import Piece, pieces_of
from .skills import Skills, comparable, skills, vote_agreement, vote_left_out, vote_odds
from .spam import Evidence, Verdict, spam_and_trace, verdicts
from .table import WORKER_COLUMNS, flagged, share_correct, worker_table
from .times import Times, times

if TYPE_CHECKING:
    from ..result import LabelsResult

CLASS_PRIOR_ANSWERS = 10.0  # pseudo-answers with the crowd's class shares in the class shares of a worker's tasks
MAX_LISTED = 3  # other workers of a group of copies who are named
MAX_NAME = 40  # characters of an id or label in a reason
PASSED_CHECKS = 0.75  # no flag "one label" if the lower end of the score on checks is at least this

COLUMNS = WORKER_COLUMNS | {
    "status": "ok, or not identifiable: no other worker answered these tasks, and they have no gold",
    "spam_score": "0: answers do not depend on the truth, 1: answers determine it; spam_distance / (classes - 1)",
    "spam_distance": "squared distance of the confusion matrix to the nearest matrix with equal rows",
    "trace": "mean of the diagonal of the confusion matrix",
    "checks": "number of answers to attention checks",
    "check_score": "share of these answers that is correct",
    "check_low": "lower end of the 95 % interval of check_score",
    "check_high": "upper end of the 95 % interval of check_score",
    "seconds": "median time per answer",
    "agreement": "share of the other answers to a task that agree, mean over the worker's answers",
    "overuses": "label that the worker overuses",
    "overuse": "its share of the worker's answers minus its expected share",
}


class Sums(NamedTuple):
    """Sums over the answers of a piece; they add up over pieces."""

    totals: PerWorker  # (W, K) expected number of a worker's tasks of each class
    habits: HabitSums
    checks: CheckSums
    comparable: PerWorker  # (W,) answers to tasks with other answers or gold
    agree: Floats  # (2,) pairs of votes that agree, and all pairs


class Ratings(NamedTuple):
    """The values behind the columns and flags."""

    skills: Skills
    known: Bools  # (W,) whether skill can be estimated
    chance: Floats  # (W,) accuracy of random answers
    spam: Verdict
    habits: Habits
    checks: Checks
    times: Times
    copies: Copies
    clusters: Clusters


class Clusters(NamedTuple):
    """Workers who copy each other, as the fit found them: they share one vote."""

    of: Ints  # (W,) number of the cluster, or -1
    rate: Floats  # (G,) probability of copying


MAX_PIECES = 1_000_000


def rate(result: LabelsResult, answers: Labels | None = None, *, pieces: int = 1) -> pl.DataFrame:
    """Return a table of ratings with one row per worker and the columns `COLUMNS`.

    `answers` are the answers of the result; they may have other gold, times or marks of checks than in the fit.
    `pieces` is the number of parts in which the answers are processed; it does not change the ratings.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.crowd("hammer-spammer", tasks=200, workers=10, classes=3, per_task=5, seed=4)
    >>> cw.rate(cw.aggregate(sim.answers)).filter(flags="at chance").height
    2
    """
    if not hasattr(result, "left_out"):
        raise DataError(
            f"rate takes a result of labels; got {type(result).__name__}. Fit the answers first: "
            "rate(crowdwise.aggregate(answers))"
        )
    if not is_whole(pieces) or not 1 <= pieces <= MAX_PIECES:
        raise ParameterError(
            f"pieces is {brief(pieces)}; it must be a whole number of at least 1, at most {MAX_PIECES}"
        )
    answers = result.answers if answers is None else Labels.from_any(answers)
    _same_answers(answers, result.answers)
    parts = pieces_of(answers, result.posterior, pieces)
    sums = summed([rating_sums(piece) for piece in parts])
    odds = vote_odds(sums.agree, answers.n_classes)
    found = [classes_of(piece.posterior, result.prevalence, piece.gold) for piece in parts]
    behind = ratings(
        answers.layout.rows,
        result.prevalence,
        sums=sums,
        left_out=result.left_out,
        votes=summed([vote_left_out(piece, odds) for piece in parts]),
        times=times([piece.answers for piece in parts]),
        copies=copies(parts, found),
        clusters=result.model.clusters(result.params, answers.n_workers),
    )
    return rating_table(answers, behind, result.matrices)


def rating_sums(piece: Piece) -> Sums:
    """Return what the ratings need of a piece; it adds up over pieces."""
    return Sums(
        totals=expected_class_counts(piece),
        habits=habit_sums(piece),
        checks=check_sums(piece),
        comparable=comparable(piece.answers),
        agree=vote_agreement(piece),
    )


def ratings(
    rows: WorkerRows, prevalence: Floats, *, sums: Sums, left_out: tuple[Floats, Floats], votes: tuple[Floats, Floats],
    times: Times, copies: Copies, clusters: Clusters,
) -> Ratings:  # fmt: skip
    """Return the ratings; `left_out` and `votes` are sums under leave-one-out posteriors of the fit and of votes."""
    n, K = rows.per_worker, rows.n_classes
    seen, voted = skills(*left_out, n, K), skills(*votes, n, K)
    chance = _at_random(rows, sums.totals, prevalence)
    return Ratings(
        skills=seen,
        known=sums.comparable > 0,
        chance=chance,
        spam=verdicts(Evidence(seen.share, seen.worth), Evidence(voted.share, voted.worth), chance),
        habits=habits(rows, sums.habits, sums.totals),
        checks=checks(sums.checks),
        times=times,
        copies=copies,
        clusters=clusters,
    )


def _same_answers(answers: Labels, fitted: Labels) -> None:
    if answers is fitted:
        return
    same = all(np.array_equal(a, b) for a, b in zip(answers.layout[1:], fitted.layout[1:], strict=True))
    names = all(getattr(answers, of).equals(getattr(fitted, of)) for of in ("tasks", "workers", "classes"))
    if not (same and names):
        raise DataError(
            f"these answers ({answers!r}) are not those of the result ({fitted!r}). Rate the answers of the fit, or "
            "fit these answers with aggregate first"
        )


def _at_random(rows: WorkerRows, totals: Floats, prevalence: Floats) -> Floats:
    """Return the accuracy (W,) of random answers with each worker's label shares."""
    n, prior = rows.per_worker.astype(np.float64), CLASS_PRIOR_ANSWERS
    truth = (totals + prior * prevalence) / (n + prior)[:, None]
    given = rows.answers / np.maximum(n, 1)[rows.row_worker]
    return weighted_counts(rows.row_worker, given * truth[rows.row_worker, rows.row_label], len(n))


def rating_table(answers: Any, r: Ratings, matrices: Callable[[Ints], Floats | None]) -> pl.DataFrame:
    """Return the table of ratings; `matrices` returns the confusion matrices of workers, or None without any."""
    refuse_lost_threads()
    W, K, n = answers.n_workers, answers.n_classes, answers.answers_per_worker
    some: Any = None if matrices(np.arange(min(1, W), dtype=np.int32)) is None else matrices
    distance, trace = spam_and_trace(some, W, K)
    if K == 1:  # a single class carries no information
        distance = np.full(W, np.nan)

    def shown(values: Floats) -> pl.Series:
        return pl.Series(values, dtype=pl.Float64, nan_to_null=True)

    label = pl.Series(r.habits.overuses)
    columns: dict[str, Any] = {
        "status": pl.Series(["ok", "not identifiable"])[pl.Series(~r.known).cast(pl.UInt32)],
        "spam_score": shown(distance / max(K - 1, 1)),
        "spam_distance": shown(distance),
        "trace": shown(trace),
        "checks": r.checks.asked,
        "check_score": shown(r.checks.score),
        "check_low": shown(r.checks.low),
        "check_high": shown(r.checks.high),
        "seconds": shown(r.times.median),
        "agreement": shown(r.habits.agreement),
        "overuses": answers.classes[label.clip(0)].set(label < 0, None) if K else None,
        "overuse": shown(r.habits.overuse),
    }
    s = r.skills
    flags = _flags(answers, n, r)
    return worker_table(answers.workers, n, s.skill, s.low, s.high, known=r.known, **flags, **columns)


def _flags(answers: Any, n: Ints, r: Ratings) -> dict[str, list[str]]:
    """Return the flags of every worker, and the reasons for them."""
    known = r.known & (answers.n_classes > 1)
    masks = {
        "at chance": r.spam.at_chance & known,
        "one label": (r.habits.only >= 0) & known & ~(r.checks.low >= PASSED_CHECKS),
        "inverted": r.spam.inverted & known,
        "copies": (r.copies.other >= 0) | (r.clusters.of >= 0),
        "too fast": r.times.too_fast,
    }
    return flagged(
        {
            name: (mask, lambda j, name=name: _reason(answers, name, j, int(n[j]), r))  # type: ignore[misc]
            for name, mask in masks.items()
        }
    )


def _reason(answers: Any, name: str, j: int, n: int, r: Ratings) -> str:
    s = r.skills
    if name in ("at chance", "inverted"):
        end = "" if name == "at chance" else ": the labels may be swapped"
        return f"{share_correct(s.skill[j], s.low[j], s.high[j], r.chance[j])}{end}"
    if name == "one label":
        label = _short(answers.classes[int(r.habits.only[j])])
        wrong = f"an estimated {100 * r.habits.elsewhere[j]:.0f} % of them are wrong"
        return f"nearly all of {n} answers are \u201c{label}\u201d, and {wrong}"
    if name == "copies" and r.copies.other[j] < 0:
        own = int(r.clusters.of[j])
        others = [
            _short(answers.workers[int(k)]) for k in np.flatnonzero(r.clusters.of == own)[: MAX_LISTED + 1] if k != j
        ]
        size = int((r.clusters.of == own).sum())
        more = f" and {size - 1 - len(others[:MAX_LISTED])} more" if size - 1 > MAX_LISTED else ""
        share = f"{100 * r.clusters.rate[own]:.0f} % of the answers are as if copied within a group of {size} workers"
        return f"{share} (with {', '.join(others[:MAX_LISTED])}{more}), so they share one vote"
    if name == "copies":
        other = _short(answers.workers[int(r.copies.other[j])])
        same = f"{r.copies.same[j]} of {r.copies.shared[j]} answers are the same as those of {other}"
        odd = f"{r.copies.odd[j]} of them differ from the estimated label: one may have copied the other"
        return f"{same}, and {odd}{' (they share one vote)' * bool(r.clusters.of[j] >= 0)}"
    return f"takes {r.times.median[j]:.3g} s per answer, while the typical worker takes {r.times.typical:.3g} s"


def _short(name: object) -> str:
    text = str(name).replace("; ", ", ")  # "; " separates reasons
    return text if len(text) <= MAX_NAME else f"{text[:MAX_NAME]}..."
