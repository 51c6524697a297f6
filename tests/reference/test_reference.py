"""Reference values: Dawid and Skene's published table, crowd-kit, and accuracy on real crowds."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdwise as cw

DOUBLE = cw.Run(precision="double")

# Accuracy of the majority vote, a tie counting its share: column MV of ../shared/data/README.md.
VOTE = {
    "labelme": 0.766, "music_genre": 0.704, "face_sentiment": 0.637, "cifar10s": 0.929, "snow_rte": 0.897,
    "snow_temporal": 0.936, "snow_wsd": 0.994, "bluebirds": 0.759, "ducks": 0.688, "dogs": 0.822, "trec": 0.651,
    "product_er": 0.897, "sentiment_polarity": 0.886, "sentiment_polarity_amt": 0.943, "weather_cf": 0.882,
    "weather_amt": 0.853, "zencrowd_us": 0.861, "zencrowd_in": 0.741,
}  # fmt: skip


# ---------------------------------------------------------------------------------------- Dawid and Skene 1979, Table 1


@pytest.fixture
def anaesthetists(shared_data: Path) -> cw.Labels:
    """45 patients rated by five anaesthetists; the first read every form three times."""
    frame = pl.read_parquet(shared_data / "anesthesia" / "answers.parquet").select("task", "worker", "label")
    return cw.Labels(frame, duplicates="each")


def by_hand(answers: cw.Labels, iterations: int) -> tuple[Any, Any, Any]:
    """Class shares, error rates and patients' classes by eqs (2.3)-(2.5), from the start (3.1), with dense arrays."""
    counts = np.zeros((45, 5, 4))
    np.add.at(counts, answers.codes(), 1)
    T = counts.sum(1) / counts.sum((1, 2))[:, None]  # (3.1)
    for _ in range(iterations):
        p = T.mean(0)  # (2.4)
        pi = np.einsum("ij,ikl->kjl", T, counts)  # (2.3)
        pi /= pi.sum(2, keepdims=True)
        T = p * np.prod(pi[None] ** counts[:, :, None, :], axis=(1, 3))  # (2.5)
        T /= T.sum(1, keepdims=True)
    return p, pi, T


def test_every_reading_counts(anaesthetists: cw.Labels) -> None:
    assert (anaesthetists.n_answers, anaesthetists.n_tasks, anaesthetists.n_workers) == (315, 45, 5)
    assert sorted(anaesthetists.answers_per_worker) == [45, 45, 45, 45, 135]


def test_published_class_shares(anaesthetists: cw.Labels, kernels: Any) -> None:
    """Dawid & Skene 1979, Applied Statistics 28(1): maximum likelihood gives classes 1 to 4 .40, .42, .11 and .07."""
    result = cw.DawidSkene(smoothing=0, max_iter=2000, tol=0).fit(anaesthetists, run=DOUBLE)
    assert result.converged
    assert np.round(result.prevalence, 2).tolist() == [0.40, 0.42, 0.11, 0.07]
    assert result.labels["label"].value_counts().sort("label")["count"].to_list() == [18, 19, 5, 3]


@pytest.mark.parametrize("iterations", [1, 5, 39])
def test_the_papers_equations_on_the_papers_data(anaesthetists: cw.Labels, iterations: int, kernels: Any) -> None:
    result = cw.DawidSkene(smoothing=0, max_iter=iterations, tol=0).fit(anaesthetists, run=DOUBLE)
    p, pi, T = by_hand(anaesthetists, iterations)
    assert np.allclose(result.prevalence, p, atol=1e-9)
    assert np.allclose(result.posterior, T, atol=1e-9)
    for worker, rates in zip(anaesthetists.workers, pi, strict=True):
        assert np.allclose(result.confusion(worker).select("1", "2", "3", "4").to_numpy(), rates, atol=1e-9)


def test_patients_on_whom_all_agree_are_certain(anaesthetists: cw.Labels, kernels: Any) -> None:
    result = cw.DawidSkene(smoothing=0).fit(anaesthetists, run=DOUBLE)
    agreed = (result.tasks["disagreement"] == 0).to_numpy()
    assert agreed.sum() == 16
    assert result.labels["probability"].to_numpy()[agreed].min() > 0.999


# ------------------------------------------------------------------------------------------------------- crowd-kit


@pytest.fixture(scope="module")
def dense() -> cw.Labels:
    """Every worker gives every label on every class, so that no count is 0 and smoothing plays no part."""
    return cw.simulate.crowd("confusion", tasks=400, workers=8, classes=3, per_task=8, accuracy=0.6, seed=5).answers


@functools.cache
def by_crowd_kit(answers: cw.Labels, iterations: int) -> Any:
    """Posterior (T, K) by crowd-kit, computed once for both versions of our kernels."""
    aggregation = pytest.importorskip("crowdkit.aggregation")
    theirs = aggregation.DawidSkene(n_iter=iterations, tol=-1e9).fit_predict_proba(answers.frame().to_pandas())
    return theirs.loc[answers.tasks.to_list(), answers.classes.to_list()].to_numpy()


@pytest.mark.parametrize("iterations", [1, 25])
@pytest.mark.filterwarnings("ignore")  # crowd-kit's, about pandas
def test_parity_with_crowd_kit(dense: cw.Labels, iterations: int, kernels: Any) -> None:
    whole = by_crowd_kit(dense, iterations)
    result = cw.DawidSkene(smoothing=0, max_iter=iterations, tol=0).fit(dense, run=DOUBLE)
    assert result.trace.height == iterations
    assert np.allclose(result.posterior, whole, atol=1e-6)
    assert result.labels["label"].to_list() == dense.classes[whole.argmax(1)].to_list()


@pytest.mark.parametrize(
    "name", ["MajorityVote", "DawidSkene", "OneCoinDawidSkene"]
)  # its Wawa fails on scikit-learn 1.9
@pytest.mark.filterwarnings("ignore")
def test_look_alikes_answer_as_crowd_kit_does(dense: cw.Labels, name: str) -> None:
    aggregation = pytest.importorskip("crowdkit.aggregation")
    frame, mine = dense.frame().to_pandas(), getattr(cw.compat.crowdkit, name)()
    theirs, ours = getattr(aggregation, name)().fit_predict(frame), mine.fit_predict(frame)
    assert type(ours) is type(theirs)
    assert (ours.index.name, ours.name) == (theirs.index.name, theirs.name)
    clear = ~mine.result_.labels["tie"].to_numpy()
    assert (ours == theirs.loc[ours.index])[clear].mean() > 0.95  # priors and prevalence differ for one coin


@pytest.mark.parametrize("name", cw.compat.crowdkit.__all__)
def test_look_alikes_have_what_crowd_kits_users_ask_for(dense: cw.Labels, name: str) -> None:
    pytest.importorskip("pandas")
    made = getattr(cw.compat.crowdkit, name)().fit(dense.frame().to_pandas())
    clear = ~made.result_.labels["tie"].to_numpy()
    assert made.probas_.shape == (400, 3)
    assert np.allclose(made.probas_.sum(axis=1), 1)
    assert (made.probas_.idxmax(axis=1) == made.labels_)[clear].all()
    assert made.skills_.index.tolist() == dense.workers.to_list()


# ------------------------------------------------------------------------------------------------------- real crowds


def accuracy(posterior: Any, gold: Any) -> float:
    """Accuracy over tasks of known truth; a tie between c classes counts 1/c."""
    known = np.flatnonzero(gold >= 0)
    tied = posterior[known] >= posterior[known].max(1, keepdims=True) - 1e-6
    return float((tied[np.arange(len(known)), gold[known]] / tied.sum(1)).mean())


@pytest.fixture(scope="module")
def scores(shared_data: Path) -> dict[str, dict[str, float]]:
    """Accuracy by set and model; only the score sees the truth."""
    found: dict[str, dict[str, float]] = {}
    for name in VOTE:
        frame = pl.read_parquet(shared_data / name / "answers.parquet").select("task", "worker", "label")
        truth = pl.read_parquet(shared_data / name / "truth.parquet").select("task", "label")
        known = cw.Labels(frame, gold=truth, duplicates="each")
        blind = known.with_gold(None)
        models = ("majority-vote", "pooled")
        found[name] = {model: accuracy(cw.aggregate(blind, model).posterior, known.gold) for model in models}
    return found


@pytest.mark.parametrize("name", VOTE)
def test_votes_have_the_accuracy_of_the_data(name: str, scores: Any) -> None:
    assert abs(scores[name]["majority-vote"] - VOTE[name]) < 0.00051


def test_the_default_is_right_on_real_crowds(scores: Any) -> None:
    assert np.mean([each["pooled"] for each in scores.values()]) >= 0.842
    assert np.mean([each["pooled"] - each["majority-vote"] for each in scores.values()]) > 0.015


@pytest.mark.parametrize("name", VOTE)
def test_the_default_is_never_far_below_the_vote(name: str, scores: Any) -> None:
    """Ducks is the hardest: most workers misname a whole species, and workers who agree with them look skilled."""
    assert scores[name]["pooled"] >= scores[name]["majority-vote"] - 0.10
