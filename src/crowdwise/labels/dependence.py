"""How far answers to a task depend on each other beyond the truth: copies, shared errors, and answers at chance.

All of it is estimated from fits of a model with confusion matrices to the answers, or to a sample of whole tasks of a
large table. P_j(l | k) are the matrices and q the posteriors of a fit, without the contribution of the task itself.

*Copies.* For a pair of workers with m common tasks, let A be the number of agreements and E the number expected if they
answer independently given the truth, which is judged without both of them. Agreement by habit counts as expected: E is
at least the agreement of random answers with the workers' label shares. Then
    (1)  r = (A - E) / (m - E)
estimates the probability of copying: it is 0 for independent workers, however good, and 1 for exact copies, even if
these dominate the posterior. Sets of workers whose agreements are improbable under independence are candidates, found
from the strongest pair and from leading eigenvectors of the standardised agreements. A candidate is accepted if after
a fit in which its members share one vote (eq 2) r is still at least the limit, the evidence exceeds a penalty for the
number of sets that could have been found, and its members are not simply better than the others.
    (2)  weight of an answer of cluster g = 1 / (1 + r_g (c - 1)),    c = answers of the cluster to that task

*Shared errors.* Let x_ab be 1 if answers a and b to a task agree, minus its expectation given class k. Under the model,
products x_ab x_cd over four different workers have expectation 0 given k. Their mean, relative to U (1 - U), U the
share of disagreeing pairs,
    (3)  excess = mean over tasks of sum_k q[i, k] * mean of x_ab x_cd,  / (U (1 - U))
is the variance between tasks of the chance that two answers agree: it is positive if some tasks mislead many workers.
    (4)  x = clip(t excess / 0.03 + 1 - t, 0, 1),     t = 0.08^2 / (0.08^2 + error^2)
t is the trust in the estimate: 0.08 is the standard deviation of the excess between real datasets. With fewer than 20
tasks that have four answers, t = 0 and x = 1: as long as nothing is known, errors count as shared.

*Chance.* z combines the agreement of pairs of answers with how well answers are predicted by the others (leave-one-out)
beyond label shares:
    (5)  trust = clip((z - 1) / 3, 0, 1)
docs/maths/dependence.md has the derivations and figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import Executor, Run
from ..kernels.layout import Bools, Floats, Ints, Layout, weighted_counts
from ..kernels.plain import cavity_logs, sum_rows
from ..kernels.special import softmax
from .shard import Shard, spread

if TYPE_CHECKING:
    from .pooled import Pooled

MAX_SAMPLE_ANSWERS = 30_000
MAX_SAMPLE_PAIRS = 150_000  # pairs of answers to one task
MAX_PAIR_CELLS = 6_000_000  # pairs x classes
MAX_TASK_ANSWERS = 60  # answers of a task that are paired
MAX_ITERATIONS, TOLERANCE = 25, 1e-3  # of a fit to the sample
MAX_ANCHOR = 0.4  # anchor of fits that must not be dominated by copies
MIN_RELEVANT = 0.01  # probability from which a class matters to a pair of answers
EXCESS_SCALE = 0.03  # excess at which errors count as fully shared, eq (4)
EXCESS_SPREAD = 0.08  # standard deviation of the excess between real datasets, eq (4)
MIN_TASKS = 20  # tasks with two answers from which anything is estimated; with four, from which the excess is
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


class Found(NamedTuple):
    """What was found about the dependence between answers."""

    anchor: float  # weight h of the vote in the fit
    shared: float  # x of eq (4)
    trust: float  # of eq (5)
    excess: float  # of eq (3)
    error: float  # its standard error; infinite if the excess is not known
    cluster: Ints  # (W,) cluster of copies of each worker, or -1
    copying: Floats  # (G,) rate r of each cluster
    group: Ints  # (W,) group that agrees beyond the crowd, or -1; its answers count fully
    agreeing: Floats  # rate r of each group
    alone: float = 0.0  # 1 if no task has answers of two workers
    a: Floats | None = None  # (K, K) pseudo-counts of the crowd in a free fit to the sample: a start for others


def independent(n_workers: int, anchor: float) -> Found:
    """Return what to assume if nothing is known."""
    none = np.full(n_workers, -1, np.int32)
    return Found(anchor, 1.0, 1.0, 0.0, np.inf, none, np.zeros(0), none, np.zeros(0))


def sample_of(answers: Any, shards: Executor[Shard]) -> Labels:
    """Return the answers, or whole tasks of a large table, chosen by a hash of their ids."""
    pairs, n_classes = sum(shards.each(_count_pairs)), max(answers.n_classes, 1)
    most = min(MAX_SAMPLE_PAIRS, MAX_PAIR_CELLS // n_classes)
    step = max(1, -(-answers.n_answers // MAX_SAMPLE_ANSWERS), -(-pairs // most))
    if not answers.in_parts:
        return answers.only(chosen_tasks(answers, step))  # type: ignore[no-any-return]
    return joined(answers, list(shards.each(task_sample, step)))


def joined(answers: Any, parts: list[Any]) -> Labels:
    """Return samples of tasks of all parts of a table as one table."""
    starts = np.cumsum([0, *(len(part.gold) for part in parts)])
    task = np.concatenate([part.task + start for part, start in zip(parts, starts[:-1], strict=True)]).astype(np.int32)
    worker, label = (np.concatenate([getattr(part, of) for part in parts]) for of in ("worker", "label"))
    return answers.sample(task, worker, label, np.concatenate([part.gold for part in parts]))  # type: ignore[no-any-return]


class TaskSample(NamedTuple):
    """Some tasks of a shard with their answers; workers are those of the whole table."""

    task: Ints  # (N,) numbered from 0
    worker: Ints
    label: Ints
    gold: Ints  # (T,)


def task_sample(shard: Shard, local: Any, step: int) -> TaskSample:
    """Return about one in `step` tasks of a shard."""
    some = shard.answers.only(chosen_tasks(shard.answers, step))
    task, worker, label = some.codes()
    return TaskSample(task, shard.whole_workers()[worker].astype(np.int32), label, some.gold)


def chosen_tasks(answers: Labels, step: int) -> Ints:
    """Return the numbers of about one in `step` tasks."""
    return np.arange(answers.n_tasks) if step == 1 else np.flatnonzero(answers.task_keys.to_numpy() % step == 0)


def _count_pairs(shard: Shard, local: Any) -> int:
    n = np.minimum(np.diff(shard.layout.task_ptr), MAX_TASK_ANSWERS).astype(np.int64)
    return int((n * (n - 1)).sum() // 2)


class Fit(NamedTuple):
    """A fit to the sample, by answer in task order."""

    sample: Labels
    params: Any
    Z: Floats  # (T, K) posterior
    U: Floats  # (T, K) mixture with the anchor, with which counts were summed
    weight: Floats | None  # (N,)
    task: Ints  # (N,), as the others
    worker: Ints
    label: Ints
    logs: Floats  # (N, K) log-factors without the contribution of the task
    scores: Floats  # (T, K) their sums with the log-prior


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


def assess(model: Pooled, sample: Labels, run: Run) -> Found:
    """Return how far the answers of a sample depend on each other."""
    shared = int((sample.answers_per_task > 1).sum())
    if sample.n_classes < 2 or shared < MIN_TASKS:
        alone = float(sample.n_classes > 1 and shared == 0)
        unknown = independent(sample.n_workers, MAX_ANCHOR if model.anchor is None else model.anchor)
        return unknown._replace(alone=alone)
    search = _Search(model, sample, run)
    if model.copying < 1 and _comparable_pairs(sample) >= MIN_PAIRS:
        search.find_copies()
    free = search.fit(0.0)
    excess, error = shared_errors(free, search.cluster)
    trust = _trust(free)
    x = shared_share(excess, error)
    x = max(x, 1 - trust)
    anchor = MAX_ANCHOR * x if model.anchor is None else model.anchor
    rates = np.array(search.rates)
    return Found(
        anchor, x, trust, excess, error, search.cluster, rates, *search.groups(), 0.0, free.params.a
    )  # fmt: skip


class _Search:
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
            found = [set_ for anchor in (0.0, MAX_ANCHOR) for set_ in self._candidates(self.fit(anchor))]
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
            merged = fit(self.model, self.sample, self.run, MAX_ANCHOR, cluster, [*self.rates, rate])
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
        others = fit(self.model, rest, self.run, MAX_ANCHOR, self.cluster, self.rates)
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


def fit(model: Pooled, sample: Labels, run: Run, anchor: float, cluster: Ints, rates: list[float]) -> Fit:
    """Fit the model to a sample, with a given anchor and given clusters of copies."""
    crowd, shards = spread(sample, run)
    given = independent(sample.n_workers, anchor)._replace(cluster=cluster, copying=np.array(rates))
    learnt = model.learn_given(given, sample, crowd, shards, run.begin(), max_iter=MAX_ITERATIONS, tol=TOLERANCE)
    params = learnt.params
    shard, local = next(iter(shards.each(_both)))
    Z = local.Z.astype(np.float64)
    shard, U = model.fitted_with(shard, params, Z.copy())
    task, worker, label = sample.codes()
    logs = cavity_logs(shard.layout, params.counts, params.totals, params.a, U, shard.weight)
    prior = np.log(params.n + 1) - np.log(params.n.sum() + sample.n_classes)
    return Fit(
        sample, params, Z, U, shard.weight, task, worker, label, logs,
        sum_rows(shard.layout.task_ptr, np.arange(len(logs)), logs) + prior,
    )  # fmt: skip


def _both(shard: Any, local: Any) -> tuple[Any, Any]:
    return shard, local


def label_shares(sample: Labels) -> Floats:
    """Return the share of each label among all answers (K,)."""
    rows = sample.row_table
    counts = weighted_counts(rows.row_label, np.diff(sample.layout.row_ptr), sample.n_classes)
    return np.asarray(counts / max(counts.sum(), 1))


# ------------------------------------------------------------------------------------------- pairs of answers


class _Class(NamedTuple):
    """Pairs of answers to tasks that may be of class k, and the probability of agreement if they are."""

    k: int
    pairs: Ints  # numbers of the pairs
    agree: Floats  # probability


def _answer_pairs(layout: Layout) -> tuple[Ints, Ints]:
    """Return pairs of answers to the same task, by position in task order; at most MAX_TASK_ANSWERS per task."""
    n = np.diff(layout.task_ptr)
    place = np.arange(layout.n_answers) - np.repeat(layout.task_ptr[:-1], n)
    later = np.maximum(np.minimum(np.repeat(n, n), MAX_TASK_ANSWERS) - 1 - place, 0)
    first = np.repeat(np.arange(layout.n_answers), later)
    step = np.arange(len(first)) - np.repeat(np.cumsum(later) - later, later)
    return first, first + 1 + step


def _by_class(of: Fit, a: Ints, b: Ints, relevant: Bools) -> Iterator[_Class]:
    """Yield the probability that the answers a and b (P,) agree, for every class that is `relevant` (P, K)."""
    layout, params = of.sample.layout, of.params
    W, K = layout.n_workers, layout.n_classes
    for k in range(K):
        pairs = np.flatnonzero(relevant[:, k])
        x, y = a[pairs], b[pairs]
        table = np.zeros((W, K))
        table[layout.row_worker, layout.row_label] = params.counts[:, k]
        table += params.a[k]
        share = of.U[of.task, k] if of.weight is None else of.U[of.task, k] * of.weight
        u, v, lx, ly = share[x], share[y], of.label[x], of.label[y]
        wx, wy = of.worker[x], of.worker[y]
        dot = np.einsum("pl,pl->p", table[wx], table[wy])
        dot += -u * table[wy, lx] - v * table[wx, ly] + u * v * (lx == ly)
        below = table.sum(1)
        yield _Class(k, pairs, np.clip(dot / ((below[wx] - u) * (below[wy] - v)), 0, 1))


def _comparable_pairs(sample: Labels) -> int:
    """Return how many pairs of workers share enough tasks to show copying, alone or as part of a ring."""
    a, b = _answer_pairs(sample.layout)
    worker = sample.codes()[1].astype(np.int64)
    key = np.minimum(worker[a], worker[b]) * sample.n_workers + np.maximum(worker[a], worker[b])
    return int((np.unique(key[worker[a] != worker[b]], return_counts=True)[1] >= MIN_COMMON_TASKS).sum())


def pair_agreement(of: Fit) -> Pairs:
    """Return common tasks, agreements and expected agreements of all pairs of workers."""
    W = of.sample.n_workers
    a, b = _answer_pairs(of.sample.layout)
    different = of.worker[a] != of.worker[b]
    a, b = a[different], b[different]
    without = softmax(of.scores[of.task[a]] - of.logs[a] - of.logs[b])
    relevant = without >= MIN_RELEVANT
    expected, total = np.zeros(len(a)), np.zeros(len(a))
    for each in _by_class(of, a, b, relevant):
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


# ------------------------------------------------------------------------------------- shared errors and chance


def shared_errors(of: Fit, cluster: Ints) -> tuple[float, float]:
    """Return the excess of eq (3) and its standard error, infinite if too few tasks have four answers."""
    layout = of.sample.layout
    T, N = layout.n_tasks, layout.n_answers
    kept = _one_per_cluster(of, cluster)
    a, b = _answer_pairs(layout)
    some = kept[a] & kept[b] & (of.worker[a] != of.worker[b])
    a, b = a[some], b[some]
    task, same = of.task[a], of.label[a] == of.label[b]
    pairs = np.bincount(task, minlength=T)
    n = (1 + np.sqrt(1 + 8 * pairs)) / 2  # answers that were paired
    if (n >= 4).sum() < MIN_TASKS:
        return 0.0, np.inf
    product, weight = np.zeros(T), np.zeros(T)
    for each in _by_class(of, a, b, of.Z[task] >= MIN_RELEVANT):
        i, x, y = task[each.pairs], a[each.pairs], b[each.pairs]
        rest = same[each.pairs] - each.agree
        of_answer = weighted_counts(x, rest, N) + weighted_counts(y, rest, N)
        squares = weighted_counts(of.task, of_answer**2, T)
        disjoint = weighted_counts(i, rest, T) ** 2 - squares + weighted_counts(i, rest**2, T)
        q = np.where(np.bincount(i, minlength=T) > 0, of.Z[:, each.k], 0)
        product += q * disjoint
        weight += q
    several = (n >= 4) & (weight > 0)
    n, differ = n[several], 1 - (weighted_counts(task, same, T) / np.maximum(pairs, 1))[several].mean()
    value = (product / np.maximum(weight, 1e-300))[several] / (n * (n - 1) * (n - 2) * (n - 3) / 4)
    scale = differ * (1 - differ)
    if scale < CLIP**2:
        return 0.0, np.inf
    return float(value.mean() / scale), float(value.std() / np.sqrt(len(value)) / scale)


def shared_share(excess: float, error: float) -> float:
    """Eq (4)."""
    trusted = 0.0 if np.isinf(error) else EXCESS_SPREAD**2 / (EXCESS_SPREAD**2 + error**2)
    return float(np.clip(trusted * excess / EXCESS_SCALE + 1 - trusted, 0, 1))


def _one_per_cluster(of: Fit, cluster: Ints) -> Bools:
    """Return a mask (N,) of answers with one answer per task and cluster of copies."""
    own = cluster[of.worker]
    kept = own < 0
    members = np.flatnonzero(~kept)
    _, first = np.unique(of.task[members].astype(np.int64) * (cluster.max() + 1) + own[members], return_index=True)
    kept[members[first]] = True
    return kept


def _trust(of: Fit) -> float:
    """Eq (5)."""
    layout = of.sample.layout
    T, K = layout.n_tasks, layout.n_classes
    n = np.diff(layout.task_ptr)
    votes = weighted_counts(of.task * K + of.label, np.ones(len(of.task)), T * K).reshape(T, K)
    several = n > 1
    agree = (votes * (votes - 1)).sum(1)[several] / (n * (n - 1))[several]
    by_pairs = (agree.mean() - 1 / K) / max(agree.std() / np.sqrt(len(agree)), 1e-9)
    q = softmax(of.scores[of.task] - of.logs)
    gain = q[np.arange(len(q)), of.label] - q @ label_shares(of.sample)
    of_task = weighted_counts(of.task, np.where(several[of.task], gain, 0), T)
    predicted = of_task.sum() / np.sqrt(max((of_task**2).sum(), 1e-12))
    return float(np.clip(((by_pairs + predicted) / 2 - 1) / 3, 0, 1))
