"""Bad data, on a larger scale or in rarer places: D17, D22, D27 and D31 of the fault list."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdwise as cw

EVERY = cw.models("labels")["name"].to_list()


def noisy(seed: int, tasks: int, workers: int, classes: int, per_task: int, right: float) -> list[np.ndarray]:
    """Task, worker and label of a simple crowd."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, tasks)
    task = np.repeat(np.arange(tasks), per_task)
    worker = np.concatenate([rng.choice(workers, per_task, replace=False) for _ in range(tasks)])
    wrong = (truth[task] + rng.integers(1, classes, len(task))) % classes
    return [task, worker, np.where(rng.random(len(task)) < right, truth[task], wrong)]


# ------------------------------------------------------------------------------------------------- D17: separate groups


@pytest.mark.parametrize("name", EVERY)
def test_d17_each_of_two_groups_gets_the_labels_that_it_gets_alone(name: str) -> None:
    parts = {part: noisy(seed, 60, 8, 3, 5, 0.75) for seed, part in enumerate("pq")}
    frames = [
        pl.DataFrame({"task": task, "worker": worker, "label": label}).select(
            pl.format(f"{part}{{}}", "task").alias("task"), pl.format(f"{part}{{}}", "worker").alias("worker"), "label"
        )
        for part, (task, worker, label) in parts.items()
    ]
    both = dict(cw.aggregate(pl.concat(frames), name).labels.select("task", "label").rows())
    for frame in frames:
        alone = cw.aggregate(frame, name).labels.select("task", "label").rows()
        assert sum(both[task] == label for task, label in alone) >= 0.9 * len(alone)


# ------------------------------------------------------------------------------------------------- D22: a million votes


def test_d22_a_task_with_a_million_votes_has_its_label_and_no_nan() -> None:
    N = 1_000_000
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 501)
    task = np.concatenate([np.zeros(N, int), np.repeat(np.arange(1, 501), 5)])
    worker = np.concatenate([np.arange(N), rng.choice(N, 2_500, replace=False)])
    label = np.where(rng.random(len(task)) < 0.85, truth[task], rng.integers(0, 3, len(task)))
    label[:N] = np.where(np.arange(N) < 0.49 * N, 1, 2)
    answers = cw.Labels(task, worker, label, duplicates="each")
    for name, settings in (("majority-vote", {}), ("one-coin", {"max_iter": 3}), ("dawid-skene", {"max_iter": 3})):
        result = cw.aggregate(answers, name, **settings)
        assert np.isfinite(result.posterior).all()
        assert np.allclose(result.posterior.sum(1), 1, atol=1e-4)
        assert np.isfinite(result.trace["objective"].to_numpy()).all()
        assert result.labels.select("label", "votes").row(0) == (2, N)


# --------------------------------------------------------------------------------------------------------- D27: times


def timed(**columns: Any) -> cw.LabelsResult:
    table = {"task": [1, 1, 2, 2, 3, 3], "worker": list("ababab"), "label": list("xyxxyy")}
    return cw.aggregate(cw.Labels({**table, **columns}))


BACKWARDS = "2 answer(s) end before they start; their duration is not used"


@pytest.mark.parametrize(
    "columns",
    [
        {"seconds": [4.0, -1.0, 4.0, 6.0, -5.0, 6.0]},
        {"started": [0, 9, 0, 0, 9, 0], "timestamp": [4, 8, 4, 6, 4, 6]},
        {
            "started": ["2024-01-01T10:00:00Z"] * 6,  # zones are mixed, and half of the ends are in another
            "timestamp": ["2024-01-01T10:00:04Z", "2024-01-01T10:00:09+01:00", "2024-01-01T11:00:04+01:00",
                          "2024-01-01T10:00:06Z", "2024-01-01T09:59:59Z", "2024-01-01T05:00:06-05:00"],
        },
    ],
    ids=["seconds", "numbers", "zones"],
)  # fmt: skip
def test_d27_answers_that_end_before_they_start_are_counted(columns: Any) -> None:
    result = timed(**columns)
    assert result.workers["seconds"].to_list() == [4.0, 6.0]
    assert [text for text in result.warnings if "start" in text] == [BACKWARDS]
    assert not any("end before" in text for text in timed(seconds=[4.0, math.nan, None, 6.0, 0.0, 6.0]).warnings)


def test_d27_the_command_line_counts_them_too(command: Any, table: Any) -> None:
    lines = ["t1,a,x,0,4", "t1,b,y,9,8", "t2,a,x,0,4", "t2,b,x,0,6", "t3,a,y,9,4", "t3,b,y,0,6"]
    file = table("task,worker,label,started,timestamp\n" + "\n".join(lines) + "\n")
    status, _, err = command("aggregate", file)
    assert status == 0
    assert f"warning: {BACKWARDS}" in err


def test_d27_a_time_in_the_future_is_a_time_like_others() -> None:
    """Nothing depends on the clock of the machine, so no time is too late."""
    result = timed(started=["2999-12-31T23:59:57Z"] * 6, timestamp=["3000-01-01T00:00:01Z"] * 6)
    assert result.workers["seconds"].to_list() == [4.0, 4.0]
    assert not any("start" in text or "time" in text for text in result.warnings)


# ----------------------------------------------------------------------------------------------- D31: 200 random crowds


def test_d31_in_200_crowds_that_guess_no_worker_is_said_to_be_good() -> None:
    """The stated level: an interval of 95 % may lie above chance for one worker in twenty."""
    good = rated = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        task, worker, _ = noisy(seed, 20, 6, 3, 3, 0.5)
        workers = cw.aggregate(cw.Labels(task, worker, rng.integers(0, 3, len(task)))).workers
        low = workers["low"].drop_nulls().to_numpy()
        good, rated = good + int((low > 1 / 3).sum()), rated + len(low)
        for flags in workers["flags"]:
            assert not {"inverted", "copies"} & {*flags.split("; ")}, seed
    assert rated > 1000
    assert good / rated <= 0.05


def test_d31_in_200_crowds_of_honest_workers_one_in_a_hundred_is_flagged_at_most() -> None:
    flags: list[str] = []
    for seed in range(200):
        flags += cw.aggregate(cw.Labels(*noisy(seed, 40, 8, 3, 3, 0.8))).workers["flags"].to_list()
    assert len(flags) == 1600
    assert sum(flag != "" for flag in flags) <= 0.01 * len(flags)
