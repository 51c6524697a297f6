"""Clusters from same/different answers alone: entity resolution, crowd clustering.

Pairs are judged one by one first, with the workers (Dawid-Skene on pairs, by variational Bayes); what that says of each
pair and the rule that "the same" is transitive make up a posterior over clusterings. Where answers contradict each
other along a chain, the odds of all pairs between two groups decide, together. The prior odds of a pair are such that
as many asked pairs are together as the workers, pair by pair, say are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..answers import Pairs
from ..answers.pairs import components
from ..engine import Problem, Run, Step, Trace, iterate
from ..engine.run import Arrays, packed, rng_state, set_rng_state, unpacked
from ..kernels.layout import Floats, Ints
from ..kernels.special import digamma, dirichlet_kl, expit, gammaln
from ..result import Clusters
from ..result.pairs import by_size
from .model import Coins, PairAnswers, first_odds, new_trace

MIN_RISE = 1e-6  # of the objective per pair; below, the fit has converged
MAX_START_ITER = 100  # iterations, where clusters are only a start
DRAWS, BURN_IN = 100, 30  # rounds of sampling, and those before that do not count
TRIES, ROUNDS_PER_TRY = 6, 10  # times that sampled clusters are tried, and rounds of sampling before each
MAX_ROUNDS = 20  # of moving items
HALVINGS = 14  # of the range of prior odds
MAX_SHIFT = 8.0  # log-odds that the prior may differ from the share of the same


class Edges(NamedTuple):
    """Links between items, each at both of its ends: those of item i stand from ptr[i] to ptr[i + 1]."""

    left: Ints
    right: Ints
    ptr: Ints  # (n+1,)
    other: Ints  # the far end
    edge: Ints  # which link it is

    @classmethod
    def of(cls, left: Ints, right: Ints, n: int) -> Edges:
        ends = np.concatenate([left, right]).astype(np.int64)
        order = np.argsort(ends, kind="stable")
        ptr = np.searchsorted(ends[order], np.arange(n + 1)).astype(np.int64)
        other = np.concatenate([right, left]).astype(np.int64)[order]
        return cls(left.astype(np.int64), right.astype(np.int64), ptr, other, order % len(left))


class Start(NamedTuple):
    """Clusters as they were found first, and what was found with them."""

    label: Ints  # (N,)
    odds: Floats  # (E,) of each asked pair to be the same, its prior among them
    objectives: Floats
    converged: bool


def fit_answers(pairs: Pairs, prior: Floats, max_iter: int, run: Run) -> tuple[Clusters, Trace, bool]:
    """Clusters with their probabilities and workers; the trace; and whether the fit has converged."""
    left, right, edge = pairs.edges
    answers, n = PairAnswers.of(pairs), pairs.n_items
    edges = Edges.of(left, right, n)
    start = first_clusters(answers, edges, edge, prior, max_iter, run)
    together, lonely = _sampled(edges, start.odds, start.label, run.rng())
    label = _partition(edges, together - 0.5, n)  # of all clusterings, that which is right on most asked pairs
    choices, chances = _items(edges, label, together, lonely)
    coins = Coins.seen(answers, together[edge], prior)
    params = Clusters.without_features(choices, chances, coins.alpha, coins.beta, together)
    C = int(choices[:, 0].max()) + 1
    return params, new_trace([(value, C) for value in start.objectives]), start.converged


def clustered(answers: PairAnswers, prior: Floats, run: Run) -> Ints:
    """(N,) clusters of items by answers alone, without probabilities; items that were not asked about are alone."""
    key, edge = np.unique(answers.left.astype(np.int64) * answers.n_items + answers.right, return_inverse=True)
    edges = Edges.of(key // answers.n_items, key % answers.n_items, answers.n_items)
    return first_clusters(answers, edges, edge, prior, MAX_START_ITER, replace(run, watch=None)).label


def first_clusters(answers: PairAnswers, edges: Edges, edge: Ints, prior: Floats, max_iter: int, run: Run) -> Start:
    """The better of two: pairs judged one by one, and clusters and workers in turn, all workers being alike at first.

    The first needs several answers per pair, the second many pairs per item. What decides is the evidence of the
    answers with all workers averaged out.
    """
    stage = "clusters and workers"
    problem = ClustersAndWorkers(answers, edges, edge, prior, max_iter, run.rng())
    if not run.journal.resumes(stage):
        pairs = PairByPair(answers, edge, len(edges.left), prior, max_iter)
        trace = Trace()
        converged = iterate(pairs, run, trace, "pair by pair")
        shift, label = _matched(edges, pairs.odds, float(pairs.P.sum()), answers.n_items)
        problem.begin(Start(label, pairs.odds + shift, np.array(trace.objectives), converged))
    iterate(problem, run, Trace(), stage)
    return problem.best


class PairByPair(Problem):
    """Every pair judged by itself, together with the workers: Dawid-Skene on pairs by variational Bayes."""

    name = "pair-mixture"

    def __init__(self, answers: PairAnswers, edge: Ints, E: int, prior: Floats, max_iter: int) -> None:
        self.answers, self.edge, self.E, self.prior, self.max_iter = answers, edge, E, prior, max_iter
        self.P: Floats = _summed(edge, answers.weight * answers.same, E) / _summed(edge, answers.weight, E)
        self.odds = np.zeros(E)  # log-odds of each pair to be the same; P are the probabilities

    def step(self) -> Step:
        P, edge, E = self.P, self.edge, self.E
        self.coins = Coins.seen(self.answers, P[edge], self.prior)
        share = np.array([P.sum(), (1 - P).sum()])
        same, other = self.coins.logs(self.answers)
        rho = digamma(1 + share) - digamma(np.array(2.0 + E))
        self.odds = rho[0] - rho[1] + _summed(edge, same - other, E)
        base = rho[1] + _summed(edge, other, E)
        self.P = expit(self.odds)
        value = float((base + np.logaddexp(0.0, self.odds)).sum()) - self.coins.divergence()
        return Step(value - dirichlet_kl(share[None], np.ones((1, 2))), {})

    def converged(self, objectives: Sequence[float]) -> bool:
        return len(objectives) > 1 and objectives[-1] - objectives[-2] < MIN_RISE * self.E

    def state(self) -> Arrays:
        return {"P": self.P, "odds": self.odds}

    def restore(self, state: Arrays) -> None:
        self.P, self.odds = state["P"], state["odds"]


class ClustersAndWorkers(Problem):
    """Clusters given the workers, then workers given the clusters. The best so far is kept, what it begins with among
    them."""

    name = "pair-mixture"

    def __init__(
        self, answers: PairAnswers, edges: Edges, edge: Ints, prior: Floats, max_iter: int, rng: np.random.Generator
    ) -> None:
        self.answers, self.edges, self.edge, self.prior, self.max_iter = answers, edges, edge, prior, max_iter
        self.rng = rng
        self.odds = _summed(edge, first_odds(answers), len(edges.left))
        self.objectives: list[float] = []

    def begin(self, best: Start) -> None:
        """What clusters must be better than."""
        self.best, self.value = best, self._evidence(best.label)

    def _evidence(self, label: Ints) -> float:
        return evidence(self.answers, self.edges, self.edge, label, self.prior)

    def step(self) -> Step:
        self.label = _searched(self.edges, self.odds, self.answers.n_items, self.rng)
        self.objectives.append(self._evidence(self.label))
        value = self.objectives[-1]
        if value > self.value and not self.converged(self.objectives):
            self.best, self.value = Start(self.label, self.odds, np.array(self.objectives), True), value
        return Step(value, {})

    def improve(self) -> None:
        together = (self.label[self.edges.left] == self.label[self.edges.right])[self.edge].astype(np.float64)
        yes, no = Coins.seen(self.answers, together, self.prior).logs(self.answers)
        self.odds = _summed(self.edge, yes - no, len(self.edges.left))

    def converged(self, objectives: Sequence[float]) -> bool:
        return len(objectives) > 1 and objectives[-1] <= objectives[-2] + MIN_RISE * len(self.edges.left)

    def state(self) -> Arrays:
        own = {"odds": self.odds, "objectives": self.objectives, "rng": rng_state(self.rng)}
        return packed(own | {"best": self.best, "value": self.value})

    def restore(self, state: Arrays) -> None:
        self.odds, self.objectives = state["odds"], state["objectives"].tolist()
        self.best, self.value = Start(**unpacked(state, "best.")), float(state["value"])
        set_rng_state(self.rng, state["rng"])


def evidence(answers: PairAnswers, edges: Edges, edge: Ints, label: Ints, prior: Floats) -> float:
    """Log-chance of the answers, given who is together, of workers who may be anybody; and of such clusters."""
    together = label[edges.left] == label[edges.right]
    coins = Coins.seen(answers, together[edge].astype(np.float64), prior)
    said = sum(float((_log_beta(after) - _log_beta(prior[None])).sum()) for after in (coins.alpha, coins.beta))
    return said + _restaurant(np.unique(label, return_counts=True)[1].astype(np.float64))


def _summed(edge: Ints, values: Floats, E: int) -> Floats:
    """(E,) values of answers, added up by pair."""
    return np.asarray(np.bincount(edge, values, minlength=E), np.float64)


def _restaurant(size: Floats) -> float:
    """Log-chance of clusters of these sizes by the Chinese restaurant process, of the likeliest concentration."""
    a, n = 10.0 ** np.linspace(-2, 6, 33), size.sum()
    return float(gammaln(size).sum() + (len(size) * np.log(a) + gammaln(a) - gammaln(a + n)).max())


def _log_beta(counts: Floats) -> Floats:
    return np.asarray(gammaln(counts).sum(1) - gammaln(counts.sum(1)))


def _partition(edges: Edges, odds: Floats, n: int) -> Ints:
    """(n,) clusters: joined from the surest link on, then moved."""
    from ..kernels.fast.links import join

    label = np.arange(n)
    good = np.flatnonzero(odds > 0)
    order = good[np.argsort(-odds[good], kind="stable")]
    follow, last, weight = np.full(n, -1, np.int64), np.arange(n), odds[edges.edge]
    join(order, edges.left, edges.right, edges.ptr, edges.other, weight, label, follow, last, np.ones(n, np.int64))
    return _moved(edges, weight, label)


def _moved(edges: Edges, weight: Floats, label: Ints) -> Ints:
    """(n,) clusters after every item was moved to where its links say most, until none is better elsewhere."""
    from ..kernels.fast.links import move

    label, members, free, n_free = _names(label)
    score, seen = _room(edges)
    for _ in range(MAX_ROUNDS):
        moved, n_free = move(edges.ptr, edges.other, weight, label, members, score, seen, free, n_free)
        if not moved:
            break
    return _connected(edges, label)


def _connected(edges: Edges, label: Ints) -> Ints:
    """(n,) clusters, cut where no links hold them together."""
    inside = label[edges.left] == label[edges.right]
    return components(edges.left[inside], edges.right[inside], len(label))


def _searched(edges: Edges, odds: Floats, n: int, rng: np.random.Generator) -> Ints:
    """(n,) the best of clusters that were joined, and of some that were sampled from there and moved."""
    best = _partition(edges, odds, n)
    weight, value = odds[edges.edge], _total(edges, odds, best)
    walk = Walk(edges, weight, best)
    for _ in range(TRIES):
        for _ in range(ROUNDS_PER_TRY):
            walk.step(rng)
        label = _moved(edges, weight, walk.label)
        if _total(edges, odds, label) > value:
            best, value = label, _total(edges, odds, label)
    return best


def _total(edges: Edges, odds: Floats, label: Ints) -> float:
    """Odds of all pairs that are together."""
    return float(odds[label[edges.left] == label[edges.right]].sum())


class Walk:
    """Clusterings sampled one after another, each given the one before."""

    def __init__(self, edges: Edges, weight: Floats, label: Ints) -> None:
        self.edges, self.weight = edges, weight
        self.label, self.members, self.free, self.n_free = _names(label)
        self.room, self.alone = _room(edges), np.zeros(len(label))
        self.mark, self.stack = np.empty(len(label), np.int64), np.empty(len(label) + 1, np.int64)

    def step(self, rng: np.random.Generator) -> None:
        """Every item once."""
        from ..kernels.fast.links import draw

        uniform, (score, seen) = rng.random(len(self.label)), self.room
        given = self.edges.ptr, self.edges.other, self.weight, self.label, self.members
        self.n_free = draw(*given, score, seen, self.free, self.n_free, uniform, self.alone, self.mark, self.stack)


def _names(label: Ints) -> tuple[Ints, Ints, Ints, int]:
    """Labels to be changed in place, how many items have each, and a stack of those that none has."""
    n = len(label)
    members = np.bincount(label, minlength=n)
    unused = np.flatnonzero(members == 0)
    free = np.zeros(n + 1, np.int64)
    free[: len(unused)] = unused
    return label.copy(), members, free, len(unused)


def _room(edges: Edges) -> tuple[Floats, Ints]:
    most = int(np.diff(edges.ptr).max(initial=0)) + 1
    return np.empty(most), np.empty(most, np.int64)


def _matched(edges: Edges, odds: Floats, wanted: float, n: int) -> tuple[float, Ints]:
    """What is to be added to the odds of every pair so that as many are together as wanted, and the clusters then."""
    low, high = -MAX_SHIFT, MAX_SHIFT
    best: tuple[float, float, Ints] = (np.inf, 0.0, np.arange(n))
    for _ in range(HALVINGS):
        shift = 0.5 * (low + high)
        label = _partition(edges, odds + shift, n)
        got = float((label[edges.left] == label[edges.right]).sum())
        if abs(got - wanted) < best[0]:
            best = (abs(got - wanted), shift, label)
        low, high = (shift, high) if got < wanted else (low, shift)
    return best[1], best[2]


def _sampled(edges: Edges, odds: Floats, label: Ints, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """(E,) chance of each asked pair to be together, and (n,) of each item to be alone, over sampled clusterings."""
    walk, together = Walk(edges, odds[edges.edge], label), np.zeros(len(edges.left))
    for _ in range(BURN_IN):
        walk.step(rng)
    walk.alone[:] = 0
    for _ in range(DRAWS):
        walk.step(rng)
        together += walk.label[edges.left] == walk.label[edges.right]
    return (together + 0.5) / (DRAWS + 1), (walk.alone + 0.5) / (DRAWS + 1)


def _likeliest(edges: Edges, label: Ints, p: Floats, lonely: Floats) -> Ints:
    """(n,) clusters after items were moved to where the mean probability of their links is highest."""
    label = label.copy()
    for _ in range(MAX_ROUNDS):
        own, _, chance = _chances(edges, label, p, lonely)
        wrong = np.flatnonzero(chance > own)
        if not len(wrong):
            break
        for i in wrong.tolist():  # one by one: two items may want to go to each other
            links = slice(edges.ptr[i], edges.ptr[i + 1])
            far, at = np.unique(label[edges.other[links]], return_inverse=True)
            mean = np.bincount(at, p[links]) / np.bincount(at)
            here = mean[far == label[i]]
            if mean.max() > (here[0] if len(here) else lonely[i]):
                label[i] = far[mean.argmax()]
        label = _connected(edges, label)
    return label


def _chances(edges: Edges, label: Ints, p: Floats, lonely: Floats) -> tuple[Floats, Ints, Floats]:
    """(n,) probability of each item's own cluster, its likeliest other cluster, and the probability of that. The
    probability of a cluster is the mean over the item's links to it; of being alone, that of the samples."""
    n = len(label)
    item = np.repeat(np.arange(n), np.diff(edges.ptr))
    key, at = np.unique(item * n + label[edges.other], return_inverse=True)
    (who, where), mean = divmod(key, n), np.bincount(at, p) / np.bincount(at)
    inside = where == label[who]
    own = lonely.copy()
    own[who[inside]] = mean[inside]
    outside = np.flatnonzero(~inside)
    order = outside[np.lexsort((mean[outside], who[outside]))]  # the likeliest of every item comes last
    second, chance = label.copy(), np.zeros(n)
    second[who[order]], chance[who[order]] = where[order], mean[order]
    return own, second, chance


def _items(edges: Edges, label: Ints, together: Floats, lonely: Floats) -> tuple[Ints, Floats]:
    """Own and next likely cluster of every item with their probabilities; the largest cluster is 0."""
    p = together[edges.edge]
    cluster = by_size(_likeliest(edges, label, p, lonely))
    own, second, chance = _chances(edges, cluster, p, lonely)
    chance = np.minimum(chance, np.minimum(own, 1 - own))
    return np.column_stack([cluster, second]), np.column_stack([own, chance])
