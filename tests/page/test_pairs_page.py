"""The page of pairs: one closed file whatever names it holds, tables without a script, small pictures; in Chromium."""

from __future__ import annotations

import base64
import dataclasses
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
from playwright.sync_api import expect

import crowdwise as cw
from crowdwise.errors import ParameterError
from crowdwise.report import notebook, summarise, thumbnails
from crowdwise.report.page import Page, page_of
from crowdwise.report.sections.pairs import _shown
from crowdwise.result import Clusters

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = ["summary", "items", "clusters", "workers", "search", "doubts", "about", "log", "glossary", "again"]
SHARES = {"shares": np.array([[0.25, 0.25, 0.25, 0.25], [0.1, 0.5, 0.4, 0.0]]), "epochs": np.array([1, 9])}
IMAGES = np.zeros((60, 100, 70), np.uint8) + np.arange(60, dtype=np.uint8)[:, None, None]


@pytest.fixture(scope="session")
def wheel() -> cw.PairsResult:
    """60 items with features, 24 of them in pairs, and 4 workers, the last no better than chance. Some items are in
    doubt, and two rows have no answer."""
    sim = cw.simulate.pinwheel(
        clusters=3, per_cluster=20, asked=24, workers=4, each=30, alpha=[0.95, 0.9, 0.85, 0.4], seed=26
    )
    frame = sim.pairs.frame()
    gaps = frame.head(2).with_columns(answer=pl.lit(None, pl.Int64))
    pairs = cw.Pairs(pl.concat([frame, gaps]), source="pairs.csv", notes=["read as CSV"])
    return cw.aggregate(pairs, features=sim.features)


@pytest.fixture(scope="session")
def bare(wheel: cw.PairsResult) -> cw.PairsResult:
    """The same answers without features, voted on in one go."""
    return cw.aggregate(cw.Pairs(wheel.answers.frame()), "pair-vote")


@pytest.fixture(scope="session")
def hostile_wheel() -> cw.PairsResult:
    """Items and workers with hostile names."""
    sim = cw.simulate.pinwheel(clusters=3, per_cluster=7, asked=21, workers=21, each=6, seed=1)
    items, workers = (
        dict(zip(names.to_list(), HOSTILE, strict=True)) for names in (sim.features[0], sim.workers["worker"])
    )
    named = sim.pairs.frame().with_columns(
        pl.col("left", "right").replace_strict(items), pl.col("worker").replace_strict(workers)
    )
    return cw.aggregate(cw.Pairs(named), features=(list(HOSTILE), sim.features[1]))


@pytest.fixture(scope="session")
def page(wheel: cw.PairsResult) -> Page:
    return page_of(wheel, {})


@pytest.fixture(scope="session")
def file(wheel: cw.PairsResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page with pictures of the items, and with components as the deep models have them."""
    path = tmp_path_factory.mktemp("pairs") / "new" / "page.html"
    return changed(wheel, **SHARES).report(path, pictures=IMAGES)


def changed(result: cw.PairsResult, **new: Any) -> cw.PairsResult:
    """The same with other values: of what was learnt, of the answers, or of the result."""
    learnt = {name: new.pop(name) for name in list(new) if name in Clusters._fields}
    names = {name: pl.Series(name, new.pop(name)) for name in ("items", "workers") if name in new}
    answers = result.answers.replaced(**names)
    return dataclasses.replace(result, **{"answers": answers, "params": result.params._replace(**learnt)} | new)


def percent(share: float) -> str:
    return f"{100 * share:.1f}\u202f%"


def doubtful(result: cw.PairsResult) -> pl.DataFrame:
    """The items, the most doubtful first."""
    return result.clusters.with_row_index("number").sort("probability", maintain_order=True)


def by_weight(result: cw.PairsResult) -> pl.DataFrame:
    return result.workers.sort("weight", descending=True)


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


def test_the_page_is_one_closed_file_with_all_sections(wheel: cw.PairsResult, file: Path) -> None:
    html = file.read_text()
    assert [each.name for each in file.parent.iterdir()] == ["page.html"]
    assert re.findall(r'<section id="(\w+)"', html) == SECTIONS
    assert re.findall(r'href="(#\w+)"', html)[1:] == [f"#{section}" for section in SECTIONS]
    assert "unsafe" not in html.split("</head>")[0].split("Content-Security-Policy")[1][:400]
    assert "Clusters found from 120 answers" in html
    assert f"120 answers on {wheel.asked.height} pairs: 60 items, 4 workers, {wheel.n_clusters} clusters" in html
    assert any("hardly better than chance" in warning for warning in wheel.warnings)
    for said in (*wheel.warnings, "no answer", "row 121: i", "read as CSV"):
        assert said in html


def test_the_tiles_tell_what_the_tables_hold(wheel: cw.PairsResult, bare: cw.PairsResult) -> None:
    tiles = {tile.name: (tile.value, tile.detail) for tile in summarise(wheel).tiles}
    sizes, p = wheel.sizes["items"], wheel.clusters["probability"]
    elsewhere = round((1 - p).sum())
    assert 0 < (p < 0.8).sum() < 10
    assert tiles["Clusters found"] == (str(len(sizes)), f"of {sizes.min()} to {sizes.max()} items")
    assert tiles["Items"] == ("60", "24 in pairs, 36 placed by features alone")
    assert tiles["Doubtful items to review"] == (
        str((p < 0.8).sum()), f"probability below 80\u202f%; about {elsewhere} items may belong elsewhere"
    )  # fmt: skip
    assert tiles["Median skill"] == (percent(wheel.workers["skill"].median()), "of 4 workers")
    assert tiles["Answers"] == ("120", f"on {wheel.asked.height} pairs")
    tiles = {tile.name: tile.detail for tile in summarise(bare).tiles}
    assert tiles["Items"] == "all in pairs"


def test_answers_of_one_job_count_for_less() -> None:
    """Ann puts a and b on one pile in a job; most say that they differ."""
    table = {
        "left": ["a", "a", "b", "a", "a"], "right": ["b", "c", "c", "b", "b"], "answer": [1, 0, 0, 0, 0],
        "worker": ["ann", "ann", "ann", "bob", "cem"], "hit": [1, 1, 1, None, None],
    }  # fmt: skip
    page = page_of(cw.aggregate(cw.Pairs(pl.DataFrame(table)), "pair-vote"), {})
    assert page.summary.tiles[4].detail == "on 3 pairs; worth 4 independent answers"
    assert page.summary.tiles[0].detail == "of 1 item each"
    assert {row.worker: row.counted for row in page["workers"].rows} == {"ann": 2.4, "bob": 1.0, "cem": 1.0}
    assert page["search"] is None
    assert page["items"] is None
    assert page["clusters"].headline == "Each of the 3 items is a cluster of its own."


def test_the_summary_has_lines_warnings_first(wheel: cw.PairsResult, bare: cw.PairsResult) -> None:
    lines = summarise(changed(wheel, converged=False)).lines()
    steps = wheel.trace.height
    assert lines[0].startswith(f"warning: not converged after {steps} iterations")
    assert "pairs.csv: 122 answers read, 120 used; 2 left out: no answer" in lines
    assert f"pair-mixture: NOT converged after {steps} iterations" in lines
    assert f"pair-mixture: converged after {steps} iterations" in summarise(wheel).lines()
    assert summarise(bare).lines()[-6] == "pair-vote", "without iterations"


def test_the_command_makes_the_result_again(wheel: cw.PairsResult) -> None:
    intake = dataclasses.replace(wheel.answers.intake, path="my pairs.csv", options={"left": "a"})
    result = changed(wheel, model=cw.model("pair-mixture", parts=40), seed=7)
    result = dataclasses.replace(result, answers=wheel.answers.replaced(intake=intake))
    assert page_of(result, {"command": "a line"}).command == "a line"
    assert page_of(result, {}).command == (
        'crowdwise.aggregate(crowdwise.read_pairs("my pairs.csv", left="a"), "pair-mixture", parts=40, '
        "features=features, run=crowdwise.Run(seed=7))"
    )


def test_the_line_of_python_names_the_features_of_a_fit_that_had_some(page: Page, bare: cw.PairsResult) -> None:
    assert "features=features" in page.command
    assert "features" not in page_of(bare, {}).command


def test_s1_hostile_names_are_inert_and_short(hostile_wheel: cw.PairsResult, tmp_path: Path) -> None:
    tame = [f"{n:02d}" for n in range(len(HOSTILE))]
    path = hostile_wheel.report(tmp_path / "page.html")
    plain = changed(hostile_wheel, items=tame, workers=tame).report(tmp_path / "plain.html")
    tags = [sorted(re.findall(r"<[a-z]+", file.read_text().split("<script", 1)[0])) for file in (path, plain)]
    assert tags[0] == tags[1]
    [text] = re.findall(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert not set(text) & set("<>&\u2028")
    assert len(path.read_text()) < 700_000
    cut = {name if len(name) <= 120 else name[:119] + "\u2026" for name in HOSTILE}
    assert set(data_of(path)["items"]["dots"]["item"]) == cut
    assert {row["worker"] for row in data_of(path)["workers"]["rows"]} == cut
    assert "<script>alert" not in notebook(hostile_wheel)


def test_numbers_may_be_names(wheel: cw.PairsResult, tmp_path: Path) -> None:
    data = data_of(changed(wheel, items=range(60), workers=range(10, 14)).report(tmp_path / "page.html"))
    assert data["items"]["dots"]["item"][:2] == [str(number) for number in doubtful(wheel)["number"].head(2)]
    assert sorted(row["worker"] for row in data["workers"]["rows"]) == ["10", "11", "12", "13"]


def test_a_notebook_shows_the_best_workers_first(wheel: cw.PairsResult) -> None:
    html = wheel._repr_html_()
    assert re.findall(r'<th scope="row"><bdi>(\w+)', html) == wheel.workers.sort("rank")["worker"].to_list()
    assert html.count('class="tile"') == 5


# ------------------------------------------------------------------------------------------------------- the tables


def test_doubts_are_told_in_three_tables(wheel: cw.PairsResult, page: Page) -> None:
    items, asking, clash = page["doubts"]
    below = (wheel.clusters["probability"] < 0.8).sum()
    assert items.headline.startswith(f"{below} of 60 items have a probability below 80\u202f%")
    rows = doubtful(wheel).filter(pl.col("probability") < 0.995).head(30)
    assert texts(items) == [
        [row["item"], str(row["cluster"]), percent(row["probability"]), str(row["second"]),
         percent(row["second_probability"]), str(row["answers"])]
        for row in rows.iter_rows(named=True)
    ]  # fmt: skip
    assert texts(asking) == [
        [left, right, percent(p), f"{gain:.3f}", about]
        for left, right, p, gain, about in cw.next_pairs(wheel, 30).rows()
    ]
    margin, same = 2 * pl.col("said_same") - pl.col("answers"), pl.col("probability")
    against = pl.when(margin > 0).then(1 - same).otherwise(same)
    other = wheel.asked.filter((margin > 0) != pl.col("together"), margin != 0)
    other = other.sort(margin.abs(), against, descending=True, maintain_order=True)
    assert 1 < other.height < 20
    assert clash.headline.startswith(f"{other.height} pairs,")
    assert texts(clash) == [
        [left, right, f"{said} of {answers}", percent(p), "yes" if together else "no"]
        for left, right, answers, said, p, together in other.rows()
    ]


def test_disputed_pairs_of_the_clearest_majority_come_first() -> None:
    """Votes tie a, b, c together, and d, e, f, though one worker says that a and c differ, and two that d and f do."""
    tied = [(left, right, worker, 1) for left, right in ("ab", "bc", "de", "ef") for worker in ("ann", "bob", "cem")]
    rows = [*tied, ("a", "c", "ann", 0), ("d", "f", "ann", 0), ("d", "f", "bob", 0)]
    pairs = cw.Pairs(pl.DataFrame(rows, ["left", "right", "worker", "answer"], orient="row"))
    *_, clash = page_of(cw.aggregate(pairs, "pair-vote"), {})["doubts"]
    assert [row[:3] for row in texts(clash)] == [["d", "f", "0 of 2"], ["a", "c", "0 of 1"]]


@pytest.mark.parametrize("answer", [0, 1])
def test_where_nothing_is_in_doubt_the_section_is_omitted(answer: int) -> None:
    pairs = cw.Pairs({"left": ["a"], "right": ["b"], "worker": ["w"], "answer": [answer]})
    assert page_of(cw.aggregate(pairs, "pair-vote"), {})["doubts"] is None


def test_clusters_are_a_table_with_samples_where_there_are_some(wheel: cw.PairsResult, page: Page) -> None:
    table, sizes = page["clusters"], wheel.sizes
    assert [title for title, _ in table.heads] == ["Cluster", "Items", "Share", "Items in pairs", "Mean probability"]
    assert texts(table) == [
        [str(cluster), str(items), percent(share), str(asked), percent(p)]
        for cluster, items, share, asked, p in sizes.rows()
    ]
    half = int((sizes["share"].cum_sum() < 0.5).sum()) + 1
    assert page["clusters"].headline == (
        f"{sizes.height} clusters; the largest holds {percent(sizes['share'][0])} of the items, and half of the items "
        f"are in the {half} largest."
    )
    many = sizes.height
    drawn = page_of(changed(wheel, samples=np.full((many, 9, 5, 4), 255.0)), {})["clusters"]
    assert drawn.heads[-1] == ("Generated items", False)
    [thumb] = drawn.rows[2][-1].thumbs
    assert thumb.alt == "Generated items of cluster 3"
    assert pixels(thumb.src)[:2] == (8 * 4 + 7 * 2, 5), "eight side by side"
    flat = page_of(changed(wheel, samples=np.ones((many, 9))), {})["clusters"]
    assert flat.heads[-1][0] == "Mean probability", "what is no picture is not drawn"


def test_workers_are_ranked_as_in_their_table_and_many_are_cut(wheel: cw.PairsResult, page: Page) -> None:
    ranked = wheel.workers.sort("rank")
    assert [(row.worker, row.rank, row.counted) for row in page["workers"].rows] == [
        (worker, n + 1, None) for n, worker in enumerate(ranked["worker"])
    ]
    first, best = page["workers"].rows[0], ranked.row(0, named=True)
    shown = (first.sensitivity, first.specificity, first.skill, first.weight)
    assert shown == pytest.approx([best[name] for name in ("sensitivity", "specificity", "skill", "weight")], abs=1e-3)
    assert (wheel.workers["weight"] < 0.5).sum() == 1
    assert "answers of 1 worker count for almost nothing, or against" in page["workers"].headline
    assert texts(page["workers"].tables[0])[0][:3] == [best["worker"], "30", f"{best['weight']:.2f}"]
    right = np.linspace(45, 5, 500)
    beta = np.column_stack([right, 50 - right])
    many = page_of(changed(wheel, workers=range(500), alpha=beta, beta=beta), {})["workers"]
    assert (many.total, len(many.rows)) == (500, 400)
    assert [many.rows[n].rank for n in (0, 199, 200, 399)] == [1, 200, 301, 500]
    assert [many.rows[n].worker for n in (0, 199, 200, 399)] == ["0", "199", "300", "499"]


def test_the_search_has_shares_by_the_last_and_a_trace(wheel: cw.PairsResult, page: Page) -> None:
    trace = pl.DataFrame({"iteration": [1, 2, 3], "objective": [-90.5, -70.0, -60.0], "clusters": [4, 3, 3]})
    training = page_of(changed(wheel, trace=trace, **SHARES), {})["search"]
    assert training.shares.components == [2, 3, 1, 4]
    assert training.shares.rows == [[0.25] * 4, [0.5, 0.4, 0.1, 0.0]]
    assert training.shares.epochs == [1, 9]
    assert training.shares.headline == (
        "At the start 4 of 4 components held at least 0.5\u202f% of the items, at the end 3."
    )
    assert training.search.headline == "The fit took 3 iterations, from 4 clusters to 3."
    assert training.search.rows[0] == (1.0, -90.5, 4.0)
    wide = page_of(changed(wheel, shares=np.full((99, 70), 1 / 70), epochs=np.arange(99)), {})["search"].shares
    assert (len(wide.rows), len(wide.rows[0]), wide.total) == (40, 50, 70)
    assert (wide.epochs[0], wide.epochs[-1]) == (0, 98)
    assert page["search"].shares is None
    assert len(page["search"].search.rows) == wheel.trace.height


# -------------------------------------------------------------------------------------------- the picture of items


def test_the_picture_has_the_most_doubtful_first(
    wheel: cw.PairsResult, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, dots = doubtful(wheel), page["items"].dots
    assert dots.item == table["item"].to_list()
    assert (dots.cluster, dots.second) == (table["cluster"].to_list(), table["second"].to_list())
    assert dots.second_probability == table["second_probability"].round(4).to_list()
    assert (len(dots.x), page["items"].total, page["items"].notes) == (60, 60, [])
    assert page["items"].clusters == wheel.sizes["items"].to_list()
    left, top, right, bottom = page["items"].box
    assert (left, right) == (min(dots.x), max(dots.x))
    assert (-bottom, -top) == (min(dots.y), max(dots.y))
    monkeypatch.setattr(_shown, "MAX_ITEMS_DRAWN", 12)
    monkeypatch.setattr(_shown, "MAX_DOUBTFUL_DRAWN", 1)
    cut = page_of(wheel, {})["items"]
    assert (len(cut.dots.x), cut.dots.item[0]) == (12, table["item"][0])
    assert set(cut.dots.cluster) == set(range(1, wheel.n_clusters + 1))
    assert cut.notes[0].startswith("12 of 60 items are drawn")


def test_places_that_are_no_numbers_are_left_out(wheel: cw.PairsResult) -> None:
    view = wheel.params.view.copy()
    view[3] = np.nan
    shown = page_of(changed(wheel, view=view), {})["items"]
    assert len(shown.dots.x) == 59
    assert wheel.answers.items[3] not in shown.dots.item
    assert shown.notes == ["1 item without a place in the map."]


def pictures_in(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Pictures in the tables of a page, and those that its script has, by the number of the item."""
    found = re.findall(r'<img class="thumb" src="([^"]*)" alt="[^"]*" data-item="(\d+)"', path.read_text())
    return {item: src for src, item in found}, data_of(path)["items"]["pictures"]


def test_pictures_are_small_and_each_is_kept_once(
    wheel: cw.PairsResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_shown, "MAX_MEMBERS_PER_CLUSTER", 5)
    file = changed(wheel).report(tmp_path / "page.html", pictures=IMAGES)
    in_tables, in_script = pictures_in(file)
    assert in_tables
    assert in_script
    assert not set(in_tables) & set(in_script)
    assert {int(item) for item in (*in_tables, *in_script)} == set(range(60))
    for item, src in (in_tables | in_script).items():
        wide, high, rows = pixels(src)
        assert (wide, high) == (24, 34), "every third pixel"
        assert rows[1] == int(item)
    shown = data_of(file)["items"]
    assert shown["dots"]["number"] == doubtful(wheel)["number"].to_list()
    assert "Some items show their picture" in shown["notes"][-1]


def test_pictures_are_few(wheel: cw.PairsResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thumbnails, "MAX_PICTURES", 16)
    in_tables, in_script = pictures_in(wheel.report(tmp_path / "page.html", pictures=IMAGES))
    assert len(in_tables | in_script) == 16
    assert {*map(str, doubtful(wheel)["number"].head(16))} == set(in_tables), "the most doubtful"


def test_pictures_may_be_shares_or_colours() -> None:
    half = thumbnails.album(np.full((1, 2, 2), 0.5), [0])
    assert pixels(half[0])[2] == b"\0\x80\x80" * 2
    yes = thumbnails.album(np.ones((1, 1, 1), bool), [0])
    assert pixels(yes[0])[2] == b"\0\xff"
    red = thumbnails.album(np.array([[[[300, -4, 7]]]]), [0])
    assert pixels(red[0])[2] == b"\0\xff\0\x07"
    assert np.array_equal(thumbnails.small(np.array([[0, 10, 90]] * 3, np.uint8), 2), [[5, 90], [5, 90]])


@pytest.mark.parametrize("wrong", [np.zeros((59, 8, 8)), np.zeros((60, 8)), np.zeros((60, 8, 8, 2)), "photos"])
def test_pictures_that_do_not_fit_are_refused(wheel: cw.PairsResult, tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(ParameterError, match=r"it must hold numbers in the shape \(items, height, width\).* 60 items"):
        wheel.report(tmp_path / "page.html", pictures=wrong)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------------- in Chromium


def described(row: dict[str, Any]) -> str:
    """What a tip says of an item."""
    doubt = " (doubtful)" if row["probability"] < 0.8 else ""
    answers = f"{row['answers']} answers" if row["answers"] else "placed by its features alone"
    second = f"next: cluster {row['second']}, probability {percent(row['second_probability'])}"
    return f"{row['item']}cluster {row['cluster']}, probability {percent(row['probability'])}{doubt}{second}{answers}"


def test_a_cluster_can_be_picked_and_items_are_linked(visit: Any, wheel: cw.PairsResult, file: Path) -> None:
    page, first = visit(file), doubtful(wheel).row(0, named=True)
    items, mine = wheel.clusters, wheel.of(first["cluster"])
    some = items.filter(pl.col("probability") < 0.8)
    here = some.filter(pl.col("cluster") == first["cluster"]).height
    gone = next(c for c in range(1, wheel.n_clusters + 1) if c not in some["cluster"])
    assert page.get_by_text("could not be drawn").count() == 0
    assert section_ids(page) == SECTIONS
    status, canvas = page.locator("#items .list .status"), "#items canvas"
    choice = page.get_by_role("combobox", name="Cluster", exact=True)
    expect(status).to_have_text("Showing 50 of 60 items.")
    assert painted(page, canvas) > 2000
    page.get_by_role("button", name=f"Cluster {first['cluster']}, {mine.height} items").click()
    expect(status).to_have_text(f"Showing {mine.height} of {mine.height} items.")
    assert page.locator("#items .swatch[aria-pressed=true]").inner_text() == str(first["cluster"])
    assert choice.input_value() == str(first["cluster"])
    page.get_by_label("Doubtful items only").check()
    expect(status).to_have_text(f"Showing {here} of {here} items.")
    page.get_by_role("button", name=first["item"]).click()
    expect(page.locator("#items .detail")).to_contain_text(
        f"cluster {first['cluster']}, probability {percent(first['probability'])}next: cluster {first['second']}, "
        f"probability {percent(first['second_probability'])}"
    )
    assert page.locator("#items .rings .find").count() == 2
    choice.select_option(str(gone))
    expect(status).to_have_text("Showing 0 of 0 items.")
    assert page.locator("#items .rings .find").count() == 0, "what is not shown is not chosen"
    choice.select_option("0")
    page.get_by_label("Doubtful items only").uncheck()
    before = page.locator(canvas).bounding_box()["width"]
    page.get_by_label("Zoom").select_option("2\u00d7")
    assert page.locator(canvas).bounding_box()["width"] > 1.9 * before
    assert width_of(page) <= 1280


def test_pointer_and_keys_tell_of_items_with_their_pictures(visit: Any, wheel: cw.PairsResult, file: Path) -> None:
    page, table = visit(file), doubtful(wheel)
    first, last = table.row(0, named=True), table.row(-1, named=True)
    tip, canvas = page.locator("#items .tip"), page.locator("#items canvas")
    canvas.scroll_into_view_if_needed()
    canvas.focus()
    expect(tip).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(tip).to_contain_text(described(first))
    assert tip.locator("img").evaluate("e => e.src") == page.locator(
        f"#doubts img[data-item='{first['number']}']"
    ).first.evaluate("e => e.src")
    page.keyboard.press("Enter")
    assert page.locator("#items tr.chosen th").inner_text() == first["item"]
    page.keyboard.press("End")
    expect(tip).to_contain_text(described(last).split("next:")[0])
    assert canvas.get_attribute("aria-valuenow") == canvas.get_attribute("aria-valuemax") == "60"
    assert last["item"] in canvas.get_attribute("aria-valuetext")
    ring = page.locator("#items .rings .now").bounding_box()
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page.mouse.move(ring["x"] + ring["width"] / 2, ring["y"] + ring["height"] / 2)
    expect(tip).to_contain_text(last["item"])
    page.mouse.down()
    page.mouse.up()
    assert page.locator("#items tr.chosen th").inner_text() == last["item"]


def test_workers_and_search_have_their_numbers(visit: Any, wheel: cw.PairsResult, file: Path) -> None:
    page, ranked = visit(file), by_weight(wheel)
    names = ranked["worker"].to_list()
    assert page.locator("#workers table.workers tbody th bdi").all_text_contents() == names
    assert page.locator("#workers .chart rect").count() == 4
    title = page.locator("#workers .chart rect title").first.text_content()
    assert title.startswith(f"1. \u2068{names[0]}\u2069: {ranked['weight'][0]:.1f}")
    page.get_by_label("Find a worker").fill(names[1][1:])
    assert page.locator("#workers table.workers tbody th").all_inner_texts() == [names[1]]
    cells = page.locator("#search .chart").first.locator("rect title")
    assert cells.all_text_contents()[4] == "after iteration 9: component 2 has 50.0\u202f%"
    assert cells.count() == 7, "no share, no mark"
    shades = page.locator("#search .chart").first.locator("rect:has(title)").evaluate_all(
        "all => all.map(e => Number(getComputedStyle(e).fillOpacity))"
    )  # fmt: skip
    assert shades == pytest.approx(np.sqrt([0.5] * 4 + [1, 0.8, 0.2]), abs=0.01), "brightness is the share"
    assert page.locator("#search .chart").nth(1).locator("svg").count() == 2
    for figure in page.locator("figure:has(.chart)").all():
        assert figure.locator(".chart > [role=img]").get_attribute("aria-label")
        assert figure.locator(".twin tbody tr").count() > 0


def test_many_workers_are_bars_side_by_side(look: Any, wheel: cw.PairsResult, tmp_path: Path) -> None:
    right = np.linspace(45, 5, 80)
    beta = np.column_stack([right, 50 - right])
    many = changed(wheel, workers=range(80), alpha=beta, beta=beta)
    page = look(many.report(tmp_path / "page.html"), width=360)
    assert page.locator("#workers .chart rect").count() == 60
    assert "\u2026" in page.locator("#workers .chart").inner_text(), "a gap between the first and the last"
    expect(page.locator("#workers .note")).to_have_text("The 30 best and the 30 worst workers.")
    assert width_of(page) <= 360


def test_tables_are_there_without_a_script(look: Any, wheel: cw.PairsResult, file: Path) -> None:
    page, below = look(file, script=False), (wheel.clusters["probability"] < 0.8).sum()
    expect(page.locator("#summary .empty")).to_contain_text("Scripts are switched off")
    assert page.locator("#clusters tbody tr").count() == wheel.n_clusters
    assert page.locator("#workers tbody th").all_inner_texts() == by_weight(wheel)["worker"].to_list()
    assert page.locator("#doubts table").count() == 3
    headline = f"60 items in {wheel.n_clusters} clusters; {below} are doubtful."
    expect(page.locator("#items .body")).to_have_text(headline)


def test_without_features_there_is_no_map(look: Any, bare: cw.PairsResult, tmp_path: Path) -> None:
    page = look(bare.report(tmp_path / "page.html"))
    assert section_ids(page) == [section for section in SECTIONS if section not in ("items", "search", "log")]
    assert page.get_by_text("could not be drawn").count() == 0


@pytest.fixture(scope="session")
def hostile_file(hostile_wheel: cw.PairsResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hostile names in 14 clusters, with simulated items and pictures."""
    cluster = np.arange(21) % 14
    choices = {"choices": np.column_stack([cluster, (cluster + 1) % 14]), "chances": np.tile([0.7, 0.3], (21, 1))}
    many = changed(hostile_wheel, **choices, **SHARES, samples=np.full((14, 3, 28, 28), 200.0))
    path = tmp_path_factory.mktemp("pairs") / "hostile.html"
    return many.report(path, pictures=np.zeros((21, 40, 40), np.uint8))


@pytest.mark.parametrize("width", [1280, 360])
def test_s1_hostile_names_are_text_and_nothing_scrolls_sideways(visit: Any, hostile_file: Path, width: int) -> None:
    page = visit(hostile_file, width=width)
    assert page.locator("main :is(script, b)").count() == 0
    expect(page.locator("#items .legend")).to_contain_text("2 further clusters")
    page.locator("#items .pick").first.click()
    unfold(page)
    assert width_of(page) <= width


def test_axe_finds_nothing_serious(visit: Any, hostile_file: Path) -> None:
    page = visit(hostile_file, width=360)
    page.locator("#items .pick").first.click()
    unfold(page, 9)
    assert serious(page) == []


def test_paper_has_the_picture_and_some_items(visit: Any, file: Path) -> None:
    page = visit(file, width=690, dark=True)
    page.locator("#items .more").click()
    assert page.locator("#items tbody tr").count() == 60
    page.get_by_label("Zoom").select_option("4\u00d7")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("#items tbody tr").count() == 50
    assert page.locator("#items .controls").first.is_hidden()
    assert page.locator("#items canvas").bounding_box()["width"] <= 690


# --------------------------------------------------------------------------------------------------------- its look


def test_a_phone_shows_the_items_at_once_and_rows_that_fit(visit: Any, wheel: cw.PairsResult, file: Path) -> None:
    page = on_a_phone(visit(file, width=360))
    assert first_picture(page) < 740 - 100
    for section in ("items", "workers"):
        box = page.locator(f"#{section} .scroll:has(> table.workers)")
        assert box.evaluate("e => e.scrollWidth - e.clientWidth") == 0
    row = page.locator("#items table.workers tbody tr").first
    first = doubtful(wheel).row(0, named=True)
    assert row.locator("th").inner_text() == first["item"]
    assert row.locator("[data-title=Cluster]").inner_text() == str(first["cluster"])
    assert row.locator("[data-title=Cluster] svg").is_visible(), "the mark of the cluster"
    assert percent(first["probability"]) in row.locator("[data-title=Probability]").inner_text()
    strips = page.locator("#workers td.strip .interval").evaluate_all("all => all.map(e => e.clientWidth)")
    assert len(set(strips)) == 1
    assert strips[0] > 300
    assert page.locator("#workers [data-title=Sensitivity]").first.is_visible(), "these rows do not open"
    assert page.locator("#workers th.strip .guess").evaluate("e => e.style.left") == "50%"


def test_tables_of_the_template_show_that_they_scroll(visit: Any, file: Path) -> None:
    page = on_a_phone(visit(file, width=360))
    page.wait_for_timeout(200)
    frames = page.locator(":is(#clusters, #doubts) .scroller")
    assert frames.count() == 5
    found = set()
    for frame in frames.all():
        box = frame.locator(":scope > .scroll")
        right, below = box.evaluate("e => [e.scrollWidth - e.clientWidth > 1, e.scrollHeight - e.clientHeight > 1]")
        assert edges(frame) == {side for side, more in (("right", right), ("below", below)) if more}
        found |= edges(frame)
    assert "right" in found


@pytest.mark.parametrize("width", [1280, 360])
def test_what_can_be_pressed_is_large_enough_and_nothing_is_cut_off(visit: Any, file: Path, width: int) -> None:
    page = visit(file, width=width)
    if width == 360:
        page.locator("#items .fold > summary").click()
    page.locator("#items .pick").first.click()
    assert small_targets(page) == []
    assert cut_off(page) == []
