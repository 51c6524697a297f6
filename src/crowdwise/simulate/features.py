"""Crowds who label points with features: experts who err more where classes meet (the study of difficulty), and workers
of a few levels of ability, who label few of many tasks each (the study of groups)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ..errors import ParameterError
from ..kernels.layout import Floats, Ints
from ..kernels.special import softmax
from ..learn.objective import ease_of
from .labels import Crowd, Load, Rng, Whole, drawn, named, spoken, who_answers

SENSITIVITY, SPECIFICITY = (0.8, 0.6, 0.6, 0.7, 0.6), (0.6, 0.7, 0.6, 0.7, 0.7)  # of the paper's five experts
# Experts, inexperts and spammers of Setup (1), as the study's code has them, and their shares of the crowd. The mixture
# calls the second class by the third's name more often than by its own: there the majority is wrong.
LEVELS = (
    ((0.810, 0.095, 0.095), (0.000, 0.895, 0.105), (0.403, 0.121, 0.476)),
    ((0.607, 0.000, 0.393), (0.091, 0.424, 0.485), (0.105, 0.000, 0.895)),
    ((0.895, 0.000, 0.105), (0.086, 0.000, 0.914), (0.741, 0.000, 0.259)),
)
SHARES = (0.25, 0.55, 0.20)


def experts(
    tasks: int = 1000,
    *,
    fresh: int = 0,
    classes: int = 2,
    features: int = 2,
    workers: int | None = None,
    per_task: int | None = None,
    load: Load = "even",
    structural: bool = True,
    seed: Any = 0,
) -> Crowd:
    """Points of Gaussians, one a class, labelled by experts who err more where classes meet.

    Structural labels: an expert says l of a point of class k with probability ~ exp(-h odds[k, l]), h the point's ease:
    for two classes sigma(lambda (p - 1/2)^2). Else an expert errs with probability 1 / (3 + n), n drawn from 0 to 5 for
    every answer anew. `fresh` are further points that nobody labelled. Without `workers`, two classes have the paper's
    five experts; else their chances on the easiest points are drawn from 0.5 to 0.9. Without `per_task`, all label all.

    >>> experts(tasks=20, fresh=5, seed=1).features.shape
    (25, 2)
    """
    given = {"tasks": (tasks, 1), "fresh": (fresh, 0), "classes": (classes, 2), "features": (features, 2)}
    for name, (value, least) in given.items():
        if value < least:
            raise ParameterError(f"{name} is {value}; it must be at least {least}")
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, tasks + fresh)
    means = _around(classes, features)
    X = rng.normal(size=(len(truth), features)) + means[truth]
    if workers is None and classes == 2:
        ability = np.column_stack([SPECIFICITY, SENSITIVITY])  # (W, K) chance of a right answer on the easiest points
    else:
        ability = rng.uniform(0.5, 0.9, (5 if workers is None else workers, classes))
    W = len(ability)
    task, worker = who_answers(tasks, W, W if per_task is None else per_task, load=load, rng=rng)
    true, wrong = truth[task], 1 - np.eye(classes)
    if structural:
        ease = ease_of(softmax(0.5 * X @ means.T))  # experts are blunt: the best slope is twice as steep
        odds = np.log(ability / (1 - ability) * (classes - 1))[:, :, None] * wrong
        said = _likely(odds[worker, true], ease[task])
    else:
        ease = np.ones(len(X))
        odds = np.full((W, classes, 1), np.log((1 / np.mean(1 / np.arange(3, 9)) - 1) * (classes - 1))) * wrong
        err = 1 / (3 + rng.integers(0, 6, len(task)))[:, None]
        said = np.where(np.arange(classes) == true[:, None], 1 - err, err / (classes - 1))
    label, rho = drawn(said, rng), np.full(classes, 1 / classes)
    made = named(truth, task, worker, label, _likely(odds, np.ones((W, 1))), np.zeros(W, int), rho)
    hits = np.bincount(worker, said[np.arange(len(task)), true], minlength=W)
    skill = pl.Series(hits / np.maximum(np.bincount(worker, minlength=W), 1))
    return replace(made, workers=made.workers.with_columns(skill=skill), features=X, ease=ease)


def _around(classes: int, features: int) -> Floats:
    """(K, features) means on a circle; for two classes (-1, -1) and (1, 1)."""
    means = np.zeros((classes, features))
    angle = np.pi * (1.25 + 2 * np.arange(classes) / classes)
    means[:, :2] = (2**0.5 if classes == 2 else 1.8) * np.column_stack([np.cos(angle), np.sin(angle)])
    return means


def _likely(odds: Floats, ease: Floats) -> Floats:
    """(..., K) probabilities ~ exp(-ease odds)."""
    return softmax(-ease[..., None] * odds)


def levels(
    truth: Any,
    matrices: Any = LEVELS,
    shares: Any = SHARES,
    *,
    workers: int = 100,
    per_task: float = 5.0,
    features: Floats | None = None,
    fresh: int = 0,
    seed: Any = 0,
) -> Crowd:
    """A crowd for tasks whose true classes (n,) are given by number: a worker's level is drawn by `shares`, and says
    what the level's confusion matrix (K, K) makes likely.

    Each worker labels each task with probability `per_task` / `workers`; a task that nobody would label gets one label,
    and workers without any are left out. The last `fresh` tasks are labelled by nobody. `workers` of what comes back
    tells the level as `group`.

    >>> levels([0, 1, 2] * 10, workers=20, seed=1).answers.n_tasks
    30
    """
    truth, made = _classes(truth), _matrices(matrices)
    weight = np.asarray(shares, float)
    K, labelled = made.shape[1], len(truth) - fresh
    if weight.shape != (len(made),) or not weight.min() >= 0 or not 0 < weight.sum() < np.inf:
        raise ParameterError(f"shares is {shares!r}; give {len(made)} numbers of at least 0, one for every level")
    if fresh < 0 or labelled < 1 or truth.max() >= K:
        raise ParameterError(
            f"truth holds {len(truth)} classes and fresh is {fresh}; wanted are classes from 0 to {K - 1}, of at least "
            "one task that is labelled"
        )
    if not 0 < per_task <= workers:
        raise ParameterError(f"per_task is {per_task}; it must be above 0 and at most {workers}, the workers")
    rng = np.random.default_rng(seed)
    level = rng.choice(len(made), workers, p=weight / weight.sum())
    task, worker = _pairs(labelled, workers, per_task, rng)
    used, worker = np.unique(worker, return_inverse=True)
    level = level[used]
    label = spoken(truth, task, worker, made[level], rng)
    rho = np.bincount(truth, minlength=K) / len(truth)
    return replace(named(truth, task, worker, label, made[level], level, rho), features=features)


def triangle(workers: int = 100, *, tasks: int = 2457, fresh: int = 819, per_task: float = 5.0, seed: Any = 0) -> Crowd:
    """Setup (1) of the study of groups: three Gaussians, labelled by experts, inexperts and spammers (`LEVELS`).

    >>> triangle(50, tasks=30, fresh=6, seed=1).features.shape
    (36, 2)
    """
    if tasks < 3 or fresh < 0:
        raise ParameterError(f"tasks is {tasks} and fresh {fresh}; they must be at least 3 and 0")
    points, crowd = np.random.default_rng(seed).spawn(2)
    truth = np.concatenate([points.permutation(np.arange(n) % 3) for n in (tasks, fresh)])
    centres = np.array([(0.0, 1.0), (0.0, -1.0), (1.0, 0.0)])  # printed half as far apart, where 74 % is the best
    X = centres[truth] + 0.4 * points.normal(size=(len(truth), 2))
    return levels(truth, workers=workers, per_task=per_task, features=X, fresh=fresh, seed=crowd)


def perturbed(X: Any, truth: Any, noise: Any, *, seed: int = 0, **network: Any) -> Floats:
    """(M, K, K) confusion matrices of levels of ability, for `levels`: those of a network (`network` are its settings)
    that was taught the truth and whose weights were then disturbed by noise of each size, in standard deviations of the
    weights of a layer; told on the very rows it was taught."""
    from ..learn.network import Network

    X, truth, sizes = np.asarray(X, np.float32), _classes(truth), np.asarray(noise, float)
    if len(X) != len(truth):
        raise ParameterError(f"X has {len(X)} rows and truth {len(truth)} classes; give a class for every row")
    if sizes.ndim != 1 or not len(sizes) or not (sizes >= 0).all() or np.isinf(sizes).any():
        raise ParameterError(f"noise is {noise!r}; give a number of at least 0 for every level")
    K = int(truth.max()) + 1
    rng = np.random.default_rng(seed)
    learner = Network(**network).learner(X, K, rng)
    learner.imitate(np.eye(K)[truth])
    made = []
    for size in sizes:
        told = learner.disturbed(float(size), rng).argmax(1)
        counts = np.bincount(truth * K + told, minlength=K * K).reshape(K, K) + 1e-3
        made.append(counts / counts.sum(1, keepdims=True))
    return np.array(made)


def _classes(truth: Any) -> Whole:
    found = np.asarray(truth)
    if found.ndim != 1 or not len(found) or not np.issubdtype(found.dtype, np.integer) or found.min() < 0:
        raise ParameterError("truth must hold the class of every task, as a whole number from 0")
    return found.astype(np.int64)


def _matrices(matrices: Any) -> Floats:
    made = np.asarray(matrices, float)
    square = made.ndim == 3 and made.shape[1] == made.shape[2] and made.size > 0
    if not square or not made.min() >= 0 or not (made.sum(2) > 0).all():
        raise ParameterError(f"matrices have shape {made.shape}; give confusion matrices, (levels, classes, classes)")
    return np.asarray(made / made.sum(2, keepdims=True))


def _pairs(tasks: int, workers: int, per_task: float, rng: Rng) -> tuple[Whole, Whole]:
    """(task, worker) of every answer, where each pair answers with the same chance, and every task once at least."""
    count: Ints = np.maximum(rng.binomial(workers, per_task / workers, tasks), 1)
    parts = []
    for n in np.unique(count):
        some = np.flatnonzero(count == n)
        at, worker = who_answers(len(some), workers, int(n), rng=rng)
        parts.append((some[at], worker))
    task, worker = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(task, kind="stable")
    return task[order], worker[order]
