"""Groups: workers fall into a few groups, and the workers of a group share one confusion matrix.

    (1)  z_i ~ Categorical(rho), rho ~ Dirichlet(1)      (2)  g_j ~ Categorical(alpha), alpha ~ Dirichlet(1)
    (3)  l | z_i = k, g_j = m ~ Categorical(beta[m, k])  (4)  beta[m, k] ~ Dirichlet(b[k]),  b = 0.5, 2.5 where l = k
so the prior favours correct answers. Variational Bayes with q(z) q(g) q(rho) q(alpha) q(beta); E log is the expected
logarithm under a Dirichlet, psi(prior + count) - psi(their sum):
    (5)  q[i, k] ~ exp(E log rho[k]) * product over answers n of i of exp(sum_m s[j, m] E log beta[m, k, l])
    (6)  s[j, m] ~ exp(E log alpha[m] + sum over k, l of C[j, k, l] E log beta[m, k, l])
    (7)  counts of alpha[m]: sum_j s[j, m];  of beta[m, k, l]: sum_j s[j, m] C[j, k, l]
with C[j, k, l] = sum over j's answers n with label l of q[task_n, k]. The evidence lower bound is
    (8)  sum_i log(normaliser of (5)) - KL of rho, alpha and beta - sum_jm s[j, m] (log s[j, m] - E log alpha[m])
The fit starts from the posterior of a single matrix for all workers (`tied`, this model with one group). Then mixtures
with several numbers of groups are fitted to C, each from several starts, and the fit continues from the one with the
highest bound. A worker's matrix is the mixture of the group matrices with weights s. Derived in docs/maths/groups.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import Executor, register
from ..engine.model import SOME_COUNT, Rule, setting
from ..errors import DataError
from ..kernels import TINY
from ..kernels.layout import Floats, Ints, PerRow, PerWorker, RowTable, WorkerRows
from ..kernels.rules import Real
from ..kernels.special import digamma, dirichlet_kl, softmax
from ..result import Grouping
from ..result.groups import group_probabilities, mixture
from .confusions import SharesByBayes, Stats
from .shard import Crowd, Shard

PRIOR_COUNT, PRIOR_CORRECT = 0.5, 2.0  # pseudo-answers of each label in (4), and extra ones on the diagonal
TIED_ITERATIONS = 8  # with one matrix for all workers, before workers are grouped
MAX_GROUPS = 6  # largest number of groups tried
STARTS = 5  # starts for each number of groups
MAX_START_STEPS = 30  # steps (6) and (7) in each start
MEMBER_TOL = 1e-4  # these steps end when no element of s changes by more
INNER_STEPS = 1  # steps (6) and (7) in an iteration
MAX_SAMPLE_WORKERS = 4000  # workers with the most answers, from which groups are initialised
MAX_SAMPLE_CELLS = 1 << 22  # elements of their confusion matrices
SEED_PRIOR_ANSWERS = 2.0  # pseudo-answers of the crowd in every row of a worker's matrix when workers are compared


class Params(NamedTuple):
    n: Annotated[Floats, Real("K", 0)]  # expected tasks of each class
    member: Annotated[PerWorker, Real("W M", 0, 1, sums=True)]  # s
    counts: Annotated[Floats, Real("M K K", 0)]  # of beta
    rows: Annotated[PerRow, Real("R K", 0)]  # the factors of eq (5)
    bound: Annotated[Floats, Real("")]  # eq (8) without the terms of tasks and classes


class Mixture(NamedTuple):
    """A mixture of groups, fitted to the expected answers of the workers."""

    member: Floats  # (W, M)
    counts: Floats  # (M, K, K)
    logs: Floats  # (M, K, K) E log beta
    bound: float  # terms of alpha, beta and g in the bound
    fit: float  # expected log-likelihood of the answers


@register("groups", "groups of workers with the same errors, and their number, by variational Bayes")
@dataclass(frozen=True, kw_only=True)
class Groups(SharesByBayes):
    """A confusion matrix for each group of workers. It suits many workers with few answers each."""

    params_type = Params
    calibration_offset = (-6.2, 0.0)
    groups: int | None = setting(None, SOME_COUNT, "Number of groups; None chooses it by the evidence lower bound.")

    def begin(self, crowd: Crowd, shards: Executor[Shard]) -> Stats:
        """Start from soft votes, then run some iterations with one matrix for all workers."""
        stats = self.from_votes(shards)
        for _ in range(TIED_ITERATIONS):
            stats = shards.update(self.warm, self.tied(crowd, stats)).stats
        return stats

    def tied(self, crowd: Crowd, stats: Stats) -> Any:
        """Return parameters with one matrix for all workers."""
        member = np.ones((crowd.rows.n_workers, 1))
        counts = crowd.kernels.group_counts(crowd.rows, stats.counts, member, crowd.threads)
        rows = crowd.kernels.group_rows(crowd.rows, member, _row_logs(counts), crowd.dtype, crowd.threads)
        return Params(stats.shares, member, counts, rows, np.zeros(()))

    def maximise(self, crowd: Crowd, stats: Stats, params: Params | None) -> Params:
        member = initial_groups(crowd, stats.counts, self.groups) if params is None else params.member
        mixed = fit_mixture(crowd, crowd.rows, stats.counts, member, INNER_STEPS)
        rows = crowd.kernels.group_rows(crowd.rows, mixed.member, mixed.logs, crowd.dtype, crowd.threads)
        return Params(stats.shares, mixed.member, mixed.counts, rows, np.asarray(mixed.bound))

    def finish(self, crowd: Crowd, params: Params, shards: Executor[Shard]) -> Params:
        """Sort the groups by size, the largest first."""
        order = np.argsort(-params.member.sum(0), kind="stable")
        member = np.ascontiguousarray(params.member[:, order])
        return params._replace(member=member, counts=params.counts[order])

    def need(self, answers: Labels, dtype: np.dtype[Any]) -> int:
        K, rows, groups = answers.n_classes, answers.row_table.n_rows, self.groups or MAX_GROUPS
        return K * (answers.tasks_in_memory + 2 * rows) * dtype.itemsize + 8 * groups * (
            3 * answers.n_workers + 40 * K**2
        )

    def emission(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: Ints | None = None) -> Floats:
        """A worker's matrix is the mixture of the group matrices. Unknown workers use the group shares as weights."""
        found = self.grouping(params)
        return np.asarray(np.log(np.maximum(mixture(group_probabilities(found, worker), found.matrices, label), TINY)))

    def factors(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        return mixture(group_probabilities(self.grouping(params), worker), _row_logs(params.counts), label)

    def grouping(self, params: Params) -> Grouping:
        above = params.counts + _prior_counts(params.counts.shape[2])
        return Grouping(params.member.mean(0), above / above.sum(2, keepdims=True), params.member)


@register("tied", "one confusion matrix for all workers; needs no worker ids")
@dataclass(frozen=True, kw_only=True)
class Tied(Groups):
    """`groups` with one group: it estimates the errors of the whole crowd, even if each worker gave few answers."""

    distinguishes_workers = False
    calibration_offset = (-8.3, 0.0)
    groups: int = setting(1, Rule(int, low=1, high=1), "Always one group.")


def _row_logs(counts: Floats) -> Floats:
    """Return E log beta (M, K, K)."""
    above = counts + _prior_counts(counts.shape[2])
    return np.asarray(digamma(above) - digamma(above.sum(2))[:, :, None])


def _prior_counts(K: int) -> Floats:
    """Return the pseudo-counts b of (4), shape (K, K)."""
    return np.full((K, K), PRIOR_COUNT) + PRIOR_CORRECT * np.eye(K)


def fit_mixture(crowd: Crowd, layout: WorkerRows, answers: Floats, member: Floats, steps: int) -> Mixture:
    """Run steps (7) and (6) on the expected answers of rows (R, K), from group probabilities `member` (W, M)."""
    for _ in range(steps):
        counts = crowd.kernels.group_counts(layout, answers, member, crowd.threads)
        logs, size = _row_logs(counts), member.sum(0)
        log_share = digamma(size + 1) - digamma(np.asarray(size.sum() + len(size)))
        scores = crowd.kernels.group_scores(layout, answers, logs, crowd.threads)
        before, member = member, softmax(scores + log_share)
        if np.abs(member - before).max() < MEMBER_TOL:
            break
    spread = float((member * (np.log(np.maximum(member, TINY)) - log_share)).sum())
    bound = -dirichlet_kl(size, np.ones(len(size))) - dirichlet_kl(counts, _prior_counts(counts.shape[2])) - spread
    return Mixture(member, counts, logs, bound, float((member * scores).sum()))


def initial_groups(crowd: Crowd, answers: Floats, groups: int | None) -> Floats:
    """Return initial group probabilities (W, M) of the workers, given their expected answers (R, K).

    Mixtures with several numbers of groups are fitted from several starts; the one with the highest bound is used.
    """
    layout, W = crowd.rows, crowd.rows.n_workers
    if groups is not None and groups > max(W, 1):
        raise DataError(
            f"groups is {groups}, but there are {W} workers. Give at most {W}, or None to choose it from the data"
        )
    if groups == 1 or W < 2:
        return np.ones((W, 1))
    sample = _most_active(
        layout, max(groups or 0, min(MAX_SAMPLE_WORKERS, max(50, MAX_SAMPLE_CELLS // layout.n_classes**2)))
    )
    sampled, rows = _of_workers(layout, sample)
    counts = np.ascontiguousarray(answers[rows], np.float64)
    rng = np.random.default_rng(crowd.seed)
    best, best_bound, not_better = fit_mixture(crowd, sampled, counts, np.ones((sampled.n_workers, 1)), 1), -np.inf, 0
    if groups is None:
        best_bound = best.bound + best.fit
    for size in range(2, MAX_GROUPS + 1) if groups is None else (groups,):
        improved = False
        if size > sampled.n_workers:
            break
        for _ in range(STARTS):
            found = fit_mixture(crowd, sampled, counts, _seeded(sampled, counts, size, rng), MAX_START_STEPS)
            bound = found.bound + found.fit
            if bound > best_bound:
                best, best_bound, improved = found, bound, True
        not_better = 0 if improved else not_better + 1
        if not_better == 2:
            break
    scores = crowd.kernels.group_scores(layout, answers, best.logs, crowd.threads)
    return softmax(scores + np.log(best.member.sum(0) + 1))


def _most_active(layout: WorkerRows, count: int) -> Ints:
    """Return the `count` workers with the most answers, by ascending number."""
    most_active = np.argsort(-layout.per_worker, kind="stable")[:count]
    return np.sort(most_active)


def _of_workers(layout: WorkerRows, workers: Ints) -> tuple[WorkerRows, Ints]:
    """Return a layout with the rows of some workers only, for sums over workers, and the numbers of these rows."""
    sizes = np.diff(layout.worker_ptr)[workers]
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    rows = np.arange(ptr[-1]) - np.repeat(ptr[:-1], sizes) + np.repeat(layout.worker_ptr[workers], sizes)
    owner = np.repeat(np.arange(len(workers), dtype=np.int32), sizes)
    return WorkerRows(layout.n_classes, owner, layout.row_label[rows], ptr, layout.answers[rows]), rows


def _seeded(layout: WorkerRows, answers: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Return group probabilities (W, M) around workers that differ from each other. Like k-means++, it draws each
    seed in proportion to how badly the earlier seeds predict the answers."""
    K, W = layout.n_classes, layout.n_workers
    own = np.zeros((W, K, K))
    own[layout.row_worker, :, layout.row_label] = answers
    crowd = own.sum(0) + 1
    crowd /= crowd.sum(1, keepdims=True)
    shrunk = own + SEED_PRIOR_ANSWERS * crowd
    shrunk /= shrunk.sum(2, keepdims=True)
    weight = own.sum((1, 2))
    own_fit = (own * np.log(shrunk)).sum((1, 2))
    first = rng.choice(W, p=weight / weight.sum())
    fits = [(own * np.log(shrunk[first])).sum((1, 2))]
    for _ in range(size - 1):
        loss = np.maximum(own_fit - np.max(fits, axis=0), 0)
        drawn = rng.choice(W, p=loss / loss.sum()) if loss.sum() > 0 else rng.integers(W)
        fits.append((own * np.log(shrunk[drawn])).sum((1, 2)))
    scores = np.stack(fits, axis=1)
    member = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(0.9 * member / member.sum(1, keepdims=True) + 0.1 / size)
