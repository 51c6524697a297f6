"""Workers who copy each other: how much pairs of workers agree beyond the truth, and sets of workers who do.

P_j(l | k) are the confusion matrices and q the posteriors of a fit, without the contribution of the task itself. For a
pair of workers with m common tasks, let A be the number of agreements and E the number expected if they answer
independently given the truth, which is judged without both of them. Agreement by habit counts as expected: E is at
least the agreement of random answers with the workers' label shares. Then
    (1)  r = (A - E) / (m - E)
estimates the probability of copying: it is 0 for independent workers, however good, and 1 for exact copies, even if
these dominate the posterior. Sets of workers whose agreements are improbable under independence are candidates, found
from the strongest pair and from leading eigenvectors of the standardised agreements. A candidate is accepted if after
a fit in which its members share one vote (eq 2) r is still at least the limit, the evidence exceeds a penalty for the
number of sets that could have been found, and its members are not simply better than the others.
    (2)  weight of an answer of cluster g = 1 / (1 + r_g (c - 1)),    c = answers of the cluster to that task
docs/maths/dependence.md has the derivations and figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import Run
from ..kernels.layout import Bools, Floats, Ints, weighted_counts
from ..kernels.special import softmax
from .sampled import MIN_RELEVANT, Fit, answer_pairs, by_class, fit, label_shares

if TYPE_CHECKING:
    from .pooled import Pooled

FIRM_ANCHOR = 0.4  # anchor of fits that must not be dominated by copies
MAX_ROUNDS, MAX_CANDIDATES, MAX_STEPS, EIGENVECTORS = 6, 4, 40, 3
EIGEN_ITERATIONS = 40
FIRST_RATE = 0.8  # copying rate with which a candidate is first merged
LATER_LIMIT = 0.1  # how much lower the limit is once a cluster has been found
REPORTED_RATE = 0.3  # groups above this rate are reported even if they are not merged
FALSE_ALARM = 0.01
MIN_PAIR_TASKS, MIN_PAIRS = 10, 10  # for the overdispersion of agreements
MIN_COMMON_TASKS = 3  # of pairs of workers, without which copies are not looked for
EXPERT_MARGIN, CHANCE_MARGIN = 0.05, 0.05
MAX_SHARE = 0.5  # of the answers, of a cluster
CLIP = 1e-3  # agreements are expected with probabilities between this and 1 minus this


class Pairs(NamedTuple):
    """Pairs of workers with common tasks, sorted."""

    first: Ints  # (P,)
    second: Ints
    shared: Floats  # m
    agree: Floats  # A
    expected: Floats  # E

    def only(self, keep: Bools) -> Pairs:
        """Return some of the pairs."""
        return Pairs(
            self.first[keep], self.second[keep], self.shared[keep], self.agree[keep], self.expected[keep]
        )  # fmt: skip


class Search:
    """The search for copies; fits are kept by anchor until the clusters change."""

    def __init__(self, model: Pooled, sample: Labels, run: Run) -> None:
        self.model, self.sample, self.run = model, sample, Run(seed=run.seed, threads=run.threads)
        self.cluster, self.rates = np.full(sample.n_workers, -1, np.int32), list[float]()
        self.seen: dict[tuple[int, ...], float] = {}  # candidates that were not merged, and their rates
        self._fits: dict[float, Fit] = {}

    def fit(self, anchor: float) -> Fit:
        if anchor not in self._fits:
            self._fits[anchor] = fit(self.model, self.sample, self.run, anchor, self.cluster, self.rates)
        return self._fits[anchor]

    def find_copies(self) -> None:
        """Merge clusters of copies until no further one is found."""
        for _ in range(MAX_ROUNDS):
            found = [set_ for anchor in (0.0, FIRM_ANCHOR) for set_ in self._candidates(self.fit(anchor))]
            new = [set_ for set_ in dict.fromkeys(found) if set_ not in self.seen][:MAX_CANDIDATES]
            accepted = sorted(((*self._tested(set_), set_) for set_ in new), reverse=True)
            before = len(self.rates)
            for gain, rate, members in accepted:
                if gain > 0 and (self.cluster[list(members)] < 0).all():
                    self.cluster[list(members)] = len(self.rates)
                    self.rates.append(rate)
            if len(self.rates) == before:
                return
            self._fits.clear()

    def groups(self) -> tuple[Ints, Floats]:
        """Return groups (W,) of workers who agree beyond the crowd but were not merged, and their rates."""
        group, rates = np.full(self.sample.n_workers, -1, np.int32), list[float]()
        for members, rate in sorted(self.seen.items(), key=lambda item: (-item[1], item[0])):
            some = list(members)
            if rate >= REPORTED_RATE and (group[some] < 0).all() and (self.cluster[some] < 0).all():
                group[some] = len(rates)
                rates.append(rate)
        return group, np.array(rates)

    def _candidates(self, of: Fit) -> list[tuple[int, ...]]:
        pairs = pair_agreement(of)
        expected = _expected(pairs, self.cluster)
        free = self.cluster < 0
        keep = free[pairs.first] & free[pairs.second]
        some = pairs.only(keep)
        e = expected[keep]
        sets = [*_strongest(some, e, len(free)), *_leading(some, e, len(free))]
        grown = (_grown(some, e, members, free) for members in sets)
        return [members for members in grown if len(members) > 1]

    def _tested(self, members: tuple[int, ...]) -> tuple[float, float]:
        """Return the evidence for a candidate beyond its penalty, and its rate; the evidence is negative unless it is
        to be merged."""
        W, some = self.sample.n_workers, np.array(members)
        own = np.isin(self._worker, some)
        if own.mean() > MAX_SHARE:
            self.seen[members] = 0.0
            return -1.0, 0.0
        cluster, rate = self.cluster.copy(), FIRST_RATE
        cluster[some] = len(self.rates)
        for _ in range(2):
            merged = fit(self.model, self.sample, self.run, FIRM_ANCHOR, cluster, [*self.rates, rate])
            pairs = pair_agreement(merged)
            e = _expected(pairs, cluster)
            inside = np.isin(pairs.first, some) & np.isin(pairs.second, some)
            m, A, E = pairs.shared[inside].sum(), pairs.agree[inside].sum(), (pairs.shared * e)[inside].sum()
            evidence, found = _evidence(A, m, E / max(m, 1e-9))
            rate = float(found)
            if rate < REPORTED_RATE:
                break
        spread_ = _overdispersion(pairs, e, cluster)
        alarm = np.log(1 / FALSE_ALARM) if not self.rates else 0.0
        gain = float(evidence) / spread_ - _penalty(len(some), W) - alarm
        limit = self.model.copying - (LATER_LIMIT if self.rates else 0.0)
        if gain > 0 and rate >= limit and not self._better(own):
            return gain, rate
        self.seen[members] = rate if gain > 0 else 0.0
        return -1.0, rate

    def _better(self, own: Bools) -> bool:
        """Return whether the answers marked (N,) agree with those of other workers better than these do among
        themselves, so that their workers may be experts; also if the others cannot tell."""
        rest = self.sample.take(~own)
        others = fit(self.model, rest, self.run, FIRM_ANCHOR, self.cluster, self.rates)
        task, _, label = self.sample.codes()
        answered = np.isin(others.task, task[own])
        if not answered.any():
            return True
        of_set = softmax(others.scores)[task[own], label[own]].mean()
        alone = softmax(others.scores[others.task] - others.logs)[np.arange(len(others.task)), others.label]
        of_others = alone[answered].mean()
        chance = (label_shares(self.sample) ** 2).sum()
        return bool(of_set > of_others + EXPERT_MARGIN or of_others < chance + CHANCE_MARGIN)

    @property
    def _worker(self) -> Ints:
        return self.sample.codes()[1]


# ------------------------------------------------------------------------------------------- pairs of workers


def comparable_pairs(sample: Labels) -> int:
    """Return how many pairs of workers share enough tasks to show copying, alone or as part of a ring."""
    a, b = answer_pairs(sample.layout)
    worker = sample.codes()[1].astype(np.int64)
    key = np.minimum(worker[a], worker[b]) * sample.n_workers + np.maximum(worker[a], worker[b])
    return int((np.unique(key[worker[a] != worker[b]], return_counts=True)[1] >= MIN_COMMON_TASKS).sum())


def pair_agreement(of: Fit) -> Pairs:
    """Return common tasks, agreements and expected agreements of all pairs of workers."""
    W = of.sample.n_workers
    a, b = answer_pairs(of.sample.layout)
    different = of.worker[a] != of.worker[b]
    a, b = a[different], b[different]
    without = softmax(of.scores[of.task[a]] - of.logs[a] - of.logs[b])
    relevant = without >= MIN_RELEVANT
    expected, total = np.zeros(len(a)), np.zeros(len(a))
    for each in by_class(of, a, b, relevant):
        q = without[each.pairs, each.k]
        expected[each.pairs] += q * each.agree
        total[each.pairs] += q
    expected /= np.maximum(total, 1e-300)
    low, high = np.minimum(of.worker[a], of.worker[b]), np.maximum(of.worker[a], of.worker[b])
    keys, place = np.unique(low.astype(np.int64) * W + high, return_inverse=True)
    size = len(keys)
    m = np.bincount(place, minlength=size).astype(np.float64)
    agree = weighted_counts(place, of.label[a] == of.label[b], size)
    first, second = keys // W, keys % W
    E = np.maximum(weighted_counts(place, expected, size), m * _by_habit(of, first, second))
    return Pairs(first, second, m, agree, E)


def _by_habit(of: Fit, first: Ints, second: Ints) -> Floats:
    """Return the probability (P,) that random answers with the label shares of two workers agree."""
    layout = of.sample.layout
    given = np.zeros((layout.n_workers, layout.n_classes))
    given[layout.row_worker, layout.row_label] = np.diff(layout.row_ptr)
    given /= np.maximum(given.sum(1, keepdims=True), 1)
    return np.asarray(np.einsum("pl,pl->p", given[first], given[second]))


# --------------------------------------------------------------------------------------------- sets of workers


def _expected(pairs: Pairs, cluster: Ints) -> Floats:
    """Return the probability of agreement (P,) of each pair, including the mean excess of pairs in no cluster."""
    apart = (cluster[pairs.first] != cluster[pairs.second]) | (cluster[pairs.first] < 0)
    m, A, E = pairs.shared, pairs.agree, pairs.expected
    mean = max(0.0, (A - E)[apart].sum() / max((m - E)[apart].sum(), 1e-9))
    return np.asarray(np.clip((E + mean * (m - E)) / m, CLIP, 1 - CLIP))


def _evidence(agree: Any, shared: Any, e: Any) -> tuple[Any, Any]:
    """Return the log-likelihood ratio of copying at its best rate against independence, and that rate, eq (1)."""
    e = np.clip(e, CLIP, 1 - CLIP)
    rate = np.clip((agree / np.maximum(shared, 1e-9) - e) / (1 - e), 0, 1 - CLIP)
    return agree * np.log(rate / e + 1 - rate) + (shared - agree) * np.log1p(-rate), rate


def _penalty(size: Any, n_workers: int) -> Any:
    """Return about the log-number of sets of `size` among all workers, and of sizes."""
    return size * np.log(n_workers / size) + size + np.log(n_workers)


def _strongest(pairs: Pairs, e: Floats, n_workers: int) -> list[list[int]]:
    """Return the pair with the highest rate among those with evidence."""
    if not len(pairs.first):
        return []
    evidence, rate = _evidence(pairs.agree, pairs.shared, e)
    enough = evidence > 2 * np.log(n_workers) - np.log(FALSE_ALARM)
    if not enough.any():
        return []
    best = np.lexsort((-evidence, -np.round(rate, 2), ~enough))[0]
    return [[int(pairs.first[best]), int(pairs.second[best])]]


def _leading(pairs: Pairs, e: Floats, n_workers: int) -> list[list[int]]:
    """Return sets that stand out in the leading eigenvectors of the standardised agreements, both signs."""
    present = np.unique(np.concatenate([pairs.first, pairs.second]))
    if len(present) < 3:
        return []
    m, excess = pairs.shared, pairs.agree - pairs.shared * e
    spread_ = m * e * (1 - e)
    of_worker = weighted_counts(pairs.first, spread_, n_workers) + weighted_counts(pairs.second, spread_, n_workers)
    scale = np.maximum(of_worker[pairs.first] * of_worker[pairs.second], 1e-12) ** 0.25
    sets = []
    for vector in _eigenvectors(pairs, excess / scale, n_workers):
        for sign in (1, -1):
            order = present[np.lexsort((present, -sign * vector[present]))]
            best = _best_prefix(pairs, e, order, n_workers)
            if best:
                sets.append(order[:best].tolist())
    return sets


def _eigenvectors(pairs: Pairs, value: Floats, size: int) -> Floats:
    """Return the leading eigenvectors (EIGENVECTORS, W) of a symmetric matrix, by subspace iteration."""
    degree = weighted_counts(pairs.first, np.abs(value), size) + weighted_counts(pairs.second, np.abs(value), size)
    shift = degree.max(initial=0.0)  # no eigenvalue is below minus this
    basis = np.cos(np.outer(np.arange(1, EIGENVECTORS + 1), np.arange(size) + 0.5))  # any start without symmetry
    for _ in range(EIGEN_ITERATIONS):
        moved = [
            weighted_counts(pairs.first, value * v[pairs.second], size)
            + weighted_counts(pairs.second, value * v[pairs.first], size)
            + shift * v
            for v in basis
        ]
        basis = np.linalg.qr(np.array(moved).T)[0].T
    return np.asarray(basis)


def _best_prefix(pairs: Pairs, e: Floats, order: Ints, n_workers: int) -> int:
    """Return how many workers of an order form the set with the most evidence beyond its penalty, 0 for none."""
    place = np.full(n_workers, len(order))
    place[order] = np.arange(len(order))
    last = np.maximum(place[pairs.first], place[pairs.second])
    m, A, E = (
        np.cumsum(weighted_counts(last, column, len(order))) for column in (pairs.shared, pairs.agree, pairs.shared * e)
    )
    size = np.arange(1, len(order) + 1)
    gain = _evidence(A, m, E / np.maximum(m, 1e-9))[0] - _penalty(size, n_workers) + np.log(FALSE_ALARM)
    gain[(size < 2) | (size > 2 * len(order) / 3)] = -1
    best = int(gain.argmax())
    return best + 1 if gain[best] > 0 else 0


def _grown(pairs: Pairs, e: Floats, members: list[int], free: Bools) -> tuple[int, ...]:
    """Drop workers who do not fit into a set, and add those who do, by the evidence of their pairs with the set."""
    W = len(free)
    inside = np.zeros(W, bool)
    inside[members] = True
    threshold = np.log(W)
    for _ in range(MAX_STEPS):
        both = inside[pairs.first] & inside[pairs.second]
        m, A, E = pairs.shared[both].sum(), pairs.agree[both].sum(), (pairs.shared * e)[both].sum()
        if m == 0:
            break
        rate = np.clip((A - E) / max(m - E, 1e-9), 0, 1 - CLIP)
        own = pairs.agree * np.log(rate / e + 1 - rate) + (pairs.shared - pairs.agree) * np.log1p(-rate)
        fits = weighted_counts(pairs.first, own * inside[pairs.second], W)
        fits += weighted_counts(pairs.second, own * inside[pairs.first], W)
        least = int(np.where(inside, fits, np.inf).argmin())
        most = int(np.where(free & ~inside, fits, -np.inf).argmax())
        if fits[least] < threshold and inside.sum() > 2:
            inside[least] = False
        elif free[most] and not inside[most] and fits[most] > threshold + 1:
            inside[most] = True
        else:
            break
    return tuple(np.flatnonzero(inside).tolist())


def _overdispersion(pairs: Pairs, e: Floats, cluster: Ints) -> float:
    """Return the variance of standardised agreements of pairs in no cluster, from their lower half; at least 1."""
    some = (pairs.shared >= MIN_PAIR_TASKS) & (cluster[pairs.first] < 0) & (cluster[pairs.second] < 0)
    if some.sum() < MIN_PAIRS:
        return 1.0
    m, A, e = pairs.shared[some], pairs.agree[some], e[some]
    z = (A - m * e) / np.sqrt(m * e * (1 - e))
    middle = np.median(z)
    return float(max(1.0, (1.4826 * np.median(middle - z[z <= middle])) ** 2))
