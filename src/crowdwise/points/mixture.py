"""click-mixture: a Gaussian mixture for clicks, with uniform outliers and a reliability for each worker.

The derivation is in docs/maths/click_mixture.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..answers import Points
from ..engine import Run, Trace, register
from ..engine.model import COUNT, POSITIVE, SOME_COUNT, YES_NO, Rule, one_of, setting
from ..errors import ParameterError, model_setting
from ..kernels.layout import Floats
from ..result import PointsResult
from .em import Boxes, Mixture, assign, in_shards, sort_objects
from .image_fit import centre_weight
from .merge import Posterior, Shapes, evidence_of, expected_terms, merge_fit, refine
from .model import PointsModel
from .paper import paper_fit
from .summary import summarise


@register(
    "click-mixture",
    "Gaussian objects and outliers, reliability and noise per worker; estimates the number of objects",
    default=True,
)
@dataclass(frozen=True, kw_only=True)
class ClickMixture(PointsModel):
    """Find the objects that workers clicked on, and their number.

    Each object is a Gaussian. A click is on an object or an outlier, and each worker has a reliability: the
    probability that their click is on an object.
    """

    method: Literal["merge", "paper"] = setting(
        "merge",
        one_of("merge", "paper"),
        "'merge' starts from many components and merges them while the evidence increases; "
        "'paper' is the published EM with annihilation",
    )
    objects: int | None = setting(None, SOME_COUNT, "number of objects in every image; None to estimate it")
    at_least: int = setting(0, Rule(int, low=0), "minimum number of objects in an image")
    start: int | None = setting(None, SOME_COUNT, "number of components at the start; None to choose it from the data")
    once: bool | None = setting(
        None, one_of(None, True, False), "whether a worker clicks an object at most once; None to estimate it"
    )
    noise: bool = setting(True, YES_NO, "whether to estimate how precisely each worker clicks")
    freedom: float = setting(5.0, POSITIVE, "weight, in clicks, of the covariance shared by all objects")
    hits: float = setting(3.0, POSITIVE, "first parameter of the Beta prior of a worker's reliability, above 1")
    misses: float = setting(1.2, POSITIVE, "second parameter of the Beta prior of a worker's reliability, above 1")
    criterion: Literal["bic", "icl"] = setting(
        "bic", one_of("bic", "icl"), "criterion that selects the number of objects with method 'paper'"
    )
    spread: tuple[float, ...] | None = setting(
        None, None, "initial variances with method 'paper', one per axis; None to derive them from the box"
    )
    max_iter: int = setting(200, COUNT, "maximum number of iterations")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.start is not None and self.start < max(self.objects or 1, self.at_least):
            raise ParameterError(
                f"{self.name}: start is {self.start}, below the requested number of objects. Increase start"
            )
        if self.objects is not None and self.at_least > self.objects:
            raise ParameterError(
                f"{self.name}: at_least is {self.at_least}; it must not exceed objects ({self.objects})"
            )
        spread = self.spread
        if spread is not None and not (
            isinstance(spread, tuple) and all(isinstance(v, (int, float)) and 0 < v < np.inf for v in spread)
        ):
            raise ParameterError(
                f"{self.name}: spread is {spread!r}; it must be a tuple of variances above 0, one per axis, for "
                f"instance {model_setting('spread', (4.0, 4.0))}"
            )
        if self.hits <= 1 or self.misses <= 1:
            raise ParameterError(f"{self.name}: hits is {self.hits} and misses is {self.misses}; both must be above 1")

    def _fit(self, answers: Points, features: Any, run: Run) -> PointsResult:
        self._check_axes(answers.n_axes)
        executor, trace = in_shards(answers, run), Trace(objects=int)
        best: int | None
        if self.method == "paper":
            mixture, best, converged = paper_fit(self, answers, executor, run, trace)
            mixture, _ = sort_objects(mixture)
            once, beta = False, (1.0, 1.0)
            stats = assign(executor, mixture, once, run.threads, best=True)
            evidence = evidence_without_search(self, answers, mixture, stats.sums)
            searched = self.objects is None and answers.n_images == 1
            criterion = self.criterion.upper() if searched else "log-likelihood"
        else:
            fit = merge_fit(self, answers, executor, run, trace)
            mixture, order = sort_objects(refine(self, answers, executor, run, fit))
            once, beta = fit.once, (self.hits, self.misses)
            stats = assign(executor, mixture, once, run.threads, best=True, box=Boxes.of(answers))
            evidence, criterion = fit.evidence[order], "evidence"
            best, converged = len(trace.rows) or None, fit.converged
        params = summarise(answers, executor, mixture, stats, evidence, beta, once)
        return self.make_result(answers, run, trace, criterion, params=params, best=best, converged=converged)

    def _check_axes(self, axes: int) -> None:
        """Check the hyperparameters whose valid values depend on the number of coordinates."""
        if self.freedom <= axes - 1:
            raise ParameterError(
                f"{self.name}: freedom is {self.freedom}; with {axes} coordinates it must be above {axes - 1}"
            )
        if self.spread is not None and len(self.spread) != axes:
            raise ParameterError(
                f"{self.name}: spread has {len(self.spread)} variances, but the clicks have {axes} coordinates"
            )


def evidence_without_search(model: ClickMixture, points: Points, mixture: Mixture, sums: Floats) -> Floats:
    """(M,) evidence in nats for objects that were not found by variational Bayes: its decrease if one is removed."""
    n = sums[:, 0]
    if not len(n):
        return np.empty(0)
    S = np.linalg.inv(np.linalg.inv(mixture.cov).mean(0))
    V = model.freedom * S + n[:, None, None] * mixture.cov
    ones = np.ones(points.n_workers)
    posterior = Posterior(mixture.ptr, mixture.mean, V, n.copy(), n.copy(), ones, ones, ones)
    shapes = Shapes(model.freedom, S, S, 1.0, centre_weight(S, points.sides), points.box.mean(1))
    return evidence_of(mixture.ptr, sums, expected_terms(points.kernels, posterior, shapes)[1])
