"""Agreement of labels beyond chance, with intervals, from counts of votes.

With v[i, c] votes for class c on task i, n[i] votes in all, and sums over tasks with two votes or more:
    (1)  percent       P = mean over tasks of  sum_c v (v - 1) / (n (n - 1))
    (2)  Krippendorff  1 - (1 - sum_i sum_c v (v - 1) / (n[i] - 1) / n) / (1 - sum_c m_c (m_c - 1) / (n (n - 1)))
    (3)  Fleiss        (P - E) / (1 - E)  with  E = sum_c s_c^2,  s_c = mean over tasks of v / n
    (4)  Gwet's AC1    (P - E) / (1 - E)  with  E = sum_c p_c (1 - p_c) / (K - 1),  p_c as s_c, but over all tasks
    (5)  Cohen         mean over pairs of workers with 10 tasks in common of their kappa, weighted by those tasks
where label c was given m_c times, of n votes in all; (3) is Fleiss' own kappa if all tasks have the same number of
answers. Intervals treat tasks as a random sample: each measure is a smooth function of sums over tasks, so the spread
of a task's influence on it gives its standard error (infinitesimal jackknife). docs/maths/agreement.md derives it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..answers import Labels
from ..kernels.layout import Floats, Ints, vote_parts
from ..rating.skills import Z95

MIN_SHARED_TASKS = 10  # of two workers; with fewer, their kappa is mostly noise and biased
MAX_WORKERS = 100  # workers with most answers, whose pairs are compared
MAX_PAIR_CELLS = 20_000_000  # cells of the table of pairs of workers

NO_PAIRS = "no task has two answers, so there is nothing to agree on"
ONE_CLASS = (
    "all answers that can be compared are the same, so agreement beyond chance is not defined; percent agreement is 1"
)
MEASURES = {
    "krippendorff-alpha": "Krippendorff's alpha for nominal data",
    "fleiss-kappa": "Fleiss' kappa, for any number of answers per task",
    "cohen-kappa": "mean Cohen's kappa of pairs of workers who share ten tasks or more, weighted by those tasks",
    "gwet-ac1": "Gwet's AC1, stable where one class is frequent",
    "percent": "share of pairs of answers to a task that are the same",
}


Row = tuple[str, float | None, float | None, float | None, str]  # measure, value, low, high, note


class Sums(NamedTuple):
    """Sums over tasks."""

    tasks: int  # with two votes or more
    answered: int  # with one or more
    n: float  # votes on the former
    A: float  # sum_c v (v - 1) / (n - 1)
    P: float  # sum_c v (v - 1) / (n (n - 1))
    m: Floats  # (K,) votes for each class on tasks with two or more
    s: Floats  # (K,) v / n over those tasks
    p: Floats  # (K,) v / n over tasks with one or more


class Slopes(NamedTuple):
    """Derivatives of a measure with respect to the sums; 0 for sums that it does not depend on."""

    A: float = 0.0
    P: float = 0.0
    n: float = 0.0
    tasks: float = 0.0
    answered: float = 0.0
    m: Floats | None = None
    s: Floats | None = None
    p: Floats | None = None


def label_agreement(data: Labels) -> pl.DataFrame:
    """One row per measure of `MEASURES`."""
    return measured(data, MEASURES)


def measured(data: Labels, names: Iterable[str]) -> pl.DataFrame:
    """One row per measure of these names."""
    sums = _sums(data)
    return measure_table([_by_counts(data, sums, name) if name in _BY_COUNTS else _cohen(data, name) for name in names])


def measure_table(rows: list[Row]) -> pl.DataFrame:
    """measure, value, low, high, note."""
    kinds = {"measure": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "note": pl.String}
    return pl.DataFrame(rows, schema=kinds, orient="row")


def _sums(data: Labels) -> Sums:
    K = data.n_classes
    tasks = answered = 0
    n = A = P = 0.0
    m, s, p = np.zeros(K), np.zeros(K), np.zeros(K)
    for v, size in _votes(data):
        pairs = ((v * v).sum(1) - size) / np.maximum(size - 1, 1)
        several = size > 1
        tasks += int(several.sum())
        answered += int((size > 0).sum())
        n += float(size[several].sum())
        A += float(pairs[several].sum())
        P += float((pairs[several] / size[several]).sum())
        m += v[several].sum(0)
        share = v / np.maximum(size, 1)[:, None]
        s += share[several].sum(0)
        p += share.sum(0)
    return Sums(tasks, answered, n, A, P, m, s, p)


def _votes(data: Labels) -> Any:
    """Votes (tasks, K) and their number (tasks,), some tasks at a time."""
    size = data.answers_per_task.astype(np.float64)
    for part, votes in vote_parts(data.kernels, data.layout, 1):
        yield votes.astype(np.float64), size[part]


def _by_counts(data: Labels, s: Sums, name: str) -> Row:
    if s.tasks == 0:
        return name, None, None, None, NO_PAIRS
    given = s.p if name == "gwet-ac1" else s.m
    if name != "percent" and np.count_nonzero(given) < 2:
        return name, None, None, None, ONE_CLASS
    value, slopes = _BY_COUNTS[name](s)
    total, squares = 0.0, 0.0
    for v, size in _votes(data):
        several = size > 1
        pairs = np.where(several, ((v * v).sum(1) - size) / np.maximum(size - 1, 1), 0)
        u = slopes.A * pairs + slopes.P * pairs / np.maximum(size, 1) + several * (slopes.n * size + slopes.tasks)
        u += (size > 0) * slopes.answered
        for slope, votes in ((slopes.m, v), (slopes.s, v / np.maximum(size, 1)[:, None])):
            u += 0.0 if slope is None else several * (votes @ slope)
        u += 0.0 if slopes.p is None else v @ slopes.p / np.maximum(size, 1)
        total += float(u.sum())
        squares += float((u * u).sum())
    return _row(name, value, squares - total**2 / max(s.answered, 1), s.tasks)


def _alpha(s: Sums) -> tuple[float, Slopes]:  # eq (2)
    chance, pairs = float((s.m * (s.m - 1)).sum()), s.n * (s.n - 1)
    seen, expected = 1 - s.A / s.n, 1 - chance / pairs
    of_expected = seen / expected**2
    return 1 - seen / expected, Slopes(
        A=1 / (s.n * expected),
        n=-s.A / s.n**2 / expected + of_expected * chance * (2 * s.n - 1) / pairs**2,
        m=-of_expected * (2 * s.m - 1) / pairs,
    )


def _fleiss(s: Sums) -> tuple[float, Slopes]:  # eq (3)
    share = s.s / s.tasks
    E, P = float((share**2).sum()), s.P / s.tasks
    of_share = -(1 - P) / (1 - E) ** 2 * 2 * share
    slopes = Slopes(
        P=1 / s.tasks / (1 - E),
        tasks=-s.P / s.tasks**2 / (1 - E) - float((of_share * s.s).sum()) / s.tasks**2,
        s=of_share / s.tasks,
    )
    return (P - E) / (1 - E), slopes


def _gwet(s: Sums) -> tuple[float, Slopes]:  # eq (4)
    others, share = np.count_nonzero(s.p) - 1, s.p / s.answered  # only classes that were given count
    E, P = float((share * (1 - share)).sum() / others), s.P / s.tasks
    of_share = -(1 - P) / (1 - E) ** 2 * (1 - 2 * share) / others
    slopes = Slopes(
        P=1 / s.tasks / (1 - E),
        tasks=-s.P / s.tasks**2 / (1 - E),
        answered=-float((of_share * s.p).sum()) / s.answered**2,
        p=of_share / s.answered,
    )
    return (P - E) / (1 - E), slopes


def _percent(s: Sums) -> tuple[float, Slopes]:  # eq (1)
    return s.P / s.tasks, Slopes(P=1 / s.tasks, tasks=-s.P / s.tasks**2)


_BY_COUNTS = {"krippendorff-alpha": _alpha, "fleiss-kappa": _fleiss, "gwet-ac1": _gwet, "percent": _percent}


def _cohen(data: Labels, name: str) -> Row:  # eq (5)
    layout = data.layout
    chosen = _busiest(data)
    place = np.full(data.n_workers, -1, np.int32)
    place[chosen] = np.arange(len(chosen), dtype=np.int32)
    same, counts = data.kernels.pair_counts(layout, place, len(chosen))
    n = counts.sum(1)
    chance = np.einsum("alb,bla->ab", counts, counts).astype(np.float64)
    room = n * n - chance  # 0 where both workers always give one and the same label
    enough = n >= MIN_SHARED_TASKS
    usable = np.triu((room > 0) & enough, 1)
    if not usable.any():
        few, alike = f"no two workers share {MIN_SHARED_TASKS} tasks", "every pair of workers gave a single label only"
        return name, None, None, None, alike if np.triu(enough, 1).any() else few
    some = usable | usable.T
    n_, equal, E, room = (np.where(some, x, 1.0).astype(np.float64) for x in (n, same, chance, room))
    weight = float(n[usable].sum())
    value = float((n_ * (n_ * equal - E) / room)[usable].sum() / weight)
    # n kappa = n (n O - E) / (n^2 - E); its slopes, and those of the weights
    of_same = n_ * n_ / room
    of_pair = ((2 * n_ * equal - E) * room - n_ * (n_ * equal - E) * 2 * n_) / room**2 - value
    of_chance = n_ * ((n_ * equal - E) - room) / room**2
    slopes = [np.where(some, x, 0.0) / weight for x in (of_same, of_pair, of_chance)]
    u = data.kernels.pair_influence(layout, place, counts, *slopes)
    skipped = int(np.triu(enough & ~some, 1).sum())
    notes = [f"pairs among the {len(chosen)} busiest workers"] if len(chosen) < data.n_workers else []
    notes += [f"{skipped} pair(s) of workers who gave a single label only are omitted"] if skipped else []
    tasks = int((data.answers_per_task > 1).sum())
    return _row(name, value, float((u * u).sum() - u.sum() ** 2 / max(tasks, 1)), tasks, "; ".join(notes))


def _busiest(data: Labels) -> Ints:
    most = max(2, min(MAX_WORKERS, int((MAX_PAIR_CELLS / max(data.n_classes, 1)) ** 0.5), data.n_workers))
    order = np.argsort(-data.answers_per_worker, kind="stable")[:most]
    return np.sort(order)


def interval_row(name: str, value: float, variance: float, n: int, note: str = "", floor: float = -1.0) -> Row:
    """A measure with its 95 % interval; `variance` is the sum of squared influences of n tasks or images."""
    if n < 2:
        return name, value, None, None, "; ".join(filter(None, [note, "only one to compare, so no interval"]))
    half = student(n - 1) * np.sqrt(max(variance, 0.0) * n / (n - 1))
    return name, value, min(max(value - half, floor), value), max(min(value + half, 1.0), value), note


def _row(name: str, value: float, variance: float, tasks: int, note: str = "") -> Row:
    return interval_row(name, value, variance, tasks, note, floor=0.0 if name == "percent" else -1.0)


def student(freedom: int) -> float:
    """97.5 % quantile of Student's t, by expansion around the normal quantile (Abramowitz & Stegun 26.7.5)."""
    if freedom <= 4:  # too far from normal to expand
        return (12.706204736, 4.302652730, 3.182446305, 2.776445105)[freedom - 1]
    z, f = Z95, float(freedom)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / f**power for power, term in enumerate(terms, 1))


def rank_correlation(first: Floats, second: Floats) -> float:
    """Spearman's rank correlation, with mean ranks for ties; 0 if one of the arrays is constant."""
    x, y = (pl.Series(values).rank("average").to_numpy() for values in (first, second))
    return 0.0 if not len(x) or np.ptp(x) == 0 or np.ptp(y) == 0 else float(np.corrcoef(x, y)[0, 1])
