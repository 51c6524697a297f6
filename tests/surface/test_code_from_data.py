"""No text of a user becomes code: no eval, unsafe loader or format string, and escaped templates (S17)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import crowdwise as cw
from crowdwise.report import render

PACKAGE = Path(cw.__file__).parent
RUNNERS = {"eval", "exec", "compile", "__import__"}
LOADERS = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "yaml"}


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def test_s17_only_types_of_our_own_classes_are_evaluated() -> None:
    calls = [
        (name, node.func.id, ast.unparse(node.args[0]))
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in RUNNERS
    ]
    assert ("cli/__init__.py", "exec", "''") in calls, "nothing, so that Python forgets an interrupt"
    others = [each[:2] for each in calls if each[2] != "''"]
    assert others == [("result/stored.py", "eval")], "the annotations of classes that are saved"


def test_s17_nothing_that_can_run_code_is_imported_to_read_a_file() -> None:
    found = {
        (name, module.split(".")[0])
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
    }
    loaders = {each for each in found if each[1] in LOADERS and not each[0].startswith("spark/")}
    assert loaders == set(), "Spark sends our own states to its workers with pickle"
    pickles = [
        (name, ast.unparse(node.value))
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle"
    ]
    assert {value for _, value in pickles} <= {"False"}


@pytest.mark.parametrize("column", ["task {x}", "task {0.__class__}", "task {", "task {}"])
def test_s17_a_name_of_a_column_is_no_format_string(column: str) -> None:
    frame = pl.DataFrame({column: ["1", "1"], "the judge": ["a", "b"], "verdict": ["x", "y"]})
    with pytest.raises(cw.errors.ColumnError, match=re.escape(repr(column))) as refused:
        cw.Labels(frame)
    assert f"{column!r} may be the task, 'the judge' the worker" in str(refused.value)


def test_s1_every_template_escapes_what_it_shows() -> None:
    assert render._environment().autoescape is True
    for path in (PACKAGE / "report" / "templates").glob("*.html"):
        text = re.sub(r"'[^'{}]*' \| safe\b", "", path.read_text(encoding="utf-8"))  # words of the template itself
        assert not re.search(r"\|\s*safe\b|autoescape|Markup", text), path.name
    shown = render._environment().from_string("{{ x }}").render(x="</script><img onerror=1>{{7*7}}")
    assert shown == "&lt;/script&gt;&lt;img onerror=1&gt;{{7*7}}"
