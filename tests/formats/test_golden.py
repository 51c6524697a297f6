"""Golden exports (F9): every format is recognised, and gives exactly the answers, the counts of what is left out, the
known labels and the times that were written down by hand; in whatever container the same rows come."""

from __future__ import annotations

import gzip
import importlib
import io
import json
import os
import shutil
import sys
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.sax.saxutils import escape

import counting
import polars as pl
import pytest
from golden_exports import (
    CASES,
    EMAILS,
    EXPECTED,
    FILES,
    FIRST,
    GOLDEN,
    TABLES,
    Case,
    empty_jobs_of,
    gold_of,
    left_out,
    named,
    rows_of,
    same,
)

import crowdwise as cw
from crowdwise.errors import ColumnError, CrowdwiseError, DataError, FileError, ParameterError
from crowdwise.io.formats.base import Format, Head
from crowdwise.io.opening import opened
from crowdwise.io.parts import Reading, head_of
from crowdwise.io.tables import files_of

formats: Any = importlib.import_module("crowdwise.io.formats")  # crowdwise.io.formats may also be a function
every_case = pytest.mark.parametrize("case", CASES, ids=named(CASES))
every_file = pytest.mark.parametrize("case", FIRST, ids=FILES)
LABELS = tuple(case for case in CASES if case.kind == "labels")
POINTS = tuple(case for case in CASES if case.kind == "points")


def heads(path: Path) -> list[Head]:
    """Return how the files of an export begin; of a zip, its files."""
    with opened(path) as place:
        return [head_of(file, Reading()) for file in files_of(place)]


def recognising(head: Head) -> list[Format]:
    """Return every format that takes a file for its own."""
    return [
        each for each in formats.all_formats().values() if head.container in each.containers and each.recognise(head)
    ]


@pytest.fixture(scope="module")
def format_of() -> dict[str, Format]:
    """The format of every golden file."""
    return {name: recognising(heads(GOLDEN / name)[0])[0] for name in FILES}


# -------------------------------------------------------------------------------------------------- F9: the answers


@every_case
def test_f9_the_answers_are_exactly_those_of_the_file(case: Case) -> None:
    answers = case.read()
    assert answers.kind == case.kind
    assert rows_of(answers) == case.votes


@every_case
def test_f9_rows_that_are_no_votes_are_counted_by_reason(case: Case) -> None:
    answers = case.read()
    assert left_out(answers) == case.expected["apart"]
    assert answers.intake.rows_read == answers.intake.rows_used + sum(case.expected["apart"].values())
    assert answers.intake.rows_used == len(case.votes)


@every_case
def test_f9_no_judgement_of_the_file_is_lost(case: Case, format_of: dict[str, Format]) -> None:
    """The file is counted here by another way than the readers: with json, csv and ElementTree."""
    there = counting.count(GOLDEN / case.file, format_of[case.file].name, case.question, case.kind)
    answers = case.read()
    assert there == answers.intake.rows_used + sum(left_out(answers).values())


@pytest.mark.parametrize("case", LABELS, ids=named(LABELS))
def test_f9_known_labels_are_gold_and_no_votes(case: Case) -> None:
    assert gold_of(case.read()) == case.expected["gold"]


@pytest.mark.parametrize("case", POINTS, ids=named(POINTS))
def test_f9_who_looked_and_marked_nothing_has_an_empty_job(case: Case) -> None:
    assert empty_jobs_of(case.read()) == sorted(case.expected["empty_jobs"])


@pytest.mark.parametrize("case", POINTS, ids=named(POINTS))
def test_f9_points_have_their_classes(case: Case) -> None:
    answers = case.read()
    columns = ("image", "worker", "x", "y", "class")
    assert sorted(answers.frame().select(columns).rows()) == sorted(map(tuple, case.expected["classes"]))
    for label in {row[-1] for row in case.expected["classes"]}:
        only = case.read(question=f"{case.question}/{label}")
        wanted = sorted(tuple(row[:-1]) for row in case.expected["classes"] if row[-1] == label)
        assert rows_of(only) == wanted


SEVERAL = tuple(case for case in POINTS if len({row[-1] for row in case.expected["classes"]}) > 1)


@pytest.mark.parametrize("case", SEVERAL, ids=named(SEVERAL))
def test_f9_points_of_several_classes_are_not_mixed_unasked(case: Case) -> None:
    with pytest.raises(DataError) as caught:
        cw.read(GOLDEN / case.file)
    assert "Choose one" in str(caught.value)


@every_case
def test_f9_a_question_is_named_and_others_are_listed(case: Case) -> None:
    assert f"question {case.question!r}" in str(case.read(question=case.question).intake.notes)
    with pytest.raises(ColumnError) as caught:
        case.read(question="no such question")
    assert repr(case.question) in str(caught.value)


OTHERS = tuple(Case(file, EXPECTED[file]) for file in FILES if EXPECTED[file].get("also"))


@pytest.mark.parametrize("case", OTHERS, ids=named(OTHERS))
def test_f9_of_several_questions_one_must_be_chosen(case: Case) -> None:
    questions = [case.question, *(each["question"] for each in case.expected["also"])]
    with pytest.raises(DataError, match="has several questions") as caught:
        cw.read(GOLDEN / case.file)
    assert all(repr(question) in str(caught.value) for question in questions)


UNUSABLE = tuple((case, question) for case in FIRST for question in case.expected.get("unusable", []))


@pytest.mark.parametrize(("case", "question"), UNUSABLE, ids=[f"{case.file}-{each}" for case, each in UNUSABLE])
def test_f9_questions_whose_answers_are_text_are_refused(case: Case, question: str) -> None:
    with pytest.raises(DataError, match=f"question '{question}' of .* has answers of the kind text"):
        case.read(question=question)


SETS = tuple(case for case in CASES if case.expected["kind"] == "sets")


@pytest.mark.parametrize("case", SETS, ids=named(SETS))
def test_f9_sets_of_labels_are_split_only_when_asked(case: Case) -> None:
    with pytest.raises(DataError, match="answers with several labels"):
        case.read(sets="refuse")
    given = {(task, worker): labels for task, worker, labels in case.expected["votes"]}
    classes = sorted({label for labels in given.values() for label in labels})
    nothing = case.expected.get("blank", [])  # answers in which nothing is chosen: no answer to the whole set
    given |= {(task, worker): [] for task, worker in nothing}
    wanted = [
        (f"{task} / {name}", worker, "yes" if name in labels else "no")
        for (task, worker), labels in given.items()
        for name in classes
    ]
    answers = case.read(sets="split")
    assert rows_of(answers) == sorted(wanted)
    apart = Counter(case.expected["apart"]) - Counter({"empty": len(nothing)})
    assert left_out(answers) == {reason: count * len(classes) for reason, count in apart.items()}


# ---------------------------------------------------------------------------------------- F9: times, gold, predictions

TIMED = tuple(case for case in CASES if "seconds" in case.expected or "submitted" in case.expected)


@pytest.mark.parametrize("case", TIMED, ids=named(TIMED))
def test_f9_answers_keep_their_duration_and_time(case: Case) -> None:
    frame = case.read().frame()
    seconds = dict(zip(frame["task"] + "|" + frame["worker"], frame["seconds"], strict=True))
    assert {key: seconds[key] for key in case.expected.get("seconds", {})} == case.expected.get("seconds", {})
    if "submitted" in case.expected:
        when = dict(zip(frame["task"] + "|" + frame["worker"], frame["timestamp"], strict=True))
        assert {key: when[key].isoformat() for key in case.expected["submitted"]} == case.expected["submitted"]


TESTED = tuple(case for case in CASES if "test_gold" in case.expected)


@pytest.mark.parametrize("case", TESTED, ids=named(TESTED))
def test_f9_test_questions_give_votes_and_gold_when_they_are_kept(case: Case) -> None:
    answers = case.read(keep="test")
    tests = answers.frame().filter(pl.col("is_check"))
    assert gold_of(answers) == case.expected["test_gold"]
    assert tests.height == case.expected["apart"]["test"]
    assert sorted(set(rows_of(answers)) - set(tests.select("task", "worker", "label").rows())) == case.votes


KEPT = tuple(
    (case, status)
    for case in LABELS
    for status in case.expected["apart"]
    if status not in ("empty", "another", "skipped", "gold", "test") and case.expected["kind"] != "sets"
)


@pytest.mark.parametrize(("case", "status"), KEPT, ids=[f"{case}-{status}" for case, status in KEPT])
def test_f9_rows_of_a_status_are_kept_when_asked(case: Case, status: str) -> None:
    """A row of this status that has no label is empty then."""
    before, after = case.read(), case.read(keep=["personal", status])
    rest = {**left_out(before)}
    moved = rest.pop(status)
    empty = left_out(after).get("empty", 0) - rest.get("empty", 0)
    assert {k: v for k, v in left_out(after).items() if k != "empty"} == {k: v for k, v in rest.items() if k != "empty"}
    assert after.intake.rows_used == before.intake.rows_used + moved - empty
    assert set(rows_of(before)) <= set(rows_of(after))


GUESSED = tuple(case for case in CASES if "predictions" in case.expected)


@pytest.mark.parametrize("case", GUESSED, ids=named(GUESSED))
def test_f9_predictions_are_workers_that_are_models(case: Case) -> None:
    answers = case.read(keep="prediction")
    models = answers.frame().filter(pl.col("worker_kind") == "model").select("task", "worker", "label")
    assert sorted(models.rows()) == sorted(map(tuple, case.expected["predictions"]))
    assert "are models, not people" in str(answers.intake.notes)


def test_f9_judges_keep_their_probabilities() -> None:
    case = next(case for case in CASES if "probabilities" in case.expected)
    frame = case.read().frame()
    assert set(frame["worker_kind"]) == {"model"}
    found = dict(zip(frame["task"] + "|" + frame["worker"], frame["probabilities"], strict=True))
    wanted = case.expected["probabilities"]
    assert {key: json.loads(found[key]) for key in wanted} == wanted


# ---------------------------------------------------------------------------------------------- S13: personal data


@pytest.mark.parametrize("name", EMAILS)
def test_s13_e_mail_addresses_become_digests(name: str) -> None:
    case = next(case for case in FIRST if case.file == name)
    answers, plain = case.read(keep=()), case.read()
    assert not any("@" in worker for worker in answers.workers)
    assert "@" not in json.dumps(answers.intake.as_dict())
    assert sum(worker.startswith("worker-") for worker in answers.workers) == sum("@" in w for w in plain.workers) > 0
    assert answers.frame().height == plain.frame().height
    assert case.read(keep=()).workers.equals(answers.workers)


@every_file
def test_s13_addresses_appear_nowhere(case: Case) -> None:
    """All e-mail addresses of the files end in example.org; must_not_appear lists other personal data."""
    answers = case.read(keep=())
    everything = json.dumps(answers.frame().to_dict(as_series=False), default=str) + json.dumps(
        answers.intake.as_dict()
    )
    everything += str(answers.workers.to_list())
    for secret in ("example.org", *case.expected.get("must_not_appear", [])):
        assert secret not in everything


def test_s13_a_key_gives_every_worker_a_digest_that_files_share(tmp_path: Path) -> None:
    key = tmp_path / "key.txt"
    one, other = (cw.read(GOLDEN / name, question="sent", pseudonymise=key) for name in EMAILS)
    assert all(worker.startswith("worker-") for worker in one.workers)
    assert len(set(one.workers) & set(other.workers)) == 2  # 12 and bea@example.org are in both
    assert key.stat().st_mode & 0o077 == 0
    again = cw.read(GOLDEN / EMAILS[0], question="sent", pseudonymise=tmp_path / "another.txt")
    assert not set(again.workers) & set(one.workers)


def test_s13_a_key_that_is_too_short_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("secret")
    with pytest.raises(FileError, match=r"key\.txt has 6 bytes; at least 16"):
        cw.read(GOLDEN / EMAILS[0], question="sent", pseudonymise=tmp_path / "key.txt")


# ------------------------------------------------------------------------------------------------- F9: recognition


@pytest.mark.parametrize("name", FILES)
def test_f9_exactly_one_family_recognises_a_file(name: str) -> None:
    wanted = EXPECTED[name]["format"]
    for head in heads(GOLDEN / name):
        found = [each.name for each in recognising(head)]
        assert len(found) == 1
        assert found[0] == wanted or found[0].startswith(f"{wanted}-")


def test_f9_every_format_has_a_golden_file(format_of: dict[str, Format]) -> None:
    readable = {name for name, each in formats.all_formats().items() if each.kinds}
    assert {each.name for each in format_of.values()} == readable


def test_f9_every_golden_file_is_expected() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {*FILES, "expected.json"}


@every_file
def test_f9_a_format_that_is_not_that_of_the_file_is_refused(case: Case, format_of: dict[str, Format]) -> None:
    found = format_of[case.file]
    for wrong in ("prodigy", "toloka", "cvat"):
        if wrong != case.expected["format"]:
            with pytest.raises(FileError) as caught:
                case.read(format=wrong)
            assert f"looks like {found.title}: use format='{found.name}'" in str(caught.value)
            assert f"is not {formats.all_formats()[wrong].title}" in str(caught.value)


@every_file
def test_f9_the_format_of_the_file_can_be_given(case: Case, format_of: dict[str, Format]) -> None:
    for format in (case.expected["format"], format_of[case.file].name):
        assert same(case.read(format=format), case.read())


def test_f9_a_plain_table_is_no_export(table: Any) -> None:
    path = table("task,worker,label\nt1,ann,x\n")
    with pytest.raises(
        FileError, match=r"answers\.csv is not CVAT .*It has the columns task, worker, label\. It looks"
    ):
        cw.read(path, format="cvat")
    with pytest.raises(ParameterError, match="question= is for exports"):
        cw.read(path, question="x")
    with pytest.raises(ParameterError, match="Did you mean 'toloka'"):
        cw.read(path, format="tolka")


FORMAT = """
from crowdwise.io.formats import register
from crowdwise.io.formats.base import LABELS, Answer, RecordFormat


@register
class Mine(RecordFormat):
    name, title, files, containers = "mine", "Mine", "JSONL", ("records",)

    def recognise(self, head):
        return head.has("thing", "person", "says")

    def answers(self, record, origin, settings):
        yield Answer(record["thing"], record["person"], "says", LABELS, record["says"])
"""


@pytest.fixture
def another_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module with a format in a folder that belongs to the package for the time of a test."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "mine.py").write_text(FORMAT)
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path / "package")])
    importlib.invalidate_caches()
    yield
    formats.FORMATS.pop("mine", None)
    sys.modules.pop("crowdwise.io.formats.mine", None)
    if hasattr(formats, "mine"):
        delattr(formats, "mine")


@pytest.mark.usefixtures("another_format")
def test_a_new_module_with_a_format_is_found_by_itself(table: Any) -> None:
    path = table('{"thing": "t1", "person": "ann", "says": "x"}\n', "answers.jsonl")
    assert cw.read(path).frame().rows() == [("t1", "ann", "x")]
    assert cw.read(path, format="mine").intake.notes[0] == "Mine"


# ------------------------------------------------------------------------------- F9: the same rows in other containers

# The name of these files is the worker or the task.
BY_NAME = {"cvat-points.xml", "cvat-boxes.xml", "cvat-tags.xml", "cvat-tagsets.xml", "cvat-video.xml"}
BY_NAME |= {"doccano-user.jsonl", "doccano-csv.csv", "sagemaker-response.json"}
SINGLE = tuple(case for case in FIRST if (GOLDEN / case.file).is_file())


def copied(case: Case, folder: Path, name: str, data: bytes | None = None) -> Path:
    """Write a golden file, or other data, into a folder that is called like the folder of golden files."""
    place = folder / "golden" / name
    place.parent.mkdir(exist_ok=True)
    place.write_bytes((GOLDEN / case.file).read_bytes() if data is None else data)
    return place


@pytest.mark.parametrize(
    "case", [case for case in SINGLE if not case.file.endswith(".zip")], ids=lambda case: case.file
)
def test_f9_a_gz_file_gives_the_same_answers(case: Case, tmp_path: Path) -> None:
    path = copied(case, tmp_path, f"{case.file}.gz", gzip.compress((GOLDEN / case.file).read_bytes()))
    if case.file == "sagemaker-response.json":  # its name is the task
        assert [row[1:] for row in rows_of(case.read(path))] == [row[1:] for row in case.votes]
    else:
        assert same(case.read(path), case.read())


@pytest.mark.parametrize("case", SINGLE, ids=lambda case: case.file)
@pytest.mark.parametrize("ending", ["", ".download"])
def test_f9_a_file_without_a_telling_ending_gives_the_same_answers(case: Case, ending: str, tmp_path: Path) -> None:
    path = copied(case, tmp_path, Path(case.file).stem + ending)
    if case.file == "sagemaker-response.json":
        assert [row[1:] for row in rows_of(case.read(path))] == [row[1:] for row in case.votes]
    else:
        assert same(case.read(path), case.read())


def test_f9_a_folder_of_gz_files_gives_the_same_answers(tmp_path: Path) -> None:
    case = next(case for case in FIRST if case.file == "potato")
    for file in (GOLDEN / "potato").rglob("*.jsonl"):
        (tmp_path / file.parent.name).mkdir()
        (tmp_path / file.parent.name / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    assert same(case.read(tmp_path), case.read())


@pytest.mark.parametrize(
    "case", [case for case in SINGLE if not case.file.endswith(".zip")], ids=lambda case: case.file
)
def test_f9_a_zip_gives_the_same_answers(case: Case, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(GOLDEN / case.file, f"golden/{case.file}")
        archive.writestr("golden/picture.jpg", b"\xff\xd8")
    assert same(case.read(tmp_path / "export.zip"), case.read())


def as_frame(name: str) -> pl.DataFrame:
    """Return a golden table as a frame of text."""
    rows = counting.table(GOLDEN / name)
    return pl.DataFrame({column: [row[column] or None for row in rows] for column in rows[0]}, strict=False).cast(
        pl.String
    )


def workbook(frame: pl.DataFrame) -> bytes:
    """Return an Excel workbook with the cells of a frame as text."""
    cells = [frame.columns, *frame.rows()]
    rows = "".join(
        "<row>" + "".join(_cell(value) for value in row) + "</row>" for row in cells
    )  # fmt: skip
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        '<sheet name="Sheet1" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>',
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, '<?xml version="1.0" encoding="UTF-8"?>' + text)
    return buffer.getvalue()


def _cell(value: str | None) -> str:
    if value is None:
        return "<c/>"
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'


def parquet(frame: pl.DataFrame) -> bytes:
    """Return a Parquet file."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def arrow_stream(frame: pl.DataFrame) -> bytes:
    """Return an Arrow file as datasets of Hugging Face have them: a stream."""
    buffer = io.BytesIO()
    frame.write_ipc_stream(buffer)
    return buffer.getvalue()


def dataset(folder: Path, frame: pl.DataFrame, features: dict[str, Any] | None = None) -> Path:
    """Write a dataset of Hugging Face, in two files, as save_to_disk writes it."""
    folder.mkdir()
    half = frame.height // 2
    for number, part in enumerate((frame[:half], frame[half:])):
        (folder / f"data-{number:05d}-of-00002.arrow").write_bytes(arrow_stream(part))
    (folder / "cache-f00d.arrow").write_bytes(arrow_stream(frame))
    usual = {name: {"dtype": "string", "_type": "Value"} for name in frame.columns}
    (folder / "dataset_info.json").write_text(json.dumps({"features": usual | (features or {})}))
    files = [{"filename": f"data-{number:05d}-of-00002.arrow"} for number in range(2)]
    (folder / "state.json").write_text(json.dumps({"_data_files": files, "_split": None}))
    return folder


by_table = pytest.mark.parametrize("case", [case for case in FIRST if case.file in TABLES], ids=lambda case: case.file)
unnamed = pytest.mark.parametrize(
    "case", [case for case in FIRST if case.file in TABLES and case.file not in BY_NAME], ids=lambda case: case.file
)


@by_table
@pytest.mark.parametrize("ending", ["xlsx", "parquet", "arrow"])
def test_f9_a_table_gives_the_same_answers_in_other_files(case: Case, ending: str, tmp_path: Path) -> None:
    write = {"xlsx": workbook, "parquet": parquet, "arrow": arrow_stream}[ending]
    path = copied(case, tmp_path, f"{Path(case.file).stem}.{ending}", write(as_frame(case.file)))
    assert same(case.read(path), case.read())


@unnamed
def test_f9_a_frame_gives_the_same_answers(case: Case) -> None:
    frame = as_frame(case.file)
    for each in (frame, frame.to_pandas(), frame.to_arrow()):
        assert same(cw.read(each, **case.options), case.read())


@unnamed
def test_f9_a_dataset_of_hugging_face_gives_the_same_answers(case: Case, tmp_path: Path) -> None:
    assert same(case.read(dataset(tmp_path / "dataset", as_frame(case.file))), case.read())


def test_f9_the_classes_of_a_dataset_have_their_names(tmp_path: Path) -> None:
    """Plain tables, in a dataset and in a dataset with splits, whose labels are numbers of named classes."""
    frame = pl.DataFrame({"task": ["007", "007", "1e3"], "worker": ["ann", "bob", "ann"], "label": [0, 1, 1]})
    features = {"label": {"names": ["NA", "cat"], "_type": "ClassLabel"}}
    wanted = [("007", "ann", "NA"), ("007", "bob", "cat"), ("1e3", "ann", "cat")]
    assert rows_of(cw.read(dataset(tmp_path / "plain", frame, features))) == wanted
    (tmp_path / "splits").mkdir()
    dataset(tmp_path / "splits" / "train", frame[:2], features)
    dataset(tmp_path / "splits" / "test", frame[2:], features)
    (tmp_path / "splits" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert rows_of(cw.read(tmp_path / "splits")) == wanted


@every_file
def test_f9_parts_of_any_size_give_the_same_answers(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in parts, whose limits must not be seen in the answers."""
    whole = case.read()
    monkeypatch.setattr("crowdwise.io.parts.PART_RECORDS", 2)
    monkeypatch.setattr("crowdwise.io.parts.PART_BYTES", 1_000)
    assert same(case.read(), whole)


# ------------------------------------------------------------------------------------ F10: pipes and files that change


@pytest.mark.parametrize("case", SINGLE, ids=lambda case: case.file)
def test_f10_a_pipe_gives_the_same_answers(case: Case, tmp_path: Path) -> None:
    place = tmp_path / "golden" / case.file
    place.parent.mkdir()
    os.mkfifo(place)
    writer = threading.Thread(target=place.write_bytes, args=((GOLDEN / case.file).read_bytes(),))
    writer.start()
    answers = case.read(place)
    writer.join()
    assert [row[1:] for row in rows_of(answers)] == [row[1:] for row in case.votes]
    assert left_out(answers) == case.expected["apart"]


@pytest.mark.parametrize("case", [case for case in SINGLE if case.file not in BY_NAME], ids=lambda case: case.file)
def test_f10_standard_input_gives_the_same_answers(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO((GOLDEN / case.file).read_bytes())))
    assert same(case.read(Path("-")), case.read())


@pytest.mark.parametrize("name", ["judges.jsonl", "mturk-one.csv", "label-studio-predictions.json", "cvat-tags.xml"])
def test_f10_a_file_that_changes_while_it_is_read_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported: Any = importlib.import_module("crowdwise.io.exported")
    place, convert = tmp_path / name, exported.converted
    shutil.copy(GOLDEN / name, place)

    def written_meanwhile(*arguments: Any) -> Any:
        with place.open("ab") as file:
            file.write(b"\n")
        return convert(*arguments)

    monkeypatch.setattr(exported, "converted", written_meanwhile)
    with pytest.raises(FileError, match=f"{name} was changed while it was read"):
        cw.read(place)


def test_f10_a_table_that_changes_while_it_is_read_is_refused(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    reading: Any = importlib.import_module("crowdwise.io")
    place, read_tables = table("task,worker,label\nt1,ann,x\n"), reading.read_tables

    def written_meanwhile(*arguments: Any) -> Any:
        found = read_tables(*arguments)
        place.write_text("task,worker,label\nt1,ann,x\nt2,ann,x\n")
        return found

    monkeypatch.setattr(reading, "read_tables", written_meanwhile)
    with pytest.raises(FileError, match=r"answers\.csv was changed while it was read"):
        cw.read(place)


# ------------------------------------------------------------------------------------------- other variants of formats


def test_potato_files_that_are_named_after_annotators(tmp_path: Path) -> None:
    for worker in ("ann", "bob"):
        (tmp_path / f"{worker}.jsonl").write_text(
            f'{{"id": "i1", "label_annotations": {{"s": {{"{worker}": "true"}}}}}}\n'
        )
    assert rows_of(cw.read(tmp_path)) == [("i1", "ann", "ann"), ("i1", "bob", "bob")]


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ({"glad": "1", "sad": "0"}, "glad"), ({"glad": True, "sad": False}, "glad"), ({"glad": 1, "sad": None}, "glad"),
        ({"glad": "glad"}, "glad"), ({"scale_4": "4"}, "4"), ({"scale_1": "1"}, "1"), ({"scale_0": "0"}, "0"),
        ({"slider": 37}, "37"), ({"Number": "true"}, "Number"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("key", ["id", "instance_id"])
def test_potato_options_have_values_of_several_kinds(key: str, options: dict[str, Any], label: str, table: Any) -> None:
    path = table(json.dumps({key: "i1", "user_id": "ann", "label_annotations": {"s": options}}), "a.jsonl")
    assert rows_of(cw.read(path)) == [("i1", "ann", label)]


def test_potato_states_without_lists_of_labels(table: Any) -> None:
    state = {
        "user_id": "ann",
        "instance_id_to_label_to_value": {"i1": {"s": {"glad": "true", "sad": "false"}}, "i2": {}},
    }
    answers = cw.read(table(json.dumps(state), "user_state.json"))
    assert (rows_of(answers), left_out(answers)) == ([("i1", "ann", "glad")], {"empty": 1})


def test_old_label_studio_without_annotators(table: Any) -> None:
    """Label Studio 0.x did not write who answered."""
    chosen = [{"from_name": "mood", "type": "choices", "value": {"choices": ["glad"]}}]
    tasks = [{"id": n, "data": {}, "completions": [{"id": 10 + n, "result": chosen}]} for n in range(2)]
    path = table(json.dumps(tasks), "old.json")
    with pytest.raises(ColumnError, match=r"2 answer\(s\) in old\.json have no worker.*anonymous='each'"):
        cw.read(path)
    answers = cw.read(path, anonymous="each")
    assert rows_of(answers) == [("0", "anonymous-000001", "glad"), ("1", "anonymous-000002", "glad")]


def test_d25_gold_of_an_export_outside_the_labels_is_a_class_of_its_own(table: Any) -> None:
    def annotation(worker: int, label: str, known: bool) -> dict[str, Any]:
        result = [{"from_name": "mood", "type": "choices", "value": {"choices": [label]}}]
        return {"id": worker, "completed_by": worker, "ground_truth": known, "result": result}

    tasks = [{"id": 1, "data": {}, "annotations": [annotation(1, "glad", False), annotation(9, "sad", True)]}]
    answers = cw.read(table(json.dumps(tasks), "a.json"))
    assert (gold_of(answers), answers.classes.to_list()) == ({"1": "sad"}, ["glad", "sad"])
    assert "sad" in str(answers.intake.warnings)


def test_every_message_is_one_of_crowdwise(tmp_path: Path) -> None:
    with pytest.raises(CrowdwiseError, match="holds no table"):
        cw.read(tmp_path)
