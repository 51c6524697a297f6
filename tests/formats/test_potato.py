"""Potato: options whose values are numbers, pages of surveys, spans in tables, and folders of Potato 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from golden_exports import left_out, rows_of

import crowdwise as cw
from crowdwise.errors import DataError

Options = dict[str, Any]


def folder(place: Path, **answers: list[tuple[str, dict[str, Options]]]) -> Path:
    """Write the instances that workers annotated: their ids, and the options of each question."""
    for worker, given in answers.items():
        (place / worker).mkdir(parents=True)
        records = ({"id": task, "label_annotations": schemas} for task, schemas in given)
        text = "".join(json.dumps(record) + "\n" for record in records)
        (place / worker / "annotated_instances.jsonl").write_text(text)
    return place


def told(place: Path, *given: Options) -> Path:
    """Write the options that a worker has given for one question, about as many instances."""
    return folder(place, ann=[(str(number), {"s": options}) for number, options in enumerate(given)])


@pytest.mark.parametrize(
    "values",
    [
        {"negative": "2", "positive": "1"},  # the keys of the keyboard
        {"negative": 2, "positive": 1},
        {"negative": "2", "positive": "positive"},
        {"negative": "s:::negative", "positive": "true"},
        {"negative": "0", "positive": "9"},  # of ten options
    ],
)
def test_a_chosen_option_may_have_any_value(values: Options, tmp_path: Path) -> None:
    options = ({name: value} for name, value in values.items())
    assert rows_of(cw.read(told(tmp_path, *options))) == [("0", "ann", "negative"), ("1", "ann", "positive")]


def test_the_value_of_a_chosen_option_may_change(tmp_path: Path) -> None:
    path = told(tmp_path, {"negative": "2"}, {"negative": "3"}, {"neutral": "2"})
    assert [row[-1] for row in rows_of(cw.read(path))] == ["negative", "negative", "neutral"]


def test_check_boxes_may_have_their_keys_as_values(tmp_path: Path) -> None:
    path = told(tmp_path, {"a": "1", "c": "3"}, {"b": "2"}, {"c": "3"})
    assert [row[-1] for row in rows_of(cw.read(path, sets="joined"))] == ["a | c", "b", "c"]


def test_check_boxes_may_say_1_and_0(tmp_path: Path) -> None:
    answers = cw.read(told(tmp_path, {"a": "1", "b": "0"}, {"a": "1", "b": "1"}, {"a": 0, "b": 0}), sets="joined")
    assert [row[-1] for row in rows_of(answers)] == ["a", "a | b"]
    assert left_out(answers) == {"empty": 1}


def test_ratings_of_several_items_are_several_questions(tmp_path: Path) -> None:
    path = told(tmp_path, {"clear": "1", "fluent": "3"}, {"clear": "2", "fluent": "3"}, {"clear": "1", "fluent": "1"})
    assert [row[-1] for row in rows_of(cw.read(path, question="s.clear"))] == ["1", "2", "1"]
    assert [row[-1] for row in rows_of(cw.read(path, question="s.fluent"))] == ["3", "3", "1"]


@pytest.mark.parametrize(
    ("options", "label"),
    [({"scale_3": "3"}, "3"), ({"10": "0"}, "10"), ({"slider": "37"}, "37"), ({"select-one": "A, b"}, "A, b")],
)
def test_scales_sliders_and_menus_hold_their_value(options: Options, label: str, tmp_path: Path) -> None:
    assert rows_of(cw.read(told(tmp_path, options))) == [("0", "ann", label)]


# ------------------------------------------------------------------------------------------------------------- pages


def test_pages_of_surveys_are_no_answers(tmp_path: Path) -> None:
    consent = ("consent.html", {"I agree": {"Yes": "I agree:::Yes"}, "and I am": {"old": "and I am:::old"}})
    path = folder(
        tmp_path, ann=[consent, ("1", {"sim": {"3": "sim:::3"}})], bob=[consent, ("1", {"sim": {"4": "sim:::4"}})]
    )
    answers = cw.read(path)
    assert rows_of(answers) == [("1", "ann", "3"), ("1", "bob", "4")]
    assert [(each.reason, each.count) for each in answers.intake.dropped] == [("no task", 2)]
    assert answers.tasks.to_list() == ["1"]


def test_instances_that_are_pages_are_kept(tmp_path: Path) -> None:
    about = {"kind": {"news": "true"}}
    for number, tasks in enumerate([("a.html", "b.html"), ("a.html", "2")]):
        answers = cw.read(folder(tmp_path / str(number), ann=[(task, about) for task in tasks]))
        assert sorted(answers.tasks) == sorted(tasks)


# ------------------------------------------------------------------------------------------------------------ tables

TABLE = (
    "user\tinstance_id\tdisplayed_text\tmood:::glad\tmood:::sad\tstars:::scale_4\twhy:::text_box\tspan_annotation:::x\n"
)


def test_columns_of_options_and_of_spans(tmp_path: Path) -> None:
    path = tmp_path / "annotated_instances.tsv"
    path.write_text(
        f"{TABLE}ann\t1\tt\ttrue\t\t4\tso so\t[]\nbob\t1\tt\t\tmood:::sad\t4\t\t[{{'start': 1}}]\n"
        "cyd\t1\tt\t\t2\t\t\t\n"
    )
    assert rows_of(cw.read(path, question="mood")) == [("1", "ann", "glad"), ("1", "bob", "sad"), ("1", "cyd", "sad")]
    assert rows_of(cw.read(path, question="stars")) == [("1", "ann", "4"), ("1", "bob", "4")]
    for question in ("why", "span_annotation"):
        with pytest.raises(DataError, match="has answers of the kind text"):
            cw.read(path, question=question)


def test_numbers_in_columns_of_options(tmp_path: Path) -> None:
    path = tmp_path / "annotations.csv"
    path.write_text("instance_id,user_id,mood.glad,mood.sad\n1,ann,1,\n1,bob,,2\n")
    assert rows_of(cw.read(path)) == [("1", "ann", "glad"), ("1", "bob", "sad")]


def test_a_folder_of_potato_1_has_a_table_of_the_same_answers(tmp_path: Path) -> None:
    folder(tmp_path, user=[("1", {"mood": {"glad": "true"}})])
    (tmp_path / "annotated_instances.tsv").write_text(f"{TABLE}user\t1\tt\ttrue\n")
    assert rows_of(cw.read(tmp_path)) == [("1", "user", "glad")]
