"""CVAT: attributes of tags, and submissions that do not name the worker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from golden_exports import left_out, rows_of

import crowdwise as cw
from crowdwise.errors import DataError

AUTO = ' source="auto"'


def job(folder: Path, worker: str, images: dict[str, str]) -> None:
    """Write the file of one annotator."""
    shown = "".join(f'<image name="{name}" width="9" height="9">{shapes}</image>' for name, shapes in images.items())
    folder.mkdir(exist_ok=True)
    (folder / f"{worker}.xml").write_text(f"<annotations><version>1.1</version>{shown}</annotations>")


def tag(label: str, more: str = "", **attributes: str) -> str:
    inner = "".join(f'<attribute name="{name}">{value}</attribute>' for name, value in attributes.items())
    return f'<tag label="{label}"{more}>{inner}</tag>'


@pytest.fixture
def animals(tmp_path: Path) -> Path:
    """Two annotators who gave attributes of tags; the last image has tags of a program alone."""
    seen = tag("animal", species="cat", coat="  ") + tag("weather", kind="sun")
    job(tmp_path / "jobs", "ann", {"1.jpg": seen, "2.jpg": tag("animal", species="dog"), "3.jpg": ""})
    guessed = tag("animal", AUTO, species="owl")
    bob = {"1.jpg": tag("animal", species="dog", coat="long"), "2.jpg": tag("animal", species=""), "3.jpg": guessed}
    job(tmp_path / "jobs", "bob", bob)
    return tmp_path / "jobs"


def test_attributes_of_tags_are_questions(animals: Path) -> None:
    with pytest.raises(DataError, match="has several questions") as caught:
        cw.read(animals)
    for name in ("animal/species", "animal/coat", "weather/kind", "tags"):
        assert repr(name) in str(caught.value)
    answers = cw.read(animals, question="animal/species")
    assert rows_of(answers) == [("1.jpg", "ann", "cat"), ("1.jpg", "bob", "dog"), ("2.jpg", "ann", "dog")]
    assert left_out(answers) == {"empty": 3, "prediction": 1}
    assert rows_of(cw.read(animals, question="animal/coat")) == [("1.jpg", "bob", "long")]


def test_attributes_of_several_tags_of_one_name_are_a_set(tmp_path: Path) -> None:
    both = tag("animal", species="cat") + tag("animal", species="owl") + tag("animal", species="cat")
    job(tmp_path, "ann", {"1.jpg": both})
    assert rows_of(cw.read(tmp_path, question="animal/species", sets="joined")) == [("1.jpg", "ann", "cat | owl")]


def test_attributes_of_shapes_are_not_used(tmp_path: Path) -> None:
    box = '<box label="car" xtl="1" ytl="2" xbr="3" ybr="6"><attribute name="colour">red</attribute></box>'
    job(tmp_path, "ann", {"1.jpg": box})
    assert rows_of(cw.read(tmp_path)) == [("1.jpg", "ann", 2.0, 4.0)]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_no_cell_of_a_converted_table_has_the_name_of_a_worker(animals: Path, ending: str, tmp_path: Path) -> None:
    job(animals, "bob", {"1.jpg": '<points label="ear" points="1,2"/>' + tag("animal", AUTO), "2.jpg": ""})
    out = tmp_path / f"table.{ending}"
    cw.convert(animals, out, pseudonymise=tmp_path / "key.txt")
    text = out.read_text()
    assert "worker-" in text
    assert "ann" not in text
    assert "bob" not in text


def test_programs_in_the_jobs_of_several_annotators_draw_one_after_the_other(tmp_path: Path) -> None:
    """Both files have the same image with shapes of a program: those in the last file count, not both."""
    for worker, place in (("ann", "1,2"), ("bob", "1.5,2")):
        job(tmp_path, worker, {"1.jpg": f'<points label="ear" points="{place}"{AUTO}/>'})
    clicks = cw.read(tmp_path, keep="prediction")
    drawn: list[Any] = [row for row in rows_of(clicks) if row[1] == "model:auto"]
    assert drawn == [("1.jpg", "model:auto", 1.5, 2.0)]
    assert "repeated" in json.dumps(clicks.intake.as_dict())
