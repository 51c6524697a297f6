"""How good a result is where the truth is known: ROC curves, the area under them, and how well skills were told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..answers import Labels
from ..answers.frames import to_frame
from ..engine.resources import load
from ..errors import ColumnError, DataError, EmptyDataError, ParameterError, nearest
from ..kernels.layout import Floats, Ints, weighted_counts
from ..kernels.special import divergence as _divergence
from ..result import LabelsResult
from ..result.base import result_of

CELLS = 1 << 22  # numbers in the tables of answers handled at a time


def roc(result: LabelsResult, truth: Any, *, label: Any = None) -> pl.DataFrame:
    """The ROC curve of the estimated truth: threshold, false_positive, true_positive.

    `truth` is a table of task and label, or a mapping. With two classes the second is sought, or `label`; with more,
    `label` against the others, or without one every class against the others, together.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.crowd(tasks=50, workers=9, classes=2, seed=3)
    >>> cw.roc(cw.aggregate(sim.answers), sim.truth).columns
    ['threshold', 'false_positive', 'true_positive']
    """
    score, hit = _sought(result_of(result, "labels", "roc"), truth, label)
    order = np.argsort(-score, kind="stable")
    score, hit = score[order], hit[order]
    last = np.flatnonzero(np.append(np.diff(score) != 0, True))  # tasks of one score come in together
    found = np.cumsum(hit)[last]
    rates = [np.append(0.0, n / max(n[-1], 1)) for n in (last + 1 - found, found)]
    return pl.DataFrame(
        {"threshold": np.append(np.inf, score[last]), "false_positive": rates[0], "true_positive": rates[1]}
    )


def auc(result: LabelsResult, truth: Any, *, label: Any = None) -> float:
    """The area under `roc`: the chance that a task of the class sought scores higher than another.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.crowd(tasks=50, workers=9, classes=2, seed=3)
    >>> cw.auc(cw.aggregate(sim.answers), sim.truth) > 0.8
    True
    """
    return area(roc(result, truth, label=label))


def area(curve: pl.DataFrame) -> float:
    """The area under a curve that `roc` made."""
    return float(np.trapezoid(curve["true_positive"], curve["false_positive"]))


def known_classes(answers: Labels, truth: Any) -> Ints:
    """(T,) the true class of each task by number; -1 where it is not told."""
    if isinstance(truth, Mapping) and not {"task", "label"} <= set(truth):
        told = dict(truth)
    else:
        table = to_frame(truth)
        if not {"task", "label"} <= set(table.columns):
            raise ColumnError(f"truth has columns {', '.join(table.columns)}; wanted are task and label")
        told = dict(zip(table["task"].to_list(), table["label"].to_list(), strict=True))
    code = {name: k for k, name in enumerate(answers.classes.to_list())}
    return np.array([code.get(told.get(task), -1) for task in answers.tasks.to_list()], np.int32)


def _sought(result: LabelsResult, truth: Any, label: Any) -> tuple[Floats, Any]:
    names = result.classes.to_list()
    if label is not None and label not in names:
        raise ParameterError(f"no class {label!r}; there are {', '.join(map(str, names))}.{nearest(str(label), names)}")
    gold = known_classes(result.answers, truth)
    known = np.flatnonzero(gold >= 0)
    if not len(known):
        raise EmptyDataError(
            "the truth names no task of this result: nothing can be scored. Check its tasks and labels"
        )
    P, right = result.posterior[known].astype(np.float64), gold[known][:, None] == np.arange(len(names))
    if label is None and len(names) > 2:
        return P.ravel(), right.ravel()
    k = names.index(label) if label is not None else len(names) - 1
    if right[:, k].all() or not right[:, k].any():
        raise DataError(
            f"all {len(known)} tasks whose truth is known are {'' if right[:, k].all() else 'not '}{names[k]!r}: a ROC "
            "curve needs both. Give more truth"
        )
    return P[:, k], right[:, k]


def expertise(result: LabelsResult, truth: Any = None) -> pl.DataFrame:
    """How often each worker names a class where it is true, a row a worker and class: worker, label, estimated,
    easiest, true, answers.

    With two classes, that of the second is sensitivity, that of the first specificity. `estimated` is on the tasks that
    the worker answered, `easiest` on a task as easy as can be (the same where all tasks are alike; by glad, one of ease
    1). `true` is the share of right answers among those to tasks of that class by `truth` (a table of task and label),
    `answers` their number.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.crowd(tasks=50, workers=9, classes=2, seed=3)
    >>> cw.expertise(cw.aggregate(sim.answers), sim.truth).columns
    ['worker', 'label', 'estimated', 'easiest', 'true', 'answers']
    """
    result = result_of(result, "labels", "expertise")
    answers, K = result.answers, result.answers.n_classes
    W = answers.n_workers
    table = pl.DataFrame(
        {
            "worker": answers.workers[np.repeat(np.arange(W), K)],
            "label": answers.classes[np.tile(np.arange(K), W)],
            "estimated": _named(result, mean=True).ravel(),
            "easiest": _named(result, mean=False).ravel(),
        }
    )
    if truth is None:
        return table
    gold = known_classes(answers, truth)
    task, worker, label = answers.codes()
    seen = gold[task] >= 0
    cell = worker[seen] * K + gold[task[seen]]
    count = np.bincount(cell, minlength=W * K)
    right = weighted_counts(cell, label[seen] == gold[task[seen]], W * K)
    with np.errstate(invalid="ignore"):
        share = pl.Series(right / count, nan_to_null=True)
    return table.with_columns(true=share, answers=pl.Series(count))


def _named(result: LabelsResult, mean: bool) -> Floats:
    """(W, K) chance that a worker names a class where it is true: on the worker's own tasks, or the easiest."""
    model, answers = result.model, result.answers
    W, K = answers.n_workers, answers.n_classes
    if not mean or model.difficulty(result.params) is None:
        sharp, out = model.easiest(result.params), np.empty((W, K))
        size = max(1, CELLS // K**3)
        for start in range(0, W, size):
            some = np.arange(start, min(start + size, W), dtype=np.int32)
            every, said = np.repeat(some, K), np.tile(np.arange(K, dtype=np.int32), len(some))
            logs = model.emission(sharp, answers.layout, every, said)[np.arange(len(said)), said]
            out[some] = np.exp(logs).reshape(len(some), K)
        return out
    task, worker, _ = answers.codes()
    total, weight = np.zeros((W, K)), np.zeros((W, K))
    for start in range(0, len(task), max(1, CELLS // K**2)):
        part = slice(start, start + max(1, CELLS // K**2))
        i, j = task[part], worker[part]
        chance = model.class_accuracy(result.params, answers.layout, j, i)
        for k in range(K):
            total[:, k] += weighted_counts(j, result.posterior[i, k] * chance[:, k], W)
            weight[:, k] += weighted_counts(j, result.posterior[i, k], W)
    return np.asarray(total / np.maximum(weight, 1e-12))


class Divergence(NamedTuple):
    """How far estimated confusion matrices are from the true ones: Jensen-Shannon in bits, the mean over rows."""

    individual: float  # I-JS: the mean over workers
    crowd: float  # G-JS: of the crowd's matrix


def divergence(result: LabelsResult, truth: Any = None, *, confusions: Any = None) -> Divergence:
    """How well confusion matrices were told (I-JS and G-JS; 0 is best, 1 worst).

    The true ones are counted by `truth` (a table of task and label; a row that a worker never met is even), or given:
    `confusions` (W, K, K), in the order of `result.answers.workers`.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.crowd("groups", tasks=300, workers=20, classes=3, seed=3)
    >>> 0 < cw.divergence(cw.aggregate(sim.answers, "groups"), confusions=sim.confusions).individual < 0.02
    True
    """
    result = result_of(result, "labels", "divergence")
    answers = result.answers
    W, K = answers.n_workers, answers.n_classes
    if (truth is None) == (confusions is None):
        raise ParameterError("give either truth, a table of task and label, or confusions, (workers, classes, classes)")
    given = None if confusions is None else np.asarray(confusions, float)
    if given is not None and given.shape != (W, K, K):
        raise ParameterError(f"confusions have shape {given.shape}; wanted is {(W, K, K)}: workers, classes, classes")
    gold = None if truth is None else known_classes(answers, truth)
    total, crowd, size = 0.0, np.zeros((K, K)), max(1, CELLS // K**2)
    for start in range(0, W, size):
        some = np.arange(start, min(start + size, W))
        counts = np.ones((0, K, K)) if gold is None else true_counts(answers, gold, some)
        true = _shares(counts) if given is None else given[some]
        total += float(_divergence(true, result.confusions(some)).sum())
        crowd += counts.sum(0) if given is None else np.einsum("j,jkl->kl", answers.answers_per_worker[some], true)
    return Divergence(total / max(W, 1), float(_divergence(_shares(crowd), result.average_confusion)))


def true_counts(answers: Labels, gold: Ints, workers: Ints | None = None) -> Floats:
    """(M, K, K) answers of some workers by true class (T,) and label; without workers (1, K, K), of all."""
    task, worker, label = answers.codes()
    place = np.full(answers.n_workers, 0 if workers is None else -1)
    if workers is not None:
        place[workers] = np.arange(len(workers))
    seen = (gold[task] >= 0) & (place[worker] >= 0)
    K = answers.n_classes
    cell = (place[worker[seen]] * K + gold[task[seen]]) * K + label[seen]
    size = 1 if workers is None else len(workers)
    return np.bincount(cell, minlength=size * K * K).reshape(-1, K, K).astype(float)


def _shares(counts: Floats) -> Floats:
    """Rows of counts as shares; even where there is nothing."""
    total = counts.sum(-1, keepdims=True)
    return np.asarray(np.divide(counts, total, out=np.full(counts.shape, 1 / counts.shape[-1]), where=total > 0))


def rand_index(result: LabelsResult, groups: Any) -> float:
    """How well the groups of workers agree with true ones, `groups` (a mapping from worker, or a table of worker and
    group): the adjusted Rand index, 1 where they are the same, 0 by chance.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.crowd("groups", tasks=300, workers=20, classes=3, seed=3)
    >>> cw.rand_index(cw.aggregate(sim.answers, "groups"), sim.workers)
    1.0
    """
    adjusted_rand_score = load("sklearn.metrics", "learn", "rand_index").adjusted_rand_score
    if not isinstance(groups, Mapping) or {"worker", "group"} <= set(groups):
        table = to_frame(groups)
        if not {"worker", "group"} <= set(table.columns):
            raise ColumnError(f"groups has columns {', '.join(table.columns)}; wanted are worker and group")
        groups = dict(table.select("worker", "group").rows())
    known = [(groups[worker], found) for worker, found, _ in result.members.rows() if worker in groups]
    if not known:
        raise EmptyDataError("the true groups name no worker of this result: nothing can be scored")
    true, found = zip(*known, strict=True)
    return float(adjusted_rand_score(true, found))


@dataclass(frozen=True)
class Judged:
    """Methods held against the truth, for a page: curves, areas and skills by method."""

    curves: dict[str, pl.DataFrame]
    skills: dict[str, pl.DataFrame]
    gold: Ints | None = None  # (T,) true classes of the tasks by number, -1 where not known

    def table(self) -> pl.DataFrame:
        """All curves in one table: method, auc, threshold, false_positive, true_positive."""
        parts = [
            curve.select(pl.lit(name).alias("method"), pl.lit(area(curve)).alias("auc"), pl.all())
            for name, curve in self.curves.items()
        ]
        return pl.concat(parts) if parts else pl.DataFrame()


def judged(results: Mapping[str, LabelsResult], truth: Any = None) -> Judged:
    """Results by the name of their method; the first is the one that a page is about. A method that takes all workers
    for alike says nothing of their skills."""
    curves = {} if truth is None else {name: roc(result, truth) for name, result in results.items()}
    apart = {name: result for name, result in results.items() if result.model.distinguishes_workers}
    gold = None if truth is None or not results else known_classes(next(iter(results.values())).answers, truth)
    return Judged(curves, {name: expertise(result, truth) for name, result in apart.items()}, gold)
