"""Argilla: objects of to_dict, records of Argilla 1.x, and what is written for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from golden_exports import GOLDEN, left_out, rows_of

import crowdwise as cw
from crowdwise.errors import FileError
from crowdwise.io.estimates import Estimate, Estimates
from crowdwise.io.formats import all_formats

FLAT = [
    {
        "id": "r1", "text": "Great!", "topic": "food", "_server_id": "x", "q.responses": [2, 3],
        "q.responses.users": ["u1", "u2"], "q.responses.status": ["submitted", "draft"], "old.suggestion": "x",
        "m.responses": [["a"], ["b", "c"]], "m.responses.users": ["u1", "u2"], "m.responses.status": [None, None],
    },
    {"id": "r2", "text": "Why?", "topic": "rent", "q.responses": None, "q.responses.users": None},
]  # fmt: skip
NESTED = [
    {
        "id": "r1", "fields": {"text": "Great!"}, "metadata": {"topic": "food"}, "vectors": {"v": [0.5]},
        "responses": {"q": [{"value": 2, "user_id": "u1"}], "m": [{"value": ["a"], "user_id": "u1"}]},
        "suggestions": {"old": {"value": "x"}},
    },
]  # fmt: skip


def written(folder: Path, value: Any) -> Path:
    (folder / "records.json").write_text(json.dumps(value))
    return folder / "records.json"


def by_name(records: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = {name: None for record in records for name in record}
    return {name: [record.get(name) for record in records] for name in names}


@pytest.mark.parametrize("name", ["argilla-flat.json", "argilla-nested.json"])
@pytest.mark.parametrize("orient", [by_name, lambda records: {each["id"]: each for each in records}])
def test_objects_of_to_dict_are_read(name: str, orient: Any, tmp_path: Path) -> None:
    records = json.loads((GOLDEN / name).read_text())
    wanted = cw.read(GOLDEN / name, question="sent")
    found = cw.read(written(tmp_path, orient(records)), question="sent")
    assert rows_of(found) == rows_of(wanted)
    assert left_out(found) == left_out(wanted)


def test_rows_of_the_hub_without_ids_need_the_name_of_the_task(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (GOLDEN / "argilla-hub.jsonl").read_text().splitlines()]
    path = written(tmp_path, [each | {"external_id": None} for each in rows])
    with pytest.raises(FileError, match=r"without external_id and id.*task='FIELD'"):
        cw.read(path)
    assert ("What a bill.", "u1", "sad") in rows_of(cw.read(path, task="text"))


def test_datasets_of_argilla_1_are_read_as_parquet(tmp_path: Path) -> None:
    frame = pl.read_ndjson(GOLDEN / "argilla-hub.jsonl")
    frame.write_parquet(tmp_path / "train.parquet")
    assert rows_of(cw.read(tmp_path / "train.parquet")) == rows_of(cw.read(GOLDEN / "argilla-hub.jsonl"))


# ----------------------------------------------------------------------------------------------------- giving back


def given_back(records: Any, question: str, *labels: str, to: str = "argilla") -> Any:
    """Return the first record with an estimate for the task r1 (of Argilla 1.x: 007)."""
    tasks = {"r1": Estimate(labels, 0.9), "007": Estimate(labels, 0.9)}
    found = Estimates(tasks, question, "labels", "crowdwise", None)
    return next(iter(all_formats()[to].give_back(found, lambda: iter(records))))


@pytest.mark.parametrize("to", ["argilla", "argilla-flat"])
def test_records_have_the_form_of_the_original(to: str) -> None:
    """Whichever form is asked for, and so no field is lost."""
    flat, nested = given_back(FLAT, "q", "2", to=to), given_back(NESTED, "q", "2", to=to)
    assert flat == {
        "id": "r1", "text": "Great!", "topic": "food", "_server_id": "x", "q.suggestion": 2,
        "q.suggestion.score": 0.9, "q.suggestion.agent": "crowdwise",
    }  # fmt: skip
    assert nested == {
        "id": "r1", "fields": {"text": "Great!"}, "metadata": {"topic": "food"}, "vectors": {"v": [0.5]},
        "responses": {}, "suggestions": {"q": {"value": 2, "score": 0.9, "agent": "crowdwise"}},
    }  # fmt: skip


@pytest.mark.parametrize(("labels", "wanted"), [(("a",), ["a"]), (("a", "b"), ["a", "b"]), ((), None)])
def test_several_labels_stay_lists(labels: tuple[str, ...], wanted: Any) -> None:
    assert given_back(FLAT, "m", *labels).get("m.suggestion") == wanted
    assert given_back(NESTED, "m", *labels)["suggestions"].get("m", {}).get("value") == wanted


@pytest.mark.parametrize("to", ["argilla", "argilla-flat"])
def test_records_of_argilla_1_lose_their_responses(to: str) -> None:
    api = json.loads((GOLDEN / "argilla-v1.json").read_text())
    found = given_back(api, "stars", "4", to=to)
    assert (found["id"], found["fields"]) == ("007", {"text": "The soup was warm."})
    assert found["suggestions"]["stars"]["value"] == 4
    hub = [json.loads(line) for line in (GOLDEN / "argilla-hub.jsonl").read_text().splitlines()]
    found = given_back(hub, "sent", "glad", to=to)
    assert (found["id"], found["text"], found["sent.suggestion"]) == ("007", "The soup was warm.", "glad")
    assert "u1" not in json.dumps(found)


@pytest.mark.parametrize("damaged", [{"text": "x"}, {"id": "r3", "fields": {}, "responses": {"q": [5]}}])
def test_an_original_that_is_damaged_is_refused(damaged: dict[str, Any]) -> None:
    with pytest.raises(FileError, match="record 3 of the original export is not as Argilla writes it"):
        list(
            all_formats()["argilla"].give_back(
                Estimates({"r3": Estimate(("2",))}, "q", "labels", "crowdwise", "id"), lambda: iter([*FLAT, damaged])
            )
        )


# -------------------------------------------------------------------------------------------------------- convert


def converted(folder: Path, table: dict[str, list[Any]]) -> list[dict[str, Any]]:
    frame = pl.DataFrame({"kind": ["labels"] * len(table["task"]), "source_row": range(len(table["task"])), **table})
    frame.write_parquet(folder / "judgements.parquet")
    done = cw.convert(folder / "judgements.parquet", folder / "records.json", "argilla-flat")
    return json.loads(done.path.read_text())  # type: ignore[no-any-return]


def test_numbers_stay_numbers_and_sets_are_lists(tmp_path: Path) -> None:
    [record] = converted(
        tmp_path,
        {
            "task": ["1"] * 6, "worker": ["u1", "u1", "u1", "u2", "u2", "u2"], "question": ["q", "m", "s"] * 2,
            "status": ["ok"] * 6, "label": ["2", "a", "x", "3", None, "7"], "value": [2.0, None, None, 3.0, None, 7.0],
            "label_set": [None, None, None, None, '["a", "b"]', None],
        },
    )  # fmt: skip
    assert record["q.responses"] == [2, 3]
    assert record["m.responses"] == [["a"], ["a", "b"]]
    assert record["s.responses"] == ["x", "7"]


def test_a_submission_without_answers_is_one_to_every_question(tmp_path: Path) -> None:
    [record] = converted(
        tmp_path,
        {
            "task": ["1"] * 3, "worker": ["u1", "u1", "u2"], "question": ["q", "r", None], "label": ["a", "b", None],
            "status": ["ok", "ok", "skipped"],
        },
    )  # fmt: skip
    assert record["q.responses"] == ["a", None]
    assert record["r.responses"] == ["b", None]
    assert record["q.responses.status"] == record["r.responses.status"] == ["submitted", "discarded"]
    assert left_out(cw.read(tmp_path / "records.json", question="q")) == {"skipped": 1}
