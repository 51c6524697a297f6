"""Prodigy: corrections of boxes, records without spans, and what is written for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from golden_exports import left_out, rows_of

import crowdwise as cw
from crowdwise.errors import EmptyDataError, FileError
from crowdwise.io.estimates import Estimate, Estimates
from crowdwise.io.formats import all_formats
from crowdwise.io.formats.prodigy import _hash


def record(number: int, worker: str, answer: str = "accept", **more: Any) -> dict[str, Any]:
    hashes = {"_input_hash": number, "_task_hash": -number}
    return {"text": f"text {number}", **hashes, "answer": answer, "_annotator_id": worker, **more}


def boxes(number: int, worker: str, *corners: float, **more: Any) -> dict[str, Any]:
    spans = [{"x": x, "y": 10, "width": 10, "height": 10, "label": "cat"} for x in corners]
    return record(number, worker, image="a.jpg", width=100, height=100, spans=spans, **more)


def choice(number: int, worker: str, answer: str = "accept", *accept: str, **more: Any) -> dict[str, Any]:
    options = [{"id": "A", "text": "a"}, {"id": "B", "text": "b"}]
    return record(number, worker, answer, options=options, accept=list(accept), **more)


def written(folder: Path, *records: dict[str, Any], name: str = "records.jsonl") -> Path:
    (folder / name).write_text("\n".join(map(json.dumps, records)))
    return folder / name


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# -------------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize("times", [(1, 2), (1, 1), (2, 1), (None, None)])
def test_boxes_of_a_correction_replace_the_earlier_ones(times: tuple[int | None, int | None], tmp_path: Path) -> None:
    first, second = (boxes(1, "bob", x, _timestamp=time) for x, time in zip((10, 50), times, strict=True))
    answers = cw.read(written(tmp_path, first, second, boxes(1, "ann", 50, 70, _timestamp=1)))
    last = 15.0 if times == (2, 1) else 55.0
    assert rows_of(answers) == [("1", "ann", 55.0, 15.0), ("1", "ann", 75.0, 15.0), ("1", "bob", last, 15.0)]
    assert left_out(answers) == {"repeated": 1}


def test_a_correction_may_have_no_box(tmp_path: Path) -> None:
    answers = cw.read(written(tmp_path, boxes(1, "bob", 10), boxes(1, "bob"), boxes(1, "ann", 10)))
    assert rows_of(answers) == [("1", "ann", 15.0, 15.0)]
    assert answers.n_jobs == 2


def test_records_without_spans_are_answers_without_a_span(tmp_path: Path) -> None:
    bare = record(1, "ann", image="a.jpg", width=100, height=100)
    rejected = record(2, "ann", "reject", image="b.jpg", width=100, height=100)
    answers = cw.read(written(tmp_path, bare, rejected, boxes(1, "bob", 10)))
    assert rows_of(answers) == [("1", "bob", 15.0, 15.0)]
    assert answers.n_jobs == 2
    assert left_out(answers) == {"empty": 1}


def test_records_without_spans_in_a_file_of_text(tmp_path: Path) -> None:
    spans = [{"start": 0, "end": 1, "label": "X"}]
    with pytest.raises(EmptyDataError, match=r"it has 'spans' \(text, 2 answers\)"):
        cw.read(written(tmp_path, record(1, "ann", spans=spans), record(1, "bob")))


def test_records_without_a_label_may_be_yes_or_no(tmp_path: Path) -> None:
    answers = cw.read(written(tmp_path, record(1, "ann"), record(1, "bob", "reject")))
    assert rows_of(answers) == [("-1", "ann", "accept"), ("-1", "bob", "reject")]


# ----------------------------------------------------------------------------------------------------- giving back


def test_rejected_records_come_back_as_rejected(tmp_path: Path) -> None:
    path = written(tmp_path, *(choice(1, each, "reject") for each in ("ann", "bob")), choice(2, "ann", "accept", "A"))
    result = cw.aggregate(cw.read(path), "majority-vote")
    back = {each["text"]: each for each in lines(cw.export(result, "prodigy", tmp_path / "back").estimates)}
    assert (back["text 1"]["answer"], back["text 1"]["accept"]) == ("reject", [])
    assert (back["text 2"]["answer"], back["text 2"]["accept"]) == ("accept", ["A"])
    again = lines(cw.convert(path, tmp_path / "again.jsonl", "prodigy").path)
    assert [(each["answer"], each["accept"]) for each in again] == [("reject", []), ("reject", []), ("accept", ["A"])]
    assert {each["id"] for each in again[0]["options"]} == {"A"}
    assert rows_of(cw.read(tmp_path / "again.jsonl")) == rows_of(cw.read(path))


def test_reject_may_be_an_option(tmp_path: Path) -> None:
    votes = {"task": ["1", "2"], "worker": ["ann", "ann"], "label": ["reject", "keep"]}
    made = lines(cw.convert(votes, tmp_path / "choices.jsonl", "prodigy").path)
    assert [(each["answer"], each["accept"]) for each in made] == [("accept", ["reject"]), ("accept", ["keep"])]
    assert [each["id"] for each in made[0]["options"]] == ["keep", "reject"]


def given_back(record: dict[str, Any], estimate: Any) -> list[Any]:
    found = Estimates({"1": estimate}, "choice", "labels", "crowdwise", None)
    return list(all_formats()["prodigy"].give_back(found, lambda: iter([record])))


def test_a_set_that_is_known_to_be_empty_is_written() -> None:
    [made] = given_back(choice(1, "ann"), Estimate((), 0.9, is_set=True))
    assert (made["answer"], made["accept"]) == ("accept", [])
    assert given_back(choice(1, "ann"), Estimate((), 0.9)) == []


def test_meta_is_kept() -> None:
    [made] = given_back(choice(1, "ann", meta={"source": "GitHub"}), Estimate(("A",), 0.9))
    assert made["meta"] == {"source": "GitHub", "score": 0.9}


@pytest.mark.parametrize("damaged", [{"text": "x"}, choice(1, "ann", meta=5), record(1, "ann", options=[5])])
def test_an_original_that_is_damaged_is_refused(damaged: dict[str, Any]) -> None:
    with pytest.raises(FileError, match="record 1 of the original export is not as Prodigy writes it"):
        given_back(damaged, Estimate(("A",), 0.9))


# -------------------------------------------------------------------------------------------------------- convert


def test_ids_are_hashes_of_31_bits_unless_they_are_integers(tmp_path: Path) -> None:
    ids = ["7", "-7", "007", "a.png", "0", "-0"]
    votes = {"task": ids, "worker": ["ann"] * len(ids), "label": ["x"] * len(ids)}
    path = cw.convert(votes, tmp_path / "choices.jsonl", "prodigy").path
    made = {each["text"]: each for each in lines(path)}
    assert {task: each["meta"]["task"] for task, each in made.items()} == {task: task for task in ids}
    hashes = [made[task]["_input_hash"] for task in ids]
    assert hashes == [made[task]["_task_hash"] for task in ids] == [7, -7, *map(_hash, ids[2:4]), 0, _hash("-0")]
    assert all(isinstance(each, int) and -(2**31) <= each < 2**31 for each in hashes)
    assert 0 <= _hash("9" * 5000) < 2**31
    assert sorted(row[0] for row in rows_of(cw.read(path, task="text"))) == sorted(ids)
    assert sorted(row[0] for row in rows_of(cw.read(path))) == sorted(map(str, hashes))


def test_labels_that_are_only_in_sets_are_options(tmp_path: Path) -> None:
    records = [choice(1, "ann", "accept", "A", "B"), choice(2, "ann", "accept", "A")]
    made = lines(cw.convert(written(tmp_path, *records), tmp_path / "choices.jsonl", "prodigy").path)
    assert [each["id"] for each in made[0]["options"]] == ["A", "B"]
    assert [each["accept"] for each in made] == [["A", "B"], ["A"]]
