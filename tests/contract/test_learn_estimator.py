"""CrowdClassifier with scikit-learn, with torch, and saved to disk."""

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
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator
from torch import nn

import crowdwise as cw
from crowdwise.learn import Adaptive, Logistic, Network

pytestmark = pytest.mark.filterwarnings("error", "ignore:.*was not refitted")


# ----------------------------------------------------------------------------------------------------- scikit-learn

CANNOT_APPLY = {"check_fit_score_takes_y": "what fit learns from is called answers: it is no y, but may be one"}


@pytest.mark.parametrize("name", ["adaptive", "soft-vote"])
def test_is_an_estimator_to_scikit_learn(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks warn on their own, of labels that are NaN
        checks = check_estimator(
            cw.CrowdClassifier(workers=name), expected_failed_checks=CANNOT_APPLY, on_skip=None, on_fail="raise"
        )
    failed = [check["check_name"] for check in checks if check["status"] == "xfail"]
    assert failed == list(CANNOT_APPLY)
    assert sum(check["status"] == "passed" for check in checks) > 40


def test_parameters_are_given_taken_and_cloned() -> None:
    model = cw.CrowdClassifier(Logistic(l2=2.0), Adaptive(kappa=0.5), threshold=0.3, random_state=4, n_jobs=1)
    assert model.get_params()["classifier__l2"] == 2.0
    copy = clone(model)
    assert copy.get_params()["workers"] == Adaptive(kappa=0.5)
    assert copy.set_params(classifier__l2=3.0, workers="fixed").classifier.l2 == 3.0
    assert copy.workers == "fixed"
    assert model.classifier.l2 == 2.0
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(kappa=1)


def test_settings_are_searched_on_answers_alone() -> None:
    """The score of rows is the likelihood of their answers: no truth is needed, and more is better."""
    sim = experts(4, 300, 0)
    rows = sim.answers.by_row(sim.truth["task"])
    grid = {"workers": ["two-coin", "adaptive"], "classifier__l2": [0.1, 1000.0]}
    search = GridSearchCV(cw.CrowdClassifier(Logistic()), grid, cv=3).fit(sim.features, rows)
    scores = dict(zip(map(str, search.cv_results_["params"]), search.cv_results_["mean_test_score"], strict=True))
    assert len(scores) == 4
    assert all(-1 < score < 0 for score in scores.values())
    assert search.best_params_["classifier__l2"] == 0.1
    assert search.best_estimator_.result_.answers.n_tasks == 300
    assert search.predict(sim.features).shape == (300,)


@pytest.mark.parametrize("name", ["two-coin", "adaptive"])
def test_score_of_rows_is_the_likelihood_of_their_answers(name: str) -> None:
    sim, model = experts(0, 200, 50), learnt(0, name, 200, 50)
    part = sim.answers.by_row(sim.truth["task"])[:30]
    result, (task, worker, label) = model.result_, sim.answers.codes()
    f = np.diff(np.log(model.predict_proba(sim.features[:30])), axis=1)[:, 0]
    p = special.expit(f)
    far = (p - 1 / 2) ** 2 if name == "adaptive" else np.full(30, 1 / 4)
    a, b = np.ones(30), np.ones(30)
    for i, j, y in zip(task, worker, label, strict=True):
        if i < 30:
            alpha = special.expit(4 * result.params.odds[j, 1, 0] * far[i])
            beta = special.expit(4 * result.params.odds[j, 0, 1] * far[i])
            a[i] *= alpha if y else 1 - alpha
            b[i] *= 1 - beta if y else beta
    assert np.isclose(model.score(sim.features[:30], part), np.log(a * p + b * (1 - p)).sum() / 150)


def test_works_in_pipelines_and_cross_validation() -> None:
    sim = experts(4, 300, 0)
    names, rows = sim.truth["label"].to_numpy(), sim.answers.by_row(sim.truth["task"])
    pipe = Pipeline([("scale", StandardScaler()), ("crowd", cw.CrowdClassifier(workers="two-coin"))])
    pipe.fit(sim.features, rows)
    alone = cw.CrowdClassifier(workers="two-coin").fit(sim.features, rows)  # scales by itself
    assert np.allclose(pipe.predict_proba(sim.features), alone.predict_proba(sim.features), atol=1e-6)
    assert pipe.score(sim.features, names) > 0.75
    scores = cross_val_score(pipe, sim.features, rows, cv=3)
    assert scores.shape == (3,)
    assert (scores > -1).all()
    assert (scores < 0).all()
    known = dict(zip(sim.truth["task"], names, strict=True))
    by_truth = cross_val_score(
        pipe, sim.features, rows, cv=3, scoring=lambda m, X, y: np.mean(m.predict(X) == [known[t] for t in y.tasks])
    )
    assert by_truth.min() > 0.75


def test_cuts_of_rows_keep_their_own_answers() -> None:
    """A fit to a subset of rows is a fit to the answers of these tasks, in any order."""
    sim = experts(4, 300, 0)
    rows = sim.answers.by_row(sim.truth["task"])
    at = np.random.default_rng(0).permutation(300)[:200]
    cut = cw.CrowdClassifier().fit(sim.features[at], rows[at])
    keep = sim.truth["task"][np.sort(at)]
    alone = cw.Labels(sim.answers.frame().filter(pl.col("task").is_in(keep.implode())))
    own = cw.CrowdClassifier().fit(sim.features[np.sort(at)], alone, tasks=keep)
    assert np.abs(cut.predict_proba(sim.features) - own.predict_proba(sim.features)).max() < 1e-8


def test_rows_drawn_twice_are_refused_or_count_twice() -> None:
    """A bootstrap must not pair features with the answers to another task."""
    sim = experts(4, 300, 0)
    rows = sim.answers.by_row(sim.truth["task"])
    drawn = np.random.default_rng(0).integers(0, 300, 300)
    try:
        model = cw.CrowdClassifier(workers="two-coin").fit(sim.features[drawn], rows[drawn])
    except cw.errors.FeatureError:
        return
    assert model.score(sim.features, sim.truth["label"]) > 0.85
    assert model.result_.answers.n_answers == 5 * 300


def test_threshold_moves_predictions() -> None:
    sim = experts(0, 200, 50)
    model = clone(learnt(0, "adaptive", 200, 50))
    shares = []
    for threshold in (0.0, 0.2, 0.5, 0.8, 1.0):
        found = model.set_params(threshold=threshold).fit(sim.features, sim.answers, tasks=sim.truth["task"])
        p = found.predict_proba(sim.features)[:, 1]
        assert np.array_equal(found.predict(sim.features) == "c2", p > threshold)
        table = found.predictions(sim.features, sim.truth["task"])
        assert np.allclose(table["probability"], np.where(table["label"] == "c2", p, 1 - p))
        shares.append(float((table["label"] == "c2").mean()))
    assert shares[0] == 1 > shares[1] > shares[2] > shares[3] > shares[4] == 0


@pytest.mark.parametrize("threshold", [-0.01, 1.01, float("nan"), "half"])
def test_a_threshold_is_a_probability(threshold: Any) -> None:
    with pytest.raises(cw.errors.ParameterError, match="threshold is"):
        fit(experts(0, 200, 50), threshold=threshold)


def test_brings_its_own_kind_of_features() -> None:
    """A classifier that supports NaN receives NaN."""
    sim = experts(0, 200, 50)
    X = sim.features.copy()
    X[::7, 0] = np.nan
    tree = DecisionTreeClassifier(min_samples_leaf=10, random_state=0)
    model = cw.CrowdClassifier(tree, brief("two-coin", 3)).fit(X, sim.answers, tasks=sim.truth["task"])
    assert model.score(X, sim.truth["label"]) > 0.7


# ----------------------------------------------------------------------------------------------------------- torch


def small_network(outputs: int = 2) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, outputs))


@pytest.mark.parametrize("wrapped", [False, True])
def test_learns_a_module_of_ones_own(wrapped: bool) -> None:
    sim = experts(0, 400, 400)
    module = small_network()
    before = [weight.clone() for weight in module.parameters()]
    model = fit(sim, Network(module, epochs=10) if wrapped else module, brief("adaptive", 3), random_state=0)
    assert model.score(sim.features[400:], sim.truth["label"][400:]) > 0.88
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))  # a copy was taught
    clone(model)


def test_learns_images() -> None:
    """Channels first; a bright left half is one class, a bright right half the other."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    X = rng.normal(0, 0.3, (120, 3, 4, 4))
    X[np.arange(120), :, :, :2] += y[:, None, None, None]
    X[np.arange(120), :, :, 2:] += 1 - y[:, None, None, None]
    said = np.where(rng.random((120, 3)) < 0.8, y[:, None], 1 - y[:, None])
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 4, 2), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(36, 2))
    network = Network(module, epochs=10, batch_size=16)
    model = cw.CrowdClassifier(network, brief("confusion", 3), random_state=0).fit(X, said)
    assert model.score(X, y) > 0.95


def test_a_network_of_the_wrong_shape_is_refused() -> None:
    sim = experts(0, 200, 50)
    with pytest.raises(cw.errors.FeatureError, match=r"output of shape \(2, 3\).*\(2, 2\)"):
        fit(sim, small_network(3))
    with pytest.raises(cw.errors.FeatureError, match=r"the network fails on features of shape \(200, 2\)"):
        fit(sim, nn.Linear(5, 2))


# ------------------------------------------------------------------------------------------------------------ saved


@pytest.mark.parametrize("kind", ["logistic", "mlp"])
@pytest.mark.parametrize("name", ["adaptive", "soft-vote", "glad"])
def test_saved_classifiers_are_loaded(kind: str, name: str, tmp_path: Path) -> None:
    sim = experts(0, 200, 50)
    X = pl.DataFrame(sim.features, schema=["height", "width"])
    side = brief(name, 3) if name in SIDES else name
    model = cw.CrowdClassifier(kind, side, threshold=0.3, random_state=1)
    model.fit(X, sim.answers, tasks=sim.truth["task"])
    file = model.save(tmp_path / "kept")
    back = cw.learn.load(tmp_path / "kept")
    assert file.name == "classifier.crowdwise"
    assert np.array_equal(back.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(back.predict(X), model.predict(X))
    given = sim.answers, sim.truth["task"]
    assert np.array_equal(back.predict_proba(X, *given), model.predict_proba(X, *given))
    for table in ("labels", "workers", "tasks"):
        assert getattr(back.result_, table).equals(getattr(model.result_, table))
    assert (back.threshold, back.n_features_in_) == (0.3, 2)
    assert back.feature_names_in_.tolist() == ["height", "width"]
    assert back.result_.model == model.result_.model


def test_supplied_classifiers_are_not_saved(tmp_path: Path) -> None:
    sim = experts(0, 200, 50)
    for brought in (RandomForestClassifier(5), small_network()):
        with pytest.raises(cw.errors.ParameterError, match="only the built-in classifiers"):
            fit(sim, brought, brief("two-coin", 2)).save(tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_torn_classifiers_are_refused(tmp_path: Path) -> None:
    file = learnt(0, "adaptive", 200, 50).save(tmp_path / "a.crowdwise")
    whole = file.read_bytes()
    middle = whole.index(b"weights") + 200
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for torn in (whole[:-40], whole[: len(whole) // 2], b"", flipped):
        file.write_bytes(torn)
        with pytest.raises(cw.errors.ChecksumError):
            cw.learn.load(file)
    file.write_bytes(whole)
    assert cw.learn.load(file).threshold == 0.5
    with pytest.raises(cw.errors.ChecksumError, match="contains a saved classifier, not a saved result"):
        cw.load(file)
    with pytest.raises(cw.errors.FileError, match="no saved classifier"):
        cw.learn.load(tmp_path / "nowhere")


@pytest.mark.parametrize("name", SIDES)
def test_saved_results_of_worker_sides_work(name: str, tmp_path: Path) -> None:
    result = learnt(0, name, 200, 50).result_
    result.save(tmp_path)
    back = cw.load(tmp_path)
    assert back.labels.equals(result.labels)
    assert back.workers.equals(result.workers)
    assert back.tasks.equals(result.tasks)
    assert back.model == result.model
    assert str(back.explain("t001")) == str(result.explain("t001"))
    assert back.report(tmp_path / "report.html").stat().st_size > 10_000


def test_explanations_add_up_to_the_posterior() -> None:
    """The prior from features times the factors of all workers is the posterior."""
    result = learnt(0, "adaptive", 200, 50).result_
    params, layout = result.params, result.answers.layout
    task, worker, label = result.answers.codes()
    for i in (0, 7, 150):
        mine = task == i
        logs = np.log(result.model.class_prior(params, 2, i))
        logs = logs + result.model.factors(params, layout, worker[mine], label[mine], i).sum(0)
        assert np.allclose(special.softmax(logs), result.posterior[i])
