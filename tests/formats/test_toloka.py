"""Toloka: what a task is without ids, statuses, and aggregated results."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_exports import left_out, rows_of

import crowdwise as cw
from crowdwise.errors import FileError

HEADER = "INPUT:left\tINPUT:right\tOUTPUT:result\tASSIGNMENT:worker_id\tASSIGNMENT:status\n"


def pool(folder: Path, *rows: str, header: str = HEADER) -> Path:
    place = folder / "assignments.tsv"
    place.write_text(header + "".join(row.replace(",", "\t") + "\n" for row in rows))
    return place


def test_all_inputs_together_are_the_task_without_ids(tmp_path: Path) -> None:
    path = pool(tmp_path, "a,b,yes,w1,APPROVED", "a,c,no,w1,APPROVED", "a,,no,w1,APPROVED", ",a,yes,w1,APPROVED")
    answers = cw.read(path)
    assert rows_of(answers) == [
        (" | a", "w1", "yes"),
        ("a | ", "w1", "no"),
        ("a | b", "w1", "yes"),
        ("a | c", "w1", "no"),
    ]
    assert "INPUT:*" in answers.intake.columns["task"]
    assert rows_of(cw.read(path, task="INPUT:right"))[0] == ("a", "w1", "yes")


def test_one_input_is_the_task_as_it_is(tmp_path: Path) -> None:
    path = pool(tmp_path, "1.jpg,cat,w1", header="INPUT:image\tOUTPUT:result\tASSIGNMENT:worker_id\n")
    assert rows_of(cw.read(path)) == [("1.jpg", "w1", "cat")]


def test_a_row_without_inputs_has_no_task(tmp_path: Path) -> None:
    answers = cw.read(pool(tmp_path, "a,b,yes,w1,APPROVED", ",,no,w1,APPROVED"))
    assert rows_of(answers) == [("a | b", "w1", "yes")]
    assert answers.intake.rows_used == 1


def test_statuses_are_compared_without_case_and_an_empty_one_is_a_vote(tmp_path: Path) -> None:
    words = ("approved", " Submitted ", "", "Rejected", "skipped", "EXPIRED", "active")
    answers = cw.read(pool(tmp_path, *(f"a,b,yes,w{n},{word}" for n, word in enumerate(words))))
    assert [row[1] for row in rows_of(answers)] == ["w0", "w1", "w2"]
    assert left_out(answers) == {"rejected": 1, "skipped": 1, "expired": 1, "draft": 1}


def test_an_unknown_status_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"assignments\.tsv:3: ASSIGNMENT:status is 'BLOCKED'; it can be APPROVED, "):
        cw.read(pool(tmp_path, "a,b,yes,w1,APPROVED", "a,b,no,w2,BLOCKED"))


def test_aggregated_results_are_refused(tmp_path: Path) -> None:
    header = "INPUT:image\tOUTPUT:result\tCONFIDENCE:result\n"
    with pytest.raises(FileError, match=r"aggregated results of Toloka: there are no workers.*Download the"):
        cw.read(pool(tmp_path, "1.jpg,cat,93.5%", "2.jpg,dog,80%", header=header))
