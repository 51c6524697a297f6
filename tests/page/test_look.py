"""How the page of labels looks, on a desk and on a phone: the answer first, rows that fit, labels beside numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from browsing import changed, cut_off, edges, first_picture, on_a_phone, serious, small_targets, unfold
from playwright.sync_api import Locator, Page

import crowdwise as cw
from crowdwise.report.page import page_of
from crowdwise.report.render import page_html
from crowdwise.report.text import percent

CLASSES = 5
BOX = "e.getBoundingClientRect().toJSON()"
ROWS = "table.workers > tbody > tr:not(.detail-row)"
PERCENT = r"\d+\.\d\u202f%"


@pytest.fixture(scope="session")
def result() -> cw.LabelsResult:
    """Classes whose names are numbers, and a crowd of which some are flagged. Every task has seven answers."""
    made = cw.simulate.crowd("hammer-spammer", tasks=200, workers=40, classes=CLASSES, per_task=7, spammers=0.3, seed=3)
    seconds = 2 + pl.int_range(pl.len()) % 9 / 10
    frame = made.answers.frame()
    named = pl.col("label").replace_strict({label: str(n) for n, label in enumerate(frame["label"].unique().sort())})
    return cw.aggregate(cw.Labels(frame.with_columns(named, seconds=seconds), source="answers.csv"))


@pytest.fixture(scope="session")
def file(result: cw.LabelsResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return result.report(tmp_path_factory.mktemp("look") / "page.html")


@pytest.fixture(scope="session")
def calm(result: cw.LabelsResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same page, with nobody flagged."""
    page = page_of(result, {})
    workers = page["workers"]
    calm = replace(workers, rows=[replace(row, flags=[], reasons=[]) for row in workers.rows])
    path = tmp_path_factory.mktemp("look") / "calm.html"
    path.write_text(page_html(changed(page, workers=calm)), "utf-8")
    return path


def words(found: Locator) -> list[str]:
    """Texts as they are copied and read aloud."""
    return [" ".join(re.split(r"[ \n]+", text)).strip() for text in found.all_text_contents()]


# -------------------------------------------------------------------------------------------------- the first screen


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_shows_all_tiles_and_the_first_chart_at_once(visit: Any, file: Path, dark: bool) -> None:
    page = on_a_phone(visit(file, width=360, dark=dark))
    assert first_picture(page) < 740 - 40
    tiles = page.locator(".tile").evaluate_all(f"all => all.map(e => {BOX})")
    assert len(tiles) == 5
    assert all(tile["top"] > 0 and tile["bottom"] < 740 for tile in tiles)
    assert len({tile["left"] for tile in tiles}) == 2, "two beside each other"
    assert max(tile["height"] for tile in tiles) < 100
    assert tiles[-1]["width"] > 1.9 * tiles[0]["width"], "the last one leaves no hole"
    assert page.locator("nav").evaluate(f"e => {BOX}")["height"] < 40
    assert page.locator("h1").evaluate(f"e => {BOX}")["top"] < 40


def test_help_of_tiles_opens_on_demand_and_covers_nothing(visit: Any, file: Path) -> None:
    page = on_a_phone(visit(file, width=360))
    help_ = page.locator(".tile details")
    assert help_.evaluate_all("all => all.map(e => e.open)") == [False] * 5
    tile = page.locator(".tile").first
    before = tile.evaluate(f"e => {BOX}")
    tile.get_by_text("What is this?").click()
    after = tile.evaluate(f"e => {BOX}")
    assert after["height"] > before["height"] + 20
    name, mark = (tile.locator(part).evaluate(f"e => {BOX}") for part in (".value", "summary"))
    assert mark["left"] >= name["right"] or mark["bottom"] <= name["top"]


# ------------------------------------------------------------------------------------------------------------ workers


def test_rows_of_workers_fit_a_phone(visit: Any, file: Path, result: cw.LabelsResult) -> None:
    page = on_a_phone(visit(file, width=360))
    box = page.locator(".scroll:has(> table.workers)")
    assert box.evaluate("e => e.scrollWidth - e.clientWidth") == 0
    flagged = {worker: set(filter(None, re.split("[;,] *", flags))) for worker, flags in
               result.workers.select("worker", "flags").iter_rows()}  # fmt: skip
    rows = page.locator(ROWS).all()[:12]
    assert any(flagged[row.locator(".pick").inner_text()] for row in page.locator(ROWS).all())
    for row in rows:
        parts = {of: row.locator(of) for of in (".pick", ".skill .value", ".skill small", ".interval")}
        boxes = {of: part.evaluate(f"e => {BOX}") for of, part in parts.items()}
        assert all(box["left"] >= 0 and box["right"] <= 360 for box in boxes.values())
        assert boxes[".interval"]["width"] > 300, "the strip has the whole row"
        assert boxes[".pick"]["right"] <= boxes[".skill .value"]["left"]
        assert boxes[".skill .value"]["right"] <= boxes[".skill small"]["left"]
        assert boxes[".interval"]["top"] >= boxes[".pick"]["bottom"]
    for row in page.locator(ROWS).all():
        shown = {chip.removeprefix("\u2691 ") for chip in row.locator(".flag").all_inner_texts()}
        assert shown == flagged[row.locator(".pick").inner_text()]
        assert row.locator(".flag").evaluate_all("all => all.every(e => e.getBoundingClientRect().right <= 360)")


def test_an_opened_row_shows_the_other_columns_on_a_phone(visit: Any, file: Path) -> None:
    page = on_a_phone(visit(file, width=360))
    row = page.locator(ROWS).first
    further = row.locator(".further")
    assert further.count() > 4
    assert not any(cell.is_visible() for cell in further.all())
    row.locator(".pick").click()
    assert all(cell.is_visible() for cell in page.locator(ROWS).first.locator(".further").all())
    before = "e => getComputedStyle(e, '::before').content"
    assert page.locator("tr.chosen .further").first.evaluate(before) == '"Rank "'
    assert cut_off(page) == []


def test_rows_are_sorted_by_a_choice_on_a_phone(visit: Any, file: Path) -> None:
    page = visit(file)
    choice = page.get_by_label("Sort by")
    assert not choice.is_visible(), "heads do it"
    on_a_phone(page)
    choice.select_option("Answers, ascending")
    assert page.locator("th[aria-sort=ascending]").count() == 1
    found = [int(text) for text in page.locator(f"{ROWS} > td[data-title=Answers]").all_text_contents()]
    assert found == sorted(found)
    choice.select_option("As listed")
    ranks = page.locator(f"{ROWS} > td[data-title=Rank]").all_text_contents()
    assert ranks == [str(n + 1) for n in range(len(ranks))]


@pytest.mark.parametrize("width", [1280, 360])
def test_strips_share_a_scale_that_their_head_shows(look: Any, file: Path, result: cw.LabelsResult, width: int) -> None:
    page = look(file, width=width)
    strips = page.locator(f"{ROWS} .interval").evaluate_all(
        """all => all.map((e) => {
          const [box, dot] = [e, e.querySelector(".point")].map((of) => of.getBoundingClientRect());
          const chance = e.querySelector(".chance");
          const at = (percent) => parseFloat(percent) / 100;
          return { left: box.left, width: box.width, dot: (dot.left + dot.width / 2 - box.left) / box.width,
                   chance: at(chance.getAttribute("x1")) };
        })"""
    )
    assert len({(strip["left"], strip["width"]) for strip in strips}) == 1
    assert strips[0]["width"] >= (200 if width > 360 else 300)
    skills = result.workers.sort("rank")["skill"].to_list()
    assert [strip["dot"] for strip in strips] == pytest.approx(skills, abs=0.005)
    assert {strip["chance"] for strip in strips} == {1 / CLASSES}
    head = page.locator("th.strip .strip-scale")
    assert head.locator(".tick").all_inner_texts() == ["0\u202f%", "50\u202f%", "100\u202f%"]
    scale = head.locator(".ticks").evaluate(f"e => {BOX}")
    assert (scale["left"], scale["width"]) == pytest.approx((strips[0]["left"], strips[0]["width"]), abs=1)
    assert head.locator(".guess").inner_text() == f"guessing: 1/{CLASSES}"
    assert head.locator(".guess").evaluate("e => e.style.left") == f"{100 / CLASSES:g}%"


def test_without_flags_there_is_no_column_and_no_filter_for_them(look: Any, file: Path, calm: Path) -> None:
    heads = "table.workers thead button"
    assert "Flags" in look(file).locator(heads).all_text_contents()
    page = look(calm)
    assert "Flags" not in page.locator(heads).all_text_contents()
    assert page.get_by_label("Flagged only").count() == 0


# -------------------------------------------------------------------------------------------- labels and probabilities


def test_a_label_and_its_probability_are_two_things(look: Any, file: Path) -> None:
    page = look(file)
    assert page.locator(".task").count() == 10
    for text in words(page.locator(".task .verdict")):
        assert re.fullmatch(rf"Estimated label: \d, probability {PERCENT}", text), text
    for text in words(page.locator(".posterior li")):
        assert re.fullmatch(rf"(\d|\d other class(es)?), probability {PERCENT}", text), text
    for text in words(page.locator(".vote-head")):
        assert re.fullmatch(r"\d: \d votes?", text), text
    for text in words(page.locator(".vote")):
        assert re.fullmatch(rf"w\d+, skill {PERCENT}", text), text
    chip, card = (
        page.locator(of).first.evaluate("e => getComputedStyle(e).backgroundColor") for of in (".task .label", "body")
    )
    assert chip != card, "a label has a ground of its own"
    seen = page.locator(".task .verdict").first
    label, sure = (seen.locator(of).evaluate(f"e => {BOX}") for of in (".label", ".sure"))
    assert label["right"] + 5 < sure["left"]


def test_votes_are_grouped_by_label_the_estimated_one_first(look: Any, file: Path, result: cw.LabelsResult) -> None:
    page = look(file)
    given: dict[str, list[str]] = {}
    for task, label in result.answers.frame().select("task", "label").iter_rows():
        given.setdefault(str(task), []).append(str(label))
    for task in page.locator(".task").all():
        votes = given[task.locator("h3 bdi").inner_text()]
        label = task.locator(".verdict .label").inner_text()
        groups = [
            (group.locator(".label").inner_text(), group.locator(".vote").count())
            for group in task.locator(".vote-group").all()
        ]
        assert dict(groups) == {each: votes.count(each) for each in votes}
        assert groups[0][0] == label or label not in votes


def test_a_key_explains_the_marks_of_votes(look: Any, file: Path) -> None:
    key = look(file).locator("#tasks .key li")
    assert key.all_inner_texts() == ["vote for the estimated label", "vote for another label"]
    assert key.first.locator("path[stroke-dasharray]").count() == 0
    assert key.last.locator("path[stroke-dasharray]").count() == 1


@pytest.mark.parametrize("width", [1280, 360])
def test_the_chart_of_more_answers_is_scaled_to_its_lines(visit: Any, tmp_path: Path, width: int) -> None:
    few = cw.aggregate(
        cw.simulate.crowd("hammer-spammer", tasks=300, workers=20, classes=3, per_task=3, seed=4).answers
    )
    page = visit(few.report(tmp_path / "page.html"), width=width)
    summary = few.summary()
    value, low, high = (percent(getattr(summary, f"expected_{name}")) for name in ("accuracy", "low", "high"))
    assert page.locator("#curve .key li").last.inner_text() == f"range of the present labels: {low} to {high}"
    chart = page.locator("#curve .chart svg")
    box = chart.evaluate(f"e => {BOX}")
    lines = [line.evaluate(f"e => {BOX}") for line in chart.locator('g[stroke-width="2"]').all()]
    assert len(lines) == 2
    assert all(line["height"] > 0.4 * box["height"] for line in lines), "the gain can be seen"
    first = page.locator("#curve .twin tbody tr").first
    assert first.locator("td, th").all_text_contents()[2:] == [value, low, high]


def test_tips_name_what_a_number_belongs_to(look: Any, file: Path) -> None:
    page = look(file)
    for section, pattern in {
        "prevalence": rf"class \d: {PERCENT} of the votes, {PERCENT} of the estimated truth",
        "mixups": r"true class \d, label given \d: .*",
    }.items():
        titles = page.locator(f"#{section} .chart title").all_text_contents()
        assert titles
        for title in titles:
            assert re.fullmatch(pattern, re.sub("[\u2068\u2069]", "", title)), title
    cells = page.locator("#pictures .confusion td[title]").evaluate_all("all => all.map(e => e.title)")
    assert cells
    assert [title for title in cells if not title.startswith("true class ")] == []


# ------------------------------------------------------------------------------------------------ boxes that scroll


@pytest.mark.parametrize("dark", [False, True])
def test_the_navigation_shows_that_it_scrolls(visit: Any, file: Path, dark: bool) -> None:
    page = visit(file, dark=dark)
    nav = page.locator("nav.sections")
    assert edges(nav) == set(), "all of it can be seen"
    on_a_phone(page)
    page.wait_for_timeout(200)
    assert edges(nav) == {"right"}
    nav.evaluate("e => { e.scrollLeft = 40 }")
    assert edges(nav) == {"left", "right"}
    nav.evaluate("e => { e.scrollLeft = 9999 }")
    assert edges(nav) == {"left"}


def test_tables_show_that_they_scroll_and_keys_reach_them(visit: Any, file: Path) -> None:
    page = on_a_phone(visit(file, width=360))
    unfold(page)
    frames = page.locator("main .scroller")
    assert frames.count() == page.locator("main .scroll").count() > 10
    seen = set()
    for frame in frames.all():
        if not frame.is_visible():
            continue
        box = frame.locator(":scope > .scroll")
        right, below = box.evaluate("e => [e.scrollWidth - e.clientWidth > 1, e.scrollHeight - e.clientHeight > 1]")
        assert edges(frame) == {side for side, more in (("right", right), ("below", below)) if more}
        seen.add((right, below))
    assert len(seen) > 1, "some scroll, and some do not"
    box = page.locator("#times .scroll")
    page.locator("#times summary").focus()
    page.keyboard.press("Tab")
    assert box.evaluate("e => e === document.activeElement && e.matches(':focus-visible')")
    assert box.evaluate("e => parseFloat(getComputedStyle(e).outlineWidth)") == 3
    page.keyboard.press("End")
    page.wait_for_timeout(400)
    assert edges(page.locator("#times .scroller")) == {"above"}


def test_paper_has_no_shaded_edges_and_no_folds(visit: Any, file: Path) -> None:
    page = visit(file, width=360)
    page.emulate_media(media="print")
    drawn = "e => getComputedStyle(e, '::after').display"
    assert set(page.locator(".scroller").evaluate_all(f"all => all.map({drawn})")) == {"none"}
    rows = page.locator(ROWS).first
    assert rows.evaluate("e => getComputedStyle(e).display") == "table-row", "paper has tables"


# ------------------------------------------------------------------------------------------------------ small things


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)])
def test_what_can_be_pressed_is_large_enough_and_nothing_is_cut_off(
    visit: Any, file: Path, width: int, dark: bool
) -> None:
    page: Page = visit(file, width=width, dark=dark)
    page.locator("table.workers .pick").first.click()
    unfold(page)
    assert small_targets(page) == []
    assert cut_off(page) == []
    assert serious(page) == []


def test_a_histogram_of_one_bar_is_a_sentence(look: Any, file: Path) -> None:
    page = look(file)
    titles = page.locator("#pictures .histograms h3").all_inner_texts()
    assert titles == ["Answers per worker", "Entropy of the votes"]
    assert page.locator("#pictures .histograms .chart svg").count() == 2
    assert "Answers per task: The median task has 7 answers." in page.locator("#pictures .body > p").all_inner_texts()
