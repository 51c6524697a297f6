"""Clicks in batches: streams converge, follow moving objects, and refuse invalid clicks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from clicking import BOX, SQUARE, counts, finite, spots, spotted, to_centres

import crowdwise as cw
from crowdwise.errors import DataError, ParameterError
from crowdwise.kernels.layout import HEAD
from crowdwise.points.stream import _shift_origin

pytestmark = pytest.mark.filterwarnings("error")


def batches(sim: cw.simulate.ClickCrowd, count: int) -> list[cw.Points]:
    frame = sim.points.frame().sample(fraction=1.0, shuffle=True, seed=1)
    cuts = np.linspace(0, frame.height, count + 1).astype(int)
    return [cw.Points(frame[a:b], box=BOX) for a, b in pairwise(cuts)]


def test_a_stream_improves_with_every_batch() -> None:
    sim, stream, error = cw.simulate.clicks("E", total=4000, seed=5), cw.ClickStream(), []
    for batch in batches(sim, 8):
        stream.partial_fit(batch)
        error.append((to_centres(stream.objects.select("x", "y").to_numpy(), sim).min(1) ** 2).mean())
    assert error[-1] < 0.75 * error[0]
    assert error[-1] < 0.004
    assert repr(stream) == "ClickStream(8 batches, 4000 clicks, 1 image, 10 objects, 20 workers)"
    assert stream.workers["answers"].sum() == 4000
    assert stream.objects["share"].sum() == pytest.approx(1)
    assert stream.objects["clicks"].sum() < 4000
    both = stream.workers.join(sim.workers, on="worker")
    assert np.abs(both["skill"] - both["reliability"]).mean() < 0.12


def test_a_stream_follows_moving_objects() -> None:
    rng, stream = np.random.default_rng(0), cw.ClickStream(cw.ClickMixture(objects=2, once=False))
    for k in range(30):
        centres = np.array([(30.0, 30.0), (70.0, 60.0)]) + (1.5 if k else 0.0)
        X = np.repeat(centres, 30, axis=0) + rng.normal(scale=[1.0, 3.0], size=(60, 2))
        frame = {"image": ["a"] * 60, "worker": np.arange(60) % 6, "x": X[:, 0], "y": X[:, 1]}
        stream.partial_fit(cw.Points(frame, box=SQUARE))
    assert np.allclose(stream.objects.select("x", "y").sort("x"), centres, atol=0.4)
    spread = stream.result(cw.Points(frame, box=SQUARE)).objects
    assert np.allclose(spread["var_x"], 1, atol=0.3)
    assert np.allclose(spread["var_y"], 9, atol=2.0)


def test_a_stream_accepts_new_workers_and_images() -> None:
    every = spots(3, workers=8, seed=3)
    frame = every.points.frame()
    late, late_image = pl.col("worker").is_in(["w6", "w7"]), pl.col("image") == "i2"
    stream = cw.ClickStream()
    for part in (frame.filter(~late & ~late_image), frame.filter(late & ~late_image), frame.filter(late_image)):
        stream.partial_fit(cw.Points(part, box=SQUARE))
    assert stream.workers["worker"].to_list() == [f"w{k}" for k in range(8)]
    sent = frame.group_by("worker").len().sort("worker")["len"].to_list()
    assert stream.workers["answers"].to_list() == sent
    match = cw.match_objects(stream.objects, every.truth, within=3)
    assert match["f1"].min() > 0.85
    result = stream.result(every.points)
    assert counts(result) == stream.objects.group_by("image", maintain_order=True).len()["len"].to_list()
    assert result.clicks.height == every.points.n_clicks
    assert finite(result)


@pytest.fixture(scope="module")
def stream() -> cw.ClickStream:
    return cw.ClickStream().partial_fit(cw.simulate.clicks("E", total=400, seed=3).points)


def test_a_result_does_not_update_the_stream(stream: cw.ClickStream) -> None:
    before = (repr(stream), stream.objects, stream.workers)
    strange = cw.Points({"image": ["image"], "worker": ["stranger"], "x": [2.0], "y": [2.0]}, box=BOX)
    assert stream.result(strange).workers["worker"].to_list() == ["stranger"]
    assert repr(stream) == before[0]
    assert stream.objects.equals(before[1])
    assert stream.workers.equals(before[2])


def test_a_stream_refuses_invalid_clicks(stream: cw.ClickStream) -> None:
    other = {"image": ["other"], "worker": ["w01"], "x": [2.0], "y": [2.0]}
    with pytest.raises(DataError, match=r"1 image\(s\) are unknown to the stream, for instance 'other'"):
        stream.result(cw.Points(other, box=BOX))
    known = {**other, "image": ["image"]}
    with pytest.raises(DataError, match="box"):
        stream.partial_fit(cw.Points(known, box=(0, 0, 9, 9)))
    with pytest.raises(DataError, match="this batch has the coordinates u, v, but the stream has x, y"):
        stream.partial_fit(
            cw.Points({"image": ["image"], "worker": ["w"], "u": [2], "v": [2]}, axes=["u", "v"], box=BOX)
        )
    labels = cw.Labels({"task": [1], "worker": ["a"], "label": ["x"]})
    for call in (stream.partial_fit, stream.result):
        with pytest.raises(DataError, match=r"takes answers of kind 'points'.*got Labels, of kind 'labels'"):
            call(labels)
        with pytest.raises(DataError, match=r"has the box .* in this batch, but had"):
            call(known)  # a frame is read, without the box
    assert repr(stream) == "ClickStream(1 batches, 400 clicks, 1 image, 10 objects, 20 workers)"


def test_an_image_that_had_no_clicks_is_looked_at_when_it_has() -> None:
    frame = spots(2, seed=1).points.frame()
    one, two = (frame.filter(pl.col("image") == image) for image in ("i0", "i1"))
    stream = cw.ClickStream().partial_fit(cw.Points(one, box=SQUARE, jobs={"image": ["i1"], "worker": ["w0"]}))
    assert set(stream.objects["image"]) == {"i0"}
    stream.partial_fit(cw.Points(one[:5], box=SQUARE, jobs={"image": ["i2"], "worker": ["w0"]}))
    stream.partial_fit(cw.Points(two, box=SQUARE))
    assert set(stream.objects["image"]) == {"i0", "i1"}


def test_a_few_clicks_do_not_decide_for_all_that_workers_click_once() -> None:
    sim = cw.simulate.clicks("E", total=400, seed=0)
    stream = cw.ClickStream().partial_fit(sim.points)
    stream.partial_fit(
        cw.Points({"image": ["n"] * 3, "worker": list("abc"), "x": [2, 2, 2.1], "y": [2, 2.1, 2]}, box=BOX)
    )
    assert not stream.result(sim.points).params.once


@pytest.mark.parametrize("chosen", [{"rate": 0.5}, {"rate": 1.5}, {"rate": float("nan")}, {"delay": -1}], ids=str)
def test_a_stream_needs_steps_that_fall(chosen: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match=r"rate is .* and delay"):
        cw.ClickStream(**chosen)
    with pytest.raises(ParameterError, match="a stream needs a ClickMixture"):
        cw.ClickStream(cw.Dbscan())  # type: ignore[arg-type]


def test_soft_assignments_of_a_stream() -> None:
    points = spotted().points
    stream = cw.ClickStream().partial_fit(points)
    assert cw.soft_assignments(stream.result(points), "i0").height > 50


def test_sums_are_moved_to_other_places() -> None:
    rng = np.random.default_rng(0)
    away, weight, shift = rng.normal(size=(3, 9, 2)), rng.random((3, 9)), rng.normal(size=(3, 2))

    def sums(x: Any) -> Any:
        second = np.tril(np.einsum("mn,mnd,mne->mde", weight, x, x)).reshape(3, 4)
        return np.hstack([*[weight.sum(1)[:, None]] * HEAD, np.einsum("mn,mnd->md", weight, x), second])

    assert np.allclose(_shift_origin(sums(away), shift), sums(away + shift[:, None]))
