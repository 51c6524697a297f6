"""Tables of the guide come from files of measurements, which hold nothing else."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("measured", ROOT / "scripts" / "measured.py")
assert SPEC is not None
assert SPEC.loader is not None
MEASURED: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(MEASURED)


def test_tables_of_the_guide_are_those_measured() -> None:
    text = MEASURED.GUIDE.read_text()
    assert MEASURED.BLOCK.search(text)
    assert MEASURED.filled(text) == text, "run: python scripts/measured.py"


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "measured").glob("*.json")), ids=lambda path: path.stem)
def test_files_of_measurements_hold_parts_alone(path: Path) -> None:
    found = json.loads(path.read_text())
    assert found.keys() == {"study", "parts"}
    assert found["study"] == path.stem
    assert all(part["rows"] for part in found["parts"])
    assert {f"measured: {path.stem} |", f"compared: {path.stem}\n"} <= {
        found[0] for found in re.findall(r"((measured|compared): (\w+)( \||\n))", MEASURED.GUIDE.read_text())
    }


def test_a_table_is_made_of_the_columns_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MEASURED, "MEASURED", tmp_path)
    first, second = (
        {"method": "a", "mean": 1.25, "spread": 0.111, "n": 3},
        {"method": "b", "mean": None, "spread": None},
    )
    part = {"title": "Table 2: all", "rows": [first, second | {"n": 4}], "notes": []}
    (tmp_path / "out.json").write_text(json.dumps({"study": "x", "parts": [part], "files": ["out/figure.svg"]}))
    MEASURED.take_over("x", tmp_path / "out.json")
    source = "<!-- measured: x | Table 2 | name = method; ours = mean ± spread:1; count = n -->"
    table = "| name | ours | count |\n| --- | --- | --- |\n| a | 1.2 ± 0.1 | 3 |\n| b |  | 4 |\n"
    assert MEASURED.filled(f"Before.\n\n{source}\n\n| old |\n\nAfter.\n") == f"Before.\n\n{source}\n\n{table}\nAfter.\n"


def test_a_comparison_takes_single_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MEASURED, "MEASURED", tmp_path)
    rows = [{"method": "a", "layout": "E", "n": 1234.5, "m": None}, {"method": "a", "layout": "P", "n": 7}]
    (tmp_path / "x.json").write_text(json.dumps({"study": "x", "parts": [{"title": "Table 2: all", "rows": rows}]}))
    ours = "{Table 2 / P / a / n} to {Table 2 / E / n:1} m, {Table 2 / E / m:1}"
    source = f"<!-- compared: x\nsize | 3 to 4 | {ours} | they differ\n-->"
    table = "|  | paper | ours | why they differ |\n| --- | --- | --- | --- |\n"
    row = "| size | 3 to 4 | 7 to 1,234.5 m, - | they differ |\n"
    assert MEASURED.filled(f"{source}\n\n| old |\n\nAfter.\n") == f"{source}\n\n{table}{row}\nAfter.\n"
    with pytest.raises(AssertionError, match="no table below"):
        MEASURED.filled(f"{source}\nno empty line before it\n| old |\n")
    with pytest.raises(AssertionError, match="2 rows of 'Table 2' have"):
        MEASURED.compared("x\nsize | 3 | {Table 2 / a / n} | they differ")
