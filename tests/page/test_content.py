"""Text and pictures of tasks, members of clusters and true objects on the page, in Chromium."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from browsing import cut_off, data_of, serious, small_targets, unfold, width_of
from conftest import HOSTILE
from playwright.sync_api import Page, expect

import crowdwise as cw
from crowdwise.errors import ColumnError, ParameterError
from crowdwise.metrics import match_images
from crowdwise.report import pictures as picture_files
from crowdwise.report.page import page_of
from crowdwise.report.sections.pairs import _shown
from crowdwise.report.thumbnails import png

LONG = "A sentence that goes on for a while. " * 20
RIGHT_TO_LEFT = "\u05e9\u05dc\u05d5\u05dd <b>x</b>"


def picture(grey: int = 90, side: int = 40) -> bytes:
    return png(np.full((side, side), grey, np.uint8))


# ----------------------------------------------------------------------------------------------------------- labels


@pytest.fixture(scope="session")
def votes() -> cw.LabelsResult:
    """Six tasks of two answers each, which disagree."""
    rows = [(n, worker, label) for n in range(1, 7) for worker, label in (("ann", "yes"), ("bob", "no"))]
    return cw.aggregate(cw.Labels(pl.DataFrame(rows, ["task", "worker", "label"], orient="row")), "majority-vote")


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    for name in ("1.png", "cat.png", "dog.png"):
        (folder / name).write_bytes(picture())
    return folder


@pytest.fixture(scope="session")
def labels_file(votes: cw.LabelsResult, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Task 1 has both, 2 a picture, 3 a long text, 4 one from right to left, 5 a formula; 6 has nothing."""
    about = pl.DataFrame(
        {
            "task": ["1", "2", "3", "4", "5"],
            "text": ["a cat\non a mat", None, LONG, RIGHT_TO_LEFT, "=1+1"],
            "image": ["cat.png", "dog", None, None, "none.png"],
        }
    )
    path = tmp_path_factory.mktemp("labels") / "page.html"
    return votes.report(path, content=cw.read_content(about, pictures=photos))


def card(page: Page, task: int) -> Any:
    return page.locator(f"article[aria-label*='{task}']")


def test_tasks_show_their_text_and_picture(look: Any, labels_file: Path) -> None:
    page = look(labels_file)
    expect(card(page, 1).locator(".about")).to_have_text("a cat\non a mat", use_inner_text=True)
    for task, pictured in ((1, True), (2, True), (3, False), (6, False)):
        assert card(page, task).locator("img").count() == pictured
    image = card(page, 2).locator("img")
    assert image.evaluate("e => e.naturalWidth") == 40
    assert "Picture of task" in image.get_attribute("alt")
    assert card(page, 6).locator(".about").count() == 0
    turned = card(page, 4).locator(".passage")
    assert turned.inner_text() == RIGHT_TO_LEFT, "markup is text"
    assert turned.evaluate("e => getComputedStyle(e).direction") == "rtl"
    expect(page.locator("#tasks")).to_contain_text("4 of 6 tasks are shown with their text.")
    expect(page.locator("#tasks")).to_contain_text("2 of 6 tasks are shown with their picture. No file is named: 3. No")


def test_a_long_text_can_be_opened(visit: Any, labels_file: Path) -> None:
    page = visit(labels_file)
    text, toggle = card(page, 3).locator(".passage"), card(page, 3).get_by_role("button")
    assert page.get_by_role("button", name="Show the whole text").count() == 1
    before = text.bounding_box()["height"]
    assert before < 90
    toggle.click()
    assert text.bounding_box()["height"] > 1.5 * before
    assert (toggle.inner_text(), toggle.get_attribute("aria-expanded")) == ("Show less of the text", "true")
    toggle.click()
    assert text.bounding_box()["height"] == before


def test_the_saved_list_has_the_text(visit: Any, labels_file: Path) -> None:
    page = visit(labels_file)
    with page.expect_download() as coming:
        page.get_by_role("button", name="Save this list").click()
    head, *rows = csv.reader(io.StringIO(Path(coming.value.path()).read_bytes().decode(), newline=""))
    assert head[-1] == "text"
    texts = {row[0]: row[-1] for row in rows}
    assert (texts["1"], texts["5"], texts["6"]) == ("a cat\non a mat", "'=1+1", "")


def test_pictures_alone_are_found_by_the_name_of_the_task(votes: cw.LabelsResult, photos: Path) -> None:
    tasks = page_of(votes, {"content": cw.read_content(pictures=photos)})["tasks"]
    assert [row.task for row in tasks.rows if row.picture] == ["1"]
    assert tasks.notes == ["1 of 6 tasks are shown with their picture. No file of that name in the folder: 5."]
    assert page_of(votes, {})["tasks"].notes == []


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("dark", [False, True])
def test_text_and_pictures_fit_and_can_be_read_by_all(visit: Any, labels_file: Path, width: int, dark: bool) -> None:
    page = visit(labels_file, width=width, dark=dark)
    assert width_of(page) <= width
    assert cut_off(page) == []
    assert small_targets(page) == []
    assert serious(page) == []


def test_the_command_line_takes_content_and_pictures(
    command: Any, table: Any, photos: Path, tmp_path: Path, visit: Any
) -> None:
    answers = table("task,worker,label\n001,ann,yes\n001,bob,no\n2,ann,no\n2,bob,yes\n")
    about = table("task,text,image\n001,a cat,cat.png\n", "about.csv")
    out = tmp_path / "out"
    words = ("--content", about, "--pictures", photos)
    assert command("aggregate", answers, *words, "--out", out)[0] == 0
    first = {row["task"]: row for row in data_of(out / "report.html")["tasks"]["rows"]}["001"]
    assert (first["text"], first["picture"][:15]) == ("a cat", "data:image/png;")
    (out / "report.html").unlink()
    assert command("report", out, *words)[0] == 0
    expect(visit(out / "report.html").locator("article[aria-label*='001'] .about")).to_contain_text("a cat")


def test_s1_hostile_texts_are_text_in_the_browser(visit: Any, hostile_result: cw.LabelsResult, tmp_path: Path) -> None:
    about = cw.read_content({"task": list(HOSTILE), "text": list(reversed(HOSTILE))})
    page = visit(hostile_result.report(tmp_path / "page.html", content=about), width=360)
    while page.locator("#tasks .more").is_visible():
        page.locator("#tasks .more").click()
    assert page.locator("#tasks .passage").count() >= 10
    assert page.locator("#tasks .passage *").count() == 0
    assert width_of(page) <= 360


# ------------------------------------------------------------------------------------------------------------ pairs


@pytest.fixture(scope="session")
def clusters() -> cw.PairsResult:
    """Three clusters: a to d, e to g, and z alone."""
    rows = [
        (left, right, worker, 1)
        for group in ("abcd", "efg") for n, left in enumerate(group) for right in group[n + 1 :]
        for worker in ("ann", "bob", "cem")
    ]  # fmt: skip
    rows += [(left, "z", worker, 0) for left in "ae" for worker in ("ann", "bob", "cem")]
    rows += [("a", "e", worker, 0) for worker in ("ann", "bob")]
    return cw.aggregate(cw.Pairs(pl.DataFrame(rows, ["left", "right", "worker", "answer"], orient="row")), "pair-vote")


def listed(result: cw.PairsResult, **options: Any) -> Any:
    return page_of(result, options)["clusters"].folds


def test_every_cluster_lists_its_members(clusters: cw.PairsResult) -> None:
    folds = listed(clusters).folds
    assert [fold.title for fold in folds] == ["Cluster 1: 4 items", "Cluster 2: 3 items", "Cluster 3: 1 item"]
    names = [{cell.name for cell, _ in fold.rows} for fold in folds]
    assert names == [set("abcd"), set("efg"), {"z"}]
    assert [fold.more for fold in folds] == ["", "", ""]


def test_members_are_sorted_by_probability() -> None:
    sim = cw.simulate.pinwheel(clusters=3, per_cluster=20, asked=24, workers=4, each=30, seed=26)
    result = cw.aggregate(sim.pairs, features=sim.features)
    for number, fold in enumerate(listed(result).folds, 1):
        own = result.clusters.filter(pl.col("cluster") == number)
        shown = [float(percent.split()[0]) for _, percent in fold.rows]
        assert shown == sorted(shown, reverse=True)
        assert shown == pytest.approx(sorted(100 * own["probability"], reverse=True), abs=0.06)


def test_members_are_cut_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    singles = [("a", "b", "w", 1), *((name, "c", "w", 0) for name in "defghi")]
    pairs = cw.Pairs(pl.DataFrame(singles, ["left", "right", "worker", "answer"], orient="row"))
    monkeypatch.setattr(_shown, "MAX_MEMBERS_PER_CLUSTER", 1)
    monkeypatch.setattr(_shown, "MAX_MEMBERS_LISTED", 4)
    pair, alone = listed(cw.aggregate(pairs, "pair-vote")).folds
    assert (len(pair.rows), pair.more) == (1, "and 1 more; clusters.csv holds all.")
    assert (alone.title, len(alone.rows)) == ("Clusters 2 to 8: one item each", 3)
    assert alone.more == "and 4 more; clusters.csv holds all."


def test_members_beyond_the_limit_are_in_the_file(clusters: cw.PairsResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_shown, "MAX_MEMBERS_LISTED", 4)
    shown = listed(cw.aggregate(clusters.answers, "pair-vote"))
    assert [fold.title for fold in shown.folds] == ["Cluster 1: 4 items"]
    assert shown.notes == ["Members of the first 1 clusters are listed; clusters.csv holds all."]


@pytest.fixture(scope="session")
def pairs_file(clusters: cw.PairsResult, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [f"<i>about</i> {name}" for name in "abcdefg"]
    about = pl.DataFrame({"item": list("abcdefg"), "text": texts, "image": ["cat.png"] * 2 + [None] * 5})
    path = tmp_path_factory.mktemp("pairs") / "page.html"
    return clusters.report(path, content=cw.read_content(about, pictures=photos))


@pytest.mark.parametrize("script", [True, False])
def test_clusters_can_be_opened_with_and_without_a_script(visit: Any, pairs_file: Path, script: bool) -> None:
    page = visit(pairs_file, script=script)
    member = page.locator(".members li").filter(has_text="<i>about</i> a")
    expect(member).to_be_hidden()
    page.locator("summary", has_text="Cluster 1: 4 items").click()
    expect(member).to_be_visible()
    assert member.locator("bdi").inner_text() == "a"
    assert member.locator(".value").inner_text().endswith("%")
    assert page.locator(".members img").count() == 2
    if script:
        assert member.locator("img").evaluate("e => e.naturalWidth") == 40
    expect(page.locator("#clusters")).to_contain_text("2 of 8 items are shown with their picture. No file is named: 6.")


@pytest.mark.parametrize("width", [1280, 360])
def test_members_fit_and_can_be_read_by_all(visit: Any, pairs_file: Path, width: int) -> None:
    page = visit(pairs_file, width=width, dark=width == 360)
    unfold(page)
    assert width_of(page) <= width
    assert cut_off(page) == []
    assert small_targets(page) == []
    assert serious(page) == []


def test_pictures_from_an_array_are_beside_the_members(clusters: cw.PairsResult) -> None:
    array = np.arange(8, dtype=np.uint8)[:, None, None] + np.zeros((8, 6, 6), np.uint8)
    cells = [cell for fold in listed(clusters, pictures=array).folds for cell, _ in fold.rows]
    assert sorted(thumb.item for cell in cells for thumb in cell.thumbs) == list(range(8))
    assert not any(thumb.photo for cell in cells for thumb in cell.thumbs)


def test_a_picture_counts_as_often_as_it_is_on_the_page(photos: Path) -> None:
    size = len(picture_files.pictures_of(["cat.png"], photos)[0][0] or "")
    once, twice = (
        picture_files.pictures_of(["cat.png", "dog.png"], photos, room=2 * size + 20, copies=[copies, 1])[0]
        for copies in (1, 2)
    )
    assert [src is not None for src in once] == [True, True]
    assert [src is not None for src in twice] == [True, False]
    assert picture_files.pictures_of(["cat.png"], photos, room=size + 20, copies=[2])[0] == [None]


# ----------------------------------------------------------------------------------------------------------- points

PLACES = [(30.0, 30.0), (100.0, 50.0), (170.0, 70.0)]
TRUTH = {"image": ["one"] * 3, "x": [31.0, 101.0, 60.0], "y": [30.0, 51.0, 90.0]}  # two of the three, and another


@pytest.fixture(scope="session")
def clicks() -> cw.PointsResult:
    """An image with three objects, and one that nobody clicked."""
    rng, workers = np.random.default_rng(3), [f"w{n}" for n in range(8)]
    rows = [("one", w, *rng.normal(place, 0.8).round(2).tolist()) for place in PLACES for w in workers]
    jobs = pl.DataFrame([(i, w) for i in ("one", "two") for w in workers], ["image", "worker"], orient="row")
    frame = pl.DataFrame(rows, ["image", "worker", "x", "y"], orient="row")
    return cw.aggregate(cw.Points(frame, jobs=jobs, box=(0, 0, 200, 100)))


def test_true_objects_are_matched_as_by_match_objects(clicks: cw.PointsResult) -> None:
    assert clicks.objects.height == 3
    one, two = page_of(clicks, {"truth": TRUTH, "within": 4.0})["images"].rows
    numbers = {round(o.x): o.object for o in one.objects}
    found = [numbers[min(numbers, key=lambda x: abs(x - place))] for place in (30, 100)]
    assert one.truth == [(31.0, 30.0, found[0]), (101.0, 51.0, found[1]), (60.0, 90.0, None)]
    assert {o.object: o.matched for o in one.objects} == {n: n in found for n in numbers.values()}
    assert two.truth == []
    row = cw.match_objects(clicks, TRUTH, within=4.0).row(0, named=True)
    assert (row["true"], row["matched"], row["found"]) == (3, 2, 3)
    match = match_images(clicks, TRUTH, within=4.0)["one"]
    assert sorted(match.columns.tolist()) == [0, 1]
    far = np.sqrt(((match.found[match.rows] - match.true[match.columns]) ** 2).sum(1).mean())
    assert row["error"] == pytest.approx(far)
    assert page_of(clicks, {})["images"].rows[0].truth is None


def test_a_truth_needs_a_distance_and_columns(clicks: cw.PointsResult) -> None:
    with pytest.raises(ParameterError, match=r"the truth needs a distance .* say within=4"):
        page_of(clicks, {"truth": TRUTH})
    with pytest.raises(ColumnError, match="no column 'image' in the truth"):
        page_of(clicks, {"truth": {"place": [1], "x": [1.0], "y": [1.0]}, "within": 4})


@pytest.fixture(scope="session")
def points_file(clicks: cw.PointsResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clicks.report(tmp_path_factory.mktemp("points") / "page.html", truth=TRUTH, within=4.0)


def marks(page: Page) -> list[int]:
    return [page.locator(f"#images .truths .truth-{mark}").count() for mark in ("found", "missed", "none")]


def test_marks_of_the_truth_have_shapes_a_key_and_a_box(visit: Any, points_file: Path) -> None:
    page = visit(points_file)
    assert marks(page) == [2, 1, 1]
    letters = "e => e.getAttribute('d').replace(/[^A-Za-z]/g, '')"
    kinds = ("found", "missed", "none")
    shapes = {page.locator(f"#images .truths .truth-{kind}").first.evaluate(letters) for kind in kinds}
    assert len(shapes) == 3
    key = page.locator("#images .key")
    for words in ("true object, found", "true object, missed", "object that matches no true one"):
        expect(key).to_contain_text(words)
    expect(page.locator("#images figcaption")).to_contain_text(
        "Of 3 true objects, 2 were found and 1 missed; 1 of 3 objects found matches no true object."
    )
    page.get_by_label("Truth", exact=True).uncheck()
    assert marks(page) == [0, 0, 0]
    expect(key).not_to_contain_text("true object")
    page.get_by_label("Truth", exact=True).check()
    frame = page.locator("#images rect.frame").evaluate("e => [e.x.baseVal.value, e.width.baseVal.value]")
    middle = "e => { const b = e.getBBox(); return b.x + b.width / 2 }"
    missed = page.locator("#images .truths .truth-missed").evaluate(middle)
    assert missed == pytest.approx(frame[0] + frame[1] * 60 / 200, abs=0.5), "at its place"
    page.get_by_role("button", name="Next").click()
    assert marks(page) == [0, 0, 0]


def test_without_a_truth_there_is_no_box_for_it(visit: Any, clicks: cw.PointsResult, tmp_path: Path) -> None:
    page = visit(clicks.report(tmp_path / "page.html"))
    assert page.get_by_label("Truth", exact=True).count() == 0
    expect(page.locator("#images .key")).not_to_contain_text("true object")
    assert "Truth" not in page.locator("#images thead").inner_text()


@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_with_a_truth_fits_and_can_be_read_by_all(visit: Any, points_file: Path, width: int) -> None:
    page = visit(points_file, width=width, dark=width == 360)
    assert width_of(page) <= width
    assert serious(page) == []


@pytest.mark.parametrize("verb", ["points", "aggregate"])
def test_the_command_line_draws_the_truth(command: Any, table: Any, clicks: cw.PointsResult, verb: str) -> None:
    answers = table(clicks.answers.frame().write_csv(), "clicks.csv")
    truth, about = table(pl.DataFrame(TRUTH).write_csv(), "truth.csv"), table("image,text\none,cells\n", "about.csv")
    out = answers.parent / "out"
    words = ("--truth", truth, "--content", about)
    status, _, err = command(verb, answers, "--box", "0,0,200,100", "--within", "3", *words, "--out", out)
    assert status == 0, err
    for _ in range(2):  # as the fit writes it, and as `report` does
        row = data_of(out / "report.html")["images"]["rows"][0]
        assert [true[2] is None for true in row["truth"]] == [False, False, True]
        assert row["text"] == "cells"
        (out / "report.html").unlink()
        assert command("report", out, "--within", "3", *words)[0] == 0
