"""Clicks as they come in: columns, boxes, units, jobs and doubles; and tables that are hardly tables any more."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdwise as cw
from crowdwise.errors import ColumnError, DataError, DuplicateError, EmptyDataError, ParameterError

pytestmark = pytest.mark.filterwarnings("error")

BOX = (0, 0, 100, 100)
SMALL = {"image": ["a", "a", "b"], "worker": ["ann", "bob", "ann"], "x": [10, 11, 40], "y": [10, 9, 52]}
# Every model of clicks, small enough for a few of them.
MODELS: dict[str, dict[str, Any]] = {
    "click-mixture": {},
    "fuzzy-c-means": {"objects": 3},
    "k-means": {"objects": 3},
    "dbscan": {"distance": 5.0, "at_least": 2},
    "hdbscan": {"at_least": 3},
}


def dropped(points: cw.Points) -> dict[str, int]:
    return {each.reason: each.count for each in points.intake.dropped}


def rows(points: cw.Points, *names: str) -> list[Any]:
    return sorted(points.frame().select(*names).rows())


ARRAYS = ("X", "worker", "job_ptr", "job_image", "job_worker", "image_ptr", "box")


def alike(one: cw.Points, two: cw.Points) -> bool:
    """The same clicks, to the bit."""
    return one.frame().equals(two.frame()) and all(
        np.array_equal(getattr(one, name), getattr(two, name)) for name in ARRAYS
    )


def finite(result: cw.PointsResult) -> bool:
    return all(np.isfinite(np.asarray(array, float)).all() for array in (*result.params, result.trace["objective"]))


def crowd(centres: Any, *, each: int = 8, per: int = 1, deviation: float = 1.0, seed: int = 0) -> dict[str, Any]:
    """`each` workers, `per` clicks of each on every object of one image, in as many coordinates as centres have."""
    middle = np.atleast_2d(np.asarray(centres, float))
    at = np.repeat(middle, each * per, axis=0)
    X = at + deviation * np.random.default_rng(seed).normal(size=at.shape)
    worker = [f"w{k}" for k in np.tile(np.repeat(np.arange(each), per), len(middle))]
    return {"image": ["a"] * len(X), "worker": worker} | {"xyz"[d]: X[:, d] for d in range(X.shape[1])}


def places(result: cw.PointsResult) -> np.ndarray[Any, Any]:
    """Centres in ascending order, however objects are numbered."""
    mean = result.params.mean
    return mean[np.lexsort(mean.T[::-1].round(3))]


# ------------------------------------------------------------------------------------------------------ names and types

IDS: dict[str, tuple[Any, Any]] = {
    "whole": ([7, 7, 2**60], pl.Int64),
    "text": (["b", "b", "a"], pl.String),
    "date": ([dt.date(2020, 5, 1), dt.date(2020, 5, 1), dt.date(1999, 1, 31)], pl.Date),
    "time": ([dt.datetime(2020, 5, 1, 12), dt.datetime(2020, 5, 1, 12), dt.datetime(1999, 1, 31)], pl.Datetime("us")),
    "truth": ([True, True, False], pl.Boolean),
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_of_any_type_come_back(kind: str) -> None:
    ids, dtype = IDS[kind]
    points = cw.Points({**SMALL, "image": ids, "worker": ids[::-1]}, box=BOX)
    assert rows(points, "image", "worker") == sorted(zip(ids, ids[::-1], strict=True))
    result = cw.aggregate(points, "dbscan", at_least=1)
    for table, column in (("objects", "image"), ("clicks", "image"), ("images", "image"), ("workers", "worker")):
        series = getattr(result, table)[column]
        assert series.dtype == dtype
        assert set(series.to_list()) == set(ids)
    assert result.of(ids[0])["image"].to_list() == ids[:1]
    with pytest.raises(cw.errors.UnknownIdError, match="no image 'nowhere' in these clicks"):
        result.of("nowhere")


@pytest.mark.parametrize("make", [
    lambda: pl.DataFrame(SMALL, schema_overrides={"image": pl.Categorical, "worker": pl.Enum(["bob", "ann"])}),
    lambda: pd.DataFrame(SMALL).astype({"image": "category", "worker": "category"}),
])  # fmt: skip
def test_categories_become_their_values(make: Any) -> None:
    points = cw.Points(make(), box=BOX)
    assert rows(points, "image", "worker") == [("a", "ann"), ("a", "bob"), ("b", "ann")]
    assert points.workers.to_list() == ["ann", "bob"]


@pytest.mark.parametrize("make", [
    dict, pl.DataFrame, pd.DataFrame, lambda c: pl.DataFrame(c).lazy(), lambda c: pl.DataFrame(c).to_arrow(),
    lambda c: pl.DataFrame(c).to_dicts(), lambda c: {k: np.array(v) for k, v in c.items()},
], ids=["mapping", "polars", "pandas", "lazy", "arrow", "records", "arrays"])  # fmt: skip
def test_any_frame_will_do(make: Any) -> None:
    points = cw.Points(make(SMALL), box=BOX)
    assert rows(points, "image", "worker", "x", "y") == sorted(zip(*SMALL.values(), strict=True))
    assert repr(points).startswith("Points(3 clicks, 2 images, 2 workers, 3 jobs")
    assert len(points) == 3


def test_columns_are_guessed_by_their_names() -> None:
    points = cw.Points({"Subject ID": [1, 1], "user_name": ["u", "v"], "left": [1, 2], "top": [3, 4], "Slice": [0, 9]})
    assert points.axes == ("x", "y", "z")
    assert points.X.tolist() == [[1, 3, 0], [2, 4, 9]]
    assert points.intake.guessed
    assert points.intake.columns["image"] == "Subject ID"


def test_further_columns_go_with_their_clicks() -> None:
    points = cw.Points({**SMALL, "note": ["first", "second", "third"], "Click Order": [2, 1, 3]}, box=BOX)
    assert points.frame()["note"].to_list() == ["first", "second", "third"]
    result = cw.aggregate(points, "dbscan")
    assert dict(zip(result.clicks["x"], result.clicks["note"], strict=True)) == {10: "first", 11: "second", 40: "third"}


@pytest.mark.parametrize("role", ["image", "worker"])
def test_a_second_column_of_that_name_is_no_trouble(role: str) -> None:
    frame = {**SMALL, "other": ["p", "p", "q"]}
    points = cw.Points(frame, **{role: "other"}, box=BOX)
    assert points.frame()[role].to_list() == ["p", "p", "q"]
    result = cw.aggregate(points, "dbscan")
    assert result.clicks.height == 3
    assert set(SMALL[role]) in [set(result.clicks[name].to_list()) for name in result.clicks.columns[2:]]


@pytest.mark.parametrize("name", ["object", "probability", "outlier"])
def test_a_column_named_like_what_is_found_hides_nothing(name: str) -> None:
    plain, with_it = (
        cw.aggregate(cw.Points(f, box=BOX), "dbscan", at_least=1) for f in (SMALL, {**SMALL, name: ["p", "q", "r"]})
    )
    assert with_it.clicks[name].to_list() == plain.clicks[name].to_list()


def test_names_that_look_alike_are_reported() -> None:
    points = cw.Points({**SMALL, "worker": ["Ann", "ann ", "bob"]}, box=BOX)
    assert any("worker name(s) look alike" in text for text in points.intake.warnings)
    assert points.n_workers == 3


@pytest.mark.parametrize(("changed", "said"), [
    ({"axes": ["x", "yy"]}, r"no column 'yy' in table.*Did you mean 'y'"),
    ({"image": "picture"}, "no column 'picture' in table; columns are image, worker, x, y"),
    ({"worker": "wrker"}, "Did you mean 'worker'"),
])  # fmt: skip
def test_a_column_that_is_not_there_is_named(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ColumnError, match=said):
        cw.Points(SMALL, **changed)


def test_without_a_column_of_workers_clicks_are_refused() -> None:
    with pytest.raises(ColumnError, match="no column 'worker' in table; columns are image, x, y") as caught:
        cw.Points({name: SMALL[name] for name in ("image", "x", "y")})
    assert "wide" not in str(caught.value)  # which is for labels


@pytest.mark.parametrize("axes", ["xy", [], ["x", "x"]])
def test_axes_are_columns_each_once(axes: Any) -> None:
    with pytest.raises(ParameterError, match="each once"):
        cw.Points(SMALL, axes=axes)


@pytest.mark.parametrize("name", ["outside", "duplicates", "unit"])
def test_rules_that_do_not_exist_are_refused(name: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} is 'last'; it can be "):
        cw.Points(SMALL, **{name: "last"})


@pytest.mark.parametrize(("data", "error", "said"), [
    ({"image": [], "worker": [], "x": [], "y": []}, EmptyDataError, "no clicks in table: it has 4"),
    ({**SMALL, "x": [None] * 3}, EmptyDataError, "none with an image and coordinates"),
    ({**SMALL, "x": [1]}, ColumnError, "columns differ in length"),
    ("clicks.csv", DataError, "is a file name, not a table"),
    (7, DataError, "cannot be made from int"),
])  # fmt: skip
def test_what_is_no_table_of_clicks_is_refused(data: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        cw.Points(data)


# ---------------------------------------------------------------------------------------------------------- coordinates


@pytest.mark.parametrize("nothing", [float("nan"), float("inf"), float("-inf"), None])
@pytest.mark.parametrize("axis", ["x", "y"])
def test_d20_a_click_that_is_nowhere_is_dropped_and_counted(nothing: Any, axis: str) -> None:
    points = cw.Points({**SMALL, axis: [1.0, nothing, 3.0]}, box=BOX)
    assert dropped(points) == {"no finite coordinates": 1}
    assert points.intake.dropped[0].examples[0].startswith("row 2: a, bob")
    assert (points.intake.rows_read, points.intake.rows_used, points.n_workers) == (3, 2, 1)


@pytest.mark.parametrize("text", ["", " ", "nan", "inf"])
def test_text_that_says_nothing_is_nowhere_too(text: str) -> None:
    points = cw.Points({**SMALL, "x": ["1", text, " 3.5 "]}, box=BOX)
    assert dropped(points) == {"no finite coordinates": 1}
    assert points.X[:, 0].tolist() == [1, 3.5]


@pytest.mark.parametrize("x", [["1", "two", "3"], [1, "two", 3.5]])
def test_d20_text_that_is_no_number_is_refused_by_its_row(x: Any) -> None:
    with pytest.raises(ColumnError, match="coordinate column 'x' of table has 'two' at row 2, which is not a number"):
        cw.Points({**SMALL, "x": x})


@pytest.mark.parametrize("far", [1e150, -1e31, 1.7e308, -1.7e308])
def test_d20_a_coordinate_that_would_overflow_is_refused(far: float) -> None:
    limit = r"coordinates may be at most 1e\+30. Correct them, or give them in a larger unit"
    with pytest.raises(DataError, match=rf"table: the extent of 'a' reaches to the coordinate .*; {limit}"):
        cw.Points({**SMALL, "x": [1.0, far, -far]})
    with pytest.raises(DataError, match=rf"box: the extent of 'all images' reaches to the coordinate .*; {limit}"):
        cw.Points(SMALL, box=(-abs(far), 0, 9, 9))
    assert cw.Points({**SMALL, "x": [1.0, far, 3.0]}, box=BOX).intake.rows_used == 2  # it is outside


@pytest.mark.parametrize("model", cw.models("points")["name"].to_list())
def test_d20_results_of_the_largest_coordinates_are_saved_and_loaded(model: str, tmp_path: Path) -> None:
    table = {"image": ["a"] * 6, "worker": [*"abcabc"], "x": [9e29, 9.1e29, 9e29, 1e29, 1.1e29, 1e29], "y": [1e29] * 6}
    found = cw.aggregate(cw.Points(table), model)
    assert cw.load(found.save(tmp_path / "saved")).objects.equals(found.objects)


@pytest.mark.parametrize("x", [[[1], [2], [3]], [dt.date(2020, 1, 1)] * 3, [True, False, True]])
def test_what_is_no_coordinate_is_refused(x: Any) -> None:
    with pytest.raises(ColumnError, match="coordinate column 'x'"):
        cw.Points({**SMALL, "x": x})


def test_whole_numbers_beside_fractions_are_numbers() -> None:
    assert cw.Points({**SMALL, "x": [1, 2.5, 3]}, box=BOX).X[:, 0].tolist() == [1, 2.5, 3]


def test_a_click_without_worker_is_refused_and_one_without_image_dropped() -> None:
    with pytest.raises(ColumnError, match=r"1 click\(s\) in table have no worker, the first at row 2"):
        cw.Points({**SMALL, "worker": ["ann", None, "bob"]})
    with pytest.raises(ColumnError, match="have no worker, the first at row 1"):
        cw.Points({**SMALL, "worker": ["", "ann", ""]})
    points = cw.Points({**SMALL, "image": ["a", None, ""]}, box=BOX)
    assert dropped(points) == {"no image": 2}
    assert points.images.to_list() == ["a"]


def test_a_file_is_read_with_its_jobs_and_boxes(table: Any) -> None:
    clicks = table("image,worker,x,y\n001,ann,3,4\n001,bob,3.5,4\n002,ann,900,4\n", "clicks.csv")
    jobs = table("image,worker\n001,ann\n001,bob\n002,ann\n003,cem\n", "jobs.csv")
    boxes = table("image,width,height\n001,10,10\n002,10,10\n003,10,20\n", "boxes.csv")
    points = cw.read_points(clicks, jobs=jobs, box=boxes)
    assert points.images.to_list() == ["001", "002", "003"]
    assert dropped(points) == {"outside the box of the image": 1}
    assert points.box[2].tolist() == [[0, 0], [10, 20]]
    assert (points.intake.source, points.n_jobs) == ("clicks.csv", 4)
    assert cw.read_points(clicks, box=(0, 0, 1000, 10)).intake.options == {"box": [0, 0, 1000, 10]}
    assert points.intake.options == {"jobs": str(jobs), "box": str(boxes)}
    assert points.intake.path == str(clicks)


def test_a_bad_cell_of_a_file_is_named_by_its_line(table: Any) -> None:
    clicks = table("image,worker,x,y\na,ann,3,4\n\na,bob,three,4\n", "clicks.csv")
    with pytest.raises(ColumnError, match=r"coordinate column 'x' of clicks\.csv has 'three' at clicks\.csv:4"):
        cw.read_points(clicks)


# ------------------------------------------------------------------------------------------------------------ row order


@st.composite
def tables(draw: Any) -> pl.DataFrame:
    """1 to 30 clicks of up to 6 workers on up to 3 images; many on one spot, some with an order."""
    size = draw(st.integers(1, 30))
    column = lambda values: draw(st.lists(values, min_size=size, max_size=size))  # noqa: E731
    place = st.one_of(st.integers(0, 100), st.floats(0, 100, width=32))
    frame = {
        "image": column(st.integers(0, 2)), "worker": column(st.integers(0, 5)),
        "x": list(map(float, column(place))), "y": list(map(float, column(place))),
    }  # fmt: skip
    return pl.DataFrame(frame | ({"order": column(st.integers(0, 9))} if draw(st.booleans()) else {}))


@given(tables(), st.sampled_from(["first", "each"]), st.randoms(use_true_random=False))
def test_d15_the_order_of_rows_changes_no_bit_of_the_clicks(frame: pl.DataFrame, rule: str, random: Any) -> None:
    """Nor, then, of what is fitted to them."""
    order = list(range(frame.height))
    random.shuffle(order)
    one, two = (cw.Points(f, box=BOX, duplicates=rule) for f in (frame, frame[order]))
    assert alike(one, two)
    assert dropped(one) == dropped(two)


def test_which_of_two_clicks_on_a_spot_stays_does_not_hang_on_rows() -> None:
    frame = pl.DataFrame(crowd([(20, 20), (60, 40)])).with_columns(order=pl.int_range(pl.len()))
    both = pl.concat([frame, frame.with_columns(order=1000 - pl.col("order"))])
    points = [cw.Points(f, box=BOX) for f in (both, both.reverse(), both.sample(fraction=1.0, shuffle=True, seed=4))]
    assert points[0].frame().equals(points[1].frame())
    assert points[0].frame().equals(points[2].frame())
    assert points[0].frame()["order"].max() < 500  # the click that was made first


# ---------------------------------------------------------------------------------------------------------------- boxes

CORNERS = [[[0, 0], [90, 80]], [[0, 0], [70, 60.5]]]
BOXES = {
    "mapping": {"a": (0, 0, 90, 80), "b": (0, 0, 70, 60.5)},
    "corners": {"image": ["b", "a"], "x0": [0, 0], "y0": [0, 0], "x1": [70, 90], "y1": [60.5, 80]},
    "sizes": {"image": ["b", "a"], "width": [70, 90], "height": [60.5, 80]},
    "more": pl.DataFrame({"image": ["z", "b", "a"], "width": [1, 70, 90], "height": [1.0, 60.5, 80.0]}),
}


@pytest.mark.parametrize("kind", BOXES)
def test_a_box_for_every_image(kind: str) -> None:
    points = cw.Points(SMALL, box=BOXES[kind])
    assert points.box.tolist() == CORNERS
    assert points.box_from == "given"
    assert points.sides.tolist() == [[90, 80], [70, 60.5]]
    assert cw.aggregate(points, "dbscan").images.select("x0", "y0", "x1", "y1").rows() == [
        (0, 0, 90, 80),
        (0, 0, 70, 60.5),
    ]


@pytest.mark.parametrize(
    "box", [(5, 6, 90, 80), [5, 6, 90.0, 80], np.array([5, 6, 90, 80]), (*np.arange(5, 7), 90, 80)]
)
def test_one_box_for_all_images(box: Any) -> None:
    points = cw.Points(SMALL, box=box)
    assert points.box.tolist() == [[[5, 6], [90, 80]]] * 2
    assert points.box_from == "given"


def test_an_image_may_be_called_image() -> None:
    points = cw.Points({**SMALL, "image": ["image"] * 3}, box={"image": (0, 0, 50, 60)})
    assert points.box.tolist() == [[[0, 0], [50, 60]]]


@pytest.mark.parametrize("names", [("width", "height"), ("x1", "y1")])
def test_the_box_of_the_table_of_jobs(names: tuple[str, str]) -> None:
    low = {"x0": [0] * 3, "y0": [0] * 3} if names[0] == "x1" else {}
    jobs = {"image": ["a", "a", "b"], "worker": ["ann", "bob", "ann"], names[0]: [90, 90, 70], names[1]: [80, 80, 60.5]}
    points = cw.Points(SMALL, jobs=jobs | low)
    assert points.box.tolist() == CORNERS
    assert points.box_from == "jobs"
    assert any("box of each image is taken from the table of jobs" in note for note in points.intake.notes)
    assert cw.Points(SMALL, jobs=jobs | low, box=BOX).box_from == "given"  # what is said outright counts


def test_without_a_box_it_is_taken_from_the_clicks_and_said() -> None:
    points = cw.Points({"image": ["a"] * 3, "worker": [1, 2, 3], "x": [10, 20, 30], "y": [100, 140, 200]})
    assert np.allclose(points.box[0], [[7.5, 95], [32.5, 205]])  # 5 % of the range, at least half of the usual pad
    assert points.box_from == "clicks"
    assert any("no box given" in note for note in points.intake.notes)
    assert any("no box was given" in text for text in cw.aggregate(points).warnings)
    assert not any("no box was given" in text for text in cw.aggregate(cw.Points(SMALL, box=BOX)).warnings)


@pytest.mark.parametrize("box", [
    (0, 0, 0, 5), (0, 0, 100, 0), (0, 0, -5, 5), (5, 5, 4, 9), (0, 0, float("nan"), 5), (0, 0, float("inf"), 5),
    {"a": (0, 0, 9, 9), "b": (9, 9, 0, 0)},
    {"image": ["a", "b"], "width": [9, -9], "height": [9, 9]},
], ids=str)  # fmt: skip
def test_d28_a_box_without_area_is_refused(box: Any) -> None:
    with pytest.raises(ParameterError, match=r"has no area\. Give the low corner, then the high one"):
        cw.Points(SMALL, box=box)


@pytest.mark.parametrize("box", [
    (0, 0, 5), (), (0, 0, 5, 5, 5), (0, 0, "wide", 5), "0,0,9,9", 7, {"a": 5, "b": 6}, {"a": (0, 0, 9), "b": (0, 0, 9)},
    {"image": ["a", "b"], "w": [1, 2]},
], ids=str)  # fmt: skip
def test_what_is_no_box_is_refused(box: Any) -> None:
    with pytest.raises(cw.errors.CrowdwiseError, match="box"):
        cw.Points(SMALL, box=box)


@pytest.mark.parametrize(("box", "said"), [
    ({"a": BOX}, r"no box for 1 image\(s\), for instance 'b'"),
    ({"image": ["a", "b"], "width": [9, float("nan")], "height": [9, 9]}, r"no box for 1 image\(s\), for instance 'b'"),
    ({"image": ["a", "b", "a"], "width": [9, 9, 8], "height": [9, 9, 9]}, "has two boxes for image 'a'"),
])  # fmt: skip
def test_a_box_that_is_missing_or_double_is_named(box: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        cw.Points(SMALL, box=box)


def test_d28_clicks_outside_are_dropped_and_counted_or_refused() -> None:
    frame = {"image": ["a"] * 4, "worker": [1, 2, 3, 4], "x": [0, 100, 101, -0.5], "y": [0, 100, 50, 50]}
    points = cw.Points(frame, box=BOX)
    assert dropped(points) == {"outside the box of the image": 2}
    assert points.X.tolist() == [[0, 0], [100, 100]]  # the edge is inside
    assert points.n_workers == 4  # who looked stays
    assert any("2 of 4 rows were left out: outside the box" in text for text in cw.aggregate(points).warnings)
    with pytest.raises(DataError, match=r"2 click\(s\) in table lie outside the box of their image: row 3: a, 3, 101"):
        cw.Points(frame, box=BOX, outside="error")
    assert cw.Points(frame, box=(-1, 0, 101, 100), outside="error").n_clicks == 4


def test_with_all_clicks_outside_nothing_is_left() -> None:
    with pytest.raises(EmptyDataError, match="no click in table lies in the box of its image"):
        cw.Points(SMALL, box=(0, 0, 1, 1))


# -------------------------------------------------------------------------------------------------------------- doubles


def test_clicks_on_one_spot_go_by_the_rule() -> None:
    frame = {**SMALL, "image": ["a"] * 3, "worker": ["ann", "ann", "bob"], "x": [5, 5, 5], "y": [6, 6, 6]}
    first = cw.Points(frame, box=BOX)
    assert dropped(first) == {"repeated click of a worker on the same spot": 1}
    assert first.worker.tolist() == [0, 1]  # two workers on one spot are no doubles
    each = cw.Points(frame, box=BOX, duplicates="each")
    assert each.n_clicks == 3
    assert not each.intake.dropped
    with pytest.raises(
        DuplicateError,
        match=r"1 click\(s\) in table repeat a click .* spot: row 2: a, ann, 5, 6",
    ):
        cw.Points(frame, box=BOX, duplicates="error")
    assert cw.Points(SMALL, box=BOX, duplicates="error").n_clicks == 3


# ---------------------------------------------------------------------------------------------------------------- units


@pytest.mark.parametrize(("unit", "whole"), [("percent", 100), ("fraction", 1)])
def test_parts_of_the_box_become_its_own_unit(unit: Any, whole: float) -> None:
    frame = {"image": ["a", "a", "b"], "worker": [1, 2, 1], "x": np.array([0, 0.25, 1]) * whole,
             "y": np.array([1, 0.5, 0.1]) * whole}  # fmt: skip
    points = cw.Points(frame, unit=unit, box={"a": (10, 20, 210, 120), "b": (0, 0, 50, 1000)})
    assert np.allclose(points.X, [[10, 120], [60, 70], [50, 100]])
    assert points.intake.options == {"unit": unit}
    with pytest.raises(ParameterError, match=f"unit is '{unit}', so the box of the images is needed"):
        cw.Points(frame, unit=unit)
    with pytest.raises(DataError, match=rf"unit is '{unit}', but table has a coordinate of {1.5 * whole:g}\."):
        cw.Points({**frame, "x": frame["x"] * 1.5}, unit=unit, box=BOX)


def mixed(n: int = 40, seed: int = 0) -> dict[str, Any]:
    """Four workers click all over an image of 1000 by 800 pixels; the last gives percent."""
    rng = np.random.default_rng(seed)
    X = rng.random((4 * n, 2)) * np.where(np.arange(4 * n)[:, None] < 3 * n, [1000, 800], [100, 100])
    return {"image": ["a"] * (4 * n), "worker": np.repeat(["p1", "p2", "p3", "odd"], n), "x": X[:, 0], "y": X[:, 1]}


@pytest.mark.parametrize("box", [(0, 0, 1000, 800), None])
def test_d28_percent_among_pixels_is_refused(box: Any) -> None:
    with pytest.raises(DataError, match=r"all 40 clicks of worker 'odd' in table lie between 0 and 100.*percent"):
        cw.Points(mixed(), box=box)
    assert cw.Points(mixed(), box=box, unit="pixels").n_clicks == 160  # said to be pixels after all


def test_a_worker_who_may_as_well_have_meant_pixels_is_not_refused() -> None:
    few = {name: np.delete(column, np.s_[124:]) for name, column in mixed().items()}
    assert cw.Points(few, box=(0, 0, 1000, 800)).n_clicks == 124  # four clicks tell nothing
    frame = mixed()
    assert cw.Points({**frame, "x": frame["x"] / 10, "y": frame["y"] / 10}, box=BOX).n_clicks == 160  # all are small
    alone = {name: column[120:] for name, column in mixed().items()}
    assert cw.Points(alone, box=(0, 0, 1000, 800)).n_clicks == 40  # nobody to compare with


def test_a_worker_who_gave_up_in_a_corner_is_not_refused() -> None:
    frame = mixed()
    corner = frame["worker"] == "odd"
    x, y = (np.where(corner, frame[axis] * part, frame[axis]) for axis, part in (("x", 0.49), ("y", 0.36)))
    assert cw.Points({**frame, "x": x, "y": y}, box=(0, 0, 1000, 800)).n_clicks == 160


def test_real_pixels_are_not_taken_for_percent(shared_data: Path) -> None:
    for name in ("fish_spots", "smfish_cells", "beads"):
        clicks, jobs = (pl.read_parquet(shared_data / name / f"{part}.parquet") for part in ("points", "jobs"))
        for image in clicks["image"].unique():
            own = [frame.filter(pl.col("image") == image) for frame in (clicks, jobs)]
            assert cw.Points(own[0], jobs=own[1]).n_images == 1


# ----------------------------------------------------------------------------------------------------------------- jobs


def test_jobs_without_clicks_are_kept() -> None:
    jobs = {"image": ["a", "a", "b", "c", "c"], "worker": ["ann", "cem", "ann", "bob", "dan"]}
    points = cw.Points(SMALL, jobs=jobs, box=BOX)
    assert points.images.to_list() == ["a", "b", "c"]
    assert points.workers.to_list() == ["ann", "bob", "cem", "dan"]
    assert points.n_jobs == 6
    assert points.job_ptr.tolist() == [0, 1, 2, 2, 3, 3, 3]
    assert points.image_ptr.tolist() == [0, 3, 4, 6]
    assert points.clicks_of(2) == slice(3, 3)
    assert "5 job(s), 3 of them without a click" in points.intake.notes
    assert any("1 job(s) with clicks are not in the table of jobs" in note for note in points.intake.notes)
    result = cw.aggregate(points)
    assert result.images.select("image", "jobs", "clicks").rows() == [("a", 3, 2), ("b", 1, 1), ("c", 2, 0)]
    assert result.of("c").is_empty()
    assert any("image(s) have no object" in text for text in result.warnings)
    assert result.workers.filter(pl.col("worker") == "dan").select("images", "answers").rows() == [(1, 0)]
    assert result.workers.filter(pl.col("worker") == "dan")["hit_rate"].to_list() == [None]  # nothing there to hit
    assert finite(result)


def test_who_looked_and_did_not_click_counts_as_a_miss() -> None:
    frame = crowd([(20, 20), (70, 60)])
    alone, with_idle = (
        cw.aggregate(cw.Points(frame, jobs=jobs, box=BOX)) for jobs in (None, {"image": ["a"], "worker": ["idle"]})
    )
    assert with_idle.objects["jobs"].to_list() == [9, 9]
    assert alone.objects["jobs"].to_list() == [8, 8]
    assert with_idle.workers.filter(pl.col("worker") == "idle")["hit_rate"].to_list() == [0.0]
    assert np.allclose(places(alone), places(with_idle), atol=1e-6)


def test_jobs_of_another_type_are_taken_where_they_say_the_same() -> None:
    frame = {**SMALL, "image": [1, 1, 2]}
    assert cw.Points(frame, jobs={"image": ["1", "3"], "worker": ["ann", "ann"]}, box=BOX).images.to_list() == [1, 2, 3]
    for images in (["one"], [1.5]):
        with pytest.raises(DataError, match=r"table of jobs has images of .* the clicks have Int64\. Give both"):
            cw.Points(frame, jobs={"image": images, "worker": ["ann"]}, box=BOX)


def test_images_and_shards_cut_out_are_the_same_clicks() -> None:
    jobs = {"image": ["a", "b", "c"], "worker": ["cem", "cem", "cem"]}
    points = cw.Points({**SMALL, "note": [1, 2, 3]}, jobs=jobs, box={"a": BOX, "b": (0, 0, 50, 60), "c": BOX})
    own = points.only(np.array([1, 2]))
    assert own.images.to_list() == ["b", "c"]
    assert own.frame().rows() == [("b", "ann", 40, 52, 3)]
    assert own.box.tolist() == [[[0, 0], [50, 60]], [[0, 0], [100, 100]]]
    assert (own.n_jobs, own.image_ptr.tolist(), own.n_workers) == (3, [0, 2, 3], 3)
    shards = list(points.shards(4))
    assert pl.concat([shard.frame() for shard in shards]).equals(points.frame())
    assert [shard.n_jobs for shard in shards] == [1, 2, 1, 2]
    assert all(shard.n_images == 3 and shard.n_workers == 3 for shard in shards)


def test_a_read_only_table_stays_as_it_is() -> None:
    points = cw.Points(SMALL, box=BOX)
    for array in (points.X, points.worker, points.job_ptr, points.job_image, points.image_ptr, points.box):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


# ----------------------------------------------------------------------------------------------- hardly tables any more


@pytest.mark.parametrize("box", [BOX, None])
@pytest.mark.parametrize("settings", [{}, {"once": False, "noise": False}, {"method": "paper"}], ids=str)
def test_all_clicks_on_one_spot_are_one_object(settings: dict[str, Any], box: Any) -> None:
    spot = {"image": ["a"] * 8, "worker": list("abcdefgh"), "x": [30.0] * 8, "y": [40.0] * 8}
    result = cw.aggregate(cw.Points(spot, box=box), **settings)
    assert result.converged
    assert finite(result)
    assert np.allclose(result.params.mean, [[30, 40]], atol=1e-6)
    assert result.params.outlier.max() < 0.5


@pytest.mark.parametrize("name", MODELS)
def test_one_click_in_all(name: str) -> None:
    result = cw.aggregate(
        cw.Points({"image": ["a"], "worker": ["w"], "x": [3], "y": [4]}, box=BOX), name, **MODELS[name]
    )
    assert finite(result)
    assert result.clicks.height == result.workers.height == result.images.height == 1
    assert result.objects.height <= 1


@pytest.mark.parametrize("method", ["merge", "paper"])
def test_an_image_and_a_worker_of_one_click(method: str) -> None:
    frame = pl.DataFrame(crowd([(20, 20), (70, 60)]))
    more = pl.DataFrame({"image": ["b", "a"], "worker": ["w1", "late"], "x": [50.0, 20.5], "y": [50.0, 19.5]})
    result = cw.aggregate(cw.Points(pl.concat([frame, more]), box=BOX), method=method)
    assert finite(result)
    assert result.images["clicks"].to_list() == [17, 1]
    late = result.workers.row(by_predicate=pl.col("worker") == "late", named=True)
    assert late["answers"] == 1
    assert late["high"] - late["low"] > 0.3  # one click tells little


@pytest.mark.parametrize("method", ["merge", "paper"])
@pytest.mark.parametrize(("size", "settings"), [(5, {"start": 500}), (10, {"objects": 50}), (10, {"at_least": 50})])
def test_more_components_than_clicks(method: str, size: int, settings: dict[str, int]) -> None:
    rng = np.random.default_rng(3)
    frame = {"image": ["a"] * size, "worker": rng.integers(0, 4, size)} | {
        axis: rng.random(size) * 100 for axis in "xy"
    }
    result = cw.aggregate(cw.Points(frame, box=BOX), method=method, **settings)
    assert finite(result)
    wanted = size if "start" not in settings else None
    assert len(result.params.mean) == wanted if wanted else len(result.params.mean) <= size


LINE = [(10.0,), (50.0,), (80.0,)]
SPACE = [(10.0, 20.0, 30.0), (80.0, 20.0, 40.0), (45.0, 90.0, 20.0), (50.0, 85.0, 75.0)]


@pytest.mark.parametrize(("box", "per"), [(True, 1), (False, 3)])
@pytest.mark.parametrize("centres", [LINE, SPACE], ids=["1-D", "3-D"])
def test_other_numbers_of_coordinates(centres: Any, box: bool, per: int) -> None:
    D = len(centres[0])
    given_box = (*[0] * D, *[100] * D) if box else None
    points = cw.Points(crowd(centres, each=8, per=per), axes=list("xyz")[:D], box=given_box)
    assert points.n_axes == D
    assert f"{D} coordinates" in repr(points)
    result = cw.aggregate(points)
    assert np.allclose(places(result), sorted(centres), atol=1.5)
    named = [f"var_{axis}" for axis in points.axes]
    assert set(named) <= set(result.objects.columns)
    assert result.objects.width == 9 + D + D * (D + 1) // 2 - 1
    paper = cw.aggregate(points, method="paper", objects=len(centres))
    assert np.allclose(places(paper), sorted(centres), atol=1.5)
    table = {"image": ["a"] * len(centres)} | {axis: [c[d] for c in centres] for d, axis in enumerate(points.axes)}
    assert cw.match_objects(result, table, within=2)["f1"].to_list() == [1.0]


@pytest.mark.parametrize("settings", [{}, {"method": "paper", "max_iter": 60}, {"once": True}], ids=str)
def test_far_off_coordinates_give_the_same_objects(settings: dict[str, Any]) -> None:
    if settings.get("once"):
        frame, box = pl.DataFrame(crowd([(20, 20), (24, 20), (70, 60), (30, 85)])), (0, 0, 100, 100)
    else:
        frame, box = cw.simulate.clicks("P2", total=300, seed=2).points.frame(), (1, 0, 4, 5)
    far = frame.with_columns(pl.col("x", "y") + 1e6)
    boxes = (box, tuple(v + 1e6 for v in box))
    near, away = (cw.aggregate(cw.Points(f, box=b), **settings) for f, b in zip((frame, far), boxes, strict=True))
    assert len(near.params.mean) >= 4
    assert np.allclose(near.params.mean, away.params.mean - 1e6, atol=1e-6)
    assert np.allclose(near.params.cov, away.params.cov, atol=1e-6)
    assert np.allclose(near.params.reliability, away.params.reliability, atol=1e-6)


@pytest.mark.parametrize("box", [BOX, None])
@pytest.mark.parametrize("once", [None, False])
def test_objects_on_a_line_are_separated(box: Any, once: Any) -> None:
    """All clicks have the same y, so nothing in them bounds how thin an object is."""
    result = cw.aggregate(cw.Points({**crowd(LINE, each=8, per=2), "y": [40.0] * 48}, box=box), once=once)
    assert result.converged
    assert finite(result)
    assert np.allclose(places(result), [(10, 40), (50, 40), (80, 40)], atol=1.5)


def test_a_truth_that_cannot_be_matched_does_not_cost_the_fit(command: Any, tmp_path: Path) -> None:
    sim = cw.simulate.clicks("E", total=300, seed=1)
    clicks, truth = sim.save(tmp_path)[:2]
    truth.write_text("place,x,y\nimage,1,2\n")
    status, _, err = command("points", clicks, "--truth", truth, "--model", "fuzzy-c-means", "--out", tmp_path / "out")
    assert status == 1
    assert "no column 'image' in the truth" in err
    assert (tmp_path / "out" / "objects.csv").exists()
    assert not (tmp_path / "out" / "matched.csv").exists()


def test_a_fit_without_a_trace_says_that_it_has_not_converged(command: Any, tmp_path: Path) -> None:
    clicks = cw.simulate.clicks("E", total=300, seed=1).save(tmp_path)[0]
    words = ["points", clicks, "--model", "fuzzy-c-means", "--set", "max_iter=2", "--out", tmp_path / "out"]
    status, _, err = command(*words)
    assert status == 3
    assert "fuzzy-c-means: NOT converged" in err.splitlines()
    assert "without iterations" not in (tmp_path / "out" / "report.html").read_text()


def test_a_table_without_clicks_needs_jobs_and_a_box() -> None:
    nothing: dict[str, list[Any]] = {"image": [], "worker": [], "x": [], "y": []}
    points = cw.Points(nothing, jobs={"image": [3], "worker": ["a"]}, box=(0, 0, 100, 100))
    assert (points.n_clicks, points.n_jobs, points.images.to_list()) == (0, 1, [3])
    assert cw.aggregate(points).objects.height == 0
    with pytest.raises(EmptyDataError, match="no clicks in table: it has 4"):
        cw.Points(nothing, box=(0, 0, 100, 100))
    with pytest.raises(EmptyDataError, match="no clicks in table, and no jobs in the table of jobs"):
        cw.Points(nothing, jobs={"image": [], "worker": []}, box=(0, 0, 100, 100))
    with pytest.raises(
        ParameterError, match=r"no clicks from which the box of the images can be estimated\. Give box="
    ):
        cw.Points(nothing, jobs={"image": [3], "worker": ["a"]})
