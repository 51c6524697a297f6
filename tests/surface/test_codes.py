"""The codes of docs/faults.md and the tests that hold them, in both directions."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
PAGE = (ROOT / "docs" / "faults.md").read_text()
LETTERS = {"D": 32, "F": 11, "R": 14, "S": 17}
CODES = [f"{letter}{number}" for letter, most in LETTERS.items() for number in range(1, most + 1)]
BUILT, _, REST = PAGE.partition("## Not built yet")
SERVER = {"R10", "S5", "S6", "S7", "S9", "S11", "S14"}  # of a dashboard


def rows(text: str) -> dict[str, str]:
    """The rows of the tables in a text, by their code."""
    found = re.findall(r"^\| ([A-Z]\d+) \|(.*)$", text, re.MULTILINE)
    assert len(found) == len(dict(found)), "a code has two rows"
    return dict(found)


def codes_of(name: str) -> list[str]:
    """The codes in the name of a test: `test_d11_d12_texts` has D11 and D12."""
    found = re.match(r"test((?:_[a-z]\d+)*)_", name)
    return found[1].upper().split("_")[1:] if found else []


def cited() -> dict[str, list[str]]:
    """The codes of every test, by file and name."""
    return {
        f"{path.relative_to(TESTS)}::{node.name}": codes_of(node.name)
        for path in sorted(TESTS.rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


HELD = cited()


def test_the_name_of_a_test_has_its_codes() -> None:
    assert codes_of("test_d1_a_label") == ["D1"]
    assert codes_of("test_f6_f7_a_cut_file") == ["F6", "F7"]
    assert codes_of("test_a_d1_label") == codes_of("test_the_f1_between_workers") == []


def test_every_code_is_on_the_page_once_and_in_order() -> None:
    built, missing = rows(BUILT), rows(REST)
    assert sorted(built | missing, key=CODES.index) == CODES
    assert not built.keys() & missing.keys()
    assert list(built) == [code for code in CODES if code not in missing]


def test_what_is_not_built_is_what_needs_a_server() -> None:
    assert rows(REST).keys() == SERVER
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    serves = re.compile(
        r"^\s*(?:import|from) (?:http\.server|socketserver|flask|fastapi|starlette|uvicorn|aiohttp)", re.M
    )
    assert not any(serves.search(text) for text in sources), "there is a server: its codes need tests"


def test_no_test_has_a_code_that_is_not_on_the_page() -> None:
    assert [name for name, codes in HELD.items() if not {*codes} <= {*CODES}] == []
    assert [name for name, codes in HELD.items() if {*codes} & rows(REST).keys()] == []


@pytest.mark.parametrize("code", rows(BUILT))
def test_every_code_that_is_built_is_held_by_the_tests_on_the_page(code: str) -> None:
    named = re.findall(r"`([\w/]+\.py::test_\w+)`", rows(BUILT)[code])
    assert named, f"no test is named for {code}"
    assert [name for name in named if name not in HELD] == [], "these tests do not exist"
    assert code in HELD[named[0]], "the first test that is named must have the code in its name"
    assert all(HELD[name] for name in named)
