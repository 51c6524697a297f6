"""Clusters from same/different answers alone: entity resolution, crowd clustering.

Pairs are judged one by one first, with the workers (Dawid-Skene on pairs, by variational Bayes); what that says of each
pair and the rule that "the same" is transitive make up a posterior over clusterings. Where answers contradict each
other along a chain, the odds of all pairs between two groups decide, together. The prior odds of a pair are such that
as many asked pairs are together as the workers, pair by pair, say are the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..answers import Pairs
from ..answers.pairs import components
from ..engine import Run
from ..kernels.layout import Floats, Ints
from ..kernels.special import digamma, dirichlet_kl, expit, gammaln
from ..result import Clusters
from ..result.pairs import by_size
from .model import Answers, Found, tell
from .workers import Coins, first_odds

STILL = 1e-6  # rise of the bound a pair that counts as rest
DRAWS, WARM = 100, 30  # rounds of sampling, and those before that do not count
TRIES, STROLL = 6, 10  # times that sampled clusters are tried, and rounds of sampling before each
HALVINGS = 14  # of the range of prior odds
FAR = 8.0  # log-odds that the prior may differ from the share of the same


class Edges(NamedTuple):
    """Pairs asked, at both ends of every item."""

    left: Ints
    right: Ints
    ptr: Ints
    other: Ints
    edge: Ints

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
    bound: list[float]
    converged: bool


def alone(pairs: Pairs, prior: Floats, most: int, run: Run) -> tuple[Found, Clusters]:
    """Clusters, their probabilities, and workers."""
    left, right, edge = pairs.edges
    answers, n = Answers.of(pairs), pairs.n_items
    edges = Edges.of(left, right, n)
    begun = first_clusters(answers, edges, edge, prior, most, run)
    together, lonely = _sampled(edges, begun.odds, begun.label, run.rng())
    label = _partition(edges, together - 0.5, n)  # of all clusterings, that which is right on most asked pairs
    choices, chances = _items(edges, label, together, lonely)
    coins = Coins.seen(answers, together[edge], prior)
    params = Clusters.without_features(choices, chances, coins.alpha, coins.beta, together)
    C = int(choices[:, 0].max()) + 1
    trace = [(value, C) for value in begun.bound]
    return Found(np.empty((0, 0)), coins.alpha, coins.beta, trace, params.view, {}, begun.converged), params


def clustered(answers: Answers, prior: Floats, run: Run) -> Ints:
    """(N,) clusters of items by answers alone, without their doubts; items that were not asked about are alone."""
    key, edge = np.unique(answers.left.astype(np.int64) * answers.n_items + answers.right, return_inverse=True)
    edges = Edges.of(key // answers.n_items, key % answers.n_items, answers.n_items)
    return first_clusters(answers, edges, edge, prior, 100, replace(run, watch=None)).label


def first_clusters(answers: Answers, edges: Edges, edge: Ints, prior: Floats, most: int, run: Run) -> Start:
    """The better of two: pairs judged one by one, and clusters and workers in turn, all workers being alike at first.

    The first needs several answers a pair, the second many pairs an item. What decides is the evidence of the answers
    with all workers averaged out.
    """
    E, n = len(edges.left), answers.n_items
    odds, same, _, bound, converged = one_by_one(answers, edge, E, prior, most, run)
    shift, label = _matched(edges, odds, float(same.sum()), n)
    best = Start(label, odds + shift, bound, converged)
    value = evidence(answers, edges, edge, label, prior)
    odds = np.bincount(edge, first_odds(answers), minlength=E)
    trace: list[float] = []
    rng = run.rng()
    for _ in range(most):
        label = _searched(edges, odds, n, rng)
        trace.append(evidence(answers, edges, edge, label, prior))
        if len(trace) > 1 and trace[-1] <= trace[-2] + STILL * E:
            break
        if trace[-1] > value:
            best, value = Start(label, odds, list(trace), True), trace[-1]
        together = (label[edges.left] == label[edges.right])[edge].astype(np.float64)
        yes, no = Coins.seen(answers, together, prior).logs(answers)
        odds = np.bincount(edge, yes - no, minlength=E)
    return best


def evidence(answers: Answers, edges: Edges, edge: Ints, label: Ints, prior: Floats) -> float:
    """Log-chance of the answers, given who is together, of workers who may be anybody; and of such clusters."""
    together = label[edges.left] == label[edges.right]
    coins = Coins.seen(answers, together[edge].astype(np.float64), prior)
    said = sum(float((_log_beta(after) - _log_beta(prior[None])).sum()) for after in (coins.alpha, coins.beta))
    return said + _restaurant(np.unique(label, return_counts=True)[1].astype(np.float64))


def _restaurant(size: Floats) -> float:
    """Log-chance of clusters of these sizes by the Chinese restaurant process, of the likeliest concentration."""
    a, n = 10.0 ** np.linspace(-2, 6, 33), size.sum()
    return float(gammaln(size).sum() + (len(size) * np.log(a) + gammaln(a) - gammaln(a + n)).max())


def _log_beta(counts: Floats) -> Floats:
    return np.asarray(gammaln(counts).sum(1) - gammaln(counts.sum(1)))


def one_by_one(
    answers: Answers, edge: Ints, E: int, prior: Floats, most: int, run: Run
) -> tuple[Floats, Floats, Coins, list[float], bool]:
    """(E,) log-odds and chances of pairs to be the same, each judged by itself; workers, bound, whether at rest."""
    weight = np.bincount(edge, answers.weight, minlength=E)
    P = np.bincount(edge, answers.weight * answers.same, minlength=E) / weight
    bound: list[float] = []
    converged = False
    for sweep in range(1, most + 1):
        coins = Coins.seen(answers, P[edge], prior)
        share = np.array([P.sum(), (1 - P).sum()])
        same, other = coins.logs(answers)
        rho = digamma(1 + share) - digamma(np.array(2.0 + E))
        odds = rho[0] - rho[1] + np.bincount(edge, same - other, minlength=E)
        base = rho[1] + np.bincount(edge, other, minlength=E)
        P = expit(odds)
        value = float((base + np.logaddexp(0.0, odds)).sum()) - coins.divergence()
        value -= dirichlet_kl(share[None], np.ones((1, 2)))
        tell(run, sweep, most, value, 0)
        bound.append(value)
        if len(bound) > 1 and value - bound[-2] < STILL * E:
            converged = True
            break
    return odds, P, coins, bound, converged


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
    """(n,) clusters after every item was moved to where its links say most, until none wants to."""
    from ..kernels.fast.links import move

    label, members, free, n_free = _names(label)
    score, seen = _room(edges)
    for _ in range(20):
        moved, n_free = move(edges.ptr, edges.other, weight, label, members, score, seen, free, n_free)
        if not moved:
            break
    inside = label[edges.left] == label[edges.right]
    return components(edges.left[inside], edges.right[inside], len(label))  # who lost the item between falls apart


def _searched(edges: Edges, odds: Floats, n: int, rng: np.random.Generator) -> Ints:
    """(n,) the best of clusters that were joined, and of some that were sampled from there and moved."""
    best = _partition(edges, odds, n)
    weight, value = odds[edges.edge], _total(edges, odds, best)
    walk = Walk(edges, weight, best)
    for _ in range(TRIES):
        for _ in range(STROLL):
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
    low, high, best = -FAR, FAR, (np.inf, 0.0, np.arange(n))
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
    for _ in range(WARM):
        walk.step(rng)
    walk.alone[:] = 0
    for _ in range(DRAWS):
        walk.step(rng)
        together += walk.label[edges.left] == walk.label[edges.right]
    return (together + 0.5) / (DRAWS + 1), (walk.alone + 0.5) / (DRAWS + 1)


def _items(edges: Edges, label: Ints, together: Floats, lonely: Floats) -> tuple[Ints, Floats]:
    """Own and next likely cluster of every item with their chances; the largest cluster is 0."""
    n = len(label)
    cluster = by_size(label)
    far = cluster[edges.other]
    item = np.repeat(np.arange(n), np.diff(edges.ptr))
    p, inside = together[edges.edge], far == cluster[item]
    count = np.bincount(item[inside], minlength=n)
    own = np.bincount(item[inside], p[inside], minlength=n) / np.maximum(count, 1)
    own = np.where(count > 0, own, lonely)
    outside = np.flatnonzero(~inside)
    order = outside[np.lexsort((p[outside], item[outside]))]  # the likeliest of every item comes last
    second, chance = cluster.copy(), np.zeros(n)
    second[item[order]], chance[item[order]] = far[order], p[order]
    chance = np.minimum(chance, 1 - own)
    return np.column_stack([cluster, second]), np.column_stack([own, chance])
