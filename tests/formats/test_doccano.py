"""doccano: files of old versions, of intents and of other projects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from golden_exports import left_out, rows_of

import crowdwise as cw
from crowdwise.errors import CrowdwiseError, EmptyDataError, FileError


def written(folder: Path, name: str, *records: dict[str, Any]) -> Path:
    (folder / name).write_text("\n".join(map(json.dumps, records)))
    return folder / name


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "a"}, {"data": "a"}, {"filename": "a.png"}, {"text": "a", "meta": {}, "comments": []},
        {"text": "a", "topic": "x", "annotation_approver": None},
    ],
)  # fmt: skip
@pytest.mark.parametrize("field", ["label", "labels"])
def test_files_without_comments_are_recognised(field: str, fields: dict[str, Any], tmp_path: Path) -> None:
    for worker, label in (("ann", "glad"), ("bob", "sad")):
        written(tmp_path, f"{worker}.jsonl", {"id": 1, **fields, field: [label]}, {"id": 2, **fields, field: []})
    answers = cw.read(tmp_path)
    assert rows_of(answers) == [("1", "ann", "glad"), ("1", "bob", "sad")]
    assert left_out(answers) == {"empty": 2}


def test_files_with_metadata_are_read_when_the_format_is_given(tmp_path: Path) -> None:
    path = written(tmp_path, "ann.jsonl", {"id": 1, "text": "a", "topic": "x", "label": ["glad"]})
    with pytest.raises(CrowdwiseError, match="no column 'worker'"):
        cw.read(path)
    assert rows_of(cw.read(path, format="doccano")) == [("1", "ann", "glad")]


@pytest.mark.parametrize(
    "record", [{"id": 1, "text": "a", "label": ["x"], "annotator": "ann"}, {"id": 1, "text": "a", "label": "x"}]
)
def test_other_records_are_not_doccano(record: dict[str, Any], tmp_path: Path) -> None:
    path = written(tmp_path, "file.jsonl", record, record | {"id": 2})
    with pytest.raises(CrowdwiseError) as caught:
        cw.read(path)
    assert "doccano" not in str(caught.value)
    if "annotator" in record:
        with pytest.raises(FileError, match="is not doccano"):
            cw.read(path, format="doccano")


def test_intents_are_labels(tmp_path: Path) -> None:
    record = {"id": 1, "text": "a", "cats": ["flight"], "entities": [[0, 1, "CITY"]], "Comments": []}
    answers = cw.read(written(tmp_path, "ann.jsonl", record))
    assert rows_of(answers) == [("1", "ann", "flight")]
    assert "question 'cats'" in answers.intake.notes


def test_annotations_of_version_1_0_are_those_of_their_users(tmp_path: Path) -> None:
    several = [{"label": 2, "user": 1}, {"label": 3, "user": 1}, {"label": 2, "user": 2}]
    record = {"id": 1, "text": "a", "annotations": several, "annotation_approver": None}
    assert rows_of(cw.read(written(tmp_path, "all.jsonl", record), sets="joined")) == [
        ("1", "1", "2 | 3"),
        ("1", "2", "2"),
    ]
    spans = [{"label": 2, "user": 1, "start_offset": 0, "end_offset": 1}]
    with pytest.raises(EmptyDataError, match=r"it has 'label' \(text"):
        cw.read(written(tmp_path, "spans.jsonl", record | {"annotations": spans}))


def test_a_project_that_shares_annotations_says_so(tmp_path: Path) -> None:
    record = {"id": 1, "text": "a", "label": ["glad"], "Comments": []}
    path = written(tmp_path, "all.jsonl", record)
    with pytest.raises(FileError, match=r"annotators share their annotations.*anonymous='each'"):
        cw.read(path)
    assert len(cw.read(path, anonymous="each")) == 1


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"filename": "a.png", "segmentation": []}, "polygons"),
        ({"text": "a", "entities": [], "relations": []}, "spans and relations"),
    ],
)
def test_projects_of_other_kinds_are_refused(fields: dict[str, Any], kind: str, tmp_path: Path) -> None:
    path = written(tmp_path, "ann.jsonl", {"id": 1, **fields, "Comments": []})
    with pytest.raises(FileError, match=rf"ann\.jsonl \(doccano\) holds {kind}, which cannot be aggregated"):
        cw.read(path)
