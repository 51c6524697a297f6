"""Clustering baselines for clicks: fuzzy c-means, k-means, DBSCAN and HDBSCAN.

They fit each image separately and do not model workers. Zooniverse uses DBSCAN and HDBSCAN. All but fuzzy c-means come
from scikit-learn.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..answers import Points
from ..engine import Problem, Run, Step, Trace, iterate, register
from ..engine.model import COUNT, POSITIVE, SOME_COUNT, Rule, setting
from ..engine.run import Arrays
from ..kernels.layout import Floats, Ints
from ..rating.skills import wilson
from ..result import Objects, PointsResult
from ..result.points import supporters
from .model import PointsModel, concat, fit_images, object_ptr

BYTES_PER_NEIGHBOUR = 8  # of the clicks within a distance of each click; a circle has pi times the area of a cell


class Clusters(NamedTuple):
    """Clusters of one image."""

    label: Ints  # (N,) cluster of each click, from 0; -1 for an outlier
    sure: Floats  # (N,) membership probability
    centre: Floats  # (M, D) of each cluster; no rows: the mean of its clicks
    converged: bool = True

    @property
    def n_objects(self) -> int:
        return int(self.label.max(initial=-1)) + 1


@dataclass(frozen=True, kw_only=True)
class _ClusterModel(PointsModel):
    """Base class: each cluster of an image's clicks is an object; clicks in no cluster are outliers."""

    @abstractmethod
    def cluster(self, X: Floats, rng: np.random.Generator, run: Run) -> Clusters:
        """Cluster the clicks (N, D) of one image; cluster numbers are arbitrary, -1 marks outliers."""

    def _fit(self, answers: Points, features: Any, run: Run) -> PointsResult:
        fit = _OneImage(self, answers, run.inner())
        images = fit_images(self.name, answers, run, fit, Clusters)
        ptr, own = object_ptr(images), concat(images, "label").astype(np.int64)  # within its image
        label = np.where(own >= 0, own + ptr[answers.image], -1)
        params = _objects_of(answers, label, concat(images, "sure"), ptr, concat(images, "centre", answers.n_axes))
        converged = all(each is None or each.converged for each in images)
        return self.make_result(answers, run, Trace(objects=int), "", params=params, best=None, converged=converged)


@dataclass(frozen=True)
class _OneImage:
    """Clusters the clicks on an image by its number."""

    model: _ClusterModel
    points: Points
    run: Run

    def __call__(self, i: int) -> Clusters:
        rng = np.random.default_rng([self.run.seed, i])
        found = self.model.cluster(self.points.X[self.points.clicks_of(i)], rng, self.run)
        label, on = np.full(len(found.label), -1, np.int64), found.label >= 0
        used, label[on] = np.unique(found.label[on], return_inverse=True)
        return found._replace(label=label, centre=found.centre[used] if len(found.centre) else found.centre)


def _objects_of(points: Points, label: Ints, sure: Floats, ptr: Ints, centre: Floats) -> Objects:
    """Compute centres if they are not given, covariances and counts. A cluster's probability is the share of workers
    who clicked on it."""
    M, D, W = int(ptr[-1]), points.n_axes, points.n_workers
    on = label >= 0
    n = np.bincount(label[on], minlength=M).astype(float)
    sums = [np.bincount(label[on], points.X[on, d], minlength=M) for d in range(D)]
    mean = centre if len(centre) else np.stack(sums, axis=1) / n[:, None]
    away = points.X[on] - mean[label[on]]
    cov = np.empty((M, D, D))
    for d in range(D):
        for e in range(D):
            cov[:, d, e] = np.bincount(label[on], away[:, d] * away[:, e], minlength=M) / n
    image = np.repeat(np.arange(points.n_images), np.diff(ptr))
    jobs = np.diff(points.image_ptr)[image]
    total = np.bincount(image, n, minlength=points.n_images)
    sent = np.bincount(points.worker, minlength=W).astype(float)
    right = np.bincount(points.worker[on], minlength=W).astype(float)
    share = np.divide(right, sent, out=np.full(W, 0.5), where=sent > 0)
    low, high = wilson(share, np.maximum(sent, 1e-9))
    return Objects(
        ptr=ptr,
        mean=mean,
        cov=cov,
        share=n / np.maximum(total[image], 1e-300),
        clicks=n,
        probability=np.bincount(supporters(points, label, sure)[1], minlength=M) / np.maximum(jobs, 1),
        reliability=share,
        low=low,
        high=high,
        noise=np.ones(W),
        outlier=1.0 - on,
        object=label.astype(np.int32),
        chance=np.where(on, sure, 0.0),
        once=np.array(0),
    )


@register("fuzzy-c-means", "soft clusters, number of objects given; no outliers, ignores workers")
@dataclass(frozen=True, kw_only=True)
class FuzzyCMeans(_ClusterModel):
    """Fuzzy c-means with a given number of objects: each click belongs to every object, with a weight by distance."""

    objects: int = setting(10, COUNT, "number of objects in every image")
    fuzziness: float = setting(
        2.0, Rule((int, float), above=1.0, high=100.0), "exponent of memberships; near 1, clusters are hard"
    )
    max_iter: int = setting(100, COUNT, "maximum number of iterations")
    tol: float = setting(1e-5, POSITIVE, "convergence tolerance on the cost")

    def need(self, points: Points) -> int:
        clicks = int(points.clicks_per_image.max(initial=0))
        return super().need(points) + 8 * (points.n_axes + 4) * min(self.objects, clicks) * clicks

    def cluster(self, X: Floats, rng: np.random.Generator, run: Run) -> Clusters:
        U = rng.random((min(self.objects, len(X)), len(X)))
        problem = _FuzzyFit(self, X, U / U.sum(0))
        converged = iterate(problem, run, Trace())
        return Clusters(problem.U.argmax(0), problem.U.max(0), problem.centre, converged)


class _FuzzyFit(Problem):
    """Iterations on the memberships U (objects, N) of one image's clicks; the cost never increases."""

    def __init__(self, model: FuzzyCMeans, X: Floats, U: Floats) -> None:
        self.name, self.max_iter, self.tol, self.fuzziness = model.name, model.max_iter, model.tol, model.fuzziness
        self.X, self.U = X, U

    def step(self) -> Step:
        weight = self.U**self.fuzziness
        self.centre = weight @ self.X / weight.sum(1)[:, None]
        away = np.maximum(((self.X[None] - self.centre[:, None]) ** 2).sum(2), 1e-12)
        U = (away / away.min(0)) ** (-1 / (self.fuzziness - 1))
        self.U = U / U.sum(0)
        return Step(-float((weight * away).sum()), {})

    def converged(self, objectives: Sequence[float]) -> bool:
        return len(objectives) > 1 and abs(objectives[-1] - objectives[-2]) < self.tol

    def state(self) -> Arrays:
        return {"U": self.U}

    def restore(self, state: Arrays) -> None:
        self.U = state["U"]


@register("k-means", "hard clusters, number of objects given; no outliers, ignores workers")
@dataclass(frozen=True, kw_only=True)
class KMeansClicks(_ClusterModel):
    """k-means with a given number of objects."""

    extras = ("learn",)

    objects: int = setting(10, COUNT, "number of objects in every image")

    def cluster(self, X: Floats, rng: np.random.Generator, run: Run) -> Clusters:
        from sklearn.cluster import KMeans

        k = min(self.objects, len(np.unique(X, axis=0)))
        found = KMeans(k, n_init=5, random_state=int(rng.integers(2**31))).fit_predict(X)
        return Clusters(np.asarray(found, np.int64), np.ones(len(X)), X[:0])


@register("dbscan", "dense clusters within a given distance, as used by Zooniverse; ignores workers")
@dataclass(frozen=True, kw_only=True)
class Dbscan(_ClusterModel):
    """DBSCAN: a click with `at_least` clicks within `distance` is a core point of a cluster."""

    extras = ("learn",)

    distance: float = setting(5.0, POSITIVE, "radius of a neighbourhood, in the unit of the coordinates")
    at_least: int = setting(3, COUNT, "minimum number of clicks in the neighbourhood of a core point")

    def need(self, points: Points) -> int:
        cells = np.column_stack([points.image, np.floor(points.X / self.distance)])
        used, clicks = np.unique(cells, axis=0, return_counts=True)
        near = np.pi * np.bincount(used[:, 0].astype(np.int64), clicks.astype(np.float64) ** 2, points.n_images)
        of_image = np.minimum(near, points.clicks_per_image.astype(np.float64) ** 2)  # all clicks are near one another
        return super().need(points) + int(BYTES_PER_NEIGHBOUR * of_image.max())

    def cluster(self, X: Floats, rng: np.random.Generator, run: Run) -> Clusters:
        from sklearn.cluster import DBSCAN

        found = DBSCAN(eps=self.distance, min_samples=self.at_least).fit_predict(X)
        return Clusters(np.asarray(found, np.int64), np.ones(len(X)), X[:0])


@register("hdbscan", "clusters of varying density above a minimum size, as used by Zooniverse; ignores workers")
@dataclass(frozen=True, kw_only=True)
class Hdbscan(_ClusterModel):
    """HDBSCAN: clusters of at least `at_least` clicks that persist over a range of densities."""

    extras = ("learn",)

    at_least: int = setting(5, Rule(int, low=2), "minimum number of clicks in a cluster")
    samples: int | None = setting(
        None, SOME_COUNT, "minimum number of clicks in the neighbourhood of a core point; None: the same as at_least"
    )

    def cluster(self, X: Floats, rng: np.random.Generator, run: Run) -> Clusters:
        from sklearn.cluster import HDBSCAN

        if len(X) < max(self.at_least, self.samples or 1) + 1:
            return Clusters(np.full(len(X), -1, np.int64), np.zeros(len(X)), X[:0])
        found = HDBSCAN(min_cluster_size=self.at_least, min_samples=self.samples, copy=True).fit(X)
        return Clusters(np.asarray(found.labels_, np.int64), np.asarray(found.probabilities_), X[:0])
