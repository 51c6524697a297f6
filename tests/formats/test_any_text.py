"""Whatever ids and labels are written into an export come back exactly."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_exports import left_out, rows_of
from hypothesis import given
from hypothesis import strategies as st

import crowdwise as cw

# What tables and parsers like to change: leading zeros, numbers, true, null, spaces, quotes, delimiters, line breaks.
TEXTS = st.one_of(
    st.sampled_from(["007", "1e3", "1.0", "NA", "nan", "null", "None", "true", "False", "0", "-1", "0x7", " ", " a "]),
    st.sampled_from(
        ["a,b", 'say "so"', "two\nlines", "a\tb", "a;b", "a|b", "=1+1", "🙂", "é", "e\u0301", "\u202eabc", "'"]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r"), min_size=1, max_size=12),
)
# An id of an answer, and a label of it; each worker answers a task once.
ANSWERS = st.dictionaries(st.tuples(TEXTS, TEXTS), TEXTS, min_size=1, max_size=8)


def wanted(given_answers: dict[tuple[str, str], str]) -> list[tuple[str, str, str]]:
    return sorted((task, worker, label) for (task, worker), label in given_answers.items())


@given(answers=ANSWERS, skipped=st.integers(0, 3))
def test_any_text_survives_the_json_of_label_studio(
    answers: dict[tuple[str, str], str], skipped: int, tmp_path: Path
) -> None:
    def annotation(worker: str, label: str) -> dict[str, Any]:
        result = [{"from_name": "mood", "type": "choices", "value": {"choices": [label]}}]
        return {"completed_by": {"email": worker}, "result": result}

    tasks: dict[str, list[Any]] = {}
    for (task, worker), label in answers.items():
        tasks.setdefault(task, []).append(annotation(worker, label))
    next(iter(tasks.values())).extend([{"completed_by": 1, "was_cancelled": True, "result": []}] * skipped)
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps([{"id": task, "data": {}, "annotations": each} for task, each in tasks.items()]))
    found = cw.read(path, keep="personal")
    assert rows_of(found) == wanted(answers)
    assert left_out(found) == ({"skipped": skipped} if skipped else {})


@given(answers=ANSWERS, rejected=st.lists(TEXTS, max_size=3))
def test_any_text_survives_the_table_of_mechanical_turk(
    answers: dict[tuple[str, str], str], rejected: list[str], tmp_path: Path
) -> None:
    """A bar joins the boxes that are ticked in one answer, and &#44; is a comma: labels here have neither."""
    plain = {key: label.replace("|", "/").replace("&#44;", "") or "x" for key, label in answers.items()}
    rows = [[*key, "Approved", label] for key, label in plain.items()]
    rows += [["t", "w", "Rejected", label] for label in rejected]
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([["HITId", "WorkerId", "AssignmentStatus", "Answer.mood"], *rows])
    path = tmp_path / "batch.csv"
    path.write_text(out.getvalue(), newline="")
    found = cw.read(path, keep="personal")
    assert rows_of(found) == wanted(plain)
    assert left_out(found) == ({"rejected": len(rejected)} if rejected else {})


@given(answers=ANSWERS, silent=st.integers(0, 3))
def test_any_text_survives_the_log_of_judges(answers: dict[tuple[str, str], str], silent: int, tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"item": task, "judge": judge, "verdict": label} for (task, judge), label in answers.items()
    ]
    records += [{"item": "i", "judge": "j", "verdict": None}] * silent
    path = tmp_path / "judges.jsonl"
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), "utf-8", newline="")
    found = cw.read(path, keep="personal")
    assert rows_of(found) == wanted(answers)
    assert left_out(found) == ({"skipped": silent} if silent else {})


@given(answers=ANSWERS)
def test_any_text_survives_the_table_of_toloka(answers: dict[tuple[str, str], str], tmp_path: Path) -> None:
    """A list in brackets is a set of labels: labels here have no brackets."""
    plain = {key: label.replace("[", "(") for key, label in answers.items()}
    columns = ["ASSIGNMENT:task_id", "ASSIGNMENT:worker_id", "ASSIGNMENT:status", "OUTPUT:mood"]
    out = io.StringIO(newline="")
    rows = [[*key, "APPROVED", label] for key, label in plain.items()]
    csv.writer(out, delimiter="\t", quoting=csv.QUOTE_ALL).writerows([columns, *rows])
    path = tmp_path / "pool.tsv"
    path.write_text(out.getvalue(), newline="")
    assert rows_of(cw.read(path, keep="personal")) == wanted(plain)


@given(points=st.lists(st.tuples(TEXTS, TEXTS, st.floats(0, 100), st.floats(0, 100)), min_size=1, max_size=8))
def test_any_point_survives_the_json_of_label_studio(
    points: list[tuple[str, str, float, float]], tmp_path: Path
) -> None:
    """One submission per image and worker; the size of the images is 100 by 100 pixels, so percent are pixels."""
    submissions: dict[tuple[str, str], list[Any]] = {}
    for image, worker, x, y in points:
        value = {"x": x, "y": y, "width": 1, "keypointlabels": ["dot"]}
        size = {"original_width": 100, "original_height": 100}
        result = {"from_name": "kp", "type": "keypointlabels", "value": value, **size}
        submissions.setdefault((image, worker), []).append(result)
    tasks = [
        {"id": image, "data": {}, "annotations": [{"id": n, "completed_by": worker, "result": results}]}
        for n, ((image, worker), results) in enumerate(submissions.items())
    ]
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(tasks))
    found = cw.read(path, keep="personal", duplicates="each", box=(-1, -1, 101, 101))
    assert [row[:2] for row in rows_of(found)] == sorted(point[:2] for point in points)
    places = sorted(point[2:] for point in points)
    assert np.array(sorted(row[2:] for row in rows_of(found))) == pytest.approx(np.array(places))
