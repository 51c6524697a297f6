"""The default model: copies, shared errors, guards and calibrated probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdwise as cw

SEEDS = range(2)
Rng = np.random.Generator


def honest(truth: Any, workers: int, accuracy: float, K: int, rng: Rng) -> Any:
    """(T, W) labels of workers who err evenly and independently."""
    wrong = (truth[:, None] + rng.integers(1, K, (len(truth), workers))) % K
    return np.where(rng.random((len(truth), workers)) < accuracy, truth[:, None], wrong)


def labels(columns: Any, chosen: Any = None) -> cw.Labels:
    """Labels (T, W) as answers; `chosen` (T, W) marks those that were given."""
    task, worker = np.nonzero(np.ones(columns.shape, bool) if chosen is None else chosen)
    return cw.Labels([f"t{i:04d}" for i in task], [f"w{j:02d}" for j in worker], columns[task, worker])


def right(result: cw.LabelsResult, truth: Any) -> float:
    """Share of right labels of tasks named as in `labels`."""
    place = np.array([int(task[1:]) for task in result.labels["task"]])
    return float((result.labels["label"].to_numpy() == truth[place]).mean())


def reported(result: cw.LabelsResult) -> float:
    return float(result.labels["probability"].mean())  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------------- copies


def with_copies(K: int, accuracy: float, copies: int, noise: float, seed: int) -> tuple[cw.Labels, Any]:
    """7 honest workers of accuracy 0.75 and `copies` that repeat one worker; 200 tasks, answered by all."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, K, 200)
    source = honest(truth, 1, accuracy, K, rng)
    repeated = np.where(rng.random((200, copies)) < noise, rng.integers(0, K, (200, copies)), source)
    return labels(np.hstack([honest(truth, 7, 0.75, K, rng), repeated])), truth


CASES = {  # classes, accuracy of the source, copies, noise, least share of right labels on average
    "of a worker": (2, 0.7, 3, 0.0, 0.92),
    "of a coin": (2, 0.5, 3, 0.0, 0.90),
    "of a coin, with noise": (2, 0.5, 3, 0.1, 0.90),
    "of a coin, four classes": (4, 0.25, 5, 0.0, 0.95),
}


@pytest.mark.parametrize("case", CASES)
def test_copies_share_one_vote_and_are_flagged(case: str) -> None:
    K, accuracy, copies, noise, least = CASES[case]
    shares = []
    for seed in SEEDS:
        answers, truth = with_copies(K, accuracy, copies, noise, seed)
        result = cw.aggregate(answers)
        share = right(result, truth)
        shares.append(share)
        assert reported(result) <= share + 0.03
        flagged = result.workers.filter(pl.col("flags").str.contains("copies"))
        assert flagged["worker"].to_list() == [f"w{j:02d}" for j in range(7, 7 + copies)]
        assert flagged["reasons"].str.contains("they share one vote").all()
        assert result.tasks["effective_votes"].max() < 7 + 2
        assert any("give the same answers" in warning for warning in result.warnings)
    assert np.mean(shares) >= least
    assert right(cw.aggregate(answers, copying=1.0), truth) < np.mean(shares)


@pytest.mark.parametrize(("K", "least"), [(2, 0.78), (4, 0.84)])
def test_rings_whose_pairs_share_few_tasks_are_found(K: int, least: float) -> None:
    rng = np.random.default_rng(K)
    truth, source = rng.integers(0, K, 600), rng.integers(0, K, 600)
    columns = honest(truth, 60, 0.75, K, rng)
    columns[:, :18] = source[:, None]
    chosen = np.argsort(rng.random((600, 60)), axis=1) < 5
    result = cw.aggregate(labels(columns, chosen))
    flagged = result.workers.filter(pl.col("flags").str.contains("copies"))["worker"].to_list()
    assert flagged == [f"w{j:02d}" for j in range(18)]
    assert right(result, truth) >= least
    assert reported(result) <= right(result, truth) + 0.03


def test_a_looser_limit_merges_families_of_models() -> None:
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, 300)
    source = honest(truth, 1, 0.6, 2, rng)
    family = np.where(rng.random((300, 5)) < 0.85, source, honest(truth, 5, 0.6, 2, rng))
    answers = labels(np.hstack([honest(truth, 6, 0.75, 2, rng), family]))
    strict, loose = cw.aggregate(answers), cw.aggregate(answers, copying=0.6)
    assert "copies" not in " ".join(strict.workers["flags"])
    assert loose.workers.filter(pl.col("flags").str.contains("copies"))["worker"].to_list() == [
        f"w{j:02d}" for j in range(6, 11)
    ]
    assert right(loose, truth) > right(strict, truth) + 0.1
    assert any("agree among themselves beyond the crowd" in warning for warning in strict.warnings)


def experts(rng: Rng) -> tuple[cw.Labels, Any]:
    truth = rng.integers(0, 2, 200)
    return labels(np.hstack([honest(truth, 3, 0.97, 2, rng), honest(truth, 9, 0.6, 2, rng)])), truth


def spammers(share: float, K: int, n: int) -> Callable[[Rng], tuple[cw.Labels, Any]]:
    def make(rng: Rng) -> tuple[cw.Labels, Any]:
        truth, guess = rng.integers(0, K, 500), round(50 * share)
        columns = np.hstack([rng.integers(0, K, (500, guess)), honest(truth, 50 - guess, 0.9, K, rng)])
        return labels(columns, np.argsort(rng.random((500, 50)), axis=1) < n), truth

    return make


def constant_spammers(rng: Rng) -> tuple[cw.Labels, Any]:
    truth = rng.integers(0, 3, 500)
    columns = np.hstack([np.zeros((500, 20), int), honest(truth, 20, 0.8, 3, rng)])
    return labels(columns, np.argsort(rng.random((500, 40)), axis=1) < 6), truth


def lopsided(rng: Rng) -> tuple[cw.Labels, Any]:
    """One class is always recognised, the other half of the time."""
    truth = rng.integers(0, 2, 500)
    columns = np.where(rng.random((500, 40)) < np.where(truth == 0, 0.05, 0.55)[:, None], 1, 0)
    return labels(columns, np.argsort(rng.random((500, 40)), axis=1) < 7), truth


def rare(rng: Rng) -> tuple[cw.Labels, Any]:
    truth = (rng.random(600) < 0.1).astype(int)
    return labels(honest(truth, 40, 0.75, 2, rng), np.argsort(rng.random((600, 40)), axis=1) < 10), truth


INDEPENDENT = {
    "experts": experts,
    "half spammers": spammers(0.5, 4, 5),
    "80 % spammers": spammers(0.8, 2, 10),
    "constant spammers": constant_spammers,
    "lopsided errors": lopsided,
    "a class of 10 %": rare,
}


@pytest.mark.parametrize("kind", INDEPENDENT)
def test_independent_crowds_are_not_flagged_and_beat_the_vote(kind: str) -> None:
    gaps = []
    for seed in SEEDS:
        answers, truth = INDEPENDENT[kind](np.random.default_rng(seed))
        result = cw.aggregate(answers)
        free = cw.aggregate(answers, anchor=0.0, copying=1.0, calibrate=False)
        assert "copies" not in " ".join(result.workers["flags"])
        assert right(result, truth) >= right(cw.aggregate(answers, "majority-vote"), truth) - 0.01
        assert abs(reported(result) - right(result, truth)) < 0.2
        gaps.append(right(result, truth) - right(free, truth))
    assert np.mean(gaps) > -0.03


# ------------------------------------------------------------------------------------------------------------- guards


def test_workers_who_share_no_task_are_believed() -> None:
    rng = np.random.default_rng(0)
    truth, worker = rng.integers(0, 2, 400), rng.integers(0, 20, 400)
    given = np.where(rng.random(400) < rng.uniform(0.5, 0.9, 20)[worker], truth, 1 - truth)
    answers = cw.Labels([f"t{i:04d}" for i in range(400)], [f"w{j:02d}" for j in worker], given)
    result = cw.aggregate(answers)
    assert (result.labels["label"].to_numpy() == given).all()
    smoothed = (np.eye(2)[given] + result.params.mean) / 2
    assert np.allclose(result.posterior, smoothed, atol=1e-6)  # the vote alone, with one more vote for all classes
    assert abs(reported(result) - right(result, truth)) < 0.08
    assert any("no task has answers of two workers" in warning for warning in result.warnings)
    assert cw.expected_accuracy(result) is None
    assert cw.cost_curve(result).points.is_empty()


@pytest.mark.parametrize("K", [2, 4])
def test_coin_flips_are_reported_as_chance(K: int) -> None:
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        answers = labels(rng.integers(0, K, (300, 30)), np.argsort(rng.random((300, 30)), axis=1) < 5)
        result = cw.aggregate(answers)
        found.append(reported(result))
        assert any("agree hardly more than random ones" in warning for warning in result.warnings)
    assert np.mean(found) < 1 / K + 0.08


def test_a_majority_that_may_be_inverted_is_not_trusted() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 200)
    answers = labels(np.hstack([honest(truth, 10, 0.25, 2, rng), honest(truth, 5, 0.8, 2, rng)]))
    result = cw.aggregate(answers)
    vote = cw.aggregate(answers, "majority-vote")
    assert result.labels["label"].equals(vote.labels["label"])
    assert reported(result) < 0.75
    assert any("the majority may be the wrong one" in warning for warning in result.warnings)


def test_a_class_that_swallows_tasks_gives_way_to_the_vote(shared_data: Any) -> None:
    frame = pl.read_parquet(shared_data / "ducks" / "answers.parquet")
    result = cw.aggregate(cw.Labels(frame.select("task", "worker", "label")))
    assert any("to other classes than the votes" in warning for warning in result.warnings)
    assert any("agree among themselves beyond the crowd" in warning for warning in result.warnings)


def test_ordinary_crowds_have_no_guards() -> None:
    result = cw.aggregate(cw.simulate.crowd(tasks=300, workers=30, per_task=6, seed=1).answers)
    assert result.warnings == ()


# -------------------------------------------------------------------------------------------------------- calibration


@pytest.mark.parametrize("name", cw.models("labels")["name"].to_list())
def test_every_model_can_be_calibrated(name: str) -> None:
    sim = cw.simulate.crowd("confusion", tasks=120, workers=12, classes=3, per_task=7, seed=2)
    known = dict(sim.truth[:5].rows())
    answers = cw.Labels(sim.answers.frame(), gold=known)
    bare, found = (cw.aggregate(answers, name, calibrate=value) for value in (False, True))
    Z = found.posterior
    assert np.allclose(Z.sum(1), 1, atol=1e-6)
    assert Z[5:].min() > 0  # nothing is impossible
    assert found.labels["label"][:5].to_list() == list(known.values())
    assert (found.labels["label"] == bare.labels["label"]).mean() > 0.95
    assert reported(found) < reported(bare) + 1e-9
    again = found.predict(sim.answers.frame()).posterior
    assert np.allclose(again.sum(1), 1, atol=1e-6)
    assert (again[5:].argmax(1) == Z[5:].argmax(1)).mean() > 0.95  # nothing is left out in predictions
    if name in ("majority-vote", "soft-vote", "weighted-vote"):
        return
    votes = found.tasks["effective_votes"].to_numpy()
    assert ((votes >= 1) & (votes < 7)).all()
    assert bare.tasks["effective_votes"].null_count() == 120


def test_the_range_of_expected_accuracy_is_that_of_the_probabilities() -> None:
    """Uncalibrated posteriors, and other models, were further off on real datasets."""
    answers = cw.simulate.crowd(tasks=200, workers=20, per_task=5, seed=1).answers
    fits = [cw.aggregate(answers), cw.aggregate(answers, calibrate=False), cw.aggregate(answers, "dawid-skene")]
    fits.append(cw.aggregate(answers, "dawid-skene", calibrate=True))
    below = [fit.model.error_range[0] for fit in fits]
    assert below == [1.05, 4.6, 7.6, 2.0]
    for fit, least in zip(fits, below, strict=True):
        found = cw.expected_accuracy(fit)
        assert found is not None
        odds = [np.log(p / (1 - p)) for p in (found.value, found.low)]
        assert odds[0] - odds[1] >= least


def test_leave_one_out_posteriors_have_not_seen_the_task() -> None:
    """A worker with one answer has the crowd's matrix, however the fit has seen that answer."""
    sim = cw.simulate.crowd("confusion", tasks=60, workers=8, classes=2, per_task=5, seed=3)
    alone = pl.DataFrame({"task": ["new"], "worker": ["stranger"], "label": ["c2"]})
    frame = pl.concat([sim.answers.frame(), alone])
    free = {"anchor": 0.0, "copying": 1.0, "tol": 1e-9, "max_iter": 5000}
    result = cw.aggregate(cw.Labels(frame), **free)
    params, model = result.params, result.model
    row = np.flatnonzero(result.answers.layout.row_worker == result.answers.worker_number("stranger"))
    assert len(row) == 1
    crowd = params.a[:, 1] / params.a.sum(1)
    prior = model.class_prior(params, 2)
    wanted = prior * crowd / (prior * crowd).sum()
    shard = model.shard_of(result.answers)
    Z = np.array(cw.aggregate(cw.Labels(frame), **free, calibrate=False).posterior)
    found = model.leave_one_out(shard, params, Z, shard.gold)[result.answers.task_number("new")]
    assert np.allclose(found, wanted, atol=1e-6)
