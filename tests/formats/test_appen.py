"""Appen: jobs without test questions, whose answers are known by their values."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_exports import left_out, rows_of

import crowdwise as cw
from crowdwise.errors import DataError, FileError

HEADER = "_unit_id,_worker_id,_golden,_tainted,status,why,text\n"


def report(folder: Path, *rows: str, header: str = HEADER) -> Path:
    place = folder / "f12.csv"
    place.write_text(header + "".join(f"{row}\n" for row in rows))
    return place


def test_columns_in_which_workers_differ_are_questions(tmp_path: Path) -> None:
    """One of them has the name of a column that the reader makes; the text is an input."""
    rows = (
        "1,w1,false,false,cat,,a",
        "1,w2,false,false,dog,fur,a",
        "2,w1,false,false,cat,,b",
        "2,w3,FALSE,TRUE,dog,,b",
    )
    path = report(tmp_path, *rows)
    with pytest.raises(
        DataError, match=r"several questions: 'status' \(labels, 3 answers\); 'why' \(labels, 1 answer\)"
    ):
        cw.read(path)
    answers = cw.read(path, question="status")
    assert rows_of(answers) == [("1", "w1", "cat"), ("1", "w2", "dog"), ("2", "w1", "cat")]
    assert left_out(answers) == {"rejected": 1}


def test_a_column_with_known_answers_beside_it_is_the_only_question(tmp_path: Path) -> None:
    header = "_unit_id,_worker_id,mood,mood_gold,why\n"
    path = report(tmp_path, "1,w1,sad,,x", "1,w2,glad,,y", "2,w1,glad,glad,z", header=header)
    assert rows_of(cw.read(path)) == [("1", "w1", "sad"), ("1", "w2", "glad"), ("2", "w1", "glad")]


def test_answers_are_found_in_units_that_are_far_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdwise.io.parts.PART_BYTES", 100)
    rows = [f"{n},w1,false,false,cat,,text {n}" for n in range(50)]
    path = report(tmp_path, *rows, "0,w2,false,false,dog,,text 0")
    assert rows_of(cw.read(path))[:2] == [("0", "w1", "cat"), ("0", "w2", "dog")]


def test_a_report_without_differing_answers_is_refused_with_advice(tmp_path: Path) -> None:
    path = report(tmp_path, "1,w1,false,false,cat,,a", "1,w2,true,false,cat,,a")
    with pytest.raises(FileError) as caught:
        cw.read(path)
    advice = "format='csv', and name the columns: task='_unit_id', worker='_worker_id', label='COLUMN'"
    assert advice in str(caught.value)
    answers = cw.read(path, format="csv", task="_unit_id", worker="_worker_id", label="status")
    assert answers.n_gold == 0  # true and false of _golden are no labels
    assert answers.frame()["is_check"].to_list() == ["false", "true"]
    with pytest.raises(FileError, match="looks like a report of Appen"):
        cw.read(report(tmp_path, "1,w1,a", header="_unit_id,_worker_id,text\n"))
