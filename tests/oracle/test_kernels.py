"""Kernels against slow reference code: loops over answers, and scipy's special functions."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import special as scipy_special

from crowdwise.kernels import TINY, fast, plain, special
from crowdwise.kernels.layout import (
    WorkerRows,
    find_rows,
    per_worker,
    round_posterior,
    sort_answers,
    task_answers,
    vote_parts,
    worker_answers,
)

TWINS = [plain, fast]
KINDS = [np.float64, np.float32]
ROUNDING = {np.float64: 1e-10, np.float32: 2e-5}
pytestmark = pytest.mark.filterwarnings("error")
each_twin = pytest.mark.parametrize("twin", TWINS, ids=["plain", "fast"])
each_kind = pytest.mark.parametrize("kind", KINDS, ids=["double", "single"])


class Table(NamedTuple):
    """Random answers with empty tasks, idle workers, unused labels and repeats, and all inputs of the kernels."""

    layout: Any
    task: Any
    worker: Any
    label: Any
    order: Any
    P: Any  # (R, K)
    prior: Any  # (1, K)
    gold: Any
    Z: Any  # (T, K)
    a: Any  # (K, K)


def table(T: int = 40, W: int = 9, K: int = 4, N: int = 300, seed: int = 0, kind: Any = np.float64) -> Table:
    rng = np.random.default_rng(seed)
    task, worker, label = (rng.integers(0, top, N).astype(np.int32) for top in (T - 3, W - 1, K - 1))
    layout, order = sort_answers(plain, task, worker, label, (T, W, K))
    Z = rng.dirichlet(np.ones(K), T)
    gold = np.where(rng.random(T) < 0.2, rng.integers(0, K, T), -1).astype(np.int32)
    P = rng.uniform(0.01, 1, (layout.n_rows, K)).astype(kind)
    prior, a = rng.dirichlet(np.ones(K))[None], rng.uniform(0.2, 3, (K, K))
    return Table(layout, task, worker, label, order, P, prior, gold, Z.astype(kind), a)


def rows_of(t: Table) -> dict[tuple[int, int], int]:
    """Map (worker, label) to its row."""
    return {
        pair: r for r, pair in enumerate(sorted({(int(j), int(m)) for j, m in zip(t.worker, t.label, strict=True)}))
    }


def answers_of(t: Table) -> list[tuple[int, int, int, int]]:
    """(task, worker, label, row) of every answer, as it came."""
    row = rows_of(t)
    return [(int(i), int(j), int(m), row[int(j), int(m)]) for i, j, m in zip(t.task, t.worker, t.label, strict=True)]


def codes(t: Table) -> tuple[Any, Any, Any]:
    """Task, worker and label of every answer, in task order."""
    return t.task[t.order], t.worker[t.order], t.label[t.order]


def slow_posterior(t: Table, log_factor: Any) -> tuple[Any, float, Any, int]:
    """Posterior, evidence, shares and flips; log_factor(answer, k): log-probability of an answer under class k."""
    logs = np.repeat(np.log(t.prior), len(t.Z), axis=0)
    for answer in answers_of(t):
        logs[answer[0]] += [log_factor(answer, k) for k in range(logs.shape[1])]
    for i, known in enumerate(t.gold):
        logs[i] = [value if known in (-1, k) else -np.inf for k, value in enumerate(logs[i])]
    Z = np.exp(logs - scipy_special.logsumexp(logs, axis=1, keepdims=True))
    answered = sorted(set(t.task.tolist()))
    flips = sum(Z[i].argmax() != t.Z[i].argmax() for i in answered)
    return Z, scipy_special.logsumexp(logs, axis=1)[answered].sum(), Z[answered].sum(0), flips


def held_to(slow: tuple[Any, float, Any, int], swept: Any, Z: Any, kind: Any) -> None:
    assert np.allclose(Z, slow[0], atol=ROUNDING[kind])
    assert np.isclose(swept.evidence, slow[1], rtol=ROUNDING[kind])
    assert np.allclose(swept.shares, slow[2], atol=100 * ROUNDING[kind])
    assert swept.flips == slow[3]


# --------------------------------------------------------------------------------------------------------- layout


@each_twin
@pytest.mark.parametrize("seed", range(5))
def test_answers_are_sorted_both_ways(twin: Any, seed: int) -> None:
    t = table(seed=seed)
    layout, order = sort_answers(twin, t.task, t.worker, t.label, (40, 9, 4))
    by_task = sorted((i, r) for i, _, _, r in answers_of(t))
    by_row = sorted((r, i) for i, _, _, r in answers_of(t))
    assert layout.pair.tolist() == [r for _, r in by_task]
    assert layout.task.tolist() == [i for _, i in by_row]
    assert list(zip(layout.row_worker, layout.row_label, strict=True)) == list(rows_of(t))
    assert t.task[order].tolist() == [i for i, _ in by_task]
    assert np.array_equal(np.diff(layout.task_ptr), np.bincount(t.task, minlength=40))
    assert np.array_equal(np.diff(layout.row_ptr), np.bincount([r for r, _ in by_row]))


@each_twin
def test_sorting_keeps_the_order_of_equal_answers(twin: Any) -> None:
    task, worker, label = (np.zeros(6, np.int32), np.array([1, 0, 1, 0, 1, 0], np.int32), np.zeros(6, np.int32))
    _, order = sort_answers(twin, task, worker, label, (1, 2, 1))
    assert order.tolist() == [1, 3, 5, 0, 2, 4]


@each_twin
def test_no_answers_lie_in_an_empty_layout(twin: Any) -> None:
    none = np.zeros(0, np.int32)
    layout, order = sort_answers(twin, none, none, none, (3, 2, 2))
    assert (layout.n_tasks, layout.n_workers, layout.n_answers, layout.n_rows, len(order)) == (3, 2, 0, 0, 0)
    Z, prior = np.full((3, 2), 0.5), np.array([[0.7, 0.3]])
    swept = twin.confusion_posterior(layout, np.zeros((0, 2)), prior, np.full(3, -1, np.int32), Z, 1)
    assert swept.evidence == 0
    assert np.allclose(Z, [0.7, 0.3])


def test_counts_by_task_and_worker() -> None:
    t = table()
    assert np.array_equal(task_answers(t.layout), np.bincount(t.task, minlength=40))
    assert np.array_equal(worker_answers(t.layout), np.bincount(t.worker, minlength=9))
    by_row = np.arange(t.layout.n_rows * 2.0).reshape(-1, 2)
    sums = [by_row[[r for (j, _), r in rows_of(t).items() if j == worker]].sum(0) for worker in range(9)]
    assert np.allclose(per_worker(t.layout, by_row), sums)


def test_rows_are_found_and_missed() -> None:
    t = table()
    pairs = [(j, m) for j in range(-1, 9) for m in range(4)]
    worker, label = np.array(pairs, np.int32).T
    at, there = find_rows(t.layout, worker, label)
    assert [int(r) if found else None for r, found in zip(at, there, strict=True)] == [rows_of(t).get(p) for p in pairs]
    assert not there.all()


@each_twin
def test_votes_in_parts_are_the_votes(twin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdwise.kernels.layout.CHUNK_TASKS", 7)
    t, whole = table(), np.zeros((40, 4))
    for i, _, m, _ in answers_of(t):
        whole[i, m] += 1
    parts = list(vote_parts(twin, t.layout, 1))
    assert len(parts) == 6
    for part, votes in parts:
        assert np.array_equal(votes, whole[part])


# --------------------------------------------------------------------------------------------- posteriors and counts


@each_twin
@each_kind
@pytest.mark.parametrize("K", [2, 3, 7, 12, 16, 17, 37])
def test_confusion_posterior(twin: Any, kind: Any, K: int) -> None:
    t = table(K=K, kind=kind)
    Z = t.Z.copy()
    swept = twin.confusion_posterior(t.layout, t.P, t.prior, t.gold, Z, 1)
    held_to(slow_posterior(t, lambda answer, k: np.log(t.P[answer[3], k].astype(float))), swept, Z, kind)


@each_twin
def test_a_prior_of_each_task(twin: Any) -> None:
    t = table()
    t = t._replace(prior=np.random.default_rng(1).dirichlet(np.ones(4), 40))
    Z = t.Z.copy()
    swept = twin.confusion_posterior(t.layout, t.P, t.prior, t.gold, Z, 1)
    logs = np.log(t.prior)
    for i, _, _, r in answers_of(t):
        logs[i] += np.log(t.P[r])
    free = t.gold < 0
    assert np.allclose(Z[free], scipy_special.softmax(logs, axis=1)[free])
    assert np.isfinite(swept.evidence)


@each_twin
@each_kind
def test_match_posterior(twin: Any, kind: Any) -> None:
    t = table(kind=kind)
    hit, miss = np.log(t.P[:, 0].astype(float)), np.log(t.P[:, 1].astype(float))
    Z = t.Z.copy()
    swept = twin.match_posterior(t.layout, hit, miss, t.prior, t.gold, Z, 1)
    held_to(slow_posterior(t, lambda answer, k: (hit if answer[2] == k else miss)[answer[3]]), swept, Z, kind)


@each_twin
@each_kind
@pytest.mark.parametrize("K", [2, 4])
def test_ability_posterior(twin: Any, kind: Any, K: int) -> None:
    t, rng = table(K=K, kind=kind), np.random.default_rng(5)
    ability, ease = rng.normal(1, 1.5, 9), rng.uniform(0.05, 4, 40)

    def log_factor(answer: Any, k: int) -> float:
        right = scipy_special.expit(ability[answer[1]] * ease[answer[0]])
        return float(np.log(right if answer[2] == k else (1 - right) / (K - 1)))

    Z = t.Z.copy()
    swept = twin.ability_posterior(t.layout, ability, ease, t.prior, t.gold, Z, 1)
    held_to(slow_posterior(t, log_factor), swept, Z, kind)


@each_twin
@each_kind
@pytest.mark.parametrize("K", [2, 3, 11, 16, 37])
def test_counts_are_sums_of_posteriors(twin: Any, kind: Any, K: int) -> None:
    t = table(K=K, kind=kind)
    counts, right = np.zeros((t.layout.n_rows, K)), np.zeros(t.layout.n_rows)
    for i, _, m, r in answers_of(t):
        counts[r] += t.Z[i]
        right[r] += t.Z[i, m]
    assert np.allclose(twin.confusion_counts(t.layout, t.Z, 1), counts, rtol=ROUNDING[kind])
    assert np.allclose(twin.match_counts(t.layout, t.Z, 1), right, rtol=ROUNDING[kind])


@each_twin
@each_kind
@pytest.mark.parametrize("K", [2, 5])
def test_left_out_posteriors(twin: Any, kind: Any, K: int) -> None:
    """The leave-one-out posterior divides by the factor of the answer; a known label stays."""
    t = table(K=K, kind=kind)
    right, sure = np.zeros(t.layout.n_rows), np.zeros(t.layout.n_rows)
    for i, _, m, r in answers_of(t):
        q = t.Z[i].astype(float) / (1 if t.gold[i] >= 0 else t.P[r].astype(float))
        right[r] += q[m] / q.sum()
        sure[r] += ((q / q.sum()) ** 2).sum()
    got = twin.confusion_left_out(t.layout, t.P, t.gold, t.Z, 1)
    assert np.allclose(got[0], right, rtol=ROUNDING[kind])
    assert np.allclose(got[1], sure, rtol=ROUNDING[kind])


@each_twin
@each_kind
def test_votes_are_sums_of_weights(twin: Any, kind: Any) -> None:
    t = table(kind=kind)
    weight, slow = np.random.default_rng(2).random(t.layout.n_rows), np.zeros((40, 4))
    for i, _, m, r in answers_of(t):
        slow[i, m] += weight[r]
    twin.votes(t.layout, weight, t.Z, 1)
    assert np.allclose(t.Z, slow, atol=ROUNDING[kind])


@each_twin
@each_kind
@pytest.mark.parametrize("of_workers", [True, False])
def test_ability_slopes(twin: Any, kind: Any, of_workers: bool) -> None:
    t, rng = table(kind=kind), np.random.default_rng(6)
    ability, ease = np.append(rng.normal(1, 1, 8), 0.0), rng.uniform(0.05, 4, 40)
    ability[0] = 1e-7  # where tanh(x / 2) / (2 x) is taken at its limit
    rise, curve = np.zeros(9 if of_workers else 40), np.zeros(9 if of_workers else 40)
    for i, j, m, _ in answers_of(t):
        x, (at, v) = ability[j] * ease[i], (j, ease[i]) if of_workers else (i, ability[j])
        rise[at] += (t.Z[i, m] - 0.5) * v
        curve[at] += np.tanh(x / 2) / (2 * x) * v**2
    got = twin.ability_slopes(t.layout, ability, ease, t.Z, of_workers, 1)
    assert np.allclose(got[0], rise, atol=ROUNDING[kind])
    assert np.allclose(got[1], curve, rtol=1e-7, atol=1e-12)


# ----------------------------------------------------------------------------------------------------- parameters


def dense(t: Table, counts: Any) -> Any:
    """Counts (W, K, L) of every worker, true class and label, given or not."""
    whole = np.zeros((9, counts.shape[1], counts.shape[1]))
    for (j, m), r in rows_of(t).items():
        whole[j, :, m] = counts[r]
    return whole


def by_rows(t: Table, whole: Any) -> Any:
    """(R, K) of the pairs that occurred."""
    return np.array([whole[j, :, m] for j, m in rows_of(t)])


@each_twin
@each_kind
@pytest.mark.parametrize("smoothing", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("K", [2, 4, 15, 37])
def test_smooth_rows(twin: Any, kind: Any, smoothing: float, K: int) -> None:
    t = table(K=K, kind=kind)
    counts = plain.confusion_counts(t.layout, t.Z, 1)
    P, totals, log_prior = twin.smooth_rows(t.layout, counts, smoothing, kind, 1)
    whole = dense(t, counts)
    with np.errstate(invalid="ignore"):
        pi = (whole + smoothing) / (whole + smoothing).sum(2, keepdims=True)
    assert np.allclose(P, by_rows(t, pi), rtol=ROUNDING[kind])
    assert np.allclose(totals, whole.sum(2), rtol=ROUNDING[kind])
    assert np.isclose(log_prior, smoothing * np.log(pi).sum() if smoothing else 0.0, rtol=ROUNDING[kind])


@each_twin
@each_kind
@pytest.mark.parametrize("smoothing", [0.0, 0.01])
@pytest.mark.parametrize("K", [2, 17, 37, 48])
def test_smoothed_posteriors_are_smoothed_counts(twin: Any, kind: Any, smoothing: float, K: int) -> None:
    t = table(K=K, kind=kind)
    counts = twin.confusion_counts(t.layout, t.Z, 1)
    P, totals, log_prior, right = twin.smooth_posterior(t.layout, t.Z, smoothing, kind, 2)
    wanted = twin.smooth_rows(t.layout.rows, counts, smoothing, kind, 1)
    assert np.array_equal(P, wanted[0])
    assert np.array_equal(totals, wanted[1])
    assert log_prior == wanted[2]
    assert np.array_equal(right, counts[np.arange(len(counts)), t.layout.row_label])


@each_twin
def test_rows_never_seen_under_a_class_are_even(twin: Any) -> None:
    t = table()
    counts = plain.confusion_counts(t.layout, t.Z, 1)
    counts[:, 2] = 0  # no task is of class 2
    counts[0, 1] = 0
    P, _, _ = twin.smooth_rows(t.layout, counts, 0.0, np.float64, 1)
    assert np.allclose(P[:, 2], 1 / 4)
    assert P[0, 1] == TINY


@each_twin
@each_kind
def test_dirichlet_rows(twin: Any, kind: Any) -> None:
    t = table(kind=kind)
    counts = plain.confusion_counts(t.layout, t.Z, 1)
    P, totals, kl, fit = twin.dirichlet_rows(t.layout, counts, t.a, kind, 1)
    whole = dense(t, counts) + t.a
    elog = scipy_special.psi(whole) - scipy_special.psi(whole.sum(2, keepdims=True))
    assert np.allclose(P, by_rows(t, np.exp(elog)), rtol=ROUNDING[kind])
    assert np.allclose(totals, dense(t, counts).sum(2), rtol=ROUNDING[kind])
    assert np.isclose(kl, dirichlet_divergence(whole, np.broadcast_to(t.a, whole.shape)), rtol=ROUNDING[kind])
    assert np.allclose(fit, counts_evidence(dense(t, counts), t.a), rtol=ROUNDING[kind])


def dirichlet_divergence(q: Any, p: Any) -> float:
    """Sum over rows of KL(Dirichlet(q) || Dirichlet(p)), by the textbook formula."""
    gammaln, psi = scipy_special.gammaln, scipy_special.psi
    norms = gammaln(q.sum(-1)) - gammaln(q).sum(-1) - gammaln(p.sum(-1)) + gammaln(p).sum(-1)
    return float((norms + ((q - p) * (psi(q) - psi(q.sum(-1, keepdims=True)))).sum(-1)).sum())


def counts_evidence(whole: Any, a: Any) -> Any:
    """log p of counts (W, K, L) whose rows are drawn from Dirichlet(a), by class (K,), up to multinomial
    coefficients."""
    gammaln, above = scipy_special.gammaln, a.sum(1)
    given = (gammaln(whole + a) - gammaln(a)).sum((0, 2))
    return given - (gammaln(whole.sum(2) + above) - gammaln(above)).sum(0)


def test_divergence_of_dirichlets() -> None:
    rng = np.random.default_rng(0)
    counts, prior = rng.gamma(1, 5, (6, 4)), rng.uniform(0.1, 3, 4)
    slow = dirichlet_divergence(counts + prior, np.broadcast_to(prior, (6, 4)))
    assert np.isclose(special.dirichlet_kl(counts, prior), slow, rtol=1e-10)
    assert np.isclose(special.dirichlet_kl(np.zeros((6, 4)), prior), 0, atol=1e-10)


@each_twin
@each_kind
def test_dirichlet_slopes(twin: Any, kind: Any) -> None:
    t, psi = table(kind=kind), scipy_special.psi
    counts = plain.confusion_counts(t.layout, t.Z, 1).astype(kind)
    whole = dense(t, counts)
    top, below, curve, fit = twin.dirichlet_slopes(t.layout, counts, whole.sum(2), t.a, 1)
    assert np.allclose(top, (psi(whole + t.a) - psi(t.a)).sum(0), rtol=ROUNDING[kind])
    above = t.a.sum(1)
    assert np.allclose(below, (psi(whole.sum(2) + above) - psi(above)).sum(0), rtol=ROUNDING[kind])
    assert np.allclose(fit, counts_evidence(whole, t.a), rtol=ROUNDING[kind])
    step = 1e-4  # the second derivative along the scale of the rows, by differences
    low, middle, high = (counts_evidence(whole, t.a * scale) for scale in (1 - step, 1, 1 + step))
    assert np.allclose(curve, (low - 2 * middle + high) / step**2, rtol=1e-3, atol=1e-3)


@each_twin
@each_kind
def test_weights_are_powers_of_factors_and_multiply_counts(twin: Any, kind: Any) -> None:
    t = table(kind=kind)
    rng, (task, _, _) = np.random.default_rng(1), codes(t)
    weight = rng.uniform(0.2, 1.0, len(task))
    Z = t.Z.copy()
    found = twin.confusion_posterior(t.layout, t.P, t.prior, t.gold, Z, 2, weight)
    scores = np.tile(np.log(t.prior.astype(float)), (t.layout.n_tasks // len(t.prior), 1))
    np.add.at(scores, task, weight[:, None] * np.log(t.P[t.layout.pair].astype(float)))
    scores[t.gold >= 0] = np.where(np.arange(Z.shape[1]) == t.gold[t.gold >= 0][:, None], scores[t.gold >= 0], -np.inf)
    top = scores.max(1, keepdims=True)
    q = np.exp(scores - top) / np.exp(scores - top).sum(1, keepdims=True)
    evidence = (top[:, 0] + np.log(np.exp(scores - top).sum(1)))[np.diff(t.layout.task_ptr) > 0].sum()
    assert np.allclose(Z, q, atol=ROUNDING[kind])
    assert np.isclose(found.evidence, evidence, rtol=ROUNDING[kind])
    counts = np.zeros((t.layout.n_rows, Z.shape[1]))
    np.add.at(counts, t.layout.pair, weight[:, None] * t.Z[task])
    assert np.allclose(twin.confusion_counts(t.layout, t.Z, 2, weight), counts, rtol=ROUNDING[kind])


@each_twin
@each_kind
@pytest.mark.parametrize(("weighted", "tasks"), [(False, 40), (True, 40), (False, 6)])
def test_cavity_posteriors_leave_the_task_out(twin: Any, kind: Any, weighted: bool, tasks: int) -> None:
    t = table(tasks, kind=kind)  # few tasks have more answers than factors can be multiplied
    task, worker, label = codes(t)
    weight = np.random.default_rng(2).uniform(0.2, 1.0, len(task)) if weighted else None
    w = np.ones(len(task)) if weight is None else weight
    K = t.Z.shape[1]
    C = np.zeros((t.layout.n_workers, K, K))
    for n, (i, j, m) in enumerate(zip(task, worker, label, strict=True)):
        C[j, :, m] += w[n] * t.Z[i]
    rows = by_rows(t, C)
    found = t.Z.copy()
    twin.cavity_posterior(t.layout, rows, C.sum(2), t.a, t.prior[:1], t.gold, found, 2, weight)
    for i in range(t.layout.n_tasks):
        scores = np.log(t.prior[0].astype(float))
        for n in np.flatnonzero(task == i):
            above = C[worker[n], :, label[n]] - w[n] * t.Z[i] + t.a[:, label[n]]
            below = C[worker[n]].sum(1) - w[n] * t.Z[i] + t.a.sum(1)
            scores = scores + w[n] * np.log(above / below)
        q = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        wanted = q if t.gold[i] < 0 else np.eye(K)[t.gold[i]]
        assert np.allclose(found[i], wanted, atol=10 * ROUNDING[kind])


def test_numpy_and_compiled_have_the_same_functions() -> None:
    from crowdwise.kernels import Kernels

    names = [name for name in vars(Kernels) if not name.startswith("_")]
    assert len(names) > 8
    assert [name for name in names if not (hasattr(plain, name) and hasattr(fast, name))] == []


@each_kind
@pytest.mark.parametrize("threads", [2, 5])
def test_blocks_and_threads_change_no_bit(kind: Any, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdwise.kernels.fast.blocks.BLOCK_ANSWERS", 16)
    t = table(N=1000, kind=kind)
    counts = fast.confusion_counts(t.layout, t.Z, 1)
    assert np.array_equal(fast.confusion_counts(t.layout, t.Z, threads), counts)
    one, two = t.Z.copy(), t.Z.copy()
    swept = [fast.confusion_posterior(t.layout, t.P, t.prior, t.gold, *z) for z in ((one, 1), (two, threads))]
    assert np.array_equal(one, two)
    assert swept[0].evidence == swept[1].evidence
    kl = [fast.dirichlet_rows(t.layout, counts, t.a, kind, n)[2] for n in (1, threads)]
    assert kl[0] == kl[1]


@pytest.mark.parametrize("name", ["confusion", "match"])
def test_sums_of_single_precision_do_not_depend_on_blocks_and_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Posteriors are stored as multiples of 2**-32, so sums over tasks are exact in any order."""
    t = table(T=4000, N=20_000, kind=np.float32)

    def sums(layout: Any, gold: Any, Z: Any) -> tuple[Any, Any]:
        if name == "confusion":
            swept = fast.confusion_posterior(layout, t.P, t.prior, gold, Z, 1)
            return swept.shares, fast.confusion_counts(layout, Z, 1)
        hit = np.log(t.P[:, 0].astype(np.float64))
        swept = fast.match_posterior(layout, hit, np.log1p(-np.exp(hit)), t.prior, gold, Z, 1)
        return swept.shares, fast.match_counts(layout, Z, 1)

    Z = t.Z.copy()
    whole = sums(t.layout, t.gold, Z)
    assert np.array_equal(Z * 2.0**32, np.rint(Z * 2.0**32))
    assert whole[1].dtype == np.float64
    answered = np.diff(t.layout.task_ptr) > 0
    assert np.array_equal(whole[0], Z[answered].sum(0, dtype=np.float64))
    monkeypatch.setattr("crowdwise.kernels.fast.blocks.BLOCK_ANSWERS", 100)
    parts = [np.arange(first, 4000, 3) for first in range(3)]
    found = [sums(part_of(t.layout, tasks), t.gold[tasks], t.Z[tasks]) for tasks in parts]
    assert all(np.array_equal(found[0][n] + found[1][n] + found[2][n], whole[n]) for n in (0, 1))


@each_twin
def test_tasks_without_answers_change_no_bit_of_the_sums(twin: Any) -> None:
    t = table(T=403, N=4000)
    first = part_of(t.layout, np.flatnonzero(np.diff(t.layout.task_ptr)))
    Z, gold = t.Z[: first.n_tasks], t.gold[: first.n_tasks]
    more = first._replace(task_ptr=np.append(first.task_ptr, first.task_ptr[-1]))
    without = twin.confusion_posterior(first, t.P, t.prior, gold, Z.copy(), 1)
    with_one = twin.confusion_posterior(more, t.P, t.prior, np.append(gold, -1), np.append(Z, Z[:1], axis=0), 1)
    assert with_one.evidence == without.evidence
    assert np.array_equal(with_one.shares, without.shares)


def part_of(layout: Any, tasks: Any) -> Any:
    """The answers to some tasks, with the rows of the whole table."""
    task = np.repeat(np.arange(layout.n_tasks), np.diff(layout.task_ptr))
    place = np.full(layout.n_tasks, -1)
    place[tasks] = np.arange(len(tasks))
    row_of = np.repeat(np.arange(layout.n_rows), np.diff(layout.row_ptr))
    mine, by_row = place[task] >= 0, place[layout.task] >= 0
    order = np.argsort(place[task[mine]], kind="stable")

    def pointers(index: Any, size: int) -> Any:
        return np.concatenate([[0], np.cumsum(np.bincount(index, minlength=size))]).astype(np.int32)

    return layout._replace(
        task_ptr=pointers(place[task[mine]], len(tasks)),
        pair=layout.pair[mine][order],
        row_ptr=pointers(row_of[by_row], layout.n_rows),
        task=place[layout.task[by_row]].astype(np.int32),
    )


def test_rounding_to_the_grid_keeps_single_precision() -> None:
    rng = np.random.default_rng(0)
    Z = np.exp(-rng.gamma(2, 5, (500, 4))).clip(max=1).astype(np.float32)
    double, before = Z.astype(np.float64), Z.copy()
    rounded = round_posterior(Z)
    assert rounded is Z
    assert np.array_equal(Z * 2.0**32, np.rint(before * 2.0**32))
    assert np.array_equal(Z[before >= 2.0**-8], before[before >= 2.0**-8])
    assert np.array_equal(round_posterior(double.copy()), double)


# ------------------------------------------------------------------------------------------------ special functions

ARGUMENTS = np.concatenate([np.geomspace(1e-3, 1e6, 4000), np.arange(1, 200) / 2])


@pytest.mark.parametrize("of", [special, fast], ids=["plain", "fast"])
@pytest.mark.parametrize("name", ["digamma", "gammaln"])
def test_special_functions_are_scipys(of: Any, name: str) -> None:
    ours = np.array([getattr(of, name)(x) for x in ARGUMENTS]) if of is fast else getattr(of, name)(ARGUMENTS)
    theirs = getattr(scipy_special, name)(ARGUMENTS)
    # both have roots between 1 and 2, near which only an absolute error can be asked for
    assert (np.abs(ours - theirs) / np.maximum(np.abs(theirs), 0.1)).max() <= 1e-10


def test_expit_neither_overflows_nor_rounds_away() -> None:
    x = np.linspace(-800, 800, 4001)
    with np.errstate(all="raise"):
        ours = special.expit(x)
    assert np.allclose(ours, scipy_special.expit(x), rtol=1e-12, atol=1e-15)


# ----------------------------------------------------------------------------------------------------- extremes (D22)


each_width = pytest.mark.parametrize("K", [3, 20])  # the compiled kernels differ for more than 16 classes


def one_task(votes: list[tuple[int, int]], sure: float, kind: Any, K: int) -> tuple[Any, Any]:
    """Layout and rows of one task: for each (label, count) that many workers, `sure` of their label, in this order.
    Errors are always one of the first three of the K labels."""
    label = np.concatenate([np.full(count, said) for said, count in votes]).astype(np.int32)
    worker = np.arange(len(label), dtype=np.int32)
    layout, _ = sort_answers(plain, np.zeros_like(label), worker, label, (1, len(label), K))
    return layout, np.where(layout.row_label[:, None] == np.arange(K), sure, (1 - sure) / 2).astype(kind)


def of_three(K: int) -> Any:
    """A prior (1, K) under which only the first three classes are possible."""
    return np.where(np.arange(K) < 3, 1 / 3, 0.0)[None]


@each_twin
@each_kind
@each_width
@pytest.mark.parametrize("count", [1_500, 100_000])
@pytest.mark.parametrize("sure", [0.6, 0.99, 1 - 1e-9])
def test_many_answers_to_one_task_do_not_underflow(twin: Any, kind: Any, K: int, count: int, sure: float) -> None:
    half = count // 2
    layout, P = one_task([(0, half - 5), (1, half), (2, 5)], sure, kind, K)  # label 1 leads by five answers
    Z = np.full((1, K), 1 / K, kind)
    swept = twin.confusion_posterior(layout, P, of_three(K), np.full(1, -1, np.int32), Z, 1)
    logs = np.log(P[layout.pair, :3].astype(float)).sum(0) + np.log(1 / 3)
    assert np.allclose(Z[0, :3], scipy_special.softmax(logs), atol=1e-5)
    assert not Z[0, 3:].any()
    assert Z[0].argmax() == 1
    assert np.isclose(swept.evidence, scipy_special.logsumexp(logs), rtol=1e-9 if kind is np.float64 else 1e-7)


@each_twin
@each_width
def test_many_answers_against_gold_do_not_underflow(twin: Any, K: int) -> None:
    layout, P = one_task([(0, 1_500)], 0.99, np.float64, K)
    Z, gold = np.full((1, K), 1 / K), np.array([2], np.int32)
    swept = twin.confusion_posterior(layout, P, of_three(K), gold, Z, 1)
    assert Z[0].tolist() == [0, 0, 1] + [0] * (K - 3)
    assert np.isclose(swept.evidence, 1_500 * np.log(0.005) + np.log(1 / 3))


@each_twin
@each_kind
@each_width
def test_impossible_answers_leave_numbers(twin: Any, kind: Any, K: int) -> None:
    layout, P = one_task([(0, 40), (1, 40), (2, 40)], 1.0, kind, K)
    P = np.maximum(P, TINY).astype(kind)
    Z = np.full((1, K), 1 / K, kind)
    swept = twin.confusion_posterior(layout, P, of_three(K), np.full(1, -1, np.int32), Z, 1)
    assert np.allclose(Z[0, :3], 1 / 3, atol=1e-5)
    assert np.isclose(swept.evidence, 80 * np.log(TINY), rtol=1e-3)


@pytest.mark.parametrize("K", [2, 10, 30])
def test_the_evidence_of_many_tasks_is_the_sum_of_logarithms(K: int) -> None:
    """The compiled kernels multiply the scores of tasks and take one logarithm of the product."""
    t = table(T=5000, W=40, K=K, N=60_000)
    Z, logs = t.Z.copy(), np.log(t.P[t.layout.pair])
    sums = np.log(t.prior) + np.add.reduceat(logs, t.layout.task_ptr[:4997], axis=0)
    free = t.gold[:4997] < 0
    assert np.diff(t.layout.task_ptr)[:4997].min() > 0
    known = sums[np.arange(4997), t.gold[:4997]]
    slow = np.where(free, scipy_special.logsumexp(sums, axis=1), known).sum()
    assert np.isclose(fast.confusion_posterior(t.layout, t.P, t.prior, t.gold, Z, 1).evidence, slow, rtol=1e-12)


@each_twin
@each_kind
def test_a_repeated_iteration_flips_nothing(twin: Any, kind: Any) -> None:
    """Two classes that differ by less than the storage precision must not count as a change of label."""
    task, worker, label = np.zeros(2, np.int32), np.arange(2, dtype=np.int32), np.array([0, 1], np.int32)
    layout, _ = sort_answers(plain, task, worker, label, (1, 2, 2))
    Z, none = np.array([[0.9, 0.1]], kind), np.full(1, -1, np.int32)
    P, even = np.array([[0.7, 0.3], [0.3, 0.7 + 1e-12]]), np.full((1, 2), 0.5)
    twin.confusion_posterior(layout, P, even, none, Z, 1)
    assert twin.confusion_posterior(layout, P, even, none, Z, 1).flips == 0
    twin.match_posterior(layout, np.log(P.max(1)), np.log(P.min(1)), even, none, Z, 1)
    assert twin.match_posterior(layout, np.log(P.max(1)), np.log(P.min(1)), even, none, Z, 1).flips == 0


# ----------------------------------------------------------------------------------------------------- components


def slow_parts(pairs: list[tuple[int, int]], W: int) -> list[int]:
    """Connected components of workers over shared tasks, numbered in worker order."""
    part = [-1] * W
    for start in range(W):
        if part[start] < 0:
            ahead = [start]
            while ahead:
                here = ahead.pop()
                part[here] = max(part) + 1 if here == start else part[start]
                tasks = {i for i, j in pairs if j == here}
                ahead += [j for i, j in pairs if i in tasks and part[j] < 0]
    return part


@each_twin
@pytest.mark.parametrize("seed", range(8))
def test_components_of_the_crowd(twin: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    task, worker = rng.integers(0, 30, 25).astype(np.int32), rng.integers(0, 20, 25).astype(np.int32)
    layout, _ = sort_answers(plain, task, worker, np.zeros_like(task), (30, 20, 1))
    expected = slow_parts(list(zip(task.tolist(), worker.tolist(), strict=True)), 20)
    assert len(set(expected)) > 2
    assert twin.components(layout).tolist() == expected


@each_twin
def test_a_long_chain_of_workers_is_one_part(twin: Any) -> None:
    W, rng = 3000, np.random.default_rng(0)
    name = rng.permutation(W)  # neighbours in the chain have unrelated numbers
    task = np.repeat(np.arange(W - 1), 2).astype(np.int32)
    worker = name[np.stack([np.arange(W - 1), np.arange(1, W)], 1).ravel()].astype(np.int32)
    layout, _ = sort_answers(plain, task, worker, np.zeros_like(task), (W - 1, W, 1))
    assert not twin.components(layout).any()


@each_kind
def test_cavity_left_out_kernels_agree_with_slow_code(kind: Any) -> None:
    t = table(kind=kind)
    K, layout = t.layout.n_classes, t.layout
    counts = plain.confusion_counts(layout, t.Z, 1).astype(kind)
    totals = per_worker(layout, counts).astype(np.float64)
    prior = np.full((1, K), 1 / K)
    right, sure = np.zeros(layout.n_workers), np.zeros(layout.n_workers)
    for i in range(layout.n_tasks):
        rows = layout.pair[layout.task_ptr[i] : layout.task_ptr[i + 1]]
        for n, r in enumerate(rows):
            q = prior[0].copy()
            for s in np.delete(rows, n):
                own = np.maximum(counts[s] - t.Z[i], 0) + t.a[:, layout.row_label[s]]
                q *= own / (np.maximum(totals[layout.row_worker[s]] - t.Z[i], 0) + t.a.sum(1))
            q = t.Z[i] / t.Z[i].sum() if t.gold[i] >= 0 else q / q.sum()
            right[layout.row_worker[r]] += q[layout.row_label[r]]
            sure[layout.row_worker[r]] += (q**2).sum()
    for twin in (plain, fast):
        found = twin.cavity_left_out(layout, counts, totals, t.a, prior, t.gold, t.Z, 1)
        assert np.allclose(found[0], right, rtol=2e-5)
        assert np.allclose(found[1], sure, rtol=2e-5)


# ------------------------------------------------------------------------------------- confusions met by a task's ease


class Eased(NamedTuple):
    """A table with odds, ease and priors."""

    t: Table
    odds: Any  # (W, K, K)
    ease: Any  # (T,)
    prior: Any  # (T, K) or (1, K)


def eased(K: int = 3, N: int = 80, seed: int = 3, prior_of_all: bool = False) -> Eased:
    t, rng = table(T=25, W=6, K=K, N=N, seed=seed), np.random.default_rng(seed)
    odds = rng.normal(1, 1.5, (6, K, K)) * (1 - np.eye(K))
    prior = rng.dirichlet(np.ones(K), 1 if prior_of_all else 25)
    return Eased(t, odds, rng.uniform(0, 1, 25), prior)


def slow_eased(e: Eased, odds: Any, ease: Any, skip: int = -1) -> tuple[Any, Any]:
    """Posterior and log-evidence (T,) answer by answer, without answer number `skip`."""
    logs = np.log(e.prior) + np.zeros((len(ease), odds.shape[1]))
    for n, (i, j, m, _) in enumerate(answers_of(e.t)):
        if n != skip:
            weight = np.exp(-ease[i] * odds[j])
            logs[i] += np.log(weight[:, m] / weight.sum(1))
    for i, known in enumerate(e.t.gold):
        logs[i] = [value if known in (-1, k) else -np.inf for k, value in enumerate(logs[i])]
    return scipy_special.softmax(logs, axis=1), scipy_special.logsumexp(logs, axis=1)


def central(value: Any, at: Any, places: Any, step: float = 1e-5) -> list[float]:
    """Central differences of value(at) for some coordinates."""
    found = []
    for place in places:
        up, down = at.copy(), at.copy()
        up[place] += step
        down[place] -= step
        found.append((value(up) - value(down)) / (2 * step))
    return found


@each_twin
@pytest.mark.parametrize("K", [1, 2, 5])
@pytest.mark.parametrize("prior_of_all", [True, False])
def test_eased_posterior(twin: Any, K: int, prior_of_all: bool) -> None:
    e = eased(K, prior_of_all=prior_of_all) if K > 1 else eased_of_one_class()
    Z, slope = e.t.Z.copy(), np.full(25, np.nan)
    swept = twin.difficulty_posterior(e.t.layout, e.odds, e.ease, e.prior, e.t.gold, Z, slope, 1)
    answered = sorted(set(e.t.task.tolist()))
    slow, evidence = slow_eased(e, e.odds, e.ease)
    flips = sum(slow[i].argmax() != e.t.Z[i].argmax() for i in answered)
    assert (e.t.gold[answered] >= 0).any()
    assert len(answered) < 25
    held_to((slow, evidence[answered].sum(), slow[answered].sum(0), flips), swept, Z, np.float64)
    by_ease = central(lambda ease: slow_eased(e, e.odds, ease)[1].sum(), e.ease, range(25))
    assert np.allclose(slope, by_ease, atol=1e-6)


def eased_of_one_class() -> Eased:
    rng = np.random.default_rng(0)
    task, worker = (rng.integers(0, top, 60).astype(np.int32) for top in (22, 6))
    layout, order = sort_answers(plain, task, worker, np.zeros_like(task), (25, 6, 1))
    Z, gold = np.ones((25, 1)), np.where(np.arange(25) % 4 == 0, 0, -1).astype(np.int32)
    t = Table(layout, task, worker, np.zeros_like(task), order, Z[:1], Z[:1], gold, Z, Z[:1])
    return Eased(t, np.zeros((6, 1, 1)), rng.uniform(0, 1, 25), Z)


@each_twin
@pytest.mark.parametrize("K", [2, 4])
def test_eased_slopes_are_those_of_the_evidence(twin: Any, K: int) -> None:
    e = eased(K)
    slopes = twin.difficulty_slopes(e.t.layout, e.odds, e.ease, slow_eased(e, e.odds, e.ease)[0], 1)
    off = [(j, k, m) for j in range(6) for k in range(K) for m in range(K) if k != m]
    answered = np.unique(e.t.task)
    wanted = central(lambda odds: slow_eased(e, odds, e.ease)[1][answered].sum(), e.odds, off)
    assert np.abs(wanted).max() > 0.5
    assert np.allclose([slopes[at] for at in off], wanted, atol=1e-6)


@each_twin
@pytest.mark.parametrize("K", [2, 4])
def test_eased_left_out_is_the_posterior_without_the_answer(twin: Any, K: int) -> None:
    e = eased(K)
    Z = slow_eased(e, e.odds, e.ease)[0]
    right, sure = np.zeros(6), np.zeros(6)
    for n, (i, j, m, _) in enumerate(answers_of(e.t)):
        q = slow_eased(e, e.odds, e.ease, skip=n)[0][i]
        right[j] += q[m]
        sure[j] += (q**2).sum()
    found = twin.difficulty_left_out(e.t.layout, e.odds, e.ease, e.t.gold, Z, 1)
    assert np.allclose(found[0], right)
    assert np.allclose(found[1], sure)


@pytest.mark.parametrize("K", [2, 4])
def test_threads_change_no_bit_of_eased_kernels(compiled: Any, K: int) -> None:
    e = eased(K, N=2000)
    found = []
    for threads in (1, 2):
        Z, slope = e.t.Z.copy(), np.empty(25)
        swept = compiled.difficulty_posterior(e.t.layout, e.odds, e.ease, e.prior, e.t.gold, Z, slope, threads)
        slopes = compiled.difficulty_slopes(e.t.layout, e.odds, e.ease, Z, threads)
        left = compiled.difficulty_left_out(e.t.layout, e.odds, e.ease, e.t.gold, Z, threads)
        found.append([Z, slope, swept.evidence, swept.shares, slopes, *left])
    assert all(np.array_equal(one, two) for one, two in zip(*found, strict=True))


@each_twin
def test_tasks_without_information_keep_their_prior(twin: Any) -> None:
    e = eased(4)
    Z, open_ = e.t.Z.copy(), np.full(25, -1, np.int32)
    swept = twin.difficulty_posterior(e.t.layout, e.odds, np.zeros(25), e.prior, open_, Z, np.empty(25), 1)
    assert np.allclose(Z, e.prior)
    assert np.isclose(swept.evidence, 80 * np.log(1 / 4))


@each_twin
@pytest.mark.parametrize("sharp", [30.0, 1e4])
def test_contradictory_certain_answers_stay_finite(twin: Any, sharp: float) -> None:
    """A thousand answers for each of two labels, all of them certain: neither class wins, and nothing is infinite."""
    label = np.repeat(np.arange(2), 1000).astype(np.int32)
    layout, _ = sort_answers(plain, np.zeros_like(label), np.arange(2000, dtype=np.int32), label, (1, 2000, 2))
    odds = np.broadcast_to(sharp * (1 - np.eye(2)), (2000, 2, 2)).copy()
    Z, slope, even = np.full((1, 2), 0.5), np.empty(1), np.full((1, 2), 0.5)
    swept = twin.difficulty_posterior(layout, odds, np.ones(1), even, np.full(1, -1, np.int32), Z, slope, 1)
    assert np.allclose(Z, 0.5)
    assert np.isclose(swept.evidence, 1000 * max(-sharp, np.log(TINY)), rtol=1e-6)
    assert np.isfinite(slope).all()
    assert np.isfinite(twin.difficulty_slopes(layout, odds, np.ones(1), Z, 1)).all()


# ------------------------------------------------------------------------------------------------- groups of workers


def grouped(t: Any, M: int, kind: Any) -> tuple[Any, Any, Any]:
    """Expected answers of rows (R, K), groups of workers (W, M), and log-confusions of groups (M, K, K)."""
    rng, K = np.random.default_rng(M), t.layout.n_classes
    C = rng.gamma(1, 3, (t.layout.n_rows, K)).astype(kind)
    return C, rng.dirichlet(np.ones(M), t.layout.n_workers), np.log(rng.dirichlet(np.ones(K), (M, K)))


@each_twin
@each_kind
@pytest.mark.parametrize(("K", "M"), [(4, 3), (2, 1), (7, 5)])
def test_sums_over_groups(twin: Any, kind: Any, K: int, M: int) -> None:
    t = table(K=K, kind=kind)
    C, member, logs = grouped(t, M, kind)
    counts, scores, rows = np.zeros((M, K, K)), np.zeros((9, M)), np.zeros(C.shape)
    for (j, label), r in rows_of(t).items():
        for m in range(M):
            for k in range(K):
                counts[m, k, label] += member[j, m] * C[r, k]
                scores[j, m] += C[r, k] * logs[m, k, label]
                rows[r, k] += member[j, m] * logs[m, k, label]
    assert (scores == 0).any(), "an idle worker is among them"
    assert np.allclose(twin.group_counts(t.layout, C, member, 1), counts, rtol=ROUNDING[kind])
    assert np.allclose(twin.group_scores(t.layout, C, logs, 1), scores, rtol=ROUNDING[kind])
    found = twin.group_rows(t.layout, member, logs, kind, 1)
    assert found.dtype == kind
    assert np.allclose(found, np.exp(rows), rtol=ROUNDING[kind])
    assert (twin.group_rows(t.layout, member, 1e4 * logs, np.float64, 1) >= TINY).all()


def test_blocks_and_threads_change_no_bit_of_groups(compiled: Any) -> None:
    t = table(W=60, N=3000)
    C, member, logs = grouped(t, 3, np.float64)
    assert len(compiled.blocks.by_workers(t.layout)) > 5
    found = [
        (
            compiled.group_counts(t.layout, C, member, threads).tobytes(),
            compiled.group_scores(t.layout, C, logs, threads).tobytes(),
            compiled.group_rows(t.layout, member, logs, np.float32, threads).tobytes(),
        )
        for threads in (1, 2, 5)
    ]
    assert found[0] == found[1] == found[2]
    assert np.allclose(compiled.group_counts(t.layout, C, member, 2), plain.group_counts(t.layout, C, member, 1))


def test_loops_of_logarithms_and_exponentials_are_exact() -> None:
    from crowdwise.kernels.fast.loops import LARGEST, exp_minus, log_all

    rng = np.random.default_rng(1)
    x = np.concatenate([np.exp(rng.uniform(-300, 300, 3000)), rng.uniform(0.5, 2, 3000), [1.0, 5e-308, 1.7e308]])
    out, spare = np.empty_like(x), np.empty_like(x)
    log_all(x, out, spare, len(x))
    np.testing.assert_allclose(out, np.log(x), rtol=1e-15, atol=2e-16)
    t = np.concatenate([rng.uniform(0, LARGEST, 3000), rng.uniform(0, 1, 3000), [0.0, LARGEST, 1e6]])
    exp_minus(t, out, spare, len(t))
    np.testing.assert_allclose(out[:-1], np.exp(-t[:-1]), rtol=1e-15)
    assert 0 < out[-1] < 1e-300


def test_small_pseudo_counts_do_not_underflow() -> None:
    """Rows of workers without counts of a class, whose totals are tiny: exp of psi is below any floor."""
    label = np.array([0, 1], np.int32)
    rows = WorkerRows(2, np.zeros(2, np.int32), label, np.array([0, 2]), np.array([3, 4]))
    counts, a = np.array([[0.0, 2.0], [0.0, 5.0]]), np.array([[0.018, 0.001], [0.5, 2.0]])
    both = [of.dirichlet_rows(rows, counts, a, np.float64, 1) for of in (fast, plain)]
    for ours, theirs in zip(*both, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


OUT_OF_BOUNDS = """
import numba, numpy as np
from crowdwise.kernels.fast.blocks import at
from crowdwise.kernels.fast.vectors import filled, load, store, total

@numba.njit
def element(x, i):
    return at(x, i)

@numba.njit
def of_vector(x, i, j):
    return total(load(x, i, j, 3))

@numba.njit
def to_vector(x, i, j):
    store(x, i, j, filled(0.0, 3))

x = np.arange(12.0).reshape(3, 4)
assert (element(x[0], 3), of_vector(x, 2, 1)) == (3.0, 30.0)
calls = (
    lambda: element(x[0], 4), lambda: element(x[0], -1), lambda: of_vector(x, 2, 2), lambda: of_vector(x, 3, 0),
    lambda: to_vector(x, 0, -1), lambda: to_vector(x, 1, 2),
)
for call in calls:
    try:
        call()
    except IndexError as error:
        print(error)
"""


def test_make_boundscheck_also_checks_pointers(tmp_path):
    checked = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    start = [sys.executable, "-c", OUT_OF_BOUNDS]
    done = subprocess.run(start, capture_output=True, text=True, env=checked, timeout=120)
    assert done.stdout == 6 * "index is out of bounds\n", done.stderr
