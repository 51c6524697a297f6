"""pair-mixture: Gaussian components grouped into clusters by same/different answers.

Without features, `without_features` clusters items by the answers alone. Derivation in docs/maths/pair_mixture.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..answers import Pairs
from ..engine import Problem, Run, Step, Trace, iterate, register
from ..engine.model import COUNT, POSITIVE, SOME_COUNT, YES_NO, one_of, setting
from ..engine.resources import limit_threads, require
from ..engine.run import Arrays, packed, sound, unpacked
from ..engine.spectral import MIN_ITEMS, embed, embed_new
from ..errors import EmptyDataError, FeatureError, model_setting
from ..kernels.layout import Floats, Ints
from ..kernels.rules import Real
from ..result import Clusters, PairsResult
from .gaussians import Normals, Prior, k_means, log_sum, nearest_centres, over_blocks, phi
from .merge import answers_between, assign_unasked, join_components
from .model import Coins, FeatureFit, PairAnswers, PairsModel, best_fit, finite, first_odds, new_trace
from .projection import can_embed, can_project, choose_directions
from .without_features import Edges, cluster_answers, fit_answers

MAX_COMPONENTS = 100  # if the user gives no number
RESTARTS, RESTARTS_IF_LARGE = 6, 2  # up to MAX_SMALL_ITEMS items, and above
MAX_SMALL_ITEMS = 5000
MIN_CLUSTER_SHARE = 0.01  # share of the items with answers that a cluster of the answers alone needs to start from
COMPONENT_FACTORS = (1.0, 0.7, 1.4)  # components over the square root of the number of items; restarts cycle through
MESSAGE_ROUNDS = 3  # rounds of message passing in an iteration
MIN_RISE_PER_ITEM = 2e-4  # convergence: the bound per item rises less than this
MAX_MOVING_SHARE = 1e-3  # convergence: at most this share of the items with answers changes cluster
MIN_EXPECTED_ITEMS = 0.5  # expected items from which the trace counts a cluster
MAX_DOUBLE_VALUES = 1 << 24  # more densities than this are stored in single precision
OWN_CLUSTER_PRIOR = 1.0  # prior weight, in items, of a component's own cluster
OTHER_CLUSTER_PRIOR = 0.02  # prior weight, in items, of each other cluster


@register(
    "pair-mixture",
    "Gaussian components grouped into clusters by the answers, or clusters by answers alone",
    default=True,
)
@dataclass(frozen=True, kw_only=True)
class PairMixture(PairsModel):
    """Cluster items by features and same/different answers, or by the answers alone.

    Gaussian components model the features. Each component belongs mostly to one cluster, and the answers determine
    which components belong together. Each worker has a sensitivity (probability of recognising two items of the same
    cluster) and a specificity (of different clusters), and their answers are weighted accordingly. The restart with
    the highest evidence lower bound is kept.
    """

    features = "optional"
    bytes_per_item = 2000

    parts: int | None = setting(
        None,
        SOME_COUNT,
        "number of Gaussian components; None: the square root of the number of items, at most 100",
    )
    dims: int = setting(40, COUNT, "maximum number of dimensions; more features are reduced by principal components")
    restarts: int | None = setting(None, SOME_COUNT, "number of restarts; None: 6, or 2 above 5,000 items")
    prior_right: float = setting(
        2.0, POSITIVE, "pseudo-count of right answers of every worker, for pairs of each kind (same, different)"
    )
    prior_wrong: float = setting(1.0, POSITIVE, "pseudo-count of wrong answers of every worker, for pairs of each kind")
    scale: str = setting(
        "whole", one_of("whole", "columns"), "'whole' scales all features by one factor, 'columns' each one separately"
    )
    space: str | None = setting(
        None,
        one_of(None, "features", "graph"),
        "where items are clustered: 'features', or 'graph', a spectral embedding of nearest neighbours; None: 'graph' "
        "if there are more than dims features and 1,000 to 100,000 items",
    )
    turn: bool = setting(
        True,
        YES_NO,
        "project features onto directions learnt from the answers, if that predicts held-out answers better",
    )
    max_iter: int = setting(200, COUNT, "maximum number of iterations")

    def _fit(self, answers: Pairs, features: Any, run: Run) -> PairsResult:
        if self.space == "graph" and features is not None:
            require(("learn",), f"{self.name} with {model_setting('space', 'graph')}")
        return super()._fit(answers, features, run)

    def _fit_features(self, X: Floats, answers: PairAnswers, run: Run) -> FeatureFit:
        if not len(answers.left):
            raise EmptyDataError(
                f"{self.name}: there are no answers about these items. Use bayes-scdc to cluster by features alone"
            )
        rng = run.rng()
        with limit_threads():
            by_graph = self.space == "graph" or (self.space is None and can_embed(X, self.dims))
            if by_graph and len(X) < MIN_ITEMS:
                raise FeatureError(
                    f"{model_setting('space', 'graph')} needs at least {MIN_ITEMS} items; there are {len(X)}. Use "
                    f"{model_setting('space', 'features')}"
                )
            graph = embed(X, self.dims, rng) if by_graph else {}
            X = graph.get("graph.embedding", X)
            frame = self._projected(Frame.of(X, self.dims, self.scale), X, answers, run, rng)
            rows = frame.rows(X)
            count = self.restarts or (RESTARTS if len(rows) <= MAX_SMALL_ITEMS else RESTARTS_IF_LARGE)
            best = best_fit(count, lambda start: _Fit(self, rows, answers, run, start).found(), run)
        return best._replace(view=rows, space=best.space | frame._asdict() | graph)

    def _projected(self, frame: Frame, X: Floats, answers: PairAnswers, run: Run, rng: np.random.Generator) -> Frame:
        """Project onto directions learnt from the answers, if that predicts held-out answers better."""
        rows = frame.rows(X)
        if not self.turn or not can_project(answers, rows.shape[1]):
            return frame
        trial = replace(run, watch=None), 0, "projection trial"
        turn = choose_directions(rows, answers, rng, run, lambda Z, some: _Fit(self, Z, some, *trial).found())
        return frame if turn is None else Frame(frame.centre, frame.turn @ turn)

    def _fit_answers(self, pairs: Pairs, run: Run) -> tuple[Clusters, Trace, bool]:
        return fit_answers(pairs, self.prior, self.max_iter, run)

    @property
    def prior(self) -> Floats:
        """(2,) Beta parameters of the prior of sensitivity and specificity."""
        return np.array([self.prior_right, self.prior_wrong])

    def space_rules(self, space: dict[str, Any]) -> dict[str, Any]:
        rules = {
            "centre": finite("B"),
            "turn": finite("B E"),
            "coefficients": finite("F G"),
            "belongs": Real("G K", 0, 1),
        }
        if "graph.rows" not in space:
            return rules | {"centre": finite("D"), "turn": finite("D E")}
        rows = {"graph.rows": finite("N A"), "graph.embedding": finite("N B")}
        return rules | rows | {"graph.centre": finite("D"), "graph.main": finite("D A")}

    def space_flaw(self, space: dict[str, Any], n_clusters: int) -> str:
        flaw = super().space_flaw(space, n_clusters)
        if flaw:
            return flaw
        E, rows = space["turn"].shape[1], len(space["coefficients"])
        wanted = 1 + E + E * (E + 1) // 2
        return "" if rows == wanted else f"coefficients has {rows} rows; it must have {wanted}"

    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        frame = Frame(space["centre"], space["turn"])
        with limit_threads():
            rows = frame.rows(embed_new(space, X) if "graph.rows" in space else X)
            A, _ = log_sum(phi(rows) @ space["coefficients"])
            return np.asarray(A @ space["belongs"])


class Frame(NamedTuple):
    """Affine map of the features: x -> (x - centre) turn."""

    centre: Floats  # (D,)
    turn: Floats  # (D, d) rotation and scale

    @classmethod
    def of(cls, X: Floats, dims: int, scale: str) -> Frame:
        """Map the rows to at most `dims` principal components, with entries of unit mean square."""
        centre = X.mean(0, dtype=np.float64)
        middle = X - centre
        D = X.shape[1]
        spread = middle.std(0)
        turn = np.diag(1.0 / np.where(spread > 0, spread, 1.0)) if scale == "columns" else np.eye(D)
        if dims < D:
            part = middle @ turn if scale == "columns" else middle
            values, vectors = np.linalg.eigh(part.T @ part / len(X))
            main = vectors[:, np.argsort(-values)[:dims]]
            turn = turn @ (main * np.sign(main[np.abs(main).argmax(0), np.arange(dims)]))
        size = float(np.sqrt(((middle @ turn) ** 2).mean()))
        return cls(centre, turn / (size if size > 0 else 1.0))

    def rows(self, X: Floats) -> Floats:
        return np.ascontiguousarray((X - self.centre) @ self.turn)


class _Fit(Problem):
    """The fit of one restart."""

    def __init__(
        self, model: PairMixture, X: Floats, answers: PairAnswers, run: Run, start: int, stage: str = "iteration"
    ) -> None:
        self.name, self.max_iter, self.parts, self.prior = model.name, model.max_iter, model.parts, model.prior
        self.X, self.answers, self.run, self.stage = X, answers, run, stage
        # Items with answers, called asked items below.
        self.items, ends = np.unique(np.concatenate([answers.left, answers.right]), return_inverse=True)
        self.links = Edges.of(ends[: len(answers.left)], ends[len(answers.left) :], len(self.items))
        self.place = np.full(len(X), -1, np.int64)
        self.place[self.items] = np.arange(len(self.items))
        if not run.journal.resumes(stage):
            self._begin(start)

    def _begin(self, start: int) -> None:
        """Initialise components by k-means, and clusters by the answers between components or by the answers alone."""
        X, factor = self.X, COMPONENT_FACTORS[start // 2 % len(COMPONENT_FACTORS)]
        wanted = self.parts or min(MAX_COMPONENTS, max(2, round(factor * np.sqrt(len(X)))))
        rng = np.random.default_rng([self.run.seed, start // 2])  # an even and an odd start share their components
        centres = k_means(X, min(wanted, len(X)), rng)
        which, _ = nearest_centres(X, centres)
        K, D = len(centres), X.shape[1]
        self.gauss = Prior(1.0 / K, 0.01, D + 2.0, self._within_covariance(which, centres))
        sums = np.zeros((K, 1 + D + D * (D + 1) // 2))

        def hard(rows: slice) -> Floats:
            R = np.zeros((len(which[rows]), K))
            R[np.arange(len(R)), which[rows]] = 1.0
            return R.T @ phi(X[rows])

        self.normals = Normals.from_sums(sums + over_blocks(len(X), self.run.threads, hard), self.gauss)
        self._start(*(self._by_answers(which, centres) if start % 2 else self._by_components(which, centres)))
        self._allocate()

    def _allocate(self) -> None:
        N, K = len(self.X), len(self.normals.mean)
        self.top, self.E = np.empty(N), np.empty((N, K), np.float64 if N * K <= MAX_DOUBLE_VALUES else np.float32)

    def state(self) -> Arrays:
        names = ("gauss", "normals", "coins", "loyal", "theta", "R", "M")
        return packed({name: getattr(self, name) for name in names})

    def restore(self, state: Arrays) -> None:
        self.gauss, self.normals = Prior(**unpacked(state, "gauss.")), Normals(**unpacked(state, "normals."))
        self.coins, self.loyal, self.theta = Coins(**unpacked(state, "coins.")), state["loyal"], state["theta"]
        sizes = {"n": len(self.items), "C": self.theta.shape[1]}
        self.R, self.M = (sound(state, name, Real("n C"), **sizes).copy() for name in ("R", "M"))
        self._allocate()

    def _within_covariance(self, which: Ints, centres: Floats) -> Floats:
        """(D, D) mean covariance around the centres, regularised."""
        D = self.X.shape[1]

        def scatter(rows: slice) -> Floats:
            away = self.X[rows] - centres[which[rows]]
            return np.asarray(away.T @ away)

        S = over_blocks(len(self.X), self.run.threads, scatter) / len(self.X)
        return np.asarray(S + (1e-3 * np.trace(S) / D + 1e-9) * np.eye(D))

    def _by_components(self, which: Ints, centres: Floats) -> tuple[Ints, Floats]:
        """Join components by the answers between them; return the cluster of each component and of each asked item."""
        a, K = self.answers, len(centres)
        S, n = answers_between(a.left, a.right, first_odds(a), a.weight, which, K)
        group = np.unique(assign_unasked(join_components(S, n), n.sum(1), centres), return_inverse=True)[1]
        return group, _one_hot(group[which[self.items]], int(group.max()) + 1)

    def _by_answers(self, which: Ints, centres: Floats) -> tuple[Ints, Floats]:
        """Cluster the asked items by the answers alone; each component joins the cluster of most of its items."""
        label = cluster_answers(self.answers, self.prior, self.run)
        names, code = np.unique(label[self.items], return_inverse=True)
        size = np.bincount(code)
        kept = np.flatnonzero(size >= max(2, MIN_CLUSTER_SHARE * len(code)))
        if len(kept) < 2 and not self.answers.same.all():  # the answers alone give no clusters
            return self._by_components(which, centres)
        place = np.full(len(names), -1)
        place[kept] = np.arange(len(kept))
        at, component = place[code], which[self.items]
        counts = np.zeros((len(centres), len(kept)))
        np.add.at(counts, (component[at >= 0], at[at >= 0]), 1.0)
        group = assign_unasked(counts.argmax(1), counts.sum(1), centres)
        return group, _one_hot(np.where(at >= 0, at, group[component]), len(kept))

    def _start(self, group: Ints, R: Floats) -> None:
        """Use the clusters `group` (K,) of the components as prior, and start the asked items from R (n, C)."""
        self.loyal = np.full((len(group), R.shape[1]), OTHER_CLUSTER_PRIOR)
        self.loyal[np.arange(len(group)), group] += OWN_CLUSTER_PRIOR
        self.R, self.M, self.theta = R, np.zeros_like(R), _shares(self.loyal)
        self.coins = Coins.from_answers(self.answers, self._same(), self.prior)

    def _same(self) -> Floats:
        """(A,) probability that the items of each answer are in one cluster."""
        return np.asarray(np.einsum("ac,ac->a", self.R[self.links.left], self.R[self.links.right]))

    def found(self) -> FeatureFit:
        """Iterate until the bound stops rising and items stop changing cluster."""
        trace = new_trace()
        converged = iterate(self, self.run, trace, self.stage)
        space = {"coefficients": self.normals.coefficients(), "belongs": self.theta}
        posterior = self._posterior()
        trace.rows[-1] = (trace.rows[-1][0], float(len(np.unique(posterior.argmax(1)))))
        return FeatureFit(posterior, self.coins.alpha, self.coins.beta, trace, space, converged)

    def converged(self, objectives: Sequence[float]) -> bool:
        rise = np.inf if len(objectives) < 2 else (objectives[-1] - objectives[-2]) / len(self.X)
        return bool(rise < MIN_RISE_PER_ITEM and self.moved <= MAX_MOVING_SHARE * len(self.R))

    def step(self) -> Step:
        """Update the items given the parameters, compute the bound, then update the parameters given the items."""
        from ..kernels.fast.links import pass_messages

        self._densities()
        U = self._by_features()
        same, other = self.coins.logs(self.answers)
        weight, own = (same - other)[self.links.edge], np.empty(len(U))
        self.moved = 0  # items that changed their cluster
        for _ in range(MESSAGE_ROUNDS):
            self.moved += pass_messages(self.links.ptr, self.links.other, weight, U, self.R, self.M, own)
        sums, belongs, evidence = self._statistics()
        P = self._same()
        value = evidence + float(own.sum()) + float((other + (same - other) * P).sum())
        value -= self.coins.divergence() + self.normals.divergence(self.gauss)
        value += float((self.loyal * np.log(self.theta)).sum())
        self.normals = Normals.from_sums(sums, self.gauss)
        self.theta = _shares(self.loyal + belongs)
        self.coins = Coins.from_answers(self.answers, P, self.prior)
        return Step(value, {"clusters": int((belongs.sum(0) >= MIN_EXPECTED_ITEMS).sum())})

    def _densities(self) -> None:
        """Compute densities of all items: `top` is the largest log-density, `E` (N, K) are densities relative to it."""
        W = self.normals.coefficients()

        def some(rows: slice) -> Floats:
            A = phi(self.X[rows]) @ W
            self.top[rows] = A.max(1)
            A -= self.top[rows][:, None]
            self.E[rows] = np.exp(A, out=A)
            return np.zeros(1)

        over_blocks(len(self.X), self.run.threads, some)

    def _by_features(self) -> Floats:
        """(n, C) log-likelihood of the features of the asked items, given each cluster."""
        items, U = self.items, np.empty_like(self.R)

        def some(rows: slice) -> Floats:
            at = items[rows]
            np.log(np.maximum(self.E[at] @ self.theta, 1e-300), out=U[rows])
            U[rows] += self.top[at][:, None]
            return np.zeros(1)

        over_blocks(len(items), self.run.threads, some)
        return U

    def _statistics(self) -> tuple[Floats, Floats, float]:
        """Return sums of phi by component, expected items by component and cluster, and the evidence of other items."""
        (K, C), F = self.theta.shape, 1 + self.X.shape[1] * (self.X.shape[1] + 3) // 2

        def some(rows: slice) -> Floats:
            at, R = self.place[rows], self.E[rows].astype(np.float64)
            asked = at >= 0
            M = self.M[at[asked]]
            M = np.exp(M - M.max(1, keepdims=True))
            messages = M @ self.theta.T  # (n, K)
            whole = R.sum(1)
            whole[asked] = (R[asked] * messages).sum(1)
            scaled = R / whole[:, None]
            counts = self.theta * (scaled[asked].T @ M + scaled[~asked].sum(0)[:, None])
            scaled[asked] *= messages
            out = np.empty(K * F + K * C + 1)
            out[: K * F] = (scaled.T @ phi(self.X[rows])).ravel()
            out[K * F : -1] = counts.ravel()
            out[-1] = (self.top[rows] + np.log(whole))[~asked].sum()
            return out

        out = over_blocks(len(self.X), self.run.threads, some)
        return out[: K * F].reshape(K, F), out[K * F : -1].reshape(K, C), float(out[-1])

    def _posterior(self) -> Floats:
        """(N, C) cluster probabilities of all items: from answers and features if asked, else from features."""
        self._densities()
        P = np.empty((len(self.X), self.theta.shape[1]))

        def some(rows: slice) -> Floats:
            E = self.E[rows].astype(np.float64)
            P[rows] = (E / E.sum(1, keepdims=True)) @ self.theta
            return np.zeros(1)

        over_blocks(len(self.X), self.run.threads, some)
        P[self.items] = self.R
        return P


def _one_hot(cluster: Ints, C: int) -> Floats:
    """(n, C) one-hot rows."""
    R = np.zeros((len(cluster), C))
    R[np.arange(len(cluster)), cluster] = 1.0
    return R


def _shares(counts: Floats) -> Floats:
    return np.asarray(counts / counts.sum(1, keepdims=True))
