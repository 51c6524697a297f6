"""Metrics of label results against a known truth: ROC curves, their area, and errors of estimated worker skills."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..answers import Labels
from ..answers.coding import normalise_ids, place_of, to_text
from ..answers.frames import to_frame
from ..engine.resources import load
from ..errors import ColumnError, DataError, EmptyDataError, ParameterError, nearest
from ..kernels.layout import Floats, Ints, weighted_counts
from ..kernels.special import divergence as _divergence
from ..result import LabelsResult
from ..result.base import result_of

MAX_BATCH_CELLS = 1 << 22  # numbers in the arrays handled at a time


def roc(result: LabelsResult, truth: Any, *, label: Any = None) -> pl.DataFrame:
    """ROC curve of the estimated truth: threshold, false_positive, true_positive.

    `truth` is a table of task and label, or a mapping from task to label. `label` is the positive class. By default, it
    is the second of two classes; with more classes, the curve pools every class against the others (micro-average).

    >>> import crowdwise as cw
    >>> sim = cw.simulate.crowd(tasks=50, workers=9, classes=2, seed=3)
    >>> cw.roc(cw.aggregate(sim.answers), sim.truth).columns
    ['threshold', 'false_positive', 'true_positive']
    """
    score, positive = _scores_and_positives(result_of(result, "labels", "roc"), truth, label)
    order = np.argsort(-score, kind="stable")
    score, positive = score[order], positive[order]
    last = np.flatnonzero(np.append(np.diff(score) != 0, True))  # tasks with equal scores share one threshold
    hits = np.cumsum(positive)[last]
    rates = [np.append(0.0, n / max(n[-1], 1)) for n in (last + 1 - hits, hits)]
    return pl.DataFrame(
        {"threshold": np.append(np.inf, score[last]), "false_positive": rates[0], "true_positive": rates[1]}
    )


def auc(result: LabelsResult, truth: Any, *, label: Any = None) -> float:
    """Area under `roc`: the probability that a task of the positive class scores higher than another task.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.crowd(tasks=50, workers=9, classes=2, seed=3)
    >>> cw.auc(cw.aggregate(sim.answers), sim.truth) > 0.8
    True
    """
    return area(roc(result, truth, label=label))


def area(curve: pl.DataFrame) -> float:
    """Area under a curve returned by `roc`."""
    return float(np.trapezoid(curve["true_positive"], curve["false_positive"]))


def known_classes(answers: Labels, truth: Any) -> Ints:
    """True class of each task as a number, (T,); -1 where it is unknown."""
    if isinstance(truth, Mapping) and not {"task", "label"} <= set(truth):
        truth = {"task": list(truth), "label": list(truth.values())}
    table = to_frame(truth)
    if not {"task", "label"} <= set(table.columns):
        raise ColumnError(f"truth has columns {', '.join(table.columns)}; it needs task and label")
    label = dict(one_label_each(table["task"], table["label"]).rows())
    code = {name: k for k, name in enumerate(answers.classes.to_list())}
    return np.array([code.get(label.get(task), -1) for task in answers.tasks.to_list()], np.int32)


def one_label_each(tasks: pl.Series, labels: pl.Series) -> pl.DataFrame:
    """Return the rows of a truth that have a task and a label, as columns task and label; each task is there once."""
    columns = [normalise_ids(each, name, "the truth")[0] for name, each in (("task", tasks), ("label", labels))]
    found = pl.DataFrame(dict(zip(("task", "label"), columns, strict=True))).drop_nulls().unique(maintain_order=True)
    twice = found.filter(found["task"].is_duplicated())
    if not twice.is_empty():
        task = twice["task"][0]
        first, second = twice.filter(twice["task"] == task)["label"].head(2).to_list()
        raise DataError(f"the truth has two different labels for task {task!r}: {first!r} and {second!r}. Keep one")
    return found


def _scores_and_positives(result: LabelsResult, truth: Any, label: Any) -> tuple[Floats, Any]:
    """Posterior of the positive class, and whether it is the true class, for each task of known truth."""
    names = result.classes.to_list()
    if label is not None and place_of(result.classes, label) is None:
        raise ParameterError(f"no class {label!r}; there are {', '.join(map(str, names))}.{nearest(label, names)}")
    gold = known_classes(result.answers, truth)
    known = np.flatnonzero(gold >= 0)
    if not len(known):
        raise EmptyDataError(
            "the truth and this result have no task in common: nothing can be scored. Check its tasks and labels"
        )
    P, positive = result.posterior[known].astype(np.float64), gold[known][:, None] == np.arange(len(names))
    if label is None and len(names) > 2:
        return P.ravel(), positive.ravel()
    k = names.index(label) if label is not None else len(names) - 1
    if positive[:, k].all() or not positive[:, k].any():
        share = "all" if positive[:, k].all() else "none"
        raise DataError(
            f"{share} of the {len(known)} task(s) of known truth have the true label {names[k]!r}: a ROC curve needs "
            "tasks with this label and tasks with another. Give the truth of more tasks"
        )
    return P[:, k], positive[:, k]


def expertise(result: LabelsResult, truth: Any = None) -> pl.DataFrame:
    """Accuracy of each worker on tasks of each class, one row per worker and class.

    Columns are worker, label, estimated, easiest, true and answers. With two classes, the row of the second is the
    sensitivity, and that of the first the specificity. `estimated` is the mean over the tasks that the worker answered;
    `easiest` is the accuracy on the easiest task (for glad, a task of ease 1), which is the same in models without
    difficulty. With `truth` (a table of task and label), `true` is the share of correct answers to tasks of the class,
    and `answers` is the number of these answers.

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
            "estimated": _class_accuracies(result, mean=True).ravel(),
            "easiest": _class_accuracies(result, mean=False).ravel(),
        }
    )
    if truth is None:
        return table
    gold = known_classes(answers, truth)
    task, worker, label = answers.codes()
    known = gold[task] >= 0
    cell = worker[known] * K + gold[task[known]]
    count = np.bincount(cell, minlength=W * K)
    right = weighted_counts(cell, label[known] == gold[task[known]], W * K)
    with np.errstate(invalid="ignore"):
        share = pl.Series(right / count, nan_to_null=True)
    return table.with_columns(true=share, answers=pl.Series(count))


def _class_accuracies(result: LabelsResult, mean: bool) -> Floats:
    """Estimated accuracy of each worker on each class, (W, K): the mean over the worker's tasks, or on the easiest."""
    model, answers = result.model, result.answers
    W, K = answers.n_workers, answers.n_classes
    if not mean or model.difficulty(result.params) is None:
        params, out = model.easiest(result.params), np.empty((W, K))
        size = max(1, MAX_BATCH_CELLS // K**3)
        for start in range(0, W, size):
            batch = np.arange(start, min(start + size, W), dtype=np.int32)
            workers, labels = np.repeat(batch, K), np.tile(np.arange(K, dtype=np.int32), len(batch))
            logs = model.emission(params, answers.layout, workers, labels)[np.arange(len(labels)), labels]
            out[batch] = np.exp(logs).reshape(len(batch), K)
        return out
    task, worker, _ = answers.codes()
    total, weight = np.zeros((W, K)), np.zeros((W, K))
    for start in range(0, len(task), max(1, MAX_BATCH_CELLS // K**2)):
        part = slice(start, start + max(1, MAX_BATCH_CELLS // K**2))
        i, j = task[part], worker[part]
        chance = model.class_accuracy(result.params, answers.layout, j, i)
        for k in range(K):
            total[:, k] += weighted_counts(j, result.posterior[i, k] * chance[:, k], W)
            weight[:, k] += weighted_counts(j, result.posterior[i, k], W)
    return np.asarray(total / np.maximum(weight, 1e-12))


class Divergence(NamedTuple):
    """Jensen-Shannon divergence (bits, mean over rows) between estimated and true confusion matrices."""

    individual: float  # I-JS: mean over workers
    crowd: float  # G-JS: of the average confusion matrix


def divergence(result: LabelsResult, truth: Any = None, *, confusions: Any = None) -> Divergence:
    """Error of the estimated confusion matrices (I-JS and G-JS; 0 is best, 1 is worst).

    The true matrices are counted with `truth` (a table of task and label; the row of a class that a worker has no
    answers for is uniform), or given as `confusions` (W, K, K) in the order of `result.answers.workers`.

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
        raise ParameterError(f"confusions have shape {given.shape}; it must be {(W, K, K)}: workers, classes, classes")
    gold = None if truth is None else known_classes(answers, truth)
    total, crowd, size = 0.0, np.zeros((K, K)), max(1, MAX_BATCH_CELLS // K**2)
    for start in range(0, W, size):
        batch = np.arange(start, min(start + size, W))
        counts = np.ones((0, K, K)) if gold is None else true_counts(answers, gold, batch)
        true = _normalised(counts) if given is None else given[batch]
        total += float(_divergence(true, result.confusions(batch)).sum())
        crowd += counts.sum(0) if given is None else np.einsum("j,jkl->kl", answers.answers_per_worker[batch], true)
    return Divergence(total / max(W, 1), float(_divergence(_normalised(crowd), result.average_confusion)))


def true_counts(answers: Labels, gold: Ints, workers: Ints | None = None) -> Floats:
    """Number of answers by worker, true class and label, (M, K, K) for the given workers.

    `gold` (T,) holds the true classes. Without `workers`, the counts are summed over all workers, (1, K, K).
    """
    task, worker, label = answers.codes()
    position = np.full(answers.n_workers, 0 if workers is None else -1)
    if workers is not None:
        position[workers] = np.arange(len(workers))
    counted = (gold[task] >= 0) & (position[worker] >= 0)
    K = answers.n_classes
    cell = (position[worker[counted]] * K + gold[task[counted]]) * K + label[counted]
    size = 1 if workers is None else len(workers)
    return np.bincount(cell, minlength=size * K * K).reshape(-1, K, K).astype(float)


def _normalised(counts: Floats) -> Floats:
    """Rows divided by their sums; a row of zeros becomes uniform."""
    total = counts.sum(-1, keepdims=True)
    return np.asarray(np.divide(counts, total, out=np.full(counts.shape, 1 / counts.shape[-1]), where=total > 0))


def rand_index(result: LabelsResult, groups: Any) -> float:
    """Adjusted Rand index between the estimated and the true groups of workers: 1 if equal, about 0 by chance.

    `groups` gives the true groups: a mapping from worker to group, or a table of worker and group.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.crowd("groups", tasks=300, workers=20, classes=3, seed=3)
    >>> cw.rand_index(cw.aggregate(sim.answers, "groups"), sim.workers)
    1.0
    """
    result = result_of(result, "labels", "rand_index")
    adjusted_rand_score = load("sklearn.metrics", "learn", "rand_index").adjusted_rand_score
    if not isinstance(groups, Mapping) or {"worker", "group"} <= set(groups):
        table = to_frame(groups)
        if not {"worker", "group"} <= set(table.columns):
            raise ColumnError(f"groups has columns {', '.join(table.columns)}; it needs worker and group")
        worker = normalise_ids(table["worker"], "worker", "groups")[0]
        groups = dict(zip(worker.to_list(), to_text(table["group"]).to_list(), strict=True))
    known = [(groups[worker], found) for worker, found, _ in result.members.rows() if worker in groups]
    if not known:
        raise EmptyDataError("the true groups and this result have no worker in common: nothing can be scored")
    true, found = zip(*((str(group), found) for group, found in known), strict=True)
    return float(adjusted_rand_score(true, found))


@dataclass(frozen=True)
class Evaluation:
    """Methods compared with the truth, for a report page: ROC curves and worker skills by method."""

    curves: dict[str, pl.DataFrame]
    skills: dict[str, pl.DataFrame]
    gold: Ints | None = None  # (T,) true class of each task as a number, -1 where unknown

    def table(self) -> pl.DataFrame:
        """All ROC curves in one table: method, auc, threshold, false_positive, true_positive."""
        parts = [
            curve.select(pl.lit(name).alias("method"), pl.lit(area(curve)).alias("auc"), pl.all())
            for name, curve in self.curves.items()
        ]
        return pl.concat(parts) if parts else pl.DataFrame()

    @classmethod
    def from_table(cls, table: pl.DataFrame, skills: dict[str, pl.DataFrame]) -> Evaluation:
        """Invert `table`."""
        parts = table.partition_by("method", maintain_order=True, include_key=False, as_dict=True)
        return cls({str(key[0]): part.drop("auc") for key, part in parts.items()}, skills)


def evaluate(results: Mapping[str, LabelsResult], truth: Any = None) -> Evaluation:
    """Compare results with the truth. `results` maps method names to results; the first is the subject of the page.

    Skills are included for methods that estimate one per worker.
    """
    curves = {} if truth is None else {name: roc(result, truth) for name, result in results.items()}
    with_skills = {name: result for name, result in results.items() if result.model.distinguishes_workers}
    gold = None if truth is None or not results else known_classes(next(iter(results.values())).answers, truth)
    return Evaluation(curves, {name: expertise(result, truth) for name, result in with_skills.items()}, gold)
