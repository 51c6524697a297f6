"""The page of a large result: its size, the time to write it, and the time to open it in Chromium.

python bench/page.py [--tasks N] [--workers N] [--model NAME] [--keep FILE]

Targets: below 5 MB, and open in less than 3 s. Opening is timed from the start of the navigation until the page reports
that everything is drawn, and until it has been painted: the median of three times, each in a fresh browser context.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

import crowdwise as cw

MAX_BYTES, MAX_SECONDS, OPENINGS = 5_000_000, 3.0, 3
WATCH = """
new MutationObserver((_, all) => {
  if (!document.querySelector("main[data-ready]")) return;
  all.disconnect();
  window.drawn = performance.now();
  requestAnimationFrame(() => requestAnimationFrame(() => (window.painted = performance.now())));
}).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-ready"] });
"""


def open_page(browser: Browser, path: Path) -> tuple[float, float]:
    """Seconds until everything is drawn, and until it is painted."""
    context = browser.new_context()
    context.add_init_script(WATCH)
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_function("window.painted !== undefined")
    drawn, painted = page.evaluate("[window.drawn, window.painted]")
    context.close()
    return drawn / 1000, painted / 1000


def median_openings(path: Path) -> tuple[float, float]:
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("there is no chromium; `make tools` installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        drawn, painted = zip(*(open_page(browser, path) for _ in range(OPENINGS)), strict=True)
        browser.close()
    return statistics.median(drawn), statistics.median(painted)


def verdict(met: bool) -> str:
    return "met" if met else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=20_000)
    parser.add_argument("--model", default="pooled")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="where to keep the page")
    options = parser.parse_args()

    sizes = {"tasks": options.tasks, "workers": options.workers, "classes": 10, "per_task": 5}
    answers = cw.simulate.crowd("hammer-spammer", **sizes, seed=1).answers
    began = time.perf_counter()
    result = cw.aggregate(answers, options.model)
    fitted = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = result.report((options.keep or Path(folder) / "report.html").resolve())
        written = time.perf_counter()
        size = path.stat().st_size
        drawn, painted = median_openings(path)
    print(f"{answers!r}, {options.model}: fitted in {fitted - began:.1f} s")
    print(f"page written in {written - fitted:.1f} s")
    print(f"size    {size / 1e6:5.2f} MB  < {MAX_BYTES / 1e6:g} MB  {verdict(size < MAX_BYTES)}")
    print(f"drawn   {drawn:5.2f} s   < {MAX_SECONDS:g} s   {verdict(drawn < MAX_SECONDS)}")
    print(f"painted {painted:5.2f} s   < {MAX_SECONDS:g} s   {verdict(painted < MAX_SECONDS)}")


if __name__ == "__main__":
    main()
