"""Crowds made up from one seed: workers of known skill, tasks of known truth, and who answers what."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ParameterError, nearest
from .clicks import HARD_LAYOUTS, LAYOUTS, ClickCrowd, clicks
from .features import LEVELS, SENSITIVITY, SHARES, SPECIFICITY, experts, levels, perturbed, triangle
from .labels import Crowd, Load, confusion, groups, hammer_spammer, named, one_coin, spoken, who_answers
from .pairs import PairCrowd, answers_about, pinwheel, sorting_jobs

MAKERS: dict[str, Callable[..., Any]] = {
    "confusion": confusion,
    "one-coin": one_coin,
    "hammer-spammer": hammer_spammer,
    "groups": groups,
    "experts": experts,
    "triangle": triangle,
}


def crowd(
    kind: str = "confusion",
    *,
    tasks: int = 1000,
    workers: int = 50,
    classes: int = 3,
    per_task: int = 5,
    load: Load = "even",
    prevalence: Any = None,
    seed: int = 0,
    **settings: Any,
) -> Crowd:
    """A simulated crowd: `kind` is confusion, one-coin, hammer-spammer, groups, experts or triangle.

    >>> sim = crowd("hammer-spammer", tasks=20, workers=8, classes=2, per_task=3, seed=1)
    >>> sim.answers
    Labels(60 answers, 20 tasks, 8 workers, 2 classes)
    """
    if kind not in MAKERS:
        raise ParameterError(f"no simulator {kind!r}; there are {', '.join(MAKERS)}.{nearest(kind, MAKERS)}")
    for name, value in (("tasks", tasks), ("workers", workers), ("classes", classes)):
        if value < 1:
            raise ParameterError(f"{name} is {value}; it must be at least 1")
    maker = MAKERS[kind]
    mine = ("tasks", "workers", "classes", "per_task", "load", "seed", "rng")
    known = [name for name in inspect.signature(maker).parameters if name not in mine]
    for name in settings:
        if name not in known:
            raise ParameterError(f"{kind} has no setting {name!r}; it has {', '.join(known)}.{nearest(name, known)}")
    sizes = {"tasks": tasks, "workers": workers, "per_task": per_task, "seed": seed}
    if kind == "experts":
        if prevalence is not None:
            raise ParameterError("experts has no prevalence: all classes are as frequent")
        return experts(**sizes, classes=classes, load=load, **settings)  # type: ignore[arg-type]
    if kind == "triangle":
        if prevalence is not None or classes != 3 or load != "even":
            raise ParameterError("triangle has three classes that are as frequent, and workers who answer as often")
        return triangle(**sizes, **settings)
    rng = np.random.default_rng(seed)
    made = maker(workers, classes, rng=rng, **settings)
    matrices, group = made if kind == "groups" else (made, np.zeros(workers, np.int64))
    rho = np.full(classes, 1 / classes) if prevalence is None else np.asarray(prevalence, float) / np.sum(prevalence)
    truth = rng.choice(classes, tasks, p=rho)
    task, worker = who_answers(tasks, workers, per_task, load=load, rng=rng)
    label = spoken(truth, task, worker, matrices, rng)
    return named(truth, task, worker, label, matrices, group, rho)


__all__ = [
    "HARD_LAYOUTS", "LAYOUTS", "LEVELS", "MAKERS", "SENSITIVITY", "SHARES", "SPECIFICITY", "ClickCrowd", "Crowd",
    "Load", "PairCrowd", "answers_about", "clicks", "confusion", "crowd", "experts", "groups", "hammer_spammer",
    "levels", "one_coin", "perturbed", "pinwheel", "sorting_jobs", "spoken", "triangle", "who_answers",
]  # fmt: skip
