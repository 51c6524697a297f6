"""Simulated crowds: tasks of known truth, workers of known skill, and their answers, drawn from one seed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..answers.arguments import check_array, checked, generator
from ..errors import ParameterError, check_choice, nearest
from ..kernels.layout import Floats
from ..limits import enough_memory
from .clicks import HARD_LAYOUTS, LAYOUTS, ClickCrowd, clicks
from .features import LEVELS, SENSITIVITY, SHARES, SPECIFICITY, experts, levels, perturbed, triangle
from .labels import (
    Crowd,
    Load,
    assign_workers,
    build_crowd,
    check_size,
    confusion,
    draw_labels,
    groups,
    hammer_spammer,
    one_coin,
)
from .pairs import PairCrowd, answers_about, pinwheel, sorting_jobs

SIMULATORS: dict[str, Callable[..., Any]] = {
    "confusion": confusion,
    "one-coin": one_coin,
    "hammer-spammer": hammer_spammer,
    "groups": groups,
    "experts": experts,
    "triangle": triangle,
}


@enough_memory("the simulation")
@checked
def crowd(
    kind: str = "confusion",
    *,
    tasks: int = 1000,
    workers: int = 50,
    classes: int = 3,
    per_task: int = 5,
    load: Load = "even",
    prevalence: Any = None,
    seed: int | np.random.Generator = 0,
    **settings: Any,
) -> Crowd:
    """Simulate a crowd that gives labels.

    `kind` is confusion, one-coin, hammer-spammer, groups, experts or triangle.

    >>> sim = crowd("hammer-spammer", tasks=20, workers=8, classes=2, per_task=3, seed=1)
    >>> sim.answers
    Labels(60 answers, 20 tasks, 8 workers, 2 classes)
    """
    if kind not in SIMULATORS:
        raise ParameterError(f"no simulator {kind!r}; there are {', '.join(SIMULATORS)}.{nearest(kind, SIMULATORS)}")
    check_choice("load", load, ("even", "skewed"))
    for name, value in (("tasks", tasks), ("workers", workers), ("classes", classes)):
        if value < 1:
            raise ParameterError(f"{name} is {value}; it must be at least 1")
    check_size(answers=tasks * max(per_task, 1), cells_of_confusion_matrices=workers * classes**2)
    simulator = SIMULATORS[kind]
    common = ("tasks", "workers", "classes", "per_task", "load", "seed", "rng")
    known = [name for name in inspect.signature(simulator).parameters if name not in common]
    for name in settings:
        if name not in known:
            raise ParameterError(f"{kind} has no setting {name!r}; it has {', '.join(known)}.{nearest(name, known)}")
    sizes: dict[str, Any] = {"tasks": tasks, "workers": workers, "per_task": per_task, "seed": seed}
    if kind == "experts":
        if prevalence is not None:
            raise ParameterError("experts has no setting 'prevalence': all its classes are equally frequent")
        return experts(**sizes, classes=classes, load=load, **settings)
    if kind == "triangle":
        if prevalence is not None or classes != 3 or load != "even":
            raise ParameterError("triangle always has three equally frequent classes and load 'even'")
        return triangle(**sizes, **settings)
    rng = generator(seed)
    simulated = simulator(workers, classes, rng=rng, **settings)
    matrices, group = simulated if kind == "groups" else (simulated, np.zeros(workers, np.int64))
    rho = np.full(classes, 1 / classes) if prevalence is None else _shares(prevalence, classes)
    truth = rng.choice(classes, tasks, p=rho)
    task, worker = assign_workers(tasks, workers, per_task, load=load, rng=rng)
    label = draw_labels(truth, task, worker, matrices, rng)
    return build_crowd(truth, task, worker, label, matrices, group, rho)


def _shares(prevalence: Any, classes: int) -> Floats:
    weight = check_array("prevalence", prevalence, f"{classes} numbers of at least 0")
    if weight.shape != (classes,) or not weight.min() >= 0 or not 0 < weight.sum() < np.inf:
        raise ParameterError(f"prevalence is {prevalence!r:.200}; give {classes} numbers of at least 0")
    return np.asarray(weight / weight.sum())


__all__ = [
    "HARD_LAYOUTS", "LAYOUTS", "LEVELS", "SENSITIVITY", "SHARES", "SIMULATORS", "SPECIFICITY", "ClickCrowd", "Crowd",
    "Load", "PairCrowd", "answers_about", "assign_workers", "clicks", "confusion", "crowd", "draw_labels", "experts",
    "groups", "hammer_spammer", "levels", "one_coin", "perturbed", "pinwheel", "sorting_jobs", "triangle",
]  # fmt: skip
