"""What classifiers are given: features and answers of every kind, files, settings, words; and what is refused."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from learning import SIDES
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import DataConversionWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

import crowdwise as cw
from crowdwise.errors import EmptyDataError, FeatureError, FileError, MissingError, ParameterError
from crowdwise.learn import Adaptive, Logistic, Network, Refit

pytestmark = pytest.mark.filterwarnings("error", "ignore:.*was not refitted")


@functools.cache
def made() -> cw.simulate.Crowd:
    return cw.simulate.experts(100, fresh=20, seed=[2, 8])


@functools.cache
def model(name: str = "adaptive") -> cw.CrowdClassifier:
    return cw.CrowdClassifier(workers=name).fit(made().features, made().answers, tasks=made().truth["task"])


# ------------------------------------------------------------------------------------------------ rows and their tasks


def test_rows_are_counted_and_named() -> None:
    sim, ids = made(), made().truth["task"]
    new = cw.CrowdClassifier()
    with pytest.raises(FeatureError, match="X has 120 rows, but tasks has 3 ids"):
        new.fit(sim.features, sim.answers, tasks=ids[:3])
    with pytest.raises(FeatureError, match="X has 5 rows, but the answers have 120"):
        new.fit(sim.features[:5], sim.answers.by_row(ids))
    with pytest.raises(FeatureError, match="X has 120 rows, but the answers have 100"):
        new.fit(sim.features, np.zeros(100))
    for answers in (sim.answers, sim.answers.frame(), sim.answers.frame().to_dict()):
        with pytest.raises(FeatureError, match="unknown which row of X belongs to which task"):
            new.fit(sim.features, answers)
    with pytest.raises(FeatureError, match="answers are None"):
        new.fit(sim.features, None)


def test_a_task_has_one_row() -> None:
    sim = made()
    ids = [*sim.truth["task"][:-1], "t003"]
    with pytest.raises(FeatureError, match=r"2 rows share a task.*'t003'"):
        cw.CrowdClassifier().fit(sim.features, sim.answers, tasks=ids)


def test_ids_are_of_one_kind() -> None:
    answers = cw.Labels([1, 1, 2], ["ann", "bob", "ann"], ["x", "y", "y"])
    with pytest.raises(FeatureError, match=r"String \(for instance '1'\).*Int64 \(1\)"):
        answers.by_row(["1", "2"])
    assert answers.by_row(np.array([2, 7, 1], np.int16)).number.tolist() == [1, -1, 0]
    small = cw.Labels({"task": pl.Series([1, 2], dtype=pl.UInt8), "worker": ["a", "b"], "label": ["x", "y"]})
    assert small.by_row([300, 2, -1]).number.tolist() == [-1, 1, -1]  # beyond what a byte holds


def test_no_row_has_an_answer() -> None:
    sim = made()
    with pytest.raises(EmptyDataError, match=r"none of the 3 rows.*'a'.*'t001'"):
        cw.CrowdClassifier().fit(sim.features[:3], sim.answers, tasks=["a", "b", "c"])
    with pytest.raises(EmptyDataError):
        cw.CrowdClassifier().fit(sim.features[:3], [[None, None]] * 3)
    with pytest.raises(EmptyDataError):
        cw.CrowdClassifier().fit(sim.features[:3], np.full((3, 2), np.nan))


def test_rows_are_cut_like_arrays() -> None:
    answers = cw.Labels(["t1", "t1", "t2"], ["ann", "bob", "ann"], ["cat", "dog", "cat"])
    rows = answers.by_row(["t2", "t3", "t1"])
    assert (len(rows), rows.shape, rows.answered.tolist()) == (3, (3,), [True, False, True])
    assert rows.labels().frame().equals(answers.frame())
    for cut in (slice(1, None), [1, 2], np.array([False, True, True]), np.array([1, 2]), [False, True, True]):
        part = rows[cut]
        assert part.tasks.to_list() == ["t3", "t1"]
        assert part.labels().frame().rows() == [("t1", "ann", "cat"), ("t1", "bob", "dog")]
        assert part.labels().workers.to_list() == ["ann", "bob"]
        assert part.labels().classes.to_list() == ["cat", "dog"]
    assert rows[-1].tasks.to_list() == ["t1"]


def test_rows_without_answers_are_predicted_and_teach_nothing() -> None:
    sim = made()
    alone = cw.CrowdClassifier(workers="adaptive").fit(sim.features[:100], sim.answers, tasks=sim.truth["task"][:100])
    assert np.array_equal(alone.predict_proba(sim.features), model().predict_proba(sim.features))
    table = model().predictions(sim.features[100:], sim.truth["task"][100:])
    assert table.columns == ["task", "label", "probability"]
    assert table["task"].to_list() == [f"t{n:03d}" for n in range(101, 121)]
    assert table["probability"].min() >= 0.5


def test_tasks_without_features_are_left_out_with_a_warning() -> None:
    sim = made()
    with pytest.warns(UserWarning, match="40 of 100 tasks have answers but no features; their answers are not used"):
        part = cw.CrowdClassifier().fit(sim.features[:60], sim.answers, tasks=sim.truth["task"][:60])
    own = cw.Labels(sim.answers.frame().filter(pl.col("task").is_in(sim.truth["task"][:60].implode())))
    same = cw.CrowdClassifier().fit(sim.features[:60], own, tasks=sim.truth["task"][:60])
    assert np.allclose(part.predict_proba(sim.features), same.predict_proba(sim.features), atol=1e-8)
    assert part.result_.answers.n_tasks == 60


# --------------------------------------------------------------------------------------------------- answers as arrays

FOUR = np.array([[-2.0, 1], [2, 1], [-1, 0], [1, 0.5]])


@pytest.mark.parametrize(
    ("said", "classes"),
    [
        ([["a", "b", ""], ["b", None, "b"], ["a", "a", "a"], ["b", "b", "a"]], ["a", "b"]),
        (np.array([["a", "b", ""], ["b", "", "b"], ["a", "a", "a"], ["b", "b", "a"]]), ["a", "b"]),
        ([[0, 1, None], [1, None, 1], [0, 0, 0], [1, 1, 0]], [0, 1]),
        (np.array([[0, 1, np.nan], [1, np.nan, 1], [0, 0, 0], [1, 1, 0]]), [0, 1]),
        ([[0, 1, float("nan")], [1, None, 1], [0, 0, 0], [1, 1, 0]], [0, 1]),
        (np.array([["a", "b", np.nan], ["b", None, "b"], ["a", "a", "a"], ["b", "b", "a"]], object), ["a", "b"]),
    ],
    ids=["text", "text array", "whole numbers", "floats", "numbers with both gaps", "objects"],
)
def test_gaps_are_no_answers(said: Any, classes: list[Any]) -> None:
    found = cw.CrowdClassifier().fit(FOUR, said)
    answers = found.result_.answers
    assert (answers.n_answers, answers.n_tasks, answers.n_workers) == (10, 4, 3)
    assert found.classes_.tolist() == classes
    first = answers.frame().filter(pl.col("task") == 0)
    assert first.select("worker", "label").rows() == [(0, classes[0]), (1, classes[1])]
    assert found.predict(FOUR).tolist() == [classes[0], classes[1], classes[0], classes[1]]


def test_a_row_without_any_answer_in_a_table() -> None:
    said = [[0, 1, 0], [1, 1, 1], [None, None, None], [1, 1, 0]]
    found = cw.CrowdClassifier().fit(FOUR, said)
    assert found.result_.answers.n_tasks == 3
    assert found.predict(FOUR).shape == (4,)


def test_one_label_a_row() -> None:
    y = np.array(["no", "yes", "no", "yes"])
    found = cw.CrowdClassifier().fit(FOUR, y)
    assert found.result_.answers.n_workers == 1
    assert (found.predict(FOUR) == y).all()
    with pytest.warns(DataConversionWarning, match="column-vector"):
        column = cw.CrowdClassifier().fit(FOUR, y[:, None])
    assert np.array_equal(column.predict_proba(FOUR), found.predict_proba(FOUR))
    with pytest.raises(FeatureError, match="answers have 3 dimensions"):
        cw.CrowdClassifier().fit(FOUR, np.zeros((4, 2, 2)))
    with pytest.raises(ValueError, match="continuous"):
        cw.CrowdClassifier().fit(FOUR, [0.1, 0.7, 0.3, 0.9])


@pytest.mark.parametrize("name", [*SIDES, "majority-vote", "soft-vote"])
def test_gold_is_obeyed(name: str) -> None:
    sim = made()
    turned = {"c1": "c2", "c2": "c1"}
    gold = {task: turned[label] for task, label in sim.truth.head(10).rows()}
    answers = cw.Labels(sim.answers.frame(), gold=gold)
    found = cw.CrowdClassifier(workers=name).fit(sim.features, answers, tasks=sim.truth["task"])
    labels = dict(found.result_.labels.select("task", "label").rows())
    assert all(labels[task] == label for task, label in gold.items())
    free = model(name).predict_proba(sim.features[:10])
    held = found.predict_proba(sim.features[:10])
    at = [int(label == "c2") for label in gold.values()]
    assert (held[np.arange(10), at] - free[np.arange(10), at]).mean() > 0


def test_gold_is_obeyed_in_a_cut() -> None:
    sim = made()
    gold = dict.fromkeys(sim.truth["task"][50:60], "c1")
    rows = cw.Labels(sim.answers.frame(), gold=gold).by_row(sim.truth["task"])
    found = cw.CrowdClassifier().fit(sim.features[40:80], rows[40:80]).result_
    assert dict(found.labels.select("task", "label").rows()).items() >= gold.items()


# ----------------------------------------------------------------------------------------- answers beside new features


@pytest.mark.parametrize("name", [*SIDES, "majority-vote", "soft-vote", "dawid-skene", "glad"])
def test_a_row_is_predicted_the_same_alone_and_among_others(name: str) -> None:
    """Also where its answers have fewer classes than there are."""
    classes = 2 if name == "two-coin" else 3
    sim = cw.simulate.experts(60, classes=classes, workers=6, per_task=4, seed=3)
    found = cw.CrowdClassifier(workers=name).fit(sim.features, sim.answers, tasks=sim.truth["task"])
    among = found.predict_proba(sim.features, sim.answers, sim.truth["task"])
    kinds = set()
    for i in range(10):
        own = sim.answers.frame().filter(pl.col("task") == sim.truth["task"][i])
        kinds.add(own["label"].n_unique())
        alone = found.predict_proba(sim.features[[i]], own, [sim.truth["task"][i]])
        assert np.allclose(alone[0], among[i], atol=1e-12)
    assert kinds >= {1, 2}


@pytest.mark.parametrize("name", ["adaptive", "learned", "confusion", "fixed"])
def test_answers_to_the_tasks_of_the_fit_give_its_posterior(name: str) -> None:
    sim = made()
    found = model(name).predict_proba(sim.features, sim.answers, sim.truth["task"])
    assert np.allclose(found[:100], model(name).result_.posterior, atol=1e-9)
    assert np.allclose(found[100:], model(name).predict_proba(sim.features[100:]))


def test_strangers_say_little_and_new_labels_nothing() -> None:
    sim = made()
    x, ids = sim.features[:2], ["t001", "t002"]
    before = model().predict_proba(x)
    with pytest.warns(UserWarning, match="all workers of these answers are unknown to the model"):
        stranger = model().predict_proba(x, cw.Labels(["t001"], ["new"], ["c2"]), ids)
    assert stranger[0, 1] > before[0, 1]
    assert np.allclose(stranger[1], before[1])
    with pytest.warns(UserWarning, match="1 of 1 answers have a label unknown to the model and are ignored"):
        unheard = model().predict_proba(x, cw.Labels(["t001"], ["w1"], ["never seen"]), ids)
    assert np.allclose(unheard, before)


# ------------------------------------------------------------------------------------------------------ bad features


@pytest.mark.parametrize("kind", ["logistic", "mlp"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
def test_values_that_are_no_numbers_are_found(value: float, kind: str) -> None:
    X = made().features.copy()
    X[7, 1] = X[9, 1] = value
    with (
        np.errstate(over="ignore"),
        pytest.raises(FeatureError, match=r"2 row\(s\) in 1 column\(s\), first in row 7, column 1"),
    ):
        cw.CrowdClassifier(kind).fit(X, made().answers, tasks=made().truth["task"])


def test_values_that_are_no_numbers_are_found_in_predict() -> None:
    with pytest.raises(FeatureError, match="row 1, column 0"):
        model().predict(np.array([[0.0, 1], [np.nan, 2]]))


def test_features_of_the_wrong_shape() -> None:
    sim = made()
    with pytest.raises(FeatureError, match=r"shape \(120, 2, 1\)"):
        cw.CrowdClassifier().fit(sim.features[:, :, None], sim.answers, tasks=sim.truth["task"])
    with pytest.raises(ValueError, match=r"3 features.*expecting 2"):
        model().predict(np.ones((2, 3)))
    with pytest.raises(ValueError, match="Expected 2D array"):
        cw.CrowdClassifier().fit(sim.features[:, 0], sim.answers, tasks=sim.truth["task"])


# ---------------------------------------------------------------------------------------------------- bad parameters


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"classifier": "forest"}, "classifier is 'forest'; it can be 'logistic', 'mlp'"),
        ({"classifier": 3}, "classifier is 3; give 'logistic'"),
        ({"classifier": Logistic(l2=-1.0)}, "l2 is -1.0"),
        ({"classifier": Logistic(l2="much")}, "l2 is 'much'"),
        ({"classifier": Refit()}, "estimator is None"),
        ({"classifier": Refit(LinearSVC(), folds=-1)}, "folds is -1"),
        ({"classifier": KNeighborsClassifier()}, "KNeighborsClassifier does not accept sample_weight"),
        (
            {"classifier": LinearSVC()},
            r"LinearSVC has no predict_proba. Wrap it: .*CalibratedClassifierCV\(LinearSVC",
        ),
        ({"classifier": Network(batch_size=0)}, "batch_size is 0"),
        ({"classifier": Network(holdout=1.0)}, "holdout is 1.0"),
        ({"classifier": Network(rate=float("nan"))}, "rate is nan"),
        ({"classifier": Network(dropout=2.0)}, "dropout is 2.0"),
        ({"classifier": Network(epochs=-1)}, "epochs is -1"),
        ({"classifier": Network(hidden=0)}, "hidden is 0"),
        ({"workers": "adaptiv"}, "workers is 'adaptiv'; it can be .*Did you mean 'adaptive'"),
        ({"workers": 3}, "workers is 3"),
        ({"random_state": -1}, "seed is -1"),
        ({"n_jobs": "all"}, "n_jobs is 'all'"),
    ],
    ids=str,
)
def test_wrong_parameters_are_named(wrong: dict[str, Any], says: str) -> None:
    sim = made()
    with pytest.raises(ParameterError, match=says):
        cw.CrowdClassifier(**wrong).fit(sim.features, sim.answers, tasks=sim.truth["task"])


@pytest.mark.parametrize(
    "wrong", [{"kappa": 0.0}, {"kappa": float("nan")}, {"ridge": -1.0}, {"max_iter": 0}, {"free_sign": "yes"}]
)
def test_wrong_settings_of_worker_sides(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=f"adaptive: {next(iter(wrong))} is"):
        Adaptive(**wrong)


def test_a_worker_side_needs_a_classifier() -> None:
    with pytest.raises(ParameterError, match=r"adaptive needs features\. It is fitted together with a classifier"):
        Adaptive().fit(made().answers)
    with pytest.raises(ParameterError, match=r"adaptive does not take features directly.*CrowdClassifier\(workers="):
        Adaptive().fit(made().answers, features=made().features)


def test_a_wrapped_classifier_is_taken() -> None:
    sim = made()
    wrapped = CalibratedClassifierCV(LinearSVC(), cv=2)
    found = cw.CrowdClassifier(Refit(wrapped, folds=2), SIDES["two-coin"](max_iter=2), random_state=0)
    found.fit(sim.features, sim.answers, tasks=sim.truth["task"])
    assert found.score(sim.features, sim.truth["label"]) > 0.75


def test_the_seed_of_a_result_is_the_one_given() -> None:
    sim = made()
    new = cw.CrowdClassifier(random_state=17).fit(sim.features, sim.answers, tasks=sim.truth["task"])
    assert new.result_.seed == 17


# ------------------------------------------------------------------------------------------------------------- files


def test_features_of_a_table(tmp_path: Path) -> None:
    file = tmp_path / "features.csv"
    file.write_text("item,height,width\n001,1.5,2\n002,,4e1\n003,nan,-1\n")
    found = cw.read_features(file)
    assert found.tasks.to_list() == ["001", "002", "003"]
    assert np.array_equal(found.x, [[1.5, 2], [np.nan, 40], [np.nan, -1]], equal_nan=True)
    frame = pl.DataFrame({"task": [1, 2], "a": [0.5, 1.5], "b": [True, False]})
    frame.write_parquet(tmp_path / "f.parquet")
    found = cw.read_features(tmp_path / "f.parquet")
    assert (found.tasks.to_list(), found.x.tolist()) == ([1, 2], [[0.5, 1.0], [1.5, 0.0]])
    like = cw.read_features(tmp_path / "f.parquet", pl.Series(["1", "2"]))
    assert like.tasks.to_list() == ["1", "2"]
    with pytest.raises(FeatureError, match="is a table and has no array 'x'"):
        cw.read_features(file, array="x")


def test_text_is_no_feature(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("task,height,kind\na,1,tall\nb,2,short\nc,3,4\n")
    with pytest.raises(FeatureError, match=r"column 'kind' has 2 value\(s\).*'tall'"):
        cw.read_features(tmp_path / "f.csv")


def test_ids_alone_are_no_features(tmp_path: Path) -> None:
    pl.DataFrame({"task": ["a", "b"]}).write_parquet(tmp_path / "f.parquet")
    with pytest.raises(FeatureError, match=r"f\.parquet has only one column"):
        cw.read_features(tmp_path / "f.parquet")


def test_features_of_npz(tmp_path: Path) -> None:
    file = tmp_path / "f.npz"
    np.savez(file, task=np.array(["a", "b"]), deep=np.ones((2, 3)), wide=np.zeros((2, 4), np.float16))
    assert cw.read_features(file, array="wide").x.shape == (2, 4)
    with pytest.raises(FeatureError, match=r"no array 'x'; it has deep, wide.*array="):
        cw.read_features(file)
    with pytest.raises(FeatureError, match=r"no array 'depp'.*Did you mean 'deep'"):
        cw.read_features(file, array="depp")
    np.savez(file, item=np.array([3, 4]), images=np.ones((2, 3, 4, 4), np.uint8))
    found = cw.read_features(file)
    assert (found.tasks.to_list(), found.x.shape) == ([3, 4], (2, 3, 4, 4))


@pytest.mark.parametrize(
    ("arrays", "kind", "says"),
    [
        ({"x": np.ones((2, 2))}, FeatureError, "no array task or item or image, only x"),
        ({"task": np.arange(3), "x": np.ones((2, 2))}, FeatureError, r"shape \(2, 2\).*each of the 3 tasks"),
        ({"task": np.arange(2), "x": np.array([["a"], ["b"]])}, FeatureError, "it must hold numbers"),
        ({"task": np.arange(2), "x": np.array(1.0)}, FeatureError, r"shape \(\)"),
        ({"task": np.array(["a", "b"], object), "x": np.ones((2, 2))}, FileError, "Object arrays cannot be loaded"),
        ({"task": np.arange(2), "x": np.array([{}, {}], object)}, FileError, "Object arrays cannot be loaded"),
    ],
    ids=["no ids", "too few rows", "text", "one number", "pickled ids", "pickled features"],
)
def test_npz_that_are_no_features(arrays: dict[str, Any], kind: type, says: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", **arrays)
    with pytest.raises(kind, match=says):
        cw.read_features(tmp_path / "f.npz")


def test_files_that_are_no_npz(tmp_path: Path) -> None:
    whole = tmp_path / "f.npz"
    np.savez(whole, task=np.arange(50), x=np.ones((50, 2)))
    np.save(tmp_path / "bare.npy", np.ones(3))
    bare = (tmp_path / "bare.npy").read_bytes()
    for torn in (whole.read_bytes()[:-100], whole.read_bytes()[:30], b"", b"task,x\n1,2\n", bare):
        whole.write_bytes(torn)
        with pytest.raises(FileError, match=r"cannot read|is a NumPy array without ids"):
            cw.read_features(whole)
    with pytest.raises(FileError, match="cannot read"):
        cw.read_features(tmp_path / "nowhere.npz")


# -------------------------------------------------------------------------------------------------- the command line


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """answers.csv, truth.csv and features.parquet of 100 tasks with answers and 20 without."""
    place = tmp_path_factory.mktemp("learn")
    made().save(place)
    return place


def test_learns_from_files(command: Any, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    status, _, said = command("learn", folder / "answers.csv", "--features", folder / "features.parquet", "--out", out)
    assert status == 0
    assert "predictions.csv holds predictions for 20 rows without answers" in said
    names = [
        "classifier.crowdwise",
        "crowdwise.json",
        "labels.csv",
        "predictions.csv",
        "report.html",
        "result.crowdwise",
        "tasks.csv",
    ]
    assert sorted(path.name for path in out.iterdir()) == [*names, "workers.csv"]
    table = pl.read_csv(out / "predictions.csv")
    assert table.columns == ["task", "label", "probability"]
    assert table["task"].to_list() == made().truth["task"][100:].to_list()
    own = model("learned").predict_proba(made().features[100:]).max(1)
    assert np.allclose(table["probability"], own, atol=1e-9)
    back = cw.learn.load(out)
    assert np.array_equal(back.predict(made().features), model("learned").predict(made().features))
    assert pl.read_csv(out / "labels.csv")["label"].to_list() == cw.load(out).labels["label"].to_list()


def test_says_json_and_draws_curves_where_truth_is_known(command: Any, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["learn", folder / "answers.csv", "--features", folder / "features.parquet", "--gold", folder / "truth.csv"]
    status, said, _ = command(*words, "--out", out, "--no-page", "--json", "--workers", "two-coin", "--seed", 5)
    assert status == 0
    about = json.loads(said)
    assert (about["model"], about["classifier"], about["features"], about["predicted"]) == (
        "two-coin",
        "logistic",
        2,
        20,
    )
    assert about["seed"] == 5
    assert list(about["auc"]) == ["two-coin", "majority-vote", "soft-vote", "confusion"]
    assert not (out / "report.html").exists()
    curves = pl.read_csv(out / "roc.csv")
    assert curves.columns == ["method", "auc", "threshold", "false_positive", "true_positive"]
    assert np.isclose(about["auc"]["two-coin"], cw.auc(model("two-coin").result_, made().truth))  # gold was not shown
    assert np.isclose(about["auc"]["two-coin"], about["auc"]["confusion"])
    labels = dict(pl.read_csv(out / "labels.csv").select("task", "label").rows())
    assert labels == dict(made().truth[:100].rows())  # in what is written, it is obeyed
    assert command("report", out, "--compare-with", "majority-vote")[0] == 0
    page = (out / "report.html").read_text()
    assert "True and false positives (ROC)" in page
    assert all(f'"auc":{area:.4g}'[:9] in page for area in about["auc"].values())
    curves.with_columns(method=pl.lit("another")).write_csv(out / "roc.csv")
    assert command("report", out, "--compare-with", "majority-vote")[0] == 0
    assert "True and false positives (ROC)" not in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        ({"--features": "nowhere.csv"}, 1, "nowhere.csv"),
        ({"--workers": "adaptiv"}, 2, "Did you mean 'adaptive'"),
        ({"--classifier": "forest"}, 2, "--classifier is 'forest'; it can be 'logistic' or 'mlp'"),
        ({"--threshold": 3}, 2, "threshold is 3"),
        ({"--workers": "adaptive", "--set": "kappa=-3"}, 2, "kappa is -3"),
        ({"--set": "learner=3"}, 2, "learner"),
        ({"--array": "x"}, 1, "is a table"),
    ],
    ids=str,
)
def test_wrong_words_leave_nothing(
    change: dict[str, Any], status: int, says: str, command: Any, folder: Path, tmp_path: Path
) -> None:
    words = {"--features": folder / "features.parquet", "--out": tmp_path / "out", **change}
    code, _, err = command("learn", folder / "answers.csv", *(word for pair in words.items() for word in pair))
    assert code == status
    assert says in err
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["empty", "flat", "deep", "nan", "bare"])
def test_odd_npz_on_the_command_line(kind: str, command: Any, folder: Path, tmp_path: Path) -> None:
    """A flat array is one feature, a deep one is laid flat; the rest is refused with one line."""
    ids, file = np.array(made().truth["task"].to_list()), tmp_path / "f.npz"
    x = {"flat": made().features[:, 0], "deep": made().features[:, :, None], "nan": np.full((120, 2), np.nan)}
    if kind in x:
        np.savez(file, task=ids, x=x[kind])
    else:
        np.save(tmp_path / "bare.npy", np.ones(3))
        file.write_bytes((tmp_path / "bare.npy").read_bytes() if kind == "bare" else b"")
    status, _, err = command(
        "learn", folder / "answers.csv", "--features", file, "--out", tmp_path / "out", "--no-page"
    )
    assert status == (0 if kind in ("flat", "deep") else 1)
    assert (tmp_path / "out").exists() == (status == 0)
    if status:
        assert err.count("error: ") == 1


def test_a_threshold_and_settings_reach_the_classifier(command: Any, folder: Path, tmp_path: Path) -> None:
    words = ["learn", folder / "answers.csv", "--features", folder / "features.parquet", "--out", tmp_path, "--no-page"]
    settings = ["--workers", "adaptive", "--threshold", 1, "--set", "kappa=0.5", "--set", "max_iter=50"]
    assert command(*words, *settings)[0] == 0
    assert set(pl.read_csv(tmp_path / "predictions.csv")["label"]) == {"c1"}
    side = cw.load(tmp_path).model
    assert (side.kappa, side.max_iter) == (0.5, 50)


def test_a_fit_that_has_not_converged_is_reported(command: Any, folder: Path, tmp_path: Path) -> None:
    words = ["learn", folder / "answers.csv", "--features", folder / "features.parquet", "--out", tmp_path, "--no-page"]
    assert command(*words, "--set", "max_iter=2")[0] == 3
    assert (tmp_path / "predictions.csv").exists()


def test_experts_from_the_command_line(command: Any, tmp_path: Path) -> None:
    shape = ["--fresh", 50, "--tasks", 30, "--workers", 6, "--per-task", 3]
    status, said, _ = command("simulate", "experts", *shape, "--out", tmp_path, "--json")
    assert status == 0
    assert json.loads(said)["answers"] == 90
    features = pl.read_parquet(tmp_path / "features.parquet")
    assert features.columns == ["task", "x0", "x1"]
    assert features.height == pl.read_csv(tmp_path / "truth.csv").height == 80
    assert pl.read_csv(tmp_path / "answers.csv")["task"].n_unique() == 30
    assert command("simulate", "confusion", "--fresh", 5, "--out", tmp_path)[0] == 2


@pytest.mark.parametrize(
    ("gone", "missing", "wanted", "extra"),
    [
        ("sklearn", "scikit-learn", "CrowdClassifier", "learn"),
        ("scipy", "scipy", "Logistic", "learn"),
        ("torch", "torch", "Network", "deep"),
    ],
)
def test_what_is_not_installed_is_named(
    gone: str, missing: str, wanted: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, gone, None)
    with pytest.raises(MissingError) as caught:
        getattr(cw.learn, wanted)
    assert str(caught.value) == (
        f"crowdwise.learn.{wanted} needs {missing}, which is not installed. Run: pip install 'crowdwise[{extra}]'"
    )


@pytest.mark.parametrize(
    ("gone", "words", "says"),
    [
        (
            "sklearn",
            [],
            "crowdwise learn needs scikit-learn, which is not installed. Run: pip install 'crowdwise[learn]'",
        ),
        ("torch", ["--classifier", "mlp"], "--classifier mlp needs torch, which is not installed"),
    ],
)
def test_a_missing_library_is_reported_before_any_file_is_read(
    gone: str, words: list[str], says: str, command: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, gone, None)
    status, out, err = command("learn", "no.csv", "--features", "no.npz", "--out", tmp_path / "out", *words)
    assert (status, out) == (2, "")
    assert says in err
    assert not (tmp_path / "out").exists()
