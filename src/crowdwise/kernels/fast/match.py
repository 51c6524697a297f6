"""Models in which an answer is either correct or wrong: votes, one coin, and ability times ease, compiled."""

from __future__ import annotations

import functools
import math

import numpy as np

from .. import EStepResult
from ..layout import Floats, Ints, Layout
from ..threads import run
from .blocks import by_answers, by_workers, jit, normalise_task, run_e_step


@jit
def _match(ptr, pair, row_label, hit, miss, log_prior, gold, Z, shares, start, stop):
    q = np.empty(Z.shape[1])
    evidence, flips, wide = 0.0, 0, 1 if len(log_prior) > 1 else 0
    for i in range(start, stop):
        q[:] = log_prior[i * wide]
        base = 0.0
        for n in range(ptr[i], ptr[i + 1]):
            r = pair[n]
            q[row_label[r]] += hit[r] - miss[r]
            base += miss[r]
        gain, moved = normalise_task(q, ptr[i], ptr[i + 1], base, gold[i], Z, i, shares)
        evidence += gain
        flips += moved
    return evidence, flips


def match_posterior(
    layout: Layout, hit: Floats, miss: Floats, prior: Floats, gold: Ints, Z: Floats, threads: int
) -> EStepResult:
    parts = (layout.task_ptr, layout.pair, layout.row_label, hit, miss, np.log(prior), gold, Z)
    return run_e_step(layout, Z, threads, functools.partial(_match, *parts))


@jit
def _match_counts(ptr, task, row_label, Z, out, start, stop):
    for r in range(start, stop):
        total, label = 0.0, row_label[r]
        for n in range(ptr[r], ptr[r + 1]):
            total += Z[task[n], label]
        out[r] = total


def match_counts(layout: Layout, Z: Floats, threads: int) -> Floats:
    out = np.empty(layout.n_rows)
    parts = (layout.row_ptr, layout.task, layout.row_label, Z, out)
    run(lambda b, start, stop: _match_counts(*parts, start, stop), by_answers(layout.row_ptr), threads)
    return out


@jit
def _votes(ptr, pair, row_label, weight, Z, start, stop):
    for i in range(start, stop):
        Z[i] = 0.0
        for n in range(ptr[i], ptr[i + 1]):
            Z[i, row_label[pair[n]]] += weight[pair[n]]


def votes(layout: Layout, weight: Floats, Z: Floats, threads: int) -> None:
    parts = (layout.task_ptr, layout.pair, layout.row_label, weight, Z)
    run(lambda b, start, stop: _votes(*parts, start, stop), by_answers(layout.task_ptr), threads)


@jit(inline="always")
def _softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@jit
def _ability(ptr, pair, row_worker, row_label, ability, ease, log_prior, gold, Z, shares, start, stop):
    q = np.empty(Z.shape[1])
    evidence, flips, wide, others = 0.0, 0, 1 if len(log_prior) > 1 else 0, math.log(max(Z.shape[1] - 1, 1))
    for i in range(start, stop):
        q[:] = log_prior[i * wide]
        base = 0.0
        for n in range(ptr[i], ptr[i + 1]):
            r = pair[n]
            x = ability[row_worker[r]] * ease[i]
            miss = -_softplus(x) - others
            q[row_label[r]] += x + others  # log sigma(x) - log sigma(-x) = x
            base += miss
        gain, moved = normalise_task(q, ptr[i], ptr[i + 1], base, gold[i], Z, i, shares)
        evidence += gain
        flips += moved
    return evidence, flips


def ability_posterior(
    layout: Layout, ability: Floats, ease: Floats, prior: Floats, gold: Ints, Z: Floats, threads: int
) -> EStepResult:
    rows = (layout.task_ptr, layout.pair, layout.row_worker, layout.row_label)
    return run_e_step(layout, Z, threads, functools.partial(_ability, *rows, ability, ease, np.log(prior), gold, Z))


@jit(inline="always")
def _curve(x):
    """Return tanh(x / 2) / (2 x), the curvature of the bound on log sigma that touches at x."""
    return 0.25 if abs(x) < 1e-4 else math.tanh(0.5 * x) / (2.0 * x)


@jit
def _worker_slopes(worker_ptr, row_ptr, task, row_label, ability, ease, Z, rise, curve, start, stop):
    for j in range(start, stop):
        for r in range(worker_ptr[j], worker_ptr[j + 1]):
            for n in range(row_ptr[r], row_ptr[r + 1]):
                i = task[n]
                rise[j] += (Z[i, row_label[r]] - 0.5) * ease[i]
                curve[j] += _curve(ability[j] * ease[i]) * ease[i] ** 2


@jit
def _task_slopes(task_ptr, pair, row_worker, row_label, ability, ease, Z, rise, curve, start, stop):
    for i in range(start, stop):
        for n in range(task_ptr[i], task_ptr[i + 1]):
            r = pair[n]
            skill = ability[row_worker[r]]
            rise[i] += (Z[i, row_label[r]] - 0.5) * skill
            curve[i] += _curve(skill * ease[i]) * skill**2


def ability_slopes(
    layout: Layout, ability: Floats, ease: Floats, Z: Floats, of_workers: bool, threads: int
) -> tuple[Floats, Floats]:
    size = layout.n_workers if of_workers else layout.n_tasks
    rise, curve = np.zeros(size), np.zeros(size)
    if of_workers:
        parts = (layout.worker_ptr, layout.row_ptr, layout.task, layout.row_label, ability, ease, Z, rise, curve)
        run(lambda b, start, stop: _worker_slopes(*parts, start, stop), by_workers(layout), threads)
    else:
        parts = (layout.task_ptr, layout.pair, layout.row_worker, layout.row_label, ability, ease, Z, rise, curve)
        run(lambda b, start, stop: _task_slopes(*parts, start, stop), by_answers(layout.task_ptr), threads)
    return rise, curve
