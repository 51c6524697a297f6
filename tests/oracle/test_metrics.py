"""Metrics against the truth: ROC curves, areas, skills, confusion matrices and groups; and simulated experts."""

from __future__ import annotations

import math
from itertools import combinations, permutations
from typing import Any

import numpy as np
import polars as pl
import pytest
from learning import experts, learnt
from scipy import special
from sklearn.metrics import roc_auc_score, roc_curve

import crowdwise as cw
from crowdwise.kernels import special as kernel
from crowdwise.simulate import SENSITIVITY, SPECIFICITY

pytestmark = pytest.mark.filterwarnings("error")


# --------------------------------------------------------------------------------------------------------- scoring


def scored(K: int, ties: bool) -> tuple[cw.LabelsResult, pl.DataFrame, Any]:
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
    with pytest.raises(cw.errors.EmptyDataError, match="have no task in common"):
        cw.auc(result, {"elsewhere": "c1"})


def test_expertise_against_hand_computed_values() -> None:
    sim = experts(0, 200, 50)
    truth = sim.truth.gather_every(2)
    table = cw.expertise(learnt(0, "adaptive", 200, 50).result_, truth)
    assert table.columns == ["worker", "label", "estimated", "easiest", "true", "answers"]
    joined = sim.answers.frame().join(truth, on="task", suffix="_true")
    for row in table.iter_rows(named=True):
        own = joined.filter((pl.col("worker") == row["worker"]) & (pl.col("label_true") == row["label"]))
        assert row["answers"] == own.height
        assert np.isclose(row["true"], (own["label"] == row["label"]).mean())
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


# ------------------------------------------------------------------------------------- confusion matrices and groups


def slow_divergence(P: Any, Q: Any) -> float:
    rows = []
    for p, q in zip(np.clip(P, 1e-7, 1), np.clip(Q, 1e-7, 1), strict=True):
        halves = [sum(x * math.log(2 * x / (x + y)) for x, y in zip(*pair, strict=True)) for pair in ((p, q), (q, p))]
        rows.append(sum(halves) / 2 / math.log(2))
    return sum(rows) / len(rows)


def test_distance_of_matrices() -> None:
    rng = np.random.default_rng(0)
    P, Q = rng.dirichlet(np.ones(3), (2, 5, 3))
    P[0], Q[1, 0] = np.eye(3), [0.0, 0.0, 1.0]
    slow = [slow_divergence(p, q) for p, q in zip(P, Q, strict=True)]
    assert np.allclose(kernel.divergence(P, Q), slow, atol=1e-12)
    assert np.allclose(kernel.similarity(P), [1 - slow_divergence(p, np.eye(3)) for p in P], atol=1e-12)
    by_rows = [[-sum(x * math.log2(x) for x in np.maximum(row, 1e-7)) for row in p] for p in P]
    assert np.allclose(kernel.entropy(P), np.mean(by_rows, axis=1), atol=1e-12)
    even, turned = np.full((8, 8), 1 / 8), np.roll(np.eye(8), 1, axis=1)
    assert kernel.divergence(P, P).tolist() == [0] * 5
    assert np.isclose(kernel.divergence(np.eye(8), turned), 1, atol=1e-5)
    assert np.allclose([kernel.similarity(even), kernel.entropy(even)], [0.28, 3], atol=0.005)


Scored = tuple[cw.simulate.Crowd, cw.LabelsResult]


@pytest.fixture(scope="module")
def grouped() -> Scored:
    sim = cw.simulate.crowd("groups", tasks=90, workers=14, classes=3, per_task=3, seed=2)
    return sim, cw.aggregate(sim.answers, "groups")


def test_divergence_against_hand_computed_values(grouped: Scored) -> None:
    """I-JS: mean divergence over workers from matrices counted with the truth, uniform in empty rows; G-JS: of all."""
    sim, result = grouped
    truth = sim.truth.gather_every(2)
    joined = sim.answers.frame().join(truth, on="task", suffix="_true").rows(named=True)
    names, own, crowd = ["c1", "c2", "c3"], [], np.zeros((3, 3))
    for worker in sim.answers.workers:
        counts = np.zeros((3, 3))
        for row in joined:
            if row["worker"] == worker:
                counts[names.index(row["label_true"]), names.index(row["label"])] += 1
        crowd += counts
        true = np.array([row / row.sum() if row.sum() else np.full(3, 1 / 3) for row in counts])
        own.append(slow_divergence(true, result.confusion(worker).select(names).to_numpy()))
    found = cw.divergence(result, truth)
    assert np.isclose(found.individual, np.mean(own))
    whole = slow_divergence(crowd / crowd.sum(1, keepdims=True), result.confusion().select(names).to_numpy())
    assert np.isclose(found.crowd, whole)

    given = cw.divergence(result, confusions=sim.confusions)
    shown = result.confusions(np.arange(14))
    assert np.isclose(
        given.individual, np.mean([slow_divergence(*pair) for pair in zip(sim.confusions, shown, strict=True)])
    )
    mixed = np.average(sim.confusions, axis=0, weights=sim.answers.answers_per_worker)
    assert np.isclose(given.crowd, slow_divergence(mixed, result.confusion().select(names).to_numpy()))


def test_divergence_in_parts_is_the_same(grouped: Scored, monkeypatch: pytest.MonkeyPatch) -> None:
    sim, result = grouped
    whole = [cw.divergence(result, sim.truth), cw.divergence(result, confusions=sim.confusions)]
    monkeypatch.setattr("crowdwise.metrics.labels.MAX_BATCH_CELLS", 40)  # four workers at a time
    assert np.allclose(whole, [cw.divergence(result, sim.truth), cw.divergence(result, confusions=sim.confusions)])
    for wrong, words in (
        ({}, "give either truth"),
        ({"truth": sim.truth, "confusions": sim.confusions}, "give either truth"),
        ({"confusions": sim.confusions[1:]}, r"shape \(13, 3, 3\); it must be \(14, 3, 3\)"),
    ):
        with pytest.raises(cw.errors.ParameterError, match=words):
            cw.divergence(result, **wrong)


def test_rand_index_counts_pairs() -> None:
    sim = cw.simulate.triangle(60, tasks=150, fresh=0, seed=1)
    result = cw.aggregate(sim.answers, "groups", groups=3)
    true, found = (dict(each.select("worker", "group").rows()) for each in (sim.workers, result.members))
    pairs = list(combinations(true, 2))
    a, b = ([each[v] == each[w] for v, w in pairs] for each in (true, found))
    both, chance = sum(map(min, zip(a, b, strict=True))), sum(a) * sum(b) / len(pairs)
    slow = (both - chance) / ((sum(a) + sum(b)) / 2 - chance)
    assert 0.1 < slow < 0.99
    assert np.isclose(cw.rand_index(result, sim.workers), slow)
    assert cw.rand_index(result, true) == cw.rand_index(result, sim.workers)
    for turn in permutations("xyz"):  # names of groups do not matter
        assert cw.rand_index(result, {w: turn[g] for w, g in true.items()}) == cw.rand_index(result, true)
    with pytest.raises(cw.errors.ColumnError, match="it needs worker and group"):
        cw.rand_index(result, sim.workers.select("worker", "skill"))
    with pytest.raises(cw.errors.EmptyDataError, match="have no worker in common"):
        cw.rand_index(result, {"elsewhere": 1})


# -------------------------------------------------------------------------------------------------------- simulated


def test_experts_err_where_classes_meet() -> None:
    """Shares of correct answers, by class and distance from the boundary, follow eqs (1) and (2)."""
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
    joined = sim.answers.frame().join(sim.truth, on="task").join(sim.workers, on="worker")
    right = joined.group_by("worker").agg((pl.col("label") == pl.col("label_right")).mean(), pl.col("skill").first())
    assert (right["label"] - right["skill"]).abs().max() < 0.03
    by_ease = joined.join(sim.truth.select("task", ease=pl.Series(sim.ease)), on="task")
    easy, hard = (by_ease.filter(keep) for keep in (pl.col("ease") > 0.8, pl.col("ease") < 0.2))
    assert min(easy.height, hard.height) > 1000
    assert abs((hard["label"] == hard["label_right"]).mean() - 1 / 3) < 0.1
    assert (easy["label"] == easy["label_right"]).mean() > 0.55


@pytest.mark.parametrize("wrong", [{"tasks": 0}, {"fresh": -1}, {"classes": 1}, {"features": 1}, {"per_task": 9}])
def test_experts_refuse_invalid_sizes(wrong: dict[str, int]) -> None:
    with pytest.raises(cw.errors.ParameterError, match=r"must be"):
        cw.simulate.experts(**{"tasks": 10, **wrong})
