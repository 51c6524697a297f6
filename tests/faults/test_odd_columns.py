"""Frames and sequences with odd columns: what is said of them, and what comes back."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import crowdwise as cw
from crowdwise.errors import ColumnError, DataError, DuplicateError, MemoryNeedError, ParameterError


def labels(**columns: Any) -> cw.Labels:
    """Labels of which some columns are given."""
    return cw.Labels({"task": [1, 2, 3], "worker": ["a", "b", "c"], "label": ["x", "y", "x"]} | columns)


REFUSED = {
    "a text": ("abc", r"column 'label' is 'abc', a str; give a list or an array with one value per row"),
    "a set": ({"a", "b", "c"}, r"column 'label' is \{.*\}, a set; give a list or an array"),
    "a number": (5, r"column 'label' is 5, a int; give a list or an array with one value per row"),
    "two dimensions": (np.zeros((3, 2)), r"label has shape \(3, 2\); give a 1D array with one value per answer"),
    "a frame": (pd.DataFrame({"a": [1, 2, 3]}), r"label has shape \(3, 1\)"),
    "complex": (np.array([1j, 2, 3]), r"has np.complex128\(1j\) in row 1, a complex128"),
    "a surrogate": (["a", "\ud800", "b"], r"column 'label' has a text with the lone surrogate '\\ud800' in row 2"),
    "a surrogate among others": (["a", 1, "\udfff"], r"column 'label' has a text with the lone surrogate .* in row 3"),
    "an infinite decimal": ([Decimal("Infinity"), 1, "a"], r"has Decimal\('Infinity'\) in row 1, a Decimal; each cell"),
    "bytes": ([b"a", b"\xff", b"b"], r"column 'label' of bytes cannot be read: .*invalid utf8"),
    "too far a time": (np.array([0, 2**60, 1], "datetime64[s]"), r"has the time .* in row 2, which is too far"),
    "beyond the calendar": (
        pl.Series([0, 2**60, 1], dtype=pl.Datetime("ms")),
        r"column 'label' has a time in row 2 that is beyond the calendar \(years 1 to 9999\)",
    ),
    "beyond the calendar by a microsecond": (
        pl.Series([0, 1, 253_402_300_800_000_000], dtype=pl.Datetime("us")), "in row 3 that is beyond the calendar",
    ),
    "beyond the calendar of another zone": (
        pl.Series([0, 1, 253_402_300_799_000], dtype=pl.Datetime("ms", "UTC")), "in row 3 that is beyond the calendar",
    ),
    "an unknown zone": (pa.array([0, 1, 2], pa.timestamp("s", "No/Where")), "column 'label' cannot be read: "),
    "objects": ([object(), "a", "b"], r"has <object .* in row 1, a object; each cell must hold one"),
    "lists": ([["a"], ["b"], ["c"]], r"label column 'label' of table has \['a'\] in row 1"),
    "maps": (pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int64())), r"each cell must hold one plain value"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_d10_a_column_that_cannot_be_read_is_named(name: str) -> None:
    values, said = REFUSED[name]
    with pytest.raises(DataError, match=said):
        labels(label=values)


KEPT = {
    "integers of 40 digits": ([10**40, 1, 10**40 + 1], ["1", str(10**40), str(10**40 + 1)]),
    "integers beyond 64 bits": ([2**64, 1, 2**64 + 1], [1, 2**64, 2**64 + 1]),
    "decimals": ([Decimal("1.50"), Decimal(2), Decimal("1.50")], [Decimal("1.50"), Decimal("2.00")]),
    "years": (np.array([0, 1, 0], "datetime64[Y]"), [dt.date(1970, 1, 1), dt.date(1971, 1, 1)]),
    "nanoseconds": (
        np.array([1, 2, 1], "datetime64[ns]"), ["1970-01-01 00:00:00.000000001", "1970-01-01 00:00:00.000000002"],
    ),
    "bytes": ([b"b", b"a", b"b"], ["a", "b"]),
    "dictionary": (pa.array(["b", "a", "b"]).dictionary_encode(), ["a", "b"]),
    "mixed categories": (pd.Categorical([1, "a", 1], categories=[1, "a"]), ["1", "a"]),
    "decimals of 256 bits": (pa.array([Decimal(n) for n in (1, 2, 1)], pa.decimal256(60, 0)), [Decimal(1), Decimal(2)]),
    "an extension": (
        pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "a", "b"), pa.array(["b", "a", "b"])), ["a", "b"],
    ),
    "NUL": (["a\0b", "a", "a\0b"], ["a", "a\0b"]),
    "union": (
        pa.UnionArray.from_sparse(pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 1]), pa.array(["a", "b", "c"])]),
        ["1", "b"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_d10_odd_columns_of_plain_values_are_kept(name: str, tmp_path: Path) -> None:
    values, classes = KEPT[name]
    answers = labels(label=values)
    assert answers.classes.to_list() == classes
    result = cw.aggregate(answers, "majority-vote")
    assert cw.load(result.save(tmp_path / "a.crowdwise")).classes.to_list() == classes
    assert len(result.to_pandas()["labels"]) == 3


def test_d1_missing_values_of_other_libraries_are_missing_answers() -> None:
    for values in (
        pd.array([1, None, 2], dtype="Int64"),
        pd.array(["a", None, "b"], dtype="string"),
        [Decimal(1), Decimal("NaN"), None],
        np.ma.array([1, 2, 3], mask=[0, 1, 0]),
        np.array(["2026", "NaT", "2027"], "datetime64[Y]"),
        pd.Series(["a", pd.NA, "b"]),
    ):  # fmt: skip
        answers = labels(label=values)
        assert answers.intake.rows_used + sum(each.count for each in answers.intake.dropped) == 3
        assert 0 < answers.intake.rows_used < 3


def test_the_first_and_the_last_time_of_the_calendar_are_read() -> None:
    """Other programs write them for no time at all."""
    times = [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)]
    assert labels(seen=times).extras["seen"].to_list() == times
    assert labels(seen=[each.date() for each in times]).extras["seen"].to_list() == [each.date() for each in times]


def test_a_path_is_text_or_what_the_system_takes_for_one(tmp_path: Path) -> None:
    class Place:
        def __init__(self, path: Any) -> None:
            self.path = path

        def __fspath__(self) -> Any:
            return self.path

    result = cw.aggregate(labels())
    assert result.save(Place(str(tmp_path / "a.crowdwise"))) == tmp_path / "a.crowdwise"
    assert cw.load(tmp_path / "a.crowdwise").labels.equals(result.labels)
    for odd in (Place(b"a"), Place(5), b"a"):
        with pytest.raises(ParameterError, match="it must be the name of a file"):
            result.save(odd)


def test_missing_labels_are_listed_as_text_or_numbers() -> None:
    for values, missing in (
        ([-1, 1, 2], [-1]), ([-1, 1, 2], ["-1"]), (["-1", "a", "b"], [-1]), ([-1.0, 1.5, 2.5], [-1]),
        ([-1.0, 1.5, 2.5], "-1.0"),
        ([-1, "a", 2.5], ("-1", None)), (["NA", "a", "b"], "NA"),
    ):  # fmt: skip
        answers = labels(label=values)
        assert answers.n_classes == 3
        assert cw.Labels(answers.frame(), missing=missing).n_classes == 2
    with pytest.raises(ParameterError, match="missing is 5; it must be a list of texts"):
        cw.Labels(answers.frame(), missing=5)


def test_names_may_be_in_a_set_or_an_array() -> None:
    table = {"task": [1, 2, 3], "worker": [1, 1, 1], "label": [-1, 1, 2], "note": [1, 2, 3]}
    for missing in ({-1}, frozenset(["-1"]), np.array([-1]), np.array(["-1"]), pd.Index([-1]), pl.Series([-1])):
        answers = cw.Labels(table, missing=missing, ignore={"note"})
        assert (answers.n_classes, answers.intake.extras) == (2, ())
        assert answers.intake.options["missing"] in ([-1], ["-1"])
    assert cw.Labels(table, missing={"b", "-1", "a"}).intake.options["missing"] == ["-1", "a", "b"]
    for nothing in ({-1: "a"}, b"a"):
        with pytest.raises(ParameterError, match=r"missing is .*; it must be a list of texts"):
            cw.Labels(table, missing=nothing)


def test_a_frame_with_a_column_twice_is_refused_in_words() -> None:
    twice = pa.table([[1], [2], ["a"], ["x"]], names=["task", "task", "worker", "label"])
    for frame in (
        twice,
        pd.DataFrame([[1, 2, "a", "x"]], columns=["task", "task", "worker", "label"]),
        {1: [1], "1": [2]},
    ):
        with pytest.raises(ColumnError, match=r"more than one column '(task|1)'; rename one"):
            cw.Labels(frame)


def test_a_frame_that_fails_when_it_is_made_is_refused_in_words() -> None:
    frame = pl.LazyFrame({"task": [1]}).select(pl.col("nothing"))
    with pytest.raises(DataError, match=r"the lazy frame cannot be read: ColumnNotFoundError: .*nothing"):
        cw.Labels(frame)
    with pytest.raises(DataError, match="record 2 is a int, not a mapping of columns"):
        cw.Labels([{"task": 1, "worker": "a", "label": "x"}, 5])


def test_arguments_of_other_types_are_refused_by_name() -> None:
    result = cw.aggregate({"task": [1, 1], "worker": ["a", "b"], "label": ["x", "y"]}, "majority-vote")
    for call, said in (
        (lambda: result.save("a\0b"), r"path is 'a\\x00b'; it must be the name of a file"),
        (lambda: result.report(5), "path is 5; it must be the name of a file"),
        (lambda: cw.load(5), "expected a file name, got int"),
        (lambda: cw.read("a\0b"), r"path is 'a\\x00b'; it must be the name of a file"),
        (lambda: cw.read({"task": [1]}, kind=b"x"), "kind is b'x'; it must be text or a list of texts or None"),
        (lambda: cw.aggregate(result.answers, 5), "model is 5; give a name, a model class or a model"),
        (lambda: cw.Run(seed=2**70), "seed is a whole number beyond 64 bits; it must be a whole number"),
        (lambda: cw.Run(threads="2"), "threads is '2'; it must be a whole number"),
        (lambda: cw.Run(seed=True), "seed is True; it must be a whole number"),
        (lambda: cw.Run(watch=5), "watch is 5; it must be a function or None"),
        (lambda: cw.next_answers(result, 1.5), "budget is 1.5; it must be a whole number"),
        (lambda: cw.next_answers(result, "many"), "budget is 'many'; it must be a whole number"),
        (lambda: cw.DawidSkene(tol=10**400), "tol is 1.*; it must be a number"),
        (lambda: cw.compare(result.answers, 5), "models is 5; .*a list"),
        (lambda: cw.compare(result.answers, [5]), "models .*5"),
        (lambda: cw.simulate.crowd(tasks="many"), "tasks is 'many'; it must be a whole number"),
        (lambda: cw.simulate.crowd(seed=-1), "seed is -1; it must be a whole number of at least 0"),
        (lambda: cw.simulate.crowd(prevalence=[1]), r"prevalence is \[1\]; give 3 numbers of at least 0"),
        (lambda: cw.simulate.crowd(accuracy=2), "accuracy is 2; it must be from 0 to 1"),
        (lambda: cw.simulate.crowd(load="x"), "load is 'x'; it can be 'even' or 'skewed'"),
        (lambda: result.report("x", cost=5), r"cost is 5; give crowdwise.cost_curve\(result\)"),
        (lambda: result.report("x", comparison=5), r"comparison is 5; give the frame of crowdwise.compare"),
        (lambda: cw.read({"task": [1]}, memory=float("inf")), "memory"),
    ):  # fmt: skip
        with pytest.raises((ParameterError, DataError), match=said):
            call()


def test_other_columns_of_clicks_are_such_as_a_table_can_hold(tmp_path: Path) -> None:
    table = {"image": ["a", "a"], "worker": ["u", "v"], "x": [1.0, 2.0], "y": [1.0, 2.0]}
    others = {"tags": [["a"], ["b", "c"]], "raw": [b"a", b"\xff"], "seconds": [dt.timedelta(seconds=1), None]}
    clicks = cw.aggregate(pl.DataFrame(table | others), "dbscan").clicks
    assert clicks.select("tags", "seconds").rows() == [("['a']", 1.0), ("['b', 'c']", None)]
    clicks.write_csv(tmp_path / "clicks.csv")


def test_a_crowd_that_does_not_fit_in_memory_is_refused_in_words() -> None:
    for simulate in (
        lambda: cw.simulate.crowd(tasks=10**15),
        lambda: cw.simulate.clicks(total=10**15),
        lambda: cw.simulate.pinwheel(per_cluster=10**15),
        lambda: cw.simulate.experts(10**15),
        lambda: cw.simulate.triangle(tasks=10**15),
    ):
        with pytest.raises(
            MemoryNeedError, match=r"[\d,]+ \w+ need about [\d,.]+ GB, but [\d,.]+ GB are free. Simulate"
        ):
            simulate()


@pytest.mark.parametrize("kind", [pl.Decimal(38, 2), pl.Int128, pl.UInt128, pl.Float32, pl.UInt64])
def test_d9_times_are_numbers_of_any_type(kind: Any) -> None:
    times = pl.Series([20, 10, 10]).cast(kind)
    frame = pl.DataFrame({"task": "t", "worker": ["w", "w", "v"], "label": ["late", "early", "x"], "timestamp": times})
    kept = cw.Labels(frame).frame()
    assert kept.filter(kept["worker"] == "w")["label"].to_list() == ["late"]
    with pytest.raises(DuplicateError, match="times are equal"):
        cw.Labels(frame.with_columns(worker=pl.lit("w")).tail(2))
    stream = cw.LabelStream().update(frame)
    assert stream.result().answers.frame().filter(pl.col("worker") == "w")["label"].to_list() == ["late"]
