"""What others do with clicks: fuzzy c-means, k-means, DBSCAN and HDBSCAN, each image for itself. Workers do not count.

The last two are what Zooniverse does. All but fuzzy c-means are scikit-learn's.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..answers import Points
from ..engine import Run
from ..engine.model import COUNT, POSITIVE, Rule, rules
from ..errors import MissingError
from ..kernels.layout import Floats, Ints
from ..rating.skills import wilson
from ..result import Objects, PointsResult
from ..result.points import supporters
from .model import PointsModel


@dataclass(frozen=True, kw_only=True)
class _Clusters(PointsModel):
    """Clusters of the clicks of an image; those in none are outliers."""

    @abstractmethod
    def cluster(self, X: Floats, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """(N,) cluster of each click, -1 for none, and (N,) how sure that is."""

    def fit(self, points: Points, run: Run | None = None) -> PointsResult:
        """Clusters of every image as objects."""
        run, begun = run or Run(), time.perf_counter()
        self.check(points)
        label, sure = np.full(points.n_clicks, -1, np.int64), np.zeros(points.n_clicks)
        ptr = [0]
        for i in range(points.n_images):
            at = points.clicks_of(i)
            if at.stop > at.start:
                own, sure[at] = self.cluster(points.X[at], np.random.default_rng([run.seed, i]))
                names, number = np.unique(own[own >= 0], return_inverse=True)
                label[at.start + np.flatnonzero(own >= 0)] = number + ptr[-1]
                ptr.append(ptr[-1] + len(names))
            else:
                ptr.append(ptr[-1])
        return PointsResult(
            points=points,
            model=self,
            params=_described(points, label, sure, np.array(ptr, np.int64)),
            sweeps=np.empty((0, 2)),
            criterion="",
            best=None,
            converged=True,
            seed=int(run.seed),
            seconds=time.perf_counter() - begun,
        )


def _described(points: Points, label: Ints, sure: Floats, ptr: Ints) -> Objects:
    """Centres, covariances and counts of clusters; the probability of one is the share of workers who support it."""
    M, D, W = int(ptr[-1]), points.n_axes, points.n_workers
    on = label >= 0
    n = np.bincount(label[on], minlength=M).astype(float)
    mean = np.stack([np.bincount(label[on], points.X[on, d], minlength=M) for d in range(D)], axis=1) / n[:, None]
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


def _sklearn() -> Any:
    try:
        import sklearn.cluster as cluster
    except ImportError:
        raise MissingError(
            "this model is scikit-learn's, which is not installed. pip install 'crowdwise[learn]'"
        ) from None
    return cluster


@dataclass(frozen=True, kw_only=True)
class FuzzyCMeans(_Clusters):
    """Fuzzy c-means with a given number of objects: every click belongs to all, the more to the nearer."""

    name: ClassVar[str] = "fuzzy-c-means"
    about: ClassVar[str] = "soft clusters, their number given; no outliers, no workers"

    objects: int = field(default=10, metadata=rules(COUNT))
    fuzziness: float = field(default=2.0, metadata=rules(Rule((int, float), above=1.0)))
    max_iter: int = field(default=100, metadata=rules(COUNT))
    tol: float = field(default=1e-5, metadata=rules(POSITIVE))

    def cluster(self, X: Floats, rng: np.random.Generator) -> tuple[Ints, Floats]:
        U = rng.random((min(self.objects, len(X)), len(X)))
        U /= U.sum(0)
        before = np.inf
        for _ in range(self.max_iter):
            weight = U**self.fuzziness
            centre = weight @ X / weight.sum(1)[:, None]
            away = np.maximum(((X[None] - centre[:, None]) ** 2).sum(2), 1e-12)
            cost = float((weight * away).sum())
            U = (away / away.min(0)) ** (-1 / (self.fuzziness - 1))
            U /= U.sum(0)
            if abs(before - cost) < self.tol:
                break
            before = cost
        return np.asarray(U.argmax(0)), np.asarray(U.max(0))


@dataclass(frozen=True, kw_only=True)
class KMeansClicks(_Clusters):
    """k-means with a given number of objects."""

    name: ClassVar[str] = "k-means"
    about: ClassVar[str] = "hard clusters, their number given; no outliers, no workers"

    objects: int = field(default=10, metadata=rules(COUNT))

    def cluster(self, X: Floats, rng: np.random.Generator) -> tuple[Ints, Floats]:
        k = min(self.objects, len(np.unique(X, axis=0)))
        found = _sklearn().KMeans(k, n_init=5, random_state=int(rng.integers(2**31))).fit_predict(X)
        return np.asarray(found, np.int64), np.ones(len(X))


@dataclass(frozen=True, kw_only=True)
class Dbscan(_Clusters):
    """DBSCAN: clicks with `at_least` of them within `distance` are cores of clusters."""

    name: ClassVar[str] = "dbscan"
    about: ClassVar[str] = "dense clusters by a distance in pixels; what Zooniverse does; no workers"

    distance: float = field(default=5.0, metadata=rules(POSITIVE))
    at_least: int = field(default=3, metadata=rules(COUNT))

    def cluster(self, X: Floats, rng: np.random.Generator) -> tuple[Ints, Floats]:
        found = _sklearn().DBSCAN(eps=self.distance, min_samples=self.at_least).fit_predict(X)
        return np.asarray(found, np.int64), np.ones(len(X))


@dataclass(frozen=True, kw_only=True)
class Hdbscan(_Clusters):
    """HDBSCAN: clusters of at least so many clicks that stay over many densities."""

    name: ClassVar[str] = "hdbscan"
    about: ClassVar[str] = "clusters of any density by their least size; what Zooniverse does; no workers"

    at_least: int = field(default=5, metadata=rules(Rule(int, low=2)))
    samples: int | None = field(default=None, metadata=rules(Rule(int, low=1, may_be_none=True)))

    def cluster(self, X: Floats, rng: np.random.Generator) -> tuple[Ints, Floats]:
        if len(X) < max(self.at_least, self.samples or 1) + 1:
            return np.full(len(X), -1, np.int64), np.zeros(len(X))
        found = _sklearn().HDBSCAN(min_cluster_size=self.at_least, min_samples=self.samples, copy=True).fit(X)
        return np.asarray(found.labels_, np.int64), np.asarray(found.probabilities_)
