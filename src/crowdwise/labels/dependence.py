"""How far answers to a task depend on each other beyond the truth: copies, shared errors, and answers at chance.

All of it is estimated from fits of a model with confusion matrices to the answers, or to a sample of whole tasks of a
large table (`sampled`). Copies are found by `copies`, eqs (1) and (2).

*Shared errors.* Let x_ab be 1 if answers a and b to a task agree, minus its expectation given class k. Under the model,
products x_ab x_cd over four different workers have expectation 0 given k. Their mean, relative to U (1 - U), U the
share of disagreeing pairs,
    (3)  excess = mean over tasks of sum_k q[i, k] * mean of x_ab x_cd,  / (U (1 - U))
is the variance between tasks of the chance that two answers agree: it is positive if some tasks mislead many workers.
    (4)  x = clip(t excess / 0.03 + 1 - t, 0, 1),     t = 0.08^2 / (0.08^2 + error^2)
t is the trust in the estimate: 0.08 is the standard deviation of the excess between real datasets. With fewer than 20
tasks that have four answers, t = 0 and x = 1: as long as nothing is known, errors count as shared.

*Chance.* z combines the agreement of pairs of answers with how well answers are predicted by the others (leave-one-out)
beyond label shares:
    (5)  trust = clip((z - 1) / 3, 0, 1)
docs/maths/dependence.md has the derivations and figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..answers import Labels
from ..engine import Run
from ..kernels.layout import Bools, Ints, weighted_counts
from ..kernels.special import softmax
from .copies import CLIP, MIN_PAIRS, Search, comparable_pairs
from .sampled import MIN_RELEVANT, Fit, Found, answer_pairs, by_class, independent, label_shares

if TYPE_CHECKING:
    from .pooled import Pooled

MAX_ANCHOR = 0.4  # weight of the vote in the fit, if errors are fully shared
EXCESS_SCALE = 0.03  # excess at which errors count as fully shared, eq (4)
EXCESS_SPREAD = 0.08  # standard deviation of the excess between real datasets, eq (4)
MIN_TASKS = 20  # tasks with two answers from which anything is estimated; with four, from which the excess is


def assess(model: Pooled, sample: Labels, run: Run) -> Found:
    """Return how far the answers of a sample depend on each other."""
    shared = int((sample.answers_per_task > 1).sum())
    if sample.n_classes < 2 or shared < MIN_TASKS:
        alone = float(sample.n_classes > 1 and shared == 0)
        unknown = independent(sample.n_workers, MAX_ANCHOR if model.anchor is None else model.anchor)
        return unknown._replace(alone=alone)
    search = Search(model, sample, run)
    if model.copying < 1 and comparable_pairs(sample) >= MIN_PAIRS:
        search.find_copies()
    free = search.fit(0.0)
    excess, error = shared_errors(free, search.cluster)
    trust = _trust(free)
    x = shared_share(excess, error)
    x = max(x, 1 - trust)
    anchor = MAX_ANCHOR * x if model.anchor is None else model.anchor
    rates = np.array(search.rates)
    return Found(
        anchor, x, trust, excess, error, search.cluster, rates, *search.groups(), 0.0, free.params.a
    )  # fmt: skip


def shared_errors(of: Fit, cluster: Ints) -> tuple[float, float]:
    """Return the excess of eq (3) and its standard error, infinite if too few tasks have four answers."""
    layout = of.sample.layout
    T, N = layout.n_tasks, layout.n_answers
    kept = _one_per_cluster(of, cluster)
    a, b = answer_pairs(layout)
    some = kept[a] & kept[b] & (of.worker[a] != of.worker[b])
    a, b = a[some], b[some]
    task, same = of.task[a], of.label[a] == of.label[b]
    pairs = np.bincount(task, minlength=T)
    n = (1 + np.sqrt(1 + 8 * pairs)) / 2  # answers that were paired
    if (n >= 4).sum() < MIN_TASKS:
        return 0.0, np.inf
    product, weight = np.zeros(T), np.zeros(T)
    for each in by_class(of, a, b, of.Z[task] >= MIN_RELEVANT):
        i, x, y = task[each.pairs], a[each.pairs], b[each.pairs]
        rest = same[each.pairs] - each.agree
        of_answer = weighted_counts(x, rest, N) + weighted_counts(y, rest, N)
        squares = weighted_counts(of.task, of_answer**2, T)
        disjoint = weighted_counts(i, rest, T) ** 2 - squares + weighted_counts(i, rest**2, T)
        q = np.where(np.bincount(i, minlength=T) > 0, of.Z[:, each.k], 0)
        product += q * disjoint
        weight += q
    several = (n >= 4) & (weight > 0)
    n, differ = n[several], 1 - (weighted_counts(task, same, T) / np.maximum(pairs, 1))[several].mean()
    value = (product / np.maximum(weight, 1e-300))[several] / (n * (n - 1) * (n - 2) * (n - 3) / 4)
    scale = differ * (1 - differ)
    if scale < CLIP**2:
        return 0.0, np.inf
    return float(value.mean() / scale), float(value.std() / np.sqrt(len(value)) / scale)


def shared_share(excess: float, error: float) -> float:
    """Eq (4)."""
    trusted = 0.0 if np.isinf(error) else EXCESS_SPREAD**2 / (EXCESS_SPREAD**2 + error**2)
    return float(np.clip(trusted * excess / EXCESS_SCALE + 1 - trusted, 0, 1))


def _one_per_cluster(of: Fit, cluster: Ints) -> Bools:
    """Return a mask (N,) of answers with one answer per task and cluster of copies."""
    own = cluster[of.worker]
    kept = own < 0
    members = np.flatnonzero(~kept)
    _, first = np.unique(of.task[members].astype(np.int64) * (cluster.max() + 1) + own[members], return_index=True)
    kept[members[first]] = True
    return kept


def _trust(of: Fit) -> float:
    """Eq (5)."""
    layout = of.sample.layout
    T, K = layout.n_tasks, layout.n_classes
    n = np.diff(layout.task_ptr)
    votes = weighted_counts(of.task * K + of.label, np.ones(len(of.task)), T * K).reshape(T, K)
    several = n > 1
    agree = (votes * (votes - 1)).sum(1)[several] / (n * (n - 1))[several]
    by_pairs = (agree.mean() - 1 / K) / max(agree.std() / np.sqrt(len(agree)), 1e-9)
    q = softmax(of.scores[of.task] - of.logs)
    gain = q[np.arange(len(q)), of.label] - q @ label_shares(of.sample)
    of_task = weighted_counts(of.task, np.where(several[of.task], gain, 0), T)
    predicted = of_task.sum() / np.sqrt(max((of_task**2).sum(), 1e-12))
    return float(np.clip(((by_pairs + predicted) / 2 - 1) / 3, 0, 1))
