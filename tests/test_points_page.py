"""The page of points: one closed file whatever names it holds, pictures from one folder only; and in Chromium."""

from __future__ import annotations

import base64
import dataclasses
import os
import re
import shlex
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from browsing import data_of, painted, serious, watched
from conftest import HOSTILE
from playwright.sync_api import Browser, Locator, Page, expect

from crowdwise.answers.intake import Dropped, Intake
from crowdwise.errors import FileError
from crowdwise.report import points_images, points_page, points_pictures
from crowdwise.report.points import build_points, points_command, write_points_report

ROOT = Path(__file__).resolve().parents[1]
SECTIONS = ["summary", "images", "workers", "search", "log", "glossary"]


@dataclasses.dataclass(frozen=True)
class Model:
    name: str = "merging"
    start: int = 20

    def settings(self) -> dict[str, Any]:
        return {"start": self.start}


def png(width: int = 4, height: int = 3, grey: int = 90) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = (b"\0" + bytes([grey]) * width) * height
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def fake(
    images: Any = ("one", "two"),
    workers: Any = ("ann", "bob", "cem"),
    objects: int = 4,
    *,
    doubt: float = 0.6,
    box_from: str = "given",
    axes: str = "xy",
    **changed: Any,
) -> Any:
    """A result with some objects an image, each clicked by every worker, and a click of each beside them.

    The last object of an image has the probability `doubt`; the image after the first has one object less, and so on.
    """
    rng = np.random.default_rng(3)
    found, clicks, rows = [], [], []
    for n, image in enumerate(images):
        many = max(objects - n, 0)
        centres = np.linspace((30, 30), (170, 70), many) if many else np.zeros((0, 2))
        for k, (x, y) in enumerate(centres.tolist()):
            last = k == many - 1
            found.append((image, k + 1, x, y, doubt if last else 0.99, 3.0, len(workers), 1.0, 2.0, 4.0, 1.0, 2.0))
            for worker in workers:
                at = rng.normal((x, y), 2).round(1).tolist()
                clicks.append((image, worker, *at, k + 1, 0.95, 0.04, "more"))
        if many:
            clicks += [(image, worker, 10.0 + 9 * k, 90.0, None, 0.1, 0.9, "") for k, worker in enumerate(workers)]
        total = sum(row[0] == image for row in clicks)
        rows.append((image, len(workers), total, many, 0.0, 0.0, 200.0, 100.0))
    names = ["image", "object", "x", "y", "probability", "clicks", "supporters", "share", "spread"]
    result = SimpleNamespace(
        images=pl.DataFrame(rows, ["image", "jobs", "clicks", "objects", "x0", "y0", "x1", "y1"], orient="row"),
        objects=pl.DataFrame(found, [*names, "var_x", "cov_xy", "var_y"], orient="row"),
        clicks=pl.DataFrame(
            clicks, ["image", "worker", "x", "y", "object", "probability", "outlier", "note"], orient="row"
        ),
        workers=pl.DataFrame(
            [(w, len(rows), 9 - n, 0.9 - n / 50, 0.7, 0.95, 0.8, 0.6, 0.9, None) for n, w in enumerate(workers)],
            ["worker", "images", "clicks", "reliability", "low", "high", "hit_rate", "hit_low", "hit_high", "spread"],
            orient="row",
        ),
        trace=pl.DataFrame({"sweep": [1, 2, 3, 4], "objective": [-90.5, -70.0, -60.0, -65.0], "objects": [9, 8, 7, 6]}),
        criterion="evidence",
        best=3,
        warnings=("few clicks",),
        points=SimpleNamespace(
            intake=Intake(
                "clicks.csv", "long", {}, False, (), 40, 38, (Dropped("outside the box", 2, ("row 3: a, b, 900, 1",)),),
                ("read as CSV",), options=("--box", "0,0,200,100"),
            ),
            box_from=box_from,
            axes=tuple(axes),
        ),
        model=Model(start=40),
        converged=True,
        seconds=0.5,
        seed=7,
        versions={"crowdwise": "0"},
    )  # fmt: skip
    names = dict(zip("xy", axes, strict=False))
    names |= {f"{axis}{end}": f"{name}{end}" for axis, name in names.items() for end in (0, 1)}
    names |= {f"var_{axis}": f"var_{name}" for axis, name in names.items()} | {"cov_xy": f"cov_{axes[:2]}"}
    for table in ("images", "objects", "clicks"):
        setattr(result, table, getattr(result, table).rename(names, strict=False))
    for axis in axes[2:]:
        result.objects = result.objects.with_columns(pl.lit(1.0).alias(axis), pl.lit(2.0).alias(f"var_{axis}"))
        result.clicks = result.clicks.with_columns(pl.lit(1.0).alias(axis))
    return SimpleNamespace(**{**vars(result), **changed})


JUDGED = [
    {"method": "merging", "success": 0.99, "ase": [0.004, 0.003, float("nan"), 0.005], "mae": 0.09},
    {"method": "<b>fcm</b>", "success": 0.47, "ase": [0.9, 0.05], "mae": None},
    {"method": "none", "success": None, "ase": [], "mae": 0.2},
]


# --------------------------------------------------------------------------------------------------------- one file


def test_the_page_is_one_closed_file_with_all_sections(tmp_path: Path) -> None:
    path = write_points_report(fake(), tmp_path / "new" / "page.html")
    html = path.read_text()
    assert [file.name for file in path.parent.iterdir()] == ["page.html"]
    assert re.findall(r'<section id="(\w+)"', html) == SECTIONS
    assert re.findall(r'href="(#\w+)"', html)[1:] == [f"#{section}" for section in SECTIONS]
    assert "img-src data:;" in html
    assert "unsafe" not in html.split("</head>")[0].split("Content-Security-Policy")[1][:400]
    assert "The objects behind 27 clicks" in html
    assert "27 clicks: 2 images, 3 workers, 7 objects" in html
    for told in ("few clicks", "outside the box", "row 3: a, b, 900, 1", "read as CSV"):
        assert told in html


def test_the_tiles_tell_what_the_tables_hold() -> None:
    tiles = {tile.name: (tile.value, tile.detail) for tile in build_points(fake()).summary.tiles}
    assert tiles["Objects found"] == ("7", "3.5 an image that has any")
    assert tiles["Images"] == ("2", "all with objects")
    assert tiles["Clicks on no object"] == ("22.2\u202f%", "6 of 27")
    assert tiles["Median reliability"] == ("88.0\u202f%", "of 3 workers")
    assert tiles["Doubtful objects to review"] == (
        "2", "probability below 90\u202f%; about 1 object in all may not be real"
    )  # fmt: skip


def test_the_command_makes_the_result_again() -> None:
    words = shlex.split(points_command(fake()))
    assert words[:5] == ["crowdwise", "points", "clicks.csv", "--box", "0,0,200,100"]
    assert words[5:] == ["--model", "merging", "--seed", "7", "--set", "start=40", "--out", "results"]


def test_the_script_knows_the_fields_of_the_data() -> None:
    source = (ROOT / "page" / "src" / "points-data.ts").read_text()
    found = dict(re.findall(r"interface (\w+) \{\n(.*?)\n\}", source, re.DOTALL))
    assert {"ObjectRow", "Clicks", "ImageRow", "Images", "PointsWorker", "Search", "Method", "PointsPage"} <= set(found)
    for name, text in found.items():
        known = [field.name for field in dataclasses.fields(getattr(points_page, name))]
        wanted = re.findall(r"^  (\w+):", text, re.MULTILINE)
        assert wanted == [field for field in known if name != "PointsPage" or field in wanted], name


def test_hostile_names_are_inert_and_short(tmp_path: Path) -> None:
    names = [name for name in HOSTILE if "\0" not in name]
    path = write_points_report(fake(names, names, 2), tmp_path / "page.html", judged=JUDGED)
    plain = write_points_report(fake(), tmp_path / "plain.html", judged=JUDGED)
    tags = [sorted(re.findall(r"<[a-z]+", file.read_text().split("<script", 1)[0])) for file in (path, plain)]
    assert tags[0] == tags[1]
    [text] = re.findall(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert not set(text) & set("<>&\u2028")
    assert len(path.read_text()) < 700_000
    cut = {name if len(name) <= 120 else name[:119] + "\u2026" for name in names}
    assert {row["image"] for row in data_of(path)["images"]["rows"]} == cut
    assert {row["worker"] for row in data_of(path)["workers"]["rows"]} == cut


def test_numbers_may_be_names_and_values_may_be_unknown(tmp_path: Path) -> None:
    result = fake((1, 2), (10, 11))
    result.workers = result.workers.with_columns(pl.lit(None).alias("hit_rate"), pl.lit(float("nan")).alias("low"))
    result.objects = result.objects.with_columns(pl.lit(float("nan")).alias("probability"), var_x=pl.lit(None))
    told = data_of(write_points_report(result, tmp_path / "page.html"))
    assert [row["image"] for row in told["images"]["rows"]] == ["1", "2"]
    assert told["images"]["workers"] == ["10", "11"]
    assert {(row["low"], row["hit_rate"]) for row in told["workers"]["rows"]} == {(None, None)}
    first = told["images"]["rows"][0]["objects"][0]
    assert (first["probability"], first["doubtful"], first["ellipse"]) == (None, True, [4.0, 4.0, 0.0])


def test_an_ellipse_has_the_axes_of_the_covariance() -> None:
    turned = fake(objects=1)
    turned.objects = turned.objects.with_columns(var_x=pl.lit(5.0), cov_xy=pl.lit(3.0), var_y=pl.lit(5.0))
    [each] = build_points(turned).images.rows[0].objects
    assert each.ellipse == pytest.approx((2 * np.sqrt(8), 2 * np.sqrt(2), 45.0), abs=0.01)


# ------------------------------------------------------------------------------------------------ what is left out


def test_images_with_most_doubts_come_first_and_what_is_left_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points_images, "IMAGES", 2)
    result = fake(("sure", "odd", "odder"), doubt=0.95)
    odd = pl.when(pl.col("image") == "odder").then(0.2).when(image="odd", object=1).then(0.3)
    result.objects = result.objects.with_columns(odd.otherwise(pl.col("probability")).alias("probability"))
    told = build_points(result).images
    assert [row.image for row in told.rows] == ["odder", "odd"]
    assert told.total == 3
    assert told.says.endswith("of which 3 are doubtful: they are in 2 images, and 2 in the first of them.")
    assert told.notes[0].startswith("2 of 3 images are here")
    assert "with 15 clicks, are in objects.csv and clicks.csv" in told.notes[0]


def test_clicks_have_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points_images, "CLICKS", 20)
    told = build_points(fake(("large", "small"), objects=4)).images
    assert [row.image for row in told.rows] == ["large"]
    monkeypatch.setattr(points_images, "CLICKS", 10)
    told = build_points(fake(("large",), objects=4)).images
    [row] = told.rows
    assert (len(row.clicks.x), row.total, row.off) == (10, 15, 3)
    assert told.notes == ["The image has too many clicks to show: 10 of them are drawn. clicks.csv holds all."]


def test_many_workers_are_cut_to_the_best_and_the_worst() -> None:
    told = build_points(fake(("one",), range(500), 1)).workers
    assert (told.total, len(told.rows)) == (500, 400)
    assert [told.rows[n].rank for n in (0, 199, 200, 399)] == [1, 200, 301, 500]
    assert told.says.endswith("shown are the 200 best and the 200 worst.")


def test_more_coordinates_than_two_are_told() -> None:
    assert build_points(fake()).images.notes == []
    [note] = build_points(fake(axes="xyz")).images.notes
    assert note.startswith("Points have 3 coordinates (x, y, z); the pictures show x and y")
    renamed = fake(axes="uvw")
    [row, _] = build_points(renamed).images.rows
    assert (row.box, row.objects[3].x, row.clicks.y[-1]) == ((0.0, 0.0, 200.0, 100.0), 170.0, 90.0)
    assert row.objects[0].ellipse == pytest.approx((4.2, 2.52, 22.5), abs=0.01)
    [row, _] = build_points(fake(axes="t")).images.rows
    assert (row.box, row.objects[3].y, row.objects[0].ellipse) == ((0.0, -25.0, 200.0, 25.0), 0.0, (4.0, 4.0, 0.0))
    [note] = build_points(fake(box_from="clicks")).images.notes
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
    found, notes = points_pictures.pictures_of(["one", "one.png", "bare", "deep/two"], folder)
    assert (found, notes) == ([wanted] * 4, [])


@pytest.mark.parametrize(
    "name",
    ["../secret", "../secret.png", "deep/../../secret", "{folder}/../secret.png", "..\\secret.png", "C:secret.png",
     "link", "link.png", "..", ".", "", " ", "deep", "pipe", "nul\0", "x" * 5000, "none", "\ud800"],
)  # fmt: skip
def test_no_name_leads_out_of_the_folder(folder: Path, name: str) -> None:
    found, [note] = points_pictures.pictures_of([name.format(folder=folder)], folder)
    assert found == [None]
    assert note == "0 of 1 images lie over their picture. No file of that name in the folder: 1."


def test_only_pictures_are_taken_and_they_have_a_budget(folder: Path) -> None:
    found, [note] = points_pictures.pictures_of(["text", "one", "bare", "none"], folder, room=150)
    assert [picture is not None for picture in found] == [False, True, False, False]
    assert note.startswith("1 of 4 images lie over their picture. No PNG, JPEG, WebP or GIF: 1. Left out, as pictures")
    assert points_pictures.ROOM == 20_000_000


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"no folder .*nowhere to take pictures from"):
        write_points_report(fake(), tmp_path / "page.html", pictures=tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------------------- methods


def test_methods_are_told_where_they_were_judged(tmp_path: Path) -> None:
    told = build_points(fake(), judged=JUDGED).methods
    assert told is not None
    first, second, third = told.rows
    assert (first.runs, first.median, first.curve) == (4, 0.004, [(0.003, 0.25), (0.004, 0.5), (0.005, 0.75)])
    assert (second.mae, third.curve, third.median) == (None, [], None)
    assert "merging" in told.says
    assert build_points(fake()).methods is None
    assert ">ASE<" in write_points_report(fake(), tmp_path / "page.html", judged=JUDGED).read_text()


# ------------------------------------------------------------------------------------------------------- in Chromium


@pytest.fixture
def visit(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    """Open the page of a result; when the test is over, nothing may have gone wrong, and nothing been asked for."""
    with watched(browser) as open_:

        def visit_(result: Any, *, judged: Any = None, pictures: Any = None, **options: Any) -> Page:
            path = write_points_report(result, tmp_path / "page.html", judged=judged, pictures=pictures)
            return open_(path, **options)

        yield visit_


def objects_of(page: Page) -> Locator:
    return page.locator("#images [data-object]")


def test_images_rows_and_ellipses_are_linked(visit: Any) -> None:
    page = visit(fake(), judged=JUDGED)
    assert page.get_by_text("could not be drawn").count() == 0
    assert page.locator("main > section").evaluate_all("all => all.map(s => s.id)") == [
        *SECTIONS[:4], "methods", *SECTIONS[4:]
    ]  # fmt: skip
    assert objects_of(page).count() == 4
    assert objects_of(page).locator("xpath=self::*[contains(@class, 'doubtful')]").count() == 1
    assert page.locator("#images .numbers text").all_text_contents() == ["3"] * 4
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


def test_what_is_shown_can_be_chosen(visit: Any) -> None:
    page = visit(fake())
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
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_keys_walk_clicks_and_objects_and_a_tip_tells_of_them(visit: Any) -> None:
    page = visit(fake())
    tip, canvas = page.locator("#images .tip"), page.locator("#images canvas")
    canvas.focus()
    expect(tip).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(tip).to_contain_text("annreliability 90.0\u202f%on object 1 (probability 95.0\u202f%)")
    page.keyboard.press("End")
    expect(tip).to_contain_text("cemreliability 86.0\u202f%on no object (probability 90.0\u202f%)at 28, 90")
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
    page = visit(fake(box_from="clicks"), pictures=tmp_path)
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


def test_workers_search_and_methods_have_their_numbers(visit: Any) -> None:
    page = visit(fake(), judged=JUDGED)
    assert page.locator("#workers tbody th bdi").all_text_contents() == [*("ann", "bob", "cem")] * 2
    page.get_by_role("button", name="Hit rate").click()
    page.get_by_role("searchbox").fill("bo")
    assert page.locator("#workers table.workers tbody th").all_inner_texts() == ["bob"]
    assert page.locator("#search .chart svg").count() == 2
    rings = page.locator("#search .chart circle[r='7'] title")
    assert rings.all_text_contents() == ["sweep 3: evidence \u221260", "sweep 3: objects 7"]
    assert page.locator("#search .twin tbody tr").count() == 4
    assert page.locator("#methods .key bdi").all_text_contents() == ["merging", "<b>fcm</b>"]
    rows = page.locator("#methods > .body > .scroll tbody tr").all_inner_texts()
    assert rows[0].split("\t") == ["merging", "99.0\u202f%", "0.004", "0.090", "4"]
    for figure in page.locator("figure:has(.chart)").all():
        assert figure.locator(".chart > [role=img]").get_attribute("aria-label")
        assert figure.locator(".twin tbody tr").count() > 0


def test_without_objects_clicks_or_a_search_the_page_says_so(visit: Any) -> None:
    page = visit(fake(("some", "none"), objects=1, trace=fake().trace.clear(), best=None))
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#images figcaption")).to_have_text("3 workers looked at this image, and nobody clicked.")
    assert "there is no search to show" in page.locator("#search .body").inner_text()
    nothing = fake(objects=0)
    nothing.clicks = nothing.clicks.clear()
    page = visit(nothing)
    assert page.locator("#images .status").inner_text() == "Showing 0 of 0 objects."
    page = visit(fake((), ()))
    assert page.locator("#images .body").inner_text() == "There are no images.\n\nThere is no image to show."
    assert page.get_by_text("could not be drawn").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_axe_finds_nothing_serious_and_nothing_scrolls_sideways(visit: Any, width: int, scheme: str) -> None:
    names = [HOSTILE[n] for n in (0, 1, 9, 11, 20)]
    page = visit(fake(names, names, 3), width=width, color_scheme=scheme, judged=JUDGED, bypass_csp=True)
    assert page.locator("main :is(img:not(.picture), script, b)").count() == 0
    page.locator("#images .pick").first.click()
    for summary in page.locator("main summary").all()[:8]:
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert serious(page) == []


def test_paper_has_the_image_with_its_name_and_all_objects(visit: Any) -> None:
    page = visit(fake(objects=60), width=690, color_scheme="dark")
    assert page.locator("#images tbody tr").count() == 50
    page.get_by_label("Zoom").select_option("4\u00d7")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("#images h3").inner_text() == "Image one"
    assert page.locator("#images tbody tr").count() == 60
    assert page.locator("#images .controls").first.is_hidden()
    assert page.locator("#images canvas").bounding_box()["width"] <= 690
