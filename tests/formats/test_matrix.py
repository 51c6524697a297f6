"""The table of formats in the documentation: it is up to date, its pages exist, and its statuses are those that files
have."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from crowdwise.io.exported import read_files
from crowdwise.io.formats import all_formats
from crowdwise.io.formats.base import ASIDE
from crowdwise.io.judgements import Wanted
from crowdwise.io.opening import opened
from crowdwise.io.parts import Reading, format_for, head_of
from crowdwise.io.tables import files_of

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("golden")
SPEC = importlib.util.spec_from_file_location("formats_script", ROOT / "scripts" / "formats.py")
assert SPEC is not None
assert SPEC.loader is not None
SCRIPT: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(SCRIPT)
DECLARED = [(name, status) for name, format in all_formats().items() for status in format.statuses]


@functools.cache
def statuses() -> dict[str, set[str]]:
    """Return the statuses of the rows in the golden files, by format."""
    found: dict[str, set[str]] = {}
    for file in sorted(GOLDEN.iterdir()):
        if file.name == "expected.json":
            continue
        with opened(file) as place:
            files, how = files_of(place), Reading()
            heads = [head_of(each, how) for each in files]
            format = format_for(heads, None)
            assert format is not None, file.name
            rows = read_files(files, heads, format, how, Wanted()).frame["status"].cast(pl.String)
        found.setdefault(format.name, set()).update(rows.to_list())
    return found


def test_the_matrix_is_that_of_the_formats() -> None:
    text = SCRIPT.INDEX.read_text()
    assert SCRIPT.filled(text) == text, "run: python scripts/formats.py"


def test_a_matrix_that_is_old_is_noticed() -> None:
    old = SCRIPT.INDEX.read_text().replace("Label Studio", "Label Studios")
    assert SCRIPT.filled(old) != old


@pytest.mark.parametrize("name", all_formats())
def test_every_format_has_a_page_that_names_it(name: str) -> None:
    page = SCRIPT.page(all_formats()[name])
    assert page.exists()
    assert f"`{name}`" in page.read_text()
    assert f"[{name}]({page.name})" in SCRIPT.INDEX.read_text()


def test_the_index_links_every_page() -> None:
    index = SCRIPT.INDEX.read_text()
    assert [page.name for page in SCRIPT.PAGES.glob("*.md") if f"({page.name})" not in index] == ["README.md"]


@pytest.mark.parametrize(("name", "status"), DECLARED)
def test_a_golden_file_has_every_status_that_a_format_declares(name: str, status: str) -> None:
    assert status in statuses().get(name, set())


@pytest.mark.parametrize("name", all_formats())
def test_statuses_of_golden_files_are_declared(name: str) -> None:
    assert statuses().get(name, set()) & {*ASIDE} <= {*all_formats()[name].statuses}


def test_units_are_given_with_points() -> None:
    for name, format in all_formats().items():
        assert bool(format.unit) == ("points" in format.kinds), name
