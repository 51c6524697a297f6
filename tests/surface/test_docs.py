"""The docs: every Python block of a page is run, in order, and prints what the page shows; links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import snippets

ROOT = Path(__file__).resolve().parents[2]
LINKED = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if ">>>" in page.read_text()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Any) -> None:
    """In a process of its own, as a page may register a kind of answers."""
    monkeypatch.chdir(tmp_path)
    for words in snippets.commands(page.read_text()):
        assert command(*words)[0] == 0
    run = [sys.executable, snippets.__file__, str(page)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pages_with_snippets_are_found(tmp_path: Path) -> None:
    assert {"learning-a-classifier", "objects-from-clicks", "clusters-from-pairs"} <= {page.stem for page in PAGES}
    command = "made by `crowdwise simulate experts\n--out crowd`."
    assert snippets.commands(command) == [["simulate", "experts", "--out", "crowd"]]
    page = tmp_path / "page.md"
    for shown, failed in (("3", 0), ("4", 1)):
        page.write_text(
            f"text\n```python\none = 1\n```\n```python\n>>> two = 2\n```\n```python\n>>> one + two\n{shown}\n```\n"
        )
        assert snippets.run(page) == failed


def anchors(text: str) -> set[str]:
    """Anchors of the headings of a page, as GitHub makes them."""
    without_code = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    heads = re.findall(r"^#+ (.+)$", without_code, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_a_page_and_a_heading(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file.read_text()), target
