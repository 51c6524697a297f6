"""The Crowd Mixture Model of Mena and Nanculef (2019), for answers without worker ids (the paper's "Global").

The data are r[i, j], the number of labels j given to task i. Each answer has its own true class and its own group.
    (1)  p(j | x) = sum_mk alpha[m] beta[m, k, j] f_k(x) = sum_k B[k, j] f_k(x),    B = sum_m alpha[m] beta[m]
    (2)  objective = sum_ij r[i, j] log p(j | x_i)  + s (sum log alpha + sum log beta)               paper's (4)
    (3)  q_ij(m, k) = alpha[m] beta[m, k, j] f_k(x_i) / p(j | x_i)                                   E-step
    (4)  alpha[m] ~ s + sum_ijk r[i, j] q_ij(m, k),   beta[m, k, j] ~ s + sum_i r[i, j] q_ij(m, k)   paper's (6)
    (5)  f is trained on rbar[i, k] = sum_jm r[i, j] q_ij(m, k)                                      paper's (7)
With `gating`, alpha[m] is alpha[i, m] = softmax_m(V' x_i), a logistic regression on the features that is trained on
the expected group of each answer, and its log-prior replaces s sum log alpha.
q is never stored: sums over i are F' (r / p) and sums over j are (r / p) B', for any number of workers. The likelihood
depends on the groups only through B, so groups that have the same B cannot be distinguished. Therefore one group is the
default, and B is reported. The derivation, and why `tied` is the better model, are in docs/maths/cmm.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import Executor, Run, register
from ..engine.model import NOT_NEGATIVE, SOME_COUNT, YES_NO, one_of, setting
from ..errors import DataError, model_setting
from ..kernels import TINY, EStepResult, special
from ..kernels.layout import Floats, Ints, RowTable, per_worker
from ..kernels.rules import Real
from ..labels.em import Local
from ..labels.shard import Crowd, Shard
from ..result import Grouping, LabelsResult, LeftOut
from ..result.groups import group_probabilities, mixture
from .base import PriorByClassifier
from .joint import EarlyStop
from .objective import softmax

MAX_TRIED_GROUPS = 5  # if their number is chosen
PRINCIPAL_AXES = 3  # principal components in which k-means splits the answers into groups


class Params(NamedTuple):
    logits: Annotated[Floats, Real("T K")]  # of the classifier
    share: Annotated[Floats, Real("M", 0, 1, sums=True)]  # alpha; with gating its mean over the tasks
    matrices: Annotated[Floats, Real("M K K", 0, 1, sums=True)]  # beta
    log_prior: Annotated[Floats, Real("")]  # last term of (2), plus the log-prior of the classifier
    shares: Annotated[Floats, Real("K", 0, 1, sums=True)]  # mean consensus
    member: Annotated[Floats, Real("W M", 0, 1, sums=True, later=True)]  # of workers, computed after the fit
    mix: Annotated[Floats, Real("T M", 0, 1, optional=True)] = np.empty((0, 0))  # alpha of every task, with gating
    gate: Annotated[Floats, Real("F M", optional=True)] = np.empty((0, 0))  # V, with gating


class Stats(NamedTuple):
    counts: Floats  # (M, K, K)  sums of (4)
    targets: Floats  # (T, K)     rbar
    shares: Floats  # (K,)
    right: Floats  # (R,)       expected right answers
    mix: Floats = np.empty((0, 0))  # (T, M)     expected answers of each group, by task; with gating


@register("cmm", "Crowd Mixture Model without worker ids: each answer has its own true class and its own group")
@dataclass(frozen=True, kw_only=True)
class CMM(EarlyStop, PriorByClassifier):
    """The Crowd Mixture Model (Global), as published.

    More than one group splits a single confusion matrix in ways that data cannot distinguish.
    """

    params_type = Params
    distinguishes_workers = shares_truth = False
    groups: int | None = setting(
        1, SOME_COUNT, "Number of groups; None: from 1 to 5, whichever has the highest log-likelihood."
    )
    gating: bool = setting(False, YES_NO, "Let the shares of the groups depend on the features (mixture of experts).")
    smoothing: float = setting(
        1.0, NOT_NEGATIVE, "Pseudo-count s added to every cell of a confusion matrix, eqs (2) and (4)."
    )
    start: str = setting("k-means", one_of("k-means", "random"), "Initial split of the answers into groups.")

    def begin(self, crowd: Crowd, shards: Executor[Shard]) -> Stats:
        """Start from soft votes and an initial group for every answer."""
        stats: Stats = self.from_votes(shards)
        return stats if self.groups == 1 else stats._replace(counts=shards.total(self._split, crowd.seed))

    def candidates(self, answers: Labels) -> tuple[CMM, ...]:
        if self.groups is not None:
            return (self,)
        task, _, label = answers.codes()
        distinct = len(np.unique(task.astype(np.int64) * answers.n_classes + label))
        return tuple(replace(self, groups=m) for m in range(1, max(1, min(MAX_TRIED_GROUPS, distinct)) + 1))

    def score(self, result: LabelsResult) -> float:
        """Compare the numbers of groups by log-likelihood, as in the paper: the prior would prefer few."""
        prior = 0.0 if self.groups is not None else float(result.params.log_prior)
        return super().score(result) - prior

    def posterior(self, shard: Shard, params: Params, local: Local) -> EStepResult:
        """Consensus of each task: rbar over its number of answers, or the classifier's prediction without answers."""
        F, votes, Z = self._truth(shard, params), _votes(shard), local.Z
        total = votes.sum(1, keepdims=True)
        answered = total[:, 0] > 0
        p = _predicted(F, params)
        before = Z.max(1, keepdims=True) == Z
        Z[:] = np.where(answered[:, None], _targets(F, votes / p, params) / np.maximum(total, 1), F)
        flips = np.where(before, Z, -1).max(1) < Z.max(1)
        return EStepResult(
            float((votes * np.log(p)).sum()), Z[answered].sum(0, dtype=np.float64), int(flips[answered].sum())
        )

    def statistics(self, shard: Shard, local: Local, shares: Floats, params: Params | None) -> Stats:
        votes, Z = _votes(shard), local.Z
        right = shard.kernels.match_counts(shard.layout, Z, shard.threads)
        if params is None:
            even = np.repeat(votes.sum(1, keepdims=True), self.groups or 1, 1) / (self.groups or 1)
            return Stats(np.asarray(Z.T @ votes)[None], Z * votes.sum(1, keepdims=True), shares, right, even)
        F = self._truth(shard, params)
        ratio, mix = votes / _predicted(F, params), _mix(params)
        if not self.gating:
            counts = params.share[:, None, None] * params.matrices * (F.T @ ratio)
            return Stats(counts, _targets(F, ratio, params), shares, right, params.mix)
        groups = list(enumerate(params.matrices))
        counts = np.stack([matrix * ((mix[:, [m]] * F).T @ ratio) for m, matrix in groups])
        expected = np.column_stack([mix[:, m] * (ratio * (F @ matrix)).sum(1) for m, matrix in groups])
        return Stats(counts, _targets(F, ratio, params), shares, right, expected)

    def _split(self, shard: Shard, local: Local, seed: int) -> Floats:
        """(M, K, K) initial sums of (4).

        With "k-means", q_ij(m, k) is the share of votes for k, with m the cluster of the answer. With "random", that
        share is mixed with the answer itself, with a random weight for each group.
        """
        votes, Z, M, K = _votes(shard), local.Z, self.groups or 1, shard.layout.n_classes
        rng = np.random.default_rng(seed)
        if self.start == "random":
            soft = rng.beta(1, 1, M)[:, None, None]
            return np.asarray(soft * (Z.T @ votes) + (1 - soft) * np.diag(votes.sum(0))) / M
        task, label = np.nonzero(votes)
        if len(task) < M:
            raise DataError(
                f"groups is {M}, but there are only {len(task)} distinct pairs of a task and a label. Give at most "
                f"{model_setting('groups', len(task))}"
            )
        weight = votes[task, label]
        cell = _clusters(Z, task, label, weight, M, rng) * K + label
        sums = [np.bincount(cell, Z[task, k] * weight, minlength=M * K).reshape(M, K) for k in range(K)]
        return np.stack(sums, axis=1)

    def maximise(self, crowd: Crowd, stats: Stats, params: Params | None) -> Params:
        share = np.maximum(stats.counts.sum((1, 2)) + self.smoothing, TINY)
        matrices = np.maximum(stats.counts + self.smoothing, TINY)
        share, matrices = share / share.sum(), matrices / matrices.sum(2, keepdims=True)
        crowd.truth.follow(stats.targets)
        log_prior = self.smoothing * float(np.log(matrices).sum()) + crowd.truth.log_prior
        none: Floats = np.zeros((0, len(share)))
        mix, gate = none, none
        if self.gating:
            mix, gate, of_gate = self._gate(crowd.truth, stats, params)
            share, log_prior = mix.mean(0), log_prior + of_gate
        else:
            log_prior += self.smoothing * float(np.log(share).sum())
        shares = stats.shares / max(stats.shares.sum(), 1)
        return Params(crowd.truth.logits(), share, matrices, np.asarray(log_prior), shares, none, mix, gate)

    def _gate(self, truth: Any, stats: Stats, params: Params | None) -> tuple[Floats, Floats, float]:
        """Train the gate on the expected groups of the answers; return alpha (T, M), V and its log-prior."""
        from .logistic import LogisticLearner

        gate = LogisticLearner(truth.inputs(), stats.mix.shape[1], None)
        if params is not None:
            gate.weights = params.gate
            gate.follow(stats.mix)
        return softmax(gate.logits()), gate.weights, gate.log_prior

    def finish(self, crowd: Crowd, params: Params, shards: Executor[Shard]) -> Params:
        """Sort groups by share, and compute the group probabilities of workers from all their answers (Sec. 3.4)."""
        order = np.argsort(-params.share, kind="stable")
        params = params._replace(
            share=params.share[order], matrices=params.matrices[order], mix=params.mix[:, order],
            gate=params.gate[:, order],
        )  # fmt: skip
        logs = np.log(params.share) + shards.total(self._log_likelihoods, params)
        return params._replace(member=special.softmax(logs))

    def _log_likelihoods(self, shard: Shard, local: Local, params: Params) -> Floats:
        """(W, M) log-likelihood of each worker's answers, given each group."""
        F, layout = self._truth(shard, params), shard.layout
        row = np.repeat(np.arange(layout.n_rows), np.diff(layout.row_ptr))
        logs = np.zeros((layout.n_workers, len(params.share)))
        for m, matrix in enumerate(params.matrices):
            given = np.log(np.maximum(F @ matrix, TINY))[layout.task, layout.row_label[row]]
            logs[:, m] = np.bincount(layout.row_worker[row], given, minlength=layout.n_workers)
        return logs

    def _truth(self, shard: Shard, params: Params) -> Floats:
        """(T, K) class probabilities predicted by the classifier, or the known label."""
        return shard.obey_gold(softmax(params.logits))

    def compared(self, params: Params) -> Floats:
        return params.matrices

    def left_out(self, shard: Shard, params: Params, Z: Floats) -> LeftOut:
        """Use the classifier's predictions: each answer has its own true class, so no answer affects another's."""
        nothing = np.ones((shard.layout.n_rows, shard.layout.n_classes))
        F = self._truth(shard, params)
        sums = shard.kernels.confusion_left_out(shard.layout, nothing, shard.gold, F, shard.threads)
        return LeftOut(per_worker(shard.layout, sums[0]), per_worker(shard.layout, sums[1]))

    def need(self, answers: Labels, dtype: np.dtype[Any]) -> int:
        groups = self.groups or MAX_TRIED_GROUPS
        return 8 * (10 * answers.n_tasks * answers.n_classes + groups * answers.n_workers) + 16 * answers.n_answers

    def emission(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: Ints | None = None) -> Floats:
        """Use a mixture of the group matrices for each worker, and B for an unknown worker."""
        member = group_probabilities(self.grouping(params), worker)
        return np.asarray(np.log(np.maximum(mixture(member, params.matrices, label), TINY)))

    def pull(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        """Return the class posterior of each answer; the posterior of the task is their mean."""
        q = self.class_prior(params, layout.n_classes, task) * _joint(params, task).T[label]
        return np.asarray(q / q.sum(1, keepdims=True))

    def task_posterior(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        if not len(label):
            return self.class_prior(params, layout.n_classes, task)
        return np.asarray(self.pull(params, layout, worker, label, task).mean(0))

    def infer(self, params: Params, seen: RowTable, answers: Labels, worker: Ints) -> Floats:
        shard = Shard.of(answers, Run(threads=1))
        F = np.broadcast_to(params.shares, (answers.n_tasks, answers.n_classes))
        params, votes = params._replace(mix=params.mix[:0]), _votes(shard)  # new tasks have the mean shares
        Z = _targets(F, votes / _predicted(F, params), params) + np.where(votes.sum(1, keepdims=True) > 0, 0, F)
        return shard.obey_gold(np.asarray(Z / Z.sum(1, keepdims=True)))

    def grouping(self, params: Params) -> Grouping:
        """Groups as estimated; only their sum B is identified by the data."""
        return Grouping(params.share, params.matrices, params.member)


def _mix(params: Params) -> Floats:
    """(T, M) alpha of every task with gating, or (1, M) alpha."""
    return params.mix if len(params.mix) else params.share[None]


def _joint(params: Params, task: int | None = None) -> Floats:
    """(K, K) B; with gating, that of a task or the mean over the tasks."""
    share = params.share if task is None or not len(params.mix) else params.mix[task]
    return np.asarray(np.einsum("m,mkj->kj", share, params.matrices))


def _predicted(F: Floats, params: Params) -> Floats:
    """(T, K) p(j | x), eq (1)."""
    if len(params.mix):
        p = sum(params.mix[:, [m]] * (F @ matrix) for m, matrix in enumerate(params.matrices))
    else:
        p = F @ _joint(params)
    return np.asarray(np.maximum(p, TINY))


def _targets(F: Floats, ratio: Floats, params: Params) -> Floats:
    """(T, K) rbar, with ratio = r / p."""
    if len(params.mix):
        given = sum(params.mix[:, [m]] * (ratio @ matrix.T) for m, matrix in enumerate(params.matrices))
    else:
        given = ratio @ _joint(params).T
    return np.asarray(F * given)


def _votes(shard: Shard) -> Floats:
    """(T, K) r."""
    return np.concatenate([votes for _, votes in shard.votes_by_part()]).astype(np.float64)


def _clusters(Z: Floats, task: Ints, label: Ints, weight: Floats, count: int, rng: np.random.Generator) -> Ints:
    """Cluster answers by k-means on the vote shares of the other labels of their task."""
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.decomposition import PCA
    from threadpoolctl import threadpool_limits

    against = Z[task].astype(np.float64)
    against[np.arange(len(task)), label] = 0
    if not against.std(0).any():
        return np.zeros(len(task), np.int64)  # no worker disagrees, so there is nothing to split by
    with threadpool_limits(1):  # thread pools of several libraries would block each other
        near = PCA(min(PRINCIPAL_AXES, *against.shape), whiten=True, svd_solver="full").fit_transform(against)
        made = MiniBatchKMeans(count, n_init=10, random_state=int(rng.integers(2**31)))
        return np.asarray(made.fit(near, sample_weight=weight).labels_)
