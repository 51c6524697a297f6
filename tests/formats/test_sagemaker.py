"""SageMaker Ground Truth: radio buttons, and the files of the consolidation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from golden_exports import left_out, rows_of

import crowdwise as cw
from crowdwise.errors import FileError


def worker(name: str, content: Any) -> dict[str, Any]:
    return {"workerId": name, "annotationData": {"content": json.dumps(content)}}


def buttons(chosen: str | None) -> dict[str, Any]:
    return {name: {"on": name == chosen} for name in ("glad", "sad")}


def test_radio_buttons_in_worker_responses_are_one_question(tmp_path: Path) -> None:
    """Both objects are looked at: the first alone could also be one of check boxes."""
    for number, chosen in enumerate([("glad", None), ("sad", "glad")]):
        folder = tmp_path / "worker-response" / str(number)
        folder.mkdir(parents=True)
        answers = [{"workerId": f"w{n}", "answerContent": buttons(each)} for n, each in enumerate(chosen)]
        (folder / "2026-01-02.json").write_text(json.dumps({"answers": answers}))
    answers = cw.read(tmp_path / "worker-response")
    assert rows_of(answers) == [("0", "w0", "glad"), ("1", "w0", "sad"), ("1", "w1", "glad")]
    assert left_out(answers) == {"empty": 1}
    assert "question 'crowd-radio-group'" in answers.intake.notes


def test_radio_buttons_in_a_manifest_are_called_after_the_job(tmp_path: Path) -> None:
    given = {
        job: {"annotationsFromAllWorkers": [worker("w1", buttons(chosen)), worker("w2", buttons("sad"))]}
        for job, chosen in (("mood", "glad"), ("tone", "sad"))
    }
    path = tmp_path / "output.manifest"
    path.write_text(json.dumps({"source": "x", **given, "mood-metadata": {}, "tone-metadata": {}}) + "\n")
    assert rows_of(cw.read(path, question="mood")) == [("x", "w1", "glad"), ("x", "w2", "sad")]
    assert rows_of(cw.read(path, question="tone")) == [("x", "w1", "sad"), ("x", "w2", "sad")]


def response(tmp_path: Path, value: Any) -> Path:
    path = tmp_path / "response.json"
    path.write_text(json.dumps([{"datasetObjectId": "0", "consolidatedAnnotation": {"content": {"pets": value}}}]))
    return path


def test_a_consolidation_response_may_have_the_answers_of_workers(tmp_path: Path) -> None:
    several = [worker(name, {"annotatedResult": {"label": label}}) for name, label in (("w1", "cat"), ("w2", "dog"))]
    answers = cw.read(response(tmp_path, {"annotationsFromAllWorkers": several}))
    assert rows_of(answers) == [("0", "w1", "cat"), ("0", "w2", "dog")]
    assert "question 'pets'" in answers.intake.notes


def test_a_consolidation_response_without_workers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"response\.json is a response of the consolidation .*/worker-response"):
        cw.read(response(tmp_path, {"label": "cat"}))
