"""The page of a kind of answers that brings no script: tiles, sections and tables, whole without any; in Chromium."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browsing import data_of, links, section_ids, serious, unfold, width_of
from conftest import HOSTILE

import crowdwise as cw
from crowdwise.report import PlainPage, Section, Tile, plain_page, table_of
from crowdwise.report.render import page_html

SECTIONS = ["summary", "part-1", "part-2", "part-3", "log", "glossary"]
NAME = HOSTILE[0]


@pytest.fixture(scope="session")
def page(hostile_result: cw.LabelsResult) -> PlainPage:
    """Tiles, a section with a table and one without; names are hostile, also those that the page is given."""
    sections = [
        Section(NAME, f"{NAME} first.", table_of(hostile_result.labels.head())),
        Section("Bare", "Words.", None),
    ]
    return plain_page(hostile_result, [Tile("Labels", "58", NAME, "How many."), Tile("Odd", "1", "", "")], sections)


@pytest.fixture(scope="session")
def file(page: PlainPage, tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def test_a_page_without_a_script_of_its_own_has_no_data_for_one(page: PlainPage, file: Path) -> None:
    assert page.as_dict() == data_of(file) == {"kind": "plain"}
    assert [section.title for section in page.sections] == [NAME, "Bare", "Workers"]


def test_sections_and_tiles_are_there(look: Any, page: PlainPage, file: Path, hostile_result: cw.LabelsResult) -> None:
    seen = look(file)
    assert section_ids(seen) == SECTIONS
    assert links(seen) == [f"#{section}" for section in SECTIONS]
    assert seen.locator("nav a").all_text_contents() == ["Summary", NAME, "Bare", "Workers", "Log", "Glossary"]
    assert seen.locator("h1").inner_text() == f"What {hostile_result.answers.intake.rows_used} answers say"
    assert seen.locator("main > section:not(#summary) > h2").all_text_contents() == [
        NAME, "Bare", "Workers", "What was dropped or merged", "Glossary"
    ]  # fmt: skip
    assert seen.locator("#part-1 .lead").text_content() == f"{NAME} first."
    assert seen.locator("#part-2 .lead").text_content() == "Words."
    assert seen.locator("#part-2 .body > *").count() == 0
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
    frames = {"part-1": hostile_result.labels.head(), "part-3": hostile_result.workers.sort("rank", nulls_last=True)}
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
    names = seen.locator("#part-3 tbody th bdi").all_text_contents()
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
    python, shell = (plain_page(early, [], [], command=line) for line in (None, "crowdwise mine"))
    assert python.command.startswith("crowdwise.aggregate(")
    assert "Allow more: max_iter=30." in python.summary.warnings[0]
    assert shell.command == "crowdwise mine"
    assert "Allow more: --set max_iter=30." in shell.summary.warnings[0]
