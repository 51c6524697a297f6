"""The guides are true: every Python block of a page is run, in order, and prints what the page shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import snippets

ROOT = Path(__file__).resolve().parents[2]
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
