"""Streams of clicks agree with batch fits, cost as much as the images they touch, and decide who is to be asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from clicking import BOX, ONE, SQUARE, same_bits, spots

import crowdwise as cw
from crowdwise.engine.stream import _percentages
from crowdwise.errors import ChecksumError, DataError, EmptyDataError, Interrupted, ParameterError, UnknownIdError
from crowdwise.points import em, merge
from crowdwise.points.image_fit import ImageFitter

pytestmark = pytest.mark.filterwarnings("error")


def batches(points: cw.Points, count: int, seed: int = 0) -> Iterator[cw.Points]:
    """The jobs in random batches."""
    order = np.random.default_rng(seed).permutation(points.n_jobs)
    for some in np.array_split(order, count):
        yield points.replaced(**points._select_jobs(np.sort(some)))


def fed(points: cw.Points, count: int, seed: int = 0) -> cw.ClickStream:
    stream = cw.ClickStream()
    for batch in batches(points, count, seed):
        stream.update(batch, run=ONE)
    return stream


def job(image: str, worker: str, clicks: Any = (), box: Any = SQUARE) -> cw.Points:
    """One job, with or without clicks."""
    X = np.asarray(clicks, float).reshape(-1, 2)
    frame = {"image": [image] * len(X), "worker": [worker] * len(X), "x": X[:, 0], "y": X[:, 1]}
    return cw.Points(frame, jobs={"image": [image], "worker": [worker]}, box=box)


def agreement(one: Any, two: cw.PointsResult, within: float) -> float:
    """F1 of matched objects, over all images."""
    matched = cw.match_objects(one, two.objects.select("image", "x", "y"), within=within)
    return float(2 * matched["matched"].sum() / (matched["found"].sum() + matched["true"].sum()))


def skill_gap(one: Any, two: Any) -> float:
    both = one.workers.select("worker", "skill").join(two.workers.select("worker", other="skill"), on="worker")
    assert both.height == one.workers.height == two.workers.height
    return float((both["skill"] - both["other"]).abs().mean())


def real(folder: Path, name: str, images: int) -> cw.Points:
    tables = [pl.read_parquet(folder / name / f"{table}.parquet") for table in ("points", "jobs")]
    some = tables[1]["image"].unique().sort().head(images).to_list()
    clicks, jobs = (table.filter(pl.col("image").is_in(some)) for table in tables)
    return cw.Points(clicks, jobs=jobs)


@pytest.fixture(scope="module")
def crowd() -> cw.Points:
    """Six images that ten workers looked at."""
    return spots(6, seed=4).points


@pytest.fixture(scope="module")
def batch_fit(crowd: cw.Points) -> cw.PointsResult:
    return cw.ClickMixture().fit(crowd, run=ONE)


@pytest.mark.parametrize(("count", "seed"), [(1, 0), (4, 1), (15, 2), (60, 3)])
def test_a_stream_agrees_with_a_batch_fit(crowd: cw.Points, batch_fit: cw.PointsResult, count: int, seed: int) -> None:
    stream = fed(crowd, count, seed)
    result = stream.result(run=ONE)
    for objects in (result, stream.objects):
        assert agreement(objects, batch_fit, 1.0) >= 0.99
    assert skill_gap(result, batch_fit) < 0.001
    assert skill_gap(stream, batch_fit) < 0.01
    assert np.array_equal(stream.points.X[np.lexsort(stream.points.X.T)], crowd.X[np.lexsort(crowd.X.T)])


@pytest.mark.parametrize(("name", "images", "count"), [("beads", 5, 2), ("fish_spots", 3, 2)])
def test_a_stream_agrees_with_a_batch_fit_of_real_clicks(shared_data: Path, name: str, images: int, count: int) -> None:
    points = real(shared_data, name, images)
    result, batch = fed(points, count).result(run=ONE), cw.ClickMixture().fit(points, run=ONE)
    assert agreement(result, batch, 4.0) >= 0.99
    assert skill_gap(result, batch) < 0.01


@pytest.mark.parametrize("layout", ["E", "P2"])
def test_a_stream_of_few_images_gives_the_bits_of_a_batch_fit(layout: str) -> None:
    points = cw.simulate.clicks(layout, seed=1).points
    stream = fed(points, 4)
    assert same_bits(stream.result(run=ONE), cw.ClickMixture().fit(stream.points, run=ONE))
    assert agreement(stream.objects, cw.ClickMixture().fit(points, run=ONE), 0.1) == 1


def test_what_was_found_in_an_image_does_not_depend_on_the_order_of_jobs(crowd: cw.Points) -> None:
    one, two = fed(crowd, 5, 1).result(run=ONE), fed(crowd, 8, 2).result(run=ONE)
    assert agreement(one, two, 0.1) == 1
    assert skill_gap(one, two) < 1e-3
    assert one.answers.workers.equals(two.answers.workers)
    assert np.array_equal(one.answers.X, two.answers.X)


def test_the_same_clicks_again_change_nothing(crowd: cw.Points, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = fed(crowd, 3)
    before = stream.objects, stream.workers, repr(stream)
    monkeypatch.setattr(cw.ClickStream, "_fit", None)  # nothing is fitted
    stream.update(crowd)
    for part in batches(crowd, 7, 5):
        stream.update(part)
    assert stream.objects.equals(before[0])
    assert stream.workers.equals(before[1])
    assert (
        repr(stream) == before[2] == f"ClickStream({crowd.n_clicks} clicks, 6 images, 48 objects, 10 workers, 60 jobs)"
    )


def test_an_update_works_only_on_the_images_it_touches(monkeypatch: pytest.MonkeyPatch) -> None:
    points = spots(40, objects=4, workers=6, seed=1).points
    work = {"search": 0, "fit": 0}
    level, e_step = ImageFitter.level, merge.e_step

    def counted_level(self: ImageFitter, max_iter: int) -> Any:
        work["search"] += len(self.X)
        return level(self, max_iter)

    def counted_e_step(points: cw.Points, *rest: Any) -> Any:
        work["fit"] += points.n_clicks
        return e_step(points, *rest)

    monkeypatch.setattr(ImageFitter, "level", counted_level)
    for module in (em, merge):
        monkeypatch.setattr(module, "e_step", counted_e_step)
    cw.ClickMixture().fit(points, run=ONE)
    whole = dict(work)
    stream = cw.ClickStream().update(points, run=ONE)
    work.update(search=0, fit=0)
    stream.update(job("i7", "late", [(50, 50), (20, 20)]), run=ONE)
    assert 0 < 15 * work["search"] < whole["search"]
    assert 0 < 15 * work["fit"] < whole["fit"]


def test_objects_that_only_later_clicks_show_are_added() -> None:
    rng, stream = np.random.default_rng(0), cw.ClickStream()
    first, second = np.array([(20, 20), (70, 30)]), np.array([(20, 20), (70, 30), (50, 80)])
    for w in range(5):
        stream.update(job("a", f"w{w}", first + rng.normal(size=first.shape)))
    assert stream.objects.height == 2
    for w in range(5, 12):
        stream.update(job("a", f"w{w}", second + rng.normal(size=second.shape)))
    assert np.allclose(stream.objects.sort("x").select("x", "y"), [(20, 20), (50, 80), (70, 30)], atol=1.5)
    assert stream.objects.sort("x")["supporters"].to_list() == [12, 7, 12]


def test_objects_that_lose_their_support_go() -> None:
    rng, stream = np.random.default_rng(0), cw.ClickStream()
    centres = np.array([(20, 20), (70, 30), (50, 80)])
    clicks = {f"w{w}": centres + rng.normal(size=centres.shape) for w in range(8)}
    for worker, X in clicks.items():
        stream.update(job("a", worker, X))
    assert stream.objects.height == 3
    for worker, X in clicks.items():
        stream.update(job("a", worker, X[:2]))  # correct: nobody clicked on the third
    assert stream.objects["supporters"].to_list() == [8, 8]
    assert stream.remove({"image": ["a"] * 8, "worker": list(clicks)}) == 0
    assert repr(stream) == "ClickStream(0 clicks, 0 images, 0 objects, 0 workers, 0 jobs)"


def test_jobs_are_removed_and_unknown_ones_counted(crowd: cw.Points) -> None:
    stream = fed(crowd, 2)
    table = {"image": ["i0", "i0", "i9", "i1", "i0"], "worker": ["w1", "w2", "w1", "nobody", "w1"]}
    assert stream.remove(table) == 2
    left = crowd.frame().filter((pl.col("image") != "i0") | ~pl.col("worker").is_in(["w1", "w2"]))
    assert stream.points.n_clicks == left.height
    assert stream.points.n_jobs == 58
    again = cw.ClickMixture().fit(cw.Points(left, box=SQUARE), run=ONE)
    assert agreement(stream.result(run=ONE), again, 1.0) == 1
    assert stream.remove(table) == 4  # rows that name the same job count once


def test_a_worker_who_clicked_nothing_counts_as_having_looked(crowd: cw.Points) -> None:
    stream = fed(crowd, 2)
    before = stream.decide("i0")
    stream.update(job("i0", "idle"))
    assert stream.decide("i0").answers == before.answers + 1
    assert stream.workers.filter(pl.col("worker") == "idle").row(0) == ("idle", 0, pytest.approx(2 / 2.2), 1, 0.0)
    stream.update(job("i0", "w1"))  # correct: nothing was clicked
    assert stream.points.n_clicks == crowd.n_clicks - len(crowd.frame().filter(image="i0", worker="w1"))
    empty = cw.ClickStream().update(job("a", "w"))
    assert empty.result().objects.height == empty.objects.height == 0
    assert empty.decide("a", min=1).status == "settled"


def test_new_workers_images_and_boxes() -> None:
    points = spots(3, workers=8, seed=3).points
    late, late_image = pl.col("worker").is_in(["w6", "w7"]), pl.col("image") == "i2"
    frame, stream = points.frame(), cw.ClickStream()
    for part in (frame.filter(~late & ~late_image), frame.filter(late & ~late_image), frame.filter(late_image)):
        stream.update(cw.Points(part, box=SQUARE))
    assert stream.workers["worker"].to_list() == [f"w{k}" for k in range(8)]
    assert stream.workers["answers"].to_list() == frame.group_by("worker").len().sort("worker")["len"].to_list()
    stream.update(frame.filter(worker="w1"))  # a frame without a box: that of earlier updates is used
    assert stream.points.box_from == "given"
    assert np.array_equal(stream.points.box, points.box)


def test_a_stream_that_holds_nothing_is_like_a_new_one() -> None:
    stream = cw.ClickStream().update(job("a", "w", [(1, 1), (2, 2)]))
    assert stream.remove({"image": ["a"], "worker": ["w"]}) == 0
    assert (stream.objects.height, stream.workers.height, cw.ClickStream().objects.height) == (0, 0, 0)
    stream.update(cw.Points({"image": [1], "worker": [2], "t": [3.0]}, axes=["t"], box=(0, 9)))
    assert stream.workers["worker"].to_list() == [2]
    assert cw.ClickStream().remove({"image": ["a"], "worker": ["w"]}) == 1


def test_numbers_as_ids_and_coordinates_of_other_names() -> None:
    rng = np.random.default_rng(0)
    stream = cw.ClickStream()
    for w in range(6):
        X = np.array([10.0, 40.0, 80.0]) + rng.normal(size=3)
        stream.update(cw.Points({"image": [7] * 3, "worker": [w] * 3, "t": X}, axes=["t"], box=(0, 100)))
    assert stream.objects.columns == ["image", "object", "t", "probability", "supporters", "jobs"]
    assert np.allclose(stream.objects["t"], [10, 40, 80], atol=1.5)
    with pytest.raises(DataError, match="worker ids are String in this table and Int64 in the stream"):
        stream.update(cw.Points({"image": [7], "worker": ["0"], "t": [1.0]}, axes=["t"], box=(0, 100)))
    small = pl.DataFrame({"image": [7], "worker": [0]}, schema={"image": pl.Int8, "worker": pl.Int16})
    assert stream.remove(small) == 0
    assert stream.workers["worker"].to_list() == [1, 2, 3, 4, 5]


def test_decisions_follow_the_clicks() -> None:
    sim, stream = spots(5, objects=4, workers=9, stray=0.5, seed=8), cw.ClickStream()
    frame = sim.points.frame()
    for w in range(8):
        stream.update(cw.Points(frame.filter(worker=f"w{w}"), box=SQUARE))
        decisions = [stream.decide(f"i{i}") for i in range(5)]
        assert all(each.answers == w + 1 for each in decisions)
        if w < 2:  # two workers agree, but objects with two clicks are not found
            assert {each.status for each in decisions} == {"ask"}
        for each in decisions:
            assert (each.status == "settled") == (each.probability >= 0.95 and w >= 1)
            assert (each.ask > 0) == (each.status == "ask")
            assert each.ask <= 7 - each.answers or each.status != "ask"
    assert {each.status for each in decisions} == {"settled"}
    assert cw.match_objects(stream.objects, sim.truth, within=3)["f1"].min() == 1
    result = stream.result()
    both = stream.objects.join(result.objects, on=["image", "object"])
    assert np.abs(both["probability"] - both["probability_right"]).max() < 0.02


def test_a_decision_gives_its_reason(crowd: cw.Points) -> None:
    stream = fed(crowd, 2)
    decision = stream.decide("i0", probability=0.9)
    assert decision.status == "settled"
    assert decision == (decision.item, "settled", 0, (), decision.probability, 10, decision.reason)
    shown = _percentages(decision.probability, 0.9)[0]
    assert decision.reason == (
        f"10 workers looked, and the most doubtful of 8 objects is real with a probability of {shown}, above 90 %."
    )
    few = stream.decide("i0", min=12, max=15)
    assert (few.status, few.ask) == ("ask", 2)
    assert few.reason.endswith("above 95 %, but at least 12 are needed.")
    strict = stream.decide("i0", probability=1.0)
    assert (strict.status, strict.ask, strict.of) == ("contested", 0, ())
    assert strict.reason.endswith("below 100 %, and no more than 7 are to be asked for.")


def test_a_click_that_others_may_have_missed_leaves_doubt() -> None:
    stream = fed(spots(4, workers=8, stray=0.1, seed=2).points, 1)
    stream.update(job("new", "w0", [(50, 50)]))
    decisions = [stream.decide("new")]
    for w in range(1, 7):
        assert "no object was found; clicks mark none with a probability of" in decisions[-1].reason
        stream.update(job("new", f"w{w}"))
        decisions.append(stream.decide("new"))
    steps = np.diff([np.log(each.probability / (1 - each.probability)) for each in decisions])
    h = stream._hit_rates().mean  # a look multiplies the odds by 1 / (1 - h), or less if the worker is less eager
    assert steps.min() > 0
    assert steps.max() == pytest.approx(-np.log1p(-h), rel=0.1)
    assert [each.status for each in decisions[:3]] == ["ask"] * 3
    assert decisions[-1].status == "settled"
    first = next(n for n, each in enumerate(decisions) if each.status == "settled")
    assert abs(decisions[1].ask + 1 - first) <= 1  # as many looks as were asked for


def test_the_best_workers_are_asked_first() -> None:
    points = spots(4, workers=6, seed=2).points
    rng, stream = np.random.default_rng(1), fed(points, 1)
    for i in range(4):
        stream.update(job(f"i{i}", "spammer", rng.random((20, 2)) * 100))
    lazy = points.frame().filter(worker="w0").with_columns(worker=pl.lit("lazy"))
    stream.update(cw.Points(lazy.group_by("image").head(1), box=SQUARE))
    stream.update(job("new", "w3", [(50, 50)]))
    decision = stream.decide("new")
    assert set(decision.of) == {"w0", "w1", "w2", "w4", "w5", "lazy"}  # neither the spammer nor who has looked
    assert decision.of[-1] == "lazy"
    assert 1 <= decision.ask <= 6


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"probability": 0.3}, "probability is 0.3; it must be a number from 0.5 to 1"),
        ({"probability": "high"}, "probability is 'high'; it must be a number from 0.5 to 1"),
        ({"min": 0}, "min is 0; it must be a whole number of at least 1"),
        ({"max": 2.5}, "max is 2.5; it must be a whole number of at least 1"),
        ({"min": 5, "max": 4}, "min is 5 and max is 4; min must not exceed max"),
    ],
    ids=str,
)
def test_arguments_of_decisions_are_checked(chosen: dict[str, Any], message: str) -> None:
    stream = cw.ClickStream().update(job("a", "w"))
    with pytest.raises(ParameterError) as found:
        stream.decide("a", **chosen)
    assert str(found.value) == message


def test_percentages_are_on_the_right_side() -> None:
    assert _percentages(0.9496, 0.95) == ("94.96 %", "95 %")
    assert _percentages(0.9504, 0.95) == ("95.04 %", "95 %")
    assert _percentages(0.9996, 0.99) == ("99.96 %", "99 %")
    assert _percentages(1.0, 0.95) == ("100 %", "95 %")
    assert _percentages(0.975, 0.975) == ("98 %", "97.5 %")


def test_a_stream_is_saved_and_loaded(crowd: cw.Points, tmp_path: Path) -> None:
    *most, last = batches(crowd, 4)
    stream = cw.ClickStream(cw.ClickMixture(once=True, freedom=6.0))
    for part in most:
        stream.update(part, run=ONE)
    stream.decide("i0")
    file = stream.save(tmp_path / "here")
    assert file == tmp_path / "here" / "stream.crowdwise"
    loaded = cw.ClickStream.load(tmp_path / "here")
    assert loaded.model == stream.model
    for one in (stream, loaded):
        one.update(last, run=ONE).update(job("i9", "new", [(3, 3)]), run=ONE)
    assert loaded.objects.equals(stream.objects)
    assert loaded.workers.equals(stream.workers)
    assert loaded.decide("i1") == stream.decide("i1")
    assert same_bits(loaded.result(run=ONE), stream.result(run=ONE))
    empty = cw.ClickStream.load(cw.ClickStream().save(tmp_path / "empty.crowdwise"))
    assert repr(empty) == "ClickStream(0 clicks, 0 images, 0 objects, 0 workers, 0 jobs)"
    assert empty.update(crowd, run=ONE).points.n_clicks == crowd.n_clicks


def test_files_that_hold_no_stream_are_refused(crowd: cw.Points, tmp_path: Path) -> None:
    file = fed(crowd, 1).save(tmp_path / "a.crowdwise")
    whole = file.read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:size])
        with pytest.raises(ChecksumError, match="is not a complete saved stream"):
            cw.ClickStream.load(file)
    at = whole.index(b"PAR1") + 100
    file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(ChecksumError):
        cw.ClickStream.load(file)
    other = cw.ClickMixture().fit(crowd, run=ONE).save(tmp_path / "b.crowdwise")
    with pytest.raises(ChecksumError, match="contains a saved result, not a saved stream"):
        cw.ClickStream.load(other)
    with pytest.raises(DataError, match="no saved stream at"):
        cw.ClickStream.load(tmp_path / "none")


def test_a_stream_refuses_invalid_clicks(crowd: cw.Points) -> None:
    stream = fed(crowd, 1)
    before = repr(stream), stream.objects, stream.workers
    with pytest.raises(DataError, match="these clicks have the coordinates u, v, but the stream has x, y"):
        stream.update(cw.Points({"image": ["i0"], "worker": ["w"], "u": [2], "v": [2]}, axes=["u", "v"], box=SQUARE))
    wrong = r"image 'i0' has the box \[0.0, 0.0, 9.0, 9.0\] here, not the box of earlier updates, \[0.0, 0.0, 100.0"
    with pytest.raises(DataError, match=wrong):
        stream.update(job("i0", "w", [(2, 2)], box=(0, 0, 9, 9)))
    with pytest.raises(DataError, match="image 'i0' has clicks outside the box of earlier updates"):
        stream.update({"image": ["i0"] * 2, "worker": ["w"] * 2, "x": [2.0, 300.0], "y": [2.0, 9.0]})
    with pytest.raises(DataError, match=r"takes answers of kind 'points'.*got Labels, of kind 'labels'"):
        stream.update(cw.Labels({"task": [1], "worker": ["a"], "label": ["x"]}))
    with pytest.raises(DataError, match="image ids are Int64 in this table and String in the stream"):
        stream.remove({"image": [1], "worker": ["a"]})
    with pytest.raises(DataError, match="no column"):
        stream.remove({"image": ["i0"]})
    with pytest.raises(UnknownIdError, match=r"no image 'i00' in the stream\. Did you mean 'i0'\?"):
        stream.decide("i00")
    assert (repr(stream), *map(str, before[1:])) == (before[0], str(stream.objects), str(stream.workers))
    with pytest.raises(EmptyDataError, match="the stream holds no clicks; pass some to update first"):
        cw.ClickStream().result()


def test_an_interrupted_update_changes_nothing(crowd: cw.Points) -> None:
    *most, last = batches(crowd, 3)
    stream, whole = cw.ClickStream(), cw.ClickStream()
    for part in most:
        stream.update(part, run=ONE)
        whole.update(part, run=ONE)
    before = repr(stream), stream.objects, stream.workers
    for stop_after in (0, 5, 20):
        left = iter([False] * stop_after)
        with pytest.raises(Interrupted):
            stream.update(last, run=cw.Run(threads=1, stop=lambda left=left: next(left, True)))  # type: ignore[misc]
        assert repr(stream) == before[0]
        assert stream.objects.equals(before[1])
        assert stream.workers.equals(before[2])
    assert stream.update(last, run=ONE).objects.equals(whole.update(last, run=ONE).objects)


def test_a_stream_needs_a_click_mixture_that_merges() -> None:
    with pytest.raises(ParameterError, match="ClickStream needs ClickMixture"):
        cw.ClickStream(cw.Dbscan())  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="method is 'paper'; ClickStream needs method='merge'"):
        cw.ClickStream(cw.ClickMixture(method="paper"))
    with pytest.raises(ParameterError, match=r"freedom is 0\.5; with 2 coordinates it must be above 1"):
        cw.ClickStream(cw.ClickMixture(freedom=0.5)).update(job("a", "w", [(1, 1)]))


def test_a_few_clicks_do_not_decide_for_all_that_workers_click_once() -> None:
    stream = cw.ClickStream().update(cw.simulate.clicks("E", total=400, seed=0).points)
    clicks = {"image": ["n"] * 3, "worker": list("abc"), "x": [2, 2, 2.1], "y": [2, 2.1, 2]}
    stream.update(cw.Points(clicks, box=BOX))
    assert not stream.result().params.once


def test_soft_assignments_of_a_stream(crowd: cw.Points) -> None:
    assert cw.soft_assignments(fed(crowd, 2).result(), "i0").height > 50
