"""The guides: every block of Python runs, in the order of the page and in a folder with example files; links lead
somewhere."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import crowdwise as cw

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
GUIDES = [page for page in sorted((ROOT / "docs" / "guide").glob("*.md")) if "```python" in page.read_text()]


@pytest.fixture(scope="module")
def example_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that guides read: answers.csv, truth.csv, known.csv, and crowd/ with features."""
    folder = tmp_path_factory.mktemp("guides")
    crowd = cw.simulate.crowd(tasks=200, workers=20, per_task=5, seed=1)
    crowd.save(folder)
    crowd.truth.head(50).write_csv(folder / "known.csv")
    cw.simulate.crowd("experts", tasks=1000, fresh=200, workers=5, classes=2, seed=1).save(folder / "crowd")
    return folder


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_the_python_of_a_guide_runs(page: Path, example_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(example_files)
    names: dict[str, object] = {"__name__": "__main__"}
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL), 1):
        if ">>>" in block:
            test = doctest.DocTestParser().get_doctest(block, names, f"{page.name} block {number}", str(page), 0)
            printed: list[str] = []
            done = doctest.DocTestRunner().run(test, out=printed.append, clear_globs=False)
            assert done.failed == 0, "".join(printed)
            names = test.globs
        else:
            exec(compile(block, f"{page.name} block {number}", "exec"), names)


def anchors(text: str) -> set[str]:
    """Anchors of the headings of a page, as GitHub makes them."""
    without_code = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    heads = re.findall(r"^#+ (.+)$", without_code, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_a_page_and_a_heading(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file.read_text()), target
