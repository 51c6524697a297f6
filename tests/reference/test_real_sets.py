"""The default on eighteen real datasets with known truth: figures that it must keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest

import crowdwise as cw

SETS = (
    "labelme", "music_genre", "face_sentiment", "cifar10s", "snow_rte", "snow_temporal", "snow_wsd", "bluebirds",
    "ducks", "dogs", "trec", "product_er", "sentiment_polarity", "sentiment_polarity_amt", "weather_cf", "weather_amt",
    "zencrowd_us", "zencrowd_in",
)  # fmt: skip
CUT_SEED = 1


class Scored(NamedTuple):
    name: str
    accuracy: float  # share of right labels; a tie counts its share
    log_loss: float
    calibration: float  # expected calibration error
    against_vote: float
    expected: cw.acquisition.Accuracy
    gain: float  # predicted from three answers per task to all of them
    merged: int  # workers who share a vote with others
    answers_per_task: float


def scored(name: str, folder: Path, cut: int) -> Scored:
    frame = pl.read_parquet(folder / name / "answers.parquet").select("task", "worker", "label")
    whole = frame.height / frame["task"].n_unique()
    if cut:
        shuffled = frame.sample(fraction=1.0, shuffle=True, seed=CUT_SEED)
        frame = shuffled.group_by("task", maintain_order=True).head(cut)
    truth = pl.read_parquet(folder / name / "truth.parquet").select("task", "label")
    known = cw.Labels(frame, gold=truth, duplicates="each")
    result = cw.aggregate(known.with_gold(None))
    vote = cw.aggregate(known.with_gold(None), "soft-vote")
    own, votes = (shares(fit.posterior, known.gold) for fit in (result, vote))
    expected = cw.expected_accuracy(result)
    assert expected is not None
    curve = cw.cost_curve(result)
    n = known.answers_per_task[known.answers_per_task > 0]
    more = 0.65 * float(curve.disagreement or 0) * (np.mean(1 / n) - 1 / max(whole, float(n.mean())))
    merged = int((result.params.cluster >= 0).sum())
    return Scored(name, *own, own[0] - votes[0], expected, more, merged, float(n.mean()))


def shares(posterior: Any, gold: Any) -> tuple[float, float, float]:
    Z, truth = posterior[gold >= 0].astype(float), gold[gold >= 0]
    top, rows = Z.max(1), np.arange(len(truth))
    tied = top[:, None] - Z <= 1e-6
    correct = tied[rows, truth] / tied.sum(1)
    bins = np.minimum((top * 10).astype(int), 9)
    error = np.abs(np.bincount(bins, top - correct, minlength=10)).sum() / len(truth)
    return float(correct.mean()), float(-np.log(np.clip(Z[rows, truth], 1e-5, 1)).mean()), float(error)


@pytest.fixture(scope="module")
def full(shared_data: Path) -> list[Scored]:
    return [scored(name, shared_data, 0) for name in SETS]


@pytest.fixture(scope="module")
def thin(shared_data: Path) -> list[Scored]:
    return [scored(name, shared_data, 3) for name in SETS]


def mean(rows: list[Scored], field: str) -> float:
    return float(np.mean([getattr(row, field) for row in rows]))


@pytest.mark.xdist_group("real sets")
def test_all_answers(full: list[Scored]) -> None:
    assert mean(full, "accuracy") >= 0.843
    assert mean(full, "log_loss") <= 0.44
    assert mean(full, "calibration") <= 0.07
    assert min(row.against_vote for row in full) >= -0.03
    assert {row.name for row in full if row.merged} <= {"weather_cf"}


@pytest.mark.xdist_group("real sets")
def test_three_answers_per_task(thin: list[Scored]) -> None:
    assert mean(thin, "accuracy") >= 0.803
    assert mean(thin, "log_loss") <= 0.53
    assert mean(thin, "calibration") <= 0.075
    assert min(row.against_vote for row in thin) >= -0.025


@pytest.mark.xdist_group("real sets")
def test_expected_accuracy_comes_true(full: list[Scored], thin: list[Scored]) -> None:
    for rows, error in ((thin, 0.06), (full, 0.05)):
        assert np.mean([abs(row.expected.value - row.accuracy) for row in rows]) <= error
        assert np.mean([row.expected.low <= row.accuracy <= row.expected.high for row in rows]) >= 0.85


@pytest.mark.xdist_group("real sets")
def test_gains_come_true(full: list[Scored], thin: list[Scored]) -> None:
    both = [(few, all_) for few, all_ in zip(thin, full, strict=True) if all_.answers_per_task >= 4]
    errors = [few.gain - (all_.accuracy - few.accuracy) for few, all_ in both]
    assert len(errors) >= 15
    assert np.mean(np.abs(errors)) <= 0.03
    assert abs(np.mean(errors)) <= 0.01
