"""Properties that hold for any table, tested with hypothesis."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import crowdwise as cw
from crowdwise.answers.columns import LABEL_ROLES

pytestmark = pytest.mark.filterwarnings("error")

MODELS = cw.models("labels")["name"].to_list()
names = st.sampled_from(MODELS)
# What spreadsheets, read_csv and terminals like to spoil.
SPOILT = [
    "NA", "nan", "None", "null", "001", "1e0", "0x7", "True", " a", "a ", '"', '""', "a,b", "a\nb", "a\r\nb", "\r", ";",
    "\t", "'", "=1+1", "-1", "#", "\x00", "a\x00b", "\ufeff", "😀", "e\u0301", "é", "\u202e", "\x1b[2J", "a|b", "\n",
]  # fmt: skip
texts = st.one_of(st.sampled_from(SPOILT), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8))


@st.composite
def tables(draw: Any, most: int = 40) -> pl.DataFrame:
    """Answers of up to 6 workers on up to 8 tasks with up to 4 labels, each pair of worker and task at most once."""
    pairs = draw(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 5)), min_size=1, max_size=most, unique=True))
    labels = draw(st.lists(st.integers(0, 3), min_size=len(pairs), max_size=len(pairs)))
    columns = {"task": [i for i, _ in pairs], "worker": [j for _, j in pairs], "label": labels}
    return pl.DataFrame(columns)


def same(one: cw.LabelsResult, two: cw.LabelsResult) -> bool:
    tables = ("labels", "workers", "tasks")
    return one.posterior.tobytes() == two.posterior.tobytes() and all(
        getattr(one, table).equals(getattr(two, table)) for table in tables
    )


# -------------------------------------------------------------------------------------------------- rows and workers


@given(tables(), names, st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_d1_d8_d15_shuffled_repeated_and_silent_rows_change_nothing(
    frame: pl.DataFrame, name: str, random: Any
) -> None:
    """The order of rows, repeated rows and a worker without labels change nothing."""
    plain, order = cw.aggregate(frame, name), list(range(frame.height))
    random.shuffle(order)
    assert same(plain, cw.aggregate(frame[order], name))
    twice = cw.Labels(pl.concat([frame, frame]))
    assert same(plain, cw.aggregate(twice, name))
    assert sum(d.count for d in twice.intake.dropped) == frame.height
    assert twice.intake.rows_read == twice.intake.rows_used + frame.height
    silent = pl.DataFrame({"task": frame["task"], "worker": [99] * frame.height, "label": [None] * frame.height})
    with_silent = cw.Labels(pl.concat([frame, silent.cast(frame.schema)]))
    assert same(plain, cw.aggregate(with_silent, name))
    assert [(d.reason, d.count) for d in with_silent.intake.dropped] == [("no label", frame.height)]
    assert 99 not in with_silent.workers


@given(tables(), names)
@settings(max_examples=30)
def test_d2_a_task_without_answers_gets_no_label(frame: pl.DataFrame, name: str) -> None:
    blank = pl.DataFrame({"task": [1000], "worker": [0], "label": [None]}).cast(frame.schema)
    one, two = cw.aggregate(frame, name), cw.aggregate(pl.concat([frame, blank]), name)
    row = two.labels.filter(pl.col("task") == 1000).row(0, named=True)
    assert (row["label"], row["probability"], row["votes"], row["status"]) == (None, None, 0, "no answers")
    assert one.labels.equals(two.labels.filter(pl.col("task") != 1000))


@given(tables(), st.integers(0, 3))
def test_d9_repeated_answers_follow_the_duplicates_rule(frame: pl.DataFrame, label: int) -> None:
    again = pl.concat([frame, frame.with_columns(label=pl.lit(label, pl.Int64))])
    clash = (frame["label"] != label).any()
    key = ["task", "worker"]
    for rule, kept in (("first", frame), ("last", frame.with_columns(label=pl.lit(label, pl.Int64)))):
        assert cw.Labels(again, duplicates=rule).frame().sort(key).equals(kept.sort(key))
    assert cw.Labels(again, duplicates="each").n_answers == again.height
    for rule in ("error", None):
        if clash:
            with pytest.raises(cw.errors.DuplicateError, match="duplicates='last', or first or each"):
                cw.Labels(again, duplicates=rule)
        else:
            assert cw.Labels(again, duplicates=rule).frame().sort(key).equals(frame.sort(key))


@given(tables(), st.randoms(use_true_random=False))
def test_d9_the_last_answer_is_the_last_by_time(frame: pl.DataFrame, random: Any) -> None:
    later = frame.with_columns(label=(pl.col("label") + 1) % 4)
    both = pl.concat([frame.with_columns(timestamp=pl.lit(10)), later.with_columns(timestamp=pl.lit(20))])
    order = list(range(both.height))
    random.shuffle(order)
    kept = cw.Labels(both[order]).frame()
    assert kept.select("task", "worker", "label").sort("task", "worker").equals(later.sort("task", "worker"))
    assert kept["timestamp"].unique().to_list() == [20]


# ------------------------------------------------------------------------------------------------------ what comes out


@given(tables(), names)
@settings(max_examples=60)
def test_any_result_is_sound(frame: pl.DataFrame, name: str) -> None:
    result = cw.aggregate(frame, name)
    posteriors_are_distributions(result)
    tables_keep_their_bounds(result)
    whoever_shares_no_task_has_no_skill(result, frame)  # D6
    a_tie_is_flagged_and_settled_by_prevalence(result)  # D14
    every_task_can_be_explained(result, frame)


def posteriors_are_distributions(result: cw.LabelsResult) -> None:
    assert np.isfinite(result.posterior).all()
    assert ((result.posterior >= 0) & (result.posterior <= 1 + 1e-12)).all()
    assert np.allclose(result.posterior.sum(1), 1)
    assert np.isclose(result.prevalence.sum(), 1)


def tables_keep_their_bounds(result: cw.LabelsResult) -> None:
    workers = result.workers.drop_nulls("skill")
    assert (workers["low"] <= workers["skill"]).all()
    assert (workers["skill"] <= workers["high"]).all()
    assert workers["low"].min() is None or (workers["low"].min() >= 0 and workers["high"].max() <= 1)
    assert result.tasks["entropy"].is_between(0, np.log2(max(result.answers.n_classes, 2)) + 1e-9).all()
    assert result.tasks["disagreement"].is_between(0, 1).all()
    assert result.labels["probability"].is_between(1 / result.answers.n_classes - 1e-6, 1 + 1e-12).all()


def whoever_shares_no_task_has_no_skill(result: cw.LabelsResult, frame: pl.DataFrame) -> None:
    shared = frame.filter(pl.col("worker").n_unique().over("task") > 1)["worker"].unique()
    for worker, skill, status in result.workers.select("worker", "skill", "status").iter_rows():
        assert (skill is not None) == (worker in shared)
        assert status == ("ok" if worker in shared else "not identifiable")


def a_tie_is_flagged_and_settled_by_prevalence(result: cw.LabelsResult) -> None:
    for i, (label, probability, tie) in enumerate(result.labels.select("label", "probability", "tie").iter_rows()):
        near = np.flatnonzero(result.posterior[i] >= probability - 1e-6)
        assert tie == (len(near) > 1)
        k = result.classes.to_list().index(label)
        assert k in near
        assert result.prevalence[k] >= result.prevalence[near].max() - 1e-12


def every_task_can_be_explained(result: cw.LabelsResult, frame: pl.DataFrame) -> None:
    for task, label in result.labels.select("task", "label").iter_rows():
        why = result.explain(task)
        assert why.label == label
        assert why.answers.height == (frame["task"] == task).sum()
        assert (why.rival is None) == (result.answers.n_classes == 1)
        assert np.isclose(why.prior + why.answers["log_odds"].sum(), why.total)


@given(tables(), st.sampled_from([n for n in MODELS if "vote" not in n]))
def test_the_objective_never_decreases_on_any_table(frame: pl.DataFrame, name: str) -> None:
    trace = cw.aggregate(frame, name, max_iter=40, tol=0.0).trace["objective"].to_numpy()
    assert np.isfinite(trace).all()
    assert np.diff(trace).min(initial=0) >= -1e-9 * max(abs(trace[-1]), 1)


@given(tables(), names, st.integers(0, 7))
def test_gold_is_obeyed_on_any_table(frame: pl.DataFrame, name: str, task: int) -> None:
    assume(task in frame["task"])
    result = cw.aggregate(cw.Labels(frame, gold={task: 7}), name)  # a label that no worker gave: D25
    row = result.labels.filter(pl.col("task") == task).row(0, named=True)
    assert (row["label"], row["probability"], row["status"]) == (7, 1.0, "known")
    assert 7 in result.classes
    assert any("no worker gave" in text for text in result.warnings)


@given(tables(), names)
@settings(max_examples=25)
def test_any_result_survives_save_and_load(tmp_path: Path, frame: pl.DataFrame, name: str) -> None:
    result = cw.aggregate(frame, name)
    again = cw.load(result.save(tmp_path))
    assert same(result, again)
    assert result.warnings == again.warnings


# ---------------------------------------------------------------------------------------------------- files and types


@st.composite
def text_tables(draw: Any) -> pl.DataFrame:
    rows = draw(st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=12, unique_by=lambda row: row[:2]))
    return pl.DataFrame(rows, schema=["task", "worker", "label"], orient="row")


def spoilt(text: str) -> pl.DataFrame:
    return pl.DataFrame({"task": [text], "worker": [text], "label": [text]})


def through(path: Path, frame: pl.DataFrame, **options: Any) -> pl.DataFrame:
    path.write_bytes(frame.write_csv(**options).encode())
    return cw.read(path).frame()


@given(text_tables())
@settings(max_examples=60)
@example(pl.DataFrame({"task": SPOILT, "worker": SPOILT, "label": SPOILT}))
def test_d11_d12_d24_any_text_survives_csv(tmp_path: Path, frame: pl.DataFrame) -> None:
    key = ["task", "worker"]
    assert through(tmp_path / "answers.csv", frame).sort(key).equals(frame.sort(key))


@pytest.mark.parametrize("text", SPOILT, ids=ascii)
def test_each_spoilt_text_survives_csv_alone(tmp_path: Path, text: str) -> None:
    assert through(tmp_path / "answers.csv", spoilt(text)).equals(spoilt(text))


@given(text_tables(), st.sampled_from([",", ";", "\t", "|"]), st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=60)
def test_f1_any_text_survives_any_delimiter_and_line_end(
    tmp_path: Path, frame: pl.DataFrame, delimiter: str, end: str
) -> None:
    read = through(tmp_path / "a.csv", frame, separator=delimiter, line_terminator=end, include_bom=end == "\r\n")
    assert read.sort("task", "worker").equals(frame.sort("task", "worker"))


@given(text_tables())
def test_any_text_survives_parquet_and_json_lines(tmp_path: Path, frame: pl.DataFrame) -> None:
    frame.write_parquet(tmp_path / "answers.parquet")
    frame.write_ndjson(tmp_path / "answers.jsonl")
    for name in ("answers.parquet", "answers.jsonl"):
        assert cw.read(tmp_path / name).frame().sort("task", "worker").equals(frame.sort("task", "worker"))


@given(text_tables(), names)
@settings(max_examples=25)
def test_labels_written_as_csv_are_the_labels(frame: pl.DataFrame, name: str) -> None:
    table = cw.aggregate(frame, name).labels
    again = pl.read_csv(io.BytesIO(table.write_csv().encode()), infer_schema=False)
    assert again["task"].to_list() == table["task"].to_list()
    assert again["label"].to_list() == table["label"].to_list()


IDS = {
    "whole": st.integers(-(2**63), 2**63 - 1),  # D12: beyond 2**53 all digits stay
    "real": st.floats(allow_nan=False, allow_infinity=False),
    "truth": st.booleans(),
    "text": st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5),
    "date": st.dates(),
}


@pytest.mark.parametrize("kind", IDS)
def test_d13_ids_of_any_type_come_back(kind: str) -> None:
    @given(st.lists(st.tuples(IDS[kind], IDS[kind], IDS[kind]), min_size=1, max_size=10, unique_by=lambda r: r[:2]))
    @settings(max_examples=25)
    def check(rows: list[Any]) -> None:
        tasks, workers, labels = (list(column) for column in zip(*rows, strict=True))
        answers = cw.Labels(tasks, workers, labels)
        back = answers.frame()
        assert sorted(back.rows()) == sorted(rows)
        assert {type(value) for row in back.rows() for value in row} == {type(tasks[0])}
        result = cw.aggregate(answers, "majority-vote")
        assert set(result.labels["label"].to_list()) <= set(labels)

    check()


@given(st.lists(st.sampled_from([1, "1", 1.0, True, "True", 2.5, None]), min_size=2, max_size=8))
def test_d10_mixed_objects_become_text_by_one_rule(values: list[Any]) -> None:
    assume(any(value is not None for value in values))
    assume(len({type(value) for value in values if value is not None}) > 1)
    answers = cw.Labels(list(range(len(values))), ["w"] * len(values), values)
    spoken = {1: "1", "1": "1", "True": "True", 2.5: "2.5"}  # 1.0 is the key 1
    expected = ["True" if value is True else spoken[value] for value in values if value is not None]
    assert answers.frame().sort("task")["label"].to_list() == expected
    assert any("mixes" in text for text in answers.intake.warnings)


@given(text_tables())
@settings(max_examples=25)
def test_wide_and_long_are_the_same_answers(frame: pl.DataFrame) -> None:
    called = frame["worker"].to_list()
    assume(all(LABEL_ROLES.guess(role, called) is None for role in LABEL_ROLES.names))  # a worker, not a "truth"
    wide = frame.pivot(on="worker", index="task", values="label")
    read = cw.Labels(wide, wide=True)
    assert read.frame().sort("task", "worker").equals(frame.sort("task", "worker"))
    assert read.intake.shape == "wide"
    assert read.intake.dropped == ()
