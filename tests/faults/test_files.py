"""Bad files: what the codes F1 to F6 of the fault list must get: read rightly or refused with the place."""

from __future__ import annotations

import gzip
import io
import json
import zipfile

import numpy as np
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.errors import ChecksumError, ColumnError, CrowdwiseError, EmptyDataError, FileError

ROWS = [("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "dog")]
PLAIN = "task,worker,label\n" + "".join(",".join(row) + "\n" for row in ROWS)


@pytest.fixture
def file(table):
    """Write bytes or text and give the path."""
    return table


# ---------------------------------------------------------------------------------------------------- F1: kinds of CSV

KINDS = {
    "plain": PLAIN.encode(),
    "mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "crlf": PLAIN.replace("\n", "\r\n").encode(),
    "mark and crlf": b"\xef\xbb\xbf" + PLAIN.replace("\n", "\r\n").encode(),
    "semicolon": PLAIN.replace(",", ";").encode(),
    "tab": PLAIN.replace(",", "\t").encode(),
    "bar": PLAIN.replace(",", "|").encode(),
    "all quoted": "".join('"' + line.replace(",", '","') + '"\n' for line in PLAIN.splitlines()).encode(),
    "no end of line at the end": PLAIN.rstrip("\n").encode(),
    "blank lines": PLAIN.replace("\n", "\n\n").encode(),
    "blank lines with crlf": PLAIN.replace("\n", "\r\n\r\n").encode(),
    "utf-16 little": PLAIN.encode("utf-16"),
    "utf-16 big": b"\xfe\xff" + PLAIN.encode("utf-16-be"),
    "gzip": gzip.compress(PLAIN.encode()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_f1_every_kind_of_delimited_file_is_read(kind, file, command):
    path = file(KINDS[kind], "answers.csv.gz" if kind == "gzip" else "answers.csv")
    assert cw.read(path).frame().rows() == ROWS
    assert command("aggregate", path)[0] == 0


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_f1_quoted_fields_hold_newlines_delimiters_and_quotes(end, mark, file):
    label = f'a, "b"{end}{end}c;d'
    quoted = '"' + label.replace('"', '""') + '"'
    text = end.join(["task,worker,label", f"t1,ann,{quoted}", f'"t,1",bob,{quoted}', "t2,ann,x", ""])
    answers = cw.read(file(mark + text))
    assert sorted(answers.frame().rows()) == [("t,1", "bob", label), ("t1", "ann", label), ("t2", "ann", "x")]


def test_f1_a_quoted_header_may_hold_the_other_delimiters(file):
    answers = cw.read(file('"task, or item";worker;label\nt1;ann;x\n'), task="task, or item")
    assert answers.frame().rows() == [("t1", "ann", "x")]


def test_f1_lines_are_counted_rightly_after_quoted_newlines_and_blank_lines(file):
    path = file('task,worker,label\n"t\n\n1",ann,x\n\nt2,,x\n')
    with pytest.raises(ColumnError, match=r"answers\.csv:6"):
        cw.read(path)


def test_f1_a_delimiter_can_be_given(file, command):
    path = file(PLAIN.replace(",", "~"))
    with pytest.raises(ColumnError, match=r"has only one column.*delimiter="):
        cw.read(path)
    assert cw.read(path, delimiter="~").frame().rows() == ROWS
    assert command("aggregate", path, "--delimiter", "~")[0] == 0


# ------------------------------------------------------------------------------------------------------- F2: encodings


@pytest.mark.parametrize("place", ["header", "first row", "last row", "further column"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "mark"])
def test_f2_latin_1_is_refused_with_line_and_offset(place, mark, file, command):
    lines = ["task,worker,label,note", "t1,ann,cat,n", *(f"t{i},bob,dog,n" for i in range(2000)), "t9,eve,cat,n"]
    at = {"header": 0, "first row": 1, "last row": len(lines) - 1, "further column": 1000}[place]
    lines[at] = lines[at].replace("note", "größe").replace("cat", "größe").replace("dog,n", "dog,größe")
    data = mark + "\n".join(lines).encode("latin-1")
    offset = data.index(b"\xf6")
    path = file(data)
    with pytest.raises(FileError, match=rf"^answers\.csv:{at + 1}: byte 0xF6 at offset {offset} is not UTF-8"):
        cw.read(path)
    status, out, err = command("aggregate", path)
    assert (status, out) == (1, "")
    assert "--encoding latin-1" in err


def test_f2_latin_1_is_read_when_given(file):
    path = file("task,worker,label\nt1,ann,größe\n".encode("latin-1"))
    assert cw.read(path, encoding="latin-1").classes.to_list() == ["größe"]


LATIN = "".join(f"task{i},worker{i % 7},label{i % 3}\n" for i in range(50))
CYRILLIC = "".join(f"задача{i},работник,кошка\n" for i in range(200))


@pytest.mark.parametrize("text", [LATIN, CYRILLIC, CYRILLIC.rstrip("\n")], ids=["latin", "cyrillic", "without end"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_f2_utf_16_without_a_mark_is_refused_never_read_as_nul(text, encoding, file, command):
    path = file(("task,worker,label\n" + text).encode(encoding))
    with pytest.raises(FileError) as caught:
        cw.read(path)
    assert "encoding" in str(caught.value) or "UTF" in str(caught.value)
    assert command("aggregate", path)[0] == 1


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_f2_utf_16_is_read_when_given(encoding, file):
    path = file(("task,worker,label\n" + CYRILLIC).encode(encoding))
    answers = cw.read(path, encoding=encoding)
    assert (answers.n_answers, answers.classes.to_list()) == (200, ["кошка"])


def test_f2_utf_16_with_a_mark_and_torn_is_refused(file):
    with pytest.raises(FileError, match="UTF-16"):
        cw.read(file(PLAIN.encode("utf-16")[:-1]))


def test_f2_json_in_latin_1_is_refused_not_patched(file, command):
    record = '{"task": "t", "worker": "a", "label": "größe"}\n'.encode("latin-1")
    for name, data in (("a.jsonl", record), ("a.json", b"[" + record + b"]")):
        path = file(data, name)
        with pytest.raises(FileError, match=name):
            cw.read(path)
        assert command("inspect", path)[0] == 1


# ----------------------------------------------------------------------------------------------------- F3: torn tables

TORN = {
    "short": ("t1,a,x\nt2,b\nt3,c,y\n", 3),
    "long": ("t1,a,x\nt2,b,y\nt3,c,y,z\n", 4),
    "short at the end": ("t1,a,x\nt2,b,y\nt3,c", 4),
    "quote never closed": ('t1,a,x\nt2,b,"y\nt3,c,z\n', 3),
    "quote never closed, then quotes": ('t1,a,"x"\nt2,b,"y\nt3,c,z\nt4,d,w\n', 3),
    "quote in the middle": ('t1,a,x\nt2,b,5" nail\nt3,c,z\n', 3),
    "quotes in the middle round a delimiter": ('t1,a,x\nt2,b,ab"c,d"e\nt3,c,z\n', 3),
    "two quotes in the middle that hide the rows between": ('t1,a,5" nail\nt2,b,y\nt3,c,6" nail\nt4,d,z\n', 2),
    "quotes inside a quoted field that hide a row": ('t1,a,"he said "hi\nt2,b,y\nt3,c,"bye" he said\nt4,d,z\n', 2),
    "text after a closing quote": ('t1,a,x\nt2,b,"y"z\nt3,"c",w\n', 3),
    "short after a quoted newline": ('t1,a,"x\ny"\nt2,b\n', 4),
    "long after a blank line": ("t1,a,x\n\nt2,b,y,z\n", 4),
}


@pytest.mark.parametrize("kind", TORN)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_f3_a_torn_table_is_refused_with_its_line(kind, end, file, command):
    text, line = TORN[kind]
    path = file(("task,worker,label\n" + text).replace("\n", end))
    with pytest.raises(FileError, match=rf"answers\.csv:{line}: "):
        cw.read(path)
    status, out, err = command("aggregate", path)
    assert (status, out) == (1, "")
    assert f"answers.csv:{line}:" in err


def test_f3_a_short_row_far_down_is_found(file):
    rows = [f"t{i},w{i % 9},x" for i in range(30_000)]
    rows[25_000] = "t25000,w7"
    with pytest.raises(FileError, match=r"answers\.csv:25002: 2 field\(s\), but the header has 3"):
        cw.read(file("task,worker,label\n" + "\n".join(rows) + "\n"))


@pytest.mark.parametrize(
    "header", ["task,worker,label,label", "task,worker,label,note,note", '"task",worker,label,task']
)
def test_f3_a_doubled_column_is_refused(header, file, command):
    path = file(header + "\n" + ",".join(["x"] * (header.count(",") + 1)) + "\n")
    with pytest.raises(ColumnError, match=r"answers\.csv:1: the header has '\w+' more than once"):
        cw.read(path)
    assert command("aggregate", path)[0] == 1


def test_f3_old_ends_of_line_are_read_or_refused_never_lost(file):
    path = file(PLAIN.replace("\n", "\r"))
    try:
        assert cw.read(path).frame().rows() == ROWS
    except FileError as error:
        assert "answers.csv" in str(error)  # noqa: PT017 - either is well


def test_f3_json_that_is_torn_names_its_line(file):
    with pytest.raises(FileError, match=r"a\.jsonl:2: invalid JSON record"):
        cw.read(file('{"task": 1, "worker": 1, "label": 1}\n{"task": 2, "wor\n', "a.jsonl"))
    with pytest.raises(FileError, match=r"a\.json:3: invalid JSON"):
        cw.read(file('[\n{"task": 1, "worker": 1, "label": 1},\n{"task": 2, oops}\n]', "a.json"))


# ----------------------------------------------------------------------------------------------------------- F4: types


def test_f4_a_change_of_type_at_row_20_000_changes_nothing(file):
    rows = [(f"{i // 2}", f"{i % 2}", "1") for i in range(20_000)]
    rows += [("007", "0x1", "NA"), ("1e5", "1", "cat"), ("10001.0", "1", "")]
    answers = cw.read(file("task,worker,label\n" + "".join(",".join(row) + "\n" for row in rows)))
    assert answers.intake.rows_read == 20_003
    assert sorted(answers.frame().rows()) == sorted(rows[:-1])
    assert answers.intake.dropped[0].examples == ("answers.csv:20004: 10001.0, 1, (none)",)
    assert "10001.0" in answers.tasks


# --------------------------------------------------------------------------------------------------- F5: damaged files


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A result and the bytes of its file."""
    sim = cw.simulate.crowd(tasks=30, workers=6, classes=3, per_task=4, seed=5)
    frame = sim.answers.frame().with_columns(seconds=pl.Series(range(sim.answers.n_answers)))
    result = cw.aggregate(cw.Labels(frame, gold={"t01": "c1"}))
    path = result.save(tmp_path_factory.mktemp("kept"))
    return result, path.read_bytes()


def same(one, two):
    """Whether two results say the same, to the bit."""
    return (
        one.labels.equals(two.labels)
        and one.workers.equals(two.workers)
        and one.tasks.equals(two.tasks)
        and np.array_equal(one.posterior, two.posterior)
        and np.array_equal(one.prevalence, two.prevalence)
        and all(np.array_equal(a, b) for a, b in zip(one.params, two.params, strict=True))
        and all(np.array_equal(a, b) for a, b in zip(one.answers.layout, two.answers.layout, strict=True))
        and one.answers.extras.equals(two.answers.extras)
        and one.answers.intake == two.answers.intake
        and one.trace.equals(two.trace)
        and (one.criterion, one.converged, one.seed) == (two.criterion, two.converged, two.seed)
        and (one.model, one.versions, one.seconds) == (two.model, two.versions, two.seconds)
    )


def test_f5_a_result_comes_back_whole(kept, tmp_path):
    result, data = kept
    (tmp_path / "result.crowdwise").write_bytes(data)
    assert same(cw.load(tmp_path), result)
    assert same(cw.load(tmp_path / "result.crowdwise"), result)


def test_f5_a_cut_result_is_refused_wherever_it_is_cut(kept, tmp_path):
    _, data = kept
    path = tmp_path / "result.crowdwise"
    for size in {0, 1, 2, 3, 4, 22, 30, len(data) - 1, *np.linspace(0, len(data) - 1, 100).astype(int).tolist()}:
        path.write_bytes(data[:size])
        with pytest.raises(ChecksumError, match=r"result\.crowdwise"):
            cw.load(path)


def test_f5_a_flipped_bit_is_refused_or_has_no_effect(kept, tmp_path):
    result, data = kept
    path = tmp_path / "result.crowdwise"
    rng = np.random.default_rng(0)
    refused = 0
    directory = len(data) - 800  # the zip's own tables stand at the end
    places = [*rng.integers(0, len(data), 200), *rng.integers(directory, len(data), 50)]
    for place in places:
        bad = bytearray(data)
        bad[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bad)
        try:
            assert same(cw.load(path), result), f"byte {place}"
        except (ChecksumError, FileError):
            refused += 1
    assert refused > 180


def test_f5_a_part_changed_under_a_good_zip_checksum_is_refused(kept, tmp_path):
    _, data = kept
    path = tmp_path / "result.crowdwise"
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            new.writestr(name, part[:-1] + bytes([part[-1] ^ 1]) if name.endswith(".safetensors") else part)
    with pytest.raises(ChecksumError, match=r"the checksum of part arrays\.safetensors differs"):
        cw.load(path)


@pytest.mark.parametrize("number", [1, 3])
def test_f5_a_result_of_another_version_is_refused_by_its_format(number, kept, tmp_path):
    """Format 1 is that of version 0.1.0."""
    path = tmp_path / "result.crowdwise"
    with zipfile.ZipFile(io.BytesIO(kept[1])) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            new.writestr(name, json.dumps(json.loads(part) | {"format": number}) if name == "result.json" else part)
    says = (
        rf"result\.crowdwise has format {number}; this version of crowdwise reads format 2\. .*fitted and saved again"
    )
    with pytest.raises(ChecksumError, match=says):
        cw.load(path)


def test_f5_other_files_in_the_place_of_a_result_are_refused(tmp_path, kept):
    path = tmp_path / "result.crowdwise"
    with pytest.raises(FileError, match="no saved result at"):
        cw.load(path)
    for data in (b"", b"hello", b"\x80\x04\x95pickle", gzip.compress(kept[1]), PLAIN.encode()):
        path.write_bytes(data)
        with pytest.raises(ChecksumError):
            cw.load(path)


@pytest.fixture(scope="module")
def parquet():
    buffer = io.BytesIO()
    cw.simulate.crowd(tasks=50, workers=6, seed=1).answers.frame().write_parquet(buffer)
    return buffer.getvalue()


def test_f5_a_cut_parquet_file_is_refused(parquet, file, command):
    for size in [1, 3, 4, 8, len(parquet) - 1, *range(20, len(parquet) - 1, len(parquet) // 40)]:
        with pytest.raises(CrowdwiseError, match=r"a\.parquet"):
            cw.read(file(parquet[:size], "a.parquet"))
    status, out, err = command("aggregate", file(parquet[: len(parquet) // 2], "a.parquet"))
    assert (status, out) == (1, "")
    assert "a.parquet is not a complete Parquet file" in err


def test_f5_an_empty_parquet_file_is_refused(file):
    with pytest.raises(EmptyDataError, match=r"no answers in a\.parquet"):
        cw.read(file(b"", "a.parquet"))


def test_f5_zeros_in_a_parquet_file_are_refused(parquet, file):
    with pytest.raises(FileError, match=r"a\.parquet is not a complete Parquet file"):
        cw.read(file(parquet[:-40] + b"\0" * 40, "a.parquet"))
    with pytest.raises(FileError, match=r"a\.parquet"):
        cw.read(file(b"\0" * len(parquet), "a.parquet"))


def test_f5_a_panic_of_the_parquet_reader_is_a_refusal(parquet, file, monkeypatch):
    """Some flipped bits make polars panic, which is no Exception but a BaseException."""

    def panic(*_, **__):
        raise pl.exceptions.PanicException("called `Result::unwrap()` on an `Err` value")

    monkeypatch.setattr(pl, "read_parquet", panic)
    with pytest.raises(FileError, match=r"a\.parquet is not a complete Parquet file"):
        cw.read(file(parquet, "a.parquet"))


# -------------------------------------------------------------------------------------------------------------- F6: gz


def test_f6_a_cut_gz_is_refused_wherever_it_is_cut(file, command):
    whole = gzip.compress(PLAIN.encode() * 20)
    for size in [2, 5, 10, 12, *range(15, len(whole), 7), len(whole) - 1]:
        with pytest.raises(FileError, match=r"a\.csv\.gz is not a complete gzip file"):
            cw.read(file(whole[:size], "a.csv.gz"))
    status, out, err = command("aggregate", file(whole[:-4], "a.csv.gz"))
    assert (status, out) == (1, "")
    assert "a.csv.gz is not a complete gzip file" in err


def test_f6_a_changed_gz_is_refused(file):
    whole = bytearray(gzip.compress(PLAIN.encode() * 20))
    whole[-6] ^= 1  # the checksum
    with pytest.raises(FileError, match=r"a\.csv\.gz is not a complete gzip file"):
        cw.read(file(bytes(whole), "a.csv.gz"))


# ------------------------------------------------------------------------------------------------- F10: no file at all


def test_f10_what_is_no_file_is_refused(tmp_path, command):
    with pytest.raises(FileError, match="holds no table"):
        cw.read(tmp_path)
    with pytest.raises(FileError, match=r"cannot read .*absent"):
        cw.read(tmp_path / "absent.csv")
    for path in (tmp_path, tmp_path / "absent.csv"):
        status, out, _ = command("aggregate", path)
        assert (status, out) == (1, "")
