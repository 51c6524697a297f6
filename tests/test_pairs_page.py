"""The page of pairs: one closed file whatever names it holds, tables without a script, small pictures; in Chromium."""

from __future__ import annotations

import base64
import dataclasses
import re
import shlex
import struct
import sys
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
from playwright.sync_api import Browser, Page, expect

from crowdwise.answers import Pairs
from crowdwise.answers.intake import Dropped
from crowdwise.errors import ParameterError
from crowdwise.report import frame, pairs_items, pairs_notebook, pairs_page, pairs_pictures, write_pairs_report
from crowdwise.report.pairs import build_pairs, summarise_pairs
from crowdwise.result.pairs import Clusters, PairsResult, ranked

ROOT = Path(__file__).resolve().parents[1]
SECTIONS = ["summary", "items", "clusters", "workers", "search", "doubts", "log", "glossary"]
NAMES = tuple(f"item {n}" for n in range(61))
PEOPLE = ("ann", "bob", "cem", "dee")


@dataclasses.dataclass(frozen=True)
class Model:
    name: str = "pair-mixture"
    start: int = 20
    max_iter: int = 90

    def settings(self) -> dict[str, Any]:
        return {"start": self.start, "max_iter": self.max_iter}

    def place(self, space: dict[str, Any], X: Any) -> Any:
        raise NotImplementedError


def fake(
    names: Any = NAMES, people: Any = PEOPLE, *, clusters: int = 3, features: bool = True, **new: Any
) -> PairsResult:
    """Items round after round in clusters; the first 20 are compared with the next two by all. Item 1 is in doubt, item
    4 a little; the last worker always errs; the answers to the pair of items 0 and 1 are all wrong."""
    N = len(names)
    cluster, rows = np.arange(N) % clusters, []
    for left in range(min(N - 2, 20)):
        for right in (left + 1, left + 2):
            truth = int(cluster[left] == cluster[right])
            said = [1 - truth if (left, right) == (0, 1) or w == people[-1] else truth for w in people]
            rows += [(names[left], names[right], w, answer) for w, answer in zip(people, said, strict=True)]
    table = pl.DataFrame(rows, ["left", "right", "worker", "answer"], orient="row", strict=False)
    pairs = Pairs(table, source="pairs.csv", notes=["read as CSV"])
    if features:
        pairs = pairs.on(names)
    order = {name: k for k, name in enumerate(names)}
    mine = cluster[[order[name] for name in pairs.items.to_list()]]
    P = np.full((len(mine), clusters), 0.001 / max(clusters - 1, 1))
    P[np.arange(len(mine)), mine] = 0.999 if clusters > 1 else 1.0
    if clusters > 1:
        P[1, :2], P[4, :2] = (0.4, 0.6), (0.25, 0.75)
    choices, chances, _ = ranked(P)
    right = np.linspace(45, 5, len(pairs.workers))
    beta = np.column_stack([right, 50 - right])
    edges = pairs.edges
    angle = 2 * np.pi * mine / clusters
    view = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.01 * np.arange(len(mine))[:, None]
    shares = np.array([[0.25, 0.25, 0.25, 0.25], [0.1, 0.5, 0.4, 0.0]])
    params = Clusters(
        choices, chances, beta, beta, (P[edges[0]] * P[edges[1]]).sum(1), view if features else np.zeros((0, 2)),
        shares, np.array([1, 9]), np.zeros(0),
    )  # fmt: skip
    fields = {name: new.pop(name) for name in list(new) if name in Clusters._fields}
    sweeps = np.array([[-90.5, 4], [-70, 3], [-60, 3]])
    made = {"pairs": pairs, "model": Model(start=40), "params": params._replace(**fields), "space": {}}
    return PairsResult(
        **{**made, "sweeps": sweeps, "criterion": "bound", "converged": True, "seed": 7, "seconds": 0.5, **new}
    )


def changed(pairs: Pairs, **new: Any) -> Pairs:
    return Pairs.of(**{**{field.name: getattr(pairs, field.name) for field in dataclasses.fields(pairs)}, **new})


def next_pairs(result: PairsResult, budget: int) -> pl.DataFrame:
    """Two pairs, whatever is asked."""
    items = result.pairs.items
    if len(items) < 10:
        return next_pairs(fake(), 0)
    return pl.DataFrame(
        [
            items[[1, 4]].alias("left"), items[[9, 5]].alias("right"), pl.Series("probability", [0.6, 0.5]),
            pl.Series("gain", [0.67, 0.31]), items[[1, 4]].alias("about"),
        ]
    ).head(budget)  # fmt: skip


@pytest.fixture(autouse=True)
def asking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "crowdwise.pairing", SimpleNamespace(next_pairs=next_pairs))


def texts(table: Any) -> list[list[str]]:
    return [[cell if isinstance(cell, str) else cell.name for cell in row] for row in table.rows]


def pixels(uri: str) -> tuple[int, int, bytes]:
    """Width, height and inflated rows of a PNG."""
    data = base64.b64decode(uri.removeprefix("data:image/png;base64,"))
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    parts, at = {}, 8
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(kind + body)
        parts[kind] = body
        at += 12 + size
    return *struct.unpack(">II", parts[b"IHDR"][:8]), zlib.decompress(parts[b"IDAT"])


# --------------------------------------------------------------------------------------------------------- one file


def test_the_page_is_one_closed_file_with_all_sections(tmp_path: Path) -> None:
    pairs = fake().pairs
    dropped = (Dropped("no answer", 2, ("row 3: a, b, ann, ",)),)
    pairs = changed(pairs, intake=dataclasses.replace(pairs.intake, dropped=dropped))
    path = fake(pairs=pairs).report(tmp_path / "new" / "page.html")
    html = path.read_text()
    assert [file.name for file in path.parent.iterdir()] == ["page.html"]
    assert re.findall(r'<section id="(\w+)"', html) == SECTIONS
    assert re.findall(r'href="(#\w+)"', html)[1:] == [f"#{section}" for section in SECTIONS]
    assert "unsafe" not in html.split("</head>")[0].split("Content-Security-Policy")[1][:400]
    assert "The clusters behind 160 answers" in html
    assert "160 answers on 40 pairs: 61 items, 4 workers, 3 clusters" in html
    for said in ("no answer", "row 3: a, b, ann, ", "read as CSV", "2 of 4 workers are no better than chance"):
        assert said in html


def test_the_tiles_tell_what_the_tables_hold() -> None:
    tiles = {tile.name: (tile.value, tile.detail) for tile in summarise_pairs(fake()).tiles}
    assert tiles["Clusters found"] == ("3", "of 20 to 21 items")
    assert tiles["Items"] == ("61", "22 in some pair, 39 placed by features alone")
    assert tiles["Doubtful items to review"] == (
        "2", "probability below 80\u202f%; about 1 item in all may be elsewhere"
    )  # fmt: skip
    assert tiles["Median skill"] == ("50.0\u202f%", "of 4 workers")
    assert tiles["Answers"] == ("160", "on 40 pairs")
    tiles = {tile.name: tile.detail for tile in summarise_pairs(fake(features=False)).tiles}
    assert tiles["Items"] == "all in some pair"


def test_answers_of_one_job_count_for_less() -> None:
    told = {"left": ["x", "x", "y"], "right": ["y", "z", "z"], "worker": ["ann"] * 3, "answer": [0] * 3}
    pairs = changed(Pairs(told), weight=np.full(3, 2 / 3))
    one = Clusters(
        np.arange(3)[:, None], np.ones((3, 1)), np.ones((1, 2)), np.ones((1, 2)), np.zeros(3), np.zeros((0, 2)),
        np.zeros((0, 0)), np.zeros(0, np.int64), np.zeros(0),
    )  # fmt: skip
    page = build_pairs(fake(pairs=pairs, params=one, sweeps=np.zeros((0, 2))))
    assert page.summary.tiles[4].detail == "on 3 pairs; they count for 2, as those of one job hang together"
    assert page.summary.tiles[0].detail == "of 1 item each"
    assert [row.counted for row in page.workers.rows] == [2.0]
    assert page.training is None
    assert page.map is None
    assert page.clusters.says == "Every one of the 3 items is a cluster of its own."


def test_the_summary_has_lines_warnings_first() -> None:
    lines = summarise_pairs(fake(converged=False)).lines()
    assert lines[0].startswith("warning: the climb did not come to rest")
    assert "pairs.csv: 160 answers read, 160 used" in lines
    assert "pair-mixture: NOT converged after 3 sweeps" in lines
    assert summarise_pairs(fake(sweeps=np.zeros((0, 2)))).lines()[-4] == "pair-mixture: grouped"


def test_the_command_makes_the_result_again() -> None:
    told = {"left": "a", "options": ("--features", "x.npy")}
    intake = SimpleNamespace(source="my pairs.csv", options=("--left", told["left"], *told["options"]))
    words = shlex.split(frame.command_of("pairs", fake(), intake))  # type: ignore[arg-type]
    assert words[:7] == ["crowdwise", "pairs", "my pairs.csv", "--left", "a", "--features", "x.npy"]
    assert words[7:] == ["--model", "pair-mixture", "--seed", "7", "--set", "start=40", "--out", "results"]
    assert build_pairs(fake()).command.startswith("crowdwise pairs pairs.csv --model")


def test_the_script_knows_the_fields_of_the_data() -> None:
    source = (ROOT / "page" / "src" / "pairs-data.ts").read_text()
    found = dict(re.findall(r"interface (\w+) \{\n(.*?)\n\}", source, re.DOTALL))
    assert {"Dots", "ItemMap", "PairsWorker", "Shares", "Training", "PairsPage"} <= set(found)
    for name, text in found.items():
        known = [field.name for field in dataclasses.fields(getattr(pairs_page, name))]
        wanted = re.findall(r"^  (\w+):", text, re.MULTILINE)
        assert wanted == [field for field in known if name != "PairsPage" or field in wanted], name
    assert re.findall(r"^  (\w+):", found["PairsPage"], re.MULTILINE) == list(build_pairs(fake()).as_dict())


def test_hostile_names_are_inert_and_short(tmp_path: Path) -> None:
    names = [name for name in HOSTILE if "\0" not in name]
    path = write_pairs_report(fake(names, names), tmp_path / "page.html")
    plain = write_pairs_report(fake(NAMES[:20], NAMES[:20]), tmp_path / "plain.html")
    tags = [sorted(re.findall(r"<[a-z]+", file.read_text().split("<script", 1)[0])) for file in (path, plain)]
    assert tags[0] == tags[1]
    [text] = re.findall(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert not set(text) & set("<>&\u2028")
    assert len(path.read_text()) < 700_000
    cut = {name if len(name) <= 120 else name[:119] + "\u2026" for name in names}
    assert set(data_of(path)["map"]["dots"]["item"]) == cut
    assert {row["worker"] for row in data_of(path)["workers"]["rows"]} == cut
    assert "<script>alert" not in pairs_notebook(fake(names, names))


def test_numbers_may_be_names(tmp_path: Path) -> None:
    told = data_of(write_pairs_report(fake(tuple(range(30)), (10, 11)), tmp_path / "page.html"))
    assert told["map"]["dots"]["item"][:2] == ["1", "4"]
    assert [row["worker"] for row in told["workers"]["rows"]] == ["10", "11"]


def test_a_notebook_shows_the_best_workers_first() -> None:
    html = fake()._repr_html_()
    assert re.findall(r'<th scope="row"><bdi>(\w+)', html) == [*PEOPLE]
    assert html.count('class="tile"') == 5


# ------------------------------------------------------------------------------------------------------- the tables


def test_doubts_are_told_in_three_tables() -> None:
    items, asking, clash = build_pairs(fake()).doubts
    assert items.says.startswith("2 of 61 items have a probability below 80\u202f%")
    assert items.table
    assert asking.table
    assert clash.table
    assert texts(items.table) == [
        ["item 1", "2", "60.0\u202f%", "1", "40.0\u202f%", "12"],
        ["item 4", "2", "75.0\u202f%", "1", "25.0\u202f%", "16"],
    ]  # fmt: skip
    assert texts(asking.table)[0] == ["item 1", "item 9", "60.0\u202f%", "0.670", "item 1"]
    assert texts(clash.table) == [["item 0", "item 1", "4 of 4", "40.0\u202f%", "no"]]
    assert clash.says.startswith("1 pair,")


def test_where_nothing_is_in_doubt_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    sure = fake(NAMES[2:], clusters=1)
    same = Pairs({"left": ["a"], "right": ["b"], "worker": ["w"], "answer": [1]}).on(["a", "b"])
    told = {"choices": sure.params.choices[:2], "chances": sure.params.chances[:2], "same": np.ones(1)}
    few = {"alpha": np.ones((1, 2)), "beta": np.ones((1, 2)), "view": sure.params.view[:2]}
    module = SimpleNamespace(next_pairs=lambda result, budget: next_pairs(sure, 0))
    monkeypatch.setitem(sys.modules, "crowdwise.pairing", module)
    told_ = build_pairs(fake(pairs=same, params=sure.params._replace(**told, **few))).doubts
    assert [each.table for each in told_] == [None] * 3
    assert [each.says for each in told_] == [
        "No item is in doubt.", "There is no pair whose answer would tell much.",
        "The clusters agree with most answers to every pair that was asked.",
    ]  # fmt: skip


def test_clusters_are_a_table_with_samples_where_there_are_some() -> None:
    told = build_pairs(fake()).clusters
    assert told.table
    assert [title for title, _ in told.table.heads] == ["Cluster", "Items", "Share", "Asked about", "Mean probability"]
    assert texts(told.table)[1] == ["2", "20", "32.8\u202f%", "7", "96.7\u202f%"]
    assert (
        told.says
        == "3 clusters; the largest holds 34.4\u202f% of the items, and half of the items are in the 2 largest."
    )
    samples = np.full((3, 9, 5, 4), 255.0)
    drawn = build_pairs(fake(samples=samples)).clusters.table
    assert drawn
    assert drawn.heads[-1] == ("Made-up items", False)
    [thumb] = drawn.rows[2][-1].thumbs  # type: ignore[union-attr]
    assert thumb.alt == "Made-up items of cluster 3"
    assert pixels(thumb.src)[:2] == (8 * 4 + 7 * 2, 5), "eight side by side"
    flat = build_pairs(fake(samples=np.ones((3, 9)))).clusters.table
    assert flat
    assert flat.heads[-1][0] == "Mean probability", "what is no picture is not drawn"


def test_workers_are_ranked_by_weight_and_many_are_cut() -> None:
    told = build_pairs(fake())
    assert [(row.worker, row.rank, row.counted) for row in told.workers.rows] == [
        ("ann", 1, None), ("bob", 2, None), ("cem", 3, None), ("dee", 4, None)
    ]  # fmt: skip
    first = told.workers.rows[0]
    assert (first.sensitivity, first.specificity, first.skill) == (0.9, 0.9, 0.9)
    assert first.weight == pytest.approx(2 * np.log(9), abs=0.25)
    assert "the answers of 2 tell next to nothing, or the contrary" in told.workers.says
    assert texts(told.workers_table)[0][:3] == ["ann", "40", f"{first.weight:.2f}"]
    many = build_pairs(fake(people=tuple(range(500)))).workers
    assert (many.total, len(many.rows)) == (500, 400)
    assert [many.rows[n].rank for n in (0, 199, 200, 399)] == [1, 200, 301, 500]


def test_the_search_has_shares_by_the_last_and_a_trace() -> None:
    told = build_pairs(fake()).training
    assert told
    assert told.search
    assert told.shares
    assert told.shares.components == [2, 3, 1, 4]
    assert told.shares.rows == [[0.25] * 4, [0.5, 0.4, 0.1, 0.0]]
    assert told.shares.epochs == [1, 9]
    assert told.shares.says.endswith("4 held at least 0.5\u202f% of the items at first, and 3 at the end.")
    assert told.search.says == "The climb took 3 sweeps, from 4 clusters to 3."
    assert told.search.rows[0] == (1.0, -90.5, 4.0)
    wide = build_pairs(fake(shares=np.full((99, 70), 1 / 70), epochs=np.arange(99))).training
    assert wide
    assert wide.shares
    assert (len(wide.shares.rows), len(wide.shares.rows[0]), wide.shares.total) == (40, 50, 70)
    assert (wide.shares.epochs[0], wide.shares.epochs[-1]) == (0, 98)
    alone = build_pairs(fake(shares=np.zeros((0, 0)))).training
    assert alone
    assert alone.shares is None


# -------------------------------------------------------------------------------------------- the picture of items


def test_the_picture_has_the_most_doubtful_first(monkeypatch: pytest.MonkeyPatch) -> None:
    told = build_pairs(fake()).map
    assert told
    assert told.dots.item[:3] == ["item 1", "item 4", "item 0"]
    assert (told.dots.cluster[0], told.dots.second[0], told.dots.second_probability[0]) == (2, 1, 0.4)
    assert (len(told.dots.x), told.total, told.notes, told.clusters) == (61, 61, [], [21, 20, 20])
    left, top, right, bottom = told.box
    assert (left, right) == (min(told.dots.x), max(told.dots.x))
    assert (-bottom, -top) == (min(told.dots.y), max(told.dots.y))
    monkeypatch.setattr(pairs_items, "DOTS", 12)
    monkeypatch.setattr(pairs_items, "DOUBTS", 1)
    cut = build_pairs(fake()).map
    assert cut
    assert (len(cut.dots.x), cut.dots.item[0], set(cut.dots.cluster)) == (12, "item 1", {1, 2, 3})
    assert cut.notes[0].startswith("12 of 61 items are drawn")


def test_places_that_are_no_numbers_are_left_out() -> None:
    view = fake().params.view.copy()
    view[3] = np.nan
    told = build_pairs(fake(view=view)).map
    assert told
    assert len(told.dots.x) == 60
    assert told.notes == ["1 item without a place in the picture."]


def test_pictures_are_small_and_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs_pictures, "ROOM", 16)
    images = np.zeros((61, 100, 70), np.uint8) + np.arange(61, dtype=np.uint8)[:, None, None]
    path = write_pairs_report(fake(), tmp_path / "page.html", pictures=images)
    html, told = path.read_text(), data_of(path)["map"]
    shown = dict(re.findall(r'<img class="thumb" src="([^"]*)" alt="[^"]*" data-item="(\d+)"', html))
    assert len(shown) + len(told["pictures"]) == 16
    for src, item in [*shown.items(), *((src, item) for item, src in told["pictures"].items())]:
        wide, high, rows = pixels(src)
        assert (wide, high) == (24, 34), "every third pixel"
        assert rows[1] == int(item)
    assert not set(told["pictures"]) & set(shown.values()), "each is kept once"
    assert told["dots"]["number"][:2] == [1, 4]
    assert "Some items show their picture" in told["notes"][-1]


def test_pictures_may_be_shares_or_colours() -> None:
    half = pairs_pictures.album(np.full((1, 2, 2), 0.5), [0])
    assert pixels(half[0])[2] == b"\0\x80\x80" * 2
    yes = pairs_pictures.album(np.ones((1, 1, 1), bool), [0])
    assert pixels(yes[0])[2] == b"\0\xff"
    red = pairs_pictures.album(np.array([[[[300, -4, 7]]]]), [0])
    assert pixels(red[0])[2] == b"\0\xff\0\x07"
    assert np.array_equal(pairs_pictures.small(np.array([[0, 10, 90]] * 3, np.uint8), 2), [[5, 90], [5, 90]])


@pytest.mark.parametrize("wrong", [np.zeros((60, 8, 8)), np.zeros((61, 8)), np.zeros((61, 8, 8, 2)), "photos"])
def test_pictures_that_do_not_fit_are_refused(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(ParameterError, match=r"wanted are numbers of the shape \(items, height, width\).* 61 items"):
        write_pairs_report(fake(), tmp_path / "page.html", pictures=wrong)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------------- in Chromium


@pytest.fixture
def visit(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    """Open the page of a result; when the test is over, nothing may have gone wrong, and nothing been asked for."""
    with watched(browser) as open_:

        def visit_(result: Any, *, pictures: Any = None, **options: Any) -> Page:
            return open_(write_pairs_report(result, tmp_path / "page.html", pictures=pictures), **options)

        yield visit_


def test_a_cluster_can_be_picked_and_items_are_linked(visit: Any) -> None:
    page = visit(fake())
    assert page.get_by_text("could not be drawn").count() == 0
    assert page.locator("main > section").evaluate_all("all => all.map(s => s.id)") == SECTIONS
    status, canvas = page.locator("#items .list .status"), "#items canvas"
    choice = page.get_by_role("combobox", name="Cluster", exact=True)
    expect(status).to_have_text("Showing 50 of 61 items.")
    assert painted(page, canvas) > 2000
    page.get_by_role("button", name="Cluster 2, 20 items").click()
    expect(status).to_have_text("Showing 20 of 20 items.")
    assert page.locator("#items .swatch[aria-pressed=true]").inner_text() == "2"
    assert choice.input_value() == "2"
    page.get_by_label("Doubtful items only").check()
    expect(status).to_have_text("Showing 2 of 2 items.")
    page.get_by_role("button", name="item 4").click()
    expect(page.locator("#items .detail")).to_contain_text("cluster 2 with 75.0\u202f%then cluster 1 with 25.0\u202f%")
    assert page.locator("#items .rings .find").count() == 2
    choice.select_option("3")
    expect(status).to_have_text("Showing 0 of 0 items.")
    assert page.locator("#items .rings .find").count() == 0, "what is not shown is not chosen"
    choice.select_option("0")
    page.get_by_label("Doubtful items only").uncheck()
    before = page.locator(canvas).bounding_box()["width"]
    page.get_by_label("Zoom").select_option("2\u00d7")
    assert page.locator(canvas).bounding_box()["width"] > 1.9 * before
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_pointer_and_keys_tell_of_items_with_their_pictures(visit: Any) -> None:
    images = np.zeros((61, 8, 8), np.uint8) + np.arange(61, dtype=np.uint8)[:, None, None]
    page = visit(fake(), pictures=images)
    tip, canvas = page.locator("#items .tip"), page.locator("#items canvas")
    canvas.scroll_into_view_if_needed()
    canvas.focus()
    expect(tip).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(tip).to_contain_text("item 1cluster 2 with 60.0\u202f% (doubtful)then cluster 1 with 40.0\u202f%12 answers")
    assert tip.locator("img").evaluate("e => e.src") == page.locator("#doubts img[data-item='1']").first.evaluate(
        "e => e.src"
    )  # fmt: skip
    page.keyboard.press("Enter")
    assert page.locator("#items tr.chosen th").inner_text() == "item 1"
    page.keyboard.press("End")
    expect(tip).to_contain_text("item 60cluster 1 with 99.9\u202f%placed by its features alone")
    assert canvas.get_attribute("aria-valuenow") == canvas.get_attribute("aria-valuemax") == "61"
    assert "item 60" in canvas.get_attribute("aria-valuetext")
    ring = page.locator("#items .rings .now").bounding_box()
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page.mouse.move(ring["x"] + ring["width"] / 2, ring["y"] + ring["height"] / 2)
    expect(tip).to_contain_text("item 60")
    page.mouse.down()
    page.mouse.up()
    assert page.locator("#items tr.chosen th").inner_text() == "item 60"


def test_workers_and_search_have_their_numbers(visit: Any) -> None:
    page = visit(fake())
    assert page.locator("#workers table.workers tbody th bdi").all_text_contents() == [*PEOPLE]
    assert page.locator("#workers .chart rect").count() == 4
    assert page.locator("#workers .chart rect title").first.text_content().startswith("1. \u2068ann\u2069: 4.")
    page.get_by_label("Find a worker").fill("bo")
    assert page.locator("#workers table.workers tbody th").all_inner_texts() == ["bob"]
    cells = page.locator("#search .chart").first.locator("rect title")
    assert cells.all_text_contents()[4] == "after sweep 9: component 2 has 50.0\u202f%"
    assert cells.count() == 7, "no share, no mark"
    shades = page.locator("#search .chart").first.locator("rect:has(title)").evaluate_all(
        "all => all.map(e => Number(getComputedStyle(e).fillOpacity))"
    )  # fmt: skip
    assert shades == pytest.approx(np.sqrt([0.5] * 4 + [1, 0.8, 0.2]), abs=0.01), "brightness is the share"
    assert page.locator("#search .chart").nth(1).locator("svg").count() == 2
    for figure in page.locator("figure:has(.chart)").all():
        assert figure.locator(".chart > [role=img]").get_attribute("aria-label")
        assert figure.locator(".twin tbody tr").count() > 0


def test_many_workers_are_bars_side_by_side(visit: Any) -> None:
    page = visit(fake(people=tuple(range(80))), width=360)
    assert page.locator("#workers .chart rect").count() == 60
    assert "\u2026" in page.locator("#workers .chart").inner_text(), "a gap between the first and the last"
    expect(page.locator("#workers .note")).to_have_text("The 30 that weigh most, and the 30 last.")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_tables_are_there_without_a_script(visit: Any) -> None:
    page = visit(fake(), java_script_enabled=False)
    expect(page.locator("#summary .empty")).to_contain_text("the tables are below")
    assert page.locator("#clusters tbody tr").count() == 3
    assert page.locator("#workers tbody th").all_inner_texts() == [*PEOPLE]
    assert page.locator("#doubts table").count() == 3
    expect(page.locator("#items .body")).to_have_text("61 items in 3 clusters; 2 are doubtful.")


def test_without_features_there_is_no_picture_and_the_page_says_so(visit: Any) -> None:
    page = visit(fake(features=False, shares=np.zeros((0, 0)), sweeps=np.zeros((0, 2))))
    expect(page.locator("#items .body")).to_contain_text("no picture of the items without features")
    assert page.locator("main > section").evaluate_all("all => all.map(s => s.id)") == [
        section for section in SECTIONS if section != "search"
    ]  # fmt: skip
    assert page.get_by_text("could not be drawn").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_axe_finds_nothing_serious_and_nothing_scrolls_sideways(visit: Any, width: int, scheme: str) -> None:
    names = [HOSTILE[n] for n in (0, 1, 3, 9, 11, 20)] + [*NAMES[:30]]
    new = {"samples": np.full((14, 3, 28, 28), 200.0)}
    images = np.zeros((36, 40, 40), np.uint8)
    page = visit(
        fake(names, names[:6], clusters=14, **new), width=width, color_scheme=scheme, bypass_csp=True, pictures=images
    )
    assert page.locator("main :is(script, b)").count() == 0
    expect(page.locator("#items .legend")).to_contain_text("2 further clusters")
    page.locator("#items .pick").first.click()
    for summary in page.locator("main summary").all()[:9]:
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert serious(page) == []


def test_paper_has_the_picture_and_some_items(visit: Any) -> None:
    page = visit(fake(tuple(range(130))), width=690, color_scheme="dark")
    page.locator("#items .more").click()
    page.get_by_label("Zoom").select_option("4\u00d7")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("#items tbody tr").count() == 50
    assert page.locator("#items .controls").first.is_hidden()
    assert page.locator("#items canvas").bounding_box()["width"] <= 690
