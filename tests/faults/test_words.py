"""Files that are nearly right (F1, F2, F7) and options that are not: what is wrong is said in words, with its line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import crowdwise as cw
from crowdwise.errors import ColumnError, DataError, EmptyDataError, FileError, ParameterError
from crowdwise.io.chunks import Source

PLAIN = "task,worker,label\nt1,ann,cat\nt2,bob,dog\n"
ROWS = [("t1", "ann", "cat"), ("t2", "bob", "dog")]
VALID = '{"task": 1, "worker": 1, "label": "x"}'


def in_chunks(path: Path) -> list[tuple[Any, ...]]:
    return [row for chunk in Source((path,)).chunks(16) for row in chunk.frame.rows()]


@pytest.mark.parametrize("start", ["\n", "\r\n", "  \n", "\n\n\n", "\ufeff\n"])
@pytest.mark.parametrize("read", [cw.read, in_chunks, cw.read_features, cw.read_content])
def test_f1_an_empty_first_line_is_named(start: str, read: Any, table: Any) -> None:
    path = table(start + PLAIN)
    with pytest.raises(FileError, match=r"^answers\.csv:1: the first line is empty; the names of the columns belong"):
        read(path)


@pytest.mark.parametrize("read", [lambda path: cw.read(path).frame().rows(), in_chunks])
@pytest.mark.parametrize("order", ["le", "be"])
def test_f2_utf_32_is_read_by_its_mark(read: Any, order: str, table: Any) -> None:
    assert read(table(("\ufeff" + PLAIN).encode(f"utf-32-{order}"))) == ROWS


def test_f2_utf_32_is_noted_and_refused_where_it_is_torn(table: Any) -> None:
    path = table(PLAIN.encode("utf-32"))
    assert "UTF-32, recognised by its byte order mark" in cw.read(path).intake.notes
    with pytest.raises(FileError, match=r"answers\.csv starts as UTF-32 but is invalid at byte 160"):
        cw.read(table(PLAIN.encode("utf-32")[:-2]))


@pytest.mark.parametrize("order", ["le", "be"])
@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.jsonl"])
def test_f2_utf_32_without_a_mark_is_named(order: str, name: str, table: Any) -> None:
    text = {"a.csv": PLAIN, "a.json": f"[{VALID}]", "a.jsonl": VALID}[name]
    path = table(text.encode(f"utf-32-{order}"), name)
    with pytest.raises(FileError, match=rf"{name} looks like UTF-32 without .* or use encoding='utf-32-{order}'"):
        cw.read(path)
    assert cw.read(path, encoding=f"utf-32-{order}").n_answers in (1, 2)


BAD = {
    "a key twice": (
        '{"task": 1, "worker": 1, "task": 2, "label": "y"}',
        "the key 'task' occurs twice in one object. Remove one of the two, or rename it",
    ),
    "a key twice inside": ('{"task": 1, "meta": {"a": 1, "a": 2}}', "the key 'a' occurs twice in one object. Remove"),
    "a lone surrogate": ('{"task": 1, "worker": 1, "label": "\\ud800"}', r"the lone surrogate '\\ud800' is no"),
    "a surrogate in a key": ('{"task": 1, "\\udc00": 1}', r"the lone surrogate '\\udc00' is no character"),
    "NaN": ('{"task": 1, "worker": 1, "label": NaN}', "NaN is not JSON. Write null instead, or leave the key out"),
    "Infinity": ('{"task": 1, "worker": 1, "label": -Infinity}', "-Infinity is not JSON. Write null instead, or leave"),
    "depth": ('{"task": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    "digits": ('{"task": ' + "9" * 5000 + "}", r"Exceeds the limit \(4300 digits\)"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_f7_a_record_that_is_not_json_is_named_by_its_line(kind: str, name: str, table: Any) -> None:
    record, message = BAD[kind]
    text = f"[{VALID},\n\n{record},\n{VALID}]" if name == "a.json" else f"{VALID}\n\n{record}\n{VALID}\n"
    with pytest.raises(FileError, match=rf"^{name}:3: invalid JSON.*: {message}"):
        cw.read(table(text, name))


PRETTY = {
    "a list": (f"[\n {VALID},\n {VALID}\n]\n", "The whole file is one value in JSON: use format='json'$"),
    "records": (VALID.replace("{", "{\n") + "\n" + VALID, "line 1 column 2 .char 1.. Write each record on one line$"),
    "a record that is cut": (VALID + '\n{"task": ', r"Expecting value: line 1 column 9 .char 8.. Correct or remove"),
}  # fmt: skip


@pytest.mark.parametrize("kind", PRETTY)
def test_f7_records_over_several_lines_are_no_json_lines(kind: str, table: Any, command: Any) -> None:
    text, said = PRETTY[kind]
    path = table(text, "a.jsonl")
    with pytest.raises(FileError, match=rf"a\.jsonl:[12]: invalid JSON record: .*{said}"):
        cw.read(path)
    if "use" in said:
        assert "use --format json" in command("inspect", path)[2]
        assert cw.read(path, format="json").n_answers == 1


@pytest.mark.parametrize("text", ["", "  \n", "\ufeff", "\ufeff\r\n\t"])
@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_d4_json_of_blanks_is_empty(text: str, name: str, table: Any) -> None:
    with pytest.raises(EmptyDataError, match=rf"^no answers in {name}: the (file|list) is empty$"):
        cw.read(table(text, name))


TABLES: dict[str, Any] = {
    "labels": (cw.Labels, {"task": [1], "worker": [1], "label": [1]}),
    "pairs": (cw.Pairs, {"left": [1], "right": [2], "worker": [1], "answer": [1]}),
}
ONE_COLUMN = [
    ("labels", {"task": "worker"}, "'worker' of table cannot be both the task and the worker; columns are task,"),
    ("labels", {"task": "task", "label": "task"}, "'task' of table cannot be both the task and the label"),
    ("labels", {"gold": "label"}, "'label' of table cannot be both the gold and the label; .*, for instance label='"),
    ("pairs", {"left": "right"}, "'right' of table cannot be both the left and the right; .* Give another column for"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options", "said"), ONE_COLUMN)
def test_d5_a_column_has_one_role(kind: str, options: dict[str, str], said: str) -> None:
    make, rows = TABLES[kind]
    with pytest.raises(ColumnError, match=f"^the column {said}"):
        make(rows, **options)


def test_d5_a_column_has_one_role_on_the_command_line(table: Any, command: Any) -> None:
    status, _, err = command("inspect", table(PLAIN), "--task", "worker")
    assert status == 1
    assert "cannot be both the task and the worker" in err
    assert "for instance --worker COLUMN" in err


def test_values_that_are_refused_are_shown_as_they_were_given(table: Any, command: Any) -> None:
    path = table(PLAIN)
    for name in ("memory", "max_expanded"):
        with pytest.raises(ParameterError, match=f"^{name}='x' is not a size; give one, for instance {name}='2GB'$"):
            cw.read(path, **{name: "x"})
    with pytest.raises(ParameterError, match=r"^path is 'yyy.*; it must be the name of a file$"):
        cw.aggregate(cw.read(path), "majority-vote").save(Path("y" * 300))
    with pytest.raises(ParameterError, match=r"^path is ''; it must be the name of a file$"):
        cw.read("")
    _, _, err = command("inspect", path, "--max-expanded", "x")
    assert "--max-expanded x is not a size; give one, for instance --max-expanded 2GB" in err


@pytest.mark.parametrize("start", ["<!DOCTYPE html>", "\ufeff\n<html lang='en'>"])
@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.xls"])
def test_f9_a_web_page_is_named(start: str, name: str, table: Any) -> None:
    with pytest.raises(
        FileError, match=rf"^{name} is a web page, perhaps one that asks you to log in\. Download the ta"
    ):
        cw.read(table(f"{start}<body>Log in</body></html>", name))


def test_a_truth_that_contradicts_itself_is_refused() -> None:
    result = cw.aggregate({"task": [1, 1, 2, 2], "worker": list("abab"), "label": [1, 1, 2, 2]}, "majority-vote")
    with pytest.raises(DataError, match=r"^the truth has two different labels for task 1: 1 and 2\. Keep one$"):
        cw.auc(result, {"task": [1, 2, 1], "label": [1, 2, 2]})
    with pytest.raises(DataError, match=r"^the truth has two different labels for task '1': '1' and '2'\. Keep one$"):
        cw.match_labels(result, {"task": [1, 2, 1], "label": [1, 2, 2]})
    assert cw.auc(result, {"task": [1, 2, 1], "label": [1, 2, 1]}) == 1.0
    assert cw.match_labels(result, {"task": [1, 2, 1], "label": [1, 2, 1]}) == {"tasks": 2, "accuracy": 1.0}


def test_d11_rows_of_a_truth_without_a_label_or_a_task_say_nothing() -> None:
    result = cw.aggregate({"task": list("sstt"), "worker": list("abab"), "label": list("xxyy")}, "majority-vote")
    for missing in (None, ""):
        truth = {"task": ["s", "s", "t", missing, missing, "u"], "label": ["x", missing, "y", "x", "y", "x"]}
        assert cw.match_labels(result, truth) == {"tasks": 2, "accuracy": 1.0}
        assert cw.auc(result, truth) == 1.0


def test_a_curve_of_one_true_label_is_refused_by_its_name() -> None:
    result = cw.aggregate({"task": [1, 1, 2, 2], "worker": list("abab"), "label": [1, 1, 2, 2]}, "majority-vote")
    for truth, said in (({1: 1, 2: 1}, "none of the 2"), ({2: 2}, "all of the 1")):
        with pytest.raises(
            DataError, match=rf"^{said} task\(s\) of known truth have the true label 2: a ROC curve needs"
        ):
            cw.auc(result, truth)


def test_f7_a_key_twice_in_an_export_of_any_size_is_refused_with_the_number_of_its_record(table: Any) -> None:
    tasks = [{"id": n, "data": {"text": "x" * (17_000_000 * (n == 2))}, "annotations": []} for n in (1, 2, 3)]
    text = json.dumps(tasks).replace('{"id": 3,', '{"id": 4, "id": 3,')
    with pytest.raises(FileError, match=r"^a\.json: invalid JSON after record 2: the key 'id' occurs twice in one obj"):
        cw.read(table(text, "a.json"))


def test_f7_pairs_of_surrogates_are_characters(table: Any) -> None:
    text = json.dumps([{"task": 1, "worker": 1, "label": "\U0001f600"}])
    assert "\\ud83d" in text
    assert cw.read(table(text, "a.json")).classes.to_list() == ["\U0001f600"]


@pytest.mark.parametrize(
    "encoding", ["hex", "base64", "rot13", "zip", "bz2", "uu", "quopri", "undefined", "\0", "", "nowhere"]
)
def test_f2_an_encoding_that_is_none_of_text_is_refused(encoding: Any, table: Any) -> None:
    with pytest.raises(ParameterError, match=r"encoding is .*which Python does not know as an encoding of text; try"):
        cw.read(table(PLAIN), encoding=encoding)


@pytest.mark.parametrize("option", ["encoding", "delimiter"])
@pytest.mark.parametrize("value", [7, b","])
def test_f1_f2_an_encoding_and_a_delimiter_are_text(option: str, value: Any, table: Any) -> None:
    with pytest.raises(ParameterError, match=f"{option} is {value!r}; it must be text or None"):
        cw.read(table(PLAIN), **{option: value})


def test_f2_what_an_encoding_cannot_decode_is_refused(table: Any) -> None:
    with pytest.raises(FileError, match=r"answers\.csv cannot be read as punycode: .* Give another encoding"):
        cw.read(table(PLAIN), encoding="punycode")
    with pytest.raises(FileError, match=r"answers\.csv cannot be read as unicode_escape: .*surrogates not allowed"):
        cw.read(table(PLAIN.replace("cat", "\\ud800")), encoding="unicode_escape")


@pytest.mark.parametrize("delimiter", ['"', "\n", "\r", "\0", "", ";;", "é"])
def test_f1_a_delimiter_that_separates_nothing_is_refused(delimiter: Any, table: Any) -> None:
    with pytest.raises(ParameterError, match=r"delimiter is .*; it must be one ASCII character, for instance ';'"):
        cw.read(table(PLAIN), delimiter=delimiter)


def test_f7_a_number_of_many_digits_does_not_end_the_process(tmp_path: Path) -> None:
    number = "9" * 5000
    (tmp_path / "a.json").write_text(f'[{VALID}, {{"task": 1, "worker": 2, "label": {number}}}, {VALID}]')
    code = (
        "from pathlib import Path\n"
        "import crowdwise as cw\n"
        "from crowdwise.io.json_files import json_head, json_records\n"
        "for k in range(20):\n"
        "    assert json_head(Path('a.json')) is None\n"
        "    try: list(json_records(Path('a.json')))\n"
        "    except cw.errors.FileError as error: assert 'a.json has a number of more than 4300 digits' in str(error)\n"
        "    else: raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
