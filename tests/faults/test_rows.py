"""F3: no row vanishes. Every reader proves its number of rows by a count that is not of what made the frame."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import crowdwise as cw
from crowdwise.errors import ColumnError, FileError
from crowdwise.io import large, read_table
from crowdwise.io.chunks import Source
from crowdwise.io.large import split_labels

NAILS = 't1,ann,"5" nail"\nt2,bob,"6" nail"\nt3,cy,screw'
ANSWERS = "task,worker,label\nt1,ann,cat\nt2,ann,dog\nt3,bob,dog\n"


def in_chunks(path: Path) -> list[tuple[Any, ...]]:
    return [row for chunk in Source((path,)).chunks(16) for row in chunk.frame.rows()]


def with_gold(path: Path) -> Any:
    (path.parent / "votes.csv").write_text(ANSWERS)
    return cw.read(path.parent / "votes.csv", gold=path)


def with_jobs(path: Path) -> Any:
    (path.parent / "clicks.csv").write_text("image,worker,x,y\nt1,ann,3,4\n")
    return cw.read(path.parent / "clicks.csv", jobs=path)


READERS: dict[str, Callable[[Path], Any]] = {
    "answers": cw.read,
    "answers in parts": lambda path: split_labels(Source((path,)), 500_000_000, None, {}),
    "answers in chunks": in_chunks,
    "gold": with_gold,
    "jobs": with_jobs,
    "features": cw.read_features,
    "content": cw.read_content,
}


@pytest.mark.parametrize("reader", READERS)
def test_f3_quotes_inside_quotes_that_hide_a_row_are_refused_by_every_reader(reader: str, table: Any) -> None:
    path = table("task,worker,label\n" + NAILS, "nails.csv")
    with pytest.raises(FileError, match=r"^nails\.csv:2: unexpected quote inside a field\. Quote the whole field and"):
        READERS[reader](path)


COMMANDS = [
    ("aggregate", "FILE"),
    ("aggregate", "VOTES", "--gold", "FILE"),
    ("learn", "VOTES", "--features", "FILE"),
    ("report", "VOTES", "--content", "FILE"),
]


@pytest.mark.parametrize("words", COMMANDS)
def test_f3_quotes_that_hide_a_row_are_refused_by_every_command(words: Any, table: Any, command: Any) -> None:
    files = {"FILE": table("task,worker,label\n" + NAILS, "nails.csv"), "VOTES": table(ANSWERS, "votes.csv")}
    status, out, err = command(*(files.get(word, word) for word in words), "--out", files["FILE"].parent / "out")
    assert (status, out) == (1, "")
    assert "nails.csv:2: unexpected quote inside a field" in err


HIDDEN = {
    "a quote after a carriage return": ('t1,ann,a\r"x\nt2,bob,b"\n', 2),
    "a carriage return after a quote": ('t1,ann,"a"\rx\nt2,bob,b\n', 2),
    "a space before a quote": ('t1,ann,x\nt2,bob, "a\nt3,cy,b"\n', 3),
    "a quote at the end": ('t1,ann,x\nt2,bob,"', 3),
    "pairs of quotes": ('t1,ann,a"b"c"\nt2,"bob,x\nt3,c"d"e,z\n', 2),
    "a record that ends within quotes": ('t1,ann,x\nt2,a"b,"x\ny",c"d\n', 3),
    "an odd number of quotes": ('t1,ann,5" tape\nt2,bob,6" tape\n', 2),
    "lone carriage returns": ("t1,ann,a\rt2,bob,b\rt3,cy,c\n", 2),
}


@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.parametrize("reader", ["answers", "answers in chunks"])
def test_f3_what_could_hide_a_row_is_refused_with_its_line(kind: str, reader: str, table: Any) -> None:
    text, line = HIDDEN[kind]
    with pytest.raises(FileError, match=rf"^answers\.csv:{line}: "):
        READERS[reader](table("task,worker,label\n" + text))


def test_f3_quotes_within_a_field_are_text_if_its_record_ends_there_however_they_are_counted(table: Any) -> None:
    path = table('task,worker,label\nt1,ann,5" x 6" nail\n\nt2,bob,"5"" nail"\r\nt3,cy,x\n')
    wanted = [("t1", "ann", '5" x 6" nail'), ("t2", "bob", '5" nail'), ("t3", "cy", "x")]
    assert cw.read(path).frame().rows() == in_chunks(path) == wanted


def test_f3_cells_with_quotes_within_a_field_do_not_depend_on_the_table_library(table: Any) -> None:
    """The library alone reads these rows in another way as soon as there are many."""
    rows = [(f"t{n}", f'{n}" x 6"', 'say "so"') for n in range(2000)]
    path = table("task,worker,label\n" + "".join(f"{a},{b},{c}\r\n" for a, b, c in rows))
    assert read_table(path).frame.rows() == in_chunks(path) == rows


def test_f3_a_record_may_be_longer_than_a_chunk(table: Any) -> None:
    path = table('task,worker,label\nt1,ann,"' + "a\n" * 500 + '"\nt2,bob,x\n')
    assert cw.read(path).frame().rows() == in_chunks(path) == [("t1", "ann", "a\n" * 500), ("t2", "bob", "x")]


def test_f2_a_nul_in_the_header_of_a_file_with_a_byte_order_mark_is_text(table: Any, tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_bytes("ta\0sk,worker\nt1,ann\n".encode("utf-16"))
    assert read_table(path).frame.rows() == in_chunks(path) == [("t1", "ann")]


def test_f3_empty_lines_are_no_rows_and_are_counted_as_lines(table: Any) -> None:
    path = table('task,worker,label\n\r\nt1,ann,"a\n\nb"\n\n\nt2,bob,c\n\n"t3",cy,\n\n\r')
    assert cw.read(path).frame().rows() == [("t1", "ann", "a\n\nb"), ("t2", "bob", "c")]
    assert cw.read(path).intake.dropped[0].examples == ("answers.csv:10: t3, cy, (none)",)


def test_f3_lines_that_end_with_a_carriage_return_alone_are_refused(table: Any) -> None:
    with pytest.raises(FileError, match=r"answers\.csv:1: lines end with a carriage return alone, or the header has"):
        cw.read(table(ANSWERS.replace("\n", "\r")))


def test_f3_a_header_of_too_many_columns_is_refused_at_once(table: Any) -> None:
    with pytest.raises(ColumnError, match=r"answers\.csv:1: the header has 300,003 columns; at most 100,000 are read"):
        cw.read(table("task,worker,label" + "," * 300_000 + "\n1,2,3\n"))


LOSSES = {
    "a.csv": ("read_csv", ANSWERS.encode(), "csv:4: 3 rows in the file, but 2 were read. Check the line breaks near"),
    "b.csv": ("read_csv", ANSWERS.replace("cat", '"cat"').encode(), r"csv:4: 3 rows in the file, but 2 were read"),
    "c.csv": ("read_csv", ANSWERS.replace("cat", 'c"a"t').encode(), r"csv:4: 3 rows in the file, but 2 were read"),
    "a.parquet": ("read_parquet", b"", "parquet has 3 rows by its metadata, but 2 were read. Write or download it"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_f3_a_parser_that_loses_a_row_is_noticed(name: str, table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    function, data, message = LOSSES[name]
    path, read = table(data, name), getattr(pl, function)
    if not data:
        pl.DataFrame({"task": ["1", "2", "3"], "worker": ["a"] * 3, "label": ["x"] * 3}).write_parquet(path)
    monkeypatch.setattr(pl, function, lambda *given, **options: read(*given, **options).head(2))
    with pytest.raises(FileError, match=message):
        cw.read(path)


def test_f3_json_records_that_are_lost_are_noticed(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = table('{"task": 1, "worker": 1, "label": 1}\n\n{"task": 2, "worker": 1, "label": 1}\n', "a.jsonl")
    assert cw.read(path).n_answers == 2
    monkeypatch.setattr("crowdwise.io.tables.to_frame", lambda records: pl.DataFrame(records[:1]))
    with pytest.raises(FileError, match=r"a\.jsonl has 2 rows by its records, but 1 were read"):
        cw.read(path)


def test_f3_rows_that_are_lost_between_the_parts_of_a_table_are_noticed(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = large.read_arrow
    monkeypatch.setattr(large, "read_arrow", lambda file: read(file).head(1))
    with pytest.raises(FileError, match=r"answers\.csv has 3 rows by a count while it was split, but 1 were read"):
        split_labels(Source((table(ANSWERS),)), 500_000_000, None, {})


def test_f3_a_column_beside_the_labels_may_be_named_label(table: Any) -> None:
    answers = cw.read(table("task,worker,verdict,label\nt1,ann,cat,x\n"), label="verdict")
    assert answers.frame().to_dicts() == [{"task": "t1", "worker": "ann", "label": "cat", "label_other": "x"}]
    answers = cw.read(table("task,worker,verdict,label,label_other\nt1,ann,cat,x,y\n"), label="verdict")
    assert (
        answers.frame().rows(named=True)[0].items()
        >= {"label": "cat", "label_other_other": "x", "label_other": "y"}.items()
    )
