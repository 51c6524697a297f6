"""Quick studies: complete, and cheap enough for two minutes on two cores."""

from __future__ import annotations

import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from crowdwise.reproduce import STUDIES, study

pytest.importorskip("torch")

MAX_PROCESSOR_SECONDS = 240  # two minutes on two cores
FIGURES = {  # what the papers draw; Figure 4 (b) of pairs needs all of CIFAR-10
    "difficulty": [f"difficulty-figure{n}" for n in (2, 3, 4, 5)],
    "groups": [f"groups-figure{n}" for n in ("1", "2", "3a", "3b")],
    "clicks": [f"clicks-figure{n}" for n in ("1", "2", "3a", "3b")],
    "pairs": [f"pairs-figure{n}" for n in ("2a", "2b", "2c", "2d", "3a", "3b", "3c", "4a")],
}  # fmt: skip


def test_all_studies_are_tested() -> None:
    assert {*FIGURES, "lecture"} == set(STUDIES), "the lecture, which has no quick version, is tested by its outputs"


@pytest.mark.parametrize("name", FIGURES)
def test_a_quick_study_is_complete_and_quick(name: str, shared_data: Path, tmp_path: Path) -> None:
    steps: list[str] = []
    began = time.process_time()
    found = study(name, data=shared_data, out=tmp_path, watch=steps.append, quick=True)
    assert time.process_time() - began < MAX_PROCESSOR_SECONDS
    assert all(part.rows.height for part in found.parts)
    assert steps, "progress is shown"
    assert all(file.exists() for file in found.files)
    drawn = [file for file in found.files if file.suffix == ".svg"]
    assert sorted(file.stem for file in drawn) == sorted(FIGURES[name])
    for file in drawn:
        assert ElementTree.parse(file).getroot().tag.endswith("svg")
    assert not list(tmp_path.glob("*.checkpoint"))
