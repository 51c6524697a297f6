"""Pages in Chromium, watched: what the browser tests of clicks and of pairs share."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

AXE = Path(__file__).resolve().parents[1] / "page" / "node_modules" / "axe-core" / "axe.min.js"
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


@contextlib.contextmanager
def watched(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open pages; when that is over, nothing may have gone wrong, and nothing been asked for."""
    contexts, noticed = [], []

    def open_(path: Path, *, width: int = 1280, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        context.add_init_script(WATCH)
        context.set_default_timeout(5000)
        contexts.append(context)
        page, url = context.new_page(), path.as_uri()
        page.on("console", lambda said: said.type in ("error", "warning") and noticed.append(f"console: {said.text}"))
        page.on("pageerror", lambda error: noticed.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (noticed.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda asked: asked.url.startswith((url, "data:")) or noticed.append(asked.url))
        page.goto(url)
        if options.get("java_script_enabled", True):
            page.wait_for_selector("main[data-ready]")
        return page

    yield open_
    for context in contexts:
        for page in context.pages:
            noticed += page.evaluate("window.breaches || []")
        context.close()
    assert noticed == []


def painted(page: Page, canvas: str) -> int:
    """Pixels of a canvas that are not empty."""
    copy = "const pen = new OffscreenCanvas(e.width, e.height).getContext('2d'); pen.drawImage(e, 0, 0)"
    read = "pen.getImageData(0, 0, e.width, e.height).data.filter((v, i) => i % 4 === 3 && v).length"
    return int(page.locator(canvas).evaluate(f"e => {{ {copy}; return {read} }}"))


def serious(page: Page) -> list[tuple[str, str]]:
    """What axe finds that keeps somebody from reading."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run({ resultTypes: ['violations'], selectors: false })")
    assert len(found["passes"]) > 20
    return [
        (each["id"], node["html"][:200])
        for each in found["violations"] if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]  # fmt: skip


def data_of(path: Path) -> dict[str, Any]:
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    return dict(json.loads(text))
