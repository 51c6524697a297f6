"""Damaged exports give answers or an error of Crowdwise, never another exception, and in time; and whatever ids and
labels are written into an export come back exactly.

CROWDWISE_FUZZ is the number of damaged copies of every golden file that are read: 20 by default. A fifth as many are
converted, and are the originals of exports: what is written is whole, or nothing is.
"""

from __future__ import annotations

import csv
import io
import json
import os
import random
import shutil
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import numpy as np
import pytest
from golden_exports import FILES, FIRST, GOLDEN, empty_jobs_of, gold_of, left_out, rows_of
from hypothesis import given
from hypothesis import strategies as st
from mutations import mutant

import crowdwise as cw
from crowdwise.errors import CrowdwiseError
from crowdwise.io import returned
from crowdwise.io.conversion import targets
from crowdwise.io.formats import all_formats

T = TypeVar("T")
COPIES = int(os.environ.get("CROWDWISE_FUZZ", "20"))
MAX_SECONDS = 10


@contextmanager
def in_time() -> Iterator[None]:
    """Raise TimeoutError if the body takes too long."""

    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"more than {MAX_SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def check_answers(answers: Any) -> None:
    """Assert what holds of any answers, however odd the file."""
    dropped = sum(each.count for each in answers.intake.dropped)
    assert answers.intake.rows_read == answers.intake.rows_used + dropped
    frame = answers.frame()
    ids = frame.select(frame.columns[:2])
    assert sum(ids.null_count().row(0)) == 0
    if answers.kind == "labels":
        assert frame["label"].null_count() == 0
        assert (frame["label"] != "").all()
    else:
        assert frame["x"].is_finite().all()
        assert frame["y"].is_finite().all()


def tried(what: str, call: Callable[[], T]) -> T | None:
    """Return what a call returns; None if it raises an error of Crowdwise. Other exceptions say what was tried."""
    try:
        with in_time(), warnings.catch_warnings():
            warnings.simplefilter("error")
            return call()
    except CrowdwiseError:
        return None
    except BaseException as error:  # the panics of polars are no Exception
        error.add_note(what)
        raise


def read_damaged(path: Path, options: dict[str, Any], what: str) -> bool:
    """Read a damaged file; return whether it has answers."""
    answers = tried(f"{what}, options {options}", partial(cw.read, path, **options))
    if answers is not None:
        check_answers(answers)
    return answers is not None


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_export_gives_answers_or_an_error_of_crowdwise(name: str, tmp_path: Path) -> None:
    case = next(case for case in FIRST if case.file == name)
    file = tmp_path / name
    if (GOLDEN / name).is_dir():
        shutil.copytree(GOLDEN / name, file)
        file = next(file.rglob("*.jsonl"))
    original = (GOLDEN / file.relative_to(tmp_path)).read_bytes()
    asked = {name: value for name, value in case.options.items() if name == "question"}
    several: dict[str, Any] = {"sets": "split", "keep": ["test", "rejected", "prediction", "draft"]}
    read = 0
    for seed in range(COPIES):
        file.write_bytes(mutant(file.name, original, seed))
        options = (asked, {**asked, "sets": "joined", "anonymous": "each"}, {**asked, **several})[seed % 3]
        read += read_damaged(tmp_path / name, options, f"{file.name}, seed {seed}")
    assert read or COPIES < 20  # some damage does not matter


# --------------------------------------------------------------------------------------------- written whole or not

WRITTEN = max(1, COPIES // 5)  # damaged copies of every file that are converted, and of the originals of exports
OLD = b"what was there before\n"
TABLES = ("csv", "jsonl", "parquet")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def damaged(name: str, folder: Path) -> Iterator[tuple[Path, str, random.Random]]:
    """Yield damaged copies of a golden file, one after the other at the same place, with their names for messages."""
    place = folder / "damaged" / name
    place.parent.mkdir()
    if (GOLDEN / name).is_dir():
        shutil.copytree(GOLDEN / name, place)
    else:
        shutil.copy(GOLDEN / name, place)
    file = next(place.rglob("*.jsonl")) if place.is_dir() else place
    original = file.read_bytes()
    for seed in range(1000, 1000 + WRITTEN):
        file.write_bytes(mutant(file.name, original, seed))
        yield place, f"{file.name}, seed {seed}", random.Random(f"{name} {seed}")


def votes(answers: Any) -> tuple[Any, ...]:
    """Return what must be the same in a file and in the table that it is converted to."""
    return answers.kind, rows_of(answers), gold_of(answers) if answers.kind == "labels" else empty_jobs_of(answers)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_export_is_converted_whole_or_not_at_all(name: str, tmp_path: Path) -> None:
    case = next(case for case in FIRST if case.file == name)
    options = {"question": case.question, "sets": "joined", "keep": "personal"}
    for path, what, rng in damaged(name, tmp_path):
        to = rng.choice(targets())
        out = tmp_path / "out" / f"converted.{to if to in TABLES else 'other'}"
        out.parent.mkdir(exist_ok=True)
        out.write_bytes(OLD)
        done = tried(f"{what}, to {to}", partial(cw.convert, path, out, to, keep="personal"))
        assert list(out.parent.iterdir()) == [out]
        assert (out.read_bytes() == OLD) == (done is None)
        before = tried(what, partial(cw.read, path, **options))
        if done is not None and to in TABLES:
            after = tried(f"{what}, to {to}, and read again", partial(cw.read, out, **options))
            if before is not None:
                assert after is not None, what
                assert votes(after) == votes(before), what
        out.unlink()


RETURNED = {name: each for name, each in all_formats().items() if each.returned}
ORIGINALS = [
    (case.file, to)
    for case in FIRST
    for to in RETURNED
    if (GOLDEN / case.file).is_file() and to.startswith(case.expected["format"])
]


@cache
def result(name: str) -> Any:
    """Return the fit of the answers in a golden file."""
    case = next(case for case in FIRST if case.file == name)
    return cw.aggregate(case.read(), "click-mixture" if case.kind == "points" else "majority-vote")


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("name", "to"), ORIGINALS)
def test_estimates_with_a_damaged_original_are_written_whole_or_not_at_all(
    name: str, to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted, out = result(name), tmp_path / "out"
    doubtful = returned.doubts(fitted, 0.9)  # which takes long, and does not depend on the original
    monkeypatch.setattr(returned, "doubts", lambda *_: doubtful)
    ending = RETURNED[to].returned
    main = out / f"{to}{'.json' if ending == '.object' else ending}"
    for path, what, _ in damaged(name, tmp_path):
        done = tried(f"{what}, to {to}", partial(cw.export, fitted, to, out, original=path))
        if done is None:
            assert not out.exists() or not list(out.iterdir()), what
            continue
        assert {*out.iterdir()} == {each for each in (main, done.relabel, done.gold) if each is not None}, what
        assert done.estimates == main
        check_whole(main)
        shutil.rmtree(out)


def check_whole(file: Path) -> None:
    """Assert that a file is valid JSON, JSON lines or CSV."""
    text = file.read_text("utf-8")
    if file.suffix == ".csv":
        assert len({len(row) for row in csv.reader(io.StringIO(text, newline=""))}) == 1
        return
    for part in text.splitlines() if file.suffix == ".jsonl" else [text]:
        assert json.loads(part)


def test_an_error_in_the_middle_leaves_the_old_file(tmp_path: Path) -> None:
    """The first of the records can be written, the second cannot."""
    folder = tmp_path / "out"
    rows = {"image": ["a", "b"], "worker": ["ann", "ann"], "x": [3.0, 4.0], "y": [4.0, 5.0]}
    table = cw.convert(rows, folder / "clicks.csv", box=(0, 0, 10, 10)).path
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines[:2], lines[2].replace("10.0", "")]) + "\n")
    (folder / "tasks.json").write_bytes(OLD)
    with pytest.raises(CrowdwiseError, match="task 'b' has places in pixels and no size"):
        cw.convert(table, folder / "tasks.json", "label-studio")
    assert (folder / "tasks.json").read_bytes() == OLD
    assert {file.name for file in folder.iterdir()} == {"clicks.csv", "tasks.json"}


# ------------------------------------------------------------------------------------------------- any ids and labels

# What tables and parsers like to change: leading zeros, numbers, true, null, spaces, quotes, delimiters, line breaks.
TEXTS = st.one_of(
    st.sampled_from(["007", "1e3", "1.0", "NA", "nan", "null", "None", "true", "False", "0", "-1", "0x7", " ", " a "]),
    st.sampled_from(
        ["a,b", 'say "so"', "two\nlines", "a\tb", "a;b", "a|b", "=1+1", "🙂", "é", "e\u0301", "\u202eabc", "'"]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r"), min_size=1, max_size=12),
)
# An id of an answer, and a label of it; each worker answers a task once.
ANSWERS = st.dictionaries(st.tuples(TEXTS, TEXTS), TEXTS, min_size=1, max_size=8)


def wanted(given_answers: dict[tuple[str, str], str]) -> list[tuple[str, str, str]]:
    return sorted((task, worker, label) for (task, worker), label in given_answers.items())


@given(answers=ANSWERS, skipped=st.integers(0, 3))
def test_any_text_survives_the_json_of_label_studio(
    answers: dict[tuple[str, str], str], skipped: int, tmp_path: Path
) -> None:
    def annotation(worker: str, label: str) -> dict[str, Any]:
        result = [{"from_name": "mood", "type": "choices", "value": {"choices": [label]}}]
        return {"completed_by": {"email": worker}, "result": result}

    tasks: dict[str, list[Any]] = {}
    for (task, worker), label in answers.items():
        tasks.setdefault(task, []).append(annotation(worker, label))
    next(iter(tasks.values())).extend([{"completed_by": 1, "was_cancelled": True, "result": []}] * skipped)
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps([{"id": task, "data": {}, "annotations": each} for task, each in tasks.items()]))
    found = cw.read(path, keep="personal")
    assert rows_of(found) == wanted(answers)
    assert left_out(found) == ({"skipped": skipped} if skipped else {})


@given(answers=ANSWERS, rejected=st.lists(TEXTS, max_size=3))
def test_any_text_survives_the_table_of_mechanical_turk(
    answers: dict[tuple[str, str], str], rejected: list[str], tmp_path: Path
) -> None:
    """A bar joins the boxes that are ticked in one answer, and &#44; is a comma: labels here have neither."""
    plain = {key: label.replace("|", "/").replace("&#44;", "") or "x" for key, label in answers.items()}
    rows = [[*key, "Approved", label] for key, label in plain.items()]
    rows += [["t", "w", "Rejected", label] for label in rejected]
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([["HITId", "WorkerId", "AssignmentStatus", "Answer.mood"], *rows])
    path = tmp_path / "batch.csv"
    path.write_text(out.getvalue(), newline="")
    found = cw.read(path, keep="personal")
    assert rows_of(found) == wanted(plain)
    assert left_out(found) == ({"rejected": len(rejected)} if rejected else {})


@given(answers=ANSWERS, silent=st.integers(0, 3))
def test_any_text_survives_the_log_of_judges(answers: dict[tuple[str, str], str], silent: int, tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"item": task, "judge": judge, "verdict": label} for (task, judge), label in answers.items()
    ]
    records += [{"item": "i", "judge": "j", "verdict": None}] * silent
    path = tmp_path / "judges.jsonl"
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), "utf-8", newline="")
    found = cw.read(path, keep="personal")
    assert rows_of(found) == wanted(answers)
    assert left_out(found) == ({"skipped": silent} if silent else {})


@given(answers=ANSWERS)
def test_any_text_survives_the_table_of_toloka(answers: dict[tuple[str, str], str], tmp_path: Path) -> None:
    """A list in brackets is a set of labels: labels here have no brackets."""
    plain = {key: label.replace("[", "(") for key, label in answers.items()}
    columns = ["ASSIGNMENT:task_id", "ASSIGNMENT:worker_id", "ASSIGNMENT:status", "OUTPUT:mood"]
    out = io.StringIO(newline="")
    rows = [[*key, "APPROVED", label] for key, label in plain.items()]
    csv.writer(out, delimiter="\t", quoting=csv.QUOTE_ALL).writerows([columns, *rows])
    path = tmp_path / "pool.tsv"
    path.write_text(out.getvalue(), newline="")
    assert rows_of(cw.read(path, keep="personal")) == wanted(plain)


@given(points=st.lists(st.tuples(TEXTS, TEXTS, st.floats(0, 100), st.floats(0, 100)), min_size=1, max_size=8))
def test_any_point_survives_the_json_of_label_studio(
    points: list[tuple[str, str, float, float]], tmp_path: Path
) -> None:
    """One submission per image and worker; the size of the images is 100 by 100 pixels, so percent are pixels."""
    submissions: dict[tuple[str, str], list[Any]] = {}
    for image, worker, x, y in points:
        value = {"x": x, "y": y, "width": 1, "keypointlabels": ["dot"]}
        size = {"original_width": 100, "original_height": 100}
        result = {"from_name": "kp", "type": "keypointlabels", "value": value, **size}
        submissions.setdefault((image, worker), []).append(result)
    tasks = [
        {"id": image, "data": {}, "annotations": [{"id": n, "completed_by": worker, "result": results}]}
        for n, ((image, worker), results) in enumerate(submissions.items())
    ]
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(tasks))
    found = cw.read(path, keep="personal", duplicates="each", box=(-1, -1, 101, 101))
    assert [row[:2] for row in rows_of(found)] == sorted(point[:2] for point in points)
    places = sorted(point[2:] for point in points)
    assert np.array(sorted(row[2:] for row in rows_of(found))) == pytest.approx(np.array(places))
