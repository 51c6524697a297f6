"""The page in Chromium: it works by mouse and keyboard, can be read by all (axe), runs no name (S1), asks nothing (S2).

Every test ends with a look at what the browser noticed: errors, dialogs, breaches of the policy, and requests.
"""

from __future__ import annotations

import csv
import functools
import io
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest
from browsing import WATCH, changed, links, section_ids, serious, unfold, width_of
from conftest import HOSTILE
from playwright.sync_api import Browser, Locator, Page, expect

import crowdwise as cw
from crowdwise.metrics import evaluate
from crowdwise.report import Cost, Scaling
from crowdwise.report.page import Page as ReportPage
from crowdwise.report.page import page_of
from crowdwise.report.parts import MatrixCell
from crowdwise.report.render import page_html
from crowdwise.report.sections.labels.expertise import TRUTH, Expert, Expertise
from crowdwise.report.sections.labels.groups import Compared, Group, Groups
from crowdwise.report.sections.labels.roc import Roc, RocCurve, RocPoint

SECTIONS = [
    "summary", "prevalence", "workers", "tasks", "meaning", "mixups", "curve", "times", "pictures", "models",
    "about", "glossary", "again",
]  # fmt: skip
BOX = "e.getBoundingClientRect()"
Report = Literal[
    "demo", "hostile", "cifar10s", "two classes", "five classes", "five without truth", "groups", "groups of many"
]  # fmt: skip
METHODS = ["<b>adaptive</b>", *HOSTILE[:4], "mace", "glad", "M" * 120]


@pytest.fixture(scope="session")
def demo() -> cw.LabelsResult:
    """70 workers, half of them spammers and fast, with times, some with checks; two have names much alike."""
    made = cw.simulate.crowd("hammer-spammer", tasks=300, workers=70, classes=3, per_task=14, spammers=0.5, seed=7)
    skill = dict(zip(made.workers["worker"], made.workers["skill"], strict=True))
    alike = {made.workers["worker"][n]: "x" * 150 + str(n) for n in (0, 1)}
    fast = pl.col("worker").replace_strict(skill) < 0.5
    frame = made.answers.frame().with_columns(
        seconds=pl.when(fast).then(0.4).otherwise(6.0) + pl.int_range(pl.len()) % 5 / 10,
        worker=pl.col("worker").replace(alike),
    )
    return cw.aggregate(cw.Labels(frame, gold=made.truth.head(5), source="answers.csv"))


@pytest.fixture(scope="session")
def reports(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The file of a report by its name, made once."""
    folder = tmp_path_factory.mktemp("reports")

    @functools.cache
    def report(name: Report) -> Path:
        path = folder / f"{name}.html"
        if name == "hostile":
            return Path(request.getfixturevalue("hostile_page"))
        if name == "demo":
            return compared(request.getfixturevalue("demo"), path, cost=True)
        if name == "cifar10s":
            answers = request.getfixturevalue("shared_data") / "cifar10s" / "answers.parquet"
            result = cw.aggregate(cw.read(answers, duplicates="last"))
            return compared(result, path)
        page = _class_by_class(*CLASS_BY_CLASS[name]) if name in CLASS_BY_CLASS else GROUPED[name]()
        path.write_text(page_html(page), "utf-8")
        return path

    return report


def compared(result: cw.LabelsResult, path: Path, cost: bool = False) -> Path:
    """The file of a page with another model beside it, and with the cost curve checked."""
    votes = cw.compare(result.answers, ["majority-vote"], folds=0, against=result)
    return result.report(path, comparison=votes, cost=cw.cost_curve(result))


CLASS_BY_CLASS = {
    "two classes": (2, 10, [TRUTH, *METHODS]),
    "five classes": (5, 30, [TRUTH, *METHODS[:2]]),
    "five without truth": (5, 30, METHODS[:1]),
}


cell = MatrixCell


def named(page: ReportPage, classes: list[str]) -> ReportPage:
    """The page with other names of its classes."""
    return replace(page, shared=replace(page.shared, classes=classes))


def _class_by_class(classes: int, workers: int, methods: list[str], known: bool = True) -> ReportPage:
    """A page with curves of all methods, and with what some of them say of each worker; names are hostile."""
    made = cw.simulate.crowd("confusion", tasks=40, workers=5, classes=classes, per_task=3, seed=2)
    page = page_of(cw.aggregate(made.answers), {})
    rates = [n / 1999 for n in range(2000)]
    curves = [
        RocCurve(m, 0.975 - n / 20, [RocPoint(x, x ** (0.03 + n / 15)) for x in rates]) for n, m in enumerate(METHODS)
    ]
    rows = [
        Expert(f"{HOSTILE[w % 20]} {w}", k, method, (40 + 7 * w + 11 * k + 3 * n) % 60 / 100 + 0.4)
        for w in range(workers) for k in range(classes) for n, method in enumerate(methods)
    ]  # fmt: skip
    names = [name[:120] for name in (HOSTILE[0], HOSTILE[-1], *HOSTILE[1:])][:classes]
    experts = Expertise("The estimates are near the truth.", methods, list(range(classes)), rows)
    roc = Roc("One method finds most.", None if classes > 2 else 1, curves)
    return named(changed(page, roc=roc if known else None, expertise=experts if known else None), names)


@functools.cache
def _groups() -> ReportPage:
    """Groups of a real fit beside the truth, and costs. Names are hostile, and one worker never met the last class."""
    made = cw.simulate.triangle(60, seed=1, fresh=0)
    result = cw.aggregate(made.answers, "groups")
    methods = [METHODS[0], HOSTILE[1], HOSTILE[9]]
    costs = [
        Cost(method, workers, (n + 1) * workers**n / 2000, 20 + n * workers / 50)
        for n, method in enumerate(methods) for workers in (100, 1500, 10000)
    ]  # fmt: skip
    scaling = Scaling("One grows.", methods, costs)
    told = page_of(result, {"judged": evaluate({"groups": result}, made.truth), "scaling": scaling})
    groups = told["groups"]
    pairs = [replace(each, worker=each.worker and HOSTILE[9 * n]) for n, each in enumerate(groups.compared[:3])]
    true, estimated = [cell(0, 0, 1.0), cell(1, 0, 1.0)], [cell(0, 0, 0.9996), cell(1, 2, 1.0)]
    pairs.append(Compared("Estimated worst", "M" * 120, 0.25, true, estimated))
    page = changed(
        told,
        workers=replace(told["workers"], rows=told["workers"].rows[:5]),
        tasks=replace(told["tasks"], rows=told["tasks"].rows[:2]),
        expertise=replace(told["expertise"], rows=told["expertise"].rows[:12]),
        groups=replace(groups, note="Take care.", compared=pairs),
    )
    return named(page, [HOSTILE[0], "M" * 120, HOSTILE[9]])


def _groups_of_many() -> ReportPage:
    """A hundred classes: one group mixes up the last ones, the other says anything, and not all of it is kept."""
    sure = [cell(k, k, 0.9 if k > 88 else 1.0) for k in range(100)]
    sure += [cell(k, 188 - k, 0.1) for k in range(89, 100)]
    any_ = [cell(k, told, 0.01) for k in range(100) for told in range(100) if (k + told) % 4 == 0 and k != 94]
    groups = Groups("Two groups.", "", [Group(0.9, 9, 0.9, 0.1, sure), Group(0.1, 1, 0.1, 4.6, any_)], "", [])
    return named(changed(_groups(), expertise=None, groups=groups, scaling=None), [f"c{k}" for k in range(100)])


GROUPED = {"groups": _groups, "groups of many": _groups_of_many}


@pytest.fixture
def show(visit: Any, reports: Any) -> Any:
    """Open a report; when the test is over, nothing may have gone wrong, and nothing been asked for."""
    return lambda name="demo", **options: visit(reports(name), **options)


@pytest.fixture
def read(look: Any, reports: Any) -> Any:
    """As `show`, for tests that leave the page as it is."""
    return lambda name="demo", **options: look(reports(name), **options)


def column(page: Page, title: str) -> list[str]:
    """The texts of a column of the table of workers."""
    texts = page.locator("table.workers").evaluate(
        r"""(table, title) => {
          const heads = [...table.querySelectorAll("thead button")].map((e) => e.innerText.split("\u00a0")[0]);
          const cell = `:scope > tbody > tr:not(.detail-row) > :nth-child(${heads.indexOf(title) + 1})`;
          return heads.includes(title) ? [...table.querySelectorAll(cell)].map((e) => e.innerText) : null;
        }""",
        title,
    )
    assert texts is not None, f"no column {title}"
    return [" ".join(text.split()) for text in texts]


def number(text: str) -> float:
    return float(re.sub(r"[^\d.].*", "", text.replace("\u202f", ""))) if text[:1].isdigit() else -1.0


# ------------------------------------------------------------------------------------------------------ what is there


@pytest.fixture(scope="session", params=["demo", "hostile", "cifar10s"])
def usual(request: pytest.FixtureRequest) -> Any:
    """Reports with all sections that every report has; tests of one follow each other."""
    return request.param


def test_every_section_has_its_heading_and_is_drawn(read: Any, usual: Report) -> None:
    page = read(usual)
    order = section_ids(page)
    assert [section for section in order if section != "log"] == SECTIONS
    assert ("log" in order) == (usual != "hostile"), "only where rows were dropped, or there are notes"
    assert links(page) == [f"#{section}" for section in order]
    assert page.get_by_text("could not be drawn").count() == 0
    sections = page.locator("main > section").evaluate_all(
        """all => all.map((section) => ({
          headings: [...section.querySelectorAll(":scope > h2")].map((e) => e.id),
          named: section.getAttribute("aria-labelledby"), drawn: section.querySelectorAll(".body > *").length,
        }))"""
    )
    for name, section in zip(order, sections, strict=True):
        assert section["headings"] == [section["named"]]
        assert section["drawn"] > 0 or name == "summary"


def test_every_figure_has_a_caption_a_picture_with_a_name_and_a_table_of_the_same(read: Any, usual: Report) -> None:
    figures = (
        read(usual)
        .locator("figure")
        .evaluate_all(
            """all => all.map((figure) => {
          const one = (selector) => figure.querySelector(selector);
          const picture = one(".chart > [role=img]"), fold = one(".chart") && one("summary");
          fold?.click();
          const twin = one("details.twin table")?.checkVisibility();
          fold?.click();
          return {
            caption: one("figcaption").innerText, rows: one("tbody").rows.length, chart: !!one(".chart"), twin,
            name: picture?.getAttribute("aria-label"), width: picture?.getBoundingClientRect().width,
          };
        })"""
        )
    )
    assert len(figures) >= 6
    assert sum(figure["chart"] for figure in figures) >= 5
    for figure in figures:
        assert figure["caption"].endswith(".")
        assert figure["rows"] > 0
        if figure["chart"]:
            assert figure["name"]
            assert figure["width"] > 100
            assert figure["twin"] is True


def test_charts_have_a_mark_a_row_of_their_table(read: Any) -> None:
    page = read("demo")
    rows = page.locator("#times .twin tbody tr").count()
    assert rows == 70
    flagged = page.locator("#times .twin tbody tr td:last-child").all_text_contents().count("flagged")
    marks = page.locator("#times .chart svg circle, #times .chart svg path:has(title)")
    assert flagged > 10
    assert marks.count() == rows
    assert page.locator("#prevalence .chart svg circle").count() == 2 * 3


@pytest.mark.parametrize(
    ("name", "marks"), [("two classes", 10 * 9), ("five classes", 30 * 5 * 2), ("five without truth", 30 * 5)]
)
def test_curves_of_methods_and_workers_class_by_class_are_drawn_where_given(
    read: Any, name: Report, marks: int
) -> None:
    page = read(name)
    order = section_ids(page)
    assert order[7:11] == ["pictures", "expertise", "roc", "about"]
    assert links(page) == [f"#{section}" for section in order]
    assert page.get_by_text("could not be drawn").count() == 0
    titles = page.locator("#roc .chart title").all_text_contents()
    assert len(titles) == 8 * (1 + 5), "a curve, and five points to read"
    assert sum(title.endswith("curve 0.975") for title in titles) == 1
    assert page.locator("#roc .key strong").inner_text() == "<b>adaptive</b>, area 0.975"
    dashes = page.locator("#roc .key [stroke-dasharray]")
    assert len(set(dashes.evaluate_all("all => all.map(e => e.getAttribute('stroke-dasharray'))"))) == 7
    assert page.locator("#roc .twin tbody tr").count() == 8
    two = name == "two classes"
    chart = page.locator("#expertise .chart")
    assert chart.locator("title").count() == marks
    assert chart.locator("g[stroke='var(--muted)'] path").count() == (10 * 8 if two else name == "five classes")
    assert chart.locator("g[stroke='var(--paper)'] text").count() == (10 if two else 0), "names of few workers"
    assert page.locator("#expertise .twin tbody tr").count() == (10 * 2 if two else 30 * 5)


def test_none_has_a_heading_or_a_link_where_it_is_not_known() -> None:
    html = page_html(_class_by_class(2, 3, [TRUTH], known=False))
    assert 'id="workers"' in html
    assert not re.search('(id="|href="#)(roc|expertise|groups|scaling)', html)


def shares(cells: list[MatrixCell], classes: int) -> list[str]:
    """A matrix of probabilities as the page writes it, row by row; a row without any is not known."""
    met = {truth for truth, _, _ in cells}
    at = {(truth, told): f"{100 * p:.1f}\u202f%" for truth, told, p in cells}
    return [at.get((k, told), "0" if k in met else "\u2013") for k in range(classes) for told in range(classes)]


def matrices(within: Locator) -> list[list[str]]:
    return [table.locator("td:not(.corner)").all_inner_texts() for table in within.locator("table").all()]


def test_the_reliability_diagram_shows_known_tasks(look: Any, tmp_path: Path) -> None:
    made = cw.simulate.crowd("confusion", tasks=200, workers=20, classes=3, per_task=5, accuracy=0.6, seed=4)
    result = cw.aggregate(cw.Labels(made.answers.frame(), gold=made.truth.head(60)))
    page = look(result.report(tmp_path / "known.html"))
    assert page.locator("#meaning dt").all_inner_texts()[-1] == "Label sets"
    rows = page.locator("#meaning .twin tbody tr")
    assert page.locator("#meaning .chart circle").count() == rows.count() > 2
    assert "Checked on 60 known tasks" in page.locator("#meaning figcaption").inner_text()
    assert page.get_by_text("could not be drawn").count() == 0


def test_groups_and_compared_workers_show_the_numbers_of_the_data(read: Any) -> None:
    page, told = read("groups"), _groups()["groups"]
    assert told is not None
    order = section_ids(page)
    assert order[8:12] == ["expertise", "groups", "scaling", "roc"]
    assert links(page) == [f"#{section}" for section in order]
    groups, pairs = page.locator("#groups figure").all()
    assert groups.locator("figcaption").inner_text() == told.headline
    assert groups.locator("figcaption + .caution:has(+ .matrices)").inner_text() == "Take care."
    assert groups.locator("h3").all_inner_texts() == ["Group 1", "Group 2", "Group 3"]
    facts = [[f"{100 * g.share:.1f}\u202f%", f"{g.workers:g}", f"{g.similarity:.2f}", f"{g.entropy:.2f} bits"]
             for g in told.groups]  # fmt: skip
    assert groups.locator("dd").all_inner_texts() == [fact for each in facts for fact in each]
    assert matrices(groups) == [shares(group.cells, 3) for group in told.groups]
    assert pairs.locator("figcaption").inner_text() == told.compared_headline
    for pair, each in zip(pairs.locator(".pairs > div").all(), told.compared, strict=True):
        whose = f"{each.title}: {each.worker}" if each.worker else each.title
        assert pair.locator("h3").text_content() == whose
        assert pair.locator("h3 bdi").all_text_contents() == ([each.worker] if each.worker else [])
        assert f"{each.divergence:.4f} bits" in pair.locator(".note").inner_text()
        assert pair.locator("h4").all_inner_texts() == ["true", "estimated"]
        assert matrices(pair) == [shares(each.truth, 3), shares(each.estimated, 3)]
        assert len(set(pair.locator("table").evaluate_all(f"all => all.map(e => {BOX}.y)"))) == 1, "side by side"
    assert matrices(pair)[0][6:] == ["\u2013"] * 3, "a class that was never met"


def test_s1_hostile_names_of_groups_and_costs_are_words_that_turn_nothing(read: Any) -> None:
    page = read("groups")
    drawn = page.locator(":is(#groups, #scaling) .body")
    assert drawn.locator("img, script, b, [onerror]").count() == 0
    loose = drawn.locator("*:not(bdi)").evaluate_all(
        "all => all.flatMap(e => [...e.attributes, ...e.childNodes].map(n => n.nodeValue ?? ''))"
    )
    assert any("turned" in text for text in loose)
    assert [text for text in loose if "\u202e" in text] == []


def test_of_many_classes_those_are_shown_that_groups_mix_up(read: Any) -> None:
    page = read("groups of many")
    assert page.locator("#scaling").count() == 0
    assert page.locator("#groups .note").inner_text() == "The 10 classes that are mixed up most, of 100."
    mixed = [k for k in range(89, 100) if k != 94]
    assert page.locator("#groups thead bdi").all_inner_texts() == 2 * [f"c{k}" for k in mixed]
    known = [["90 %" if k == told else "10 %" if k + told == 188 else "0" for told in mixed] for k in mixed]
    cut = [["1 %" if (k + told) % 4 == 0 else "<2 %" for told in mixed] for k in mixed]
    wanted = [[text.replace(" ", "\u202f") for row in matrix for text in row] for matrix in (known, cut)]
    assert matrices(page.locator("#groups")) == wanted, "what was cut is not 0"


def test_costs_are_lines_of_their_own_style_and_a_table(show: Any) -> None:
    page, told = show("groups"), _groups()["scaling"]
    assert told is not None
    chart = page.locator("#scaling .chart")
    assert page.locator("#scaling .key bdi").all_text_contents() == told.methods
    left, right = chart.locator("svg").evaluate_all(f"all => all.map(e => {BOX}.toJSON())")
    assert (left["y"], left["right"] < right["x"]) == (right["y"], True)
    for plot, unit in zip(chart.locator("svg").all(), ("seconds per iteration", "megabytes"), strict=True):
        titles = plot.locator("title").all_text_contents()
        assert len(titles) == len(told.rows)
        assert sum(title.endswith(unit) for title in titles) == len(titles)
        lines = plot.locator("g[stroke-width='2.2']")
        assert len(set(lines.evaluate_all("all => all.map(e => e.getAttribute('stroke-dasharray'))"))) == 3
    rows = [row.locator("th, td").all_text_contents() for row in page.locator("#scaling .twin tbody tr").all()]
    assert [row[0] for row in rows] == [cost.method for cost in told.rows]
    found = [[float(text.replace("\u202f", "")) for text in row[1:]] for row in rows]
    assert found == [pytest.approx([c.workers, c.seconds, c.megabytes], rel=0.005) for c in told.rows]
    page.set_viewport_size({"width": 360, "height": 900})
    expect(chart.locator("svg").first).to_have_attribute("width", "328")
    left, right = chart.locator("svg").evaluate_all(f"all => all.map(e => {BOX}.toJSON())")
    assert (left["x"], left["bottom"] < right["y"]) == (right["x"], True), "one below the other"


# ----------------------------------------------------------------------------------------------------------- workers


def test_a_click_on_a_head_sorts_by_it(show: Any) -> None:
    page = show()
    assert column(page, "Rank") == [str(n) for n in range(1, 51)]
    head = page.locator("th", has=page.get_by_role("button", name="Answers"))
    assert head.get_attribute("aria-sort") is None
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    found = [number(text) for text in column(page, "Answers")]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) > 5
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    found = [number(text) for text in column(page, "Answers")]
    assert found == sorted(found)
    assert page.locator("th[aria-sort]").count() == 1


def test_the_keyboard_sorts_too_and_keeps_its_place(show: Any) -> None:
    page = show()
    sorter = page.get_by_role("button", name="Skill")
    sorter.focus()
    page.keyboard.press("Enter")
    found = [number(text) for text in column(page, "Skill")]
    assert found == sorted(found, reverse=True)
    page.keyboard.press("Space")
    found = [number(text) for text in column(page, "Skill")]
    assert found == sorted(found)
    assert sorter.evaluate("e => e === document.activeElement")


def test_all_columns_can_be_sorted_and_what_is_not_known_stays_last(show: Any) -> None:
    page = show()
    columns = page.locator("table.workers").evaluate(
        """table => [...table.querySelectorAll("thead button")].flatMap((button, n) => [1, 2].map(() => {
          table.querySelectorAll("thead button")[n].click();
          const cells = table.querySelectorAll(`:scope > tbody > tr > :nth-child(${n + 1})`);
          return [...cells].map((cell) => cell.textContent.trim());
        }))"""
    )
    assert len(columns) == 2 * page.locator("table.workers thead th").count() > 10
    assert any("\u2013" in texts for texts in columns)
    for texts in columns:
        known = [text != "\u2013" for text in texts]
        assert len(known) == 50
        assert known == sorted(known, reverse=True)
    assert page.locator("th[aria-sort=ascending]").count() == 1


def test_search_finds_names_and_flags(show: Any) -> None:
    page = show()
    page.get_by_role("searchbox").fill(" XXX")
    assert len(column(page, "Worker")) == 2
    expect(page.locator("#workers .status")).to_have_text("Showing 2 of 2 workers.")
    page.get_by_role("searchbox").fill("at chance")
    assert len(column(page, "Worker")) > 10
    assert all("at chance" in flags for flags in column(page, "Flags"))
    page.get_by_role("searchbox").fill("nobody has this name")
    assert column(page, "Worker") == []
    expect(page.locator("#workers .status")).to_have_text("Showing 0 of 0 workers.")
    page.get_by_role("searchbox").fill("")
    assert len(column(page, "Worker")) == 50


def test_flagged_only_shows_the_flagged(show: Any, demo: cw.LabelsResult) -> None:
    page = show()
    flagged = demo.workers.filter(pl.col("flags") != "").height
    assert 10 < flagged < 50
    page.get_by_label("Flagged only").check()
    assert len(column(page, "Worker")) == flagged
    assert all(column(page, "Flags"))
    page.get_by_label("Flagged only").uncheck()
    assert len(column(page, "Worker")) == 50


def test_more_workers_are_shown_on_demand(show: Any) -> None:
    page = show()
    page.get_by_role("button", name="Show 20 more workers").click()
    assert column(page, "Rank") == [str(n) for n in range(1, 71)]
    assert not page.locator("#workers button.more").is_visible()


def test_enter_opens_a_worker_with_a_confusion_matrix_and_escape_closes(show: Any, demo: cw.LabelsResult) -> None:
    page = show()
    best = demo.workers.sort("rank").row(0, named=True)
    pick = page.locator(".pick", has_text=re.compile(f"^{best['worker']}$"))
    pick.focus()
    page.keyboard.press("Enter")
    detail = page.locator(".detail")
    assert detail.count() == 1
    assert pick.get_attribute("aria-expanded") == "true"
    assert detail.locator("h3").inner_text() == f"Worker {best['worker']}"
    cells = detail.locator("table.confusion td:not(.corner)").all_inner_texts()
    assert len(cells) == 9
    assert sum(map(float, cells)) == pytest.approx(best["answers"], abs=1)
    assert pick.evaluate("e => e === document.activeElement")
    page.keyboard.press("Enter")
    assert page.locator(".detail").count() == 0
    page.keyboard.press("Enter")
    page.locator(".detail .scroll").first.focus()
    page.keyboard.press("Escape")
    assert page.locator(".detail").count() == 0


def test_a_click_opens_one_worker_at_a_time_whatever_the_names(show: Any) -> None:
    page = show()
    page.get_by_role("searchbox").fill("xxx")
    rows = page.locator("table.workers > tbody > tr:not(.detail-row)")
    rows.first.click()
    assert page.locator(".detail").count() == 1
    assert page.locator("tr.chosen").count() == 1
    rows.last.click()
    assert page.locator(".detail").count() == 1
    assert page.locator(".pick").last.get_attribute("aria-expanded") == "true"


# ------------------------------------------------------------------------------------------------------------- tasks


def test_j_and_k_walk_the_tasks(show: Any) -> None:
    page = show()
    tasks = page.locator(".task")
    assert tasks.count() == 10
    for key, at in (("j", 0), ("j", 1), ("j", 2), ("k", 1), ("k", 0), ("k", 0)):
        page.keyboard.press(key)
        assert page.locator(".task.current").count() == 1
        assert tasks.nth(at).evaluate("e => e.matches('.current') && e === document.activeElement"), (key, at)
    for _ in range(12):
        page.keyboard.press("j")
    assert tasks.count() > 10, "walking past the end shows more"
    current = page.locator(".task.current")
    assert current.locator(".position").inner_text() == "13."
    box = current.bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 900, "the task is in sight"


def test_j_and_k_are_letters_while_one_types(show: Any) -> None:
    page = show()
    page.get_by_role("searchbox").click()
    page.keyboard.type("jk")
    assert page.get_by_role("searchbox").input_value() == "jk"
    assert page.locator(".task.current").count() == 0
    page.keyboard.press("Tab")
    page.keyboard.press("Control+j")
    assert page.locator(".task.current").count() == 0


def test_j_and_k_can_be_switched_off(show: Any) -> None:
    page = show()
    page.get_by_label("move through the tasks").uncheck()
    page.keyboard.press("j")
    assert page.locator(".task.current").count() == 0


def test_tasks_come_most_uncertain_first_with_all_votes(read: Any, demo: cw.LabelsResult) -> None:
    page = read()
    sure = [float(text.split()[-2]) for text in page.locator(".task .verdict").all_inner_texts()]
    shown = demo.labels.filter(pl.col("status") == "ok").sort("probability")["probability"].head(10)
    assert sure == pytest.approx([100 * p for p in shown], abs=0.06)
    assert page.locator(".task").first.locator(".vote").count() == 14


def saved(page: Page) -> list[list[str]]:
    with page.expect_download() as coming:
        page.get_by_role("button", name="Save this list").click()
    assert coming.value.suggested_filename == "tasks-to-review.csv"
    return list(csv.reader(io.StringIO(Path(coming.value.path()).read_bytes().decode(), newline="")))


def test_the_list_is_saved_whole(read: Any, demo: cw.LabelsResult) -> None:
    head, *rows = saved(read())
    assert head[:3] == ["task", "label", "probability"]
    assert len(rows) == 250
    labels = {row["task"]: row["label"] for row in demo.labels.to_dicts()}
    assert {task: label for task, label, *_ in rows} == {task: labels[task] for task, *_ in rows}


def test_s3_no_cell_of_a_saved_list_is_a_formula(read: Any) -> None:
    rows = saved(read("hostile"))
    assert {len(row) for row in rows} == {11}
    cells = [cell for row in rows for cell in row]
    assert {"'=1+1", "'+1", "'-1", "'@x", "nul\0nul", "a; b", "over\rwritten"} <= set(cells)
    assert [cell for cell in cells if cell.startswith(tuple("=+-@\t\r"))] == []


# --------------------------------------------------------------------------------------------------- hostile names (S1)


def test_s1_hostile_names_are_shown_as_text(show: Any) -> None:
    page = show("hostile")
    shown = page.locator("table.workers .pick").all_text_contents()
    assert set(HOSTILE[:-1]) <= set(shown)
    assert page.locator("main img, main script, main iframe, main a, [onerror], [onload]").count() == 0
    opened = page.locator("table.workers .pick").evaluate_all(
        """async (all) => {
          const seen = [];
          for (const pick of all) {
            pick.click();
            seen.push(document.querySelectorAll(".detail").length);
            document.querySelector(".detail summary, .detail h3").click();
            seen.push(document.querySelectorAll(".detail :is(img, script, iframe, a, [onerror], [onload])").length);
            pick.click();
          }
          await new Promise(requestAnimationFrame);
          return seen;
        }"""
    )
    assert opened == [1, 0] * len(shown)
    assert page.evaluate("document.scripts.length") == 2


def test_s1_a_hostile_source_and_label_stay_words(show: Any, hostile: cw.Labels) -> None:
    page = show("hostile")
    assert page.title().startswith("Crowdwise report: </title><script>alert(1)</script>")
    assert hostile.intake.source in page.locator(".facts bdi").first.evaluate("e => e.textContent")
    for title in page.locator("main [title]").evaluate_all("all => all.map(e => e.title)"):
        assert "\u202e" not in title, "a name turned the rest of a title"
    for label in page.locator("main [aria-label]").evaluate_all("all => all.map(e => e.getAttribute('aria-label'))"):
        assert "\u202e" not in label, "a name turned the rest of a label"
    page.get_by_role("button", name="turned").first.click()
    assert "\u202e" not in str(page.locator(".detail").get_attribute("aria-label"))


def test_s1_names_cannot_turn_the_text_around_them(read: Any) -> None:
    page = read("hostile")
    loose = page.locator("main").evaluate(
        r"""main => {
          const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT), found = [];
          while (walker.nextNode()) {
            const { data, parentElement } = walker.currentNode;
            if (/\u202e/.test(data) && !parentElement.closest("bdi, script")) found.push(data.slice(0, 80));
          }
          return found;
        }"""
    )
    assert loose == []


def test_s2_the_policy_stops_what_would_slip_through(browser: Browser, reports: Any, tmp_path: Path) -> None:
    """It shows that the other tests would notice."""
    bad = (
        "<script>alert(1)</script><img src=x onerror=alert(2)><img src='http://127.0.0.1:9/'><b style='color:red'></b>"
    )
    path = tmp_path / "bad.html"
    path.write_text(reports("demo").read_text().replace("<main", f"{bad}</b><main", 1))
    page, dialogs, answered = browser.new_page(), [], []
    page.add_init_script(WATCH)
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.on("response", lambda response: answered.append(response.url))
    page.goto(path.as_uri())
    page.wait_for_selector("main[data-ready]")
    breached = {breach.split()[0] for breach in page.evaluate("window.breaches")}
    assert breached == {"script-src-elem", "script-src-attr", "img-src", "style-src-attr"}
    assert dialogs == []
    assert answered == [path.as_uri()]
    page.close()


@pytest.mark.parametrize("which", ["demo", "hostile_result"])
def test_a_notebook_shows_the_result_and_changes_nothing_else(browser: Browser, request: Any, which: str) -> None:
    result = request.getfixturevalue(which)
    page, noticed = browser.new_page(), []
    page.on("dialog", lambda dialog: (noticed.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda asked: noticed.append(asked.url))
    page.on("pageerror", lambda error: noticed.append(str(error)))
    style = "e => JSON.stringify([...getComputedStyle(e)].map(k => [k, getComputedStyle(e)[k]]))"
    cell = "<p class='title'>before</p><table class='tile'><tr><th class='number'>x</th><td>y</td></tr></table>"
    page.set_content(f"<body>{cell}</body>")
    before = [page.locator(tag).first.evaluate(style) for tag in ("p", "table", "th", "td", "body")]
    page.set_content(f"<body>{cell}<div style='position:absolute'>{result._repr_html_()}</div></body>")
    assert [page.locator(tag).first.evaluate(style) for tag in ("p", "table", "th", "td", "body")] == before
    shown = page.locator(".crowdwise-report")
    assert shown.locator("tbody tr").count() == 20
    assert shown.locator(".tile").count() == 5
    assert shown.locator("script, img").count() == 0
    page.close()
    assert noticed == []


# --------------------------------------------------------------------------------------- dark, small, printed, readable


def luminance(page: Page, selector: str, of: str) -> float:
    colour = page.locator(selector).first.evaluate(f"e => getComputedStyle(e).{of}")
    red, green, blue = (float(part) for part in re.findall(r"[\d.]+", colour)[:3])
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255


def test_dark_is_dark(read: Any) -> None:
    page = read()
    assert luminance(page, "body", "backgroundColor") > 0.9 > 0.2 > luminance(page, "body", "color")
    page = read(dark=True)
    assert luminance(page, "body", "backgroundColor") < 0.15 < 0.7 < luminance(page, "body", "color")
    assert luminance(page, ".chart svg text", "fill") > 0.5, "charts turn, too"


@pytest.mark.parametrize("name", ["demo", "hostile", "cifar10s", *CLASS_BY_CLASS, "groups"])
def test_a_small_screen_never_scrolls_sideways(show: Any, name: Report) -> None:
    page = show(name, width=360)
    assert width_of(page) == 360
    page.locator("table.workers .pick").first.click()
    unfold(page)
    assert page.locator(".detail").is_visible()
    assert width_of(page) == 360
    assert page.locator(".chart svg").evaluate_all("all => all.every(e => e.getBoundingClientRect().width <= 360)")


def test_charts_are_drawn_anew_when_the_window_changes(show: Any) -> None:
    page = show()
    width = "document.querySelector('.chart svg').getBoundingClientRect().width"
    before = page.evaluate(width)
    page.set_viewport_size({"width": 500, "height": 900})
    page.wait_for_function(f"{width} < 500")
    assert before > 900
    assert width_of(page) == 500


def test_print_has_no_navigation_and_no_buttons_but_all_charts(show: Any) -> None:
    page = show(dark=True)
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    buttons = page.locator("button:is(.more, .save, .copy)")
    assert buttons.count() > 0
    assert buttons.evaluate_all("all => all.filter(e => e.checkVisibility()).map(e => e.className)") == []
    assert not page.locator("#workers .controls").is_visible()
    assert page.locator("table.workers").is_visible()
    assert page.locator(".chart svg").first.is_visible()
    assert luminance(page, "body", "backgroundColor") == pytest.approx(1.0), "paper is white"
    assert len(page.pdf()) > 20_000


def test_paper_holds_every_worker_and_says_how_many_tasks(show: Any) -> None:
    page = show("cifar10s")
    assert page.locator("table.workers > tbody > tr").count() == 50
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("table.workers > tbody > tr").count() == 248
    assert page.locator("#tasks .status").is_visible()
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("table.workers > tbody > tr").count() == 50


@pytest.mark.parametrize(
    ("name", "dark", "width"),
    [
        ("demo", False, 1280),
        ("hostile", True, 360),
        ("two classes", False, 360),
        ("groups", True, 1280),
    ],
)
def test_axe_finds_nothing_serious(show: Any, name: Report, dark: bool, width: int) -> None:
    page = show(name, width=width, dark=dark)
    page.locator("table.workers .pick").first.click()
    unfold(page, 8)
    assert serious(page) == []


def test_headings_go_down_step_by_step(show: Any) -> None:
    page = show()
    page.locator("table.workers .pick").first.click()
    levels = page.locator("h1, h2, h3, h4").evaluate_all("all => all.map(e => Number(e.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert [pair for pair in pairwise(levels) if pair[1] > pair[0] + 1] == []


def test_without_script_the_page_still_says_what_matters(read: Any) -> None:
    page = read(script=False)
    assert page.locator(".tile").count() == 5
    assert page.locator("noscript p").is_visible()
    assert page.locator("#glossary dt").count() > 10
