"""Which tasks to ask again, which workers to ask, and what more answers would add.

A task has a label k with probability q[k], and a most probable other class, the rival r. An average worker gives label
k, r or another one with the probabilities of the crowd's confusion matrix. After m more answers, with counts c of the
labels k, r and other, the expected probability of being right is
    (1)  V[m] = sum over c of max(q[k] P(c | k), q[r] P(c | r)),        V[0] = max(q[k], q[r])
One answer alone often cannot change a label, so gains are computed for 1 to MAX_AHEAD answers together: the slopes of
the upper hull of V[m] - V[0] are the value of each additional answer. A budget is spent where slopes are steepest.
docs/maths/acquisition.md derives this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from ..answers import Labels
from ..answers.arguments import check_arguments, check_list, check_whole
from ..kernels.ahead import expected_right, information, label_rival_other, with_other
from ..kernels.layout import Bools, Floats, Ints, weighted_counts
from ..kernels.special import classes_of
from ..result import LabelsResult
from ..result.base import result_of

MAX_AHEAD = 5  # additional answers to a task that are considered together
MAX_BATCH_TASKS = 200_000  # tasks computed at a time
MIN_INFORMATION_RATIO = 1.25  # a worker is named if their information is this many times the average worker's
MAX_WORKERS = 2_000  # best workers who can be named
MAX_MATRIX_CELLS = 50_000_000  # cells of confusion matrices in memory


class Rivals(NamedTuple):
    """The label of each task and the most probable other class."""

    label: Ints  # (T,)
    rival: Ints  # (T,)
    q: Floats  # (T, 2) their probabilities


def rivals(result: LabelsResult) -> Rivals:
    """Return labels and rivals by the posterior without the vote, which is what more answers change."""
    Z, _ = _without_vote(result)
    label = classes_of(result.posterior, result.prevalence, result.answers.gold)
    others = Z.astype(np.float64)
    rows = np.arange(len(Z))
    first = others[rows, label].copy()
    others[rows, label] = -1
    rival = others.argmax(1)
    return Rivals(label, rival, np.stack([first, np.maximum(others[rows, rival], 0)], axis=1))


def _without_vote(result: LabelsResult) -> tuple[Floats, Floats]:
    """Return the posterior (T, K) without the vote, and its weight (T,) in the reported posterior."""
    return result.model.all_without_vote(result.params, result.answers, result.posterior)


def expected(result: LabelsResult, most: int = MAX_AHEAD, tasks: Ints | None = None) -> Floats:
    """(T, most + 1) probability of being right now and after 1, 2, ... more answers of average workers, eq (1). It is 1
    for tasks with gold. `tasks` are the indices of the tasks to compute; all by default.

    Of calibrated probabilities, only the part without the vote gains: the vote accounts for errors of the model,
    which more answers of the same crowd do not correct.
    """
    chosen = np.arange(result.answers.n_tasks) if tasks is None else tasks
    T, K = len(chosen), result.answers.n_classes
    if K < 2:
        return np.ones((T, most + 1))
    both, pi = rivals(result), result.average_confusion
    two = Rivals(both.label[chosen], both.rival[chosen], both.q[chosen])
    _, own = _without_vote(result)
    by_task = result.model.difficulty(result.params) is not None
    size = min(MAX_BATCH_TASKS, max(1, MAX_MATRIX_CELLS // K**2)) if by_task else MAX_BATCH_TASKS
    V = np.empty((T, most + 1))
    for start in range(0, T, size):
        part = slice(start, start + size)
        label, rival, q = two.label[part], two.rival[part], two.q[part]
        if by_task:
            given = _label_probabilities(result, chosen[part], label, rival)
        else:
            given = np.stack([label_rival_other(pi, truth, label, rival) for truth in (label, rival)], axis=1)
        V[part] = expected_right(q, given, most)
    now = result.posterior[chosen, two.label].astype(np.float64)[:, None]
    V = now + own[chosen][:, None] * (V - V[:, :1])
    V[result.answers.gold[chosen] >= 0] = 1.0
    return np.minimum(V, 1.0)


def _label_probabilities(result: LabelsResult, task: Ints, label: Ints, rival: Ints) -> Floats:
    """(T, 2, 3) probabilities of label, rival and other, if the label or the rival is true, for tasks of different
    difficulty."""
    average, rows = np.full(len(task), -1, np.int32), np.arange(len(task))
    logs = [
        result.model.emission(result.params, result.answers.layout, average, given.astype(np.int32), task)
        for given in (label, rival)
    ]
    pairs = [[np.exp(log[rows, truth]) for log in logs] for truth in (label, rival)]
    return np.stack([with_other(a, b) for a, b in pairs], axis=1)


def hull_slopes(V: Floats) -> Floats:
    """(T, m) increase of the probability of being right by each additional answer: slopes of the upper hull of V, which
    never increase."""
    T, m = V.shape[0], V.shape[1] - 1
    slopes, at = np.zeros((T, m)), np.zeros(T, np.int64)
    rows = np.arange(T)
    for n in range(1, m + 1):
        here = V[rows, at]
        ahead = np.arange(1, m + 1)[None] - at[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(ahead > 0, (V[:, 1:] - here[:, None]) / ahead, -np.inf)
        best = m - slope[:, ::-1].argmax(1)  # of equal slopes, the farthest point
        moving = at < n
        slopes[moving, n - 1] = slope[moving, best[moving] - 1]
        arrived = moving & (best == n)
        at[arrived] = n
    return slopes


def next_tasks(result: LabelsResult, budget: int = 100, *, batch: int | None = None, whom: bool = True) -> pl.DataFrame:
    """Return the tasks to ask again, best first: task, ask (number of answers to ask for now), label, probability,
    rival, gain (expected increase of the probability of being right, by these answers), per_answer (value of each of
    them, also as a step towards more answers), workers (the workers to ask, if it matters; else null).

    `budget` is the number of answers that can be paid for, `batch` the number to ask for now: the answers change what
    is best to ask next. With `whom=False`, no workers are chosen.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.crowd(tasks=100, workers=10, per_task=3, seed=1)
    >>> cw.next_tasks(cw.aggregate(sim.answers), budget=5)["ask"].sum()
    5
    """
    check_budget(budget, batch)
    check_arguments({"whom": "bool"}, {"whom": whom})
    result = result_of(result, "labels", "next_tasks")
    answers = result.answers
    V = expected(result)
    chosen, asked, each = ranked_asks(hull_slopes(V), budget, batch, answers.answers_per_task, answers.gold < 0)
    two = rivals(result)
    several = answers.n_classes > 1
    return pl.DataFrame(
        {
            "task": answers.tasks[chosen],
            "ask": asked[chosen],
            "label": result.labels["label"][chosen],
            "probability": result.labels["probability"][chosen],
            "rival": answers.classes[two.rival[chosen]] if several else None,
            "gain": V[chosen, asked[chosen]] - V[chosen, 0],
            "per_answer": each[chosen],
            "workers": _workers_to_ask(result, chosen, asked[chosen], two) if whom and several else None,
        },
        schema_overrides={"workers": pl.String},
    )


def ranked_asks(
    slopes: Floats, budget: int, batch: int | None, answered: Ints, open_: Bools | None = None
) -> tuple[Ints, Ints, Floats]:
    """Spend a budget where answers are worth most.

    `slopes` (n, MAX_AHEAD) is the value of each additional answer and never increases along a row. Of equal slopes, the
    row with fewest answers comes first. Return the rows to ask about, best first, the number of answers to ask for each
    row, and the mean value of these answers.
    """
    n, ahead = slopes.shape
    open_ = np.ones(n, bool) if open_ is None else open_
    flat = np.where(open_[:, None], slopes, -1.0).ravel()
    size = min(budget if batch is None else min(batch, budget), int(open_.sum()) * ahead)
    order = np.lexsort((np.repeat(answered, ahead), -flat))[:size]
    asked = np.bincount(order // ahead, minlength=n)
    each = weighted_counts(order // ahead, flat[order], n) / np.maximum(asked, 1)
    chosen = np.flatnonzero(asked)
    return chosen[np.lexsort((chosen, -each[chosen]))], asked, each


def check_budget(budget: int, batch: int | None) -> None:
    """Raise ParameterError unless budget and batch are at least 1."""
    check_whole("budget", budget, 1)
    if batch is not None:
        check_whole("batch", batch, 1)


def _workers_to_ask(result: LabelsResult, tasks: Ints, ask: Ints, two: Rivals) -> list[str | None]:
    """Return the names of the workers who best distinguish the label from its rival, with a limit per worker."""
    best = _best_workers(result)
    matrices = result.matrices(best) if len(best) else None
    if matrices is None:
        return [None] * len(tasks)
    crowd = result.average_confusion
    share = int(np.ceil(2 * ask.sum() / len(best)))
    left, names = np.full(len(best), share), result.answers.workers
    ratio: dict[tuple[int, int], Floats] = {}
    chosen: list[str | None] = []
    for i, wanted in zip(tasks.tolist(), ask.tolist(), strict=True):
        pair = int(two.label[i]), int(two.rival[i])
        if pair not in ratio:
            own = information(matrices[:, pair[0]], matrices[:, pair[1]])
            ratio[pair] = own / max(float(information(crowd[pair[0]], crowd[pair[1]])), 1e-12)
        value = np.where((left > 0) & ~np.isin(best, _answered(result.answers, i)), ratio[pair], 0)
        picked = np.argsort(-value, kind="stable")[:wanted]
        picked = picked[value[picked] > MIN_INFORMATION_RATIO]
        left[picked] -= 1
        chosen.append("; ".join(str(names[int(best[p])]) for p in picked) or None)
    return chosen


def _best_workers(result: LabelsResult) -> Ints:
    """Return the indices of the best-ranked workers without a flag."""
    table = result.workers
    number = pl.Series("number", np.arange(table.height, dtype=np.int32))
    good = table.with_columns(number).filter(pl.col("rank").is_not_null() & (pl.col("flags") == "")).sort("rank")
    most = min(MAX_WORKERS, MAX_MATRIX_CELLS // max(result.answers.n_classes, 1) ** 2)
    return good["number"].head(most).to_numpy()


def _answered(answers: Labels, task: int) -> Ints:
    layout = answers.layout
    return layout.row_worker[layout.pair[layout.task_ptr[task] : layout.task_ptr[task + 1]]]


REVIEW_MODELS = (
    "majority-vote",
    "one-coin",
    "dawid-skene",
)  # models whose labels are compared with those of the result
MAX_LABELS_LISTED = 5  # labels whose votes are listed


def review_tasks(result: LabelsResult, top: int | None = None, *, models: Sequence[str] | None = None) -> pl.DataFrame:
    """Return the tasks to review, sorted by the gain of one more answer, then by uncertainty; `review` lists the
    columns."""
    result = result_of(result, "labels", "review")
    answers = result.answers
    V = expected(result)
    gain = hull_slopes(V)[:, 0]
    order = np.lexsort((np.arange(len(gain)), V[:, 0], -gain))
    order = order[answers.gold[order] < 0][: len(order) if top is None else top]
    named = REVIEW_MODELS if models is None else check_list("models", models, "a list of names of models")
    others = _other_labels(result, named)
    differ = [[name for name in names if name is not None] for names in zip(*(o[order] for o in others), strict=True)]
    labels, tasks = result.labels[order], result.tasks[order]
    return pl.DataFrame(
        {
            **{name: labels[name] for name in ("task", "label", "probability", "status", "tie")},
            "answers": tasks["answers"],
            "votes": [_votes(answers, int(i)) for i in order],
            **{name: tasks[name] for name in ("entropy", "vote_entropy", "disagreement", "difficulty")},
            "gain": gain[order],
            "models_disagree": [bool(names) for names in differ] if others else None,
            "others": ["; ".join(names) for names in differ] if others else None,
        }
    )


def _other_labels(result: LabelsResult, models: Sequence[str]) -> list[pl.Series]:
    """For every model, "name: label" per task; null if its label is the same."""
    from ..aggregation import model
    from ..engine import Run

    own, found = result.labels["label"], []
    for name in models:
        other = model(name)
        if name != result.model.name and (other.uses_weights or not result.answers.weighted):
            label = other.fit(result.answers, run=Run(seed=result.seed)).labels["label"]
            text = pl.Series([f"{name}: {x}"[:80] for x in label.to_list()])
            found.append(text.set((label == own).fill_null(value=True), None))
    return found


def _votes(answers: Labels, task: int) -> str:
    layout = answers.layout
    given = layout.row_label[layout.pair[layout.task_ptr[task] : layout.task_ptr[task + 1]]]
    label, count = np.unique(given, return_counts=True)
    order = np.argsort(-count, kind="stable")
    votes = [f"{str(answers.classes[int(label[k])])[:40]} {count[k]}" for k in order[:MAX_LABELS_LISTED]]
    return ", ".join([*votes, "..."] if len(order) > MAX_LABELS_LISTED else votes)
