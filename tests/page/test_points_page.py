"""The page of points: one closed file whatever names it holds, pictures from one folder only; and in Chromium."""

from __future__ import annotations

import base64
import dataclasses
import os
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from browsing import (
    cut_off,
    data_of,
    edges,
    first_picture,
    on_a_phone,
    painted,
    section_ids,
    serious,
    small_targets,
    unfold,
    width_of,
)
from conftest import HOSTILE
from playwright.sync_api import Locator, Page, expect

import crowdwise as cw
from crowdwise.errors import FileError
from crowdwise.report import pictures as picture_files
from crowdwise.report.page import Page as ReportPage
from crowdwise.report.page import page_of
from crowdwise.report.render import page_html
from crowdwise.report.sections.points import images as images_section
from crowdwise.result import Objects

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = ["summary", "images", "workers", "search", "about", "log", "glossary", "again"]
CORNERS = (0.0, 0.0, 0.0), (200.0, 100.0, 2.0)
COVARIANCE = np.array([[4.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 2.0]])


def png(width: int = 4, height: int = 3, grey: int = 90) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = (b"\0" + bytes([grey]) * width) * height
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def clicked(
    images: Any = ("one", "two"),
    workers: Any = ("ann", "bob", "cem"),
    objects: int = 4,
    *,
    doubt: float = 0.6,
    box: bool = True,
    axes: str = "xy",
    **new: Any,
) -> cw.PointsResult:
    """A result with some objects per image, each clicked by every worker, and a click of each beside them.

    The last object of an image has the probability `doubt`; the image after the first has one object less, and so on.
    Two more clicks are outside the box. `new` are other values of the result, or of what was learnt.
    """
    D, W = len(axes), len(workers)
    places = {
        image: np.linspace((30, 30, 1), (170, 70, 1), max(objects - n, 0))[:, :D] for n, image in enumerate(images)
    }
    points = _points(places, workers, axes, box)
    centres = [places[image] for image in points.images]
    many = np.array([len(each) for each in centres])
    ptr, M = np.concatenate([[0], np.cumsum(many)]), int(many.sum())
    probability = np.full(M, 0.99)
    probability[ptr[1:][many > 0] - 1] = doubt
    on = points.extras["on"].to_numpy()
    params = Objects(
        ptr=ptr, mean=np.concatenate(centres), cov=np.tile(COVARIANCE[:D, :D], (M, 1, 1)),
        share=np.repeat(1 / np.maximum(many, 1), many), clicks=np.full(M, float(W)), probability=probability,
        reliability=np.array([0.9 - list(workers).index(worker) / 50 for worker in points.workers]),
        low=np.full(W, 0.7), high=np.full(W, 0.95), noise=np.ones(W),
        outlier=np.where(on > 0, 0.04, 0.9), object=np.where(on > 0, ptr[points.image] + on - 1, -1),
        chance=np.where(on > 0, 0.95, 0.0), once=np.array(1),
    )  # fmt: skip
    trace = {"iteration": [1, 2, 3, 4], "objective": [-90.5, -70.0, -60.0, -65.0], "objects": [9, 8, 7, 6]}
    learnt = {name: new.pop(name) for name in list(new) if name in Objects._fields}
    made = {"trace": pl.DataFrame(trace), "best": 3, "criterion": "evidence", "converged": True, "seed": 7}
    return cw.PointsResult(
        answers=points, model=cw.model("click-mixture", start=40), params=params._replace(**learnt), seconds=0.5,
        **made | new,
    )  # fmt: skip


def _points(places: dict[Any, Any], workers: Any, axes: str, box: bool) -> cw.Points:
    """Clicks on and beside these places of each image, with the column `on`: the object of each, or 0."""
    D, rng = len(axes), np.random.default_rng(3)
    rows: list[tuple[Any, ...]] = []
    for image, objects in places.items():
        for k, place in enumerate(objects):
            rows += [(image, w, *rng.normal(place[:2], 2).round(1).tolist(), *place[2:], k + 1) for w in workers]
        if len(objects):
            rows += [(image, w, *(10.0 + 9 * k, 90.0, 1.0)[:D], 0) for k, w in enumerate(workers)]
    if box:
        rows += [(next(iter(places)), workers[k], *(900.0 + k, 1.0, 1.0)[:D], 0) for k in (0, 1)]
    jobs = [(image, worker) for image in places for worker in workers]
    return cw.Points(
        pl.DataFrame(rows, ["image", "worker", *axes, "on"], orient="row"),
        jobs=pl.DataFrame(jobs, ["image", "worker"], orient="row"), axes=None if axes == "xy" else list(axes),
        box=[*CORNERS[0][:D], *CORNERS[1][:D]] if box else None, source="clicks.csv", notes=["read as CSV"],
    )  # fmt: skip


def of_images(result: cw.PointsResult, some: list[int]) -> cw.PointsResult:
    """The same of some images without objects, by number."""
    gone = ("mean", "cov", "share", "clicks", "probability", "outlier", "object", "chance")
    learnt = {name: getattr(result.params, name)[:0] for name in gone} | {"ptr": np.zeros(len(some) + 1, np.int64)}
    points = result.answers.only(np.array(some, np.int64))
    return dataclasses.replace(result, answers=points, params=result.params._replace(**learnt))


@pytest.fixture(scope="session")
def result() -> cw.PointsResult:
    return clicked()


@pytest.fixture(scope="session")
def page(result: cw.PointsResult) -> ReportPage:
    """Its page, with methods compared with the truth."""
    return page_of(result, {"judged": JUDGED})


@pytest.fixture(scope="session")
def file(result: cw.PointsResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the same page."""
    return result.report(tmp_path_factory.mktemp("points") / "new" / "page.html", judged=JUDGED)


JUDGED = [
    {"method": "merging", "success": 0.99, "ase": [0.004, 0.003, float("nan"), 0.005], "mae": 0.09},
    {"method": "<b>fcm</b>", "success": 0.47, "ase": [0.9, 0.05], "mae": None},
    {"method": "none", "success": None, "ase": [], "mae": 0.2},
]


# --------------------------------------------------------------------------------------------------------- one file


def test_the_page_is_one_closed_file_with_all_sections(result: cw.PointsResult, file: Path) -> None:
    html = file.read_text()
    sections = [*SECTIONS[:4], "methods", *SECTIONS[4:]]
    assert [each.name for each in file.parent.iterdir()] == ["page.html"]
    assert re.findall(r'<section id="(\w+)"', html) == sections
    assert re.findall(r'href="(#\w+)"', html)[1:] == [f"#{section}" for section in sections]
    assert "img-src data:;" in html
    assert "unsafe" not in html.split("</head>")[0].split("Content-Security-Policy")[1][:400]
    assert "Objects found from 27 clicks" in html
    assert "27 clicks: 2 images, 3 workers, 7 objects" in html
    [warning] = result.warnings
    for said in (warning, "outside the box", "row 28: one, ann, 900.0, 1.0", "read as CSV"):
        assert said in html


def test_the_tiles_tell_what_the_tables_hold(page: ReportPage) -> None:
    tiles = {tile.name: (tile.value, tile.detail) for tile in page.summary.tiles}
    assert tiles["Objects found"] == ("7", "3.5 per image with objects")
    assert tiles["Images"] == ("2", "all with objects")
    assert tiles["Clicks on no object"] == ("22.2\u202f%", "6 of 27")
    assert tiles["Median reliability"] == ("88.0\u202f%", "of 3 workers")
    assert tiles["Doubtful objects to review"] == (
        "2", "probability below 90\u202f%; about 1 object may not be real"
    )  # fmt: skip


def test_the_command_makes_the_result_again(result: cw.PointsResult, page: ReportPage) -> None:
    assert page.command == 'crowdwise.aggregate(answers, "click-mixture", start=40, run=crowdwise.Run(seed=7))'
    intake = dataclasses.replace(result.answers.intake, path="clicks.csv")
    read = dataclasses.replace(result, answers=result.answers.replaced(intake=intake))
    assert page_of(read, {}).command == (
        'crowdwise.aggregate(crowdwise.read_points("clicks.csv", box=[0.0, 0.0, 200.0, 100.0]), "click-mixture", '
        "start=40, run=crowdwise.Run(seed=7))"
    )
    assert page_of(result, {"command": "crowdwise points"}).command == "crowdwise points"


def test_hostile_names_are_inert_and_short(tmp_path: Path) -> None:
    tame = [f"{n:02d}" for n in range(len(HOSTILE))]
    path, plain = (
        clicked(names, names, 2).report(tmp_path / f"{n}.html", judged=JUDGED)
        for n, names in enumerate((HOSTILE, tame))
    )
    tags = [sorted(re.findall(r"<[a-z]+", file.read_text().split("<script", 1)[0])) for file in (path, plain)]
    assert tags[0] == tags[1]
    [text] = re.findall(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert not set(text) & set("<>&\u2028")
    assert len(path.read_text()) < 700_000
    cut = {name if len(name) <= 120 else name[:119] + "\u2026" for name in HOSTILE}
    assert {row["image"] for row in data_of(path)["images"]["rows"]} == cut
    assert {row["worker"] for row in data_of(path)["workers"]["rows"]} == cut


def test_numbers_may_be_names_and_values_may_be_unknown(tmp_path: Path) -> None:
    cov = np.tile(COVARIANCE[:2, :2], (7, 1, 1))
    cov[:, 0, 1] = cov[:, 1, 0] = np.nan
    unknown = {"probability": np.full(7, np.nan), "low": np.full(2, np.nan), "cov": cov}
    data = data_of(clicked((1, 2), (10, 11), **unknown).report(tmp_path / "page.html"))
    assert [row["image"] for row in data["images"]["rows"]] == ["1", "2"]
    assert data["images"]["workers"] == ["10", "11"]
    assert {(row["low"], row["hit_rate"]) for row in data["workers"]["rows"]} == {(None, None)}
    first = data["images"]["rows"][0]["objects"][0]
    assert (first["probability"], first["doubtful"]) == (None, True)
    assert first["ellipse"] == pytest.approx([2 * np.sqrt(3), 2 * np.sqrt(3), 0.0], abs=0.01), "by the spread"


def test_an_ellipse_has_the_axes_of_the_covariance() -> None:
    turned = clicked(objects=1, cov=np.array([[[5.0, 3.0], [3.0, 5.0]]]))
    [each] = page_of(turned, {})["images"].rows[0].objects
    assert each.ellipse == pytest.approx((2 * np.sqrt(8), 2 * np.sqrt(2), 45.0), abs=0.01)


# ------------------------------------------------------------------------------------------------ what is left out


def test_images_with_most_doubts_come_first_and_what_is_left_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images_section, "MAX_IMAGES_SHOWN", 2)
    result = clicked(("sure", "odd", "odder"), doubt=0.95)  # images are sorted: odd, odder, sure
    odd = np.where(result.image_of == 1, 0.2, result.params.probability)
    odd[0] = 0.3
    images = page_of(dataclasses.replace(result, params=result.params._replace(probability=odd)), {})["images"]
    assert [row.image for row in images.rows] == ["odder", "odd"]
    assert images.total == 3
    assert images.headline.endswith("3 are doubtful, in 2 images; the first of these images has 2.")
    assert images.notes[0].startswith("2 of 3 images are shown")
    assert "with 15 clicks, are in objects.csv and clicks.csv" in images.notes[0]


def test_clicks_have_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    result = clicked(("large", "small"), objects=4)
    monkeypatch.setattr(images_section, "MAX_CLICKS_SHOWN", 20)
    assert [row.image for row in page_of(result, {})["images"].rows] == ["large"]
    monkeypatch.setattr(images_section, "MAX_CLICKS_SHOWN", 10)
    images = page_of(clicked(("large",), objects=4), {})["images"]
    [row] = images.rows
    assert (len(row.clicks.x), row.total, row.off) == (10, 15, 3)
    assert images.notes == ["The image has too many clicks to show: 10 of them are drawn. clicks.csv holds all."]


def test_many_workers_are_cut_to_the_best_and_the_worst() -> None:
    workers = page_of(clicked(("one",), range(500), 1), {})["workers"]
    assert (workers.total, len(workers.rows)) == (500, 400)
    assert [workers.rows[n].rank for n in (0, 199, 200, 399)] == [1, 200, 301, 500]
    assert [workers.rows[n].worker for n in (0, 199, 200, 399)] == ["0", "199", "300", "499"]
    assert workers.headline.endswith("the table shows the 200 best and the 200 worst.")


def test_more_coordinates_than_two_are_told(page: ReportPage) -> None:
    assert page["images"].notes == []
    [note] = page_of(clicked(axes="xyz"), {})["images"].notes
    assert note.startswith("Points have 3 coordinates (x, y, z); the pictures show x and y")
    [row, _] = page_of(clicked(axes="uvw"), {})["images"].rows
    assert (row.box, row.objects[3].x, row.clicks.y[0]) == ((0.0, 0.0, 200.0, 100.0), 170.0, 90.0)
    assert row.objects[0].ellipse == pytest.approx((4.2, 2.52, 22.5), abs=0.01)
    [row, _] = page_of(clicked(axes="t"), {})["images"].rows
    assert (row.box, row.objects[3].y, row.objects[0].ellipse) == ((0.0, -25.0, 200.0, 25.0), 0.0, (4.0, 4.0, 0.0))
    [note] = page_of(clicked(box=False), {})["images"].notes
    assert "frame of each is that of its clicks" in note


# --------------------------------------------------------------------------------------------------------- pictures


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "pictures"
    (made / "deep").mkdir(parents=True)
    for name in ("one.png", "bare", "deep/two.jpg"):
        (made / name).write_bytes(png())
    (made / "text.png").write_text("<svg onload=alert(1)>")
    (tmp_path / "secret.png").write_bytes(png())
    os.symlink(tmp_path / "secret.png", made / "link.png")
    os.mkfifo(made / "pipe")
    return made


def test_pictures_are_found_by_name_with_or_without_an_ending(folder: Path) -> None:
    wanted = f"data:image/png;base64,{base64.b64encode(png()).decode()}"
    found, notes = picture_files.pictures_of(["one", "one.png", "bare", "deep/two"], folder)
    assert (found, notes) == ([wanted] * 4, [])


@pytest.mark.parametrize(
    "name",
    ["../secret", "../secret.png", "deep/../../secret", "{folder}/../secret.png", "..\\secret.png", "C:secret.png",
     "link", "link.png", "..", ".", "", " ", "deep", "pipe", "nul\0", "x" * 5000, "none", "\ud800"],
)  # fmt: skip
def test_no_name_leads_out_of_the_folder(folder: Path, name: str) -> None:
    found, [note] = picture_files.pictures_of([name.format(folder=folder)], folder)
    assert found == [None]
    assert note == "0 of 1 images are shown with their picture. No file of that name in the folder: 1."


def test_only_pictures_are_taken_and_they_have_a_budget(folder: Path) -> None:
    found, [note] = picture_files.pictures_of(["text", "one", "bare", "none"], folder, room=150)
    assert [picture is not None for picture in found] == [False, True, False, False]
    assert note.startswith("1 of 4 images are shown with their picture. Not a PNG, JPEG, WebP or GIF: 1. Omitted, as")
    assert picture_files.MAX_CHARS == 20_000_000


def test_a_folder_that_is_not_there_is_told(result: cw.PointsResult, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"no folder .*nowhere to take pictures from"):
        result.report(tmp_path / "page.html", pictures=tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------------------- methods


def test_methods_are_told_where_they_were_judged(result: cw.PointsResult, page: ReportPage, file: Path) -> None:
    assert page["methods"] is not None
    first, second, third = page["methods"].rows
    assert (first.runs, first.median, first.curve) == (4, 0.004, [(0.003, 0.25), (0.004, 0.5), (0.005, 0.75)])
    assert (second.mae, third.curve, third.median) == (None, [], None)
    assert "merging" in page["methods"].headline
    assert page_of(result, {})["methods"] is None
    assert ">ASE<" in file.read_text()


def test_without_methods_their_section_is_left_out(result: cw.PointsResult) -> None:
    assert re.findall(r'<section id="(\w+)"', page_html(page_of(result, {}))) == SECTIONS


# ------------------------------------------------------------------------------------------------------- in Chromium


def objects_of(page: Page) -> Locator:
    return page.locator("#images [data-object]")


def test_images_rows_and_ellipses_are_linked(visit: Any, file: Path) -> None:
    page = visit(file)
    assert page.get_by_text("could not be drawn").count() == 0
    assert section_ids(page) == [*SECTIONS[:4], "methods", *SECTIONS[4:]]
    assert objects_of(page).count() == 4
    assert objects_of(page).locator("xpath=self::*[contains(@class, 'doubtful')]").count() == 1
    assert page.locator("#images .numbers text").all_text_contents() == ["4", "1", "2", "3"], "the doubtful first"
    caption = page.locator("#images figcaption")
    expect(caption).to_contain_text("15 clicks, 4 objects, 1 of them doubtful; 20.0\u202f% of the clicks are on no")
    wide, high = page.locator("#images rect.frame").evaluate("e => [e.width.baseVal.value, e.height.baseVal.value]")
    assert wide / high == pytest.approx(2), "the shape of the image"
    page.get_by_role("button", name="Next").click()
    expect(caption).to_contain_text("3 objects")
    assert objects_of(page).count() == 3
    page.get_by_role("button", name="Next").click()
    assert page.get_by_role("combobox", name="Image", exact=True).input_value() == "0", "after the last comes the first"
    page.get_by_role("combobox", name="Image", exact=True).select_option(index=1)
    expect(caption).to_contain_text("3 objects")
    page.locator("#images .pick").nth(1).click()
    chosen = page.locator("#images .object.chosen")
    assert chosen.get_attribute("data-object") == "2"
    assert chosen.get_attribute("aria-pressed") == "true"
    assert sorted(page.locator("#images .detail tbody th").all_text_contents()) == ["ann", "bob", "cem"]
    assert page.locator("#images .rings .find").count() == 2
    page.locator("#images .stage").scroll_into_view_if_needed()
    box = objects_of(page).nth(2).locator(".centre").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert chosen.get_attribute("data-object") == "3"
    assert page.locator("#images tr.chosen th").inner_text() == "3"
    page.locator("#images .pick").nth(2).click()
    assert chosen.count() == 0


def test_what_is_shown_can_be_chosen(visit: Any, file: Path) -> None:
    page = visit(file)
    all_ = painted(page, "#images canvas")
    page.get_by_label("Clicks on no object").uncheck()
    on = painted(page, "#images canvas")
    page.get_by_label("Clicks on objects").uncheck()
    assert all_ > on > painted(page, "#images canvas") == 0
    slider = page.get_by_label("Objects with probability at least")
    slider.fill("61")
    assert objects_of(page).count() == 3
    assert page.locator("#images .list .status").inner_text() == "Showing 3 of 3 objects."
    page.get_by_label("Objects", exact=True).uncheck()
    assert objects_of(page).count() == 0
    page.get_by_label("Clicks on objects").check()
    page.get_by_label("Colour clicks by").select_option("object")
    expect(page.locator("#images .key")).to_contain_text("tied to its object")
    before = page.locator("#images canvas").bounding_box()["width"]
    page.get_by_label("Zoom").select_option("2\u00d7")
    assert page.locator("#images canvas").bounding_box()["width"] > 1.9 * before
    assert width_of(page) <= 1280


def test_keys_walk_clicks_and_objects_and_a_tip_tells_of_them(visit: Any, file: Path) -> None:
    page = visit(file)
    tip, canvas = page.locator("#images .tip"), page.locator("#images canvas")
    canvas.focus()
    expect(tip).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(tip).to_contain_text("annreliability 90.0\u202f%on no object (probability 90.0\u202f%)at 10, 90")
    page.keyboard.press("ArrowRight")
    expect(tip).to_contain_text("annreliability 90.0\u202f%on object 1 (probability 95.0\u202f%)")
    page.keyboard.press("End")
    expect(tip).to_contain_text("cemreliability 86.0\u202f%on object 4 (probability 95.0\u202f%)")
    assert canvas.get_attribute("aria-valuenow") == canvas.get_attribute("aria-valuemax") == "15"
    assert "cem" in canvas.get_attribute("aria-valuetext")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page.keyboard.press("Tab")
    expect(tip).to_contain_text("Object 1probability 99.0\u202f%3 of 3 workers")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("End")
    expect(tip).to_contain_text("Object 4, doubtful")
    page.keyboard.press("Enter")
    assert page.locator("#images .object.chosen").get_attribute("data-object") == "4"
    assert page.evaluate("document.activeElement.dataset.object") == "4", "the focus stays"
    assert page.locator("#images [data-object][tabindex='0']").count() == 1


def test_the_picture_lies_under_the_points(visit: Any, tmp_path: Path) -> None:
    for name, size in (("one", (200, 100)), ("two", (400, 300))):
        (tmp_path / f"{name}.png").write_bytes(png(*size))
    page = visit(clicked(box=False).report(tmp_path / "page.html", pictures=tmp_path))
    picture, frame = page.locator("#images img"), page.locator("#images rect.frame")
    expect(picture).to_be_visible()
    same = "e => [e.getBoundingClientRect().width, e.getBoundingClientRect().height].map(Math.round)"
    assert picture.evaluate("e => e.naturalWidth") == 200
    assert picture.evaluate(same) == frame.evaluate(same)
    page.get_by_label("Picture").uncheck()
    expect(picture).to_be_hidden()
    page.get_by_label("Picture").check()
    page.get_by_role("button", name="Next").click()
    page.wait_for_function("document.querySelector('#images img').naturalWidth === 400")
    expect(frame).to_have_attribute("width", re.compile(r"\d"))
    wide, high = frame.evaluate(same)
    assert wide / high == pytest.approx(4 / 3, abs=0.01), "clicks are pixels of a larger picture"


def test_workers_search_and_methods_have_their_numbers(visit: Any, file: Path) -> None:
    page = visit(file)
    assert page.locator("#workers tbody th bdi").all_text_contents() == [*("ann", "bob", "cem")] * 2
    page.get_by_role("button", name="Hit rate").click()
    page.get_by_role("searchbox").fill("bo")
    assert page.locator("#workers table.workers tbody th").all_inner_texts() == ["bob"]
    assert page.locator("#search .chart svg").count() == 2
    rings = page.locator("#search .chart circle[r='7'] title")
    assert rings.all_text_contents() == ["iteration 3: evidence \u221260", "iteration 3: objects 7"]
    assert page.locator("#search .twin tbody tr").count() == 4
    assert page.locator("#methods .key bdi").all_text_contents() == ["merging", "<b>fcm</b>"]
    rows = page.locator("#methods > .body > .scroller tbody tr").all_inner_texts()
    assert rows[0].split("\t") == ["merging", "99.0\u202f%", "0.004", "0.090", "4"]
    for figure in page.locator("figure:has(.chart)").all():
        assert figure.locator(".chart > [role=img]").get_attribute("aria-label")
        assert figure.locator(".twin tbody tr").count() > 0


def test_without_objects_clicks_or_a_search_there_is_less(
    visit: Any, look: Any, result: cw.PointsResult, tmp_path: Path
) -> None:
    bare = clicked(("some", "none"), objects=1, trace=result.trace.clear(), best=None)
    page = visit(bare.report(tmp_path / "page.html"))
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#images figcaption")).to_have_text("3 workers looked at this image, and none clicked.")
    assert page.locator("#search").count() == 0
    page = look(of_images(bare, [0]).report(tmp_path / "nothing.html"))  # sorted by name: none, some
    assert page.locator("#images .status").inner_text() == "Showing 0 of 0 objects."
    page = look(of_images(bare, []).report(tmp_path / "no images.html"))
    assert section_ids(page) == ["summary", "workers", "about", "log", "glossary", "again"]
    assert page.get_by_text("could not be drawn").count() == 0


@pytest.fixture(scope="session")
def hostile_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = [HOSTILE[n] for n in (0, 1, 9, 11, 20)]
    return clicked(names, names, 3).report(tmp_path_factory.mktemp("points") / "hostile.html", judged=JUDGED)


@pytest.mark.parametrize("width", [1280, 360])
def test_s1_hostile_names_are_text_and_nothing_scrolls_sideways(visit: Any, hostile_file: Path, width: int) -> None:
    page = visit(hostile_file, width=width)
    assert page.locator("main :is(img:not(.picture), script, b)").count() == 0
    page.locator("#images .pick").first.click()
    unfold(page)
    assert width_of(page) <= width


def test_axe_finds_nothing_serious(visit: Any, hostile_file: Path) -> None:
    page = visit(hostile_file, dark=True)
    page.locator("#images .pick").first.click()
    unfold(page, 8)
    assert serious(page) == []


def test_paper_has_the_image_with_its_name_and_all_objects(visit: Any, tmp_path: Path) -> None:
    page = visit(clicked(objects=60).report(tmp_path / "page.html"), width=690, dark=True)
    assert page.locator("#images tbody tr").count() == 50
    page.get_by_label("Zoom").select_option("4\u00d7")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("#images h3").inner_text() == "Image one"
    assert page.locator("#images tbody tr").count() == 60
    assert page.locator("#images .controls").first.is_hidden()
    assert page.locator("#images canvas").bounding_box()["width"] <= 690


# --------------------------------------------------------------------------------------------------------- its look


def test_a_number_in_the_picture_is_that_of_the_object_in_the_table(visit: Any, file: Path) -> None:
    page = visit(file)
    listed = page.locator("#images .list .pick").all_inner_texts()
    numbers = page.locator("#images .numbers text")
    assert sorted(numbers.all_text_contents()) == listed == ["1", "2", "3", "4"]
    places = {number.text_content(): number.bounding_box() for number in numbers.all()}
    for object_ in objects_of(page).all():
        own, at = object_.get_attribute("data-object"), object_.locator(".centre").bounding_box()
        away = {name: np.hypot(box["x"] - at["x"], box["y"] - at["y"]) for name, box in places.items()}
        assert min(away, key=away.get) == own, "it is beside its object"


def test_where_there_is_little_room_doubtful_and_chosen_objects_have_their_number(visit: Any, tmp_path: Path) -> None:
    page = on_a_phone(visit(clicked(objects=90).report(tmp_path / "page.html"), width=360))
    numbers = page.locator("#images .numbers text")
    assert numbers.all_text_contents() == ["90"]
    hint = page.get_by_text("Zoom in to see more of them")
    expect(hint).to_be_visible()
    page.locator("#images .pick").first.click()
    assert numbers.all_text_contents() == ["1", "90"]
    page.locator("#images summary", has_text="What is shown").click()
    page.get_by_label("Zoom").select_option("4\u00d7")
    assert numbers.count() > 20


def test_a_phone_shows_the_picture_at_once_and_its_controls_below(visit: Any, file: Path) -> None:
    page = on_a_phone(visit(file, width=360))
    assert first_picture(page) < 740 - 20
    assert not page.get_by_label("Zoom").is_visible()
    stage, fold, caption, list_ = (
        page.locator(of).evaluate("e => e.getBoundingClientRect().top")
        for of in ("#images .stage", "#images .fold", "#images figcaption", "#images .list")
    )
    assert stage < fold < caption < list_
    page.set_viewport_size({"width": 1280, "height": 900})
    page.reload()
    assert page.get_by_label("Zoom").is_visible()


@pytest.mark.parametrize("dark", [False, True])
def test_the_picture_and_the_list_show_that_they_scroll(visit: Any, tmp_path: Path, dark: bool) -> None:
    page = visit(clicked(objects=60).report(tmp_path / "page.html"), dark=dark)
    stage, list_ = page.locator(".scroller:has(> .stage-box)"), page.locator("#images .list > .scroller")
    assert edges(stage) == set()
    assert edges(list_) == {"below"}
    list_.locator(".scroll").evaluate("e => { e.scrollTop = 99 }")
    assert edges(list_) == {"above", "below"}
    page.get_by_label("Zoom").select_option("4\u00d7")
    assert edges(stage) == {"right", "below"}
    page.locator(".stage-box").evaluate("e => e.scrollTo(9999, 9999)")
    assert edges(stage) == {"left", "above"}
    shade = "e => getComputedStyle(e).getPropertyValue('--shade').trim()"
    assert stage.evaluate(shade).startswith("rgb(0 0 0" if dark else "rgb(20 30 45")


@pytest.mark.parametrize("width", [1280, 360])
def test_what_can_be_pressed_is_large_enough_and_nothing_is_cut_off(visit: Any, file: Path, width: int) -> None:
    page = visit(file, width=width)
    if width == 360:
        page.locator("#images .fold > summary").click()
    page.locator("#images .pick").first.click()
    assert small_targets(page) == []
    assert cut_off(page) == []
    strips = page.locator("#workers td.strip .interval").evaluate_all("all => all.map(e => e.clientWidth)")
    assert len(set(strips)) == 1
    assert strips[0] >= (200 if width > 360 else 300)
