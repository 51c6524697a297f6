"""pair-mixture: Gaussian components that belong to clusters, and workers who call two items the same or different.

Without features, clusters from the answers alone (`alone`). docs/maths/pair_mixture.md has the mathematics.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..answers import Pairs
from ..engine import Run
from ..engine.model import COUNT, POSITIVE, Rule, rules
from ..engine.threads import one_thread
from ..errors import EmptyDataError
from ..kernels.layout import Floats, Ints
from ..result import PairsResult
from .alone import alone, clustered
from .gaussians import Normals, Prior, k_means, log_sum, near, over_blocks, phi
from .graph import embedded, placed, usable
from .merge import adopted, between, joined
from .model import Answers, Found, PairsModel, tell
from .turning import chosen, worth_it
from .workers import Coins, first_odds

MOST = 100  # components, where none are asked for
STARTS, SMALL = 6, 5000  # climbs, and items up to which as many are made
LEAST = 0.01  # share of asked items that a cluster of answers alone must have to start from
TIMES = (1.0, 0.7, 1.4)  # the square root of the number of items, in turn
ROUNDS = 3  # of messages in a sweep
STILL = 2e-4  # rise of the bound an item that counts as rest
FEW = 1e-3  # share of asked items that may still change then
MANY = 1 << 24  # densities from which they are kept in single precision
LOYAL = 1.0  # items that a component's first cluster counts for
OPEN = 0.02  # and each other one


@dataclass(frozen=True, kw_only=True)
class PairMixture(PairsModel):
    """Clusters from features and same/different answers, or from the answers alone.

    `parts` Gaussians (None: the square root of the number of items, 100 at most) describe the features, which are cut
    to their `dims` main directions where they are more; each component belongs mostly to one cluster, and the answers
    say which components belong together. The best of `restarts` by the bound is kept (None: six, or two of more than
    5,000 items). Beta(`right`, `wrong`) is believed of each worker's two coins before any answer. `space` "graph"
    replaces the features by an embedding of the graph of nearest neighbours (None: where features are more than `dims`,
    as of images), "features" does not. `turn` cuts features to the directions that answers tell apart, where that
    foretells answers about held-out items better. `scale` "whole" keeps the lengths of features to each other,
    "columns" makes them alike.
    """

    name: ClassVar[str] = "pair-mixture"
    about: ClassVar[str] = "Gaussian components joined to clusters by answers; or clusters from the answers alone"
    needs_features: ClassVar[bool] = False

    parts: int | None = field(default=None, metadata=rules(Rule(int, low=1, may_be_none=True)))
    dims: int = field(default=40, metadata=rules(COUNT))
    restarts: int | None = field(default=None, metadata=rules(Rule(int, low=1, may_be_none=True)))
    right: float = field(default=2.0, metadata=rules(POSITIVE))
    wrong: float = field(default=1.0, metadata=rules(POSITIVE))
    scale: str = field(default="whole", metadata=rules(Rule(str, choices=("whole", "columns"))))
    space: str | None = field(
        default=None, metadata=rules(Rule(str, choices=(None, "features", "graph"), may_be_none=True))
    )
    turn: bool = field(default=True, metadata=rules(Rule(bool, choices=(True, False))))
    max_iter: int = field(default=200, metadata=rules(COUNT))

    def climb(self, X: Floats, answers: Answers, run: Run) -> Found:
        """The best of some starts, by the bound."""
        if not len(answers.left):
            raise EmptyDataError("there are no answers about these items. Of features alone take bayes-scdc")
        rng, best = run.rng(), None
        with one_thread():
            graph = embedded(X, self.dims, rng) if self._by_graph(X) else {}
            X = graph.get("graph.embedding", X)
            frame = self._turned(Frame.of(X, self.dims, self.scale), X, answers, run, rng)
            rows = frame.rows(X)
            for start in range(self.restarts or (STARTS if len(rows) <= SMALL else 2)):
                found = _Climb(self, rows, answers, run, start).found(frame)
                if best is None or found.bound[-1][0] > best.bound[-1][0]:
                    best = found
        assert best is not None
        return best._replace(space=best.space | graph)

    def _turned(self, frame: Frame, X: Floats, answers: Answers, run: Run, rng: np.random.Generator) -> Frame:
        """Cut to the directions that answers tell apart, where that foretells answers better."""
        rows = frame.rows(X)
        if self.turn is False or not worth_it(answers, rows.shape[1]):
            return frame
        quiet = replace(run, watch=None)

        def fit(Z: Floats, told: Answers) -> Found:
            return _Climb(self, Z, told, quiet, 0).found(frame)

        turn = chosen(rows, answers, rng, fit)
        return frame if turn is None else Frame(frame.centre, frame.turn @ turn)

    def _by_graph(self, X: Floats) -> bool:
        return self.space == "graph" or (self.space is None and usable(X, self.dims))

    def _alone(self, pairs: Pairs, run: Run, begun: float) -> PairsResult:
        found, params = alone(pairs, np.array([self.right, self.wrong]), self.max_iter, run)
        return self.result(pairs, params, {}, found, run, begun)

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


class Links(NamedTuple):
    """Answers at both ends of the items that have any."""

    items: Ints  # (n,) items that were asked about
    ptr: Ints  # (n+1,)
    other: Ints  # (2A,) number among these
    answer: Ints  # (2A,) which answer it is
    left: Ints  # (A,) numbers among these
    right: Ints

    @classmethod
    def of(cls, answers: Answers) -> Links:
        items, place = np.unique(np.concatenate([answers.left, answers.right]), return_inverse=True)
        A = len(answers.left)
        left, right = place[:A], place[A:]
        order = np.argsort(place, kind="stable")
        ptr = np.searchsorted(place[order], np.arange(len(items) + 1)).astype(np.int64)
        other = np.concatenate([right, left])[order].astype(np.int64)
        return cls(items, ptr, other, (order % A).astype(np.int64), left, right)


class _Climb:
    """One start, climbed to rest."""

    def __init__(self, model: PairMixture, X: Floats, answers: Answers, run: Run, start: int) -> None:
        self.model, self.X, self.answers, self.run = model, X, answers, run
        self.links, self.prior = Links.of(answers), np.array([model.right, model.wrong])
        wanted = model.parts or min(MOST, max(2, round(TIMES[start // 2 % len(TIMES)] * np.sqrt(len(X)))))
        rng = np.random.default_rng([run.seed, start // 2])  # both kinds of start have the same components
        centres = k_means(X, min(wanted, len(X)), rng)
        which, _ = near(X, centres)
        K, D = len(centres), X.shape[1]
        self.gauss = Prior(1.0 / K, 0.01, D + 2.0, self._within(which, centres))
        sums = np.zeros((K, 1 + D + D * (D + 1) // 2))

        def hard(rows: slice) -> Floats:
            R = np.zeros((len(which[rows]), K))
            R[np.arange(len(R)), which[rows]] = 1.0
            return R.T @ phi(X[rows])

        self.normals = Normals.seen(sums + over_blocks(len(X), run.threads, hard), self.gauss)
        self._start(*(self._by_answers(which, centres) if start % 2 else self._by_components(which, centres)))
        self.bound: list[tuple[float, int]] = []
        self.top, self.E = np.empty(len(X)), np.empty((len(X), K), np.float64 if len(X) * K <= MANY else np.float32)
        self.place = np.full(len(X), -1, np.int64)
        self.place[self.links.items] = np.arange(len(self.links.items))

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
        return group, _certain(group[which[self.links.items]], int(group.max()) + 1)

    def _by_answers(self, which: Ints, centres: Floats) -> tuple[Ints, Floats]:
        """Asked items clustered by their answers alone; a component goes where most of its items are."""
        label, links = clustered(self.answers, self.prior, self.run), self.links
        names, code = np.unique(label[links.items], return_inverse=True)
        size = np.bincount(code)
        kept = np.flatnonzero(size >= max(2, LEAST * len(code)))
        if len(kept) < 2 and not self.answers.same.all():  # answers alone do not show any clusters
            return self._by_components(which, centres)
        place = np.full(len(names), -1)
        place[kept] = np.arange(len(kept))
        at, component = place[code], which[links.items]
        counts = np.zeros((len(centres), len(kept)))
        np.add.at(counts, (component[at >= 0], at[at >= 0]), 1.0)
        group = adopted(counts.argmax(1), counts.sum(1), centres)
        return group, _certain(np.where(at >= 0, at, group[component]), len(kept))

    def _start(self, group: Ints, R: Floats) -> None:
        """Who belongs where is the prior of what follows, and items start there."""
        self.loyal = np.full((len(group), R.shape[1]), OPEN)
        self.loyal[np.arange(len(group)), group] += LOYAL
        self.R, self.M, self.theta = R, np.zeros_like(R), _shares(self.loyal)
        self.coins = Coins.seen(self.answers, self._same(), self.prior)

    def _same(self) -> Floats:
        """(A,) chance of each asked pair to be in one cluster."""
        return np.asarray(np.einsum("ac,ac->a", self.R[self.links.left], self.R[self.links.right]))

    def found(self, frame: Frame) -> Found:
        """Sweep until neither the bound rises nor items change."""
        converged, most, moved = False, self.model.max_iter, -1
        for sweep in range(1, most + 1):
            value, moved = self._sweep()
            C = self._used()
            tell(self.run, sweep, most, value, C)
            rise = np.inf if not self.bound else (value - self.bound[-1][0]) / len(self.X)
            self.bound.append((value, C))
            if rise < STILL and moved <= FEW * len(self.R):
                converged = True
                break
        posterior = self._posterior()
        space = {
            "centre": frame.centre, "turn": frame.turn, "coefficients": self.normals.coefficients(),
            "belongs": self.theta,
        }  # fmt: skip
        return Found(posterior, self.coins.alpha, self.coins.beta, self.bound, self.X, space, converged)

    def _used(self) -> int:
        return len(np.unique(self.R.argmax(1)))

    def _sweep(self) -> tuple[float, int]:
        """Items given all else, then all else given items; the bound in between, and how many items changed."""
        from ..kernels.fast.links import pass_messages

        links = self.links
        self._densities()
        U = self._by_features()
        same, other = self.coins.logs(self.answers)
        weight, own, flips = (same - other)[links.answer], np.empty(len(U)), 0
        for _ in range(ROUNDS):
            flips += pass_messages(links.ptr, links.other, weight, U, self.R, self.M, own)
        sums, belongs, evidence = self._statistics()
        P = self._same()
        value = evidence + float(own.sum()) + float((other + (same - other) * P).sum())
        value -= self.coins.divergence() + self.normals.divergence(self.gauss)
        value += float((self.loyal * np.log(self.theta)).sum())
        self.normals = Normals.seen(sums, self.gauss)
        self.theta = _shares(self.loyal + belongs)
        self.coins = Coins.seen(self.answers, P, self.prior)
        return value, flips

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
        items, U = self.links.items, np.empty_like(self.R)

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
        P[self.links.items] = self.R
        return P


def _certain(cluster: Ints, C: int) -> Floats:
    """(n, C) all probability on one cluster."""
    R = np.zeros((len(cluster), C))
    R[np.arange(len(cluster)), cluster] = 1.0
    return R


def _shares(counts: Floats) -> Floats:
    return np.asarray(counts / counts.sum(1, keepdims=True))
