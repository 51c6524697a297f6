"""Classifiers with groups of workers: the paper's equations written out, its numbers, and saving and loading."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier
from test_groups import before_of, held_to_slow, slow_assign

import crowdwise as cw
from crowdwise.labels.em import Local
from crowdwise.labels.shard import Shard, spread
from crowdwise.learn import CMM, DLEM, PUBLISHED, Ideal, JointGroups, JointPooled, JointTied, Network, estimator
from crowdwise.learn.cmm import Params
from crowdwise.learn.estimator import worker_side
from crowdwise.learn.objective import softmax
from crowdwise.reproduce import labelme
from crowdwise.reproduce.groups import simulated_points, small_network
from crowdwise.reproduce.methods import Dataset, count_confusions, fit_method, measure_method

pytestmark = pytest.mark.filterwarnings("error", "ignore:.*was not refitted")
DOUBLE = cw.Run(precision="double", threads=1)
NEW: dict[str, Any] = {
    "groups": JointGroups(groups=3),
    "tied": JointTied(),
    "pooled": JointPooled(),
    "dl-em": DLEM(),
    "cmm": CMM(groups=3),
    "cmm at random": CMM(groups=3, start="random"),
}
CLASSIFIERS = {
    "logistic": lambda: "logistic",
    "mlp": lambda: Network(hidden=8, holdout=0.0),
    "tree": lambda: DecisionTreeClassifier(min_samples_leaf=15, random_state=0),
}


@functools.cache
def crowd(seed: int = 1) -> cw.simulate.Crowd:
    return cw.simulate.triangle(30, tasks=150, fresh=60, seed=seed)


def some_gold() -> cw.Labels:
    sim = crowd()
    return cw.Labels(sim.answers.frame(), gold=sim.truth.head(150).gather_every(9))


def fit(side: Any, classifier: Any = "logistic", answers: Any = None, iterations: int = 8, **more: Any) -> Any:
    sim = crowd()
    side = side if isinstance(side, str) else replace(side, max_iter=iterations, tol=0.0)
    model = cw.CrowdClassifier(classifier, side, **{"random_state": 0, **more})
    return model.fit(sim.features, sim.answers if answers is None else answers, tasks=sim.truth["task"])


@functools.cache
def taught(name: str) -> cw.CrowdClassifier:
    return fit(NEW[name], answers=some_gold())


# -------------------------------------------------------------------------------------------- CMM, all of it laid out


class Constant:
    """A truth side with fixed logits; it records its training targets."""

    log_prior = -0.5

    def __init__(self, logits: Any) -> None:
        self.given, self.targets = logits, None

    def logits(self, X: Any = None) -> Any:
        return self.given

    def follow(self, targets: Any) -> None:
        self.targets = targets


def somewhere(T: int, W: int, M: int = 3, K: int = 3, seed: int = 0) -> Params:
    rng = np.random.default_rng(seed)
    share, matrices = rng.dirichlet(np.ones(M)), rng.dirichlet(np.ones(K), (M, K))
    member = rng.dirichlet(np.ones(M), W)
    return Params(rng.normal(0, 1.5, (T, K)), share, matrices, np.asarray(0.0), np.full(K, 1 / K), member)


def laid_out(answers: cw.Labels, params: Params) -> tuple[Any, Any, float]:
    """r (T, J), q (T, J, M, K) and eq (4), answer by answer; a known label replaces the classifier's prediction."""
    T, K, M = answers.n_tasks, answers.n_classes, len(params.share)
    f = softmax(params.logits)
    f[answers.gold >= 0] = np.eye(K)[answers.gold[answers.gold >= 0]]
    r, q, total = np.zeros((T, K)), np.zeros((T, K, M, K)), 0.0
    for i, _, j in zip(*answers.codes(), strict=True):
        r[i, j] += 1
        total += np.log(sum(params.share[m] * params.matrices[m, k, j] * f[i, k] for m in range(M) for k in range(K)))
    for i, j, m, k in np.ndindex(q.shape):
        q[i, j, m, k] = params.share[m] * params.matrices[m, k, j] * f[i, k]
    return r, q / q.sum((2, 3), keepdims=True), float(total)


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_steps_of_cmm_are_the_papers(smoothing: float, kernels: Any) -> None:
    """E-step, (6) and (7) from q_ij(m, k), which the model never computes."""
    answers = some_gold()
    params, learner = somewhere(150, answers.n_workers), Constant(np.zeros((150, 3)))
    model, (crowd_, shards) = CMM(groups=3, smoothing=smoothing), spread(answers, DOUBLE, learner)
    (shard,), local = shards.shards, Local(np.full((150, 3), 1 / 3))
    swept = model.posterior(shard, params, local)
    stats = model.statistics(shard, local, swept.shares, params)
    after = model.maximise(crowd_, stats, params)
    r, q, evidence = laid_out(answers, params)
    rbar = np.einsum("ij,ijmk->ik", r, q)
    counts = np.einsum("ij,ijmk->mkj", r, q)
    assert np.isclose(swept.evidence, evidence, rtol=1e-12)
    assert np.allclose(stats.counts, counts)
    assert np.allclose(stats.targets, rbar)
    assert learner.targets is stats.targets
    assert np.allclose(local.Z, rbar / r.sum(1, keepdims=True))
    alpha, beta = counts.sum((1, 2)) + smoothing, counts + smoothing
    assert np.allclose(after.share, alpha / alpha.sum())
    assert np.allclose(after.matrices, beta / beta.sum(2, keepdims=True))
    prior = smoothing * (np.log(after.share).sum() + np.log(after.matrices).sum())
    assert np.isclose(model.penalty(after), prior - 0.5)
    if smoothing == 0:  # (6) as printed
        assert np.allclose(after.share, np.einsum("ij,ijmk->m", r, q) / r.sum())


def test_steps_with_gating_are_those_of_a_mixture_of_experts(kernels: Any) -> None:
    """The same with shares that differ by task, written out answer by answer."""
    answers = some_gold()
    plain = somewhere(150, answers.n_workers)
    mix = np.random.default_rng(3).dirichlet(np.ones(3), 150)
    params = plain._replace(mix=mix, gate=np.zeros((3, 3)))
    model, (_, shards) = CMM(groups=3, gating=True), spread(answers, DOUBLE, Constant(np.zeros((150, 3))))
    (shard,), local = shards.shards, Local(np.full((150, 3), 1 / 3))
    swept = model.posterior(shard, params, local)
    stats = model.statistics(shard, local, swept.shares, params)
    f = softmax(params.logits)
    f[answers.gold >= 0] = np.eye(3)[answers.gold[answers.gold >= 0]]
    counts, groups, rbar, total = np.zeros((3, 3, 3)), np.zeros((150, 3)), np.zeros((150, 3)), 0.0
    for i, _, j in zip(*answers.codes(), strict=True):
        q = mix[i][:, None] * params.matrices[:, :, j] * f[i]
        total += np.log(q.sum())
        q = q / q.sum()
        counts[:, :, j] += q
        groups[i] += q.sum(1)
        rbar[i] += q.sum(0)
    assert np.isclose(swept.evidence, total, rtol=1e-12)
    assert np.allclose(stats.counts, counts)
    assert np.allclose(stats.mix, groups)
    assert np.allclose(stats.targets, rbar)


@pytest.mark.parametrize("classifier", ["logistic", "mlp"])
def test_a_gate_learns_which_tasks_a_group_answers(classifier: str) -> None:
    """Tasks with a positive second feature are answered by workers who confuse the classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    truth = (X[:, 0] > 0).astype(int)
    wrong = rng.random((600, 5)) < np.where(X[:, 1] > 0, 0.45, 0.05)[:, None]
    model = cw.CrowdClassifier(classifier, CMM(groups=2, gating=True, start="random", max_iter=60), random_state=1)
    result = model.fit(X, np.where(wrong, 1 - truth[:, None], truth[:, None])).result_
    assert np.diff(result.trace["objective"].to_numpy()).min() > -1e-6
    noisy = int(np.einsum("mkk->m", result.params.matrices).argmin())
    share = result.params.mix[:, noisy]
    assert share[X[:, 1] > 0.5].mean() > share[X[:, 1] < -0.5].mean() + 0.2
    assert np.allclose(result.params.mix.sum(1), 1)


def test_the_number_of_groups_of_highest_likelihood_is_kept() -> None:
    side = CMM(groups=None, max_iter=20)
    found = fit(side).result_
    each = [fit(CMM(groups=m, max_iter=20)).result_ for m in range(1, 6)]
    likelihood = [float(r.trace["objective"][-1]) - float(r.params.log_prior) for r in each]
    assert found.model.groups == 1 + int(np.argmax(likelihood))
    assert side.score(found) == max(likelihood)
    assert len(found.params.share) == found.model.groups


def test_no_more_groups_are_tried_than_there_is_anything() -> None:
    X, same = np.arange(8.0).reshape(4, 2), np.repeat([[0], [1], [0], [1]], 3, 1)
    found = cw.CrowdClassifier("logistic", CMM(groups=None, max_iter=3)).fit(X, same)
    assert 1 <= found.result_.model.groups <= 4


def test_gating_needs_finite_numbers() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[3, 1] = np.nan
    labels = np.repeat((X[:, :1] > 0).astype(int), 3, 1)
    with pytest.raises(cw.errors.FeatureError, match=r"gating needs features without missing values\. Fill them"):
        cw.CrowdClassifier(HistGradientBoostingClassifier(), CMM(groups=2, gating=True)).fit(X, labels)


def test_ties_go_to_the_first_class_if_asked() -> None:
    answers = cw.Labels(["a", "a", "b", "b", "b"], [1, 2, 1, 2, 3], ["y", "x", "y", "y", "x"])
    split, first = (cw.aggregate(answers, cw.MajorityVote(ties=ties)) for ties in ("split", "first"))
    assert split.posterior.tolist() == [[0.5, 0.5], [0.0, 1.0]]
    assert first.posterior.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert first.predict(cw.Labels(["c", "c"], [1, 2], ["y", "x"])).posterior.tolist() == [[1.0, 0.0]]
    left = cw.aggregate(answers.without([1, 2]), cw.MajorityVote(ties="first"))
    assert left.posterior.tolist() == [[0.5, 0.5], [1.0, 0.0]], "a task without answers has no first label"


def test_the_objective_of_cmm_is_that_of_the_paper() -> None:
    model = taught("cmm")
    result = model.result_
    params = result.params
    _, _, evidence = laid_out(result.answers, params)
    prior = np.log(params.share).sum() + np.log(params.matrices).sum() + model.learner_.log_prior
    assert np.isclose(result.trace["objective"][-1], evidence + prior, rtol=1e-9)


def test_data_know_groups_by_their_sum_alone(kernels: Any) -> None:
    """Eq (4), the consensus and the training targets agree to 1e-9 for three groups, two unrelated ones, and one."""
    answers = crowd().answers
    params = somewhere(150, answers.n_workers)
    B = np.einsum("m,mkj->kj", params.share, params.matrices)
    turn = 0.9 * np.sort(B)[:, [1]] * (np.eye(3)[B.argmax(1)] - np.eye(3)[np.argsort(B)[:, 1]])
    two = params._replace(share=np.array([0.5, 0.5]), matrices=np.array([B + turn, B - turn]))
    one = params._replace(share=np.ones(1), matrices=B[None])
    assert np.abs(two.matrices[0] - two.matrices[1]).max() > 0.1
    shard, model, found = Shard.of(answers, DOUBLE), CMM(), []
    for split in (params, two, one):
        local = Local(np.full((150, 3), 1 / 3))
        swept = model.posterior(shard, split, local)
        assert abs(swept.evidence - laid_out(answers, split)[2]) < 1e-9
        found.append((swept.evidence, local.Z, model.statistics(shard, local, swept.shares, split).targets))
    for evidence, Z, targets in found[1:]:
        assert abs(evidence - found[0][0]) < 1e-9
        assert np.abs(Z - found[0][1]).max() < 1e-9
        assert np.abs(targets - found[0][2]).max() < 1e-9


@pytest.mark.parametrize("start", ["k-means", "random"])
def test_where_cmm_starts(start: str) -> None:
    """k-means: q_ij(m, k) is the share of votes for k, in one group per pair of task and label. At random: shares mixed
    with the answer itself, by a weight for every group."""
    answers = crowd().answers
    model, Z = CMM(groups=3, start=start), Shard.of(answers, DOUBLE).vote_shares()
    r = laid_out(answers, somewhere(150, answers.n_workers))[0]
    counts, again = (model.begin(*spread(answers, replace(DOUBLE, seed=seed))).counts for seed in (0, 1))
    assert counts.min() >= 0
    assert np.isclose(counts.sum(), answers.n_answers)
    if start == "k-means":
        assert np.allclose(counts.sum(0), Z.T @ r)
        assert (counts.sum((1, 2)) > 10).all()
    else:
        said, soft = np.diag(r.sum(0)), Z.T @ r
        weight = [np.vdot(3 * each - said, soft - said) / np.vdot(soft - said, soft - said) for each in counts]
        assert np.allclose(counts, [(w * soft + (1 - w) * said) / 3 for w in weight])
        assert 0 < min(weight) < max(weight) < 1
        assert not np.allclose(counts, again)
        one, two = (fit(NEW["cmm at random"], random_state=seed).result_.params.share for seed in (0, 1))
        assert not np.allclose(one, two)
    one = CMM(start=start).begin(*spread(answers, DOUBLE)).counts
    assert np.allclose(one, [Z.T @ r])


@pytest.mark.parametrize("name", ["cmm", "groups"])
def test_answers_outside_the_training_are_put_in_groups(name: str) -> None:
    """The paper's Sec. 3.4, for tasks and workers met and not met."""
    sim, model = crowd(), taught(name)
    result = model.result_
    fresh = pl.DataFrame(
        {
            "task": sim.truth["task"][150:].to_list() * 2,
            "worker": ["w01"] * 30 + ["new"] * 60 + ["newer"] * 30,
            "label": (["c1", "c2", "c3"] * 40),
        }
    )
    new = cw.Labels(fresh)
    prior = model.predict_proba(sim.features[150:])
    shared = name == "groups"
    slow = slow_assign(prior, result.grouping, before_of(result, new), new.codes(), shared)
    order = np.random.default_rng(0).permutation(60)
    rows = 150 + order
    held_to_slow(model.assign(sim.features[rows], new, tasks=sim.truth["task"].to_numpy()[rows]), new, slow)
    if name == "cmm":  # groups of the fit itself are those of all answers of a worker
        bare = fit(NEW["cmm"]).result_
        before = np.tile(bare.params.share, (bare.answers.n_workers, 1))
        whole = slow_assign(softmax(bare.params.logits), bare.grouping, before, bare.answers.codes(), False)
        assert np.allclose(bare.grouping.member, whole[1])


def test_an_unknown_worker_and_features() -> None:
    """Groups: answers to a task share one truth. CMM: each answer has its own, and the task's is their mean."""
    sim = crowd()
    X, tasks = sim.features[150:152], sim.truth["task"][150:152]
    said = cw.Labels([tasks[0]] * 2, ["stranger", "w01"], ["c1", "c3"])
    place, label = sim.answers.workers.to_list().index("w01"), [0, 2]
    for name in ("groups", "cmm"):
        model = taught(name)
        found, f = model.result_.grouping, model.predict_proba(X)
        crowd_, own = found.share, found.member[place]
        predicted = model.predict_proba(X, said, tasks)
        if name == "groups":
            joint = f[0] * np.prod([np.einsum("m,mk->k", g, found.matrices[:, :, y]) for g, y in
                                    zip((crowd_, own), label, strict=True)], axis=0)  # fmt: skip
            wanted, evidence = joint / joint.sum(), np.log(joint.sum()) / 2
        else:
            each = np.array([f[0] * np.einsum("m,mk->k", crowd_, found.matrices[:, :, y]) for y in label])
            wanted, evidence = (each / each.sum(1, keepdims=True)).mean(0), np.log(each.sum(1)).mean()
        assert np.allclose(predicted[0], wanted), name
        assert np.allclose(predicted[1], f[1]), "a row without answers is told by its features"
        assert np.isclose(model.score(X, said, tasks=tasks), evidence), name
        with pytest.warns(UserWarning, match="all workers of these answers are unknown to the model"):
            model.predict_proba(X, cw.Labels([tasks[0]], ["stranger"], ["c1"]), tasks)


# ---------------------------------------------------------------------------------- the objective, bits and order


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("name", NEW)
def test_objective_never_falls(name: str, kind: str) -> None:
    result = fit(NEW[name], CLASSIFIERS[kind](), some_gold(), iterations=6).result_
    trace = result.trace["objective"].to_numpy()
    assert len(trace) == 6
    assert np.isfinite(trace).all()
    assert trace[-1] > trace[0]
    assert np.diff(trace).min() >= -1e-9 * abs(trace[-1])
    assert np.allclose(result.posterior.sum(1), 1, atol=1e-6)


@pytest.mark.parametrize("name", ["tied", "cmm"])
def test_an_epoch_that_would_lower_the_objective_is_rejected(name: str) -> None:
    """A learning rate that is much too high makes the network unstable."""
    hasty = Network(hidden=8, rate=0.5, holdout=0.0)
    trace = fit(NEW[name], hasty, iterations=25).result_.trace["objective"].to_numpy()
    assert np.diff(trace).min() >= -1e-9 * abs(trace[-1])


@pytest.mark.parametrize("name", NEW)
def test_same_seed_same_bits_in_any_order_and_with_any_threads(name: str, compiled: Any) -> None:
    sim, network = crowd(), Network(hidden=8, holdout=0.0)
    first = fit(NEW[name], network, iterations=3, n_jobs=1)
    order = np.random.default_rng(0).permutation(210)
    mixed = cw.Labels(sim.answers.frame().sample(fraction=1, shuffle=True, seed=1))
    model = cw.CrowdClassifier(network, first.workers, random_state=0, n_jobs=2)
    second = model.fit(sim.features[order], mixed, tasks=sim.truth["task"].to_numpy()[order])
    assert first.result_.posterior.tobytes() == second.result_.posterior.tobytes()
    assert first.result_.trace.equals(second.result_.trace)
    assert first.predict_proba(sim.features).tobytes() == second.predict_proba(sim.features).tobytes()
    other = fit(NEW[name], network, iterations=3, random_state=1)
    assert not np.array_equal(first.predict_proba(sim.features), other.predict_proba(sim.features))


@pytest.mark.parametrize("name", NEW)
def test_names_of_workers_do_not_matter(name: str) -> None:
    sim = crowd()
    names = sim.answers.workers.to_list()
    turned = dict(zip(names, np.random.default_rng(2).permutation(names).tolist(), strict=True))
    frame = sim.answers.frame().with_columns(worker=pl.col("worker").replace_strict(turned))
    one, two = fit(NEW[name]), fit(NEW[name], answers=cw.Labels(frame))
    near = 1e-4 if name == "groups" else 1e-7  # groups are started from workers that are drawn
    assert np.allclose(one.predict_proba(sim.features), two.predict_proba(sim.features), atol=near)
    assert np.allclose(one.result_.posterior, two.result_.posterior, atol=near)
    if name in ("groups", "cmm"):
        mine, theirs = (dict(each.result_.members.select("worker", "group").rows()) for each in (one, two))
        assert {turned[w]: g for w, g in mine.items()} == theirs


def test_a_global_side_needs_no_ids() -> None:
    frame = crowd().answers.frame()
    own = cw.Labels(frame.with_columns(worker=pl.int_range(pl.len())))
    for name in ("tied", "cmm", "cmm at random"):
        one, two = fit(NEW[name]), fit(NEW[name], answers=own)
        assert np.allclose(one.result_.posterior, two.result_.posterior, atol=1e-7), name
        assert not one.result_.model.distinguishes_workers


@pytest.mark.parametrize("name", NEW)
def test_gold_is_obeyed_even_against_all_votes(name: str) -> None:
    answers = crowd().answers
    least = answers.classes[Shard.of(answers, DOUBLE).vote_shares().argmin(1)].to_list()[::10]
    gold = dict(zip(answers.tasks.to_list()[::10], least, strict=True))
    result = fit(NEW[name], answers=cw.Labels(answers.frame(), gold=gold)).result_
    assert result.labels["label"].to_list()[::10] == least
    assert np.allclose(result.posterior[::10].max(1), 1, atol=1e-12)


# ------------------------------------------------------------------------------------------------- starts and stops


def test_of_many_starts_the_highest_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    whole = estimator._fit_sides

    def watched(side: Any, learner: Any, *rest: Any) -> Any:
        seen.append((whole(side, learner, *rest), learner))
        return seen[-1][0]

    monkeypatch.setattr(estimator, "_fit_sides", watched)
    network = Network(hidden=4, holdout=0.0)
    model = fit(NEW["cmm"], network, iterations=3, restarts=4, random_state=1)
    ends = [result.trace["objective"][-1] for result, _ in seen]
    assert len(set(ends)) == 4
    assert model.result_ is seen[int(np.argmax(ends))][0]
    assert model.learner_ is seen[int(np.argmax(ends))][1]
    assert np.argmax(ends) > 0, "another seed is needed: the first start was the best"
    assert fit(NEW["cmm"], network, iterations=3, random_state=1).result_.trace.equals(seen[0][0].trace)
    seen.clear()
    fit("softMV", Network(hidden=4, epochs=1), restarts=4)
    assert len(seen) == 1, "what is taught afterwards has nothing to choose by"


@pytest.mark.parametrize("side", [CMM(), DLEM(), JointTied()], ids=lambda side: side.name)
def test_early_stop_is_the_papers(side: Any) -> None:
    """It stops at the first iteration where neither the objective nor, on average, the matrices moved by over 3%."""
    early = fit(replace(side, early=0.03), iterations=40).result_
    late = fit(side, iterations=40).result_
    n = early.trace.height
    assert 2 <= n < late.trace.height == 40
    assert early.converged
    assert early.trace.equals(late.trace.head(n))
    at = {m: fit(side, iterations=m).result_.params for m in range(max(1, n - 2), n + 1)}
    matrices = {m: params.matrices if side.name == "cmm" else params.rows for m, params in at.items()}

    def holds(m: int) -> bool:
        rise = abs(late.trace["objective"][m - 1] / late.trace["objective"][m - 2] - 1)
        return bool(rise <= 0.03 and np.mean(np.abs(matrices[m] / matrices[m - 1] - 1)) <= 0.03)

    assert holds(n)
    assert n == 2 or not holds(n - 1)


def test_device() -> None:
    sim, net = crowd(), {"hidden": 4, "holdout": 0.0}
    auto = fit(NEW["tied"], Network(device="auto", **net), iterations=2)
    assert auto.learner_.device.type == (
        torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
    )
    if auto.learner_.device.type == "cpu":
        cpu = fit(NEW["tied"], Network(**net), iterations=2)
        assert np.array_equal(cpu.predict_proba(sim.features), auto.predict_proba(sim.features))
    for wrong in ("nowhere", "meta", None, *(["cuda"] if not torch.cuda.is_available() else [])):
        words = rf"device is {wrong!r}, which torch cannot use here .*Use 'cpu', or 'auto'"
        with pytest.raises(cw.errors.ParameterError, match=words):
            fit(NEW["tied"], Network(device=wrong, **net), iterations=2)


# --------------------------------------------------------------------------------------------------- names and edges


def test_published_methods_by_name() -> None:
    found = {name: worker_side(name) for name in PUBLISHED}
    assert found == {
        "softMV": cw.SoftVote(),
        "hardMV": cw.MajorityVote(ties="first"),
        "DL-DS": cw.DawidSkene(smoothing=0.0),
        "DL-EM": DLEM(early=0.03, max_iter=50, smoothing=1.0),
        "CMM": CMM(groups=3, early=0.03, max_iter=50, smoothing=1.0, start="k-means"),
        "Ideal": Ideal(),
    }
    assert {type(worker_side(name)) for name in ("groups", "tied", "pooled")} == {JointGroups, JointTied, JointPooled}
    assert type(worker_side(cw.Groups())) is cw.Groups
    assert worker_side("cmm").groups == 1, "more groups are one matrix in parts"
    with pytest.raises(cw.errors.ParameterError, match=r"it can be .*groups.*a published method .softMV, .*Ideal.*CMM"):
        worker_side("CMMM")
    with pytest.raises(
        cw.errors.ParameterError, match=r"groups needs features\. It is fitted together with a classifier"
    ):
        JointGroups().fit(crowd().answers)


def test_ideal_is_trained_on_known_labels() -> None:
    sim = crowd()
    wrong = sim.answers.frame().with_columns(label=pl.lit("c1"))
    frame = pl.concat([wrong.head(-3), sim.answers.frame().tail(3)])
    answers = cw.Labels(frame, gold=sim.truth.head(150))
    assert fit("Ideal", answers=answers).score(sim.features[150:], sim.truth["label"][150:]) > 0.85
    for known, missing in ((0, 150), (149, 1)):
        with pytest.raises(cw.errors.DataError, match=rf"{missing} of 150 tasks have none\. Give all known labels"):
            fit("Ideal", answers=cw.Labels(sim.answers.frame(), gold=sim.truth.head(known) if known else None))


def test_more_groups_than_there_is_anything() -> None:
    y = np.arange(12) % 2
    X, said = np.column_stack([y, np.ones(12)]), np.column_stack([y, y])
    with pytest.raises(cw.errors.DataError, match=r"groups is 3, but there are 2 workers\. Give at most 2, or None"):
        cw.CrowdClassifier(workers=JointGroups(groups=3)).fit(X, said)
    with pytest.raises(cw.errors.DataError, match=r"groups is 13, but there are only 12 .*Give at most groups=12"):
        cw.CrowdClassifier(workers=CMM(groups=13)).fit(X, said)


@pytest.mark.parametrize("side", [CMM(groups=3), CMM(groups=3, smoothing=0.0), JointGroups(groups=3), JointGroups()])
def test_groups_that_die_leave_sound_numbers(side: Any) -> None:
    """All workers agree, some tasks have no answers, and one worker gave a single answer; or there is one class."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(float)
    said = np.column_stack([y, y, y, y])
    said[1:, 3], said[30:32] = np.nan, np.nan
    for table in (said, said * 0):
        model = cw.CrowdClassifier(workers=side).fit(X, table)
        found, trace = model.result_.grouping, model.result_.trace["objective"].to_numpy()
        assert model.result_.answers.n_tasks == 38
        assert np.diff(trace).min() >= -1e-9 * abs(trace[-1])
        assert np.allclose(found.member.sum(1), 1)
        assert np.allclose(found.matrices.sum(2), 1)
        assert np.isfinite(model.result_.groups.to_numpy()).all()
        assert (model.predict(X) == table[:, 0])[:30].mean() > 0.9


# -------------------------------------------------------------------------------------------------------- kept


@pytest.mark.parametrize("kind", ["logistic", "mlp"])
@pytest.mark.parametrize("name", ["groups", "tied", "cmm"])
def test_saved_groups_are_loaded(name: str, kind: str, tmp_path: Path) -> None:
    sim = crowd()
    model = taught(name) if kind == "logistic" else fit(NEW[name], Network(hidden=4, holdout=0.0), iterations=2)
    file = model.save(tmp_path / "kept")
    back = cw.learn.load(file)
    model.result_.save(tmp_path / "result")
    assigned = model.assign(sim.features, sim.answers, tasks=sim.truth["task"])
    assert np.array_equal(back.predict_proba(sim.features), model.predict_proba(sim.features))
    assert back.assign(sim.features, sim.answers, tasks=sim.truth["task"]).workers.equals(assigned.workers)
    for result in (back.result_, cw.load(tmp_path / "result")):
        assert type(result.model) is type(model.result_.model)
        assert result.model == model.result_.model
        assert result.groups.equals(model.result_.groups)
        assert result.members.equals(model.result_.members)
        assert result.group_confusion(1).equals(model.result_.group_confusion(1))
        assert result.labels.equals(model.result_.labels)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is such a device here")
def test_a_model_from_another_device_predicts_here(tmp_path: Path) -> None:
    sim, model = crowd(), fit(NEW["tied"], Network(hidden=4, holdout=0.0), iterations=2)
    model.learner_.plan.device = "cuda"  # as if it had been learnt there
    back = cw.learn.load(model.save(tmp_path))
    assert np.array_equal(back.predict_proba(sim.features), model.predict_proba(sim.features))
    assert back.learner_.device.type == "cpu"


@pytest.mark.parametrize(("alone", "beside"), [(cw.Pooled(), "pooled"), (cw.Groups(), "groups"), (cw.Tied(), "tied")])
def test_models_fitted_first_are_distinguished_from_sides_of_that_name(alone: Any, beside: str, tmp_path: Path) -> None:
    sim = crowd()
    for n, workers in enumerate((alone, beside)):
        model = cw.CrowdClassifier(workers=workers).fit(sim.features, sim.answers, tasks=sim.truth["task"])
        kinds = {type(model.result_.model)}
        kinds.add(type(cw.learn.load(model.save(tmp_path / f"{n}")).result_.model))
        model.result_.save(tmp_path / f"{n}")
        kinds.add(type(cw.load(tmp_path / f"{n}").model))
        assert kinds == {type(worker_side(workers))}
        assert cw.load(tmp_path / f"{n}").predict(sim.answers).posterior.shape == (150, 3)


# ------------------------------------------------------------------------------------------------ the paper's figures


@functools.cache
def dataset(workers: int, seed: int) -> Dataset:
    return simulated_points(workers, [5, workers, seed], fresh=3000)


@functools.cache
def figures(name: str, workers: int, seeds: int = 1) -> dict[str, float]:
    """Means over seeds, one start each."""
    found = [measure_method(name, dataset(workers, s), small_network(), 1, s) for s in range(seeds)]
    return {key: float(np.mean([each[key] for each in found])) for key, value in found[0].items() if value is not None}


def test_votes_and_early_stops_fail_where_the_paper_says() -> None:
    """Expected over five seeds: 62 to 74, below 85, and 89 to 93; wider bounds here for one or two seeds."""
    assert 60 <= figures("softMV", 1500, 2)["test"] <= 76
    assert figures("DL-EM", 10000, 2)["test"] < 85
    assert 88 <= figures("CMM", 10000)["test"] <= 94
    assert abs(figures("CMM", 10000)["ARI"]) < 0.1, "its groups are none"


@pytest.mark.parametrize(("name", "workers"), [("tied", 10000), ("groups", 1500), ("pooled", 10000)])
def test_one_truth_per_task_reaches_what_true_labels_reach(name: str, workers: int) -> None:
    assert figures(name, workers)["test"] >= 94
    assert figures(name, workers)["G-JS"] < 0.001


def test_groups_of_setup_one_are_found() -> None:
    busy, idle = figures("groups", 100), figures("groups", 1500)
    assert (busy["groups"], idle["groups"]) == (3, 3)
    assert (busy["I-JS"] <= 0.005, idle["I-JS"] <= 0.03) == (True, True)
    assert (busy["ARI"] >= 0.95, idle["ARI"] >= 0.6) == (True, True)


def test_measurements_equal_their_definitions() -> None:
    sim = crowd()
    names = np.array(["c1", "c2", "c3"])
    truth = np.searchsorted(names, sim.truth["label"].to_numpy())
    small = Dataset(sim.features[:150], sim.answers, truth[:150], sim.features[150:], truth[150:])
    network = Network(hidden=8, epochs=5, rate=0.01, holdout=0.0)
    for name in ("softMV", "tied", "Ideal"):
        scores, model = measure_method(name, small, network, 1, 0), fit_method(name, small, network, 1, 0)
        assert scores["test"] == 100 * model.score(sim.features[150:], names[truth[150:]])
        assert scores["train"] == 100 * model.score(sim.features[:150], names[truth[:150]])
        assert (scores["I-JS"] is None) == (name == "Ideal")
    few = cw.Labels(sim.answers.frame().head(90))  # too few for all rows of all workers
    frame = few.frame().join(sim.truth, on="task", suffix="_true")
    shares = count_confusions(few, np.eye(3)[truth[: few.n_tasks]])
    for j, worker in enumerate(few.workers):
        for k, name in enumerate(names):
            said = frame.filter((pl.col("worker") == worker) & (pl.col("label_true") == name))["label"]
            wanted = [(said == each).mean() if len(said) else 1 / 3 for each in names]
            assert np.allclose(shares[j, k], wanted)


def test_labelme(shared_data: Path) -> None:
    """The study's seeds gave 85 (tied, without workers), 85 (groups) and 84 (CMM, stopped early); one or two here."""
    if not all((shared_data / file).exists() for file in labelme.required_files()):
        pytest.skip("LabelMe is not here: no ../shared/data/labelme with answers, features and truth")
    known, unknown = labelme.datasets(shared_data)
    assert (known.answers.n_answers, known.answers.n_workers, unknown.answers.n_workers) == (2547, 59, 2547)
    assert measure_method("tied", unknown, labelme.network(), 1, 0)["test"] >= 84
    assert measure_method("groups", known, labelme.network(), 1, 0)["test"] >= 84.5
    stopped = [measure_method("CMM", known, labelme.network(), 1, s, start="random") for s in range(2)]
    assert 81 <= np.mean([each["test"] for each in stopped]) <= 85
    assert 0.22 <= np.mean([each["I-JS"] for each in stopped]) <= 0.25
