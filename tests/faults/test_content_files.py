"""Text and pictures of tasks: every error before the fit, and names and texts that mean harm."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from browsing import data_of
from conftest import HOSTILE

import crowdwise as cw
from crowdwise.errors import ColumnError, DataError, FileError
from crowdwise.io.content import MAX_TEXT_CHARS
from crowdwise.report.thumbnails import png

PIXEL = png(pl.Series([90], dtype=pl.UInt8).to_numpy().reshape(1, 1))
ANSWERS = "task,worker,label\n1,ann,yes\n1,bob,no\n2,ann,no\n2,bob,no\n3,ann,yes\n3,bob,yes\n"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder of pictures beside a secret one, with a link that leads out of it."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for path in (folder / "1.png", folder / "cat.png", tmp_path / "secret.png"):
        path.write_bytes(PIXEL)
    os.symlink(tmp_path / "secret.png", folder / "link.png")
    return folder


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("key,text\n1,a cat\n", "no column 'task' or 'item' in about.csv; columns are key, text. Call the column of"),
        ("task,colour\n1,red\n", "neither a column 'text' nor a column 'image'; columns are task, colour"),
        ("task,image\n1,cat.png\n", "names files of pictures in its column 'image', but not the folder that"),
        ("task,text\n1,a cat\n1,a dog\n", "about.csv has different rows for task '1'. Keep one row per task"),
        ("task,text\nx,a cat\ny,a dog\n", "0 of 3 tasks are in about.csv, which has 'x', 'y'; the answers are about "
         "'1', '2'. Check its column of tasks"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["aggregate", "report"])
def test_content_that_cannot_be_shown_is_refused_before_the_fit(
    command: Any, table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, text: str, message: str
) -> None:
    monkeypatch.setattr("crowdwise.cli.job.Job.fit", lambda *_, **__: pytest.fail("this was said after the fit"))
    about = table(text, "about.csv")
    status, _, err = command(verb, table(ANSWERS), "--content", about, "--out", tmp_path / "out")
    assert status == 1
    assert message in err
    assert not (tmp_path / "out").exists()


def test_advice_is_in_the_language_of_the_caller(command: Any, table: Any, tmp_path: Path) -> None:
    about = table("task,image\n1,cat.png\n", "about.csv")
    assert "--pictures DIR" in command("aggregate", table(ANSWERS), "--content", about, "--out", tmp_path / "out")[2]
    with pytest.raises(ColumnError, match="pictures='DIR'"):
        cw.read_content(about)


@pytest.mark.parametrize("kind", ["points", "pairs"])
def test_content_of_other_kinds_must_name_their_images_or_items(command: Any, table: Any, kind: str) -> None:
    rows = {"points": "image,worker,x,y\na,ann,3,4\na,bob,3,5\n", "pairs": "left,right,worker,answer\na,b,ann,1\n"}
    noun = {"points": "1 images", "pairs": "2 items"}[kind]
    about = table("id,text\nx,a cat\n", "about.csv")
    status, _, err = command("aggregate", table(rows[kind]), "--content", about, "--out", about.parent / "out")
    assert status == 1
    assert f"0 of {noun} are in about.csv" in err


def test_python_users_get_the_same_errors(tmp_path: Path) -> None:
    result = cw.aggregate(cw.Labels({"task": [1, 2], "worker": ["a", "a"], "label": [0, 1]}), "majority-vote")
    with pytest.raises(DataError, match="0 of 2 tasks are in the content, which has 'x'; the answers"):
        result.report(tmp_path / "page.html", content={"x": "a cat"})
    with pytest.raises(FileError, match=r"no folder .*nowhere to take pictures from"):
        cw.read_content(pictures=tmp_path / "nowhere")
    with pytest.raises(FileError, match=r"cannot read .*nowhere\.csv"):
        cw.read_content(tmp_path / "nowhere.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_truth_is_drawn_of_clicks_only(command: Any, table: Any) -> None:
    answers, truth = table(ANSWERS), table("task,label\n1,yes\n", "truth.csv")
    status, _, err = command("report", answers, "--truth", truth, "--out", answers.parent / "page.html")
    assert status == 2
    assert "--truth of a page applies to clicks; this is a result of labels. Omit it" in err


def test_the_table_of_answers_may_hold_the_texts() -> None:
    """The same text stands beside every answer to a task."""
    about = cw.read_content({"task": [1, 1, 2], "worker": ["a", "b", "a"], "text": ["cat", "cat", None]})
    assert (about.text(1), about.text("1"), about.text(1.0), about.text(2)) == ("cat", "cat", "cat", None)


@pytest.mark.parametrize("columns", [("task", "text"), ("Item ID", "Sentence"), ("id", "content"), ("image", "text")])
def test_common_names_of_columns_are_known(columns: tuple[str, str]) -> None:
    assert cw.read_content(dict(zip(columns, (["1"], ["a cat"]), strict=True))).text("1") == "a cat"


def test_a_long_text_is_cut() -> None:
    about = cw.read_content({"1": "M" * 1_000_000})
    assert about.text("1") == "M" * (MAX_TEXT_CHARS - 1) + "\u2026"
    assert MAX_TEXT_CHARS == 2_000


@pytest.mark.parametrize(
    "name",
    ["../secret.png", "{folder}/../secret.png", "{folder}/1.png", "/etc/passwd", "..\\secret.png", "link.png",
     "https://example.org/cat.png", "file:///etc/passwd", "data:image/png;base64,AAAA", "<img src=x>", "nul\0"],
)  # fmt: skip
def test_s8_no_picture_comes_from_outside_the_folder(photos: Path, tmp_path: Path, name: str) -> None:
    result = cw.aggregate(cw.Labels({"task": ["1", "1"], "worker": ["a", "b"], "label": [0, 1]}), "majority-vote")
    about = cw.read_content({"task": ["1"], "image": [name.format(folder=photos)]}, pictures=photos)
    path = result.report(tmp_path / "page.html", content=about)
    data = data_of(path)["tasks"]
    assert data["rows"][0]["picture"] is None
    assert data["notes"] == ["0 of 1 tasks are shown with their picture. No file of that name in the folder: 1."]
    fine = cw.read_content({"task": ["1"], "image": ["cat.png"]}, pictures=photos)
    assert data_of(result.report(path, content=fine))["tasks"]["rows"][0]["picture"].startswith(
        "data:image/png;base64,"
    )


def test_s1_hostile_texts_are_data_and_not_markup(hostile_result: cw.LabelsResult, tmp_path: Path) -> None:
    about = cw.read_content({"task": list(HOSTILE), "text": list(reversed(HOSTILE))})
    html = hostile_result.report(tmp_path / "page.html", content=about).read_text()
    rows = data_of(tmp_path / "page.html")["tasks"]["rows"]
    texts = {row["task"]: row["text"] for row in rows}
    cut = {each if len(each) <= MAX_TEXT_CHARS else each[: MAX_TEXT_CHARS - 1] + "\u2026" for each in HOSTILE}
    assert set(texts.values()) <= {*cut, None}
    assert texts["=1+1"] == HOSTILE[::-1][HOSTILE.index("=1+1")]
    assert "<img src=x" not in html
    assert len(html) < 1_500_000
