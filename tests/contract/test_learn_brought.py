"""Classifiers supplied by users: seeds, unusual targets, scores, and comparison on a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from learning import experts
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import crowdwise as cw
from crowdwise.errors import DataError, EmptyDataError, FeatureError, Interrupted, ParameterError
from crowdwise.learn import Adaptive, Confusion, Logistic, Network, Refit
from crowdwise.metrics import evaluate
from crowdwise.report.page import page_of

pytestmark = pytest.mark.filterwarnings("error", "ignore:.*was not refitted")

SIM = cw.simulate.experts(150, fresh=10, seed=[2, 5])
IDS = SIM.truth["task"]


def fit(classifier: Any = "logistic", workers: Any = "adaptive", **more: Any) -> cw.CrowdClassifier:
    return cw.CrowdClassifier(classifier, workers, **more).fit(SIM.features, SIM.answers, tasks=IDS)


def test_the_seed_reaches_every_random_part_of_a_classifier() -> None:
    forest = RandomForestClassifier(5)
    one, two = (fit(forest, Confusion(max_iter=2), random_state=3).predict_proba(SIM.features) for _ in range(2))
    other = fit(forest, Confusion(max_iter=2), random_state=4).predict_proba(SIM.features)
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)
    assert forest.random_state is None


@pytest.mark.parametrize("classifier", [LogisticRegression(), HistGradientBoostingClassifier(max_iter=2)])
def test_a_class_that_a_fold_does_not_have(classifier: Any) -> None:
    X = np.random.default_rng(0).normal(size=(10, 2))
    said = np.array([["a"] * 3] * 9 + [["b"] * 3])
    p = cw.CrowdClassifier(classifier, "majority-vote", random_state=0).fit(X, said).predict_proba(X)
    assert np.allclose(p.sum(1), 1)


def test_a_regressor_of_one_target_is_asked_class_by_class() -> None:
    label = SIM.truth["label"].to_numpy()
    model = cw.CrowdClassifier(GradientBoostingRegressor(), Confusion(max_iter=3), random_state=0)
    assert model.fit(SIM.features, label).score(SIM.features, label) > 0.85


def test_many_features_do_not_even_out_the_classes() -> None:
    """The ridge penalty on hundreds of weights does not shrink the intercepts."""
    rng = np.random.default_rng(0)
    X, said = rng.normal(size=(300, 300)), (np.arange(300) % 10 == 0).astype(int)
    predicted = cw.CrowdClassifier(workers="soft-vote").fit(X, said).predict_proba(X)
    assert predicted[:, 1].mean() == pytest.approx(0.1, abs=0.01)


def test_score_takes_what_fit_takes() -> None:
    said = np.full((150, 5), "", object)
    task, worker, label = SIM.answers.codes()
    said[task, worker] = SIM.answers.classes.to_numpy()[label]
    X, rows = SIM.features[:150], SIM.answers.by_row(IDS[:150])
    model = cw.CrowdClassifier(workers="confusion").fit(X, said)
    wanted = cw.CrowdClassifier(workers="confusion").fit(X, rows).score(X, rows)
    assert model.score(X, said) == pytest.approx(wanted)
    assert fit(workers="confusion").score(SIM.features, SIM.answers, tasks=IDS) == pytest.approx(wanted)
    search = GridSearchCV(cw.CrowdClassifier(), {"workers": ["confusion", "two-coin"]}, cv=3).fit(X, said)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_rows_without_answers_cannot_be_scored_by_them() -> None:
    with pytest.raises(EmptyDataError, match="none of the 10 rows has an answer"):
        fit().score(SIM.features[150:], SIM.answers.by_row(IDS)[150:])


def test_invalid_arguments_are_refused() -> None:
    rows = SIM.answers.by_row(IDS)
    with pytest.raises(FeatureError, match="Omit tasks="):
        cw.CrowdClassifier().fit(SIM.features, rows, tasks=IDS)
    with pytest.raises(ParameterError, match=r"give an instance: Adaptive\(\)"):
        fit(workers=Adaptive)
    with pytest.raises(ParameterError, match=r"give an instance: LogisticRegression\(\)"):
        fit(LogisticRegression)
    with pytest.raises(DataError, match="needs tasks with this label and tasks with another"):
        cw.auc(fit().result_, {"t001": "c1", "t002": "c1"})


ODD_FEATURES: dict[str, tuple[Any, str]] = {
    "sparse": (csr_matrix(SIM.features), "Sparse data was passed"),
    "complex": (SIM.features + 1j, "Complex data not supported"),
    "words": (np.full(SIM.features.shape, "a"), "could not convert string to float"),
    "mapping": ({"a": 1}, "must be a string or a real number"),
    "one axis": (SIM.features[:, 0], "Expected 2D array"),
    "names of two types": (
        pd.DataFrame(SIM.features, columns=[0, *map(str, range(1, SIM.features.shape[1]))]), "string names",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD_FEATURES)
def test_d20_features_that_are_no_table_of_numbers_are_refused(name: str) -> None:
    odd, said = ODD_FEATURES[name]
    with pytest.raises(FeatureError, match=said):
        cw.CrowdClassifier().fit(odd, SIM.answers, IDS)
    with pytest.raises(FeatureError, match=said):
        fit().predict(odd)


@pytest.mark.parametrize(
    ("classifier", "restarts"),
    [(Network(hidden=4, epochs=3), 2), (RandomForestClassifier(5), 1)],
    ids=["network", "forest"],
)
def test_an_interrupted_classifier_is_resumed_bit_for_bit(classifier: Any, restarts: int) -> None:
    """A network with its optimiser and draws, in the first of two starts or the second; a forest, which is fitted
    again to its last targets."""
    model = cw.CrowdClassifier(classifier, Adaptive(max_iter=3), restarts=restarts, random_state=3)
    whole = clone(model).fit(SIM.features, SIM.answers, tasks=IDS)
    for calls in (0, 2, 4)[: 1 + restarts]:
        stopped = cw.Run(stop=iter([*[False] * calls, True]).__next__)
        with pytest.raises(Interrupted) as broken:
            clone(model).fit(SIM.features, SIM.answers, tasks=IDS, run=stopped)
        resumed = clone(model).fit(SIM.features, SIM.answers, tasks=IDS, run=cw.Run(resume=broken.value.checkpoint))
        assert resumed.result_.trace.equals(whole.result_.trace)
        assert resumed.result_.posterior.tobytes() == whole.result_.posterior.tobytes()
        assert resumed.predict_proba(SIM.features).tobytes() == whole.predict_proba(SIM.features).tobytes()


def test_a_checkpoint_of_another_classifier_is_refused() -> None:
    with pytest.raises(Interrupted) as broken:
        cw.CrowdClassifier("logistic").fit(SIM.features, SIM.answers, IDS, run=cw.Run(stop=lambda: True))
    for other in (cw.CrowdClassifier(cw.learn.Logistic(l2=3.0)), cw.CrowdClassifier(restarts=2)):
        with pytest.raises(ParameterError, match="belongs to a different fit"):
            other.fit(SIM.features, SIM.answers, IDS, run=cw.Run(resume=broken.value.checkpoint))


def test_rivals_of_one_name_all_have_their_curve(tmp_path: Path) -> None:
    own, rival = fit(), fit(workers=Adaptive(ridge=100.0))
    page = own.report(tmp_path / "page.html", truth=SIM.truth, rivals=[rival, fit(workers="soft-vote")]).read_text()
    assert "adaptive (2)" in page
    against = evaluate({"adaptive": own.result_, "soft-vote": fit(workers="soft-vote").result_}, SIM.truth)
    made = page_of(own.result_, {"judged": against})
    assert [curve.method for curve in made["roc"].curves] == ["adaptive", "soft-vote"]
    assert made["expertise"].methods == ["truth", "adaptive"]  # a vote takes all workers for alike


def test_gains_depend_on_the_ease_of_a_task() -> None:
    result = fit(workers="adaptive").result_
    asked = cw.next_tasks(result, 20).join(result.tasks.select("task", "difficulty"), on="task")
    assert asked["difficulty"].mean() < result.tasks["difficulty"].max() - 0.01
    hardest = result.tasks.sort("difficulty")["task"][-1]
    gain = cw.next_tasks(result, 100_000).filter(pl.col("task") == hardest)["gain"]
    assert gain.is_empty() or gain.item() < 0.01


@pytest.mark.parametrize("head", ["x0,task,x1", "Unnamed: 0,task,x1"])
def test_the_column_of_tasks_is_found_by_its_name(tmp_path: Path, head: str) -> None:
    (tmp_path / "f.csv").write_text(f"{head}\n0,t1,5\n1,t2,6\n")
    found = cw.read_features(tmp_path / "f.csv")
    assert found.tasks.to_list() == ["t1", "t2"]
    assert found.x.tolist() == ([[0, 5], [1, 6]] if head.startswith("x0") else [[5], [6]])


def test_a_row_number_is_no_task(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(",x0,x1\n0,1,5\n1,2,6\n")
    with pytest.raises(FeatureError, match="has no name"):
        cw.read_features(tmp_path / "f.csv")


@pytest.mark.parametrize(
    "truth", [Logistic(), Network(epochs=2), Refit(LogisticRegression())], ids=["logistic", "network", "refit"]
)
def test_a_classifier_takes_back_all_of_its_state(truth: Any) -> None:
    X = experts(0, 200, 2).features.astype(np.float32)
    one, two = (truth.learner(X, 2, np.random.default_rng(seed)) for seed in (0, 1))
    one.imitate(np.eye(2)[np.arange(len(X)) % 2])
    one.converged = True  # as where it has learnt what it can
    two.restore(one.state())
    assert two.state().keys() == one.state().keys()
    assert all(np.array_equal(two.state()[name], value) for name, value in one.state().items())


def test_a_classifier_is_described_the_same_in_every_process() -> None:
    made = (RandomForestClassifier(random_state=np.random.RandomState(n)) for n in (0, 0))
    one, two = (cw.CrowdClassifier(each) for each in made)
    with pytest.raises(Interrupted) as broken:
        one.fit(SIM.features, SIM.answers, IDS, run=cw.Run(stop=lambda: True))
    assert two.fit(SIM.features, SIM.answers, IDS, run=cw.Run(resume=broken.value.checkpoint)).result_.converged
