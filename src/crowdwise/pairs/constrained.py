"""mpck-means: k-means with penalties for broken pairs and a metric per cluster. cspa: a consensus of such clusterings.

Item i has features x_i and cluster l_i; cluster h has a centre mu_h and a diagonal metric A_h. A pair voted the same
(must-link, set M) or different (cannot-link, set C) is broken if the clusters of its items disagree with the vote.
With d_h(x, y) = (x - y)' A_h (x - y), MPCK-Means minimises
    (1)  J = sum_i (d_{l_i}(x_i, mu_{l_i}) - log det A_{l_i})
             + sum over broken (i, j) in M of (d_{l_i}(x_i, x_j) + d_{l_j}(x_i, x_j)) / 2
             + sum over broken (i, j) in C of (d_{l_i}(x', x'') - d_{l_i}(x_i, x_j)),
with x', x'' the two items that are farthest apart under A_{l_i}. Each iteration assigns the items one after the other,
    (2)  l_i = argmin_h of the terms of (1) that contain i, the other items held fixed,
moves the centres to the means of their items, and updates the metrics by
    (3)  1 / A_h[d] = (sum of (x_i - mu_h)[d]^2 + half the broken pairs of M + those of C, as in (1)) / n_h.
(1) to (3) are those of Bilenko, Basu & Mooney 2004, with constraints of weight 1.

CSPA (Strehl & Ghosh 2002) averages r clusterings with one-hot rows H (N, r K), one for each worker:
    (4)  S = H H' / r,
and partitions S, here by spectral clustering. Both are described in docs/maths/pair_baselines.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..answers.pairs import components
from ..engine import Problem, Run, Step, iterate, register
from ..engine.loop import interrupted
from ..engine.model import COUNT, setting
from ..engine.resources import limit_threads, load
from ..engine.run import Arrays, Progress, packed, rng_state, set_rng_state, sound
from ..errors import DataError
from ..kernels.layout import Bools, Floats, Ints
from ..kernels.rules import Real, Whole
from .baselines import GivenClusters, fit_of, votes, worker_coins
from .gaussians import nearest_centres
from .model import FeatureFit, PairAnswers, best_fit, finite, new_trace
from .without_features import Edges

MIN_VARIANCE = 1e-3  # smallest 1 / A_h[d], relative to the mean variance of the features
MAX_FARTHEST_ITEMS = 1000  # up to this many candidates, all pairs are compared to find the farthest
MAX_HALVINGS = 6  # of the step to a new metric that increases the objective
MIN_RELATIVE_FALL = 1e-7  # convergence: the objective falls by less than this share
PERTURBATION = 0.1  # of centres without a neighbourhood, in standard deviations
MAX_COLUMNS = 5000  # of all clusterings that cspa combines


class Links(NamedTuple):
    """Pairs by majority vote."""

    edges: Edges
    must: Bools  # (E,) voted the same
    squares: Floats  # (E, D) squared differences of the two items

    @classmethod
    def of(cls, answers: PairAnswers, Z: Floats) -> Links:
        left, right, vote = votes(answers)
        return cls(Edges.of(left, right, len(Z)), vote > 0, (Z[left] - Z[right]) ** 2)

    def broken(self, label: Ints, K: int) -> tuple[Floats, Ints]:
        """Weights (E, K) of the squared differences in (1), and the number of broken cannot-links in each cluster."""
        left, right = label[self.edges.left], label[self.edges.right]
        must, cannot = np.flatnonzero(self.must & (left != right)), np.flatnonzero(~self.must & (left == right))
        W = np.zeros((len(left), K))
        W[must, left[must]] = W[must, right[must]] = 0.5
        W[cannot, left[cannot]] = -1.0
        return W, np.bincount(left[cannot], minlength=K)


def farthest(Z: Floats, A: Floats) -> Floats:
    """(D,) squared differences of the two rows of Z that are farthest apart under the diagonal metric A (D,).

    From the row farthest from the mean, the search moves to the row farthest from there, while the distance grows. By
    the triangle inequality, only rows at some distance from the mean can be in a pair that is farther apart; if these
    are few, all their pairs are compared.
    """
    Y = Z * np.sqrt(A)
    Y -= Y.mean(0)
    radius = np.sqrt((Y**2).sum(1))
    start, known = int(radius.argmax()), -1.0
    one = two = start
    while True:
        away = ((Y - Y[start]) ** 2).sum(1)
        end = int(away.argmax())
        if away[end] <= known:
            break
        one, two, known, start = start, end, float(away[end]), end
    rows = np.flatnonzero(radius + radius.max() >= np.sqrt(known))
    if len(rows) <= MAX_FARTHEST_ITEMS:
        products = Y[rows] @ Y[rows].T
        square = np.diag(products)
        all_pairs = square[:, None] + square - 2 * products
        best = int(all_pairs.argmax())
        if all_pairs.flat[best] > known:
            one, two = rows[best // len(rows)], rows[best % len(rows)]
    return np.asarray((Z[one] - Z[two]) ** 2)


def first_centres(Z: Floats, links: Links, K: int, rng: np.random.Generator) -> Floats:
    """(K, D) centroids of neighbourhoods: items connected by must-links.

    If there are more than K, farthest-first traversal weighted by size selects K of them, the largest first. If there
    are fewer, the other centres are random perturbations of the mean of all items.
    """
    must = links.must
    group = components(links.edges.left[must], links.edges.right[must], len(Z))
    _, place, size = np.unique(group, return_inverse=True, return_counts=True)
    sums = np.stack([np.bincount(place, column, minlength=len(size)) for column in Z.T], axis=1)
    several = size > 1
    size, centres = size[several], (sums / size[:, None])[several]
    if len(centres) <= K:
        noise = PERTURBATION * rng.normal(size=(K - len(centres), Z.shape[1]))
        return np.concatenate([centres, Z.mean(0) + noise * Z.std(0)])
    chosen, away = [int(size.argmax())], np.full(len(centres), np.inf)
    while len(chosen) < K:
        away = np.minimum(away, ((centres - centres[chosen[-1]]) ** 2).sum(1))
        chosen.append(int((size * np.sqrt(away)).argmax()))
    return np.asarray(centres[chosen])


def by_metric(Z: Floats, centres: Floats, A: Floats) -> Floats:
    """(N, K) first term of (1): distance of each item to each centre under its metric, minus the log-determinant."""
    costs = [((Z - centre) ** 2) @ a - np.log(a).sum() for centre, a in zip(centres, A, strict=True)]
    return np.stack(costs, axis=1)


class _Fit(Problem):
    """The fit of one restart, on scaled features Z."""

    def __init__(self, name: str, max_iter: int, Z: Floats, links: Links, K: int, run: Run, start: int) -> None:
        self.name, self.max_iter, self.Z, self.links, self.K, self.run = name, max_iter, Z, links, K, run
        self.asked = np.flatnonzero(np.diff(links.edges.ptr))
        self.rng = np.random.default_rng([run.seed, start])
        if not run.journal.resumes("iteration"):
            self.centres, self.A = first_centres(Z, links, K, self.rng), np.ones((K, Z.shape[1]))
            self.far = np.stack([farthest(Z, a) for a in self.A])
            self.label = by_metric(Z, self.centres, self.A).argmin(1)

    def state(self) -> Arrays:
        return packed({name: getattr(self, name) for name in ("centres", "A", "far", "label")} | {
            "rng": rng_state(self.rng)
        })  # fmt: skip

    def restore(self, state: Arrays) -> None:
        sizes = {"N": len(self.Z), "K": self.K, "D": self.Z.shape[1]}
        self.centres, self.A, self.far = (
            sound(state, name, Real("K D"), **sizes).copy() for name in ("centres", "A", "far")
        )
        self.label = sound(state, "label", Whole("N", below="K", dtype="int64"), **sizes).copy()
        set_rng_state(self.rng, state["rng"])

    def found(self, answers: PairAnswers) -> FeatureFit:
        """Iterate until the objective stops falling."""
        trace = new_trace()
        converged = iterate(self, self.run, trace)
        coins = worker_coins(answers, self.label)
        space = {"centres": self.centres, "metric": self.A}
        return FeatureFit(np.eye(self.K)[self.label], coins.alpha, coins.beta, trace, space, converged)

    def converged(self, objectives: Sequence[float]) -> bool:
        if len(objectives) < 2:
            return False
        return objectives[-1] - objectives[-2] <= MIN_RELATIVE_FALL * max(abs(objectives[-1]), 1.0)

    def step(self) -> Step:
        """Assign the items, move the centres, update the metrics; the objective is -J."""
        self._assign()
        return Step(-self._update(), {"clusters": len(np.unique(self.label))})

    def _assign(self) -> None:
        """Assign items to clusters by (2).

        Moving i to h breaks all must-links of i, except to items in h. As a sum over all must-links, minus those into
        h, its cost is a term that does not depend on the other items, and one per link. Terms equal for all h are
        omitted. Items without links do not depend on others; those with links are assigned in random order.
        """
        from ..kernels.fast.links import assign_in_order

        edges, K = self.links.edges, self.K
        base = by_metric(self.Z, self.centres, self.A)
        distance = self.links.squares @ self.A.T  # (E, K)
        half = np.where(self.links.must[:, None], 0.5 * distance, 0.0)
        for h in range(K):
            base[:, h] += np.bincount(edges.left, half[:, h], minlength=len(base))
            base[:, h] += np.bincount(edges.right, half[:, h], minlength=len(base))
        diameter = (self.far * self.A).sum(1)
        cost = np.where(self.links.must[:, None], -distance, diameter - distance)
        before, self.label = self.label, base.argmin(1)
        self.label[self.asked] = before[self.asked]
        order = self.rng.permutation(self.asked)
        assign_in_order(order, edges.ptr, edges.other, edges.edge, cost, base, self.label, np.empty(K))

    def _update(self) -> float:
        """Update centres and metrics by (3), and return the objective (1)."""
        Z, K = self.Z, self.K
        R = np.eye(K)[self.label]
        n = R.sum(0)
        some = n > 0
        self.centres[some] = (R.T @ Z)[some] / n[some][:, None]
        W, cannot = self.links.broken(self.label, K)
        spread = R.T @ (Z - self.centres[self.label]) ** 2 + W.T @ self.links.squares
        used = [int(h) for h in np.flatnonzero(some)]
        return math.fsum(self._update_metric(h, spread[h], float(n[h]), float(cannot[h])) for h in used)

    def _update_metric(self, h: int, spread: Floats, n: float, cannot: float) -> float:
        """Update A_h, and return its terms of (1).

        (3) minimises these terms for a fixed farthest pair. If another pair becomes the farthest, they may increase;
        the step is then halved.
        """

        def value(a: Floats, far: Floats) -> float:
            return float(spread @ a + cannot * (far @ a) - n * np.log(a).sum())

        a, far = self.A[h], self.far[h]
        before = value(a, far)
        move = 1 / np.maximum((spread + cannot * far) / n, MIN_VARIANCE) - a
        for _ in range(MAX_HALVINGS):
            new = a + move
            new_far = farthest(self.Z, new)
            after = value(new, new_far)
            if after <= before:
                self.A[h], self.far[h] = new, new_far
                return after
            move = 0.5 * move
        return before


class Scaled(NamedTuple):
    """Features with zero mean and unit mean variance."""

    Z: Floats
    centre: Floats  # (D,)
    scale: float

    @classmethod
    def of(cls, X: Floats) -> Scaled:
        centre = X.mean(0)
        scale = float((X - centre).std()) or 1.0
        return cls((X - centre) / scale, centre, scale)

    def original(self, space: dict[str, Any]) -> dict[str, Any]:
        """Centres and metrics for the features as they were."""
        return {"centres": space["centres"] * self.scale + self.centre, "metric": space["metric"] / self.scale**2}


@register("mpck-means", "k-means with penalties for broken pairs and a metric per cluster, number of clusters given")
@dataclass(frozen=True, kw_only=True)
class MpckMeans(GivenClusters):
    """MPCK-Means (Bilenko, Basu & Mooney 2004): k-means with pairwise constraints and a diagonal metric per cluster.

    The majority vote on each pair is a must-link or a cannot-link; ties are dropped. Workers count equally. The restart
    with the lowest objective is kept.
    """

    criterion = "negative objective of MPCK-Means"

    restarts: int = setting(5, COUNT, "number of restarts, with other orders of the items")
    max_iter: int = setting(100, COUNT, "maximum number of iterations")

    def _fit_features(self, X: Floats, answers: PairAnswers, run: Run) -> FeatureFit:
        X = np.asarray(X, np.float64)
        scaled, K = Scaled.of(X), self.n_clusters(X)
        links = Links.of(answers, scaled.Z)

        def one(start: int) -> FeatureFit:
            return _Fit(self.name, self.max_iter, scaled.Z, links, K, run, start).found(answers)

        with limit_threads():
            best = best_fit(self.restarts, one, run)
        return best._replace(view=X, space=scaled.original(best.space))

    def space_rules(self, space: dict[str, Any]) -> dict[str, Any]:
        return {"centres": finite("K D"), "metric": finite("K D")}

    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        centres = space["centres"]
        return np.asarray(np.eye(len(centres))[by_metric(X, centres, space["metric"]).argmin(1)])


@register("cspa", "consensus of one clustering per worker, each by mpck-means, number of clusters given")
@dataclass(frozen=True, kw_only=True)
class Cspa(GivenClusters):
    """Cluster-based similarity partitioning (Strehl & Ghosh 2002) of one clustering of all items per worker.

    The clustering of a worker is that of mpck-means with the worker's own answers. The similarity of two items is the
    share of workers whose clustering has them together; spectral clustering partitions it.
    """

    extras = ("learn",)

    max_iter: int = setting(100, COUNT, "maximum number of iterations of the clustering of each worker")

    def _fit_features(self, X: Floats, answers: PairAnswers, run: Run) -> FeatureFit:
        self.check_answers(answers)
        X = np.asarray(X, np.float64)
        scaled, K = Scaled.of(X), self.n_clusters(X)
        if answers.n_workers * K > MAX_COLUMNS:
            raise DataError(
                f"{self.name} combines a clustering for each worker: {answers.n_workers} workers with {K} clusters "
                f"are more than {MAX_COLUMNS} clusters in all. Use mpck-means, or fewer clusters"
            )
        with limit_threads():
            members = self._members(scaled, answers, K, run)
            H = one_hot(members["label"], K)
            embedding = spectral_map(H, K)
            rows = embedded(H, embedding)
            k_means = load("sklearn.cluster", "learn", self.name).KMeans(
                min(K, len(np.unique(rows.round(9), axis=0))), n_init=5, random_state=int(run.rng().integers(2**31))
            )
            label = k_means.fit(rows).labels_
        space = scaled.original(members) | {"embedding": embedding, "consensus": k_means.cluster_centers_}
        return fit_of(np.eye(len(k_means.cluster_centers_))[label], answers, X, space)

    def _members(self, scaled: Scaled, answers: PairAnswers, K: int, run: Run) -> Arrays:
        """One clustering per worker: label (W, N), centres (W, K, D) and metric (W, K, D)."""
        W, (N, D) = answers.n_workers, scaled.Z.shape
        shapes = {"label": (W, N), "centres": (W, K, D), "metric": (W, K, D)}
        found = run.journal.saved("members") or {name: np.zeros(shape) for name, shape in shapes.items()} | {
            "done": np.zeros((), np.int64)
        }
        run.journal.keep("members", lambda: packed(found))
        for worker in range(int(found["done"]), W):
            if run.stopped:
                raise interrupted(self.name, run, worker)
            fit = self._member(scaled.Z, answers, K, worker, run.seed)
            found["label"][worker] = fit.posterior.argmax(1)
            for name in ("centres", "metric"):
                found[name][worker] = fit.space[name]
            found["done"] = np.array(worker + 1)
            run.report(Progress("worker", worker + 1, W, None, {}))
            run.save()
        run.journal.forget("members")
        return found

    def _member(self, Z: Floats, answers: PairAnswers, K: int, worker: int, seed: int) -> FeatureFit:
        """Clustering of all items with the answers of one worker."""
        own = answers.worker == worker
        parts = {name: getattr(answers, name)[own] for name in ("left", "right", "worker", "same", "weight")}
        some = answers._replace(**parts)
        return _Fit(self.name, self.max_iter, Z, Links.of(some, Z), K, Run(seed=seed), worker).found(some)

    def space_rules(self, space: dict[str, Any]) -> dict[str, Any]:
        members = {"centres": finite("W L D"), "metric": finite("W L D")}
        return members | {"embedding": finite("M E"), "consensus": finite("K E")}

    def space_flaw(self, space: dict[str, Any], n_clusters: int) -> str:
        flaw = super().space_flaw(space, n_clusters)
        if flaw:
            return flaw
        (W, L, _), rows = space["centres"].shape, len(space["embedding"])
        return "" if rows == W * L else f"embedding has {rows} rows; it must have {W * L}"

    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        members = zip(space["centres"], space["metric"], strict=True)
        label = np.stack([by_metric(X, centres, metric).argmin(1) for centres, metric in members])
        rows = embedded(one_hot(label, space["centres"].shape[1]), space["embedding"])
        which, _ = nearest_centres(rows, space["consensus"])
        return np.asarray(np.eye(len(space["consensus"]))[which])


def one_hot(label: Ints, K: int) -> Any:
    """Sparse H (n, r K) of the labels (r, n) of r clusterings with K clusters each."""
    from scipy.sparse import csr_array

    r, n = label.shape
    columns = label.T.astype(np.int64) + K * np.arange(r)
    return csr_array((np.ones(n * r), columns.ravel(), np.arange(0, n * r + 1, r)), shape=(n, r * K))


def spectral_map(H: Any, K: int) -> Floats:
    """(r K, at most K) linear map of the rows of H to the leading eigenvectors of the normalised similarity (4).

    With D the diagonal matrix of the row sums of S, the eigenvectors of D^-1/2 S D^-1/2 are the left singular vectors
    of D^-1/2 H, so that S (N, N) is never formed.
    """
    weight = 1 / (H @ H.sum(0))
    values, vectors = np.linalg.eigh((H.T @ H.multiply(weight[:, None])).toarray())
    values, vectors = values[::-1][:K], vectors[:, ::-1][:, :K]
    kept = values > 1e-9 * values[0]
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def embedded(H: Any, embedding: Floats) -> Floats:
    """(n, k) rows of the leading eigenvectors, at unit length (Ng, Jordan & Weiss 2001)."""
    rows = H @ embedding
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))
