"""Input that looks odd and is right, as spreadsheets, DOS and other libraries give it: it is read, not refused."""

from __future__ import annotations

import uuid
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.answers.times import instants
from crowdwise.errors import ColumnError, FeatureError, FileError, ParameterError
from crowdwise.io.chunks import Source
from crowdwise.io.large import split_labels

ROWS = [("t1", "ann", "cat"), ("t2", "bob", "dog")]
READERS: dict[str, Any] = {
    "whole": lambda path: cw.read(path).frame().rows(),
    "in chunks": lambda path: [row for chunk in Source((path,)).chunks(16) for row in chunk.frame.rows()],
    "in parts": lambda path: in_parts(path),
}


def in_parts(path: Path) -> list[tuple[str, ...]]:
    stored = split_labels(Source((path,)), 500_000_000, None, {})
    return [row for part, _ in stored.parts() for row in part.frame().rows()]


LIKE_EXCEL = "sep=;\r\ntask;worker;label\r\nt1;ann;cat\r\nt2;bob;dog\r\n"
PLAIN = "task,worker,label\nt1,ann,cat\nt2,bob,dog\n"
FILES: dict[str, str | bytes] = {
    "a line that declares the delimiter": LIKE_EXCEL,
    "the same after a byte order mark": "\ufeff" + LIKE_EXCEL,
    "the same in UTF-16": LIKE_EXCEL.encode("utf-16"),
    "another delimiter": LIKE_EXCEL.replace(";", "\t"),
    "columns without names and values": PLAIN.replace("\n", ",,\n"),
    "columns whose names are blank": PLAIN.replace("\n", ", , \n"),
    "blanks at the end": PLAIN + "   ",
    "lines of blanks at the end": PLAIN + " \t\r\n\n  \n",
    "a line of blanks": PLAIN.replace("\nt2", "\n \t\nt2"),
    "the end of a file of DOS": PLAIN.replace("\n", "\r\n") + "\x1a",
    "the end of a file of DOS, and a line break": PLAIN.replace("dog", '"dog"') + "\x1a\r\n",
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("reader", READERS)
def test_f1_f3_what_spreadsheets_and_dos_add_to_a_table_is_no_row(reader: str, file: str, table: Any) -> None:
    assert READERS[reader](table(FILES[file])) == ROWS


WRONG: dict[str, tuple[str, type[Exception], str]] = {
    "a value without a name": (
        PLAIN.replace("\n", ",,\n").replace("dog,,", 'dog,,"x"'), ColumnError,
        "^answers.csv:3: 'x' in column 5, which has no name in the header. Name the column, or remove it",
    ),
    "a record beside a declared delimiter": (
        LIKE_EXCEL.replace(";dog", ""), FileError, "^answers.csv:4: 2 field.s., but the header has 3",
    ),
    "a mark of DOS within the file": (PLAIN.replace("t2", "\x1at2,"), FileError, "^answers.csv:3: 4 field"),
    "a word alone": (PLAIN + " x\n", FileError, "^answers.csv:4: 1 field"),
    "a name that is there twice, after a declared delimiter": (
        LIKE_EXCEL.replace("label", "task"), ColumnError, "^answers.csv:2: the header has 'task' more than once",
    ),
    "no header after a declared delimiter": (
        LIKE_EXCEL.replace("\r\n", "\r\n\r\n", 1), FileError, "^answers.csv:2: this line is empty; the names of the",
    ),
}  # fmt: skip


@pytest.mark.parametrize("file", WRONG)
@pytest.mark.parametrize("reader", READERS)
def test_f3_what_may_be_a_row_is_still_counted(reader: str, file: str, table: Any) -> None:
    text, kind, said = WRONG[file]
    with pytest.raises(kind, match=said):
        READERS[reader](table(text))


def test_f3_lines_of_blanks_are_counted_as_lines_and_kept_in_quotes(table: Any) -> None:
    path = table('task,worker,label\n  \nt1,ann,"a\n  \n\x1a\nb"\n\t\nt2,bob,\n')
    read = cw.read(path)
    assert read.frame().rows() == [("t1", "ann", "a\n  \n\x1a\nb")]
    assert read.intake.dropped[0].examples == ("answers.csv:8: t2, bob, (none)",)
    tabs = table("task\tworker\tlabel\nt1\tann\tcat\n\t\t\n")
    assert cw.read(tabs).intake.dropped[0].examples == ("answers.csv:3: (none), (none), (none)",)


def test_f3_a_parser_that_loses_a_row_of_such_a_table_is_noticed(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read = pl.read_csv
    monkeypatch.setattr(pl, "read_csv", lambda *given, **options: read(*given, **options).head(1))
    for text in (LIKE_EXCEL, PLAIN + "   \n", PLAIN + "\x1a"):
        with pytest.raises(FileError, match=r"csv:[34]: 2 rows in the file, but 1 were read"):
            cw.read(table(text))


TIMES = {
    "5/13/2024 9:03 PM": "13 21:03:00", "5/13/2024 9:03 AM": "13 09:03:00", "5/13/2024 12:00 AM": "13 00:00:00",
    "5/13/2024 12:30:05 pm": "13 12:30:05", "5/13/2024, 9:03:11\u202fPM": "13 21:03:11",
    "5/13/2024 11:59 p.m.": "13 23:59:00", "2024-05-13 9:03 PM": "13 21:03:00",
    "2024-05-13 9:03 PM PDT": "14 04:03:00", "Mon May 13 09:03:11 PM UTC 2024": "13 21:03:11",
    "5/13/2024 13:03 PM": None, "5/13/2024 0:10 AM": None, "5/13/2024 9:03 XM": None,
}  # fmt: skip


def test_d27_times_of_a_clock_of_twelve_hours_are_read() -> None:
    assert instants(pl.Series(list(TIMES))).dt.strftime("%d %H:%M:%S").to_list() == list(TIMES.values())


def test_d9_a_clock_of_twelve_hours_decides_which_answer_is_the_last(table: Any) -> None:
    rows = "1,a,x,5/13/2024 9:03 PM\n1,a,y,5/13/2024 12:10 AM\n1,a,z,5/13/2024 10:00 AM\n"
    read = cw.read(table("task,worker,label,timestamp\n" + rows), duplicates="last")
    assert read.frame()["label"].to_list() == ["x"]


IDS = [uuid.UUID(int=n) for n in range(3)]
OF_IDS = {"task": [IDS[0], IDS[0], IDS[1], IDS[2]], "worker": list("abab"), "label": list("xyxy")}


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame, lambda rows: pl.DataFrame(rows).to_dicts()])
def test_d12_ids_that_are_uuids_become_their_text(frame: Any) -> None:
    answers = cw.Labels(frame(OF_IDS), gold={IDS[2]: "y"})
    assert answers.tasks.to_list() == sorted(map(str, IDS))
    assert list(answers.gold) == [-1, -1, 1]
    assert not answers.intake.warnings
    result = cw.aggregate(answers, "majority-vote")
    assert result.explain(IDS[1]).total == result.explain(str(IDS[1])).total
    stream = cw.LabelStream("dawid-skene").update(answers)
    assert stream.decide(IDS[1]).probability == stream.decide(str(IDS[1])).probability


def test_d12_given_weights_name_workers_by_their_uuids(tmp_path: Path) -> None:
    frame = {"task": list("ssst"), "worker": [*IDS, IDS[0]], "label": list("xyyx")}
    result = cw.aggregate(frame, "weighted-vote", given=MappingProxyType({IDS[0]: np.float32(3), IDS[1]: 1}))
    assert result.labels["label"].to_list() == ["x", "x"]
    assert result.model.given == {str(IDS[0]): 3.0, str(IDS[1]): 1}
    result.save(tmp_path)
    assert cw.load(tmp_path).model == result.model
    with pytest.raises(ParameterError, match=r"^weighted-vote: given has the worker \('a', 1\); name it by one value$"):
        cw.WeightedVote(given={("a", 1): 1.0})


def test_numbers_of_numpy_are_hyperparameters(tmp_path: Path) -> None:
    model = cw.model("dawid-skene", max_iter=np.int64(50), tol=np.float32(1e-4), calibrate=np.bool_(False))
    assert (type(model.max_iter), type(model.tol), type(model.calibrate)) == (int, float, bool)
    assert model == cw.model("dawid-skene", max_iter=50, tol=float(np.float32(1e-4)), calibrate=False)
    result = cw.aggregate(OF_IDS, model)
    result.save(tmp_path / "saved")
    assert cw.load(tmp_path / "saved").model == model
    weights = cw.model("weighted-vote", given={np.str_("a"): np.float32(2), "b": np.int64(1)})
    assert weights.given == {"a": 2.0, "b": 1}
    assert cw.model("click-mixture", spread=(np.float32(4), np.int64(4))).spread == (4.0, 4)
    assert cw.learn.Refit(folds=np.int64(3)).folds == 3


@pytest.mark.parametrize("value", [np.int64(0), np.float64(2.5), np.float64("nan"), np.bool_(True), np.str_("x")])
def test_d30_numbers_of_numpy_follow_the_rules(value: Any) -> None:
    with pytest.raises(ParameterError, match=r"max_iter is .*; it must be a whole number of at least 1"):
        cw.model("dawid-skene", max_iter=value)


SIMULATED = {
    "crowd": lambda seed: cw.simulate.crowd(tasks=9, workers=4, per_task=2, seed=seed).answers.frame(),
    "experts": lambda seed: cw.simulate.experts(tasks=9, seed=seed).answers.frame(),
    "triangle": lambda seed: cw.simulate.triangle(9, tasks=9, fresh=0, seed=seed).answers.frame(),
    "levels": lambda seed: cw.simulate.levels([0, 1, 2] * 9, workers=9, seed=seed).answers.frame(),
    "pinwheel": lambda seed: cw.simulate.pinwheel(per_cluster=20, asked=50, seed=seed).pairs.frame(),
    "clicks": lambda seed: cw.simulate.clicks(total=40, seed=seed).points.frame(),
}


@pytest.mark.parametrize("name", SIMULATED)
def test_a_seed_is_a_whole_number_or_a_generator(name: str) -> None:
    simulate = SIMULATED[name]
    assert simulate(np.int64(3)).equals(simulate(3))
    one, same = (np.random.default_rng(3) for _ in range(2))
    first = simulate(one)
    assert first.equals(simulate(same))
    assert not first.equals(simulate(one)), "the generator moves on"
    for seed in (None, -1, 1.5, "x"):
        with pytest.raises(ParameterError, match=r"seed is .*; it must be a whole number"):
            simulate(seed)


def test_a_seed_that_is_recorded_is_a_whole_number() -> None:
    for seed in (None, np.random.default_rng(1)):
        with pytest.raises(ParameterError, match=r"seed is .*; it must be a whole number"):
            cw.Run(seed=seed)
        with pytest.raises(ParameterError, match=r"seed is .*; it must be a whole number"):
            cw.plan(0.9, accuracy=0.8, seed=seed)


COLUMNS: dict[str, tuple[pl.Series, list[float] | None]] = {
    "categories": (pl.Series(["1.5", "2", "nan"], dtype=pl.Categorical), [1.5, 2.0, float("nan")]),
    "texts of numbers": (pl.Series([" 1.5", "", "NA"]), [1.5, float("nan"), float("nan")]),
    "bytes": (pl.Series([b"1", b"2", b"3"]), None),
    "lists": (pl.Series([[1], [2], [3]]), None),
    "words in categories": (pl.Series(["a", "b", "c"], dtype=pl.Categorical), None),
}


@pytest.mark.parametrize("column", COLUMNS)
def test_features_of_any_type_are_numbers_or_refused_in_words(column: str, tmp_path: Path) -> None:
    values, wanted = COLUMNS[column]
    path = tmp_path / "features.parquet"
    pl.DataFrame({"task": ["1", "2", "3"], "f": values}).write_parquet(path)
    if wanted is None:
        with pytest.raises(FeatureError, match=r"features\.parquet: column 'f' has 3 value\(s\) that are not numbers"):
            cw.read_features(path)
    else:
        assert np.array_equal(cw.read_features(path).x[:, 0], wanted, equal_nan=True)


def test_f3_a_column_of_features_without_a_name_is_read_or_named(tmp_path: Path) -> None:
    path = tmp_path / "features.csv"
    path.write_text("task,,f\nt1,0.5,1\nt2,1.5,2\n")
    assert cw.read_features(path).x.tolist() == [[0.5, 1.0], [1.5, 2.0]]
    path.write_text("task,,f\nt1,a,1\nt2,b,2\n")
    with pytest.raises(FeatureError, match="column '' has 2 value"):
        cw.read_features(path)
