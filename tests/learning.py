"""Simulated crowds and fits shared by the tests of classifiers."""

from __future__ import annotations

import functools
from typing import Any

import crowdwise as cw
from crowdwise.engine.registry import MODELS

cw.models()  # registers all models
# Worker sides by name, without `ideal`, which is trained on known labels.
GRADIENT = ("crowd-layer", "annot-mix")  # sides that need a network
SIDES = {name: side for name, side in MODELS["learn"].items() if name not in ("ideal", *GRADIENT)}


@functools.cache
def experts(seed: int, tasks: int = 1000, fresh: int = 1000) -> cw.simulate.Crowd:
    return cw.simulate.experts(tasks, fresh=fresh, seed=[2, seed])


@functools.cache
def learnt(seed: int, workers: str, tasks: int = 1000, fresh: int = 1000) -> cw.CrowdClassifier:
    return fit(experts(seed, tasks, fresh), workers=workers)


def fit(sim: cw.simulate.Crowd, classifier: Any = "logistic", workers: Any = "adaptive", **more: Any) -> Any:
    made = cw.CrowdClassifier(classifier, workers, **more)
    return made.fit(sim.features, sim.answers, tasks=sim.truth["task"])


def brief(name: str, iterations: int = 6) -> Any:
    """A worker side with few iterations."""
    return SIDES[name](max_iter=iterations)
