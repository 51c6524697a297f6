"""Tables as people have them: workbooks, a file per worker, wide tables with other columns, headers of any names."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import crowdwise as cw
from crowdwise.errors import ColumnError, DataError, FileError, ParameterError, QuestionError

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
Rows = Sequence[Sequence[object]]


def workbook(path: Path, sheets: dict[str, Rows], last: str = "") -> Path:
    """Write an Excel workbook of plain cells; `last` is the place of one more cell in the first sheet."""

    def cells(row: int, values: Sequence[object]) -> str:
        made = ""
        for n, value in enumerate(values):
            place = f'r="{chr(65 + n)}{row}"'
            if isinstance(value, (int, float)):
                made += f"<c {place}><v>{value}</v></c>"
            elif value is not None:
                made += f'<c {place} t="inlineStr"><is><t>{value}</t></is></c>'
        return made

    with zipfile.ZipFile(path, "w") as archive:
        names = list(sheets)
        listed = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(names, 1))
        book = f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>{listed}</sheets></workbook>'
        archive.writestr("xl/workbook.xml", book)
        main = f'<Relationship Id="r1" Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/>'
        archive.writestr("_rels/.rels", f'<Relationships xmlns="{PACKAGE}/relationships">{main}</Relationships>')
        links = "".join(
            f'<Relationship Id="r{n}" Type="{RELATIONS}/worksheet" Target="worksheets/sheet{n}.xml"/>'
            for n in range(1, len(names) + 1)
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>'
        )
        for n, rows in enumerate(sheets.values(), 1):
            data = "".join(f'<row r="{k}">{cells(k, row)}</row>' for k, row in enumerate(rows, 1))
            if last and n == 1:
                data += f'<row r="{last.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")}"><c r="{last}"><v>1</v></c></row>'
            archive.writestr(
                f"xl/worksheets/sheet{n}.xml", f'<worksheet xmlns="{MAIN}"><sheetData>{data}</sheetData></worksheet>'
            )
    return path


TABLE: Rows = [("task", "worker", "label"), ("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")]
VOTES = [("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")]


# ----------------------------------------------------------------------------------------------------------- workbooks


def changed(path: Path, name: str, old: str, new: str) -> Path:
    """Change the text of a file in a workbook."""
    with zipfile.ZipFile(path) as archive:
        parts = {each: archive.read(each).decode() for each in archive.namelist()}
    assert old in parts[name]
    with zipfile.ZipFile(path, "w") as archive:
        for each, text in parts.items():
            archive.writestr(each, text.replace(old, new) if each == name else text)
    return path


SHEET = "xl/worksheets/sheet1.xml"
LOST = {  # what is changed in the sheet, and how many rows and cells are left
    "two cells at one place": ('r="C2"', 'r="B2"', "4 rows with 12 cells by its XML, but 4 with 11"),
    "two rows at one place": ('3"', '2"', "4 rows with 12 cells by its XML, but 3 with 9"),
}


@pytest.mark.parametrize("what", LOST)
def test_f3_a_workbook_whose_cells_are_not_all_read_is_refused(what: str, tmp_path: Path) -> None:
    old, new, message = LOST[what]
    path = changed(workbook(tmp_path / "book.xlsx", {"Coding": TABLE}), SHEET, old, new)
    with pytest.raises(FileError, match=rf"^book\.xlsx: sheet 'Coding' has {message} were read\. Save it again$"):
        cw.read(path)


def test_f3_a_workbook_that_loses_a_row_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import python_calamine

    class Losing:
        sheet_names = ("Coding",)

        def get_sheet_by_name(self, name: str) -> Any:
            return self

        def to_python(self, **_: Any) -> Any:
            return TABLE[:3]

    monkeypatch.setattr(python_calamine.CalamineWorkbook, "from_filelike", lambda _: Losing(), raising=False)
    with pytest.raises(FileError, match="has 4 rows with 12 cells by its XML, but 3 with 9 were read"):
        cw.read(workbook(tmp_path / "book.xlsx", {"Coding": TABLE}))


def test_f6_one_cell_far_from_the_first_is_refused(tmp_path: Path) -> None:
    """All cells from the first of the sheet would be in memory, however the cell is written."""
    path = workbook(tmp_path / "book.xlsx", {"Coding": [("task",)]})
    changed(path, SHEET, 'r="A1"', "r='XFD1048576'")
    with pytest.raises(FileError, match=r"a sheet whose 1 cells are spread over 1,048,576 rows and 16,384 columns"):
        cw.read(path)


def test_a_workbook_without_the_file_of_its_sheet_is_refused(tmp_path: Path) -> None:
    path = workbook(tmp_path / "book.xlsx", {"Coding": TABLE})
    changed(path, "xl/_rels/workbook.xml.rels", "sheet1.xml", "sheet2.xml")
    with pytest.raises(FileError, match=r"book\.xlsx is not a complete Excel file: .*Save it again"):
        cw.read(path)


def test_a_sheet_is_chosen_by_its_name(tmp_path: Path) -> None:
    path = workbook(tmp_path / "book.xlsx", {"Codebook": [("label",), ("cat",)], "Coding": TABLE})
    assert cw.read(path, sheet="Coding").frame().rows() == VOTES
    with pytest.raises(ColumnError, match=r"This is sheet 'Codebook'; not read: 'Coding' \(choose with sheet\)"):
        cw.read(path)
    with pytest.raises(ParameterError, match=r"has no sheet 'coding'; sheets are 'Codebook', 'Coding'. Did you mean"):
        cw.read(path, sheet="coding")
    frame = pl.DataFrame(TABLE[1:], schema=list(TABLE[0]), orient="row")
    frame.write_csv(tmp_path / "a.csv")
    with pytest.raises(ParameterError, match="sheet='Coding' is for Excel workbooks"):
        cw.read(tmp_path / "a.csv", sheet="Coding")


def test_titles_above_the_header_are_not_read(tmp_path: Path) -> None:
    table = [(*row, more) for row, more in zip(TABLE, ("seconds", 1, 2, 3), strict=True)]
    rows: Rows = [("Study of pets",), (), ("exported", "2026-01-02"), *table]
    answers = cw.read(workbook(tmp_path / "book.xlsx", {"Sheet1": rows}))
    assert answers.frame()["task", "worker", "label"].rows() == VOTES
    assert "2 row(s) above the header in row 4 are not read" in answers.intake.notes
    with pytest.raises(ColumnError, match=r"book\.xlsx:8"):
        cw.read(workbook(tmp_path / "book.xlsx", {"Sheet1": [*rows, ("t4", None, "cat", 4)]}))


def test_a_cell_far_outside_the_table_is_refused_before_memory_is_filled(tmp_path: Path) -> None:
    path = workbook(tmp_path / "book.xlsx", {"Sheet1": TABLE}, last="XFD1048576")
    with pytest.raises(FileError, match="13 cells are spread over 1,048,576 rows and 16,384 columns"):
        cw.read(path)
    near = workbook(tmp_path / "near.xlsx", {"Sheet1": TABLE}, last="D90")
    with pytest.raises(FileError, match=r"near\.xlsx:90: sheet 'Sheet1' has more cells here than row 1"):
        cw.read(near)


# --------------------------------------------------------------------------------------------------- a file per worker


def test_the_worker_may_be_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "coders"
    folder.mkdir()
    for worker, label in {"ann": "cat", "bob": "dog"}.items():
        (folder / f"{worker}.csv").write_text(f"item,label\nt1,{label}\nt2,cat\n")
    with pytest.raises(ColumnError, match="If each file is the work of one worker, use worker='file'"):
        cw.read(folder)
    wanted = [("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat"), ("t2", "bob", "cat")]
    assert cw.read(folder, worker="file").frame().rows() == wanted
    with zipfile.ZipFile(tmp_path / "coders.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, file.name)
    assert cw.read(tmp_path / "coders.zip", worker="file").frame().rows() == wanted


def test_zips_of_the_same_name_are_all_read(tmp_path: Path) -> None:
    for worker, label in {"ann": "cat", "bob": "dog"}.items():
        (tmp_path / worker).mkdir()
        shape = f'<image id="0" name="a.jpg" width="10" height="10"><tag label="{label}"/></image>'
        with zipfile.ZipFile(tmp_path / worker / "job.zip", "w") as archive:
            archive.writestr("annotations.xml", f"<annotations><version>1.1</version>{shape}</annotations>")
    answers = cw.read(str(tmp_path / "*" / "job.zip"))
    assert answers.frame().rows() == [("a.jpg", "ann", "cat"), ("a.jpg", "bob", "dog")]


# --------------------------------------------------------------------------------------------------------- wide tables


def wide() -> dict[str, list[Any]]:
    n = 8
    return {
        "tweet": [str(k) for k in range(n)], "text": [f"words {k}" for k in range(n)],
        "Ann": ["0", "1"] * (n // 2), "Bob": ["1"] * n, "Consensus": ["1"] * n,
        "Length": [str(100 + k) for k in range(n)],
    }  # fmt: skip


def test_columns_that_are_no_workers_are_not_counted_in_silence() -> None:
    with pytest.raises(ColumnError, match=r"'text', 'Consensus', 'Length' do not look like labels") as caught:
        cw.Labels(wide())
    assert "ignore=['text', 'Consensus', 'Length']" in str(caught.value)
    answers = cw.Labels(wide(), ignore=["text", "Consensus", "Length"])
    assert answers.workers.to_list() == ["Ann", "Bob"]
    assert "2 columns are workers ('Ann', 'Bob')" in " ".join(answers.intake.notes)
    assert cw.Labels(wide(), wide=True).n_workers == 5
    with pytest.raises(ColumnError, match=r"no column 'Texts' in table to leave out.* Did you mean 'text'"):
        cw.Labels(wide(), ignore=["Texts"])


def test_columns_to_leave_out_are_left_out_of_larger_tables(tmp_path: Path, command: Any) -> None:
    pl.DataFrame(wide()).write_csv(tmp_path / "wide.csv")
    ignored = [word for name in ("text", "Consensus", "Length") for word in ("--ignore", name)]
    words = ("inspect", tmp_path / "wide.csv", "--json", *ignored)
    whole, parts = (json.loads(command(*words, *more)[1]) for more in ((), ("--memory", "1MB")))
    assert whole["workers"] == parts["workers"] == 2
    assert whole["answers"] == parts["answers"] == 16
    status, _, error = command(*words[:3], "--memory", "1MB")
    assert status == 1
    assert "--ignore text --ignore Consensus --ignore Length" in error


def test_columns_named_like_labels_of_annotators_are_workers() -> None:
    table = {"task": ["1", "2"], "annotator1_label": ["a", "b"], "annotator2_label": ["a", "a"]}
    assert cw.Labels(table).workers.to_list() == ["annotator1_label", "annotator2_label"]


def test_lists_are_no_labels_of_a_wide_table(tmp_path: Path) -> None:
    rows = [{"key": str(n), "first": [n], "second": ["x"]} for n in range(3)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(ColumnError, match="no column 'task'"):
        cw.read(tmp_path / "rows.jsonl")


# ----------------------------------------------------------------------------------------------------------- proposals


def test_columns_of_any_names_are_proposed_by_their_values(tmp_path: Path, command: Any) -> None:
    rows = [
        {"Tweet no.": task, "Tweet text": f"some words {task}", "Who coded?": who, "Is it hate?": str((task * who) % 2)}
        for task in range(1, 9)
        for who in range(1, 4)
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "forms.csv")
    status, _, error = command("inspect", tmp_path / "forms.csv")
    proposal = "--task 'Tweet no.' --worker 'Who coded?' --label 'Is it hate?'"
    assert status == 1
    assert error.rstrip().endswith(proposal)
    status, out, _ = command(
        "inspect", tmp_path / "forms.csv", "--task", "Tweet no.", "--worker", "Who coded?", "--label", "Is it hate?"
    )
    assert (status, "24 answers, 8 tasks, 3 workers" in out) == (0, True)


def test_nothing_is_proposed_where_no_columns_fit(tmp_path: Path) -> None:
    rows = [{"when": str(n), "what": f"row {n}", "size": str(n * n)} for n in range(20)]
    pl.DataFrame(rows).write_csv(tmp_path / "log.csv")
    with pytest.raises(ColumnError) as caught:
        cw.read(tmp_path / "log.csv", kind="labels", wide=False)
    assert "By their values" not in str(caught.value)


def test_a_column_of_golden_flags_is_no_known_label() -> None:
    table = {"task": ["1", "2"], "worker": ["a", "a"], "label": ["x", "y"], "_golden": ["false", "true"]}
    answers = cw.Labels(table)
    assert answers.n_gold == 0
    assert answers.frame()["is_check"].to_list() == ["false", "true"]
    assert cw.Labels(table | {"_golden": ["x", "y"]}).n_gold == 2  # known labels
    assert cw.Labels({name: table[name] for name in ("task", "worker", "label")} | {"truth": ["true", "x"]}).n_gold == 2


def test_columns_of_a_wide_table_are_compared_as_people_write() -> None:
    table = {
        "task": [str(n) for n in range(8)], "ann": [1, 2] * 4, "bob": [1.0, None] * 4,
        "cyd": ["Yes", "no"] * 4, "dan": [" yes", "No"] * 4,
    }  # fmt: skip
    assert cw.Labels({name: table[name] for name in ("task", "ann", "bob")}).n_workers == 2
    assert cw.Labels({name: table[name] for name in ("task", "cyd", "dan")}).n_workers == 2


def test_a_header_with_few_names_is_no_title(tmp_path: Path) -> None:
    rows: Rows = [("task", None, None, "ann"), ("t1", 1, 2, "x"), ("t2", 1, 2, "y")]
    with pytest.raises(ColumnError, match="has '' more than once"):
        cw.read(workbook(tmp_path / "book.xlsx", {"Sheet1": rows}))


# -------------------------------------------------------------------------------- questions and their fields


def several(tmp_path: Path) -> Path:
    def result(name: str, label: str) -> dict[str, Any]:
        return {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": [label]}}

    tasks = [
        {"id": n, "data": {"doc": f"d{n}", "size": 0.5}, "annotations": [
            {"completed_by": worker, "result": [result("mood", "glad"), *([result("topic", "pets")] if n == 1 else [])]}
            for worker in (1, 2)
        ]}
        for n in (1, 2)
    ]  # fmt: skip
    path = tmp_path / "project.json"
    path.write_text(json.dumps(tasks))
    return path


def test_questions_are_listed(tmp_path: Path, command: Any) -> None:
    path = several(tmp_path)
    assert cw.questions(path).select("question", "kind", "answers").rows() == [
        ("mood", "labels", 4),
        ("topic", "labels", 2),
    ]
    with pytest.raises(QuestionError, match="question='mood'"):  # the one with most answers
        cw.read(path)
    status, out, _ = command("inspect", path)
    assert status == 0
    assert [line.split()[:3] for line in out.splitlines()[2:]] == [["mood", "labels", "4"], ["topic", "labels", "2"]]
    assert [row["question"] for row in json.loads(command("inspect", path, "--json")[1])] == ["mood", "topic"]
    with pytest.raises(DataError, match="is not an export of a known platform"):
        cw.questions({"task": ["1"], "worker": ["a"], "label": ["x"]})


def test_fields_that_the_caller_names_are_recorded_and_given_back(tmp_path: Path) -> None:
    path = several(tmp_path)
    answers = cw.read(path, question="mood", task="data.doc")
    assert answers.tasks.to_list() == ["d1", "d2"]
    assert answers.intake.columns["task"] == "data.doc"
    assert answers.intake.options["task"] == "data.doc"
    files = cw.export(cw.aggregate(answers, "majority-vote"), "label-studio", tmp_path / "out")
    tasks = json.loads(files.estimates.read_text())
    assert [(task["id"], task["data"]) for task in tasks] == [
        (1, {"doc": "d1", "size": 0.5}), (2, {"doc": "d2", "size": 0.5}),
    ]  # fmt: skip
    assert (files.tasks, files.absent, files.original) == (2, 0, path)


def test_estimates_that_the_export_does_not_have_are_counted(tmp_path: Path) -> None:
    path = several(tmp_path)
    result = cw.aggregate(cw.read(path, question="mood"), "majority-vote")
    (tmp_path / "part.json").write_text(json.dumps(json.loads(path.read_text())[:1]))
    files = cw.export(result, "label-studio", tmp_path / "out", original=tmp_path / "part.json")
    assert (files.tasks, files.absent) == (1, 1)
    other = [task | {"id": 9} for task in json.loads(path.read_text())[:1]]
    (tmp_path / "part.json").write_text(json.dumps(json.loads(path.read_text())[:1] + other))
    again = cw.export(result, "label-studio", tmp_path / "out", original=tmp_path / "part.json")
    assert again.absent == 1


def test_a_worker_that_the_format_does_not_let_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="the worker in Label Studio is completed_by: omit worker="):
        cw.read(several(tmp_path), question="mood", worker="nobody")


def test_a_named_task_does_not_say_what_kind_of_answers_there_are(tmp_path: Path) -> None:
    result = {
        "from_name": "kp", "to_name": "img", "type": "keypoint", "original_width": 10, "original_height": 10,
        "value": {"x": 1, "y": 2, "width": 1},
    }  # fmt: skip
    tasks = [{"id": 1, "data": {"image": "a.jpg"}, "annotations": [{"completed_by": 1, "result": [result]}]}]
    (tmp_path / "p.json").write_text(json.dumps(tasks))
    assert cw.read(tmp_path / "p.json", task="data.image").images.to_list() == ["a.jpg"]
    assert cw.read(tmp_path / "p.json", image="data.image").intake.columns["image"] == "data.image"


# ------------------------------------------------------------------------------------------------------- damaged files


def test_a_repeated_key_among_many_is_found_at_once(tmp_path: Path) -> None:
    keys = ",".join(f'"k{n}": 1' for n in range(200_000))
    (tmp_path / "big.json").write_text(f'{{{keys}, "k7": 2}}')
    with pytest.raises(FileError, match="the key 'k7' occurs twice"):
        cw.read(tmp_path / "big.json")


def test_messages_do_not_quote_what_is_near_the_damage(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('[{"id": 1, "data": {}, "annotations": [], "who": "bob@example.org" x}]')
    with pytest.raises(FileError) as caught:
        cw.read(tmp_path / "bad.json")
    assert "bob@example.org" not in str(caught.value)
    records = [
        {"id": 1, "data": {}, "annotations": [{"completed_by": 1, "lead_time": "bob@example.org", "result": []}]}
    ]
    (tmp_path / "odd.json").write_text(json.dumps(records))
    with pytest.raises(FileError) as caught:
        cw.read(tmp_path / "odd.json")
    assert "record" in str(caught.value)
    assert "bob@example.org" not in str(caught.value)


def test_an_empty_zip_says_so(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    with pytest.raises(FileError, match=r"empty\.zip is an empty zip"):
        cw.read(tmp_path / "empty.zip")


def test_arrow_files_may_have_names_like_patterns(tmp_path: Path) -> None:
    pl.DataFrame({"task": ["1"], "worker": ["a"], "label": ["x"]}).write_ipc(tmp_path / "a[1].arrow")
    assert cw.read(tmp_path / "a[1].arrow").n_answers == 1


def test_questions_of_standard_input_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Any) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(several(tmp_path).read_bytes())))
    status, out, _ = command("inspect", "-")
    assert (status, "mood" in out) == (0, True)


def test_standard_input_takes_a_workbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = workbook(tmp_path / "book.xlsx", {"Sheet1": TABLE}).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert cw.read("-").frame().rows() == VOTES


def test_json_in_utf16_is_read(tmp_path: Path) -> None:
    text = several(tmp_path).read_text()
    (tmp_path / "wide.json").write_bytes(text.encode("utf-16"))
    answers = cw.read(tmp_path / "wide.json", question="mood")
    assert answers.n_answers == 4
    assert answers.intake.path == str(tmp_path / "wide.json")
    lines = "\n".join(json.dumps({"item": str(n), "judge": "owl", "verdict": "yes"}) for n in range(3))
    (tmp_path / "wide.jsonl").write_bytes(lines.encode("utf-16"))
    assert cw.read(tmp_path / "wide.jsonl").n_answers == 3
    (tmp_path / "cut.json").write_bytes(text.encode("utf-16")[:-1])
    with pytest.raises(FileError, match="starts as UTF-16 but is invalid at byte"):
        cw.read(tmp_path / "cut.json")
