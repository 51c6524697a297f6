"""Report pages in Chromium: helpers shared by the page tests."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from crowdwise.report.page import Page as ReportPage
from crowdwise.report.page import PageSection
from crowdwise.report.registry import sections_of

ROOT = Path(__file__).resolve().parents[1]
AXE = ROOT / "page" / "node_modules" / "axe-core" / "axe.min.js"
WATCH = """
window.breaches = [];
addEventListener("securitypolicyviolation", (e) => breaches.push(`${e.violatedDirective} ${e.blockedURI} ${e.sample}`));
"""


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    found = shutil.which("chromium")
    if found is None:
        pytest.fail("there is no chromium; run `make test`, which installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


class Tabs:
    """Two tabs for all tests, one with scripts and one without: a page is sooner there than a tab.

    Whatever goes wrong in them is noticed, and whatever is asked of a network.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._tabs: dict[bool, Page] = {}  # by whether scripts run
        self._untouched: dict[bool, tuple[Path, int, bool]] = {}  # what a tab shows as it was loaded
        self._url = ""
        self._noticed: list[str] = []

    def visit(self, path: Path, *, width: int = 1280, dark: bool = False, script: bool = True) -> Page:
        """Load the page of a file."""
        page = self._tabs[script] if script in self._tabs else self._new(script)
        self._collect(page)
        self._untouched.pop(script, None)
        page.mouse.move(0, 0)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(media="null", color_scheme="dark" if dark else "light")
        self._url = path.as_uri()
        page.goto(self._url)
        if script:
            page.wait_for_selector("main[data-ready]")
        return page

    def look(self, path: Path, *, width: int = 1280, dark: bool = False, script: bool = True) -> Page:
        """Load the page of a file for a test that does not change it; reuse it if the last test looked at it."""
        wanted = (path, width, dark)
        if self._untouched.get(script) != wanted:
            self.visit(path, width=width, dark=dark, script=script)
            self._untouched[script] = wanted
        return self._tabs[script]

    def noticed(self) -> list[str]:
        """Errors since the last call."""
        for page in self._tabs.values():
            self._collect(page)
        found, self._noticed = self._noticed, []
        return found

    def _new(self, script: bool) -> Page:
        context = self._browser.new_context(java_script_enabled=script)
        context.add_init_script(WATCH)
        page = self._tabs[script] = context.new_page()
        page.on("console", lambda said: said.type in ("error", "warning") and self._note(f"console: {said.text}"))
        page.on("pageerror", lambda error: self._note(f"error: {error}"))
        page.on("dialog", lambda dialog: (self._note(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("popup", lambda popup: self._note(f"popup: {popup.url}"))
        page.on("request", lambda asked: asked.url.startswith((self._url, "data:")) or self._note(asked.url))
        return page

    def _note(self, what: str) -> None:
        self._noticed.append(what)

    def _collect(self, page: Page) -> None:
        self._noticed += page.evaluate("window.breaches ? breaches.splice(0) : []")


def painted(page: Page, canvas: str) -> int:
    """Number of non-empty pixels of a canvas."""
    copy = "const pen = new OffscreenCanvas(e.width, e.height).getContext('2d'); pen.drawImage(e, 0, 0)"
    read = "pen.getImageData(0, 0, e.width, e.height).data.filter((v, i) => i % 4 === 3 && v).length"
    return int(page.locator(canvas).evaluate(f"e => {{ {copy}; return {read} }}"))


def section_ids(page: Page) -> list[str]:
    """Ids of the sections of a page, in order."""
    return list(page.locator("main > section").evaluate_all("all => all.map(s => s.id)"))


def links(page: Page) -> list[str]:
    """Targets of the navigation links."""
    return list(page.locator("nav a").evaluate_all("all => all.map(a => a.hash)"))


def unfold(page: Page, most: int | None = None) -> None:
    """Open all collapsed parts of a page, or the first few."""
    page.locator("main summary").evaluate_all(
        "(all, most) => all.slice(0, most ?? all.length).forEach(e => e.click())", most
    )


def width_of(page: Page) -> int:
    """Width of the page in pixels; if it exceeds the window, the page scrolls sideways."""
    return int(page.evaluate("document.documentElement.scrollWidth"))


def on_a_phone(page: Page) -> Page:
    """The same page on a small phone, at its top."""
    page.set_viewport_size({"width": 360, "height": 740})
    page.evaluate("scrollTo(0, 0)")
    return page


def first_picture(page: Page) -> float:
    """Pixels from the top of the page to its first chart or image. The facts of the file do not count: they stand
    last on a page, wherever the template has them."""
    page.locator("#summary .facts").evaluate_all("all => all.forEach(e => e.remove())")
    return float(page.locator("main :is(.chart svg, .stage)").first.evaluate("e => e.getBoundingClientRect().top"))


def small_targets(page: Page) -> list[str]:
    """What can be pressed, and is less than 24 pixels wide or high."""
    return list(
        page.evaluate(
            """() => [...document.querySelectorAll("nav a, main :is(a, button, input, select, summary, canvas)")]
              .filter((e) => e.checkVisibility())
              .map((e) => [e, e.getBoundingClientRect()])
              .filter(([, box]) => box.width > 0 && (box.width < 24 || box.height < 24))
              .map(([e, box]) => `${e.outerHTML.slice(0, 80)} ${box.width} x ${box.height}`)"""
        )
    )


def cut_off(page: Page) -> list[str]:
    """Elements that reach beyond the window, unless a box around them scrolls."""
    return list(
        page.evaluate(
            """() => [...document.querySelectorAll("main *, header *")]
              .filter((e) => e.checkVisibility() && !e.closest(".scroll, .stage-box, .visually-hidden, svg"))
              .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
              .map((e) => e.outerHTML.slice(0, 80))"""
        )
    )


def edges(frame: Locator) -> set[str]:
    """The edges of a frame that say that there is more; each of them, and no other, is shaded."""
    frame.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    found = frame.evaluate(
        """e => {
          const shadow = getComputedStyle(e, e.matches("nav") ? null : "::after").boxShadow;
          const seen = shadow.match(/rgba?\\([^)]*\\) -?[\\d.]+px -?[\\d.]+px/g) ?? [];
          const shaded = seen.filter((each) => !/^rgba\\(0, 0, 0, 0\\)/.test(each)).length;
          return [[...e.classList].filter((name) => name.startsWith("more-")).map((name) => name.slice(5)), shaded];
        }"""
    )
    assert found[1] == len(found[0])
    return set(found[0])


def serious(page: Page) -> list[tuple[str, str]]:
    """Serious accessibility violations found by axe."""
    if not AXE.exists():
        pytest.fail("axe-core is not installed; run `make test`, which does `npm ci` in page/")
    page.evaluate(AXE.read_text())
    found = page.evaluate(
        "axe.run({ resultTypes: ['violations'], selectors: false })"
        ".then(({ passes, violations }) => ({ passes: passes.length, violations }))"
    )
    assert found["passes"] > 20
    return [
        (each["id"], node["html"][:200])
        for each in found["violations"] if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]  # fmt: skip


def data_of(path: Path) -> dict[str, Any]:
    """What the script of a page gets for each section, beside what all of them get."""
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    data = dict(json.loads(text))
    return data | data["sections"]


def changed(page: ReportPage, **data: Any) -> ReportPage:
    """The same page with other data in some sections; None takes a section away."""
    known = {
        each.id: PageSection(each.id, each.title, each.nav, each.intro, None, each.terms)
        for each in sections_of(page.shared.kind)
    }
    kept = {each.id: each for each in page.sections} | {i: replace(known[i], data=new) for i, new in data.items()}
    order = [each for i in known if (each := kept.get(i)) is not None and each.data is not None]
    return replace(page, sections=order)
