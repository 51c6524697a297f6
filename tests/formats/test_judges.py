"""Logs of judges: which field is the item, which the judge, and which tables are no logs of judges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from golden_exports import rows_of

import crowdwise as cw
from crowdwise.errors import FileError


def log(folder: Path, *records: dict[str, Any]) -> Path:
    place = folder / "log.jsonl"
    place.write_text("".join(json.dumps(record) + "\n" for record in records))
    return place


def test_a_model_beside_a_judge_is_what_was_judged(tmp_path: Path) -> None:
    said = [("gpt", "claude", "pass"), ("llama", "claude", "fail"), ("gpt", "gemini", "pass")]
    path = log(tmp_path, *({"id": 1, "model": model, "judge": judge, "verdict": it} for model, judge, it in said))
    wanted = [("1 | gpt", "claude", "pass"), ("1 | gpt", "gemini", "pass"), ("1 | llama", "claude", "fail")]
    assert rows_of(cw.read(path)) == wanted
    assert {row[:2] for row in rows_of(cw.read(path, worker="model"))} == {("1", "gpt"), ("1", "llama")}


def test_a_model_without_a_judge_is_the_judge(tmp_path: Path) -> None:
    assert rows_of(cw.read(log(tmp_path, {"item": "a", "model": "gpt", "verdict": True}))) == [("a", "gpt", "true")]


@pytest.mark.parametrize(
    "name", ["custom_id", "sample_id", "doc_id", "input_id", "record_id", "row_id", "question_id", "index", "prompt"]
)
def test_names_of_items(name: str, tmp_path: Path) -> None:
    path = log(tmp_path, {name: "a", "judge": "owl", "verdict": "x"})
    assert rows_of(cw.read(path)) == [("a", "owl", "x")]


def test_the_text_of_a_prompt_is_the_item_only_without_an_id(tmp_path: Path) -> None:
    records = ({"prompt": "Is it so?", "task": "facts", "sample_id": n, "judge": "owl", "verdict": "x"} for n in (1, 2))
    assert rows_of(cw.read(log(tmp_path, *records))) == [("1", "owl", "x"), ("2", "owl", "x")]


def test_a_judge_may_be_a_list_of_a_model_and_its_prompt(tmp_path: Path) -> None:
    path = log(tmp_path, {"item": "a", "judge": ["owl", "v1"], "verdict": "x"})
    assert rows_of(cw.read(path)) == [("a", "owl / v1", "x")]


def test_a_table_with_workers_is_no_log_of_judges(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("task,worker,model,verdict\nt1,ann,gpt,good\nt1,bob,gpt,bad\n")
    assert rows_of(cw.read(path, label="verdict")) == [("t1", "ann", "good"), ("t1", "bob", "bad")]
    assert rows_of(cw.read(path, format="judges")) == [("t1", "gpt", "bad")]


def test_a_judge_beside_a_user_is_the_worker(tmp_path: Path) -> None:
    path = log(tmp_path, {"item": "a", "user": "ann", "judge": "owl", "verdict": "x"})
    assert rows_of(cw.read(path)) == [("a", "owl", "x")]


def test_mt_bench_takes_another_field_as_the_task(tmp_path: Path) -> None:
    about = {"question_id": 81, "asked": "q", "model": "gpt", "judge": ["owl", "v1"], "judgment": "", "turn": 1}
    path = log(tmp_path, about | {"score": 7})
    assert rows_of(cw.read(path, task="asked")) == [("q | gpt", "owl / v1", "7")]


def test_mt_bench_without_a_field_is_refused(tmp_path: Path) -> None:
    about = {"question_id": 81, "model": "gpt", "judge": "owl", "judgment": "", "turn": 1}
    with pytest.raises(FileError, match=r"log\.jsonl:2: this record is not as MT-bench \(scores\) writes it.*'score'"):
        cw.read(log(tmp_path, about | {"score": 7}, about))
