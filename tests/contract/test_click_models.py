"""Objects from clicks: accuracy of the models on simulated and real crowds, and their results."""

from __future__ import annotations

import zipfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from clicking import (
    BASELINES,
    BOX,
    LAYOUTS,
    SQUARE,
    counts,
    finite,
    fitted,
    never_falls,
    piles,
    same_bits,
    simulated,
    spots,
    spotted,
    success,
    tables,
    to_centres,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdwise as cw
from crowdwise.engine.registry import MODELS
from crowdwise.errors import ChecksumError, DataError, Interrupted, ParameterError
from crowdwise.points import merge
from crowdwise.rating import WORKER_COLUMNS

pytestmark = pytest.mark.filterwarnings("error")


# ------------------------------------------------------------------------------------------------------------- the fit


@pytest.mark.parametrize("objects", [1, 10, 30])
def test_with_objects_given_the_papers_likelihood_never_falls(objects: int) -> None:
    sim = cw.simulate.clicks("P1", total=500, seed=objects)
    assert never_falls(cw.aggregate(sim.points, method="paper", objects=objects))


def test_with_several_images_the_papers_likelihood_never_falls() -> None:
    result = cw.aggregate(spotted().points, method="paper", objects=8)
    assert never_falls(result, least=3)
    assert result.criterion == "log-likelihood"


@pytest.mark.parametrize(("noise", "objects"), [(True, None), (False, 7)])
@pytest.mark.parametrize("once", [True, False])
def test_the_evidence_never_falls_while_objects_stay(once: bool, noise: bool, objects: Any) -> None:
    several = spotted().points
    alone = several.only(np.array([1]))
    if not once:
        frames = [cw.simulate.clicks(layout, total=300, seed=2).points.frame() for layout in ("E", "P1")]
        alone = cw.Points(frames[0], box=BOX)
        several = cw.Points(pl.concat([frames[0], frames[1].with_columns(image=pl.lit("other"))]), box=BOX)
    for points in (alone, several):
        result = cw.aggregate(points, once=once, noise=noise, objects=objects)
        assert result.criterion == "evidence"
        assert never_falls(result, least=2)


def test_a_fit_can_be_watched_and_stopped() -> None:
    points, seen = spotted().points, []
    result = cw.aggregate(points, run=cw.Run(watch=seen.append))
    iterations = [step for step in seen if step.stage == "iteration"]
    assert [step.objective for step in iterations] == result.trace["objective"].to_list()
    assert [step.counts["objects"] for step in iterations] == result.trace["objects"].to_list()
    images = [step for step in seen if step.stage == "image"]  # each one that was not fitted at the start, in turn
    assert all(step.objective is None and 1 <= step.iteration <= step.max_iter == points.n_images for step in images)
    assert [step.iteration for step in images] == sorted(step.iteration for step in images)
    for method in ("merge", "paper"):
        with pytest.raises(Interrupted, match="click-mixture was interrupted after"):
            cw.aggregate(points, method=method, run=cw.Run(stop=lambda: True))


def test_threads_change_no_bit_of_several_images() -> None:
    result = cw.aggregate(spotted().points, run=cw.Run(threads=1))
    assert same_bits(cw.aggregate(spotted().points, run=cw.Run(threads=3)), result)


def test_blocks_change_nothing_but_the_last_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fitted()
    monkeypatch.setattr("crowdwise.points.e_step.BLOCK_CLICKS", 16)
    parts = cw.aggregate(spotted().points)
    assert counts(whole) == counts(parts)
    assert np.allclose(whole.params.mean, parts.params.mean, atol=1e-6)


# -------------------------------------------------------------------------------------------------------- what is found


@pytest.mark.parametrize("layout", LAYOUTS)
def test_merging_finds_ten_of_ten(layout: str) -> None:
    for seed in range(2):
        sim, result = simulated(layout, seed)
        assert result.converged
        assert success(result, sim)
        assert not result.params.once
        assert np.abs(result.workers["skill"] - sim.workers["reliability"]).mean() <= 0.16
        squared = (to_centres(result.params.mean, sim).min(1) ** 2).mean()
        assert squared < 0.012
        assert (result.params.probability > 0.5).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_papers_method_finds_ten_of_ten(layout: str) -> None:
    sim = cw.simulate.clicks(layout, seed=1)
    result = cw.aggregate(sim.points, method="paper", spread=(0.15, 0.25))
    assert success(result, sim)
    assert np.abs(result.workers["skill"] - sim.workers["reliability"]).mean() <= 0.2
    assert result.best is not None
    best = result.trace.row(result.best - 1, named=True)
    assert best["iteration"] == result.best
    assert best["objective"] == result.trace["objective"].max()  # the best of all iterations
    assert best["objects"] == len(result.params.mean)


@pytest.mark.parametrize(("workers", "each"), [(10, 6), (10, 20), (20, 20)])
def test_clicks_that_agree_on_nothing_have_no_objects(workers: int, each: int) -> None:
    """Workers are believed to click on objects, which alone would make some: one wide one, or what met by chance."""
    for seed in range(3):
        X = np.random.default_rng(seed).uniform(0, 500, (workers * each, 2))
        frame = {"image": ["a"] * len(X), "worker": np.repeat(np.arange(workers), each), "x": X[:, 0], "y": X[:, 1]}
        result = cw.aggregate(cw.Points(frame, box=(0, 0, 500, 500)))
        assert result.objects.height == 0
        assert result.params.outlier.min() == 1.0


def test_objects_clicked_by_few_of_their_viewers_are_doubtful() -> None:
    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid([60, 180, 300, 420], [60, 180, 300, 420]), axis=-1).reshape(-1, 2)
    rows = [(w, *(place + rng.normal(0, 3, 2))) for w in range(20) for place in grid[:-1] if rng.random() < 0.9]
    rows += [(w, *(grid[-1] + rng.normal(0, 3, 2))) for w in range(4)]  # four of twenty, and they agree
    frame = pl.DataFrame(rows, schema=["worker", "x", "y"], orient="row").with_columns(image=pl.lit("a"))
    objects = cw.aggregate(cw.Points(frame, box=(0, 0, 480, 480))).objects
    assert objects.height == 16
    doubted = objects.filter(pl.col("supporters") == 4)["probability"].item()
    assert doubted < 0.9
    assert objects.filter(pl.col("supporters") > 10)["probability"].min() > 0.99


def test_spots_are_found_in_every_image() -> None:
    result = fitted()
    assert result.params.once  # estimated
    match = cw.match_objects(result, spotted().truth, within=3)
    assert match["f1"].min() >= 0.93
    assert (result.clicks["outlier"] > 0.5).mean() == pytest.approx(0.22, abs=0.08)
    noise = np.random.default_rng(0).uniform(0.5, 1.5, 10)  # as `spots` draws it
    assert np.corrcoef(result.workers["spread"], noise)[0, 1] > 0.8


def test_a_large_image_is_searched_by_a_part_of_its_clicks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdwise.points.starts.MAX_SAMPLE_CLICKS", 500)
    sim, whole = simulated("E", 1)
    by_part = cw.aggregate(sim.points)
    assert success(by_part, sim)
    assert np.allclose(by_part.params.mean, whole.params.mean, atol=0.02)
    assert not same_bits(by_part, whole)
    assert by_part.clicks.height == 850


@pytest.mark.parametrize("method", ["merge", "paper"])
@pytest.mark.parametrize("objects", [1, 3, 13])
def test_objects_are_as_many_as_asked_for(method: Any, objects: int) -> None:
    result = cw.aggregate(spotted().points, method=method, objects=objects)
    assert counts(result) == [objects] * 3
    assert finite(result)


@pytest.mark.parametrize("method", ["merge", "paper"])
def test_at_least_so_many_objects_are_found(method: Any) -> None:
    few, many = (cw.simulate.clicks("E", total=size, workers=10, seed=6).points for size in (10, 120))
    plain, least_1, least_14 = (counts(cw.aggregate(many, method=method, at_least=n))[0] for n in (0, 1, 14))
    assert least_1 >= 1
    assert least_14 >= 14 > plain
    assert counts(cw.aggregate(few, method=method, at_least=10)) == [10]  # every click is an object


def test_once_is_estimated_from_the_clicks() -> None:
    few = cw.simulate.clicks("E", workers=60, seed=1)  # 14 clicks of each
    assert not cw.aggregate(few.points).params.once
    for seed in range(3):
        assert cw.aggregate(spots(2, seed=seed).points).params.once


@pytest.mark.parametrize("seed", [16, 19, 25])
def test_few_clicks_of_workers_who_click_twice_are_separated(seed: int) -> None:
    """Sixty clicks on three places, several per worker and place; with a wrong `once` they would be one wide object."""
    x = np.repeat([1, 5, 9], 20) + np.random.default_rng(seed).normal(size=60) * 0.1
    result = cw.aggregate(cw.Points({"image": ["a"] * 60, "worker": list("uvwxyz") * 10, "x": x}, axes=["x"]))
    assert np.allclose(result.params.mean[:, 0], [1, 5, 9], atol=0.1)


def test_intervals_cover_the_reliability() -> None:
    inside = []
    for layout, seed in product(LAYOUTS, range(2)):
        sim, result = simulated(layout, seed)
        table, true = result.workers, sim.workers["reliability"]
        assert ((table["low"] <= table["skill"]) & (table["skill"] <= table["high"])).all()
        assert table["low"].min() >= 0
        assert table["high"].max() <= 1
        assert (table["high"] - table["low"]).mean() < 0.5
        assert np.corrcoef(table["skill"], true)[0, 1] > 0.6
        inside.append(((table["low"] <= true) & (true <= table["high"])).mean())
    assert np.mean(inside) >= 0.9


def test_workers_start_with_the_columns_of_every_kind() -> None:
    result = fitted()
    assert result.workers.columns[: len(WORKER_COLUMNS)] == list(WORKER_COLUMNS)
    assert result.workers.columns[len(WORKER_COLUMNS) :] == ["images", "hit_rate", "hit_low", "hit_high", "spread"]
    assert result.workers["answers"].to_list() == np.bincount(result.answers.worker).tolist()
    assert np.array_equal(result.workers["skill"], result.params.reliability)
    both = 2 / (1 / pl.col("low") + 1 / pl.col("hit_low"))  # harmonic mean of reliability and hit rate
    assert result.workers.sort(both, descending=True)["rank"].to_list() == list(range(1, 11))
    assert set(result.workers["flags"]) == set(result.workers["reasons"]) == {""}  # no worker is mostly off


def test_few_sure_clicks_do_not_make_the_best_worker() -> None:
    """A worker who clicks one object per image, always rightly, is more reliable than all others and ranks last."""
    frame = spotted().points.frame()
    lazy = fitted().objects.group_by("image", maintain_order=True).first().select("image", "x", "y")
    table = pl.concat([frame, lazy.with_columns(worker=pl.lit("lazy")).select(frame.columns)])
    workers = cw.aggregate(cw.Points(table, box=SQUARE)).workers
    assert workers.filter(worker="lazy")["hit_rate"].item() < 0.25
    assert workers.filter(worker="lazy")["rank"].item() == workers.height


@pytest.mark.parametrize("objects", [1, 2, 3, 5])
def test_the_papers_method_finds_few_objects(objects: int) -> None:
    rng = np.random.default_rng(objects)
    places = np.array([(20, 20), (80, 20), (20, 80), (80, 80), (50, 50)])[:objects]
    X = places[np.arange(40 * objects) % objects] + 3 * rng.normal(size=(40 * objects, 2))
    X[::10] = rng.uniform(0, 100, (len(X[::10]), 2))
    frame = {"image": ["a"] * len(X), "worker": np.arange(len(X)) % 9, "x": X[:, 0], "y": X[:, 1]}
    result = cw.aggregate(cw.Points(frame, box=SQUARE, duplicates="each"), method="paper")
    assert (counts(result), result.converged) == ([objects], True)


def test_a_worker_whose_clicks_are_mostly_off_objects_is_flagged() -> None:
    frame, rng = spotted().points.frame(), np.random.default_rng(3)
    stray = {"image": np.repeat(["i0", "i1", "i2"], 12), "worker": ["lost"] * 36}
    stray |= {axis: rng.uniform(0, 100, 36) for axis in "xy"}
    result = cw.aggregate(cw.Points(pl.concat([frame, pl.DataFrame(stray)]), box=SQUARE))
    flagged = result.workers.filter(pl.col("flags") != "")
    assert flagged.select("worker", "answers", "flags").rows() == [("lost", 36, "mostly off objects")]
    worker = flagged.row(0, named=True)
    assert worker["high"] < 0.5
    assert worker["rank"] == 11
    assert worker["reasons"] == (
        f"only {100 * worker['skill']:.0f} % of the clicks are on objects (95 % interval {100 * worker['low']:.0f} to "
        f"{100 * worker['high']:.0f} %)"
    )
    assert result.workers.filter(pl.col("flags") == "")["reasons"].unique().to_list() == [""]


@pytest.mark.parametrize("kind", ["once", "as often as they like"])
def test_soft_assignments_are_those_of_the_clicks(kind: str) -> None:
    result = fitted() if kind == "once" else simulated("P1", 1)[1]
    assert bool(result.params.once) == (kind == "once")
    for image in result.answers.images:
        table, clicks = cw.soft_assignments(result, image, least=1e-9), result.clicks.with_row_index("click")
        assert table.columns == ["click", "worker", "object", "probability"]
        both = table.join(clicks, on="click", suffix="_best").filter(pl.col("image") == image)
        assert both.height == table.height
        assert (both["worker"] == both["worker_best"]).all()
        total = both.group_by("click").agg(pl.col("probability").sum(), pl.col("outlier").first())
        assert np.allclose(total["probability"] + total["outlier"], 1, atol=1e-5)
        likely = both.filter(pl.col("object") == pl.col("object_best"))
        assert likely.height == clicks.filter(pl.col("image") == image)["object"].count() > 50
        assert np.allclose(likely["probability"], likely["probability_best"], atol=1e-5)
        assert table.filter(pl.col("probability") >= 0.3).equals(cw.soft_assignments(result, image, least=0.3))
        expected = table.group_by("object").agg(pl.col("probability").sum()).sort("object")["probability"]
        assert np.allclose(expected, result.of(image)["clicks"], atol=1e-3)
    with pytest.raises(cw.errors.UnknownIdError, match="no image 'nowhere' in these clicks"):
        cw.soft_assignments(result, "nowhere")


def test_hard_assignments_are_not_given_as_soft_ones() -> None:
    with pytest.raises(ParameterError, match="dbscan makes hard assignments only"):
        cw.soft_assignments(fitted("dbscan"), "i0")


@pytest.mark.parametrize("name", ["click-mixture", *BASELINES])
def test_what_is_reported_keeps_its_bounds(name: str) -> None:
    result = fitted(name)
    o, w, c = result.objects, result.workers, result.clicks
    assert o["probability"].is_between(0, 1).all()
    assert c["outlier"].is_between(0, 1).all()
    assert c["probability"].drop_nulls().is_between(0, 1 + 1e-9).all()
    assert (c["object"].is_null() == (c["outlier"] >= 0.5)).all()
    assert (o["supporters"] <= o["jobs"]).all()
    assert np.allclose(o.group_by("image").agg(pl.col("share").sum())["share"], 1)
    assert w["hit_rate"].is_between(0, 1).all()
    assert ((w["hit_low"] <= w["hit_rate"]) & (w["hit_rate"] <= w["hit_high"])).all()
    assert np.linalg.eigvalsh(result.params.cov).min() >= 0
    assert c.height == spotted().points.n_clicks == w["answers"].sum()
    for image in ("i0", "i1"):
        assert result.of(image)["object"].to_list() == list(range(1, result.of(image).height + 1))


# ------------------------------------------------------------------------------------------------------------ real data


def real(folder: Path, name: str, images: Any = None) -> tuple[cw.Points, pl.DataFrame]:
    frames = [pl.read_parquet(folder / name / f"{part}.parquet") for part in ("points", "jobs", "points_truth")]
    if images is not None:
        frames = [frame.filter(pl.col("image").is_in(images)) for frame in frames]
    return cw.Points(frames[0], jobs=frames[1]), frames[2]


def mean_f1(result: cw.PointsResult, truth: pl.DataFrame) -> float:
    match = cw.match_objects(result, truth, within=4)
    assert match["image"].sort().to_list() == result.answers.images.to_list()
    return float(match["f1"].mean())  # type: ignore[arg-type]


def test_beads_are_found(shared_data: Path) -> None:
    points, truth = real(shared_data, "beads", [f"beads_{side}pxroi" for side in (100, 150, 200, 250)])
    result = cw.aggregate(points)
    assert (points.n_images, points.box_from) == (4, "jobs")
    assert mean_f1(result, truth) > 0.955
    assert result.params.once
    assert np.diff(points.job_ptr).min() == 0  # a job without clicks


def test_spots_of_real_workers_are_found(shared_data: Path) -> None:
    name = "MAX_{}ISP_300_1_nspots50_spot_sig1.75_snr10_2.5spot_img"
    points, truth = real(shared_data, "fish_spots", [name.format("C3-"), name.format("")])
    assert points.n_images == 2
    assert mean_f1(cw.aggregate(points), truth) > 0.87


@pytest.mark.parametrize("half", [0, 1])
def test_half_of_the_jobs_find_objects_in_crowded_images(shared_data: Path, half: int) -> None:
    folder = shared_data / "smfish_cells"
    frame, jobs = (pl.read_parquet(folder / f"{name}.parquet") for name in ("points", "jobs"))
    jobs = jobs.select("image", "worker").unique().sort("image", "worker")
    jobs = jobs.filter(pl.Series((np.random.default_rng(0).random(jobs.height) < 0.5) == bool(half)))
    clicks = frame.join(jobs, on=["image", "worker"], how="semi").select("image", "worker", "x", "y")
    objects = cw.aggregate(cw.Points(clicks, jobs=jobs, unit="pixels")).images["objects"]
    assert objects.min() > 50


def test_doubtful_images_lose_their_weakest_objects_first(monkeypatch: pytest.MonkeyPatch) -> None:
    points = spotted().points
    found = cw.aggregate(points)
    doubts = iter([np.array([1.0, -1.0, 1.0]), *[np.ones(3)] * 9])
    monkeypatch.setattr(merge.VariationalFit, "evidence_for_any", lambda _: next(doubts))
    fewer = cw.aggregate(points)
    before, after = (each.images["objects"].to_list() for each in (found, fewer))
    assert after == [before[0], before[1] // 2, before[2]]
    strongest = found.objects.filter(pl.col("image") == "i1").sort("probability").tail(1)
    assert cw.match_objects(fewer.objects.select("image", "x", "y"), strongest, within=3)["matched"].sum() == 1


def test_own_noise_helps_where_workers_differ(shared_data: Path) -> None:
    points, truth = real(shared_data, "smfish_cells", ["C2-ISP_293T_TFRC_InSituPrep_20180712_1_MMStack_Pos0_500"])
    # a start is given to save time; estimated it is twice as many, which is better still
    with_it, without = (mean_f1(cw.aggregate(points, noise=noise, start=160), truth) for noise in (True, False))
    assert with_it > 0.52
    assert with_it > without + 0.02


# ------------------------------------------------------------------------------------------------------------ baselines


def hard() -> cw.Points:
    """An image with scattered clicks, one with one click, one with none."""
    clicks = {"image": ["a"] * 4 + ["b"], "worker": list("uvwxu"), "x": [1, 30, 60, 90, 5], "y": [1, 90, 30, 60, 5]}
    return cw.Points(clicks, jobs={"image": ["c"], "worker": ["u"]}, box=SQUARE)


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_report_what_the_mixture_reports(name: str) -> None:
    ours, theirs = fitted(), fitted(name)
    for table in tables(ours):
        assert tables(theirs)[table].schema == tables(ours)[table].schema
    assert theirs.trace.is_empty()
    assert theirs.converged
    assert finite(theirs)
    assert np.allclose(theirs.objects["clicks"].sum(), theirs.clicks["object"].count())
    for (image, number), part in theirs.clicks.drop_nulls("object").group_by("image", "object"):
        row = theirs.of(image).row(int(number) - 1, named=True)
        if name != "fuzzy-c-means":
            assert np.allclose((row["x"], row["y"]), part.select(pl.col("x", "y").mean()).row(0))
            assert row["var_x"] == pytest.approx(part["x"].var(ddof=0))
        assert row["supporters"] == part.filter(pl.col("probability") >= 0.5)["worker"].n_unique()
        assert row["probability"] == pytest.approx(row["supporters"] / row["jobs"])


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_take_hard_images(name: str) -> None:
    result = cw.aggregate(hard(), name, **BASELINES[name])
    assert finite(result)
    assert result.images["image"].to_list() == ["a", "b", "c"]
    assert counts(result)[2] == 0
    assert all(table.schema == tables(fitted())[key].schema for key, table in tables(result).items())
    if name in ("dbscan", "hdbscan"):  # all are outliers
        assert counts(result) == [0, 0, 0]
        assert result.clicks["object"].null_count() == 5
        assert result.clicks["outlier"].to_list() == [1.0] * 5
        assert result.workers["skill"].to_list() == [0.0] * 4
        assert result.workers["hit_rate"].null_count() == 4
    else:
        assert counts(result) == [4, 1, 0]
        assert result.clicks["outlier"].to_list() == [0.0] * 5


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_find_separated_clusters(name: str) -> None:
    result = cw.aggregate(piles([9, 9, 9, 9], deviation=0.5), name, **BASELINES[name])
    true = pl.DataFrame({"image": ["a"] * 4, "x": [10.0] * 4, "y": [10.0, 35, 60, 85]})
    assert cw.match_objects(result, true, within=1)["f1"].to_list() == [1.0]


def test_fuzzy_centres_are_means_weighted_by_membership() -> None:
    points = cw.simulate.clicks("E", seed=1).points
    mean = cw.aggregate(points, "fuzzy-c-means", objects=10, max_iter=1000, tol=1e-13).params.mean
    near = ((points.X[None] - mean[:, None]) ** 2).sum(2) ** -1.0
    weight = (near / near.sum(0)) ** 2
    assert np.allclose(weight @ points.X / weight.sum(1)[:, None], mean, atol=1e-4)


def test_fuzzy_clusters_have_converged_only_if_the_cost_has() -> None:
    points = cw.simulate.clicks("E", seed=2).points
    short, whole = (cw.aggregate(points, "fuzzy-c-means", max_iter=limit) for limit in (2, 500))
    assert (short.converged, whole.converged) == (False, True)
    assert short.warnings[0] == "not converged after 2 iterations (the maximum). Allow more: max_iter=4"


@pytest.mark.parametrize("fuzziness", [1.01, 1.5, 2.0, 8.0])
def test_fuzzy_clusters_of_any_fuzziness_are_numbers(fuzziness: float) -> None:
    frame = {"image": ["a"] * 40, "worker": list("uvwx") * 10, "x": np.repeat([10, 500], 20) + np.arange(40) * 0.1,
             "y": np.repeat([10, 500], 20)}  # fmt: skip
    result = cw.aggregate(cw.Points(frame), "fuzzy-c-means", objects=2, fuzziness=fuzziness)
    assert finite(result)
    assert counts(result) == [2]
    assert np.allclose(np.sort(result.objects["clicks"]), [20, 20])


# -------------------------------------------------------------------------------------------------------- save and load


@pytest.mark.parametrize("chosen", [{}, {"method": "paper", "spread": (9.0, 9.0), "objects": 5}], ids=str)
def test_a_saved_result_can_be_fitted_again(chosen: dict[str, Any], tmp_path: Path) -> None:
    """With extra columns, and with a worker without clicks."""
    points = cw.Points(
        spotted().points.only(np.array([0, 1])).frame().with_columns(note=pl.lit("é"), day=pl.date(2020, 1, 1)),
        jobs={"image": ["blank"], "worker": ["idle"]}, box=SQUARE,
    )  # fmt: skip
    result = cw.aggregate(points, run=cw.Run(seed=7), **chosen)
    again = cw.load(result.save(tmp_path / "kept"))
    assert isinstance(again, cw.PointsResult)
    assert all(table.equals(tables(again)[key]) for key, table in tables(result).items())
    assert repr(again) == repr(result)
    assert again.best == result.best
    assert same_bits(again.model.fit(again.answers, run=cw.Run(seed=7)), result)


def test_a_changed_byte_of_any_part_is_noticed(tmp_path: Path) -> None:
    path = fitted("dbscan").save(tmp_path / "result.crowdwise")
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as file:
        parts = [file.read(name) for name in file.namelist()]
    assert len(parts) >= 4
    for at in (whole.index(part) + len(part) // 2 for part in parts):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        with pytest.raises(ChecksumError):
            cw.load(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ChecksumError):
        cw.load(path)
    path.write_bytes(whole)
    assert isinstance(cw.load(path), cw.PointsResult)


# --------------------------------------------------------------------------------------------------- names and settings


def test_aggregate_takes_the_kind_from_the_answers() -> None:
    points = hard()
    assert isinstance(fitted(), cw.PointsResult)
    assert fitted().model == cw.ClickMixture()
    assert cw.aggregate(points, "k-means", objects=2).model == cw.KMeansClicks(objects=2)
    labels = {"task": [1, 1], "worker": ["a", "b"], "label": ["x", "y"]}
    assert isinstance(cw.aggregate(labels), cw.LabelsResult)
    with pytest.raises(DataError, match="no column 'x' in table; columns are task, worker, label"):
        cw.aggregate(labels, "click-mixture")  # a frame is read as what the model takes
    with pytest.raises(ParameterError, match=r"'dawid-skene' is a model of labels, not of points\. Models of p"):
        cw.aggregate(points, "dawid-skene")
    for answers in (labels, points):
        with pytest.raises(ParameterError, match=r"click-mixture has no setting 'objcts'.*Did you mean 'objects'"):
            cw.aggregate(answers, "click-mixture", objcts=3)
    assert set(MODELS["points"]) == {"click-mixture", *BASELINES}
    assert not set(MODELS["points"]) & set(MODELS["labels"])


WRONG = [
    ("click-mixture", {"objects": 0}), ("click-mixture", {"objects": 2.5}), ("click-mixture", {"objects": True}),
    ("click-mixture", {"at_least": -1}), ("click-mixture", {"start": 0}), ("click-mixture", {"start": 3, "objects": 5}),
    ("click-mixture", {"start": 3, "at_least": 5}), ("click-mixture", {"objects": 2, "at_least": 5}),
    ("click-mixture", {"method": "em"}), ("click-mixture", {"criterion": "aic"}), ("click-mixture", {"once": "yes"}),
    ("click-mixture", {"noise": None}), ("click-mixture", {"freedom": 0}), ("click-mixture", {"freedom": float("nan")}),
    ("click-mixture", {"hits": 1}), ("click-mixture", {"misses": 0.5}), ("click-mixture", {"max_iter": 0}),
    ("click-mixture", {"spread": (1.0, -1.0)}), ("click-mixture", {"spread": (1.0, 0.0)}),
    ("click-mixture", {"spread": "wide"}), ("click-mixture", {"spread": 3.0}),
    ("fuzzy-c-means", {"fuzziness": 1.0}), ("fuzzy-c-means", {"objects": 0}), ("fuzzy-c-means", {"tol": 0.0}),
    ("k-means", {"objects": 0}), ("dbscan", {"distance": 0.0}), ("dbscan", {"at_least": 0}),
    ("hdbscan", {"at_least": 1}), ("hdbscan", {"samples": 0}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "chosen"), WRONG, ids=str)
def test_wrong_settings_are_refused_before_any_work(name: str, chosen: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=f"{name}: .*{next(iter(chosen))}"):
        cw.model(name, **chosen)


@pytest.mark.parametrize("freedom", [0.5, 1.0])
def test_a_shape_that_counts_for_too_few_clicks_is_refused(freedom: float) -> None:
    """A Wishart distribution has more degrees of freedom than coordinates less one."""
    with pytest.raises(ParameterError, match="freedom"):
        cw.aggregate(hard(), freedom=freedom)
    assert finite(cw.aggregate(hard(), freedom=1.1))


def test_a_start_of_other_coordinates_is_refused() -> None:
    with pytest.raises(ParameterError, match="spread has 1 variances, but the clicks have 2 coordinates"):
        cw.aggregate(hard(), method="paper", spread=(1.0,))


# ----------------------------------------------------------------------------------------------------- simulated clicks


def test_simulated_clicks_are_as_described() -> None:
    sim = cw.simulate.clicks("P2", total=20_000, workers=40, seed=3)
    p = sim.points
    assert (p.n_clicks, p.n_workers, p.box.tolist()) == (20_000, 40, [[[1, 0], [4, 5]]])
    on = sim.on.is_not_null().to_numpy()
    right = np.bincount(p.worker[on], minlength=40) / np.bincount(p.worker)
    assert np.abs(right - sim.workers["reliability"]).max() < 0.08
    assert sorted(set(sim.workers["reliability"])) == [0.25, 0.75, 0.95]
    number = sim.on.to_numpy()[on].astype(int) - 1
    assert np.allclose(np.bincount(number) / on.sum(), 0.1, atol=0.01)
    away = (p.X[on] - sim.centres[number])[number == 2]  # far from the edge of the box
    assert np.allclose(away.std(0), np.sqrt([0.04, 0.05]), atol=0.01)
    assert np.allclose(away.mean(0), 0, atol=0.02)
    paper_like = cw.simulate.clicks("P2", seed=0).points
    assert paper_like.n_clicks == 850
    assert np.isin(np.bincount(paper_like.worker), range(36, 49)).all()
    assert cw.simulate.clicks("P2", seed=0).points.frame().equals(paper_like.frame())
    assert not cw.simulate.clicks("P2", seed=1).points.frame().equals(paper_like.frame())


@pytest.mark.parametrize("chosen", [
    {"layout": "Q"}, {"layout": [(1, 2, 3)]}, {"layout": []}, {"layout": [(100.0, 100.0)]},
    {"layout": [(float("nan"), 1.0)]}, {"layout": [(2.0, 2.0)] * 11}, {"workers": 0}, {"workers": 30, "total": 20},
], ids=str)  # fmt: skip
def test_invalid_simulations_are_refused(chosen: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        cw.simulate.clicks(**chosen)


# ------------------------------------------------------------------------------------------------------------ any table


@st.composite
def clicked(draw: Any) -> tuple[cw.Points, dict[str, Any]]:
    """1 to 30 clicks of up to 6 workers on up to 3 images, on a coarse grid, a line or anywhere; and settings."""
    size = draw(st.integers(1, 30))
    step = draw(st.sampled_from([1, 10, 50, 100]))
    coarse = st.integers(0, 100 // step).map(lambda k: float(k * step))
    place = draw(st.sampled_from([coarse, st.floats(0, 100), st.just(50.0)]))
    column = lambda values: draw(st.lists(values, min_size=size, max_size=size))  # noqa: E731
    images, workers = draw(st.integers(0, 2)), draw(st.integers(0, 5))
    frame = {
        "image": column(st.integers(0, images)), "worker": column(st.integers(0, workers)),
        "x": column(coarse if draw(st.booleans()) else st.floats(0, 100)), "y": column(place),
    }  # fmt: skip
    jobs = {"image": [draw(st.integers(0, 3))], "worker": [draw(st.integers(0, 6))]} if draw(st.booleans()) else None
    box = draw(st.sampled_from([SQUARE, None]))
    rule = draw(st.sampled_from(["first", "each"]))
    chosen = draw(st.sampled_from([{}, {}, {"once": False}, {"once": True}, {"method": "paper"}, {"at_least": 2}]))
    return cw.Points(frame, jobs=jobs, box=box, duplicates=rule, unit="pixels"), chosen


@given(clicked())
@settings(max_examples=30)
def test_any_clicks_give_finite_answers(given_: tuple[cw.Points, dict[str, Any]]) -> None:
    points, chosen = given_
    result = cw.ClickMixture(**chosen).fit(points)
    assert finite(result)
    assert result.objects["probability"].is_between(0, 1).all()
    assert np.allclose(result.objects.group_by("image").agg(pl.col("share").sum())["share"], 1)
    assert result.clicks.select("image", "worker", "x", "y").equals(points.frame().select("image", "worker", "x", "y"))
    assert result.clicks["outlier"].is_between(0, 1).all()
    assert result.images["image"].equals(points.images.alias("image"))
    assert result.workers.height == points.n_workers
    assert ((result.workers["low"] <= result.workers["skill"]) & result.workers["high"].is_between(0, 1)).all()
    low, high = points.box[result.image_of, 0], points.box[result.image_of, 1]
    assert ((result.params.mean >= low - 1e-6) & (result.params.mean <= high + 1e-6)).all()


def test_objects_that_need_no_more_workers_are_reviewed_by_their_probability() -> None:
    table = cw.review(fitted())
    rest = table.filter(pl.col("gain") == 0)["probability"]
    assert rest.len() > 5
    assert rest.is_sorted()
    assert not ((table["gain"] > 0) & (table["gain"] < 1e-12)).any()
