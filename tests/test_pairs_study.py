"""`crowdwise reproduce pairs`, cut to what is quick: its parts and files, and the figures that it must reach."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.pairs import Mmc, PairMixture
from crowdwise.reproduce import study
from crowdwise.reproduce.entities import entity_part
from crowdwise.reproduce.ledger import Ledger
from crowdwise.reproduce.study import Asked

STUDY = importlib.import_module("crowdwise.reproduce.pairs")
FACES = importlib.import_module("crowdwise.reproduce.faces")
DIGITS = importlib.import_module("crowdwise.reproduce.digits")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without networks, which take minutes."""
    monkeypatch.setattr(STUDY, "PINWHEEL", {"pair-mixture": (PairMixture(), True)})
    monkeypatch.setattr(STUDY, "_figure2", lambda out, seed: [])


@pytest.mark.usefixtures("quick")
def test_the_pinwheel_is_found_again_and_kept(tmp_path: Path) -> None:
    said: list[str] = []
    found = study("pairs", out=tmp_path, watch=said.append)
    (row,) = found.parts[0].rows.to_dicts()
    assert row["accuracy"] >= 0.97
    assert row["least"] >= 0.97
    assert row["clusters"] == 5.0
    assert len(said) == 5
    again = study("pairs", out=tmp_path, watch=said.append)
    assert again.parts[0].rows.equals(found.parts[0].rows)
    assert said[5:] == [f"5 measurements were there already: {tmp_path / 'measured.json'}"]


@pytest.fixture
def asked(shared_data: Path) -> Asked:
    return Asked(shared_data, None, 0, lambda text: None, True)


def test_faces_are_told_by_pose_and_workers_by_weight(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue: at 2,000 answers a worker NMI is .15 above the best baseline, and weights are in the true order."""
    ours = PairMixture(turn=False, restarts=2)
    monkeypatch.setattr(FACES, "FACES", {"pair-mixture": ours, "mmc": Mmc(clusters=4)})
    faces = FACES.read_faces(asked.data)
    found = {method: FACES._posed(faces, method, 2000, True, 0) for method in FACES.FACES}
    assert found["pair-mixture"]["nmi"] >= found["mmc"]["nmi"] + 0.15
    weights = [found["pair-mixture"][f"weight {w}"] for w in range(1, 6)]
    assert weights == sorted(weights, reverse=True)


def test_entities_are_resolved_better_than_pair_by_pair(asked: Asked) -> None:
    rows = {row["method"]: row["f1"] for row in entity_part(asked, Ledger(None, asked.watch)).rows.to_dicts()}
    ours = rows["pair-mixture, without features"]
    assert ours > rows["Dawid-Skene of each pair"] > rows["majority vote of each pair"]


def test_digits_are_all_that_were_asked_about_and_others(asked: Asked) -> None:
    digits = DIGITS._digits(asked._replace(quick=False))
    assert len(digits.ids) == 10_000
    assert digits.X.shape == (10_000, 28, 28)
    asked_about = np.unique(np.concatenate([digits.pairs.left, digits.pairs.right]))
    assert len(asked_about) == 2759
    assert digits.pairs.weight.sum() < 0.5 * digits.pairs.n_answers
    assert digits.truth.height == 10_000


def test_data_that_are_not_there_are_named(tmp_path: Path) -> None:
    for read in (FACES.read_faces, lambda folder: DIGITS._digits(Asked(folder, None, 0, print, True))):
        with pytest.raises(cw.errors.FileError, match=r"cannot read (cmu_faces|mnist)"):
            read(tmp_path)


def test_sorting_jobs_are_transitive_within_a_job() -> None:
    truth = np.repeat(np.arange(3), 10)
    pairs = cw.simulate.sorting_jobs(truth, np.arange(30), 2, 9, 0.8, 2, np.random.default_rng(0))
    frame = pairs.frame()
    assert isinstance(frame, pl.DataFrame)
    for job in (0, 1):
        same = {(r["left"], r["right"]): r["answer"] for r in frame.filter(pl.col("hit") == job).to_dicts()}
        assert len(same) == 36
        items = sorted({i for pair in same for i in pair})
        told = {(a, b): same.get((a, b), same.get((b, a))) for a in items for b in items if a != b}
        chains = [(a, b, c) for a in items for b in items for c in items if len({a, b, c}) == 3]
        assert all(told[a, c] for a, b, c in chains if told[a, b] and told[b, c])
    with pytest.raises(cw.errors.ParameterError, match="jobs of 40 items"):
        cw.simulate.sorting_jobs(truth, np.arange(30), 2, 40, 0.8, 1, np.random.default_rng(0))
