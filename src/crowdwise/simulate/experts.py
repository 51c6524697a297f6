"""Points of Gaussians labelled by experts who err more where classes meet: the crowd of the study of difficulty."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ..errors import ParameterError
from ..kernels.layout import Floats
from ..learn.objective import ease_of, softmax
from .draws import Crowd, Load, drawn, named, who_answers

SENSITIVITY, SPECIFICITY = (0.8, 0.6, 0.6, 0.7, 0.6), (0.6, 0.7, 0.6, 0.7, 0.7)  # of the paper's five experts
BLUNT = 0.5  # how sharply experts see what could be seen: labels are drawn by sigma(x1 + x2), the best slope is 2


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
    for name, value, least in (
        ("tasks", tasks, 1),
        ("fresh", fresh, 0),
        ("classes", classes, 2),
        ("features", features, 2),
    ):
        if value < least:
            raise ParameterError(f"{name} is {value}; it must be at least {least}")
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, tasks + fresh)
    means = _around(classes, features)
    X = rng.normal(size=(len(truth), features)) + means[truth]
    ability = _abilities(workers, classes, rng)
    odds = np.log(ability / (1 - ability) * (classes - 1))[:, :, None] * (1 - np.eye(classes))
    task, worker = who_answers(tasks, len(ability), len(ability) if per_task is None else per_task, load=load, rng=rng)
    ease = ease_of(softmax(BLUNT * X @ means.T)) if structural else np.ones(len(X))
    right = _told(odds[worker, truth[task]], ease[task])
    if not structural:
        odds = np.full(odds.shape, np.log((1 / np.mean(1 / np.arange(3, 9)) - 1) * (classes - 1))) * (
            1 - np.eye(classes)
        )
        err = 1 / (3 + rng.integers(0, 6, len(task)))[:, None]
        right = np.where(np.arange(classes) == truth[task][:, None], 1 - err, err / (classes - 1))
    label = drawn(right, rng)
    rho = np.full(classes, 1 / classes)
    made = named(truth, task, worker, label, _told(odds, np.ones(len(odds))[:, None]), np.zeros(len(odds), int), rho)
    hit = np.bincount(worker, right[np.arange(len(task)), truth[task]], minlength=len(odds))
    skill = pl.Series(hit / np.maximum(np.bincount(worker, minlength=len(odds)), 1))
    return replace(made, workers=made.workers.with_columns(skill=skill), features=X, ease=ease)


def _around(classes: int, features: int) -> Floats:
    """(K, features) means on a circle; for two classes (-1, -1) and (1, 1)."""
    means = np.zeros((classes, features))
    angle = np.pi * (1.25 + 2 * np.arange(classes) / classes)
    means[:, :2] = (2**0.5 if classes == 2 else 1.8) * np.column_stack([np.cos(angle), np.sin(angle)])
    return means


def _abilities(workers: int | None, classes: int, rng: np.random.Generator) -> Floats:
    """(W, K) chance of a right answer on the easiest point of each class."""
    if workers is None and classes == 2:
        return np.column_stack([SPECIFICITY, SENSITIVITY])
    return rng.uniform(0.5, 0.9, (5 if workers is None else workers, classes))


def _told(odds: Floats, ease: Floats) -> Floats:
    """(..., K) probabilities ~ exp(-ease odds)."""
    logs = -ease[..., None] * odds
    p = np.exp(logs - logs.max(-1, keepdims=True))
    return np.asarray(p / p.sum(-1, keepdims=True))
