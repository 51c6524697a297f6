"""Sections that bring no script: tables, whole without any; in Chromium."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browsing import data_of, links, section_ids, serious, unfold, width_of
from conftest import HOSTILE

import crowdwise as cw
from crowdwise.errors import for_python
from crowdwise.report import BaseSummary, Tile, table_of
from crowdwise.report.page import Page, PageSection, page_of
from crowdwise.report.render import page_html
from crowdwise.report.sections.any.workers import workers

SECTIONS = ["summary", "first", "second", "workers", "about", "glossary", "again"]
NAME = HOSTILE[0]


@pytest.fixture(scope="session")
def page(hostile_result: cw.LabelsResult) -> Page:
    """Tiles, sections with one table and two; names are hostile, also those that the page is given."""
    tiles = [Tile("Labels", "58", NAME, "How many."), Tile("Odd", "1", "", "")]
    summary = BaseSummary.of(hostile_result, for_python, counted="Some.", tiles=tiles)
    labels = table_of(hostile_result.labels.head(), f"{NAME} first.")
    two = [replace(labels, title=NAME), replace(labels, headline="")]
    sections = [
        PageSection("first", NAME, NAME, f"{NAME} intro.", labels),
        PageSection("second", "Two", "Two", "", two),
        PageSection("workers", "Workers", "Workers", "", workers(hostile_result), ("skill",)),
    ]
    return Page.of(hostile_result, summary, sections)


@pytest.fixture(scope="session")
def file(page: Page, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plain") / "page.html"
    path.write_text(page_html(page), "utf-8")
    return path


def shown(value: Any) -> str:
    """A value as the page shows it: numbers in four digits, long names cut, and a dash for what is not known. HTML has
    no NUL, and but one end of a line."""
    if value is None:
        return "\u2013"
    text = f"{value:.4g}" if isinstance(value, float) else str(value).replace("\0", "").replace("\r", "\n")
    return text if len(text) <= 120 else text[:119] + "\u2026"


def test_a_page_without_a_script_of_its_own_has_no_data_for_one(page: Page, file: Path) -> None:
    assert page.as_dict()["sections"] == data_of(file)["sections"] == {}
    assert not page.scripted
    assert "<noscript" not in file.read_text()


def test_sections_and_tiles_are_there(look: Any, page: Page, file: Path, hostile_result: cw.LabelsResult) -> None:
    seen = look(file)
    assert section_ids(seen) == SECTIONS
    assert links(seen) == [f"#{section}" for section in SECTIONS]
    assert seen.locator("nav a").all_text_contents() == [
        "Summary",
        NAME,
        "Two",
        "Workers",
        "About",
        "Glossary",
        "Command",
    ]
    assert seen.locator("h1").inner_text() == "Report on 1\u202f222 answers"
    assert seen.locator("main > section:not(#summary) > h2").all_text_contents() == [
        NAME, "Two", "Workers", "About this fit", "Glossary", "Command that made this page"
    ]  # fmt: skip
    assert seen.locator("#first .lead").text_content() == f"{NAME} intro."
    assert seen.locator("#first .headline").text_content() == f"{NAME} first."
    assert seen.locator("#second .lead").count() == 0, "what is empty is left out"
    assert seen.locator("#second .headline").count() == 1
    assert seen.locator("#second h3").all_text_contents() == [NAME]
    assert seen.locator(".tile .name").all_text_contents() == ["Labels", "Odd"]
    assert seen.locator(".tile .value").all_text_contents() == ["58", "1"]
    assert seen.locator(".tile .detail-text").all_text_contents() == [NAME], "what is empty is left out"
    assert seen.locator(".tile summary").count() == 1
    assert seen.locator("#glossary dt").all_text_contents() == [term for term, _ in page.glossary]
    assert seen.locator(".command code").text_content() == page.command
    assert seen.get_by_text("could not be drawn").count() == 0


@pytest.mark.parametrize("script", [True, False])
def test_tables_are_those_of_the_result(look: Any, file: Path, hostile_result: cw.LabelsResult, script: bool) -> None:
    seen = look(file, script=script)
    frames = {"first": hostile_result.labels.head(), "workers": hostile_result.workers.sort("rank", nulls_last=True)}
    for section, frame in frames.items():
        table = seen.locator(f"#{section} table")
        heads = table.locator("thead th")
        assert heads.all_text_contents() == [name.replace("_", " ").capitalize() for name in frame.columns]
        assert heads.evaluate_all("all => all.map(e => e.className === 'number')") == [
            dtype.is_numeric() for dtype in frame.dtypes
        ]
        rows = table.locator("tbody tr").evaluate_all("all => all.map(row => [...row.cells].map(e => e.textContent))")
        assert rows == [[shown(value) for value in row] for row in frame.rows()]
        assert table.locator("tbody th[scope=row]").count() == frame.height
        assert table.locator("caption").text_content()


def test_hostile_names_are_text(look: Any, file: Path) -> None:
    seen = look(file)
    assert seen.locator("main :is(img, script, iframe, svg, a), [onerror], [onload]").count() == 0
    assert seen.evaluate("document.scripts.length") == 2
    names = seen.locator("#workers tbody th bdi").all_text_contents()
    assert set(names) == set(map(shown, HOSTILE))
    loose = seen.locator("main *:not(bdi)").evaluate_all(
        "all => all.flatMap(e => [...e.attributes, ...e.childNodes].map(n => n.nodeValue ?? ''))"
    )
    assert any("alert(1)" in text for text in loose), "titles and sentences of the page's author"
    assert [text for text in loose if "\u202e" in text] == [], "no name turns the text around it"


def test_names_are_as_short_as_on_other_pages(file: Path) -> None:
    assert len(file.read_text()) < 700_000
    assert "M" * 121 not in file.read_text()


@pytest.mark.parametrize("width", [1280, 360])
def test_nothing_scrolls_sideways(visit: Any, file: Path, width: int) -> None:
    page = visit(file, width=width)
    unfold(page)
    assert width_of(page) == width


def test_axe_finds_nothing_serious(visit: Any, file: Path) -> None:
    page = visit(file, dark=True)
    unfold(page)
    assert serious(page) == []


def test_the_line_and_the_warnings_are_in_the_language_of_the_caller(hostile_result: cw.LabelsResult) -> None:
    early = replace(hostile_result, converged=False)
    python, shell = (page_of(early, options) for options in ({}, {"command": "crowdwise mine"}))
    assert python.command.startswith("crowdwise.aggregate(")
    more = f"max_iter={2 * hostile_result.trace.height}."
    assert f"Allow more: {more}" in python.summary.warnings[0]
    assert shell.command == "crowdwise mine"
    assert f"Allow more: --set {more}" in shell.summary.warnings[0]
