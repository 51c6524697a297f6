"""COCO files that are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from golden_exports import GOLDEN

import crowdwise as cw


def written(answers: Any, folder: Path) -> Any:
    """Return the COCO file of the estimates."""
    return json.loads(cw.export(cw.aggregate(answers), "coco", folder).estimates.read_text())


def test_objects_are_rectangles_without_a_segmentation(tmp_path: Path) -> None:
    """CVAT imports rectangles from COCO only if `segmentation` is there and empty."""
    made = written(cw.read(GOLDEN / "label-studio-points.json", question="kp"), tmp_path)
    assert [(each["segmentation"], len(each["bbox"])) for each in made["annotations"]] == [([], 4)]


def test_the_name_of_the_file_is_the_task(tmp_path: Path) -> None:
    for option, names in ({}, ["21", "22"]), ({"image": "data.img"}, ["/data/upload/a.jpg", "/data/upload/b.jpg"]):
        made = written(cw.read(GOLDEN / "label-studio-points.json", question="kp", **option), tmp_path)
        assert [each["file_name"] for each in made["images"]] == names
