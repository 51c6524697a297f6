"""click-mixture: objects are Gaussians, a click is on one of them or anywhere, and workers differ in how often.

docs/maths/click_mixture.md has the mathematics.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from ..answers import Points
from ..engine import Run
from ..engine.model import COUNT, POSITIVE, Rule, rules
from ..errors import ParameterError
from ..kernels.layout import Floats
from ..result import PointsResult
from .descent import at_middle
from .em import Mixture, in_order, sweep
from .merge import Shapes, evidence_of, merged, polished, seen_by
from .merge import State as VariationalState
from .model import PointsModel
from .paper import papers
from .sweeps import Sweeper, Swept
from .told import told
from .trace import Trace


@dataclass(frozen=True, kw_only=True)
class ClickMixture(PointsModel):
    """Objects from clicks, their number found by itself.

    `method` "merge" goes from many components downwards by merging, and the evidence chooses; "paper" is the published
    EM. `objects` gives the number of objects in every image, `at_least` bounds it below, `start` is how many components
    to begin with. `once` says that a worker clicks an object at most once (None: found out), `noise` that workers
    differ in how exactly they click. `freedom` is how many clicks the shape that all objects share counts for, and
    Beta(`hits`, `misses`) what is believed of a worker before any click. `criterion` and `spread` (start variances) are
    for the paper's method.
    """

    name: ClassVar[str] = "click-mixture"
    about: ClassVar[str] = "Gaussian objects and outliers; reliabilities, own noise; the number of objects by evidence"

    method: Literal["merge", "paper"] = field(default="merge", metadata=rules(Rule(str, choices=("merge", "paper"))))
    objects: int | None = field(default=None, metadata=rules(Rule(int, low=1, may_be_none=True)))
    at_least: int = field(default=0, metadata=rules(Rule(int, low=0)))
    start: int | None = field(default=None, metadata=rules(Rule(int, low=1, may_be_none=True)))
    once: bool | None = field(default=None, metadata=rules(Rule(bool, choices=(None, True, False))))
    noise: bool = field(default=True, metadata=rules(Rule(bool, choices=(True, False))))
    freedom: float = field(default=5.0, metadata=rules(Rule((int, float), above=0.0)))
    hits: float = field(default=3.0, metadata=rules(POSITIVE))
    misses: float = field(default=1.2, metadata=rules(POSITIVE))
    criterion: Literal["bic", "icl"] = field(default="bic", metadata=rules(Rule(str, choices=("bic", "icl"))))
    spread: tuple[float, ...] | None = None
    max_iter: int = field(default=200, metadata=rules(COUNT))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.start is not None and self.start < max(self.objects or 1, self.at_least):
            raise ParameterError(
                f"{self.name}: start is {self.start}, below the number of objects wanted. Start from more components"
            )
        if self.objects is not None and self.at_least > self.objects:
            raise ParameterError(f"{self.name}: at_least is {self.at_least}, above objects, which is {self.objects}")
        spread = self.spread
        if spread is not None and not (
            isinstance(spread, tuple) and all(isinstance(v, (int, float)) and 0 < v < np.inf for v in spread)
        ):
            raise ParameterError(
                f"{self.name}: spread is {spread!r}; it must be a tuple of variances above 0, one an axis"
            )
        if self.hits <= 1 or self.misses <= 1:
            raise ParameterError(f"{self.name}: hits and misses are {self.hits}, {self.misses}; both must be above 1")

    def fit(self, points: Points, run: Run | None = None) -> PointsResult:
        """Learn from clicks; everything found is in the PointsResult."""
        run, begun = run or Run(), time.perf_counter()
        self.check(points)
        if self.freedom <= points.n_axes - 1:
            raise ParameterError(
                f"{self.name}: freedom is {self.freedom}; with {points.n_axes} coordinates it must be above "
                f"{points.n_axes - 1}"
            )
        if self.spread is not None and len(self.spread) != points.n_axes:
            raise ParameterError(
                f"{self.name}: spread has {len(self.spread)} variances, the clicks have {points.n_axes} coordinates"
            )
        sweeper, trace = Sweeper(points, run.threads), Trace(self.name)
        if self.method == "paper":
            mixture, best, converged = papers(self, sweeper, run, trace)
            mixture, _ = in_order(mixture)
            swept, _ = sweep(sweeper, mixture, once=False, best=True)
            evidence, once, beta = evidence_afterwards(self, sweeper, mixture, swept), False, (1.0, 1.0)
            named = "log-likelihood" if self.objects is not None or points.n_images > 1 else self.criterion.upper()
        else:
            climbed = merged(self, sweeper, run, trace)
            mixture, order = in_order(polished(self, sweeper, climbed))
            swept, _ = sweep(sweeper, mixture, climbed.once, best=True)
            evidence, once, beta = climbed.evidence[order], climbed.once, (self.hits, self.misses)
            converged, named = climbed.converged, "evidence"
            best = len(trace.rows) or None
        return PointsResult(
            points=points,
            model=self,
            params=told(sweeper, mixture, swept, evidence, beta, once),
            sweeps=trace.array(),
            criterion=named,
            best=best,
            converged=converged,
            seed=int(run.seed),
            seconds=time.perf_counter() - begun,
        )


def evidence_afterwards(model: ClickMixture, sweeper: Sweeper, mixture: Mixture, swept: Swept) -> Floats:
    """(M,) the evidence for objects that were found without it: nats that are lost when an object goes."""
    n = swept.sums[:, 0]
    if not len(n):
        return np.empty(0)
    S = np.linalg.inv(np.linalg.inv(mixture.cov).mean(0))
    b0 = at_middle(S, sweeper.points.sides)
    V = model.freedom * S + n[:, None, None] * mixture.cov
    ones = np.ones(sweeper.points.n_workers)
    state = VariationalState(mixture.ptr, mixture.mean, V, n.copy(), n.copy(), ones, ones, ones)
    _, off, _ = seen_by(state, Shapes(model.freedom, S, S, b0, sweeper.points.box.mean(1)))
    return evidence_of(mixture.ptr, swept.sums, off)
