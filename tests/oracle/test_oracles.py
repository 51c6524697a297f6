"""Models against exact references: enumeration of every truth of four tasks, and bounds written out in full."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats as distributions
from scipy.special import expit, gammaln, logsumexp, psi, softmax, xlogy

import crowdwise as cw
from crowdwise.engine.registry import MODELS
from crowdwise.labels import copies, dependence, groups, sampled
from crowdwise.labels.em import EMModel, Local
from crowdwise.labels.shard import Shard, spread

DOUBLE = cw.Run(precision="double")
ITERATIVE = [name for name in cw.models("labels")["name"] if issubclass(MODELS["labels"][name], EMModel)]
BARE = {"pooled": {"anchor": 0.0, "copying": 1.0, "calibrate": False}}
T, W = 4, 3
SETTINGS = {
    "dawid-skene": {"smoothing": 0.3},
    "one-coin": {"right": 2.0, "wrong": 0.7, "prevalence_is": "learnt"},
    "glad": {"spread": 0.8, "prevalence_is": "uniform"},
}
pytestmark = pytest.mark.filterwarnings("error")
each_size = pytest.mark.parametrize("K", [2, 3])
each_model = pytest.mark.parametrize("name", SETTINGS)


def small(K: int, seed: int, gold: dict[str, int] | None = None) -> cw.Labels:
    """Four tasks, three workers; every label is given, but the last one never by the last worker."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, K, (T, W))
    label[:, -1] %= K - 1
    label[:K, 0] = np.arange(K)
    task, worker = np.divmod(np.arange(T * W), W)
    return cw.Labels([f"t{i}" for i in task], [f"w{j}" for j in worker], label.ravel(), gold=gold)


def enumerated(answers: cw.Labels, rho: Any, likelihood: Callable[[int, int, int, int], float]) -> tuple[float, Any]:
    """log p(labels) and the marginals (T, K), summed over all K^T truths; likelihood(i, j, k, l) is P(label l | k)."""
    K, scores, truths = len(rho), [], list(product(range(len(rho)), repeat=T))
    triples = list(zip(*answers.codes(), strict=True))
    for z in truths:
        possible = all(known in (-1, z[i]) for i, known in enumerate(answers.gold))
        log_p = sum(np.log(rho[z[i]]) for i in range(T)) + sum(np.log(likelihood(i, j, z[i], m)) for i, j, m in triples)
        scores.append(log_p if possible else -np.inf)
    weight = np.exp(scores - logsumexp(scores))
    marginals = [[weight[[z[i] == k for z in truths]].sum() for k in range(K)] for i in range(T)]
    return float(logsumexp(scores)), np.array(marginals)


class Oracle:
    """Parameters of a model, with the objective by enumeration and random perturbations."""

    def __init__(self, name: str, answers: cw.Labels, params: Any, model: Any) -> None:
        self.name, self.answers, self.model = name, answers, model
        self.rho, self.K = np.array(params.rho), answers.n_classes
        if name == "dawid-skene":
            self.values = [whole_confusions(answers, params, model.smoothing)]
        else:
            self.values = [params.hit] if name == "one-coin" else [params.ability, params.ease]

    def likelihood(self, i: int, j: int, k: int, m: int) -> float:
        if self.name == "dawid-skene":
            return float(self.values[0][j, k, m])
        right = self.values[0][j] if self.name == "one-coin" else expit(self.values[0][j] * self.values[1][i])
        return float(right if k == m else (1 - right) / (self.K - 1))

    def log_prior(self) -> float:
        first, model = self.values[0], self.model
        if self.name == "dawid-skene":
            return float(model.smoothing * (np.log(self.rho).sum() + np.log(first).sum()))
        if self.name == "one-coin":
            return float((model.right * np.log(first) + model.wrong * np.log(1 - first)).sum() + np.log(self.rho).sum())
        return float(-((first - 1) ** 2).sum() / 2)

    def log_prior_of_tasks(self) -> float:
        """Log-prior of the parameters of tasks."""
        return float(-((self.values[1] - 1) ** 2).sum() / (2 * self.model.spread)) if self.name == "glad" else 0.0

    def objective(self) -> float:
        return enumerated(self.answers, self.rho, self.likelihood)[0] + self.log_prior() + self.log_prior_of_tasks()

    def shake(self, rng: np.random.Generator, size: float) -> None:
        """Move every parameter a little, within its range."""
        move = [size * rng.normal(size=value.shape) for value in self.values]
        if self.name == "dawid-skene":
            turned = self.values[0] * np.exp(move[0])
            self.values = [turned / turned.sum(2, keepdims=True)]
        elif self.name == "one-coin":
            self.values = [expit(np.log(self.values[0] / (1 - self.values[0])) + move[0])]
        else:
            self.values = [self.values[0] + move[0], np.maximum(0.05, self.values[1] + move[1])]
        if self.name != "glad":
            turned = self.rho * np.exp(size * rng.normal(size=self.K))
            self.rho = turned / turned.sum()


def whole_confusions(answers: cw.Labels, params: Any, smoothing: float) -> Any:
    """(W, K, K) from the rows that occurred; a label never given has only the smoothing."""
    layout, K = answers.layout, answers.n_classes
    pi = np.repeat((smoothing / (params.totals + K * smoothing))[:, :, None], K, axis=2)
    for r in range(layout.n_rows):
        pi[layout.row_worker[r], :, layout.row_label[r]] = params.rows[r]
    assert np.allclose(pi.sum(2), 1)
    return pi


@each_size
@each_model
@pytest.mark.parametrize("gold", [None, {"t1": 0}])
def test_objective_and_posterior_by_enumeration(name: str, K: int, gold: Any, kernels: Any) -> None:
    answers, model = small(K, 1, gold), cw.model(name, max_iter=7, **SETTINGS[name])
    result = model.fit(answers, run=DOUBLE)
    oracle = Oracle(name, answers, result.params, model)
    evidence, marginals = enumerated(answers, oracle.rho, oracle.likelihood)
    penalty, of_tasks = model.penalty(result.params), oracle.log_prior_of_tasks()
    assert (of_tasks < -0.01) == (name == "glad")
    assert np.isclose(penalty, oracle.log_prior(), rtol=1e-10)
    assert np.isclose(result.trace["objective"][-1], evidence + penalty + of_tasks, rtol=1e-10)
    assert np.allclose(result.posterior, marginals, atol=1e-10)


@each_size
@each_model
def test_a_fit_ends_on_a_maximum(name: str, K: int) -> None:
    answers, model = small(K, 1), cw.model(name, max_iter=3000, tol=0.0, **SETTINGS[name])
    params, rng = model.fit(answers, run=DOUBLE).params, np.random.default_rng(0)
    top = Oracle(name, answers, params, model).objective()
    for _ in range(25):
        shaken = Oracle(name, answers, params, model)
        shaken.shake(rng, 1e-3)
        assert shaken.objective() <= top + 1e-8
    shaken.shake(rng, 0.3)
    assert shaken.objective() < top - 1e-3


# ---------------------------------------------------------------------------------------------------------- skill


@pytest.mark.parametrize("gold", [None, {"t1": 0, "t3": 1}])
@pytest.mark.parametrize("name", [name for name in ITERATIVE if name != "pooled"])
def test_an_answer_is_judged_by_the_others(name: str, gold: Any, kernels: Any) -> None:
    """`right` and `sharpness` are sums over answers of posteriors computed without the answer."""
    answers = small(3, 2, gold)
    result = cw.aggregate(answers, name, run=DOUBLE, max_iter=5, **BARE.get(name, {}))
    right, sure = np.zeros(W), np.zeros(W)
    task, worker, label = answers.codes()
    for n in range(answers.n_answers):
        others = (task == task[n]) & (np.arange(len(task)) != n)
        q = result.model.task_posterior(result.params, answers.layout, worker[others], label[others], int(task[n]))
        q = np.eye(3)[answers.gold[task[n]]] if answers.gold[task[n]] >= 0 else q
        right[worker[n]] += q[label[n]]
        sure[worker[n]] += (q**2).sum()
    assert np.allclose(result.left_out.right, right, atol=1e-9)
    assert np.allclose(result.left_out.sharpness, sure, atol=1e-9)


def test_pooled_also_takes_the_task_out_of_the_others_rows(kernels: Any) -> None:
    """A row without a task is (C - q + a) / (N - q + a.), as kernels.cavity_left_out has it."""
    answers = small(3, 2)
    result = cw.aggregate(answers, "pooled", run=DOUBLE, max_iter=5, **BARE["pooled"])
    params, right = result.params, np.zeros(W)
    task, worker, label = answers.codes()
    for n in range(answers.n_answers):
        q = result.model.class_prior(params, 3)
        own = result.posterior[task[n]]
        for m in np.flatnonzero((task == task[n]) & (np.arange(len(task)) != n)):
            above = np.maximum(params.counts[answers.layout.pair[m]] - own, 0) + params.a[:, label[m]]
            q = q * above / (np.maximum(params.totals[worker[m]] - own, 0) + params.a.sum(1))
        right[worker[n]] += q[label[n]] / q.sum()
    assert np.allclose(result.left_out.right, right, atol=1e-6)


@pytest.mark.parametrize("gold", [None, {"t1": 0, "t3": 1}])
def test_voters_are_judged_by_the_other_votes(gold: Any, kernels: Any) -> None:
    """One accuracy p for all, estimated from how often two votes on a task agree; each vote weighs its log-odds."""
    answers = small(3, 2, gold)
    task, worker, label = answers.codes()
    agree = [label[a] == label[b] for a in range(12) for b in range(12) if a != b and task[a] == task[b]]
    p = 1 / 3 + 2 / 3 * np.sqrt(max(0, (np.mean(agree) - 1 / 3) / (2 / 3)))
    right, sure = np.zeros(W), np.zeros(W)
    for n in range(answers.n_answers):
        others = label[(task == task[n]) & (np.arange(12) != n)]
        q = (2 * p / (1 - p)) ** np.bincount(others, minlength=3)
        q = np.eye(3)[answers.gold[task[n]]] if answers.gold[task[n]] >= 0 else q / q.sum()
        right[worker[n]] += q[label[n]]
        sure[worker[n]] += (q**2).sum()
    result = cw.MajorityVote().fit(answers, run=DOUBLE)
    assert np.allclose(result.left_out.right, right, atol=1e-9)
    assert np.allclose(result.left_out.sharpness, sure, atol=1e-9)


@pytest.mark.parametrize("K", [2, 4])
def test_skill_has_no_bias_towards_the_workers_own_answers(K: int) -> None:
    """Workers who guess have skill 1 / K, not more, even with few answers per task."""
    sim = cw.simulate.crowd("hammer-spammer", tasks=3000, workers=60, classes=K, per_task=3, spammers=0.5, seed=4)
    table = cw.aggregate(sim.answers, "one-coin").workers
    guess = (sim.workers["skill"] < 0.6).to_numpy()
    assert abs(table["skill"].to_numpy()[guess].mean() - 1 / K) < 0.03
    assert abs(table["skill"].to_numpy()[~guess].mean() - 0.9) < 0.03


# ------------------------------------------------------------------------------------------------- variational bounds


def divergence(q: Any, p: Any) -> float:
    """Sum over rows of KL(Dirichlet(q) || Dirichlet(p)), over all labels, given or not."""
    p = np.broadcast_to(p, q.shape)
    norm = gammaln(q.sum(-1)) - gammaln(q).sum(-1) - gammaln(p.sum(-1)) + gammaln(p).sum(-1)
    return float((norm + ((q - p) * (psi(q) - psi(q.sum(-1, keepdims=True)))).sum(-1)).sum())


def expected_log(q: Any) -> Any:
    return psi(q) - psi(q.sum(-1, keepdims=True))


def entropy(Z: Any) -> float:
    return float(distributions.entropy(Z, axis=1).sum())


def dense(answers: cw.Labels, by_row: Any) -> Any:
    """(W, K, L) or (W, L) of rows (R, K) or (R,)."""
    layout = answers.layout
    out = np.zeros((answers.n_workers, *by_row.shape[1:], answers.n_classes))
    for r in range(layout.n_rows):
        out[layout.row_worker[r], ..., layout.row_label[r]] = by_row[r]
    return out


def pooled_bound(
    answers: cw.Labels, Z: Any, n: Any, C: Any, a: Any, *, h: float = 0.0, votes: Any = 0.0, weight: Any = None
) -> float:
    """Eq (10) of labels/pooled.py before q(z) is put in: E log p(labels, z | pi, rho), with z drawn from q or, with
    probability h, from the votes; + (1 - h) H(q(z)) - KLs + log p(a)."""
    elog_rho, elog_pi = expected_log(1 + n), expected_log(a + C)
    U = (1 - h) * Z + h * votes
    weight = np.ones(answers.n_answers) if weight is None else weight
    joint = (U @ elog_rho).sum() + sum(
        w * (U[i] * elog_pi[j, :, m]).sum() for i, j, m, w in zip(*answers.codes(), weight, strict=True)
    )
    hyper = distributions.gamma.logpdf(a, 2).sum()
    prior = divergence(1 + n, np.ones(len(n))) + divergence(a + C, a)
    return float(joint + (1 - h) * entropy(Z) - prior + hyper)


def improved(answers: cw.Labels, result: cw.LabelsResult) -> Any:
    """The parameters of one more step from the posterior of the fit."""
    crowd, _ = spread(answers, DOUBLE)
    shard, Z = Shard.of(answers, DOUBLE), result.posterior
    stats = result.model.statistics(shard, Local(Z), shard.shares(Z), result.params)
    return result.model.maximise(crowd, stats, result.params)


@each_size
@pytest.mark.parametrize("iterations", [1, 6])
def test_pooled_bound_equals_its_definition(K: int, iterations: int, kernels: Any) -> None:
    answers = small(K, 3)
    result = cw.Pooled(max_iter=iterations, **BARE["pooled"]).fit(answers, run=DOUBLE)
    p = result.params
    bound = pooled_bound(answers, result.posterior, p.n, dense(answers, p.counts), p.a)
    assert np.isclose(result.trace["objective"][-1], bound, rtol=1e-9)


@each_size
def test_pooled_steps_are_the_best_of_their_kind(K: int, kernels: Any) -> None:
    answers, rng = small(K, 4), np.random.default_rng(1)
    result = cw.Pooled(max_iter=4, **BARE["pooled"]).fit(answers, run=DOUBLE)
    p, Z = improved(answers, result), result.posterior
    n, C, a = p.n, dense(answers, p.counts), p.a
    best = pooled_bound(answers, Z, n, C, a)
    assert best > result.trace["objective"][-1]
    for size in (1e-3, 1e-2, 0.3):  # labels never given have C = 0, which must work
        other = C * np.exp(size * rng.normal(size=C.shape)) + size * rng.random(C.shape)
        assert pooled_bound(answers, Z, n, other, a) < best
        assert pooled_bound(answers, Z, n * np.exp(size * rng.normal(size=K)), C, a) < best


@each_size
def test_pooled_posterior_is_the_best_given_the_workers(K: int, kernels: Any) -> None:
    answers, rng = small(K, 5), np.random.default_rng(2)
    result = cw.Pooled(max_iter=3, **BARE["pooled"]).fit(answers, run=DOUBLE)
    p = result.params
    C = dense(answers, p.counts)
    for size in (1e-3, 1e-2, 0.3):
        other = result.posterior * np.exp(size * rng.normal(size=(T, K)))
        assert pooled_bound(answers, other / other.sum(1, keepdims=True), p.n, C, p.a) < result.trace["objective"][-1]


@each_size
def test_pooling_strength_reaches_a_maximum(K: int) -> None:
    answers, rng = small(K, 6), np.random.default_rng(3)
    result = cw.Pooled(max_iter=4000, tol=0.0, **BARE["pooled"]).fit(answers, run=DOUBLE)
    p = result.params
    C = dense(answers, p.counts)
    best = pooled_bound(answers, result.posterior, p.n, C, p.a)
    for size in (1e-3, 1e-2, 0.2):
        other = np.clip(p.a * np.exp(size * rng.normal(size=(K, K))), 1e-3, 1e4)
        assert pooled_bound(answers, result.posterior, p.n, C, other) <= best + 1e-9


def anchored_fit(answers: cw.Labels, h: float, iterations: int) -> tuple[Any, Any, Any, Any]:
    """Fit with an anchor h and with workers 0 and 1 as copies; return the parameters, the posterior, the smoothed votes
    of the anchor and the weights of the answers."""
    crowd, shards = spread(answers, DOUBLE)
    found = sampled.independent(W, h)._replace(cluster=np.array([0, 0, -1]), copying=np.array([0.8]))
    learnt = cw.Pooled().learn_given(found, answers, crowd, shards, DOUBLE.begin(), max_iter=iterations)
    weight = np.array([1 / 1.8 if j < 2 else 1.0 for j in answers.codes()[1]])
    votes = np.tile(learnt.params.mean, (T, 1))
    for (i, j, m), w in zip(zip(*answers.codes(), strict=True), weight, strict=True):
        votes[i, m] += w * learnt.params.vote_weight[j]
    votes /= votes.sum(1, keepdims=True)
    Z = next(iter(shards.each(lambda shard, local: local.Z)))
    return learnt, Z, votes, weight


@each_size
@pytest.mark.parametrize("iterations", [1, 5])
def test_the_anchored_objective_equals_its_definition(K: int, iterations: int, kernels: Any) -> None:
    answers = small(K, 3)
    learnt, Z, votes, weight = anchored_fit(answers, 0.3, iterations)
    p = learnt.params
    bound = pooled_bound(answers, Z, p.n, dense(answers, p.counts), p.a, h=0.3, votes=votes, weight=weight)
    assert np.isclose(learnt.trace.objectives[-1], bound, rtol=1e-9)
    assert np.diff(learnt.trace.objectives).min(initial=1.0) > 0


@each_size
def test_anchored_steps_are_the_best_of_their_kind(K: int, kernels: Any) -> None:
    answers, rng = small(K, 4), np.random.default_rng(1)
    learnt, Z, votes, weight = anchored_fit(answers, 0.3, 3)
    p = learnt.params
    given = {"h": 0.3, "votes": votes, "weight": weight}
    best = pooled_bound(answers, Z, p.n, dense(answers, p.counts), p.a, **given)
    for size in (1e-3, 1e-2, 0.3):
        other = Z * np.exp(size * rng.normal(size=Z.shape))
        other /= other.sum(1, keepdims=True)
        assert pooled_bound(answers, other, p.n, dense(answers, p.counts), p.a, **given) < best


def test_reported_probabilities_are_tempered_and_mixed_with_the_vote(kernels: Any) -> None:
    answers = small(3, 3, {"t2": 1})
    found = cw.Pooled(anchor=0.3, copying=1.0).fit(answers, run=DOUBLE)
    bare = cw.Pooled(anchor=0.3, copying=1.0, calibrate=False).fit(answers, run=DOUBLE)
    p, C = bare.params, dense(answers, bare.params.counts)
    votes, weighted = np.zeros((T, 3)), np.tile(p.mean, (T, 1))
    for i, j, m in zip(*answers.codes(), strict=True):
        votes[i, m] += 1
        weighted[i, m] += p.vote_weight[j]
    U = 0.7 * bare.posterior + 0.3 * weighted / weighted.sum(1, keepdims=True)
    how = found.model.calibration(found.params)
    y = max(how.shared, 1.0)  # three votes are too few to show whether errors are shared
    for i in (0, 1, 3):
        logs = expected_log(1 + p.n)
        for _, j, m in (row for row in zip(*answers.codes(), strict=True) if row[0] == i):
            rest = np.maximum(C[j] - np.outer(U[i], np.arange(3) == m), 0)  # the last E-step came after the counts
            logs = logs + np.log((rest[:, m] + p.a[:, m]) / (np.maximum(C[j].sum(1) - U[i], 0) + p.a.sum(1)))
        tempered = softmax(logs / (1 + (0.05 + 0.15 * y) * (W - 1)))
        smoothed = (votes[i] + p.mean) / (W + 1)
        wanted = (1 - how.fallback) * (0.9 * tempered + 0.1 * smoothed) + how.fallback * smoothed
        wanted = how.trust * wanted + (1 - how.trust) * (0.8 / 3 + 0.2 * smoothed)
        assert np.allclose(found.posterior[i], wanted, atol=1e-9)
    assert found.posterior[2].tolist() == [0, 1, 0]
    assert found.trace.equals(bare.trace)
    assert found.workers.equals(bare.workers)


LONG = {"tol": 1e-12, "max_iter": 3000}  # the last posterior is then the one that the parameters were computed from


def test_workers_are_judged_by_the_posterior_without_the_anchor(kernels: Any) -> None:
    answers = small(3, 3)
    result = cw.Pooled(anchor=0.3, copying=1.0, calibrate=False, **LONG).fit(answers, run=DOUBLE)
    p, Z, given = result.params, result.posterior, list(zip(*answers.codes(), strict=True))
    C, right = np.zeros((W, 3, 3)), np.zeros(W)
    for i, j, m in given:
        C[j, :, m] += Z[i]
    for n, (i, j, m) in enumerate(given):
        logs = expected_log(1 + p.n)
        for other, (_, k, label) in enumerate(given):
            if given[other][0] == i and other != n:
                logs = logs + np.log((C[k, :, label] - Z[i] + p.a[:, label]) / (C[k].sum(1) - Z[i] + p.a.sum(1)))
        right[j] += softmax(logs)[m]
    assert np.allclose(result.left_out.right, right, atol=1e-5)


@each_size
def test_dawid_skene_leaves_the_task_out(K: int, kernels: Any) -> None:
    answers = small(K, 4)
    result = cw.DawidSkene(smoothing=0.3, **LONG).fit(answers, run=DOUBLE)
    Z, given, C = result.posterior, list(zip(*answers.codes(), strict=True)), np.zeros((W, K, K))
    for i, j, m in given:
        C[j, :, m] += Z[i]
    found = result.model.leave_one_out(Shard.of(answers, DOUBLE), result.params, Z.copy(), answers.gold)
    for i in range(T):
        logs = np.log(result.params.rho)
        for _, j, m in (row for row in given if row[0] == i):
            logs = logs + np.log((C[j, :, m] - Z[i] + 0.3) / (C[j].sum(1) - Z[i] + 0.3 * K))
        assert np.allclose(found[i], softmax(logs), atol=1e-5)


@each_size
def test_one_coin_leaves_the_task_out(K: int, kernels: Any) -> None:
    answers = small(K, 4)
    result = cw.OneCoin(**LONG).fit(answers, run=DOUBLE)
    Z, given = result.posterior, list(zip(*answers.codes(), strict=True))
    hits = np.zeros(W)
    for i, j, m in given:
        hits[j] += Z[i, m]
    found = result.model.leave_one_out(Shard.of(answers, DOUBLE), result.params, Z.copy(), answers.gold)
    for i in range(T):
        logs = np.log(result.params.rho)
        for _, j, m in (row for row in given if row[0] == i):
            hit = (hits[j] - Z[i, m] + 2) / (T - 1 + 3)  # two right and one wrong answer are the prior
            logs = logs + np.log(np.where(np.arange(K) == m, hit, (1 - hit) / (K - 1)))
        assert np.allclose(found[i], softmax(logs), atol=1e-5)


# -------------------------------------------------------------------------------------- dependence between answers


def sample_fit(K: int) -> sampled.Fit:
    """A fit to 30 tasks with 4 to 6 answers, in which workers 0 and 1 are copies."""
    rng = np.random.default_rng(K)
    task, worker = np.nonzero(rng.random((30, 8)) < 0.65)
    label = (task % K + (rng.random(len(task)) < 0.3) * rng.integers(1, K, len(task))) % K
    answers = cw.Labels(task, worker, label)
    cluster = np.array([0, 0, *[-1] * (answers.n_workers - 2)])
    return sampled.fit(cw.Pooled(), answers, DOUBLE, 0.2, cluster, [0.8])


def matrix_without(of: sampled.Fit, n: int) -> Any:
    """(K, K) matrix of the worker of answer n, without the contribution of its task."""
    C = dense(of.sample, of.params.counts)[of.worker[n]] + of.params.a
    C[:, of.label[n]] -= of.weight[n] * of.U[of.task[n]]
    return C / C.sum(1, keepdims=True)


@each_size
def test_expected_agreement_leaves_out_both_workers(K: int) -> None:
    of, wanted = sample_fit(K), dict[tuple[int, int], list[float]]()
    prior = np.log(of.params.n + 1)
    for a, b in product(range(len(of.task)), repeat=2):
        if a < b and of.task[a] == of.task[b]:
            one, two = matrix_without(of, a), matrix_without(of, b)
            scores = prior.copy()
            for n in np.flatnonzero(of.task == of.task[a]):
                if n not in (a, b):
                    scores += of.weight[n] * np.log(matrix_without(of, n)[:, of.label[n]])
            q = softmax(scores)
            q = np.where(q >= sampled.MIN_RELEVANT, q, 0)
            agree = (q / q.sum() * (one * two).sum(1)).sum()
            found = wanted.setdefault(tuple(sorted((int(of.worker[a]), int(of.worker[b])))), [0.0, 0.0, 0.0])
            for at, value in enumerate((1.0, float(of.label[a] == of.label[b]), agree)):
                found[at] += value
    shares = np.stack([np.bincount(of.label[of.worker == j], minlength=K) for j in range(8)]).astype(float)
    shares /= shares.sum(1, keepdims=True)
    pairs = copies.pair_agreement(of)
    assert len(pairs.first) == len(wanted) > 20
    for j, k, m, A, E in zip(*pairs, strict=True):
        assert [m, A] == wanted[j, k][:2]
        assert np.isclose(E, max(wanted[j, k][2], m * (shares[j] @ shares[k])), rtol=1e-9)


@each_size
def test_the_excess_is_a_mean_over_four_different_workers(K: int) -> None:
    of = sample_fit(K)
    cluster = np.array([0, 0, *[-1] * 6])
    values, differ = [], []
    for i in range(of.sample.n_tasks):
        kept = [n for n in np.flatnonzero(of.task == i) if of.worker[n] != 1 or 0 not in of.worker[of.task == i]]
        if len(kept) < 4:
            continue
        total = weight = 0.0
        for k in np.flatnonzero(of.Z[i] >= sampled.MIN_RELEVANT):
            rest = {
                (a, b): float(of.label[a] == of.label[b]) - matrix_without(of, a)[k] @ matrix_without(of, b)[k]
                for a, b in product(kept, repeat=2)
            }
            quads = [rest[a, b] * rest[c, d] for a, b, c, d in product(kept, repeat=4) if len({a, b, c, d}) == 4]
            total, weight = total + of.Z[i, k] * np.mean(quads), weight + of.Z[i, k]
        values.append(total / weight)
        differ.append(np.mean([of.label[a] != of.label[b] for a, b in product(kept, repeat=2) if a != b]))
    scale = np.mean(differ) * (1 - np.mean(differ))
    excess, error = dependence.shared_errors(of, cluster)
    assert len(values) >= dependence.MIN_TASKS
    assert np.isclose(excess, np.mean(values) / scale, rtol=1e-9)
    assert np.isclose(error, np.std(values) / np.sqrt(len(values)) / scale, rtol=1e-9)


def mace_bound(answers: cw.Labels, Z: Any, r: Any, theta: Any, xi: Any, b: float, c: float) -> float:
    """E log p(labels, z, h | theta, xi) + H(q(z, h)) - KLs: theta (W, 2) honest or guess, xi (W, L), r[n] = q(h_n = 1 |
    truth is the label given)."""
    (t, u), x = expected_log(theta).T, expected_log(xi)
    total = -T * np.log(Z.shape[1]) + entropy(Z)
    for n, (i, j, m) in enumerate(zip(*answers.codes(), strict=True)):
        guess = u[j] + x[j, m]
        right = r[n] * (t[j] - np.log(r[n])) + (1 - r[n]) * (guess - np.log(1 - r[n]))
        total += Z[i, m] * right + (1 - Z[i, m]) * guess
    return float(total - divergence(theta, np.full(2, b)) - divergence(xi, np.full(xi.shape[1], c)))


def mace_parts(answers: cw.Labels, p: Any, b: float, c: float) -> tuple[Any, Any]:
    guesses = dense(answers, p.guesses)
    return np.stack([p.honest + b, guesses.sum(1) + b], 1), guesses + c


def honesty(answers: cw.Labels, theta: Any, xi: Any) -> Any:
    """Probability that an answer that agrees with the truth was honest, (N,)."""
    (t, u), x = expected_log(theta).T, expected_log(xi)
    _, worker, label = answers.codes()
    return expit(t[worker] - u[worker] - x[worker, label])


@each_size
@pytest.mark.parametrize("iterations", [1, 6])
def test_mace_bound_equals_its_definition(K: int, iterations: int, kernels: Any) -> None:
    answers, b, c = small(K, 7), 0.6, 1.3
    result = cw.Mace(honesty=b, habit=c, max_iter=iterations).fit(answers, run=DOUBLE)
    theta, xi = mace_parts(answers, result.params, b, c)
    bound = mace_bound(answers, result.posterior, honesty(answers, theta, xi), theta, xi, b, c)
    assert np.isclose(result.trace["objective"][-1], bound, rtol=1e-9)


@each_size
def test_mace_steps_are_the_best_of_their_kind(K: int, kernels: Any) -> None:
    answers, rng, b, c = small(K, 8), np.random.default_rng(4), 0.6, 1.3
    result = cw.Mace(honesty=b, habit=c, max_iter=4).fit(answers, run=DOUBLE)
    r = honesty(answers, *mace_parts(answers, result.params, b, c))
    theta, xi = mace_parts(answers, improved(answers, result), b, c)
    best = mace_bound(answers, result.posterior, r, theta, xi, b, c)
    assert best > result.trace["objective"][-1]
    for size in (1e-3, 1e-2, 0.3):
        other = [q * np.exp(size * rng.normal(size=q.shape)) for q in (theta, xi)]
        assert mace_bound(answers, result.posterior, r, other[0], xi, b, c) < best
        assert mace_bound(answers, result.posterior, r, theta, other[1], b, c) < best


def test_groups_improve_the_bound_that_is_written(kernels: Any) -> None:
    """Steps (6) and (7) and the bound (8), from its parts: E log p(answers, truth, groups, all else) - E log q."""
    sim = cw.simulate.crowd("groups", tasks=25, workers=7, classes=3, per_task=4, seed=2)
    answers = cw.Labels(sim.answers.frame(), gold=sim.truth.gather_every(6))
    (task, worker, label), M, K = answers.codes(), 2, 3
    b = np.full((K, K), 0.5) + 2 * np.eye(K)  # (4)
    (crowd, shards), model = spread(answers, DOUBLE), cw.Groups(groups=M)
    first = model.maximise(crowd, model.begin(crowd, shards), None)
    summed = shards.update(model.e_step, first)
    Z0 = shards.locals[0].Z.copy()
    second = model.maximise(crowd, summed.stats, first)
    found = shards.update(model.e_step, second).evidence + model.penalty(second)
    Z = shards.locals[0].Z

    C = np.zeros((7, K, K))
    for i, j, given in zip(task, worker, label, strict=True):
        C[j, :, given] += Z0[i]
    s = first.member
    for _ in range(groups.INNER_STEPS):
        size, beta = s.sum(0), np.einsum("jm,jkl->mkl", s, C)  # (7)
        s = softmax(expected_log(1 + size) + np.einsum("jkl,mkl->jm", C, expected_log(b + beta)), axis=1)  # (6)
    assert np.allclose(second.member, s)
    assert np.allclose(second.counts, beta)
    assert 0.01 < s[:, 0].mean() < 0.99

    logs, n = expected_log(b + beta), Z0.sum(0)
    of_answers = sum(Z[i] @ (s[j] @ logs[:, :, given]) for i, j, given in zip(task, worker, label, strict=True))
    of_z = (Z @ expected_log(1 + n)).sum() - xlogy(Z, Z).sum()
    of_g = (s @ expected_log(1 + size)).sum() - xlogy(s, s).sum()
    parts = divergence(1 + n, np.ones(K)) + divergence(1 + size, np.ones(M)) + divergence(b + beta, b)
    assert np.isclose(found, of_answers + of_z + of_g - parts, rtol=1e-9)
    assert np.allclose(Z[answers.gold >= 0], np.eye(K)[answers.gold[answers.gold >= 0]])


# ---------------------------------------------------------------------------------------------------------- votes


@pytest.fixture
def uneven() -> cw.Labels:
    sim = cw.simulate.crowd(tasks=30, workers=7, classes=3, per_task=4, seed=9).answers
    keep = np.random.default_rng(0).random(sim.n_answers) < 0.7
    return sim.take(keep)


def shares(answers: cw.Labels, weight: Any) -> Any:
    votes = np.zeros((answers.n_tasks, answers.n_classes))
    for i, j, m in zip(*answers.codes(), strict=True):
        votes[i, m] += weight[j]
    silent = votes.sum(1) == 0
    votes[silent] = 1
    return votes / votes.sum(1, keepdims=True)


def test_votes_by_counting(uneven: cw.Labels, kernels: Any) -> None:
    soft = shares(uneven, np.ones(7))
    top = np.isclose(soft, soft.max(1, keepdims=True))
    assert top.sum(1).max() > 1  # ties are among them
    assert np.allclose(cw.SoftVote().fit(uneven, run=DOUBLE).posterior, soft)
    assert np.allclose(cw.MajorityVote().fit(uneven, run=DOUBLE).posterior, top / top.sum(1, keepdims=True))
    given = {worker: 0.5 + j for j, worker in enumerate(uneven.workers)}
    weighed = cw.WeightedVote(given=given).fit(uneven, run=DOUBLE).posterior
    assert np.allclose(weighed, shares(uneven, 0.5 + np.arange(7)))


def test_weights_learnt_from_agreement(uneven: cw.Labels, kernels: Any) -> None:
    hits, total = np.zeros(7), np.zeros(7)
    triples = list(zip(*uneven.codes(), strict=True))
    for i, j, m in triples:
        others = [label for task, worker, label in triples if task == i and worker != j]
        if others:
            hits[j] += others.count(m) / len(others)
            total[j] += 1
    p = (hits + 2 * hits.sum() / total.sum()) / (total + 2)
    weight = np.maximum(0, (p - 1 / 3) / (1 - 1 / 3))
    assert np.allclose(cw.WeightedVote().fit(uneven, run=DOUBLE).posterior, shares(uneven, weight))


def test_weights_from_a_column(kernels: Any) -> None:
    """All workers are alike, and each answer counts by its own weight."""
    frame = {
        "task": [1, 1, 1, 2, 2, 2], "worker": ["a", "b", "c"] * 2, "label": ["x", "y", "y", "x", "y", "x"],
        "weight": [3.0, 1.0, 1.5, 0.25, 1.0, 0.0],
    }  # fmt: skip
    result = cw.WeightedVote(learn_from="column").fit(cw.Labels(frame))
    assert np.allclose(result.posterior, [[3 / 5.5, 2.5 / 5.5], [0.2, 0.8]])
    assert result.params.weight.tolist() == [1, 1, 1]


def test_the_evidence_for_shared_errors_is_shrunk_to_what_is_assumed() -> None:
    """A normal estimate with a normal prior around the scale: known exactly, it counts alone; unknown, errors count as
    shared."""
    scale, spread = dependence.EXCESS_SCALE, dependence.EXCESS_SPREAD
    assert dependence.shared_share(0.0, 0.0) == 0
    assert dependence.shared_share(scale / 2, 0.0) == 0.5
    assert dependence.shared_share(-1.0, np.inf) == 1
    for excess, error in ((0.0, 0.02), (0.01, 0.05), (-0.01, 0.08)):
        grid = np.linspace(-1, 1, 200_001)
        density = np.exp(-((grid - excess) ** 2) / (2 * error**2) - (grid - scale) ** 2 / (2 * spread**2))
        mean = (grid * density).sum() / density.sum()
        assert np.isclose(dependence.shared_share(excess, error), np.clip(mean / scale, 0, 1), atol=1e-6)
