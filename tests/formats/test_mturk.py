"""Mechanical Turk: several items per HIT, their tasks, statuses, and groups of radio buttons of crowd elements."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from golden_exports import left_out, rows_of

import crowdwise as cw
from crowdwise.errors import ColumnError, FileError


@pytest.fixture
def batch(tmp_path: Path) -> Any:
    """Write a batch: its columns besides those of every batch, and their cells for each assignment."""

    def write(columns: list[str], *assignments: list[Any], statuses: Any = ()) -> Path:
        rows = []
        for number, cells in enumerate(assignments):
            status = statuses[number] if statuses else "Approved"
            texts = [cell if isinstance(cell, str) else json.dumps([cell]) for cell in cells]
            rows.append([f"H{number // 2 + 1}", f"A{number}", "ann" if number % 2 == 0 else "bob", status, *texts])
        place = tmp_path / "batch.csv"
        with place.open("w", newline="") as file:
            csv.writer(file).writerows([["HITId", "AssignmentId", "WorkerId", "AssignmentStatus", *columns], *rows])
        return place

    return write


ITEMS = [("H1#1", "ann", "a"), ("H1#1", "bob", "a"), ("H1#2", "ann", "b"), ("H1#2", "bob", "c")]


@pytest.mark.parametrize(
    ("inputs", "answers", "question"),
    [
        (["Input.1_url", "Input.2_url"], ["Answer.1_label", "Answer.2_label"], "label"),
        (["Input.sum1text", "Input.sum2text"], ["Answer.sum1rank", "Answer.sum2rank"], "sumrank"),
        (["Input.q1_v2_text", "Input.q2_v2_text"], ["Answer.q1_answer", "Answer.q2_answer"], "q_answer"),
    ],
)
def test_numbers_of_items_may_stand_anywhere(inputs: list[str], answers: list[str], question: str, batch: Any) -> None:
    path = batch([*inputs, *answers], ["x", "y", "a", "b"], ["x", "y", "a", "c"])
    assert rows_of(cw.read(path)) == ITEMS
    assert f"question {question!r}" in cw.read(path).intake.notes


def test_numbers_without_inputs_are_questions(batch: Any) -> None:
    path = batch(["Input.url", "Answer.Q1", "Answer.Q2"], ["x", "a", "b"], ["x", "a", "c"])
    assert rows_of(cw.read(path, question="Q2")) == [("H1", "ann", "b"), ("H1", "bob", "c")]


@pytest.mark.parametrize("ending", ["", ".on"])
def test_true_and_false_of_numbered_items_are_no_check_boxes(ending: str, batch: Any) -> None:
    columns = ["Input.url.1", "Input.url.2", f"Answer.ok.1{ending}", f"Answer.ok.2{ending}"]
    path = batch(columns, ["x", "y", "true", "false"], ["x", "y", "true", "true"])
    answers = cw.read(path, question="ok")
    assert rows_of(answers) == [
        ("H1#1", "ann", "true"), ("H1#1", "bob", "true"), ("H1#2", "ann", "false"), ("H1#2", "bob", "true")
    ]  # fmt: skip


def test_crowd_elements_have_several_items_too(batch: Any) -> None:
    columns = ["Input.t1", "Input.t2", "Answer.taskAnswers"]
    path = batch(
        columns, ["x", "y", {"q1": "a", "q2": {"label": "b"}}], ["x", "y", {"q1": "a", "q2": {"label": "c"}}],
        ["z", "", {"q1": "a", "q2": ""}], ["z", "", {"q1": "", "q2": "d"}],
    )  # fmt: skip
    answers = cw.read(path)
    assert rows_of(answers) == [*ITEMS, ("H2#1", "ann", "a"), ("H2#2", "bob", "d")]
    assert left_out(answers) == {"empty": 1}  # by bob; H2 has no second item, so ann's answer to it is none


def test_other_answers_stand_beside_crowd_elements(batch: Any) -> None:
    path = batch(["Input.t", "Answer.taskAnswers", "Answer.why"], ["x", {"q": "a"}, "so"], ["x", {"q": "b"}, ""])
    assert rows_of(cw.read(path, question="q")) == [("H1", "ann", "a"), ("H1", "bob", "b")]
    assert rows_of(cw.read(path, question="why")) == [("H1", "ann", "so")]


# ------------------------------------------------------------------------------------------------------------- tasks


@pytest.fixture
def pages(batch: Any) -> Path:
    """Two HITs of two items, of which one is in both."""
    columns = ["Input.image_url1", "Input.image_url2", "Input.set", "Answer.label1", "Answer.label2", "Answer.mood"]
    return batch(  # type: ignore[no-any-return]
        columns, ["x", "y", "s", "a", "b", "glad"], ["x", "y", "s", "a", "c", "sad"], ["y", "", "s", "b", "", "glad"]
    )


@pytest.mark.parametrize("task", ["Input.image_url", "image_url"])
def test_the_items_of_hits_can_be_the_tasks(task: str, pages: Path) -> None:
    assert rows_of(cw.read(pages, task=task, question="label")) == [
        ("x", "ann", "a"), ("x", "bob", "a"), ("y", "ann", "b"), ("y", "bob", "c")
    ]  # fmt: skip
    assert rows_of(cw.read(pages, task=task, question="mood"))[0] == ("H1", "ann", "glad")


@pytest.mark.parametrize("task", ["Input.t", "t", "Input.t_"])
def test_the_items_of_crowd_elements_can_be_the_tasks(task: str, batch: Any) -> None:
    path = batch(["Input.t_1", "Input.t_2", "Answer.taskAnswers"], ["x", "y", {"q1": "a", "q2": "b"}])
    assert rows_of(cw.read(path, task=task)) == [("x", "ann", "a"), ("y", "ann", "b")]


def test_a_column_needs_no_prefix(pages: Path) -> None:
    assert cw.read(pages, task="set", question="mood").tasks.to_list() == ["s"]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("Input.image_url1", r"Input\.image_url1 shows one of the items .*: task='Input\.image_url'"),
        ("image_urls", r"no column 'image_urls' in batch\.csv; columns are HITId, .*, Answer\.mood\. Name another with "
         r"task='COLUMN'\."),
        ("Input.sets", r"Did you mean 'Input\.set'\?"),
    ],
)  # fmt: skip
def test_a_task_that_cannot_be_is_refused(task: str, message: str, pages: Path) -> None:
    with pytest.raises(ColumnError, match=message) as caught:
        cw.read(pages, task=task, question="label")
    assert "source_row" not in str(caught.value)


def test_tasks_of_items_need_answers_about_items(batch: Any) -> None:
    path = batch(["Input.url1", "Input.url2", "Answer.which"], ["x", "y", "1"])
    with pytest.raises(ColumnError, match=r"Input\.url1, Input\.url2 are numbered, but .*task='Input\.url1'"):
        cw.read(path, task="Input.url")


# ---------------------------------------------------------------------------------------------------------- statuses


def test_assignments_that_were_not_reviewed_count(batch: Any) -> None:
    statuses = ["Approved", "Submitted", "", "Rejected"]
    path = batch(["Answer.q"], ["a"], ["a"], ["b"], ["b"], statuses=statuses)
    answers = cw.read(path)
    assert rows_of(answers) == [("H1", "ann", "a"), ("H1", "bob", "a"), ("H2", "ann", "b")]
    assert left_out(answers) == {"rejected": 1}


def test_a_status_that_mechanical_turk_does_not_have_is_refused(batch: Any) -> None:
    path = batch(["Answer.q"], ["a"], ["a"], statuses=["Approved", "Returned"])
    with pytest.raises(FileError, match=r"batch\.csv:3: AssignmentStatus is 'Returned'; it can be Approved"):
        cw.read(path)


# ------------------------------------------------------------------------------------------ groups of radio buttons


def elements(batch: Any, *forms: Any) -> Path:
    return batch(["Answer.taskAnswers"], *([form] for form in forms))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"yes": {"on": True}, "no": {"on": False}}, {"yes": {"on": False}, "no": {"on": True}}),
        ({"yes": {"yes": True}, "no": {"no": False}}, {"yes": {"yes": False}, "no": {"no": True}}),
        ({"b1": {"yes": True}, "b2": {"no": False}}, {"b1": {"yes": False}, "b2": {"no": True}}),
        ({"yes": {"v": True}, "no": {"v": False}}, {"yes": {"v": False}, "no": {"v": True}}),
    ],
)
def test_radio_buttons_are_one_question(first: Any, second: Any, batch: Any) -> None:
    answers = cw.read(elements(batch, first, second))
    assert rows_of(answers) == [("H1", "ann", "yes"), ("H1", "bob", "no")]
    assert "question 'crowd-radio-group'" in answers.intake.notes


def test_check_boxes_that_are_ticked_together_are_questions_of_their_own(batch: Any) -> None:
    blurry, dark = {"on": True}, {"Dark": True}
    path = elements(batch, {"blurry": blurry, "dark": dark}, {"blurry": {"on": False}, "dark": {"Dark": False}})
    blurred, dim = (cw.read(path, question=name) for name in ("blurry", "dark"))
    assert rows_of(blurred) == [("H1", "ann", "true"), ("H1", "bob", "false")]
    assert (rows_of(dim), left_out(dim)) == ([("H1", "ann", "Dark")], {"empty": 1})


def test_numbered_check_boxes_are_items(batch: Any) -> None:
    form = {"q1": {"on": True}, "q2": {"on": False}}
    path = batch(["Input.t1", "Input.t2", "Answer.taskAnswers"], ["x", "y", form])
    assert rows_of(cw.read(path)) == [("H1#1", "ann", "true"), ("H1#2", "ann", "false")]
