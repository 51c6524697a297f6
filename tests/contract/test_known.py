"""Tasks whose label is known: how they would be judged without it, label sets that hold, and how often labels of a
probability are right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.acquisition.known import judged, known_needed, left_out, reliability

MODELS = ["pooled", "dawid-skene", "one-coin", "glad", "majority-vote"]


def hard(seed: int, count: int, tasks: int = 300) -> tuple[cw.Labels, dict[str, str]]:
    """A crowd with many errors, the true labels, and some of them known."""
    sim = cw.simulate.crowd("confusion", tasks=tasks, workers=25, classes=4, per_task=4, accuracy=0.55, seed=seed)
    truth = dict(sim.truth.rows())
    some = np.random.default_rng(seed).permutation(sim.truth["task"].to_list())[:count].tolist()
    return cw.Labels(sim.answers.frame(), gold={task: truth[task] for task in some}), truth


def coverage(result: cw.LabelsResult, truth: dict[str, str], share: float) -> tuple[float, float]:
    """Share of tasks without gold whose set contains the truth, and the mean size of these sets."""
    free = result.labels.filter(pl.col("status") != "known")["task"]
    sets = cw.label_sets(result, share).filter(pl.col("task").is_in(free.to_list()))
    hit = sets.filter(pl.col("label") == pl.col("task").replace_strict(truth))
    return hit.height / len(free), sets.height / len(free)


@pytest.mark.parametrize("calibrate", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_sets_contain_the_true_label_as_often_as_they_promise(name: str, calibrate: bool) -> None:
    found = []
    for seed in range(8):
        answers, truth = hard(seed, 80)
        result = cw.aggregate(answers, name, calibrate=calibrate)
        found.append([coverage(result, truth, share) for share in (0.9, 0.95)])
    (low, small), (high, large) = np.mean(found, axis=0)
    assert low >= 0.88
    assert high >= 0.93
    assert 1 <= small <= large <= 4
    if name != "majority-vote":  # whose probabilities are often tied
        assert low <= 0.945
        assert high <= 0.98
        assert small < large < 3.5  # of four classes


def test_sets_hold_on_real_answers(shared_data: Path) -> None:
    found = []
    for name in ("music_genre", "face_sentiment", "dogs", "weather_amt", "zencrowd_in", "labelme"):
        frame = pl.read_parquet(shared_data / name / "answers.parquet").select("task", "worker", "label")
        truth = pl.read_parquet(shared_data / name / "truth.parquet").select("task", "label")
        answers = cw.Labels(frame, gold=truth, duplicates="each")
        some = np.random.default_rng(1).choice(np.flatnonzero(answers.gold >= 0), 100, replace=False)
        gold = np.full(answers.n_tasks, -1, np.int32)
        gold[some] = answers.gold[some]
        sets = cw.label_sets(cw.aggregate(answers.with_gold(gold)))
        hidden = truth.filter(~pl.col("task").is_in(answers.tasks[some].to_list()))
        rows = hidden.join(sets, on="task").group_by("task").agg((pl.col("label") == pl.col("label_right")).any())
        found.append(rows["label"].mean())
    assert 0.87 <= np.mean(found) <= 0.95
    assert min(found) >= 0.82


def test_a_set_lists_the_labels_with_their_probabilities() -> None:
    answers, truth = hard(1, 40)
    result = cw.aggregate(answers)
    sets = cw.label_sets(result)
    assert sets.columns == ["task", "label", "probability", "size"]
    assert sets["task"].unique(maintain_order=True).to_list() == answers.tasks.to_list()
    sizes = sets.group_by("task").agg(pl.len().cast(pl.Int64), pl.col("size").first())
    assert (sizes["len"] == sizes["size"]).all()
    names = {name: k for k, name in enumerate(result.classes)}
    again = cw.aggregate(answers.with_gold(None)).posterior
    for task, label, p in sets.select("task", "label", "probability").rows():
        i = answers.task_number(task)
        assert answers.gold[i] >= 0 or np.isclose(again[i, names[label]], p)
    both = sets.join(result.labels, on=["task", "label"])
    assert both["task"].n_unique() == answers.n_tasks  # the label found is always in the set
    fixed = sets.filter(pl.col("task").is_in(result.labels.filter(pl.col("status") == "known")["task"].to_list()))
    assert fixed["size"].to_list() == [1] * 40
    assert all(truth[task] == label for task, label in fixed.select("task", "label").rows())


def test_sets_need_known_labels() -> None:
    answers, _ = hard(1, 8)
    result = cw.aggregate(answers)
    assert known_needed(0.9) == 9
    with pytest.raises(cw.errors.ParameterError, match=r"coverage 0.9 need at least 9 tasks .*; there are 8"):
        cw.label_sets(result)
    assert cw.label_sets(result, 0.8).height >= answers.n_tasks  # four are enough for this
    for wrong in (0, 1, 90, True, "0.9"):
        with pytest.raises(cw.errors.ParameterError, match="coverage="):
            cw.label_sets(result, wrong)  # type: ignore[arg-type]


def test_known_tasks_are_judged_as_if_no_label_were_known() -> None:
    answers, _ = hard(2, 20, tasks=60)
    found, again = judged(cw.aggregate(answers)), cw.aggregate(answers.with_gold(None))
    assert found.tasks.tolist() == np.flatnonzero(answers.gold >= 0).tolist()
    assert np.array_equal(found.posterior, again.posterior[found.tasks])
    truth = answers.classes[answers.gold[found.tasks]]
    assert found.right.tolist() == (again.labels["label"][found.tasks] == truth).to_list()


def test_the_contribution_of_a_known_task_is_removed() -> None:
    """By hand: counts without the task, for Dawid-Skene."""
    answers, _ = hard(3, 20, tasks=60)
    result = cw.aggregate(answers, "dawid-skene", run=cw.Run(precision="double"), max_iter=5000, tol=1e-9)
    found, Z = left_out(result), result.posterior
    task, worker, label = answers.codes()
    C = np.zeros((answers.n_workers, 4, 4))
    np.add.at(C.transpose(0, 2, 1), (worker, label), Z[task])
    s = result.model.smoothing  # type: ignore[attr-defined]
    for n, i in enumerate(found.tasks):
        logs = np.log(result.params.rho)
        for j, said in zip(worker[task == i], label[task == i], strict=True):
            logs = logs + np.log((C[j, :, said] - Z[i] + s) / (C[j].sum(1) - Z[i] + 4 * s))
        p = np.exp(logs - logs.max())
        assert np.allclose(found.posterior[n], p / p.sum(), atol=1e-4)


def test_reliability_counts_right_labels_by_their_probability() -> None:
    answers, _ = hard(4, 250)
    found = judged(cw.aggregate(answers))
    bins = reliability(found)
    assert sum(each.tasks for each in bins) == 250
    for each in bins:
        own = (found.probability >= each.low - 1e-9) & (found.probability < each.high - 1e-9)
        own |= (each.high == 1) & (found.probability >= 1 - 1e-9)
        assert own.sum() == each.tasks
        assert np.isclose(each.right, found.right[own].mean())
        assert np.isclose(each.probability, found.probability[own].mean())
        assert each.right_low <= each.right <= each.right_high
        assert each.low - 1e-9 <= each.probability <= each.high + 1e-9


def test_a_classifier_with_known_labels_has_sets_if_it_can_judge_known_tasks() -> None:
    sim = cw.simulate.experts(tasks=150, seed=1)
    truth = dict(sim.truth.rows())
    given = cw.Labels(sim.answers.frame(), gold={task: truth[task] for task in list(truth)[:60]})
    fit = {
        side: cw.CrowdClassifier(workers=side).fit(sim.features, given, tasks=sim.truth["task"]).result_
        for side in ("pooled", "confusion", "adaptive")
    }
    sets: Any = cw.label_sets(fit["pooled"])
    hidden = sets.filter(~pl.col("task").is_in(list(truth)[:60]))
    hit = hidden.filter(pl.col("label") == pl.col("task").replace_strict(truth))
    assert hit.height / hidden["task"].n_unique() >= 0.85
    assert hidden.height / hidden["task"].n_unique() < 1.5
    for side, result in fit.items():
        expected = cw.expected_accuracy(result)
        assert expected is not None
        assert 0.6 < expected.value <= 1
        assert result.summary().expected_wrong < 40
        if side != "pooled":
            with pytest.raises(cw.errors.ParameterError, match="not available with the worker side"):
                cw.label_sets(result)


@pytest.mark.parametrize("name", cw.models("labels")["name"].to_list())
def test_every_model_has_sets_and_a_page(name: str, tmp_path: Path) -> None:
    answers, truth = hard(5, 40, tasks=120)
    result = cw.aggregate(answers, name)
    assert coverage(result, truth, 0.9)[0] >= 0.7
    assert "Label sets" in result.report(tmp_path / "page.html").read_text()


def test_a_model_that_needs_gold_is_not_fitted_without(tmp_path: Path) -> None:
    answers, truth = hard(6, 80)
    result = cw.aggregate(answers, "weighted-vote", learn_from="gold")
    assert coverage(result, truth, 0.9)[0] >= 0.8
    result.report(tmp_path / "page.html")


def test_the_shift_is_found_however_far_it_is() -> None:
    """An overconfident model: Newton steps would overshoot."""
    answers, truth = hard(7, 60)
    result = cw.aggregate(answers, "one-coin")
    found = cw.expected_accuracy(result)
    assert found is not None
    free = result.labels.filter(pl.col("status") != "known")
    right = (free["label"] == free["task"].replace_strict(truth)).mean()
    assert found.low <= right <= found.high
    assert found.high - found.low < 0.3
    assert result.summary().expected_wrong == pytest.approx((1 - found.value) * free.height)
