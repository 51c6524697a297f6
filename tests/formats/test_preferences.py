"""Comparisons: results in columns of 1 and 0, AlpacaEval, and tables that are no preferences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from golden_exports import left_out, rows_of

import crowdwise as cw
from crowdwise.errors import FileError

ARENA = "id,model_a,model_b,judge,winner_model_a,winner_model_b,winner_tie\n"


def table(folder: Path, text: str) -> Path:
    place = folder / "votes.csv"
    place.write_text(text)
    return place


def test_arena_votes_with_a_column_for_each_result(tmp_path: Path) -> None:
    rows = "1,owl,wren,ann,1,0,0\n1,owl,wren,bob,0,1,0\n1,owl,wren,cyd,0,0,1\n1,owl,wren,dan,0,0,0\n"
    answers = cw.read(table(tmp_path, ARENA + rows))
    task = "1 | owl | wren"
    assert rows_of(answers) == [(task, "ann", "model_a"), (task, "bob", "model_b"), (task, "cyd", "tie")]
    assert left_out(answers) == {"empty": 1}


@pytest.mark.parametrize("cells", ["1,1,0", "0.3,0.3,0.4", "no,yes,0"])
def test_arena_votes_with_unclear_results_are_refused(cells: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"votes\.csv:2: .*one must be 1, the others 0"):
        cw.read(table(tmp_path, f"{ARENA}1,owl,wren,ann,{cells}\n"))


def test_alpaca_eval_without_generators_compares_the_texts(tmp_path: Path) -> None:
    about: dict[str, Any] = {"instruction": "i", "output_1": "a", "output_2": "b", "annotator": "owl"}
    place = tmp_path / "annotations.json"
    place.write_text(json.dumps([about | {"preference": 1.2}]))
    answers = cw.read(place)
    assert rows_of(answers) == [("i | a | b", "owl", "output_1")]
    assert answers.frame()["value"].to_list() == [1.2]
    nothing = pl.DataFrame([about | {"preference": float("nan")}, about | {"preference": 2.0, "annotator": "wren"}])
    assert left_out(cw.read(nothing)) == {"empty": 1}
    place.write_text(json.dumps([about | {"preference": 3}]))
    with pytest.raises(FileError, match=r"preference is 3; it can be 0 or 1 to 2"):
        cw.read(place)


def test_a_table_with_labels_is_no_list_of_preferences(tmp_path: Path) -> None:
    path = table(tmp_path, "task,worker,label,chosen,rejected\nt1,ann,good,x,y\nt1,bob,bad,x,y\n")
    assert rows_of(cw.read(path)) == [("t1", "ann", "good"), ("t1", "bob", "bad")]
    assert [row[2] for row in rows_of(cw.read(path, format="preferences"))] == ["first", "first"]


def test_crowd_kit_once_called_workers_performers(tmp_path: Path) -> None:
    path = table(tmp_path, "performer,left,right,label\np1,cat,dog,cat\np2,cat,dog,dog\n")
    assert rows_of(cw.read(path)) == [("cat | dog", "p1", "left"), ("cat | dog", "p2", "right")]
