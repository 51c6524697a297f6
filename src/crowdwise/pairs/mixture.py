"""pair-mixture: Gaussian components that belong to clusters, and workers who call two items the same or different.

Without features, clusters from the answers alone (`without_features`). docs/maths/pair_mixture.md has the mathematics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..answers import Pairs
from ..engine import Problem, Run, Step, Trace, iterate, register
from ..engine.model import COUNT, POSITIVE, SOME_COUNT, YES_NO, one_of, setting
from ..engine.resources import one_thread, require
from ..engine.run import Arrays, packed, unpacked
from ..errors import EmptyDataError
from ..kernels.layout import Floats, Ints
from ..result import Clusters, PairsResult
from .gaussians import Normals, Prior, k_means, log_sum, near, over_blocks, phi
from .merge import adopted, between, joined
from .model import Coins, Found, PairAnswers, PairsModel, best_found, first_odds, new_trace
from .projection import chosen, embedded, placed, usable, worth_it
from .without_features import Edges, clustered, fit_answers

MAX_COMPONENTS = 100  # where no number is given
RESTARTS, RESTARTS_IF_LARGE = 6, 2
MAX_SMALL = 5000  # items up to which there are RESTARTS
MIN_CLUSTER_SHARE = 0.01  # of asked items, for a cluster of the answers alone to start from
COMPONENT_FACTORS = (1.0, 0.7, 1.4)  # times the square root of the number of items, in turn
ROUNDS = 3  # of messages in an iteration
MIN_RISE = 2e-4  # of the bound per item; below, the fit may have converged
MAX_MOVING = 1e-3  # share of asked items that may still change then
MIN_EXPECTED = 0.5  # items of a cluster that the trace counts
MAX_DOUBLE = 1 << 24  # densities that are kept in double precision
OWN_PRIOR = 1.0  # items that a component's first cluster counts for
OTHER_PRIOR = 0.02  # and each other cluster


@register("pair-mixture", "Gaussian components joined to clusters by answers; or of answers alone", default=True)
@dataclass(frozen=True, kw_only=True)
class PairMixture(PairsModel):
    """Clusters from features and same/different answers, or from the answers alone.

    Gaussian components describe the features, each component belongs mostly to one cluster, and the answers say which
    components belong together. The best restart by the evidence lower bound is kept. Every worker has a chance to
    recognise two items of one cluster and a chance to recognise items of two clusters; answers count accordingly.
    """

    features = "optional"

    parts: int | None = setting(None, SOME_COUNT, "Gaussian components; None: root of the number of items, at most 100")
    dims: int = setting(40, COUNT, "features are reduced to this many principal directions where they are more")
    restarts: int | None = setting(None, SOME_COUNT, "fits from different starts; None: 6, or 2 above 5,000 items")
    prior_right: float = setting(2.0, POSITIVE, "right answers that every worker is given beforehand, per kind of pair")
    prior_wrong: float = setting(1.0, POSITIVE, "wrong answers that every worker is given beforehand")
    scale: str = setting("whole", one_of("whole", "columns"), "scale features by one factor, or column by column")
    space: str | None = setting(
        None,
        one_of(None, "features", "graph"),
        "'graph': an embedding of nearest neighbours; None: if features are many",
    )
    turn: bool = setting(True, YES_NO, "project on directions that answers separate, if that predicts held-out answers")
    max_iter: int = setting(200, COUNT, "iterations at most")

    def _fit(self, answers: Pairs, features: Any, run: Run) -> PairsResult:
        if self.space == "graph" and features is not None:
            require(("learn",), f"{self.name} with space='graph'")
        return super()._fit(answers, features, run)

    def _fit_features(self, X: Floats, answers: PairAnswers, run: Run) -> Found:
        if not len(answers.left):
            raise EmptyDataError("there are no answers about these items. Of features alone take bayes-scdc")
        rng = run.rng()
        with one_thread():
            by_graph = self.space == "graph" or (self.space is None and usable(X, self.dims))
            graph = embedded(X, self.dims, rng) if by_graph else {}
            X = graph.get("graph.embedding", X)
            frame = self._projected(Frame.of(X, self.dims, self.scale), X, answers, run, rng)
            rows = frame.rows(X)
            count = self.restarts or (RESTARTS if len(rows) <= MAX_SMALL else RESTARTS_IF_LARGE)
            best = best_found(count, lambda start: _Fit(self, rows, answers, run, start).found(), run)
        return best._replace(view=rows, space=best.space | frame._asdict() | graph)

    def _projected(self, frame: Frame, X: Floats, answers: PairAnswers, run: Run, rng: np.random.Generator) -> Frame:
        """Reduced to the directions that answers separate, where that predicts held-out answers better."""
        rows = frame.rows(X)
        if not self.turn or not worth_it(answers, rows.shape[1]):
            return frame
        trial = replace(run, watch=None), 0, "projection trial"
        turn = chosen(rows, answers, rng, run, lambda Z, some: _Fit(self, Z, some, *trial).found())
        return frame if turn is None else Frame(frame.centre, frame.turn @ turn)

    def _fit_answers(self, pairs: Pairs, run: Run) -> tuple[Clusters, Trace, bool]:
        return fit_answers(pairs, self.prior, self.max_iter, run)

    @property
    def prior(self) -> Floats:
        """(2,) Beta parameters of every worker's two chances."""
        return np.array([self.prior_right, self.prior_wrong])

    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        frame = Frame(space["centre"], space["turn"])
        with one_thread():
            rows = frame.rows(placed(space, X) if "graph.rows" in space else X)
            A, _ = log_sum(phi(rows) @ space["coefficients"])
            return np.asarray(A @ space["belongs"])


class Frame(NamedTuple):
    """How features are centred, turned and scaled."""

    centre: Floats  # (D,)
    turn: Floats  # (D, d)

    @classmethod
    def of(cls, X: Floats, dims: int, scale: str) -> Frame:
        """By the rows: cut to their main directions where there are more, and of about unit length."""
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
    """One start, to be fitted."""

    def __init__(
        self, model: PairMixture, X: Floats, answers: PairAnswers, run: Run, start: int, stage: str = "iteration"
    ) -> None:
        self.name, self.max_iter, self.parts, self.prior = model.name, model.max_iter, model.parts, model.prior
        self.X, self.answers, self.run, self.stage = X, answers, run, stage
        self.items, ends = np.unique(np.concatenate([answers.left, answers.right]), return_inverse=True)  # asked about
        self.links = Edges.of(ends[: len(answers.left)], ends[len(answers.left) :], len(self.items))
        self.place = np.full(len(X), -1, np.int64)
        self.place[self.items] = np.arange(len(self.items))
        if not run.journal.resumes(stage):
            self._begin(start)

    def _begin(self, start: int) -> None:
        """Components by k-means; clusters by the answers between components, or by the answers alone, in turn."""
        X, factor = self.X, COMPONENT_FACTORS[start // 2 % len(COMPONENT_FACTORS)]
        wanted = self.parts or min(MAX_COMPONENTS, max(2, round(factor * np.sqrt(len(X)))))
        rng = np.random.default_rng([self.run.seed, start // 2])  # both kinds of start have the same components
        centres = k_means(X, min(wanted, len(X)), rng)
        which, _ = near(X, centres)
        K, D = len(centres), X.shape[1]
        self.gauss = Prior(1.0 / K, 0.01, D + 2.0, self._within(which, centres))
        sums = np.zeros((K, 1 + D + D * (D + 1) // 2))

        def hard(rows: slice) -> Floats:
            R = np.zeros((len(which[rows]), K))
            R[np.arange(len(R)), which[rows]] = 1.0
            return R.T @ phi(X[rows])

        self.normals = Normals.seen(sums + over_blocks(len(X), self.run.threads, hard), self.gauss)
        self._start(*(self._by_answers(which, centres) if start % 2 else self._by_components(which, centres)))
        self._allocate()

    def _allocate(self) -> None:
        N, K = len(self.X), len(self.normals.mean)
        self.top, self.E = np.empty(N), np.empty((N, K), np.float64 if N * K <= MAX_DOUBLE else np.float32)

    def state(self) -> Arrays:
        names = ("gauss", "normals", "coins", "loyal", "theta", "R", "M")
        return packed({name: getattr(self, name) for name in names})

    def restore(self, state: Arrays) -> None:
        self.gauss, self.normals = Prior(**unpacked(state, "gauss.")), Normals(**unpacked(state, "normals."))
        self.coins, self.loyal, self.theta = Coins(**unpacked(state, "coins.")), state["loyal"], state["theta"]
        self.R, self.M = state["R"].copy(), state["M"].copy()
        self._allocate()

    def _within(self, which: Ints, centres: Floats) -> Floats:
        """(D, D) mean covariance around centres, kept from being singular."""
        D = self.X.shape[1]

        def scatter(rows: slice) -> Floats:
            away = self.X[rows] - centres[which[rows]]
            return np.asarray(away.T @ away)

        S = over_blocks(len(self.X), self.run.threads, scatter) / len(self.X)
        return np.asarray(S + (1e-3 * np.trace(S) / D + 1e-9) * np.eye(D))

    def _by_components(self, which: Ints, centres: Floats) -> tuple[Ints, Floats]:
        """Components joined by the answers between them: (K,) cluster of each, and where asked items start."""
        a, K = self.answers, len(centres)
        S, n = between(a.left, a.right, first_odds(a), a.weight, which, K)
        group = np.unique(adopted(joined(S, n), n.sum(1), centres), return_inverse=True)[1]
        return group, _certain(group[which[self.items]], int(group.max()) + 1)

    def _by_answers(self, which: Ints, centres: Floats) -> tuple[Ints, Floats]:
        """Asked items clustered by their answers alone; a component goes where most of its items are."""
        label = clustered(self.answers, self.prior, self.run)
        names, code = np.unique(label[self.items], return_inverse=True)
        size = np.bincount(code)
        kept = np.flatnonzero(size >= max(2, MIN_CLUSTER_SHARE * len(code)))
        if len(kept) < 2 and not self.answers.same.all():  # answers alone do not show any clusters
            return self._by_components(which, centres)
        place = np.full(len(names), -1)
        place[kept] = np.arange(len(kept))
        at, component = place[code], which[self.items]
        counts = np.zeros((len(centres), len(kept)))
        np.add.at(counts, (component[at >= 0], at[at >= 0]), 1.0)
        group = adopted(counts.argmax(1), counts.sum(1), centres)
        return group, _certain(np.where(at >= 0, at, group[component]), len(kept))

    def _start(self, group: Ints, R: Floats) -> None:
        """Who belongs where is the prior of the fit, and items start there."""
        self.loyal = np.full((len(group), R.shape[1]), OTHER_PRIOR)
        self.loyal[np.arange(len(group)), group] += OWN_PRIOR
        self.R, self.M, self.theta = R, np.zeros_like(R), _shares(self.loyal)
        self.coins = Coins.seen(self.answers, self._same(), self.prior)

    def _same(self) -> Floats:
        """(A,) probability that the items of each answer are in one cluster."""
        return np.asarray(np.einsum("ac,ac->a", self.R[self.links.left], self.R[self.links.right]))

    def found(self) -> Found:
        """Iterate until neither the bound rises nor items change."""
        trace = new_trace()
        converged = iterate(self, self.run, trace, self.stage)
        space = {"coefficients": self.normals.coefficients(), "belongs": self.theta}
        posterior = self._posterior()
        trace.rows[-1] = (trace.rows[-1][0], float(len(np.unique(posterior.argmax(1)))))
        return Found(posterior, self.coins.alpha, self.coins.beta, trace, space, converged)

    def converged(self, objectives: Sequence[float]) -> bool:
        rise = np.inf if len(objectives) < 2 else (objectives[-1] - objectives[-2]) / len(self.X)
        return bool(rise < MIN_RISE and self.moved <= MAX_MOVING * len(self.R))

    def step(self) -> Step:
        """Items given all else, then all else given items; the bound in between."""
        from ..kernels.fast.links import pass_messages

        self._densities()
        U = self._by_features()
        same, other = self.coins.logs(self.answers)
        weight, own = (same - other)[self.links.edge], np.empty(len(U))
        self.moved = 0  # items that changed their cluster
        for _ in range(ROUNDS):
            self.moved += pass_messages(self.links.ptr, self.links.other, weight, U, self.R, self.M, own)
        sums, belongs, evidence = self._statistics()
        P = self._same()
        value = evidence + float(own.sum()) + float((other + (same - other) * P).sum())
        value -= self.coins.divergence() + self.normals.divergence(self.gauss)
        value += float((self.loyal * np.log(self.theta)).sum())
        self.normals = Normals.seen(sums, self.gauss)
        self.theta = _shares(self.loyal + belongs)
        self.coins = Coins.seen(self.answers, P, self.prior)
        return Step(value, {"clusters": int((belongs.sum(0) >= MIN_EXPECTED).sum())})

    def _densities(self) -> None:
        """What features say of components, of every item: shares of the greatest, and its logarithm."""
        W = self.normals.coefficients()

        def some(rows: slice) -> Floats:
            A = phi(self.X[rows]) @ W
            self.top[rows] = A.max(1)
            A -= self.top[rows][:, None]
            self.E[rows] = np.exp(A, out=A)
            return np.zeros(1)

        over_blocks(len(self.X), self.run.threads, some)

    def _by_features(self) -> Floats:
        """(n, C) logs of what features say of clusters, of the items that were asked about."""
        items, U = self.items, np.empty_like(self.R)

        def some(rows: slice) -> Floats:
            at = items[rows]
            np.log(np.maximum(self.E[at] @ self.theta, 1e-300), out=U[rows])
            U[rows] += self.top[at][:, None]
            return np.zeros(1)

        over_blocks(len(items), self.run.threads, some)
        return U

    def _statistics(self) -> tuple[Floats, Floats, float]:
        """Sums of phi by component, of items by component and cluster, and the evidence of items without answers."""
        (K, C), F = self.theta.shape, 1 + self.X.shape[1] * (self.X.shape[1] + 3) // 2

        def some(rows: slice) -> Floats:
            at, R = self.place[rows], self.E[rows].astype(np.float64)
            asked = at >= 0
            M = self.M[at[asked]]
            M = np.exp(M - M.max(1, keepdims=True))
            heard = M @ self.theta.T  # (n, K)
            whole = R.sum(1)
            whole[asked] = (R[asked] * heard).sum(1)
            scaled = R / whole[:, None]
            counts = self.theta * (scaled[asked].T @ M + scaled[~asked].sum(0)[:, None])
            scaled[asked] *= heard
            out = np.empty(K * F + K * C + 1)
            out[: K * F] = (scaled.T @ phi(self.X[rows])).ravel()
            out[K * F : -1] = counts.ravel()
            out[-1] = (self.top[rows] + np.log(whole))[~asked].sum()
            return out

        out = over_blocks(len(self.X), self.run.threads, some)
        return out[: K * F].reshape(K, F), out[K * F : -1].reshape(K, C), float(out[-1])

    def _posterior(self) -> Floats:
        """(N, C) clusters of all items: by answers and features, or by features alone."""
        self._densities()
        P = np.empty((len(self.X), self.theta.shape[1]))

        def some(rows: slice) -> Floats:
            E = self.E[rows].astype(np.float64)
            P[rows] = (E / E.sum(1, keepdims=True)) @ self.theta
            return np.zeros(1)

        over_blocks(len(self.X), self.run.threads, some)
        P[self.items] = self.R
        return P


def _certain(cluster: Ints, C: int) -> Floats:
    """(n, C) all probability on one cluster."""
    R = np.zeros((len(cluster), C))
    R[np.arange(len(cluster)), cluster] = 1.0
    return R


def _shares(counts: Floats) -> Floats:
    return np.asarray(counts / counts.sum(1, keepdims=True))
