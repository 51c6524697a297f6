"""`crowdwise reproduce pairs`, its quick parts: tables, files, and the scores that it must reach."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.pairs import PairMixture
from crowdwise.reproduce import study
from crowdwise.reproduce.study import Part, StudyOptions

STUDY, DIGITS = (importlib.import_module(f"crowdwise.reproduce.{name}") for name in ("pairs", "digits"))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the networks, which take minutes."""
    monkeypatch.setattr(STUDY, "QUICK_PINWHEEL", ("pair-mixture",))
    monkeypatch.setattr(STUDY, "_figure2", lambda out, seed, count: [])


@pytest.mark.usefixtures("quick")
def test_the_pinwheel_is_found_again_and_kept(tmp_path: Path) -> None:
    steps: list[str] = []
    found = study("pairs", out=tmp_path, watch=steps.append, quick=True)
    (row,) = found.parts[0].rows.to_dicts()
    assert row["accuracy"] >= 0.97
    assert row["minimum"] >= 0.97
    assert row["clusters"] == 5.0
    assert len(steps) == 1
    again = study("pairs", out=tmp_path, watch=steps.append, quick=True)
    assert again.parts[0].rows.equals(found.parts[0].rows)
    assert steps[1:] == [
        f"1 measurements of earlier runs are in {tmp_path / 'pairs-measured.jsonl'}; those needed again are used"
    ]


@pytest.fixture(scope="module")
def options(shared_data: Path) -> StudyOptions:
    return StudyOptions(shared_data, None, 0, lambda text: None, True)


def test_faces_are_found_by_pose_and_workers_by_weight(options: StudyOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 2,000 answers per worker, NMI is .15 above the best baseline, and weights are in the true order."""
    monkeypatch.setitem(STUDY.FACES, "pair-mixture", PairMixture(turn=False, restarts=1))
    faces = STUDY.read_faces(options.data)
    found = {method: STUDY._measure_faces_once(faces, method, 2000, True, 0) for method in ("pair-mixture", "mmc")}
    assert found["pair-mixture"]["nmi"] >= found["mmc"]["nmi"] + 0.15
    weights = [found["pair-mixture"][f"weight {w}"] for w in range(1, 6)]
    assert weights == sorted(weights, reverse=True)


def test_figure3_has_the_baselines_of_the_paper_in_lines_of_their_own(tmp_path: Path) -> None:
    assert {"mcvc", "semi-crowd", "itml", "mpck-means", "cspa"} <= set(STUDY.FACES)
    rows = [{"method": name, "200": 0.1 * k, "2000": 0.1 * k} for k, name in enumerate(STUDY.FACES)]
    figure = STUDY._draw_lines(tmp_path, "a", "NMI", "answers", "NMI", Part.of("faces", rows)).read_text()
    lines = re.findall(r'<path d="M-8,0H8" ([^>]*)/>', figure)
    assert len(set(lines)) == len(STUDY.FACES)
    assert all(f">{name}</text>" in figure for name in STUDY.FACES)


@pytest.fixture(scope="module")
def entities(options: StudyOptions) -> tuple[dict[str, dict[str, float]], dict[str, cw.PairsResult]]:
    """The table of product_er by method, and the results of the pair models by name."""
    fits: dict[str, cw.PairsResult] = {}

    def recorded(result: cw.PairsResult, truth: Any) -> dict[str, float]:
        fits[result.model.name] = result
        return cw.match_clusters(result, truth)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(STUDY, "match_clusters", recorded)
        rows = STUDY.entity_part(options, options.cache("pairs")).rows.to_dicts()
    return {row["method"]: row for row in rows}, fits


def test_entities_are_resolved_better_than_pair_by_pair(entities: Any) -> None:
    rows, fits = entities
    ours, dawid_skene, vote = (
        rows[name]["f1"]
        for name in ("pair-mixture, without features", "Dawid-Skene of each pair", "majority vote of each pair")
    )
    assert 0.55 < vote < dawid_skene < ours
    assert ours > 0.72
    assert fits["pair-mixture"].asked.height == 8315


def test_every_product_is_in_its_likeliest_cluster(entities: Any) -> None:
    """The probability of a cluster is the mean over the item's pairs with it; the item's own has the highest."""
    result = entities[1]["pair-mixture"]
    second = result.clusters.drop_nulls("second_probability")
    assert second.height > 1500
    assert (second["probability"] >= second["second_probability"]).all()
    assert (second["second_probability"] > 0.3).sum() > 20  # some are in doubt
    place, chance = result.clusters.select("item", "cluster"), result.clusters.select("item", "probability")
    ends = [result.asked.select(item=a, far=b, pair="probability") for a, b in (("left", "right"), ("right", "left"))]
    others = (
        pl.concat(ends).join(place.rename({"item": "far"}), on="far").join(place, on="item", suffix="_own")
        .filter(pl.col("cluster") != pl.col("cluster_own")).group_by("item", "cluster").agg(pl.col("pair").mean())
        .join(chance, on="item")
    )  # fmt: skip
    assert others.height > 5000
    assert (others["pair"] <= others["probability"] + 1e-9).all()


def test_digits_are_all_that_were_asked_about_and_others(options: StudyOptions) -> None:
    digits = DIGITS._read_digits(options._replace(quick=False))
    assert len(digits.ids) == 10_000
    assert digits.X.shape == (10_000, 28, 28)
    asked_about = np.unique(np.concatenate([digits.pairs.left, digits.pairs.right]))
    assert len(asked_about) == 2759
    assert digits.pairs.weight.sum() < 0.5 * digits.pairs.n_answers
    assert digits.truth.height == 10_000


def test_data_that_are_not_there_are_named(tmp_path: Path) -> None:
    for read in (STUDY.read_faces, lambda folder: DIGITS._read_digits(StudyOptions(folder, None, 0, print, True))):
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
        given = {(a, b): same.get((a, b), same.get((b, a))) for a in items for b in items if a != b}
        chains = [(a, b, c) for a in items for b in items for c in items if len({a, b, c}) == 3]
        assert all(given[a, c] for a, b, c in chains if given[a, b] and given[b, c])
    with pytest.raises(cw.errors.ParameterError, match=r"size 40.*size from 2 to 30"):
        cw.simulate.sorting_jobs(truth, np.arange(30), 2, 40, 0.8, 1, np.random.default_rng(0))
