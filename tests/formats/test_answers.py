"""How judgements become answers, whatever the platform: sets of labels, times, jobs, personal data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from golden_exports import gold_of

import crowdwise as cw

Choices = list[str] | None


def annotation(worker: object, choices: Choices, **more: Any) -> dict[str, Any]:
    result = {"from_name": "topics", "to_name": "text", "type": "choices", "value": {"choices": choices}}
    return {"completed_by": worker, "result": [] if choices is None else [result], **more}


def label_studio(tmp_path: Path, *tasks: list[dict[str, Any]]) -> Path:
    """Write an export of Label Studio with these annotations of tasks 1, 2, ..."""
    path = tmp_path / "project.json"
    records = [{"id": n, "data": {"text": "t"}, "annotations": each} for n, each in enumerate(tasks, 1)]
    path.write_text(json.dumps(records))
    return path


def clicks(worker: int, *places: tuple[float, str], **more: Any) -> dict[str, Any]:
    """An annotation of Label Studio with keypoints of a class at these positions."""
    results = [
        {
            "from_name": "kp", "to_name": "img", "type": "keypointlabels", "original_width": 200,
            "original_height": 100, "value": {"x": x, "y": 50.0, "width": 1, "keypointlabels": [name]},
        }
        for x, name in places
    ]  # fmt: skip
    return {"completed_by": worker, "result": results, **more}


# ------------------------------------------------------------------------------------------------------ sets of labels


def test_nothing_chosen_says_no_to_every_label(tmp_path: Path) -> None:
    path = label_studio(
        tmp_path,
        [annotation(1, ["a", "b"]), annotation(2, []), annotation(3, None), annotation(4, None, was_cancelled=True)],
    )
    answers = cw.read(path, sets="split")
    said = {(task, worker): label for task, worker, label in answers.frame()["task", "worker", "label"].rows()}
    assert said == {
        ("1 / a", "1"): "yes", ("1 / b", "1"): "yes", ("1 / a", "2"): "no", ("1 / b", "2"): "no",
        ("1 / a", "3"): "no", ("1 / b", "3"): "no",
    }  # fmt: skip
    assert "2 answers without any chosen label: no to every label" in answers.intake.notes
    again = cw.read(cw.convert(path, tmp_path / "table.csv").path, sets="split")
    assert again.frame()["task", "worker", "label"].rows() == answers.frame()["task", "worker", "label"].rows()
    joined = cw.read(path, sets="joined")
    assert joined.frame()["task", "worker", "label"].rows() == [("1", "1", "a | b")]


def test_known_sets_are_gold(tmp_path: Path) -> None:
    truth = annotation(9, ["a", "b"], ground_truth=True)
    path = label_studio(tmp_path, [annotation(1, ["a", "b"]), truth], [annotation(1, ["c"])])
    assert gold_of(cw.read(path, sets="joined")) == {"1": "a | b"}
    assert gold_of(cw.read(path, sets="split")) == {"1 / a": "yes", "1 / b": "yes", "1 / c": "no"}


def test_split_tasks_come_back_as_sets_whatever_their_names(tmp_path: Path) -> None:
    rows = [
        {"task": task, "worker": worker, "question": "q", "kind": "labels", "label_set": labels, "status": "ok",
         "source_row": 1}
        for worker in ("ann", "bob", "cyd")
        for task, labels in (("a / b", '["u", "v / w"]'), ("c", "[]"), ("d", '["u"]'))
    ]  # fmt: skip
    pl.DataFrame(rows).write_parquet(tmp_path / "table.parquet")
    result = cw.aggregate(cw.read(tmp_path / "table.parquet", sets="split"), "majority-vote")
    files = cw.export(result, "argilla", tmp_path / "out")
    values = {each["id"]: each["suggestions"] for each in json.loads(files.estimates.read_text())}
    assert {name: each.get("q", {}).get("value") for name, each in values.items()} == {
        "a / b": ["u", "v / w"], "c": None, "d": "u",
    }  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- times


def test_a_time_that_cannot_be_read_decides_no_other_task(tmp_path: Path) -> None:
    def twice(first: str | None, second: str | None) -> list[dict[str, Any]]:
        return [annotation(1, ["new"], updated_at=first), annotation(1, ["old"], updated_at=second)]

    early, late = "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"
    path = label_studio(tmp_path, twice(late, early), twice(late, "Fri Jan 02 2026 IST"))
    answers = cw.read(path)
    assert answers.frame()["task", "label"].rows() == [("1", "new"), ("2", "old")]
    assert any(
        "1 time(s) cannot be read, for instance 'Fri Jan 02 2026 IST'" in each for each in answers.intake.warnings
    )


@pytest.mark.parametrize(
    ("times", "kept"),
    [
        (["05/02/2026", "13/02/2026"], "second"),  # days first, because there is no month 13
        (["13/02/2026", "05/02/2026"], "first"),
        (["05/02/2026", "02/13/2026"], "first"),  # months first
    ],
)
def test_dates_with_slashes_have_one_order(times: list[str], kept: str) -> None:
    table = {"task": ["1", "1"], "worker": ["ann", "ann"], "label": ["first", "second"], "date": times}
    assert cw.Labels(table, duplicates="last").frame()["label"].to_list() == [kept]


# ------------------------------------------------------------------------------------------------------ jobs of clicks


def test_whoever_marked_another_class_looked_as_well(tmp_path: Path) -> None:
    path = label_studio(tmp_path, [clicks(1, (10, "cat")), clicks(2, (20, "dog"))])
    cats = cw.read(path, question="kp/cat")
    assert (cats.n_clicks, cats.n_jobs) == (1, 2)


def test_a_correction_replaces_marks_of_every_class(tmp_path: Path) -> None:
    first = clicks(1, (10, "cat"), id=1, updated_at="2026-01-02T00:00:00Z")
    second = clicks(1, (20, "dog"), id=2, updated_at="2026-01-03T00:00:00Z")
    path = label_studio(tmp_path, [first, second, clicks(2, (30, "cat"), id=3)])
    cats = cw.read(path, question="kp/cat")
    assert cats.frame()["worker"].to_list() == ["2"]
    assert cats.n_jobs == 2


@pytest.mark.parametrize("first", ["points", "choices"])
def test_a_correction_counts_whatever_the_order_of_the_questions(first: str, tmp_path: Path) -> None:
    def both(worker: int, x: float, number: int) -> dict[str, Any]:
        points, choices = clicks(worker, (x, "cat"))["result"], annotation(worker, ["a"])["result"]
        result = [*points, *choices] if first == "points" else [*choices, *points]
        return {"completed_by": worker, "id": number, "result": result}

    path = label_studio(tmp_path, [both(1, 10, 1), both(1, 60, 2), annotation(2, ["a"], id=3)])
    answers = cw.read(path, question="kp")
    assert answers.frame()["x"].to_list() == [120]
    assert answers.n_jobs == 2
    erased = label_studio(tmp_path, [both(1, 10, 1), annotation(1, ["a"], id=2), clicks(2, (30, "cat"), id=3)])
    assert cw.read(erased, question="kp").frame()["worker"].to_list() == ["2"]


def test_dates_of_an_export_have_the_order_of_the_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdwise.io.parts.PART_BYTES", 60)
    header = "task,worker,question,kind,label,status,submitted_at,source_row\n"
    dates = ["10.01.2026", "02.03.2026", "05/02/2026", "13/02/2026"]
    rows = [f"{n},ann,q,labels,a,ok,{date},{n}\n" for n, date in enumerate(dates, 2)]
    (tmp_path / "t.csv").write_text(header + "".join(rows))
    times = cw.read(tmp_path / "t.csv").frame()["timestamp"].dt.strftime("%m-%d").to_list()
    assert times == ["01-10", "03-02", "02-05", "02-13"]


def test_a_task_without_any_answer_gets_no_prediction(tmp_path: Path) -> None:
    path = label_studio(tmp_path, [annotation(1, ["a", "b"])], [annotation(1, ["a"], was_cancelled=True)])
    result = cw.aggregate(cw.read(path, sets="split"), "majority-vote")
    files = cw.export(result, "label-studio", tmp_path / "out")
    predictions = [len(task["predictions"]) for task in json.loads(files.estimates.read_text())]
    assert (predictions, files.absent) == ([1, 0], 0)


def test_an_image_without_marks_has_the_usual_size(tmp_path: Path) -> None:
    path = label_studio(tmp_path, [clicks(1, (10, "cat"))], [clicks(1)])
    answers = cw.read(path)
    assert answers.box.tolist() == [[[0, 0], [200, 100]]] * 2
    assert "1 image(s) without marks have no size in the file: the median size is used" in answers.intake.notes


# ------------------------------------------------------------------------------------------------------- personal data


def test_names_of_files_that_are_workers_are_not_shown_with_digests(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    for worker in ("secretbob", "ann@example.org"):
        rows = [{"id": n, "text": "t", "label": ["a"] if n else [], "Comments": []} for n in range(3)]
        (folder / f"{worker}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    answers = cw.read(folder, pseudonymise=tmp_path / "key")
    assert "secretbob" not in json.dumps(answers.intake.as_dict(), default=str)
    assert [each for each in answers.workers.to_list() if not each.startswith("worker-")] == []
    without_key = cw.read(folder)
    shown = json.dumps(without_key.intake.as_dict(), default=str)
    assert "secretbob.jsonl" in shown
    assert "ann@example.org" not in shown
