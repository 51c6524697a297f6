"""Label Studio: files of a storage, ids in place of predictions, columns of JSON_MIN that are data or questions, and
what is written for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from golden_exports import left_out, rows_of

import crowdwise as cw
from crowdwise.errors import DataError, EmptyDataError, FileError


def annotation(worker: Any, label: str, **more: Any) -> dict[str, Any]:
    result = {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": [label]}}
    return {"completed_by": worker, "result": [result], **more}


def task(number: int, *annotations: Any, **more: Any) -> dict[str, Any]:
    return {"id": number, "data": {"text": f"text {number}"}, "annotations": list(annotations), **more}


def written(folder: Path, value: Any, name: str = "export.json") -> Path:
    (folder / name).write_text(json.dumps(value))
    return folder / name


def clicked(x: float, label: str | None = "cat", size: Any = (200, 100)) -> dict[str, Any]:
    labels = {} if label is None else {"keypointlabels": [label]}
    known = {} if size is None else {"original_width": size[0], "original_height": size[1]}
    kind = "keypoint" if label is None else "keypointlabels"
    return {"from_name": "kp", "to_name": "img", "type": kind, "value": {"x": x, "y": x, "width": 1} | labels} | known


def drawing(worker: int, *results: dict[str, Any]) -> dict[str, Any]:
    return {"completed_by": worker, "result": list(results), "id": worker}


# -------------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize("name", ["predictions", "drafts"])
def test_ids_of_predictions_and_drafts_are_no_answers(name: str, tmp_path: Path) -> None:
    tasks = [task(1, annotation(1, "glad"), **{name: [286]}), task(2, **{name: [287]})]
    answers = cw.read(written(tmp_path, tasks))
    assert rows_of(answers) == [("1", "1", "glad")]
    assert left_out(answers) == {"empty": 1}


def test_annotations_that_are_ids_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"export\.json:1: .*annotations are ids alone"):
        cw.read(written(tmp_path, [task(1, 5)]))


def stored(number: int, about: int, worker: int, label: str, **more: Any) -> dict[str, Any]:
    """Return an annotation as Label Studio writes it to a storage."""
    return {"id": number, **annotation({"id": worker}, label), "task": {"id": about, "data": {"text": "t"}}, **more}


def test_a_storage_has_a_file_for_each_annotation(tmp_path: Path) -> None:
    for each in (stored(1, 7, 3, "glad"), stored(2, 7, 4, "sad"), stored(3, 8, 3, "sad", was_cancelled=True)):
        written(tmp_path, each, f"{each['id']}.json")
    answers = cw.read(tmp_path)
    assert rows_of(answers) == [("7", "3", "glad"), ("7", "4", "sad")]
    assert left_out(answers) == {"skipped": 1}
    assert rows_of(cw.read(tmp_path / "1.json")) == [("7", "3", "glad")]
    assert rows_of(cw.read(tmp_path / "1.json", task="data.text")) == [("t", "3", "glad")]


def test_tasks_of_a_storage_get_one_prediction(tmp_path: Path) -> None:
    for each in (stored(1, 7, 3, "glad"), stored(2, 7, 4, "glad")):
        written(tmp_path, each, f"{each['id']}.json")
    files = cw.export(cw.aggregate(cw.read(tmp_path), "majority-vote"), "label-studio", tmp_path / "back")
    [made] = json.loads(files.estimates.read_text())
    assert (made["id"], made["data"]) == (7, {"text": "t"})
    assert made["predictions"][0]["result"][0]["value"] == {"choices": ["glad"]}


@pytest.mark.parametrize("size", [(0, 0), (200, 0), (-1, 100), None])
def test_places_in_images_without_a_size_are_percent(size: Any, tmp_path: Path) -> None:
    path = written(tmp_path, [task(1, drawing(1, clicked(40.0, size=size)))])
    with pytest.raises(DataError, match="percent of the images, whose sizes are not in the file"):
        cw.read(path)
    assert rows_of(cw.read(path, unit="pixels", box=(0, 0, 100, 100))) == [("1", "1", 40.0, 40.0)]


# ------------------------------------------------------------------------------------------------ JSON_MIN and CSV

Cells = dict[str, Any]


def minimal(folder: Path, *tasks: list[Cells]) -> Path:
    """Write JSON_MIN: a list of the cells of the annotators for each task."""
    usual = {"created_at": None, "updated_at": None, "lead_time": 1}
    records = [
        {"id": number, "annotator": worker, "annotation_id": 10 * number + worker, **usual, **cells}
        for number, several in enumerate(tasks, 1)
        for worker, cells in enumerate(several, 1)
    ]
    return written(folder, records)


def agreed(folder: Path, *cells: Cells) -> Path:
    """Write JSON_MIN in which two annotators gave the same cells to every task."""
    return minimal(folder, *([each, each] for each in cells))


def test_where_data_and_answers_look_alike_the_user_is_asked(tmp_path: Path) -> None:
    path = agreed(tmp_path, {"text": "one", "mood": "glad"}, {"text": "two", "mood": "sad"})
    with pytest.raises(DataError, match=r"several questions: 'mood' \(labels, 4 answers\); 'text' \(labels"):
        cw.read(path)
    assert len(rows_of(cw.read(path, question="mood"))) == 4


def test_a_question_on_which_all_agree_is_found(tmp_path: Path) -> None:
    moods = ["glad", "sad", "glad", "sad"]
    path = agreed(tmp_path, *({"text": f"text {n}", "mood": mood} for n, mood in enumerate(moods)))
    answers = cw.read(path)
    assert "question 'mood'" in answers.intake.notes
    assert len(answers) == 8


def test_a_question_on_which_all_agree_is_not_hidden_by_another(tmp_path: Path) -> None:
    tasks = [
        [{"text": f"text {n}", "mood": "glad" if n % 2 else "sad", "topic": topic} for topic in ("food", "rent")]
        for n in range(4)
    ]
    with pytest.raises(DataError) as caught:
        cw.read(minimal(tmp_path, *tasks))
    assert "'mood' (labels, 8 answers); 'text' (text, 8 answers); 'topic' (labels, 8 answers)" in str(caught.value)


def test_a_category_of_the_tasks_looks_like_a_question(tmp_path: Path) -> None:
    tasks = [
        [{"text": f"text {n}", "category": "a" if n % 2 else "b", "mood": mood} for mood in ("glad", "sad")]
        for n in range(4)
    ]
    path = minimal(tmp_path, *tasks)
    with pytest.raises(DataError, match="several questions: 'category'"):
        cw.read(path)
    assert len(cw.read(path, question="mood")) == 8


def test_an_answer_that_some_annotators_omit_is_no_data(tmp_path: Path) -> None:
    tasks = [[{"text": f"text {n}", "why": f"because {n}"}, {"text": f"text {n}"}] for n in range(3)]
    answers = cw.read(minimal(tmp_path, *tasks))
    assert "question 'why'" in answers.intake.notes


@pytest.mark.parametrize("data", [{"text": "the same"}, {}])
def test_text_of_nearly_every_task_and_constants_are_data(data: Cells, tmp_path: Path) -> None:
    """30 tasks with 25 texts are data; so is what never changes."""
    moods = ["glad", "sad"]
    tasks = [[{"text": f"text {n % 25}", "mood": mood, "source": "web", **data} for mood in moods] for n in range(30)]
    answers = cw.read(minimal(tmp_path, *tasks))
    assert "question 'mood'" in answers.intake.notes


def test_what_never_changes_is_a_question_if_there_is_no_other(tmp_path: Path) -> None:
    answers = cw.read(agreed(tmp_path, *({"text": f"text {n}", "mood": "glad"} for n in range(3))))
    assert "question 'mood'" in answers.intake.notes


def test_text_alone_is_no_question(tmp_path: Path) -> None:
    with pytest.raises(EmptyDataError, match="it has 'text' \\(text, 6 answers\\)"):
        cw.read(agreed(tmp_path, *({"text": f"text {n}"} for n in range(3))))


# ----------------------------------------------------------------------------------------------------- giving back


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        ({"id": 2, "annotations": []}, "record 2 .*it has no 'data'"),
        ({"id": 2, "data": {}, "annotations": [{"result": [5]}]}, "record 2 .*'int' object has no attribute 'get'"),
    ],
)
def test_an_original_that_is_damaged_is_refused(damaged: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = written(tmp_path, [task(1), task(2, annotation(1, "glad"), annotation(2, "glad"))])
    result = cw.aggregate(cw.read(path), "majority-vote")
    first = task(1) if "data" in damaged else task(1, annotation(1, "glad"))
    other = written(tmp_path, [first, damaged], "other.json")
    with pytest.raises(FileError, match=message):
        cw.export(result, "label-studio", tmp_path / "back", original=other)


def test_ids_in_an_original_are_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path, [task(1, annotation(1, "glad"), annotation(2, "glad"))])
    result = cw.aggregate(cw.read(path), "majority-vote")
    tasks = [{**task(1, 5, annotation(1, "glad")), "predictions": [6]}]
    files = cw.export(result, "label-studio", tmp_path, original=written(tmp_path, tasks, "other.json"))
    assert json.loads(files.estimates.read_text())[0]["predictions"][0]["result"][0]["to_name"] == "text"


@pytest.mark.parametrize("labels", [("cat", "cat"), ("cat", "dog")])
def test_clicks_keep_their_class(labels: tuple[str, str], tmp_path: Path) -> None:
    tasks = [task(1, drawing(1, clicked(40.0), clicked(9.0, labels[1])), drawing(2, clicked(40.1), clicked(9.1)))]
    path = written(tmp_path, tasks)
    result = cw.aggregate(cw.read(path, question="kp/cat" if labels[1] == "dog" else "kp"))
    [made] = json.loads(cw.export(result, "label-studio", tmp_path / "back").estimates.read_text())
    found = made["predictions"][0]["result"]
    assert found
    assert {(each["type"], *each["value"]["keypointlabels"]) for each in found} == {("keypointlabels", "cat")}


# -------------------------------------------------------------------------------------------------------- convert


def made_of(table: dict[str, list[Any]], folder: Path) -> list[dict[str, Any]]:
    """Convert judgements to tasks of Label Studio, and return all results."""
    known = {"status": ["ok"], "kind": ["labels"], "question": ["q"]}
    count = len(table["task"])
    frame = pl.DataFrame({name: each * count for name, each in known.items()} | table, strict=False)
    frame = frame.with_row_index("source_row", 1)
    frame.write_csv(folder / "judgements.csv")
    path = cw.convert(folder / "judgements.csv", folder / "tasks.json", "label-studio", keep="personal").path
    return [each for task in json.loads(path.read_text()) for each in task["annotations"]]


@pytest.mark.parametrize(
    ("values", "kind", "wanted"),
    [([1, 5], "rating", [1, 5]), ([1, 4.5], "number", [1, 4.5]), ([2, None], "choices", [["2"], ["x"]])],
)
def test_numbers_are_ratings(values: list[Any], kind: str, wanted: list[Any], tmp_path: Path) -> None:
    labels = ["x" if value is None else f"{value:g}" for value in values]
    table = {"task": ["1", "2"], "worker": ["7", "7"], "label": labels, "value": values}
    results = [each["result"][0] for each in made_of(table, tmp_path)]
    assert [(each["type"], each["value"]) for each in results] == [(kind, {kind: value}) for value in wanted]
    assert [row[2] for row in rows_of(cw.read(tmp_path / "tasks.json"))] == labels


def test_e_mail_addresses_name_members(tmp_path: Path) -> None:
    table = {"task": ["1", "1"], "worker": ["7", "ann@example.org"], "label": ["x", "x"]}
    assert [each["completed_by"] for each in made_of(table, tmp_path)] == [7, {"email": "ann@example.org"}]


def test_boxes_stay_boxes(tmp_path: Path) -> None:
    """Of a box that is turned, Label Studio has the corner at the top left, and Crowdwise the centre."""
    box = {"x": 10.0, "y": 20.0, "width": 30.0, "height": 40.0, "rotation": 30.0, "rectanglelabels": ["cat"]}
    about = {"from_name": "box", "to_name": "img", "type": "rectanglelabels"}
    size = {"original_width": 200, "original_height": 100}
    for known in (size, {}):
        path = written(tmp_path, [task(1, drawing(3, about | {"value": box} | known))])
        unit = {} if known else {"unit": "pixels", "box": (0, 0, 100, 100)}
        done = cw.convert(path, tmp_path / "tasks.json", "label-studio", **unit)
        [result] = json.loads(done.path.read_text())[0]["annotations"][0]["result"]
        assert result["type"] == "rectanglelabels"
        assert {name: value for name, value in result["value"].items() if name != "rectanglelabels"} == {
            name: pytest.approx(value) for name, value in box.items() if name != "rectanglelabels"
        }
        assert rows_of(cw.read(done.path, **unit))[0][2:] == pytest.approx(rows_of(cw.read(path, **unit))[0][2:])


def test_an_image_of_no_size_has_no_percent(tmp_path: Path) -> None:
    sizes = {"image_width": [0.0], "image_height": [0.0]}
    table = {"task": ["1"], "worker": ["7"], "label": ["cat"], "kind": ["points"], "x": [1.0], "y": [2.0], **sizes}
    with pytest.raises(DataError, match="places in pixels and no size"):
        made_of(table, tmp_path)
