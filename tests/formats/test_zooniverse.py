"""Zooniverse: shapes of exports that the golden files do not have, tasks that are fields of the subject, manifests."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from golden_exports import empty_jobs_of, left_out, rows_of

import crowdwise as cw
from crowdwise.errors import ColumnError, EmptyDataError, FileError
from crowdwise.io.estimates import Estimate, Estimates
from crowdwise.io.formats import all_formats

Annotation = dict[str, Any]
DATA = {"77": {"Filename": "a.png", "#site": 7}, "78": {"Filename": "b.png", "retired": None, "season": "dry"}}
TWO_IMAGES = [{"naturalWidth": 100, "naturalHeight": 90}, {"naturalWidth": 100, "naturalHeight": 90}]
COLUMNS = (
    "classification_id", "user_name", "user_id", "workflow_id", "workflow_version", "created_at", "gold_standard",
    "metadata", "annotations", "subject_data", "subject_ids",
)  # fmt: skip


def export(place: Path, *classifications: tuple[str, str, list[Annotation]], sizes: Any = ()) -> Path:
    """Write an export with the user, the subject and the annotations of each classification."""
    rows = []
    for number, (user, subject, given) in enumerate(classifications):
        data = json.dumps({subject: DATA[subject]})
        about = json.dumps({"subject_dimensions": sizes})
        when = f"2026-03-01 10:{number:02d}:00 UTC"
        rows.append([number, user, "", "10", "1.1", when, "", about, json.dumps(given), data, subject])
    with place.open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    return place


def said(value: Any, task: str = "T0", **more: Any) -> Annotation:
    return {"task": task, "value": value, **more}


def test_shapes_that_are_no_clicks_are_text_and_their_volunteer_saw_no_click(tmp_path: Path) -> None:
    line = {"toolIndex": 1, "x1": 1, "y1": 2, "x2": 3, "y2": 4, "details": []}
    curve = {"toolIndex": 2, "pathX": [[1, 2]], "pathY": [[3, 4]], "details": []}
    click = {"toolIndex": 0, "x": 5, "y": 6, "tool_label": "cat"}
    path = export(tmp_path / "c.csv", ("ann", "77", [said([line, click])]), ("bob", "77", [said([line, curve])]))
    answers = cw.read(path)
    assert rows_of(answers) == [("77", "ann", 5, 6)]
    assert empty_jobs_of(answers) == [["77", "bob"]]
    converted = cw.convert(path, tmp_path / "rows.csv").path.read_text()
    assert converted.count("text") == 3
    with pytest.raises(EmptyDataError, match=r"'T0' \(text"):
        cw.read(export(tmp_path / "lines.csv", ("ann", "77", [said([line])])))


def test_an_empty_list_of_answers_is_about_the_subject_and_not_about_its_images(tmp_path: Path) -> None:
    path = export(
        tmp_path / "c.csv", ("ann", "77", [said(["x"])]), ("bob", "77", [said([])]), ("ann", "78", [said([])]),
        sizes=TWO_IMAGES,
    )  # fmt: skip
    answers = cw.read(path)
    assert (rows_of(answers), left_out(answers)) == ([("77", "ann", "x")], {"empty": 2})
    assert sorted(answers.tasks) == ["77", "78"]


def test_several_dropdowns_of_a_task_are_several_questions(tmp_path: Path) -> None:
    def chosen(colour: str, size: Any) -> Annotation:
        about = {"select_label": "size", "option": True, "value": size}
        return said([{"select_label": "colour", "option": True, "value": "h1", "label": colour}, about], "T2")

    path = export(tmp_path / "c.csv", ("ann", "77", [chosen("red", 3)]), ("bob", "77", [chosen("blue", None)]))
    colours, sizes = cw.read(path, question="T2/colour"), cw.read(path, question="T2/size")
    assert rows_of(colours) == [("77", "ann", "red"), ("77", "bob", "blue")]
    assert (rows_of(sizes), left_out(sizes)) == ([("77", "ann", "3")], {"skipped": 1})


def test_the_species_of_a_survey_may_be_annotations_of_their_own(tmp_path: Path) -> None:
    zebra, lion = ({"choice": name, "answers": {"HOWMANY": "1"}, "filters": {}} for name in ("ZEBRA", "LION"))
    path = export(
        tmp_path / "c.csv", ("ann", "77", [said([zebra]), said([lion])]), ("bob", "77", [said([zebra, lion])]),
        ("cyd", "77", [said([zebra])]),
    )  # fmt: skip
    answers = cw.read(path, sets="joined")
    assert rows_of(answers) == [("77", "ann", "LION | ZEBRA"), ("77", "bob", "LION | ZEBRA"), ("77", "cyd", "ZEBRA")]
    assert left_out(answers) == {}


def test_questions_about_marks_are_not_about_the_subject(tmp_path: Path) -> None:
    path = export(tmp_path / "c.csv", ("ann", "77", [said("yes"), said(1, "T1.0.0", markIndex=0)]))
    assert rows_of(cw.read(path)) == [("77", "ann", "yes")]


def test_an_id_that_pandas_made_a_float_is_the_same_id(tmp_path: Path) -> None:
    path = export(tmp_path / "c.csv", ("ann", "77", [said("yes")]), ("bob", "77", [said("no")]))
    path.write_text(path.read_text().replace("0,ann,,", "0,ann,108.0,").replace("1,bob,,", "1,bob,NA,"))
    assert rows_of(cw.read(path)) == [("77", "108", "yes"), ("77", "bob", "no")]


@pytest.fixture
def answered(tmp_path: Path) -> Path:
    return export(
        tmp_path / "c.csv", ("ann", "77", [said("yes")]), ("bob", "77", [said("yes")]), ("ann", "78", [said("no")])
    )


def test_a_field_of_the_subject_can_name_the_task(answered: Path) -> None:
    answers = cw.read(answered, task="subject_data.Filename")
    assert rows_of(answers) == [("a.png", "ann", "yes"), ("a.png", "bob", "yes"), ("b.png", "ann", "no")]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("subject_data.filename", r"subject 77 in c\.csv have no field 'filename'; fields are subject_data\.Filename, "
         r"subject_data\.#site\. Did you mean 'subject_data\.Filename'"),
        ("file", r"no column 'file' in c\.csv; columns are classification_id, .*task='COLUMN'"),
    ],
)  # fmt: skip
def test_a_field_that_is_not_there_is_refused(task: str, message: str, answered: Path) -> None:
    with pytest.raises(ColumnError, match=message):
        cw.read(answered, task=task)


def manifest(result: Any, folder: Path, **options: Any) -> list[dict[str, str]]:
    with cw.export(result, "zooniverse", folder / "back", **options).estimates.open() as file:
        return list(csv.DictReader(file))


def test_the_manifest_has_the_data_of_the_subjects(answered: Path, tmp_path: Path) -> None:
    rows = manifest(cw.aggregate(cw.read(answered), "majority-vote"), tmp_path)
    assert list(rows[0]) == [
        "subject_id", "Filename", "#site", "season", "question", "#label", "#probability", "#answers"
    ]  # fmt: skip
    assert [list(row.values())[:6] for row in rows] == [
        ["77", "a.png", "7", "", "T0", "yes"],
        ["78", "b.png", "", "dry", "T0", "no"],
    ]


def test_the_manifest_of_marks_has_the_data_of_the_subjects(tmp_path: Path) -> None:
    def marks(x: float) -> list[Annotation]:
        return [said([{"tool": 0, "tool_label": "cat", "x": x, "y": 9, "frame": 1}])]

    classifications = [(user, "77", marks(50 + number)) for number, user in enumerate("abcdefgh")]
    path = export(tmp_path / "c.csv", *classifications, sizes=TWO_IMAGES)
    rows = manifest(cw.aggregate(cw.read(path), "click-mixture"), tmp_path)
    assert [row["subject_id"] for row in rows] == ["77"]
    assert rows[0]["Filename"] == "a.png"


def test_a_manifest_without_the_export_has_the_subjects_alone(answered: Path, tmp_path: Path) -> None:
    result = cw.aggregate(cw.read(answered), "majority-vote")
    other = export(tmp_path / "other.csv", ("ann", "77", [said("yes")]))
    assert [row["Filename"] for row in manifest(result, tmp_path, original=other)] == ["a.png", ""]
    answered.unlink()
    assert [[*row][:2] for row in manifest(result, tmp_path)] == [["subject_id", "question"]] * 2


def test_tasks_that_are_fields_of_the_subject_find_their_subject(answered: Path) -> None:
    """The name of the task is followed by the number of the image and the version of the workflow."""
    tasks = {name: Estimate(("yes",), 0.9, 2) for name in ("a.png", "b.png#1@2")}
    estimates = Estimates(tasks, "T0", "labels", "crowdwise", "subject_data.Filename")
    give_back = all_formats()["zooniverse"].give_back
    with answered.open() as file:
        records = list(csv.DictReader(file))
    assert [row["subject_id"] for row in give_back(estimates, lambda: iter(records))] == ["77", "78"]
    assert [row["Filename"] for row in give_back(estimates, None)] == ["a.png", "b.png"]


def test_another_export_is_refused(answered: Path, tmp_path: Path) -> None:
    result = cw.aggregate(cw.read(answered), "majority-vote")
    path = export(tmp_path / "other.csv", ("ann", "77", [said("yes")]))
    path.write_text(path.read_text().replace("77", "99"))
    with pytest.raises(FileError, match="none of the 2 tasks of the result is in"):
        cw.export(result, "zooniverse", tmp_path / "back", original=path)
