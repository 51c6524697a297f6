"""ROC curves, areas and skills held against the truth, and the crowds made up to have one."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from learning import experts, learnt
from scipy import special
from sklearn.metrics import roc_auc_score, roc_curve

import crowdwise as cw
from crowdwise.learn import SIDES
from crowdwise.simulate import SENSITIVITY, SPECIFICITY

pytestmark = pytest.mark.filterwarnings("error")
ANY_CLASSES = [name for name in SIDES if name != "two-coin"]


# --------------------------------------------------------------------------------------------------------- scoring


def scored(K: int, ties: bool) -> tuple[cw.Result, pl.DataFrame, Any]:
    """A result, the truth of two thirds of its tasks, and their posterior."""
    sim = cw.simulate.crowd("confusion", tasks=90, workers=9, classes=K, per_task=4, accuracy=0.5, seed=4)
    result = cw.aggregate(sim.answers, "soft-vote" if ties else "dawid-skene")
    truth = sim.truth.gather_every(3).vstack(sim.truth.gather_every(3, 1)).sample(fraction=1, shuffle=True, seed=0)
    at = {task: n for n, task in enumerate(result.labels["task"].to_list())}
    return result, truth, result.posterior[[at[task] for task in truth["task"]]]


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("label", [None, "c1", "c2"])
def test_curves_are_scikit_learns(label: str | None, ties: bool) -> None:
    result, truth, P = scored(2, ties)
    k = 0 if label == "c1" else 1
    hit = (truth["label"] == f"c{k + 1}").to_numpy()
    fpr, tpr, threshold = roc_curve(hit, P[:, k], drop_intermediate=False)
    curve = cw.roc(result, truth, label=label)
    assert (len(np.unique(P)) < 20) == ties
    assert np.allclose(curve["false_positive"], fpr)
    assert np.allclose(curve["true_positive"], tpr)
    assert np.allclose(curve["threshold"], threshold)
    assert np.isclose(cw.auc(result, truth, label=label), roc_auc_score(hit, P[:, k]))


def test_curves_of_more_classes() -> None:
    result, truth, P = scored(3, True)
    right = truth["label"].to_numpy()[:, None] == np.array(["c1", "c2", "c3"])
    assert np.isclose(cw.auc(result, truth), roc_auc_score(right.ravel(), P.ravel()))
    for k in range(3):
        assert np.isclose(cw.auc(result, truth, label=f"c{k + 1}"), roc_auc_score(right[:, k], P[:, k]))
    as_mapping = dict(zip(truth["task"], truth["label"], strict=True))
    assert cw.auc(result, as_mapping) == cw.auc(result, truth)
    with pytest.raises(cw.errors.ParameterError, match="no class 'c4'; there are c1, c2, c3"):
        cw.roc(result, truth, label="c4")
    with pytest.raises(cw.errors.EmptyDataError, match="names no task of this result"):
        cw.auc(result, {"elsewhere": "c1"})


def test_expertise_by_hand() -> None:
    sim = experts(0, 200, 50)
    truth = sim.truth.gather_every(2)
    table = cw.expertise(learnt(0, "adaptive", 200, 50).result_, truth)
    assert table.columns == ["worker", "label", "estimated", "easiest", "true", "answers"]
    told = sim.answers.frame().join(truth, on="task", suffix="_true")
    for row in table.iter_rows(named=True):
        mine = told.filter((pl.col("worker") == row["worker"]) & (pl.col("label_true") == row["label"]))
        assert row["answers"] == mine.height
        assert np.isclose(row["true"], (mine["label"] == row["label"]).mean())
    assert table.height == 10
    assert (table["easiest"] >= table["estimated"] - 1e-12).all()


def test_expertise_on_own_and_on_easiest_tasks() -> None:
    result = learnt(0, "adaptive", 200, 50).result_
    table = cw.expertise(result)
    assert table.columns == ["worker", "label", "estimated", "easiest"]
    odds = np.column_stack([result.params.odds[:, 0, 1], result.params.odds[:, 1, 0]])
    assert np.allclose(table["easiest"].to_numpy().reshape(5, 2), special.expit(odds))
    named = special.expit(result.params.ease[:, None, None] * odds)  # (T, W, K); all workers answered all tasks
    own = (result.posterior[:, None] * named).sum(0) / result.posterior.sum(0)
    assert np.allclose(table["estimated"].to_numpy().reshape(5, 2), own)


def test_expertise_of_tasks_alike_is_the_confusion_matrix() -> None:
    table = cw.expertise(learnt(0, "two-coin", 200, 50).result_)
    assert np.allclose(table["estimated"], table["easiest"])
    sim = cw.simulate.crowd(tasks=60, workers=5, classes=3, seed=1)
    result = cw.aggregate(sim.answers, "dawid-skene")
    diagonal = [result.confusion(worker)[n, n + 1] for worker in result.answers.workers for n in range(3)]
    assert np.allclose(cw.expertise(result)["easiest"], diagonal)
    table = cw.expertise(result, sim.truth.head(0).vstack(sim.truth.filter(pl.col("label") == "c1")))
    assert table.filter(pl.col("label") != "c1")["true"].null_count() == 10
    assert table.filter(pl.col("label") != "c1")["answers"].sum() == 0


# -------------------------------------------------------------------------------------------------------- simulated


def test_experts_err_where_classes_meet() -> None:
    """Shares of right answers, by class and distance from the boundary, are those of eqs (1) and (2)."""
    sim = cw.simulate.experts(40_000, seed=1)
    truth = (sim.truth["label"] == "c2").to_numpy()
    p = special.expit(sim.features.sum(1))
    said = (sim.answers.frame()["label"] == "c2").to_numpy().reshape(-1, 5)
    bins = np.digitize((p - 0.5) ** 2, [0.05, 0.15, 0.22])
    for j, ability in enumerate(zip(SPECIFICITY, SENSITIVITY, strict=True)):
        for k in (0, 1):
            right = special.expit(4 * special.logit(ability[k]) * (p - 0.5) ** 2)
            for b in range(4):
                at = (truth == k) & (bins == b)
                spread = 4 * np.sqrt(0.25 / at.sum())
                assert at.sum() > 1000
                assert abs((said[at, j] == k).mean() - right[at].mean()) < spread
    assert np.allclose(sim.ease, 4 * (p - 0.5) ** 2)
    assert abs(sim.features[truth].mean() - 1) < 0.02
    assert abs(sim.features[~truth].mean() + 1) < 0.02
    assert np.allclose(sim.confusions[:, [0, 1], [0, 1]], np.column_stack([SPECIFICITY, SENSITIVITY]))


def test_experts_without_structure_err_anywhere() -> None:
    sim = cw.simulate.experts(20_000, structural=False, seed=2)
    right = (sim.answers.frame().join(sim.truth, on="task", maintain_order="left")).select(
        pl.col("label") == pl.col("label_right")
    )["label"].to_numpy().reshape(-1, 5)  # fmt: skip
    rate = np.mean([1 / (3 + k) for k in range(6)])
    assert np.abs(1 - right.mean(0) - rate).max() < 4 * np.sqrt(rate * (1 - rate) / 20_000)
    near = np.abs(sim.features.sum(1)) < 1
    assert abs(right[near].mean() - right[~near].mean()) < 0.01


def test_experts_of_more_classes() -> None:
    sim = cw.simulate.experts(20_000, fresh=7, classes=3, workers=6, per_task=2, features=4, seed=3)
    assert sim.features.shape == (20_007, 4)
    assert sim.truth.height == 20_007
    assert sim.answers.n_answers == 40_000
    assert sim.answers.n_tasks == 20_000
    assert np.allclose(sim.confusions.sum(2), 1)
    told = sim.answers.frame().join(sim.truth, on="task").join(sim.workers, on="worker")
    right = told.group_by("worker").agg((pl.col("label") == pl.col("label_right")).mean(), pl.col("skill").first())
    assert (right["label"] - right["skill"]).abs().max() < 0.03
    by_ease = told.join(sim.truth.select("task", ease=pl.Series(sim.ease)), on="task")
    easy, hard = (by_ease.filter(keep) for keep in (pl.col("ease") > 0.8, pl.col("ease") < 0.2))
    assert min(easy.height, hard.height) > 1000
    assert abs((hard["label"] == hard["label_right"]).mean() - 1 / 3) < 0.1
    assert (easy["label"] == easy["label_right"]).mean() > 0.55


@pytest.mark.parametrize("wrong", [{"tasks": 0}, {"fresh": -1}, {"classes": 1}, {"features": 1}, {"per_task": 9}])
def test_experts_refuse_what_cannot_be(wrong: dict[str, int]) -> None:
    with pytest.raises(cw.errors.ParameterError, match=r"must be"):
        cw.simulate.experts(**{"tasks": 10, **wrong})
