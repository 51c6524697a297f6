"""The kernels in numpy, for small tables, where compilation would take longer than the computation.

`fast` has the same functions, compiled. Tests compare both with each other and with slow reference implementations.
Shapes: P (R, K) probabilities of a row's label under each true class; prior (1, K) or (T, K); gold (T,) class or -1;
Z (T, K) posterior: the previous one on input, overwritten with the new one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from . import TINY, EStepResult
from .layout import Floats, Ints, Layout, RowTable, SortedAnswers, in_row_order, per_worker, weighted_counts
from .special import digamma as digamma
from .special import gammaln as gammaln
from .special import softmax, trigamma

CHUNK_CELLS = 1 << 21  # elements of the temporary tables for a chunk of answers
SEGMENTS_PER_ROUND = 100  # segments in which a round of additions is worth its overhead
FACTORS = 8  # probabilities whose product does not underflow
STORAGE = np.dtype(np.float64)  # default dtype of posteriors and confusion rows


def build_layout(task: Ints, worker: Ints, label: Ints, shape: tuple[int, int, int]) -> SortedAnswers:
    """Sort coded answers by task and by row; `shape` is (T, W, K)."""
    key = worker.astype(np.int64) * shape[2] + label
    by_row, order = np.lexsort((task, key)), np.lexsort((key, task))
    rows, row_of, sizes = np.unique(key, return_inverse=True, return_counts=True)
    return SortedAnswers(
        task_ptr=_pointers(np.bincount(task, minlength=shape[0])),
        pair=row_of[order].astype(np.int32),
        row_ptr=_pointers(sizes),
        row_worker=(rows // shape[2]).astype(np.int32),
        row_label=(rows % shape[2]).astype(np.int32),
        task=task[by_row].astype(np.int32),
        order=order.astype(np.int32),
    )


def _pointers(counts: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def confusion_posterior(
    layout: Layout, P: Floats, prior: Floats, gold: Ints, Z: Floats, threads: int, weight: Floats | None = None
) -> EStepResult:
    """Z[i, k] ~ prior[k] * product over answers n of i of P[row, k] ** weight[n]; weights (N,) are in task order."""
    logs = _log(P)
    if weight is None:
        return _normalise(layout, sum_rows(layout.task_ptr, layout.pair, logs), prior, gold, Z)
    weighted = logs[layout.pair] * weight[:, None]
    return _normalise(layout, sum_rows(layout.task_ptr, np.arange(len(weight)), weighted), prior, gold, Z)


def confusion_counts(layout: Layout, Z: Floats, threads: int, weight: Floats | None = None) -> Floats:
    """Return the sum (R, K) over a row's answers of the posterior of their tasks, times the weight of the answer."""
    if weight is None:
        return sum_rows(layout.row_ptr, layout.task, Z)
    weighted = Z[layout.task] * weight[in_row_order(layout)][:, None]
    return sum_rows(layout.row_ptr, np.arange(len(weight)), weighted)


def confusion_left_out(layout: Layout, P: Floats, gold: Ints, Z: Floats, threads: int) -> tuple[Floats, Floats]:
    """Evaluate each row's answers under leave-one-out posteriors q[i, k] ~ Z[i, k] / P[row, k].

    Returns, summed over the answers of a row (R,), the probability of the label given, and the sum of squares of q.
    For tasks with gold, q is Z.
    """
    row = np.repeat(np.arange(layout.n_rows), np.diff(layout.row_ptr))
    q = Z[layout.task] / np.where(gold[layout.task] >= 0, 1.0, P[row].T).T
    q /= q.sum(1, keepdims=True)
    right = weighted_counts(row, q[np.arange(len(row)), layout.row_label[row]], layout.n_rows)
    return right, weighted_counts(row, (q * q).sum(1), layout.n_rows)


def cavity_left_out(
    layout: Layout, counts: Floats, totals: Floats, a: Floats, prior: Floats, gold: Ints, Z: Floats, threads: int,
    weight: Floats | None = None,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Evaluate each worker's answers under stricter leave-one-out posteriors; return sums over a worker's answers (W,).

    The task's contribution Z (T, K) is also removed from the counts (R, K) and totals (W, K) of the other answers'
    rows, which were fitted with it; a (K, K) are the pseudo-counts.
    """
    _, task = _cells(layout, layout.n_classes)
    worker, label = layout.row_worker[layout.pair], layout.row_label[layout.pair]
    logs = cavity_logs(layout, counts, totals, a, Z, weight)
    rest = _cavity_scores(layout, logs, prior)[task] - logs
    q = np.where(gold[task][:, None] >= 0, Z[task], softmax(rest))
    right = weighted_counts(worker, q[np.arange(len(task)), label], layout.n_workers)
    return right, weighted_counts(worker, (q * q).sum(1), layout.n_workers)


def cavity_posterior(
    layout: Layout, counts: Floats, totals: Floats, a: Floats, prior: Floats, gold: Ints, Z: Floats, threads: int,
    weight: Floats | None = None,
) -> None:  # fmt: skip
    """Replace Z (T, K), which the counts were summed with, by the posterior of each task given the counts of all other
    tasks; for tasks with gold, by their known label."""
    scores = _cavity_scores(layout, cavity_logs(layout, counts, totals, a, Z, weight), prior)
    Z[:] = np.where(gold[:, None] >= 0, np.arange(layout.n_classes) == gold[:, None], softmax(scores))


def cavity_logs(layout: Layout, counts: Floats, totals: Floats, a: Floats, Z: Floats, weight: Floats | None) -> Floats:
    """Return the log-factors (N, K) of answers, in task order, without what their tasks contributed to the counts."""
    _, task = _cells(layout, layout.n_classes)
    worker, label = layout.row_worker[layout.pair], layout.row_label[layout.pair]
    share = np.ones(1) if weight is None else weight[:, None]
    own = Z[task] * share
    above = np.maximum(counts[layout.pair] - own, 0) + a.T[label]
    return np.asarray(share * np.log(above / (np.maximum(totals[worker] - own, 0) + a.sum(1))))


def _cavity_scores(layout: Layout, logs: Floats, prior: Floats) -> Floats:
    return sum_rows(layout.task_ptr, np.arange(len(logs)), logs) + np.log(prior)


def match_posterior(
    layout: Layout, hit: Floats, miss: Floats, prior: Floats, gold: Ints, Z: Floats, threads: int
) -> EStepResult:
    """Compute the posterior where row r has log-probability hit[r] if its label is true, miss[r] for other classes."""
    n_tasks, K = Z.shape
    cell, task = _cells(layout, K)
    logs = weighted_counts(cell, (hit - miss)[layout.pair], n_tasks * K).reshape(n_tasks, K)
    logs += weighted_counts(task, miss[layout.pair], n_tasks)[:, None]
    return _normalise(layout, logs, prior, gold, Z)


def match_counts(layout: Layout, Z: Floats, threads: int) -> Floats:
    """Return the expected number of a row's answers that are correct (R,)."""
    label = np.repeat(layout.row_label, np.diff(layout.row_ptr))
    row = np.repeat(np.arange(layout.n_rows), np.diff(layout.row_ptr))
    return weighted_counts(row, Z[layout.task, label], layout.n_rows)


def votes(layout: Layout, weight: Floats, Z: Floats, threads: int) -> None:
    """Z[i, k] = sum of weight[row] over the answers of task i with label k."""
    cell, _ = _cells(layout, Z.shape[1])
    Z[:] = weighted_counts(cell, weight[layout.pair], Z.size).reshape(Z.shape)


def smooth_rows(
    layout: RowTable, counts: Floats, smoothing: float, dtype: DTypeLike, threads: int
) -> tuple[Floats, Floats, float]:
    """Return confusion rows (R, K), the workers' totals (W, K), and smoothing * sum of log pi over every worker, class
    and label."""
    K = layout.n_classes
    totals = per_worker(layout, counts)
    if smoothing == 0:
        below = np.where(totals > 0, totals, 1).take(layout.row_worker, axis=0)
        P = np.where(totals.take(layout.row_worker, axis=0) > 0, counts / below, 1 / K)
        return np.maximum(P, TINY).astype(dtype, copy=False), totals, 0.0
    below = totals + K * smoothing
    P = (counts + smoothing) / below.take(layout.row_worker, axis=0)
    np.maximum(P, TINY, out=P)
    unseen = K - np.diff(layout.worker_ptr)
    log_prior = _log_product(P) + float(unseen @ np.log(smoothing / below).sum(1))
    return P.astype(dtype, copy=False), totals, float(smoothing * log_prior)


def smooth_posterior(
    layout: Layout, Z: Floats, smoothing: float, dtype: DTypeLike, threads: int
) -> tuple[Floats, Floats, float, Floats]:
    """Return `smooth_rows` of the `confusion_counts` of Z, and each row's count for the class that it names (R,). The
    compiled version has no table of all counts."""
    counts = confusion_counts(layout, Z, threads)
    right = counts.take(np.arange(0, counts.size, layout.n_classes) + layout.row_label)
    return *smooth_rows(layout, counts, smoothing, dtype, threads), right


def dirichlet_rows(
    layout: RowTable, counts: Floats, a: Floats, dtype: DTypeLike, threads: int
) -> tuple[Floats, Floats, float, Floats]:
    """Return, for confusion rows with a Dirichlet(a) prior, a (K, K): exp of their expected log (R, K) given the
    counts, totals (W, K), the sum of their KL divergences from the prior, and the log-evidence of the counts by true
    class (K,)."""
    totals = per_worker(layout, counts)
    prior = a.T[layout.row_label]  # (R, K): the pseudo-count of this label under each true class
    above = a.sum(1)
    psi, psi_total = digamma(counts + prior), digamma(totals + above)
    elog = psi - psi_total[layout.row_worker]
    fit = (gammaln(counts + prior) - gammaln(prior)).sum(0) - (gammaln(totals + above) - gammaln(above)).sum(0)
    return (
        np.maximum(np.exp(elog), TINY).astype(dtype, copy=False),
        totals,
        float((counts * elog).sum() - fit.sum()),
        fit,
    )


def dirichlet_slopes(
    layout: RowTable, counts: Floats, totals: Floats, a: Floats, threads: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return derivatives of the log-evidence of the counts by true class: the sums over workers of
    psi(C_jkl + a_kl) - psi(a_kl), (K, K), and of psi(C_jk. + a_k.) - psi(a_k.), (K,), and the second derivative with
    respect to the scale of a row, sum_l a_kl^2 d2/da_kl^2 minus the same of the totals, (K,); and the log-evidence
    itself (K,)."""
    K = layout.n_classes
    prior = a.T[layout.row_label]
    rise = digamma(counts + prior) - digamma(prior)
    top = np.stack([weighted_counts(layout.row_label, rise[:, k], K) for k in range(K)])
    above = a.sum(1)
    curve = (prior**2 * (trigamma(counts + prior) - trigamma(prior))).sum(0)
    curve -= above**2 * (trigamma(totals + above) - trigamma(above)).sum(0)
    fit = (gammaln(counts + prior) - gammaln(prior)).sum(0) - (gammaln(totals + above) - gammaln(above)).sum(0)
    return top, (digamma(totals + above) - digamma(above)).sum(0), curve, fit


def group_counts(layout: RowTable, counts: Floats, member: Floats, threads: int) -> Floats:
    """Return the expected answers of each group by true class and label (M, K, K), from those of rows (R, K) and the
    group probabilities of workers (W, M)."""
    K, weight = layout.n_classes, member[layout.row_worker]
    sums = [
        [weighted_counts(layout.row_label, weight[:, m] * counts[:, k], K) for k in range(K)]
        for m in range(member.shape[1])
    ]
    return np.array(sums)


def group_scores(layout: RowTable, counts: Floats, logs: Floats, threads: int) -> Floats:
    """Return the expected log-likelihood (W, M) of each worker's rows (R, K) given the log-confusions (M, K, K)."""
    by_row = [(counts * of_group.T[layout.row_label]).sum(1, dtype=np.float64) for of_group in logs]
    return per_worker(layout, np.stack(by_row, axis=1))


def group_rows(layout: RowTable, member: Floats, logs: Floats, dtype: DTypeLike, threads: int) -> Floats:
    """Return exp of the expected log-confusions (R, K) under the group probabilities of each worker."""
    expected = np.zeros((layout.n_rows, layout.n_classes))
    for m, of_group in enumerate(logs):
        expected += member[layout.row_worker, m][:, None] * of_group.T[layout.row_label]
    return np.maximum(np.exp(expected), TINY).astype(dtype)


def ability_posterior(
    layout: Layout, ability: Floats, ease: Floats, prior: Floats, gold: Ints, Z: Floats, threads: int
) -> EStepResult:
    """Compute the posterior where an answer is correct with probability sigma(ability of the worker * ease of the task)
    and errors are uniform."""
    n_tasks, K = Z.shape
    cell, task = _cells(layout, K)
    x = ability[layout.row_worker[layout.pair]] * ease[task]
    miss = -np.logaddexp(0, x) - np.log(max(K - 1, 1))
    hit = -np.logaddexp(0, -x)
    logs = weighted_counts(cell, hit - miss, n_tasks * K).reshape(n_tasks, K)
    logs += weighted_counts(task, miss, n_tasks)[:, None]
    return _normalise(layout, logs, prior, gold, Z)


def ability_slopes(
    layout: Layout, ability: Floats, ease: Floats, Z: Floats, of_workers: bool, threads: int
) -> tuple[Floats, Floats]:
    """Return sums of (h - 1/2) v and of tanh(x / 2) / (2 x) v^2, where x = ability * ease and h is the probability of a
    correct answer.

    If `of_workers`, v is the ease of the task and there is one sum per worker; else v is the ability and there is one
    sum per task.
    """
    _, task = _cells(layout, Z.shape[1])
    row = layout.pair
    worker, label = layout.row_worker[row], layout.row_label[row]
    x = ability[worker] * ease[task]
    other, group, size = (ease[task], worker, len(ability)) if of_workers else (ability[worker], task, len(ease))
    curve = np.where(np.abs(x) < 1e-4, 0.25, np.tanh(x / 2) / (2 * np.where(x == 0, 1, x)))
    rise = (Z[task, label] - 0.5) * other
    return weighted_counts(group, rise, size), weighted_counts(group, curve * other**2, size)


def difficulty_posterior(
    layout: Layout, odds: Floats, ease: Floats, prior: Floats, gold: Ints, Z: Floats, slope: Floats, threads: int
) -> EStepResult:
    """Z[i, k] ~ prior[i, k] * product over answers of i of P(label | k), where worker j gives label l to a task of
    class k with probability ~ exp(-ease[i] * odds[j, k, l]); odds (W, K, K), ease (T,). Overwrites slope (T,) with the
    derivative of the log-evidence with respect to ease."""
    _, task = _cells(layout, Z.shape[1])
    logs, slopes = np.empty((len(task), Z.shape[1])), np.empty((len(task), Z.shape[1]))
    for part in _parts(layout):
        row = layout.pair[part]
        o = odds[layout.row_worker[row]]
        P = _label_probabilities(o, ease[task[part]])
        given = np.arange(len(row)), slice(None), layout.row_label[row]
        logs[part] = np.log(np.maximum(P[given], TINY))
        slopes[part] = (P * o).sum(2) - o[given]
    every = np.arange(len(task))
    found = _normalise(layout, sum_rows(layout.task_ptr, every, logs), prior, gold, Z)
    slope[:] = (Z * sum_rows(layout.task_ptr, every, slopes)).sum(1)
    return found


def difficulty_slopes(layout: Layout, odds: Floats, ease: Floats, Z: Floats, threads: int) -> Floats:
    """Return the derivative (W, K, K) of the log-evidence with respect to odds, given its posterior Z; ignore the
    diagonal."""
    row_of = np.repeat(np.arange(layout.n_rows), np.diff(layout.row_ptr))
    out = np.zeros(odds.shape)
    for part in _parts(layout):
        row, task = row_of[part], layout.task[part]
        worker = layout.row_worker[row]
        P = _label_probabilities(odds[worker], ease[task])
        P[np.arange(len(row)), :, layout.row_label[row]] -= 1
        P *= (ease[task][:, None] * Z[task])[:, :, None]
        starts = np.flatnonzero(np.diff(worker, prepend=-1))
        out[worker[starts]] += np.add.reduceat(P, starts, axis=0)
    return out


def difficulty_left_out(
    layout: Layout, odds: Floats, ease: Floats, gold: Ints, Z: Floats, threads: int
) -> tuple[Floats, Floats]:
    """Return the sums of `confusion_left_out` over the answers of a worker (W,)."""
    row_of = np.repeat(np.arange(layout.n_rows), np.diff(layout.row_ptr))
    right, sure = np.zeros(layout.n_workers), np.zeros(layout.n_workers)
    for part in _parts(layout):
        row, task = row_of[part], layout.task[part]
        worker, given = layout.row_worker[row], (np.arange(len(row)), layout.row_label[row])
        factor = np.maximum(_label_probabilities(odds[worker], ease[task])[given[0], :, given[1]], TINY)
        q = Z[task] / np.where(gold[task][:, None] >= 0, 1.0, factor)
        q /= q.sum(1, keepdims=True)
        right += weighted_counts(worker, q[given], layout.n_workers)
        sure += weighted_counts(worker, (q * q).sum(1), layout.n_workers)
    return right, sure


def _label_probabilities(odds: Floats, ease: Floats) -> Floats:
    """Return the probability of each label under each true class (M, K, K)."""
    return softmax(-ease[:, None, None] * odds)


def _parts(layout: Layout) -> Iterator[slice]:
    """Yield slices of answers, chunked to limit the memory of their K x K tables."""
    size = max(1, CHUNK_CELLS // layout.n_classes**2)
    return (slice(start, start + size) for start in range(0, layout.n_answers, size))


def components(layout: Layout) -> Ints:
    """Return the connected component of each worker (W,), numbered from 0 in worker order. Workers of different
    components share no task."""
    _, task = _cells(layout, layout.n_classes)
    worker = layout.row_worker[layout.pair]
    part = np.arange(layout.n_workers)
    while True:
        low = np.full(layout.n_tasks, layout.n_workers)
        np.minimum.at(low, task, part[worker])
        new = part.copy()
        np.minimum.at(new, worker, low[task])
        new = new[new]  # pointer jumping: long chains of workers converge in few rounds
        if np.array_equal(new, part):
            return np.unique(part, return_inverse=True)[1].astype(np.int32)
        part = new


def pair_counts(layout: Layout, place: Ints, size: int) -> tuple[Ints, Ints]:
    """Count how pairs of `size` chosen workers answered; place[j] is 0..size-1 for a chosen worker j, else -1.

    Returns same (M, M), the number of tasks on which two workers gave the same label, and given (M, K, M), the number
    of tasks shared with the last worker to which the first worker gave each label.
    """
    same = np.zeros((size, size), np.int64)
    given = np.zeros((size, layout.n_classes, size), np.int64)
    for _, (p, at_p), (r, at_r) in _worker_pairs(layout, place):
        agree = at_p == at_r
        np.add.at(same, (p[agree], r[agree]), 1)
        np.add.at(same, (r[agree], p[agree]), 1)
        np.add.at(given, (p, at_p, r), 1)
        np.add.at(given, (r, at_r, p), 1)
    return same, given


def pair_influence(
    layout: Layout, place: Ints, given: Ints, of_same: Floats, of_pair: Floats, of_chance: Floats
) -> Floats:
    """Return sums (T,) over the chosen pairs that answered a task: of_pair, plus of_same if they agree, plus of_chance
    times how often each worker gave the other's label to shared tasks."""
    out = np.zeros(layout.n_tasks)
    for task, (p, at_p), (r, at_r) in _worker_pairs(layout, place):
        chance = given[r, at_p, p] + given[p, at_r, r]
        value = of_pair[p, r] + of_chance[p, r] * chance + np.where(at_p == at_r, of_same[p, r], 0)
        out += weighted_counts(task, value, layout.n_tasks)
    return out


def _worker_pairs(layout: Layout, place: Ints) -> Iterator[tuple[Ints, tuple[Ints, Ints], tuple[Ints, Ints]]]:
    """Yield chunks of pairs of answers by different chosen workers to a task: task, and place and label of both."""
    task = np.repeat(np.arange(layout.n_tasks), np.diff(layout.task_ptr))
    at, label = place[layout.row_worker[layout.pair]], layout.row_label[layout.pair]
    chosen = at >= 0
    task, at, label = task[chosen], at[chosen], label[chosen]
    ahead = 1
    while (same_task := task[ahead:] == task[:-ahead]).any():
        pair = same_task & (at[ahead:] != at[:-ahead])
        left, right = (at[:-ahead][pair], label[:-ahead][pair]), (at[ahead:][pair], label[ahead:][pair])
        yield task[ahead:][pair], left, right
        ahead += 1


def _cells(layout: Layout, K: int) -> tuple[Ints, Ints]:
    task = np.repeat(np.arange(layout.n_tasks), np.diff(layout.task_ptr))
    return task * K + layout.row_label[layout.pair], task


def _log(P: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(P, TINY), dtype=np.float64))


def _log_product(P: Floats) -> float:
    """Return the sum of the logarithms of probabilities of at least TINY, with one logarithm for FACTORS of them."""
    flat = P.ravel()
    even = len(flat) - len(flat) % FACTORS
    return float(np.log(flat[:even].reshape(FACTORS, -1).prod(0)).sum() + np.log(flat[even:]).sum())


def sum_rows(ptr: Ints, index: Ints, table: Floats) -> Floats:
    """Return the sums (S, K) of table[index] over the segments ptr[s]:ptr[s+1]."""
    sizes = ptr[1:] - ptr[:-1]
    longest = int(sizes.max(initial=0))
    if 0 < longest * SEGMENTS_PER_ROUND <= len(sizes):
        return _sum_in_rounds(ptr, sizes, index, table, longest)
    pairs = _in_pairs(table).take(index, axis=0)  # `take` is several times faster than indexing
    some = sizes > 0
    out = np.zeros((len(sizes), pairs.shape[1]), np.complex128)
    if some.all() and len(index):
        np.add.reduceat(pairs, ptr[:-1], axis=0, out=out)
    elif len(index):
        out[some] = np.add.reduceat(pairs, ptr[:-1][some], axis=0, dtype=np.complex128)
    return np.ascontiguousarray(out.view(np.float64)[:, : table.shape[1]])


def _in_pairs(table: Floats) -> Any:
    """Return a table with two columns in each complex number: `reduceat` takes a call per segment and column, and
    complex numbers are added as pairs."""
    even = table if table.shape[1] % 2 == 0 else np.pad(table, ((0, 0), (0, 1)))
    return np.ascontiguousarray(even, np.float64).view(np.complex128)


def _sum_in_rounds(ptr: Ints, sizes: Ints, index: Ints, table: Floats, longest: int) -> Floats:
    """`sum_rows` for many short segments: round n adds entry n of every segment that has one."""
    if sizes.min() == longest:
        rounds = index.reshape(-1, longest).T
        out: Floats = table.take(rounds[0], axis=0).astype(np.float64, copy=False)
        for places in rounds[1:]:
            out += table.take(places, axis=0)
        return out
    order = np.argsort(-sizes, kind="stable")  # the longest first: those that are left are then at the front
    start, size = ptr[:-1][order].astype(np.intp), sizes[order]
    out = np.zeros((len(start), table.shape[1]))
    for n in range(longest):
        left = int(np.searchsorted(-size, -n))
        out[:left] += table.take(index.take(start[:left] + n), axis=0)
    in_order = np.empty_like(out)
    in_order[order] = out
    return in_order


def _normalise(layout: Layout, logs: Floats, prior: Floats, gold: Ints, Z: Floats) -> EStepResult:
    """Turn log-likelihoods (T, K) into the posterior Z. Classes come first here: numpy is slow along a short last
    axis."""
    with np.errstate(divide="ignore"):
        scores = np.add(logs.T, np.log(prior).T, order="C")  # (K, T)
    known = np.flatnonzero(gold >= 0)
    if len(known):
        kept = scores[gold[known], known]
        scores[:, known] = -np.inf
        scores[gold[known], known] = kept
    top = scores.max(0)
    scores -= top
    q = np.exp(scores, out=scores)
    total = q.sum(0)
    largest = 1 / total  # since the largest score is 1
    q *= largest
    before = np.ascontiguousarray(Z.T)
    was_top = before == before.max(0)
    now = q.astype(Z.dtype, copy=False)
    Z[:] = now.T
    evidence = top + np.log(total)
    is_top = now == largest.astype(Z.dtype, copy=False)
    flips = ~(was_top & is_top).any(0)  # no class that was the most probable one, as stored, still is
    answered = layout.task_ptr[:-1] < layout.task_ptr[1:]
    if not answered.all():
        evidence, flips = evidence[answered], flips[answered]
        q = q.compress(answered, axis=1)  # in the same memory order, hence summed in the same order
    return EStepResult(float(evidence.sum()), q.sum(1), int(np.count_nonzero(flips)))
