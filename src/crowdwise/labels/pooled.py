"""Pooled Dawid-Skene: a hierarchical prior shrinks workers' confusion matrices to the crowd's, by a learnt amount.

    (1)  z_i ~ Categorical(rho),  rho ~ Dirichlet(1)       (2)  l | z_i = k ~ Categorical(pi[j, k])
    (3)  pi[j, k] ~ Dirichlet(a[k])                        (4)  a[k, l] ~ Gamma(2, 1)
Row k of `a` is the crowd's confusion row times the strength of pooling. Variational Bayes with q(z) q(rho) q(pi):
    (5)  q[i, k] ~ exp(psi(1 + n[k]) - psi(K + n.)) * product over answers n of i of
                   exp(psi(a[k, l] + C[j, k, l]) - psi(a[k, .] + C[j, k, .]))
    (6)  n[k] = sum_i q[i, k],   C[j, k, l] = sum over j's answers n with label l of q[task_n, k]
    (7)  a[k, l] <- (a[k, l] * sum_j [psi(a[k, l] + C[j, k, l]) - psi(a[k, l])] + 1)
                    / (sum_j [psi(a[k, .] + C[j, k, .]) - psi(a[k, .])] + 1)
(7) never decreases the evidence of the counts. A worker with few answers is close to an average worker; with many
answers the model approaches Dawid-Skene.

Where answers share errors, free matrices explain them by classes that swallow tasks of other classes. The fit is
therefore anchored to the vote with a weight h from 0 to 0.4, the larger the more errors are shared (`dependence`):
    (8)  s[i, k] = (v[i, k] + m[k]) / (v[i, .] + 1)      v: votes, weighted by the variety of a worker's labels
    (9)  counts n and C of (6) are summed with u = (1 - h) q + h s in place of q
This is coordinate ascent on
    (10) (1 - h) sum_i log(normaliser of (5)) + h sum_ik s[i, k] log(score of class k in (5))
         - KL(q(rho)) - sum_jk KL(q(pi[j, k]) || Dirichlet(a[k])) + sum log p(a)
the lower bound on the evidence of the answers plus a supervised term with votes as soft truth; it never decreases.
Answers of workers who copy each other share one vote: their weights are powers of the factors in (5) and multiply their
terms in (6) and (10). With `calibrate`, reported probabilities are those of `calibration`. The fit starts from s, and
moves the scale of each row of a by a Newton step where that does not decrease the evidence. Derivation in
docs/maths/pooled.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..answers import Labels
from ..engine import Executor, Run, register
from ..engine.model import POSITIVE, SHARE, YES_NO, Rule, one_of, setting
from ..kernels.layout import (
    Bools,
    ByRow,
    Floats,
    Ints,
    Layout,
    PerRow,
    PerWorker,
    RowTable,
    Subset,
    WorkerRows,
    add_shard,
    find_rows,
    minus,
    narrow,
    per_worker,
    weighted_counts,
)
from ..kernels.rules import Real, Whole
from ..kernels.special import softmax
from ..rating.workers import Clusters
from ..result import LeftOut
from .calibration import Calibration, Dependence, vote_range
from .confusions import SharesByBayes, Stats, expected_shares
from .dependence import assess
from .em import STAGE, EMModel, Local, Summed
from .model import Learnt
from .sampled import Found, independent, sample_of
from .shard import Crowd, Shard

MIN_A, MAX_A = 1e-3, 1e4  # bounds of the pseudo-counts a
EVERY_ITERATION = 4  # iterations that all update a; later one in three does, which is cheaper and sufficient
MAX_JUMP = 1.5  # largest change of the logarithm of a row's scale in one step
FEW_ANSWERS = 10.0  # answers per worker below which the initial pooling is stronger
LABEL_PRIOR_ANSWERS = 2.0  # pseudo-answers with the crowd's label shares in each worker's label shares
# A class swallows tasks if the posterior moves this share of tasks away from the votes: from the first number on, the
# vote replaces the model, and from the second on entirely.
SHARED_DRIFT = (0.1, 0.15)  # times the evidence for shared errors
ANY_DRIFT = (0.4, 0.6)
INVERTED = (0.2, 0.3)  # share of answers by workers below chance, between which the vote replaces the model
SHARED_SHIFT, SHIFTED_ANSWERS = -0.2, 3.9  # of expected accuracy if errors are shared; answers per task to see that
BELOW_CHANCE = -2.0  # standard deviations from which a worker is below chance
MAX_NAMED = 5  # workers named in a warning


ANCHOR_RULE = Rule((int, float), low=0.0, high=0.99, may_be_none=True)
NO_ANCHOR_RULE, NO_COPYING_RULE = one_of(0.0), one_of(1.0)


class Params(NamedTuple):
    n: Annotated[Floats, Real("K", 0)]  # expected tasks of each class
    a: Annotated[Floats, Real("K K", 0)]  # pseudo-counts of the prior on workers' rows
    counts: Annotated[PerRow, Real("R K", 0)]  # C, observed (j, l) only
    totals: Annotated[PerWorker, Real("W K", 0)]  # C[j, k, .]
    rows: Annotated[PerRow, Real("R K", 0)]  # the factors of eq (5)
    bound: Annotated[Floats, Real("")]  # eq (10) without its first two terms
    sweeps: Annotated[Ints, Whole("", dtype="int64")]  # iterations so far
    vote_n: Annotated[Floats, Real("K", 0)]  # n of (6) with s in place of q
    vote_counts: Annotated[PerRow, Real("R K", 0, optional=True)]  # C of (6) with s for q; empty without an anchor
    vote_totals: Annotated[PerWorker, Real("W K", 0, optional=True)]  # their sums over labels
    anchored: Annotated[Floats, Real("")]  # the second term of (10), without h
    mean: Annotated[Floats, Real("K", 0, 1)]  # m of (8)
    vote_weight: Annotated[PerWorker, Real("W", 0)]  # weight of a worker's votes in (8)
    cluster: Annotated[PerWorker, Whole("W", -1, below="G")]  # cluster of workers who copy each other, or -1
    copying: Annotated[Floats, Real("G", 0, 1)]  # probability of copying in each cluster
    group: Annotated[PerWorker, Whole("W", -1, below="H")]  # group of workers who agree beyond the crowd, or -1
    agreeing: Annotated[Floats, Real("H", 0, 1)]  # their excess agreement
    # h, shared, trust, excess, error and alone of `sampled.Found`, share of inverted answers
    found: Annotated[Floats, Real("7", infinite=(4,))]


@register(
    "pooled",
    "confusion matrices shrunk towards the crowd's, by an amount learnt from the data, by variational Bayes",
    default=True,
)
@dataclass(frozen=True, kw_only=True)
class Pooled(SharesByBayes):
    """The default model: between a vote and Dawid-Skene, depending on how much data each worker has."""

    params_type = Params
    calibration_offset = (-4.6, 0.8)
    calibrated_range = (1.05, 1.05)  # 1.75 standard deviations of 0.6: decision 0027
    max_changed = 1e-5  # labels of large tables that are nearly tied may take many iterations to settle
    calibrate: bool = setting(True, YES_NO, "Report calibrated probabilities; otherwise the posterior of the model.")
    anchor: float | None = setting(
        None, ANCHOR_RULE, "Weight h of the vote in the fit, eq (9); None: from 0 to 0.4, chosen from the answers."
    )
    copying: float = setting(
        0.75,
        SHARE,
        "Probability of copying from which workers share one vote; 0.6 suits panels of models, 1 turns the search off.",
    )
    start_diagonal: float = setting(2.0, POSITIVE, "Initial diagonal of the pseudo-counts a, minus 1.")

    def learn(self, answers: Labels, crowd: Crowd, shards: Executor[Shard], run: Run) -> Learnt:
        found = independent(answers.n_workers, self.anchor or 0.0)
        if (self.anchor is None or self.copying < 1) and not run.journal.resumes(STAGE):
            found = assess(self, sample_of(answers, shards), run)
        learnt = super().learn(answers, crowd._replace(found=found), shards, run)
        params = learnt.params._replace(found=learnt.params.found.copy())
        params.found[6] = inverted_share(crowd.rows, params)
        return learnt._replace(params=params)

    def learn_given(
        self, found: Found, answers: Labels, crowd: Crowd, shards: Executor[Shard], run: Run, **settings: Any
    ) -> Learnt:
        """Fit with a given anchor and given copies, and with other settings."""
        few = replace(self, **settings)
        return EMModel.learn(few, answers, crowd._replace(found=found), shards, run)

    def begin(self, crowd: Crowd, shards: Executor[Shard]) -> Stats:
        """Start from the anchor s of eq (8), smoothed votes."""
        found: Found = crowd.found or independent(crowd.rows.n_workers, self.anchor or 0.0)
        weight = vote_weights(crowd.rows)
        by_row = ByRow(weight[crowd.rows.row_worker])
        start = _Votes(by_row, _mean(crowd, weight), found.cluster, found.copying)
        return shards.update(self._anchor, start).stats  # type: ignore[no-any-return]

    def _anchor(self, shard: Shard, local: Any, votes: _Votes) -> tuple[Local, Summed]:
        shard = _with_copies(shard, votes.cluster, votes.copying)
        new = Local(shard.smoothed_votes(votes.by_row.values, votes.mean))
        counts = shard.kernels.confusion_counts(shard.layout, new.Z, shard.threads, shard.weight)
        return new, Summed(0.0, 0, Stats(shard.shares(new.Z), counts))

    def maximise(self, crowd: Crowd, stats: Stats, params: Params | None) -> Params:
        first = params is None
        a: Floats
        if params is None:
            params = self._first(crowd, stats)
            n, counts = stats.shares, stats.counts
        else:
            fields: Any = params[: len(Params._fields)]  # beside a classifier there are further fields
            params = Params(*fields)
            n, counts = _mixed(stats, params)
            params = params._replace(sweeps=np.asarray(int(params.sweeps) + 1))
        iterations = int(params.sweeps)
        if not first and (iterations <= EVERY_ITERATION or iterations % 3 == 0):
            a, (rows, totals, kl) = self._pool(crowd, counts, params)
            params = params._replace(a=a)
        else:
            a = params.a
            rows, totals, kl, _ = crowd.kernels.dirichlet_rows(crowd.rows, counts, a, crowd.dtype, crowd.threads)
        params = params._replace(
            n=n, counts=counts, totals=totals, rows=rows, bound=np.asarray(_log_prior(a).sum() - kl)
        )
        if len(params.vote_counts) and not len(params.vote_totals):
            params = params._replace(vote_totals=per_worker(crowd.rows, params.vote_counts))
        return params._replace(anchored=_anchored(params))

    def _first(self, crowd: Crowd, stats: Stats) -> Params:
        """Return initial parameters; the statistics are those of the anchor."""
        K, found = crowd.rows.n_classes, crowd.found or independent(crowd.rows.n_workers, self.anchor or 0.0)
        a = found.a
        if a is None:
            # start closer to a vote if workers have few answers: convergence there is slow
            strength = max(1.0, FEW_ANSWERS * crowd.rows.n_workers / max(crowd.rows.n_answers, 1))
            a = strength * (np.ones((K, K)) + self.start_diagonal * np.eye(K))
        weight, none = vote_weights(crowd.rows), np.zeros((0, K))
        anchored = found.anchor > 0
        return Params(
            n=stats.shares, a=a, counts=stats.counts, totals=none, rows=none, bound=np.zeros(()),
            sweeps=np.zeros((), np.int64),
            vote_n=stats.shares, vote_counts=stats.counts if anchored else none,
            vote_totals=none, anchored=np.zeros(()), mean=_mean(crowd, weight), vote_weight=weight,
            cluster=found.cluster, copying=found.copying, group=found.group, agreeing=found.agreeing,
            found=np.array([*found[:5], found.alone, 0.0]),
        )  # fmt: skip

    def total_objective(self, evidence: float, params: Params) -> float:  # eq (10)
        h = params.found[0]
        return float((1 - h) * evidence + h * params.anchored + self.penalty(params))

    def moved(self, params: Params, place: Subset, before: Shard, after: Shard) -> Params:
        """Take the changed tasks out of the anchor, and add them again; new workers are average ones."""
        new = np.ones(len(params.cluster), bool)
        new[np.asarray(place.workers)] = False
        params = params._replace(
            cluster=np.where(new, -1, params.cluster), group=np.where(new, -1, params.group),
            vote_weight=np.where(new, 1.0, params.vote_weight),
        )  # fmt: skip
        if not len(params.vote_counts):
            return params
        total = Stats(params.vote_n.copy(), params.vote_counts.copy())
        for sign, shard in ((minus, before), (_same, after)):
            own = narrow(params, shard.subset)
            by_row = ByRow(own.vote_weight[shard.layout.row_worker])
            votes = _Votes(by_row, params.mean, own.cluster, params.copying)
            total = add_shard(total, sign(self._anchor(shard, None, votes)[1].stats), shard.subset)
        n, counts = np.maximum(total.shares, 0), np.maximum(total.counts, 0)
        return params._replace(vote_n=n, vote_counts=counts, vote_totals=counts[:0])

    def _pool(self, crowd: Crowd, counts: Floats, params: Params) -> tuple[Floats, tuple[Floats, Floats, float]]:
        """Eq (7), with a Newton step for the scale of each row of a. Where that decreases the evidence of the counts,
        the row takes the plain step, which never does."""
        old = params.a
        totals: Floats = per_worker(crowd.rows, counts).astype(np.float64)
        top, below, curve, fit = crowd.kernels.dirichlet_slopes(crowd.rows, counts, totals, old, crowd.threads)
        plain = np.clip((old * top + 1) / (below[:, None] + 1), MIN_A, MAX_A)  # eq (7)
        scale = old.sum(1)
        slope = (old * top).sum(1) - scale * below + (1 - old).sum(1)  # with respect to the logarithm of the scale
        bend = slope - len(old) + curve
        jump = np.where(bend < 0, -slope / np.minimum(bend, -1e-300), np.sign(slope) * MAX_JUMP)
        target = scale * np.exp(np.clip(jump, -MAX_JUMP, MAX_JUMP))
        a = np.clip(plain * (target / plain.sum(1))[:, None], MIN_A, MAX_A)
        rows, totals, kl, better = crowd.kernels.dirichlet_rows(crowd.rows, counts, a, crowd.dtype, crowd.threads)
        worse = better + _log_prior(a) < fit + _log_prior(old)
        if worse.any():
            a[worse] = plain[worse]
            rows, totals, kl, _ = crowd.kernels.dirichlet_rows(crowd.rows, counts, a, crowd.dtype, crowd.threads)
        return a, (rows, totals, kl)

    def finish(self, crowd: Crowd, params: Params, shards: Executor[Shard]) -> Params:
        return params._replace(counts=params.counts.astype(crowd.dtype, copy=False))

    def fitted_with(self, shard: Shard, params: Params, Z: Floats) -> tuple[Shard, Floats]:
        """Return the shard with the weights of copies, and u of eq (9) (T, K); Z is overwritten."""
        shard = self.weighted(shard, params)
        h = float(params.found[0])
        if h > 0:
            Z *= 1 - h
            Z += h * shard.smoothed_votes(params.vote_weight[shard.layout.row_worker], params.mean)
        return shard, Z

    def left_out(self, shard: Shard, params: Params, Z: Floats) -> LeftOut:
        """Judge workers by the posterior alone: the anchor takes votes for the truth, in which good workers err."""
        h, counts, totals = float(params.found[0]), params.counts, params.totals
        if h > 0:
            counts = np.maximum((counts - h * params.vote_counts) / (1 - h), 0)
            totals = np.maximum((totals - h * params.vote_totals) / (1 - h), 0)
        shard = self.weighted(shard, params)
        parts = (counts, totals, params.a, self.prior(shard, params), shard.gold)
        return LeftOut(*shard.kernels.cavity_left_out(shard.layout, *parts, Z, shard.threads, shard.weight))

    def leave_one_out(self, shard: Shard, params: Params, Z: Floats, gold: Ints) -> Floats:
        shard, U = self.fitted_with(shard, params, Z)
        parts = (params.counts, params.totals, params.a, self.prior(shard, params), gold)
        shard.kernels.cavity_posterior(shard.layout, *parts, U, shard.threads, shard.weight)
        return U

    def calibration(self, params: Params) -> Calibration:
        h, shared, trust = params.found[:3].tolist()
        return Calibration(shared, _fallback(params, h, shared), trust)

    def dependence(self, params: Params) -> Dependence | None:
        h, shared, _, excess, error = params.found[:5].tolist()
        vote = vote_range(self.calibration(params)) if self.calibrate else (0.0, 0.0)
        return Dependence(None if np.isinf(error) else shared, bool(excess > 2 * error), h, vote)

    def level_shift(self, params: Params, answers_per_task: float) -> float:
        """Where real datasets show shared errors, probabilities were a little too large: docs/maths/acquisition.md."""
        shared, error = params.found[1], params.found[4]
        seen = self.calibrate and np.isfinite(error) and answers_per_task >= SHIFTED_ANSWERS
        return float(SHARED_SHIFT * shared) if seen else 0.0

    def clusters(self, params: Params, n_workers: int) -> Clusters:
        return Clusters(params.cluster, params.copying)

    def groups_found(self, params: Params, n_workers: int) -> tuple[Clusters, Clusters]:
        return self.clusters(params, n_workers), Clusters(params.group, params.agreeing)

    def guard_warnings(self, params: Params, workers: Any) -> list[str]:
        h, _, trust, _, _, alone, inverted = params.found.tolist()
        fallback, said = self.calibration(params).fallback, list[str]()
        if alone:
            said.append("no task has answers of two workers, so nothing shows who is right: the labels are the answers")
        elif trust < 1:
            said.append(
                "the answers agree hardly more than random ones: labels are close to the vote, and their probabilities "
                "close to chance. Check the question, the classes and the column of labels"
            )
        if fallback > 0 and inverted > INVERTED[0]:
            said.append(
                f"workers below chance gave {100 * inverted:.0f} % of the answers, so the majority may be the wrong "
                f"one: the labels follow the vote by {100 * fallback:.0f} %. Check some tasks whose label you know"
            )
        elif fallback > 0 and not alone:
            said.append(
                f"the model would move {100 * _drift(params, h):.0f} % of the tasks to other classes than the votes, "
                f"as it does when tasks mislead many workers: the labels follow the vote by {100 * fallback:.0f} %. "
                "Check some tasks whose label you know"
            )
        return [*said, *_copy_warnings(params, workers)]

    def weighted(self, shard: Shard, params: Params, worker: Ints | None = None) -> Shard:
        cluster = params.cluster if worker is None else np.where(worker >= 0, params.cluster[worker], -1)
        return _with_copies(shard, cluster, params.copying, by_row=worker is not None)

    def need(self, answers: Labels, dtype: np.dtype[Any]) -> int:
        K, rows = answers.n_classes, answers.row_table.n_rows
        return K * (
            (answers.tasks_in_memory + 3 * rows) * dtype.itemsize + 8 * (3 * rows + 5 * answers.n_workers + 12 * K)
        )

    def emission(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: Ints | None = None) -> Floats:
        """Use the posterior mean of a worker's row; an unknown worker has the crowd's."""
        above = params.a.sum(1)
        below = params.totals[worker] + above
        prior = params.a.T[label]
        at, there = find_rows(layout, worker, label)
        counts = params.counts[at] if layout.n_rows else np.zeros_like(prior)
        known = (prior + np.where(there[:, None], counts, 0)) / below
        crowd = params.a / above[:, None]
        return np.asarray(np.log(np.where((worker >= 0)[:, None], known, crowd.T[label])))

    def factors(self, params: Params, layout: RowTable, worker: Ints, label: Ints, task: int) -> Floats:
        at, there = find_rows(layout, worker, label)
        means = self.emission(params, layout, worker, label)
        if not layout.n_rows:
            return means
        own = np.log(params.rows[at].astype(np.float64))
        if self.calibrate and isinstance(layout, Layout):
            own = self._without(params, layout, at, label, task)
        return np.asarray(np.where(there[:, None], own, means) * self.answer_weights(params, worker)[:, None])

    def _without(self, params: Params, layout: Layout, rows: Ints, label: Ints, task: int) -> Floats:
        """Return the log-factors (M, K) of rows without the contribution of a task of the fit to their counts."""
        given = layout.pair[layout.task_ptr[task] : layout.task_ptr[task + 1]]
        worker, h = layout.row_worker[given], float(params.found[0])
        weight = self.answer_weights(params, worker)
        logs = np.log(self.class_prior(params, layout.n_classes, task))
        u = softmax(logs + weight @ np.log(params.rows[given].astype(np.float64)))
        if h > 0:
            votes = weight * params.vote_weight[worker]
            shares = weighted_counts(layout.row_label[given], votes, layout.n_classes) + params.mean
            u = (1 - h) * u + h * shares / shares.sum()
        lost = np.zeros(layout.n_rows)
        np.add.at(lost, given, weight)
        own = lost[rows][:, None] * u
        above = np.maximum(params.counts[rows] - own, 0) + params.a.T[label]
        below = np.maximum(params.totals[layout.row_worker[rows]] - own, 0) + params.a.sum(1)
        return np.asarray(np.log(above / below))

    def answer_weights(self, params: Params, worker: Ints) -> Floats:
        cluster = np.where(worker >= 0, params.cluster[worker], -1)
        return _copy_weights(np.zeros(len(worker), np.int64), cluster, params.copying)


class _Votes(NamedTuple):
    """What the anchor s of eq (8) is made from."""

    by_row: ByRow  # weight of a row's votes
    mean: Floats  # (K,)
    cluster: PerWorker  # (W,)
    copying: Floats  # (G,)


def vote_weights(rows: RowTable) -> Floats:
    """Return the weight of each worker's votes (W,): how varied their labels are, relative to the crowd, at most 1.

    A worker who always gives the same label carries no information. Without the weights, a majority of such spammers
    would determine the anchor.
    """
    n, K, prior = _answers(rows), rows.n_classes, LABEL_PRIOR_ANSWERS
    shares = weighted_counts(rows.row_label, n, K) / max(n.sum(), 1)
    total = per_worker(rows, n) + prior
    seen = per_worker(rows, ((n + prior * shares[rows.row_label]) / total[rows.row_worker]) ** 2)
    unseen = (shares**2).sum() - per_worker(rows, shares[rows.row_label] ** 2)
    variety = 1 - seen - unseen * (prior / total) ** 2
    return np.asarray(np.clip(variety / max(1 - (shares**2).sum(), 1e-9), 0, 1))


def _answers(rows: RowTable) -> Floats:
    return np.asarray(getattr(rows, "answers", None) if hasattr(rows, "answers") else np.diff(rows.row_ptr), np.float64)


def _mean(crowd: Crowd, weight: Floats) -> Floats:
    """Return the share of each label among the weighted votes (K,), with one vote for all of them together."""
    rows = crowd.rows
    votes = weighted_counts(rows.row_label, rows.answers * weight[rows.row_worker], rows.n_classes)
    return np.asarray((votes + 1 / rows.n_classes) / (votes.sum() + 1))


def _with_copies(shard: Shard, cluster: Ints, copying: Floats, *, by_row: bool = False) -> Shard:
    """Return the shard with the weights of answers of workers who copy each other; `cluster` is by worker or by row."""
    if not len(copying):
        return shard
    layout = shard.layout
    own = cluster[layout.pair] if by_row else cluster[layout.row_worker[layout.pair]]
    task = np.repeat(np.arange(layout.n_tasks), np.diff(layout.task_ptr))
    return shard._replace(weight=_copy_weights(task, own, copying))


def _copy_weights(task: Ints, cluster: Ints, copying: Floats) -> Floats:
    """Return the weight of each answer (N,), by its task and cluster: eq (2) of `copies`."""
    weight, members = np.ones(len(task)), np.flatnonzero(cluster >= 0)
    if len(members):
        key = task[members].astype(np.int64) * len(copying) + cluster[members]
        _, place, count = np.unique(key, return_inverse=True, return_counts=True)
        weight[members] = 1 / (1 + copying[cluster[members]] * (count[place] - 1))
    return weight


def _mixed(stats: Stats, params: Params) -> tuple[Floats, Floats]:  # eq (9)
    h = float(params.found[0])
    if h == 0:
        return stats.shares, stats.counts
    counts = stats.counts * (1 - h)
    counts += h * params.vote_counts
    return (1 - h) * stats.shares + h * params.vote_n, counts


def _anchored(params: Params) -> Floats:
    """Return the second term of eq (10), without h."""
    if not len(params.vote_counts):
        return np.zeros(())
    classes = float(params.vote_n @ np.log(expected_shares(params.n)))
    return np.asarray(classes + float((params.vote_counts * np.log(params.rows, dtype=np.float64)).sum()))


def _fallback(params: Params, h: float, shared: float) -> float:
    """Return the weight of the vote in place of the model: because a class swallows tasks, many workers are below
    chance, or no tasks are shared."""
    drift, inverted = _drift(params, h), params.found[6]
    shares = [
        (value - low) / (high - low)
        for value, (low, high) in ((shared * drift, SHARED_DRIFT), (drift, ANY_DRIFT), (inverted, INVERTED))
    ]
    return float(np.clip(max(*shares, params.found[5]), 0, 1))


def _drift(params: Params, h: float) -> float:
    """Return the share of tasks that the model moves to other classes than the votes, as far as class sizes show it."""
    free = (params.n - h * params.vote_n) / (1 - h)
    return float(0.5 * np.abs(free - params.vote_n).sum() / max(params.vote_n.sum(), 1e-9))


def inverted_share(rows: WorkerRows, params: Params) -> float:
    """Return the share of answers by workers who are right less often than random answers with their label shares."""
    if not rows.n_rows:
        return 0.0
    given = params.counts.sum(1, dtype=np.float64)  # answers times their weights
    n = per_worker(rows, given)
    right = per_worker(rows, params.counts[np.arange(rows.n_rows), rows.row_label].astype(np.float64))
    truth = params.totals / np.maximum(params.totals.sum(1, keepdims=True), 1e-300)
    chance = per_worker(rows, given * truth[rows.row_worker, rows.row_label])
    deviation = np.sqrt(np.maximum(chance * (1 - chance / np.maximum(n, 1)), 0.25))
    below = (right - chance) / deviation < BELOW_CHANCE
    return float(n[below].sum() / max(n.sum(), 1e-300))


def _copy_warnings(params: Params, workers: Any) -> list[str]:
    """Return sentences about workers who copy each other, and about groups that agree beyond the crowd."""
    said = []
    for number, rate in enumerate(params.copying.tolist()):
        names = _named(workers, params.cluster == number)
        said.append(f"{names} give the same answers ({100 * rate:.0f} % as if copied), so they share one vote")
    for number in range(len(params.agreeing)):
        names = _named(workers, params.group == number)
        said.append(
            f"{names} agree among themselves beyond the crowd: shared errors or better knowledge. Check them with "
            "tasks whose label you know"
        )
    return said


def _named(workers: Any, mask: Bools) -> str:
    """Return the number of workers, and the names of some."""
    names = [str(name)[:40] for name in workers.filter(mask)[:MAX_NAMED]]
    return f"{int(mask.sum())} workers ({', '.join(names)}{', ...' if mask.sum() > MAX_NAMED else ''})"


def _same(value: Any) -> Any:
    return value


def _log_prior(a: Floats) -> Floats:
    """Return the log-density of Gamma(2, 1) of each row of a (K,), up to a constant."""
    return np.asarray((np.log(a) - a).sum(1))
