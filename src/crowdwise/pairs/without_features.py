"""Clusters from same/different answers alone (entity resolution, crowd clustering).

First each pair is judged separately, together with the workers (Dawid-Skene on pairs, by variational Bayes). The
log-odds of the pairs and the transitivity of "same" define a posterior over clusterings: if answers contradict each
other along a chain, the log-odds of all pairs between two groups decide. The prior odds of a pair are set so that the
clusterings put as many pairs together as the separate judgements do.

A pair is "asked" if there is an answer about it. Pairs are the edges (links) of a graph of items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, NamedTuple

import numpy as np

from ..answers import Pairs
from ..answers.pairs import components
from ..engine import Problem, Run, Step, Trace, iterate
from ..engine.run import Arrays, packed, restored, rng_state, set_rng_state, sound
from ..kernels.layout import Floats, Ints
from ..kernels.rules import Real, Whole
from ..kernels.special import digamma, dirichlet_kl, expit, gammaln
from ..result import Clusters
from ..result.pairs import by_size
from .model import Coins, PairAnswers, first_odds, new_trace

MIN_RISE_PER_PAIR = 1e-6  # convergence tolerance: increase of the objective per pair
MAX_START_ITER = 100  # iterations, if the clusters are only a start for `mixture`
SAMPLING_ROUNDS, BURN_IN_ROUNDS = 100, 30  # a round samples the cluster of every item once
SEARCHES, ROUNDS_PER_SEARCH = 6, 10  # local searches from sampled clusterings, and rounds of sampling before each
MAX_MOVE_ROUNDS = 20  # passes of the local search over all items
BISECTION_STEPS = 14  # steps that find the prior odds
MAX_PRIOR_SHIFT = 8.0  # largest correction of the prior log-odds


class Edges(NamedTuple):
    """Links between items, listed at both ends: those of item i are at ptr[i] to ptr[i + 1]."""

    left: Ints  # (E,)
    right: Ints  # (E,)
    ptr: Ints  # (n+1,)
    other: Ints  # (2E,) item at the other end
    edge: Ints  # (2E,) number of the link

    @classmethod
    def of(cls, left: Ints, right: Ints, n: int) -> Edges:
        ends = np.concatenate([left, right]).astype(np.int64)
        order = np.argsort(ends, kind="stable")
        ptr = np.searchsorted(ends[order], np.arange(n + 1)).astype(np.int64)
        other = np.concatenate([right, left]).astype(np.int64)[order]
        return cls(left.astype(np.int64), right.astype(np.int64), ptr, other, order % len(left))


class Start(NamedTuple):
    """Initial clusters, with the log-odds and the trace they come from."""

    label: Annotated[Ints, Whole("N", below="N", dtype="int64")]
    odds: Annotated[Floats, Real("E")]  # posterior log-odds that each asked pair is the same
    objectives: Annotated[Floats, Real("iterations")]
    converged: bool


def fit_answers(pairs: Pairs, prior: Floats, max_iter: int, run: Run) -> tuple[Clusters, Trace, bool]:
    """Fit clusters and workers; return the parameters, the trace, and whether the fit has converged."""
    left, right, edge = pairs.edges
    answers, n = PairAnswers.of(pairs), pairs.n_items
    edges = Edges.of(left, right, n)
    start = first_clusters(answers, edges, edge, prior, max_iter, run)
    together, p_alone = _sample_clusterings(edges, start.odds, start.label, run.rng())
    label = _partition(edges, together - 0.5, n)  # maximises the expected number of correctly clustered pairs
    choices, chances = _item_clusters(edges, label, together, p_alone)
    coins = Coins.from_answers(answers, together[edge], prior)
    params = Clusters.without_features(choices, chances, coins.alpha, coins.beta, together)
    C = int(choices[:, 0].max()) + 1
    return params, new_trace([(value, C) for value in start.objectives]), start.converged


def cluster_answers(answers: PairAnswers, prior: Floats, run: Run) -> Ints:
    """(N,) clusters of items by the answers alone, without probabilities; an item without answers is alone."""
    key, edge = np.unique(answers.left.astype(np.int64) * answers.n_items + answers.right, return_inverse=True)
    edges = Edges.of(key // answers.n_items, key % answers.n_items, answers.n_items)
    return first_clusters(answers, edges, edge, prior, MAX_START_ITER, replace(run, watch=None)).label


def first_clusters(answers: PairAnswers, edges: Edges, edge: Ints, prior: Floats, max_iter: int, run: Run) -> Start:
    """Return the better of two starts: by pairs judged separately, or by alternating between clusters and workers.

    The first works well with several answers per pair, the second with many pairs per item. The start with the higher
    evidence is returned, with the workers integrated out.
    """
    stage = "clusters and workers"
    problem = ClustersAndWorkers(answers, edges, edge, prior, max_iter, run.rng())
    if not run.journal.resumes(stage):
        pairs = PairByPair(answers, edge, len(edges.left), prior, max_iter)
        trace = Trace()
        converged = iterate(pairs, run, trace, "pair by pair")
        shift, label = _match_prior(edges, pairs.odds, float(pairs.P.sum()), answers.n_items)
        problem.begin(Start(label, pairs.odds + shift, np.array(trace.objectives), converged))
    iterate(problem, run, Trace(), stage)
    return problem.best


class PairByPair(Problem):
    """Dawid-Skene on pairs by variational Bayes: each pair is judged separately, together with the workers."""

    name = "pair-mixture"

    def __init__(self, answers: PairAnswers, edge: Ints, E: int, prior: Floats, max_iter: int) -> None:
        self.answers, self.edge, self.E, self.prior, self.max_iter = answers, edge, E, prior, max_iter
        self.P: Floats = _sum_by_pair(edge, answers.weight * answers.same, E) / _sum_by_pair(edge, answers.weight, E)
        self.odds = np.zeros(E)  # log-odds that each pair is the same; P are the probabilities

    def step(self) -> Step:
        P, edge, E = self.P, self.edge, self.E
        self.coins = Coins.from_answers(self.answers, P[edge], self.prior)
        share = np.array([P.sum(), (1 - P).sum()])
        same, other = self.coins.logs(self.answers)
        rho = digamma(1 + share) - digamma(np.array(2.0 + E))
        self.odds = rho[0] - rho[1] + _sum_by_pair(edge, same - other, E)
        base = rho[1] + _sum_by_pair(edge, other, E)
        self.P = expit(self.odds)
        value = float((base + np.logaddexp(0.0, self.odds)).sum()) - self.coins.divergence()
        return Step(value - dirichlet_kl(share[None], np.ones((1, 2))), {})

    def converged(self, objectives: Sequence[float]) -> bool:
        return len(objectives) > 1 and objectives[-1] - objectives[-2] < MIN_RISE_PER_PAIR * self.E

    def state(self) -> Arrays:
        return {"P": self.P, "odds": self.odds}

    def restore(self, state: Arrays) -> None:
        self.P, self.odds = sound(state, "P", Real("E", 0, 1), E=self.E), sound(state, "odds", Real("E"), E=self.E)


class ClustersAndWorkers(Problem):
    """Alternate between clusters given the workers and workers given the clusters; keep the best, or the start."""

    name = "pair-mixture"

    def __init__(
        self, answers: PairAnswers, edges: Edges, edge: Ints, prior: Floats, max_iter: int, rng: np.random.Generator
    ) -> None:
        self.answers, self.edges, self.edge, self.prior, self.max_iter = answers, edges, edge, prior, max_iter
        self.rng = rng
        self.odds = _sum_by_pair(edge, first_odds(answers), len(edges.left))
        self.objectives: list[float] = []

    def begin(self, best: Start) -> None:
        """Set the start that later clusters must improve on."""
        self.best, self.value = best, self._evidence(best.label)

    def _evidence(self, label: Ints) -> float:
        return evidence(self.answers, self.edges, self.edge, label, self.prior)

    def step(self) -> Step:
        self.label = _search(self.edges, self.odds, self.answers.n_items, self.rng)
        self.objectives.append(self._evidence(self.label))
        value = self.objectives[-1]
        if value > self.value and not self.converged(self.objectives):
            self.best, self.value = Start(self.label, self.odds, np.array(self.objectives), True), value
        return Step(value, {})

    def improve(self) -> None:
        together = (self.label[self.edges.left] == self.label[self.edges.right])[self.edge].astype(np.float64)
        yes, no = Coins.from_answers(self.answers, together, self.prior).logs(self.answers)
        self.odds = _sum_by_pair(self.edge, yes - no, len(self.edges.left))

    def converged(self, objectives: Sequence[float]) -> bool:
        return len(objectives) > 1 and objectives[-1] <= objectives[-2] + MIN_RISE_PER_PAIR * len(self.edges.left)

    def state(self) -> Arrays:
        own = {"odds": self.odds, "objectives": self.objectives, "rng": rng_state(self.rng)}
        return packed(own | {"best": self.best, "value": self.value})

    def restore(self, state: Arrays) -> None:
        E, N = len(self.edges.left), self.answers.n_items
        self.odds, self.objectives = sound(state, "odds", Real("E"), E=E), state["objectives"].tolist()
        self.best, self.value = restored(Start, state, "best.", E=E, N=N), float(state["value"])
        set_rng_state(self.rng, state["rng"])


def evidence(answers: PairAnswers, edges: Edges, edge: Ints, label: Ints, prior: Floats) -> float:
    """Log-evidence of a clustering: of the answers with the workers integrated out, plus the prior of the clusters."""
    together = label[edges.left] == label[edges.right]
    coins = Coins.from_answers(answers, together[edge].astype(np.float64), prior)
    answered = sum(float((_log_beta(after) - _log_beta(prior[None])).sum()) for after in (coins.alpha, coins.beta))
    return answered + _log_crp(np.unique(label, return_counts=True)[1].astype(np.float64))


def _sum_by_pair(edge: Ints, values: Floats, E: int) -> Floats:
    """(E,) sum of the values of the answers about each pair."""
    return np.asarray(np.bincount(edge, values, minlength=E), np.float64)


def _log_crp(size: Floats) -> float:
    """Log-probability of cluster sizes under a Chinese restaurant process, maximised over its concentration."""
    a, n = 10.0 ** np.linspace(-2, 6, 33), size.sum()
    return float(gammaln(size).sum() + (len(size) * np.log(a) + gammaln(a) - gammaln(a + n)).max())


def _log_beta(counts: Floats) -> Floats:
    return np.asarray(gammaln(counts).sum(1) - gammaln(counts.sum(1)))


def _partition(edges: Edges, odds: Floats, n: int) -> Ints:
    """(n,) clusters: items joined by links in descending order of log-odds, then improved by local search."""
    from ..kernels.fast.links import join

    label = np.arange(n)
    positive = np.flatnonzero(odds > 0)
    order = positive[np.argsort(-odds[positive], kind="stable")]
    follow, last, weight = np.full(n, -1, np.int64), np.arange(n), odds[edges.edge]
    join(order, edges.left, edges.right, edges.ptr, edges.other, weight, label, follow, last, np.ones(n, np.int64))
    return _move_items(edges, weight, label)


def _move_items(edges: Edges, weight: Floats, label: Ints) -> Ints:
    """(n,) clusters after local search: each item moves to the cluster with the highest total log-odds of its links."""
    from ..kernels.fast.links import move

    label, members, free, n_free = _label_buffers(label)
    score, seen = _score_buffers(edges)
    for _ in range(MAX_MOVE_ROUNDS):
        moved, n_free = move(edges.ptr, edges.other, weight, label, members, score, seen, free, n_free)
        if not moved:
            break
    return _split_disconnected(edges, label)


def _split_disconnected(edges: Edges, label: Ints) -> Ints:
    """(n,) clusters, split into their connected components."""
    inside = label[edges.left] == label[edges.right]
    return components(edges.left[inside], edges.right[inside], len(label))


def _search(edges: Edges, odds: Floats, n: int, rng: np.random.Generator) -> Ints:
    """(n,) best of several clusterings: joined by `_partition`, and local searches from samples around it."""
    best = _partition(edges, odds, n)
    weight, value = odds[edges.edge], _total_odds(edges, odds, best)
    sampler = ClusterSampler(edges, weight, best)
    for _ in range(SEARCHES):
        for _ in range(ROUNDS_PER_SEARCH):
            sampler.step(rng)
        label = _move_items(edges, weight, sampler.label)
        if _total_odds(edges, odds, label) > value:
            best, value = label, _total_odds(edges, odds, label)
    return best


def _total_odds(edges: Edges, odds: Floats, label: Ints) -> float:
    """Sum of the log-odds of all pairs within clusters."""
    return float(odds[label[edges.left] == label[edges.right]].sum())


class ClusterSampler:
    """Gibbs sampler over clusterings."""

    def __init__(self, edges: Edges, weight: Floats, label: Ints) -> None:
        self.edges, self.weight = edges, weight
        self.label, self.members, self.free, self.n_free = _label_buffers(label)
        self.room, self.alone = _score_buffers(edges), np.zeros(len(label))
        self.mark, self.stack = np.empty(len(label), np.int64), np.empty(len(label) + 1, np.int64)

    def step(self, rng: np.random.Generator) -> None:
        """Sample the cluster of every item once, given those of all others."""
        from ..kernels.fast.links import draw

        uniform, (score, seen) = rng.random(len(self.label)), self.room
        given = self.edges.ptr, self.edges.other, self.weight, self.label, self.members
        self.n_free = draw(*given, score, seen, self.free, self.n_free, uniform, self.alone, self.mark, self.stack)


def _label_buffers(label: Ints) -> tuple[Ints, Ints, Ints, int]:
    """Return a copy of the labels, the number of items with each label, and a stack of the unused labels."""
    n = len(label)
    members = np.bincount(label, minlength=n)
    unused = np.flatnonzero(members == 0)
    free = np.zeros(n + 1, np.int64)
    free[: len(unused)] = unused
    return label.copy(), members, free, len(unused)


def _score_buffers(edges: Edges) -> tuple[Floats, Ints]:
    most = int(np.diff(edges.ptr).max(initial=0)) + 1
    return np.empty(most), np.empty(most, np.int64)


def _match_prior(edges: Edges, odds: Floats, wanted: float, n: int) -> tuple[float, Ints]:
    """Find the shift of all log-odds, by bisection, that puts `wanted` pairs together; return it and the clusters."""
    low, high = -MAX_PRIOR_SHIFT, MAX_PRIOR_SHIFT
    best: tuple[float, float, Ints] = (np.inf, 0.0, np.arange(n))
    for _ in range(BISECTION_STEPS):
        shift = 0.5 * (low + high)
        label = _partition(edges, odds + shift, n)
        got = float((label[edges.left] == label[edges.right]).sum())
        if abs(got - wanted) < best[0]:
            best = (abs(got - wanted), shift, label)
        low, high = (shift, high) if got < wanted else (low, shift)
    return best[1], best[2]


def _sample_clusterings(edges: Edges, odds: Floats, label: Ints, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """(E,) share of sampled clusterings in which each asked pair is together, and (n,) in which each item is alone."""
    sampler, together = ClusterSampler(edges, odds[edges.edge], label), np.zeros(len(edges.left))
    for _ in range(BURN_IN_ROUNDS):
        sampler.step(rng)
    sampler.alone[:] = 0
    for _ in range(SAMPLING_ROUNDS):
        sampler.step(rng)
        together += sampler.label[edges.left] == sampler.label[edges.right]
    return (together + 0.5) / (SAMPLING_ROUNDS + 1), (sampler.alone + 0.5) / (SAMPLING_ROUNDS + 1)


def _move_to_likeliest(edges: Edges, label: Ints, p: Floats, p_alone: Floats) -> Ints:
    """(n,) clusters after moving items to the cluster with the highest mean probability of their links."""
    label = label.copy()
    for _ in range(MAX_MOVE_ROUNDS):
        own, _, chance = _cluster_probabilities(edges, label, p, p_alone)
        wrong = np.flatnonzero(chance > own)
        if not len(wrong):
            break
        for i in wrong.tolist():  # one by one, because two items may move to each other's cluster
            links = slice(edges.ptr[i], edges.ptr[i + 1])
            linked, at = np.unique(label[edges.other[links]], return_inverse=True)
            mean = np.bincount(at, p[links]) / np.bincount(at)
            here = mean[linked == label[i]]
            if mean.max() > (here[0] if len(here) else p_alone[i]):
                label[i] = linked[mean.argmax()]
        label = _split_disconnected(edges, label)
    return label


def _cluster_probabilities(edges: Edges, label: Ints, p: Floats, p_alone: Floats) -> tuple[Floats, Ints, Floats]:
    """(n,) probability of each item's own cluster, its most likely other cluster, and the probability of that.

    The probability of a cluster is the mean over the item's links to it; the probability of being alone is estimated
    from the sampled clusterings.
    """
    n = len(label)
    item = np.repeat(np.arange(n), np.diff(edges.ptr))
    key, at = np.unique(item * n + label[edges.other], return_inverse=True)
    (member, cluster), mean = divmod(key, n), np.bincount(at, p) / np.bincount(at)
    inside = cluster == label[member]
    own = p_alone.copy()
    own[member[inside]] = mean[inside]
    outside = np.flatnonzero(~inside)
    order = outside[np.lexsort((mean[outside], member[outside]))]  # the most likely cluster of an item comes last
    second, chance = label.copy(), np.zeros(n)
    second[member[order]], chance[member[order]] = cluster[order], mean[order]
    return own, second, chance


def _item_clusters(edges: Edges, label: Ints, together: Floats, p_alone: Floats) -> tuple[Ints, Floats]:
    """(n, 2) own and second most likely cluster of each item, and their probabilities; cluster 0 is the largest."""
    p = together[edges.edge]
    cluster = by_size(_move_to_likeliest(edges, label, p, p_alone))
    own, second, chance = _cluster_probabilities(edges, cluster, p, p_alone)
    chance = np.minimum(chance, np.minimum(own, 1 - own))
    return np.column_stack([cluster, second]), np.column_stack([own, chance])
