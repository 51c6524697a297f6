"""Classifiers learnt from crowds, against the paper's equations, finite differences, scikit-learn and real sets."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from learning import SIDES, brief, experts, fit, learnt
from scipy import special
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from torch import nn

import crowdwise as cw
from crowdwise.labels.shard import Shard
from crowdwise.learn import Adaptive, Confusion, Network, Refit
from crowdwise.learn.objective import Objective, Relation
from crowdwise.simulate import SENSITIVITY, SPECIFICITY

pytestmark = pytest.mark.filterwarnings("error", "ignore:.*was not refitted")
ANY_CLASSES = [name for name in SIDES if name != "two-coin"]


# ------------------------------------------------------------------------------------------------------- objective


def sparse_answers(K: int, W: int = 4, T: int = 14, seed: int = 0) -> cw.Labels:
    """One to three answers per task, and the truth of every fifth task."""
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(T) for j in rng.permutation(W)[: rng.integers(1, W)]]
    label = [f"c{k}" for k in np.append(np.arange(K), rng.integers(0, K, len(pairs) - K))]
    gold = {f"t{i:02d}": f"c{rng.integers(0, K)}" for i in range(0, T, 5)}
    return cw.Labels([f"t{i:02d}" for i, _ in pairs], [f"w{j}" for _, j in pairs], label, gold=gold)


class Slow:
    """Eqs (1) to (3) of the objective, answer by answer."""

    def __init__(self, answers: cw.Labels, name: str, centre: Any = None) -> None:
        self.answers, self.name, self.centre = answers, name, centre
        self.K = answers.n_classes
        self.said = list(zip(*(codes.tolist() for codes in answers.codes()), strict=True))

    def ease(self, i: int, logits: Any, relation: Relation) -> float:
        if self.name == "confusion":
            return 1.0
        if self.name == "fixed":
            votes = np.bincount([label for task, _, label in self.said if task == i], minlength=self.K)
            p = votes / votes.sum()
        else:
            p = special.softmax(np.exp(relation.log_kappa) * logits[i])
        even = np.full(self.K, 1 / self.K)
        certain = float(((p - even) ** 2).sum() / (1 - 1 / self.K))  # 0 where all are alike, 1 where one has all
        return relation.floor + (1 - relation.floor) * certain if self.name == "learned" else certain

    def evidence(self, logits: Any, odds: Any, relation: Relation, tasks: Any = None) -> float:
        total = 0.0
        for i in range(len(logits)) if tasks is None else tasks:
            joint, h = special.softmax(logits[i]), self.ease(i, logits, relation)
            for task, j, label in self.said:
                if task == i:
                    weight = np.exp(-h * odds[j])
                    joint = joint * weight[:, label] / weight.sum(1)
            gold = self.answers.gold[i]
            total += np.log(joint.sum() if gold < 0 else joint[gold])
        return float(total)

    def value(self, logits: Any, odds: Any, relation: Relation, ridge: float) -> float:
        off = odds[:, ~np.eye(self.K, dtype=bool)]
        if self.centre is None:
            usual = np.log(3 * (self.K - 1))

            def loss(x: Any) -> float:
                crowd, centre = x[1:], x[0]
                spread = ((crowd - centre) ** 2).sum() + (centre - usual) ** 2
                return float(ridge * ((off - crowd) ** 2).sum() + spread) / 2

            prior = -minimize(loss, np.full(off.shape[1] + 1, usual), tol=1e-12).fun
        else:
            prior = -ridge / 2 * ((off - self.centre[:, ~np.eye(self.K, dtype=bool)]) ** 2).sum()
        prior -= 2 * relation.log_kappa**2 if self.name == "learned" else 0
        return self.evidence(logits, odds, relation) + prior


def place(answers: cw.Labels, seed: int = 1) -> tuple[Any, Any, Relation]:
    """Logits, odds and a relation of the ease somewhere."""
    rng, K = np.random.default_rng(seed), answers.n_classes
    odds = rng.uniform(0.2, 2.5, (answers.n_workers, K, K)) * (1 - np.eye(K))
    return rng.normal(0, 1, (answers.n_tasks, K)), odds, Relation(0.4, 0.3)


def differences(value: Any, at: Any, step: float = 1e-5) -> Any:
    """Central differences of value(at), one coordinate at a time."""
    out = np.zeros(at.shape)
    for n in np.ndindex(at.shape):
        move = np.zeros(at.shape)
        move[n] = step
        out[n] = (value(at + move) - value(at - move)) / (2 * step)
    return out


def objective_of(name: str, answers: cw.Labels) -> Objective:
    return SIDES[name]().objective(Shard.of(answers, cw.Run(threads=1, precision="double")), None)


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("name", ["adaptive", "learned", "confusion", "fixed"])
def test_objective_and_all_its_slopes(name: str, K: int) -> None:
    answers = sparse_answers(K)
    assert answers.n_classes == K
    assert (answers.gold >= 0).sum() == 3
    logits, odds, relation = place(answers)
    objective, centre = objective_of(name, answers), None
    if name == "fixed":
        objective.centre = centre = place(answers, 2)[1]
    relation = relation if name == "learned" else Relation()
    slow = Slow(answers, name, centre)
    found = objective(logits, objective.pack(odds, relation))
    ridge = objective.ridge
    assert np.isclose(found.total, slow.value(logits, odds, relation, ridge), rtol=1e-9)
    by_logits = differences(lambda x: slow.value(x, odds, relation, ridge), logits)
    assert np.allclose(found.logits, by_logits, atol=1e-5)
    by_odds = differences(lambda x: slow.value(logits, x, relation, ridge), odds)
    by_relation = differences(lambda x: slow.value(logits, odds, Relation(*x), ridge), np.array(relation))
    assert np.allclose(found.theta, objective.pack(by_odds, Relation(*by_relation)), rtol=1e-5, atol=1e-5)
    assert len(found.theta) == answers.n_workers * K * (K - 1) + 2 * (name == "learned")


def test_the_interval_of_kappa_has_the_right_width() -> None:
    answers = sparse_answers(3)
    logits, odds, _ = place(answers)
    sharp = Adaptive(kappa=2.5).objective(Shard.of(answers, cw.Run(threads=1, precision="double")), None)
    slow = Slow(answers, "adaptive")
    found = sharp(logits, sharp.pack(odds, Relation())).total - sharp.penalty(odds, Relation())[0]
    assert np.isclose(found, slow.evidence(logits, odds, Relation(np.log(2.5))))
    assert not np.isclose(found, slow.evidence(logits, odds, Relation()))


def papers_posterior(result: cw.LabelsResult, name: str) -> tuple[Any, float]:
    """mu_i and the log-likelihood by sections 3.1 and 3.4 of the paper: two classes, 1 is positive."""
    params, (task, worker, label) = result.params, result.answers.codes()
    f = params.logits[:, 1] - params.logits[:, 0]
    p, judge = special.expit(f), special.expit(np.exp(params.log_kappa) * f)
    ability1, ability2 = 4 * params.odds[:, 1, 0], 4 * params.odds[:, 0, 1]  # lambda^1, lambda^2
    a, b = np.ones(len(p)), np.ones(len(p))
    for i, j, y in zip(task, worker, label, strict=True):
        far = 1 / 4 if name == "two-coin" else (judge[i] - 1 / 2) ** 2
        far = params.floor / 4 + (1 - params.floor) * far
        alpha, beta = special.expit(ability1[j] * far), special.expit(ability2[j] * far)
        a[i] *= alpha**y * (1 - alpha) ** (1 - y)
        b[i] *= beta ** (1 - y) * (1 - beta) ** y
    return a * p / (a * p + b * (1 - p)), float(np.log(a * p + b * (1 - p)).sum())


@pytest.mark.parametrize("name", ["two-coin", "adaptive", "learned"])
def test_two_classes_are_the_equations_of_the_paper(name: str) -> None:
    result = learnt(0, name, 1000 if name == "learned" else 200, 50).result_
    mu, likelihood = papers_posterior(result, name)
    assert np.abs(result.posterior[:, 1] - mu).max() < 1e-8
    assert abs(result.trace["objective"][-1] - result.model.penalty(result.params) - likelihood) < 1e-8
    assert mu.std() > 0.2
    if name == "learned":
        assert abs(result.params.log_kappa) > 0.01
        assert 0 < result.params.floor < 1


def test_two_coins_are_two_rows_of_a_confusion_matrix() -> None:
    coins, matrix = learnt(0, "two-coin", 200, 50).result_, learnt(0, "confusion", 200, 50).result_
    assert np.abs(coins.posterior - matrix.posterior).max() < 1e-8
    assert np.abs(coins.params.odds - matrix.params.odds).max() < 1e-8


@pytest.mark.parametrize("name", ["adaptive", "two-coin", "fixed"])
def test_a_table_of_answers_is_their_list(name: str) -> None:
    sim = experts(0, 200, 50)
    wide = sim.answers.frame().pivot("worker", index="task", values="label").sort("task")
    dense = wide.select(sorted(wide.columns[1:])).to_numpy()
    assert dense.shape == (200, 5)
    model = cw.CrowdClassifier(workers=name).fit(sim.features[:200], dense)
    listed = learnt(0, name, 200, 50)
    assert np.abs(model.result_.posterior - listed.result_.posterior).max() < 1e-8
    assert np.abs(model.predict_proba(sim.features) - listed.predict_proba(sim.features)).max() < 1e-8


def test_very_sharp_doubt_is_no_doubt() -> None:
    """With large kappa, every task has ease 1, and adaptive is Raykar's model."""
    answers = sparse_answers(2)
    logits, odds, _ = place(answers)
    work = Shard.of(answers, cw.Run(threads=1, precision="double"))
    plain, sharp = Confusion().objective(work, None), Adaptive(kappa=1e6).objective(work, None)
    assert np.isclose(
        plain(logits, plain.pack(odds, Relation())).total, sharp(logits, sharp.pack(odds, Relation())).total
    )


@pytest.mark.parametrize("name", ["adaptive", "learned", "confusion", "fixed"])
def test_difficulty_reaches_the_weights_of_a_network(name: str) -> None:
    """The gradient passed back through the last layer equals that of the likelihood written in torch."""
    answers = sparse_answers(3)
    _, odds, relation = place(answers)
    relation = relation if name == "learned" else Relation()
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    some = np.array([9, 2, 3, 11, 5])
    x = torch.randn(5, 2, dtype=torch.float64)
    objective = objective_of(name, answers)
    logits = net(x)
    evidence, slope = objective.batch_evidence(some, logits.detach().numpy(), odds, relation)
    logits.backward(torch.from_numpy(slope))
    sent = net[2].weight.grad.clone()

    net.zero_grad()
    logits = net(x)
    total = torch.zeros((), dtype=torch.float64)
    slow, lam = Slow(answers, name), torch.from_numpy(odds)
    for n, i in enumerate(some):
        judge = torch.softmax(np.exp(relation.log_kappa) * logits[n], 0)
        by_classifier = name in ("adaptive", "learned")
        h = (3 * (judge**2).sum() - 1) / 2 if by_classifier else slow.ease(int(i), None, relation)
        h = relation.floor + (1 - relation.floor) * h
        joint = torch.log_softmax(logits[n], 0)
        for task, j, label in slow.said:
            if task == i:
                joint = joint + torch.log_softmax(-h * lam[j], 1)[:, label]
        gold = int(answers.gold[i])
        total = total + (torch.logsumexp(joint, 0) if gold < 0 else joint[gold])
    total.backward()
    assert np.isclose(evidence, total.item())
    assert torch.allclose(sent, net[2].weight.grad, rtol=1e-8, atol=1e-10)
    assert sent.abs().max() > 0.01


# ----------------------------------------------------------------------------------------------------- the iterations

CLASSIFIERS = {
    "logistic": lambda: "logistic",
    "mlp": lambda: Network(hidden=16, epochs=3, batch_size=16),
    "tree": lambda: DecisionTreeClassifier(min_samples_leaf=10, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=5, random_state=0),
    "pipeline": lambda: Pipeline([("scale", StandardScaler()), ("lr", LogisticRegression())]),
    "soft targets": lambda: RandomForestRegressor(5, min_samples_leaf=10, random_state=0),
}


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("name", SIDES)
def test_objective_never_falls(name: str, kind: str) -> None:
    result = fit(experts(1, 120, 0), CLASSIFIERS[kind](), brief(name), random_state=0).result_
    trace = result.trace["objective"].to_numpy()
    assert len(trace) >= 3
    assert np.isfinite(trace).all()
    assert trace[-1] > trace[0]
    assert np.diff(trace).min() >= -1e-6 * abs(trace[-1])


def test_a_refit_that_lowers_the_objective_is_rejected() -> None:
    """A classifier that fits its targets, then gets worse: its earlier predictions are kept."""
    sim = experts(1, 200, 0)
    forgetful = Refit(DecisionTreeClassifier(splitter="random", max_depth=3), folds=2)  # another tree every time
    trace = fit(sim, forgetful, brief("confusion", 15), random_state=1).result_.trace["objective"].to_numpy()
    assert np.diff(trace).min() >= -1e-9 * abs(trace[-1])


def test_a_classifier_that_was_not_refitted_says_so() -> None:
    sim = experts(0, 200, 50)
    with pytest.warns(UserWarning, match="DecisionTreeClassifier was not refitted: .* fit to the votes, which is kept"):
        fit(sim, DecisionTreeClassifier(), "two-coin")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(sim, LogisticRegression(), "two-coin")


def test_an_epoch_that_lowers_the_objective_is_undone() -> None:
    """A learning rate that is much too high makes the network unstable."""
    sim = experts(1, 200, 0)
    hasty = Network(rate=0.5, epochs=5, holdout=0.0)
    trace = fit(sim, hasty, brief("confusion"), random_state=1).result_.trace["objective"].to_numpy()
    assert np.diff(trace).min() >= -1e-9 * abs(trace[-1])


def test_the_fit_is_the_top_of_the_objective() -> None:
    """The gradient is zero for free parameters; at a bound it points outward."""
    sim = experts(0, 200, 50)
    model = fit(sim, workers=Adaptive(max_iter=1000, tol=1e-9))
    params = model.result_.params
    objective = objective_of("adaptive", model.result_.answers)
    here = objective(params.logits, objective.pack(params.odds, Relation()))
    low = objective.pack(params.odds, Relation()) <= 1e-9
    assert np.abs(here.theta[~low]).max() < 0.05
    assert (here.theta[low] <= 0.05).all()
    weights = model.learner_.weights
    X = sim.features[:200]
    standard = np.column_stack([(X - X.mean(0)) / X.std(0), np.ones(200)])
    assert np.allclose(standard @ weights, params.logits)
    assert np.abs(standard.T @ here.logits - model.learner_.l2 * weights).max() < 0.05


# -------------------------------------------------------------------------------------------------------- recovery

TRUE = np.column_stack([SPECIFICITY, SENSITIVITY])  # (W, K) on the easiest task


def area_of(seed: int, name: str) -> float:
    return cw.auc(learnt(seed, name).result_, experts(seed).truth)


def skill_error(seed: int, name: str) -> float:
    return float(np.abs(cw.expertise(learnt(seed, name).result_)["easiest"].to_numpy().reshape(5, 2) - TRUE).mean())


@pytest.mark.parametrize("seed", range(3))
def test_recovers_the_papers_experts(seed: int) -> None:
    sim = experts(seed)
    names = sim.truth["label"].to_numpy()
    taught = LogisticRegression().fit(sim.features[:1000], names[:1000]).score(sim.features[1000:], names[1000:])
    assert area_of(seed, "two-coin") > 0.93
    assert skill_error(seed, "adaptive") < 0.05
    assert learnt(seed, "adaptive").score(sim.features[1000:], names[1000:]) > taught - 0.02


def test_difficulty_helps_on_average() -> None:
    gain = [area_of(seed, "adaptive") - area_of(seed, "two-coin") for seed in range(3)]
    assert np.mean(gain) > 0.005


def test_figures_of_the_study() -> None:
    """40 seeds gave AUC .707 (soft votes), .958 (two-coin), .975 (adaptive), skill error .030; here are five seeds."""
    mean = {name: np.mean([area_of(s, name) for s in range(5)]) for name in ("soft-vote", "two-coin", "adaptive")}
    assert abs(mean["soft-vote"] - 0.707) < 0.02
    assert abs(mean["two-coin"] - 0.958) < 0.015
    assert mean["adaptive"] >= 0.968
    assert np.mean([skill_error(seed, "adaptive") for seed in range(5)]) <= 0.042


# ------------------------------------------------------------------------------------------------------ the default


def independent_crowd(seed: int, separation: float, accuracy: float, features: int = 20) -> tuple[Any, cw.Labels, Any]:
    """Two classes at a given distance, 600 tasks with answers and 600 without; errors do not depend on features."""
    rng = np.random.default_rng([seed, int(100 * separation), int(100 * accuracy)])
    y, direction = rng.integers(0, 2, 1200), rng.normal(size=features)
    X = rng.normal(size=(1200, features)) + separation * np.outer(2 * y - 1, direction / np.linalg.norm(direction))
    task, worker = cw.simulate.assign_workers(600, 20, 5, rng=rng)
    right = rng.random(len(task)) < np.clip(rng.normal(accuracy, 0.1, 20), 0.5, 0.98)[worker]
    return X, cw.Labels(task, worker, np.where(right, y[task], 1 - y[task])), y


@pytest.mark.parametrize("accuracy", [0.65, 0.85])
@pytest.mark.parametrize("separation", [0.5, 1.0, 2.0])
def test_the_default_is_never_worse_than_confusion_or_a_vote(separation: float, accuracy: float) -> None:
    """Differences in points, over four seeds; equal ease is recognised, so that the fit is that of `confusion`."""
    worse = []
    for seed in range(4):
        X, answers, y = independent_crowd(seed, separation, accuracy)
        found = {}
        for name in ("majority-vote", "confusion", "learned"):
            model = cw.CrowdClassifier(workers=name).fit(X[:600], answers, tasks=np.arange(600))
            truth = (model.result_.labels["label"].to_numpy() == y[:600]).mean()
            found[name] = np.array([truth, model.score(X[600:], y[600:])])
        worse.append(np.maximum(found["majority-vote"], found["confusion"]) - found["learned"])
    assert (100 * np.mean(worse, 0) < 1.0).all()


def test_difficulty_is_found_where_it_is_real_and_only_there() -> None:
    assert all(learnt(seed, "learned").result_.params.floor < 0.5 for seed in range(5))
    gain = [area_of(seed, "learned") - area_of(seed, "two-coin") for seed in range(5)]
    assert np.mean(gain) > 0.008
    X, answers, _ = independent_crowd(0, 2.0, 0.65)
    result = cw.CrowdClassifier().fit(X[:600], answers, tasks=np.arange(600)).result_
    assert result.params.floor == 1
    assert result.tasks["difficulty"].null_count() == 600


def test_many_uninformative_features_do_not_cost_labels() -> None:
    """500 features, 400 tasks, a class of 10 %: labels were 3 to 6 points below the vote with a fixed ridge."""
    worse = []
    for seed in range(3):
        rng = np.random.default_rng([7, seed])
        y, X = (rng.random(400) < 0.1).astype(int), rng.normal(size=(400, 500))
        X[:, 0] += y
        task, worker = cw.simulate.assign_workers(400, 10, 5, rng=rng)
        answers = cw.Labels(task, worker, np.where(rng.random(len(task)) < 0.8, y[task], 1 - y[task]))
        vote = (cw.aggregate(answers, "majority-vote").labels["label"].to_numpy() == y).mean()
        for name in ("confusion", "learned"):
            model = cw.CrowdClassifier(workers=name).fit(X, answers, tasks=np.arange(400))
            worse.append(vote - (model.result_.labels["label"].to_numpy() == y).mean())
    assert 100 * np.mean(worse) < 0


@pytest.mark.parametrize("name", ["majority-vote", "soft-vote"])
def test_a_classifier_of_votes_takes_one_line(name: str) -> None:
    sim = experts(0)
    model = cw.CrowdClassifier(workers=name).fit(sim.features, sim.answers, tasks=sim.truth["task"])
    assert model.score(sim.features[1000:], sim.truth["label"][1000:]) > 0.9
    share = (sim.answers.frame()["label"] == "c2").to_numpy().reshape(1000, 5).mean(1)  # all answer all, in order
    soft = share if name == "soft-vote" else (share > 0.5).astype(float)
    weights = np.concatenate([soft, 1 - soft])
    x = (sim.features - sim.features[:1000].mean(0)) / sim.features[:1000].std(0)
    lr = LogisticRegression(C=1e6).fit(np.tile(x[:1000], (2, 1)), np.repeat([1, 0], 1000), sample_weight=weights)
    assert np.abs(model.predict_proba(sim.features)[:, 1] - lr.predict_proba(x)[:, 1]).max() < 0.01


def test_four_classes_and_few_answers() -> None:
    sim = cw.simulate.experts(600, fresh=500, classes=4, workers=10, per_task=3, seed=5)
    names = sim.truth["label"].to_numpy()
    votes = (cw.aggregate(sim.answers, "majority-vote").labels["label"].to_numpy() == names[:600]).mean()
    model = fit(sim)
    assert (model.result_.labels["label"].to_numpy() == names[:600]).mean() > votes + 0.1
    taught = LogisticRegression().fit(sim.features[:600], names[:600]).score(sim.features[600:], names[600:])
    assert model.score(sim.features[600:], names[600:]) > taught - 0.03


def test_a_liar_is_turned_round_where_signs_are_free() -> None:
    sim = experts(0, 400, 0)
    frame = sim.answers.frame()
    lies = sim.truth.select("task", worker=pl.lit("liar"), label=pl.col("label").replace({"c1": "c2", "c2": "c1"}))
    answers = cw.Labels(pl.concat([frame, lies]))
    found = {}
    for free in (False, True):
        side = Confusion(free_sign=free)
        model = cw.CrowdClassifier(workers=side).fit(sim.features, answers, tasks=sim.truth["task"])
        found[free] = model.result_.params.odds[answers.workers.to_list().index("liar")]
    assert found[True][0, 1] < -2
    assert found[True][1, 0] < -2
    assert (found[False] >= 0).all()


# ----------------------------------------------------------------------------------------- same in, same out; extremes


@pytest.mark.parametrize("kind", ["logistic", "mlp"])
def test_order_of_rows_and_answers_does_not_matter(kind: str) -> None:
    sim = experts(3, 120, 10)
    order = np.random.default_rng(0).permutation(130)
    shuffled = cw.Labels(sim.answers.frame().sample(fraction=1, shuffle=True, seed=1))
    first = fit(sim, CLASSIFIERS[kind](), brief("adaptive", 3), random_state=0)
    second = clone(first).fit(sim.features[order], shuffled, tasks=sim.truth["task"].to_numpy()[order])
    assert np.array_equal(first.result_.posterior, second.result_.posterior)
    assert np.array_equal(first.predict_proba(sim.features), second.predict_proba(sim.features))


@pytest.mark.parametrize("kind", ["logistic", "mlp"])
def test_same_seed_same_bits(kind: str) -> None:
    sim = experts(3, 120, 10)
    given = [
        fit(sim, CLASSIFIERS[kind](), brief("adaptive", 3), random_state=s).predict_proba(sim.features)
        for s in (1, 1, 2)
    ]
    assert np.array_equal(given[0], given[1])
    assert np.array_equal(given[0], given[2]) == (kind == "logistic")


def test_seeds_of_others_are_left_alone() -> None:
    sim = experts(3, 120, 10)
    states = []
    for _ in range(2):
        np.random.seed(5)
        torch.manual_seed(5)
        states.append((np.random.random(), float(torch.rand(1))))
        np.random.seed(5)
        torch.manual_seed(5)
        fit(sim, CLASSIFIERS["mlp"](), brief("adaptive", 1), random_state=0)
        states.append((np.random.random(), float(torch.rand(1))))
    assert len(set(states)) == 1


def test_threads_change_no_bit(compiled: Any) -> None:
    sim = experts(3, 120, 10)
    one, two = (fit(sim, n_jobs=jobs) for jobs in (1, 2))
    assert np.array_equal(one.result_.posterior, two.result_.posterior)
    assert one.result_.trace.equals(two.result_.trace)
    assert np.array_equal(one.predict_proba(sim.features), two.predict_proba(sim.features))


def test_numpy_and_compiled_kernels_learn_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    sim, found = experts(3, 120, 10), []
    for small in (10**9, 0):
        monkeypatch.setattr("crowdwise.kernels.MAX_PLAIN_CELLS", small)
        found.append(fit(sim).result_.posterior)
    assert np.abs(found[0] - found[1]).max() < 1e-4


@pytest.mark.parametrize("kind", ["logistic", "mlp", "tree"])
@pytest.mark.parametrize("name", [*ANY_CLASSES, "majority-vote", "soft-vote"])
def test_one_class_only(name: str, kind: str) -> None:
    X = experts(0, 200, 50).features[:40]
    answers = cw.Labels(np.repeat(np.arange(40), 2), ["ann", "bob"] * 40, ["x"] * 80)
    side = brief(name, 2) if name in SIDES else name
    model = cw.CrowdClassifier(CLASSIFIERS[kind](), side, random_state=0).fit(X, answers, tasks=np.arange(40))
    assert model.predict_proba(X).tolist() == [[1.0]] * 40
    assert set(model.predict(X)) == {"x"}
    assert model.result_.workers["skill"].min() > 0.99


def test_two_coins_need_two_classes() -> None:
    sim = cw.simulate.experts(30, classes=3, seed=0)
    with pytest.raises(cw.errors.DataError, match=r"two-coin needs 2 classes, but these answers have 3.*confusion"):
        fit(sim, workers="two-coin")


@pytest.mark.parametrize(
    ("name", "kind"), [*((n, k) for n in SIDES for k in ("logistic", "tree")), ("adaptive", "mlp")]
)
def test_hard_tables_have_sound_answers(name: str, kind: str) -> None:
    """Constant features, one equal to the class; workers who always agree; a worker with a single answer."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = np.column_stack([20.0 * y - 10 + rng.random(60), np.full(60, 3.3), np.zeros(60)])
    said = np.column_stack([y, y, y, np.where(np.arange(60) == 7, y, np.nan)])
    model = cw.CrowdClassifier(CLASSIFIERS[kind](), brief(name, 5), random_state=0).fit(X, said)
    result = model.result_
    p = model.predict_proba(X)
    assert np.allclose(p.sum(1), 1)
    assert (model.predict(X) == y).mean() > 0.9
    assert (result.posterior.argmax(1) == y).all()
    numbers = result.workers.select("skill", "low", "high").to_numpy()
    assert ((numbers >= 0) & (numbers <= 1)).all()
    assert not result.workers.select(pl.selectors.float().is_nan().any()).to_numpy().any()
    assert np.isfinite(cw.expertise(result).select("estimated", "easiest").to_numpy()).all()
    assert result.trace["objective"].is_finite().all()
    assert result.workers.filter(pl.col("worker") == 3)["skill"].item() > 0.5


@pytest.mark.parametrize("name", SIDES)
def test_uninformative_features(name: str) -> None:
    said = np.random.default_rng(0).integers(0, 2, (50, 3))
    model = cw.CrowdClassifier(workers=name).fit(np.ones((50, 2)), said)
    p = model.predict_proba(np.ones((3, 2)))
    assert np.isfinite(p).all()
    assert np.ptp(p[:, 1]) == 0


@pytest.mark.parametrize("size", [1e-100, 1e-6, 1e15])
def test_units_of_features_do_not_matter(size: float) -> None:
    sim = experts(3, 120, 10)
    wanted = fit(sim).predict_proba(sim.features)
    X = sim.features * size
    found = cw.CrowdClassifier(workers="adaptive").fit(X, sim.answers, tasks=sim.truth["task"]).predict_proba(X)
    assert np.allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("tasks", [1, 2, 3])
@pytest.mark.parametrize("kind", ["logistic", "mlp", "tree"])
def test_hardly_any_tasks(kind: str, tasks: int) -> None:
    X, said = experts(3, 120, 10).features[:tasks], [[0, 1, 1], [0, 0, 0], [1, 1, 0]][:tasks]
    model = cw.CrowdClassifier(CLASSIFIERS[kind](), brief("adaptive", 2), random_state=0).fit(X, said)
    assert np.allclose(model.predict_proba(X).sum(1), 1)


# --------------------------------------------------------------------------------------------------------- real sets


@pytest.mark.parametrize(("name", "array"), [("music_genre", None), ("labelme", "vgg16_avg")])
def test_beats_votes_on_real_sets(name: str, array: str | None, shared_data: Path) -> None:
    found = cw.read_features(shared_data / name / "features.npz", array=array)
    truth = pl.read_parquet(shared_data / name / "truth.parquet")
    truth = pl.DataFrame([found.tasks]).join(truth, on="task", how="left", maintain_order="left")
    answers = cw.read(shared_data / name / "answers.parquet")
    test = (truth["split"] == "test").to_numpy()
    assert not set(truth["task"].filter(truth["split"] == "test")) & set(answers.tasks)
    score = {}
    for workers in ("majority-vote", "soft-vote", "confusion"):
        model = cw.CrowdClassifier(workers=workers).fit(found.x, answers, tasks=found.tasks)
        score[workers] = model.score(found.x[test], truth["label"].filter(pl.Series(test)))
    assert score["confusion"] > max(score["majority-vote"], score["soft-vote"]) + 0.01


def test_an_unknown_worker_has_the_mean_odds_of_the_crowd() -> None:
    sim, model = experts(0, 200, 2), learnt(0, "confusion", 200, 2)
    x, ids = sim.features[-2:], sim.truth["task"][-2:]
    f, odds = model.predict_proba(x)[0], model.result_.params.odds.mean(0)
    with pytest.warns(UserWarning, match="all workers of these answers are unknown to the model"):
        predicted = model.predict_proba(x, cw.Labels([ids[0]], ["new"], [model.classes_[1]]), ids)
    says = special.softmax(-odds, axis=1)[:, 1]
    assert np.allclose(predicted[0], f * says / (f * says).sum())
