"""Groups: workers fall into a few groups, and those of one group confuse classes alike.

    (1)  z_i ~ Categorical(rho), rho ~ Dirichlet(1)      (2)  g_j ~ Categorical(alpha), alpha ~ Dirichlet(1)
    (3)  l | z_i = k, g_j = m ~ Categorical(beta[m, k])  (4)  beta[m, k] ~ Dirichlet(b[k]),  b = 0.5, 2.5 where l = k
so that, before much is known, people are rather right than wrong. Variational Bayes with q(z) q(g) q(rho) q(alpha)
q(beta); E is the expected logarithm under a Dirichlet, psi(prior + count) - psi(their sum):
    (5)  q[i, k] ~ exp(E log rho[k]) * product over answers n of i of exp(sum_m s[j, m] E log beta[m, k, l])
    (6)  s[j, m] ~ exp(E log alpha[m] + sum over k, l of C[j, k, l] E log beta[m, k, l])
    (7)  counts of alpha[m]: sum_j s[j, m];  of beta[m, k, l]: sum_j s[j, m] C[j, k, l]
with C[j, k, l] = sum over j's answers n saying l of q[task_n, k]. The bound that climbs:
    (8)  sum_i log(normaliser of (5)) - KL of rho, alpha and beta - sum_jm s[j, m] (log s[j, m] - E log alpha[m])
The climb starts from the posterior that one matrix for all finds (`tied`, which is this model with one group). There
workers are parted: mixtures of several sizes are fitted to C, from several starts, and the one of the highest bound is
gone on with. A worker's own matrix is the mixture of group matrices by s. Derivation in docs/maths/groups.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import Executor, register
from ..engine.model import SOME_COUNT, Rule, setting
from ..errors import DataError
from ..kernels import TINY
from ..kernels.layout import Floats, Ints, RowTable, WorkerRows
from ..kernels.special import digamma, dirichlet_kl, softmax
from ..result import Grouping
from ..result.groups import mixture, so_far
from .confusions import SharesByBayes, Stats
from .shard import Crowd, Shard

ANY, RIGHT = 0.5, 2.0  # answers of each label that every row of a matrix starts with, and right ones besides
TIED = 8  # sweeps with one matrix, before workers are parted
MOST = 6  # groups that are tried
STARTS = 5  # of each number of groups
PARTING = 30  # steps (6) and (7) of each, at most
SETTLED = 1e-4  # largest move of s that ends them
INNER = 1  # steps (6) and (7) in a sweep
SAMPLE = 4000  # workers, the busiest, by which they are parted
CELLS = 1 << 22  # numbers in their matrices, at most
SHRUNK = 2.0  # answers of the crowd in every row of a worker's matrix, where workers are compared


class Params(NamedTuple):
    n: Floats  # (K,)       expected tasks of each class
    member: Floats  # (W, M)     s
    counts: Floats  # (M, K, K)  of beta
    rows: Floats  # (R, K)     the factors of eq (5)
    bound: Floats  # ()         eq (8) without the terms of tasks and classes


class Mixture(NamedTuple):
    """Groups of workers, given the expected answers of each."""

    member: Floats  # (W, M)
    counts: Floats  # (M, K, K)
    logs: Floats  # (M, K, K) E log beta
    bound: float  # of alpha, beta and the groups of workers
    fit: float  # expected log-likelihood of the answers


@register("groups", "groups of workers who err alike, found together with their number, by variational Bayes")
@dataclass(frozen=True, kw_only=True)
class Groups(SharesByBayes):
    """A confusion matrix for every group of workers: for many workers with few answers each."""

    params_type = Params
    off = (-6.2, 0.0)
    groups: int | None = setting(None, SOME_COUNT, "Number of groups; None lets the bound decide.")

    def begin(self, crowd: Crowd, shards: Executor[Shard]) -> Stats:
        """From soft votes, some iterations with one matrix for all."""
        stats = self.from_votes(shards)
        for _ in range(TIED):
            stats = shards.update(self.warm, self.tied(crowd, stats)).stats
        return stats

    def tied(self, crowd: Crowd, stats: Stats) -> Any:
        """Parameters with one matrix for all workers."""
        alone = np.ones((crowd.rows.n_workers, 1))
        counts = crowd.kernels.group_counts(crowd.rows, stats.counts, alone, crowd.threads)
        rows = crowd.kernels.group_rows(crowd.rows, alone, _row_logs(counts), crowd.dtype, crowd.threads)
        return Params(stats.shares, alone, counts, rows, np.zeros(()))

    def maximise(self, crowd: Crowd, stats: Stats, params: Params | None) -> Params:
        member = part(crowd, stats.counts, self.groups) if params is None else params.member
        mixed = mix(crowd, crowd.rows, stats.counts, member, INNER)
        rows = crowd.kernels.group_rows(crowd.rows, mixed.member, mixed.logs, crowd.dtype, crowd.threads)
        return Params(stats.shares, mixed.member, mixed.counts, rows, np.asarray(mixed.bound))

    def finish(self, crowd: Crowd, params: Params, shards: Executor[Shard]) -> Params:
        """The largest group first."""
        order = np.argsort(-params.member.sum(0), kind="stable")
        member = np.ascontiguousarray(params.member[:, order])
        return params._replace(member=member, counts=params.counts[order])

    def need(self, answers: Labels, dtype: np.dtype[Any]) -> int:
        K, rows, groups = answers.n_classes, answers.layout.n_rows, self.groups or MOST
        return K * (answers.n_tasks + 2 * rows) * dtype.itemsize + 8 * groups * (3 * answers.n_workers + 40 * K**2)

    def emission(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: Ints | None = None) -> Floats:
        """A worker's matrix is the mixture of group matrices; that of an unknown worker, by the shares of groups."""
        found = self.grouping(params)
        return np.asarray(np.log(np.maximum(mixture(so_far(found, worker), found.matrices, label), TINY)))

    def factors(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        return mixture(so_far(self.grouping(params), worker), _row_logs(params.counts), label)

    def grouping(self, params: Params) -> Grouping:
        above = params.counts + _usual(params.counts.shape[2])
        return Grouping(params.member.mean(0), above / above.sum(2, keepdims=True), params.member)


@register("tied", "one confusion matrix for all workers: needs no worker ids")
@dataclass(frozen=True, kw_only=True)
class Tied(Groups):
    """`groups` with one group: what is known of the crowd as a whole, however few answers a worker gave."""

    tells_workers_apart = False
    off = (-8.3, 0.0)
    groups: int = setting(1, Rule(int, low=1, high=1), "One group, by definition.")


def _row_logs(counts: Floats) -> Floats:
    """(M, K, K) E log beta."""
    above = counts + _usual(counts.shape[2])
    return np.asarray(digamma(above) - digamma(above.sum(2))[:, :, None])


def _usual(K: int) -> Floats:
    """(K, K) b."""
    return np.full((K, K), ANY) + RIGHT * np.eye(K)


def mix(crowd: Crowd, layout: WorkerRows, answers: Floats, member: Floats, steps: int) -> Mixture:
    """Steps of (7) and (6) on the expected answers of rows (R, K), from groups (W, M) that workers seem to be of."""
    for _ in range(steps):
        counts = crowd.kernels.group_counts(layout, answers, member, crowd.threads)
        logs, size = _row_logs(counts), member.sum(0)
        usual = digamma(size + 1) - digamma(np.asarray(size.sum() + len(size)))
        scores = crowd.kernels.group_scores(layout, answers, logs, crowd.threads)
        before, member = member, softmax(scores + usual)
        if np.abs(member - before).max() < SETTLED:
            break
    spread = float((member * (np.log(np.maximum(member, TINY)) - usual)).sum())
    bound = -dirichlet_kl(size, np.ones(len(size))) - dirichlet_kl(counts, _usual(counts.shape[2])) - spread
    return Mixture(member, counts, logs, bound, float((member * scores).sum()))


def part(crowd: Crowd, answers: Floats, groups: int | None) -> Floats:
    """(W, M) groups that workers seem to be of by their expected answers (R, K): of several numbers of groups and
    several starts, those of the highest bound."""
    layout, W = crowd.rows, crowd.rows.n_workers
    if groups is not None and groups > max(W, 1):
        raise DataError(f"groups is {groups} and there are {W} workers: give at most {W}, or None to let the data say")
    if groups == 1 or W < 2:
        return np.ones((W, 1))
    some = _busiest(layout, max(groups or 0, min(SAMPLE, max(50, CELLS // layout.n_classes**2))))
    few, rows = _of_workers(layout, some)
    said = np.ascontiguousarray(answers[rows], np.float64)
    rng = np.random.default_rng(crowd.seed)
    best, best_bound, worse = mix(crowd, few, said, np.ones((few.n_workers, 1)), 1), -np.inf, 0
    if groups is None:
        best_bound = best.bound + best.fit
    for size in range(2, MOST + 1) if groups is None else (groups,):
        risen = False
        if size > few.n_workers:
            break
        for _ in range(STARTS):
            found = mix(crowd, few, said, _seeded(few, said, size, rng), PARTING)
            bound = found.bound + found.fit
            if bound > best_bound:
                best, best_bound, risen = found, bound, True
        worse = 0 if risen else worse + 1
        if worse == 2:
            break
    scores = crowd.kernels.group_scores(layout, answers, best.logs, crowd.threads)
    return softmax(scores + np.log(best.member.sum(0) + 1))


def _busiest(layout: WorkerRows, count: int) -> Ints:
    """Workers with the most answers, in their own order."""
    busy = np.argsort(-layout.per_worker, kind="stable")[:count]
    return np.sort(busy)


def _of_workers(layout: WorkerRows, workers: Ints) -> tuple[WorkerRows, Ints]:
    """A layout whose rows are those of some workers, and which rows they were; it serves sums over workers only."""
    sizes = np.diff(layout.worker_ptr)[workers]
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    rows = np.arange(ptr[-1]) - np.repeat(ptr[:-1], sizes) + np.repeat(layout.worker_ptr[workers], sizes)
    owner = np.repeat(np.arange(len(workers), dtype=np.int32), sizes)
    few = WorkerRows(layout.n_classes, owner, layout.row_label[rows], ptr, layout.answers[rows])
    return few, rows


def _seeded(layout: WorkerRows, answers: Floats, size: int, rng: np.random.Generator) -> Floats:
    """(W, M) groups around workers who are far from each other: each is drawn by how badly those drawn before
    predict the answers, as k-means++ draws by squared distance."""
    K, W = layout.n_classes, layout.n_workers
    own = np.zeros((W, K, K))
    own[layout.row_worker, :, layout.row_label] = answers
    crowd = own.sum(0) + 1
    crowd /= crowd.sum(1, keepdims=True)
    shrunk = own + SHRUNK * crowd
    shrunk /= shrunk.sum(2, keepdims=True)
    weight = own.sum((1, 2))
    told = (own * np.log(shrunk)).sum((1, 2))
    first = rng.choice(W, p=weight / weight.sum())
    fits = [(own * np.log(shrunk[first])).sum((1, 2))]
    for _ in range(size - 1):
        apart = np.maximum(told - np.max(fits, axis=0), 0)
        drawn = rng.choice(W, p=apart / apart.sum()) if apart.sum() > 0 else rng.integers(W)
        fits.append((own * np.log(shrunk[drawn])).sum((1, 2)))
    scores = np.stack(fits, axis=1)
    member = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(0.9 * member / member.sum(1, keepdims=True) + 0.1 / size)
