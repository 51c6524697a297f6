"""Simulated crowds that label points with features.

`experts` err more where classes overlap (the study of difficulty). `levels` and `triangle` have workers of a few levels
of ability, each of whom labels a few of many tasks (the study of groups).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ..answers.arguments import brief, check_array, checked, generator
from ..errors import ParameterError, check_choice
from ..kernels.layout import Floats, Ints
from ..kernels.special import softmax
from ..learn.objective import ease_of
from ..limits import enough_memory
from .labels import Codes, Crowd, Load, Rng, assign_workers, build_crowd, check_size, draw_classes, draw_labels

SENSITIVITY, SPECIFICITY = (0.8, 0.6, 0.6, 0.7, 0.6), (0.6, 0.7, 0.6, 0.7, 0.7)  # of the paper's five experts
# Experts, inexperts and spammers of Setup (1), as in the study's code, and their shares of the crowd. On average, tasks
# of the second class get the third label more often than the second: there the majority is wrong.
LEVELS = (
    ((0.810, 0.095, 0.095), (0.000, 0.895, 0.105), (0.403, 0.121, 0.476)),
    ((0.607, 0.000, 0.393), (0.091, 0.424, 0.485), (0.105, 0.000, 0.895)),
    ((0.895, 0.000, 0.105), (0.086, 0.000, 0.914), (0.741, 0.000, 0.259)),
)
SHARES = (0.25, 0.55, 0.20)


@enough_memory("the simulation")
@checked
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
    """Simulate points from one Gaussian per class, labelled by experts who err more where classes overlap.

    With `structural` labels, an expert labels a point of class k as l with probability ~ exp(-h odds[k, l]), where h is
    the ease of the point (for two classes, sigma(lambda (p - 1/2)^2)). Otherwise an expert errs with probability
    1 / (3 + n), with n drawn from 0 to 5 for each answer. `fresh` is the number of additional points without labels.
    By default, two classes have the paper's five experts; otherwise there are `workers` experts (default 5), whose
    accuracies on the easiest points are drawn from 0.5 to 0.9. By default, all experts label all points.

    >>> experts(tasks=20, fresh=5, seed=1).features.shape
    (25, 2)
    """
    sizes = {"tasks": (tasks, 1), "fresh": (fresh, 0), "classes": (classes, 2), "features": (features, 2)}
    sizes |= {} if workers is None else {"workers": (workers, 1)}
    check_choice("load", load, ("even", "skewed"))
    for name, (value, minimum) in sizes.items():
        if value < minimum:
            raise ParameterError(f"{name} is {value}; it must be at least {minimum}")
    W = 5 if workers is None else workers
    check_size(answers=tasks * (W if per_task is None else max(per_task, 1)), numbers=(tasks + fresh) * features)
    check_size(cells_of_confusion_matrices=W * classes**2)
    rng = generator(seed)
    truth = rng.integers(0, classes, tasks + fresh)
    means = _class_means(classes, features)
    X = rng.normal(size=(len(truth), features)) + means[truth]
    if workers is None and classes == 2:
        ability = np.column_stack([SPECIFICITY, SENSITIVITY])  # (W, K) accuracy on the easiest points
    else:
        ability = rng.uniform(0.5, 0.9, (5 if workers is None else workers, classes))
    W = len(ability)
    task, worker = assign_workers(tasks, W, W if per_task is None else per_task, load=load, rng=rng)
    true, wrong = truth[task], 1 - np.eye(classes)
    if structural:
        ease = ease_of(softmax(0.5 * X @ means.T))  # the optimal slope would be twice as steep
        odds = np.log(ability / (1 - ability) * (classes - 1))[:, :, None] * wrong
        likelihood = _probabilities(odds[worker, true], ease[task])
    else:
        ease = np.ones(len(X))
        odds = np.full((W, classes, 1), np.log((1 / np.mean(1 / np.arange(3, 9)) - 1) * (classes - 1))) * wrong
        err = 1 / (3 + rng.integers(0, 6, len(task)))[:, None]
        likelihood = np.where(np.arange(classes) == true[:, None], 1 - err, err / (classes - 1))
    label, rho = draw_classes(likelihood, rng), np.full(classes, 1 / classes)
    confusions = _probabilities(odds, np.ones((W, 1)))
    crowd = build_crowd(truth, task, worker, label, confusions, np.zeros(W, int), rho)
    hits = np.bincount(worker, likelihood[np.arange(len(task)), true], minlength=W)
    skill = pl.Series(hits / np.maximum(np.bincount(worker, minlength=W), 1))
    return replace(crowd, workers=crowd.workers.with_columns(skill=skill), features=X, ease=ease)


def _class_means(classes: int, features: int) -> Floats:
    """Means of the classes, (K, features), on a circle; for two classes (-1, -1) and (1, 1)."""
    means = np.zeros((classes, features))
    angle = np.pi * (1.25 + 2 * np.arange(classes) / classes)
    means[:, :2] = (2**0.5 if classes == 2 else 1.8) * np.column_stack([np.cos(angle), np.sin(angle)])
    return means


def _probabilities(odds: Floats, ease: Floats) -> Floats:
    """Probabilities of the labels, ~ exp(-ease odds), shape (..., K)."""
    return softmax(-ease[..., None] * odds)


@enough_memory("the simulation")
@checked
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
    """Simulate a crowd for tasks whose true classes (n,) are given as numbers.

    The level of each worker is drawn from `shares`; labels are drawn from the level's confusion matrix (K, K). Each
    worker labels each task with probability `per_task` / `workers`. A task that would get no label gets one, and
    workers without labels are dropped. The last `fresh` tasks get no labels. The column `group` of the returned
    `workers` is the level.

    >>> levels([0, 1, 2] * 10, workers=20, seed=1).answers.n_tasks
    30
    """
    truth, matrices = _checked_classes(truth), _checked_matrices(matrices)
    weight = check_array("shares", shares, "a number of at least 0 for every level")
    K, labelled = matrices.shape[1], len(truth) - fresh
    if weight.shape != (len(matrices),) or not weight.min() >= 0 or not 0 < weight.sum() < np.inf:
        raise ParameterError(f"shares is {shares!r}; give {len(matrices)} numbers of at least 0, one for every level")
    if fresh < 0 or labelled < 1 or truth.max() >= K:
        raise ParameterError(
            f"truth holds {len(truth)} classes and fresh is {fresh}; give classes from 0 to {K - 1}, and at least one "
            "more than fresh"
        )
    check_size(workers=max(workers, 1))
    if not 0 < per_task <= workers:
        raise ParameterError(f"per_task is {per_task}; it must be above 0 and at most {workers}, the number of workers")
    rng = generator(seed)
    level = rng.choice(len(matrices), workers, p=weight / weight.sum())
    task, worker = _assign_at_random(labelled, workers, per_task, rng)
    used, worker = np.unique(worker, return_inverse=True)
    level = level[used]
    label = draw_labels(truth, task, worker, matrices[level], rng)
    rho = np.bincount(truth, minlength=K) / len(truth)
    return replace(build_crowd(truth, task, worker, label, matrices[level], level, rho), features=features)


@enough_memory("the simulation")
@checked
def triangle(workers: int = 100, *, tasks: int = 2457, fresh: int = 819, per_task: float = 5.0, seed: Any = 0) -> Crowd:
    """Simulate Setup (1) of the study of groups: three Gaussians labelled by experts, inexperts and spammers.

    >>> triangle(50, tasks=30, fresh=6, seed=1).features.shape
    (36, 2)
    """
    if tasks < 3 or fresh < 0:
        raise ParameterError(f"tasks is {tasks} and fresh is {fresh}; they must be at least 3 and 0")
    check_size(tasks=2 * (tasks + fresh), workers=9 * max(workers, 1))
    points, crowd = generator(seed).spawn(2)
    truth = np.concatenate([points.permutation(np.arange(n) % 3) for n in (tasks, fresh)])
    # The paper prints centres half as far apart, with which no classifier could exceed 74 %.
    centres = np.array([(0.0, 1.0), (0.0, -1.0), (1.0, 0.0)])
    X = centres[truth] + 0.4 * points.normal(size=(len(truth), 2))
    return levels(truth, workers=workers, per_task=per_task, features=X, fresh=fresh, seed=crowd)


def perturbed(X: Any, truth: Any, noise: Any, *, seed: int | np.random.Generator = 0, **network: Any) -> Floats:
    """Confusion matrices (M, K, K) of levels of ability, for `levels`.

    A network with the settings `network` is trained on the truth. For each level, noise is added to its weights and its
    predictions on the training rows are counted. `noise` is in standard deviations of the weights of a layer.
    """
    from ..learn.network import Network

    X, truth, sizes = np.asarray(X, np.float32), _checked_classes(truth), np.asarray(noise, float)
    if len(X) != len(truth):
        raise ParameterError(f"X has {len(X)} rows and truth {len(truth)} classes; give a class for every row")
    if sizes.ndim != 1 or not len(sizes) or not (sizes >= 0).all() or np.isinf(sizes).any():
        raise ParameterError(f"noise is {noise!r}; give a number of at least 0 for every level")
    K = int(truth.max()) + 1
    rng = generator(seed)
    learner = Network(**network).learner(X, K, rng)
    learner.imitate(np.eye(K)[truth])
    matrices = []
    for size in sizes:
        predicted = learner.disturbed(float(size), rng).argmax(1)
        counts = np.bincount(truth * K + predicted, minlength=K * K).reshape(K, K) + 1e-3
        matrices.append(counts / counts.sum(1, keepdims=True))
    return np.array(matrices)


def _checked_classes(truth: Any) -> Codes:
    wanted = "the class of every task, as an integer from 0"
    classes = check_array("truth", truth, wanted)
    classes = np.asarray(truth) if classes.ndim else classes
    if classes.ndim != 1 or not len(classes) or not np.issubdtype(classes.dtype, np.integer) or classes.min() < 0:
        raise ParameterError(f"truth is {brief(truth)}; give {wanted}")
    return classes.astype(np.int64)


def _checked_matrices(matrices: Any) -> Floats:
    P = check_array("matrices", matrices, "confusion matrices, (levels, classes, classes)")
    square = P.ndim == 3 and P.shape[1] == P.shape[2] and P.size > 0
    if not square or not P.min() >= 0 or not (P.sum(2) > 0).all():
        raise ParameterError(f"matrices have shape {P.shape}; give confusion matrices, (levels, classes, classes)")
    return np.asarray(P / P.sum(2, keepdims=True))


def _assign_at_random(tasks: int, workers: int, per_task: float, rng: Rng) -> tuple[Codes, Codes]:
    """Return the task and the worker of every answer: each pair is equally likely, and each task has an answer."""
    count: Ints = np.maximum(rng.binomial(workers, per_task / workers, tasks), 1)
    parts = []
    for n in np.unique(count):
        same_count = np.flatnonzero(count == n)
        row, worker = assign_workers(len(same_count), workers, int(n), rng=rng)
        parts.append((same_count[row], worker))
    task, worker = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(task, kind="stable")
    return task[order], worker[order]
